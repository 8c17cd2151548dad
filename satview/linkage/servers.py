"""Finds the server process and channel of each connection, and when each server thread serves which client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.linkage.actors import open_calls
from satview.linkage.blockers import REPLY
from satview.linkage.calls import partners
from satview.linkage.messages import messages, replies, sends_of
from satview.linkage.mutexes import entries_of, succeeded
from satview.linkage.rows import comm_words, rows_of_class, rows_of_codes
from satview.linkage.table import NO_EVENT, Certainty, ReadOnlyColumns
from satview.linkage.transactions import Transactions, transactions
from satview.linkage.whole import is_whole
from satview.store.arguments import argument
from satview.store.losses import losses
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace

# A service lasts from the receipt of a message until it is answered or its client stops waiting.


_Ints = NDArray[np.int64]


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


def services(trace: Trace) -> Services:
    """Return the services of a trace; computed once and cached with it. Source: formula 2 of the reference.

    Messages from or to threads that are not known are left out.
    """
    return trace.cached("links.services", _services)


def _services(trace: Trace) -> Services:
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
    """Return for each transaction whether the server waited in RECEIVE at the send: the client then goes to REPLY."""
    row = sent.blocked_row[transaction]
    out = row >= 0
    out[out] = trace.catalogue.state_value_of_code[trace.events.code[row[out]]] == REPLY
    return np.asarray(out)


def _next_loss(trace: Trace, moment: _Ints) -> _Ints:
    """Return the begin of the first loss at or after each time, on any CPU; the largest int64 if there is none."""
    begins = np.append(np.sort(losses(trace)[:, 0]), np.iinfo(np.int64).max)
    return begins[np.searchsorted(begins, moment)]


def _next(
    threads: NDArray[np.integer], rows: _Ints, thread: _Ints, row: _Ints,
) -> _Ints:  # fmt: skip
    """Return for each `row` the first later one in `rows` whose thread, in `threads`, is `thread`; -1 for none."""
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
    _ = connections(trace), replies(trace)
    trace.cached("links.channels", _channels_created)
    trace.cached("links.numbered_receipts", _numbered_receipts)


def are_ready(trace: Trace) -> bool:
    """Return whether the tables of `make_ready` are cached."""
    return all(trace.is_cached(name) for name in _CACHED)


def connections(trace: Trace) -> ServerConnections:
    """Return the connections of a trace; computed at the first call and cached with it.

    ConnectAttach shows the process and, in wide mode, the channel. A message shows the receiver's process, and the
    receiver's MsgReceive the channel.
    """
    return trace.cached("links.connections", _connections)


def server_of(trace: Trace, process: int, coid: int, event: int) -> Server | None:
    """Return the server of a connection at the time of an event; None if the trace does not show it.

    Args:
        trace: The events.
        process: Row of the client in the process table.
        coid: The connection.
        event: Row of the event table.
    """
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
    """Return the entry of the ChannelCreate that made a channel of a process before an event; -1 if there is none.

    Args:
        trace: The events.
        process: Row of the process table.
        chid: The channel.
        event: Row of the event table.
    """
    key, row, _ = trace.cached("links.channels", _channels_created)
    position = _last_of(key, row, process << _NUMBER_BITS | chid & 0xFFFFFFFF, event - 1)
    return int(row[position]) if position >= 0 else -1


def client_of(trace: Trace, process: int, rcvid: int, event: int) -> int:
    """Return the SND_MESSAGE of the message that has an rcvid in a server at the time of an event; -1 if not known.

    Args:
        trace: The events.
        process: Row of the server in the process table.
        rcvid: The rcvid that MsgReceive returned.
        event: Row of the event table.
    """
    key, receipts, sends = trace.cached("links.numbered_receipts", _numbered_receipts)
    last = _last_of(key, receipts, process << _NUMBER_BITS | rcvid & 0xFFFFFFFF, event)
    if last < 0:
        return -1
    receipt = receipts[last : last + 1]
    # After the reply another message may get the same rcvid; a missing event may be that reply.
    is_open = int(replies(trace).ends_of(receipt)[0]) > event and bool(is_whole(trace, receipt, np.array([event]))[0])
    return int(sends[last]) if is_open else -1


def _last_of(key: _Ints, row: NDArray[np.integer], requested: int, event: int) -> int:
    """Return the position of the last row of a key up to an event, -1 for none; keys ascend, and rows within each."""
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


def _channels_created(trace: Trace) -> _ByNumber:
    """Return the ChannelCreate calls that succeeded, by process and channel."""
    entries = succeeded(trace, entries_of(trace, "CHANNEL_CREATE"))
    chid, known = argument(trace, partners(trace)[entries], "chid")
    entries, chid = entries[known], chid[known]
    return _by_number(trace.threads.process[trace.events.thread[entries]], chid, entries, entries)


def _numbered_receipts(trace: Trace) -> _ByNumber:
    """Return the receipts of messages and their sends, by process of the server and rcvid."""
    table = messages(trace)
    process = trace.threads.process[trace.events.thread[table.to_row]]
    return _by_number(process, comm_words(trace, table.to_row)[0].astype(np.int64), table.to_row, table.from_row)


def _connections(trace: Trace) -> ServerConnections:
    parts = (_attached(trace), _sent(trace))
    process, coid, row, pid, chid = (np.concatenate([part[i] for part in parts]) for i in range(5))
    key = process << _NUMBER_BITS | coid
    order = np.lexsort((row, key))
    key, row, pid, chid = key[order], row[order], pid[order], chid[order]
    same = (key[1:] == key[:-1]) & (pid[1:] == pid[:-1]) & ((chid[1:] == chid[:-1]) | (chid[1:] < 0))
    keep = np.append(True, ~same)[: len(key)]
    return ServerConnections(key[keep], row[keep], pid[keep], chid[keep])


def _attached(trace: Trace) -> tuple[_Ints, _Ints, _Ints, _Ints, _Ints]:
    """Return process, coid, row, pid of the server and channel of the ConnectAttach calls that succeeded."""
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
    """Return the columns of `_attached` for the messages whose sending call shows the connection."""
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
    """Return the channel on which each message was received, -1 where the trace does not show it."""
    receipts = messages(trace).ends_of(sends)
    out = np.full(len(sends), -1, np.int64)
    received = np.flatnonzero(receipts != NO_EVENT)
    calls = _calls_before(trace, receipts[received])
    received, calls = received[calls != NO_EVENT], calls[calls != NO_EVENT]
    chid, known = argument(trace, calls, "chid")
    out[received[known]] = chid[known]
    return out


def _calls_before(trace: Trace, rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the kernel call that the thread of each event entered last, `NO_EVENT` where that is not sure.

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
