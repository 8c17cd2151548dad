"""The open trace in memory: read-only columns, one table per kind of thing. Knows no file format and no view."""
