"""Expressions (conditions on events): their language, and their evaluation for one event and for a whole trace."""
