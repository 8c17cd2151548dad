"""Finds the verdicts of all rules and plug-ins in a trace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.needs import HOLDERS, INTERRUPTS, KERNEL, MESSAGES, PRIORITIES, STATES
from satview.analysis.thread_names import threads_named
from satview.analysis.verdicts.evidence import Evidence, Occurrence, Severity, Verdict
from satview.analysis.verdicts.rule import Limits, Rule, Thresholds, default_thresholds, rules
from satview.base.column_arrays import give_back
from satview.base.errors import Cancelled, UsageError
from satview.base.plugins import PluginKind, plugins
from satview.base.threads import Begun
from satview.filters.diagnostics import named_by
from satview.linkage.blockers import blockers
from satview.linkage.calls import forget_calls_of_events
from satview.linkage.chain import reading_ahead
from satview.linkage.links import Certainty
from satview.linkage.messages import messages, pulses
from satview.linkage.waits import mutexes, waits
from satview.linkage.wake_ups import ended_waits, wake_ups
from satview.store.axis import AxisPart, files_of, share_of_file
from satview.store.time_ranges import trusted_part
from satview.store.trace import Trace

_ORDER: Final = tuple(Severity)
_LONG: Final = 1 << 24  # events


def find_verdicts(
    trace: Trace,
    thresholds: Thresholds | None = None,
    kinds: Collection[str] | None = None,
    cancelled: Callable[[], bool] | None = None,
    progress: Callable[[float], None] | None = None,
    *,
    everything: bool = False,
) -> tuple[Verdict, ...]:
    """Return the verdicts on a trace, the most severe first, then in time order.

    Args:
        trace: The events.
        thresholds: Thresholds of the rules; None = the defaults.
        kinds: Kinds to search for, each as for `kind_of`; None = all. Kinds that the thresholds switch off are never
            searched for.
        cancelled: Called between kinds; `Cancelled` is raised when it returns true.
        progress: Called between kinds with the share of them that is done or under way, 0 to 1.
        everything: Also examine events after the range that can be trusted (`store.time_ranges.trusted_window`).

    Raises:
        Cancelled: `cancelled` returned true.
        UsageError: There is no such kind, or the thresholds name a thread or an activity that the trace does not have.
    """
    kinds = None if kinds is None else {kind_of(kind) for kind in kinds}
    if not len(trace.events):
        return ()
    if (files := files_of(trace)) is not None:  # files are separate targets
        verdicts: list[Verdict] = []
        for number, part in enumerate(files.parts):
            share = share_of_file(progress, number, len(files.parts))
            of_part = find_verdicts(part.trace, thresholds, kinds, cancelled, share, everything=everything)
            verdicts += [on_axis(part, verdict) for verdict in of_part]
        return _in_order(verdicts)
    trace = trace if everything else trusted_part(trace)
    evidence, limits = Evidence(trace), thresholds or default_thresholds()
    requested = [rule for kind, rule in rules().items() if (kinds is None or kind in kinds) and limits.is_enabled(kind)]
    without_links = [rule for rule in requested if set(rule.needs) <= {KERNEL, STATES, INTERRUPTS}]
    # A single kind of rules computes the links that it needs itself.
    makes_links = 0 < len(without_links) < len(requested)
    # Order: kinds without links, kinds that need links other than waits, then kinds about waits. A second thread
    # computes who waits for whom meanwhile, and then takes kinds too. Among kinds about waits, inversions come first,
    # as they take longest; then one that computes the graph of waits, for which the others would have to wait.
    graph_rule = next((rule for rule in requested if HOLDERS in rule.needs), None)
    pending = deque(sorted(requested, key=lambda rule: (
        0 if rule in without_links else 1 if not {STATES, MESSAGES} & set(rule.needs)
        else 2 if PRIORITIES in rule.needs else 3 if rule is graph_rule else 4
    )))  # fmt: skip
    by_kind: dict[str, list[Verdict]] = {}
    with (
        ExitStack() as read_ahead,
        _searching(pending, evidence, limits, read_ahead.close, makes_links=makes_links) as other,
    ):
        read_ahead.enter_context(reading_ahead(trace))
        for make in (messages, pulses) if makes_links else ():
            make(trace)
        while True:
            if cancelled is not None and cancelled():
                raise Cancelled
            if progress is not None:
                progress(1 - len(pending) / len(requested) if requested else 1)
            rule = _next_of(pending)
            if rule is None:
                break
            by_kind[rule.kind] = _verdicts_of(rule, evidence, limits)
            _give_back(evidence.trace)
        by_kind |= other.result()
        verdicts = [verdict for rule in requested for verdict in by_kind[rule.kind]]
        for plugin in plugins(PluginKind.VERDICT):
            if cancelled is not None and cancelled():
                raise Cancelled
            if kinds is None or plugin.name in kinds:
                verdicts += plugin.run(partial(_verdicts_of_plugin, evidence, plugin.name), [])
    selected = [
        _with_severity(limits, verdict) for verdict in verdicts if _involves_named_thread(trace, limits, verdict)
    ]
    # An endless wait that a lost wake-up explains is not reported as well.
    explained = {(verdict.threads[0], verdict.start_cycles) for verdict in selected if verdict.kind == "lost-wakeup"}
    return _in_order([verdict for verdict in selected if verdict.kind != "waits-for-ever"
                      or (verdict.threads[0], verdict.start_cycles) not in explained])  # fmt: skip


def verdicts_of(
    trace: Trace, cancelled: Callable[[], bool] | None = None, progress: Callable[[float], None] | None = None
) -> tuple[Verdict, ...]:
    """Return the verdicts of all kinds, as `find_verdicts` does; computed at the first call and cached with the trace.

    Raises:
        Cancelled: `cancelled` returned true.
    """
    return trace.cached("verdicts.found", partial(find_verdicts, cancelled=cancelled, progress=progress))


@contextmanager
def _searching(
    pending: deque[Rule], evidence: Evidence, limits: Thresholds, read: Callable[[], None], *, makes_links: bool
) -> Iterator[Begun[dict[str, list[Verdict]]]]:
    """Search for verdicts in a second thread, until no rule is pending or the context ends.

    `read` is called when data that was read ahead is no longer needed. `makes_links` first makes the links of the last
    kinds.
    """
    is_over = Event()

    def search() -> dict[str, list[Verdict]]:
        by_kind: dict[str, list[Verdict]] = {}
        makers: tuple[Callable[[Trace], object], ...] = (
            waits, ended_waits, forget_calls_of_events, wake_ups, mutexes, lambda _: read(), blockers,
        )  # fmt: skip
        for make in makers if makes_links else ():
            if not is_over.is_set():
                make(evidence.trace)
                _give_back(evidence.trace)
        while not is_over.is_set() and (rule := _next_of(pending)) is not None:
            by_kind[rule.kind] = _verdicts_of(rule, evidence, limits)
            _give_back(evidence.trace)
        return by_kind

    other_thread = Begun(search, "satview-verdicts")
    try:
        yield other_thread
    finally:
        is_over.set()
        other_thread.wait()


def _give_back(trace: Trace) -> None:
    """Return freed memory to the system, except for a short trace, whose little memory is soon needed again."""
    if len(trace.events) >= _LONG:
        give_back()


def _next_of(pending: deque[Rule]) -> Rule | None:
    """Remove and return the next rule; None if another thread took the last one."""
    try:
        return pending.popleft()
    except IndexError:
        return None


def _verdicts_of(rule: Rule, evidence: Evidence, limits: Thresholds) -> list[Verdict]:
    """Return the verdicts of one rule."""
    return [replace(verdict, kind=rule.kind, proof="" if verdict.certainty is Certainty.EXACT else rule.proof)
            for verdict in rule.search(evidence, Limits(limits, rule.kind, evidence.trace.clock))]  # fmt: skip


def _with_severity(limits: Thresholds, verdict: Verdict) -> Verdict:
    severity = limits.severities.get(verdict.kind)
    return verdict if severity is None else replace(verdict, severity=severity)


def _involves_named_thread(trace: Trace, limits: Thresholds, verdict: Verdict) -> bool:
    """Return whether to keep a verdict: it involves a thread that the user's file names for verdicts of this kind.

    A verdict that involves no thread is kept, and so is every verdict of a kind for which the file names no threads.

    Raises:
        UsageError: A name in the file fits no thread of the trace.
    """
    names = limits.threads.get(verdict.kind)
    return (
        names is None or not verdict.threads or any(_named(trace, name)[list(verdict.threads)].any() for name in names)
    )


def _named(trace: Trace, name: str) -> NDArray[np.bool_]:
    named = threads_named(trace, name)
    if not named.any():
        raise UsageError(f"the trace has no thread {name[:40]!r}; `satview stats` lists them")
    return named


def _in_order(verdicts: list[Verdict]) -> tuple[Verdict, ...]:
    return tuple(sorted(verdicts, key=lambda verdict: (_ORDER.index(verdict.severity), verdict.start_cycles)))


def all_kinds() -> tuple[str, ...]:
    """Return all kinds of verdicts, those of plug-ins last."""
    return (*rules(), *(plugin.name for plugin in plugins(PluginKind.VERDICT)))


def kind_of(text: str) -> str:
    """Return the kind of verdicts, such as `priority-inversion`, that a text names.

    The text may be the kind, its title (`Priority inversion`), or a part of these.

    Raises:
        UsageError: No kind, or more than one, has such a name.
    """
    kinds, requested = all_kinds(), "-".join(text.casefold().replace("_", " ").split())
    matches = [kinds[row] for row in named_by(requested, kinds)]
    if len(matches) != 1 or not requested:
        what = "more than one" if matches else "not a"
        raise UsageError(f"{text[:40]!r} is {what} kind of verdict; there are {', '.join(kinds)}")
    return matches[0]


def _verdicts_of_plugin(evidence: Evidence, name: str, rule: Callable[[Trace], list[Verdict]]) -> list[Verdict]:
    """Return the verdicts of a plug-in's rule, in the form that windows and commands expect.

    Raises:
        TypeError: The rule returns other objects than verdicts.
        ValueError: A verdict refers to events or threads that the trace does not have.
    """
    trace = evidence.trace
    verdicts = list(rule(trace))
    for verdict in verdicts:
        if not isinstance(verdict, Verdict):
            raise TypeError(f"it returned {type(verdict).__name__}, no Verdict")
        if not all(0 <= row < len(trace.events) for row in verdict.evidence):
            raise ValueError("its evidence is not an event of the trace")
        if not all(0 < row < len(trace.threads) for row in verdict.threads):
            raise ValueError("its threads are none of the trace")
    return [replace(verdict, kind=name, occurrences=verdict.occurrences or (_only(verdict),)) for verdict in verdicts]


def _only(verdict: Verdict) -> Occurrence:
    return Occurrence(verdict.start_cycles, verdict.end_cycles, *verdict.evidence[:1])


def on_axis(part: AxisPart, verdict: Verdict) -> Verdict:
    """Return a verdict on one file with its times, threads and events converted to the axis that contains the file."""
    return replace(
        verdict,
        start_cycles=_moment(part, verdict.start_cycles),
        end_cycles=_moment(part, verdict.end_cycles),
        threads=tuple(part.threads[list(verdict.threads)].tolist()),
        evidence=tuple(part.rows[list(verdict.evidence)].tolist()),
        occurrences=tuple(_occurrence(part, occurrence) for occurrence in verdict.occurrences),
    )


def _occurrence(part: AxisPart, own: Occurrence) -> Occurrence:
    row = int(part.rows[own.row]) if own.row >= 0 else own.row
    return Occurrence(_moment(part, own.start_cycles), _moment(part, own.end_cycles), row)


def _moment(part: AxisPart, own: int) -> int:
    return int(part.cycles(np.array([own]))[0])
