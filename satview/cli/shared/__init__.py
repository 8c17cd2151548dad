"""What several commands have in common: options, ranges of time, tables, consoles, completion."""
