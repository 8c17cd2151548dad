"""Transactions, each a message with its receipt and reply; and the server of each connection."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.linkage.blockers import REPLY
from satview.linkage.blockers import REPLY as REPLY_STATE
from satview.linkage.blockers import SEND as SEND_STATE
from satview.linkage.calls import open_calls, partners
from satview.linkage.links import (
    NO_EVENT,
    Certainty,
    ReadOnlyColumns,
    comm_words,
    is_whole,
    positions,
    rows_of_class,
    rows_of_codes,
)
from satview.linkage.messages import answers, messages, replies, sends_of
from satview.linkage.waits import (
    IS_RUN,
    LANE_VALUES,
    calls_of,
    entries_of,
    first_that_fits,
    state_positions,
    state_values,
    succeeded,
)
from satview.store.arguments import argument
from satview.store.tables import UNKNOWN_THREAD
from satview.store.time_ranges import losses
from satview.store.trace import Trace, cached_with_trace

# Transactions: each message with its receipt, its reply, and the event by which its client runs again.


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
    """The columns of `Transactions` that concern the server, shape (n,); much faster to compute than all columns.

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
    """Return how long each message was queued, and how long its server worked on it, int64 (n,) each.

    Returns:
        Cycles, -1 = not known.
    """
    if trace.axis is not None:
        sent = transactions(trace)
        return sent.queued_cycles, sent.service_cycles
    return _lengths(trace, served.send_row, served.receive_row), _lengths(trace, served.receive_row, served.reply_row)


@cached_with_trace("links.transactions")
def transactions(trace: Trace) -> Transactions:
    """Return all transactions of a trace; computed at the first call and cached with it."""
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
    """Return the pid of each client, int64 (n,), from the reply where its thread is not known; -1 = not known."""
    pid = np.where(client > 0, trace.threads.pid[client], -1).astype(np.int64)
    named = np.flatnonzero((client == 0) & (reply_row >= 0))
    pid[named] = comm_words(trace, reply_row[named])[1].view(np.int32)
    return pid


def _lengths(trace: Trace, start: _Ints, end: _Ints) -> _Ints:
    """Return the cycles between events, int64 (n,); -1 if one of them is not known, or the end comes first."""
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
    """Return the first word of each message, as the sending call's entry shows it, int64 (n,); -1 where it does not."""
    types = np.full(len(sends), -1, np.int64)
    entry = calls_of(trace, sends, trace.events.thread[sends].astype(np.int64))
    with_entry = np.flatnonzero(entry != NO_EVENT)
    value, known = argument(trace, entry[with_entry], "msg[0]")
    types[with_entry[known]] = value[known]
    return types


