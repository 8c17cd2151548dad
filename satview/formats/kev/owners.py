"""Who an event belongs to: thread numbers from (pid, tid), and the thread running on each CPU."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import library, loading
from satview.formats.kev.clocks.clock import MAX_CPUS

_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads neighbouring ids
_MOST_PROBES: Final = 256
# The interrupt interface of 6.x and the vendor's printer pass 11 bits only (section 6.1).
_COMMON_BITS: Final = 0x7FF  # bits of a buffer's number that every source shows
_TABLE_CPUS: Final = 10  # above this, sorting by CPU is cheaper than a table per CPU


class ThreadNumbers:
    """Gives every (pid, tid) a row number, from 1; 0 is nobody.

    An open-addressed hash table in two arrays, probed for a whole chunk at a time: almost every key is found at the
    first probe, and only the others are looked at again. A file may hold ids selected to collide; where probes do not
    end, the table is filled again with a multiplier that nobody can know.
    """

    def __init__(self) -> None:
        self._bits = 12
        self._keys = np.zeros(1 << self._bits, np.uint64)
        self._rows = np.zeros(1 << self._bits, np.uint32)
        self._known = np.zeros(64, np.uint64)  # key per row, row 0 unused
        self._count = 1
        self._multiplier = _MULTIPLIER

    def __len__(self) -> int:
        return self._count

    def keys(self) -> NDArray[np.uint64]:
        """Return the keys by row; row 0 is meaningless.

        Returns:
            uint64 (threads,).
        """
        return self._known[: self._count]

    def numbers(self, keys: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return the row of every key, shape (n,), adding keys never seen before in order of appearance."""
        if library.is_available():
            return self._numbers_by_core(keys)
        rows, missing = self._look_up(keys)
        if len(missing):
            fresh, first = np.unique(keys[np.sort(missing)], return_index=True)
            self._add(fresh[np.argsort(first, kind="stable")])
            rows, _ = self._look_up(keys)
        return rows

    def _numbers_by_core(self, keys: NDArray[np.uint64]) -> NDArray[np.uint32]:
        keys, rows, done = np.ascontiguousarray(keys), np.empty(len(keys), np.uint32), 0
        while True:
            done, self._count = loading.numbers(
                keys, done, self._keys, self._rows, self._bits, int(self._multiplier), self._known, self._count,
                min(len(self._known), len(self._keys) // 8), rows,
            )  # fmt: skip
            if done == len(keys):
                return rows
            if done < 0:
                done = -1 - done
                self._fill_otherwise(self._count)
            elif self._make_room(self._count + 1) and not self._fill(self._count):
                self._fill_otherwise(self._count)

    def _make_room(self, end: int) -> bool:
        """Have room for the rows before `end`; return whether the table is another one, which is to be filled."""
        if end > len(self._known):
            self._known = np.concatenate((self._known, np.zeros(max(end, len(self._known)), np.uint64)))
        # At most one position in eight is taken: then nearly all keys are found at the first probe.
        is_grown = end * 8 > len(self._keys)
        while end * 8 > 1 << self._bits:
            self._bits += 1
        return is_grown

    def _slots_of(self, keys: NDArray[np.uint64]) -> NDArray[np.intp]:
        return ((keys * self._multiplier) >> np.uint64(64 - self._bits)).astype(np.intp)

    def _look_up(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.intp]]:
        at = self._slots_of(keys)
        rows = self._rows.take(at, mode="clip")  # without a check of every position, of which none is beyond the table
        open_ = np.flatnonzero((self._keys.take(at, mode="clip") != keys) | (rows == 0))
        missing = []
        at = at[open_]
        probes = 0
        while len(open_):
            probes += 1
            if probes > _MOST_PROBES:
                self._fill_otherwise(self._count)
                return self._look_up(keys)
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
        is_grown = self._make_room(end)
        self._known[self._count : end] = keys
        if not (self._fill(end) if is_grown else self._insert(keys, self._count)):
            self._fill_otherwise(end)
        self._count = end

    def _fill(self, end: int) -> bool:
        """Make the table again for the rows before `end`; return whether all found a position."""
        self._keys = np.zeros(1 << self._bits, np.uint64)
        self._rows = np.zeros(1 << self._bits, np.uint32)
        return self._insert(self._known[1:end], 1)

    def _fill_otherwise(self, end: int) -> None:
        """Make the table again with other multipliers until no key is far from its position."""
        self._multiplier = np.uint64(_random_odd())
        while not self._fill(end):
            self._multiplier = np.uint64(_random_odd())

    def _insert(self, keys: NDArray[np.uint64], first_row: int) -> bool:
        """Insert distinct keys: all at once where they do not collide, the rest a position further on.

        Returns:
            False if some found no position near by; the table is of no use then.
        """
        rows = np.arange(first_row, first_row + len(keys), dtype=np.uint32)
        at = self._slots_of(keys)
        for _ in range(_MOST_PROBES):
            free = np.flatnonzero(self._rows[at] == 0)
            self._keys[at[free]], self._rows[at[free]] = keys[free], rows[free]
            # Two keys may have claimed one position: the later one has it.
            # Of several keys that claimed one free position the last write counts, so the others have to go on.
            left = self._rows[at] != rows
            keys, rows, at = keys[left], rows[left], (at[left] + 1) & ((1 << self._bits) - 1)
            if not len(rows):
                return True
        return not len(rows)


