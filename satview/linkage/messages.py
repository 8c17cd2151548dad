"""Links of messages to their receipts and replies, and of pulses to their receipts."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import links
from satview.core.links import stable_order
from satview.events import wire
from satview.events.states import STATE_BY_NAME
from satview.linkage.calls import open_calls, partners
from satview.linkage.links import (
    NO_EVENT,
    OPEN,
    Certainty,
    LinkKind,
    Pairs,
    cached_links,
    comm_words,
    depth_within,
    is_whole,
    last_of_codes,
    last_of_each,
    no_pairs,
    pairs_of,
    positions,
    rows_of_codes,
    thread_rows,
)
from satview.linkage.waits import entries_of, following, state_values
from satview.store.arguments import argument
from satview.store.tables import UNKNOWN_THREAD
from satview.store.time_ranges import losses
from satview.store.trace import Trace, cached_with_trace

# Links of messages to their receipts, to their replies, and to the ends of the calls that sent them.


_ANSWERS: Final = "links.answers"
SEND: Final = wire.code(wire.WireClass.COMM, 0)  # rcvid, pid of the receiver
RECEIPT: Final = wire.code(wire.WireClass.COMM, 2)  # rcvid, pid of the receiver
REPLY: Final = wire.code(wire.WireClass.COMM, 10)  # tid, pid of the client
ERROR: Final = wire.code(wire.WireClass.COMM, 11)  # tid, pid of the client
FAILED: Final = 0xFFFFFFFF  # in both words of a receipt: nothing was received


@cached_links(LinkKind.MESSAGE)
def messages(trace: Trace) -> Pairs:
    """Return the links from SND_MESSAGE to REC_MESSAGE.

    The receipt is the receiver's next REC_MESSAGE with the same rcvid, unless another message with that rcvid is sent
    to the receiver before. Source: format description, section on class 7.
    """
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


@cached_links(LinkKind.REPLY)
def replies(trace: Trace) -> Pairs:
    """Return the links from REC_MESSAGE to the REPLY_MESSAGE or MSG_ERROR that answers it, if the send is known too.

    A reply names the client's thread, and a client has one open message at a time.
    """
    sends, given, certainty = answers(trace)
    received = messages(trace).ends_of(sends)
    known = (received != NO_EVENT) & (received < given)
    trace.forget(_ANSWERS)
    return pairs_of(received[known], given[known], certainty[known])


@cached_links(LinkKind.ROUND_TRIP)
def round_trips(trace: Trace) -> Pairs:
    """Return the links from SND_MESSAGE to the exit, or interrupted form, of the kernel call that sent it."""
    sends = sends_of(trace)
    entry = open_calls(trace, sends)
    within_call = np.flatnonzero(entry != NO_EVENT)
    enters, sent, thread = entry[within_call], sends[within_call], trace.events.thread
    same_thread = np.flatnonzero((thread[enters] == thread[sent]) & (thread[sent] != UNKNOWN_THREAD))
    enters, sent = enters[same_thread], sent[same_thread]
    ends = partners(trace)[enters]
    comes_back = (ends != NO_EVENT) & (ends > sent)
    return pairs_of(sent[comes_back], ends[comes_back])


def sends_of(trace: Trace) -> NDArray[np.uint32]:
    """Return the rows of all SND_MESSAGE, uint32, ascending; none in formats without messages."""
    return rows_of_codes(trace, SEND) if trace.pairs is None else np.empty(0, np.uint32)


@cached_with_trace(_ANSWERS)
def answers(trace: Trace) -> Pairs:
    """Return pairs of SND_MESSAGE and the reply or error that the client gets before its next send, in any order.

    A pair is exact where the reply names the client that sent the message. Where the sender is not known, as in a trace
    without THREAD events, the reply is inferred from the rcvid of the replying call, if only one open message has this
    rcvid.

    Computed at the first call and cached with the trace until `replies` has used it.
    """
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
    """Return the messages of unknown senders, and the replies whose calls have the same rcvid, uint32 (n,) each.

    A reply is used only if the message is the only open one with that rcvid: in the replying process; if that is not
    known, on any server.
    """
    table = messages(trace)
    is_open = trace.events.thread[table.from_row] == UNKNOWN_THREAD
    if not is_open.any():
        return no_pairs()[:2]
    given = rows_of_codes(trace, REPLY, ERROR)
    calls = open_calls(trace, given)
    is_reply = np.isin(calls, entries_of(trace, "MSG_REPLYV", "MSG_ERROR"))
    given, calls = given[is_reply], calls[is_reply]
    number, known = argument(trace, calls, "rcvid")
    given, number = given[known], number[known] & 0xFFFFFFFF
    receipts = rows_of_codes(trace, RECEIPT)
    rcvid, pid = comm_words(trace, receipts)
    key = receiver_keys(trace, receipts, np.ones(len(receipts), np.bool_), rcvid, pid)
    receipts, key = receipts[key >= 0], key[key >= 0]
    thread = trace.events.thread[given]
    by_process = thread != UNKNOWN_THREAD
    own_key = trace.threads.pid[thread].astype(np.int64) << 32 | number
    answered = np.full(len(given), -1, np.int64)
    answered[by_process] = _receipts_before(receipts, key, given[by_process], own_key[by_process], is_unique=True)
    anywhere = _receipts_before(receipts, key & 0xFFFFFFFF, given, number, is_unique=False)
    answered[~by_process] = anywhere[~by_process]
    given, receipt = given[answered >= 0], receipts[answered[answered >= 0]]
    link = table.ended_by(receipt)
    is_sent = (link >= 0) & is_open[link]
    begin, end = table.from_row[link[is_sent]], given[is_sent]
    sure = is_whole(trace, begin, end)
    return begin[sure], end[sure]


def _receipts_before(
    receipts: NDArray[np.uint32], receipt_keys: NDArray[np.int64], given: NDArray[np.uint32],
    given_keys: NDArray[np.int64], *, is_unique: bool,
) -> NDArray[np.int64]:  # fmt: skip
    """Return for each reply the receipt with its key that it answers, int64 (n,); -1 = none, or one of several.

    `is_unique` says that only one receipt with a key is open at a time, so that one before the reply is answered.
    """
    order = stable_order(np.concatenate((receipts, given)))
    is_receipt, before = order < len(receipts), links.previous_same(np.concatenate((receipt_keys, given_keys))[order])
    answer = np.flatnonzero(~is_receipt & (before >= 0))
    answer = answer[is_receipt[before[answer]]]
    if not is_unique:
        earlier = before[before[answer]]
        answer = answer[(earlier < 0) | ~is_receipt[earlier]]  # else two messages with that key are open
    out = np.full(len(given), -1, np.int64)
    out[order[answer] - len(receipts)] = order[before[answer]]
    return out


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


# Links of pulses to their receipts.


_COMM: Final = wire.WireClass.COMM
SENDS: Final = tuple(wire.code(_COMM, event) for event in (1, 4, 5, 6, 7, 8))  # scoid, pid of the receiver
PULSE_RECEIPT: Final = wire.code(_COMM, 3)  # scoid, pid of the receiver
RECEIVE: Final = STATE_BY_NAME["RECEIVE"].value
_Positions = NDArray[np.intp]


@cached_links(LinkKind.PULSE)
def pulses(trace: Trace) -> Pairs:
    """Return the links from SND_PULSE* to REC_PULSE.

    A pulse that finds a thread waiting in MsgReceive() goes to that thread: its receipt is the thread's next REC_PULSE.
    Other pulses are queued by priority, which the trace does not show; the oldest of a connection (scoid) is assumed to
    be received first. Such a link is exact while only one pulse is queued, and a guess while there are several. It is
    also a guess until a waiting thread shows that the queue is empty: pulses from before the trace, or lost ones, may
    still be queued.
    Source: building block M6 of the reference.
    """
    sends, receipts = rows_of_codes(trace, *SENDS), rows_of_codes(trace, PULSE_RECEIPT)
    if not len(sends) or not len(receipts) or trace.pairs is not None:
        return no_pairs()
    rows = np.concatenate((sends, receipts))
    is_receipt = np.arange(len(rows)) >= len(sends)
    number, pid = comm_words(trace, rows)
    key = receiver_keys(trace, rows, is_receipt, number, pid)
    waiting = _waiting(trace)
    send, receipt = _handed_over(trace, sends, key[: len(sends)], receipts, key[len(sends) :], waiting)
    anchors = sends[send]
    is_left = np.ones(len(rows), np.bool_)
    is_left[send] = False
    # Behind missing events, among which its own receipt may be, a thread's next receipt is of another pulse.
    seen = np.flatnonzero(is_whole(trace, sends[send], receipts[receipt]))
    direct = pairs_of(sends[send[seen]], receipts[receipt[seen]])
    is_left[len(sends) + receipt[seen]] = False
    is_left &= key >= 0
    queued = _queued(trace, rows[is_left], key[is_left], is_receipt[is_left], anchors, key[send])
    sent = np.concatenate((direct[0], queued[0]))
    received = np.concatenate((direct[1], queued[1]))
    certainty = np.concatenate((direct[2], queued[2]))
    sure = is_whole(trace, sent, received)
    return sent[sure], received[sure], certainty[sure]


def _waiting(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return start and end events of the waits in state RECEIVE in which no event is missing, by end; uint32 (n,)."""
    receiving = np.flatnonzero(state_values(trace) == RECEIVE)
    ends = following(trace, receiving)
    receiving, ends = receiving[ends != OPEN], ends[ends != OPEN]
    begins = trace.states.event[receiving]
    whole = np.flatnonzero(is_whole(trace, begins, ends))
    by_end = whole[stable_order(ends[whole])]
    return begins[by_end], ends[by_end]