def _parents(trace: Trace, sent: _Ints, client: _Ints, server: _Ints, received: _Ints, over: _Ints) -> _Ints:
    """Return for each message the message that its sender was serving at the send, int64 (n,); -1 for none.

    That is the last message that the sending thread received before the send and that was still open then. `over` is
    the event with which each message ends: the reply, or the end of the client's wait.
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


# A service lasts from the receipt of a message until it is answered or its client stops waiting.


@dataclass(frozen=True, slots=True)
class Services(ReadOnlyColumns):
    """The intervals in which threads serve messages, by client, then in time order; int64 columns (n,), read-only.

    Services of one client never overlap, as a thread has one open message at a time. A server may serve several
    clients at once.

    Attributes:
        transaction: Row in `Transactions`.
        client, server: Rows of the thread table.
        start, end: Cycles. A service begins with the receipt, or with the send if the server is already waiting in
            RECEIVE. It ends with the reply or error, when the client stops waiting, when either thread dies, where
            events are missing, or else with the trace.
    """

    transaction: _Ints
    client: _Ints
    server: _Ints
    start: _Ints
    end: _Ints

    def __len__(self) -> int:
        return len(self.client)


@cached_with_trace("links.services")
def services(trace: Trace) -> Services:
    """Return the intervals in which threads serve the messages of other threads; cached with the trace.

    Source: formula 2 of the reference.

    Messages from or to threads that are not known are left out.
    """
    sent, time = transactions(trace), np.append(trace.events.time_cycles, trace.window.end)
    transaction = np.flatnonzero((sent.server > 0) & (sent.client > 0) & (sent.server != sent.client))
    client, server = sent.client[transaction], sent.server[transaction]
    send_row, receive_row = sent.send_row[transaction], sent.receive_row[transaction]
    start = time[np.where(_finds_receiver(trace, sent, transaction), send_row, receive_row)]
    end = time[sent.over_row[transaction]]  # -1 is the end of the trace
    unsure = np.flatnonzero(sent.over_row[transaction] < 0)
    end[unsure] = np.minimum(end[unsure], _next_loss(trace, time[receive_row[unsure]]))
    end = np.minimum(end, time[_next(sent.client, sent.send_row, client, send_row)])
    ended = rows_of_codes(trace, wire.THREAD_DESTROY).astype(np.int64)
    end = np.minimum(end, time[_next(trace.events.thread[ended], ended, server, receive_row)])
    keep = np.flatnonzero(end > start)
    keep = keep[np.lexsort((start[keep], client[keep]))]
    return Services(transaction[keep].astype(np.int64), client[keep], server[keep], start[keep], end[keep])


def _finds_receiver(trace: Trace, sent: Transactions, transaction: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return whether the server waited in RECEIVE at the send, so that the client went to REPLY at once, bool (n,)."""
    row = sent.blocked_row[transaction]
    out = row >= 0
    out[out] = trace.catalogue.state_value_of_code[trace.events.code[row[out]]] == REPLY
    return np.asarray(out)


def _next_loss(trace: Trace, moment: _Ints) -> _Ints:
    """Return the start of the first loss on any CPU from each time on, cycles, int64 (n,); the largest int64 = none."""
    begins = np.append(np.sort(losses(trace)[:, 0]), np.iinfo(np.int64).max)
    return begins[np.searchsorted(begins, moment)]


def _next(
    threads: NDArray[np.integer], rows: _Ints, thread: _Ints, row: _Ints,
) -> _Ints:  # fmt: skip
    """Return for each `thread` and `row` the first of `rows` after it that belongs to the thread; -1 for none.

    `threads` are the threads to which `rows` belong.
    """
    key = np.sort(threads.astype(np.int64) << 32 | rows)
    position = np.searchsorted(key, thread << 32 | row, side="right")
    next_key = np.append(key, -1)[position]
    return np.where(next_key >> 32 == thread, next_key & 0xFFFFFFFF, -1)


_NUMBER_BITS: Final = 32
_CACHED: Final = ("links.connections", "links.reply", "links.channels", "links.numbered_receipts")


@dataclass(frozen=True, slots=True)
class ServerConnections:
    """Connections as events show them, by process and connection, then in time order; every column has shape (n,).

    An event that shows nothing new about its connection has no row.

    Attributes:
        key: int64, row of the client in the process table << 32 | coid.
        row: int64, the event that shows the connection: the exit of ConnectAttach, or SND_MESSAGE.
        server_pid: int64, the server's process.
        chid: int64, the server's channel; -1 = not known.
    """

    key: _Ints
    row: _Ints
    server_pid: _Ints
    chid: _Ints


@dataclass(frozen=True, slots=True)
class Server:
    """The server process and channel of a connection.

    Attributes:
        pid: The server's process.
        chid: The server's channel; -1 = not known.
        row: The event that shows the connection.
        certainty: Exact if that event is before the queried one and no event is missing in between.
    """

    pid: int
    chid: int
    row: int
    certainty: Certainty


def make_ready(trace: Trace) -> None:
    """Build the tables that the other functions of this module need, so that they then answer at once."""
    _ = connections(trace), replies(trace), _channels_created(trace), _numbered_receipts(trace)


def are_ready(trace: Trace) -> bool:
    """Return whether the tables of `make_ready` are cached."""
    return all(trace.is_cached(name) for name in _CACHED)


