"""Writes traces and tables for other programs; `by_ending` chooses the writer."""
