"""Filter and search of a window: their state and their evaluation."""
