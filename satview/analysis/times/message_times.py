"""Messages: who sends to whom, how much, and how long clients were blocked for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.by_key import sum_by
from satview.analysis.times.call_times import Durations
from satview.analysis.times.event_counts import IS_SEND
from satview.analysis.times.message_sizes import FAST_WORDS, SIZE, SIZE_CLASS, has_sizes
from satview.analysis.times.scope import Rows, Scope
from satview.events.states import STATE_BY_NAME
from satview.filters.expressions.columns import RowColumns
from satview.linkage.table import NO_EVENT, LinkKind
from satview.linkage.transactions import transactions
from satview.store.arguments import logged_codes_with
from satview.store.time_ranges import Cycles

_SEND: Final = STATE_BY_NAME["SEND"].value
_REPLY: Final = STATE_BY_NAME["REPLY"].value
_PID_WORD: Final = 1  # of SND_MESSAGE and REC_MESSAGE: rcvid, pid of the receiver


@dataclass(frozen=True, slots=True)
class MessageTable:
    """One row per client thread and server process that it sent messages to within the range.

    Attributes:
        client: int64, (n,), row of the thread table; 0 = not known.
        server_pid: int64, of the receiver; 0 is on another node, -1 a send that failed.
        count: int64, SND_MESSAGE events that count.
        sized: int64, messages of which the trace shows the size: received within the range by a MSG_RECEIVEV that
            was logged wide.
        bytes: int64, sizes of these added up.
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
        reply_blocked_cycles: int64, the same of state REPLY.
        size_bytes: int64, of the message, as reported to its receiver; -1 = not logged.
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
    """Return the messages that were sent within the range, added up."""
    events, payloads = scope.trace.events, scope.trace.payloads
    found = sent_messages(scope)
    sends = found.row
    pids = payloads.column(sends, _PID_WORD).view(np.int32).astype(np.int64)
    keys, number = np.unique(events.thread[sends].astype(np.int64) << 32 | pids & 0xFFFFFFFF, return_inverse=True)
    number, count = number.astype(np.int64), len(keys)
    sizes = found.size_bytes
    first = np.zeros(count, np.int64)
    first[number[::-1]] = sends[::-1]
    known = sizes >= 0
    return MessageTable(
        keys >> 32,
        (keys & 0xFFFFFFFF).astype(np.uint32).view(np.int32).astype(np.int64),
        np.bincount(number, minlength=count),
        np.bincount(number[known], minlength=count),
        sum_by(number[known], sizes[known], count),
        Durations.of(number, found.send_blocked_cycles, sends, count),
        Durations.of(number, found.reply_blocked_cycles, sends, count),
        first,
    )


def _blocked(scope: Scope, sends: Rows) -> tuple[Cycles, Cycles]:
    """Return how long the clients were in SEND and in REPLY for some messages; -1 = not at all, or not known."""
    made = transactions(scope.trace)
    first = made.blocked_row[np.searchsorted(made.send_row, sends)]
    first[(first < 0) | (first >= scope.rows.stop)] = NO_EVENT
    send, after = _in_state(scope, first, _SEND)
    reply, _ = _in_state(scope, np.where(_is_into(scope, first, _SEND), after, first), _REPLY)
    return send, reply


def _is_into(scope: Scope, changes: Rows, state: int) -> NDArray[np.bool_]:
    """Return which changes of state, `NO_EVENT` for none, lead into a state."""
    trace, out = scope.trace, changes != NO_EVENT
    out[out] = trace.catalogue.state_value_of_code[trace.events.code[changes[out]]] == state
    return np.asarray(out)


def _in_state(scope: Scope, changes: Rows, state: int) -> tuple[Cycles, Rows]:
    """Return how long a state lasts where a change leads into it, and the thread's change that ends it.

    -1 and `NO_EVENT` for changes into other states, and where the end is not known.
    """
    at = np.flatnonzero(_is_into(scope, changes, state))
    cycles, after = np.full(len(changes), -1, np.int64), np.full(len(changes), NO_EVENT, np.int64)
    cycles[at], ends = scope.lengths(changes[at], LinkKind.STATE)
    after[at] = np.where(ends < 0, NO_EVENT, ends)
    return cycles, after


def _sizes(scope: Scope, sends: Rows) -> NDArray[np.int64]:
    """Return the bytes of messages, as reported to their receivers when MSG_RECEIVEV came back; -1 = not logged."""
    sizes = np.full(len(sends), -1, np.int64)
    trace, events = scope.trace, scope.trace.events
    if not len(sends) or not has_sizes(trace):
        return sizes
    _, received = scope.lengths(sends, LinkKind.MESSAGE)
    received[received >= scope.rows.stop] = -1
    # They show sizes whether they show or not.
    exits = replace(scope, passes=None).selected(logged_codes_with(trace, SIZE, SIZE_CLASS))
    exits = exits[trace.payloads.word_counts(exits) > FAST_WORDS]
    key = events.thread[exits].astype(np.int64) << 32 | exits
    order = np.argsort(key)
    found = np.flatnonzero(received >= 0)
    requested = events.thread[received[found]].astype(np.int64) << 32 | received[found]
    at = np.searchsorted(key[order], requested)
    found, at = found[at < len(key)], at[at < len(key)]
    exit_rows = exits[order[at]]
    same = events.thread[exit_rows] == events.thread[received[found]]
    found, exit_rows = found[same], exit_rows[same]
    by_row = np.argsort(exit_rows)
    value, known = RowColumns(trace, scope.basis.derived, exit_rows[by_row]).argument(SIZE)
    sizes[found[by_row]] = np.where(known, value, -1)
    return sizes
