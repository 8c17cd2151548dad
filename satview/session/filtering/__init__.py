"""The filter of a window and its search: what they select, and how it is worked out."""
