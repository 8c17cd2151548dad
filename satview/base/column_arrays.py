"""Columns of traces in memory or in mapped files, files of arrays, and memory that is freed early."""

from __future__ import annotations

import ctypes
import hashlib
import json
import mmap
import os
import struct
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Final, ParamSpec, Self, TypeVar, cast
from weakref import WeakMethod

import numpy as np
from numpy.typing import DTypeLike, NDArray

from satview.base.errors import Cancelled
from satview.base.new_file import NewFile
from satview.base.shared_file import DamagedFileError
from satview.core import loading
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
    """The number of bytes that columns use in memory, its bound, and where columns beyond the bound are.

    Attributes:
        limit_bytes: The bound; None = no bound.
        folder: Folder for mapped files; None = the system's folder of temporary files.
        segment: The mapped file that small columns share; None = not made yet.
        filled_bytes: Bytes of this file that columns have taken.
    """

    limit_bytes: int | None = field(default_factory=from_environment)
    folder: Path | None = None
    used_bytes: int = 0
    segment: mmap.mmap | None = None
    filled_bytes: int = 0
    lock: Any = field(default_factory=threading.RLock)  # a finalizer may run while it is held

    def takes(self, size: int) -> bool:
        """Reserve `size` bytes of memory if that stays within the bound; return whether they were reserved."""
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
    """Set the bound on the memory of all columns, None = no bound; existing columns do not move.

    `folder` is for mapped files; None = the system's of temporary files, which may itself be in memory.
    """
    with _ROOM.lock:
        _ROOM.limit_bytes, _ROOM.folder, _ROOM.segment = limit_bytes, folder, None


def used_bytes() -> int:
    """Return the number of bytes that columns use in memory now."""
    return _ROOM.used_bytes


