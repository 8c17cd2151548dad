"""Counts, times and single durations of events, kernel calls, interrupts, messages and waits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.basis import (
    Mask,
    Rows,
    Runs,
    Scope,
    codes_where,
    largest_by,
    percentile_by,
    percentiles_by,
    sum_by,
)
from satview.analysis.times.state_times import activations, runs_are_cut, state_spans, states_are_cut
from satview.base.column_arrays import ColumnTable
from satview.core import statistics
from satview.events import wire
from satview.events.states import DEAD, FIRST_PROCESS, READY, RUNNING, STATE_BY_NAME, STATE_BY_VALUE
from satview.events.wire import CODE_COUNT, WireClass
from satview.filters.expressions.compiled import RowColumns
from satview.linkage.links import NO_EVENT, LinkKind, rows_where
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
    """One row per kind of event that occurs; the forms with 32-bit and 64-bit arguments are one kind.

    Attributes:
        code: int64, (n,), internal class and event (`events.wire.code`), of the 32-bit form if it occurs.
        count: int64, number of events in the range that pass the filters.
        first, last: int64, rows of the first and the last of these events.
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
    book, seen, kind_of_name = scope.trace.catalogue, np.flatnonzero(count), dict[tuple[str, str], int]()
    kind = [kind_of_name.setdefault((book.class_name(code), book.name(code)), code) for code in seen.tolist()]
    codes, kinds = np.unique(np.array(kind, np.int64), return_inverse=True)
    total, first, last = np.zeros_like(codes), np.full(len(codes), np.iinfo(np.int64).max), np.zeros_like(codes)
    np.add.at(total, kinds, count[seen])
    np.minimum.at(first, kinds, earliest[seen])
    np.maximum.at(last, kinds, latest[seen])
    return EventKinds(codes, total, first, last), ThreadCounts(by_thread.sum(axis=1), *by_thread.T[1:])


def _count(
    code: NDArray[np.uint16], thread: NDArray[np.unsignedinteger], row: NDArray[np.int64], sums: statistics.EventSums
) -> None:
    """Add events, in time order, to the sums of `event_counts`, which are changed in place."""
    count, earliest, latest, by_thread = sums
    in_block = np.bincount(code, minlength=CODE_COUNT)
    if np.any((in_block > 0) & (count == 0)):
        fresh = count[code] == 0
        earliest[code[fresh][::-1]] = row[fresh][::-1]  # backwards, so that the earliest is written last
    latest[code] = row
    count += in_block
    of_roles = np.bincount(thread * np.intp(_ROLES) + _ROLE[code], minlength=by_thread.size)
    by_thread += of_roles.reshape(by_thread.shape)


