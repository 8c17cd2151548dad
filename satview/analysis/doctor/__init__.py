"""The doctor: what a trace can show exactly, what as a bound, what not at all, and what to capture for the rest."""
