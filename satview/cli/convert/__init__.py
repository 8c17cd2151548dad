"""Commands that convert, filter, combine and print traces."""
