"""Verdicts on periodic threads: periods are learned from the pulses that start the work."""

from __future__ import annotations

import numpy as np

from satview.analysis.needs import PERIODS
from satview.analysis.verdicts.evidence import Evidence, groups
from satview.analysis.verdicts.rule import Limits, verdict_rule
from satview.analysis.verdicts.verdict import Severity, Verdict
from satview.linkage.pulses import pulses
from satview.linkage.rows import comm_words
from satview.linkage.table import Certainty
from satview.linkage.whole import is_whole


@verdict_rule(
    "missed-period",
    meaning="A periodic thread began its work so late that the period was as good as over.",
    question="Does a periodic thread begin too late?",
    needs=(PERIODS,),
    thresholds={
        "least_count": (8, "so many periods are needed to learn the period"),
        "regular_percent": (80, "of the periods, so many must be as long as the learned one ..."),
        "tolerance_percent": (5, "... within this"),
        "late_percent": (50, "of the period: the work begins at least so much later than it should"),
    },
)
def missed_periods(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return periodic pulses that their threads received so late that the period was as good as over.

    A connection on which pulses are sent regularly has a period: the median of the times between them. A pulse that
    waits for much of a period found its thread still at work for the one before. Only pulses count of which the receipt
    is certain.
    """
    trace = evidence.trace
    table = pulses(trace)
    at = np.flatnonzero(table.certainty > Certainty.GUESS)
    sent, received = table.from_row[at].astype(np.int64), table.to_row[at].astype(np.int64)
    if not len(at):
        return []
    scoid, pid = comm_words(trace, sent)
    least = limits.number("least_count")
    verdicts = []
    for _, mine in groups(pid.astype(np.int64) << 32 | scoid):
        if len(mine) <= least:
            continue
        times = evidence.times[sent[mine]]
        gaps = np.diff(times)[is_whole(trace, sent[mine[:-1]], sent[mine[1:]])]
        if len(gaps) < least:
            continue
        period = int(np.median(gaps))
        is_regular = np.abs(gaps - period) <= period * limits.number("tolerance_percent") / 100
        if np.count_nonzero(is_regular) < len(gaps) * limits.number("regular_percent") / 100:
            continue
        late = evidence.lengths(sent[mine], received[mine])
        bad = np.flatnonzero(late >= period * limits.number("late_percent") / 100)
        if not len(bad):
            continue
        first = int(bad[0])
        thread = int(trace.events.thread[received[mine[first]]])
        lateness = evidence.length(int(late[first]))
        positions = [(int(times[i]), int(times[i] + late[i]), int(sent[mine[i]])) for i in bad.tolist()]
        again = f", and late {evidence.more(positions)}" if len(bad) > 1 else ""
        jitter = evidence.length(int(late.max() - late.min()))
        verdicts.append(evidence.verdict(
            Severity.WARNING, positions[0][:2], [thread], [],
            [*sent[mine[bad]].tolist(), *received[mine[bad]].tolist()],
            (f"{evidence.name(thread)} has a period of {evidence.length(period)}, and receives the pulse of "
             f"{evidence.moment(int(times[first]))} only {lateness} later{again} (jitter {jitter}).",
             "Look what it did in the period before, and what ran instead: it had more work, or a lower priority."),
            occurrences=positions,
            roles={**dict.fromkeys(sent[mine[bad]].tolist(), "period begins"),
                   **dict.fromkeys(received[mine[bad]].tolist(), "received late")},
        ))  # fmt: skip
    return verdicts
