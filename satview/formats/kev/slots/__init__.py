"""Reads slots of 16 bytes, and assembles events and buffers from them."""