@cached_with_trace("links.connections")
def connections(trace: Trace) -> ServerConnections:
    """Return the connections of a trace; computed at the first call and cached with it.

    ConnectAttach shows the process and, in wide mode, the channel. A message shows the receiver's process, and the
    receiver's MsgReceive the channel.
    """
    parts = (_attached(trace), _sent(trace))
    process, coid, row, pid, chid = (np.concatenate([part[i] for part in parts]) for i in range(5))
    key = process << _NUMBER_BITS | coid
    order = np.lexsort((row, key))
    key, row, pid, chid = key[order], row[order], pid[order], chid[order]
    same = (key[1:] == key[:-1]) & (pid[1:] == pid[:-1]) & ((chid[1:] == chid[:-1]) | (chid[1:] < 0))
    keep = np.append(True, ~same)[: len(key)]
    return ServerConnections(key[keep], row[keep], pid[keep], chid[keep])


def server_of(trace: Trace, process: int, coid: int, event: int) -> Server | None:
    """Return the server of a connection at the time of an event; None if the trace does not show it."""
    known = connections(trace)
    key = process << _NUMBER_BITS | coid & 0xFFFFFFFF
    start, end = np.searchsorted(known.key, (key, key + 1)).tolist()
    if start == end:
        return None
    position = start + int(np.searchsorted(known.row[start:end], event, side="right")) - 1
    is_before = position >= start
    position = max(position, start)
    row = int(known.row[position])
    if is_before:
        sure = bool(is_whole(trace, np.array([row]), np.array([event]))[0])
    else:  # the message that the call itself sends
        sure = int(open_calls(trace, np.array([row], np.uint32))[0]) == event
    certainty = Certainty.EXACT if sure else Certainty.INFERRED
    return Server(int(known.server_pid[position]), int(known.chid[position]), row, certainty)


def creation_of(trace: Trace, process: int, chid: int, event: int) -> int:
    """Return the entry of the ChannelCreate that made a channel of a process before an event; -1 if there is none."""
    key, row, _ = _channels_created(trace)
    position = _last_of(key, row, process << _NUMBER_BITS | chid & 0xFFFFFFFF, event - 1)
    return int(row[position]) if position >= 0 else -1


def client_of(trace: Trace, process: int, rcvid: int, event: int) -> int:
    """Return the SND_MESSAGE of the message that has an rcvid in a server at the time of an event; -1 if not known."""
    key, receipts, sends = _numbered_receipts(trace)
    last = _last_of(key, receipts, process << _NUMBER_BITS | rcvid & 0xFFFFFFFF, event)
    if last < 0:
        return -1
    receipt = receipts[last : last + 1]
    # After the reply another message may get the same rcvid; a missing event may be that reply.
    is_open = int(replies(trace).ends_of(receipt)[0]) > event and bool(is_whole(trace, receipt, np.array([event]))[0])
    return int(sends[last]) if is_open else -1


def _last_of(key: _Ints, row: NDArray[np.integer], requested: int, event: int) -> int:
    """Return the position of the last entry of a key at or before an event; -1 for none."""
    start, end = np.searchsorted(key, (requested, requested + 1)).tolist()
    position = start + int(np.searchsorted(row[start:end], event, side="right")) - 1
    return position if position >= start else -1


_ByNumber = tuple[_Ints, NDArray[np.uint32], NDArray[np.uint32]]


def _by_number(
    process: NDArray[np.integer], number: _Ints, row: NDArray[np.uint32], other: NDArray[np.uint32]
) -> _ByNumber:
    """Return the columns sorted by key (process << 32 | number), then by row: key, row, other row."""
    key = process.astype(np.int64) << _NUMBER_BITS | number & 0xFFFFFFFF
    order = np.lexsort((row, key))
    return key[order], row[order], other[order]


@cached_with_trace("links.channels")
def _channels_created(trace: Trace) -> _ByNumber:
    """Return the ChannelCreate calls that succeeded, by process and channel."""
    entries = succeeded(trace, entries_of(trace, "CHANNEL_CREATE"))
    chid, known = argument(trace, partners(trace)[entries], "chid")
    entries, chid = entries[known], chid[known]
    return _by_number(trace.threads.process[trace.events.thread[entries]], chid, entries, entries)


