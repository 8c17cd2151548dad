"""The model of one window: open trace, visible time range, selection, filters, commands, jobs. QtCore only."""