def _random_odd() -> int:
    return int.from_bytes(os.urandom(8), "little") | 1


class Discontinuities:
    """Finds where a kernel buffer of the file is not followed by the next one: who runs is not known there.

    Args:
        per_cpu: Every CPU has buffers of its own (8.0), so that only that CPU's thread is not known.
    """

    def __init__(self, per_cpu: bool) -> None:
        self._per_cpu = per_cpu
        self._last: dict[int, int] = {}

    def find(
        self, rows: NDArray[np.intp], cpus: NDArray[np.uint8], sequence: NDArray[np.uint32], dropped: NDArray[np.bool_]
    ) -> list[tuple[int, int]]:
        """Return position and CPU (-1 = all) of every discontinuity of buffer numbers in a chunk.

        Args:
            rows: (k,), positions of BUFFER and DROPPED events, ascending.
            cpus: (k,), their CPUs.
            sequence: (k,), their first words: a BUFFER's number.
            dropped: (k,), which of them are DROPPED.
        """
        if not len(rows):
            return []
        ring = cpus.astype(np.int64) if self._per_cpu else np.full(len(rows), -1)
        is_found = dropped.copy()
        buffers = np.flatnonzero(~dropped)
        number = sequence[buffers].astype(np.int64)
        if self._per_cpu:  # those of a CPU count on together
            order = np.argsort(ring[buffers], kind="stable")
            buffers, number = buffers[order], number[order]
        of = ring[buffers]
        is_first = np.append(True, of[1:] != of[:-1])[: len(of)]
        first = np.flatnonzero(is_first)
        before = np.append(0, number[:-1])[: len(of)]
        # Before the first BUFFER nothing is known to be missing: a ring, or a capture that began earlier, starts
        # anywhere.
        before[first] = [self._last.get(ring, after - 1)
                         for ring, after in zip(of[first].tolist(), number[first].tolist(), strict=True)]  # fmt: skip
        last = np.append(first[1:] - 1, len(of) - 1)[: len(first)]
        self._last.update(zip(of[last].tolist(), number[last].tolist(), strict=True))
        # The vendor's listings show the lower bits of the number only; 8.0 begins its last buffer from 1 again.
        is_next = (number - before) & _COMMON_BITS == 1
        if self._per_cpu:
            is_next |= number == 1
        is_found[buffers[~is_next]] = True
        return list(zip(rows[is_found].tolist(), ring[is_found].tolist(), strict=True))


