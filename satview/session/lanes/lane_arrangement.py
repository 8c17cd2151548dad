"""What the user has done to the lanes, as an immutable value: undo keeps the old one, and a file can hold it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from satview.session.lanes.lane_row import LaneKey


# Titles of the groups of who used little, and of CPUs on which nothing ran; both are folded at first.
QUIET: Final = "quiet processes"
IDLE_CPUS: Final = "idle CPUs"
FOLDED_AT_FIRST: Final = frozenset({QUIET, IDLE_CPUS})


class SortBy(StrEnum):
    """By what processes, and the threads in them, are sorted."""

    TRACE = "trace"
    NAME = "name"
    CPU = "cpu"
    PRIORITY = "priority"
    READY = "ready"
    BLOCKED = "blocked"


class GroupBy(StrEnum):
    """By what lanes are grouped."""

    PROCESS = "process"
    PRIORITY = "priority"
    CPU = "cpu"
    PARTITION = "partition"
    PATTERN = "pattern"


class Label(StrEnum):
    """What is written into intervals, in this order as far as there is room."""

    STATE = "state"
    PRIORITY = "priority"
    CPU = "cpu"
    PARTNER = "partner"
    CALL = "call"
    PARTITION = "partition"


@dataclass(frozen=True, slots=True)
class LaneGroup:
    """Lanes under one heading.

    Attributes:
        title: The heading; unique among the groups.
        members: Threads, or processes with their threads.
    """

    title: str
    members: frozenset[LaneKey]


@dataclass(frozen=True, slots=True)
class LaneArrangement:
    """The lanes of one view; keys, not indices, so that it means the same in a refreshed trace.

    Attributes:
        turned: Lanes that are open though they were closed at first, or the other way round.
        hidden, pinned: Lanes hidden, and pinned in this order.
        hides_empty: Lanes without events in the window are left out.
        sort: What `order` was made by; lanes that were dragged since have other positions.
        order: Lanes that do not have the order of the trace among their siblings.
        group: What `groups` were made by.
        groups: The groups in their order; empty = lanes are grouped by process.
        patterns: As typed, where lanes are grouped by pattern.
        closed: Titles of groups that are folded.
        classes: Names of the classes of lanes of events that show (`timeline.lane_classes`).
        labels: What is written into intervals.
        shows_kinds: Lanes of CPUs show what kind of code runs, not whose.
    """

    turned: frozenset[LaneKey] = frozenset()
    hidden: frozenset[LaneKey] = frozenset()
    pinned: tuple[LaneKey, ...] = ()
    hides_empty: bool = False
    sort: SortBy = SortBy.TRACE
    order: tuple[LaneKey, ...] = ()
    group: GroupBy = GroupBy.PROCESS
    groups: tuple[LaneGroup, ...] = ()
    patterns: str = ""
    closed: frozenset[str] = FOLDED_AT_FIRST
    classes: frozenset[str] = frozenset()
    labels: frozenset[Label] = frozenset({Label.STATE})
    shows_kinds: bool = False


def labels_in(text: str) -> frozenset[Label]:
    """Return the labels that a setting names, separated by commas; names that are none are left out."""
    names = {name.strip() for name in text.split(",")}
    return frozenset(label for label in Label if label.value in names)
