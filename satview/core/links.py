"""Compiled passes that find related events, such as entry and exit of a kernel call, and sort events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.core.library import call

# Compiled passes that find related events, such as entry and exit of a kernel call; see links.c.


IS_CALL: Final = 1  # flags of a code for `calls`
IS_ENTRY: Final = 2
IS_END: Final = 4
IS_SWITCH: Final = 8
IS_RUNNING: Final = 16


@dataclass(frozen=True, slots=True)
class KernelCallTable:
    """The kernel calls of a trace.

    Attributes:
        entry: uint32 (events,), entry of the call that the event's CPU is in just before the event, 2^32 - 1 for none.
        known: Entries and ends of the calls whose thread is known, uint32 (n,) each.
        unknown: Entries and ends of the calls whose thread is unknown, uint32 (m,) each.
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
    room: int,
) -> KernelCallTable:
    """Return the kernel calls of a trace.

    Args:
        code: uint16 (n,).
        cpu: uint8 (n,).
        thread: uint16 or uint32 (n,), rows of the thread table.
        thread_count: Number of rows of the thread table.
        traits: uint8 (32768,), flags of each code: `IS_CALL` and the following constants.
        stays: bool (128,), whether the kernel call with a number never blocks.
        room: Number of events with the flag `IS_END`.
    """
    thread = np.ascontiguousarray(thread)
    entry, last_of = np.empty(len(code), np.uint32), np.empty(thread_count, np.uint32)
    begins, ends, counts = np.empty(room, np.uint32), np.empty(room, np.uint32), np.zeros(2, np.int64)
    call("calls", code, cpu, thread, traits, stays, last_of, entry, begins, ends, counts)
    known, unknown = counts.tolist()
    return KernelCallTable(entry, (begins[:known], ends[:known]), (begins[room - unknown :], ends[room - unknown :]))


