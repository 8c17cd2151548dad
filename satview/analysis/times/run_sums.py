"""How long threads ran between moments: what a call, a message or a service took of the CPUs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.basis import Runs
from satview.store.time_ranges import Cycles

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RunSums:
    """How long threads ran up to moments; moments are numbers in a list of times that holds all that matter.

    Attributes:
        time: int64, cycles, ascending: the moments themselves.
        key: int64, (n,), thread << 32 | moment at which a run begins, ascending.
        end: int64, cycles, when it ends.
        before: int64, (n + 1,), time in all runs before each.
        first: int64, (threads + 1,), where the runs of each thread begin.
    """

    time: Cycles
    key: _Ints
    end: Cycles
    before: Cycles
    first: _Ints

    @classmethod
    def of(cls, runs: Runs, mine: NDArray[np.intp], start: Cycles, end: Cycles, time: Cycles, threads: int) -> RunSums:
        """Sum up runs.

        Args:
            runs: All runs.
            mine: Which of them count.
            start: int64, when all runs begin, cycles; cut at a range if that is called for.
            end: int64, when they end.
            time: int64, ascending: every moment that will be queried about, and every start of a run.
            threads: Rows of the thread table.
        """
        order = np.lexsort((start[mine], runs.thread[mine]))
        thread, start, end = runs.thread[mine][order], start[mine][order], end[mine][order]
        return cls(time, thread << 32 | np.searchsorted(time, start), end, np.append(0, np.cumsum(end - start)),
                   np.searchsorted(thread, np.arange(threads + 1)))  # fmt: skip

    def total(self, threads: int) -> Cycles:
        """Return how long each thread ran, int64 (threads,)."""
        return np.asarray(np.diff(self.before[self.first]))[:threads]

    def between(self, thread: _Ints, first: _Ints, last: _Ints) -> Cycles:
        """Return how long threads ran between moments, cycles of the same shape."""
        return self._up_to(thread, last) - self._up_to(thread, first)

    def _up_to(self, thread: _Ints, moment: _Ints) -> Cycles:
        position = np.searchsorted(self.key, thread << 32 | moment)
        begun = position > self.first[thread]
        beyond = np.zeros(len(thread), np.int64)
        beyond[begun] = np.maximum(self.end[position[begun] - 1] - self.time[moment[begun]], 0)
        return self.before[position] - self.before[self.first[thread]] - beyond
