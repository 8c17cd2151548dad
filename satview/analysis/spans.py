"""Work that two events of its thread enclose: pairs of user events, instrumented functions, kernel calls.

Pairs of user events are those whose descriptions are called alike (`request begin`, `request end`). Of threads whose
events have no such names, a pair is learned where the same ones follow each other in the same order all the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.formats.symbols import symbols_of
from satview.linkage.calls import calls
from satview.linkage.rows import rows_of_class, stable_order
from satview.linkage.table import OPEN
from satview.linkage.whole import is_whole
from satview.store.arguments import argument
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace
from satview.timeline.tracks.finders import function_calls
from satview.timeline.tracks.user import interval_rows, pairs_by_name

MOST_CALLS: Final = 20
"""Of the kernel calls, and of the functions, so many of all threads are activities: those that take longest in all."""
_MOST_NUMBERS: Final = 16  # of user events that follow each other all the time
_BITS: Final = 32  # of what a thread calls, behind the thread
# Names of kernel calls in which a thread waits until there is work to do: what begins that work is an activity.
_WAITING: Final = ("RECEIVE", "WAIT", "SLEEP", "TIMEOUT", "JOIN")

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of one kind; every column has shape (n,).

    Attributes:
        trigger: What begins them, in a word.
        group: int64, which belong together.
        first, last: int64, rows of the events; -1 = the trace ends before.
        labels: What each group is called, behind its thread.
        left_out: Groups beyond `MOST_CALLS`.
    """

    trigger: str
    group: _Ints
    first: _Ints
    last: _Ints
    labels: dict[int, str]
    left_out: int = 0


def spans(trace: Trace) -> list[Spans]:
    """Return what two events enclose, of known threads."""
    if trace.pairs is not None:
        return []
    return [_of_user_events(trace), _of_functions(trace), _of_kernel_calls(trace)]


def described_pairs(trace: Trace) -> tuple[tuple[int, int, str], ...]:
    """Return the numbers of user events that descriptions pair by their names, with what a pair is called."""
    events = {event.number: event for code, event in trace.payloads.described.items()
              if wire.class_of(code) == wire.WireClass.USER}  # fmt: skip
    return tuple((rule.number, rule.end_number, rule.name) for rule in pairs_by_name(events))


def _of_user_events(trace: Trace) -> Spans:
    rows = rows_of_class(trace, wire.WireClass.USER)
    rows = rows[trace.events.thread[rows] != UNKNOWN_THREAD]
    number = (trace.events.code[rows] & wire.EVENT_MASK).astype(np.int64)
    firsts, lasts, groups, labels = [], [], [], dict[int, str]()
    is_free = np.ones(len(rows), np.bool_)

    def add(first: NDArray[np.integer], last: NDArray[np.integer], begin: int, label: str) -> None:
        group = trace.events.thread[first].astype(np.int64) << _BITS | begin
        labels.update(dict.fromkeys(np.unique(group).tolist(), label))
        firsts.append(first.astype(np.int64))
        lasts.append(last.astype(np.int64))
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
            first, last, begin, end = pair
            add(first, last, begin, f"user events {begin} to {end}")
    group, first, last = (np.concatenate([np.empty(0, np.int64), *parts]) for parts in (groups, firsts, lasts))
    return Spans("events", group, first, last, labels)


def _pair_of(trace: Trace, rows: NDArray[np.uint32], number: _Ints) -> tuple[_Ints, _Ints, int, int] | None:
    """Return the pairs of a thread whose user events follow each other in the same order all the time.

    The longest pause, by its median, is between the last of them and the first of the next time.
    """
    kinds, which = np.unique(number, return_inverse=True)
    count = len(kinds)
    if not 2 <= count <= _MOST_NUMBERS or len(rows) < 2 * count:
        return None
    is_next = is_whole(trace, rows[:-1], rows[1:])
    step = np.unique(np.stack((which[:-1], which[1:]))[:, is_next], axis=1)
    if step.shape[1] != count or len(np.unique(step[0])) != count:
        return None  # some are followed by several others
    following = step[1]
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
    at = np.flatnonzero(which == begin)
    at = at[at + count - 1 < len(rows)]
    first, last = rows[at].astype(np.int64), rows[at + count - 1].astype(np.int64)
    whole = is_whole(trace, first, last) & (number[at + count - 1] == kinds[end])
    return first[whole], last[whole], int(kinds[begin]), int(kinds[end])


def _of_functions(trace: Trace) -> Spans:
    first, last = function_calls(trace)
    address = argument(trace, first, "thisfn")[0]
    places, which = np.unique(address, return_inverse=True)
    found = _longest(trace, "function", first, last, which.reshape(-1))
    symbols = symbols_of(trace)
    for group in found.labels:
        where, process = int(places[group & (1 << _BITS) - 1]), int(trace.threads.process[group >> _BITS])
        name = "" if symbols is None else symbols.place(process, where).function
        found.labels[group] = f"{name or f'0x{where:x}'}()"
    return found


def _of_kernel_calls(trace: Trace) -> Spans:
    (first, last), _ = calls(trace)
    code = trace.events.code[first]
    names = {number: trace.catalogue.name(number) for number in np.unique(code).tolist()}
    waits = [number for number, name in names.items() if any(word in name for word in _WAITING)]
    if waits:
        works = ~np.isin(code, waits)
        first, last, code = first[works], last[works], code[works]
    found = _longest(trace, "call", first, last, code)
    for group in found.labels:
        found.labels[group] = names[group & (1 << _BITS) - 1]
    return found


def _longest(
    trace: Trace, trigger: str, first: NDArray[np.uint32], last: NDArray[np.uint32], what: NDArray[np.integer]
) -> Spans:
    """Return the spans of the pairs of a thread and what it calls that take longest in all."""
    time = trace.events.time_cycles
    length = np.where(last == OPEN, trace.window.end, time[np.where(last == OPEN, 0, last)]) - time[first]
    key = trace.events.thread[first].astype(np.int64) << _BITS | what
    groups, which = np.unique(key, return_inverse=True)
    total = np.bincount(which.reshape(-1), length, len(groups))
    kept = np.sort(np.argsort(-total, kind="stable")[:MOST_CALLS])
    is_kept = np.zeros(len(groups), np.bool_)
    is_kept[kept] = True
    at = np.flatnonzero(is_kept[which.reshape(-1)])
    end = last[at].astype(np.int64)
    end[last[at] == OPEN] = -1
    return Spans(trigger, key[at], first[at].astype(np.int64), end, dict.fromkeys(groups[kept].tolist(), ""),
                 len(groups) - len(kept))  # fmt: skip
