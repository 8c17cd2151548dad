"""Dialogs for captures of simulated and real targets, and the background task that runs them."""
