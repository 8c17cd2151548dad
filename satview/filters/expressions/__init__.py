"""Conditions on events: their language, their meaning for one event and for a whole trace."""
