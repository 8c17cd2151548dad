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
from satview.analysis.wait_graph import CONDVAR, SEM, WaitGraph, keeping_processes, knots
from satview.linkage.blockers import REPLY, Blockers, blockers
from satview.linkage.mutexes import MUTEX, entries_of, mutexes
from satview.linkage.table import OPEN, Certainty
from satview.linkage.waits import waits
from satview.linkage.wake_ups import wake_ups
from satview.store.arguments import argument
from satview.store.losses import losses

_MOST_NAMED: Final = 3  # threads in one sentence
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

    A thread counts as stuck while all threads are that could end its wait (`WaitGraph`). A circle that is one only if
    threads that might hold a message do not is reported as possible. Source: formula 5 of the reference.
    """
    if not evidence.has_states:
        return []
    graph = WaitGraph(evidence.trace)
    waits_of = graph.open_waits
    sure = knots({thread: wait.ways | wait.guesses for thread, wait in waits_of.items()})
    stuck = {thread for circle in sure for thread in circle}
    maybe = [circle for circle in knots({thread: wait.ways for thread, wait in waits_of.items()})
             if not stuck & set(circle)]  # fmt: skip
    verdicts = []
    for circle in (*sure, *maybe):
        is_guess = not stuck & set(circle)
        positions = [waits_of[thread].wait for thread in circle]
        found = graph.blockers
        start = int(max(evidence.times[found.waits.row[i]] for i in positions))
        end = evidence.trace.window.end
        if end - start < limits.cycles("least_ms"):
            continue
        certainty = Certainty.GUESS if is_guess else min(waits_of[thread].certainty for thread in circle)
        objects = [waited_for(evidence, found, i) for i in positions]
        names = [evidence.name(thread) for thread in circle]
        parts = [f"{name} waits for {what}{of_whom(evidence, found, i)}"
                 for name, what, i in zip(names, objects, positions, strict=True)]  # fmt: skip
        rows = [int(column[i]) for i in positions for column in (found.waits.call_row, found.waits.row)]
        others = {thread for thread in circle for thread in waits_of[thread].guesses} - set(circle)
        unless = f" unless {_some(evidence, others)} can end one of these waits," if is_guess and others else ""
        verdicts.append(evidence.verdict(
            _severity(found, positions, is_guess=is_guess), (start, end), circle, objects, rows,
            (f"{', '.join(parts)}:{unless} none of them runs again from {evidence.moment(start)} to the end of the "
             f"trace, {evidence.length(end - start)}.",
             "Let all threads take these objects in the same order, or send messages in one direction only."),
            certainty,
            roles={int(found.waits.call_row[i]): "asks" for i in positions}
            | {int(found.waits.row[i]): "waits" for i in positions},
        ))  # fmt: skip
    return verdicts


def _severity(found: Blockers, positions: list[int], *, is_guess: bool) -> Severity:
    """Return how much a circle matters: who posts or signals is known only by what a thread did before."""
    is_by_habit = any(int(found.waits.value[i]) in (SEM, CONDVAR) for i in positions)
    return Severity.WARNING if is_guess or is_by_habit else Severity.ERROR


def _some(evidence: Evidence, threads: set[int]) -> str:
    """Return the names of some threads, and how many more there are."""
    names = [evidence.name(thread) for thread in sorted(threads)]
    more = f" or {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{' or '.join(names[:_MOST_NAMED])}{more}"


@verdict_rule(
    "waits-for-ever",
    meaning="A thread waits for something that no thread can give it any more.",
    question="Does a thread wait for a thread that has ended, or for a reply that cannot come?",
    needs=(STATES, CALLS, HOLDERS),
    bounds=(MESSAGES_SENT, OPENING, NO_DAMAGE, NO_LOSS),
    thresholds={
        "least_ms": (100, "the wait, up to the end of the trace"),
    },
)
def waits_for_ever(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return waits that nothing can end: of a mutex or a semaphore whose threads have ended, and for a lost reply.

    A reply is lost where no thread of the server can hold the message any more: the receiver is back in RECEIVE and
    none works or waits inside the process. A server that replied to a message after it had received another one keeps
    messages, and is left out.
    """
    if not evidence.has_states:
        return []
    graph, verdicts = WaitGraph(evidence.trace), []
    waiting, keepers = graph.blockers.waits, keeping_processes(evidence.trace)
    is_long = evidence.trace.window.end - evidence.times[waiting.row] >= limits.cycles("least_ms")
    for wait in np.flatnonzero((waiting.end_row == OPEN) & is_long).tolist():
        if graph.has_timeout(wait):
            continue
        thread, state = int(waiting.thread[wait]), int(waiting.value[wait])
        why, severity, certainty, remedy = "", Severity.ERROR, Certainty.EXACT, ""
        found = graph.open_waits.get(thread)
        if state == MUTEX and found is not None and all(map(graph.is_dead, found.ways)):
            why, certainty = f"held by {_some(evidence, set(found.ways))}, which has ended", found.certainty
            remedy = "Unlock it before the thread ends, or make it robust (PTHREAD_MUTEX_ROBUST)."
        elif state == SEM and found is not None and all(map(graph.is_dead, found.ways)):
            why, certainty = f"posted by {_some(evidence, set(found.ways))} only, which has ended", Certainty.INFERRED
            severity, remedy = Severity.WARNING, "Post it before the last thread ends that does."
        elif state == REPLY and graph.knows_all_threads and int(graph.blockers.thread[wait]) >= 0:
            ways = graph.reply_ways(wait)
            if not ways.ways | ways.guesses and int(graph.blockers.pid[wait]) not in keepers:
                receiver = evidence.name(int(graph.blockers.thread[wait]))
                why, severity, certainty = (
                    f"which {receiver} received and no thread holds",
                    Severity.INFO,
                    Certainty.GUESS,
                )
                remedy = "Reply to every message on every way out of the server's loop, errors included."
        if why:
            start, end = int(evidence.times[waiting.row[wait]]), evidence.trace.window.end
            what = waited_for(evidence, graph.blockers, wait)
            rows = [int(waiting.call_row[wait]), int(waiting.row[wait])]
            others = sorted(found.ways) if found is not None else [int(graph.blockers.thread[wait])]
            verdicts.append(evidence.verdict(
                severity, (start, end), [thread, *others], [what], rows,
                (f"{evidence.name(thread)} waits for {what}, {why}, from {evidence.moment(start)} to the end of the "
                 f"trace, {evidence.length(end - start)}.", remedy),
                certainty, roles={rows[0]: "asks", rows[1]: "waits"},
            ))  # fmt: skip
    return verdicts


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
    at = np.flatnonzero((found.value == CONDVAR) & found.has_object)
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
