"""Links of messages to their receipts, to their replies, and to the ends of the calls that sent them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import links
from satview.core.ordering import stable_order
from satview.events import wire
from satview.linkage.actors import open_calls
from satview.linkage.calls import partners
from satview.linkage.mutexes import entries_of
from satview.linkage.rows import comm_words, rows_of_codes, thread_rows
from satview.linkage.table import NO_EVENT, Certainty, LinkKind, LinkTable, Pairs, no_pairs, pairs_of
from satview.linkage.whole import is_whole
from satview.store.arguments import argument
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace

_ANSWERS: Final = "links.answers"
SEND: Final = wire.code(wire.WireClass.COMM, 0)  # rcvid, pid of the receiver
RECEIPT: Final = wire.code(wire.WireClass.COMM, 2)  # rcvid, pid of the receiver
REPLY: Final = wire.code(wire.WireClass.COMM, 10)  # tid, pid of the client
ERROR: Final = wire.code(wire.WireClass.COMM, 11)  # tid, pid of the client
FAILED: Final = 0xFFFFFFFF  # in both words of a receipt: nothing was received


def messages(trace: Trace) -> LinkTable:
    """Return the links from SND_MESSAGE to REC_MESSAGE.

    The receipt is the receiver's next REC_MESSAGE with the same rcvid, unless another message with that rcvid is sent
    to the receiver before. Source: format description, section on class 7.
    """
    return trace.cached("links.message", lambda trace: LinkTable.of(LinkKind.MESSAGE, _messages(trace)))


def replies(trace: Trace) -> LinkTable:
    """Return the links from REC_MESSAGE to the REPLY_MESSAGE or MSG_ERROR that answers it, if the send is known too.

    A reply names the client's thread, and a client has one open message at a time.
    """
    return trace.cached("links.reply", lambda trace: LinkTable.of(LinkKind.REPLY, _replies(trace)))


def round_trips(trace: Trace) -> LinkTable:
    """Return the links from SND_MESSAGE to the exit, or interrupted form, of the kernel call that sent it."""
    return trace.cached("links.round_trip", lambda trace: LinkTable.of(LinkKind.ROUND_TRIP, _round_trips(trace)))


def sends_of(trace: Trace) -> NDArray[np.uint32]:
    """Return the rows of all SND_MESSAGE, uint32, ascending; none in formats without messages."""
    return rows_of_codes(trace, SEND) if trace.pairs is None else np.empty(0, np.uint32)


def answers(trace: Trace) -> Pairs:
    """Return pairs of SND_MESSAGE and the reply or error that the client gets before its next send, in any order.

    A pair is exact where the reply names the client that sent the message. Where the sender is not known, as in a trace
    without THREAD events, the reply is inferred from the rcvid of the replying call, if only one open message has this
    rcvid.

    Computed at the first call and cached with the trace until `replies` has used it.
    """
    return trace.cached(_ANSWERS, _answers)


def _answers(trace: Trace) -> Pairs:
    sends, given = _answers_by_client(trace)
    more_sends, more_given = _answers_by_number(trace)
    certainty = np.repeat((Certainty.EXACT, Certainty.INFERRED), (len(sends), len(more_sends)))
    return pairs_of(np.concatenate((sends, more_sends)), np.concatenate((given, more_given)), certainty)


def _answers_by_client(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    sends, given = sends_of(trace), rows_of_codes(trace, REPLY, ERROR)
    if not len(sends) or not len(given):
        return no_pairs()[:2]
    tid, pid = comm_words(trace, given)
    client = np.concatenate((trace.events.thread[sends].astype(np.int64), thread_rows(trace, pid, tid)))
    rows = np.concatenate((sends, given))
    order = stable_order(rows)
    is_send, rows, client = order < len(sends), rows[order], client[order]
    before = links.previous_same(client)
    answer = np.flatnonzero(~is_send & (client != UNKNOWN_THREAD) & (before >= 0))
    answer = answer[is_send[before[answer]]]
    begin, end = rows[before[answer]], rows[answer]
    sure = is_whole(trace, begin, end)
    return begin[sure], end[sure]


def _answers_by_number(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the messages of unknown senders and the replies whose calls have the same rcvid.

    A message is used only if no other message with this rcvid, on any server, is open when it is received.
    """
    table = messages(trace)
    is_open = trace.events.thread[table.from_row] == UNKNOWN_THREAD
    if not is_open.any():
        return no_pairs()[:2]
    given = rows_of_codes(trace, REPLY, ERROR)
    sends, receipts = table.from_row[is_open], table.to_row[is_open]
    calls = open_calls(trace, given)
    is_reply = np.isin(calls, entries_of(trace, "MSG_REPLYV", "MSG_ERROR"))
    given, calls = given[is_reply], calls[is_reply]
    number, known = argument(trace, calls, "rcvid")
    given, number = given[known], number[known]
    rows = np.concatenate((receipts, given))
    rcvid = np.concatenate((comm_words(trace, receipts)[0].astype(np.int64), number & 0xFFFFFFFF))
    order = stable_order(rows)
    is_receipt, before = order < len(receipts), links.previous_same(rcvid[order])
    answer = np.flatnonzero(~is_receipt & (before >= 0))
    answer = answer[is_receipt[before[answer]]]
    earlier = before[before[answer]]
    answer = answer[(earlier < 0) | ~is_receipt[earlier]]  # else two messages with that number are open
    begin, end = sends[order[before[answer]]], rows[order[answer]]
    sure = is_whole(trace, begin, end)
    return begin[sure], end[sure]


