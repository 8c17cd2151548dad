"""Named filters over a trace, and estimates of what a capture with the same rules would have logged."""
