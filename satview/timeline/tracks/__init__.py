"""Track lanes, each of events of one class; their content is found for the whole trace when they are first shown."""
