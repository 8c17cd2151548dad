"""Slots of 16 bytes: where they are read, how they make events and buffers."""
