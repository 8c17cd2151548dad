"""The slots of kernel buffers that are scattered in a file, as one row of slots."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.events.wire import SLOT_BYTES
from satview.formats.kev.slots.slot_source import SourceFile
from satview.formats.qst.sections import Buffers


class BufferSlots:
    """Implements `formats.kev.slot_source.SlotSource`; slots are read when requested, nothing is cached.

    Args:
        file: The file.
        buffers: Where its buffers are; their slots follow each other in this order.
        byte_order: Of the slots.
    """

    def __init__(self, file: SourceFile, buffers: Buffers, byte_order: str) -> None:
        self._file, self._at = file, buffers.at
        self._first = np.concatenate(([0], np.cumsum(buffers.slots)))
        self._is_native = bool(np.dtype("<u4" if byte_order == "little" else ">u4").isnative)

    def __len__(self) -> int:
        return int(self._first[-1])

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def first(self) -> NDArray[np.int64]:
        """Number of the first slot of each buffer, and how many slots there are, int64 (buffers + 1,)."""
        return self._first

    def byte(self, slot: int) -> int:
        """Return the file offset of a slot."""
        buffer = int(np.searchsorted(self._first[1:], slot, "right"))
        buffer = min(buffer, len(self._at) - 1)
        return int(self._at[buffer]) + (slot - int(self._first[buffer])) * SLOT_BYTES

    def check(self) -> None:
        """Raise SourceChangedError if the file is not the one that was opened any more."""
        self._file.check()

    def read(self, start: int, end: int, scratch: NDArray[np.uint32] | None = None) -> NDArray[np.uint32]:
        """Return slots, as `SlotSource.read`.

        Returns:
            uint32 (n, 4).

        Raises:
            IndexError: There are no such slots.
            SourceChangedError: The file has lost them.
        """
        if not 0 <= start <= end <= len(self):
            raise IndexError(f"slots {start} to {end} of {len(self)}")
        out = np.empty((end - start, 4), np.uint32) if scratch is None else scratch[: end - start]
        at = start
        while at < end:
            buffer = int(np.searchsorted(self._first[1:], at, "right"))
            stop = min(end, int(self._first[buffer + 1]))
            self._file.read_into(out[at - start : stop - start], self.byte(at))
            at = stop
        if not self._is_native:
            out.byteswap(inplace=True)
        return out

    def take(self, at: NDArray[np.int64], word: int) -> NDArray[np.uint32]:
        """Return one word of some slots.

        Returns:
            uint32 (n,).
        """
        return np.ascontiguousarray(self.take_halves(at, word // 2)[:, word % 2])

    def take_halves(self, at: NDArray[np.int64], half: int) -> NDArray[np.uint32]:
        """Return words 0 and 1, or 2 and 3, of some slots, shape (len(at), 2); each buffer is read once."""
        out = np.empty((len(at), 2), np.uint32)
        order = np.argsort(at, kind="stable")
        edges = np.searchsorted(at[order], self._first)
        for buffer in np.flatnonzero(np.diff(edges)).tolist():
            rows = order[edges[buffer] : edges[buffer + 1]]
            first, last = int(at[rows[0]]), int(at[rows[-1]])
            out[rows] = self.read(first, last + 1)[at[rows] - first, 2 * half : 2 * half + 2]
        return out
