"""The compiled passes of loading: slots to events, times, owners.

`loading.c` and `clock.c` say what each does and which numpy code is its twin. Arrays must be contiguous and of the
types named here; sizes are taken from them.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.core.library import CPUS, I64, POINTER, address, function

LOG_SEED: Final = 0
LOG_TIME: Final = 1
LOG_CROSSING: Final = 2
_LOG_WIDTH: Final = 4
_COUNTS: Final = 10
IS_SUBJECT: Final = 1  # traits of a code: belongs to a thread by its payload
IS_STATE: Final = 2
IS_RARE: Final = 4
IS_UNKNOWN: Final = 8
IS_RUNNING: Final = 16  # that thread runs from then on


class _Chunk(ctypes.Structure):
    """`satview_chunk` of loading.c."""

    _fields_ = [
        *((name, POINTER if name == "slots" else I64)
          for name in ("slots", "slot_count", "is_last", "first_slot", "first_row", "buffer_code")),
        ("traits", POINTER), ("capacity", I64),
        *((name, POINTER) for name in (
            "at", "size", "stamp", "trait", "code", "cpu", "slot_narrow", "slot_wide", "size_narrow",
            "size_wide", "opened", "run_at", "run_size", "run_before", "run_closes", "zero", "key", "state_row", "rare",
            "unknown", "counts")),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Grouped:
    """What a chunk of slots is made of; columns are valid until the next call.

    Attributes:
        length: Slots that are done: up to where a later event begins.
        at: uint32 (n,), first slot of each event within the chunk.
        size: uint32 (n,), its adjacent slots.
        stamp: uint32 (n,).
        trait: uint8 (n,), traits of its code.
        longest: Most slots of an event; beyond 65,535 a narrow column does not hold them.
        opened: uint32, events whose end does not follow.
        run_at, run_size: uint32, first slot and slots of each run of tails that does not follow its event.
        run_before: int64, the last event before each run, -1 for none.
        run_closes: bool, its last slot is the end of an event.
        zero: uint32, slots of zeros.
        key: uint64, the threads of events that have `IS_SUBJECT`: pid and tid as two words in payload order.
        state_row: uint32, rows in the file of events that are states.
        rare, unknown: uint32, events with these traits.
    """

    length: int
    at: NDArray[np.uint32]
    size: NDArray[np.uint32]
    stamp: NDArray[np.uint32]
    trait: NDArray[np.uint8]
    longest: int
    opened: NDArray[np.uint32]
    run_at: NDArray[np.uint32]
    run_size: NDArray[np.uint32]
    run_before: NDArray[np.int64]
    run_closes: NDArray[np.bool_]
    zero: NDArray[np.uint32]
    key: NDArray[np.uint64]
    state_row: NDArray[np.uint32]
    rare: NDArray[np.uint32]
    unknown: NDArray[np.uint32]


class Grouper:
    """Groups slots into events, chunk after chunk, in arrays that it keeps.

    Args:
        traits: uint8 (32768,), of every code the sum of `IS_SUBJECT` and so on.
        buffer_code: Code of CONTROL BUFFER.
        capacity: Slots of a chunk at most.
    """

    def __init__(self, traits: NDArray[np.uint8], buffer_code: int, capacity: int) -> None:
        self._call = function("satview_group")
        self._traits, self._capacity = traits, capacity
        types = {"run_before": np.int64, "run_closes": np.uint8, "key": np.uint64, "trait": np.uint8}
        names = ("at", "size", "stamp", "trait", "opened", "run_at", "run_size", "run_before", "run_closes",
                 "zero", "key", "state_row", "rare", "unknown")  # fmt: skip
        # Pages are real once written, so that room for what hardly ever comes costs nothing.
        self._columns = {name: np.empty(capacity, types.get(name, np.uint32)) for name in names}
        self._counts = np.zeros(_COUNTS, np.int64)
        self._chunk = _Chunk(buffer_code=buffer_code, traits=traits.ctypes.data, capacity=capacity,
                             counts=self._counts.ctypes.data,
                             **{name: column.ctypes.data for name, column in self._columns.items()})  # fmt: skip

    def group(
        self, slots: NDArray[np.uint32], first_slot: int, first_row: int, code: NDArray[np.uint16],
        cpu: NDArray[np.uint8], slot: NDArray[np.unsignedinteger], size: NDArray[np.unsignedinteger], *, is_last: bool,
    ) -> Grouped:  # fmt: skip
        """Return what some slots are made of.

        Args:
            slots: uint32 (n, 4), at most `capacity`.
            first_slot: Number of the first one in the file.
            first_row: Number of the first event in the file.
            code: uint16 (n,) or longer, receives the code of each event.
            cpu: uint8, the same, its CPU.
            slot: uint32 or uint64, the same, its first slot in the file.
            size: uint16 or uint32, the same, its adjacent slots.
            is_last: Nothing follows: do not stop where the last event begins.

        Raises:
            ValueError: There are more slots than `capacity`.
        """
        count = len(slots)
        assert slots.flags.c_contiguous
        assert count <= min(self._capacity, len(code), len(cpu), len(slot), len(size))
        chunk = self._chunk
        chunk.slots, chunk.slot_count, chunk.is_last = address(slots), count, is_last
        chunk.first_slot, chunk.first_row, chunk.code, chunk.cpu = first_slot, first_row, address(code), address(cpu)
        chunk.slot_narrow, chunk.slot_wide = _by_width(slot, np.uint32)
        chunk.size_narrow, chunk.size_wide = _by_width(size, np.uint16)
        if self._call(ctypes.byref(chunk)):
            raise ValueError("a chunk of more slots than there is room for")
        length, events, opened, runs, zeros, subjects, states, rare, unknown, longest = self._counts.tolist()
        columns: dict[str, NDArray[Any]] = self._columns
        return Grouped(
            length, columns["at"][:events], columns["size"][:events], columns["stamp"][:events],
            columns["trait"][:events], longest, columns["opened"][:opened], columns["run_at"][:runs],
            columns["run_size"][:runs], columns["run_before"][:runs], columns["run_closes"][:runs].view(np.bool_),
            columns["zero"][:zeros], columns["key"][:subjects], columns["state_row"][:states], columns["rare"][:rare],
            columns["unknown"][:unknown],
        )  # fmt: skip


def _by_width(column: NDArray[Any], narrow: type[np.generic]) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
    """Return where a column is: the second is null if it is of the narrow type, else the first."""
    is_narrow = column.dtype == narrow
    return address(column if is_narrow else None), address(None if is_narrow else column)


def numbers(
    requested: NDArray[np.uint64], done: int, keys: NDArray[np.uint64], rows: NDArray[np.uint32], bits: int,
    multiplier: int, known: NDArray[np.uint64], used: int, limit: int, out: NDArray[np.uint32],
) -> tuple[int, int]:  # fmt: skip
    """Write the number of every thread, giving new ones to those that are not in the table.

    Args:
        requested: uint64 (n,), pid and tid.
        done: How many of them are done.
        keys: uint64 (2^bits,), of the table.
        rows: uint32 (2^bits,), 0 = free.
        bits: Of a position in the table.
        multiplier: uint64.
        known: uint64 (m,), the keys by number; receives the new ones.
        used: Numbers that are given, counting 0.
        limit: How many may be, at most m, and less than the table has positions.
        out: uint32 (n,) or longer.

    Returns:
        How many are done, and the numbers that are given. Fewer than all are done where there is no room for a new
        number; -1 - that where a key is far from its position.
    """
    assert len(keys) == len(rows) == 1 << bits
    assert limit <= len(known)
    assert limit < len(keys)
    assert requested.flags.c_contiguous
    assert len(out) >= len(requested)
    given = np.array([used], np.int64)
    done = function("satview_numbers")(
        address(requested), I64(done), I64(len(requested)), address(keys), address(rows), I64(bits),
        ctypes.c_uint64(multiplier), address(known), I64(limit), address(given), address(out),
    )  # fmt: skip
    return done, int(given[0])


def rows_by_thread(
    rows: NDArray[np.uint32], thread: NDArray[np.unsignedinteger], thread_count: int, out: NDArray[np.uint32]
) -> NDArray[np.int64]:
    """Group ascending rows of events by thread; return where those of each thread begin, int64 (threads + 1,).

    Args:
        rows: uint32 (n,).
        thread: uint16 or uint32 (events,).
        thread_count: Threads there are.
        out: uint32 (n,), receives the rows.

    Raises:
        ValueError: There is no such event or thread.
    """
    start, fill = np.empty(thread_count + 1, np.int64), np.empty(thread_count, np.int64)
    assert len(out) == len(rows)
    narrow, wide = _by_width(thread, np.uint16)
    failed = function("satview_rows_by_thread")(
        address(rows), I64(len(rows)), narrow, wide, I64(len(thread)), I64(thread_count), address(start), address(fill),
        address(out),
    )  # fmt: skip
    if failed:
        raise ValueError("a row of an event or thread that is not there")
    return start


def word_sum(words: NDArray[np.uint64], first: int) -> int:
    """Return the sum of words, each times an odd number that shows its position, modulo 2^64.

    Args:
        words: uint64 (n,).
        first: Position of the first one.
    """
    assert words.flags.c_contiguous
    call = function("satview_word_sum")
    call.restype = ctypes.c_uint64
    return int(call(address(words), I64(len(words)), ctypes.c_uint64(first)))


def owners(
    cpu: NDArray[np.uint8], trait: NDArray[np.uint8], thread: NDArray[np.uint32], discontinuities: NDArray[np.int64],
    now: NDArray[np.uint32], out: NDArray[np.unsignedinteger],
) -> None:  # fmt: skip
    """Write the thread that each event belongs to.

    Args:
        cpu: uint8 (n,).
        trait: uint8 (n,), of each event the sum of `IS_SUBJECT` and so on.
        thread: uint32 (k,), the threads of the events that have `IS_SUBJECT`.
        discontinuities: int64 (2, m), events after which no thread is known to run, ascending; their CPU, -1 = any.
        now: uint32 (64,), who runs per CPU; carried on.
        out: uint16 or uint32 (n,).
    """
    assert len(now) == CPUS
    assert len(out) == len(cpu) == len(trait)
    discontinuities = np.ascontiguousarray(discontinuities, np.int64)
    function("satview_owners")(
        address(cpu), address(trait), I64(len(cpu)), address(thread), I64(len(thread)),
        address(discontinuities[0]), address(discontinuities[1]), I64(discontinuities.shape[1]), address(now),
        *_by_width(out, np.uint16),
    )  # fmt: skip


def clock(
    stamp: NDArray[np.uint32], cpu: NDArray[np.uint8], time_row: NDArray[np.int64], time_value: NDArray[np.int64],
    shared: NDArray[np.int64], reference: NDArray[np.int64], last: int, out: NDArray[np.int64],
) -> tuple[int, NDArray[np.int64]]:  # fmt: skip
    """Write the time of each event.

    Args:
        stamp: uint32 (n,).
        cpu: uint8 (n,).
        time_row: int64 (k,), CONTROL TIME events, ascending.
        time_value: int64 (k,), cycles; negative = unusable.
        shared: int64, BUFFER events that take the time of the event behind them, ascending.
        reference: int64 (64,), latest time per CPU, -2^62 = none; carried on.
        last: The last time placed on any CPU.
        out: int64 (n,), receives the times.

    Returns:
        The last time placed, and int64 (m, 4): the log that clock.c describes.
    """
    assert len(reference) == CPUS
    assert len(stamp) == len(cpu) == len(out)
    assert len(time_row) == len(time_value)
    room = 2 * len(time_row) + 4 * CPUS
    log, carried = np.empty((room, _LOG_WIDTH), np.int64), np.array([last], np.int64)
    time_row, shared = np.ascontiguousarray(time_row, np.int64), np.ascontiguousarray(shared, np.int64)
    entries = function("satview_clock")(
        address(stamp), address(cpu), I64(len(stamp)), address(time_row),
        address(time_value), I64(len(time_row)), address(shared), I64(len(shared)),
        address(reference), address(carried), address(out),
        address(log), I64(room),
    )  # fmt: skip
    assert entries >= 0
    return int(carried[0]), log[:entries]


def take_halves(
    file: int, offset: int, at: NDArray[np.int64], slots: int, half: int, gap: int, most_slots: int
) -> NDArray[np.uint64] | None:
    """Return words 0 and 1, or 2 and 3, of some slots of a file as one number each, None if not all can be read.

    Args:
        file: Descriptor.
        offset: Byte offset of slot 0.
        at: int64 (n,), ascending.
        slots: Slots of the file.
        half: 0 or 1.
        gap: Slots nobody requested that cost no more to read than another call.
        most_slots: Slots of one read at most.
    """
    out, scratch = np.empty(len(at), np.uint64), np.empty((most_slots, 2), np.uint64)
    at = np.ascontiguousarray(at, np.int64)
    done = function("satview_take_halves")(
        I64(file), I64(offset), address(at), I64(len(at)), I64(slots), I64(half),
        I64(gap), address(scratch), I64(most_slots), address(out),
    )  # fmt: skip
    return out if done == len(at) else None
