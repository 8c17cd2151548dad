"""Several traces on one time axis: the file that lists them, and the combined trace."""
