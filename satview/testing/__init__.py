"""Sentences about a trace for tests: what the pytest fixture `kev` answers, and the plug-in that brings it."""
