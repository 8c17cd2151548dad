"""The plots panel. `time_plot` and `duration_plot` import pyqtgraph; the panel imports these modules on first use."""
