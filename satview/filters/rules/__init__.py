"""The rules of TraceEvent(): as text, as the state of a kernel, over a trace and in a capture."""
