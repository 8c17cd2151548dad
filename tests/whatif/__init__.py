"""Tests of predictions: what would have happened if."""
