"""Two traces beside each other: where the second is on the time of the first, and what changed between them."""
