"""Verdicts on waiting threads: deadlocks, endless waits, lost wake-ups, contention, and priority inversions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.needs import (
    CALLS,
    HOLDERS,
    MESSAGES_SENT,
    NO_DAMAGE,
    NO_LOSS,
    OPENING,
    PARTNERS,
    PRIORITIES,
    STATES,
)
from satview.analysis.verdicts.evidence import (
    MOST_NAMED,
    Evidence,
    Severity,
    Verdict,
    episode_of,
    episodes,
    full_windows,
    groups,
    longest,
    mutex_text,
    named,
    object_text,
    of_whom,
    waited_for,
)
from satview.analysis.verdicts.rule import Limits, verdict_rule
from satview.analysis.verdicts.scheduling import instead, ran_instead
from satview.analysis.wait_graph import BY_HABIT, CONDVAR, INTR, SEM, WaitGraph, behind, keeping_processes, knots
from satview.base.safe_text import counted
from satview.linkage.blockers import REPLY, RWLOCKS, SEND, Blockers, blockers
from satview.linkage.calls import partners
from satview.linkage.links import NO_EVENT, OPEN, Certainty
from satview.linkage.waits import MUTEX, entries_of, holds, mutexes, waits
from satview.linkage.wake_ups import wake_ups
from satview.store.arguments import argument
from satview.store.time_ranges import TimeRanges, losses, overlaps

# Verdicts on waiting threads: deadlocks, endless waits, lost wake-ups, contention of mutexes.


_MOST_OTHERS: Final = 20  # waits of a contention that are listed, besides the longest of the thread that waits most
_OFTEN: Final = 3  # times that other threads get a mutex while a thread waits for it
_Ints = NDArray[np.int64]


@verdict_rule(
    "deadlock",
    meaning="Threads wait for each other in a circle until the trace ends.",
    question="Do threads wait for each other for ever?",
    needs=(STATES, PARTNERS, HOLDERS),
    bounds=(CALLS, MESSAGES_SENT, NO_DAMAGE, NO_LOSS),
    thresholds={
        "least_ms": (20, "threads have waited for each other that long when the trace ends"),
    },
    proof="`pidin` on the target shows what each of the threads is blocked on; where mutexes are in it, wide events "
    "of the class KER_CALL have their owners.",
)
def deadlocks(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return verdicts on circles of threads that wait for each other until the trace ends.

    A thread is stuck if all threads that could end its wait are stuck (`WaitGraph`). If threads that might hold a
    message could break a circle, the circle is reported as possible. Source: formula 5 of the reference.
    """
    if not evidence.has_states:
        return []
    graph = evidence.wait_graph
    waits_of = graph.open_waits
    sure_ways = {thread: wait.ways | wait.guesses for thread, wait in waits_of.items()}
    sure = knots(sure_ways)
    stuck = {thread for circle in sure for thread in circle}
    maybe = [circle for circle in knots({thread: wait.ways for thread, wait in waits_of.items()})
             if not stuck & set(circle)]  # fmt: skip
    verdicts = []
    for circle in (*sure, *maybe):
        is_guess = not stuck & set(circle)
        positions = [waits_of[thread].wait for thread in circle]
        blocked_by = graph.blockers
        start = int(max(evidence.times[blocked_by.waits.row[i]] for i in positions))
        end = evidence.trace.window.end
        if end - start < limits.cycles("least_ms"):
            continue
        certainty = Certainty.GUESS if is_guess else min(waits_of[thread].certainty for thread in circle)
        objects = [waited_for(evidence, blocked_by, i) for i in positions]
        names = [evidence.name(thread) for thread in circle]
        parts = [f"{name} waits for {what}{of_whom(evidence, blocked_by, i) or _unless_held(blocked_by, i)}"
                 for name, what, i in zip(names, objects, positions, strict=True)]  # fmt: skip
        rows = [int(column[i]) for i in positions for column in (blocked_by.waits.call_row, blocked_by.waits.row)]
        # In a sure circle these are all members of it.
        others = {thread for thread in circle for thread in waits_of[thread].guesses} - set(circle)
        unless = f" unless {_some(evidence, others)} can end one of these waits," if others else ""
        followers = [] if is_guess else behind(sure_ways, circle)
        as_well = f" {_some(evidence, followers, 'and')} can go on only behind them." if followers else ""
        rows += [int(blocked_by.waits.row[waits_of[thread].wait]) for thread in followers]
        verdicts.append(evidence.verdict(
            _severity(blocked_by, positions, is_guess=certainty is Certainty.GUESS), (start, end),
            [*circle, *followers], objects, rows,
            (f"{', '.join(parts)}:{unless} none of them runs again from {evidence.moment(start, end - start)} to the "
             f"end of the trace, {evidence.length(end - start)}.{as_well}",
             _way_out({int(blocked_by.waits.value[i]) for i in positions}, objects)),
            certainty,
            roles={int(blocked_by.waits.call_row[i]): "asks" for i in positions}
            | {int(blocked_by.waits.row[i]): "waits" for i in positions}
            | {int(blocked_by.waits.row[waits_of[thread].wait]): "waits behind" for thread in followers},
        ))  # fmt: skip
    return verdicts


