"""What every thread does at one moment, in groups: by state, and by what is waited for.

    for group in satview.snapshot(trace, trace.clock.cycles(50_000_000)).groups:
        print(group.state, group.waits_for, [trace.thread_name(thread.thread) for thread in group.threads])

Source: Thread State Snapshot of the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.basis import Basis, Scope, scope_of
from satview.analysis.times.state_times import state_spans
from satview.analysis.verdicts.evidence import Evidence
from satview.analysis.verdicts.words import waited_for
from satview.base.errors import UsageError
from satview.base.time import TimeWindow
from satview.events.states import ABSENT, IDLE, READY, RUNNING, STATE_BY_NAME, STATE_BY_VALUE, UNKNOWN, WAITING
from satview.linkage.blockers import JOIN, REPLY, RWLOCKS, SEND, Blockers, blockers, holders_at
from satview.linkage.mutexes import MUTEX
from satview.linkage.table import Certainty
from satview.linkage.whole import is_whole
from satview.store.trace import Trace
from satview.timeline.state_lanes import idle_values, value_of_code

_NONE: Final = -1
_ON_A_CPU: Final = (RUNNING, IDLE)
_RECEIVE: Final = STATE_BY_NAME["RECEIVE"].value
_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ThreadThen:
    """One thread at the moment.

    Attributes:
        thread: Row of the thread table.
        since_cycles: When it entered the state, as far back as the trace shows; -1 = not known.
        row: The event by which it did; -1 = none, or not known.
    """

    thread: int
    since_cycles: int
    row: int


@dataclass(frozen=True, slots=True)
class SnapshotGroup:
    """Threads in one state that wait for the same thing, or run on the same CPU.

    Attributes:
        value: The state as lane value (`events.states`); `IDLE` for an idle thread that has a CPU.
        state: Its name: `RUNNING`, `MUTEX`, `IDLE`, `UNKNOWN`.
        cpu: The CPU they run on; -1 for other states.
        waits_for: What they wait for, in words; empty where that says no more than the state, or is not known.
        holder: Row of the thread that holds it, serves them or is joined; -1 where nobody does, or is not known.
        certainty: How certain the holder is; None without one.
        threads: Who, those that wait longest first.
    """

    value: int
    state: str
    cpu: int
    waits_for: str
    holder: int
    certainty: Certainty | None
    threads: tuple[ThreadThen, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All threads at a moment.

    Attributes:
        at_cycles: The moment.
        groups: By state: those that wait for somebody first (MUTEX, SEND, REPLY, ...); then RUNNING, by CPU, and READY;
            then other waits, those first in which somebody is that another one waits for; RECEIVE, IDLE and unknown
            last. States of one rank by the number of threads.
    """

    at_cycles: int
    groups: tuple[SnapshotGroup, ...]

    @property
    def thread_count(self) -> int:
        """How many threads exist then, idle ones that have no CPU left out."""
        return sum(len(group.threads) for group in self.groups)


def snapshot(
    trace: Trace, at: int, basis: Basis | None = None, cancelled: Callable[[], bool] | None = None
) -> Snapshot:
    """Return what every thread does at a moment. The first one makes the links of the trace.

    Events at the very moment count. Where events are missing a thread is `UNKNOWN` until its next one, as on its lane.

    Args:
        trace: The events.
        at: The moment in cycles of the trace's clock; `trace.clock.cycles(ns)`.
        basis: What statistics of the trace are made of, if at hand.
        cancelled: Called now and then; `Cancelled` is raised when it says so.

    Raises:
        UsageError: The moment is outside the trace.
        Cancelled: Somebody said so.
    """
    if not trace.window.contains(at):
        raise UsageError("that moment is outside the trace")
    scope = scope_of(trace, TimeWindow(at, at + 1), None, basis, cancelled)
    return Snapshot(at, tuple(_Groups(scope, at).made()))


def state_text(trace: Trace, group: SnapshotGroup) -> str:
    """Return the state of a group, with the CPU where there is one."""
    return f"{group.state} on {trace.cpu_title(group.cpu)}" if group.cpu >= 0 else group.state


def holder_text(trace: Trace, group: SnapshotGroup) -> str:
    """Return who holds what a group waits for, or serves it; empty if not known."""
    if group.holder <= 0 or group.certainty is None:
        return ""
    is_exact = group.certainty.name == "EXACT"
    return f"{trace.thread_name(group.holder)}{'' if is_exact else f' ({group.certainty.name.lower()})'}"


