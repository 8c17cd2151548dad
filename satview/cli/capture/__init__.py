"""Commands that capture traces: on a simulated target, and on a real one over ssh."""