def _handed_over(
    trace: Trace, sends: NDArray[np.uint32], send_key: NDArray[np.int64], receipts: NDArray[np.uint32],
    receipt_key: NDArray[np.int64], waiting: tuple[NDArray[np.uint32], NDArray[np.uint32]],
) -> tuple[_Positions, _Positions]:  # fmt: skip
    """Return positions of the pulses that went to a waiting thread, and positions of their receipts.

    Such a pulse is the last one sent on the CPU before the event that ends the wait. The receipt is the thread's first
    one after that event, unless the thread begins another wait before the receipt.
    """
    thread, (begins, ends) = trace.events.thread, waiting
    pulse = last_of_codes(trace, SENDS, ends)
    within_wait = np.flatnonzero((pulse != NO_EVENT) & (pulse > begins))
    ends, pulse = ends[within_wait], pulse[within_wait]
    of_receipts = thread[receipts].astype(np.int64)
    following = links.next_of_number(receipts, of_receipts, ends, thread[ends], len(trace.threads))
    followed = np.flatnonzero(following != NO_EVENT)
    sent, receipt = positions(sends, pulse[followed]), positions(receipts, following[followed])
    fits = np.flatnonzero(send_key[sent] == receipt_key[receipt])
    # Another wait that begins before the receipt means that this one ended without a pulse.
    fits = fits[last_of_each(receipt[fits], len(receipts))][::-1]
    fits = fits[last_of_each(sent[fits], len(sends))]  # of a pulse the first receipt
    return sent[fits], receipt[fits]


