"""The capture side: a simulated instrumented kernel, TraceEvent(), kernel buffers and tracelogger."""
