"""Predicts the effect of changes: a trace becomes programs, which run again on the simulated kernel with changes."""
