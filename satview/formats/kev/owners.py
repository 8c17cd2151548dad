"""Who an event belongs to: thread numbers from (pid, tid), and the thread running on each CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.formats.kev.clock import MAX_CPUS

_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads neighbouring ids
_TOLD: Final = 0x7FF  # bits of a buffer's number that every source tells
_TABLE_CPUS: Final = 10  # above this, sorting by CPU is cheaper than a table per CPU


class ThreadNumbers:
    """Gives every (pid, tid) a row number, from 1; 0 is nobody.

    An open-addressed hash table in two arrays, probed for a whole chunk at a time: almost every key is found at the
    first probe, and only the others are looked at again.
    """

    def __init__(self) -> None:
        self._bits = 12
        self._keys = np.zeros(1 << self._bits, np.uint64)
        self._rows = np.zeros(1 << self._bits, np.uint32)
        self._known = np.zeros(64, np.uint64)  # key per row, row 0 unused
        self._count = 1

    def __len__(self) -> int:
        return self._count

    def keys(self) -> NDArray[np.uint64]:
        """Return the keys by row; row 0 is meaningless."""
        return self._known[: self._count]

    def numbers(self, keys: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return the row of every key, shape (n,), adding keys never seen before in order of appearance."""
        rows, missing = self._look_up(keys)
        if len(missing):
            fresh, first = np.unique(keys[np.sort(missing)], return_index=True)
            self._add(fresh[np.argsort(first, kind="stable")])
            rows, _ = self._look_up(keys)
        return rows

    def _slots_of(self, keys: NDArray[np.uint64]) -> NDArray[np.intp]:
        return ((keys * _MULTIPLIER) >> np.uint64(64 - self._bits)).astype(np.intp)

    def _look_up(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.intp]]:
        at = self._slots_of(keys)
        rows = self._rows[at]
        open_ = np.flatnonzero((self._keys[at] != keys) | (rows == 0))
        missing = []
        at = at[open_]
        while len(open_):
            empty = self._rows[at] == 0
            missing.append(open_[empty])
            rows[open_[empty]] = 0
            open_, at = open_[~empty], at[~empty]
            found = self._keys[at] == keys[open_]
            rows[open_[found]] = self._rows[at[found]]
            open_, at = open_[~found], (at[~found] + 1) & ((1 << self._bits) - 1)
        return rows, np.concatenate(missing) if missing else np.empty(0, np.intp)

    def _add(self, keys: NDArray[np.uint64]) -> None:
        end = self._count + len(keys)
        if end > len(self._known):
            self._known = np.concatenate((self._known, np.zeros(max(end, len(self._known)), np.uint64)))
        self._known[self._count : end] = keys
        grown = end * 8 > len(self._keys)
        while end * 8 > 1 << self._bits:
            self._bits += 1
        if grown:
            self._keys = np.zeros(1 << self._bits, np.uint64)
            self._rows = np.zeros(1 << self._bits, np.uint32)
            self._insert(self._known[1:end], 1)
        else:
            self._insert(keys, self._count)
        self._count = end

    def _insert(self, keys: NDArray[np.uint64], first_row: int) -> None:
        """Insert distinct keys: all at once where they do not collide, the rest a place further on."""
        rows = np.arange(first_row, first_row + len(keys), dtype=np.uint32)
        at = self._slots_of(keys)
        while len(rows):
            free = np.flatnonzero(self._rows[at] == 0)
            self._keys[at[free]], self._rows[at[free]] = keys[free], rows[free]
            # Two keys may have claimed one place: the later one has it.
            left = self._rows[at] != rows
            keys, rows, at = keys[left], rows[left], (at[left] + 1) & ((1 << self._bits) - 1)


class Jumps:
    """Finds where the file jumps from one kernel buffer to another than the next: who runs is not known there.

    Args:
        per_cpu: Every CPU has buffers of its own (8.0), so that only that CPU's thread is not known.
    """

    def __init__(self, per_cpu: bool) -> None:
        self._per_cpu = per_cpu
        self._last: dict[int, int] = {}

    def find(
        self, rows: NDArray[np.intp], cpus: NDArray[np.uint8], sequence: NDArray[np.uint32], dropped: NDArray[np.bool_]
    ) -> list[tuple[int, int]]:
        """Return position and CPU (-1 = all) of every jump in a chunk.

        Args:
            rows: (k,), positions of BUFFER and DROPPED events, ascending.
            cpus: (k,), their CPUs.
            sequence: (k,), their first words: a BUFFER's number.
            dropped: (k,), which of them are DROPPED.
        """
        found = []
        for row, cpu, number, is_dropped in zip(
            rows.tolist(), cpus.tolist(), sequence.tolist(), dropped.tolist(), strict=True
        ):
            ring = cpu if self._per_cpu else -1
            if is_dropped:
                found.append((row, ring))
                continue
            last = self._last.get(ring)
            self._last[ring] = number
            # The vendor's listings tell the lower bits of the number only; 8.0 begins its last buffer from 1 again.
            is_next = last is None or number - last & _TOLD == 1 or (self._per_cpu and number == 1)
            if not is_next:
                found.append((row, ring))
        return found


