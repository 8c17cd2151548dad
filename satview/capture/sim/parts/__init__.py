"""The parts of the simulated kernel: threads, objects, time, and the history of events."""
