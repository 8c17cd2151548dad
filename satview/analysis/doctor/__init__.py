"""The doctor: what a trace can tell exactly, what as a bound, what not at all, and what to capture for the rest."""
