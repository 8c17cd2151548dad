"""Calls of the compiled passes, with arrays for pointers. `passes.c` says what each does and which code is its twin.

All arrays must be contiguous and of the types named here; sizes are taken from them.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.core.library import library

LOG_SEED: Final = 0
LOG_TIME: Final = 1
LOG_CROSSING: Final = 2
IS_CALL: Final = 1  # traits of a code for `calls`
IS_ENTRY: Final = 2
IS_END: Final = 4
IS_TURN: Final = 8
IS_RUNNING: Final = 16
_LOG_WIDTH: Final = 4
_CPUS: Final = 64
_CODES: Final = 1 << 15
_CALLS: Final = 128
_BYTES: Final = 256
_COUNTS: Final = 10
_I64: Final = ctypes.c_int64
_POINTER: Final = ctypes.c_void_p


class _Chunk(ctypes.Structure):
    """`satview_chunk` of passes.c."""

    _fields_ = [
        *((name, _POINTER if name == "slots" else _I64)
          for name in ("slots", "slot_count", "is_last", "first_slot", "first_row", "buffer_code")),
        ("traits", _POINTER), ("capacity", _I64),
        *((name, _POINTER) for name in (
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
        found = library()
        assert found is not None, "the core is not there: ask is_available() first"
        self._call = found.satview_group
        self._call.restype = _I64
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


def is_available() -> bool:
    """Tell whether the compiled passes can be called."""
    return library() is not None


def numbers(
    wanted: NDArray[np.uint64], keys: NDArray[np.uint64], rows: NDArray[np.uint32], bits: int, multiplier: int
) -> NDArray[np.uint32] | None:
    """Return the number of every thread, None if one of them is not in the table.

    Args:
        wanted: uint64 (n,), pid and tid.
        keys: uint64 (2^bits,), of the table.
        rows: uint32 (2^bits,), 0 = free.
        bits: Of a place in the table.
        multiplier: uint64.
    """
    call = _function("satview_numbers")
    assert len(keys) == len(rows) == 1 << bits
    out = np.empty(len(wanted), np.uint32)
    missing = call(_POINTER(wanted.ctypes.data), _I64(len(wanted)), _POINTER(keys.ctypes.data),
                   _POINTER(rows.ctypes.data), _I64(bits), ctypes.c_uint64(multiplier),
                   _POINTER(out.ctypes.data))  # fmt: skip
    return None if missing else out


def word_sum(words: NDArray[np.uint64], first: int) -> int:
    """Return the sum of words, each times an odd number that tells its place, modulo 2^64.

    Args:
        words: uint64 (n,).
        first: Place of the first one.
    """
    assert words.flags.c_contiguous
    call = _function("satview_word_sum")
    call.restype = ctypes.c_uint64
    return int(call(_POINTER(words.ctypes.data), _I64(len(words)), ctypes.c_uint64(first)))


def owners(
    cpu: NDArray[np.uint8], subject: NDArray[np.uint32], thread: NDArray[np.uint32], runs: NDArray[np.bool_],
    jumps: NDArray[np.int64], now: NDArray[np.uint32], out: NDArray[np.unsignedinteger],
) -> None:  # fmt: skip
    """Write the thread that each event belongs to.

    Args:
        cpu: uint8 (n,).
        subject: uint32 (k,), events that belong to a thread by their payload, ascending.
        thread: uint32 (k,), that thread.
        runs: bool (k,), it begins to run there.
        jumps: int64 (2, m), events from which on nobody is known to run, ascending, and on which CPU, -1 = any.
        now: uint32 (64,), who runs per CPU; carried on.
        out: uint16 or uint32 (n,).
    """
    assert len(now) == _CPUS
    assert len(out) == len(cpu)
    assert len(subject) == len(thread) == len(runs)
    narrow = out.dtype == np.uint16
    jumps = np.ascontiguousarray(jumps, np.int64)
    _function("satview_owners")(
        _POINTER(cpu.ctypes.data), _I64(len(cpu)), _POINTER(subject.ctypes.data), _POINTER(thread.ctypes.data),
        _POINTER(runs.ctypes.data), _I64(len(subject)), _POINTER(jumps[0].ctypes.data),
        _POINTER(jumps[1].ctypes.data), _I64(jumps.shape[1]), _POINTER(now.ctypes.data),
        _POINTER(out.ctypes.data if narrow else None), _POINTER(None if narrow else out.ctypes.data),
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
    assert len(reference) == _CPUS
    assert len(stamp) == len(cpu) == len(out)
    assert len(time_row) == len(time_value)
    room = 2 * len(time_row) + 4 * _CPUS
    log, carried = np.empty((room, _LOG_WIDTH), np.int64), np.array([last], np.int64)
    time_row, shared = np.ascontiguousarray(time_row, np.int64), np.ascontiguousarray(shared, np.int64)
    entries = _function("satview_clock")(
        _POINTER(stamp.ctypes.data), _POINTER(cpu.ctypes.data), _I64(len(stamp)), _POINTER(time_row.ctypes.data),
        _POINTER(time_value.ctypes.data), _I64(len(time_row)), _POINTER(shared.ctypes.data), _I64(len(shared)),
        _POINTER(reference.ctypes.data), _POINTER(carried.ctypes.data), _POINTER(out.ctypes.data),
        _POINTER(log.ctypes.data), _I64(room),
    )  # fmt: skip
    assert entries >= 0
    return int(carried[0]), log[:entries]


class _Cells(ctypes.Structure):
    """`satview_cells` of passes.c."""

    _fields_ = [
        *((name, _POINTER) for name in ("time", "code", "cpu", "narrow", "wide")), ("count", _I64), ("origin", _I64),
        ("marks", _POINTER), ("int_class", _I64), ("class_shift", _I64), ("threads", _I64),
        ("by_thread", _POINTER * 3), ("by_cpu", _POINTER * 2), ("by_interrupt", _POINTER), ("places", _I64),
        ("offset", _POINTER), ("shift", _POINTER), ("seen", _POINTER),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class CellTables:
    """Which lane events lie on, by its place, -1 for none; None where there is no such lane.

    Attributes:
        threads: int32 (threads,), three of them: lanes of threads, of processes, of damage.
        cpus: int32 (256,), two of them: lanes of CPUs, of damage.
        interrupts: int32 (256,), by CPU.
    """

    threads: tuple[NDArray[np.int32] | None, NDArray[np.int32] | None, NDArray[np.int32] | None]
    cpus: tuple[NDArray[np.int32] | None, NDArray[np.int32] | None]
    interrupts: NDArray[np.int32] | None


def event_cells(
    time: NDArray[np.int64], code: NDArray[np.uint16], cpu: NDArray[np.uint8], thread: NDArray[np.unsignedinteger],
    origin: int, marks: NDArray[np.bool_], int_class: int, class_shift: int, tables: CellTables,
    offset: NDArray[np.int64], shift: NDArray[np.int64],
) -> NDArray[np.bool_]:  # fmt: skip
    """Return which cells of which lanes hold a mark, bool (cells of all lanes,).

    Args:
        time: int64 (n,), of the events, ascending.
        code: uint16 (n,).
        cpu: uint8 (n,).
        thread: uint16 or uint32 (n,).
        origin: Where the cells begin, cycles.
        marks: bool (32768,), which codes are marks.
        int_class: Internal class of interrupts.
        class_shift: Where it is in a code.
        tables: The lanes.
        offset: int64 (lanes + 1,), where the cells of each lane begin, and their number.
        shift: int64 (lanes,), cells of a lane are 2^shift cycles.
    """
    threads = next((len(table) for table in tables.threads if table is not None), 0)
    assert len(time) == len(code) == len(cpu) == len(thread)
    assert len(marks) == 1 << 15
    assert len(offset) == len(shift) + 1
    assert all(len(table) == threads for table in tables.threads if table is not None)
    assert all(len(table) == _BYTES for table in (*tables.cpus, tables.interrupts) if table is not None)
    seen = np.zeros(int(offset[-1]), np.uint8)
    narrow = thread.dtype == np.uint16
    columns = [np.ascontiguousarray(column) for column in (time, code, cpu, thread, marks, offset, shift)]
    time_at, code_at, cpu_at, thread_at, marks_at, offset_at, shift_at = (column.ctypes.data for column in columns)

    def at(table: NDArray[np.int32] | None) -> int | None:
        return None if table is None else table.ctypes.data

    cells = _Cells(
        time_at, code_at, cpu_at, thread_at if narrow else None, None if narrow else thread_at, len(time), origin,
        marks_at, int_class, class_shift, threads, (_POINTER * 3)(*map(at, tables.threads)),
        (_POINTER * 2)(*map(at, tables.cpus)), at(tables.interrupts), len(shift), offset_at, shift_at,
        seen.ctypes.data,
    )  # fmt: skip
    _function("satview_event_cells")(ctypes.byref(cells))
    return seen.view(np.bool_)


def raster(
    start: NDArray[np.int64], value: NDArray[np.uint8], end: int, edges: NDArray[np.int64], busy: NDArray[np.uint8],
    out: NDArray[np.uint8],
) -> None:  # fmt: skip
    """Draw one lane: write the value that covers most of each pixel, with the flag of those in which anything ran.

    Args:
        start: int64 (n,), when intervals begin, ascending; each ends where the next begins.
        value: uint8 (n,).
        end: Where the last one ends, cycles.
        edges: int64 (width + 1,), where pixels begin, strictly ascending.
        busy: uint8 (64,), which values are of something that runs.
        out: uint8 (width,), zeros.
    """
    assert len(start) == len(value)
    assert len(edges) == len(out) + 1
    assert len(busy) >= _CPUS
    assert start.flags.c_contiguous
    assert out.flags.c_contiguous
    _function("satview_raster")(
        _POINTER(start.ctypes.data), _POINTER(value.ctypes.data), _I64(len(start)), _I64(end),
        _POINTER(edges.ctypes.data), _I64(len(out)), _POINTER(busy.ctypes.data), _POINTER(out.ctypes.data),
    )  # fmt: skip


def levels(
    start: NDArray[np.int64], value: NDArray[np.uint8], end: int, origin: int, shift: int, kinds: LevelKinds,
    seen: NDArray[np.bool_], depth: int, *, halves_last: bool,
) -> tuple[list[NDArray[np.uint8]], NDArray[np.int64], NDArray[np.bool_]]:  # fmt: skip
    """Return coarse copies of a block of cells of one lane, and the sums and flags of the coarsest.

    Args:
        start: int64 (n,), when the intervals that reach into the block begin, ascending.
        value: uint8 (n,).
        end: Where the last one ends, cycles.
        origin: Where the block begins, cycles.
        shift: Cells are 2^shift cycles.
        kinds: The values of the lane.
        seen: bool (cells,), the lane has an event there; not changed.
        depth: How many levels.
        halves_last: Give sums and flags of one level more.

    Returns:
        uint8 arrays, the finest first; int64 (kinds, cells of the coarsest); bool (the same cells).
    """
    cells, sizes = len(seen), [len(seen)]
    while len(sizes) < depth + halves_last:
        sizes.append((sizes[-1] + 1) // 2)
    cover, flags = np.empty((cells, len(kinds.value_of)), np.int64), seen.astype(np.uint8)
    out = np.empty(sum(sizes[:depth]), np.uint8)
    written = _function("satview_levels")(
        _POINTER(start.ctypes.data), _POINTER(value.ctypes.data), _I64(len(start)), _I64(end), _I64(origin),
        _I64(shift), _I64(cells), _POINTER(kinds.kind_of.ctypes.data), _POINTER(kinds.value_of.ctypes.data),
        _POINTER(kinds.busy.ctypes.data), _I64(len(kinds.value_of)), _POINTER(cover.ctypes.data),
        _POINTER(flags.ctypes.data), _I64(depth), _I64(halves_last), _POINTER(out.ctypes.data), _I64(len(out)),
    )  # fmt: skip
    assert written == len(out)
    last = sizes[-1]
    return np.split(out, np.cumsum(sizes[: depth - 1])), cover.ravel()[: last * len(kinds.value_of)].reshape(
        last, -1).T, flags[:last].view(np.bool_)  # fmt: skip


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
        gap: Slots nobody asked for that cost no more to read than another call.
        most_slots: Slots of one read at most.
    """
    out, scratch = np.empty(len(at), np.uint64), np.empty((most_slots, 2), np.uint64)
    at = np.ascontiguousarray(at, np.int64)
    done = _function("satview_take_halves")(
        _I64(file), _I64(offset), _POINTER(at.ctypes.data), _I64(len(at)), _I64(slots), _I64(half),
        _I64(gap), _POINTER(scratch.ctypes.data), _I64(most_slots), _POINTER(out.ctypes.data),
    )  # fmt: skip
    return out if done == len(at) else None


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
    assert (len(traits), len(stays)) == (_CODES, _CALLS)
    narrow = thread.dtype == np.uint16
    thread = np.ascontiguousarray(thread if narrow else thread.astype(np.uint32, copy=False))
    room = int(np.count_nonzero(traits[np.asarray(code)] & IS_END))
    entry, last_of = np.empty(len(code), np.uint32), np.empty(thread_count, np.uint32)
    first, last, counts = np.empty(room, np.uint32), np.empty(room, np.uint32), np.zeros(2, np.int64)
    failed = _function("satview_calls")(
        _POINTER(code.ctypes.data), _POINTER(cpu.ctypes.data), _POINTER(thread.ctypes.data if narrow else None),
        _POINTER(None if narrow else thread.ctypes.data), _I64(len(code)), _POINTER(traits.ctypes.data),
        _POINTER(stays.ctypes.data), _POINTER(last_of.ctypes.data), _I64(thread_count), _POINTER(entry.ctypes.data),
        _POINTER(first.ctypes.data), _POINTER(last.ctypes.data), _I64(room), _POINTER(counts.ctypes.data),
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
    assert len(table) == _CODES
    out = np.empty(room, np.uint32)
    found = _function("satview_rows_where")(
        _POINTER(code.ctypes.data), _I64(len(code)), _POINTER(table.ctypes.data), _POINTER(out.ctypes.data), _I64(room)
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
    assert len(table) == _CODES
    rows = np.ascontiguousarray(rows)
    out = np.empty(len(rows), np.uint32)
    failed = _function("satview_last_before")(
        _POINTER(code.ctypes.data), _POINTER(cpu.ctypes.data), _I64(len(code)), _POINTER(table.ctypes.data),
        _POINTER(rows.ctypes.data), _I64(len(rows)), _POINTER(out.ctypes.data),
    )  # fmt: skip
    assert not failed
    return out


def share_index(
    start: NDArray[np.int64],
    value: NDArray[np.uint8],
    every: int,
    kind_of: NDArray[np.int64],
    weight: NDArray[np.int64],
    kinds: int,
) -> NDArray[np.int64]:
    """Return how long a lane has each kind of value up to every `every`-th interval, int64 (marks, kinds).

    Args:
        start: int64 (n,), when intervals begin, ascending.
        value: uint8 (n,).
        every: How many intervals from one mark to the next.
        kind_of: int64 (64,), kind of each value.
        weight: int64 (64,), what a cycle of each value counts.
        kinds: How many kinds there are.
    """
    assert len(start) == len(value)
    assert len(kind_of) == len(weight) == _CPUS
    marks = -(-len(start) // every)
    out = np.empty((marks, kinds), np.int64)
    written = _function("satview_share_index")(
        _POINTER(start.ctypes.data), _POINTER(value.ctypes.data), _I64(len(start)), _I64(every),
        _POINTER(kind_of.ctypes.data), _POINTER(weight.ctypes.data), _I64(kinds), _POINTER(out.ctypes.data),
        _I64(out.size),
    )  # fmt: skip
    assert written == out.size
    return out


def shares(
    start: NDArray[np.int64],
    value: NDArray[np.uint8],
    end: int,
    every: int,
    kind_of: NDArray[np.int64],
    weight: NDArray[np.int64],
    index: NDArray[np.int64],
    begins: NDArray[np.int64],
    edges: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return how long a lane has each kind of value in each bin, int64 (bins, kinds), cycles times weight.

    Args:
        start: int64 (n,), when intervals begin, ascending.
        value: uint8 (n,).
        end: Where the last one ends, cycles.
        every: Of the index.
        kind_of: int64 (64,), kind of each value.
        weight: int64 (64,), what a cycle of each value counts.
        index: As `share_index` returns it.
        begins: int64 (marks,), `start` of every `every`-th interval.
        edges: int64 (bins + 1,), cycles, ascending.
    """
    assert len(start) == len(value)
    assert len(kind_of) == len(weight) == _CPUS
    assert len(begins) == len(index)
    bins, kinds = max(0, len(edges) - 1), index.shape[1]
    out = np.empty((bins, kinds), np.int64)
    failed = _function("satview_shares")(
        _POINTER(start.ctypes.data), _POINTER(value.ctypes.data), _I64(len(start)), _I64(end), _I64(every),
        _POINTER(kind_of.ctypes.data), _POINTER(weight.ctypes.data), _I64(kinds), _POINTER(index.ctypes.data),
        _POINTER(begins.ctypes.data), _I64(len(index)), _POINTER(edges.ctypes.data), _I64(bins),
        _POINTER(out.ctypes.data),
    )  # fmt: skip
    assert not failed
    return out


def draw_stack(
    tops: NDArray[np.float64],
    is_busy: NDArray[np.bool_],
    columns: NDArray[np.int64],
    colours: NDArray[np.uint32],
    background: int,
    rows: tuple[int, int],
    pixels: NDArray[np.uint32],
) -> None:
    """Draw one lane as a stack of shares.

    Args:
        tops: float64 (k, bins), where each kind ends, 0 = bottom, 1 = top.
        is_busy: bool (k,), of these something must be seen even where it is less than a pixel high.
        columns: int64 (bins + 1,), ascending.
        colours: uint32 (k,).
        background: Of what no kind covers.
        rows: First row of the bar and the one behind its last; may lie outside of the picture.
        pixels: uint32 (height, width), changed.
    """
    kinds, bins = tops.shape
    assert len(is_busy) == len(colours) == kinds
    assert len(columns) == bins + 1
    assert pixels.flags.c_contiguous
    tops, columns = np.ascontiguousarray(tops), np.ascontiguousarray(columns, np.int64)
    failed = _function("satview_draw_stack")(
        _POINTER(tops.ctypes.data), _I64(kinds), _I64(bins), _POINTER(is_busy.ctypes.data),
        _POINTER(columns.ctypes.data), _POINTER(colours.ctypes.data), ctypes.c_uint32(background), _I64(rows[0]),
        _I64(rows[1]), _POINTER(pixels.ctypes.data), _I64(pixels.shape[1]), _I64(pixels.shape[0]),
    )  # fmt: skip
    assert not failed


@dataclass(frozen=True, slots=True)
class LevelKinds:
    """The values of one lane.

    Attributes:
        value_of: uint8 (k,), ascending.
        kind_of: int64 (64,), where each value is among them.
        busy: uint8 (k,), which of them are of something that runs.
    """

    value_of: NDArray[np.uint8]
    kind_of: NDArray[np.int64]
    busy: NDArray[np.uint8]


def _function(name: str) -> Any:
    found = library()
    assert found is not None, "the core is not there: ask is_available() first"
    call = getattr(found, name)
    call.restype = _I64
    return call
