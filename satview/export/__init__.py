"""Traces and tables written for other programs: text, CSV, JSON, smaller .kev files."""
