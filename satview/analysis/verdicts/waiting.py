"""Verdicts on threads that wait: in a circle, for a signal that was given before, too long for one mutex."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.needs import CALLS, HOLDERS, MESSAGES_SENT, NO_DAMAGE, NO_LOSS, OPENING, STATES
from satview.analysis.verdicts.evidence import Evidence, covered, episodes, groups
from satview.analysis.verdicts.rule import Limits, verdict_rule
from satview.analysis.verdicts.verdict import Severity, Verdict
from satview.analysis.verdicts.words import mutex_text, object_text, of_whom, waited_for
from satview.events import wire
from satview.events.kernel_calls import call_numbers
from satview.events.states import STATE_BY_NAME
from satview.linkage.blockers import SEND, Blockers, blockers
from satview.linkage.mutexes import MUTEX, entries_of, mutexes
from satview.linkage.rows import rows_of_class
from satview.linkage.table import OPEN, Certainty
from satview.linkage.waits import number_of, waits
from satview.linkage.wake_ups import wake_ups
from satview.store.arguments import argument
from satview.store.losses import losses

_CONDVAR: Final = STATE_BY_NAME["CONDVAR"].value
_FORM: Final = wire.KER_EXIT_OFFSET | wire.KER_INT_OFFSET  # of the code of an event of a kernel call; 0 = entry
_Ints = NDArray[np.int64]


@verdict_rule(
    "deadlock",
    meaning="Threads wait for each other in a circle until the trace ends.",
    question="Do threads wait for each other for ever?",
    needs=(STATES, HOLDERS),
    bounds=(CALLS, MESSAGES_SENT, NO_DAMAGE, NO_LOSS),
    thresholds={
        "least_ms": (20, "threads have waited for each other that long when the trace ends"),
    },
)
def deadlocks(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return circles of threads that wait for each other until the trace ends.

    A thread counts as stuck while the one that it waits for is, and one in SEND while all threads of the process are
    that could receive its message. Source: formula 5 of the reference.
    """
    if not evidence.has_states:
        return []
    found = blockers(evidence.trace)
    waits_of = _waits_to_the_end(evidence, found)
    verdicts = []
    for circle in _circles({thread: to for thread, (_, to) in waits_of.items()}):
        positions = [waits_of[thread][0] for thread in circle]
        start = int(max(evidence.times[found.waits.row[i]] for i in positions))
        end = evidence.trace.window.end
        if end - start < limits.cycles("least_ms"):
            continue
        objects = [waited_for(evidence, found, i) for i in positions]
        names = [evidence.name(thread) for thread in circle]
        parts = [f"{name} waits for {what}{of_whom(evidence, found, i)}"
                 for name, what, i in zip(names, objects, positions, strict=True)]  # fmt: skip
        rows = [int(column[i]) for i in positions for column in (found.waits.call_row, found.waits.row)]
        verdicts.append(evidence.verdict(
            Severity.ERROR, (start, end), circle, objects, rows,
            (f"{', '.join(parts)}: none of them runs again from {evidence.moment(start)} to the end of the trace, "
             f"{evidence.length(end - start)}.",
             "Let all threads take these objects in the same order, or send messages in one direction only."),
            min(int(found.certainty[i]) for i in positions),
            roles={int(found.waits.call_row[i]): "asks" for i in positions}
            | {int(found.waits.row[i]): "waits" for i in positions},
        ))  # fmt: skip
    return verdicts


def _waits_to_the_end(evidence: Evidence, found: Blockers) -> dict[int, tuple[int, tuple[int, ...]]]:
    """Return {thread: (its wait, threads any of which can end it)} of waits that last, in which nobody's is unknown."""
    trace, waiting = evidence.trace, found.waits
    is_open = (waiting.end_row == OPEN) & (found.pid >= 0)
    is_open &= ~_was_passed_on(evidence, is_open)
    # Threads that no event reports can receive messages too: they are all known only if the trace begins with them.
    are_all_known = not len(losses(trace)) and trace.dump_end_cycles >= trace.window.start
    out: dict[int, tuple[int, tuple[int, ...]]] = {}
    for i in np.flatnonzero(is_open).tolist():
        thread, to = int(waiting.thread[i]), int(found.thread[i])
        if _has_timeout(evidence, i):
            continue
        if to >= 0:
            out[thread] = i, (to,)
        elif waiting.value[i] == SEND and are_all_known:
            out[thread] = i, _alive(evidence, int(found.pid[i]))
    return out


