"""The text that traceprinter prints, taken apart again: lines, arguments, events, slots."""
