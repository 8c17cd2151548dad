"""Writes a report about a trace as one HTML file, for readers who have neither the trace nor satview."""
