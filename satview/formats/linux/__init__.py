"""Reads recordings of the Linux scheduler: trace.dat of trace-cmd, perf.data, the text of perf script, and Perfetto."""
