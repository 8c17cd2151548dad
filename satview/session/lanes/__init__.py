"""Lanes as a window shows them: their order, their events, and where they are after a reload."""
