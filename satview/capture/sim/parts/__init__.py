"""Data records of the simulated kernel, properties of targets, the event loop, and the true history."""