def _was_passed_on(evidence: Evidence, is_requested: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return for waits for mutexes whether the mutex was given up since they began: then another thread may hold it."""
    trace = evidence.trace
    found, known = waits(trace), mutexes(trace)
    out = np.zeros(len(found), np.bool_)
    process = trace.threads.process
    for i in np.flatnonzero(is_requested & (found.value == MUTEX)).tolist():
        gives = known.gives
        later = gives.row > found.row[i]
        is_it = (gives.mutex == known.of_wait[i]) | (
            (gives.mutex < 0) & np.isin(process[gives.thread], (process[found.thread[i]], 0)))  # fmt: skip
        out[i] = bool(np.any(later & is_it))
    return out


def _has_timeout(evidence: Evidence, wait: int) -> bool:
    """Return whether a thread limits its wait: its call before is TimerTimeout(), and not a sleep by that call."""
    trace, found = evidence.trace, waits(evidence.trace)
    calls = rows_of_class(trace, wire.WireClass.KER_CALL)
    before = calls[: np.searchsorted(calls, min(int(found.call_row[wait]), len(trace.events)))]
    mine = before[(trace.events.thread[before] == found.thread[wait]) & (trace.events.code[before] & _FORM == 0)]
    if not len(mine) or int(number_of(trace, mine[-1:])[0]) != call_numbers(trace.release)["TIMER_TIMEOUT"]:
        return False
    return not np.any(found.call_row == mine[-1])


def _alive(evidence: Evidence, pid: int) -> tuple[int, ...]:
    """Return the threads of a process that have not ended."""
    trace = evidence.trace
    mine = np.flatnonzero((trace.threads.pid == pid) & (trace.threads.tid > 0))
    codes = trace.events.code
    return tuple(thread for thread in mine.tolist()
                 if not np.any(codes[trace.states.of(thread)] == wire.THREAD_DESTROY))  # fmt: skip


def _circles(waits_for: dict[int, tuple[int, ...]]) -> list[list[int]]:
    """Return the threads of each circle, in the order in which they wait for each other.

    Args:
        waits_for: Thread to those that can end its wait; threads that are no key can go on.
    """
    stuck = {thread: to for thread, to in waits_for.items() if to}
    while True:  # who waits for somebody that can go on will go on
        free = [thread for thread, to in stuck.items() if any(other not in stuck for other in to)]
        if not free:
            break
        for thread in free:
            del stuck[thread]
    while True:  # who only waits behind a circle is no part of it
        requested = {other for to in stuck.values() for other in to}
        behind = [thread for thread in stuck if thread not in requested]
        if not behind:
            break
        for thread in behind:
            del stuck[thread]
    out = []
    while stuck:
        first = min(stuck)
        circle, ahead = [], [first]
        while ahead:
            thread = ahead.pop()
            if thread in stuck:
                circle.append(thread)
                ahead.extend(reversed(stuck.pop(thread)))
        out.append(circle)
    return out


@verdict_rule(
    "lost-wakeup",
    meaning="A condition variable was signalled before anybody waited, and the thread that waits is never woken.",
    question="Was a condition variable signalled before anybody waited?",
    needs=(CALLS, STATES, NO_LOSS, OPENING),
    bounds=(NO_DAMAGE,),
    thresholds={
        "least_ms": (100, "the wait that nobody ended, up to the end of the trace"),
    },
)
def lost_wakeups(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return waits for condition variables that were signalled before, and never since.

    That is also how a queue looks that is empty for good. So only variables count that woke nobody in all of the trace,
    in a trace that begins with the opening dump and has no holes.
    """
    trace = evidence.trace
    if not evidence.has_states or len(losses(trace)) or trace.dump_end_cycles < trace.window.start:
        return []
    found = waits(trace)
    at = np.flatnonzero((found.value == _CONDVAR) & found.has_object)
    is_long = evidence.trace.window.end - evidence.times[found.row[at]] >= limits.cycles("least_ms")
    candidates = at[(found.end_row[at] == OPEN) & is_long]
    if not len(candidates):
        return []
    signals = entries_of(trace, "SYNC_CONDVAR_SIGNAL")
    address, known = argument(trace, signals, "sync_p")
    signals, address = signals[known], address[known]
    process = trace.threads.process
    giver, has_woken = process[trace.events.thread[signals]], wake_ups(trace).begun_by(signals) >= 0
    verdicts = []
    for i in candidates.tolist():
        thread, where = int(found.thread[i]), int(found.object[i])
        same = at[(found.object[at] == where) & (process[found.thread[at]] == process[thread])]
        mine = np.flatnonzero((address == where) & (giver == process[thread]))
        if not len(mine) or has_woken[mine].any() or np.any(found.end_row[same] != OPEN):
            continue
        if int(signals[mine[-1]]) > int(found.row[i]):
            continue
        start, last = int(evidence.times[found.row[i]]), int(signals[mine[-1]])
        what = object_text(evidence, "condition variable", thread, where)
        verdicts.append(evidence.verdict(
            Severity.ERROR, (start, trace.window.end), [thread, int(trace.events.thread[last])], [what],
            [*signals[mine].tolist(), int(found.row[i]), int(found.call_row[i])],
            (f"{evidence.name(thread)} waits for {what} from {evidence.moment(start)} to the end of the trace, "
             f"{evidence.length(trace.window.end - start)}; {evidence.name(int(trace.events.thread[last]))} signalled "
             f"it {evidence.length(start - int(evidence.times[last]))} before, when nobody waited.",
             "Test the condition with the mutex locked, in a loop around the wait, and set it with the mutex locked."),
            Certainty.INFERRED,
            roles={**dict.fromkeys(signals[mine].tolist(), "signals"), int(found.call_row[i]): "asks",
                   int(found.row[i]): "waits"},
        ))  # fmt: skip
    return verdicts


@verdict_rule(
    "lock-contention",
    meaning="Threads spend much of their time waiting for one mutex.",
    question="Do threads wait long for one mutex?",
    needs=(CALLS, STATES),
    thresholds={
        "window_ms": (100, "the length of the window"),
        "waited_percent": (100, "of the window; the waits of all threads are added up"),
        "least_count": (10, "waits within the window"),
    },
)
def contentions(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return mutexes that threads wait for much of the time."""
    trace = evidence.trace
    if not evidence.has_states:
        return []
    found, mutex = waits(trace), mutexes(trace).of_wait
    window = limits.cycles("window_ms")
    least = int(window * limits.number("waited_percent") / 100)
    at = np.flatnonzero(mutex >= 0)
    first, last = evidence.times[found.row[at]], evidence.times[evidence.end_rows(found.end_row[at])]
    verdicts = []
    for _, mine in groups(mutex[at]):
        begin, end = first[mine], last[mine]
        if len(mine) < limits.number("least_count") or int((end - begin).sum()) < least:
            continue
        begins, waited = covered(begin, end, window)
        sorted_begin = np.sort(begin)
        count = np.searchsorted(sorted_begin, begins + window) - np.searchsorted(sorted_begin, begins)
        bad = np.flatnonzero((waited >= least) & (count >= limits.number("least_count")))
        if not len(bad):
            continue
        worst = bad[np.argmax(waited[bad])]
        position = episodes(begins[bad], window)
        which = int(np.searchsorted(position.start, begins[worst], side="right")) - 1
        span = int(position.start[which]), min(int(position.end[which]), trace.window.end)
        inside = at[mine[(begin < begins[worst] + window) & (end > begins[worst])]]
        threads = _most_of(found.thread[inside], (last - first)[mine][(begin < begins[worst] + window)
                                                                      & (end > begins[worst])])  # fmt: skip
        what = mutex_text(evidence, int(found.thread[inside[0]]), int(found.object[inside[0]]))
        holders = np.unique(blockers(trace).thread[inside])
        held = ", ".join(evidence.name(int(row)) for row in holders[holders >= 0][:3])
        verdicts.append(evidence.verdict(
            Severity.WARNING, span, threads, [what], found.row[inside],
            (f"{len(threads)} threads wait {int(count[worst])} times for {what} within {evidence.length(window)} from "
             f"{evidence.moment(int(begins[worst]))}, {evidence.length(int(waited[worst]))} in all"
             f"{f', while {held} hold it' if held else ''}.",
             "Hold the mutex for less work, split what it guards, or use a reader/writer lock."),
            occurrences=[(int(first), int(last), -1) for first, last in zip(position.start, position.end, strict=True)],
            roles=dict.fromkeys(found.row[inside].tolist(), "waits"),
        ))  # fmt: skip
    return verdicts


def _most_of(thread: _Ints, cycles: _Ints) -> list[int]:
    """Return the different threads, those with the most cycles first."""
    rows, which = np.unique(thread, return_inverse=True)
    return [int(row) for row in rows[np.argsort(-np.bincount(which, cycles), kind="stable")]]
