"""What a rule set would have kept of a trace: events, slots, bytes per second, and what each view would miss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from satview.events.states import NOT_A_STATE
from satview.events.wire import (
    CONTROL_BUFFER,
    CONTROL_BUFFER_END,
    CONTROL_TIME,
    SLOT_BYTES,
    THREAD_CREATE,
    THREAD_RUNNING,
    WireClass,
)
from satview.filters.building import BuiltRules
from satview.filters.facts import Facts
from satview.filters.fastwide import slots_of
from satview.filters.mask import Bools
from satview.filters.rules import RuleSet
from satview.store.trace import Trace

_COUNT_BITS: Final = 16
_NS_PER_S: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ViewLoss:
    """What one view would miss.

    Attributes:
        view: Its name.
        lost: Events it is made of that would not have been logged.
        total: Events it is made of.
        text: What that means, one sentence; empty if nothing is lost.
    """

    view: str
    lost: int
    total: int
    text: str


@dataclass(frozen=True, slots=True)
class Kept:
    """What a rule set would have kept.

    Attributes:
        events, total_events: Events kept, and those of the trace.
        slots, total_slots: Slots they take in the form the rules ask for, and in the trace.
        is_exact: False where a wide form is asked for whose length the trace does not tell; slots are then too few.
        bytes_per_s, total_bytes_per_s: Data rate of the capture.
        by_class: Kept and total events by printed class.
        losses: What each view would miss.
        ignores: What the answer leaves out, one sentence each.
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
    ignores: tuple[str, ...]


def what_would_be_kept(rules: RuleSet | BuiltRules, trace: Trace, facts: Facts | None = None) -> Kept:
    """Return what a capture of the same run with these rules would have kept.

    BUFFER and BUFFER_END events are counted as kept: the kernel writes them whatever the rules are.

    Args:
        rules: A rule set, or rules with conditions; capture has no place for those, so they are left out.
        trace: What was captured; the rules cannot bring back what is not in it.
        facts: Where durations and priorities come from; None = worked out from the trace.
    """
    state = rules.state if isinstance(rules, BuiltRules) else rules
    ignores = []
    if isinstance(rules, BuiltRules) and rules.conditions:
        ignores.append("WHERE lines are for views: the kernel has no filter over all classes, so they keep nothing out")
    passes = state.mask(trace, None, facts)
    kept_codes = np.bincount(trace.events.code[passes], minlength=1 << 15)
    always = [CONTROL_BUFFER, CONTROL_BUFFER_END]
    kept_codes[always] = trace.code_counts[always]
    slots, is_exact = _slots(state, trace, passes)
    seconds = trace.duration_ns / _NS_PER_S
    total_slots = int(trace.events.slot_count.sum(dtype=np.int64))
    return Kept(
        int(kept_codes.sum()),
        len(trace.events),
        slots,
        total_slots,
        is_exact,
        slots * SLOT_BYTES / seconds if seconds else 0.0,
        total_slots * SLOT_BYTES / seconds if seconds else 0.0,
        _by_class(trace, kept_codes),
        _losses(trace, passes),
        tuple(ignores),
    )


def _slots(state: RuleSet, trace: Trace, passes: Bools) -> tuple[int, bool]:
    """Count slots by code and length: few different ones, whatever the trace."""
    events = trace.events
    keys = events.code[passes].astype(np.int64) << _COUNT_BITS | events.slot_count[passes]
    total, is_exact = int(np.isin(events.code, (CONTROL_BUFFER, CONTROL_BUFFER_END)).sum()), True
    for key, count in zip(*(part.tolist() for part in np.unique(keys, return_counts=True)), strict=True):
        code, length = key >> _COUNT_BITS, key & (1 << _COUNT_BITS) - 1
        if code in (CONTROL_BUFFER, CONTROL_BUFFER_END):
            continue
        spec = trace.catalogue.spec(code)
        size, exact = slots_of(spec, 2 * length, trace.release, wide=state.is_wide(code))
        total += size * count
        is_exact &= exact or not spec.is_known
    return total, is_exact


def _by_class(trace: Trace, kept_codes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> dict[str, tuple[int, int]]:
    result: dict[str, tuple[int, int]] = {}
    for code in np.flatnonzero(trace.code_counts).tolist():
        name = trace.catalogue.class_name(code)
        kept, total = result.get(name, (0, 0))
        result[name] = kept + int(kept_codes[code]), total + int(trace.code_counts[code])
    return result


def _losses(trace: Trace, passes: Bools) -> tuple[ViewLoss, ...]:
    codes = np.arange(1 << 15)
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
    kept = np.bincount(trace.events.code[passes], minlength=1 << 15)
    losses = []
    for view, table, text in groups:
        total = int(trace.code_counts[table].sum())
        lost = total - int(kept[table].sum())
        if total:
            losses.append(ViewLoss(view, lost, total, f"{lost:,} of {total:,} {text}" if lost else ""))
    return tuple(losses)
