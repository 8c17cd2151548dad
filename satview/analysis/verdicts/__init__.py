"""Verdicts: problems in a trace, found automatically, each with its time and its evidence.

Every rule counts only events, within windows of a fixed length. Missing events can therefore hide a verdict but never
create one: a damaged trace yields no verdict that the complete one would not, except for the loss itself.
"""
