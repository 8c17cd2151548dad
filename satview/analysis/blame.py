"""Splits an interval of a thread into parts by the use of the time; the parts add up to the interval exactly.

While the thread runs, the time belongs to it or to an interrupt on its CPU. While it is ready, the time belongs to the
thread or interrupt on the CPU on which it runs next. While it waits, the time belongs to the thread for which it waits
when the wait begins: the holder of the lock, or the server of the message. The time of that thread is split likewise,
one level deep.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.partitions import has_partitions
from satview.base.column_arrays import ColumnTable
from satview.base.time import format_duration
from satview.core import pictures
from satview.events import wire
from satview.events.states import ABSENT, DEAD, READY, RUNNING, STATE_BY_NAME, STATE_BY_VALUE, STEP_OF_CODE, UNKNOWN
from satview.filters.derived_columns import TraceDerivedColumns
from satview.linkage.blockers import REPLY, RWLOCKS, SEND, blockers
from satview.linkage.calls import TIMER_EVENT, nesting, numbers_of_interrupts
from satview.linkage.latencies import deliveries
from satview.linkage.links import NO_EVENT, OPEN, RowBounds, numbers_within, positions, row_bounds
from satview.linkage.messages import messages
from satview.linkage.waits import MUTEX, entries_of
from satview.linkage.wake_ups import last_sends, wake_ups
from satview.store.arguments import arguments
from satview.store.axis import files_of, of_logger
from satview.store.time_ranges import TimeRanges, cut_at, idle_threads, losses, losses_of, merged
from satview.store.trace import Trace, cached_with_trace
from satview.timeline.spans import LaneSpans
from satview.timeline.state_lanes import cpu_spans, run_slices, thread_spans, value_of_code

_Ints = NDArray[np.int64]
_IDLE: Final = -1  # instead of a thread that has a CPU
_SWITCH_NS: Final = 50_000  # longest time of a thread switch; a longer wait for an idle CPU has another reason
_SET_RUNMASK: Final = 4  # command of ThreadCtl(): <sys/neutrino.h>, _NTO_TCTL_RUNMASK
_NANOSLEEP: Final = STATE_BY_NAME["NANOSLEEP"].value
_RECEIVE: Final = STATE_BY_NAME["RECEIVE"].value
_INTR: Final = STATE_BY_NAME["INTR"].value


class Blame(IntEnum):
    """What a part of a thread's interval was spent on."""

    OWN = 0
    """The thread runs."""
    EARLIER = 1
    """The thread runs for something else: it has not yet received the message or pulse of the interval."""
    INTERRUPT = 2
    """An interrupt is handled on the CPU of the thread: the one it runs on, or the one it runs on next."""
    PREEMPTED = 3
    """The thread is ready, and another one has its CPU."""
    TRACING = 4
    """The thread is ready, and a thread of the program that writes the trace has its CPU."""
    NO_CPU = 5
    """The thread is ready, and no other thread has its CPU: a switch, affinity, or the budget of its partition."""
    LOCK = 6
    """The thread waits for a mutex or a read/write lock."""
    MESSAGE = 7
    """The thread waits for a server to receive its message or to reply."""
    SLEEP = 8
    """The thread sleeps."""
    WAKING = 9
    """The trigger of the interval has happened, but the kernel has not made the thread ready yet."""
    WAIT = 10
    """The thread waits for anything else."""
    UNKNOWN = 11
    """The trace does not show the state of the thread: events are missing, or the thread does not exist."""


