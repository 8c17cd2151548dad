"""Counts and times of events, kernel calls, interrupts and messages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.basis import Rows, Runs, Scope, codes_where, largest_by, percentile_by, sum_by
from satview.base.column_arrays import ColumnTable
from satview.core import statistics
from satview.events import wire
from satview.events.states import STATE_BY_NAME
from satview.events.wire import CODE_COUNT, WireClass
from satview.filters.expressions.compiled import RowColumns
from satview.linkage.rows import rows_where
from satview.linkage.table import NO_EVENT, LinkKind
from satview.linkage.transactions import transactions
from satview.store.arguments import logged_codes_with
from satview.store.time_ranges import Cycles
from satview.store.trace import Trace

# Counts of events by kind, with the first and last of each, and by thread.


IS_CALL: Final = codes_where(lambda kind, event: (kind == WireClass.KER_CALL) & (event & wire.KER_FORM == 0))
IS_SEND: Final = codes_where(lambda kind, event: (kind == WireClass.COMM) & (event == 0))
IS_RECEIVE: Final = codes_where(lambda kind, event: (kind == WireClass.COMM) & (event == 2))
# What an event is to its thread: 1 a call, 2 a message sent, 3 one received, 0 anything else.
_ROLE: Final = (IS_CALL + 2 * IS_SEND.astype(np.uint8) + 3 * IS_RECEIVE.astype(np.uint8)).astype(np.uint8)
_ROLES: Final = 4


@dataclass(frozen=True, slots=True)
class EventKinds:
    """One row per kind of event that occurs, by code.

    Attributes:
        code: int64, (n,), internal class and event (`events.wire.code`).
        count: int64, events that count.
        first, last: int64, rows of the first and the last of them.
    """

    code: NDArray[np.int64]
    count: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.code)


@dataclass(frozen=True, slots=True)
class ThreadCounts:
    """Numbers of events of each thread; every column int64 (threads,).

    Attributes:
        events: Changes of state of the thread, and events logged while it ran.
        calls: Kernel calls that the thread entered.
        sent: Messages that the thread sent.
        received: Messages that the thread received.
    """

    events: NDArray[np.int64]
    calls: NDArray[np.int64]
    sent: NDArray[np.int64]
    received: NDArray[np.int64]


def event_counts(scope: Scope) -> tuple[EventKinds, ThreadCounts]:
    """Return the counts of events by kind and by thread, from one pass over the events of the range."""
    events, threads = scope.trace.events, len(scope.trace.threads)
    sums = count, earliest, latest, by_thread = (
        *np.zeros((3, CODE_COUNT), np.int64),
        np.zeros((threads, _ROLES), np.int64),
    )
    for part in scope.chunks():
        code, thread = events.code[part], events.thread[part]
        if scope.passes is None:
            statistics.event_counts(code, thread, part.start, _ROLE, sums)
        else:
            keep = np.flatnonzero(scope.passes[part])
            _count(code[keep], thread[keep], keep + part.start, sums)
    seen = np.flatnonzero(count)
    return (
        EventKinds(seen, count[seen], earliest[seen], latest[seen]),
        ThreadCounts(by_thread.sum(axis=1), *by_thread.T[1:]),
    )


def _count(
    code: NDArray[np.uint16], thread: NDArray[np.unsignedinteger], row: NDArray[np.int64], sums: statistics.EventSums
) -> None:
    """Add selected events, with ascending rows, to the sums of `statistics.event_counts`."""
    count, earliest, latest, by_thread = sums
    here = np.bincount(code, minlength=CODE_COUNT)
    if np.any((here > 0) & (count == 0)):
        fresh = count[code] == 0
        earliest[code[fresh][::-1]] = row[fresh][::-1]  # backwards, so that the earliest is written last
    latest[code] = row
    count += here
    of_roles = np.bincount(thread * np.intp(_ROLES) + _ROLE[code], minlength=by_thread.size)
    by_thread += of_roles.reshape(by_thread.shape)


# Run time of threads between two moments, such as the begin and end of a kernel call or a service.


_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RunSums:
    """Cumulative run time of threads; moments are given as indices in `time`, which holds all moments of interest.

    Attributes:
        time: int64, cycles, ascending: the moments themselves.
        key: int64, (n,), thread << 32 | moment at which a run begins, ascending.
        end: int64, cycles, when each run ends.
        before: int64, (n + 1,), total length of all runs before each run, of all threads.
        start: int64, (threads + 1,), index of the first run of each thread.
    """

    time: Cycles
    key: _Ints
    end: Cycles
    before: Cycles
    start: _Ints

    @classmethod
    def of(cls, runs: Runs, some: NDArray[np.intp], start: Cycles, end: Cycles, time: Cycles, threads: int) -> RunSums:
        """Return the cumulative running time of each thread, in which only some of the runs count.

        Args:
            runs: All runs.
            some: Positions of the runs that count.
            start: int64, begins of all runs, cycles; cut at a range if needed.
            end: int64, ends of all runs.
            time: int64, ascending: every moment that will be queried, and every start of a run.
            threads: Number of rows of the thread table.
        """
        order = np.lexsort((start[some], runs.thread[some]))
        thread, start, end = runs.thread[some][order], start[some][order], end[some][order]
        return cls(time, thread << 32 | np.searchsorted(time, start), end, np.append(0, np.cumsum(end - start)),
                   np.searchsorted(thread, np.arange(threads + 1)))  # fmt: skip

    def total(self, threads: int) -> Cycles:
        """Return how long each thread ran, int64 (threads,)."""
        return np.asarray(np.diff(self.before[self.start]))[:threads]

    def between(self, thread: _Ints, begin: _Ints, end: _Ints) -> Cycles:
        """Return how long threads ran between moments, cycles of the same shape."""
        return self._up_to(thread, end) - self._up_to(thread, begin)

    def _up_to(self, thread: _Ints, moment: _Ints) -> Cycles:
        position = np.searchsorted(self.key, thread << 32 | moment)
        begun = position > self.start[thread]
        beyond = np.zeros(len(thread), np.int64)
        beyond[begun] = np.maximum(self.end[position[begun] - 1] - self.time[moment[begun]], 0)
        return self.before[position] - self.before[self.start[thread]] - beyond


# Kernel calls and interrupts: how often, how long, how late, and how they ended.


CALL_NUMBERS: Final = 128
_INTERRUPTED: Final = 2  # kind of a kernel call's event in bits 7 and 8 of its number
_ENTRY_KINDS: Final = (1, 5, 7)  # 32 and 64 bits; INT_DELIVER of 8.0, which has no exit
IS_INTERRUPT: Final = codes_where(lambda kind, event: (kind == WireClass.INT) & np.isin(event, _ENTRY_KINDS))
_P99: Final = 0.99


@dataclass(frozen=True, slots=True)
class Durations(ColumnTable):
    """Durations by key, of occurrences whose end is in the trace; every column int64 (n,), 0 for keys without any.

    Attributes:
        count: Occurrences with a known time.
        total_cycles, least_cycles, most_cycles: Sum, shortest, longest.
        p99_cycles: 99 % took at most that long.
        longest: Row of the event that began the longest; -1 = none.
    """

    count: NDArray[np.int64]
    total_cycles: Cycles
    least_cycles: Cycles
    most_cycles: Cycles
    p99_cycles: Cycles
    longest: NDArray[np.int64]

    @classmethod
    def of(cls, keys: NDArray[np.int64], cycles: Cycles, rows: Rows, count: int) -> Durations:
        """Return the times of each key below `count`; negative times are unknown and left out."""
        known = cycles >= 0
        keys, cycles, rows = keys[known], cycles[known], rows[known]
        most, position = largest_by(keys, cycles, count)
        least = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(least, keys, cycles)
        number = np.bincount(keys, minlength=count)
        longest = np.where(position >= 0, rows[position], -1) if len(rows) else np.full(count, -1)
        return cls(
            number,
            sum_by(keys, cycles, count),
            np.where(number > 0, least, 0),
            most,
            percentile_by(keys, cycles, count, _P99),
            longest,
        )

    @property
    def mean_cycles(self) -> Cycles:
        """Sum divided by count, rounded down; 0 without occurrences."""
        return self.total_cycles // np.maximum(self.count, 1)


@dataclass(frozen=True, slots=True)
class CallTable:
    """One row per kind of kernel call that was entered in the range, by the number of the call.

    Attributes:
        code: int64, (n,), code of its entry, 32-bit form; both widths are counted together.
        count: int64, number of entries in the range that pass the filters.
        times: From entry to exit, not cut, even if the exit is after the range.
        running: The part of `times` in which the caller had a CPU: a blocking call returns when its thread runs again.
            Source: building block M4 of the reference.
        failed: int64, calls that returned with an error.
        interrupted: int64, calls that ended in their interrupted form.
        errors: Error numbers of each, with their counts, the most frequent first.
        first: int64, row of the first entry.
    """

    code: NDArray[np.int64]
    count: NDArray[np.int64]
    times: Durations
    running: Durations
    failed: NDArray[np.int64]
    interrupted: NDArray[np.int64]
    errors: tuple[tuple[tuple[int, int], ...], ...]
    first: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.code)


@dataclass(frozen=True, slots=True)
class InterruptTable:
    """One row per interrupt vector that was entered in the range.

    Attributes:
        vector: int64, (n,), number of the interrupt as the entry shows it.
        count: int64, number of entries in the range that pass the filters.
        times: From entry to exit, nested interrupts included.
        latency: From entry to the entry of the first handler.
        first: int64, row of the first entry.
        cpus: Numbers of the CPUs that were interrupted, ascending.
    """

    vector: NDArray[np.int64]
    count: NDArray[np.int64]
    times: Durations
    latency: Durations
    first: NDArray[np.int64]
    cpus: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.vector)


@dataclass(frozen=True, slots=True)
class KernelCalls:
    """Kernel calls that were entered in a range, in time order; every column has shape (n,).

    Attributes:
        row: int64, the event of the entry.
        exit_row: int64, the event that ends the call; -1 where that is not in the trace or not sure.
        number: int64, number of the call, 0 to 127.
        cycles: int64, from entry to exit; -1 without exit.
        running_cycles: int64, the part of `cycles` in which the caller had a CPU; -1 if not known.
        is_interrupted: bool, the call ended in its interrupted form.
        is_failed: bool, the call returned with an error.
        error: int64, the error's number; 0 for calls that did not fail.
    """

    row: NDArray[np.int64]
    exit_row: NDArray[np.int64]
    number: NDArray[np.int64]
    cycles: Cycles
    running_cycles: Cycles
    is_interrupted: NDArray[np.bool_]
    is_failed: NDArray[np.bool_]
    error: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class InterruptTimes:
    """Interrupts that were entered in a range, in time order; every column has shape (n,).

    Attributes:
        row: int64, the event of the entry; in 8.0 the delivery, which has no exit.
        exit_row: int64, the event of the exit; -1 where that is not in the trace or not sure.
        handler_row: int64, the entry of the first handler; -1 where that is not in the trace or not sure.
        vector: int64, number of the interrupt as the entry shows it.
        cycles: int64, from entry to exit; -1 without exit.
        latency_cycles: int64, from entry to the entry of the first handler; -1 without one.
    """

    row: NDArray[np.int64]
    exit_row: NDArray[np.int64]
    handler_row: NDArray[np.int64]
    vector: NDArray[np.int64]
    cycles: Cycles
    latency_cycles: Cycles


def kernel_calls(scope: Scope) -> KernelCalls:
    """Return the kernel calls of a range, one by one."""
    enters = np.asarray(scope.selected(IS_CALL), np.int64)
    code = scope.trace.events.code
    cycles, exits = scope.lengths(enters)
    known = np.flatnonzero(exits >= 0)
    known = known[np.argsort(exits[known])]
    was_interrupted, has_failed = np.zeros(len(enters), np.bool_), np.zeros(len(enters), np.bool_)
    was_interrupted[known] = code[exits[known]] >> 7 & 3 == _INTERRUPTED
    error = np.zeros(len(enters), np.int64)
    errors, failed = RowColumns(scope.trace, scope.basis.derived, exits[known]).errors()
    has_failed[known] = failed
    error[known] = np.where(failed, errors, 0)
    number = (code[enters] & (CALL_NUMBERS - 1)).astype(np.int64)
    return KernelCalls(
        enters, exits, number, cycles, _running(scope, enters, exits), was_interrupted, has_failed, error
    )


def call_times(scope: Scope) -> CallTable:
    """Return the kernel calls of a range, summed per call."""
    calls = kernel_calls(scope)
    number = calls.number
    failed, errors = _errors(number[calls.is_failed], calls.error[calls.is_failed])
    seen = np.flatnonzero(np.bincount(number, minlength=CALL_NUMBERS))
    return CallTable(
        wire.code(WireClass.KER_CALL, 0) | seen,
        np.bincount(number, minlength=CALL_NUMBERS)[seen],
        Durations.of(number, calls.cycles, calls.row, CALL_NUMBERS).taken(seen),
        Durations.of(number, calls.running_cycles, calls.row, CALL_NUMBERS).taken(seen),
        failed[seen],
        np.bincount(number[calls.is_interrupted], minlength=CALL_NUMBERS)[seen],
        tuple(errors[i] for i in seen.tolist()),
        _first_of(number, calls.row, CALL_NUMBERS)[seen],
    )


def _running(scope: Scope, enters: Rows, exits: Rows) -> Cycles:
    """Return how long the caller of each kernel call had a CPU within it, int64 (n,); -1 where that is not known."""
    trace, runs = scope.trace, scope.basis.runs
    out = np.full(len(enters), -1, np.int64)
    thread = trace.events.thread[enters].astype(np.int64)
    known = np.flatnonzero((exits >= 0) & (thread > 0))
    lasting = np.flatnonzero((runs.thread > 0) & (runs.end > runs.start))
    if not len(known) or not len(lasting):
        return out
    begin, end = (trace.events.time_cycles[rows[known]] for rows in (enters, exits))
    time = np.sort(np.concatenate((begin, end, runs.start[lasting])))
    sums = RunSums.of(runs, lasting, runs.start, runs.end, time, len(trace.threads))
    out[known] = sums.between(thread[known], np.searchsorted(time, begin), np.searchsorted(time, end))
    return out


def _errors(
    number: NDArray[np.int64], error: NDArray[np.int64]
) -> tuple[NDArray[np.int64], list[tuple[tuple[int, int], ...]]]:
    """Return how many calls of each number failed, and their errors with counts."""
    by_number: list[list[tuple[int, int]]] = [[] for _ in range(CALL_NUMBERS)]
    pairs, counts = np.unique(number << 32 | error & 0xFFFFFFFF, return_counts=True)
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        by_number[pair >> 32].append(
            ((pair & 0xFFFFFFFF ^ 1 << 31) - (1 << 31), count)
        )  # signed, as the details show it
    ranked = [tuple(sorted(entries, key=lambda entry: -entry[1])) for entries in by_number]
    return np.bincount(number, minlength=CALL_NUMBERS), ranked


def interrupts(scope: Scope) -> InterruptTimes:
    """Return the interrupts of a range, one by one."""
    enters = np.asarray(scope.selected(IS_INTERRUPT), np.int64)
    vector = scope.trace.payloads.column(enters, 0).astype(np.int64)
    cycles, exits = scope.lengths(enters, LinkKind.INTERRUPT)
    latency, handlers = scope.lengths(enters, LinkKind.DISPATCH)
    return InterruptTimes(enters, exits, handlers, vector, cycles, latency)


def interrupt_times(scope: Scope) -> InterruptTable:
    """Return the interrupts of a range, summed per vector."""
    handled = interrupts(scope)
    vectors, number = np.unique(handled.vector, return_inverse=True)
    number = number.astype(np.int64)
    count = len(vectors)
    pairs = np.unique(number << 8 | scope.trace.events.cpu[handled.row]) if count else np.empty(0, np.int64)
    cpus = tuple(tuple((pairs[pairs >> 8 == i] & 0xFF).tolist()) for i in range(count))
    return InterruptTable(
        vectors,
        np.bincount(number, minlength=count),
        Durations.of(number, handled.cycles, handled.row, count),
        Durations.of(number, handled.latency_cycles, handled.row, count),
        _first_of(number, handled.row, count),
        cpus,
    )


def _first_of(keys: NDArray[np.int64], rows: Rows, count: int) -> NDArray[np.int64]:
    """Return the first of the ascending rows of each key, -1 for keys without one."""
    earliest = np.full(count, -1, np.int64)
    earliest[keys[::-1]] = rows[::-1]
    return earliest


# Sizes of messages.


SIZE: Final = "info->msglen"  # of a wide exit of MSG_RECEIVEV
SIZE_CLASS: Final = "KER_EXIT"
FAST_WORDS: Final = 2


def has_sizes(trace: Trace) -> bool:
    """Return whether any event of a trace shows the size of a message: an exit of MSG_RECEIVEV that was logged wide."""
    exits = rows_where(trace, logged_codes_with(trace, SIZE, SIZE_CLASS))
    return bool(len(exits)) and bool(np.any(trace.payloads.word_counts(exits) > FAST_WORDS))


_SEND: Final = STATE_BY_NAME["SEND"].value
_REPLY: Final = STATE_BY_NAME["REPLY"].value
_PID_WORD: Final = 1  # of SND_MESSAGE and REC_MESSAGE: rcvid, pid of the receiver


@dataclass(frozen=True, slots=True)
class MessageTable:
    """One row per client thread and server process to which the thread sent messages within the range.

    Attributes:
        client: int64, (n,), row of the thread table; 0 = not known.
        server_pid: int64, pid of the receiver; 0 = on another node, -1 = the send failed.
        count: int64, SND_MESSAGE events that count.
        sized: int64, messages with a known size: received within the range by a MSG_RECEIVEV that was logged wide.
        bytes: int64, sum of these sizes.
        send_blocked: Times in state SEND, from the send until the server received it.
        reply_blocked: Times in state REPLY.
        first: int64, row of the first SND_MESSAGE.
    """

    client: NDArray[np.int64]
    server_pid: NDArray[np.int64]
    count: NDArray[np.int64]
    sized: NDArray[np.int64]
    bytes: NDArray[np.int64]
    send_blocked: Durations
    reply_blocked: Durations
    first: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.client)


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages that were sent within a range, in time order; every column has shape (n,).

    Attributes:
        row: int64, SND_MESSAGE.
        send_blocked_cycles: int64, how long the client was in state SEND; -1 = not at all, or not known.
        reply_blocked_cycles: int64, how long the client was in state REPLY; -1 as for SEND.
        size_bytes: int64, size of the message, as reported to its receiver; -1 = not logged.
    """

    row: NDArray[np.int64]
    send_blocked_cycles: Cycles
    reply_blocked_cycles: Cycles
    size_bytes: NDArray[np.int64]


