"""Reads schedules of Linux: trace.dat of trace-cmd, perf.data, the text of perf script, and Perfetto."""
