"""Windows: what they hold, their commands, their bars."""