# Run time of threads between two moments, such as the start and end of a kernel call or a service.


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
            start: int64, starts of all runs, cycles; cut at a range if needed.
            end: int64, ends of all runs.
            time: int64, ascending: every moment that will be queried, and every start of a run.
            threads: Number of rows of the thread table.
        """
        order = np.lexsort((start[some], runs.thread[some]))
        thread, start, end = runs.thread[some][order], start[some][order], end[some][order]
        return cls(time, thread << 32 | np.searchsorted(time, start), end, np.append(0, np.cumsum(end - start)),
                   np.searchsorted(thread, np.arange(threads + 1)))  # fmt: skip

    def total(self, threads: int) -> Cycles:
        """Return how long each thread ran, cycles, int64 (threads,)."""
        return np.asarray(np.diff(self.before[self.start]))[:threads]

    def between(self, thread: _Ints, begin: _Ints, end: _Ints) -> Cycles:
        """Return how long each thread ran between two moments, cycles, same shape as the arguments."""
        return self._up_to(thread, end) - self._up_to(thread, begin)

    def _up_to(self, thread: _Ints, moment: _Ints) -> Cycles:
        position = np.searchsorted(self.key, thread << 32 | moment)
        has_begun = position > self.start[thread]
        beyond = np.zeros(len(thread), np.int64)
        beyond[has_begun] = np.maximum(self.end[position[has_begun] - 1] - self.time[moment[has_begun]], 0)
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
        """Return statistics of durations for each key.

        Args:
            keys: int64 (n,), key of each duration, from 0 to `count` - 1.
            cycles: int64 (n,), the durations; negative ones are unknown and left out.
            rows: int64 (n,), event that stands for each duration; that of the longest is in the result.
            count: Number of keys.
        """
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
    """Return the kernel calls that were entered in the range; each column has an element for each call."""
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
    """Return the kernel calls of a range, summed per kind of call."""
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
    """Return how long the caller of each kernel call had a CPU within it, cycles, int64 (n,); -1 = not known."""
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
    """Return by number of a kernel call how many calls failed, int64 (128,), and their errors: pairs (error, count)."""
    by_number: list[list[tuple[int, int]]] = [[] for _ in range(CALL_NUMBERS)]
    pairs, counts = np.unique(number << 32 | error & 0xFFFFFFFF, return_counts=True)
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        signed = (pair & 0xFFFFFFFF ^ 1 << 31) - (1 << 31)  # as the details show it
        by_number[pair >> 32].append((signed, count))
    ranked = [tuple(sorted(entries, key=lambda entry: -entry[1])) for entries in by_number]
    return np.bincount(number, minlength=CALL_NUMBERS), ranked


def interrupts(scope: Scope) -> InterruptTimes:
    """Return the interrupts that were entered in the range; each column has an element for each interrupt."""
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
    """Return the first row of each key below `count`, int64 (count,); -1 for keys without one."""
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
    """Return the messages that were sent in the range; each column has an element for each message."""
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
    known = sizes >= 0
    return MessageTable(
        keys >> 32,
        (keys & 0xFFFFFFFF).astype(np.uint32).view(np.int32).astype(np.int64),
        np.bincount(number, minlength=count),
        np.bincount(number[known], minlength=count),
        sum_by(number[known], sizes[known], count),
        Durations.of(number, sent.send_blocked_cycles, sends, count),
        Durations.of(number, sent.reply_blocked_cycles, sends, count),
        _first_of(number, sends, count),
    )


def _blocked(scope: Scope, sends: Rows) -> tuple[Cycles, Cycles]:
    """Return how many cycles the clients were in SEND and in REPLY for each message; -1 = not at all, or not known."""
    exchanges = transactions(scope.trace)
    blocks = exchanges.blocked_row[np.searchsorted(exchanges.send_row, sends)]
    blocks[(blocks < 0) | (blocks >= scope.rows.stop)] = NO_EVENT
    send, after = _in_state(scope, blocks, _SEND)
    reply, _ = _in_state(scope, np.where(_is_into(scope, blocks, _SEND), after, blocks), _REPLY)
    return send, reply


def _is_into(scope: Scope, changes: Rows, state: int) -> NDArray[np.bool_]:
    """Return which state events of threads (`NO_EVENT` = none) begin a given state, bool (n,)."""
    trace, out = scope.trace, changes != NO_EVENT
    out[out] = trace.catalogue.state_value_of_code[trace.events.code[changes[out]]] == state
    return np.asarray(out)


def _in_state(scope: Scope, changes: Rows, state: int) -> tuple[Cycles, Rows]:
    """Return for how long threads stay in a state that events begin, -1 = unknown, and what ends it, or `NO_EVENT`."""
    entering = np.flatnonzero(_is_into(scope, changes, state))
    cycles, after = np.full(len(changes), -1, np.int64), np.full(len(changes), NO_EVENT, np.int64)
    cycles[entering], ends = scope.lengths(changes[entering], LinkKind.STATE)
    after[entering] = np.where(ends < 0, NO_EVENT, ends)
    return cycles, after


def _sizes(scope: Scope, sends: Rows) -> NDArray[np.int64]:
    """Return the bytes of each message as reported when the receiver's MSG_RECEIVEV returns; -1 = not logged."""
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


# Single durations of one kind: run slices, waits by state, kernel calls, message legs, interrupts.
#
# These are the values that statistics sum per thread or call, for histograms and percentiles. An occurrence belongs to
# the window in which it begins and is not cut at its end. If the start or end is not in the trace, the occurrence is
# counted but has no duration.


