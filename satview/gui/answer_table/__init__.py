"""The table of an answer in the window: one model and one panel for all of them."""
