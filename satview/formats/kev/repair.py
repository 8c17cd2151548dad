"""Repairs events after the pass over the slots: attaches distant slots, finds appended names, and sorts by time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base import column_arrays
from satview.base.column_arrays import numbers_of
from satview.core import links, loading
from satview.core.links import stable_order
from satview.events import wire
from satview.formats.kev import combine
from satview.formats.kev.clock import ClockRebuilder, correct
from satview.formats.kev.combine import EventRegion
from satview.formats.kev.consensus import ClockVerdicts, Surroundings
from satview.formats.kev.decode import Decoded
from satview.formats.kev.slot_source import SlotSource
from satview.store.problems import Problems
from satview.store.tables import Fragments, never_decreases

# Repairs events after the pass over the slots: attaches tails far from their event, and sorts events by time.
#
# Traces are almost in order: CPUs write into one buffer a few microseconds apart, and only an overrun or a ring dump
# moves whole blocks. So only ranges of rows that a sort would change are sorted.
#
# Source: kernel event trace format, sections 3.3 and 5.4.


# Events processed together, so that temporary arrays stay in the second-level cache.
_CHUNK: Final = 1 << 17
_MOSTLY: Final = 8  # if more than 7 of 8 rows move, the whole range is moved, as when each CPU has its own buffers


def disordered_rows(time: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows that a stable sort by time may move, ascending, int64 (n,); empty if time never decreases."""
    if never_decreases(time):  # the usual case, which takes an eighth of the time of the search
        return np.empty(0, np.int64)
    return links.disordered(time)


