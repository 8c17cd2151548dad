"""The simulated machine: CPUs, the scheduler, programs, and the loop that runs them."""
