"""Captures of simulated targets, from the windows: the dialog, the task in the background, what it found."""