_BINS_PER_DECADE: Final = (40, 20, 10, 5)
_MOST_BINS: Final = 80
SHARES: Final = (0.5, 0.9, 0.99, 0.999)
_MESSAGE_LEGS: Final = {
    "queued": ("Message queued", "queued_cycles"),
    "service": ("Message service", "service_cycles"),
    "round_trip": ("Message round trip", "round_trip_cycles"),
}
_NO_WAIT: Final = frozenset({RUNNING, READY, DEAD})


@dataclass(frozen=True, slots=True)
class Measure:
    """A kind of duration for histograms.

    Attributes:
        key: Name of the measure: `run`, `response`, `period`, `state:NAME`, `call`, `call:NAME`, `queued`, `service`,
            `round_trip`, `interrupt` or `latency`.
        title: Display title.
        capture: Events that a capture needs for this measure, as text.
        is_of_threads: False for interrupts, which belong to no thread.
    """

    key: str
    title: str
    capture: str
    is_of_threads: bool = True


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Occurrences of one kind that begin in a window, unsorted.

    Attributes:
        cycles: int64, (n,), how long each took; at least 0.
        start: int64, (n,), when each began, in cycles.
        thread: int64, (n,), row of the thread table; 0 = not known.
        event: int64, (n,), row of the event that began each; -1 = `event_of` finds the event.
        unfinished: Number of further occurrences whose start or end is not in the trace.
    """

    cycles: Cycles
    start: Cycles
    thread: NDArray[np.int64]
    event: NDArray[np.int64]
    unfinished: int

    def __len__(self) -> int:
        return len(self.cycles)

    def percentiles(self, shares: tuple[float, ...] = SHARES) -> tuple[int, ...]:
        """Return for each share the shortest time that this share of the occurrences does not exceed, in cycles."""
        key = np.zeros(len(self), np.uint8)
        return tuple(int(cycles[0]) for cycles in percentiles_by(key, self.cycles, 1, shares))

    def longest(self, count: int, among: Mask | None = None) -> NDArray[np.int64]:
        """Return the indices of the longest occurrences, longest first, equal ones in time order, int64 (k,).

        Args:
            count: Maximum number of positions.
            among: bool (n,), whether each occurrence may be returned; None = all.
        """
        positions = np.arange(len(self)) if among is None else np.flatnonzero(among)
        if len(positions) > count:  # sorting millions of rows would take noticeably long
            least = np.partition(self.cycles[positions], len(positions) - count)[len(positions) - count]
            positions = positions[self.cycles[positions] >= least]
        return positions[np.lexsort((self.start[positions], -self.cycles[positions]))][:count]


def measures(trace: Trace) -> tuple[Measure, ...]:
    """Return the measures that may have durations in a trace; only states and kernel calls that occur in it."""
    offered = [
        Measure("run", "Run slice", "THREAD events"),
        Measure("response", "Response: from ready to the next wait", "THREAD events"),
        Measure("period", "Period: from one activation to the next", "THREAD events"),
        Measure("state:READY", "READY: wait for a CPU", "THREAD events"),
    ]
    values = trace.catalogue.state_value_of_code[np.flatnonzero(trace.code_counts)]
    states = [STATE_BY_VALUE[value] for value in np.unique(values).tolist() if value in STATE_BY_VALUE]
    offered += [
        Measure(f"state:{state.name}", f"{state.name}: {state.meaning}", "THREAD events")
        for state in states
        if state.value not in _NO_WAIT
    ]
    offered.append(Measure("call", "Kernel call, any", "KER_CALL and KER_EXIT events"))
    offered += [
        Measure(f"call:{name}", f"Kernel call {name}", "KER_CALL and KER_EXIT events") for name in _calls(trace)
    ]
    offered += [Measure(key, title, "COMM events") for key, (title, _) in _MESSAGE_LEGS.items()]
    offered.append(Measure("interrupt", "Interrupt, entry to exit", "INTERRUPT events", False))
    offered.append(Measure("latency", "Interrupt, entry to first handler", "INTERRUPT events", False))
    return tuple(offered)


def occurrences(scope: Scope, key: str, threads: Mask | None = None) -> Occurrences:
    """Return the occurrences of a measure that begin in the window of a scope; of periods, those that end in it.

    Args:
        scope: Trace and window; its mask of events applies only to kernel calls and interrupts.
        key: As `Measure.key`.
        threads: bool (threads,), whose occurrences count; None = all. Interrupts belong to no thread: all count.

    Raises:
        Cancelled: The scope was cancelled.
    """
    kind, _, name = key.partition(":")
    if kind == "run":
        return _runs(scope, threads)
    if kind in ("response", "period"):
        return _activations(scope, kind == "period", threads)
    if kind == "state":
        return _states(scope, STATE_BY_NAME[name].value, threads)
    if kind in _MESSAGE_LEGS:
        return _messages(scope, _MESSAGE_LEGS[kind][1], threads)
    if kind == "call":
        return _links(scope, _is_call(scope.trace, name) if name else IS_CALL, LinkKind.CALL, threads)
    return _links(scope, IS_INTERRUPT, LinkKind.INTERRUPT if kind == "interrupt" else LinkKind.DISPATCH, None)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of durations in bins of equal width on a logarithmic scale; a bound, if any, divides its bin in two.

    Attributes:
        edges_log10: float64, (bins + 1,), logarithms of nanoseconds to the base 10.
        counts: int64, (bins,).
        bin: int64, (n,), the bin of each duration.
        first_beyond: Index of the first bin of durations beyond the bound; the number of bins if there are none.
    """

    edges_log10: NDArray[np.float64]
    counts: NDArray[np.int64]
    bin: NDArray[np.int64]
    first_beyond: int


