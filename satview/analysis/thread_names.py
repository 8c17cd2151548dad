"""Finds threads and processes by a name or number, in every form that satview shows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.filters.diagnostics import did_you_mean, nearest
from satview.store.trace import Trace

_MOST_NAMES: Final = 8  # of threads that an ambiguous name could mean


def names_of_process(trace: Trace, process: int) -> tuple[str, ...]:
    """Return the names of a process: its label, with and without its number, its path, `pid 7`; each once."""
    pid, short = int(trace.processes.pid[process]), trace.short_process_name(process)
    shown = (trace.process_name(process), short, trace.processes.names[process])
    numbered = (f"{short}[{pid}]", f"pid {pid}") if pid >= 0 else ()
    return tuple(dict.fromkeys(name for name in (*shown, *numbered) if name))


def names_of_thread(trace: Trace, thread: int) -> tuple[str, ...]:
    """Return the names of a thread: its label, its own name, `PID:TID`, and its tid after each name of its process."""
    process, tid = int(trace.threads.process[thread]), int(trace.threads.tid[thread])
    own = trace.threads.names[thread]
    behind = [f"{name} {tid}" for name in names_of_process(trace, process)]
    named = [f"{name} ({own})" for name in behind] if own else []
    numbers = f"{int(trace.processes.pid[process])}:{tid}"
    return tuple(dict.fromkeys((trace.thread_name(thread), *([own] if own else []), numbers, *behind, *named)))


def thread_of(trace: Trace, text: str) -> int:
    """Return the row of the thread with one of `names_of_thread`, or of the only thread of a process with that name.

    Raises:
        UsageError: No thread fits, or several do, which the text names.
    """
    requested = text.strip()
    rows = [row for row in range(1, len(trace.threads)) if int(trace.threads.tid[row]) > 0]
    # A thread's own label before others, a thread before a process.
    kinds: tuple[Callable[[int], tuple[str, ...]], ...] = (
        lambda row: (trace.thread_name(row),),
        partial(names_of_thread, trace),
        lambda row: names_of_process(trace, int(trace.threads.process[row])),
    )
    for names_of in kinds:
        matches = [row for row in rows if requested in names_of(row)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            some = ", ".join(f"{trace.threads.pid[row]}:{trace.threads.tid[row]} {trace.thread_name(row)}"
                             for row in matches[:_MOST_NAMES])  # fmt: skip
            more = f" and {len(matches) - _MOST_NAMES} more" if len(matches) > _MOST_NAMES else ""
            raise UsageError(f"{requested[:40]!r} is the name of {len(matches)} threads; write PID:TID: {some}{more}")
    near = did_you_mean(nearest(requested, dict.fromkeys(name for row in rows for name in names_of_thread(trace, row))))
    raise UsageError(f"the trace has no thread {requested[:40]!r}{near or '; `satview stats` lists them'}")


def threads_named(trace: Trace, text: str) -> NDArray[np.bool_]:
    """Return which threads match a text, bool (threads,): a part of label or path, or a pid; empty matches all.

    Case is ignored. Digits alone are a pid; other names (`names_of_thread`) must match as a whole.
    """
    requested, threads = text.strip().casefold(), trace.threads
    pid, colon, tid = requested.partition(":")
    if not requested:
        return np.ones(len(threads), np.bool_)
    if _is_number(pid) and (_is_number(tid) or not colon):
        return np.asarray((threads.pid == int(pid)) & ((threads.tid == int(tid)) if colon else True))
    is_named = [
        _means(requested, names_of_thread(trace, row), trace.thread_name(row), int(threads.process[row]), trace)
        for row in range(1, len(threads))
    ]
    return np.array([requested in trace.thread_name(0).casefold(), *is_named], np.bool_)


def refuse_unknown(trace: Trace, text: str) -> None:
    """Raise an error if a text, interpreted as in `threads_named`, matches no thread and no process of a trace.

    Raises:
        UsageError: Nothing matches.
    """
    requested = text.strip()
    is_process = np.isin(processes_named(trace, requested), trace.processes.pid)
    if threads_named(trace, requested)[1:].any() or is_process.any():
        return
    names = dict.fromkeys(name for row in range(1, len(trace.threads)) for name in names_of_thread(trace, row))
    near = did_you_mean(nearest(requested, names))
    raise UsageError(f"the trace has no thread or process {requested[:40]!r}{near or '; `satview stats` lists them'}")


def are_named(trace: Trace, text: str, threads: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of the given threads match a text as in `threads_named`, bool (n,); unknown threads never match.

    Args:
        trace: The threads.
        text: Text typed by the user.
        threads: int64 (n,), rows of the thread table; 0 and -1 = not known.
    """
    named = threads_named(trace, text)
    named[0] = False
    return np.append(named, False)[threads]  # row -1 is the last one here


def processes_named(trace: Trace, text: str) -> NDArray[np.int64]:
    """Return the pids of the processes that match a text, a part of their name or a pid; int64, ascending."""
    requested, processes = text.strip().casefold(), trace.processes
    if _is_number(requested):
        return np.array([int(requested)], np.int64)
    is_named = [
        row
        for row in range(1, len(processes))
        if _means(requested, names_of_process(trace, row), trace.process_name(row), row, trace)
    ]
    return np.unique(processes.pid[is_named].astype(np.int64))


def _means(text: str, names: tuple[str, ...], label: str, process: int, trace: Trace) -> bool:
    """Return whether a text is a part of `label` or of the path of a process, or equal to one of `names`."""
    if text in label.casefold() or text in trace.processes.names[process].casefold():
        return True
    return any(text == name.casefold() for name in names)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 12
