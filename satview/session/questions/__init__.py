"""Questions about a trace that are answered in the background."""
