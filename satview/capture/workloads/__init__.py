"""Workloads: named sets of programs for the simulated machine, one module per group of lessons."""
