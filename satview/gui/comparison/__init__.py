"""Two traces in one window: lanes of the second, comparison panel, dialogs What if and One time axis."""
