"""Compiled passes that load traces, whole or as a stream: slots to events, times, threads and texts of events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from satview.core.library import CPUS, call

# Compiled passes that load traces: slots to events, times and threads of events; see loading.c and clock.c.


_Ints = NDArray[np.int64]
LOG_SEED: Final = 0
LOG_TIME: Final = 1
LOG_CROSSING: Final = 2
_LOG_WIDTH: Final = 4
_COUNTS: Final = 10
IS_SUBJECT: Final = 1  # flags of a code: the payload names the thread that the event belongs to
IS_STATE: Final = 2
IS_RARE: Final = 4
IS_UNKNOWN: Final = 8
IS_RUNNING: Final = 16  # the named thread runs from this event on


@dataclass(frozen=True, slots=True)
class Grouped:
    """The events of a chunk of slots; columns are valid until the next call.

    Attributes:
        length: Number of slots processed; the next event starts there.
        first_slot: uint32 (n,), first slot of each event within the chunk.
        size: uint32 (n,), number of adjacent slots of each event.
        stamp: uint32 (n,).
        trait: uint8 (n,), flags of the code of each event.
        longest: Number of slots of the longest event; above 65,535 a column of sizes must be wider than uint16.
        opened: uint32, events whose end does not follow directly.
        run_at, run_size: uint32, first slot and number of slots of each run of continuation slots (tails) that does not
            follow its event.
        run_before: int64, the last event before each run, -1 for none.
        run_closes: bool, whether the last slot of the run ends an event.
        zero: uint32, all-zero slots.
        key: uint64, threads of the events with `IS_SUBJECT`: pid and tid as two words in payload order.
        state_row: uint32, rows of state events in the file.
        rare, unknown: uint32, events whose code has the flag `IS_RARE` or `IS_UNKNOWN`.
    """

    length: int
    first_slot: NDArray[np.uint32]
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
    """Groups the slots of successive chunks into events; the arrays are reused for each chunk.

    Args:
        traits: uint8 (32768,), flags of each code: `IS_SUBJECT` and the following constants.
        buffer_code: Code of CONTROL BUFFER.
        capacity: Maximum number of slots of a chunk.
    """

    def __init__(self, traits: NDArray[np.uint8], buffer_code: int, capacity: int) -> None:
        self._traits, self._buffer_code = traits, buffer_code
        types = {"trait": np.uint8, "run_before": np.int64, "run_closes": np.bool_, "key": np.uint64}
        names = ("first_slot", "size", "stamp", "trait", "opened", "run_at", "run_size", "run_before", "run_closes",
                 "zero", "key", "state_row", "rare", "unknown")  # fmt: skip
        # Unwritten pages take no memory, so columns that are rarely used cost nothing.
        self._columns: dict[str, NDArray[Any]] = {
            name: np.empty(capacity, types.get(name, np.uint32)) for name in names
        }
        self._counts = np.zeros(_COUNTS, np.int64)

    def group(
        self, slots: NDArray[np.uint32], first_slot: int, first_row: int, code: NDArray[np.uint16],
        cpu: NDArray[np.uint8], slot: NDArray[np.unsignedinteger], size: NDArray[np.unsignedinteger], *, is_last: bool,
    ) -> Grouped:  # fmt: skip
        """Return the events of a chunk of slots; write their codes, CPUs, slots and sizes to the given arrays.

        Args:
            slots: uint32 (n, 4), at most `capacity`.
            first_slot: Number of the first slot in the file.
            first_row: Number of the first event in the file.
            code: uint16 (n,) or longer, receives the code of each event.
            cpu: uint8 (n,) or longer, receives the CPU of each event.
            slot: uint32 or uint64 (n,) or longer, receives the first slot of each event in the file.
            size: uint16 or uint32 (n,) or longer, receives the number of adjacent slots of each event.
            is_last: Whether this is the last chunk; otherwise the last event is left to the next chunk.

        Raises:
            ValueError: There are more slots than `capacity`.
        """
        call("group", slots, is_last, first_slot, first_row, self._buffer_code, self._traits, code, cpu, slot, size,
             *self._columns.values(), self._counts)  # fmt: skip
        length, events, opened, runs, zeros, subjects, states, rare, unknown, longest = self._counts.tolist()
        sizes = {"opened": opened, "run_at": runs, "run_size": runs, "run_before": runs, "run_closes": runs,
                 "zero": zeros, "key": subjects, "state_row": states, "rare": rare, "unknown": unknown}  # fmt: skip
        columns: dict[str, Any] = {name: column[: sizes.get(name, events)] for name, column in self._columns.items()}
        return Grouped(length=length, longest=longest, **columns)


def numbers(
    requested: NDArray[np.uint64], done: int, keys: NDArray[np.uint64], rows: NDArray[np.uint32], bits: int,
    multiplier: int, known: NDArray[np.uint64], used: int, limit: int, out: NDArray[np.uint32],
) -> tuple[int, int]:  # fmt: skip
    """Look up the numbers of threads in a hash table; threads that are not in the table get new numbers.

    Args:
        requested: uint64 (n,), keys of the threads: pid and tid.
        done: Number of keys that were looked up before.
        keys: uint64 (2^bits,), keys in the hash table.
        rows: uint32 (2^bits,), numbers in the hash table, 0 = free.
        bits: Number of bits of a position in the table.
        multiplier: uint64, factor of the hash function.
        known: uint64 (m,), key of each number; receives new keys.
        used: Count of numbers in use, including 0.
        limit: Maximum count of numbers, at most m, and less than the size of the table.
        out: uint32 (n,) or longer, receives the numbers.

    Returns:
        Number of keys looked up so far, and count of numbers in use. The first is less than n if a new number would
        exceed `limit`, and -1 minus the number of keys if a key is too far from its position in the table.
    """
    given = np.array([used], np.int64)
    done = call("numbers", requested, done, keys, rows, bits, multiplier, known, limit, given, out)
    return done, int(given[0])


def rows_by_thread(
    rows: NDArray[np.uint32], thread: NDArray[np.unsignedinteger], thread_count: int, out: NDArray[np.uint32]
) -> NDArray[np.int64]:
    """Group rows of events by thread; return the index at which each thread's rows begin, int64 (threads + 1,).

    Args:
        rows: uint32 (n,), ascending.
        thread: uint16 or uint32 (events,).
        thread_count: Number of threads.
        out: uint32 (n,), receives the grouped rows.

    Raises:
        ValueError: A row or a thread is out of range.
    """
    start, fill = np.empty(thread_count + 1, np.int64), np.empty(thread_count, np.int64)
    call("rows_by_thread", rows, thread, start, fill, out)
    return start


def word_sum(words: NDArray[np.uint64], first_word: int) -> int:
    """Return a checksum: the sum of words, each multiplied by an odd number that depends on its position, modulo 2^64.

    Args:
        words: uint64 (n,).
        first_word: Position of the first word.
    """
    out = np.empty(1, np.uint64)
    call("word_sum", words, first_word, out)
    return int(out[0])


def owners(
    cpu: NDArray[np.uint8], trait: NDArray[np.uint8], thread: NDArray[np.uint32], discontinuities: NDArray[np.int64],
    now: NDArray[np.uint32], out: NDArray[np.unsignedinteger],
) -> None:  # fmt: skip
    """Write the thread that each event belongs to.

    Args:
        cpu: uint8 (n,).
        trait: uint8 (n,), flags of each event (see `Grouped`).
        thread: uint32 (k,), the threads of the events with `IS_SUBJECT`.
        discontinuities: int64 (2, m), events after which the running thread is unknown, ascending; the CPU for which
            that holds, -1 = all CPUs.
        now: uint32 (64,), thread that runs on each CPU; updated in place for the next call.
        out: uint16 or uint32 (n,), receives the threads.
    """
    discontinuities = np.ascontiguousarray(discontinuities, np.int64)
    call("owners", cpu, trait, thread, *discontinuities, now, out)


def clock(
    stamp: NDArray[np.uint32], cpu: NDArray[np.uint8], time_row: NDArray[np.int64], time_value: NDArray[np.int64],
    shared: NDArray[np.int64], reference: NDArray[np.int64], last: int, out: NDArray[np.int64],
) -> tuple[int, NDArray[np.int64]]:  # fmt: skip
    """Write the time of each event.

    Args:
        stamp: uint32 (n,).
        cpu: uint8 (n,).
        time_row: int64 (k,), CONTROL TIME events, ascending.
        time_value: int64 (k,), time in each CONTROL TIME event, cycles; negative = unusable.
        shared: int64, BUFFER events that take the time of the event after them, ascending.
        reference: int64 (64,), latest time per CPU, cycles, -2^62 = none; updated in place for the next call.
        last: The last time assigned on any CPU.
        out: int64 (n,), receives the times, cycles.

    Returns:
        The last time assigned, and the log described in clock.c, int64 (m, 4).
    """
    room = 2 * len(time_row) + 4 * CPUS
    log, carried = np.empty((room, _LOG_WIDTH), np.int64), np.array([last], np.int64)
    time_row, shared = np.ascontiguousarray(time_row, np.int64), np.ascontiguousarray(shared, np.int64)
    entries = call("clock", stamp, cpu, time_row, time_value, shared, reference, carried, out, log)
    return int(carried[0]), log[:entries]


def cheapest_path(
    cost: NDArray[np.float64], step_cost: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the cheapest path through n steps of k choices, and the cost of the cheapest path through each choice.

    Args:
        cost: float64 (n, k), cost of each choice.
        step_cost: float64 (n - 1, k, k), cost of going from each choice to each choice of the next step.

    Returns:
        The choice in each step, int64 (n,), the first of equally cheap choices; the costs, float64 (n, k).
    """
    cost, step_cost = (np.ascontiguousarray(costs, np.float64) for costs in (cost, step_cost))
    ahead, behind, best = np.empty_like(cost), np.empty_like(cost), np.empty(len(cost), np.int64)
    call("cheapest_path", cost.shape[1], cost, step_cost, ahead, behind, best)
    return best, ahead + behind - cost


