"""Captures: on a simulated target, and on a real one over ssh."""
