"""Verdicts on periodic threads: periods are learned from the pulses that start the work, and from sleeps."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.activities import (
    LEAST_PERIODS,
    NANOSLEEP,
    REGULAR_PERCENT,
    TOLERANCE_PERCENT,
    regular_period,
)
from satview.analysis.needs import NO_DAMAGE, NO_LOSS, PERIODS, PULSES, STATES
from satview.analysis.verdicts.evidence import Evidence, groups, longest, named
from satview.analysis.verdicts.rule import Limits, verdict_rule
from satview.analysis.verdicts.scheduling import instead, ran_instead
from satview.analysis.verdicts.verdict import Severity, Verdict
from satview.events.states import READY
from satview.linkage.pulses import pulses
from satview.linkage.rows import comm_words
from satview.linkage.table import Certainty

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

    A connection on which pulses are sent regularly has a period, and so has a thread whose sleep ends regularly: the
    median of the times between them. A pulse that waits for much of a period found its thread still at work for the one
    before, or kept from running, as a thread is that has slept enough. Pulses that come regularly on one
    connection are those of one timer, which are received in turn.
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
    """Return late loops by sleep; they need twice the periods, as a few sleeps may seem regular by chance."""
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
    """Return the period with which events come, by the thresholds of a user; 0 if they do not come regularly."""
    return regular_period(evidence.trace, rows, limits.number("least_count"), limits.number("regular_percent"),
                          limits.number("tolerance_percent"))  # fmt: skip
