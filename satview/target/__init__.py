"""A trace from a target over the user's own ssh: where targets are, what they say of themselves, and the capture."""
