"""Which verdicts a trace cannot have, and what to capture for them: silence must not look like health."""

from __future__ import annotations

import numpy as np

from satview.analysis.verdicts.evidence import Evidence
from satview.analysis.verdicts.thresholds import default_thresholds
from satview.analysis.verdicts.verdict import VerdictKind
from satview.events import wire
from satview.links.actors import interrupt_rows
from satview.links.blockers import blockers
from satview.links.mutexes import MUTEX
from satview.links.pulses import RECEIPT
from satview.links.rows import rows_of_class
from satview.links.table import OPEN
from satview.store.losses import losses
from satview.store.trace import Trace

_OF_STATES = (VerdictKind.DEADLOCK, VerdictKind.PRIORITY_INVERSION, VerdictKind.LOST_WAKEUP, VerdictKind.PING_PONG,
              VerdictKind.LONG_READY, VerdictKind.LOCK_CONTENTION, VerdictKind.BUSY_LOOP, VerdictKind.STARVATION)


def untold(trace: Trace) -> dict[VerdictKind, str]:
    """Return the kinds that cannot be found in a trace, or not all of them, each with the reason and what to capture.

    Args:
        trace: The events.
    """
    if not len(trace.events):
        return {}
    evidence, out = Evidence(trace, default_thresholds()), {}
    if not evidence.tells_states:
        out.update(dict.fromkeys(_OF_STATES, "not all events of threads are there; capture the class THREAD whole"))
    calls = len(rows_of_class(trace, wire.WireClass.KER_CALL))
    if not calls:
        needs = "no kernel calls are there; capture the class KERCALL"
        out.update(dict.fromkeys((VerdictKind.RESTARTED_CALLS, VerdictKind.LEAK, VerdictKind.LOST_WAKEUP,
                                  VerdictKind.LOCK_CONTENTION), needs))  # fmt: skip
    comm = trace.code_counts[np.arange(wire.CODE_COUNT) >> wire.CLASS_SHIFT == wire.WireClass.COMM].any()
    if not comm:
        out[VerdictKind.SERVER_SATURATION] = "no messages are there; capture the class COMM"
    if not trace.code_counts[RECEIPT]:
        out[VerdictKind.MISSED_PERIOD] = "no pulse is received; periods are learned from pulses of the class COMM"
    if trace.pairs is not None or not len(interrupt_rows(trace)):
        out[VerdictKind.INTERRUPT_FLOOD] = "no interrupts are there; capture the class INTR"
    states = trace.states.event
    if evidence.tells_states and not np.any(evidence.facts.priority(states) > 0):
        out[VerdictKind.PRIORITY_INVERSION] = "no priorities are there; capture wide events of the class THREAD"
    if evidence.tells_states and VerdictKind.DEADLOCK not in out:
        found = blockers(trace)
        stuck = (found.waits.value == MUTEX) & (found.waits.end_row == OPEN) & (found.pid < 0)
        if np.any(stuck):
            out[VerdictKind.DEADLOCK] = (
                f"at the end {np.count_nonzero(stuck)} threads wait for a mutex of which no event tells the holder; "
                "capture wide events of the class KERCALL"
            )
    if len(losses(trace)) or trace.dump_end_cycles < trace.window.start:
        out.setdefault(VerdictKind.LOST_WAKEUP, "the trace has holes or does not begin with its opening dump")
    return {kind: out[kind] for kind in VerdictKind if kind in out}
