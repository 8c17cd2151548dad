"""Lanes of user events: moments, intervals between two events, and counters, from event descriptions and rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from satview.core.ordering import stable_order
from satview.events import wire
from satview.events.layout import PayloadPart
from satview.events.spec import Show
from satview.events.user_events import UserEvent, UserField, UserRule, UserRuleKind
from satview.linkage.rows import nested_pairs
from satview.linkage.whole import is_whole
from satview.store.arguments import numbers_at
from satview.store.axis import by_file
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace
from satview.timeline.lane_classes import Owner
from satview.timeline.tracks.track import Rows, TrackRows, hues

_WORD = UserField("", 4, is_signed=True)
_TEXT_WORDS = 64
_WORDS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class UserLanes:
    """Descriptions of user events and rules for their lanes.

    Attributes:
        events: Descriptions by number.
        rules: The user's rules for lanes.
    """

    events: Mapping[int, UserEvent] = field(default_factory=dict)
    rules: tuple[UserRule, ...] = ()


def user_lanes(trace: Trace, rows: Rows, user: UserLanes) -> list[TrackRows]:
    """Return the lanes of the user events of a trace: intervals by thread, and a lane for each other event number.

    Args:
        trace: The events.
        rows: Rows of the user events of the trace, ascending.
        user: Descriptions and rules.
    """
    numbers = trace.events.code[rows] & wire.EVENT_MASK
    lanes, in_intervals = list[TrackRows](), set[int]()
    for rule in (*user.rules, *pairs_by_name(user.events)):
        if rule.kind is UserRuleKind.INTERVAL and rule.number not in in_intervals:
            of_rule = _intervals(trace, rows, rule, user)
            if len(of_rule):
                lanes.append(of_rule)
                in_intervals |= {rule.number, rule.end_number}
    for number in np.unique(numbers).tolist():
        if number not in in_intervals:
            lanes += [_lane(trace, own, number, user, file) for file, own in by_file(trace, rows[numbers == number])]
    return lanes


def _lane(trace: Trace, rows: Rows, number: int, user: UserLanes, file: str) -> TrackRows:
    """Return the lane of one user event number in one file: a counter if rule or description say so, else moments."""
    event = user.events.get(number)
    rule = next((rule for rule in user.rules if rule.number == number and rule.kind is not UserRuleKind.INTERVAL), None)
    counted = _counted(event, rule)
    name = (rule.name if rule is not None else "") or (event.name if event is not None else "")
    time, owner = trace.events.time_cycles[rows], np.zeros(len(rows), np.int64)
    values = None if counted is None else _values(trace, rows, *counted)
    if counted is not None and not name:
        name = counted[1].label
    title = name or f"event {number}"
    subtitle = f"user event {number}" if name else ""
    text = partial(_text, trace, event)
    if values is not None:
        text = partial(_counter_text, trace, rows, values, event)
    return TrackRows(Owner.TRACE, owner, time, time, rows, hues(owner + number), f"{file}{title}", f"{file}{number}",
                     subtitle, values, text)  # fmt: skip


def _intervals(trace: Trace, rows: Rows, rule: UserRule, user: UserLanes) -> TrackRows:
    begin_rows, end_rows = interval_rows(trace, rows, rule.number, rule.end_number)
    event = user.events.get(rule.number)
    name = rule.name or (event.name if event is not None else "") or f"event {rule.number}"
    time, owner = trace.events.time_cycles, trace.events.thread[begin_rows].astype(np.int64)
    return TrackRows(Owner.THREAD, owner, time[begin_rows], np.maximum(time[end_rows], time[begin_rows] + 1),
                     begin_rows, hues(np.full(len(begin_rows), rule.number)), name, f"{rule.number}-{rule.end_number}",
                     f"{rule.number}..{rule.end_number}", text=partial(_text, trace, event, name))  # fmt: skip


def interval_rows(trace: Trace, rows: Rows, number: int, end_number: int) -> tuple[Rows, Rows]:
    """Return the intervals between two user events of the same thread; they may be nested.

    Args:
        trace: The events.
        rows: Rows of the user events of the trace, ascending.
        number: Number of the events that begin intervals.
        end_number: Number of the events that end intervals.

    Returns:
        uint32 (n,) each: rows of the events that begin and end the intervals.
    """
    own = rows[np.isin(trace.events.code[rows] & wire.EVENT_MASK, (number, end_number))]
    own = own[trace.events.thread[own] != UNKNOWN_THREAD]
    own = own[stable_order(trace.events.thread[own])]
    is_begin = trace.events.code[own] & wire.EVENT_MASK == number
    if number == end_number:  # events with this number alternately begin and end an interval
        of_thread = trace.events.thread[own]
        begin_rows = np.searchsorted(of_thread, of_thread)
        is_begin = (np.arange(len(own)) - begin_rows) % 2 == 0
    thread = trace.events.thread[own]
    part = np.cumsum(np.append(False, thread[1:] != thread[:-1])[: len(own)])
    begin, end = nested_pairs(np.where(is_begin, 1, -1).astype(np.int8), part)
    whole = is_whole(trace, own[begin], own[end])
    return own[begin[whole]], own[end[whole]]


def pairs_by_name(events: Mapping[int, UserEvent]) -> list[UserRule]:
    """Return interval rules for pairs of events whose names differ only in begin and end, enter and exit, and so on."""
    by_name = {event.name.casefold(): event for event in events.values()}
    rules = []
    for event in events.values():
        for begin, end in (("begin", "end"), ("enter", "exit"), ("entry", "exit"), ("start", "stop"), ("start", "end")):
            stem = event.name.casefold().removesuffix(begin)
            other = by_name.get(stem + end) if stem != event.name.casefold() else None
            if other is not None and stem:
                name = event.name[: len(stem)].rstrip(" _-.:")
                rules.append(UserRule(event.number, UserRuleKind.INTERVAL, other.number, 0, name))
                break
    return rules


def _counted(event: UserEvent | None, rule: UserRule | None) -> tuple[int, UserField] | None:
    """Return the payload offset and the field of the number that a counter lane shows; None if it is no counter."""
    if rule is not None:
        if rule.kind is UserRuleKind.MOMENT:
            return None
        if rule.label:
            labels = [field.label for field in event.fields] if event is not None else []
            return event.number_at(labels.index(rule.label)) if event is not None and rule.label in labels else None
        named = event.number_at(rule.field) if event is not None else None
        return named if named is not None else (4 * rule.field, _WORD)
    if event is None or len(event.fields) != 1:
        return None
    counter = event.number_at(0)  # an event with a single number is a counter if `is_counter` allows
    return counter if counter is not None and counter[1].is_counter else None


def _values(trace: Trace, rows: Rows, byte: int, form: UserField) -> NDArray[np.float64]:
    """Return the number at offset `byte` in each event's payload, float64 (n,); NaN where the payload is too short."""
    words = (byte % 4 + form.size + 3) // 4
    show = Show.DEC if form.is_signed else Show.HEX
    values = numbers_at(trace, rows, PayloadPart(form.label, byte // 4, words, show, byte=byte % 4, size=form.size))
    out = (values if form.is_signed else values.view(np.uint64)).astype(np.float64)
    out[trace.payloads.word_counts(rows) * 4 < byte + form.size] = np.nan
    return out


def _text(trace: Trace, event: UserEvent | None, name_or_row: str | int, row: int | None = None) -> str:
    """Return the text of an event: `request id=5`; without name and description the text or first words it logs."""
    name, row = ("", int(name_or_row)) if row is None else (str(name_or_row), row)
    if event is not None:
        fields = " ".join(event.texts(trace.payloads.raw(row), trace.byte_order))
        return f"{name or event.name} {fields}".strip()
    if name:
        return name
    texts = [
        argument.text
        for argument in trace.payloads.decode(row, _TEXT_WORDS).arguments
        if isinstance(argument.value, str)
    ]
    return " ".join(texts) or " ".join(f"{word:#x}" for word in trace.payloads.words(row)[:_WORDS_SHOWN].tolist())


def _counter_text(trace: Trace, rows: Rows, values: NDArray[np.float64], event: UserEvent | None, row: int) -> str:
    value = float(values[int(np.searchsorted(rows, row))])
    if np.isnan(value):
        return "no number"
    return _text(trace, event, row) if event is not None and len(event.fields) > 1 else f"{value:,.15g}"
