"""Finds work delimited by two events of its thread: pairs of user events, instrumented functions, kernel calls.

User events form a pair if the names of their descriptions match (`request begin`, `request end`). For threads whose
events have no such names, a pair is learned if the same events always follow each other in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core.ordering import stable_order
from satview.events import wire
from satview.formats.symbols import symbols_of
from satview.linkage.calls import calls
from satview.linkage.rows import rows_of_class
from satview.linkage.table import OPEN
from satview.linkage.whole import is_whole
from satview.store.arguments import argument, distinct
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace
from satview.timeline.tracks.finders import function_calls
from satview.timeline.tracks.user import interval_rows, pairs_by_name

MOST_CALLS: Final = 20
"""Most kernel calls, and most functions, that become activities: those with the longest total time."""
_MOST_NUMBERS: Final = 16  # different user events in a learned cycle
_BITS: Final = 32  # of a group for the event or called function; the thread is above
# Parts of the names of kernel calls that wait for work. Such a call is no activity, the work that follows may be.
_WAITING: Final = ("RECEIVE", "WAIT", "SLEEP", "TIMEOUT", "JOIN")

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of one kind, each from one event of a thread to another; every column has shape (n,).

    Attributes:
        trigger: Kind of their first event, one word.
        group: int64, group of each span: spans of the same thread with the same events, call or function.
        begin_row, end_row: int64, rows of the events; -1 = the trace ends before.
        labels: Label of each group, put after the name of its thread.
        left_out: Number of groups beyond `MOST_CALLS`.
    """

    trigger: str
    group: _Ints
    begin_row: _Ints
    end_row: _Ints
    labels: dict[int, str]
    left_out: int = 0


def spans(trace: Trace) -> list[Spans]:
    """Return the spans of user events, functions and kernel calls of known threads; none for a thread trace."""
    if trace.pairs is not None:
        return []
    return [_of_user_events(trace), _of_functions(trace), _of_kernel_calls(trace)]


def described_pairs(trace: Trace) -> tuple[tuple[int, int, str], ...]:
    """Return the numbers of user events that descriptions pair by their names, with the name of each pair."""
    events = {event.number: event for code, event in trace.payloads.described.items()
              if wire.class_of(code) == wire.WireClass.USER}  # fmt: skip
    return tuple((rule.number, rule.end_number, rule.name) for rule in pairs_by_name(events))


def _of_user_events(trace: Trace) -> Spans:
    rows = rows_of_class(trace, wire.WireClass.USER)
    rows = rows[trace.events.thread[rows] != UNKNOWN_THREAD]
    number = (trace.events.code[rows] & wire.EVENT_MASK).astype(np.int64)
    begins, ends, groups, labels = [], [], [], dict[int, str]()
    is_free = np.ones(len(rows), np.bool_)

    def add(begin_row: NDArray[np.integer], end_row: NDArray[np.integer], begin: int, label: str) -> None:
        group = trace.events.thread[begin_row].astype(np.int64) << _BITS | begin
        labels.update(dict.fromkeys(np.unique(group).tolist(), label))
        begins.append(begin_row.astype(np.int64))
        ends.append(end_row.astype(np.int64))
        groups.append(group)

    for begin, end, name in described_pairs(trace):
        add(*interval_rows(trace, rows, begin, end), begin, name)
        is_free &= ~np.isin(number, (begin, end))
    rows, number = rows[is_free], number[is_free]
    order = stable_order(trace.events.thread[rows])
    rows, number = rows[order], number[order]
    thread = trace.events.thread[rows]
    for own in np.split(np.arange(len(rows)), np.flatnonzero(thread[1:] != thread[:-1]) + 1):
        if (pair := _pair_of(trace, rows[own], number[own])) is not None:
            begin_row, end_row, begin, end = pair
            add(begin_row, end_row, begin, f"user events {begin} to {end}")
    group, begin_row, end_row = (np.concatenate([np.empty(0, np.int64), *parts]) for parts in (groups, begins, ends))
    return Spans("events", group, begin_row, end_row, labels)


