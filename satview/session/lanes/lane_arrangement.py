"""The user's arrangement of the lanes as an immutable value, for undo and for saved sessions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from satview.session.lanes.lane_row import LaneKey


# Titles of the groups of nearly idle processes and of unused CPUs; both are folded at first.
QUIET: Final = "quiet processes"
IDLE_CPUS: Final = "idle CPUs"
SINGULAR: Final = {QUIET: "quiet process", IDLE_CPUS: "idle CPU"}
FOLDED_AT_FIRST: Final = frozenset(SINGULAR)


class SortBy(StrEnum):
    """Sort key of processes, and of the threads in each."""

    TRACE = "trace"
    NAME = "name"
    CPU = "cpu"
    PRIORITY = "priority"
    READY = "ready"
    BLOCKED = "blocked"


class GroupBy(StrEnum):
    """Property by which lanes are grouped."""

    PROCESS = "process"
    PRIORITY = "priority"
    CPU = "cpu"
    PARTITION = "partition"
    PATTERN = "pattern"


class Label(StrEnum):
    """Texts that can be shown in intervals, in this order as far as there is room."""

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
    """The arrangement of the lanes of one view; it uses keys, not indices, so that it stays valid after a reload.

    Attributes:
        turned: Lanes that are folded though unfolded by default, or the other way round.
        hidden: Lanes that the user has hidden.
        pinned: Lanes pinned at the top, in this order.
        hides_empty: True to leave out lanes without events in the window.
        sort: Key by which `order` was sorted; lanes that the user has dragged since are elsewhere.
        order: Lanes in the user's order; lanes that are not listed are in the order of the trace.
        group: The property by which `groups` were made.
        groups: The groups in their order; empty = lanes are grouped by process.
        patterns: Patterns as typed, if lanes are grouped by pattern.
        closed: Titles of groups that are folded.
        classes: Names of the classes of event lanes that are shown (`timeline.lane_classes`).
        labels: Labels shown in intervals.
        shows_kinds: True if CPU lanes show the kind of code that runs, not its process.
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
    """Return the labels in a comma-separated setting; unknown names are ignored."""
    names = {name.strip() for name in text.split(",")}
    return frozenset(label for label in Label if label.value in names)