def sent_messages(scope: Scope) -> Messages:
    """Return the messages that were sent within the range, one by one."""
    sends = np.asarray(scope.selected(IS_SEND), np.int64)
    return Messages(sends, *_blocked(scope, sends), _sizes(scope, sends))


def message_times(scope: Scope) -> MessageTable:
    """Return the messages that were sent within the range, summed per client thread and server process."""
    events, payloads = scope.trace.events, scope.trace.payloads
    sent = sent_messages(scope)
    sends = sent.row
    pids = payloads.column(sends, _PID_WORD).view(np.int32).astype(np.int64)
    keys, number = np.unique(events.thread[sends].astype(np.int64) << 32 | pids & 0xFFFFFFFF, return_inverse=True)
    number, count = number.astype(np.int64), len(keys)
    sizes = sent.size_bytes
    earliest = np.zeros(count, np.int64)
    earliest[number[::-1]] = sends[::-1]
    known = sizes >= 0
    return MessageTable(
        keys >> 32,
        (keys & 0xFFFFFFFF).astype(np.uint32).view(np.int32).astype(np.int64),
        np.bincount(number, minlength=count),
        np.bincount(number[known], minlength=count),
        sum_by(number[known], sizes[known], count),
        Durations.of(number, sent.send_blocked_cycles, sends, count),
        Durations.of(number, sent.reply_blocked_cycles, sends, count),
        earliest,
    )


