"""What the simulated kernel is made of: threads, objects, time, and the record of what happened."""
