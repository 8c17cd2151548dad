"""Commands that print figures of one trace, two traces or many."""
