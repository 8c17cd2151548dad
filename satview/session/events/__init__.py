"""What a window says of an event: its text, its arguments and what it is linked with."""
