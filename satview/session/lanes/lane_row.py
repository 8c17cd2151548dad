"""One lane as it is laid out; apart from the list of lanes, so that a preview needs nothing of a trace."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaneRow:
    """One lane as it is laid out.

    Attributes:
        index: Index in `Timeline.infos`.
        depth: 0 for CPUs and processes, 1 for what is under them.
        y_px: Top, from the top of the list.
        height_px: Height.
        is_foldable: It has lanes under it.
        is_open: They show.
        is_pinned: It is at the top because the user wants it there.
    """

    index: int
    depth: int
    y_px: int
    height_px: int
    is_foldable: bool
    is_open: bool
    is_pinned: bool