def histogram(
    duration_ns: NDArray[np.int64], is_beyond: NDArray[np.bool_] | None = None, bound_ns: int = 0
) -> Histogram:
    """Return the histogram of some durations; durations below a nanosecond count as one nanosecond.

    Args:
        duration_ns: int64, (n,), nanoseconds; n > 0.
        is_beyond: bool (n,), whether each duration is longer than the bound, compared in cycles, as these may be
            shorter than a nanosecond; None = there is no bound.
        bound_ns: The bound.
    """
    position = np.log10(np.maximum(duration_ns, 1))
    width = float(position.max() - position.min())
    per_decade = next((count for count in _BINS_PER_DECADE if width * count <= _MOST_BINS), _BINS_PER_DECADE[-1])
    number = np.floor(position * per_decade).astype(np.int64)
    lowest = int(number.min())
    number -= lowest
    edges = (lowest + np.arange(int(number.max()) + 2)) / per_decade
    first_beyond = len(edges) - 1
    if is_beyond is not None and is_beyond.any():
        bound = math.log10(max(bound_ns, 1))
        first_beyond = max(0, math.floor(bound * per_decade) - lowest + 1)
        if first_beyond:  # the bound splits its bin
            edges = np.insert(edges, first_beyond, bound)
            number += is_beyond
    return Histogram(edges, np.bincount(number, minlength=len(edges) - 1), number, first_beyond)


def event_of(trace: Trace, start: int, thread: int) -> int:
    """Return the row of the last event of a thread at exactly the time `start`, else of the first event from then on.

    The latter may be an event of another thread; after the last event, it is the last event.

    Args:
        trace: The trace.
        start: The time, cycles.
        thread: Row of the thread table.
    """
    begin, stop = (int(row) for row in np.searchsorted(trace.events.time_cycles, (start, start + 1)))
    own = np.flatnonzero(trace.events.thread[begin:stop] == thread)
    return begin + int(own[-1]) if len(own) else min(begin, len(trace.events) - 1)


def _calls(trace: Trace) -> list[str]:
    """Return the names of the kernel calls in the trace, sorted."""
    codes = np.flatnonzero((trace.code_counts > 0) & IS_CALL[: len(trace.code_counts)])
    numbers = np.unique(codes & (CALL_NUMBERS - 1))
    return sorted({trace.catalogue.name(wire.code(wire.WireClass.KER_CALL, number)) for number in numbers.tolist()})


def _is_call(trace: Trace, name: str) -> Mask:
    """Return which codes are entries of a kernel call, bool (32768,)."""
    number = trace.catalogue.kernel_call_number(name)
    return np.asarray(IS_CALL & (np.arange(len(IS_CALL)) & (CALL_NUMBERS - 1) == (-1 if number is None else number)))


