"""Questions about a trace: what is wrong, why, how long, SQL."""
