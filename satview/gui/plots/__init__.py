"""The plots panel. `axes`, `load_plot` and `duration_plot` import pyqtgraph; the panel imports them on first use."""
