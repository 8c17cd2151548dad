"""Which events lie on which lanes, asked for a window at a time: cost follows the window, not the trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.time import TimeWindow
from satview.events import wire
from satview.events.states import NOT_A_STATE
from satview.store.trace import Trace
from satview.timeline.lane_tree import LaneInfo, LaneKind, Timeline

Rows = NDArray[np.unsignedinteger]
_CHUNK: Final = 1 << 17
_CPUS_SHOWN: Final = 8  # up to that many CPU lanes show even if they are empty
_LOOKED_AT: Final = 100_000  # events around the mouse that are asked for the nearest one


def belongs(timeline: Timeline, info: LaneInfo, rows: NDArray[np.integer] | slice) -> NDArray[np.bool_]:
    """Return for every event row whether it lies on a lane.

    On a thread's lane lie its state changes and what it did while it ran, on that of a process the events of its
    threads, on that of a CPU all it logged, on that of interrupts the interrupts of the CPU.
    """
    events = timeline.trace.events
    if info.kind is LaneKind.THREAD:
        return np.asarray(events.thread[rows] == info.thread)
    if info.kind is LaneKind.PROCESS:
        return np.asarray(timeline.trace.threads.process[events.thread[rows]] == info.process)
    mine = events.cpu[rows] == info.cpu
    if info.kind is LaneKind.INTERRUPTS:
        mine &= events.code[rows] >> wire.CLASS_SHIFT == wire.WireClass.INT
    return np.asarray(mine)


def silent_cpus(timeline: Timeline) -> frozenset[int]:
    """Return the lanes of CPUs that logged nothing at all, where there are so many CPUs that this matters."""
    cpus = [info for info in timeline.infos if info.kind is LaneKind.CPU]
    if len(cpus) <= _CPUS_SHOWN:
        return frozenset()
    busy = busy_lanes(timeline, timeline.trace.window)
    return frozenset(info.index for info in cpus if info.index not in busy)


def event_near(
    timeline: Timeline,
    lane: int,
    cycles: int,
    within: int,
    codes: NDArray[np.bool_],
    passing: NDArray[np.bool_] | None = None,
) -> int | None:
    """Return the event of a lane nearest to a moment, None if none is near.

    Args:
        timeline: The lanes.
        lane: Index of the lane.
        cycles: The moment.
        within: How far away it may be, in cycles.
        codes: bool, shape (32768,), which event codes show.
        passing: bool, shape (events,), which events show; None = the codes alone say it.
    """
    times = timeline.trace.events.time_cycles
    first, here, last = np.searchsorted(times, (cycles - within, cycles, cycles + within + 1)).tolist()
    rows = np.arange(max(first, here - _LOOKED_AT), min(last, here + _LOOKED_AT))
    rows = rows[belongs(timeline, timeline.infos[lane], rows) & codes[timeline.trace.events.code[rows]]]
    if passing is not None:
        rows = rows[passing[rows]]
    return int(rows[np.abs(times[rows] - cycles).argmin()]) if len(rows) else None


def busy_lanes(timeline: Timeline, window: TimeWindow) -> frozenset[int]:
    """Return the lanes on which something lies in a window."""
    trace = timeline.trace
    part = trace.rows_between(window)
    threads = np.zeros(len(trace.threads), np.bool_)
    cpus, interrupts = np.zeros(64, np.bool_), np.zeros(64, np.bool_)
    for start in range(part.start, part.stop, _CHUNK):
        rows = slice(start, min(part.stop, start + _CHUNK))
        cpu = trace.events.cpu[rows]
        threads[trace.events.thread[rows]] = True
        cpus[cpu & 63] = True
        interrupts[cpu[trace.events.code[rows] >> wire.CLASS_SHIFT == wire.WireClass.INT] & 63] = True
    processes = np.zeros(len(trace.processes), np.bool_)
    processes[trace.threads.process[threads]] = True
    tables = {
        LaneKind.THREAD: threads,
        LaneKind.PROCESS: processes,
        LaneKind.CPU: cpus,
        LaneKind.INTERRUPTS: interrupts,
    }
    return frozenset(info.index for info in timeline.infos if tables[info.kind][_number(info)])


class MarkTable:
    """Which codes are marks on a lane: not state changes, not CONTROL; bool, shape (32768,), by release."""

    def __init__(self, trace: Trace) -> None:
        codes = np.arange(wire.CODE_COUNT)
        classes = codes >> wire.CLASS_SHIFT
        is_thread_event = (classes == wire.WireClass.PR_TH) & (codes & wire.EVENT_MASK < 64)
        self.codes = (trace.catalogue.state_value_of_code == NOT_A_STATE) & ~is_thread_event
        self.codes &= classes != wire.WireClass.CONTROL


def marks(timeline: Timeline, lanes: tuple[int, ...], rows: Rows, edges: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which pixels of which lanes hold one of the given events, shape (len(lanes), len(edges) - 1).

    Args:
        timeline: The lanes.
        lanes: Their indices.
        rows: Event rows, ascending, all within the edges.
        edges: Edges of the pixels in cycles.
    """
    found = np.zeros((len(lanes), len(edges) - 1), np.bool_)
    for place, column, _ in place_marks(timeline, lanes, rows, edges):
        found[place, column] = True
    return found


def place_marks(
    timeline: Timeline, lanes: tuple[int, ...], rows: Rows, edges: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.intp], Rows]]:
    """Yield where events lie: place in `lanes`, pixel, event row; an event can lie on several lanes.

    Args as for `marks`.
    """
    trace, last = timeline.trace, len(edges) - 2
    places = _places(timeline, lanes)
    for start in range(0, len(rows), _CHUNK):
        part = rows[start : start + _CHUNK]
        times = trace.events.time_cycles[part]
        if edges[-1] - edges[0] > last:
            column = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, last)
        else:  # a cycle takes several pixels: the first one has the mark
            column = np.clip(np.searchsorted(edges[:-1], times), 0, last)
        threads, cpus = trace.events.thread[part], trace.events.cpu[part]
        is_interrupt = trace.events.code[part] >> wire.CLASS_SHIFT == wire.WireClass.INT
        for kind, table in places.items():
            by_thread = kind in (LaneKind.THREAD, LaneKind.PROCESS)
            place = table[threads] if by_thread else table[cpus & 63]
            mine = place >= 0
            if kind is LaneKind.INTERRUPTS:
                mine &= is_interrupt
            yield place[mine], column[mine], part[mine]


def _places(timeline: Timeline, lanes: tuple[int, ...]) -> dict[LaneKind, NDArray[np.int64]]:
    """Return for every kind of lane the place in `lanes` of each thread or CPU, -1 where it has none."""
    trace = timeline.trace
    tables: dict[LaneKind, NDArray[np.int64]] = {}
    for place, lane in enumerate(lanes):
        info = timeline.infos[lane]
        by_thread = info.kind in (LaneKind.THREAD, LaneKind.PROCESS)
        table = tables.setdefault(info.kind, np.full(len(trace.threads) if by_thread else 64, -1, np.int64))
        if info.kind is LaneKind.PROCESS:
            table[trace.threads.process == info.process] = place
        else:
            table[_number(info)] = place
    return tables


def _number(info: LaneInfo) -> int:
    return {LaneKind.THREAD: info.thread, LaneKind.PROCESS: info.process}.get(info.kind, info.cpu)