def _pair_of(trace: Trace, rows: NDArray[np.uint32], number: _Ints) -> tuple[_Ints, _Ints, int, int] | None:
    """Return the rounds of a thread that logs its user events in a fixed cycle; None if it does not.

    A round is assumed to end before the pause whose median length is the largest.

    Returns:
        Rows of the events that begin and that end each round, int64 (n,) each, and the event numbers of the two.
    """
    kinds, which = np.unique(number, return_inverse=True)
    count = len(kinds)
    if not 2 <= count <= _MOST_NUMBERS or len(rows) < 2 * count:
        return None
    is_next = is_whole(trace, rows[:-1], rows[1:])
    step, following = np.divmod(np.unique((which[:-1] * count + which[1:])[is_next]), count)
    if len(step) != count or len(np.unique(step)) != count:
        return None  # an event is followed by different ones
    round_trip, kind = [0], int(following[0])
    while kind not in round_trip:
        round_trip.append(kind)
        kind = int(following[kind])
    if kind != 0 or len(round_trip) != count:
        return None
    pause = np.diff(trace.events.time_cycles[rows])
    median = [np.median(pause[is_next & (which[:-1] == kind)]) for kind in range(count)]
    end = int(np.argmax(median))
    begin = int(following[end])
    starts = np.flatnonzero(which == begin)
    starts = starts[starts + count - 1 < len(rows)]
    begin_row, end_row = rows[starts].astype(np.int64), rows[starts + count - 1].astype(np.int64)
    whole = is_whole(trace, begin_row, end_row) & (number[starts + count - 1] == kinds[end])
    return begin_row[whole], end_row[whole], int(kinds[begin]), int(kinds[end])


def _of_functions(trace: Trace) -> Spans:
    begin_row, end_row = function_calls(trace)
    address = argument(trace, begin_row, "thisfn")[0]
    places, which = np.unique(address, return_inverse=True)
    longest = _longest(trace, "function", begin_row, end_row, which.reshape(-1))
    symbols = symbols_of(trace)
    for group in longest.labels:
        where, process = int(places[group & (1 << _BITS) - 1]), int(trace.threads.process[group >> _BITS])
        name = "" if symbols is None else symbols.place(process, where).function
        longest.labels[group] = f"{name or f'0x{where:x}'}()"
    return longest


def _of_kernel_calls(trace: Trace) -> Spans:
    (begin_row, end_row), _ = calls(trace)
    code = trace.events.code[begin_row]
    names = {number: trace.catalogue.name(number) for number in np.unique(code).tolist()}
    waits = [number for number, name in names.items() if any(word in name for word in _WAITING)]
    if waits:
        works = ~np.isin(code, waits)
        begin_row, end_row, code = begin_row[works], end_row[works], code[works]
    longest = _longest(trace, "call", begin_row, end_row, code)
    for group in longest.labels:
        longest.labels[group] = names[group & (1 << _BITS) - 1]
    return longest


def _longest(
    trace: Trace, trigger: str, begin_row: NDArray[np.uint32], end_row: NDArray[np.uint32], what: NDArray[np.integer]
) -> Spans:
    """Return the spans of those (thread, called function) pairs that have the longest total times."""
    time = trace.events.time_cycles
    end_cycles = time.take(end_row, mode="clip")
    end_cycles[end_row == OPEN] = trace.window.end
    key = trace.events.thread[begin_row].astype(np.int64) << _BITS | what
    groups, which = distinct(key)
    total = np.bincount(which, end_cycles - time[begin_row], len(groups))
    kept = np.sort(np.argsort(-total, kind="stable")[:MOST_CALLS])
    is_kept = np.zeros(len(groups), np.bool_)
    is_kept[kept] = True
    chosen = np.flatnonzero(is_kept[which])
    labels = dict.fromkeys(groups[kept].tolist(), "")
    end = end_row[chosen].astype(np.int64)
    end[end_row[chosen] == OPEN] = -1
    return Spans(trigger, key[chosen], begin_row[chosen].astype(np.int64), end, labels, len(groups) - len(kept))