@cached_with_trace("links.numbered_receipts")
def _numbered_receipts(trace: Trace) -> _ByNumber:
    """Return the receipts of messages and their sends, by process of the server and rcvid."""
    table = messages(trace)
    process = trace.threads.process[trace.events.thread[table.to_row]]
    return _by_number(process, comm_words(trace, table.to_row)[0].astype(np.int64), table.to_row, table.from_row)


def _attached(trace: Trace) -> tuple[_Ints, _Ints, _Ints, _Ints, _Ints]:
    """Return process, coid, row, server's pid and channel of the ConnectAttach calls that succeeded, int64 (n,)."""
    entries = succeeded(trace, entries_of(trace, "CONNECT_ATTACH"))
    thread = trace.events.thread[entries]
    exits = partners(trace)[entries].astype(np.int64)
    node, _ = argument(trace, entries, "nd")
    pid, has_pid = argument(trace, entries, "pid")
    chid, has_chid = argument(trace, entries, "chid")
    coid, has_coid = argument(trace, exits, "coid")
    fits = has_pid & has_coid & (node == 0) & (thread != UNKNOWN_THREAD)
    pid = np.where(pid == 0, trace.threads.pid[thread], pid)  # 0 is the caller's own process
    process = trace.threads.process[thread].astype(np.int64)
    coid &= 0xFFFFFFFF
    return process[fits], coid[fits], exits[fits], pid[fits], np.where(has_chid, chid, -1)[fits]


def _sent(trace: Trace) -> tuple[_Ints, _Ints, _Ints, _Ints, _Ints]:
    """Return what `_attached` returns, with an element for each message whose sending call shows the connection."""
    sends = sends_of(trace)
    entry = open_calls(trace, sends)
    thread = trace.events.thread
    within_call = np.flatnonzero(entry != NO_EVENT)
    sends, entry = sends[within_call], entry[within_call]
    same_thread = (thread[entry] == thread[sends]) & (thread[sends] != UNKNOWN_THREAD)
    sends, entry = sends[same_thread], entry[same_thread]
    coid, known = argument(trace, entry, "coid")
    pid = comm_words(trace, sends)[1].view(np.int32).astype(np.int64)
    known &= pid > 0  # else the send failed or went to another node
    sends, coid, pid = sends[known], coid[known] & 0xFFFFFFFF, pid[known]
    process = trace.threads.process[thread[sends]].astype(np.int64)
    return process, coid, sends.astype(np.int64), pid, _channels(trace, sends)


def _channels(trace: Trace, sends: NDArray[np.uint32]) -> _Ints:
    """Return the channel on which each message was received, int64 (n,); -1 where the trace does not show it."""
    receipts = messages(trace).ends_of(sends)
    out = np.full(len(sends), -1, np.int64)
    received = np.flatnonzero(receipts != NO_EVENT)
    calls = _calls_before(trace, receipts[received])
    received, calls = received[calls != NO_EVENT], calls[calls != NO_EVENT]
    chid, known = argument(trace, calls, "chid")
    out[received[known]] = chid[known]
    return out


def _calls_before(trace: Trace, rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the kernel call that the thread of each event entered last, uint32 (n,); `NO_EVENT` = not sure.

    The call may have exited already: a thread that waited for a message logs the receipt before or after the exit.
    """
    thread = trace.events.thread
    calls = rows_of_class(trace, wire.WireClass.KER_CALL)
    key = thread[calls].astype(np.int64) << 32 | calls
    key.sort()
    position = np.searchsorted(key, thread[rows].astype(np.int64) << 32 | rows) - 1
    candidate = key[np.maximum(position, 0)]  # there is a key: a receipt has a send, which has a call
    out = (candidate & 0xFFFFFFFF).astype(np.uint32)
    fits = (position >= 0) & (candidate >> 32 == thread[rows]) & (thread[rows] != UNKNOWN_THREAD)
    out[~fits] = NO_EVENT
    ends = np.flatnonzero(fits)
    ends = ends[trace.events.code[out[ends]] & wire.KER_FORM != 0]
    out[ends] = partners(trace)[out[ends]]
    known = np.flatnonzero(out != NO_EVENT)
    out[known[~is_whole(trace, out[known], rows[known])]] = NO_EVENT
    return out
