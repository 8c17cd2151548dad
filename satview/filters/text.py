"""Rules as text, for scripts: the documented import path of `satview.filters.rules.text`."""

from satview.filters.derived_columns import process_names
from satview.filters.rules.text import Rule, check_rules, parse_rules, rules_text

__all__ = ["Rule", "check_rules", "parse_rules", "process_names", "rules_text"]
