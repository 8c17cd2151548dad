"""Named, seeded programs for the simulated machine, one module per group of lessons."""