def take_halves(
    file: int, offset: int, slot_numbers: NDArray[np.int64], slots: int, half: int, gap: int, most_slots: int
) -> NDArray[np.uint64] | None:
    """Return words 0 and 1, or 2 and 3, of some slots of a file, uint64 (n,); None if a slot cannot be read.

    Args:
        file: File descriptor.
        offset: Byte offset of slot 0.
        slot_numbers: int64 (n,), ascending.
        slots: Number of slots in the file.
        half: 0 = words 0 and 1, 1 = words 2 and 3.
        gap: Maximum number of other slots between two given slots that one read call gets.
        most_slots: Maximum number of slots of one read call.
    """
    out, scratch = np.empty(len(slot_numbers), np.uint64), np.empty((most_slots, 2), np.uint64)
    slot_numbers = np.ascontiguousarray(slot_numbers, np.int64)
    done = call("take_halves", file, offset, slot_numbers, slots, half, gap, scratch, out)
    return out if done == len(slot_numbers) else None


def protobuf_fields(
    data: NDArray[np.uint8], begin: _Ints, end: _Ints
) -> tuple[_Ints, _Ints, _Ints, _Ints, NDArray[np.bool_]]:
    """Return the fields of protobuf messages; see protobuf.c.

    Args:
        data: uint8, contiguous.
        begin: int64 (n,), contiguous, start offset of each message.
        end: int64 (n,), contiguous, end offset of each message.

    Returns:
        For each field, int64 (fields,): index of its message, field number, value, length; which messages are damaged,
        bool (n,).
    """
    capacity = max(1024, int(np.maximum(end - begin, 0).sum()) // 8)
    is_bad = np.zeros(len(begin), np.bool_)
    while True:
        columns = [np.empty(capacity, np.int64) for _ in range(4)]
        rows = call("protobuf", data, begin, end, *columns, is_bad)
        if rows <= capacity:
            message, number, value, length = (column[:rows] for column in columns)
            return message, number, value, length, is_bad
        capacity = rows


# Compiled passes over streamed slots, which form groups of slots and events; see streaming.c.
#
# A group is a run of adjacent slots of one event. Events are delivered in the order of their last slots.


_STREAM_COUNTS: Final = 6


class Groups(NamedTuple):
    """The groups of a chunk: adjacent slots that form an event or a part of one, or one all-zero slot.

    There are g groups; e of them start an event.

    Attributes:
        group_slot: int64 (g + 1,), first slot of each group; the last element is the number of slots.
        is_whole: bool (g,), whether the group is a complete event.
        event: int64 (g,), index of the last event that starts in or before the group, -1 for none.
        code: uint32 (e,), code of each event.
        cpu: uint8 (e,).
        stamp: uint32 (e,).
        first_slot: int64 (e,).
        other: int64 (k,), indices of the groups that are an event without its end, or continuation slots without their
            event.
        begun: int64 (m,), indices of the groups that start a combine event.
        zeros: Number of groups that are an all-zero slot.
        zero: The first all-zero slot, -1 for none.
    """

    group_slot: NDArray[np.int64]
    is_whole: NDArray[np.bool_]
    event: NDArray[np.int64]
    code: NDArray[np.uint32]
    cpu: NDArray[np.uint8]
    stamp: NDArray[np.uint32]
    first_slot: NDArray[np.int64]
    other: NDArray[np.int64]
    begun: NDArray[np.int64]
    zeros: int
    zero: int


def groups(slots: NDArray[np.uint32], most_slots: int) -> Groups:
    """Return the slots of a chunk in groups: each is an event, a part of one, or an all-zero slot.

    Args:
        slots: uint32 (n, 4).
        most_slots: Maximum number of slots of a complete event.
    """
    types = {"is_whole": np.bool_, "code": np.uint32, "cpu": np.uint8, "stamp": np.uint32}
    names = ("group_slot", "is_whole", "event", "code", "cpu", "stamp", "first_slot", "other", "begun")
    columns: dict[str, NDArray[Any]] = {name: np.empty(len(slots) + 1, types.get(name, np.int64)) for name in names}
    counts = np.zeros(_STREAM_COUNTS, np.int64)
    call("stream_groups", slots, most_slots, *columns.values(), counts)
    size, events, others, begun, zeros, zero = counts.tolist()
    sizes = dict.fromkeys(("code", "cpu", "stamp", "first_slot"), events)
    sizes |= {"group_slot": size + 1, "other": others, "begun": begun}
    return Groups(
        **{name: column[: sizes.get(name, size)] for name, column in columns.items()}, zeros=zeros, zero=zero
    )  # fmt: skip


def with_keys(
    slots: NDArray[np.uint32], first_slots: NDArray[np.int64], group: NDArray[np.int64], keys: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Return those of some groups whose first slot has one of the keys, int64 (k,).

    The key of a slot combines CPU, stamp, class and event number, which all slots of a combine event share.

    Args:
        slots: uint32 (n, 4).
        first_slots: int64, first slot of each group of the chunk.
        group: int64 (m,), indices of the groups to test.
        keys: uint64, ascending.
    """
    out = np.empty(len(group), np.int64)
    return out[: call("with_keys", slots, first_slots, group, keys, out)]


class StreamColumns(NamedTuple):
    """Columns of n events with w payload words.

    Attributes:
        header: uint32 (n,), first words.
        stamp: uint32 (n,).
        time: int64 (n,), cycles.
        thread: uint32 (n,).
        start: int64 (n + 1,), index in `words` at which each payload begins.
        words: uint32 (w,), payload words.
        last: int64 (n,), last slot of each event.
    """

    header: NDArray[np.uint32]
    stamp: NDArray[np.uint32]
    time: NDArray[np.int64]
    thread: NDArray[np.uint32]
    start: NDArray[np.int64]
    words: NDArray[np.uint32]
    last: NDArray[np.int64]


def deliver(
    slots: NDArray[np.uint32],
    chunk_groups: Groups,
    time: NDArray[np.int64],
    thread: NDArray[np.uint32],
    done: StreamColumns,
) -> StreamColumns:
    """Merge the complete events of a chunk with events that continuation slots completed, in the order of last slots.

    Args:
        slots: uint32 (n, 4), slots of the chunk.
        chunk_groups: Groups of the chunk.
        time: int64 (e,), times of the events that start in the chunk.
        thread: uint32 (e,), threads of these events.
        done: Events completed by continuation slots (tails).
    """
    count = int(np.count_nonzero(chunk_groups.is_whole)) + len(done.header)
    size = 2 * len(slots) + len(done.words)
    columns = StreamColumns(
        np.empty(count, np.uint32), np.empty(count, np.uint32), np.empty(count, np.int64), np.empty(count, np.uint32),
        np.empty(count + 1, np.int64), np.empty(size, np.uint32), np.empty(count, np.int64),
    )  # fmt: skip
    time, thread = np.ascontiguousarray(time, np.int64), np.ascontiguousarray(thread, np.uint32)
    before = (done.last, done.header, done.stamp, done.time, done.thread, done.start, done.words)
    call(
        "deliver",
        slots,
        chunk_groups.group_slot,
        chunk_groups.is_whole,
        chunk_groups.event,
        time,
        thread,
        *before,
        *columns,
    )
    return columns._replace(words=columns.words[: int(columns.start[-1])])


# Compiled passes over payloads of equal length, which find texts and equal payloads; see texts.c.


IS_NUMBERS, IS_ASCII, MAY_BE_UTF8 = range(3)
_MIN_PLACES: Final = 16  # minimum size of the hash table


def text_kinds(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the kind of each payload, uint8 (n,): `IS_NUMBERS`, `IS_ASCII`, or `MAY_BE_UTF8` = text if valid UTF-8.

    Args:
        data: uint8 (n, bytes).
    """
    kinds = np.empty(len(data), np.uint8)
    call("text_kinds", data.shape[1], np.ascontiguousarray(data), kinds)
    return kinds


def same_rows(data: NDArray[np.uint8]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Number the distinct payloads; return the number of each payload, and the first payload with each number.

    If very many different payloads have the same hash, equal payloads may get different numbers.

    Args:
        data: uint8 (n, bytes).

    Returns:
        uint32 (n,) and uint32 (numbers,), ascending.
    """
    number, first_row = np.empty(len(data), np.uint32), np.empty(len(data), np.uint32)
    table = np.zeros(max(_MIN_PLACES, 1 << (2 * len(data)).bit_length()), np.uint32)
    count = call("same_rows", data.shape[1], np.ascontiguousarray(data), number, first_row, table)
    return number, first_row[:count]


def joined(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the concatenated payloads, each cut at its first zero byte and terminated by a zero byte, uint8.

    Args:
        data: uint8 (n, bytes).
    """
    count, size = data.shape
    out = np.empty(count * (size + 1), np.uint8)
    return out[: call("joined", size, count, np.ascontiguousarray(data), out)]
