"""Modules that every layer may use: errors, time, shipped files, debug switches. Imports nothing else of satview."""