def last_before(
    code: NDArray[np.uint16], cpu: NDArray[np.uint8], table: NDArray[np.bool_], rows: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """Return, for each given event, the last event before it on its CPU that has one of some codes.

    Args:
        code: uint16 (n,).
        cpu: uint8 (n,).
        table: bool (32768,), which codes to look for.
        rows: uint32 (k,), rows of the given events, ascending.

    Returns:
        uint32 (k,), 2^32 - 1 for none.
    """
    rows = np.ascontiguousarray(rows)
    out = np.empty(len(rows), np.uint32)
    call("last_before", code, cpu, table, rows, out)
    return out


def last_of(
    cpu: NDArray[np.uint8], candidates: NDArray[np.uint32], rows: NDArray[np.uint32]
) -> NDArray[np.uint32]:  # fmt: skip
    """Return, for each given event, the last candidate before it on its CPU.

    Args:
        cpu: uint8 (events,).
        candidates: uint32 (n,), rows of events, ascending.
        rows: uint32 (k,), rows of the given events, ascending.

    Returns:
        uint32 (k,), 2^32 - 1 for none.
    """
    candidates, rows = np.ascontiguousarray(candidates), np.ascontiguousarray(rows)
    out = np.empty(len(rows), np.uint32)
    call("last_of", cpu, candidates, rows, out)
    return out


def last_of_number(
    candidates: NDArray[np.uint32],
    number: NDArray[np.int64],
    rows: NDArray[np.uint32],
    requested: NDArray[np.integer],
    numbers: int,
) -> NDArray[np.uint32]:
    """Return, for each given event, the last candidate before it that has the same number.

    Args:
        candidates: uint32 (n,), rows of events, ascending.
        number: int64 (n,), numbers of the candidates, such as their threads.
        rows: uint32 (k,), rows of the given events, ascending.
        requested: Numbers of the given events, (k,), of any integer type.
        numbers: Upper bound of all numbers, exclusive.

    Returns:
        uint32 (k,), 2^32 - 1 for none.
    """
    return _of_number("last_of_number", candidates, number, rows, requested, numbers)


def next_of_number(
    candidates: NDArray[np.uint32],
    number: NDArray[np.int64],
    rows: NDArray[np.uint32],
    requested: NDArray[np.integer],
    numbers: int,
) -> NDArray[np.uint32]:
    """Return, for each given event, the first candidate at or after it with the same number; see `last_of_number`.

    Returns:
        uint32 (k,), 2^32 - 1 for none.
    """
    return _of_number("next_of_number", candidates, number, rows, requested, numbers)


def _of_number(
    name: str,
    candidates: NDArray[np.uint32],
    number: NDArray[np.int64],
    rows: NDArray[np.uint32],
    requested: NDArray[np.integer],
    numbers: int,
) -> NDArray[np.uint32]:
    candidates, number, rows = map(np.ascontiguousarray, (candidates, number, rows))
    requested = np.ascontiguousarray(requested, np.int64)
    out, newest = np.empty(len(rows), np.uint32), np.empty(numbers, np.uint32)
    call(name, candidates, number, rows, requested, newest, out)
    return out


def states(
    code: NDArray[np.uint16],
    thread: NDArray[np.unsignedinteger],
    index: NDArray[np.uint32],
    start: NDArray[np.int64],
    value_of_code: NDArray[np.uint8],
    nothing: int,
) -> tuple[NDArray[np.uint8], NDArray[np.uint32]] | None:
    """Return the states and the events that end them; None if `index` contradicts `thread`.

    Args:
        code: uint16 (events,).
        thread: uint16 or uint32 (events,), rows of the thread table.
        index: uint32 (n,), rows of the state events, grouped by thread.
        start: int64 (threads + 1,), position in `index` at which each thread begins.
        value_of_code: uint8 (32768,), state by code.
        nothing: Value in `value_of_code` for events that are not state events.

    Returns:
        State of each event in `index`, uint8 (n,); next state event of the same thread, uint32 (events,), 2^32 - 2 for
        the last event of a thread, 2^32 - 1 for events that are not state events.
    """
    thread = np.ascontiguousarray(thread)
    value, ends, fill = (
        np.empty(len(index), np.uint8),
        np.empty(len(code), np.uint32),
        np.empty(len(start) - 1, np.int64),
    )
    is_other = call("states", code, thread, index, start, value_of_code, nothing, fill, value, ends)
    return None if is_other else (value, ends)


def state_positions(
    index: NDArray[np.uint32], start: NDArray[np.int64], rows: NDArray[np.uint32], thread: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return, for each given event, the position in `index` of a thread's first state event at or after it.

    Args:
        index: uint32 (n,), rows of the state events, grouped by thread.
        start: int64 (threads + 1,), position in `index` at which each thread begins.
        rows: uint32 (k,), rows of the given events, in any order.
        thread: int64 (k,), the thread for each given event, rows of the thread table.

    Returns:
        int64 (k,); the position at which the next thread begins if there is no such event.
    """
    rows, thread = np.ascontiguousarray(rows), np.ascontiguousarray(thread)
    out, fill = np.empty(len(rows), np.int64), np.empty(len(start) - 1, np.int64)
    call("state_positions", index, start, rows, thread, fill, out)
    return out


def first_in_table(
    index: NDArray[np.uint32], value: NDArray[np.uint8], start: NDArray[np.int64], positions: NDArray[np.int64],
    thread: NDArray[np.int64], table: NDArray[np.bool_],
) -> NDArray[np.int64]:  # fmt: skip
    """Return, for each position, the event of the thread's first state from there on that is in a table, int64 (k,).

    -1 = the thread has no such state.

    Args:
        index: uint32 (n,), the state events by thread.
        value: uint8 (n,), their states.
        start: int64 (threads + 1,), position in `index` at which each thread begins.
        positions: int64 (k,), positions in `index`, of states of the thread or right behind its last one.
        thread: int64 (k,), the thread for each position, rows of the thread table.
        table: bool (256,), by state.
    """
    positions, thread = (np.ascontiguousarray(column, np.int64) for column in (positions, thread))
    asked, answered = np.empty((2, len(start) - 1), np.int64)
    out = np.empty(len(positions), np.int64)
    call("first_in_table", index, value, start, positions, thread, table, asked, answered, out)
    return out


def rows_with(code: NDArray[np.uint16], table: NDArray[np.bool_], most: int | None = None) -> NDArray[np.uint32]:
    """Return the rows of the events that have one of some codes, uint32, ascending.

    Args:
        code: uint16 (events,).
        table: bool (32768,), which codes to look for.
        most: Upper bound of the number of rows; None = the number of events.
    """
    out = np.empty((len(code) if most is None else most) + 1, np.uint32)  # unwritten pages take no memory
    return out[: call("rows_with", code, table, out)]


def values_of(code: NDArray[np.uint16], rows: NDArray[np.uint32], table: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the value that a table has for the code of each given event, uint8 (n,).

    Args:
        code: uint16 (events,).
        rows: uint32 (n,), rows of the given events.
        table: uint8 (32768,), value of each code.
    """
    out = np.empty(len(rows), np.uint8)
    call("values_of", code, np.ascontiguousarray(rows), table, out)
    return out


def times_of(time: NDArray[np.int64], rows: NDArray[np.integer], end: int) -> NDArray[np.int64]:
    """Return the times of given events, int64 (n,), cycles.

    Args:
        time: int64 (events,), cycles.
        rows: (n,), rows of events; the row after the last event stands for the end of the trace.
        end: End of the trace, cycles.
    """
    rows = np.ascontiguousarray(rows, None if rows.dtype == np.uint32 else np.int64)
    out = np.empty(len(rows), np.int64)
    call("times_of", time, rows, end, out)
    return out


def numbered(number: NDArray[np.int64]) -> tuple[int, NDArray[np.int64]]:
    """Return the count of distinct numbers, and each number's index in the order of first appearance, int64 (n,).

    Args:
        number: int64 (n,).
    """
    bits = (2 * len(number) + 1).bit_length()
    number, out = np.ascontiguousarray(number), np.empty(len(number), np.int64)
    positions, first_rows = np.full(1 << bits, 0xFFFFFFFF, np.uint32), np.empty(len(number), np.uint32)
    distinct = call("numbered", number, positions, bits, first_rows, out)
    return distinct, out


def previous_same(number: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for each element, the position of the last equal element before it, int64 (n,), -1 for none.

    Args:
        number: int64 (n,).
    """
    bits = (2 * len(number) + 1).bit_length()
    number, out = np.ascontiguousarray(number), np.empty(len(number), np.int64)
    positions = np.full(1 << bits, 0xFFFFFFFF, np.uint32)
    call("previous_same", number, positions, bits, out)
    return out


def positions(number: NDArray[np.integer], requested: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the same as `np.searchsorted(number, requested)`, int64 (k,).

    Args:
        number: uint32 or int64 (n,), ascending.
        requested: Same type, (k,), in any order; faster if neighbours are close to each other.
    """
    number, requested = np.ascontiguousarray(number), np.ascontiguousarray(requested)
    out = np.empty(len(requested), np.int64)
    call("positions" if number.dtype == np.uint32 else "key_positions", number, requested, out)
    return out


def values_in_ranges(
    number: NDArray[np.uint32], start: NDArray[np.uint32], values: NDArray[np.uint64],
    requested: NDArray[np.uint32], position: int,
) -> NDArray[np.uint64] | None:  # fmt: skip
    """Return the value at a position in the range of each requested number, uint64 (k,); None if a number is missing.

    Args:
        number: uint32 (n,), ascending.
        start: uint32 (n + 1,), index in `values` at which the range of each number begins.
        values: uint64 (m + 1,), all ranges, followed by the value to return if a range is too short.
        requested: uint32 (k,), the numbers to look up, in any order; fastest if mostly ascending.
        position: Position of the value in each range.
    """
    out = np.empty(len(requested), np.uint64)
    return None if call("values_in_ranges", number, start, values, requested, position, out) else out


def nested(
    code: NDArray[np.uint16], cpu: NDArray[np.uint8], step: NDArray[np.int8], rows: NDArray[np.uint32]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the rows of matching entries and exits of interrupts and handlers, two uint32 (n,).

    Args:
        code: uint16 (events,).
        cpu: uint8 (events,).
        step: int8 (32768,), by code: 1 for interrupt entries, 2 for handler entries, -1 and -2 for their exits, 0 for
            others.
        rows: uint32 (k,), rows of the events to match, ascending.
    """
    below, newest, entries, exits = (np.empty(len(rows), np.uint32) for _ in range(4))
    pairs = call("nested", code, cpu, step, rows, below, newest, entries, exits)
    return entries[:pairs], exits[:pairs]


def calls_of(
    entry: NDArray[np.uint32], thread: NDArray[np.unsignedinteger], rows: NDArray[np.uint32], own: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """Return, for each event at which a thread leaves the CPU, the entry of the thread's kernel call, uint32 (k,).

    Args:
        entry: uint32 (events,), see `KernelCallTable`.
        thread: uint16 or uint32 (events,), rows of the thread table.
        rows: uint32 (k,), rows of the events at which threads leave the CPU.
        own: int64 (k,), the thread for each of these events, rows of the thread table.
    """
    rows, own = np.ascontiguousarray(rows), np.ascontiguousarray(own)
    thread = np.ascontiguousarray(thread)
    out = np.empty(len(rows), np.uint32)
    call("calls_of", entry, thread, rows, own, out)
    return out


# Compiled sorting passes, mostly of events by time; see ordering.c.


_ORDER_BLOCK = 1 << 10  # as in ordering.c
_MOVED_BLOCK = 1 << 14  # elements that are moved at once; with the saved elements, they fit into the CPU cache
_MIN_PARTS = 16  # at most this fraction (1/16) of the range is saved while rows are moved
_MOVED_ROWS = 1 << 17  # rows that are moved in all columns before the next rows; a multiple of `_MOVED_BLOCK`


def stable_order(numbers: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the indices that sort integers, int64 (n,), like a stable `np.argsort`, but two to five times as fast."""
    numbers = np.ascontiguousarray(numbers, np.int64)
    order, spare = np.empty(len(numbers), np.int64), np.empty(len(numbers), np.int64)
    is_spare = call("stable_order", numbers, order, spare)
    return spare if is_spare else order


def disordered(time: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows that a stable sort by time may move, int64 (m,), ascending.

    Args:
        time: int64 (n,).
    """
    least, out = np.empty(len(time) // _ORDER_BLOCK + 1, np.int64), np.empty(len(time), np.int64)
    rows = call("disordered", time, least, out)
    return out[:rows] if 2 * rows > len(out) else out[:rows].copy()


def merged(time: NDArray[np.int64], cpu: NDArray[np.uint8], rows: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return the given rows, stably sorted by time; None if the times of one CPU go backwards.

    Args:
        time: int64 (n,).
        cpu: uint8 (n,).
        rows: int64 (m,), ascending.
    """
    spare, out = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    goes_back = call("merged", time, cpu, rows, spare, out)
    return None if goes_back else out


def move(
    columns: Sequence[NDArray[Any]], first_row: int, rows: NDArray[np.int64], went: NDArray[np.unsignedinteger]
) -> bool:
    """Reorder a range of rows in place; return False, without changes, if a row would move too far.

    Args:
        columns: Columns, (events,) each, with elements of 1, 2, 4 or 8 bytes.
        first_row: First row of the range.
        rows: int64 (n,), the row to move to each position of the range; a permutation of its rows.
        went: uint32 or uint64 (events,), receives the new row of each row in the range.
    """
    count, reach = len(rows), call("went", rows, first_row, went)
    if reach > count // _MIN_PARTS:
        return False
    kept = [np.empty((reach + _MOVED_BLOCK) * column.itemsize, np.uint8) for column in columns]
    data = [(column[first_row:].view(np.uint8), column.itemsize) for column in columns]
    for block_start in range(0, count, _MOVED_ROWS):  # part of `rows` for all columns, while the part is in the cache
        part = rows[block_start : block_start + _MOVED_ROWS]
        for (column, width), room in zip(data, kept, strict=True):
            call("moved", column, width, part, first_row, block_start, reach, _MOVED_BLOCK, room)
    return True


def far_rows(time: NDArray[np.int64], rows: NDArray[np.int64], near: int) -> NDArray[np.int64]:
    """Return the rows whose time is far before or far after the times of both neighbouring events, int64 (m,).

    Args:
        time: int64 (n,), cycles.
        rows: int64 (k,), ascending, neither the first nor the last event.
        near: Maximum distance that does not count as far, cycles.
    """
    out = np.empty(len(rows), np.int64)
    far = call("far_rows", time, rows, near, out)
    return out[:far].copy()
