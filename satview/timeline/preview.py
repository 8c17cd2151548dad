"""A preview of which process ran on each CPU, from a few samples of a file, to show while the whole file is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import numbers_of
from satview.base.time import Clock, TimeWindow
from satview.events.spec import Release
from satview.events.states import IDLE, IS_BUSY, VALUE_COUNT
from satview.formats.kev.sampling import Sampled
from satview.store.losses import idle_threads
from satview.timeline.spans import pixel_edges
from satview.timeline.state_lanes import process_values, run_slices


@dataclass(frozen=True, slots=True, eq=False)
class KnownRuns:
    """Intervals in which the samples show which process ran on one CPU; between them nothing is known.

    Attributes:
        start_cycles, end_cycles: int64 (n,), ascending, not overlapping.
        value: uint8 (n,), lane values: the colour of the process, or `IDLE`.
    """

    start_cycles: NDArray[np.int64]
    end_cycles: NDArray[np.int64]
    value: NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Preview:
    """The use of all CPUs over time, as far as samples of a trace show it.

    Attributes:
        clock: Clock of the trace.
        window: From the first to the last sampled event.
        cpus: The known runs of each CPU.
        titles: Titles of the lanes of the CPUs.
        positions: Number of positions in the file that were sampled.
        lost_marks: (k, 2) int64, start and end in cycles of ranges in which, as samples show, events are missing.
    """

    clock: Clock
    window: TimeWindow
    cpus: tuple[KnownRuns, ...]
    titles: tuple[str, ...]
    positions: int
    lost_marks: NDArray[np.int64]

    def cover(self, cpu: int, window: TimeWindow, bins: int) -> NDArray[np.float64]:
        """Return for how many cycles of each bin a CPU is known to have each lane value, (64, bins); 0 = not known."""
        return _cover(self.cpus[cpu], window, bins)

    def busy_shares(self, window: TimeWindow, bins: int) -> NDArray[np.float64]:
        """Return the busy share of the known time, for all CPUs together, (bins,); NaN = not known."""
        total = np.zeros((2, bins))
        for cpu in range(len(self.cpus)):
            cover = self.cover(cpu, window, bins)
            total += cover[IS_BUSY].sum(axis=0), cover.sum(axis=0)
        shares = np.full(bins, np.nan)
        np.divide(total[0], total[1], out=shares, where=total[1] > 0)
        return shares


def preview_of(sample: Sampled) -> Preview | None:
    """Return the preview from a sample of a trace, None if the sample shows no thread that ran."""
    trace = sample.trace
    rows, ends = run_slices(trace)
    logged = sample.is_timed[sample.position[rows]]
    rows, ends = rows[logged], ends[logged]
    if not len(rows):
        return None
    events = trace.events
    ends = np.minimum(ends, _known_until(sample, rows))
    value = process_values(trace)[trace.threads.process[events.thread[rows]]]
    value[idle_threads(trace)[events.thread[rows]]] = IDLE
    start = events.time_cycles[rows]
    cpus = []
    for cpu in range(trace.cpu_count):
        of_cpu = np.flatnonzero((events.cpu[rows] == cpu) & (ends > start))
        # Where runs overlap, as buffers may, the later one counts from its start.
        until = np.append(start[of_cpu][1:], np.iinfo(np.int64).max)
        cpus.append(KnownRuns(start[of_cpu], np.minimum(ends[of_cpu], until), value[of_cpu]))
    seen = events.time_cycles[sample.is_timed[sample.position]]
    titles = tuple(trace.cpu_title(cpu) for cpu in range(trace.cpu_count))
    return Preview(trace.clock, TimeWindow(int(seen[0]), int(seen[-1]) + 1), tuple(cpus), titles,
                   int(np.count_nonzero(sample.is_timed)),
                   np.stack((sample.lost_cycles - 1, sample.lost_cycles), axis=1))  # fmt: skip


def _known_until(sample: Sampled, rows: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return for each event the time up to which its sample has all events of the CPU.

    In 8.0, where every CPU has its own buffers, that is the CPU's last event in the sample; else the sample's last one.
    """
    trace = sample.trace
    cpus = int(trace.events.cpu.max()) + 1 if trace.release == Release.QNX_8 else 1
    keys = sample.position * cpus + (trace.events.cpu if cpus > 1 else 0)
    last: NDArray[np.int64] = np.zeros(len(sample.is_timed) * cpus, np.int64)
    last[keys] = trace.events.time_cycles  # in time order: the last one stays
    return np.asarray(last[keys[rows]])


@lru_cache(maxsize=32)  # the first picture has all CPUs twice: in the strip and as lanes
def _cover(runs: KnownRuns, window: TimeWindow, width: int) -> NDArray[np.float64]:
    """Return for how many cycles of each pixel a CPU is known to have each lane value, (values, pixels)."""
    edges = pixel_edges(window, width)
    start, end = np.maximum(runs.start_cycles, edges[0]), np.minimum(runs.end_cycles, edges[-1])
    inside = end > start
    start, end, value = start[inside], end[inside], runs.value[inside].astype(np.int64)
    begin = np.searchsorted(edges, start, side="right") - 1
    stop = np.searchsorted(edges, end, side="left") - 1
    spread = stop > begin
    head = np.where(spread, edges[begin + 1], end) - start
    tail = (end - edges[stop])[spread]
    middle = np.maximum(stop - begin - 1, 0)
    pixel = numbers_of(begin + 1, middle)
    keys = np.concatenate((value * width + begin, (value * width + stop)[spread],
                           np.repeat(value * width, middle) + pixel))  # fmt: skip
    pieces = np.concatenate((head, tail, edges[pixel + 1] - edges[pixel]))
    cover = np.bincount(keys, pieces, VALUE_COUNT * width).astype(np.float64, copy=False)
    return cover.reshape(VALUE_COUNT, width)
