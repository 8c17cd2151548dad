"""The sheets of states: one row per thread and state, and one per state over all threads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.analysis.sheets.sheet import Columns, Sheet, Subject
from satview.analysis.sheets.sheet_rows import Shown, columns_of, sheet_of, threads_shown
from satview.analysis.statistics import Statistics
from satview.analysis.times.by_key import largest_by, percentiles_by, sum_by
from satview.analysis.times.state_lengths import SHARES
from satview.events.states import ABSENT, IDLE, STATE_BY_VALUE, VALUE_COUNT, WAITING
from satview.store.time_ranges import Cycles

_LEFT_OUT = (ABSENT, IDLE, WAITING)
_TITLES = {0.5: "Half within", 0.9: "90 % within", 0.99: "99 % within"}


def state_sheet(found: Statistics, shown: Shown = None) -> Sheet:
    """Return one row per thread and state."""
    trace, states = found.trace, found.states
    rows = np.flatnonzero(~np.isin(states.value, _LEFT_OUT))
    rows = rows[np.isin(states.thread[rows], threads_shown(found, shown))]
    columns = columns_of(found, rows)
    columns.text("thread", "Thread", lambda row: trace.thread_name(int(states.thread[row])))
    columns.text("state", "State", lambda row: state_name(int(states.value[row])))
    columns.duration("total_ns", "Time", states.total_cycles, "Time in this state.")
    whole = found.covered.threads[states.thread]
    columns.share("share", "Of the range", states.total_cycles, whole, "Share of the range.")
    _length_columns(
        columns,
        states.count,
        states.total_cycles,
        found.state_lengths.percentiles_of(states),
        states.longest_cycles,
        states.longest_start_cycles,
    )
    return sheet_of(
        "state",
        "States",
        Subject.THREAD,
        columns,
        "total_ns",
        "No state is known in this range.",
        subjects=states.thread,
    )


def state_total_sheet(found: Statistics, shown: Shown = None) -> Sheet:
    """Return one row per state: all threads together, idle ones left out."""
    trace, lengths = found.trace, found.state_lengths
    keep = np.isin(lengths.thread, threads_shown(found, shown)) & ~np.isin(lengths.value, _LEFT_OUT)
    value, cycles = lengths.value[keep].astype(np.int64), lengths.cycles[keep]
    thread, start = lengths.thread[keep], lengths.start[keep]
    total = sum_by(value, cycles, VALUE_COUNT)
    longest, at = largest_by(value, cycles, VALUE_COUNT)
    pairs = np.unique(value * len(trace.threads) + thread) // len(trace.threads)
    of, begin = np.append(thread, 0)[at], np.append(start, -1)[at]
    columns = columns_of(found, np.flatnonzero(total))
    columns.text("state", "State", state_name)
    columns.duration("total_ns", "Time", total, "Time of all threads in this state; idle threads are left out.")
    columns.share("share", "Of all threads", total, int(total.sum()), "Share of the time of all threads.")
    columns.count("threads", "Threads", np.bincount(pairs, minlength=VALUE_COUNT), "Threads that were in this state.")
    _length_columns(
        columns,
        np.bincount(value, minlength=VALUE_COUNT),
        total,
        percentiles_by(value, cycles, VALUE_COUNT, SHARES),
        longest,
        begin,
    )
    columns.text("longest_thread", "Longest of", lambda row: trace.thread_name(int(of[row])), "Whose was the longest.")
    return sheet_of(
        "state-total",
        "All states",
        Subject.THREAD,
        columns,
        "total_ns",
        "No state is known in this range.",
        "All threads together, idle ones left out.",
        subjects=of,
    )


def state_name(value: int) -> str:
    """Return what a state is called."""
    return STATE_BY_VALUE[value].name if value in STATE_BY_VALUE else "unknown"


def _length_columns(
    columns: Columns,
    count: NDArray[np.int64],
    total: Cycles,
    percentiles: tuple[Cycles, ...],
    longest: Cycles,
    start: Cycles,
) -> None:
    columns.count("count", "Times", count, "Intervals in this state, those that the range cuts included.")
    columns.mean("mean_ns", "Mean", total, count, "Mean length, cut at the range.")
    for share, cycles in zip(SHARES, percentiles, strict=True):
        text = f"Of a hundred intervals {100 * share:g} took at most this time, cut at the range."
        columns.duration(f"p{100 * share:g}_ns", _TITLES[share], cycles, text)
    columns.duration("longest_ns", "Longest", longest, "The longest interval, cut at the range.", start=start)