def _way_out(states: set[int], objects: list[str]) -> str:
    """Return the remedy for a circle, depending on the states of its waits and their objects."""
    locks = " and ".join(dict.fromkeys(what for what in objects if "0x" in what)) or "these objects"
    if states <= {SEND, REPLY}:
        return ("Break the circle: replace one of these messages by a pulse (MsgSendPulse() does not wait), or order "
                "the processes so that each sends only to those behind it.")  # fmt: skip
    if states & {SEND, REPLY}:
        return f"Give up {locks} before a message is sent to who needs the same."
    return f"Let all threads take {locks} in the same order."


def _unless_held(blocked_by: Blockers, wait: int) -> str:
    return ", whose holder no event shows" if blocked_by.waits.value[wait] == MUTEX else ""


def _severity(blocked_by: Blockers, positions: list[int], *, is_guess: bool) -> Severity:
    """Return a warning if a link is a guess, or a wait may end otherwise, as for semaphores; else an error."""
    is_by_habit = any(int(blocked_by.waits.value[i]) in BY_HABIT for i in positions)
    return Severity.WARNING if is_guess or is_by_habit else Severity.ERROR


def _some(evidence: Evidence, threads: Iterable[int], word: str = "or") -> str:
    """Return a text with the names of the first threads, and the number of further ones: `a or b or 3 more`."""
    names = [evidence.name(thread) for thread in sorted(threads)]
    more = f" {word} {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{f' {word} '.join(names[:MOST_NAMED])}{more}"


