"""What a capture with rules would have logged: events, slots, bytes per second, and what each view would miss."""

from __future__ import annotations

from dataclasses import dataclass

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
from satview.filters.rows import Bools
from satview.filters.rules.building import BuiltRules
from satview.filters.rules.capturing import for_capture
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.switch_state import C
from satview.filters.views.as_logged import as_logged_trace
from satview.filters.views.buffer_forecast import ControlEvents, control_events, outer_interrupts
from satview.store.losses import losses
from satview.store.trace import Trace

_Counts = NDArray[np.int64]


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
        events, total_events: Events logged, and those of the trace or of the window.
        slots, total_slots: Slots they take in the form that the rules request, and in the trace.
        is_exact: False where a wide form is called for whose words the trace does not have; slots are then too few.
        bytes_per_s, total_bytes_per_s: Data rate of the capture.
        by_class: Logged and total events by printed class.
        losses: What each view would miss.
        notes: What is logged although a WHERE line would hide it, and what the result leaves out, one sentence each.
    """

    events: int
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
    logged, is_exact = as_logged_trace(trace, state.is_wide)
    passes = state.mask(logged, None, derived or TraceDerivedColumns(trace))
    part = trace.rows_between(window) if window is not None else slice(0, len(trace.events))
    _limit_to(passes, part)
    is_control = trace.events.code >> CLASS_SHIFT == WireClass.CONTROL
    passes &= ~is_control
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
    return WouldCapture(
        int(counts.sum()),
        int(totals.sum()),
        slots,
        total_slots,
        is_exact,
        slots * SLOT_BYTES / seconds if seconds else 0.0,
        total_slots * SLOT_BYTES / seconds if seconds else 0.0,
        _by_class(trace, counts, totals),
        _losses(trace, counts, totals),
        (*captured.notes, *_left_out(trace, part, logs_time, C.CONTROL in state.class_handlers)),
    )


def _limit_to(passes: Bools, part: slice) -> None:
    passes[: part.start] = False
    passes[part.stop :] = False


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
