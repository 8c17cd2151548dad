"""Allocates columns of traces in memory or in mapped files; tables of columns, and ranges of rows."""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from satview.core.library import call

# Allocation of columns: in memory up to a bound, beyond it in mapped files without a name.


SWITCH: Final = "SATVIEW_MEMORY_MB"  # environment; megabytes, 0 or nothing = no bound
MEGABYTE: Final = 1_000_000
_SEGMENT: Final = 64 << 20  # small columns share a file: each map costs a file descriptor
_ALIGN: Final = 64

_Array = TypeVar("_Array", bound=NDArray[Any])


def from_environment() -> int | None:
    """Return the memory bound that the environment sets (`SWITCH`), in bytes; None if it sets none."""
    text = os.environ.get(SWITCH, "")
    return int(text) * MEGABYTE or None if text.isdecimal() else None


@dataclass(slots=True)
class _Room:
    """Bytes that columns use in memory, the bound on these, and the folder for columns beyond the bound."""

    limit_bytes: int | None = field(default_factory=from_environment)
    folder: Path | None = None
    used_bytes: int = 0
    segment: mmap.mmap | None = None
    filled_bytes: int = 0
    lock: Any = field(default_factory=threading.RLock)  # a finalizer may run while it is held

    def takes(self, size: int) -> bool:
        """Reserve memory if that stays within the bound; return whether it was reserved."""
        with self.lock:
            if self.limit_bytes is not None and self.used_bytes + size > self.limit_bytes:
                return False
            self.used_bytes += size
            return True

    def give(self, size: int) -> None:
        with self.lock:
            self.used_bytes -= size


_ROOM: Final = _Room()


def set_limit(limit_bytes: int | None, folder: Path | None = None) -> None:
    """Set the bound on the memory of all columns; existing columns do not move.

    Args:
        limit_bytes: Maximum number of bytes; None = no bound.
        folder: Folder for mapped files; None = the system's folder of temporary files, which may itself be in memory.
    """
    with _ROOM.lock:
        _ROOM.limit_bytes, _ROOM.folder, _ROOM.segment = limit_bytes, folder, None


def used_bytes() -> int:
    """Return the number of bytes that columns use in memory now."""
    return _ROOM.used_bytes


def empty(rows: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an uninitialised column, shape (rows,), in memory or, beyond the bound, in a mapped file.

    Raises:
        OSError: The bound is exceeded, and the disk has no room for the column.
    """
    size = rows * np.dtype(dtype).itemsize
    if not _ROOM.takes(size):
        return _mapped(rows, np.dtype(dtype))
    column: NDArray[Any] = np.empty(rows, dtype)
    weakref.finalize(column, _ROOM.give, size)
    return column


def settled(column: _Array) -> _Array:
    """Return a complete column itself or, beyond the memory bound, a copy in pages that the system can reclaim.

    Raises:
        OSError: As `empty`.
    """
    if _ROOM.limit_bytes is None:
        return column
    if _ROOM.takes(column.nbytes):
        weakref.finalize(column, _ROOM.give, column.nbytes)
        return column
    copy = _mapped(len(column), column.dtype)
    copy[:] = column
    return copy  # type: ignore[return-value]


def let_go(column: NDArray[Any]) -> None:
    """Let the system reclaim the memory pages of a mapped column; they are read again when the column is used."""
    pages = _pages_of(column)
    if pages is not None and hasattr(pages, "madvise"):
        pages.madvise(mmap.MADV_DONTNEED)  # written data of a shared map is kept


def is_mapped(column: NDArray[Any]) -> bool:
    """Return whether a column is in a mapped file, beyond the bound of memory."""
    return _pages_of(column) is not None


def _pages_of(column: NDArray[Any]) -> mmap.mmap | None:
    base: object = column
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return base if isinstance(base, mmap.mmap) else None


def _mapped(rows: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    size = rows * dtype.itemsize
    if not size:  # an empty file cannot be mapped
        return np.empty(rows, dtype)
    if size >= _SEGMENT:
        return np.frombuffer(_pages(size), dtype)
    with _ROOM.lock:
        if _ROOM.segment is None or _ROOM.filled_bytes + size > _SEGMENT:
            _ROOM.segment, _ROOM.filled_bytes = _pages(_SEGMENT), 0
        offset = _ROOM.filled_bytes
        _ROOM.filled_bytes += -(-size // _ALIGN) * _ALIGN
        return np.frombuffer(_ROOM.segment, dtype, rows, offset)


def _pages(size: int) -> mmap.mmap:
    with tempfile.TemporaryFile(buffering=0, dir=_ROOM.folder) as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)  # a full disk is an error here, not a dead process later
        else:
            blank = bytes(1 << 20)
            for start in range(0, size, len(blank)):
                file.write(blank[: size - start])
        return mmap.mmap(file.fileno(), size)  # it keeps the file


# Records whose fields are columns of one length.


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """A table of columns: subclasses are frozen dataclasses whose fields are all arrays of shape (n,)."""

    def taken(self, rows: NDArray[Any] | slice) -> Self:
        """Return a table with some rows of this one.

        Args:
            rows: Positions of the rows, intp (k,), in any order; or bool (n,); or a slice.
        """
        return type(self)(*(getattr(self, column.name)[rows] for column in fields(self)))

    @classmethod
    def concatenated(cls, tables: Sequence[Self]) -> Self:
        """Return one table with the rows of all given tables, of which there must be at least one."""
        return cls(*(np.concatenate([getattr(table, column.name) for table in tables]) for column in fields(cls)))


# Ranges of whole numbers, many at a time.


def numbers_of(start: NDArray[np.integer[Any]], size: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return the whole numbers in many ranges, one range after the other, int64 (size.sum(),).

    Args:
        start: (n,), first number of each range.
        size: (n,), count of numbers in each range, 0 or more.
    """
    numbers = np.empty(int(size.sum()), np.int64)
    call("ranges", np.ascontiguousarray(start, np.int64), np.ascontiguousarray(size, np.int64), numbers)
    return numbers