class RunningThreads:
    """The thread running on each CPU, carried from chunk to chunk."""

    def __init__(self) -> None:
        self.now = np.zeros(MAX_CPUS, np.uint32)

    def owners_between(
        self,
        cpus: NDArray[np.uint8],
        running_rows: NDArray[np.intp],
        running_threads: NDArray[np.uint32],
        jumps: Sequence[tuple[int, int]],
    ) -> NDArray[np.uint32]:
        """Return what `owners` does, with nobody known from each jump to the next RUNNING event."""
        parts, begin = [], 0
        for end, cpu in [*jumps, (len(cpus), MAX_CPUS)]:
            first, last = np.searchsorted(running_rows, (begin, end))
            parts.append(self.owners(cpus[begin:end], running_rows[first:last] - begin, running_threads[first:last]))
            if end < len(cpus):
                self.now[slice(None) if cpu < 0 else cpu] = 0
            begin = end
        return np.concatenate(parts)

    def move_on(
        self, cpus: NDArray[np.uint8], running_rows: NDArray[np.intp], running_threads: NDArray[np.uint32]
    ) -> None:
        """Take note of the RUNNING events of a chunk in which nobody asks for owners."""
        self.now[cpus[running_rows]] = running_threads  # of several for one CPU the last one stays

    def owners(
        self, cpus: NDArray[np.uint8], running_rows: NDArray[np.intp], running_threads: NDArray[np.uint32]
    ) -> NDArray[np.uint32]:
        """Return the thread running on each event's CPU when the event happened, shape (n,).

        Args:
            cpus: (n,), CPU of every event of the chunk.
            running_rows: Positions of the RUNNING events, ascending.
            running_threads: The threads that start to run there.
        """
        n, changes = len(cpus), len(running_rows)
        highest = int(cpus.max()) + 1 if n else 1
        if not changes:
            return self.now[cpus]
        if highest > _TABLE_CPUS:
            owners = self._owners_sorted(cpus, running_rows, running_threads)
        else:
            table = np.zeros((highest, changes + 1), np.int32)
            segments = np.arange(1, changes + 1, dtype=np.int32)
            table[cpus[running_rows], segments] = segments
            np.maximum.accumulate(table, axis=1, out=table)
            # Column 0 of the threads stands for "as before this chunk", which differs by CPU.
            threads = np.concatenate((np.zeros(1, np.uint32), running_threads))[table]
            threads = np.where(table == 0, self.now[:highest, None], threads)
            flags = np.zeros(n, np.int8)
            flags[running_rows] = 1
            index = np.cumsum(flags, dtype=np.intp)
            index += np.multiply(cpus, changes + 1, dtype=np.intp)
            owners = np.take(threads.ravel(), index, mode="clip")
        self.move_on(cpus, running_rows, running_threads)
        return owners

    def _owners_sorted(
        self, cpus: NDArray[np.uint8], running_rows: NDArray[np.intp], running_threads: NDArray[np.uint32]
    ) -> NDArray[np.uint32]:
        order = np.argsort(cpus, kind="stable")
        change_at = np.zeros(len(cpus), np.uint32)
        change_at[running_rows] = np.arange(1, len(running_rows) + 1, dtype=np.uint32)
        changes = change_at[order].astype(np.int64)
        by_cpu = cpus[order].astype(np.int64)
        lifted = np.maximum.accumulate(changes + by_cpu * (len(running_rows) + 1) * 2)
        # Lifting by CPU makes the running maximum begin anew with every CPU.
        last = lifted - by_cpu * (len(running_rows) + 1) * 2
        last[last < 0] = 0
        threads = np.concatenate((np.zeros(1, np.uint32), running_threads))[last]
        owners = np.empty(len(cpus), np.uint32)
        owners[order] = np.where(last == 0, self.now[by_cpu], threads)
        return owners
