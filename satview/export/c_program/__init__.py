"""Rule sets as C programs that run on the target."""
