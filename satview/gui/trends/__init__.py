"""The window of trends: a figure for each of many traces, and the traces a click away."""
