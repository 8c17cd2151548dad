"""The description of an event in a window: its text, its arguments and its links."""
