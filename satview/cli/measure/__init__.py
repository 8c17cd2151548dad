"""Figures of a trace, of two and of many."""
