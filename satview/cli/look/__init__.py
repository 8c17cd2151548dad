"""Commands that describe a trace, one object in it, or the state at one time."""
