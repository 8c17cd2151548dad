"""The simulated machine: kernel operations, interrupts, the scheduler, and the programs of threads."""
