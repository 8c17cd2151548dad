"""File formats: each reader turns one kind of file into a `Trace`, each writer a trace into a file."""
