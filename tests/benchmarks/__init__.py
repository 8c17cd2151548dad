"""Benchmarks: run by hand, never part of the timed test run. `python -m tests.benchmarks` lists them."""
