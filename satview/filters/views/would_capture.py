"""What a capture with rules would have logged: events, slots, bytes per second, and what each view would miss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.time import NS_PER_S, TimeWindow
from satview.events.states import NOT_A_STATE
from satview.events.wire import (
    CLASS_SHIFT,
    CODE_COUNT,
    CONTROL_BUFFER,
    CONTROL_BUFFER_END,
    CONTROL_TIME,
    SLOT_BYTES,
    THREAD_CREATE,
    THREAD_RUNNING,
    WireClass,
)
from satview.filters.derived_columns import DerivedColumns, TraceDerivedColumns
from satview.filters.diagnostics import RuleError
from satview.filters.expressions.expression import Expression
from satview.filters.rows import Bools
from satview.filters.rules.building import BuiltRules
from satview.filters.rules.capturing import AllOf, for_capture
from satview.filters.rules.handler_table import DynamicRule
from satview.filters.rules.inserted import inserted_events, passes_inserted
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.switch_state import C
from satview.filters.views.as_logged import LoggedTrace, as_logged_trace
from satview.filters.views.buffer_forecast import ControlEvents, control_events, outer_interrupts
from satview.store.losses import losses
from satview.store.trace import Trace

_Counts = NDArray[np.int64]
_LOGGER: Final = "tracelogger"


@dataclass(frozen=True, slots=True)
class ViewLoss:
    """What one view would miss.

    Attributes:
        view: Its name.
        lost: Events it is made of that would not be logged.
        total: Events it is made of.
        text: What that means, one sentence; empty if nothing is lost.
    """

    view: str
    lost: int
    total: int
    text: str


@dataclass(frozen=True, slots=True)
class WouldCapture:
    """What a capture of the same run would have logged.

    Attributes:
        events, total_events: Events surely logged, and those of the trace or of the window.
        undecided: Events of which the trace does not show what decides whether they are logged, beside `events`.
        slots, total_slots: Slots they take in the form that the rules request, and in the trace.
        is_exact: Whether the capture would have exactly these events and slots; else at least these.
        bytes_per_s, total_bytes_per_s: Data rate of the capture.
        by_class: Logged and total events by printed class.
        losses: What each view would miss.
        notes: What is logged although a WHERE line would hide it, and what the result leaves out, one sentence each.
    """

    events: int
    undecided: int
    total_events: int
    slots: int
    total_slots: int
    is_exact: bool
    bytes_per_s: float
    total_bytes_per_s: float
    by_class: dict[str, tuple[int, int]]
    losses: tuple[ViewLoss, ...]
    notes: tuple[str, ...]


def would_capture(
    rules: RuleSet | BuiltRules, trace: Trace, derived: DerivedColumns | None = None, window: TimeWindow | None = None
) -> WouldCapture:
    """Return what a capture of the same run with these rules would have logged.

    The kernel is replayed: every event is looked at in the form that the rules request, `WHERE` lines are the handlers
    that they become in a capture, and the events that the kernel writes about its own buffers are counted for buffers
    filled by the events that pass.

    Args:
        rules: A rule set, or rules with conditions.
        trace: What was captured; the rules cannot bring back what is not in it.
        derived: Where priorities come from; None = worked out from the trace.
        window: START and STOP of the capture; None = the whole trace.

    Raises:
        RuleError: A rule that no kernel can carry out, as `tracelogger --rules` says it.
    """
    built = rules if isinstance(rules, BuiltRules) else BuiltRules((), rules, ())
    captured = for_capture(built)
    if captured.faults:
        raise RuleError(list(captured.faults))
    state = captured.state
    converted = as_logged_trace(trace, state.is_wide)
    logged = converted.trace
    part = trace.rows_between(window) if window is not None else slice(0, len(trace.events))
    passes, may_pass = _passing(state, trace, converted, derived or TraceDerivedColumns(trace), part)
    doubts = _doubts(trace, may_pass & ~passes)
    logs_time = state.is_on(state.address(CONTROL_TIME), CONTROL_TIME)
    added = _added(logged, passes, logs_time)
    counts = np.bincount(logged.events.code[passes], minlength=CODE_COUNT)
    counts[CONTROL_BUFFER], counts[CONTROL_BUFFER_END] = added.buffers, added.buffer_ends
    counts[CONTROL_TIME] = added.times
    events = trace.events
    totals = np.bincount(events.code[part], minlength=CODE_COUNT)
    slots = int(logged.events.slot_count[passes].sum(dtype=np.int64)) + added.count
    total_slots = int(events.slot_count[part].sum(dtype=np.int64))
    seconds = (window.length / trace.clock.cycles_per_s) if window is not None else trace.duration_ns / NS_PER_S
    unknown = _left_out(trace, part, logs_time, C.CONTROL in state.class_handlers)
    return WouldCapture(
        int(counts.sum()),
        int(np.count_nonzero(may_pass & ~passes)),
        int(totals.sum()),
        slots,
        total_slots,
        converted.is_exact and not doubts and not unknown,
        slots * SLOT_BYTES / seconds if seconds else 0.0,
        total_slots * SLOT_BYTES / seconds if seconds else 0.0,
        _by_class(trace, counts, totals),
        _losses(trace, counts, totals),
        (*captured.notes, *doubts, *unknown, *_of_logger(trace, logged, passes)),
    )


def _passing(
    state: RuleSet, trace: Trace, converted: LoggedTrace, derived: DerivedColumns, part: slice
) -> tuple[Bools, Bools]:
    """Return which events of a part surely pass, and which may, CONTROL left out; bool (events,) each."""
    found, code = [], converted.trace.events.code
    is_inserted, may_be_inserted = inserted_events(trace)
    passes_as_user = passes_inserted(state)[trace.events.code]
    for may in (False, True):
        bound = state.copy()
        bound.replace_handlers(lambda rule, may=may: _bounded(rule, converted.missing, may=may))  # type: ignore[misc]
        passes = bound.mask(converted.trace, None, derived)
        passes[is_inserted] = passes_as_user[is_inserted]
        as_user = passes_as_user[may_be_inserted]
        passes[may_be_inserted] = passes[may_be_inserted] | as_user if may else passes[may_be_inserted] & as_user
        passes[: part.start] = passes[part.stop :] = False
        passes &= code >> CLASS_SHIFT != WireClass.CONTROL
        found.append(passes)
    return found[0], found[1]


def _bounded(rule: DynamicRule, missing: Bools, *, may: bool) -> DynamicRule:
    if isinstance(rule, AllOf):
        return AllOf(*(_bounded(part, missing, may=may) for part in rule.parts))
    return rule.bounded(missing, may=may) if isinstance(rule, Expression) else rule


def _doubts(trace: Trace, undecided: Bools) -> list[str]:
    """Return why events are undecided, one sentence for each reason."""
    inserted = int(np.count_nonzero(undecided & inserted_events(trace).maybe))
    others = int(np.count_nonzero(undecided)) - inserted
    found = []
    if inserted:
        found.append(
            f"Cannot tell whether {inserted:,} events would be logged: programs insert such events, for which the "
            "kernel looks at the switch of USER, and the trace does not show who logged them"
        )
    if others:
        found.append(
            f"Cannot tell whether {others:,} events would be logged: the rules compare a priority or a word that the "
            "trace does not have; capture wide"
        )
    return found


def _of_logger(trace: Trace, logged: Trace, passes: Bools) -> list[str]:
    """Return how much of what passes the logger itself adds, which is less or more in another capture."""
    is_logger = np.array([name.rsplit("/", 1)[-1] == _LOGGER for name in trace.processes.names])
    mine = passes & is_logger[trace.threads.process[trace.events.thread]]
    if not mine.any():
        return []
    slots = int(logged.events.slot_count[mine].sum(dtype=np.int64))
    return [
        f"{_LOGGER} itself adds {np.count_nonzero(mine):,} of these events in {slots:,} slots, for as many buffers as "
        "this trace has; with other rules it writes fewer or more. A probe of the simulated target adds none"
    ]


def _added(logged: Trace, passes: Bools, logs_time: bool) -> ControlEvents:
    """Return the events that the kernel adds to those that pass."""
    events = logged.events
    return control_events(
        logged.release,
        events.cpu[passes],
        events.time_cycles[passes],
        events.slot_count[passes],
        outer_interrupts(events.code)[passes],
        logs_time,
    )


def _left_out(trace: Trace, part: slice, logs_time: bool, has_handler: bool) -> list[str]:
    """Return what the result does not know."""
    found = []
    if part.start:
        found.append("A capture that starts later begins with a dump of processes and threads, which is not counted")
    if logs_time and has_handler:
        found.append(
            "The handler of CONTROL was not requested: the TIME events of the new buffers are not in the trace"
        )
    if len(losses(trace)):
        found.append("Events are lost in this trace, so a capture would have more")
    return found


def _by_class(trace: Trace, counts: _Counts, totals: _Counts) -> dict[str, tuple[int, int]]:
    result: dict[str, tuple[int, int]] = {}
    for code in np.flatnonzero(counts + totals).tolist():
        name = trace.catalogue.class_name(code)
        logged, total = result.get(name, (0, 0))
        result[name] = logged + int(counts[code]), total + int(totals[code])
    return result


def _losses(trace: Trace, counts: _Counts, totals: _Counts) -> tuple[ViewLoss, ...]:
    codes = np.arange(CODE_COUNT)
    wire_class, event = codes >> 10, codes & 1023
    is_state = trace.catalogue.state_value_of_code != NOT_A_STATE
    groups = (
        ("Thread lanes", is_state, "state changes would be missing, so lanes show the last state that was logged"),
        (
            "CPU lanes",
            codes == THREAD_RUNNING,
            "switches would be missing: CPU use is wrong, and other events belong to the wrong thread",
        ),
        (
            "Names and tree",
            ((wire_class == WireClass.PR_TH) & (event >= 64)) | (codes == THREAD_CREATE),
            "creations and names would be missing: processes show as numbers",
        ),
        (
            "Kernel calls",
            wire_class == WireClass.KER_CALL,
            "entries or exits would be missing: durations and return values of those calls are not known",
        ),
        ("Interrupts", wire_class == WireClass.INT, "interrupt events would be missing: their time counts for threads"),
        (
            "Messages",
            wire_class == WireClass.COMM,
            "messages would be missing: arrows and IPC times of those are not known",
        ),
        (
            "Time axis",
            codes == CONTROL_TIME,
            "TIME events would be missing: without any of them only the low half of the clock is known",
        ),
        ("User events", wire_class == WireClass.USER, "user events would be missing"),
    )
    found = []
    for view, table, text in groups:
        total = int(totals[table].sum())
        lost = max(0, total - int(counts[table].sum()))
        if total:
            found.append(ViewLoss(view, lost, total, f"{lost:,} of {total:,} {text}" if lost else ""))
    return tuple(found)
