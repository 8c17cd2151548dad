"""Tests of the compiled core."""
