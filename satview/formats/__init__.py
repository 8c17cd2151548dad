"""File formats: a reader turns a file of one format into a `Trace`, a writer turns a trace into a file."""
