"""Captures of simulated targets, from the windows: the dialog, the work in the background, what it found."""
