"""Describes a trace and its objects as text, for terminals and for assistants."""
