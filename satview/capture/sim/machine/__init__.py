"""The simulated machine: CPUs, the scheduler, programs, and what drives them."""
