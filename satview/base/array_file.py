"""Writes and maps files of arrays and plain values, whose checksums are verified before they are used.

Layout: the magic line; a table of contents in JSON, after its length and SHA-256; then the arrays, each at a multiple
of 64 bytes. The contents give type, shape, position and checksum of every array. Such a file contains no code.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled
from satview.base.new_file import NewFile
from satview.base.shared_file import DamagedFileError
from satview.core import loading

MAGIC: Final = b"satview arrays 1\n"
_HEAD: Final = struct.Struct("<Q32s")  # length and SHA-256 of the contents
_ALIGN: Final = 64
_MOST_CONTENTS: Final = 256 << 20
_MOST_ARRAYS: Final = 100_000
_BLOCK: Final = 8 << 20  # bytes written between two calls of `cancelled`
_DTYPES: Final = {np.dtype(name).str: np.dtype(name) for name in ("i8", "u8", "i4", "u4", "u2", "u1", "?")}
Arrays = Mapping[str, NDArray[Any]]


def write_arrays(path: Path, values: object, arrays: Arrays, cancelled: Callable[[], bool] = lambda: False) -> None:
    """Write arrays and plain values to a file, which appears under its name only when it is complete.

    Args:
        path: The file.
        values: Anything that JSON can represent.
        arrays: Arrays of integers or booleans, by name.
        cancelled: Called now and then.

    Raises:
        Cancelled: `cancelled()` returned True; no file is left.
        WriteError: The file cannot be written, as when the disk is full.
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
    """Return the content of a file of arrays, which is memory-mapped and verified in full by its checksums.

    Args:
        path: The file.
        accepts: Called with the values before the arrays are verified; returns False to reject the file.

    Returns:
        The plain values, and the arrays by name, read-only, with the types and shapes with which they were written.
        The arrays keep the file mapped, even if it is deleted.

    Raises:
        DamagedFileError: The file is no file of arrays, or is rejected, incomplete or damaged.
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(len(MAGIC) + _HEAD.size)
        if len(head) < len(MAGIC) + _HEAD.size or not head.startswith(MAGIC):
            raise DamagedFileError("it is no file of arrays")
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
    return values, _mapped(data, size, _start_of(length), table)


def _mapped(data: memoryview, size: int, start: int, table: Any) -> dict[str, NDArray[Any]]:
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
    """Return a checksum of an array's bytes; every flipped bit and every swap of two words changes it.

    It is the sum modulo 2^64 of the 64-bit words (the last one zero-padded), each multiplied by 2 * index + 1.
    """
    data = array.reshape(-1).view(np.uint8)
    whole = len(data) // 8
    words = data[: 8 * whole].view(np.uint64)
    rest = int.from_bytes(data[8 * whole :].tobytes(), "little") * (2 * whole + 1)
    return (loading.word_sum(words, 0) + rest) % (1 << 64)


def _start_of(contents_length: int) -> int:
    """Return the offset in the file at which the arrays begin."""
    return -(-(len(MAGIC) + _HEAD.size + contents_length) // _ALIGN) * _ALIGN
