"""Filters and rules that select events, for views (vectorised over a table) and captures (one event at a time)."""
