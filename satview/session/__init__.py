"""What one window is about: the open trace, visible window, selection, filters, commands, jobs. QtCore only."""
