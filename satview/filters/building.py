"""Builds rule sets from rules, for scripts: the documented way to `satview.filters.rules.building`."""

from satview.filters.rules.building import BuiltRules, build

__all__ = ["BuiltRules", "build"]
