"""Commands that answer questions about a trace: what is wrong, why, how long, SQL."""
