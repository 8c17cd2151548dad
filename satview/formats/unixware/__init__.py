"""Reads UnixWare thread_trace files: text, one file per LWP, opened as a set."""
