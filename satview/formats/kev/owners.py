"""Numbers threads by (pid, tid), and finds gaps after which the thread running on a CPU is unknown."""

from __future__ import annotations

import os
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import loading

_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads neighbouring ids
_MOST_PROBES: Final = 256
# The interrupt interface of 6.x and the vendor's printer pass 11 bits only (section 6.1).
_COMMON_BITS: Final = 0x7FF  # bits of a buffer's number that every source has


class ThreadNumbers:
    """Maps every (pid, tid) to a row number, from 1; 0 is the unknown thread.

    This is an open-addressed hash table in two arrays. A file may contain ids chosen to collide; if a search needs too
    many probes, the table is rebuilt with a random multiplier.
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
        """Return the row of every key, uint32 (n,); new keys are added in the order in which they occur."""
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
        """Make room for the rows before `end`; return whether the table must be rebuilt because it has grown."""
        if end > len(self._known):
            self._known = np.concatenate((self._known, np.zeros(max(end, len(self._known)), np.uint64)))
        # At most one position in eight is used, so that nearly all keys are found at the first probe.
        is_grown = end * 8 > len(self._keys)
        while end * 8 > 1 << self._bits:
            self._bits += 1
        return is_grown

    def _slots_of(self, keys: NDArray[np.uint64]) -> NDArray[np.intp]:
        return ((keys * self._multiplier) >> np.uint64(64 - self._bits)).astype(np.intp)

    def _fill(self, end: int) -> bool:
        """Rebuild the table for the rows before `end`; return whether all keys found a position."""
        self._keys = np.zeros(1 << self._bits, np.uint64)
        self._rows = np.zeros(1 << self._bits, np.uint32)
        return self._insert(self._known[1:end], 1)

    def _fill_otherwise(self, end: int) -> None:
        """Rebuild the table with random multipliers until all keys find a position."""
        self._multiplier = np.uint64(_random_odd())
        while not self._fill(end):
            self._multiplier = np.uint64(_random_odd())

    def _insert(self, keys: NDArray[np.uint64], first_row: int) -> bool:
        """Insert distinct keys: first all keys that do not collide, then the others one position further, and so on.

        Returns:
            False if a key found no position within `_MOST_PROBES`; the table is then unusable.
        """
        rows = np.arange(first_row, first_row + len(keys), dtype=np.uint32)
        positions = self._slots_of(keys)
        for _ in range(_MOST_PROBES):
            free = np.flatnonzero(self._rows[positions] == 0)
            self._keys[positions[free]], self._rows[positions[free]] = keys[free], rows[free]
            # If several keys claimed one free position, the last write wins, and the others have to go on.
            left = self._rows[positions] != rows
            keys, rows, positions = keys[left], rows[left], (positions[left] + 1) & ((1 << self._bits) - 1)
            if not len(rows):
                return True
        return False


def _random_odd() -> int:
    return int.from_bytes(os.urandom(8), "little") | 1


class Discontinuities:
    """Finds gaps in the numbers of kernel buffers, after which the running thread is unknown.

    Args:
        per_cpu: Whether every CPU has its own buffers (8.0), so that a gap concerns only this CPU.
    """

    def __init__(self, per_cpu: bool) -> None:
        self._per_cpu = per_cpu
        self._last_numbers: dict[int, int] = {}

    def find(
        self, rows: NDArray[np.intp], cpus: NDArray[np.uint8], sequence: NDArray[np.uint32], dropped: NDArray[np.bool_]
    ) -> list[tuple[int, int]]:
        """Return position and CPU (-1 = all) of every discontinuity of buffer numbers in a chunk.

        Args:
            rows: (k,), positions of BUFFER and DROPPED events, ascending.
            cpus: (k,), CPUs of these events.
            sequence: (k,), first payload words: the number of a BUFFER.
            dropped: (k,), which of the events are DROPPED.
        """
        if not len(rows):
            return []
        ring = cpus.astype(np.int64) if self._per_cpu else np.full(len(rows), -1)
        is_break = dropped.copy()
        buffers = np.flatnonzero(~dropped)
        number = sequence[buffers].astype(np.int64)
        if self._per_cpu:  # numbers are consecutive per CPU
            order = np.argsort(ring[buffers], kind="stable")
            buffers, number = buffers[order], number[order]
        ring_of_buffer = ring[buffers]
        is_first = np.append(True, ring_of_buffer[1:] != ring_of_buffer[:-1])[: len(ring_of_buffer)]
        first_buffers = np.flatnonzero(is_first)
        before = np.append(0, number[:-1])[: len(ring_of_buffer)]
        # Before the first BUFFER no loss is assumed: the numbers of a ring or a longer capture start anywhere.
        starts = zip(ring_of_buffer[first_buffers].tolist(), number[first_buffers].tolist(), strict=True)
        before[first_buffers] = [self._last_numbers.get(ring, after - 1) for ring, after in starts]
        last = np.append(first_buffers[1:] - 1, len(ring_of_buffer) - 1)[: len(first_buffers)]
        self._last_numbers.update(zip(ring_of_buffer[last].tolist(), number[last].tolist(), strict=True))
        # The vendor's listings have only the lower bits of the number; in 8.0 the last buffer has number 1 again.
        is_next = (number - before) & _COMMON_BITS == 1
        if self._per_cpu:
            is_next |= number == 1
        is_break[buffers[~is_next]] = True
        return list(zip(rows[is_break].tolist(), ring[is_break].tolist(), strict=True))
