"""Answers to questions about a trace, one module per question; each returns a `Table`."""