def _known(
    cycles: Cycles, start: Cycles, thread: NDArray[np.int64], event: NDArray[np.int64], threads: Mask | None
) -> Occurrences:
    """Return occurrences with a known duration; the others (negative cycles) are only counted as `unfinished`."""
    if threads is not None:
        is_selected = threads[np.maximum(thread, 0)]
        cycles, start, thread, event = cycles[is_selected], start[is_selected], thread[is_selected], event[is_selected]
    known = cycles >= 0
    return Occurrences(
        cycles[known], start[known], np.maximum(thread[known], 0), event[known], int(np.count_nonzero(~known))
    )


def _begin_in(scope: Scope, start: Cycles) -> Mask:
    return np.asarray((start >= scope.window.start) & (start < scope.window.end))


def _links(scope: Scope, codes: Mask, kind: LinkKind, threads: Mask | None) -> Occurrences:
    rows = np.asarray(scope.selected(codes), np.int64)
    cycles, _ = scope.lengths(rows, kind)
    events = scope.trace.events
    return _known(cycles, events.time_cycles[rows], events.thread[rows].astype(np.int64), rows, threads)


def _messages(scope: Scope, column: str, threads: Mask | None) -> Occurrences:
    """Return how long one stage (`column`) of each message took that was sent in the window.

    Only messages with a client or a server in `threads` are included; None = all.
    """
    exchanges, events = transactions(scope.trace), scope.trace.events
    begin, stop = np.searchsorted(exchanges.send_row, (scope.rows.start, scope.rows.stop))
    part = slice(int(begin), int(stop))
    client, server = np.maximum(exchanges.client[part], 0), np.maximum(exchanges.server[part], 0)
    rows, cycles = exchanges.send_row[part], getattr(exchanges, column)[part]
    if threads is not None:
        is_selected = threads[client] | threads[server]
        rows, cycles, client = rows[is_selected], cycles[is_selected], client[is_selected]
    return _known(cycles, events.time_cycles[rows], client, rows, None)


def _runs(scope: Scope, threads: Mask | None) -> Occurrences:
    """Return the runs that begin in the window, without idle threads; as in `CpuTable`, they include interrupts."""
    runs, trace = scope.basis.runs, scope.trace
    positions = np.flatnonzero((runs.value >= FIRST_PROCESS) & (runs.thread > 0) & _begin_in(scope, runs.start))
    cpu, start, end, thread = runs.cpu[positions], runs.start[positions], runs.end[positions], runs.thread[positions]
    cycles = np.where(runs_are_cut(trace, cpu, start, end), -1, end - start)
    return _known(cycles, start, thread, np.full(len(positions), -1, np.int64), threads)


def _activations(scope: Scope, is_period: bool, threads: Mask | None) -> Occurrences:
    """Return the durations of the activations that begin in the window, or the periods that end with these."""
    spans = activations(scope)
    positions = np.flatnonzero(_begin_in(scope, spans.start))
    cycles = spans.period_cycles if is_period else np.where(spans.is_cut, -1, spans.end - spans.start)
    if is_period:  # no period ends with the first activation of a thread
        positions = positions[np.append(False, spans.thread[1:] == spans.thread[:-1])[: len(spans)][positions]]
    start = spans.start[positions] - np.maximum(cycles[positions], 0) if is_period else spans.start[positions]
    return _known(cycles[positions], start, spans.thread[positions], np.full(len(positions), -1, np.int64), threads)


def _states(scope: Scope, value: int, threads: Mask | None) -> Occurrences:
    """Return the intervals in a state that begin in the window; those cut by missing events count as unfinished."""
    trace, parts = scope.trace, []
    for spans in state_spans(scope):
        positions = np.flatnonzero((spans.value == value) & _begin_in(scope, spans.start))
        parts.append(
            (
                np.where(states_are_cut(trace, spans, positions), -1, spans.end[positions] - spans.start[positions]),
                spans.start[positions],
                spans.thread[positions].astype(np.int64),
            )
        )
    none = np.empty(0, np.int64)
    cycles, start, thread = (np.concatenate([none, *(part[i] for part in parts)]) for i in range(3))
    return _known(cycles, start, thread, np.full(len(cycles), -1, np.int64), threads)
