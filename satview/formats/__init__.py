"""File formats: each reader reads one kind of file as a `Trace`, each writer a trace into a file."""
