"""Transactions: every message with its receipt, its reply, and its client running again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.linkage.blockers import REPLY as REPLY_STATE
from satview.linkage.blockers import SEND as SEND_STATE
from satview.linkage.messages import answers, messages, sends_of
from satview.linkage.rows import comm_words, positions
from satview.linkage.states import IS_RUN, LANE_VALUES, first_that_fits, state_positions, state_values
from satview.linkage.table import NO_EVENT, Certainty, ReadOnlyColumns
from satview.linkage.waits import calls_of
from satview.linkage.whole import is_whole
from satview.store.arguments import argument
from satview.store.trace import Trace

_Ints = NDArray[np.int64]
_IS_WAIT: Final = np.isin(np.arange(LANE_VALUES), (SEND_STATE, REPLY_STATE))
_IS_STATE: Final = np.ones(LANE_VALUES, np.bool_)
_NAME: Final = "links.transactions"
_MOST_STEPS: Final = 1 << 10  # back over messages that a thread received and that are answered already


@dataclass(frozen=True, slots=True)
class Transactions(ReadOnlyColumns):
    """Messages that were sent, in time order; every column has shape (n,) and is read-only.

    A moment that the trace does not have, or that events are missing before, is -1, and so are times that need it. A
    client that the send did not block, as it failed, never ran again.
    Times that a transaction has all of add up: queued + service + reply = round trip.

    Attributes:
        client: int64, row of the thread table; -1 = not known.
        server: int64, the thread that received the message; -1 = not received, or not known.
        server_pid: int64, process it was sent to, as the event has it; 0 is on another node, -1 a send that failed.
        send_row: int64, SND_MESSAGE.
        receive_row: int64, REC_MESSAGE.
        reply_row: int64, REPLY_MESSAGE or MSG_ERROR.
        blocked_row: int64, the event SEND or REPLY by which the send blocks the client.
        over_row: int64, the reply or error, else the event by which the client stops waiting; -1 = it lasts to the end
            of the trace, or not known.
        done_row: int64, the event by which the client runs again after its wait, answered or not.
        queued_cycles: int64, from the send to the receipt.
        service_cycles: int64, from the receipt to the reply.
        reply_cycles: int64, from the reply to the client running again.
        round_trip_cycles: int64, from the send to the client running again.
        message_type: int64, the first word of the message; -1 = not known. Only calls whose events have it show it.
        parent: int64, row of the transaction that the client itself was serving when it sent this one, of several the
            one received last; -1 = none, or not known. That it sends on behalf of that one is inferred.
        certainty: uint8, `Certainty` of receipt and reply: exact where events name them, inferred by an rcvid alone.
    """

    client: _Ints
    server: _Ints
    server_pid: _Ints
    send_row: _Ints
    receive_row: _Ints
    reply_row: _Ints
    blocked_row: _Ints
    over_row: _Ints
    done_row: _Ints
    queued_cycles: _Ints
    service_cycles: _Ints
    reply_cycles: _Ints
    round_trip_cycles: _Ints
    message_type: _Ints
    parent: _Ints
    certainty: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.send_row)


def transactions(trace: Trace) -> Transactions:
    """Return all transactions of a trace; computed at the first call and cached with it."""
    return trace.cached(_NAME, _transactions)


def are_made(trace: Trace) -> bool:
    """Return whether `transactions` answers at once."""
    return trace.is_cached(_NAME)


def forget_transactions(trace: Trace) -> None:
    """Let go of all transactions: 120 bytes each. For who has made them for one look."""
    trace.forget(_NAME)


def _transactions(trace: Trace) -> Transactions:
    events, sends = trace.events, sends_of(trace)
    received = _or_none(messages(trace).ends_of(sends))
    replied = np.full(len(sends), -1, np.int64)
    certainty = np.full(len(sends), Certainty.EXACT, np.uint8)
    requested, answer, how = answers(trace)
    position = np.searchsorted(sends, requested)
    replied[position], certainty[position] = answer, how
    blocked, free, done = _client_states(trace, sends)
    server = np.full(len(sends), -1, np.int64)
    known = received >= 0
    server[known] = events.thread[received[known]]
    server[server == 0] = -1
    client, time = events.thread[sends].astype(np.int64), events.time_cycles

    def length(start: _Ints, end: _Ints) -> _Ints:
        out = np.full(len(sends), -1, np.int64)
        both = np.flatnonzero((start >= 0) & (end >= start))
        out[both] = time[end[both]] - time[start[both]]
        return out

    sent = sends.astype(np.int64)
    ends = np.where(replied >= 0, replied, free)
    over = np.where(ends >= 0, ends, np.iinfo(np.int64).max)
    to = comm_words(trace, sends)[1].view(np.int32)
    return Transactions(
        np.where(client > 0, client, -1),
        server,
        to.astype(np.int64),
        sent,
        received,
        replied,
        blocked,
        ends,
        done,
        length(sent, received),
        length(received, replied),
        length(replied, done),
        length(sent, done),
        _types(trace, sends),
        _parents(trace, sent, client, server, received, over),
        certainty,
    )


def _or_none(rows: NDArray[np.uint32]) -> _Ints:
    return np.where(rows == NO_EVENT, -1, rows.astype(np.int64))


def _client_states(trace: Trace, sends: NDArray[np.uint32]) -> tuple[_Ints, _Ints, _Ints]:
    """Return the events by which clients were blocked, stopped waiting, and ran again; -1 for none.

    Clients that the send did not block are not reported: they never stopped.
    """
    value = state_values(trace)
    client = trace.events.thread[sends].astype(np.int64)
    begins = state_positions(trace, sends, client)
    moments = []
    for table in (_IS_STATE, ~_IS_WAIT, IS_RUN):
        row = first_that_fits(trace, begins, client, table)
        known = np.flatnonzero(row >= 0)
        row[known[~is_whole(trace, sends[known], row[known])]] = -1
        moments.append(row)
    blocked, free, runs = moments
    blocks = blocked >= 0
    blocks[blocks] = _IS_WAIT[value[begins[blocks]]]
    return np.where(blocks, blocked, -1), np.where(blocks, free, -1), np.where(blocks, runs, -1)


def calls_of_sends(trace: Trace) -> NDArray[np.uint32]:
    """Return the entry of the kernel call that sends each message, uint32; cached with the trace, 4 bytes each.

    Of `sends_of`; `NO_EVENT` where it does not show.
    """
    return trace.cached("links.calls_of_sends", _calls_of_sends)


def _calls_of_sends(trace: Trace) -> NDArray[np.uint32]:
    sends = sends_of(trace)
    return calls_of(trace, sends, trace.events.thread[sends].astype(np.int64))


def _types(trace: Trace, sends: NDArray[np.uint32]) -> _Ints:
    """Return the first words of messages from the entries of the calls that sent them; -1 where these do not show."""
    types = np.full(len(sends), -1, np.int64)
    entry = calls_of_sends(trace)
    with_entry = np.flatnonzero(entry != NO_EVENT)
    value, known = argument(trace, entry[with_entry], "msg[0]")
    types[with_entry[known]] = value[known]
    return types


def _parents(trace: Trace, sent: _Ints, client: _Ints, server: _Ints, received: _Ints, over: _Ints) -> _Ints:
    """Return the transaction that each client was serving, -1 for none.

    From the last message that the thread received before, back to the first one that is not over yet: not answered, and
    its client still waits.
    """
    parent = np.full(len(sent), -1, np.int64)
    served = np.flatnonzero(server > 0)
    served = served[np.lexsort((received[served], server[served]))]
    key = server[served] << 32 | received[served]
    position = positions(key, client << 32 | sent) - 1
    child = np.arange(len(sent))
    for _ in range(_MOST_STEPS):
        child = child[position[child] >= 0]
        child = child[server[served[position[child]]] == client[child]]
        candidate = served[position[child]]
        whole = is_whole(trace, received[candidate], sent[child])
        child, candidate = child[whole], candidate[whole]
        if not len(child):
            break
        is_open = over[candidate] > sent[child]
        parent[child[is_open]] = candidate[is_open]
        child = child[~is_open]
        position[child] -= 1
    return parent
