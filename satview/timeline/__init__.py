"""Timeline models: who was in which state when, per thread and per CPU, ready to be drawn at any zoom. No Qt."""
