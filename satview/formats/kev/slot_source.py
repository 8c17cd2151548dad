"""Sources of the slots of a trace: a file, by positioned reads, or an array in memory.

A file is never mapped: if a mapped file is truncated, the next access to a lost page ends the program with a bus error.
A check before each access leaves a gap (of 16 commands whose file was truncated while they ran, 5 died), and a signal
handler in Python never runs, because the faulting access is repeated first. A positioned read of a lost page gives
fewer bytes or an error, both of which can be reported. Times for 46 M slots (743 MB, warm, two busy cores): all headers
in chunks of 2^17 slots 0.30 s instead of 0.11 s with a map; a payload word of every third slot 0.22 s instead of
0.08 s; a single slot 2.0 us instead of 0.1 us, while decoding its event takes 20 us or more.
"""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import SourceChangedError
from satview.core import loading
from satview.events.wire import SLOT_BYTES

_START_BYTES: Final = 4096
_BLOCK_SHIFT: Final = 16  # log2 of the slots of one read: a megabyte, which stays in the second-level cache
_GAP: Final = 8192  # number of unneeded slots that are read as fast as by another call
_CORE_GAP: Final = 512  # as `_GAP`, for calls from the core


class SlotSource(ABC):
    """The slots of a trace, always in host byte order."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of slots."""

    def check(self) -> None:  # noqa: B027  -- memory does not change
        """Raise SourceChangedError if the slots have changed since they were opened."""

    def close(self) -> None:  # noqa: B027  -- memory needs no end
        """Close the file, if there is one."""

    @abstractmethod
    def read(self, start: int, end: int, scratch: NDArray[np.uint32] | None = None) -> NDArray[np.uint32]:
        """Return slots from `start` to before `end`, uint32 (n, 4); callers must not change them.

        `scratch` is memory that may be filled and returned instead of new memory. Raises IndexError if there are no
        such slots, and SourceChangedError.
        """

    def take(self, slot_numbers: NDArray[np.int64], word: int) -> NDArray[np.uint32]:
        """Return a word, 0 to 3, of each slot, uint32 (n,); slots near each other are read together."""
        return np.ascontiguousarray(self.take_halves(slot_numbers, word // 2)[:, word % 2])

    @abstractmethod
    def take_halves(self, slot_numbers: NDArray[np.int64], half: int) -> NDArray[np.uint32]:
        """Return words 0 and 1 (half 0), or 2 and 3 (half 1), of the slots `slot_numbers`, uint32 (slots, 2).

        This is as fast as reading one word.
        """


class MemorySlots(SlotSource):
    """A source of slots that are in memory.

    Args:
        slots: (n, 4) words in any byte order.
    """

    def __init__(self, slots: NDArray[np.uint32]) -> None:
        self._slots = np.asarray(slots, np.uint32)

    def __len__(self) -> int:
        return len(self._slots)

    def read(self, start: int, end: int, scratch: NDArray[np.uint32] | None = None) -> NDArray[np.uint32]:  # noqa: ARG002
        """Return slots, as for `SlotSource.read`.

        Returns:
            uint32 (n, 4).
        """
        return self._slots[start:end]

    def take_halves(self, slot_numbers: NDArray[np.int64], half: int) -> NDArray[np.uint32]:
        """Implement `SlotSource.take_halves`."""
        words: NDArray[np.uint32] = self._slots[slot_numbers, 2 * half : 2 * half + 2]
        return words


class SourceFile:
    """An open file that other programs may truncate, overwrite, replace or remove.

    Args:
        path: The file.
        size: Number of bytes that belong to the trace.

    Raises:
        OSError: The file cannot be opened.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._path, self.size = path, size
        # Refers to the opened file even if another file gets its name; closed with this object.
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._closer = weakref.finalize(self, os.close, self._file)
        self._lock = threading.Lock()
        self._start = self._at_most(min(size, _START_BYTES), 0)
        self._seen_ns = os.fstat(self._file).st_mtime_ns

    def close(self) -> None:
        """Close the file; no bytes can be read after that."""
        self._file = -1
        self._closer()

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode number of the file; a file that replaces this one has other numbers."""
        status = os.fstat(self._file)
        return status.st_dev, status.st_ino

    @property
    def size_now(self) -> int:
        """Current size of the file in bytes."""
        return os.fstat(self._file).st_size

    def check(self) -> None:
        """Raise SourceChangedError if the file is shorter or has other first bytes; takes a microsecond."""
        try:
            status = os.fstat(self._file)
            if status.st_size < self.size:
                self._refuse_cut(status.st_size)
            # A logger that still writes changes the time, too: only the bytes at the start show another capture.
            if status.st_mtime_ns != self._seen_ns:
                if self._at_most(len(self._start), 0) != self._start:
                    self._refuse(0, "it was written over after it had been opened")
                self._seen_ns = status.st_mtime_ns
        except OSError as error:
            self._refuse_error(0, error)

    def bytes_at(self, count: int, offset: int) -> bytes:
        """Return bytes from an offset on; SourceChangedError if the file was truncated, or cannot be read."""
        content = bytearray()
        while len(content) < count:
            try:
                more = self._at_most(count - len(content), offset + len(content))
            except OSError as error:
                self._refuse_error(offset, error)
            if not more:
                self._refuse_cut(offset + len(content))
            content += more
        return bytes(content)

    def read_into(self, buffer: NDArray[np.uint32], offset: int) -> None:
        """Fill an array with bytes from an offset on; SourceChangedError if the file was cut, or cannot be read."""
        view = buffer.data.cast("B")
        if not hasattr(os, "preadv"):
            view[:] = self.bytes_at(len(view), offset)
            return
        done = 0
        while done < len(view):
            try:
                count = os.preadv(self._file, [view[done:]], offset + done)
            except OSError as error:
                self._refuse_error(offset + done, error)
            if not count:
                self._refuse_cut(offset + done)
            done += count

    def take_halves(
        self, slot_numbers: NDArray[np.int64], offset: int, slots: int, half: int
    ) -> NDArray[np.uint64] | None:
        """Return words 0 and 1, or 2 and 3, of each slot as one uint64, (n,); None if any slot cannot be read.

        Args:
            slot_numbers: int64 (n,), ascending.
            offset: Byte offset of slot 0.
            slots: Number of slots in the file.
            half: 0 = words 0 and 1, 1 = words 2 and 3.
        """
        return loading.take_halves(self._file, offset, slot_numbers, slots, half, _CORE_GAP, 1 << _BLOCK_SHIFT)

    def _at_most(self, count: int, offset: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self._file, count, offset)
        with self._lock:
            os.lseek(self._file, offset, os.SEEK_SET)
            return os.read(self._file, count)

    def _refuse_cut(self, size: int) -> NoReturn:
        self._refuse(size, f"it had {self.size:,} bytes when it was opened, now {size:,}")

    def _refuse_error(self, offset: int, error: OSError) -> NoReturn:
        is_closed = self._file < 0
        self._refuse(offset, "it was closed" if is_closed else f"it cannot be read any more: {error.strerror or error}")

    def _refuse(self, offset: int, what: str) -> NoReturn:
        raise SourceChangedError(self._path, offset, what, "open it again")


class _SlotsOfFile(SlotSource):
    """Base class of the sources of slots in a file."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file

    @abstractmethod
    def byte(self, slot: int) -> int:
        """Return the file offset of a slot."""

    @abstractmethod
    def fill(self, out: NDArray[np.uint32], start: int) -> None:
        """Fill `out`, uint32 (n, 4), with the n slots from `start` on, all of which must exist."""

    def check(self) -> None:
        """Raise SourceChangedError if the file is no longer the one that was opened."""
        self._file.check()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self, start: int, end: int, scratch: NDArray[np.uint32] | None = None) -> NDArray[np.uint32]:
        """Implement `SlotSource.read`."""
        if not 0 <= start <= end <= len(self):
            raise IndexError(f"slots {start} to {end} of {len(self)}")
        out = np.empty((end - start, 4), np.uint32) if scratch is None else scratch[: end - start]
        self.fill(out, start)
        return out


class FileSlots(_SlotsOfFile):
    """Contiguous slots in a file, read when requested, without a cache.

    Args:
        file: The file.
        offset: Byte offset of the first slot.
        count: Number of slots.
        byte_order: Byte order of the file.
    """

    def __init__(self, file: SourceFile, offset: int, count: int, byte_order: str) -> None:
        super().__init__(file)
        self._offset, self._count = offset, count
        self._is_native = bool(np.dtype("<u4" if byte_order == "little" else ">u4").isnative)

    def __len__(self) -> int:
        return self._count

    def byte(self, slot: int) -> int:
        """Return the file offset of a slot."""
        return self._offset + slot * SLOT_BYTES

    def fill(self, out: NDArray[np.uint32], start: int) -> None:
        """Fill `out`, uint32 (n, 4), with the n slots from `start` on, all of which must exist."""
        if len(out):
            self._file.read_into(out, self.byte(start))
        if not self._is_native:
            out.byteswap(inplace=True)

    def take_halves(self, slot_numbers: NDArray[np.int64], half: int) -> NDArray[np.uint32]:
        """Return words 0 and 1 (half 0), or 2 and 3, of slots, as for `SlotSource.take_halves`, uint32 (slots, 2)."""
        slot_numbers = np.asarray(slot_numbers, np.int64)
        if len(slot_numbers) > 1 and (slot_numbers[1:] < slot_numbers[:-1]).any():
            order = np.argsort(slot_numbers, kind="stable")
            mixed = np.empty((len(slot_numbers), 2), np.uint32)
            mixed[order] = self.take_halves(slot_numbers[order], half)
            return mixed
        halves = self._file.take_halves(slot_numbers, self._offset, self._count, half)
        if halves is None:  # some slots cannot be read: the slower way raises an error with offset and reason
            return self._halves_by_runs(slot_numbers, half)
        words = halves.view(np.uint32).reshape(len(slot_numbers), 2)
        return words if self._is_native else words.byteswap(inplace=True)

    def _halves_by_runs(self, slot_numbers: NDArray[np.int64], half: int) -> NDArray[np.uint32]:
        out = np.empty(len(slot_numbers), np.uint64)
        if not len(slot_numbers):
            return out.view(np.uint32).reshape(0, 2)
        # A read never crosses a block, so that its scratch stays in the cache.
        block = slot_numbers >> _BLOCK_SHIFT
        cuts = np.flatnonzero((np.diff(slot_numbers) > _GAP) | (block[1:] != block[:-1])) + 1
        edges = [0, *cuts.tolist(), len(slot_numbers)]
        first_slots, last_slots = slot_numbers[edges[:-1]], slot_numbers[np.array(edges[1:]) - 1]
        scratch = np.empty((int((last_slots - first_slots).max()) + 1, 4), np.uint32)
        for i, (start, end) in enumerate(zip(first_slots.tolist(), last_slots.tolist(), strict=True)):
            rows = slice(edges[i], edges[i + 1])
            out[rows] = self.read(start, end + 1, scratch).view(np.uint64)[slot_numbers[rows] - start, half]
        return out.view(np.uint32).reshape(len(slot_numbers), 2)


class ScatteredSlots(_SlotsOfFile):
    """Slots in several runs of a file, as one sequence, read when requested, without a cache.

    Args:
        file: The file.
        offsets: int64 (n,), byte offset of the first slot of each run.
        counts: int64 (n,), number of slots of each run.
        byte_order: Byte order of the file.
    """

    def __init__(
        self, file: SourceFile, offsets: NDArray[np.int64], counts: NDArray[np.int64], byte_order: str
    ) -> None:
        super().__init__(file)
        self._offsets, self._byte_order = offsets, byte_order
        self._first = np.concatenate(([0], np.cumsum(counts)))

    def __len__(self) -> int:
        return int(self._first[-1])

    @property
    def first(self) -> NDArray[np.int64]:
        """Number of the first slot of each run, and the total, int64 (n + 1,)."""
        return self._first

    def byte(self, slot: int) -> int:
        """Return the file offset of a slot."""
        run = min(int(np.searchsorted(self._first[1:], slot, "right")), len(self._offsets) - 1)
        return int(self._offsets[run]) + (slot - int(self._first[run])) * SLOT_BYTES

    def fill(self, out: NDArray[np.uint32], start: int) -> None:
        """Fill `out`, uint32 (n, 4), with the n slots from `start` on, all of which must exist."""
        slot, end = start, start + len(out)
        while slot < end:
            run = int(np.searchsorted(self._first[1:], slot, "right"))
            stop = min(end, int(self._first[run + 1]))
            self._run(run).fill(out[slot - start : stop - start], slot - int(self._first[run]))
            slot = stop

    def take_halves(self, slot_numbers: NDArray[np.int64], half: int) -> NDArray[np.uint32]:
        """Return words 0 and 1 (half 0), or 2 and 3, of slots, as for `SlotSource.take_halves`, uint32 (slots, 2)."""
        out = np.empty((len(slot_numbers), 2), np.uint32)
        order = np.argsort(slot_numbers, kind="stable")
        edges = np.searchsorted(slot_numbers[order], self._first)
        for run in np.flatnonzero(np.diff(edges)).tolist():
            rows = order[edges[run] : edges[run + 1]]
            out[rows] = self._run(run).take_halves(slot_numbers[rows] - self._first[run], half)
        return out

    def _run(self, run: int) -> FileSlots:
        count = int(self._first[run + 1] - self._first[run])
        return FileSlots(self._file, int(self._offsets[run]), count, self._byte_order)


def source_of(slots: NDArray[np.uint32] | SlotSource) -> SlotSource:
    """Return a source for an array of slots; a source is returned unchanged."""
    return MemorySlots(slots) if isinstance(slots, np.ndarray) else slots
