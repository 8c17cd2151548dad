"""Records the `threading` operations of a Python program in UnixWare thread_trace files."""
