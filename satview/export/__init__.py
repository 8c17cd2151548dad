"""Traces and tables written for other programs; `by_ending` chooses the writer."""
