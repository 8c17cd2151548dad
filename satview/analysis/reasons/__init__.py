"""Reasons why threads ran or waited: causes of an interval, and the chain to the root cause."""
