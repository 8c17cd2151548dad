"""Expressions over events in scripts: the documented import path of `satview.filters.expressions.expression`."""

from satview.filters.expressions.expression import Expression, select, validate

__all__ = ["Expression", "select", "validate"]
