"""What a class of lanes shows in a trace, before it is divided among lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from satview.events.states import FIRST_PROCESS, PROCESS_HUES
from satview.timeline.lane_classes import Owner

Rows = NDArray[np.uint32]


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Intervals, moments or numbers of events; every column has shape (n,), in any order.

    Attributes:
        owner_kind: Where their lanes are.
        owner: int64, row of the thread or process, or number of the CPU; 0 for the trace.
        start, end: int64, cycles; a moment ends where it begins.
        event: uint32, row of the event that begins it.
        value: uint8, lane value that gives it its colour.
        title: Name of the lanes.
        key: What distinguishes these lanes from others of the class.
        subtitle: A few words more.
        number: float64, what the lane counts from then on; None where it counts nothing.
        text: What an interval or moment is called: as `LaneClass.text`, or by the row of its event; empty = as the
            class says.
    """

    owner_kind: Owner
    owner: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    event: Rows
    value: NDArray[np.uint8]
    title: str
    key: str = ""
    subtitle: str = ""
    number: NDArray[np.float64] | None = None
    text: str | Callable[[int], str] = ""

    def __len__(self) -> int:
        return len(self.event)

    def take(self, at: NDArray[np.integer]) -> Found:
        """Return some of them."""
        number = self.number[at] if self.number is not None else None
        columns = (self.owner[at], self.start[at], self.end[at], self.event[at], self.value[at])
        return Found(self.owner_kind, *columns, self.title, self.key, self.subtitle, number, self.text)


def hues(numbers: NDArray[np.integer]) -> NDArray[np.uint8]:
    """Return lane values by which neighbours in number have different colours, uint8 (n,)."""
    return np.asarray(FIRST_PROCESS + numbers % PROCESS_HUES, np.uint8)
