"""Tables of figures: their columns, and the rows of each."""