class RunningThreads:
    """The thread running on each CPU, carried from chunk to chunk."""

    def __init__(self) -> None:
        self.now = np.zeros(MAX_CPUS, np.uint32)

    def assign(
        self,
        cpus: NDArray[np.uint8],
        subjects: NDArray[np.integer],
        threads: NDArray[np.uint32],
        runs: NDArray[np.bool_],
        discontinuities: Sequence[tuple[int, int]],
        out: NDArray[np.unsignedinteger],
    ) -> None:
        """Write the thread that each event of a chunk belongs to: its own, else the one that runs on its CPU.

        Args:
            cpus: uint8 (n,), CPU of every event.
            subjects: (k,), events that belong to a thread by their payload, ascending.
            threads: uint32 (k,), that thread.
            runs: bool (k,), it begins to run there.
            discontinuities: As of `owners`.
            out: uint16 or uint32 (n,).
        """
        # Only thread events in the chunk, each with its own thread: nothing to look up.
        if len(subjects) == len(out):
            self.move_on(cpus, subjects[runs], threads[runs])
            out[:] = threads
        else:
            running = np.flatnonzero(runs)
            self._write_owners(cpus, subjects[running], threads[running], discontinuities, out)
            out[subjects] = threads.astype(out.dtype)

    def move_on(
        self, cpus: NDArray[np.uint8], running_rows: NDArray[np.integer], running_threads: NDArray[np.uint32]
    ) -> None:
        """Take note of the RUNNING events of a chunk whose owners are not needed."""
        self.now[cpus[running_rows]] = running_threads  # of several for one CPU the last one stays

    def owners(
        self,
        cpus: NDArray[np.uint8],
        running_rows: NDArray[np.integer],
        running_threads: NDArray[np.uint32],
        discontinuities: Sequence[tuple[int, int]] = (),
    ) -> NDArray[np.uint32]:
        """Return the thread running on each event's CPU when the event happened, shape (n,).

        Args:
            cpus: (n,), CPU of every event of the chunk.
            running_rows: Positions of the RUNNING events, ascending.
            running_threads: The threads that start to run there.
            discontinuities: Positions of other events, ascending, each with a CPU or -1 for any: from there to the next
                RUNNING event no thread is known to run on it.
        """
        out = np.empty(len(cpus), np.uint32)
        self._write_owners(cpus, running_rows, running_threads, discontinuities, out)
        return out

    def _write_owners(
        self,
        cpus: NDArray[np.uint8],
        running_rows: NDArray[np.integer],
        running_threads: NDArray[np.uint32],
        discontinuities: Sequence[tuple[int, int]],
        out: NDArray[np.unsignedinteger],
    ) -> None:
        rows, threads, resets = running_rows, running_threads, np.empty(0, np.intp)
        if discontinuities:
            rows, threads, resets = _with_discontinuities(rows, threads, discontinuities)
        if not len(rows):
            out[:] = self.now[cpus]
            return
        highest = int(cpus.max()) + 1
        if highest > _TABLE_CPUS:
            out[:] = self._owners_sorted(cpus, rows, threads, resets)
        else:
            # One column per CPU, one row per change of any CPU: who runs there from then on.
            owner = np.empty((len(rows) + 1, highest), out.dtype)
            changed, is_reset, narrow = cpus[rows], np.zeros(len(rows), np.bool_), threads.astype(out.dtype)
            is_reset[resets - 1] = True
            for cpu in range(highest):
                mine = np.flatnonzero((changed == cpu) | is_reset)
                times = np.diff(mine, prepend=-1, append=len(rows))  # how many changes of any CPU it stays
                owner[:, cpu] = np.repeat(np.append(self.now[cpu].astype(out.dtype), narrow[mine]), times)
            position = np.repeat(np.arange(0, owner.size, highest), np.diff(rows, prepend=0, append=len(cpus)))
            position += cpus
            np.take(owner.ravel(), position, mode="clip", out=out)
        # After a gap that concerns all CPUs only the changes behind it count.
        if len(resets):
            self.now[:] = 0
            rows, threads = rows[resets[-1] :], threads[resets[-1] :]
        self.move_on(cpus, rows, threads)

    def _owners_sorted(
        self,
        cpus: NDArray[np.uint8],
        rows: NDArray[np.integer],
        threads: NDArray[np.uint32],
        resets: NDArray[np.intp],
    ) -> NDArray[np.uint32]:
        order = np.argsort(cpus, kind="stable")
        change_at = np.zeros(len(cpus), np.uint32)
        change_at[rows] = np.arange(1, len(rows) + 1, dtype=np.uint32)
        changes = change_at[order].astype(np.int64)
        by_cpu = cpus[order].astype(np.int64)
        lifted = np.maximum.accumulate(changes + by_cpu * (len(rows) + 1) * 2)
        # Lifting by CPU makes the running maximum begin again with every CPU.
        last = lifted - by_cpu * (len(rows) + 1) * 2
        by_change = np.concatenate((np.zeros(1, np.uint32), threads))[last]
        owners = np.empty(len(cpus), np.uint32)
        owners[order] = np.where(last == 0, self.now[by_cpu], by_change)
        if len(resets):
            reset_at = np.zeros(len(cpus), np.int64)
            reset_at[rows[resets - 1]] = resets
            owners[order[last < np.maximum.accumulate(reset_at)[order]]] = 0
        return owners


def _with_discontinuities(
    rows: NDArray[np.integer], threads: NDArray[np.uint32], discontinuities: Sequence[tuple[int, int]]
) -> tuple[NDArray[np.integer], NDArray[np.uint32], NDArray[np.intp]]:
    """Return rows and threads of RUNNING events and gaps together, and which of them, from 1, concern every CPU."""
    discontinuity_rows, discontinuity_cpus = np.array(discontinuities, np.intp).T
    at = np.searchsorted(rows, discontinuity_rows)
    positions = at + np.arange(1, len(at) + 1)
    return np.insert(rows, at, discontinuity_rows), np.insert(threads, at, 0), positions[discontinuity_cpus < 0]
