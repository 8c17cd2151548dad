"""All verdicts of a trace: the table of rules, one for each kind."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Final

from satview.analysis.verdicts import inversions, periods, scheduling, servers, system, waiting
from satview.analysis.verdicts.evidence import Evidence
from satview.analysis.verdicts.on_axis import on_axis
from satview.analysis.verdicts.thresholds import Thresholds, default_thresholds
from satview.analysis.verdicts.verdict import Occurrence, Severity, Verdict, VerdictKind
from satview.base.errors import Cancelled
from satview.base.plugins import PluginKind, plugins
from satview.linkage.trace_links import reading_ahead
from satview.store.axis import files_of
from satview.store.doubts import trusted_part
from satview.store.trace import Trace

RULES: Final[dict[VerdictKind, Callable[[Evidence], list[Verdict]]]] = {
    VerdictKind.DEADLOCK: waiting.deadlocks,
    VerdictKind.PRIORITY_INVERSION: inversions.inversions,
    VerdictKind.LOST_WAKEUP: waiting.lost_wakeups,
    VerdictKind.PING_PONG: scheduling.ping_pongs,
    VerdictKind.LONG_READY: scheduling.long_readies,
    VerdictKind.MISSED_PERIOD: periods.missed_periods,
    VerdictKind.INTERRUPT_FLOOD: system.floods,
    VerdictKind.LOCK_CONTENTION: waiting.contentions,
    VerdictKind.BUSY_LOOP: scheduling.busy_loops,
    VerdictKind.STARVATION: scheduling.starvations,
    VerdictKind.SERVER_SATURATION: servers.saturations,
    VerdictKind.RESTARTED_CALLS: system.restarted_calls,
    VerdictKind.LEAK: system.leaks,
    VerdictKind.DATA_LOSS: system.data_losses,
}
_ORDER: Final = tuple(Severity)


def find_verdicts(
    trace: Trace,
    thresholds: Thresholds | None = None,
    kinds: Collection[VerdictKind | str] | None = None,
    cancelled: Callable[[], bool] | None = None,
    progress: Callable[[float], None] | None = None,
    *,
    everything: bool = False,
) -> tuple[Verdict, ...]:
    """Return what is wrong in a trace, the most severe first, then in time order.

    Args:
        trace: The events.
        thresholds: When something is a verdict; None = those that ship with satview.
        kinds: Only these; None = all. Those that the thresholds switch off are never looked for.
        cancelled: Called between kinds; `Cancelled` is raised when it says so.
        progress: Called between kinds with the share of them that is done, 0 to 1.
        everything: Look at events behind the time that can be trusted too (`store.doubts.trusted_window`).

    Raises:
        Cancelled: Somebody said so.
    """
    if not len(trace.events):
        return ()
    if (files := files_of(trace)) is not None:  # nobody waits for the CPUs of another target
        find = partial(find_verdicts, thresholds=thresholds, kinds=kinds, cancelled=cancelled, everything=everything)
        return _in_order([on_axis(part, verdict) for part in files.parts for verdict in find(part.trace)])
    trace = trace if everything else trusted_part(trace)
    evidence = Evidence(trace, thresholds or default_thresholds())
    found: list[Verdict] = []
    with reading_ahead(trace):
        for number, (kind, rule) in enumerate(RULES.items()):
            if cancelled is not None and cancelled():
                raise Cancelled
            if progress is not None:
                progress(number / len(RULES))
            if (kinds is None or kind in kinds) and evidence.thresholds.is_enabled(kind):
                found += rule(evidence)
        for each in plugins(PluginKind.VERDICT):
            if cancelled is not None and cancelled():
                raise Cancelled
            if kinds is None or each.name in kinds:
                found += each.run(partial(_plugged, evidence, each.name), [])
    return _in_order(found)


def _in_order(found: list[Verdict]) -> tuple[Verdict, ...]:
    return tuple(sorted(found, key=lambda verdict: (_ORDER.index(verdict.severity), verdict.start_cycles)))


def all_kinds() -> tuple[VerdictKind | str, ...]:
    """Return all kinds that are looked for, those of plug-ins last."""
    return (*RULES, *(each.name for each in plugins(PluginKind.VERDICT)))


def _plugged(evidence: Evidence, name: str, rule: Callable[[Trace], list[Verdict]]) -> list[Verdict]:
    """Return what the rule of a plug-in finds, as windows and commands expect it.

    Raises:
        TypeError: It returns something else than verdicts.
        ValueError: A verdict speaks of events or threads that the trace does not have.
    """
    trace = evidence.trace
    found = list(rule(trace))
    for verdict in found:
        if not isinstance(verdict, Verdict):
            raise TypeError(f"it returned {type(verdict).__name__}, no Verdict")
        if not all(0 <= row < len(trace.events) for row in verdict.evidence):
            raise ValueError("its evidence is no event of the trace")
        if not all(0 < row < len(trace.threads) for row in verdict.threads):
            raise ValueError("its threads are none of the trace")
    return [replace(verdict, kind=name, occurrences=verdict.occurrences or (_only(verdict),)) for verdict in found]


def _only(verdict: Verdict) -> Occurrence:
    return Occurrence(verdict.start_cycles, verdict.end_cycles, *verdict.evidence[:1])
