"""Two traces in one window: the second lanes, the comparison panel, What if, and the dialog for one time axis."""
