"""Timeline models: the states of threads and CPUs over time, in a form that can be drawn at any zoom. No Qt."""
