"""Scenes that a reader can add up, and what rules of verdicts say of them.

Times of scenes are in microseconds; thresholds are those of the scene, far below the defaults.
"""

from __future__ import annotations

from satview.analysis.verdicts.find import find_verdicts
from satview.analysis.verdicts.rule import Thresholds, default_thresholds
from satview.events import wire
from satview.events.catalogue import call_numbers
from satview.events.spec import Release
from tests.helpers.kev import START, TraceBuilder

CALLS = call_numbers(Release.QNX_7)
LOCK, UNLOCK, PAUSE, SIGNAL = (
    CALLS[f"SYNC_{name}"] for name in ("MUTEX_LOCK", "MUTEX_UNLOCK", "CONDVAR_WAIT", "CONDVAR_SIGNAL")
)
SEND, RECEIPT, PULSE, RECEIVED_PULSE, REPLY = (wire.code(7, n) for n in (0, 2, 4, 3, 10))
INTERRUPT, INTERRUPT_EXIT, END = wire.code(3, 1), wire.code(3, 2), wire.code(6, 1)
FAILED = (0xFFFFFFFF, 11)


class Scene(TraceBuilder):
    """A trace in microseconds, thread 1.1 being the idle thread of CPU 0."""

    def at(self, time):
        return self.start + round(time * 1000)

    def swap(self, time, leaves, state, runs, cpu=0):
        """Put a thread into a state and run another one."""
        return self.state(state, time, *leaves, cpu).state("RUNNING", time, *runs, cpu)


def found(builder, kind, folder, **limits):
    """Return a scene as a trace, and what a rule finds in it; a threshold of another kind as `kind__name`."""
    trace = builder.open(folder)
    return trace, find_verdicts(trace, thresholds(kind, **limits), kinds=[kind])


def thresholds(kind, **limits):
    """Return the thresholds that ship, but for some of a kind, or of another one as `kind__name`."""
    values = {name: dict(table) for name, table in default_thresholds().values.items()}
    for name, value in limits.items():
        other, _, threshold = name.rpartition("__")
        values[other or kind][threshold] = value
    return Thresholds(values)


def reported(builder, kind, folder, **limits):
    """Return what a rule says of a scene, every field of each verdict but the remedy, times in microseconds."""
    trace, verdicts = found(builder, kind, folder, **limits)
    times = [(time - START) / 1000 for time in trace.events.time_cycles.tolist()]

    def moment(cycles):
        return (cycles - START) / 1000

    return [{
        "says": each.says, "severity": each.severity.value, "certainty": each.certainty.name.lower(),
        "span": (moment(each.start_cycles), moment(each.end_cycles)), "objects": list(each.objects),
        "threads": [trace.thread_name(row) for row in each.threads],
        "events": [(times[row], role) for row, role in zip(each.evidence, each.roles, strict=True)],
        "occurrences": [(moment(own.start_cycles), moment(own.end_cycles), None if own.row == -1 else times[own.row])
                        for own in each.occurrences],
    } for each in verdicts]  # fmt: skip


def verdict(says, severity, span, *, threads=(), objects=(), events=(), occurrences=None, certainty="exact"):
    return {"says": says, "severity": severity, "certainty": certainty, "span": span, "objects": list(objects),
            "threads": list(threads), "events": list(events),
            "occurrences": occurrences or [(*span, None)]}  # fmt: skip