class Kept(IntEnum):
    """Reasons why an idle CPU does not help a ready thread.

    They are the values in `BlameParts.value` for parts of the kinds NO_CPU, PREEMPTED and TRACING.
    """

    NOTHING = 0
    """No CPU is idle for longer than a thread switch takes."""
    BUDGET = 1
    """There are partitions, and the thread's runmask allows the idle CPU: a call shows that, or it runs there next."""
    RUNMASK = 2
    """The thread has set a runmask that forbids the idle CPU."""
    RUNMASK_OR_BUDGET = 3
    """No event shows the thread's runmask, and there are partitions."""
    UNLOGGED_RUNMASK = 4
    """No event shows the thread's runmask: it was set before the trace, or inherited from the thread's creator."""
    UNKNOWN = 5
    """The thread's runmask allows the idle CPU, and there are no partitions."""
    SPENT = 6
    """The thread's own CPU runs a thread of lower priority, which only a used-up partition budget explains."""


_KEPT_WORDS: Final = {
    Kept.BUDGET: "{} is idle and allowed; perhaps the budget of its partition is used up",
    Kept.RUNMASK: "{} is idle, which its runmask forbids",
    Kept.RUNMASK_OR_BUDGET: "{} is idle; perhaps its runmask or the budget of its partition keeps it off",
    Kept.UNLOGGED_RUNMASK: "{} is idle; perhaps its runmask keeps it off",
    Kept.UNKNOWN: "{} is idle and allowed",
    Kept.SPENT: "{} has a thread of lower priority, so the budget of its partition is used up",
}
_KEPT_BITS: Final = 3  # low bits of the value; the bits above are the number of the CPU


