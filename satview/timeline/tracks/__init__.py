"""Lanes of events of one sort: what they show, found for the whole trace when they are first shown."""
