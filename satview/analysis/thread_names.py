"""Threads and processes by a part of their name or by number, for filters that people type."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.store.trace import Trace


def threads_named(trace: Trace, text: str) -> NDArray[np.bool_]:
    """Return which threads a text means, bool (threads,): a part of their label, a pid, or `PID:TID`; empty means all.

    Args:
        trace: The threads.
        text: Upper and lower case are one. Digits alone are a pid.
    """
    requested, threads = text.strip().casefold(), trace.threads
    pid, colon, tid = requested.partition(":")
    if not requested:
        return np.ones(len(threads), np.bool_)
    if _is_number(pid) and (_is_number(tid) or not colon):
        return np.asarray((threads.pid == int(pid)) & ((threads.tid == int(tid)) if colon else True))
    return np.array([requested in trace.thread_name(row).casefold() for row in range(len(threads))], np.bool_)


def are_named(trace: Trace, text: str, threads: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of some threads a text means as of `threads_named`, bool (n,); those not known it never means.

    Args:
        trace: The threads.
        text: What was typed.
        threads: int64 (n,), rows of the thread table; 0 and -1 = not known.
    """
    named = threads_named(trace, text)
    named[0] = False
    return np.append(named, False)[threads]  # row -1 is the last one here


def processes_named(trace: Trace, text: str) -> NDArray[np.int64]:
    """Return the pids of the processes that a text means, int64, ascending: a part of their name, or a pid."""
    requested, processes = text.strip().casefold(), trace.processes
    if _is_number(requested):
        return np.array([int(requested)], np.int64)
    found = [row for row in range(1, len(processes)) if requested in trace.process_name(row).casefold()]
    return np.unique(processes.pid[found].astype(np.int64))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 12