def empty(rows: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an uninitialised column, shape (rows,), in memory or, beyond the bound, in a mapped file.

    Raises OSError if the disk has no room for it.
    """
    size = rows * np.dtype(dtype).itemsize
    if not _ROOM.takes(size):
        return _mapped(rows, np.dtype(dtype))
    column: NDArray[Any] = np.empty(rows, dtype)
    weakref.finalize(column, _ROOM.give, size)
    return column


def settled(column: _Array) -> _Array:
    """Return a complete column, or a copy of it in a mapped file if its memory would exceed the bound.

    The system can reclaim the pages of the copy when memory is short.

    Args:
        column: The column; all its elements have been written.

    Raises:
        OSError: The disk has no room for the copy.
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
        """Return a table with some rows of this one: intp (k,) in any order, bool (n,), or a slice."""
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


# Writes and maps files of arrays and plain values, whose checksums are verified before they are used.
#
# Layout: the magic line; a table of contents in JSON, after its length and SHA-256; then the arrays, each at a multiple
# of 64 bytes. The contents give type, shape, position and checksum of every array. Such a file contains no code.


MAGIC: Final = b"satview arrays 1\n"
_HEAD: Final = struct.Struct("<Q32s")  # length and SHA-256 of the contents
_MOST_CONTENTS: Final = 256 << 20
_MOST_ARRAYS: Final = 100_000
_BLOCK: Final = 8 << 20  # bytes written between two calls of `cancelled`
_DTYPES: Final = {np.dtype(name).str: np.dtype(name) for name in ("i8", "u8", "i4", "u4", "u2", "u1", "?")}
Arrays = Mapping[str, NDArray[Any]]


def write_arrays(path: Path, values: object, arrays: Arrays, cancelled: Callable[[], bool] = lambda: False) -> None:
    """Write arrays of integers or booleans and values for JSON to a file, which appears only when it is complete.

    Raises Cancelled if `cancelled()` returned True, WriteError if the file cannot be written, as when the disk is full.
    """
    table, position = [], 0
    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    for name, array in plain.items():
        if cancelled():
            raise Cancelled("writing was stopped")
        table.append([name, array.dtype.str, list(array.shape), position, word_sum(array)])
        position += -(-array.nbytes // _ALIGN) * _ALIGN
    contents = json.dumps({"values": values, "arrays": table}).encode("utf-8")
    with NewFile(path, is_durable=False) as file:
        file.stream.write(MAGIC + _HEAD.pack(len(contents), hashlib.sha256(contents).digest()) + contents)
        file.stream.write(bytes(_start_of(len(contents)) - len(MAGIC) - _HEAD.size - len(contents)))
        for array in plain.values():
            data = array.reshape(-1).view(np.uint8).data
            for start in range(0, len(data), _BLOCK):
                if cancelled():
                    raise Cancelled("writing was stopped")
                file.stream.write(data[start : start + _BLOCK])
            file.stream.write(bytes(-array.nbytes % _ALIGN))


def read_arrays(
    path: Path, accepts: Callable[[Any], bool] = lambda _values: True
) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return the values and read-only arrays of a file, memory-mapped and verified in full by its checksums.

    The arrays keep the file mapped, even if it is deleted. `accepts` gets the values before the arrays are verified;
    False rejects the file. Raises DamagedFileError if the file is no file of arrays, or is rejected, incomplete or
    damaged; OSError if it cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(len(MAGIC) + _HEAD.size)
        if len(head) < len(MAGIC) + _HEAD.size or not head.startswith(MAGIC):
            raise DamagedFileError("it is not a file of arrays")
        length, digest = _HEAD.unpack(head[len(MAGIC) :])
        if length > _MOST_CONTENTS:
            raise DamagedFileError("its contents are too long")
        contents = file.read(length)
        if len(contents) != length or hashlib.sha256(contents).digest() != digest:
            raise DamagedFileError("its contents are damaged")
        try:
            header = json.loads(contents)
            values, table = header["values"], header["arrays"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DamagedFileError("its contents cannot be understood") from error
        if not accepts(values):
            raise DamagedFileError("it is about something else")
        size = file.seek(0, 2)
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return values, _mapped_part(data, size, _start_of(length), table)


def _mapped_part(data: memoryview, size: int, start: int, table: Any) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    if not isinstance(table, list) or len(table) > _MOST_ARRAYS:
        raise DamagedFileError("it has no list of arrays")
    try:
        for name, kind, shape, position, total in table:
            count = 1
            for length in shape:
                if not isinstance(length, int) or not 0 <= length <= size:
                    raise DamagedFileError(f"array {name} has an impossible shape")
                count *= length
            dtype = _DTYPES[kind]
            if not isinstance(position, int) or position < 0 or start + position + count * dtype.itemsize > size:
                raise DamagedFileError(f"array {name} is not complete")
            array = (
                np.frombuffer(data, dtype, count, start + position).reshape(shape) if count else np.empty(shape, dtype)
            )
            array.setflags(write=False)
            if word_sum(array) != total:
                raise DamagedFileError(f"array {name} is damaged")
            arrays[str(name)] = array
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedFileError("its list of arrays cannot be understood") from error
    return arrays


def word_sum(array: NDArray[Any]) -> int:
    """Return a checksum of an array's bytes; every flipped bit and nearly every swap of two words changes it.

    The checksum is the sum modulo 2^64 of the 64-bit words (the last zero-padded), each multiplied by 2 * index + 1.
    """
    data = array.reshape(-1).view(np.uint8)
    whole = len(data) // 8
    words = data[: 8 * whole].view(np.uint64)
    rest = int.from_bytes(data[8 * whole :].tobytes(), "little") * (2 * whole + 1)
    return (loading.word_sum(words, 0) + rest) % (1 << 64)


def _start_of(contents_length: int) -> int:
    """Return the offset in the file at which the arrays begin, behind a table of contents of a length in bytes."""
    return -(-(len(MAGIC) + _HEAD.size + contents_length) // _ALIGN) * _ALIGN


# Frees memory early: methods that keep no reference to their object, and trimming of the allocator's heap.


_P = ParamSpec("_P")
_R = TypeVar("_R")
_M_ARENA_MAX: Final = -8  # malloc.h of glibc


def borrowed(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a function that calls a bound method without keeping its object alive.

    Meant for callbacks that an object gives to its own parts: a bound method would form a reference cycle, so that
    large arrays would stay until the garbage collector runs. If the object has been freed, a call raises
    ReferenceError.
    """
    reference = WeakMethod(method)

    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        alive = reference()
        if alive is None:
            raise ReferenceError("the owner of this function is gone")
        answer: _R = alive(*args, **kwargs)
        return answer

    return call


@cache
def _glibc(name: str, *arguments: type) -> Callable[..., int] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        function = getattr(ctypes.CDLL(None), name)  # musl has neither function, and needs none
    except (OSError, AttributeError):
        return None
    function.argtypes, function.restype = arguments, ctypes.c_int
    return cast("Callable[..., int]", function)


@cache
def use_one_arena() -> None:
    """Make threads that begin after this call use the allocator's heap of the main thread.

    glibc gives each thread its own heap, which `give_back` cannot shrink: after six loads of 2.5 M events were closed,
    85 MB stayed in the heap of a worker. Sharing costs no more waiting than the interpreter lock.
    """
    set_option = _glibc("mallopt", ctypes.c_int, ctypes.c_int)
    if set_option is not None:
        set_option(_M_ARENA_MAX, 1)


def give_back() -> None:
    """Return freed memory from the allocator to the system.

    glibc keeps freed blocks of up to 32 MB: after satview followed a file of 1.8 M events, glibc kept 460 MB, more than
    twice the memory of the trace. Takes about 1 ms per 100 MB; does nothing without glibc.
    """
    trim = _glibc("malloc_trim", ctypes.c_size_t)
    if trim is not None:
        trim(0)
