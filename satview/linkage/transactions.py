"""Transactions: each message with its receipt, its reply, and the event by which its client runs again."""

from __future__ import annotations

from dataclasses import dataclass, fields
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
BLOCKED: Final = np.ones(LANE_VALUES, np.bool_)  # any state: the first one after the send
FREE: Final = ~np.isin(np.arange(LANE_VALUES), (SEND_STATE, REPLY_STATE))
_MOST_STEPS: Final = 1 << 10  # most answered messages to go back over in a search for an open one


@dataclass(frozen=True, slots=True)
class Transactions(ReadOnlyColumns):
    """Messages that were sent, in time order; every column has shape (n,) and is read-only.

    A row is -1 if the trace does not have that event or lost events before it; times that need it are -1 too. A failed
    send does not block its client, so no event shows that the client runs again.
    If all times of a transaction are known, queued + service + reply = round trip.

    Attributes:
        client: int64, row of the thread table; -1 = not known.
        server: int64, the thread that received the message; -1 = not received, or not known.
        server_pid: int64, pid that the send names; 0 = on another node, -1 = the send failed.
        send_row: int64, SND_MESSAGE.
        receive_row: int64, REC_MESSAGE.
        reply_row: int64, REPLY_MESSAGE or MSG_ERROR.
        blocked_row: int64, the event SEND or REPLY by which the send blocks the client.
        over_row: int64, the reply or error, else the event by which the client stops waiting; -1 = the wait lasts to
            the end of the trace, or not known.
        done_row: int64, the event by which the client runs again after its wait, whether or not it got a reply.
        queued_cycles: int64, from the send to the receipt.
        service_cycles: int64, from the receipt to the reply.
        reply_cycles: int64, from the reply to the client running again.
        round_trip_cycles: int64, from the send to the client running again.
        message_type: int64, the first word of the message; -1 = not known. Only some kernel calls show it.
        parent: int64, row of the transaction that the client itself was serving when it sent this one; of several the
            one received last; -1 = none, or not known. That the client sends on behalf of the parent is inferred.
        certainty: uint8, `Certainty` of receipt and reply: exact where events name them, inferred from an rcvid alone.
        client_pid: int64, process of the client; if its thread is not known, the pid that the reply names, else -1.
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
    client_pid: _Ints

    def __len__(self) -> int:
        return len(self.send_row)


@dataclass(frozen=True, slots=True)
class ServedMessages(ReadOnlyColumns):
    """The columns of `Transactions` that concern the server, shape (n,); much faster to compute than all of them.

    Attributes:
        send_row, server, server_pid, receive_row, reply_row: int64, as in `Transactions`.
        certainty: uint8, as in `Transactions`.
    """

    send_row: _Ints
    server: _Ints
    server_pid: _Ints
    receive_row: _Ints
    reply_row: _Ints
    certainty: NDArray[np.uint8]


def addressed_messages(trace: Trace) -> tuple[NDArray[np.integer], _Ints]:
    """Return the rows of all SND_MESSAGE events, (n,), and the server pids that they name, int64 (n,)."""
    if trace.axis is not None:
        sent = transactions(trace)
        return sent.send_row, sent.server_pid
    sends = sends_of(trace)
    return sends, comm_words(trace, sends)[1].view(np.int32).astype(np.int64)


def served_messages(trace: Trace) -> ServedMessages:
    """Return the server side of all messages of a trace; computed at every call, not cached."""
    if trace.axis is not None:  # several files: messages are found in each of them
        sent = transactions(trace)
        return ServedMessages(*(getattr(sent, column.name) for column in fields(ServedMessages)))
    sends, server_pid = addressed_messages(trace)
    received = _or_none(messages(trace).ends_of(sends))
    replied = np.full(len(sends), -1, np.int64)
    certainty = np.full(len(sends), Certainty.EXACT, np.uint8)
    requested, answer, how = answers(trace)
    position = np.searchsorted(sends, requested)
    replied[position], certainty[position] = answer, how
    server = np.full(len(sends), -1, np.int64)
    known = received >= 0
    server[known] = trace.events.thread[received[known]]
    server[server == 0] = -1
    return ServedMessages(sends.astype(np.int64), server, server_pid, received, replied, certainty)


def queued_and_service(trace: Trace, served: ServedMessages) -> tuple[_Ints, _Ints]:
    """Return how long each served message was queued, and how long its server worked on it, cycles."""
    if trace.axis is not None:
        sent = transactions(trace)
        return sent.queued_cycles, sent.service_cycles
    return _lengths(trace, served.send_row, served.receive_row), _lengths(trace, served.receive_row, served.reply_row)


def transactions(trace: Trace) -> Transactions:
    """Return all transactions of a trace; computed at the first call and cached with it."""
    return trace.cached("links.transactions", _transactions)


def _transactions(trace: Trace) -> Transactions:
    sends, served = sends_of(trace), served_messages(trace)
    blocked, free, done = client_states(trace, sends, BLOCKED, FREE, IS_RUN)
    client = trace.events.thread[sends].astype(np.int64)
    ends = np.where(served.reply_row >= 0, served.reply_row, free)
    over = np.where(ends >= 0, ends, np.iinfo(np.int64).max)
    return Transactions(
        np.where(client > 0, client, -1),
        served.server,
        served.server_pid,
        served.send_row,
        served.receive_row,
        served.reply_row,
        blocked,
        ends,
        done,
        *queued_and_service(trace, served),
        _lengths(trace, served.reply_row, done),
        _lengths(trace, served.send_row, done),
        _types(trace, sends),
        _parents(trace, served.send_row, client, served.server, served.receive_row, over),
        served.certainty,
        _client_pids(trace, client, served.reply_row),
    )


def _client_pids(trace: Trace, client: _Ints, reply_row: _Ints) -> _Ints:
    """Return the pid of each client, from its reply where the thread is not known; -1 where neither is known."""
    pid = np.where(client > 0, trace.threads.pid[client], -1).astype(np.int64)
    named = np.flatnonzero((client == 0) & (reply_row >= 0))
    pid[named] = comm_words(trace, reply_row[named])[1].view(np.int32)
    return pid


def _lengths(trace: Trace, start: _Ints, end: _Ints) -> _Ints:
    """Return the cycles between events; -1 if one of them is not known, or the end comes first."""
    out = np.full(len(start), -1, np.int64)
    both = np.flatnonzero((start >= 0) & (end >= start))
    time = trace.events.time_cycles
    out[both] = time[end[both]] - time[start[both]]
    return out


def _or_none(rows: NDArray[np.uint32]) -> _Ints:
    return np.where(rows == NO_EVENT, -1, rows.astype(np.int64))


def client_states(trace: Trace, sends: NDArray[np.uint32], *tables: NDArray[np.bool_]) -> list[_Ints]:
    """Return for each table of states the first event after each send by which the client is in one of these states.

    Clients that the send did not block have -1.

    Args:
        trace: The events.
        sends: uint32 (n,), rows of SND_MESSAGE.
        *tables: bool (256,) each, by lane value: `BLOCKED`, `FREE`, `IS_RUN`.

    Returns:
        int64 (n,) each, rows of the event table; -1 for none, or where events are missing before it.
    """
    client = trace.events.thread[sends].astype(np.int64)
    begins = state_positions(trace, sends, client)
    moments = []
    for table in (BLOCKED, *tables):
        row = first_that_fits(trace, begins, client, table)
        known = np.flatnonzero(row >= 0)
        row[known[~is_whole(trace, sends[known], row[known])]] = -1
        moments.append(row)
    blocks = moments[0] >= 0
    blocks[blocks] = ~FREE[state_values(trace)[begins[blocks]]]
    return [np.where(blocks, row, -1) for row in moments[1:]]


def _types(trace: Trace, sends: NDArray[np.uint32]) -> _Ints:
    """Return the first word of each message as the entry of the sending call shows it; -1 where it does not."""
    types = np.full(len(sends), -1, np.int64)
    entry = calls_of(trace, sends, trace.events.thread[sends].astype(np.int64))
    with_entry = np.flatnonzero(entry != NO_EVENT)
    value, known = argument(trace, entry[with_entry], "msg[0]")
    types[with_entry[known]] = value[known]
    return types


def _parents(trace: Trace, sent: _Ints, client: _Ints, server: _Ints, received: _Ints, over: _Ints) -> _Ints:
    """Return the transaction that each client was serving at its send, -1 for none.

    That is the last message that the client's thread received before the send and that is still open: not answered, and
    the message's own client still waits.
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