def _messages(trace: Trace) -> Pairs:
    if not len(sends_of(trace)) or not trace.code_counts[RECEIPT]:
        return no_pairs()
    rows = rows_of_codes(trace, SEND, RECEIPT)
    is_receipt = trace.events.code[rows] == RECEIPT
    rcvid, pid = comm_words(trace, rows)
    key = receiver_keys(trace, rows, is_receipt, rcvid, pid)
    before = links.previous_same(key)
    receipt = np.flatnonzero(is_receipt & (key >= 0) & (before >= 0))
    receipt = receipt[~is_receipt[before[receipt]]]
    sends, receipts = rows[before[receipt]], rows[receipt]
    sure = is_whole(trace, sends, receipts)
    return pairs_of(sends[sure], receipts[sure])


def receiver_keys(
    trace: Trace, rows: NDArray[np.uint32], is_receipt: NDArray[np.bool_], number: NDArray[np.uint32],
    pid: NDArray[np.uint32],
) -> NDArray[np.int64]:  # fmt: skip
    """Return a key that each send shares with its receipt, int64 (n,): pid of the receiver << 32 | rcvid or scoid.

    Args:
        trace: The events.
        rows: (n,), sends and receipts of messages, or of pulses.
        is_receipt: bool (n,).
        number: uint32 (n,), their first payload words: rcvid or scoid.
        pid: uint32 (n,), their second payload words.

    Returns:
        The keys; -1 for receipts that failed.
    """
    thread = trace.events.thread[rows]
    # The running thread receives. Where it is not known, the payload still shows the process.
    own = is_receipt & (thread != UNKNOWN_THREAD)
    receiver = np.where(own, trace.threads.pid[thread].astype(np.uint32), pid)
    key = receiver.astype(np.int64) << 32 | number
    key[is_receipt & (number == FAILED) & (pid == FAILED)] = -1
    return key


def _replies(trace: Trace) -> Pairs:
    sends, given, certainty = answers(trace)
    received = messages(trace).ends_of(sends)
    known = (received != NO_EVENT) & (received < given)
    trace.forget(_ANSWERS)
    return pairs_of(received[known], given[known], certainty[known])


def _round_trips(trace: Trace) -> Pairs:
    sends = sends_of(trace)
    entry = open_calls(trace, sends)
    within_call = np.flatnonzero(entry != NO_EVENT)
    enters, sent, thread = entry[within_call], sends[within_call], trace.events.thread
    same_thread = np.flatnonzero((thread[enters] == thread[sent]) & (thread[sent] != UNKNOWN_THREAD))
    enters, sent = enters[same_thread], sent[same_thread]
    ends = partners(trace)[enters]
    comes_back = (ends != NO_EVENT) & (ends > sent)
    return pairs_of(sent[comes_back], ends[comes_back])