def _blocked(scope: Scope, sends: Rows) -> tuple[Cycles, Cycles]:
    """Return how long the clients were in SEND and in REPLY for some messages; -1 = not at all, or not known."""
    exchanges = transactions(scope.trace)
    blocks = exchanges.blocked_row[np.searchsorted(exchanges.send_row, sends)]
    blocks[(blocks < 0) | (blocks >= scope.rows.stop)] = NO_EVENT
    send, after = _in_state(scope, blocks, _SEND)
    reply, _ = _in_state(scope, np.where(_is_into(scope, blocks, _SEND), after, blocks), _REPLY)
    return send, reply


def _is_into(scope: Scope, changes: Rows, state: int) -> NDArray[np.bool_]:
    """Return which changes of state, `NO_EVENT` for none, lead into a state."""
    trace, out = scope.trace, changes != NO_EVENT
    out[out] = trace.catalogue.state_value_of_code[trace.events.code[changes[out]]] == state
    return np.asarray(out)


def _in_state(scope: Scope, changes: Rows, state: int) -> tuple[Cycles, Rows]:
    """Return how long a state lasts if a change leads into it, and the thread's change that ends it.

    -1 and `NO_EVENT` for changes into other states, and where the end is not known.
    """
    entering = np.flatnonzero(_is_into(scope, changes, state))
    cycles, after = np.full(len(changes), -1, np.int64), np.full(len(changes), NO_EVENT, np.int64)
    cycles[entering], ends = scope.lengths(changes[entering], LinkKind.STATE)
    after[entering] = np.where(ends < 0, NO_EVENT, ends)
    return cycles, after


