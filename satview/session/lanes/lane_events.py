"""Finds the events on lanes in one time window; the cost depends on the window, not on the trace."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.time import TimeWindow
from satview.events import wire
from satview.store.doubts import doubts
from satview.timeline.event_marks import is_marked
from satview.timeline.lane_info import LaneInfo, LaneKind
from satview.timeline.lane_tree import Timeline

_CHUNK: Final = 1 << 17
_CPUS_SHOWN: Final = 8  # up to this many CPU lanes are shown even if they are empty
_LOOKED_AT: Final = 100_000  # events before and after the mouse that are searched for the nearest one


def silent_cpus(timeline: Timeline) -> frozenset[int]:
    """Return the lanes of CPUs without events or intervals in the whole trace; none if there are only a few CPUs."""
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
    """Return the marked event of a lane nearest to a time; None if none is near.

    Args:
        timeline: The lanes.
        lane: Index of the lane.
        cycles: The time.
        within: Largest distance in cycles.
        codes: bool, shape (32768,), event codes that are shown.
        passing: bool, shape (events,), events that are shown; None = as `codes` says.
    """
    times = timeline.trace.events.time_cycles
    begin, middle, stop = np.searchsorted(times, (cycles - within, cycles, cycles + within + 1)).tolist()
    rows = np.arange(max(begin, middle - _LOOKED_AT), min(stop, middle + _LOOKED_AT))
    rows = rows[is_marked(timeline.trace, timeline.infos[lane], rows) & codes[timeline.trace.events.code[rows]]]
    if passing is not None:
        rows = rows[passing[rows]]
    return int(rows[np.abs(times[rows] - cycles).argmin()]) if len(rows) else None


def busy_lanes(timeline: Timeline, window: TimeWindow) -> frozenset[int]:
    """Return the lanes with events or intervals in a window."""
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
    doubtful = doubts(trace)
    tables[LaneKind.DAMAGED] = np.array([(doubtful.threads & threads).any() or (doubtful.cpus & cpus).any()])
    tables[LaneKind.PLUGGED] = np.ones(1, np.bool_)  # plug-in lanes have no events, and are never empty
    return frozenset(
        info.index
        for info in timeline.infos
        if (info.track.is_busy(window) if info.track is not None else tables[info.kind][_number(info)])
    )


def _number(info: LaneInfo) -> int:
    numbers = {LaneKind.THREAD: info.thread, LaneKind.PROCESS: info.process, LaneKind.DAMAGED: 0, LaneKind.PLUGGED: 0}
    return numbers.get(info.kind, info.cpu)
