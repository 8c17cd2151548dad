"""Verdicts on deadlines, periods and chains from a user's timing file (docs/late.md), and on learned periods.

Learned values are not requirements: without a timing file the rules `deadline`, `period` and `chain` find nothing.
`missed-period` learns periods from the pulses that start the work, and from sleeps.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.activities import (
    LEAST_PERIODS,
    NANOSLEEP,
    REGULAR_PERCENT,
    TOLERANCE_PERCENT,
    Activities,
    ChainTimes,
    activities,
    ages,
    chain_of,
    reactions,
    regular_period,
)
from satview.analysis.blame import Blame, Kept, blame, part_words
from satview.analysis.needs import NO_DAMAGE, NO_LOSS, PERIODS, PULSES, STATES
from satview.analysis.timing import bound_cycles
from satview.analysis.verdicts.evidence import Evidence, groups, longest, named
from satview.analysis.verdicts.rule import Limits, verdict_rule
from satview.analysis.verdicts.scheduling import instead, ran_instead
from satview.analysis.verdicts.verdict import Severity, Verdict
from satview.events.states import READY
from satview.linkage.pulses import pulses
from satview.linkage.rows import comm_words
from satview.linkage.table import Certainty
from satview.linkage.whole import is_whole

_PROOF: Final = (
    "A user event where the work begins and one where it is done, named by `start` and `end` in the file of timing."
)
_REMEDIES: Final = {
    Blame.EARLIER: "Do less work each time, so that it is done before the next trigger.",
    Blame.INTERRUPT: "Do less in that interrupt's handler, or have it handled on another CPU.",
    Blame.PREEMPTED: "Give it a higher priority than the thread that runs instead, or let them run on different CPUs.",
    Blame.TRACING: "Capture fewer events, so that writing the trace takes less of the CPU.",
    Blame.NO_CPU: "Let it run on more CPUs, or give its partition a larger budget.",
    Blame.LOCK: "Hold the lock for a shorter time, or give it priority inheritance if its holder waits for a CPU.",
    Blame.MESSAGE: "Let the server answer sooner, or do not wait for its reply within this work.",
    Blame.SLEEP: "Sleep less within this work.",
    Blame.WAIT: "Let what it waits for happen sooner, or do not wait for it within this work.",
    Blame.UNKNOWN: "Capture all events of the class THREAD, to see where the time goes.",
}
_DO_LESS: Final = "Do less work each time, or give it more time."


def _blamed(evidence: Evidence, thread: int, span: tuple[int, int], begin: int) -> tuple[str, int, str]:
    """Return a text on what took most of a thread's interval, the other thread concerned (0 = none), and the remedy."""
    start, end = span
    parts = blame(evidence.trace, *(np.array([value]) for value in (thread, start, min(max(begin, start), end), end)))
    if not len(parts):
        return "", 0, _DO_LESS
    kind, thread = Blame(int(parts.kind[0])), int(parts.thread[0])
    if kind in (Blame.PREEMPTED, Blame.TRACING) and parts.value[0] != Kept.NOTHING:
        kind = Blame.NO_CPU
    return part_words(evidence.trace, parts, 0), thread, _REMEDIES.get(kind, _DO_LESS)


def _threads(*rows: int) -> list[int]:
    return [row for row in dict.fromkeys(rows) if row > 0]


