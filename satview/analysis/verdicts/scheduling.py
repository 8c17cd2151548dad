"""Verdicts on late, starved and busy threads, and on deadlines, periods and chains from a timing file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
    bound_cycles,
    chain_of,
    reactions,
    regular_period,
)
from satview.analysis.blame import Blame, Kept, blame, part_words
from satview.analysis.needs import NO_DAMAGE, NO_LOSS, PERIODS, PULSES_SENT, STATES, WAITS
from satview.analysis.partitions import has_partitions, partition_names
from satview.analysis.verdicts.evidence import (
    Evidence,
    Severity,
    Verdict,
    counts_within,
    episode_of,
    episodes,
    full_windows,
    groups,
    longest,
    named,
)
from satview.analysis.verdicts.rule import Limits, verdict_rule
from satview.analysis.wait_graph import StateIntervals
from satview.events.states import READY, RUNNING
from satview.linkage.links import Certainty, comm_words, is_whole, is_whole_on
from satview.linkage.messages import pulses
from satview.store.arguments import argument_under
from satview.store.axis import are_beside
from satview.store.time_ranges import TimeRanges

# Verdicts on CPU scheduling: late, starved, ping-ponging and busy threads.


_AFFINITY: Final = "Let it run on the CPUs that are idle: widen its runmask, or the budget of its partition."
_ELSEWHERE: Final = "Look at the CPUs and the groups (cgroups) to which it is limited, and at the priority of what ran."
_IS_AWAKE: Final = np.isin(np.arange(256), (RUNNING, READY))  # lane values
_Ints = NDArray[np.int64]


@verdict_rule(
    "starvation",
    meaning="A thread could run all the time, and got next to no CPU.",
    question="Does a thread get next to no CPU?",
    needs=(STATES,),
    thresholds={
        "window_ms": (250, "the length of the window"),
        "ready_percent": (95, "of the window in READY"),
    },
)
def starvations(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return verdicts on threads that were ready for at least `ready_percent` of some window of length `window_ms`."""
    window = limits.cycles("window_ms")
    least = int(window * limits.number("ready_percent") / 100)
    delays = []
    for ready, begin, end in evidence.readies():
        for thread in np.flatnonzero(np.bincount(ready.thread, end - begin) >= least).tolist():
            number = ready.thread.dtype.type(thread)  # of another type numpy would copy the column
            own = np.arange(*(np.searchsorted(ready.thread, number, side) for side in ("left", "right")))
            begins, _ = full_windows(begin[own], end[own], window, least)
            if not len(begins):
                continue
            occurrences = _times_of(episodes(begins, window), ready.taken(own), begin[own], end[own])
            span = occurrences[longest(occurrences)][:2]
            inside = own[(begin[own] >= span[0]) & (end[own] <= span[1])]
            lasts = f"{evidence.length(int((end - begin)[inside].sum()))} of {evidence.length_from(*span)}"
            delays.append(_Delay(thread, occurrences, ready.taken(inside), Severity.WARNING, lasts,
                                 f"is ready for {lasts} and gets next to no CPU"))  # fmt: skip
    return _verdicts(evidence, delays, "get next to no CPU")


def _times_of(windows: TimeRanges, ready: StateIntervals, begin: _Ints, end: _Ints) -> list[tuple[int, int, int]]:
    """Return start, end and first event of the time from the first to the last ready interval in each window.

    Short intervals at the edges of a window that longer pauses separate from the rest are left out. Overlapping times
    of several windows are merged.
    """
    spans = []
    for start, stop in zip(windows.start, windows.end, strict=True):
        overlapping = np.flatnonzero((end > start) & (begin < stop))
        earliest, latest = 0, len(overlapping) - 1
        # Leave out short intervals at the edges of a window that longer pauses separate from the rest.
        length, pause = (end - begin)[overlapping], begin[overlapping][1:] - end[overlapping][:-1]
        while earliest < latest and length[earliest] < pause[earliest]:
            earliest += 1
        while latest > earliest and length[latest] < pause[latest - 1]:
            latest -= 1
        spans.append((int(begin[overlapping[earliest]]), int(end[overlapping[latest]])))
    ranges = TimeRanges.of_rows(np.array(spans, np.int64))
    first_rows = ready.row[np.searchsorted(begin, ranges.start)]
    return list(zip(ranges.start.tolist(), ranges.end.tolist(), first_rows.tolist(), strict=True))


