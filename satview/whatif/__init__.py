"""What would have happened if: a trace becomes programs, which run again on the simulated kernel with changes."""
