"""Arrows between lanes: messages, replies, pulses and wake-ups, found by time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.column_table import ColumnTable
from satview.base.time import TimeWindow
from satview.events import wire
from satview.linkage.actors import TIMER
from satview.linkage.messages import ERROR, REPLY
from satview.linkage.table import OPEN, LinkKind, LinkTable
from satview.linkage.trace_links import link_table
from satview.store.trace import Trace
from satview.timeline.lane_info import LaneInfo, LaneKind

_Ints = NDArray[np.int64]
_ABSENT: Final = -1  # instead of a lane


class ArrowKind(IntEnum):
    """What an arrow means."""

    MESSAGE = 0
    """From the send of a message to its receipt."""
    REPLY = 1
    """From the reply, or error, to the client that goes on."""
    PULSE = 2
    """From the send of a pulse to its receipt."""
    WAKE_UP = 3
    """From anything else that makes a thread ready to that thread: a call, a timer, an interrupt."""


@dataclass(frozen=True, slots=True)
class Arrows(ColumnTable):
    """Arrows from one lane to another; every column has shape (n,).

    Attributes:
        start, end: int64, cycles; when they begin, and end.
        from_row, to_row: uint32, the events they join.
        from_lane, to_lane: int32, indices in the infos of the timeline.
        kind: uint8, `ArrowKind`.
        certainty: uint8, `Certainty` of the link.
    """

    start: _Ints
    end: _Ints
    from_row: NDArray[np.uint32]
    to_row: NDArray[np.uint32]
    from_lane: NDArray[np.int32]
    to_lane: NDArray[np.int32]
    kind: NDArray[np.uint8]
    certainty: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True)
class ArrowIndex:
    """All arrows of a trace, by powers of two of their lengths, and by start within each: no window needs a full pass.

    Attributes:
        arrows: The arrows.
        levels: For every power that occurs, the positions of its arrows and the length that none of them exceeds.
    """

    arrows: Arrows
    levels: tuple[tuple[slice, int], ...]

    def parts(self, window: TimeWindow) -> list[slice]:
        """Return positions of arrows in a window, with some that end a little before it."""
        out = []
        for positions, longest in self.levels:
            first, last = np.searchsorted(self.arrows.start[positions], (window.start - longest, window.end))
            if last > first:
                out.append(slice(positions.start + int(first), positions.start + int(last)))
        return out


def arrow_index(trace: Trace, infos: tuple[LaneInfo, ...]) -> ArrowIndex:
    """Return all arrows of a trace; the first time it makes all links.

    Args:
        trace: The events.
        infos: The lanes that they join.
    """
    found = _all(trace, infos)
    found = found.taken(np.flatnonzero((found.from_lane != found.to_lane) & (np.minimum(found.from_lane, found.to_lane)
                                                                           != _ABSENT)))  # fmt: skip
    power = np.frexp(np.maximum(found.end - found.start, 1).astype(np.float64))[1].astype(np.uint16)
    found = found.taken(np.lexsort((found.start, power)))
    power.sort()
    levels = []
    for value in np.unique(power).tolist():
        first, last = np.searchsorted(power, (value, value + 1)).tolist()
        levels.append((slice(first, last), 1 << value))
    return ArrowIndex(found, tuple(levels))


def _all(trace: Trace, infos: tuple[LaneInfo, ...]) -> Arrows:
    """Return the arrows of all kinds, those within one lane too."""
    messages, pulses, woken = (link_table(trace, kind) for kind in (LinkKind.MESSAGE, LinkKind.PULSE, LinkKind.WAKE_UP))
    # A send that has its arrow to the receiver needs none to the same thread that it wakes.
    is_known = _same_thread(trace, woken, messages) | _same_thread(trace, woken, pulses)
    at = np.flatnonzero(~is_known)
    is_reply = np.isin(trace.events.code[woken.from_row[at]], (REPLY, ERROR))
    of_wakes = np.where(is_reply, np.uint8(ArrowKind.REPLY), np.uint8(ArrowKind.WAKE_UP))
    kinds = (np.full(len(messages), ArrowKind.MESSAGE, np.uint8), np.full(len(pulses), ArrowKind.PULSE, np.uint8))
    from_row = np.concatenate((messages.from_row, pulses.from_row, woken.from_row[at]))
    to_row = np.concatenate((messages.to_row, pulses.to_row, woken.to_row[at]))
    kind = np.concatenate((*kinds, of_wakes))
    certainty = np.concatenate((messages.certainty, pulses.certainty, woken.certainty[at]))
    known = np.flatnonzero(to_row < OPEN)
    from_row, to_row, kind, certainty = from_row[known], to_row[known], kind[known], certainty[known]
    time = trace.events.time_cycles
    lanes = _Lanes(trace, infos)
    return Arrows(time[from_row], time[to_row], from_row, to_row, lanes.of_causes(from_row), lanes.of(to_row), kind,
                  certainty)  # fmt: skip


def _same_thread(trace: Trace, woken: LinkTable, sent: LinkTable) -> NDArray[np.bool_]:
    """Return for wake-ups whether a table of sends leads from the same event to the same thread."""
    receipt = sent.ends_of(woken.from_row)
    found = receipt < OPEN
    thread = trace.events.thread
    found[found] = thread[receipt[found]] == thread[woken.to_row[found]]
    return found


class _Lanes:
    """Which lane events are on."""

    def __init__(self, trace: Trace, infos: tuple[LaneInfo, ...]) -> None:
        self._trace = trace
        self._of_thread = np.full(len(trace.threads), _ABSENT, np.int32)
        cpus = max([trace.cpu_count, *(info.cpu + 1 for info in infos)], default=1)
        self._of_cpu, self._of_interrupts = (np.full(max(cpus, 256), _ABSENT, np.int32) for _ in range(2))
        for info in infos:
            if info.kind is LaneKind.THREAD:
                self._of_thread[info.thread] = info.index
            elif info.kind is LaneKind.CPU:
                self._of_cpu[info.cpu] = info.index
            elif info.kind is LaneKind.INTERRUPTS:
                self._of_interrupts[info.cpu] = info.index

    def of(self, rows: NDArray[np.uint32]) -> NDArray[np.int32]:
        """Return the lane of each event, int32 (len(rows),): of its thread, else of its CPU, -1 for neither."""
        events = self._trace.events
        lane = self._of_thread[events.thread[rows]]
        return np.where(lane == _ABSENT, self._of_cpu[events.cpu[rows]], lane)

    def of_causes(self, rows: NDArray[np.uint32]) -> NDArray[np.int32]:
        """Return the same, but of what interrupts and timers do the lane of interrupts: the thread there only ran."""
        trace = self._trace
        origin = rows.copy()
        table = link_table(trace, LinkKind.DELIVERY)
        link = table.ended_by(rows)
        origin[link >= 0] = table.from_row[link[link >= 0]]
        code = trace.events.code[origin]
        is_interrupt = (code >> wire.CLASS_SHIFT == wire.WireClass.INT) | (code == TIMER)
        cpu = trace.events.cpu[rows]
        there = np.where(self._of_interrupts[cpu] == _ABSENT, self._of_cpu[cpu], self._of_interrupts[cpu])
        return np.where(is_interrupt & (there != _ABSENT), there, self.of(rows))
