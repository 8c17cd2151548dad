"""Rules that choose events, for views (vectorised over a table) and for capture (one event at a time)."""
