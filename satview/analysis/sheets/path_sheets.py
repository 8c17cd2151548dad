"""A critical path as tables: its pieces, and what it spends on which thread."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from satview.analysis.reasons.critical_path import PIECE_WORDS, CriticalPath, PathWords, PieceKind
from satview.analysis.sheets.sheet import Column, Kind, Sheet, Subject
from satview.base.errors import Cancelled
from satview.linkage.table import Certainty
from satview.store.trace import Trace

_EMPTY = "The path has no pieces."
_CHECK_EVERY = 256  # pieces put into words between two looks at whether they are cancelled


def pieces_sheet(trace: Trace, path: CriticalPath, is_cancelled: Callable[[], bool] = bool) -> Sheet:
    """Return the pieces of a path, one row each, in time order.

    Args:
        trace: The events.
        path: Its path.
        is_cancelled: Called now and then.

    Raises:
        Cancelled: It said so.
    """
    words, said = PathWords(trace), []
    for piece in range(len(path)):
        if piece % _CHECK_EVERY == 0 and is_cancelled():
            raise Cancelled("the path was stopped")
        said.append(words.says(path, piece))
    length = path.end_cycles - path.start_cycles
    start_ns = trace.clock.ns_array(path.start_cycles)
    who = tuple("\N{EM SPACE}" * int(depth) + trace.thread_name(int(thread))
                for depth, thread in zip(path.depth, path.on_thread, strict=True))  # fmt: skip
    sure = tuple("" if value == Certainty.EXACT else Certainty(int(value)).name.lower() for value in path.certainty)
    return Sheet("path", "Critical path", Subject.THREAD, path.on_thread, (
        Column("start_ns", "Time", Kind.TIME, start_ns, "When the piece begins.", cycles=path.start_cycles,
               events=path.row),
        Column("length_ns", "Length", Kind.DURATION, trace.clock.durations_ns(length), "How long it is."),
        Column("thread", "Thread", Kind.TEXT, who, "The thread that the path is with; indented: the one above waits."),
        Column("does", "What", Kind.TEXT, tuple(said), "What that thread does, and what ends it."),
        Column("certainty", "Certainty", Kind.TEXT, sure, "Of the link to the thread above; empty = exact."),
    ), "", _EMPTY)  # fmt: skip


def totals_sheet(trace: Trace, path: CriticalPath) -> Sheet:
    """Return what a path spends per thread and kind of piece, the longest first; adds up to its interval.

    Args:
        trace: The events.
        path: Its path.
    """
    totals = path.totals()
    threads = np.array([thread for thread, _ in totals], np.int64)
    cycles = np.array(list(totals.values()), np.int64)
    return Sheet("path_totals", "Critical path by thread", Subject.THREAD, threads, (
        Column("thread", "Thread", Kind.TEXT, tuple(trace.thread_name(thread) for thread, _ in totals)),
        Column("kind", "Is", Kind.TEXT, tuple(PIECE_WORDS[PieceKind(kind)] for _, kind in totals)),
        Column("length_ns", "Length", Kind.DURATION, trace.clock.durations_ns(cycles), "Sum of its pieces."),
        Column("share", "Share", Kind.SHARE, cycles / max(1, path.window.length), "Of the interval."),
    ), "length_ns", _EMPTY)  # fmt: skip