@verdict_rule(
    "long-ready",
    meaning="A thread could run, and did not get a CPU for long.",
    question="Does a thread wait long for a CPU?",
    needs=(STATES,),
    thresholds={
        "least_ms": (60, "in READY without a break; what is long enough for starvation is reported as that"),
        "serious_ms": (150, "from that length on it is a warning"),
    },
)
def long_readies(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return verdicts on threads that were ready for long without a break, but not for as long as in `starvation`."""
    starving = int(limits.of("starvation").cycles("window_ms")
                   * limits.of("starvation").number("ready_percent") / 100)  # fmt: skip
    delays = []
    for ready, begin, end in evidence.readies():
        cycles = end - begin
        long = np.flatnonzero((cycles >= limits.cycles("least_ms")) & (cycles < starving))
        for (thread,), members in groups(ready.thread[long]):
            own = long[members]
            positions = [(int(begin[i]), int(end[i]), int(ready.row[i])) for i in own.tolist()]
            which = longest(positions)
            span = positions[which][:2]
            severity = Severity.WARNING if span[1] - span[0] >= limits.cycles("serious_ms") else Severity.INFO
            moment, length = evidence.moment(span[0], span[1] - span[0]), evidence.length(span[1] - span[0])
            delays.append(_Delay(thread, positions, ready.taken(own[which : which + 1]), severity,
                                 f"{length} from {moment}",
                                 f"is ready from {moment} and runs {length} later"))  # fmt: skip
    return _verdicts(evidence, delays, "do not run for long")


@dataclass(frozen=True, slots=True)
class _Delay:
    """Times at which one thread was ready and did not run.

    Attributes:
        thread: Row of the thread table.
        occurrences: (start, end, first event) of every such time, in time order; the longest is reported.
        shown: Ready intervals of the thread within the longest one.
        severity: How much the delay matters.
        lasts: Text on the duration, which follows the name of the thread.
        predicate: Text on what happens to the thread, which follows its name in a sentence.
        who: Threads that ran during the longest time, from `ran_instead`.
        idle: CPUs that were idle during that time, from `_idle_cpus`.
    """

    thread: int
    occurrences: list[tuple[int, int, int]]
    shown: StateIntervals
    severity: Severity
    lasts: str
    predicate: str
    who: list[tuple[int, int]] = field(default_factory=list)
    idle: str = ""

    @property
    def span(self) -> tuple[int, int]:
        """Start and end of the longest time in which the thread was ready and did not run, cycles."""
        return self.occurrences[longest(self.occurrences)][:2]


def _verdicts(evidence: Evidence, delays: list[_Delay], they_do: str) -> list[Verdict]:
    """Return one verdict per delayed thread, or per group of threads that a partition's budget held back together."""
    together: list[tuple[int, list[_Delay]]] = []
    for thread in delays:
        delay = replace(thread, who=ran_instead(evidence, thread.span, thread.thread),
                      idle=_idle_cpus(evidence, thread.span, thread.thread))  # fmt: skip
        partition = _held_by(evidence, delay)
        others = next((group for number, group in together if number == partition >= 0 and any(
            delay.span[0] < other.span[1] and other.span[0] < delay.span[1] for other in group)), None)  # fmt: skip
        if others is None:
            together.append((partition, [delay]))
        else:
            others.append(delay)
    return [_verdict(evidence, partition, group, they_do) for partition, group in together]


def _verdict(evidence: Evidence, partition: int, delays: list[_Delay], they_do: str) -> Verdict:
    """Return the verdict on a thread that was ready, or on several threads of one partition (-1 = not its budget)."""
    is_qnx = evidence.trace.release.is_qnx
    delays = sorted(delays, key=lambda delay: delay.span[0] - delay.span[1])
    worst, threads = delays[0], [delay.thread for delay in delays]
    own = worst.span
    who = [ran for ran in worst.who if ran[0] not in threads]
    by = "it by its runmask or its partition" if len(delays) == 1 else "them by their partition"
    # On other systems a balancer may leave a CPU idle, too.
    idle = f"; idle meanwhile{f', and forbidden to {by}' if is_qnx else ''}: {worst.idle}" if worst.idle else ""
    occurrences, span, text = worst.occurrences, own, f"{evidence.name(worst.thread)} {worst.predicate}"
    if len(delays) > 1:
        # Overlapping times of several threads are one occurrence.
        times = sorted(time for delay in delays for time in delay.occurrences)
        ranges = TimeRanges.of_rows(np.array([time[:2] for time in times], np.int64))
        first_rows = {start: row for start, _, row in reversed(times)}
        occurrences = [(start, end, first_rows[start])
                   for start, end in zip(ranges.start.tolist(), ranges.end.tolist(), strict=True)]  # fmt: skip
        span = occurrences[episode_of(ranges, own[0])][:2]
        title = partition_names(evidence.trace).get(partition, partition)
        text = (f"{len(delays)} threads of partition {title} are ready and {they_do}: "
                f"{', '.join(f'{evidence.name(delay.thread)} {delay.lasts}' for delay in delays)}")  # fmt: skip
    row = int(worst.shown.row[0])
    return evidence.verdict(
        min((delay.severity for delay in delays), key=tuple(Severity).index), span, [*threads, *named(who)], [],
        [*(row for delay in delays for row in (*delay.shown.row.tolist(), *delay.shown.end_row.tolist()))],
        (f"{text}{instead(evidence, own, who)}{idle}{evidence.again(occurrences, span[0])}.",
         (_AFFINITY if idle else _way_to_run(evidence, worst.thread, who, row)) if is_qnx else _ELSEWHERE),
        occurrences=occurrences,
        roles={row: role for delay in delays for row, role in _ready_and_runs(delay.shown).items()},
    )  # fmt: skip


def _held_by(evidence: Evidence, delay: _Delay) -> int:
    """Return the partition whose budget keeps a thread from running, -1 if that is not the reason.

    If a CPU is idle or has a thread of lower priority meanwhile, only a budget or a runmask can be the reason.
    """
    if not has_partitions(evidence.trace):
        return -1
    row = delay.shown.row[:1]
    priority, rival_priority = _priorities(evidence, delay.who, int(row[0]))
    if not (0 < rival_priority < priority or delay.idle):
        return -1
    return int(argument_under(evidence.trace, row, "partition", "partition_id")[0])


def _ready_and_runs(ready: StateIntervals) -> dict[int, str]:
    """Return the role of the events that begin (`ready`) and end (`runs at last`) ready intervals, by event row."""
    return {**dict.fromkeys(ready.end_row.tolist(), "runs at last"), **dict.fromkeys(ready.row.tolist(), "ready")}


def ran_instead(evidence: Evidence, span: tuple[int, int], thread: int) -> list[tuple[int, int]]:
    """Return (thread, cycles) of all threads that had the CPUs in a span of time, most cycles first.

    Args:
        evidence: The trace.
        span: Start and end in cycles.
        thread: Row of the thread that is left out.
    """
    who, part = evidence.ran_in(span)
    part[(who == thread) | ~are_beside(evidence.trace, who, thread)] = 0
    return evidence.most_of(who, part)


def instead(evidence: Evidence, span: tuple[int, int], who: list[tuple[int, int]]) -> str:
    """Return a text on the threads that ran meanwhile and the interrupts that took time, to end a sentence.

    Args:
        evidence: The trace.
        span: Start and end in cycles.
        who: Result of `ran_instead`; if it is empty the text is, too.
    """
    if not who:
        return ""
    taken = evidence.interrupts_of_all(span, least=(span[1] - span[0]) // 100)
    return f"; meanwhile ran {evidence.shares(who)}{f' ({taken} of it)' if taken else ''}"


def _way_to_run(evidence: Evidence, thread: int, who: list[tuple[int, int]], row: int) -> str:
    """Return the remedy for a thread that was ready while others ran, depending on their priorities.

    `who` is a result of `ran_instead`; `row` is the event by which the thread became ready.
    """
    priority, rival_priority = _priorities(evidence, who, row)
    if not who or priority <= 0:
        return "Compare its priority with that of the threads that ran, and look at the budget of its partition."
    name, rival = evidence.name(thread), evidence.name(who[0][0])
    if rival_priority < priority:
        return (f"{name} has the higher priority ({priority}, {rival} {rival_priority}), to no avail: look at the "
                "budget of its partition (aps show) and at its runmask (pidin).")  # fmt: skip
    if rival_priority == priority:
        return (f"{rival} has the same priority ({priority}): let it wait at times, or run both with the policy "
                f"SCHED_RR; a higher priority for {name} only moves the problem.")  # fmt: skip
    return (f"Let {rival} (priority {rival_priority}) wait at times or run at less than {priority}; give {name} a "
            "higher priority only if its work is more urgent.")  # fmt: skip


def _priorities(evidence: Evidence, who: list[tuple[int, int]], row: int) -> tuple[int, int]:
    """Return the priority of a ready thread, and of the thread that ran longest instead; not positive if unknown."""
    priority = int(evidence.derived.priority(np.array([row]))[0])
    if not who:
        return priority, -1
    runs = evidence.trace.states.of(who[0][0])
    later = min(int(np.searchsorted(runs, row)), len(runs) - 1)
    return priority, int(evidence.derived.priority(runs[[later]])[0])


def _idle_cpus(evidence: Evidence, span: tuple[int, int], thread: int) -> str:
    """Return the CPUs of a thread's file that were idle for most of a span, and for how long, as text; empty = none."""
    trace, (rows, ends) = evidence.trace, evidence.slices
    inside = evidence.slices_in(span)
    runner = trace.events.thread[rows[inside]].astype(np.int64)
    inside = inside[evidence.is_idle[runner] & are_beside(trace, runner, thread)]
    part = np.minimum(ends[inside], span[1]) - np.maximum(evidence.times[rows[inside]], span[0])
    total = np.bincount(trace.events.cpu[rows[inside]], part, trace.cpu_count)
    idle = np.flatnonzero(total > (span[1] - span[0]) / 2).tolist()
    return ", ".join(f"{trace.cpu_title(cpu)} {evidence.length(int(total[cpu]))}" for cpu in idle)


@verdict_rule(
    "busy-loop",
    meaning="A thread uses a CPU without ever waiting.",
    question="Does a thread run without ever waiting?",
    needs=(STATES,),
    thresholds={
        "least_ms": (400, "runs, or is ready to, without ever waiting"),
        "used_percent": (60, "of that time on a CPU"),
    },
)
def busy_loops(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return verdicts on threads that did not wait once in a long time and used a CPU for much of that time."""
    states = evidence.states
    begin, stop, total = _awake(evidence, limits.cycles("least_ms"))
    ran = np.zeros(len(total), np.int64)
    for stretch in range(len(total)):
        runs = states.taken(slice(begin[stretch], stop[stretch] + 1)).of_state(RUNNING)
        ran[stretch] = evidence.lengths(runs.row, runs.end_row).sum()
    busy = np.flatnonzero(ran >= limits.number("used_percent") / 100 * total)
    verdicts = []
    for (thread,), stretches in groups(states.thread[begin[busy]]):
        worst = int(busy[stretches[np.argmax(total[busy[stretches]])]])
        inside = slice(begin[worst], stop[worst] + 1)
        start, end = int(evidence.times[states.row[begin[worst]]]), int(evidence.times[states.end_row[stop[worst]]])
        verdicts.append(evidence.verdict(
            Severity.INFO, (start, end), [thread], [], states.row[inside],
            (f"{evidence.name(thread)} runs {evidence.length(int(ran[worst]))} of {evidence.length(end - start)} from "
             f"{evidence.moment(start, end - start)} without waiting once.",
             "If it polls, let it wait for an event; if it computes, run it at a low priority."),
        ))  # fmt: skip
    return verdicts


def _awake(evidence: Evidence, least_cycles: int) -> tuple[_Ints, _Ints, _Ints]:
    """Return the ranges of at least `least_cycles` in which a thread did not wait, sorted by thread.

    These are the indices in `Evidence.states` of their first and last intervals, and their lengths, int64 (n,) each.
    """
    states, parts = evidence.states, [np.empty((3, 0), np.int64)]
    for part in evidence.states_of_threads():
        thread, is_awake = states.thread[part], _IS_AWAKE[states.value[part]]
        goes_on = (thread[1:] == thread[:-1]) & (states.end_row[part][:-1] == states.row[part][1:])
        goes_on &= is_awake[1:] & is_awake[:-1]
        begin = np.flatnonzero(is_awake & np.append(True, ~goes_on)) + part.start
        stop = np.flatnonzero(is_awake & np.append(~goes_on, True)) + part.start
        # Intervals of a range are adjacent, so its length follows from the first and the last.
        total = evidence.lengths(states.row[begin], states.end_row[stop])
        parts.append(np.stack((begin, stop, total))[:, total >= least_cycles])
    begin, stop, total = np.concatenate(parts, axis=1)
    return begin, stop, total


@verdict_rule(
    "ping-pong",
    meaning="Two threads hand a CPU to and fro in slices that are too short for work.",
    question="Do two threads hand a CPU to and fro?",
    needs=(STATES,),
    thresholds={
        "window_ms": (20, "the length of the window"),
        "slice_us": (30, "only slices of at most that length count"),
        "least_count": (100, "switches from one to the other and back within the window"),
    },
)
def ping_pongs(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return verdicts on pairs of threads that alternate on one CPU in short slices.

    Source: formula 7 of the reference.
    """
    if not evidence.has_states:
        return []
    trace = evidence.trace
    rows, ends = evidence.slices
    window, longest = limits.cycles("window_ms"), limits.cycles("slice_us")
    verdicts = []
    cpus = trace.events.cpu[rows]
    for cpu in range(trace.cpu_count):  # damaged slots may have other numbers
        slices = np.flatnonzero(cpus == cpu)
        slice_rows, end = rows[slices], ends[slices]
        start, thread = trace.events.time_cycles[slice_rows], trace.events.thread[slice_rows].astype(np.int64)
        is_short = (end - start <= longest) & ~evidence.is_idle[thread] & (thread != 0)
        back = (
            is_short[:-2] & is_short[1:-1] & is_short[2:] & (thread[:-2] == thread[2:]) & (thread[1:-1] != thread[:-2])
        )
        backs = np.flatnonzero(back) + 1
        backs = backs[is_whole_on(trace, cpu, slice_rows[backs - 1], slice_rows[backs + 1])]
        low, high = np.minimum(thread[backs], thread[backs - 1]), np.maximum(thread[backs], thread[backs - 1])
        for pair, positions in groups(low, high):
            moments = start[backs[positions]]
            count = counts_within(moments, window)
            bad = np.flatnonzero(count >= limits.number("least_count"))
            if not len(bad):
                continue
            worst = int(bad[np.argmax(count[bad])])
            span = episodes(moments[bad], window)
            which = episode_of(span, moments[worst])
            inside = backs[positions[worst : worst + int(count[worst])]]
            used = int((end - start)[inside].sum()) // len(inside)
            verdicts.append(evidence.verdict(
                Severity.INFO, (int(span.start[which]), int(span.end[which])), list(pair),
                [trace.cpu_title(cpu)], slice_rows[inside],
                (f"{evidence.name(pair[0])} and {evidence.name(pair[1])} hand {trace.cpu_title(cpu)} to and fro "
                 f"{int(count[worst])} times within {evidence.length(window)} from "
                 f"{evidence.moment(int(moments[worst]), window)}, {evidence.length(used)} at a time.",
                 "Do more work at a time: put messages together, or let one of them wait for an event."),
                occurrences=[(int(begin), int(stop), -1) for begin, stop in zip(span.start, span.end, strict=True)],
            ))  # fmt: skip
    return verdicts


# Verdicts on deadlines, periods and chains from a user's timing file (docs/late.md), and on learned periods.
#
# Learned values are not requirements: without a timing file the rules `deadline`, `period` and `chain` find nothing.
# `missed-period` learns periods from the pulses that start the work, and from sleeps.


_PROOF: Final = (
    "A user event where the work begins and one where it is done, named by `start` and `end` in the timing file."
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
    """Return a text on the main cause of an interval's length, the other thread concerned (0 = none), and a remedy."""
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
    meaning="Work took longer than its deadline in the timing file.",
    question="Is a deadline of the timing file missed?",
    needs=(STATES,),
    proof=_PROOF,
    timing=("deadline", "period"),
)
def missed_deadlines(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return verdicts on activities with instances that took longer than the user's file allows.

    The limit is the deadline in the file; without one, the period.
    """
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
    meaning="Work was not triggered with the period that the timing file says.",
    question="Is work triggered as regularly as the timing file says?",
    needs=(STATES,),
    thresholds={"tolerance_percent": (10, "of the period: it may be triggered this much sooner or later")},
    proof=_PROOF,
    timing=("period",),
)
def missed_triggers(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return verdicts on activities that were triggered sooner or later than their period in the user's file allows.

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
    meaning="A chain of work reacted later, or its output had older input, than the timing file allows.",
    question="Does a chain react in time, with input that is new enough?",
    needs=(STATES,),
    proof="User events that carry a number of what goes through the chain show which output belongs to which input.",
    timing=("reaction", "age"),
)
def late_chains(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return verdicts on chains whose reaction time or input age exceeded the bound in the user's file."""
    trace = evidence.trace
    learned, verdicts = activities(trace, limits.timing), []
    for name, entry in limits.timing.items():
        for times_of, text, what in ((reactions, entry.reaction, "reaction"), (ages, entry.age, "age of the input")):
            if not text:
                continue
            times, bound = times_of(trace, learned, chain_of(learned, entry.chain)), bound_cycles(trace, text)
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

    A step is the time of an activity from its trigger, or from the end of the activity before, until the next activity
    begins; or the time between two activities.
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
    meaning="A periodic thread began its work much too late in its period.",
    question="Does a periodic thread begin too late?",
    needs=(PERIODS, WAITS),
    bounds=(PULSES_SENT, STATES, NO_DAMAGE, NO_LOSS),
    thresholds={
        "least_count": (LEAST_PERIODS, "periods that are needed to learn the period"),
        "regular_percent": (REGULAR_PERCENT, "of the periods must be as long as the learned one ..."),
        "tolerance_percent": (TOLERANCE_PERCENT, "... within this"),
        "late_percent": (50, "of the period: the work begins at least this much later than it should"),
    },
    proof="A user event where the work of a period begins, or the timers' own events (class KER_CALL), tell "
    "when each one was due.",
)
def missed_periods(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return verdicts on periods whose work began so late that most of the period was over.

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
        # One timer's pulses queue in turn.
        certainty = max(table.certainty[pulses_of_timer[bad]].min(), Certainty.INFERRED)
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
    """Return verdicts on threads that sleep once per period and run late after a sleep; see `missed_periods`.

    Twice as many periods as for pulses are needed, because a few sleeps may be regular by chance.
    """
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