@verdict_rule(
    "deadline",
    meaning="Work took longer than its deadline in the file of timing.",
    question="Is a deadline of the file of timing missed?",
    needs=(STATES,),
    proof=_PROOF,
    timing=("deadline", "period"),
)
def missed_deadlines(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return activities with instances that took longer than the file's deadline, or else its period."""
    learned, verdicts = activities(evidence.trace, limits.timing), []
    rounds, overrun = learned.instances, learned.overrun_cycles
    for number, activity in enumerate(learned.activities):
        late = np.flatnonzero((rounds.activity == number) & (overrun > 0))
        is_said = activity.deadline_from == "said" or activity.is_period_said
        if not is_said or not len(late):
            continue
        worst = int(late[np.argmax(overrun[late])])
        start, end = int(rounds.start_cycles[worst]), int(rounds.end_cycles[worst])
        thread = int(rounds.thread[worst])
        words, other, remedy = _blamed(evidence, thread, (start, end), int(rounds.begin_cycles[worst]))
        of = f"its deadline of {evidence.length(activity.deadline_cycles)}"
        cases = _cases(learned, late)
        triggered, done = rounds.start_row[late].tolist(), rounds.end_row[late].tolist()
        verdicts.append(evidence.verdict(
            Severity.WARNING, (start, end), _threads(thread, other), [activity.name], [*triggered, *done],
            (f"{activity.name} took {'at least ' if rounds.is_open[worst] else ''}{evidence.length_from(start, end)}, "
             f"{evidence.length(int(overrun[worst]))} longer than {of}; most of it {words}"
             f"{evidence.again(cases, start)}.", remedy),
            Certainty.EXACT if rounds.is_exact[late].all() else Certainty.INFERRED, cases,
            {**dict.fromkeys(triggered, "triggers it"), **dict.fromkeys(done, "done late")},
        ))  # fmt: skip
    return verdicts


def _cases(learned: Activities, late: NDArray[np.intp]) -> list[tuple[int, int, int]]:
    rounds = learned.instances
    return list(zip(rounds.start_cycles[late].tolist(), rounds.end_cycles[late].tolist(),
                    rounds.start_row[late].tolist(), strict=True))  # fmt: skip


@verdict_rule(
    "period",
    meaning="Work was not triggered with the period that the file of timing says.",
    question="Is work triggered as regularly as the file of timing says?",
    needs=(STATES,),
    thresholds={"tolerance_percent": (10, "of the period: so much sooner or later it may be triggered")},
    proof=_PROOF,
    timing=("period",),
)
def missed_triggers(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return activities that were triggered sooner or later than their period in the file allows.

    The time from the last trigger to the end of the trace counts too, as a lower bound.
    """
    trace = evidence.trace
    learned, verdicts = activities(trace, limits.timing), []
    for number, activity in enumerate(learned.activities):
        if not activity.is_period_said:
            continue
        rounds = learned.instances.taken(learned.instances.activity == number)
        if not len(rounds):
            continue
        period, allowed = activity.period_cycles, activity.period_cycles * limits.number("tolerance_percent") / 100
        edges = np.append(rounds.start_cycles, trace.window.end)
        rows = np.append(rounds.start_row, len(trace.events) - 1)
        off = np.diff(edges) - period
        off[-1] = max(int(off[-1]), 0)  # the trace may end at any time
        bad = np.flatnonzero((np.abs(off) > allowed) & is_whole(trace, rows[:-1], rows[1:]))
        if not len(bad):
            continue
        worst = int(bad[np.argmax(np.abs(off[bad]))])
        start, end, thread = int(edges[worst]), int(edges[worst + 1]), int(rounds.thread[worst])
        how = f"{evidence.length(abs(int(off[worst])))} {'later' if off[worst] > 0 else 'sooner'}"
        words, other, remedy = "", 0, "Look at what triggers it."
        if off[worst] > 0 and activity.trigger in {"sleep", "said"}:  # its own thread begins it
            words, other, remedy = _blamed(evidence, thread, (start + period, end), start + period)
        is_over = worst == len(rounds) - 1
        cases = list(zip(edges[bad].tolist(), edges[bad + 1].tolist(), rows[bad].tolist(), strict=True))
        is_exact = rounds.is_exact[bad].all() and rounds.is_exact[np.minimum(bad + 1, len(rounds) - 1)].all()
        verdicts.append(evidence.verdict(
            Severity.WARNING, (start, end), _threads(thread, other), [activity.name],
            [*rows[bad].tolist(), *rows[bad + 1].tolist()],
            (f"{activity.name} is {'not triggered again for at least' if is_over else 'triggered again after'} "
             f"{evidence.length_from(start, end)}, {how} than its period of {evidence.length(period)} says"
             f"{f'; of that {words}' if words else ''}{evidence.again(cases, start)}.", remedy),
            Certainty.EXACT if is_exact else Certainty.INFERRED, cases,
            {**dict.fromkeys(rows[bad + 1].tolist(), "triggers it off time"),
             **dict.fromkeys(rows[bad].tolist(), "triggers it")},
        ))  # fmt: skip
    return verdicts


@verdict_rule(
    "chain",
    meaning="A chain of work reacted late, or its output had older input, than the file of timing allows.",
    question="Does a chain react in time, with input that is new enough?",
    needs=(STATES,),
    proof="User events that carry a number of what goes through the chain show which output belongs to which input.",
    timing=("reaction", "age"),
)
def late_chains(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return chains whose reaction time or input age exceeded the bound in the file."""
    trace = evidence.trace
    learned, verdicts = activities(trace, limits.timing), []
    for name, said in limits.timing.items():
        for times_of, text, what in ((reactions, said.reaction, "reaction"), (ages, said.age, "age of the input")):
            if not text:
                continue
            times, bound = times_of(trace, learned, chain_of(learned, said.chain)), bound_cycles(trace, text)
            late = np.flatnonzero(times.is_known & (times.length_cycles > bound))
            if not len(late):
                continue
            cases = list(zip(times.start_cycles[late].tolist(), times.end_cycles[late].tolist(),
                             times.start_row[late].tolist(), strict=True))  # fmt: skip
            worst = int(late[longest(cases)])
            start, end, _ = cases[longest(cases)]
            words, threads, remedy = _slowest_step(evidence, learned, times, worst)
            steps = times.steps[worst]
            rows = learned.instances.start_row[steps[steps >= 0]].tolist()
            verdicts.append(evidence.verdict(
                Severity.WARNING, (start, end), threads, [name], [*rows, *times.start_row[late].tolist()],
                (f"The {what} of the chain {name} is {'at least ' if times.is_open[worst] else ''}"
                 f"{evidence.length_from(start, end)}, {evidence.length(end - start - bound)} more than its bound of "
                 f"{evidence.length(bound)}; most of it {words}{evidence.again(cases, start)}.", remedy),
                Certainty.INFERRED, cases, dict.fromkeys(rows, "goes through the chain"),
            ))  # fmt: skip
    return verdicts


def _slowest_step(evidence: Evidence, learned: Activities, times: ChainTimes, row: int) -> tuple[str, list[int], str]:
    """Return a text on the step of a chain that took longest, the threads of the chain, and the remedy.

    A step is the time of an activity from its trigger, or from the end of the one before, until the next one begins; or
    the time between two activities.
    """
    rounds, end = learned.instances, int(times.end_cycles[row])
    reached = [step for step in times.steps[row].tolist() if step >= 0]
    moment, before = int(times.start_cycles[row]), ""
    spent: list[tuple[int, int, int, str]] = []  # start, end, instance or -1, name
    for position, step in enumerate(reached):
        name = learned.activities[int(rounds.activity[step])].name
        start = min(max(moment, int(rounds.start_cycles[step])), end)
        spent.append((moment, start, -1, f"after {before}, until {name} is triggered"))
        done = int(rounds.end_cycles[step])
        if position + 1 < len(reached):
            done = min(done, int(rounds.start_cycles[reached[position + 1]]))
        moment, before = min(max(done, start), end), name
        spent.append((start, moment, step, name))
    spent.append((moment, end, -1, f"after {before}, with which nothing goes on"))
    start, stop, step, name = spent[longest([(begin, over, 0) for begin, over, *_ in spent])]
    threads = _threads(*(int(rounds.thread[instance]) for instance in reversed(reached)))
    if step < 0:
        return f"{evidence.length(stop - start)} {name}", threads, "Let the activities of the chain trigger each other."
    thread = int(rounds.thread[step])
    words, other, remedy = _blamed(evidence, thread, (start, stop), int(rounds.begin_cycles[step]))
    return f"{evidence.length(stop - start)} in {name} ({words})", _threads(*threads, other), remedy


_REMEDY: Final = (
    "Do less work in a period, if it was still at that of the period before; give it a higher priority, if others ran."
)


@verdict_rule(
    "missed-period",
    meaning="A periodic thread began its work so late that the period was as good as over.",
    question="Does a periodic thread begin too late?",
    needs=(PERIODS,),
    bounds=(PULSES, STATES, NO_DAMAGE, NO_LOSS),
    thresholds={
        "least_count": (LEAST_PERIODS, "so many periods are needed to learn the period"),
        "regular_percent": (REGULAR_PERCENT, "of the periods, so many must be as long as the learned one ..."),
        "tolerance_percent": (TOLERANCE_PERCENT, "... within this"),
        "late_percent": (50, "of the period: the work begins at least so much later than it should"),
    },
    proof="A user event where the work of a period begins, or the timers' own events (class KER_CALL), tell "
    "when each one was due.",
)
def missed_periods(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return periods whose work began so late that most of the period was over.

    The period is the median time between the pulses of a connection, or between the ends of a thread's sleeps, if these
    are regular. If a pulse waits for much of a period, or a thread runs late after a sleep, the thread was still busy
    with the period before, or was kept from running. Regular pulses of one connection are taken for those of one timer.
    """
    return [*_late_pulses(evidence, limits), *_late_sleepers(evidence, limits)]


def _late_pulses(evidence: Evidence, limits: Limits) -> list[Verdict]:
    trace = evidence.trace
    table = pulses(trace)
    sent, received = table.from_row.astype(np.int64), table.to_row.astype(np.int64)
    if not len(table):
        return []
    scoid, pid = comm_words(trace, sent)
    verdicts = []
    for _, pulses_of_timer in groups(pid, scoid):
        period = _period(evidence, limits, sent[pulses_of_timer])
        late = evidence.lengths(sent[pulses_of_timer], received[pulses_of_timer])
        bad = np.flatnonzero(late >= period * limits.number("late_percent") / 100)
        if not period or not len(bad):
            continue
        times = evidence.times[sent[pulses_of_timer]]
        worst = int(bad[np.argmax(late[bad])])
        thread = int(trace.events.thread[received[pulses_of_timer[worst]]])
        start, lateness = int(times[worst]), evidence.length(int(late[worst]))
        positions = [(int(times[i]), int(times[i] + late[i]), int(sent[pulses_of_timer[i]])) for i in bad.tolist()]
        again = evidence.again(positions, start)
        jitter = evidence.length(int(late.max() - late.min()))
        certainty = max(
            table.certainty[pulses_of_timer[bad]].min(), Certainty.INFERRED
        )  # one timer's pulses queue in turn
        verdicts.append(evidence.verdict(
            Severity.WARNING, (start, start + int(late[worst])), [thread], [],
            [*sent[pulses_of_timer[bad]].tolist(), *received[pulses_of_timer[bad]].tolist()],
            (f"{evidence.name(thread)} has a period of {evidence.length(period)}, and does not receive the pulse of "
             f"{evidence.moment(start, late[worst])} until {lateness} later (jitter "
             f"{jitter}){again}.",
             _REMEDY),
            certainty, positions,
            {**dict.fromkeys(sent[pulses_of_timer[bad]].tolist(), "period begins"),
             **dict.fromkeys(received[pulses_of_timer[bad]].tolist(), "received late")},
        ))  # fmt: skip
    return verdicts


def _late_sleepers(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return verdicts on loops with sleeps; these need twice as many periods, as few may be regular by chance."""
    states = evidence.states
    begins = np.flatnonzero((states.value[1:] == READY) & (states.value[:-1] == NANOSLEEP)
                            & (states.thread[1:] == states.thread[:-1])) + 1  # fmt: skip
    verdicts = []
    for (thread,), sleeps in groups(states.thread[begins]):
        due, end = states.row[begins[sleeps]], states.end_row[begins[sleeps]]
        is_seen = evidence.times[due] >= evidence.all_cpus_cycles
        due, end = due[is_seen], end[is_seen]
        period = _period(evidence, limits, due) if len(due) > 2 * limits.number("least_count") else 0
        late = evidence.lengths(due, end)
        bad = np.flatnonzero(late >= period * limits.number("late_percent") / 100)
        if not period or not len(bad):
            continue
        positions = [(int(evidence.times[due[i]]), int(evidence.times[end[i]]), int(due[i])) for i in bad.tolist()]
        start, stop = positions[longest(positions)][:2]
        who = ran_instead(evidence, (start, stop), thread)
        again = evidence.again(positions, start)
        verdicts.append(evidence.verdict(
            Severity.WARNING, (start, stop), [thread, *named(who)], [],
            [*due[bad].tolist(), *end[bad].tolist()],
            (f"{evidence.name(thread)} has a period of {evidence.length(period)}, has slept enough at "
             f"{evidence.moment(start, stop - start)} and runs only {evidence.length(stop - start)} later"
             f"{instead(evidence, (start, stop), who)}{again}.", _REMEDY),
            Certainty.INFERRED, positions,
            {**dict.fromkeys(due[bad].tolist(), "has slept"), **dict.fromkeys(end[bad].tolist(), "runs late")},
        ))  # fmt: skip
    return verdicts


def _period(evidence: Evidence, limits: Limits, rows: NDArray[np.integer]) -> int:
    """Return the period of events by the thresholds of the user, cycles; 0 if they are not regular."""
    return regular_period(evidence.trace, rows, limits.number("least_count"), limits.number("regular_percent"),
                          limits.number("tolerance_percent"))  # fmt: skip
