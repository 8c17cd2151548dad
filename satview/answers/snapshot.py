"""The state of every thread at one time, grouped by state and by the object waited for.

    for row in satview.snapshot(trace, trace.clock.cycles(50_000_000)):
        print(row["state"], row["thread"], row["waits_for"], row["holder"])

Source: Thread State Snapshot of the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.needs import STATES
from satview.analysis.times.basis import Basis, Scope, scope_of
from satview.analysis.times.state_times import state_spans
from satview.analysis.verdicts.evidence import Evidence, waited_for
from satview.answers.frames import Texts
from satview.answers.table import Column, Kind, Known, Question, Table, known_by_certainty, known_where
from satview.base.errors import UsageError
from satview.base.time import TimeWindow
from satview.events.states import ABSENT, IDLE, NAMES_BY_VALUE, READY, RUNNING, STATE_BY_NAME, UNKNOWN, WAITING
from satview.linkage.blockers import JOIN, REPLY, RWLOCKS, SEND, Blockers, blockers, holders_at
from satview.linkage.links import is_whole
from satview.linkage.waits import MUTEX
from satview.store.trace import Trace
from satview.timeline.state_lanes import idle_values, value_of_code

_NONE: Final = -1
_ON_A_CPU: Final = (RUNNING, IDLE)
_RECEIVE: Final = STATE_BY_NAME["RECEIVE"].value
_HELD: Final = (REPLY, JOIN, MUTEX, *RWLOCKS)  # states in which a thread waits for another one
_FOR_OBJECTS: Final = (SEND, *_HELD, *(STATE_BY_NAME[name].value for name in ("RECEIVE", "CONDVAR", "SEM")))
_Ints = NDArray[np.int64]
_Group = tuple[int, int, str, int]  # state, CPU, object waited for, holder of the object
QUESTION: Final = Question(
    "snapshot",
    "Snapshot",
    "What does every thread do at one moment?",
    (
        Column("state", Kind.STATE, "what it does; an idle thread that has a CPU is `IDLE`", "State"),
        Column("thread", Kind.THREAD, "who", "Thread"),
        Column("pid", Kind.NUMBER, "its process id", "pid"),
        Column("tid", Kind.NUMBER, "its number within its process", "tid"),
        Column("count", Kind.COUNT, "how many threads are in that state for the same reason", "Threads", reasons={
            Known.AT_LEAST: "of other threads the state, or what they wait for, is not known",
            Known.ESTIMATE: "what these threads wait for is not known"}),
        Column("cpu", Kind.CPU, "the CPU that it runs on", "CPU", is_nullable=True),
        Column("waits_for", Kind.TEXT, "what it waits for; empty where that says no more than the state",
               "Waits for", is_nullable=True, reasons={
                   Known.UNKNOWN: "the call in which it began to wait is not in the trace, or events are missing"}),
        Column("holder", Kind.THREAD, "who holds that, serves it or is joined", "Held or served by", is_nullable=True,
               reasons={Known.INFERRED: "it follows from the order of events; no event says so",
                        Known.UNKNOWN: "no event shows it, or events are missing",
                        Known.GUESS: "one of several that the trace does not distinguish"}),
        Column("since", Kind.TIME, "when it entered that state, as far back as the trace shows", "Since",
               is_nullable=True),
        Column("length", Kind.DURATION, "for how long it has been in that state", "For", is_nullable=True),
        Column("event", Kind.EVENT, "the event by which it entered that state", "Event", is_nullable=True),
    ),
    "",
    "There are no threads at that moment.",
)  # fmt: skip


def snapshot(
    trace: Trace,
    moment_cycles: int,
    basis: Basis | None = None,
    cancelled: Callable[[], bool] | None = None,
    *,
    by_state: bool = False,
) -> Table:
    """Return a table of the state of every thread at one time. The first call computes the links of the trace.

    Threads that wait for another thread come first (MUTEX, SEND, REPLY, ...); then RUNNING, by CPU, and READY; then
    other waits, first of threads for which others wait; RECEIVE, IDLE and unknown states are last. Within this order,
    states with more threads come first. Threads in the same state for the same reason are adjacent, the longest first.
    Idle threads are left out unless they run on a CPU.

    Events at exactly this time have already happened. If events are missing, a thread is `UNKNOWN` until its next state
    event, as in its lane.

    Args:
        trace: The events.
        moment_cycles: The time in cycles of the trace's clock: `trace.clock.cycles(ns)`.
        basis: Data for statistics of the trace, if the caller has it; None = it is computed.
        cancelled: Called repeatedly during the work.
        by_state: Add a row for each state, with its threads below it.

    Raises:
        UsageError: The time is outside the trace.
        Cancelled: `cancelled` returned true.
    """
    if not trace.window.contains(moment_cycles):
        raise UsageError("that moment is outside the trace")
    scope = scope_of(trace, TimeWindow(moment_cycles, moment_cycles + 1), None, basis, cancelled)
    moment = _Moment(scope, moment_cycles)
    thread, value = moment.states()
    last, begins = moment.rows(thread, value)
    scope.check()
    wait = moment.waits(thread, last)
    holder, certainty = moment.holders(wait)
    cpu, since = np.full((2, len(thread)), _NONE, np.int64)
    is_on_cpu, has_begun = np.isin(value, _ON_A_CPU) & (last >= 0), begins >= 0
    cpu[is_on_cpu] = trace.events.cpu[last[is_on_cpu]]
    since[has_begun] = trace.events.time_cycles[begins[has_begun]]
    words = [moment.words(*pair) for pair in zip(wait.tolist(), value.tolist(), strict=True)]
    groups: dict[_Group, list[int]] = {}
    for row, group in enumerate(zip(value.tolist(), cpu.tolist(), words, holder.tolist(), strict=True)):
        groups.setdefault(group, []).append(row)
    for_unknown = np.isin(value, _FOR_OBJECTS) & np.array([not text for text in words], np.bool_)
    is_held_by_unknown = np.isin(value, _HELD) & (holder <= 0)
    if trace.pairs is not None:  # the format has no calls: the state says all
        for_unknown[:] = is_held_by_unknown[:] = False
    is_least = ~np.isin(value, (*_ON_A_CPU, UNKNOWN)) & bool(np.any(value == UNKNOWN))
    doubt = known_where(is_least | np.isin(value, value[for_unknown]), Known.AT_LEAST)
    doubt_of_states = np.zeros(len(NAMES_BY_VALUE), np.uint8)
    doubt_of_states[value[is_least]] = Known.AT_LEAST
    order, counts = [], []
    for group in sorted(groups, key=_order(groups, thread)):
        rows = groups[group]
        order += sorted(rows, key=lambda row: (since[row] < 0, since[row], thread[row]))
        counts += [len(rows)] * len(rows)
    states = list(dict.fromkeys(value[order].tolist())) if by_state else []
    sizes = np.bincount(value, minlength=len(NAMES_BY_VALUE))

    of_states = np.full(len(states), _NONE, np.int64)  # rows of states have no value in columns about threads

    def column(of_threads: NDArray[np.integer[Any]]) -> _Ints:
        return np.append(of_states, of_threads[order])

    def known(of_threads: NDArray[np.integer[Any]], of_states: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return np.append(of_states, of_threads[order].astype(np.uint8))

    exact = np.zeros(len(states), np.uint8)
    by_certainty = np.where(holder > 0, known_by_certainty(certainty.clip(0).astype(np.uint8)), Known.EXACT)
    thread, holder, since = column(thread), column(holder), column(since)
    names = trace.thread_name
    return Table(
        QUESTION,
        trace,
        {
            "state": Texts(np.append(np.array(states, np.uint8), value[order]), NAMES_BY_VALUE),
            "thread": thread,
            "pid": np.where(thread > 0, trace.threads.pid[thread], _NONE),
            "tid": np.where(thread > 0, trace.threads.tid[thread], _NONE),
            "count": np.append(sizes[states], np.array(counts, np.int64)),
            "cpu": column(cpu),
            "waits_for": Texts.of([*[""] * len(states), *(words[row] for row in order)]),
            "holder": holder,
            "since": since,
            "length": np.where(since >= 0, moment_cycles - since, _NONE),
            "event": column(begins),
        },
        known={"count": known(np.where(for_unknown, Known.ESTIMATE, doubt), doubt_of_states[states]),
               "waits_for": known(known_where(for_unknown, Known.UNKNOWN), exact),
               "holder": known(np.where(is_held_by_unknown, Known.UNKNOWN, by_certainty), exact)},
        texts={"thread": lambda row: names(int(thread[row])) if thread[row] > 0 else "",
               "holder": lambda row: names(int(holder[row])) if holder[row] > 0 else ""},
        parent=np.append(of_states, [states.index(state) for state in value[order]]) if by_state else None,
        has_parts=by_state,
        moments={"holder": np.where(holder > 0, moment_cycles, _NONE)},
        cannot_tell="" if len(thread) else STATES.advice(trace),
    )  # fmt: skip


class _Moment:
    """Computes the columns of a snapshot at one time."""

    def __init__(self, scope: Scope, time_cycles: int) -> None:
        self._scope, self._trace, self._time_cycles = scope, scope.trace, time_cycles
        self._bound = int(np.searchsorted(self._trace.events.time_cycles, time_cycles, side="right"))
        self._evidence = Evidence(self._trace)

    def states(self) -> tuple[_Ints, NDArray[np.uint8]]:
        """Return the threads that exist at the time, without idle ones that do not run, and their states."""
        parts = [(np.empty(0, np.int64), np.empty(0, np.uint8))]
        for spans in state_spans(self._scope):
            current = np.flatnonzero((spans.start <= self._time_cycles) & (self._time_cycles < spans.end))
            parts.append((spans.thread[current].astype(np.int64), spans.value[current]))
        thread, value = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        is_there = (value != ABSENT) & (value != WAITING) & (self._trace.threads.tid[thread] > 0)
        return thread[is_there], value[is_there]

    def rows(self, thread: _Ints, value: NDArray[np.uint8]) -> tuple[_Ints, _Ints]:
        """Return for each thread its last state event, and the one with which its state began, int64 (n,); -1 for none.

        These two differ if later events repeat the state, as for a new priority or in the opening dump.
        """
        trace, states = self._trace, self._trace.states
        # One search per thread, as computing keys for all events of a long trace would take far longer.
        position = np.array([states.start[row] + np.searchsorted(states.of(row), self._bound) - 1
                          for row in thread.tolist()], np.int64)  # fmt: skip
        known = (value != UNKNOWN) & (position >= states.start[thread])
        codes = value_of_code(trace)
        tables = np.stack((codes, idle_values(codes)))
        idle, events = self._scope.basis.is_idle[thread].astype(np.intp), trace.events
        last = np.full(len(thread), _NONE, np.int64)
        last[known] = states.event[position[known]]
        begin, going = last.copy(), np.flatnonzero(known)
        while len(going):
            position[going] -= 1
            going = going[position[going] >= states.start[thread[going]]]
            before = states.event[position[going]].astype(np.int64)
            same = tables[idle[going], events.code[before]] == value[going]
            same &= ~np.isin(value[going], _ON_A_CPU) | (events.cpu[before] == events.cpu[begin[going]])
            same &= is_whole(trace, before, begin[going])
            going, before = going[same], before[same]
            begin[going] = before
        return last, begin

    def waits(self, thread: _Ints, last: _Ints) -> _Ints:
        """Return for each thread the row in `waits` of the wait that its last event begins, int64 (n,); -1 = none."""
        waiting = blockers(self._trace).waits
        left, right = (np.searchsorted(waiting.thread, thread, side=side) for side in ("left", "right"))
        position = np.array([begin + np.searchsorted(waiting.row[begin:stop], row) for begin, stop, row in
                          zip(left.tolist(), right.tolist(), last.tolist(), strict=True)], np.int64)  # fmt: skip
        fits = position < right
        fits[fits] = waiting.row[position[fits]] == last[fits]
        return np.where(fits, position, _NONE)

    def holders(self, wait: _Ints) -> tuple[_Ints, _Ints]:
        """Return for each wait who holds the lock or is the server then (-1 = none), and the certainty."""
        known = blockers(self._trace)
        holder, certainty = np.full(len(wait), _NONE, np.int64), np.zeros(len(wait), np.int64)
        waiting = np.flatnonzero(wait >= 0)
        holder[waiting], certainty[waiting] = known.thread[wait[waiting]], known.certainty[wait[waiting]]
        waiting = waiting[known.waits.value[wait[waiting]] == MUTEX]
        # A mutex may have changed hands since the wait began.
        holder[waiting], certainty[waiting] = holders_at(self._trace, known, wait[waiting], self._bound)
        return holder, certainty

    def words(self, wait: int, value: int) -> str:
        """Return the object of a wait as text, for a channel with its process; empty if the trace does not show it."""
        known = blockers(self._trace)
        if wait < 0 or not _says_more(known, wait, value):
            return ""
        words = waited_for(self._evidence, known, wait)
        if value != _RECEIVE:
            return words
        process = int(self._trace.threads.process[known.waits.thread[wait]])
        return f"{words} of {self._trace.process_name(process)}"


def _says_more(known: Blockers, wait: int, value: int) -> bool:
    """Return whether the trace shows the object, server or thread that a wait is for."""
    waiting = known.waits
    return bool(waiting.has_object[wait] or (value in (SEND, REPLY, JOIN) and known.pid[wait] > 0))


def _order(groups: dict[_Group, list[int]], thread: _Ints) -> Callable[[_Group], tuple[int, int, int, int, int, str]]:
    """Return a function that returns the sort key of a group of threads in the snapshot."""
    of_state: dict[int, int] = {}
    for (value, *_), rows in groups.items():
        of_state[value] = of_state.get(value, 0) + len(rows)
    holders = {holder for *_, holder in groups if holder > 0}
    waiting = {value for value, *_, holder in groups if holder > 0} | {SEND, REPLY, JOIN, MUTEX, *RWLOCKS}
    looked_for = {value for (value, *_), rows in groups.items() if not holders.isdisjoint(thread[rows].tolist())}

    def rank(value: int) -> int:
        if value in (RUNNING, READY):
            return 1 if value == RUNNING else 2
        if value in (IDLE, UNKNOWN):
            return 6 if value == IDLE else 7
        if value in waiting:
            return 0
        if value in looked_for:
            return 3
        return 5 if value == _RECEIVE else 4

    def key(group: _Group) -> tuple[int, int, int, int, int, str]:
        value, cpu, words, _ = group
        size = 0 if value in _ON_A_CPU else -of_state[value]
        return rank(value), cpu, size, value, -len(groups[group]), words

    return key
