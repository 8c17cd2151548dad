"""Computes offsets of traces on a common time axis from their starts, their counters, or an event that all have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from satview.base.errors import UsageError
from satview.filters.expressions.expression import select
from satview.store.trace import Trace

START: Final = "start"
COUNTER: Final = "counter"
PS_PER_S: Final = 10**12


@dataclass(frozen=True, slots=True)
class Anchor:
    """The moment of a trace to be aligned with a moment of another trace.

    Attributes:
        cycles: The moment, in cycles of the trace.
        row: The event at that moment; -1 = none.
        count: How many events matched.
    """

    cycles: int
    row: int = -1
    count: int = 0


def anchor_of(trace: Trace, condition: str, number: int = 1) -> Anchor:
    """Return the moment of a trace that a condition names: the start of the trace, or the time of a matching event.

    Args:
        trace: The trace.
        condition: `start`, or an expression in the language of filters (docs/filters.md).
        number: Which of the matching events, from 1.

    Raises:
        UsageError: The condition is faulty, or the trace has no such event; names the trace.
    """
    if condition == START:
        return Anchor(trace.window.start)
    try:
        rows = select(trace, condition)
    except UsageError as error:
        raise UsageError(f"{trace.path.name}: {error}") from error
    if len(rows) < number:
        what = f"only {len(rows)} events" if len(rows) else "no event"
        raise UsageError(
            f"{trace.path.name} has {what} where {condition[:80]}; align by another event, or type an offset"
        )
    row = int(rows[number - 1])
    return Anchor(int(trace.events.time_cycles[row]), row, len(rows))


def offset_ps(reference: Trace, other: Trace, reference_cycles: int, other_cycles: int) -> int:
    """Return the time from the first event of one trace to that of another, given a moment that both have in common.

    Args:
        reference: One trace.
        other: The other trace.
        reference_cycles: The moment in the reference, in its cycles.
        other_cycles: The same moment in the other trace, in its cycles.

    Returns:
        Picoseconds, rounded to the nearest.
    """
    return _ps(reference, reference_cycles - reference.window.start) - _ps(other, other_cycles - other.window.start)


def counter_offset_ps(reference: Trace, other: Trace) -> int:
    """Return the offset in ps of a trace of the same target, by counters that are the same or started together.

    Raises:
        UsageError: Their counters have different rates, or the upper half of one is not known.
    """
    one, two = reference.clock, other.clock
    if one.cycles_per_s != two.cycles_per_s:
        raise UsageError(
            f"{other.path.name} counts at {two.cycles_per_s:,} Hz and {reference.path.name} at "
            f"{one.cycles_per_s:,} Hz: these are different counters; align by an event, or type an offset"
        )
    if not (one.is_absolute and two.is_absolute):
        name = (other if one.is_absolute else reference).path.name
        raise UsageError(f"the full counter of {name} is not known; align by an event, or type an offset")
    return _ps(reference, other.window.start - reference.window.start)


def offsets_ps(traces: Sequence[Trace], condition: str, number: int = 1) -> list[int]:
    """Return the offset of each trace on the time axis of the first one.

    Args:
        traces: At least one.
        condition: `start`, `counter`, or an expression that matches an event in each trace.
        number: Which of the matching events, from 1.

    Returns:
        Picoseconds from the first event of the first trace to the first event of each; 0 for the first.

    Raises:
        UsageError: A trace cannot be aligned this way; the text names it and an alternative.
    """
    reference = traces[0]
    if condition == COUNTER:
        return [0, *(counter_offset_ps(reference, other) for other in traces[1:])]
    cycles, *others = (anchor_of(trace, condition, number).cycles for trace in traces)
    return [0, *(offset_ps(reference, trace, cycles, other) for trace, other in zip(traces[1:], others, strict=True))]


def _ps(trace: Trace, cycles: int) -> int:
    rate = trace.clock.cycles_per_s
    return (cycles * PS_PER_S + rate // 2) // rate


def common_events(traces: Sequence[Trace], most: int = 20) -> list[str]:
    """Return conditions by which traces could be aligned: events in all traces and frequent in none, rarest first.

    Args:
        traces: The traces.
        most: Maximum number of conditions.
    """
    counts: dict[str, list[int]] = {}
    for number, trace in enumerate(traces):
        for code in np.flatnonzero(trace.code_counts).tolist():
            name = f"{trace.catalogue.class_name(code)}/{trace.catalogue.name(code)}"
            counts.setdefault(name, [0] * len(traces))[number] += int(trace.code_counts[code])
    common = [(max(of_traces), name) for name, of_traces in counts.items() if min(of_traces)]
    return [f'event == "{name}"' for _, name in sorted(common)[:most]]
