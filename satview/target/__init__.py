"""Captures a trace from a target over the user's own ssh: addresses of targets, their properties, and the capture."""
