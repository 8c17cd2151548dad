"""What is in a trace, at a glance or at a moment."""
