"""Models of panels, without widgets: they hold the data that panels show."""
