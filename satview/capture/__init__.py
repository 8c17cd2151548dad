"""Captures from simulated targets: instrumented kernel, TraceEvent(), kernel buffers and tracelogger."""
