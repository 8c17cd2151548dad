"""Verdicts: problems in a trace, found automatically, each with its time and its evidence.

Every rule only counts events within windows of a fixed length. So missing events can hide a verdict but never create
one: a damaged trace has no verdict that the complete trace would not have, except for the loss itself.
"""
