"""Several traces on one time axis: their offsets, and the axis file that a request of a user describes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from platformdirs import user_state_path

from satview.base.errors import UsageError
from satview.base.safe_text import counted
from satview.base.time import NS_PER_S, parse_length
from satview.events.user_events import UserEvent
from satview.filters.expressions.expression import select
from satview.formats.registry import open_trace
from satview.store.arguments import describe_events
from satview.store.axis import SUFFIX, AxisEntry, check_entries, names_for, write_axis
from satview.store.trace import Trace

# Computes offsets of traces on a common time axis from their starts, their counters, or an event that all have.


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
    """Return the moment that a condition names: `start`, or the time of the `number`th event of an expression.

    Raises:
        UsageError: The condition is faulty, or the trace has no such event; the text names the trace.
    """
    if condition == START:
        return Anchor(trace.window.start)
    try:
        rows = select(trace, condition)
    except UsageError as error:
        raise UsageError(f"{trace.path.name}: {error}") from error
    if len(rows) < number:
        what = f"only {counted(len(rows), 'event')}" if len(rows) else "no event"
        raise UsageError(
            f"{trace.path.name} has {what} where {condition[:80]}; align by another event, or type an offset"
        )
    row = int(rows[number - 1])
    return Anchor(int(trace.events.time_cycles[row]), row, len(rows))


def offset_ps(reference: Trace, other: Trace, reference_cycles: int, other_cycles: int) -> int:
    """Return the time from the first event of `reference` to the first event of `other`, given one common moment.

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
    """Return the time from the first event of `reference` to the first event of `other`, ps, by their cycle counters.

    Both traces must have the same counter, or counters that started together.

    Raises:
        UsageError: The counters have different rates, or the upper half of a counter is not known.
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
    """Return the offset, ps, of each trace on the time axis of the first trace, whose own is 0.

    The condition is `start`, `counter`, or an expression of which the `number`th event in each trace is taken.

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
    """Return at most `most` conditions that align traces: events in all, frequent in none, rarest first."""
    counts: dict[str, list[int]] = {}
    for number, trace in enumerate(traces):
        for code in np.flatnonzero(trace.code_counts).tolist():
            name = f"{trace.catalogue.class_name(code)}/{trace.catalogue.name(code)}"
            counts.setdefault(name, [0] * len(traces))[number] += int(trace.code_counts[code])
    common = [(max(of_traces), name) for name, of_traces in counts.items() if min(of_traces)]
    return [f'event == "{name}"' for _, name in sorted(common)[:most]]


# Creates an axis file, which puts several traces on one time axis, from a user's request.


_MOST_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class AxisRequest:
    """Files to put on one time axis, and how to align them.

    Attributes:
        paths: Two or more files; all but the first are aligned with the first.
        names: Name of each file on the axis; empty = derived from the file names.
        offsets: Time from the first event of the first file to that of another, as text such as `12.5ms` or `-2s`;
            the key is the name or number (from 1) of the other file.
        align: How to align files without an offset: `start`, `counter`, or an expression that matches an event of each.
        number: Number of the matching event to use in each file, from 1.
        described: Descriptions of events by code, whose fields the expression may name; None = none.
    """

    paths: tuple[Path, ...]
    names: tuple[str, ...] = ()
    offsets: Mapping[str, str] | None = None
    align: str = START
    number: int = 1
    described: Mapping[int, UserEvent] | None = None


def plan(request: AxisRequest, cancelled: Callable[[], bool] | None = None) -> list[AxisEntry]:
    """Return path, name and offset of each file on the axis; files are only read if events are needed to align them.

    Raises:
        UsageError: The request cannot be carried out, or gives a way to align files although every file has an offset.
        TraceFormatError: A file cannot be read.
        Cancelled: `cancelled()` returned True.
    """
    names = list(request.names) or names_for(request.paths)
    if len(names) != len(request.paths):
        raise UsageError(f"{counted(len(names), 'name')} given for {counted(len(request.paths), 'file')}")
    if request.number < 1:
        raise UsageError(f"{request.number} is not the number of a match; the first match is 1")
    typed = _typed(names, request.offsets or {})
    entries = [AxisEntry(path, name, typed.get(name, 0)) for path, name in zip(request.paths, names, strict=True)]
    check_entries(entries)
    unplaced = [number for number, name in enumerate(names) if number and name not in typed]
    if request.align == START:  # no event has to be read for that
        return entries
    if not unplaced:
        raise UsageError(f"every file has an offset, so none is left to align by {request.align[:40]!r}; leave one out")
    traces = [open_trace(request.paths[number], None, cancelled) for number in (0, *unplaced)]
    for trace in traces:
        describe_events(trace, request.described or {})
    for number, offset in zip(unplaced, offsets_ps(traces, request.align, request.number)[1:], strict=True):
        entries[number] = AxisEntry(request.paths[number], names[number], offset)
    return entries


def users_axis(entries: Sequence[AxisEntry]) -> Path:
    """Return the path of this user's axis file for these traces; the path does not depend on the offsets."""
    key = "\0".join(str(entry.path.absolute()) for entry in entries)
    name = "+".join(entry.name for entry in entries)[:_MOST_NAME]
    digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return user_state_path("satview", appauthor=False) / "axes" / f"{name}-{digest}{SUFFIX}"


def write_users_axis(entries: Sequence[AxisEntry]) -> Path:
    """Write this user's axis file for these traces; return its path.

    Raises:
        UsageError: The traces cannot share an axis, or the file cannot be written.
    """
    path = users_axis(entries)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path.parent}: {error.strerror or error}") from error
    write_axis(path, entries)
    return path


def _typed(names: Sequence[str], offsets: Mapping[str, str]) -> dict[str, int]:
    offset_of = {}
    for label, text in offsets.items():
        name = names[int(label) - 1] if label.isdecimal() and 0 < int(label) <= len(names) else label
        if name not in names:
            raise UsageError(f"there is no file {label[:40]!r} on the axis; there are {', '.join(names)}")
        if name == names[0]:
            raise UsageError(f"{name} is the file that the others are placed by; give the offset of another one")
        offset_of[name] = round(parse_length(text) * PS_PER_S / NS_PER_S)
    return offset_of