def time_order(
    time: NDArray[np.int64], cpu: NDArray[np.uint8], positions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return (positions, rows): in time order, position `positions[i]` gets event `rows[i]`; None if all is in order.

    Rows of equal time keep their order. Positions that cannot change are not listed.

    Args:
        time: int64 (n,), cycles.
        cpu: uint8 (n,); events of a CPU are in order if each CPU logs into its own buffers.
        positions: `disordered_rows(time)`.
    """
    if not len(positions):
        return None
    # A row that is not later than any row after it, nor earlier than any row before it, keeps its position; the other
    # rows are permuted among their positions.
    start, end = int(positions[0]), int(positions[-1]) + 1
    if _MOSTLY * len(positions) > (_MOSTLY - 1) * (end - start):
        # A whole range is moved faster; the few rows in between keep their positions.
        positions = np.arange(start, end)
    rows = links.merged(time, cpu, positions)
    if rows is None:
        rows = positions[stable_order(time[positions])]
    return positions, rows


def rows_of_shared_time(
    time: NDArray[np.int64], rows_given: NDArray[np.int64], moves: tuple[NDArray[np.int64], NDArray[np.int64]] | None
) -> NDArray[np.int64]:
    """Return the rows that share their time with one of the given rows, ascending, int64 (m,).

    A given row is included if another row has the same time.

    Args:
        time: int64, (n,), in any order.
        rows_given: int64 (k,), ascending.
        moves: Result of `time_order`.
    """
    if moves is not None:
        rows = rows_of_equal_time(time, moves)
        return rows[np.isin(time[rows], time[rows_given])]
    some_times = time[rows_given]
    is_shared = (rows_given > 0) & (time[rows_given - 1] == some_times)
    is_shared |= (rows_given < len(time) - 1) & (time[np.minimum(rows_given + 1, len(time) - 1)] == some_times)
    times = np.unique(some_times[is_shared])
    starts, ends = np.searchsorted(time, times), np.searchsorted(time, times, side="right")
    return numbers_of(starts, ends - starts)


def rows_of_equal_time(
    time: NDArray[np.int64], moves: tuple[NDArray[np.int64], NDArray[np.int64]] | None
) -> NDArray[np.int64]:
    """Return the rows that share their time with another row, ascending, int64 (m,).

    Args:
        time: int64, (n,), in any order.
        moves: Result of `time_order`.
    """
    positions, from_rows = (np.empty(0, np.int64),) * 2 if moves is None else moves
    is_shared = np.zeros(len(time), np.bool_)
    for start in range(0, len(time), _CHUNK):
        part = time[start : start + _CHUNK + 1]
        moved = slice(*np.searchsorted(positions, (start, start + len(part))).tolist())
        if moved.start < moved.stop:
            part = part.copy()
            part[positions[moved] - start] = time[from_rows[moved]]
        same = np.flatnonzero(part[1:] == part[:-1]) + start
        is_shared[same] = True
        is_shared[same + 1] = True
    rows = np.flatnonzero(is_shared)
    if len(positions):
        move = np.minimum(np.searchsorted(positions, rows), len(positions) - 1)
        rows = np.sort(np.where(positions[move] == rows, from_rows[move], rows))
    return rows


def group_rows(
    rows: NDArray[np.uint32], thread: NDArray[np.unsignedinteger], thread_count: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Group ascending event rows by thread, keeping their order.

    Args:
        rows: uint32 (n,).
        thread: uint16 or uint32 (events,), thread of every event.
        thread_count: Number of threads.

    Returns:
        The grouped rows, uint32 (n,), and the index of each thread's first row, int64 (thread_count + 1,).
    """
    grouped = column_arrays.empty(len(rows), np.uint32)
    start = loading.rows_by_thread(np.ascontiguousarray(rows), thread, thread_count, grouped)
    column_arrays.let_go(grouped)
    return grouped, start


Moves = tuple[NDArray[np.int64], NDArray[np.int64]]
MANY: Final = 200  # number of problems of a kind that are reported one by one; the others are counted


def split_contested(decoded: Decoded, slots: SlotSource, moves: Moves | None) -> None:
    """Detach the continuation slots of events that share a key with an open event; `repair` matches them again."""
    heads = decoded.unmatched.event[decoded.unmatched.event >= 0]  # ascends, as the file does
    if not len(heads):
        return
    # Equal stamps of a CPU that are not a rollover apart are equal times, so only the keys of few events must be read.
    rows = rows_of_shared_time(decoded.time, heads, moves)
    if not len(rows):
        return
    is_open = combine.contains(heads, rows)
    is_combine = is_open | (decoded.slots[rows] > 1)
    rows, is_open = rows[is_combine], is_open[is_combine]
    # The parts of the key that are in columns exclude nearly all events.
    code, cpu = decoded.code[rows].astype(np.uint64), decoded.cpu[rows]
    moment = np.searchsorted(np.unique(decoded.time[heads]), decoded.time[rows]).astype(np.uint64)
    likely = combine.contested(moment << np.uint64(32) | code << np.uint64(8) | cpu, is_open)
    rows, is_open = rows[likely], is_open[likely]
    if not len(rows):
        return
    slot_numbers = decoded.slot[rows].astype(np.int64)
    headers, stamps = slots.take_halves(slot_numbers, 0).T
    # Two events have the same key, and one of them is open: the queue of section 3.3 decides to which event tails
    # belong, while the pass has attached them to the event right before them.
    hit = combine.contested(combine.keys(headers, stamps), is_open)
    if hit.any():
        rows = rows[hit]
        counts = decoded.slots[rows].astype(np.int64)
        decoded.unmatched = combine.split(decoded.unmatched, rows, slot_numbers[hit], counts, headers[hit], stamps[hit])
        decoded.slots[rows] = 1


def repair(
    decoded: Decoded, region: EventRegion, problems: Problems, *, ascends: bool
) -> tuple[Fragments, NDArray[np.int64]]:
    """Attach runs of continuation slots to their events; report runs without an event, and events without end.

    Returns the slots of the repaired events, in order, and the rows of events without end, int64 (k,). `ascends` = the
    times of the events never decrease.
    """
    unmatched = decoded.unmatched
    matched = combine.match(unmatched, decoded.time, decoded.cpu, ascends=ascends)
    orphans = np.flatnonzero(matched.owner < 0)
    for i in orphans[:MANY].tolist():
        n = int(unmatched.count[i])
        problems.add(
            "orphan-slots",
            f"{n} slot{'s' * (n > 1)} of an event whose beginning is missing",
            region.byte(int(unmatched.slot[i])),
            n,
        )
    if len(orphans) > MANY:
        problems.add("orphan-slots", "and more of the same", None, int(unmatched.count[orphans[MANY:]].sum()))
    for row in matched.unfinished[:MANY].tolist():
        problems.add(
            "unfinished-events",
            "the end of this event is missing",
            region.byte(int(decoded.slot[row])),
            1,
            int(decoded.time[row]),
        )
    if len(matched.unfinished) > MANY:
        problems.add("unfinished-events", "and more of the same", None, len(matched.unfinished) - MANY)
    return _fragments(decoded, matched, region, problems), matched.unfinished


def _fragments(decoded: Decoded, matched: combine.Matched, region: EventRegion, problems: Problems) -> Fragments:
    unmatched = decoded.unmatched
    rows = np.flatnonzero(matched.owner >= 0)
    rows = rows[np.argsort(matched.owner[rows], kind="stable")]  # slots of an event stay in file order
    owner = matched.owner[rows]
    is_first = np.append(True, owner[1:] != owner[:-1])[: len(owner)]
    is_alone = is_first & np.append(is_first[1:], True)[: len(owner)]  # an event whose tails are missing
    rows, owner, is_first = rows[~is_alone], owner[~is_alone], is_first[~is_alone]
    if not len(rows):
        return Fragments.none()
    begins = np.flatnonzero(is_first)
    apart = owner[begins]
    counts = unmatched.count[rows]
    slot = numbers_of(unmatched.slot[rows], counts)
    sizes = np.add.reduceat(counts, begins)
    too_long = np.flatnonzero(sizes > combine.MAX_SLOTS)
    for i in too_long[:MANY].tolist():
        problems.add(
            "injected-struct",
            f"an event of {sizes[i]} slots; {combine.MAX_SLOTS} are read",
            region.byte(int(decoded.slot[apart[i]])),
        )
    if int(sizes.max()) > np.iinfo(decoded.slots.dtype).max:
        decoded.slots = decoded.slots.astype(np.uint32)
    decoded.slots[apart] = np.minimum(sizes, combine.MAX_SLOTS)
    return Fragments(
        apart.astype(np.uint32),
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        slot.astype(decoded.slot.dtype),
    )


def sort(decoded: Decoded, moves: Moves) -> NDArray[np.unsignedinteger]:
    """Sort the columns by time, and update the row numbers that refer to events.

    Args:
        decoded: Columns in file order; changed in place.
        moves: Result of `time_order`.

    Returns:
        The new row of each event by its old row, uint32 or uint64 (events,).
    """
    positions, rows = moves
    start, end = int(positions[0]), int(positions[-1]) + 1
    # If all positions of a range move, as with a buffer per CPU, a slice is faster than an index.
    into = slice(start, end) if end - start == len(positions) else positions
    went = np.arange(len(decoded.time), dtype=decoded.slot.dtype)
    is_state = np.zeros(len(went), np.bool_)
    is_state[decoded.state_rows] = True
    columns = (decoded.time, decoded.code, decoded.cpu, decoded.thread, decoded.slot, decoded.slots, is_state)
    if not (isinstance(into, slice) and links.move(columns, start, rows, went)):
        for column in columns:
            column[into] = column.take(rows)
        went[rows] = positions
    decoded.state_rows = np.flatnonzero(is_state).astype(np.uint32)
    rare = went[decoded.rare_rows]
    in_time = np.argsort(rare, kind="stable")
    decoded.rare_rows, decoded.rare_words = rare[in_time].astype(np.int64), decoded.rare_words[in_time]
    return went


def renumber(fragments: Fragments, went: NDArray[np.unsignedinteger]) -> Fragments:
    """Return fragments with the new rows of their events, sorted; `went` is the result of `sort`."""
    event = went[fragments.event]
    by_event = np.argsort(event)
    sizes = np.diff(fragments.start)[by_event]
    start = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    old = fragments.start[:-1][by_event]
    slot = fragments.slot[numbers_of(old, sizes)]
    return Fragments(event[by_event].astype(np.uint32), start, slot)


# Finds the names appended to a ring capture, whose times are after the capture.
#
# A kernel of 7.x or 8.0 writes the names of processes and threads when a ring is saved, after a pause of more than a
# second. The trace has no events from this pause, so no state may extend through it.
#
# Source: kernel event trace format, sections 5.5 and 6.1.


MOST_EVENTS: Final = 1 << 17  # upper limit for the number of names of processes and threads
_PAUSE_S: Final = 1
_NAMES: Final = (wire.PROC_CREATE, wire.PROC_CREATE_NAME, wire.PROC_THREAD_NAME)


def _table_of_codes() -> NDArray[np.bool_]:
    """Return which codes may follow a ring capture: control events, names, creations, states; bool (32768,)."""
    codes = np.arange(wire.CODE_COUNT)
    wire_class = codes >> wire.CLASS_SHIFT
    is_state = wire.are_of_threads(codes)
    is_state[wire.THREAD_DESTROY] = False
    return np.asarray((wire_class == wire.WireClass.CONTROL) | is_state | np.isin(codes, _NAMES))


_MAY_HOLD: Final = _table_of_codes()


def is_ring(surroundings: Surroundings, code: NDArray[np.unsignedinteger], words: NDArray[np.uint32]) -> bool:
    """Return whether a file is a ring capture: by the logger's arguments, or by buffers that were never handed over.

    Args:
        surroundings: Information from the header.
        code: uint16 (n,), codes of all CONTROL events, and maybe of others.
        words: uint32 (n, 2), first two payload words of these events.
    """
    return surroundings.says_ring or bool(np.any((code == wire.CONTROL_BUFFER) & (words[:, 1] == 0)))


@dataclass(frozen=True, slots=True)
class LastEvents:
    """The last events of a file in file order, with times before corrections.

    Attributes:
        first_row: Row of the first of these events.
        time: int64 (n,), cycles.
        cpu: uint8 (n,).
        code: uint16 (n,).
        thread: (n,), identifies the thread of THREAD events.
    """

    first_row: int
    time: NDArray[np.int64]
    cpu: NDArray[np.uint8]
    code: NDArray[np.uint16]
    thread: NDArray[np.unsignedinteger]


def first_of_tail(last: LastEvents, cycles_per_s: int, clock: ClockRebuilder | None) -> int | None:
    """Return the row of the first of the names appended to a ring capture; None if there are none.

    This event follows a pause of more than a second. After it there are only names, control events, and creations with
    at most one state each (as in the dump of START).

    Args:
        last: The last events; more than a target has processes and threads.
        cycles_per_s: Rate of the clock.
        clock: The clock after all events; None = the source gives the times.
    """
    start = _names_from(last.code, last.thread)
    if not start > 0 or not np.isin(last.code[start:], _NAMES[1:]).any():
        return None
    time = last.time
    if clock is not None:
        corrections = verdicts_without_tail(clock, time[:start], last.cpu[:start], last.first_row + start).corrections
        time = time.copy()
        correct(corrections, time[:start], last.cpu[:start], last.code[:start], last.first_row)
    latest = np.maximum.accumulate(np.append(time[:start].max(), time[start:-1]))
    behind = np.flatnonzero(time[start:] - latest > _PAUSE_S * cycles_per_s)
    if not len(behind) or not np.isin(last.code[start + behind[0] :], _NAMES[1:]).any():
        return None
    return last.first_row + start + int(behind[0])


def _names_from(code: NDArray[np.uint16], thread: NDArray[np.unsignedinteger]) -> int:
    """Return the index from which on all events are names, control events, or creations with at most one state each."""
    others = np.flatnonzero(~_MAY_HOLD[code])
    start = int(others[-1]) + 1 if len(others) else 0
    code, thread = code[start:], thread[start:]
    is_thread = wire.are_of_threads(code)
    states = np.flatnonzero(is_thread & (code != wire.THREAD_CREATE))
    _, from_end = np.unique(thread[states][::-1], return_index=True)
    is_last = np.zeros(len(states), np.bool_)
    is_last[len(states) - 1 - from_end] = True
    is_reported = is_last & np.isin(thread[states], thread[code == wire.THREAD_CREATE])
    activity = states[~is_reported]
    return start + (int(activity[-1]) + 1 if len(activity) else 0)


def verdicts_without_tail(
    clock: ClockRebuilder, time: NDArray[np.int64], cpu: NDArray[np.uint8], tail_row: int
) -> ClockVerdicts:
    """Return the clock verdicts as if the file ended before the appended names, whose only TIME event is unconfirmed.

    Args:
        clock: The clock after all events.
        time: int64 (n,), times of the events just before the tail, in file order; the last one of each CPU is used.
        cpu: uint8 (n,), CPUs of these events.
        tail_row: Row of the first event of the tail.
    """
    cpus, from_end = np.unique(cpu[-MOST_EVENTS:][::-1], return_index=True)
    rows = len(cpu) - 1 - from_end
    ends = dict(
        zip(cpus.tolist(), zip((rows + tail_row - len(cpu)).tolist(), time[rows].tolist(), strict=True), strict=True)
    )
    return clock.verdicts_before(tail_row, ends)


def report_names(decoded: Decoded, tail_row: int, cycles_per_s: int, region: EventRegion, problems: Problems) -> None:
    """Report the names appended to a ring capture, from row `tail_row` on."""
    count = len(decoded.time) - tail_row
    pause_s = int(decoded.time[tail_row:].min() - decoded.time[:tail_row].max()) / cycles_per_s
    problems.add(
        "ring-names",
        f"{count} events {pause_s:.3g} s after the capture name processes and threads; nothing else is taken of them",
        region.byte(int(decoded.slot[tail_row])),
        count,
    )
