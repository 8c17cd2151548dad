"""How long things take and how often they happen: sums, counts and lengths of intervals, as arrays."""
