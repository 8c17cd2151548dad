"""Numbers of things in sentences."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return how many there are of something, for people: `1 event`, `2,409,125 events`.

    Args:
        count: How many; may be negative, as a difference is.
        noun: One of them, with what is said before it; its last word takes an `s` for all but one.
    """
    return f"{count:,} {noun}{'' if abs(count) == 1 else 's'}"
