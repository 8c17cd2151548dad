"""Slots of 16 bytes: reading them, and assembling them to events and buffers."""
