"""Traces in other forms."""
