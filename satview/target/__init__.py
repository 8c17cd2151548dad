"""Captures traces from targets over the user's own ssh, and runs persistent simulated targets."""
