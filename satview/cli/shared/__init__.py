"""Code that several commands use: options, ranges of time, tables, the terminal, completion."""
