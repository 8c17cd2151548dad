"""Builds rule sets from rules in scripts: the documented import path of `satview.filters.rules.building`."""

from satview.filters.rules.building import BuiltRules, build

__all__ = ["BuiltRules", "build"]
