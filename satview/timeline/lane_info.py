"""Descriptions of lanes that exist before the lanes are built."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from satview.events.states import STATE_BY_VALUE

if TYPE_CHECKING:
    from satview.timeline.track import Track


class LaneKind(StrEnum):
    """Kinds of lanes."""

    CPU = "cpu"
    INTERRUPTS = "interrupts"
    PROCESS = "process"
    THREAD = "thread"
    DAMAGED = "damaged"
    """Events of CPUs, processes and threads that only damaged slots name."""
    PLUGGED = "plugged"
    """A lane that a plug-in adds."""
    TRACK = "track"
    """Events of a class of `timeline.lane_classes`."""


@dataclass(frozen=True, slots=True)
class LaneInfo:
    """The description of a lane.

    Attributes:
        index: Its position in `Timeline.infos`.
        kind: The kind of lane.
        title: Title: `CPU 0`, `devb-eide`, `2 worker`.
        subtitle: Additional text: `pid 8195`, `interrupts`; may be empty.
        parent: Index of the lane under which this lane unfolds; -1 = none.
        cpu: Number of the CPU; -1 = none.
        process: Row of the process table; 0 = none.
        thread: Row of the thread table; 0 = none.
        plugged: Index in `lane_tree.plugged_lanes`; -1 = none.
        track: The intervals or moments of a track lane; None for others.
    """

    index: int
    kind: LaneKind
    title: str
    subtitle: str
    parent: int
    cpu: int = -1
    process: int = 0
    thread: int = 0
    plugged: int = -1
    track: Track | None = None

    def meaning(self, value: int) -> str:
        """Return the meaning of a lane value on this lane; empty if the value has none."""
        if self.track is not None:
            return self.track.content.meanings.get(value, "")
        return STATE_BY_VALUE[value].meaning if value in STATE_BY_VALUE else ""

    @property
    def is_counter(self) -> bool:
        """True if the lane draws numbers as steps."""
        return self.track is not None and self.track.content.number is not None
