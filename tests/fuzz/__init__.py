"""Hostile inputs by the thousand: `python -m tests.fuzz --minutes 10`. See docs/reliability.md."""
