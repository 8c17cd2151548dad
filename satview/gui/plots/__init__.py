"""The plots panel. `axes`, `time_plot` and `duration_plot` import pyqtgraph; the panel imports them on first use."""