def _sizes(scope: Scope, sends: Rows) -> NDArray[np.int64]:
    """Return the bytes of messages, as reported to their receivers when MSG_RECEIVEV came back; -1 = not logged."""
    sizes = np.full(len(sends), -1, np.int64)
    trace, events = scope.trace, scope.trace.events
    if not len(sends) or not has_sizes(trace):
        return sizes
    _, received = scope.lengths(sends, LinkKind.MESSAGE)
    received[received >= scope.rows.stop] = -1
    # Exits have the sizes, whether the mask of events selects them or not.
    exits = replace(scope, passes=None).selected(logged_codes_with(trace, SIZE, SIZE_CLASS))
    exits = exits[trace.payloads.word_counts(exits) > FAST_WORDS]
    key = events.thread[exits].astype(np.int64) << 32 | exits
    order = np.argsort(key)
    known_rows = np.flatnonzero(received >= 0)
    requested = events.thread[received[known_rows]].astype(np.int64) << 32 | received[known_rows]
    position = np.searchsorted(key[order], requested)
    known_rows, position = known_rows[position < len(key)], position[position < len(key)]
    exit_rows = exits[order[position]]
    same = events.thread[exit_rows] == events.thread[received[known_rows]]
    known_rows, exit_rows = known_rows[same], exit_rows[same]
    by_row = np.argsort(exit_rows)
    value, known = RowColumns(trace, scope.basis.derived, exit_rows[by_row]).argument(SIZE)
    sizes[known_rows[by_row]] = np.where(known, value, -1)
    return sizes
