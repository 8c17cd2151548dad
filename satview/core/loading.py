"""The compiled passes of loading: slots to events, times, owners.

`passes.c` says what each does and which numpy code is its twin. Arrays must be contiguous and of the types named here;
sizes are taken from them.
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


class _Chunk(ctypes.Structure):
    """`satview_chunk` of passes.c."""

    _fields_ = [
        *((name, POINTER if name == "slots" else I64)
          for name in ("slots", "slot_count", "is_last", "first_slot", "first_row", "buffer_code")),
        ("traits", POINTER), ("capacity", I64),
        *((name, POINTER) for name in (
            "at", "size", "stamp", "code", "cpu", "opened", "run_at", "run_size", "run_before", "run_closes", "zero",
            "subject", "key", "state_row", "rare", "unknown", "counts")),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Grouped:
    """What a chunk of slots is made of; columns are valid until the next call.

    Attributes:
        length: Slots that are done: up to where a later event begins.
        at: uint32 (n,), first slot of each event within the chunk.
        size: uint32 (n,), its adjacent slots.
        stamp: uint32 (n,).
        longest: Most slots of an event.
        opened: uint32, events whose end does not follow.
        run_at, run_size: uint32, first slot and slots of each run of tails that does not follow its event.
        run_before: int64, the last event before each run, -1 for none.
        run_closes: bool, its last slot is the end of an event.
        zero: uint32, slots of zeros.
        subject: uint32, events that belong to a thread by their payload.
        key: uint64, that thread: pid and tid as two words in payload order.
        state_row: uint32, rows in the file of events that are states.
        rare, unknown: uint32, events with these traits.
    """

    length: int
    at: NDArray[np.uint32]
    size: NDArray[np.uint32]
    stamp: NDArray[np.uint32]
    longest: int
    opened: NDArray[np.uint32]
    run_at: NDArray[np.uint32]
    run_size: NDArray[np.uint32]
    run_before: NDArray[np.int64]
    run_closes: NDArray[np.bool_]
    zero: NDArray[np.uint32]
    subject: NDArray[np.uint32]
    key: NDArray[np.uint64]
    state_row: NDArray[np.uint32]
    rare: NDArray[np.uint32]
    unknown: NDArray[np.uint32]


class Grouper:
    """Groups slots into events, chunk after chunk, in arrays that it keeps.

    Args:
        traits: uint8 (32768,), of every code: 1 belongs to a thread by its payload, 2 a state, 4 rare, 8 in no table.
        buffer_code: Code of CONTROL BUFFER.
        capacity: Slots of a chunk at most.
    """

    def __init__(self, traits: NDArray[np.uint8], buffer_code: int, capacity: int) -> None:
        self._call = function("satview_group")
        self._traits, self._capacity = traits, capacity
        types = {"run_before": np.int64, "run_closes": np.uint8, "key": np.uint64}
        names = ("at", "size", "stamp", "opened", "run_at", "run_size", "run_before", "run_closes", "zero", "subject",
                 "key", "state_row", "rare", "unknown")  # fmt: skip
        # Pages are real once written, so that room for what hardly ever comes costs nothing.
        self._columns = {name: np.empty(capacity, types.get(name, np.uint32)) for name in names}
        self._counts = np.zeros(_COUNTS, np.int64)
        self._chunk = _Chunk(buffer_code=buffer_code, traits=traits.ctypes.data, capacity=capacity,
                             counts=self._counts.ctypes.data,
                             **{name: column.ctypes.data for name, column in self._columns.items()})  # fmt: skip

    def group(
        self, slots: NDArray[np.uint32], first_row: int, code: NDArray[np.uint16], cpu: NDArray[np.uint8], *,
        is_last: bool,
    ) -> Grouped:  # fmt: skip
        """Return what some slots are made of.

        Args:
            slots: uint32 (n, 4), at most `capacity`.
            first_row: Number of the first event in the file.
            code: (n,) or longer, receives the code of each event.
            cpu: The same, its CPU.
            is_last: Nothing follows: do not stop where the last event begins.

        Raises:
            ValueError: There are more slots than `capacity`.
        """
        count = len(slots)
        assert slots.flags.c_contiguous
        assert count <= min(self._capacity, len(code), len(cpu))
        chunk = self._chunk
        chunk.slots, chunk.slot_count, chunk.is_last = slots.ctypes.data, count, is_last
        chunk.first_row, chunk.code, chunk.cpu = first_row, code.ctypes.data, cpu.ctypes.data
        if self._call(ctypes.byref(chunk)):
            raise ValueError("a chunk of more slots than there is room for")
        length, events, opened, runs, zeros, subjects, states, rare, unknown, longest = self._counts.tolist()
        columns: dict[str, NDArray[Any]] = self._columns
        return Grouped(
            length, columns["at"][:events], columns["size"][:events], columns["stamp"][:events], longest,
            columns["opened"][:opened], columns["run_at"][:runs], columns["run_size"][:runs],
            columns["run_before"][:runs], columns["run_closes"][:runs].view(np.bool_), columns["zero"][:zeros],
            columns["subject"][:subjects], columns["key"][:subjects], columns["state_row"][:states],
            columns["rare"][:rare], columns["unknown"][:unknown],
        )  # fmt: skip


def numbers(
    requested: NDArray[np.uint64], keys: NDArray[np.uint64], rows: NDArray[np.uint32], bits: int, multiplier: int
) -> NDArray[np.uint32] | None:
    """Return the number of every thread, None if one of them is not in the table.

    Args:
        requested: uint64 (n,), pid and tid.
        keys: uint64 (2^bits,), of the table.
        rows: uint32 (2^bits,), 0 = free.
        bits: Of a position in the table.
        multiplier: uint64.
    """
    call = function("satview_numbers")
    assert len(keys) == len(rows) == 1 << bits
    out = np.empty(len(requested), np.uint32)
    missing = call(address(requested), I64(len(requested)), address(keys),
                   address(rows), I64(bits), ctypes.c_uint64(multiplier),
                   address(out))  # fmt: skip
    return None if missing else out


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
    cpu: NDArray[np.uint8], subject: NDArray[np.uint32], thread: NDArray[np.uint32], runs: NDArray[np.bool_],
    discontinuities: NDArray[np.int64], now: NDArray[np.uint32], out: NDArray[np.unsignedinteger],
) -> None:  # fmt: skip
    """Write the thread that each event belongs to.

    Args:
        cpu: uint8 (n,).
        subject: uint32 (k,), events that belong to a thread by their payload, ascending.
        thread: uint32 (k,), that thread.
        runs: bool (k,), it begins to run there.
        discontinuities: int64 (2, m), events after which no thread is known to run, ascending; their CPU, -1 = any.
        now: uint32 (64,), who runs per CPU; carried on.
        out: uint16 or uint32 (n,).
    """
    assert len(now) == CPUS
    assert len(out) == len(cpu)
    assert len(subject) == len(thread) == len(runs)
    narrow = out.dtype == np.uint16
    discontinuities = np.ascontiguousarray(discontinuities, np.int64)
    function("satview_owners")(
        address(cpu), I64(len(cpu)), address(subject), address(thread),
        address(runs), I64(len(subject)), POINTER(discontinuities[0].ctypes.data),
        POINTER(discontinuities[1].ctypes.data), I64(discontinuities.shape[1]), address(now),
        address(out if narrow else None), address(None if narrow else out),
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
        The last time placed, and int64 (m, 4): the log that passes.c describes.
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
