"""Functions that find the intervals, moments and numbers that each lane class shows, user events included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core.links import stable_order
from satview.events import wire
from satview.events.layout import PayloadPart
from satview.events.spec import Show
from satview.events.states import WAITING
from satview.events.user_events import UserEvent, UserField, UserRule, UserRuleKind
from satview.linkage.chain import link_table
from satview.linkage.links import (
    OPEN,
    LinkKind,
    ends_of_spans,
    is_whole,
    last_of_each,
    nested_pairs,
    rows_of_class,
    rows_of_codes,
    rows_where,
)
from satview.store.arguments import argument, argument_under, numbers_at
from satview.store.axis import by_file, file_window, files_of, last_rows
from satview.store.tables import UNKNOWN_THREAD
from satview.store.time_ranges import losses
from satview.store.trace import Trace
from satview.timeline.lane_classes import LANE_CLASS_BY_NAME, LaneClass, Owner
from satview.timeline.track import Rows, TrackRows, hues

# Lanes of user events: moments, intervals between two events, and counters, from event descriptions and rules.


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
    """Return the lane of a user event number in one file: a counter if rule or description define one, else moments."""
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
                     f"{rule.number}..{rule.end_number}", text=partial(_text, trace, event, name=name))  # fmt: skip


def interval_rows(trace: Trace, rows: Rows, number: int, end_number: int) -> tuple[Rows, Rows]:
    """Return the intervals between two user events of the same thread; they may be nested, and span no loss.

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
    """Return the number at one offset of each event's payload, float64 (n,); NaN where the payload is too short."""
    words = (byte % 4 + form.size + 3) // 4
    show = Show.DEC if form.is_signed else Show.HEX
    values = numbers_at(trace, rows, PayloadPart(form.label, byte // 4, words, show, byte=byte % 4, size=form.size))
    out = (values if form.is_signed else values.view(np.uint64)).astype(np.float64)
    out[trace.payloads.word_counts(rows) * 4 < byte + form.size] = np.nan
    return out


def _text(trace: Trace, event: UserEvent | None, row: int, name: str = "") -> str:
    """Return the text of a user event by `name`, else its description: `request id=5`; else what it logs."""
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


# Functions that find the intervals, moments and numbers of each lane class in a whole trace, when first shown.
#
# No interval crosses a range in which events are missing.


Finder = Callable[[Trace, LaneClass, UserLanes], list[TrackRows]]
_CALL_NUMBER: Final = 0x7F
_FREQUENCY_HUE: Final = 2  # blue
_FUNC_ENTER: Final = 10
_GUEST_ENTER, _GUEST_EXIT = (wire.code(wire.WireClass["QVM"], number) for number in (0, 1))
_DELIVERY: Final = wire.code(wire.WireClass.INT, 7)
_POWER_CPU, _POWER_IDLE, _POWER_START = 0xFFFF, 0x10000, 0x20000  # of word 0 of SYSTEM POWER


def moments(trace: Trace, lane_class: LaneClass, _user: UserLanes) -> list[TrackRows]:
    """Return each event of a class as a moment."""
    rows = _rows(trace, lane_class.codes)
    if lane_class.owner_kind is Owner.TRACE:  # without CPU, process or thread: each file has a lane of its own
        return [
            _moments(trace, own, np.zeros(len(own), np.int64), Owner.TRACE, f"{file}{lane_class.title}", file)
            for file, own in by_file(trace, rows)
        ]
    return [_moments(trace, rows, _owners(trace, rows, lane_class.owner_kind), lane_class.owner_kind, lane_class.title)]


def calls(trace: Trace, lane_class: LaneClass, _user: UserLanes) -> list[TrackRows]:
    """Return kernel calls by thread; calls still open when the trace ends are drawn up to there."""
    table = link_table(trace, LinkKind.CALL)
    known = np.flatnonzero((trace.events.thread[table.from_row] != UNKNOWN_THREAD) & (table.to_row != OPEN))
    begin, over = table.from_row[known], table.to_row[known]
    if trace.pairs is None:
        rows = rows_of_class(trace, wire.WireClass.KER_CALL)
        newest = rows[last_of_each(trace.events.thread[rows], len(trace.threads))]
        newest = newest[trace.events.code[newest] & wire.KER_FORM == 0]
        begin, over = _with_open(trace, begin, over, newest[trace.events.thread[newest] != UNKNOWN_THREAD])
    value = hues(trace.events.code[begin] & _CALL_NUMBER)
    return [_spans(trace, lane_class, begin, over, trace.events.thread[begin], value)]


def handlers(trace: Trace, lane_class: LaneClass, _user: UserLanes) -> list[TrackRows]:
    """Return interrupt handlers by CPU, in the colours of their processes; for 8.0 the deliveries of interrupts."""
    table = link_table(trace, LinkKind.HANDLER)
    known = table.to_row != OPEN
    begin, over = table.from_row[known], table.to_row[known]
    process = trace.processes.rows_of(argument(trace, begin, "pid")[0])
    lanes = [_spans(trace, lane_class, begin, over, trace.events.cpu[begin], hues(process))]
    rows = rows_of_codes(trace, _DELIVERY)
    if len(rows):
        lanes.append(_moments(trace, rows, trace.events.cpu[rows], Owner.CPU, "deliveries", "deliveries"))
    return lanes


def functions(trace: Trace, lane_class: LaneClass, _user: UserLanes) -> list[TrackRows]:
    """Return instrumented functions by thread; calls still open when the trace ends are drawn up to there."""
    begin, over = function_calls(trace)
    names = argument(trace, begin, "thisfn")[0]
    # Addresses are multiples of at least 4: a multiplication distributes them over the colours.
    value = hues((names.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)).astype(np.int64))
    return [_spans(trace, lane_class, begin, over, trace.events.thread[begin], value)]


def function_calls(trace: Trace) -> tuple[Rows, Rows]:
    """Return entries and exits of the calls of instrumented functions by known threads, two uint32 (n,).

    The exit of a call that has not returned when the trace ends is `OPEN`. A call without an exit of its own is left
    out if the enclosing call has returned: then the inner call was over too.
    """
    rows = _rows(trace, LANE_CLASS_BY_NAME["functions"].codes)
    rows = rows[trace.events.thread[rows] != UNKNOWN_THREAD]
    rows = rows[stable_order(trace.events.thread[rows])]
    step = np.where(trace.events.code[rows] & 0xFF == _FUNC_ENTER, 1, -1).astype(np.int8)
    part = _parts(trace, rows, trace.events.thread[rows])
    entries, exits = nested_pairs(step, part)
    function = argument(trace, rows, "thisfn")[0]
    same = function[entries] == function[exits]  # else an entry or exit in between is missing
    entries, exits = entries[same], exits[same]
    around = np.zeros(len(rows), np.int64)
    around[entries], around[exits] = 1, -1
    waiting = rows[(np.cumsum(around) == 0) & (around == 0) & (step > 0)]  # in no call that has returned
    return _with_open(trace, rows[entries], rows[exits], waiting)


def guests(trace: Trace, lane_class: LaneClass, _user: UserLanes) -> list[TrackRows]:
    """Return the intervals in which threads of virtual CPUs ran their guests, and the other guest events as moments."""
    rows = _rows(trace, lane_class.codes)
    rows = rows[stable_order(trace.events.thread[rows])]
    thread, code = trace.events.thread[rows], trace.events.code[rows]
    is_border = np.isin(code, (_GUEST_ENTER, _GUEST_EXIT))
    borders, of_thread, kind = rows[is_border], thread[is_border], code[is_border]
    entering = np.flatnonzero(
        (kind[:-1] == _GUEST_ENTER) & (kind[1:] == _GUEST_EXIT) & (of_thread[:-1] == of_thread[1:])
    )
    begin, over = borders[entering], borders[entering + 1]
    whole = is_whole(trace, begin, over)
    begin, over = begin[whole], over[whole]
    lanes = [_spans(trace, lane_class, begin, over, trace.events.thread[begin], hues(trace.events.thread[begin]))]
    others = np.flatnonzero(~is_border)
    if len(others):
        lanes.append(_moments(trace, rows[others], thread[others], Owner.THREAD, "guest events", "events"))
    return lanes


def frequencies(trace: Trace, lane_class: LaneClass, _user: UserLanes) -> list[TrackRows]:
    """Return the throughput mode of each CPU, from the events that end a change.

    The first mode holds from the start of the trace, or of its file on an axis, as the power manager logs the mode of
    every CPU when tracing begins. Source: format description, system event 15.
    """
    rows, bits, mode = _power(trace)
    changes = np.flatnonzero(bits & (_POWER_IDLE | _POWER_START) == 0)
    cpu, start = (bits[changes] & _POWER_CPU).astype(np.int64), trace.events.time_cycles[rows[changes]].copy()
    cpus, earliest = np.unique(cpu, return_index=True)
    start[earliest] = [file_window(trace, number, 0).start for number in cpus.tolist()]
    value = hues(np.full(len(changes), _FREQUENCY_HUE))
    return [TrackRows(Owner.CPU, cpu, start, start, rows[changes], value, lane_class.title,
                      number=mode[changes].astype(np.float64), text="mode {mode}")]  # fmt: skip


def idle_modes(trace: Trace, lane_class: LaneClass, _user: UserLanes) -> list[TrackRows]:
    """Return the intervals in which CPUs sleep: from an entry to an idle mode to the CPU's next exit or entry."""
    rows, bits, _ = _power(trace)
    changes = np.flatnonzero(bits & _POWER_IDLE)
    cpu = bits[changes] & _POWER_CPU
    changes, cpu = changes[order := np.argsort(cpu, kind="stable")], cpu[order]
    begins = np.flatnonzero((bits[changes[:-1]] & _POWER_START > 0) & (cpu[:-1] == cpu[1:]))
    begin, end = rows[changes[begins]], rows[changes[begins + 1]]
    whole = is_whole(trace, begin, end)
    begins, begin, end = begins[whole], begin[whole], end[whole]
    value = np.full(len(begin), WAITING, np.uint8)  # an inconspicuous colour
    return [_spans(trace, lane_class, begin, end, cpu[begins], value)]


def user_events(trace: Trace, lane_class: LaneClass, user: UserLanes) -> list[TrackRows]:
    """Return the lanes of user events, see `user_lanes`."""
    return user_lanes(trace, _rows(trace, lane_class.codes), user)


def _rows(trace: Trace, codes: tuple[int, ...]) -> Rows:
    """Return the rows of the events with some codes, uint32 (n,), ascending."""
    if trace.pairs is not None:  # a format with codes of its own
        return np.empty(0, np.uint32)
    table = np.zeros(wire.CODE_COUNT, np.bool_)
    table[list(codes)] = True
    return rows_where(trace, table)


def _owners(trace: Trace, rows: Rows, owner_kind: Owner) -> NDArray[np.integer]:
    """Return the CPU, thread or process of each event; a process by the argument `pid`, else that of the thread."""
    if owner_kind is Owner.CPU:
        return trace.events.cpu[rows]
    if owner_kind is Owner.THREAD:
        return trace.events.thread[rows]
    pid, known = argument(trace, rows, "pid")
    named = np.where(known, trace.processes.rows_of(pid), 0)
    return np.where(named > 0, named, trace.threads.process[trace.events.thread[rows]])


def _parts(trace: Trace, rows: Rows, owner: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the part number of each event, sorted by owner: a part ends at each new owner and each loss of events."""
    lost = np.sort(losses(trace)[:, 1])
    before = np.searchsorted(lost, trace.events.time_cycles[rows], side="right")
    changes = np.ones(len(rows), np.bool_)
    changes[1:] = (owner[1:] != owner[:-1]) | (before[1:] != before[:-1])
    return np.asarray(np.cumsum(changes) - 1)


def _with_open(trace: Trace, begin: Rows, over: Rows, waiting: Rows) -> tuple[Rows, Rows]:
    """Return starts and ends of intervals, with an open interval added for each other start in `waiting`.

    The end of an open interval is `OPEN`. None is added if events were lost after its start.
    """
    if not len(waiting):
        return begin, over
    waiting = waiting[is_whole(trace, waiting, last_rows(trace, waiting))]
    waiting = waiting[~np.isin(waiting, begin)]
    return np.concatenate((begin, waiting)), np.concatenate((over, np.full(len(waiting), OPEN, np.uint32)))


def _power(trace: Trace) -> tuple[Rows, NDArray[np.int64], NDArray[np.int64]]:
    """Return the events of the power manager: rows, and their arguments `bitset` and `mode`, int64."""
    rows = _rows(trace, (wire.code(wire.WireClass.SYSTEM, 15),))
    bits, files = argument_under(trace, rows, "bitset"), files_of(trace)
    for part, positions, _ in files.split(rows) if files is not None else ():
        bits[positions] += np.where(bits[positions] >= 0, part.first_cpu, 0)
    return rows, bits, argument_under(trace, rows, "mode")


def _moments(
    trace: Trace, rows: Rows, owner: NDArray[np.integer], owner_kind: Owner, title: str, key: str = ""
) -> TrackRows:
    time, value = trace.events.time_cycles[rows], hues(np.zeros(len(rows), np.int64))
    return TrackRows(owner_kind, owner.astype(np.int64), time, time, rows, value, title, key)


def _spans(
    trace: Trace,
    lane_class: LaneClass,
    begin: Rows,
    over: Rows,
    owner: NDArray[np.integer],
    value: NDArray[np.uint8],
) -> TrackRows:
    """Return intervals as the content of lanes; those without an end (`OPEN`) last until their file ends."""
    start = trace.events.time_cycles[begin]
    # An interval without length still shows.
    end = np.maximum(ends_of_spans(trace, begin, over), start + 1)
    return TrackRows(lane_class.owner_kind, owner.astype(np.int64), start, end, begin, value, lane_class.title)


def _nothing(_trace: Trace, _lane_class: LaneClass, _user: UserLanes) -> list[TrackRows]:
    return []


_FINDERS: Final[dict[str, Finder]] = {
    finder.__name__: finder
    for finder in (moments, calls, handlers, functions, guests, frequencies, idle_modes, user_events)
}


def finder_of(lane_class: LaneClass) -> Finder:
    """Return the function that finds the content of a lane class.

    For a class whose function is set by `Timeline.use_finder`, that is a function that finds nothing.
    """
    return _FINDERS.get(lane_class.finder, _nothing)
