"""Converts stamps of 32 bits to 64-bit times: rollovers, TIME events, damaged clocks."""
