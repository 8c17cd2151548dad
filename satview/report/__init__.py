"""One HTML file about a trace, for people who have neither the trace nor satview."""
