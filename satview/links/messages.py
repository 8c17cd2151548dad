"""Messages and their receipts."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.links.whole import is_whole
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace

_SEND: Final = wire.code(wire.WireClass.COMM, 0)  # rcvid, pid of the receiver
_RECEIPT: Final = wire.code(wire.WireClass.COMM, 2)  # rcvid, pid of the receiver: its own
_FAILED: Final = 0xFFFFFFFF  # in both words: nothing was received


def messages(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return SND_MESSAGE and REC_MESSAGE of the messages of which the trace holds both, in any order.

    The receipt is the next one of the receiver with the rcvid, unless another message with that rcvid is sent to it
    before. Source: format description, section on class 7.
    """
    if not trace.code_counts[_SEND] or not trace.code_counts[_RECEIPT]:
        return np.empty(0, np.uint32), np.empty(0, np.uint32)
    rows = np.flatnonzero((trace.events.code == _SEND) | (trace.events.code == _RECEIPT)).astype(np.uint32)
    is_receipt = trace.events.code[rows] == _RECEIPT
    rcvid, pid = (trace.payloads.column(rows, word) for word in (0, 1))
    thread = trace.events.thread[rows]
    # Who receives is the thread that runs; the payload tells it too, but only of that thread's process.
    own = is_receipt & (thread != UNKNOWN_THREAD)
    receiver = np.where(own, trace.threads.pid[thread].astype(np.uint32), pid)
    key = receiver.astype(np.int64) << 32 | rcvid
    key[is_receipt & (rcvid == _FAILED) & (pid == _FAILED)] = -1
    order = np.argsort(key, kind="stable")
    first, second = order[:-1], order[1:]
    at = np.flatnonzero((key[first] == key[second]) & (key[first] >= 0) & ~is_receipt[first] & is_receipt[second])
    sends, receipts = rows[first[at]], rows[second[at]]
    sure = is_whole(trace, sends, receipts)
    return sends[sure], receipts[sure]
