"""satview: the System Analysis Toolkit for QNX Neutrino in Python."""

__version__ = "0.1.0"
