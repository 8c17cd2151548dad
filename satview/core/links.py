"""The compiled passes of links: which events belong together.

`passes.c` says what each does and which numpy code is its twin. Arrays must be contiguous and of the types named here;
sizes are taken from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core.library import CODES, I64, POINTER, function

IS_CALL: Final = 1  # traits of a code for `calls`
IS_ENTRY: Final = 2
IS_END: Final = 4
IS_TURN: Final = 8
IS_RUNNING: Final = 16
_CALLS: Final = 128


@dataclass(frozen=True, slots=True)
class Calls:
    """The kernel calls of a trace.

    Attributes:
        entry: uint32 (events,), entry of the call that the CPU of each event is in before it, 2^32 - 1 for none.
        known: Two uint32 (n,), entries and ends of the calls of threads that are known.
        unknown: Two uint32 (m,), those of the calls of threads that are not.
    """

    entry: NDArray[np.uint32]
    known: tuple[NDArray[np.uint32], NDArray[np.uint32]]
    unknown: tuple[NDArray[np.uint32], NDArray[np.uint32]]


def calls(
    code: NDArray[np.uint16],
    cpu: NDArray[np.uint8],
    thread: NDArray[np.unsignedinteger],
    thread_count: int,
    traits: NDArray[np.uint8],
    stays: NDArray[np.bool_],
) -> Calls:
    """Return in which kernel call every CPU is when, and what ends each call.

    Args:
        code: uint16 (n,).
        cpu: uint8 (n,).
        thread: uint16 or uint32 (n,), rows of the thread table.
        thread_count: Rows of that table.
        traits: uint8 (32768,), of every code the sum of `IS_CALL` and so on.
        stays: bool (128,), by number, which calls never block.
    """
    assert len(code) == len(cpu) == len(thread)
    assert (len(traits), len(stays)) == (CODES, _CALLS)
    narrow = thread.dtype == np.uint16
    thread = np.ascontiguousarray(thread if narrow else thread.astype(np.uint32, copy=False))
    room = int(np.count_nonzero(traits[np.asarray(code)] & IS_END))
    entry, last_of = np.empty(len(code), np.uint32), np.empty(thread_count, np.uint32)
    first, last, counts = np.empty(room, np.uint32), np.empty(room, np.uint32), np.zeros(2, np.int64)
    failed = function("satview_calls")(
        POINTER(code.ctypes.data), POINTER(cpu.ctypes.data), POINTER(thread.ctypes.data if narrow else None),
        POINTER(None if narrow else thread.ctypes.data), I64(len(code)), POINTER(traits.ctypes.data),
        POINTER(stays.ctypes.data), POINTER(last_of.ctypes.data), I64(thread_count), POINTER(entry.ctypes.data),
        POINTER(first.ctypes.data), POINTER(last.ctypes.data), I64(room), POINTER(counts.ctypes.data),
    )  # fmt: skip
    assert not failed
    known, unknown = counts.tolist()
    return Calls(entry, (first[:known], last[:known]), (first[room - unknown :], last[room - unknown :]))


def rows_where(code: NDArray[np.uint16], table: NDArray[np.bool_], room: int) -> NDArray[np.uint32]:
    """Return the events whose code is in a table, uint32 (n,), ascending.

    Args:
        code: uint16 (events,).
        table: bool (32768,).
        room: How many they are.
    """
    assert len(table) == CODES
    out = np.empty(room, np.uint32)
    found = function("satview_rows_where")(
        POINTER(code.ctypes.data), I64(len(code)), POINTER(table.ctypes.data), POINTER(out.ctypes.data), I64(room)
    )
    assert found == room
    return out


def last_before(
    code: NDArray[np.uint16], cpu: NDArray[np.uint8], table: NDArray[np.bool_], rows: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """Return for each of some events the last one before it on its CPU whose code is in a table.

    Args:
        code: uint16 (n,).
        cpu: uint8 (n,).
        table: bool (32768,).
        rows: uint32 (k,), ascending.

    Returns:
        uint32 (k,), 2^32 - 1 for none.
    """
    assert len(code) == len(cpu)
    assert len(table) == CODES
    rows = np.ascontiguousarray(rows)
    out = np.empty(len(rows), np.uint32)
    failed = function("satview_last_before")(
        POINTER(code.ctypes.data), POINTER(cpu.ctypes.data), I64(len(code)), POINTER(table.ctypes.data),
        POINTER(rows.ctypes.data), I64(len(rows)), POINTER(out.ctypes.data),
    )  # fmt: skip
    assert not failed
    return out
