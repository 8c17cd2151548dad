"""One lane as it is laid out; apart from the list of lanes, so that a preview needs nothing of a trace."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaneRow:
    """One lane as it is laid out.

    Attributes:
        index: Index in `Timeline.infos`.
        depth: 0 for CPUs and processes, 1 for what is under them, 2 for what is under threads.
        y_px: Top, from the top of the list.
        height_px: Height.
        is_foldable: It has lanes under it.
        is_open: They show.
        is_pinned: It is at the top because the user has pinned it.
        is_alone: It is not under its process, whose name it needs.
    """

    index: int
    depth: int
    y_px: int
    height_px: int
    is_foldable: bool
    is_open: bool
    is_pinned: bool
    is_alone: bool = False


@dataclass(frozen=True, slots=True)
class GroupHead:
    """The heading of a group of lanes.

    Attributes:
        title: As the user reads it.
        count: Lanes of the group, processes not opened counting as one.
        y_px: Top, from the top of the list.
        height_px: Height.
        is_open: Its lanes show.
    """

    title: str
    count: int
    y_px: int
    height_px: int
    is_open: bool
