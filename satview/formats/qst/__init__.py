"""Reads QST files: the ring of kernel buffers that an on-target tracer wrote out, versions 3 and 4."""
