"""Traces the `threading` operations of a Python program into UnixWare thread_trace files."""
