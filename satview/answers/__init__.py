"""Answers to questions about a trace: one module per question, each of which returns a `Table`."""