class _Groups:
    """Puts the threads of one moment into groups."""

    def __init__(self, scope: Scope, at: int) -> None:
        self._scope, self._trace, self._at = scope, scope.trace, at
        self._bound = int(np.searchsorted(self._trace.events.time_cycles, at, side="right"))
        self._evidence = Evidence(self._trace)

    def made(self) -> list[SnapshotGroup]:
        """Return the groups in the order of `Snapshot.groups`."""
        thread, value = self._states()
        last, first = self._rows(thread, value)
        self._scope.check()
        wait = self._waits(thread, last)
        holder, certainty = self._holders(wait)
        found: dict[tuple[int, int, str, int], list[int]] = {}
        for i in range(len(thread)):
            cpu = int(self._trace.events.cpu[last[i]]) if value[i] in _ON_A_CPU and last[i] >= 0 else _NONE
            key = int(value[i]), cpu, self._words(int(wait[i]), int(value[i])), int(holder[i])
            found.setdefault(key, []).append(i)
        groups = [self._group(key, mine, thread, first, certainty) for key, mine in found.items()]
        return sorted(groups, key=_order(groups))

    def _states(self) -> tuple[_Ints, NDArray[np.uint8]]:
        """Return the threads that exist then and their states; of idle threads those that have a CPU."""
        parts = [(np.empty(0, np.int64), np.empty(0, np.uint8))]
        for spans in state_spans(self._scope):
            at = np.flatnonzero((spans.start <= self._at) & (self._at < spans.end))
            parts.append((spans.thread[at].astype(np.int64), spans.value[at]))
        thread, value = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        is_there = (value != ABSENT) & (value != WAITING) & (self._trace.threads.tid[thread] > 0)
        return thread[is_there], value[is_there]

    def _rows(self, thread: _Ints, value: NDArray[np.uint8]) -> tuple[_Ints, _Ints]:
        """Return the last event of state of each thread, and the one by which it entered that state; -1 for none.

        An event may repeat a state: it shows a new priority, or is in the opening dump.
        """
        trace, states = self._trace, self._trace.states
        # A search in each thread: keys of all events of a long trace would take longer than all else.
        position = np.array([states.start[row] + np.searchsorted(states.of(row), self._bound) - 1
                          for row in thread.tolist()], np.int64)  # fmt: skip
        known = (value != UNKNOWN) & (position >= states.start[thread])
        codes = value_of_code(trace)
        tables = np.stack((codes, idle_values(codes)))
        idle, events = self._scope.basis.is_idle[thread].astype(np.intp), trace.events
        last = np.full(len(thread), _NONE, np.int64)
        last[known] = states.event[position[known]]
        first, going = last.copy(), np.flatnonzero(known)
        while len(going):
            position[going] -= 1
            going = going[position[going] >= states.start[thread[going]]]
            before = states.event[position[going]].astype(np.int64)
            same = tables[idle[going], events.code[before]] == value[going]
            same &= ~np.isin(value[going], _ON_A_CPU) | (events.cpu[before] == events.cpu[first[going]])
            same &= is_whole(trace, before, first[going])
            going, before = going[same], before[same]
            first[going] = before
        return last, first

    def _waits(self, thread: _Ints, last: _Ints) -> _Ints:
        """Return the row of `waits` that the last event of each thread begins, -1 for none."""
        waiting = blockers(self._trace).waits
        first, end = (np.searchsorted(waiting.thread, thread, side=side) for side in ("left", "right"))
        position = np.array([begin + np.searchsorted(waiting.row[begin:stop], row) for begin, stop, row in
                          zip(first.tolist(), end.tolist(), last.tolist(), strict=True)], np.int64)  # fmt: skip
        fits = position < end
        fits[fits] = waiting.row[position[fits]] == last[fits]
        return np.where(fits, position, _NONE)

    def _holders(self, wait: _Ints) -> tuple[_Ints, _Ints]:
        """Return who holds or serves what each wait is for at the moment, -1 for none, and how certain that is."""
        found = blockers(self._trace)
        holder, certainty = np.full(len(wait), _NONE, np.int64), np.zeros(len(wait), np.int64)
        at = np.flatnonzero(wait >= 0)
        holder[at], certainty[at] = found.thread[wait[at]], found.certainty[wait[at]]
        at = at[found.waits.value[wait[at]] == MUTEX]
        # A mutex may have changed hands since the wait began.
        holder[at], certainty[at] = holders_at(self._trace, found, wait[at], self._bound)
        return holder, certainty

    def _words(self, wait: int, value: int) -> str:
        """Return what a thread waits for; a channel with its process, as threads of several have one of that number."""
        found = blockers(self._trace)
        if wait < 0 or not _says_more(found, wait, value):
            return ""
        words = waited_for(self._evidence, found, wait)
        if value != _RECEIVE:
            return words
        process = int(self._trace.threads.process[found.waits.thread[wait]])
        return f"{words} of {self._trace.process_name(process)}"

    def _group(
        self, key: tuple[int, int, str, int], mine: list[int], thread: _Ints, first: _Ints, certainty: _Ints
    ) -> SnapshotGroup:
        value, cpu, words, holder = key
        name = {IDLE: "IDLE", UNKNOWN: "UNKNOWN"}.get(value) or STATE_BY_VALUE[value].name
        time = self._trace.events.time_cycles
        threads = [ThreadThen(int(thread[i]), int(time[first[i]]) if first[i] >= 0 else _NONE, int(first[i]))
                   for i in mine]  # fmt: skip
        threads.sort(key=lambda each: (each.since_cycles < 0, each.since_cycles, each.thread))
        sure = Certainty(min(int(certainty[i]) for i in mine)) if holder > 0 else None
        return SnapshotGroup(value, name, cpu, words, holder, sure, tuple(threads))


def _says_more(found: Blockers, wait: int, value: int) -> bool:
    """Return whether words about a wait say more than its state does: an object, a server, a thread."""
    waiting = found.waits
    return bool(waiting.has_object[wait] or (value in (SEND, REPLY, JOIN) and found.pid[wait] > 0))


def _order(groups: list[SnapshotGroup]) -> Callable[[SnapshotGroup], tuple[int, int, int, int, int, str]]:
    """Return by what the groups are sorted."""
    of_state: dict[int, int] = {}
    for group in groups:
        of_state[group.value] = of_state.get(group.value, 0) + len(group.threads)
    holders = {group.holder for group in groups if group.holder > 0}
    waiting = {group.value for group in groups if group.holder > 0} | {SEND, REPLY, JOIN, MUTEX, *RWLOCKS}
    looked_for = {group.value for group in groups if not holders.isdisjoint(each.thread for each in group.threads)}

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

    def key(group: SnapshotGroup) -> tuple[int, int, int, int, int, str]:
        size = 0 if group.value in _ON_A_CPU else -of_state[group.value]
        return rank(group.value), group.cpu, size, group.value, -len(group.threads), group.waits_for

    return key