BLAME_WORDS: Final = {
    Blame.OWN: "own work", Blame.EARLIER: "earlier work", Blame.INTERRUPT: "interrupt", Blame.PREEMPTED: "preempted",
    Blame.TRACING: "tracing", Blame.NO_CPU: "ready, CPU not taken", Blame.LOCK: "lock", Blame.MESSAGE: "message",
    Blame.SLEEP: "sleep", Blame.WAKING: "waking up", Blame.WAIT: "wait", Blame.UNKNOWN: "unknown",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class BlameParts:
    """Parts of intervals, by interval, longest first, each followed by its own parts; every column has shape (n,).

    Attributes:
        interval: int64, position of the interval that contains the part.
        parent: int64, row of the part that contains this part; -1 = the interval itself.
        kind: int64, `Blame`.
        thread: int64, row of the thread that has the CPU, holds the lock, serves the message, or ends the wait; 0 =
            none, or not known.
        value: int64, by kind: number of the interrupt; address of the lock, or pid that the message was sent to (-1 =
            not known); state of a wait as lane value; `Kept`, with the idle CPU in the bits above; 0 for others.
        cycles: int64, above 0. Parts without a parent add up to the interval, the others to their parent.
    """

    interval: _Ints
    parent: _Ints
    kind: _Ints
    thread: _Ints
    value: _Ints
    cycles: _Ints

    def __len__(self) -> int:
        return len(self.interval)


def object_words(trace: Trace, kind: int, value: int) -> str:
    """Return the text for the object of a part: interrupt, lock, state, or the reason why an idle CPU does not help."""
    if kind == Blame.INTERRUPT:
        return f"interrupt 0x{value:x}"
    if kind == Blame.LOCK:
        return f"lock 0x{value & (1 << 64) - 1:x}" if value != -1 else ""
    if kind in (Blame.NO_CPU, Blame.PREEMPTED, Blame.TRACING) and value:
        return _KEPT_WORDS[Kept(value & (1 << _KEPT_BITS) - 1)].format(trace.cpu_title(value >> _KEPT_BITS))
    return STATE_BY_VALUE[value].name if kind == Blame.WAIT and value in STATE_BY_VALUE else ""


def part_words(trace: Trace, parts: BlameParts, row: int) -> str:
    """Return a text with the length and the use of a part of an interval: `4.100 ms ready while hog 1 ran`."""
    kind, thread = Blame(int(parts.kind[row])), int(parts.thread[row])
    whom = trace.thread_name(thread) if thread > 0 else ""
    what = object_words(trace, kind, int(parts.value[row]))
    words = {
        Blame.INTERRUPT: what,
        Blame.PREEMPTED: f"ready while {whom} ran" + (f" ({what})" if what else ""),
        Blame.TRACING: f"ready while {whom} ran, which writes the trace",
        Blame.LOCK: f"waiting for {what or 'a lock'}" + (f", held by {whom}" if whom else ""),
        Blame.MESSAGE: "waiting for a reply" + (f" of {whom}" if whom else ""),
        Blame.WAIT: f"waiting in state {what}" + (f", ended by {whom}" if whom else ""),
        Blame.SLEEP: "sleeping",
        Blame.NO_CPU: f"ready, while {what}" if what else "ready, with no other thread on its CPU",
        Blame.UNKNOWN: "not known",
        Blame.EARLIER: "work for something earlier",
    }
    inner = np.flatnonzero(parts.parent == row)
    ran = int(parts.cycles[inner[parts.kind[inner] == Blame.OWN]].sum())
    of_it = f" (which ran for {_length(trace, ran)} of it)" if ran else ""
    return f"{_length(trace, int(parts.cycles[row]))} {words.get(kind, BLAME_WORDS[kind])}{of_it}"


def _length(trace: Trace, cycles: int) -> str:
    return format_duration(trace.clock.duration_ns(cycles))


@dataclass(frozen=True, slots=True)
class _BlamePieces(ColumnTable):
    """Pieces of the ranges at the positions `of`, unsorted; each has one kind, thread and value, as in `BlameParts`."""

    of: _Ints
    start: _Ints
    end: _Ints
    kind: _Ints
    thread: _Ints
    value: _Ints

    def __len__(self) -> int:
        return len(self.of)

    @property
    def cycles(self) -> _Ints:
        return self.end - self.start


def blame(trace: Trace, thread: _Ints, start: _Ints, begin: _Ints, end: _Ints) -> BlameParts:
    """Return the parts of each interval of a thread, one for each use of the time (`Blame`, thread and object).

    Args:
        trace: The events.
        thread: int64 (n,), thread of each interval, a row of the thread table; 0 = not known.
        start: int64 (n,), start of each interval, cycles, not before the trace begins.
        begin: int64 (n,), time at which the thread begins to work for the interval, cycles.
        end: int64 (n,), end of each interval, cycles, not after the trace ends.
    """
    count, running = len(thread), _Running(trace, TimeRanges.of(start, end))
    pieces = _split(running, np.tile(thread, 2), np.append(start, begin), np.append(begin, end))
    is_early = pieces.of < count
    pieces.of[~is_early] -= count
    pieces.kind[is_early & (pieces.kind == Blame.OWN)] = Blame.EARLIER
    is_waking = is_early & (pieces.kind == Blame.WAIT) & np.isin(pieces.value, (_RECEIVE, _INTR))
    pieces.kind[is_waking] = Blame.WAKING
    pieces.thread[is_waking] = pieces.value[is_waking] = 0
    parts = _added_up(pieces, pieces.of)
    # What the holders of locks and the servers did meanwhile, one level deeper.
    nested = np.flatnonzero(np.isin(pieces.kind, (Blame.LOCK, Blame.MESSAGE)) & (pieces.thread > 0))
    blocked = pieces.taken(nested)
    inner = _split(running, blocked.thread, blocked.start, blocked.end)
    key = _keys(parts.of, parts.kind, parts.thread, parts.value)
    of_part = _positions(key, _keys(blocked.of, blocked.kind, blocked.thread, blocked.value))
    below = _added_up(inner, of_part[inner.of])
    return _in_order(parts, below)


def _keys(*columns: _Ints) -> NDArray[np.void]:
    """Return one value for each row, which combines the row's values in all columns and can be compared, void (n,)."""
    rows = np.ascontiguousarray(np.stack(columns, axis=1))
    return rows.view([("", np.int64)] * len(columns)).reshape(-1)


def _positions(keys: NDArray[np.void], requested: NDArray[np.void]) -> _Ints:
    """Return the position in `keys`, which are unique, of each of the `requested` keys, int64 (n,)."""
    if not len(requested):
        return np.empty(0, np.int64)
    _, which = np.unique(np.concatenate((keys, requested)), return_inverse=True)
    place = np.empty(len(keys) + len(requested), np.int64)
    place[which[: len(keys)]] = np.arange(len(keys))
    return place[which[len(keys) :]]


def _added_up(pieces: _BlamePieces, of: _Ints) -> _BlamePieces:
    """Return pieces from 0 to a total length: one for all pieces with equal `of`, kind, thread and value.

    `of` is int64 (n,), used instead of the column of that name.
    """
    if not len(pieces):
        return pieces
    _, one, which = np.unique(_keys(of, pieces.kind, pieces.thread, pieces.value), return_index=True,
                                return_inverse=True)  # fmt: skip
    cycles = np.zeros(len(one), np.int64)
    np.add.at(cycles, which.reshape(-1), pieces.end - pieces.start)
    return _BlamePieces(of[one], np.zeros(len(one), np.int64), cycles, pieces.kind[one], pieces.thread[one],
                   pieces.value[one])  # fmt: skip


def _in_order(parts: _BlamePieces, below: _BlamePieces) -> BlameParts:
    order = np.lexsort((-parts.end, parts.of))
    rank = np.empty(len(parts), np.int64)
    rank[order] = np.arange(len(parts))
    inner = np.lexsort((-below.end, rank[below.of]))
    key = np.append(rank, rank[below.of[inner]])  # a part, then its own parts
    rows = np.lexsort((np.append(np.zeros(len(parts), np.int64), np.arange(1, len(below) + 1)), key))
    is_part = rows < len(parts)
    row_of_rank = np.flatnonzero(is_part)

    def column(name: str) -> _Ints:
        joined: _Ints = np.append(getattr(parts, name), getattr(below, name)[inner])[rows]
        return joined

    of = np.append(parts.of, parts.of[below.of[inner]])[rows]
    parent = np.where(is_part, -1, row_of_rank[key[rows]])
    return BlameParts(of, parent, column("kind"), column("thread"), column("value"), column("end"))


_Timeline = tuple[_Ints, NDArray[np.int32], _Ints]


def cpu_timeline(trace: Trace, cpu: int, windows: RowBounds | None = None) -> _Timeline:
    """Return the thread that a CPU runs and the interrupt that it handles, over time.

    A thread is -1 while the CPU is idle, and 0 while it is not known; an interrupt is -1 while none is handled.

    Args:
        trace: The events.
        cpu: Number of the CPU.
        windows: `row_bounds` of the ranges in which the result must be right; elsewhere it may be wrong, to save time.
            None = all.

    Returns:
        Times of change, cycles, int64 (m + 1,); threads in between, int32 (m,); interrupts in between, int64 (m,).
    """
    is_idle, time = idle_threads(trace), trace.events.time_cycles
    nobody = np.zeros(len(trace.processes), np.uint8)  # lane values of processes are not used here
    lane = cpu_spans(trace, cpu, is_idle, nobody, windows)
    who = np.where(is_idle, _IDLE, np.arange(len(is_idle))).astype(np.int32)
    runner = np.zeros(len(lane.start_cycles), np.int32) if lane.thread is None else who[lane.thread]
    rows, depth = nested_interrupts(trace, cpu)
    # After a loss it is known again from the next event of an interrupt on; until then one may be under way.
    lost = losses_of(losses(trace), cpu)
    following = positions(rows, np.searchsorted(time, lost[:, 1]))
    seen_again = np.append(rows, 0)[following]
    seen_again = np.where(following < len(rows), time[seen_again], lane.end_cycles)
    unknown = merged(np.stack((lost[:, 0] + 1, seen_again), axis=1)[lost[:, 0] + 1 < seen_again]).reshape(-1)
    known = unknown, np.arange(len(unknown)) % 2 == 1
    if windows is not None:
        within = _interrupts_within(rows, depth, windows)
        rows, depth = rows[within], depth[within]
    interrupt, is_entry = np.full(len(rows), -1, np.int64), STEP_OF_CODE[trace.events.code[rows]] > 0
    interrupt[is_entry] = numbers_of_interrupts(trace, rows[is_entry])
    entered = time[rows], depth.astype(np.int64), interrupt
    return pictures.cpu_timeline((lane.start_cycles, runner), known, entered, lane.end_cycles + 1)


def nested_interrupts(trace: Trace, cpu: int) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """Return entries and exits of a CPU's interrupts, and the number of open interrupts after each; (n,), cached."""
    return trace.cached(f"analysis.nested_interrupts {cpu}", partial(_nested_interrupts, cpu=cpu))


def _nested_interrupts(trace: Trace, cpu: int) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    nested = nesting(trace, cpu)
    return nested.rows, nested.depth.astype(np.int32)


def _interrupts_within(rows: NDArray[np.uint32], depth: NDArray[np.int32], windows: RowBounds) -> _Ints:
    """Return the positions, ascending, of the entries and exits that show which interrupts are open during windows.

    For each window these are the events in it, and those before it since the last event after which none was open.
    """
    before, end = (positions(rows, bound) for bound in windows)
    outermost = np.flatnonzero(depth == 0)
    # From the last event before the window after which none was open.
    return numbers_within(np.append(0, outermost)[positions(outermost, before)], end)


class _Running:
    """Threads and interrupts on each CPU over time, correct only in given windows; computed at a CPU's first use."""

    def __init__(self, trace: Trace, windows: TimeRanges) -> None:
        self.trace = trace
        self.timeline = cache(partial(cpu_timeline, trace, windows=row_bounds(trace, windows)))
        self.idle = cache(self._idle)

    def _idle(self, cpu: int) -> tuple[_Ints, NDArray[np.bool_]]:
        """Return times of change, cycles, int64 (m + 1,), and whether a CPU is idle from one to the next, bool (m,)."""
        edges, runner, _ = self.timeline(cpu)
        is_idle = runner == _IDLE
        begins = np.append(True, is_idle[1:] != is_idle[:-1])
        return np.append(edges[:-1][begins], edges[-1]), is_idle[begins]


def _last(moments: _Ints, times: _Ints) -> NDArray[np.intp]:
    """Return the position of the last moment at or before each time, intp (n,), 0 = none; moments ascend."""
    return np.maximum(np.searchsorted(moments, times, side="right") - 1, 0)


def _split(running: _Running, thread: _Ints, start: _Ints, end: _Ints) -> _BlamePieces:
    """Return pieces, each with one use of the time, that cover ranges of time of threads (0 = not known) exactly."""
    trace, values = running.trace, value_of_code(running.trace)
    parts: list[_BlamePieces] = []
    for row in np.unique(thread).tolist():
        own = np.flatnonzero(thread == row)
        if row > 0:
            parts += _of_thread(running, row, own, (start[own], end[own]), thread_spans(trace, row, values))
        else:
            own = own[end[own] > start[own]]
            parts.append(_pieces(own, start[own], end[own], Blame.UNKNOWN))
    none = np.empty(0, np.int64)
    parts.append(_pieces(none, none, none, Blame.UNKNOWN))
    return _BlamePieces.concatenated(parts)


def _pieces(of: _Ints, start: _Ints, end: _Ints, kind: _Ints | int, thread: _Ints | int = 0, value: _Ints | int = 0
            ) -> _BlamePieces:  # fmt: skip
    full = [np.broadcast_to(np.asarray(column, np.int64), of.shape).copy() for column in (kind, thread, value)]
    return _BlamePieces(of.copy(), start, end, *full)


def _of_thread(
    running: _Running, thread: int, own: NDArray[np.intp], ranges: tuple[_Ints, _Ints], spans: LaneSpans,
) -> list[_BlamePieces]:  # fmt: skip
    trace = running.trace
    edges = np.append(spans.start_cycles, spans.end_cycles)
    of, span, start, end = cut_at(*ranges, edges)
    of = own[of]
    value, event = np.asarray(spans.value)[span], np.asarray(spans.event)[span].astype(np.int64)
    cpu = _cpu_of_spans(trace, spans)[span]
    is_unknown = np.isin(value, (UNKNOWN, ABSENT, DEAD)) | (np.isin(value, (READY, RUNNING)) & (cpu < 0))
    some = np.flatnonzero(is_unknown)
    parts = [_pieces(of[some], start[some], end[some], Blame.UNKNOWN)]
    is_on_cpu = ~is_unknown & np.isin(value, (READY, RUNNING))
    for number in np.unique(cpu[is_on_cpu]).tolist():
        some = np.flatnonzero(is_on_cpu & (cpu == number))
        lane, runner, interrupt = running.timeline(number)
        piece, segment, piece_start, piece_end = cut_at(start[some], end[some], lane)
        some = some[piece]
        pieces = _on_cpu(trace, thread, (of[some], piece_start, piece_end), value[some] == RUNNING, runner[segment],
                         interrupt[segment])  # fmt: skip
        is_free = (pieces.kind == Blame.NO_CPU) & (runner[segment] == _IDLE)
        parts.append(_kept_from_cpu(running, thread, number, (pieces, event[some]), is_free))
    some = np.flatnonzero(~is_unknown & ~is_on_cpu)
    kind, who, what = _waits(trace, thread, value[some], event[some])
    parts.append(_pieces(of[some], start[some], end[some], kind, who, what))
    return parts


def _cpu_of_spans(trace: Trace, spans: LaneSpans) -> _Ints:
    """Return for each state of a thread the CPU on which it runs, else runs next, else ran last; -1 = not known."""
    event = np.asarray(spans.event).astype(np.int64)
    runs = np.flatnonzero((np.asarray(spans.value) == RUNNING) & (event != NO_EVENT))
    if not len(runs):
        return np.full(len(spans), -1, np.int64)
    following = np.minimum(np.searchsorted(runs, np.arange(len(spans))), len(runs) - 1)
    cpu = trace.events.cpu[event[runs[following]]].astype(np.int64)
    return np.where(cpu < trace.cpu_count, cpu, -1)


def _on_cpu(
    trace: Trace, thread: int, times: tuple[_Ints, _Ints, _Ints], runs: NDArray[np.bool_], runner: NDArray[np.int32],
    interrupt: _Ints,
) -> _BlamePieces:  # fmt: skip
    kind = np.where(runs, Blame.OWN, np.where((runner > 0) & (runner != thread), Blame.PREEMPTED, Blame.NO_CPU))
    kind[interrupt >= 0] = Blame.INTERRUPT
    is_other = kind == Blame.PREEMPTED
    kind[is_other & writes_trace(trace)[runner]] = Blame.TRACING
    return _pieces(
        times[0], times[1], times[2], kind, np.where(is_other, runner, 0), np.where(interrupt >= 0, interrupt, 0)
    )


def _kept_from_cpu(
    running: _Running, thread: int, cpu: int, of_cpu: tuple[_BlamePieces, _Ints], is_free: NDArray[np.bool_]
) -> _BlamePieces:
    """Return pieces whose `value` is the reason (`Kept`) why the thread runs neither on its CPU nor on an idle one.

    `of_cpu` has the pieces on the thread's CPU and the events that begin its states; `is_free` says in which that CPU
    is idle.
    """
    trace, (pieces, events) = running.trace, of_cpu
    least = trace.clock.cycles_of(_SWITCH_NS)
    is_long, by_budget = pieces.cycles >= least, has_partitions(trace)
    allowed = Kept.BUDGET if by_budget else Kept.UNKNOWN
    pieces.value[is_free & is_long] = allowed | cpu << _KEPT_BITS
    is_open = np.isin(pieces.kind, (Blame.PREEMPTED, Blame.TRACING)) & is_long
    if by_budget and is_open.any():
        open_pieces = np.flatnonzero(is_open)
        open_pieces = open_pieces[_has_lower_priority(trace, cpu, pieces.start[open_pieces], events[open_pieces])]
        pieces.value[open_pieces] = Kept.SPENT | cpu << _KEPT_BITS
        is_open[open_pieces] = False
    out, waiting = [pieces.taken(np.flatnonzero(~is_open))], pieces.taken(np.flatnonzero(is_open))
    files = files_of(trace)
    file = None if files is None else files.part_of_cpu(cpu)
    first_cpu, cpus = (0, trace.cpu_count) if file is None else (file.first_cpu, file.trace.cpu_count)
    for other in range(first_cpu, first_cpu + cpus):  # CPUs of the same target
        if other == cpu or not len(waiting):
            continue
        edges, is_idle = running.idle(other)
        piece, segment, piece_start, piece_end = cut_at(waiting.start, waiting.end, edges)
        outside = waiting.cycles - np.bincount(piece, piece_end - piece_start, len(waiting)).astype(np.int64)
        if outside.any():  # the CPU is not known all the time
            continue
        waiting = replace(waiting.taken(piece), start=piece_start, end=piece_end)
        is_kept = is_idle[segment] & (piece_end - piece_start >= least)
        kept = waiting.taken(np.flatnonzero(is_kept))
        allows = _allows(trace, thread, kept.start, other - first_cpu)
        unlogged = Kept.RUNMASK_OR_BUDGET if by_budget else Kept.UNLOGGED_RUNMASK
        reason = np.select([allows == 0, allows == 1], [Kept.RUNMASK, allowed], unlogged)
        kept.value[:] = reason | other << _KEPT_BITS
        out.append(kept)
        waiting = waiting.taken(np.flatnonzero(~is_kept))
    return _BlamePieces.concatenated([*out, waiting])


def _has_lower_priority(trace: Trace, cpu: int, moments: _Ints, ready: _Ints) -> NDArray[np.bool_]:
    """Return whether a CPU runs, at each moment, a thread of lower priority than one that became ready at an event."""
    rows = run_slices(trace)[0]
    rows = rows[trace.events.cpu[rows] == cpu]
    run = rows[_last(trace.events.time_cycles[rows], moments)]
    derived = TraceDerivedColumns(trace)
    known = ready != NO_EVENT
    own_priority, other_priority = (
        derived.priority(np.where(known, events, 0).astype(np.uint32)) for events in (ready, run)
    )
    return np.asarray(known & (other_priority > 0) & (other_priority < own_priority))


def _allows(trace: Trace, thread: int, moments: _Ints, cpu: int) -> _Ints:
    """Return whether a thread's runmask allows a CPU of its target at each moment, int64 (n,): 1, 0, -1 = not shown."""
    rows, mask = runmasks(trace)
    own = np.flatnonzero(trace.events.thread[rows] == thread)
    last = np.searchsorted(trace.events.time_cycles[rows[own]], moments, side="right") - 1
    return np.where(last >= 0, mask[own][last] >> cpu & 1, -1) if len(own) else np.full(len(moments), -1)


@cached_with_trace("analysis.runmasks")
def runmasks(trace: Trace) -> tuple[_Ints, _Ints]:
    """Return the calls by which threads set their runmasks, and the masks: int64 (n,) each, bit i is CPU i; cached."""
    rows = entries_of(trace, "THREAD_CTL").astype(np.int64)
    (command, has_command), (mask, has_mask) = arguments(trace, rows, "cmd", "data_p")
    sets = has_command & has_mask & (command == _SET_RUNMASK)
    return rows[sets], mask[sets]


@cached_with_trace("analysis.writes_trace")
def writes_trace(trace: Trace) -> NDArray[np.bool_]:
    """Return which threads belong to the program that writes the trace, bool (threads,); cached with the trace."""
    return of_logger(trace)[trace.threads.process]


def _waits(trace: Trace, thread: int, value: NDArray[np.uint8], event: _Ints) -> tuple[_Ints, _Ints, _Ints]:
    """Return kind, awaited thread (0 = not known) and object (as `BlameParts.value`) of waits of a thread."""
    kind, who = np.full(len(value), Blame.WAIT, np.int64), np.zeros(len(value), np.int64)
    what = value.astype(np.int64)
    kind[value == _NANOSLEEP] = Blame.SLEEP
    is_lock, is_message = np.isin(value, (MUTEX, *RWLOCKS)), np.isin(value, (SEND, REPLY))
    kind[is_lock], kind[is_message] = Blame.LOCK, Blame.MESSAGE
    what[value == _NANOSLEEP] = 0
    what[is_lock | is_message] = -1
    blocked_by = blockers(trace)
    begin, stop = np.searchsorted(blocked_by.waits.thread, (thread, thread + 1)).tolist()
    rows = blocked_by.waits.row[begin:stop].astype(np.int64)
    if not len(rows):
        return kind, who, what
    wait = np.minimum(np.searchsorted(rows, event), len(rows) - 1)
    known = np.flatnonzero(rows[wait] == event)
    wait = wait[known] + begin
    who[known] = np.maximum(blocked_by.thread[wait], 0)
    lock = is_lock[known] & blocked_by.waits.has_object[wait]
    what[known[lock]] = blocked_by.waits.object[wait[lock]]
    sent = is_message[known]
    what[known[sent]] = blocked_by.pid[wait[sent]]
    free = np.flatnonzero(who[known] == 0)
    in_send = free[value[known[free]] == SEND]
    who[known[in_send]] = _receivers(trace, thread, event[known[in_send]])
    other = free[(kind[known[free]] == Blame.WAIT) & (blocked_by.waits.end_row[wait[free]] != OPEN)]
    who[known[other]] = _wakers(trace, blocked_by.waits.end_row[wait[other]])
    return kind, who, what


def _receivers(trace: Trace, thread: int, blocked: _Ints) -> _Ints:
    """Return for each wait of a thread in SEND the thread that later receives its message, int64 (n,); 0 = none."""
    out = np.zeros(len(blocked), np.int64)
    if not len(blocked):
        return out
    sent = last_sends(trace, np.full(len(blocked), thread), blocked.astype(np.uint32))
    received = np.full(len(blocked), NO_EVENT, np.uint32)
    received[sent != NO_EVENT] = messages(trace).ends_of(sent[sent != NO_EVENT])
    known = (received != NO_EVENT) & (received != OPEN)
    out[known] = trace.events.thread[received[known]]
    return out


def _wakers(trace: Trace, ends: NDArray[np.uint32]) -> _Ints:
    """Return the thread that ended each wait, int64 (n,); 0 for timers, interrupts and unknown causes."""
    out = np.zeros(len(ends), np.int64)
    table = wake_ups(trace)
    link = table.ended_by(ends)
    known = np.flatnonzero(link >= 0)
    cause = table.from_row[link[known]]
    given = deliveries(trace)
    sent = given.ended_by(cause)
    cause[sent >= 0] = given.from_row[sent[sent >= 0]]
    code = trace.events.code[cause]
    is_thread = (code != TIMER_EVENT) & (code >> wire.CLASS_SHIFT != wire.WireClass.INT)
    out[known[is_thread]] = trace.events.thread[cause[is_thread]]
    return out
