"""Analyses of a trace: CPU use, message passing, latency, causes. Plain functions over the tables."""
