"""The simulated machine: clock, CPUs, scheduler and kernel objects. Knows what happens, not how it is recorded."""
