"""Several traces on one time axis: the file that names them, and the trace that they make together."""
