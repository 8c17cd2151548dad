"""The simulated machine: clock, CPUs, scheduler and kernel objects; a recorder outside of it writes the events."""
