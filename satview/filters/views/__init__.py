"""Named filters over a trace, and what a capture with the same rules would hold."""
