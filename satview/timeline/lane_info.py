"""What a lane is about, known before it is built."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from satview.events.states import STATE_BY_VALUE

if TYPE_CHECKING:
    from satview.timeline.tracks.track import Track


class LaneKind(StrEnum):
    """What a lane is about."""

    CPU = "cpu"
    INTERRUPTS = "interrupts"
    PROCESS = "process"
    THREAD = "thread"
    DAMAGED = "damaged"
    """Events of CPUs, processes and threads that only damaged slots name."""
    PLUGGED = "plugged"
    """What a plug-in adds."""
    TRACK = "track"
    """Events of one sort, as `timeline.lane_classes` has them."""


@dataclass(frozen=True, slots=True)
class LaneInfo:
    """A lane before it is built.

    Attributes:
        index: Its position in `Timeline.infos`.
        kind: What it is about.
        title: `CPU 0`, `devb-eide`, `2 worker`.
        subtitle: `pid 8195`, `interrupts`; may be empty.
        parent: Index of the lane it unfolds from; -1 = none.
        cpu: Number of the CPU; -1 = not of one.
        process: Row of the process; 0 = none.
        thread: Row of the thread; 0 = none.
        plugged: Which of the lanes of plug-ins; -1 = none.
        track: What a lane of events shows; None for others.
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
        """Return what a value means on this lane; empty if it has no special meaning."""
        if self.track is not None:
            return self.track.found.meanings.get(value, "")
        return STATE_BY_VALUE[value].meaning if value in STATE_BY_VALUE else ""

    @property
    def is_counter(self) -> bool:
        """True if it draws numbers as steps."""
        return self.track is not None and self.track.found.number is not None
