"""Reads listings, the text that traceprinter prints: lines, arguments, events, slots."""
