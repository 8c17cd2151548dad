"""The open trace in memory: read-only columns, one table per kind of object. Independent of file formats and views."""
