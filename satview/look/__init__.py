"""What the window shows as text with handles, for terminals and for assistants that cannot see."""
