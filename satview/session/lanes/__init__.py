"""The lanes of a window: their order, their events, and their mapping after a reload."""