@verdict_rule(
    "waits-for-ever",
    meaning="A thread waits for something that no thread can give it any more.",
    question="Does a thread wait for a thread that has ended, or for a reply that cannot come?",
    needs=(STATES, CALLS, HOLDERS),
    bounds=(MESSAGES_SENT, OPENING, NO_DAMAGE, NO_LOSS),
    thresholds={
        "least_ms": (100, "the wait, up to the end of the trace"),
    },
    proof="A longer capture shows whether anything ends the wait, `pidin` on the target whether the thread "
    "is still blocked.",
)
def waits_for_ever(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return verdicts on waits that nothing can end.

    These are waits for: a mutex whose holder has ended; a semaphore, condition variable, barrier or read/write lock, if
    all threads that released it before have ended, or no other thread of the process is left; a semaphore that no other
    thread posts in the trace; an interrupt that stays masked; and a lost reply.

    A reply is lost in two cases. First, no thread of the server can hold the message any more, and a thread that used
    to reply to messages received by others has ended. Second, the thread that received the message waits for another
    one, or has received another one since. The second case is left out for servers that keep messages (that have
    replied to a message after they had received another one), and for servers with a live thread that replies to
    messages received by others.
    """
    if not evidence.has_states:
        return []
    graph, verdicts = evidence.wait_graph, []
    waiting, keepers = graph.blockers.waits, keeping_processes(evidence.trace)
    open_waits = np.flatnonzero(waiting.end_row == OPEN)
    is_long = evidence.trace.window.end - evidence.times[waiting.row[open_waits]] >= limits.cycles("least_ms")
    for wait in open_waits[is_long].tolist():
        reason = None if graph.has_timeout(wait) else _for_ever(evidence, graph, wait, keepers)
        if reason is None:
            continue
        thread, row = int(waiting.thread[wait]), int(waiting.row[wait])
        start, end = int(evidence.times[row]), evidence.trace.window.end
        what = waited_for(evidence, graph.blockers, wait)
        rows = [int(waiting.call_row[wait]), row]
        verdicts.append(evidence.verdict(
            reason.severity, (start, end), [thread, *reason.others], [what], rows,
            (f"{evidence.name(thread)} waits for {what}, {reason.why}, from {evidence.moment(start, end - start)} to "
             f"the end of the trace, {evidence.length(end - start)}.", reason.remedy),
            reason.certainty, roles={rows[0]: "asks", rows[1]: "waits"},
        ))  # fmt: skip
    return verdicts


@dataclass(frozen=True, slots=True)
class _Reason:
    """Why a wait never ends, and the remedy."""

    why: str  # clause that follows the name of the awaited object
    remedy: str  # one sentence: what would help
    severity: Severity
    certainty: Certainty  # certainty of the weakest link that the reason rests on
    others: tuple[int, ...]  # rows of the other threads concerned, such as those that have ended


def _for_ever(evidence: Evidence, graph: WaitGraph, wait: int, keepers: frozenset[int]) -> _Reason | None:
    """Return the reason why nothing can end a wait; None if something may end it."""
    state, receiver = int(graph.blockers.waits.value[wait]), int(graph.blockers.thread[wait])
    known = graph.open_waits.get(int(graph.blockers.waits.thread[wait]))
    ways = tuple(sorted(known.ways)) if known is not None else ()
    are_dead = bool(ways) and all(map(graph.is_dead, ways))
    ended = f"{_some(evidence, ways)}{', all of which have ended' if len(ways) > 1 else ', which has ended'}"
    if state == MUTEX and known is not None and are_dead:
        return _Reason(f"held by {ended}", "Unlock it before the thread ends, or make it robust "
                       "(PTHREAD_MUTEX_ROBUST).", Severity.ERROR, known.certainty, ways)  # fmt: skip
    if state in BY_HABIT and are_dead:
        is_queue = state == CONDVAR  # the producer of a queue may have ended because its work is done
        gives = {CONDVAR: "signalled", SEM: "posted"}.get(state, "given up")
        return _Reason(f"{gives} in this trace only by {ended}", "Keep that thread alive as long as others wait, or "
                       "wake them before it ends.", Severity.INFO if is_queue else Severity.WARNING,
                       Certainty.GUESS if is_queue else Certainty.INFERRED, ways)  # fmt: skip
    if state in BY_HABIT and known is None and (lost := graph.ended_meanwhile(wait)):
        left = "the last other thread of its process" if len(lost) == 1 else "the last other threads of its process"
        return _Reason(f"and {_some(evidence, lost, 'and')}, {left}, ended meanwhile", "Give back what a thread holds, "
                       "and wake those that wait, before it ends.",
                       Severity.WARNING, Certainty.INFERRED, lost)  # fmt: skip
    if state == SEM and known is None and graph.blockers.waits.call_row[wait] != NO_EVENT:
        return _Reason("which nobody else posts in this trace", "Look who should have posted it.",
                       Severity.INFO, Certainty.GUESS, ())  # fmt: skip
    if state == INTR and graph.stays_masked(wait):
        return _Reason("which it did not unmask after the last one", "Call InterruptUnmask() on every way back to "
                       "the wait.", Severity.WARNING, Certainty.INFERRED, ())  # fmt: skip
    if state == REPLY and graph.knows_all_threads and receiver >= 0:
        holders = graph.reply_ways(wait)
        pid = int(graph.blockers.pid[wait])
        if not holders.ways | holders.guesses and (dead := graph.dead_repliers(pid)):
            have = "has" if len(dead) == 1 else "have"
            return _Reason(f"which {evidence.name(receiver)} received; {_some(evidence, dead, 'and')}, which replied "
                           f"before, {have} ended", "Reply to what is left before the thread ends that replies.",
                           Severity.WARNING, Certainty.INFERRED, (receiver, *dead))  # fmt: skip
        if pid not in keepers and not graph.has_repliers(pid) and graph.has_moved_on(wait):
            is_lost = not (holders.ways | holders.guesses) - {receiver}
            rest = "no thread holds" if is_lost else "did not reply to before it turned to others"
            return _Reason(f"which {evidence.name(receiver)} received and {rest}", "Reply to every message on every "
                           "way out of the server's loop, errors included.",
                           Severity.INFO, Certainty.GUESS, (receiver,))  # fmt: skip
    return None


@verdict_rule(
    "lost-wakeup",
    meaning="A condition variable was signalled before anybody waited, and the thread that waits is never woken.",
    question="Was a condition variable signalled before anybody waited?",
    needs=(CALLS, STATES, NO_LOSS, OPENING),
    bounds=(NO_DAMAGE,),
    thresholds={
        "least_ms": (100, "the wait that nobody ended, up to the end of the trace"),
        "work_us": (100, "a thread that ran longer between signal and wait has worked, if it waited only once"),
    },
    proof="The source shows whether the thread tests its condition under the mutex before it waits.",
)
def lost_wakeups(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return verdicts on waits for condition variables whose last signal came before the wait, with no thread waiting.

    A queue that stays empty looks the same: its thread was busy at the last signal, and then handled what was
    signalled. So a thread counts only if it ran too little between signal and wait to have handled anything: at most
    `work_us` or, if it waited at least twice before, half of its shortest work between two waits. A thread that ran
    longer counts only if it never waited for the condition variable before, and for nothing else since the signal.
    That is a guess: it may have tested the condition before or after the signal.
    """
    trace = evidence.trace
    if not evidence.has_states or len(losses(trace)) or trace.dump_end_cycles < trace.window.start:
        return []
    every_wait = waits(trace)
    for_condvars = np.flatnonzero((every_wait.value == CONDVAR) & every_wait.has_object)
    is_long = evidence.trace.window.end - evidence.times[every_wait.row[for_condvars]] >= limits.cycles("least_ms")
    candidates = for_condvars[(every_wait.end_row[for_condvars] == OPEN) & is_long]
    if not len(candidates):
        return []
    signals = entries_of(trace, "SYNC_CONDVAR_SIGNAL")
    address, known = argument(trace, signals, "sync_p")
    signals, address = signals[known], address[known]
    process = trace.threads.process
    giver, has_woken = process[trace.events.thread[signals]], wake_ups(trace).begun_by(signals) >= 0
    verdicts = []
    for i in candidates.tolist():
        thread, where = int(every_wait.thread[i]), int(every_wait.object[i])
        own_signals = np.flatnonzero((address == where) & (giver == process[thread]))
        own = for_condvars[
            (every_wait.object[for_condvars] == where)
            & (every_wait.thread[for_condvars] == thread)
            & (every_wait.end_row[for_condvars] != OPEN)
        ]
        if not len(own_signals) or has_woken[own_signals[-1]] or int(signals[own_signals[-1]]) > int(every_wait.row[i]):
            continue  # never signalled, or the last signal woke a thread
        last, lost = int(signals[own_signals[-1]]), signals[own_signals[~has_woken[own_signals]]]
        if len(own) and last < int(every_wait.end_row[own[-1]]):
            continue  # it has waited since, and was woken
        start = int(evidence.times[every_wait.row[i]])
        worked = _ran(evidence, thread, int(evidence.times[last]), start)
        awake = zip(every_wait.end_row[own].tolist(), every_wait.row[[*own.tolist(), i][1:]].tolist(), strict=True)
        usual = [
            _ran(evidence, thread, int(evidence.times[woken]), int(evidence.times[again])) for woken, again in awake
        ]
        has_worked = worked > (min(usual) / 2 if len(usual) > 1 else limits.cycles("work_us"))
        others = np.flatnonzero(
            (every_wait.thread == thread) & (every_wait.end_row > last) & (every_wait.row < every_wait.row[i])
        )
        if has_worked and (len(own) or len(others)):
            continue  # it had time to handle the cause of the signal
        what = object_text(evidence, "condition variable", thread, where)
        verdicts.append(evidence.verdict(
            Severity.WARNING if has_worked else Severity.ERROR, (start, trace.window.end),
            [thread, int(trace.events.thread[last])], [what],
            [*lost.tolist(), int(every_wait.row[i]), int(every_wait.call_row[i])],
            (f"{evidence.name(thread)} waits for {what} from {evidence.moment(start, trace.window.end - start)} to "
             f"the end of the trace, {evidence.length(trace.window.end - start)}; "
             f"{evidence.name(int(trace.events.thread[last]))} signalled "
             f"it {evidence.length(start - int(evidence.times[last]))} before, when nobody waited, and "
             f"{evidence.name(thread)} ran {evidence.length(worked)} in between.",
             "Test the condition with the mutex locked, in a loop around the wait, and set it with the mutex locked."),
            Certainty.GUESS if has_worked else Certainty.INFERRED,
            roles={**dict.fromkeys(lost.tolist(), "signals"), int(every_wait.call_row[i]): "asks",
                   int(every_wait.row[i]): "waits"},
        ))  # fmt: skip
    return verdicts


def _ran(evidence: Evidence, thread: int, start: int, end: int) -> int:
    """Return for how many cycles of a span of time a thread had a CPU."""
    who, part = evidence.ran_in((start, end))
    return int(part[who == thread].sum())


@verdict_rule(
    "lock-contention",
    meaning="Threads spend much of their time waiting for one mutex.",
    question="Do threads wait long for one mutex?",
    needs=(CALLS, STATES),
    thresholds={
        "window_ms": (100, "the length of the window"),
        "waited_percent": (100, "of the window; the waits of all threads are added up"),
        "least_count": (10, "waits within the window"),
        "passed_ms": (100, "of one wait, in which others get the mutex: it is reported alone"),
        "kept_ms": (20, "of one wait, that its holder could run and did not, where no event has priorities"),
    },
    proof="Wide events of the classes THREAD and KER_CALL show the priorities and the owner of the mutex.",
)
def contentions(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return verdicts on mutexes that threads wait for much of the time, and on single waits that are too long.

    A wait is too long if other threads get the mutex one after the other meanwhile, or if the holder is kept from
    running. The latter counts only in traces without priorities: with them, `priority-inversion` decides.
    """
    if not evidence.has_states:
        return []
    kept = [] if evidence.derived.has_priorities() else _kept_holders(evidence, limits)
    return [*_contended(evidence, limits), *_passed_over(evidence, limits), *kept]


def _passed_over(evidence: Evidence, limits: Limits) -> list[Verdict]:
    blocked_by, known = blockers(evidence.trace), mutexes(evidence.trace)
    waiting, gives = blocked_by.waits, known.gives
    for_mutexes = np.flatnonzero(known.of_wait >= 0)
    end = evidence.end_rows(waiting.end_row[for_mutexes])
    is_long = evidence.lengths(waiting.row[for_mutexes], end) >= limits.cycles("passed_ms")
    verdicts = []
    for wait, stop in zip(for_mutexes[is_long].tolist(), end[is_long].tolist(), strict=True):
        row, thread = int(waiting.row[wait]), int(waiting.thread[wait])
        is_between = (gives.mutex == known.of_wait[wait]) & (gives.row > row) & (gives.row < stop)
        givers = gives.thread[is_between]
        if len(givers) < _OFTEN:
            continue
        others = _most_of(givers, np.ones(len(givers), np.int64))
        start, length = int(evidence.times[row]), int(evidence.times[stop] - evidence.times[row])
        what, lock_row = waited_for(evidence, blocked_by, wait), _lock_row(evidence, blocked_by, wait)
        roles = _roles(blocked_by, wait, lock_row)
        verdicts.append(evidence.verdict(
            Severity.WARNING, (start, start + length), [thread, *others], [what], list(roles),
            (f"{evidence.name(thread)} waits {evidence.length_from(start, start + length)} for {what}, which "
             f"others have and give up {len(givers):,} times meanwhile: {_some(evidence, others, 'and')}"
             f"{_taken(evidence, blocked_by, wait, lock_row)}.",
             "A mutex goes to the thread of the highest priority that waits: hold it for less of the time."),
            Certainty.INFERRED, roles=roles,
        ))  # fmt: skip
    return verdicts


def _kept_holders(evidence: Evidence, limits: Limits) -> list[Verdict]:
    blocked_by, least = blockers(evidence.trace), limits.cycles("kept_ms")
    waiting = blocked_by.waits
    end = evidence.end_rows(waiting.end_row)
    for_mutexes = np.flatnonzero(waiting.value == MUTEX)
    ready = evidence.ready_of(blocked_by.thread[for_mutexes])
    begin_row = waiting.row[for_mutexes].astype(np.int64)
    wait_of, spans = overlaps(blocked_by.thread[for_mutexes], begin_row, end[for_mutexes],
                           ready.thread, ready.row, ready.end_row)  # fmt: skip
    begin, stop = (
        np.maximum(waiting.row[for_mutexes[wait_of]], ready.row[spans]),
        np.minimum(end[for_mutexes[wait_of]], ready.end_row[spans]),
    )
    kept = np.bincount(wait_of, evidence.lengths(begin, stop), len(for_mutexes)).astype(np.int64)
    for_mutexes, kept = for_mutexes[kept >= least], kept[kept >= least]
    verdicts = []
    for (thread, holder), group in groups(waiting.thread[for_mutexes], blocked_by.thread[for_mutexes]):
        occurrences = [evidence.span_of_wait(waiting, i) for i in for_mutexes[group].tolist()]
        which = longest(occurrences)
        wait, span = int(for_mutexes[group[which]]), occurrences[which][:2]
        who = ran_instead(evidence, span, holder)
        again, lock_row = evidence.again(occurrences, span[0]), _lock_row(evidence, blocked_by, wait)
        roles = _roles(blocked_by, wait, lock_row)
        verdicts.append(evidence.verdict(
            Severity.WARNING, span, [thread, holder, *named(who)], [waited_for(evidence, blocked_by, wait)],
            list(roles),
            (f"{evidence.name(thread)} waits {evidence.length_from(*span)} for "
             f"{waited_for(evidence, blocked_by, wait)}{of_whom(evidence, blocked_by, wait)}, which could run and "
             "did not for "
             f"{evidence.length(int(kept[group[which]]))} of that{instead(evidence, span, who)}{again}"
             f"{_taken(evidence, blocked_by, wait, lock_row)}: a priority inversion is possible, no event has "
             "priorities.",
             "Capture wide events of the class THREAD to see the priorities; priority inheritance would help."),
            int(blocked_by.certainty[wait]), occurrences, roles,
        ))  # fmt: skip
    return verdicts


def _contended(evidence: Evidence, limits: Limits) -> list[Verdict]:
    trace = evidence.trace
    known, mutex = blockers(trace), mutexes(trace).of_wait
    every_wait = known.waits
    window = limits.cycles("window_ms")
    least = int(window * limits.number("waited_percent") / 100)
    for_mutexes = np.flatnonzero(mutex >= 0)
    begin_cycles, end_cycles = (
        evidence.times[every_wait.row[for_mutexes]],
        evidence.times[evidence.end_rows(every_wait.end_row[for_mutexes])],
    )
    verdicts = []
    for _, members in groups(mutex[for_mutexes]):
        begin, end = begin_cycles[members], end_cycles[members]
        if len(members) < limits.number("least_count"):
            continue
        begins, waited = full_windows(begin, end, window, least)
        sorted_begin = np.sort(begin)
        count = np.searchsorted(sorted_begin, begins + window) - np.searchsorted(sorted_begin, begins)
        bad = np.flatnonzero(count >= limits.number("least_count"))
        if not len(bad):
            continue
        worst = bad[np.argmax(waited[bad])]
        position = episodes(begins[bad], window)
        which = episode_of(position, begins[worst])
        span = int(position.start[which]), int(position.end[which])
        is_inside = (begin < begins[worst] + window) & (end > begins[worst])
        inside = for_mutexes[members[is_inside]]
        threads = _most_of(every_wait.thread[inside], (end - begin)[is_inside])
        what = mutex_text(evidence, int(every_wait.thread[inside[0]]), int(every_wait.object[inside[0]]))
        length = np.where(every_wait.thread[inside] == threads[0], (end - begin)[is_inside], 0)
        longest = int(inside[np.argmax(length)])
        first_ones = np.sort(every_wait.row[inside])[:_MOST_OTHERS].tolist()
        lock_row = _lock_row(evidence, known, longest)
        roles = dict.fromkeys(first_ones, "waits") | _roles(known, longest, lock_row)
        holders = np.unique(known.thread[inside])
        held = _some(evidence, holders[holders > 0].tolist(), "and")
        verdicts.append(evidence.verdict(
            Severity.WARNING, span, threads, [what], list(roles),
            (f"{len(threads)} threads wait {int(count[worst])} times for {what} within {evidence.length(window)} from "
             f"{evidence.moment(int(begins[worst]), window)}, {evidence.length(int(waited[worst]))} in all"
             f"{f', while {held} hold it in turn' if held else ''}; {evidence.name(threads[0])} waits most, longest "
             f"{evidence.length_from(*evidence.span_of_wait(every_wait, longest)[:2])}"
             f"{_taken(evidence, known, longest, lock_row)}.",
             "Hold the mutex for less time, above all never across a sleep or a message, or split what it guards; a "
             "reader/writer lock helps if most of them only read."),
            occurrences=[(int(start), int(end), -1) for start, end in zip(position.start, position.end, strict=True)],
            roles=roles,
        ))  # fmt: skip
    return verdicts


def _roles(blocked_by: Blockers, wait: int, lock_row: int | None) -> dict[int, str]:
    """Return the part of each event in a wait for a mutex, by row, which is beyond the last for a missing event."""
    waiting = blocked_by.waits
    roles = {
        int(waiting.call_row[wait]): "asks",
        int(waiting.row[wait]): "waits",
        int(waiting.end_row[wait]): "goes on",
    }
    return roles | ({} if lock_row is None else {lock_row: "takes it"})


def _taken(evidence: Evidence, blocked_by: Blockers, wait: int, lock_row: int | None) -> str:
    """Return a clause with the time at which the holder took the awaited mutex; empty if that is not known."""
    if lock_row is None:
        return ""
    waiting = blocked_by.waits
    before = evidence.times[min(waiting.call_row[wait], waiting.row[wait])] - evidence.times[lock_row]
    start, end, _ = evidence.span_of_wait(waiting, wait)
    moment = evidence.moment(int(evidence.times[lock_row]), end - start)
    return (f"; {evidence.name(int(blocked_by.thread[wait]))} took it at {moment}, {evidence.length(before)} before "
            f"{evidence.name(int(waiting.thread[wait]))} asked for it")  # fmt: skip


def _lock_row(evidence: Evidence, blocked_by: Blockers, wait: int) -> int | None:
    """Return the event at which the holder got the awaited mutex; None if the trace does not show it.

    That is the end of the holder's own wait for the mutex, or else the end of its call. No event shows the lock of a
    free mutex.
    """
    table, gets, waiting = holds(evidence.trace), mutexes(evidence.trace).gets, blocked_by.waits
    asks = int(min(waiting.call_row[wait], waiting.row[wait]))
    held = np.flatnonzero((table.from_row < asks) & (table.to_row > asks))
    call = np.searchsorted(gets.row, table.from_row[held])
    is_lock = (gets.thread[call] == blocked_by.thread[wait]) & (
        gets.mutex[call] == mutexes(evidence.trace).of_wait[wait]
    )
    if not is_lock.any():
        return None
    get = table.from_row[held[is_lock]][-1]
    ends = waiting.end_row[(waiting.call_row == get) & (waiting.value == MUTEX)]
    lock_row = int(ends[-1] if len(ends) else partners(evidence.trace)[get])
    return lock_row if lock_row < asks else None


def _most_of(thread: _Ints, cycles: _Ints) -> list[int]:
    """Return the distinct threads, those with the most cycles first."""
    rows, which = np.unique(thread, return_inverse=True)
    return [int(row) for row in rows[np.argsort(-np.bincount(which, cycles), kind="stable")]]


# Priority inversion: by the holder of a mutex directly, or through chains of holders and servers.


_MOST_STEPS: Final = 8  # waits in a chain


@dataclass(frozen=True, slots=True)
class _Chains:
    """Chains of waits from one thread to another, and the ranges in which they hold; every column has shape (n,)."""

    wait: _Ints  # the wait at the beginning
    thread: _Ints  # the thread at the end
    begin: _Ints  # rows between which the chain holds
    end: _Ints
    link: _Ints  # the last wait of the chain: for an object that the last thread holds or serves
    steps: _Ints  # number of waits in the chain


@verdict_rule(
    "priority-inversion",
    meaning="A thread waits for one of lower priority, which a third one of a priority in between keeps from running.",
    question="Does a thread of low priority keep one of high priority waiting?",
    needs=(STATES, PRIORITIES),
    bounds=(CALLS, MESSAGES_SENT, NO_DAMAGE, NO_LOSS),
    thresholds={
        "least_us": (1000, "all that threads of a priority in between ran meanwhile, in one wait"),
    },
    proof="Wide events of the class KER_CALL show the owner of a mutex; of one in shared memory they show a part "
    "of the owner's pid only, and the source says which processes share it.",
)
def inversions(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return verdicts on waits for a thread of lower priority that a thread with a priority in between delays.

    Priorities come from wide thread events, which show a thread's priority when it enters a state. Without such events
    there are no verdicts.
    Source: formula 6 of the reference.
    """
    blocked_by = blockers(evidence.trace)
    candidates = np.flatnonzero(blocked_by.thread > 0)
    waiting = blocked_by.waits
    least = limits.cycles("least_us")
    candidates = candidates[
        evidence.lengths(waiting.row[candidates], evidence.end_rows(waiting.end_row[candidates])) >= least
    ]
    high = np.zeros(len(blocked_by), np.int32)
    high[candidates] = evidence.derived.priority(waiting.row[candidates])
    candidates = candidates[high[candidates] > 0]
    if not len(candidates):
        return []
    parts = []
    end = evidence.end_rows(waiting.end_row[candidates])
    low, begin = (column[candidates].astype(np.int64) for column in (blocked_by.thread, waiting.row))
    chains = _Chains(candidates, low, begin, end, candidates, np.ones(len(candidates), np.int64))
    for _ in range(_MOST_STEPS):
        parts.append(_runs_in_between(evidence, chains, high, least))
        chains = _longer(chains, blocked_by, candidates, end)
        if not len(chains.wait):
            break
    columns = [np.concatenate([part[i] for part in parts]) for i in range(7)]
    return _verdicts(evidence, blocked_by, columns, least)


def _runs_in_between(
    evidence: Evidence, chains: _Chains, high: NDArray[np.int32], least: int,
) -> tuple[_Ints, ...]:  # fmt: skip
    """Return the runs of threads that delay chains of waits by a priority in between, one row per run and chain.

    A run counts if the last thread of the chain is ready meanwhile, and the priority of the run is above that thread's
    and below that of the first thread. Periods in which the last thread is ready for less than `least` / 8 are left
    out.

    The columns are `wait`, `thread`, `link` and `steps` of the chain, the row that begins the run, and the rows at
    which the delay begins and ends.
    """
    ready = evidence.ready_of(chains.thread)
    chain_of, spans = overlaps(chains.thread, chains.begin, chains.end, ready.thread, ready.row, ready.end_row)
    begin, stop = (
        np.maximum(chains.begin[chain_of], ready.row[spans]),
        np.minimum(chains.end[chain_of], ready.end_row[spans]),
    )
    low, top = evidence.derived.priority(ready.row[spans]), high[chains.wait[chain_of]]
    # The threads in between are preempted too, so their runs may be short; only the sum must be long enough.
    keep = np.flatnonzero((evidence.lengths(begin, stop) >= least // 8) & (low > 0))
    chain_of, begin, stop, low, top = chain_of[keep], begin[keep], stop[keep], low[keep], top[keep]
    out: list[tuple[_Ints, ...]] = []
    for on_cpu in evidence.runs_in(begin, stop) if len(chain_of) else ():
        zeros = np.zeros(len(chain_of), np.int64)
        pair, run = overlaps(zeros, begin, stop, np.zeros(len(on_cpu), np.int64), on_cpu.row, on_cpu.end_row)
        middle = evidence.derived.priority(on_cpu.row[run])
        is_between = (middle > low[pair]) & (middle < top[pair])
        pair, run = pair[is_between], run[is_between]
        chain, row = chain_of[pair], on_cpu.row[run].astype(np.int64)
        out.append((chains.wait[chain], chains.thread[chain], chains.link[chain], chains.steps[chain], row,
                    np.maximum(begin[pair], row), np.minimum(stop[pair], on_cpu.end_row[run])))  # fmt: skip
    return tuple(np.concatenate([part[i] for part in out]) if out else np.empty(0, np.int64) for i in range(7))


def _longer(chains: _Chains, blocked_by: Blockers, candidates: NDArray[np.intp], end: _Ints) -> _Chains:
    """Return the chains, each extended by a wait of its last thread."""
    waiting = blocked_by.waits
    rows = waiting.row[candidates].astype(np.int64)
    chain_of, spans = overlaps(chains.thread, chains.begin, chains.end, waiting.thread[candidates], rows, end)
    next_wait = candidates[spans]
    return _Chains(
        chains.wait[chain_of], blocked_by.thread[next_wait].astype(np.int64),
        np.maximum(chains.begin[chain_of], rows[spans]), np.minimum(chains.end[chain_of], end[spans]), next_wait,
        chains.steps[chain_of] + 1,
    )  # fmt: skip


def _verdicts(evidence: Evidence, blocked_by: Blockers, columns: list[_Ints], least: int) -> list[Verdict]:
    """Return a verdict for each pair of threads and object, about its most delayed wait, from `_runs_in_between`."""
    wait, low, link, steps, run, begin_row, end_row = columns
    begins, ends = evidence.times[begin_row], evidence.times[end_row]
    waiting, trace = blocked_by.waits, evidence.trace
    thread, what = waiting.thread, waiting.object
    verdicts = []
    for (high_row, low_row, _), positions in groups(thread[wait], low, what[link]):
        # Time in which several CPUs run threads in between counts once.
        waits = [positions[parts] for _, parts in groups(wait[positions])]  # in time order, being of one thread
        ranges = [TimeRanges.of(begins[parts], ends[parts]) for parts in waits]
        long = [(total, parts) for spans, parts in zip(ranges, waits, strict=True)
                if (total := int((spans.end - spans.start).sum())) >= least]  # fmt: skip
        if not long:
            continue
        total, parts = max(long, key=lambda kept: kept[0])
        begin = int(wait[parts[0]])
        runs = run[parts]
        middle = trace.events.thread[runs].astype(np.int64)
        between = evidence.most_of(middle, ends[parts] - begins[parts])
        start, stop = int(waiting.row[begin]), int(evidence.end_rows(waiting.end_row[[begin]])[0])
        span = int(evidence.times[start]), int(evidence.times[stop])
        name, object_text = evidence.name, waited_for(evidence, blocked_by, begin)
        ranked = partial(_ranked_by_run, evidence, runs, middle)
        is_one = len(between) == 1
        who = f"{ranked(between[0][0])} keeps" if is_one else f"{evidence.shares(between, ranked)} keep"
        cpus = trace.events.cpu[runs].astype(np.int64)
        taken = evidence.interrupts(begins[parts], ends[parts], cpus, least=total // 100)
        more = int(steps[parts[0]]) - 1
        chain = f" and so, {counted(more, 'step')} on, for {name(low_row)}" if more else ""
        times = [evidence.span_of_wait(waiting, int(wait[of_wait[0]])) for _, of_wait in long]
        again = evidence.again(times, span[0])
        held = _row_before(evidence, low_row, int(begin_row[parts[0]]))
        roles = {
            **dict.fromkeys(runs.tolist(), "preempts"),
            held: "holder, ready",
            start: "waits",
            stop: "goes on",
        }
        verdicts.append(evidence.verdict(
            Severity.ERROR,
            span, [high_row, low_row, *named(between)],
            [object_text],
            [start, held, *runs.tolist(), stop],
            (f"{_ranked(evidence, high_row, start)} waits {evidence.length_from(*span)} for {object_text}"
             f"{of_whom(evidence, blocked_by, begin)}"
             f"{chain}; "
             f"{who} {_ranked(evidence, low_row, held)} from running for {evidence.length(total)} of that"
             f"{f' ({taken} of it)' if taken else ''}{again}.",
             _remedy(evidence, blocked_by, begin, int(link[parts[0]]), _priority(evidence, start))),
            int(blocked_by.certainty[np.array([begin, *link[parts]])].min()), times, roles,
        ))  # fmt: skip
    return verdicts


def _row_before(evidence: Evidence, thread: int, row: int) -> int:
    """Return the last state event of a thread at or before an event, -1 for none."""
    states = evidence.trace.states.of(thread)
    states = states[states <= row]
    return int(states[-1]) if len(states) else -1


def _ranked_by_run(evidence: Evidence, runs: _Ints, threads: _Ints, thread: int) -> str:
    """Return the name of a thread with the priority at which its first run began."""
    return _ranked(evidence, thread, int(runs[threads == thread][0]))


def _ranked(evidence: Evidence, thread: int, row: int) -> str:
    """Return the name of a thread with the priority that an event of its state shows."""
    return f"{evidence.name(thread)} (priority {_priority(evidence, row)})"


def _remedy(evidence: Evidence, blocked_by: Blockers, start_wait: int, link: int, priority: int) -> str:
    """Return the remedy for an inversion, depending on the object of the last wait (`link`) of its chain."""
    value, holder = int(blocked_by.waits.value[link]), evidence.name(int(blocked_by.thread[link]))
    what = waited_for(evidence, blocked_by, link)
    if value == MUTEX:
        return (f"Look where {what} is made without priority inheritance (PTHREAD_PRIO_NONE), and give it the protocol "
                f"PTHREAD_PRIO_INHERIT: {holder} then runs at priority {priority} while it holds it. Or give it a "
                "ceiling not below the priority of any thread that locks it.")  # fmt: skip
    if value in RWLOCKS:
        return f"A read/write lock passes no priority on: use a mutex with PTHREAD_PRIO_INHERIT in place of {what}."
    if value in (SEND, REPLY):
        servers = dict.fromkeys(evidence.name(int(blocked_by.thread[wait])) for wait in (start_wait, link))
        return (f"Create the channels of {' and '.join(servers)} without _NTO_CHF_FIXED_PRIORITY, so that each server "
                f"runs at the priority of its client ({priority}) while it serves; a thread that it hands a message "
                "to needs that priority too.")  # fmt: skip
    return f"Let {holder} run at priority {priority} while others wait for it."


def _priority(evidence: Evidence, row: int) -> int:
    """Return the thread's priority that its state event `row` logs; -1 if it logs none."""
    return int(evidence.derived.priority(np.array([row]))[0]) if row >= 0 else -1