def _queued(
    trace: Trace, rows: NDArray[np.uint32], key: NDArray[np.int64], is_receipt: NDArray[np.bool_],
    anchors: NDArray[np.uint32], anchor_key: NDArray[np.int64],
) -> Pairs:  # fmt: skip
    """Return the links of queued pulses; at the `anchors` the queue of a channel was empty."""
    if not len(rows):
        return no_pairs()
    both = np.unique(np.concatenate((key, anchor_key)), return_inverse=True)[1]
    row = np.concatenate((rows, anchors))
    step = np.concatenate((np.where(is_receipt, -1, 1), np.zeros(len(anchors), np.int64)))
    order = stable_order(row)
    order = order[stable_order(both[order])]
    row, step, who = row[order], step[order], both[order]
    # A new part of a connection's events begins where the queue is known to be empty, or where events are missing.
    time = trace.events.time_cycles[row]
    part_of_loss = np.searchsorted(np.sort(losses(trace)[:, 1]), time, side="right")
    is_new = np.append(True, who[1:] != who[:-1])
    is_lossy = np.append(False, part_of_loss[1:] != part_of_loss[:-1]) & ~is_new
    is_anchor = step == 0
    part = np.cumsum(is_new | is_lossy | is_anchor)
    is_known = np.zeros(int(part[-1]) + 1, np.bool_)
    is_known[part[is_anchor]] = True
    entered, left, is_single = _first_in_first_out(step, part)
    exact = is_single & is_known[part[entered]]
    certainty = np.where(exact, np.uint8(Certainty.EXACT), np.uint8(Certainty.GUESS))
    return pairs_of(row[entered], row[left], certainty)


def _first_in_first_out(
    step: NDArray[np.int64], part: NDArray[np.intp]
) -> tuple[_Positions, _Positions, NDArray[np.bool_]]:
    """Return entries and exits of queues, matched in order, and whether each entry was always alone, (k,) each.

    An entry was alone if the queue never held two entries from when it was last empty until it was empty again. Queues
    are empty where a part begins; exits from an empty queue are ignored.
    """
    starts = np.searchsorted(part, part)
    depth = depth_within(step, part)
    before = np.append(0, depth[:-1])
    before[np.append(True, part[1:] != part[:-1])] = 0
    is_in, is_out = step > 0, (step < 0) & (before > 0)
    entries, exits = np.flatnonzero(is_in), np.flatnonzero(is_out)
    # Within a part the k-th exit takes the k-th entry.
    rank_in = np.arange(len(entries)) - np.searchsorted(entries, starts[entries])
    rank_out = np.arange(len(exits)) - np.searchsorted(exits, starts[exits])
    requested = part[exits] * len(step) + rank_out
    position = np.searchsorted(part[entries] * len(step) + rank_in, requested)
    entered, left = entries[position], exits
    # From when the queue is empty until it is empty again: how deep was it at most?
    epoch = np.cumsum((is_in & (before == 0)) | np.append(True, part[1:] != part[:-1]))
    deepest = np.zeros(int(epoch[-1]) + 1, np.int64)
    np.maximum.at(deepest, epoch, depth)
    return entered, left, deepest[epoch[entered]] == 1
