"""Durations and counts: sums, numbers and lengths of intervals, as arrays."""
