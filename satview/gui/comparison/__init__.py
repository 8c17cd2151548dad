"""Two traces in one window: the second set of lanes, the panel of differences, the dialog for files on one axis."""
