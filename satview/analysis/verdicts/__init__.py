"""Verdicts: what is wrong in a trace, found without being requested, each with its position and its evidence.

Every rule only counts what events show, within windows of a fixed length. Events that are missing can therefore hide a
verdict and never make one: a damaged trace claims no more than the whole one would, but for the loss itself.
"""
