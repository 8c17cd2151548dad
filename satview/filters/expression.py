"""Expressions over events, for scripts: the documented way to `satview.filters.expressions.expression`."""

from satview.filters.expressions.expression import Expression, select, validate

__all__ = ["Expression", "select", "validate"]
