"""Finds activities: work that is triggered repeatedly or delimited by two events; and the timing file of a user."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from satview.analysis.needs import Need, events_need
from satview.base.column_arrays import ColumnTable
from satview.base.errors import UsageError
from satview.base.named_files import read_toml
from satview.base.safe_text import listed
from satview.base.shared_file import DamagedFileError, tables_as_declared
from satview.base.time import parse_length
from satview.core import links
from satview.core.links import stable_order
from satview.events import wire
from satview.events.states import DEAD, READY, RUNNING, STATE_BY_NAME
from satview.filters.diagnostics import named_by
from satview.filters.expressions.expression import select
from satview.formats.outside_names import symbols_of
from satview.linkage import messages
from satview.linkage.calls import calls
from satview.linkage.latencies import DEATH_PULSE
from satview.linkage.links import (
    NO_EVENT,
    OPEN,
    Certainty,
    comm_words,
    ends_of_spans,
    is_whole,
    positions,
    rows_of_class,
    rows_of_codes,
)
from satview.linkage.transactions import FREE, client_states, served_messages
from satview.linkage.waits import LANE_VALUES, first_that_fits, state_positions, waits
from satview.linkage.wake_ups import wake_ups
from satview.store.arguments import argument, distinct
from satview.store.axis import ends_of_files, files_of_threads, last_rows
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace
from satview.timeline.finders import function_calls, interval_rows, pairs_by_name

# A user's timing file: periods, deadlines and bounds of activities and chains (docs/late.md).


_MOST_BYTES: Final = 1 << 16
_MOST_CYCLES: Final = 1 << 62
_MOST_NAMES: Final = 8  # in a message
_EXAMPLE: Final = 'write it as [control] and then deadline = "10 ms"'


class Timing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A user's settings for one activity or chain.

    Attributes:
        start: Expression for the events that begin the activity; empty = it is a learned activity.
        end: Expression for the events that end the activity. The first match after each start ends it; if all threads
            with matching starts also have matching ends, only ends of the thread that started it count.
        period: Time from one trigger to the next, such as `10 ms`; empty = as learned.
        deadline: How long the activity may take; empty = its period.
        cpus: CPUs on which its thread may run, for the schedulability analysis; empty = as the trace shows.
        chain: Names of successive activities, such as `camera > control`; not empty = the entry is a chain, not an
            activity.
        reaction: How long the chain may take from the trigger of its first activity to its first response.
        age: How old the first activity's trigger may be when the last one is done.
    """

    start: str = ""
    end: str = ""
    period: str = ""
    deadline: str = ""
    cpus: tuple[int, ...] = ()
    chain: str = ""
    reaction: str = ""
    age: str = ""


def read_timing(path: Path | str) -> dict[str, Timing]:
    """Return the entries of a user's timing file, by name.

    Raises:
        UsageError: The file cannot be read or has a wrong entry, which the text locates.
    """
    path = Path(path)
    _, content = read_toml(path, _MOST_BYTES, _EXAMPLE)
    try:
        timing = tables_as_declared(content, Timing)
    except DamagedFileError as error:
        raise UsageError(f"{path.name}: {error}; {_EXAMPLE}") from error
    for name, entry in timing.items():
        if bool(entry.start) != bool(entry.end):
            raise UsageError(f"{path.name}: [{name}] needs start and end, or neither for one that is learned")
        of_activity = [key for key in ("start", "period", "deadline", "cpus") if getattr(entry, key)]
        of_chain = [key for key in ("reaction", "age") if getattr(entry, key)]
        if misplaced := of_activity if entry.chain else of_chain:
            home = "an activity, and this is a chain" if entry.chain else "a chain: chain = 'camera > control'"
            raise UsageError(f"{path.name}: [{name}] {misplaced[0]} is for {home}")
        if not (of_activity or entry.chain):
            raise UsageError(f"{path.name}: [{name}] needs start and end, period, deadline or cpus; or chain, with the "
                             "bounds reaction and age")  # fmt: skip
        lengths = {"period": entry.period, "deadline": entry.deadline, "reaction": entry.reaction, "age": entry.age}
        for key, text in lengths.items():
            try:
                is_fine = not text or parse_length(text) > 0
            except UsageError as error:
                raise UsageError(f"{path.name}: [{name}] {key}: {error}") from error
            if not is_fine:
                raise UsageError(f"{path.name}: [{name}] {key} is not above 0")
    return timing


def bound_cycles(trace: Trace, text: str) -> int:
    """Return a time of a timing file, such as `10 ms`, in cycles: at least 1, at most the longest time of a trace."""
    return max(1, min(trace.clock.cycles_of(int(parse_length(text))), _MOST_CYCLES))


# Finds work delimited by two events of its thread: pairs of user events, instrumented functions, kernel calls.
#
# User events form a pair if the names of their descriptions match (`request begin`, `request end`). For threads whose
# events have no such names, a pair is learned if the same events always follow each other in the same order.


MOST_CALLS: Final = 20
"""Maximum number of kernel calls, and of functions, of a file that become activities: the longest in total."""
_MOST_NUMBERS: Final = 16  # different user events in a learned cycle
_BITS: Final = 32  # of a group for the event or called function; the thread is above
# Parts of the names of kernel calls that wait for work. Such a call is no activity, the work that follows may be.
_WAITING: Final = ("RECEIVE", "WAIT", "SLEEP", "TIMEOUT", "JOIN")

_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of one kind, each from one event of a thread to another; every column has shape (n,).

    Attributes:
        trigger: Kind of the events that begin the spans, one word.
        group: int64, group of each span: spans of the same thread with the same events, call or function.
        begin_row, end_row: int64, rows of the events; -1 = the trace ends before.
        labels: Label of each group, put after the name of its thread.
        left_out: Number of groups beyond `MOST_CALLS`.
    """

    trigger: str
    group: _Ints
    begin_row: _Ints
    end_row: _Ints
    labels: dict[int, str]
    left_out: int = 0


def spans(trace: Trace) -> list[Spans]:
    """Return the spans of user events, functions and kernel calls of known threads; none for a thread trace."""
    if trace.pairs is not None:
        return []
    return [_of_user_events(trace), _of_functions(trace), _of_kernel_calls(trace)]


def described_pairs(trace: Trace) -> tuple[tuple[int, int, str], ...]:
    """Return (begin number, end number, name) of each pair of user events whose described names form a pair."""
    events = {event.number: event for code, event in trace.payloads.described.items()
              if wire.class_of(code) == wire.WireClass.USER}  # fmt: skip
    return tuple((rule.number, rule.end_number, rule.name) for rule in pairs_by_name(events))


def _of_user_events(trace: Trace) -> Spans:
    rows = rows_of_class(trace, wire.WireClass.USER)
    rows = rows[trace.events.thread[rows] != UNKNOWN_THREAD]
    number = (trace.events.code[rows] & wire.EVENT_MASK).astype(np.int64)
    begins, ends, groups, labels = [], [], [], dict[int, str]()
    is_free = np.ones(len(rows), np.bool_)

    def add(begin_row: NDArray[np.integer], end_row: NDArray[np.integer], begin: int, label: str) -> None:
        group = trace.events.thread[begin_row].astype(np.int64) << _BITS | begin
        labels.update(dict.fromkeys(np.unique(group).tolist(), label))
        begins.append(begin_row.astype(np.int64))
        ends.append(end_row.astype(np.int64))
        groups.append(group)

    for begin, end, name in described_pairs(trace):
        add(*interval_rows(trace, rows, begin, end), begin, name)
        is_free &= ~np.isin(number, (begin, end))
    rows, number = rows[is_free], number[is_free]
    order = stable_order(trace.events.thread[rows])
    rows, number = rows[order], number[order]
    thread = trace.events.thread[rows]
    for own in np.split(np.arange(len(rows)), np.flatnonzero(thread[1:] != thread[:-1]) + 1):
        if (pair := _pair_of(trace, rows[own], number[own])) is not None:
            begin_row, end_row, begin, end = pair
            add(begin_row, end_row, begin, f"user events {begin} to {end}")
    group, begin_row, end_row = (np.concatenate([np.empty(0, np.int64), *parts]) for parts in (groups, begins, ends))
    return Spans("events", group, begin_row, end_row, labels)


def _pair_of(trace: Trace, rows: NDArray[np.uint32], number: _Ints) -> tuple[_Ints, _Ints, int, int] | None:
    """Return rows and numbers of first and last events of a thread's rounds of user events; None without order.

    A round is one pass through all of them in a fixed order. It is assumed to end where the median pause to the next
    event is longest.
    """
    kinds, which = np.unique(number, return_inverse=True)
    count = len(kinds)
    if not 2 <= count <= _MOST_NUMBERS or len(rows) < 2 * count:
        return None
    is_next = is_whole(trace, rows[:-1], rows[1:])
    step, following = np.divmod(np.unique((which[:-1] * count + which[1:])[is_next]), count)
    if len(step) != count or len(np.unique(step)) != count:
        return None  # an event is followed by different ones
    round_trip, kind = [0], int(following[0])
    while kind not in round_trip:
        round_trip.append(kind)
        kind = int(following[kind])
    if kind != 0 or len(round_trip) != count:
        return None
    pause = np.diff(trace.events.time_cycles[rows])
    median = [np.median(pause[is_next & (which[:-1] == kind)]) for kind in range(count)]
    end = int(np.argmax(median))
    begin = int(following[end])
    starts = np.flatnonzero(which == begin)
    starts = starts[starts + count - 1 < len(rows)]
    begin_row, end_row = rows[starts].astype(np.int64), rows[starts + count - 1].astype(np.int64)
    whole = is_whole(trace, begin_row, end_row) & (number[starts + count - 1] == kinds[end])
    return begin_row[whole], end_row[whole], int(kinds[begin]), int(kinds[end])


def _of_functions(trace: Trace) -> Spans:
    begin_row, end_row = function_calls(trace)
    address = argument(trace, begin_row, "thisfn")[0]
    places, which = np.unique(address, return_inverse=True)
    longest = _longest(trace, "function", begin_row, end_row, which.reshape(-1))
    symbols = symbols_of(trace)
    for group in longest.labels:
        where, process = int(places[group & (1 << _BITS) - 1]), int(trace.threads.process[group >> _BITS])
        name = "" if symbols is None else symbols.place(process, where).function
        longest.labels[group] = f"{name or f'0x{where:x}'}()"
    return longest


def _of_kernel_calls(trace: Trace) -> Spans:
    (begin_row, end_row), _ = calls(trace)
    code = trace.events.code[begin_row]
    names = {number: trace.catalogue.name(number) for number in np.unique(code).tolist()}
    waits = [number for number, name in names.items() if any(word in name for word in _WAITING)]
    if waits:
        works = ~np.isin(code, waits)
        begin_row, end_row, code = begin_row[works], end_row[works], code[works]
    longest = _longest(trace, "call", begin_row, end_row, code)
    for group in longest.labels:
        longest.labels[group] = names[group & (1 << _BITS) - 1]
    return longest


def _longest(
    trace: Trace, trigger: str, begin_row: NDArray[np.uint32], end_row: NDArray[np.uint32], what: NDArray[np.integer]
) -> Spans:
    """Return the spans of the `MOST_CALLS` threads with functions or calls of each file that take longest in all."""
    time, end_cycles = trace.events.time_cycles, ends_of_spans(trace, begin_row, end_row)
    key = trace.events.thread[begin_row].astype(np.int64) << _BITS | what
    groups, which = distinct(key)
    total = np.bincount(which, end_cycles - time[begin_row], len(groups))
    file = files_of_threads(trace, groups >> _BITS)
    order = np.lexsort((-total, file))  # the rank in a file is the position less that of the file's first
    kept = np.sort(order[np.arange(len(order)) - np.searchsorted(file[order], file[order]) < MOST_CALLS])
    is_kept = np.zeros(len(groups), np.bool_)
    is_kept[kept] = True
    chosen = np.flatnonzero(is_kept[which])
    labels = dict.fromkeys(groups[kept].tolist(), "")
    end = end_row[chosen].astype(np.int64)
    end[end_row[chosen] == OPEN] = -1
    return Spans(trigger, key[chosen], begin_row[chosen].astype(np.int64), end, labels, len(groups) - len(kept))


# Finds activities: work that is triggered repeatedly, with each instance from its trigger to its end.
#
# Activities are learned from threads that receive pulses, servers that receive messages, and threads that sleep or wait
# for interrupts in a loop. A user's timing file can define more, each by two expressions, or set the deadline of a
# learned one. A learned period is regular by the rules of the verdict `missed-period`.


LEAST_INSTANCES: Final = 3
"""Work with fewer instances is not an activity."""
MOST_ACTIVITIES: Final = 1000
CALLED: Final = frozenset(("call", "function"))
"""Triggers that are kernel calls or functions: no deadline is learned for such work, and it is listed last."""
ENCLOSED: Final = CALLED | {"events"}
"""Triggers of work that is part of other work of its thread: calls, functions, and spans between two events."""
LEAST_PERIODS: Final = 8
"""Minimum number of periods from which a period is learned."""
REGULAR_PERCENT: Final = 80
"""Percentage of the periods that must equal their median, within `TOLERANCE_PERCENT`."""
TOLERANCE_PERCENT: Final = 5
NANOSLEEP: Final = STATE_BY_NAME["NANOSLEEP"].value
"""Lane value of the state of sleeping threads."""
_RECEIVE: Final = STATE_BY_NAME["RECEIVE"].value
_INTR: Final = STATE_BY_NAME["INTR"].value


@dataclass(frozen=True, slots=True)
class Activity:
    """Work that is triggered repeatedly.

    Attributes:
        name: Name of the thread, with the trigger if it has several activities; or the name in the user's file.
        trigger: Description of the event that begins the work.
        thread: Row of the thread that does the work most often; 0 = not known.
        period_cycles: Period; -1 = not periodic.
        is_period_said: The period is from a user's file; else it is learned.
        deadline_cycles: How long an instance may take; -1 = no deadline.
        deadline_from: Source of the deadline: `said` (a user's file), `period`, or empty.
    """

    name: str
    trigger: str
    thread: int
    period_cycles: int
    is_period_said: bool
    deadline_cycles: int
    deadline_from: str


@dataclass(frozen=True, slots=True)
class Instances(ColumnTable):
    """Instances of activities, sorted by activity, then by time; every column has shape (n,).

    Attributes:
        activity: int64, position of the activity.
        thread: int64, row of the thread that did the work; 0 = not known.
        start_cycles: int64, when the instance was triggered.
        begin_cycles: int64, when the thread starts to work on the instance: at its wake-up for the instance, or at the
            receipt of the message or pulse.
        end_cycles: int64, when the instance was done; the end of the trace if it is not done.
        start_row, end_row: int64, events at start and end; -1 = none.
        is_open: bool, the instance is not done when the trace ends: its length is a lower bound.
        is_known: bool, no event is missing between start and end, and the thread is known. Activities that a user's
            expressions define need no known thread.
        is_exact: bool, events name trigger and work; else the link is inferred from their order.
    """

    activity: _Ints
    thread: _Ints
    start_cycles: _Ints
    begin_cycles: _Ints
    end_cycles: _Ints
    start_row: _Ints
    end_row: _Ints
    is_open: NDArray[np.bool_]
    is_known: NDArray[np.bool_]
    is_exact: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.activity)

    @property
    def response_cycles(self) -> _Ints:
        """Response times, from the trigger to the end, int64 (n,)."""
        return self.end_cycles - self.start_cycles


@dataclass(frozen=True, slots=True)
class Activities:
    """The activities of a trace.

    Attributes:
        activities: The activities, in no particular order.
        instances: Instances of all activities.
        left_out: Number of the rarest learned activities, dropped because there are more than `MOST_ACTIVITIES`.
        calls_left_out: Number of kernel calls and functions dropped because others take longer in total.
        unseen: Positions of the activities of a user's file whose events the trace cannot have: see `said_needs`.
    """

    activities: tuple[Activity, ...]
    instances: Instances
    left_out: int
    calls_left_out: int = 0
    unseen: frozenset[int] = frozenset()

    @property
    def overrun_cycles(self) -> _Ints:
        """Cycles by which each instance exceeds its deadline, int64 (n,); -1 if it is met or events are missing."""
        instances = self.instances
        deadlines = np.array([activity.deadline_cycles for activity in self.activities], np.int64)
        deadline = deadlines[instances.activity]
        late = instances.response_cycles - deadline
        return np.where((deadline > 0) & (late > 0) & instances.is_known, late, -1)

    def named(self, text: str) -> int:
        """Return the position of the activity named `text`, else of the only activity whose name contains `text`.

        Raises:
            UsageError: No activity fits, or several do.
        """
        return activity_named(text, [(activity.name, activity.trigger) for activity in self.activities])


def activity_named(text: str, activities: Sequence[tuple[str, str]]) -> int:
    """Return the position of the activity named `text`, else of the only activity whose name contains `text`.

    Spans between two events count only if no other activity fits, because their names contain the thread's name.

    Raises:
        UsageError: No activity fits, or several do.
    """
    names = [name for name, _ in activities]
    fits = [names.index(text)] if text in names else named_by(text, names) if text else []
    fits = [number for number in fits if activities[number][1] not in ENCLOSED] or fits
    if len(fits) == 1:
        return fits[0]
    meant = listed([names[number] for number in fits] or names, _MOST_NAMES)
    known = f"{'it may be' if fits else 'there are'} {meant}" if meant else "the trace has none"
    raise UsageError(f"{text[:60]!r} names {'several activities' if fits else 'no activity'}; {known}")


@dataclass(frozen=True, slots=True)
class _TriggeredWork:
    """Instances of work with one kind of trigger.

    Instances with the same `group` may become an activity.
    """

    trigger: str  # kind of the trigger, one word
    group: _Ints  # group of each instance
    instances: Instances
    labels: Mapping[int, str] = field(default_factory=dict)  # label of each group, put after the name of its thread


def activities(trace: Trace, timing: Mapping[str, Timing] | None = None) -> Activities:
    """Return the activities of a trace: learned ones, and those that a user's file defines.

    Args:
        trace: The events.
        timing: Result of `read_timing`.

    Raises:
        UsageError: An expression is wrong, no learned activity has the name of an entry without expressions, or two
            entries name one activity.
    """
    learned = trace.cached(f"analysis.activities {described_pairs(trace)}", _learned)
    return _with_said(trace, learned, timing) if timing else learned


def _learned(trace: Trace) -> Activities:
    by_pulse = _of_pulses(trace)
    is_woken = np.zeros(len(trace.threads), np.bool_)  # a thread that is woken by pulses may sleep within its work
    for members in _groups(by_pulse):
        is_woken[by_pulse.instances.thread[members]] = True
    enclosed = spans(trace)
    parts = [by_pulse, _of_messages(trace)]
    parts += [_of_waits(trace, words, value, is_woken) for words, value in (("sleep", NANOSLEEP), ("interrupt", _INTR))]
    parts += [_of_spans(trace, kind) for kind in enclosed]
    groups = [(part, members) for part in parts for members in _groups(part)]
    left_out = max(0, len(groups) - MOST_ACTIVITIES)
    if left_out:
        groups.sort(key=lambda group: -len(group[1]))
        del groups[MOST_ACTIVITIES:]
    learned = list[Activity]()
    orders = [members[stable_order(part.instances.start_row[members])] for part, members in groups]
    instances = _put_together([part for part, _ in groups], orders)
    edges = np.cumsum([0, *map(len, orders)])
    for (part, _), name, begin, stop in zip(groups, _names(trace, groups), edges[:-1], edges[1:], strict=True):
        instances.activity[begin:stop] = len(learned)
        period = regular_period(trace, instances.start_row[begin:stop]) or -1
        deadline = -1 if part.trigger in CALLED else period
        learned.append(Activity(name, part.trigger, _usual(instances.thread[begin:stop]), period, False, deadline,
                                "period" if deadline > 0 else ""))  # fmt: skip
    return Activities(tuple(learned), instances, left_out, sum(kind.left_out for kind in enclosed))


def _put_together(parts: Sequence[_TriggeredWork], orders: Sequence[NDArray[np.intp]]) -> Instances:
    """Return instances of several kinds of work, each in its own order, one after the other; `activity` is not set."""
    edges = np.cumsum([0, *map(len, orders)])
    columns = []
    for column in fields(Instances):
        joined = np.empty(edges[-1], np.bool_ if column.name.startswith("is_") else np.int64)
        for part, order, begin, stop in zip(parts, orders, edges[:-1], edges[1:], strict=True):
            if column.name != "activity":
                getattr(part.instances, column.name).take(order, out=joined[begin:stop], mode="clip")  # without a copy
        columns.append(joined)
    return Instances(*columns)


def _groups(part: _TriggeredWork) -> list[NDArray[np.intp]]:
    """Return the positions in `part` of each group of at least `LEAST_INSTANCES` instances, intp (k,) each."""
    groups, which = distinct(part.group)
    ends = np.cumsum(np.bincount(which, minlength=len(groups)))
    return [own for own in np.split(stable_order(which), ends[:-1]) if len(own) >= LEAST_INSTANCES]


def regular_period(
    trace: Trace, rows: NDArray[np.integer], least: float = LEAST_PERIODS, regular_percent: float = REGULAR_PERCENT,
    tolerance_percent: float = TOLERANCE_PERCENT,
) -> int:  # fmt: skip
    """Return the period of some events in cycles; 0 if they are not regular.

    Args:
        trace: The events.
        rows: (n,), ascending.
        least: Minimum number of periods from which the period is learned.
        regular_percent: Minimum percentage of periods that must differ little from the median of all periods.
        tolerance_percent: Maximum of that difference, in percent of the median.
    """
    gaps = np.diff(trace.events.time_cycles[rows])[is_whole(trace, rows[:-1], rows[1:])]
    if len(gaps) < least:
        return 0
    period = int(np.median(gaps))
    is_regular = np.abs(gaps - period) <= period * tolerance_percent / 100
    return period if np.count_nonzero(is_regular) >= len(gaps) * regular_percent / 100 else 0


def _joined(parts: Sequence[Instances]) -> Instances:
    row, flag = np.empty(0, np.int64), np.empty(0, np.bool_)
    none = Instances(row, row, row, row, row, row, row, flag, flag, flag)
    return Instances.concatenated((none, *parts))


def _usual(threads: _Ints) -> int:
    """Return the row of the thread that occurs most often; 0 if all threads are unknown."""
    known = threads[threads > 0]
    return int(np.argmax(np.bincount(known))) if len(known) else 0


def _names(trace: Trace, groups: Sequence[tuple[_TriggeredWork, NDArray[np.intp]]]) -> list[str]:
    """Return a name for each activity: its thread's name, with the trigger where that name alone is ambiguous."""
    plain = []
    for part, members in groups:
        thread = _usual(part.instances.thread[members])
        label = part.labels.get(int(part.group[members[0]]), "")
        name = trace.thread_name(thread) if thread else f"nobody ({part.trigger})"
        plain.append(f"{name}: {label}" if label else name)
    seen: dict[str, int] = {}
    out = []
    for name, (part, _) in zip(plain, groups, strict=True):
        has_trigger = plain.count(name) == 1 or name.endswith(f" ({part.trigger})")
        full = name if has_trigger else f"{name} ({part.trigger})"
        seen[full] = seen.get(full, 0) + 1
        out.append(full if seen[full] == 1 else f"{full[:-1]} {seen[full]})")
    return out


def _part(
    trace: Trace, trigger: str, group: _Ints, thread: _Ints, start: _Ints, begin_cycles: _Ints, end: _Ints,
    is_exact: NDArray[np.bool_],
) -> _TriggeredWork:  # fmt: skip
    """Return instances of work, one for each start and end event (-1 = not in the trace) of a thread (0 = unknown)."""
    time, is_open = trace.events.time_cycles, end < 0
    is_known = is_whole(trace, start, np.where(is_open, last_rows(trace, start), end))
    if trigger != "said":  # two events define such an instance, whether its thread is known or not
        is_known &= thread > 0
    end_cycles = np.where(is_open, ends_of_files(trace, start), time[end])
    begin_cycles = np.clip(begin_cycles, time[start], end_cycles)
    instances = Instances(np.zeros(len(start), np.int64), thread, time[start], begin_cycles, end_cycles, start, end,
                          is_open, is_known, is_exact)  # fmt: skip
    return _TriggeredWork(trigger, group, instances)


def _of_pulses(trace: Trace) -> _TriggeredWork:
    """Return work triggered by pulses: from the send until the receiver waits for, or receives, the next pulse."""
    table = messages.pulses(trace)
    rows = rows_of_codes(trace, *(code for code in messages.SENDS if code != DEATH_PULSE))
    link = table.begun_by(rows)
    sent = rows.astype(np.int64)
    received, certainty = np.full(len(sent), -1, np.int64), np.zeros(len(sent), np.uint8)
    is_linked = link >= 0
    certainty[is_linked] = table.certainty[link[is_linked]]
    received[is_linked] = table.to_row[link[is_linked]]
    received[received == OPEN] = -1
    scoid, pid = comm_words(trace, sent)
    group = pid.astype(np.int64) << 32 | scoid
    thread = np.where(received >= 0, trace.events.thread[received], 0).astype(np.int64)
    thread = np.where(thread > 0, thread, _only_of(group, thread))
    lost = np.flatnonzero(~is_linked)
    lost = lost[sent[lost] <= _last_receipts(trace, pid[lost].astype(np.int64))]  # others queue when the trace ends
    thread[lost] = 0  # whether it was received is not known
    begin, end = _served(trace, thread, sent, received)
    return _part(trace, "pulse", group, thread, sent, begin, end, certainty == Certainty.EXACT)


def _last_receipts(trace: Trace, pid: _Ints) -> _Ints:
    """Return the event with which the last pulse of each process was received, int64 (n,); -1 if none was."""
    receipts = rows_of_codes(trace, messages.PULSE_RECEIPT).astype(np.int64)
    processes, last = trace.processes, np.full(len(trace.processes), -1)
    receiver = trace.threads.process[trace.events.thread[receipts]]
    last[processes.rows_of(processes.pid)[receiver]] = receipts  # ascending: the last one stays
    row = processes.rows_of(pid)
    return np.where(row > 0, last[row], -1)


def _only_of(group: _Ints, thread: _Ints) -> _Ints:
    """Return for each element the only known thread of its group, int64 (n,); 0 if there is none, or several."""
    _, which = distinct(group)
    most, least = np.zeros(len(group) + 1, np.int64), np.full(len(group) + 1, np.iinfo(np.int64).max)
    known = thread > 0
    np.maximum.at(most, which[known], thread[known])
    np.minimum.at(least, which[known], thread[known])
    return np.where(most[which] == least[which], most[which], 0)


def _of_messages(trace: Trace) -> _TriggeredWork:
    """Return work on messages, by server process: from the send to the reply, or until the client stops waiting."""
    by_servers = served_messages(trace)
    delivered = np.flatnonzero(by_servers.server_pid > 0)
    group, sent = by_servers.server_pid[delivered], by_servers.send_row[delivered]
    received = by_servers.receive_row[delivered]
    thread = np.maximum(by_servers.server[delivered], 0)
    thread = np.where(thread > 0, thread, _only_of(group, thread))
    begin, _ = _served(trace, thread, sent, received)
    reply, (free,) = by_servers.reply_row[delivered], client_states(trace, sent.astype(np.uint32), FREE)
    end, is_known = np.where(reply >= 0, reply, free), by_servers.certainty[delivered] != Certainty.GUESS
    # Without its client, a message without reply may be answered or not: other replies name no message.
    thread = np.where((end < 0) & (trace.events.thread[sent] == UNKNOWN_THREAD), 0, thread)
    return _part(trace, "message", group, thread, sent, begin, end, is_known)


def _served(trace: Trace, thread: _Ints, sent: _Ints, received: _Ints) -> tuple[_Ints, _Ints]:
    """Return when the work on each message or pulse begins, cycles, and the event that ends it (-1 = none).

    A thread that waited for the message or pulse begins when it is woken. Any other thread begins at the receipt, as it
    works on something else until then. Without a receipt (-1) it is taken to begin at the end of the file.
    """
    time = trace.events.time_cycles
    begin, end = ends_of_files(trace, sent), np.full(len(sent), -1, np.int64)
    arrived = np.flatnonzero(received >= 0)
    arrived = arrived[stable_order(received[arrived])]  # ascending, as searches below need it
    thread, row = thread[arrived], received[arrived].astype(np.uint32)
    receipts = rows_of_codes(trace, messages.RECEIPT, messages.PULSE_RECEIPT)
    by, count = trace.events.thread[receipts].astype(np.int64), len(trace.threads)
    table = np.zeros(LANE_VALUES, np.bool_)
    table[[_RECEIVE, DEAD]] = True
    waits_again = first_that_fits(trace, state_positions(trace, row, thread), thread, table)
    following = links.next_of_number(receipts, by, row + np.uint32(1), thread, count).astype(np.int64)
    over = np.minimum(following, np.where(waits_again < 0, NO_EVENT, waits_again))
    end[arrived] = np.where(over == NO_EVENT, -1, over)
    before = links.last_of_number(receipts, by, row, thread, count).astype(np.int64)
    before[before == NO_EVENT] = -1
    every_wait = waits(trace)
    receives = every_wait.value == _RECEIVE
    key = every_wait.thread[receives].astype(np.int64) << 32 | every_wait.row[receives]
    by_thread = stable_order(thread)
    position = np.empty(len(arrived), np.intp)
    position[by_thread] = positions(key, (thread << 32 | row)[by_thread]) - 1
    woken = np.full(len(arrived), -1, np.int64)
    is_own = position >= 0
    is_own[is_own] = key[position[is_own]] >> 32 == thread[is_own]
    woken[is_own] = every_wait.end_row[receives][position[is_own]]
    waited = (woken > before) & (woken >= sent[arrived]) & (woken <= row)
    begin[arrived] = time[np.where(waited, woken, row)]
    return begin, end


def _of_waits(trace: Trace, trigger: str, value: int, is_woken: NDArray[np.bool_]) -> _TriggeredWork:
    """Return the work from the end of each wait in one state to the next wait in it, of threads that no pulses wake."""
    every_wait = waits(trace)
    ended = (every_wait.end_value == READY) | (every_wait.end_value == RUNNING)
    ended_waits = np.flatnonzero((every_wait.value == value) & ended & ~is_woken[every_wait.thread])
    thread, woken = every_wait.thread[ended_waits].astype(np.int64), every_wait.end_row[ended_waits]
    table = np.zeros(LANE_VALUES, np.bool_)
    table[[value, DEAD]] = True
    end = first_that_fits(trace, state_positions(trace, woken, thread), thread, table)
    start, is_exact = woken.astype(np.int64), np.ones(len(ended_waits), np.bool_)
    if value == _INTR:  # it begins with the interrupt
        table_of_causes = wake_ups(trace)
        link = table_of_causes.ended_by(woken)
        known = link >= 0
        start[known] = table_of_causes.from_row[link[known]]
        is_exact[:] = False  # without its interrupt, it begins only when it is woken
        is_exact[known] = table_of_causes.certainty[link[known]] == Certainty.EXACT
    return _part(trace, trigger, thread, thread, start, trace.events.time_cycles[woken], end, is_exact)


def _of_spans(trace: Trace, kind: Spans) -> _TriggeredWork:
    """Return spans between two events of one thread as work that the first event triggers."""
    begin = kind.begin_row
    thread, time = trace.events.thread[begin].astype(np.int64), trace.events.time_cycles[begin]
    is_exact = np.ones(len(begin), np.bool_)
    part = _part(trace, kind.trigger, kind.group, thread, begin, time, kind.end_row, is_exact)
    return replace(part, labels=kind.labels)


def _with_said(trace: Trace, learned: Activities, timing: Mapping[str, Timing]) -> Activities:
    named, columns = list(learned.activities), [learned.instances]
    unseen, said_by = set[int](), dict[int, str]()
    for name, entry in timing.items():
        if entry.chain:
            continue
        if entry.start:
            group = _said(trace, name, entry)
            group.activity[:] = position = len(named)
            if any(events_need(trace, text).reason(trace) for text in (entry.start, entry.end)):
                group.is_known[:] = False
                unseen.add(position)
            columns.append(group)
            period = regular_period(trace, group.start_row) or -1
            named.append(Activity(name, "said", _usual(group.thread), period, False, -1, ""))
        else:
            position = learned.named(name)
        activity = named[position]
        if (other := said_by.setdefault(position, name)) != name:
            raise UsageError(f"[{other}] and [{name}] of the timing file are one activity: {activity.name}")
        period = bound_cycles(trace, entry.period) if entry.period else activity.period_cycles
        deadline, source = (activity.deadline_cycles, activity.deadline_from)
        if entry.deadline:
            deadline, source = bound_cycles(trace, entry.deadline), "said"
        elif period > 0:
            deadline, source = period, "period"
        named[position] = Activity(name if entry.start else activity.name, activity.trigger, activity.thread, period,
                                  bool(entry.period), deadline, source)  # fmt: skip
    return replace(learned, activities=tuple(named), instances=_joined(columns), unseen=frozenset(unseen))


def _said(trace: Trace, name: str, entry: Timing) -> Instances:
    """Return the instances of an activity of a user's timing file: from each event of `start` to the next of `end`.

    If every thread with an event of `start` also has one of `end`, each instance ends in its own thread.
    """
    try:
        starts, ends = (select(trace, text).astype(np.int64) for text in (entry.start, entry.end))
    except UsageError as error:
        raise UsageError(f"[{name}] {error}") from error
    by, of = (trace.events.thread[rows].astype(np.int64) for rows in (starts, ends))
    is_by_thread = np.isin(by, of).all()
    key = ends if not is_by_thread else np.sort(of << 32 | ends)
    position = np.searchsorted(key, (starts if not is_by_thread else by << 32 | starts) + 1)
    end = np.full(len(starts), -1, np.int64)
    known = position < len(key)
    if is_by_thread:
        known[known] = key[position[known]] >> 32 == by[known]
    end[known] = key[position[known]] & 0xFFFFFFFF
    thread = by.copy()
    thread[known] = trace.events.thread[end[known]]
    time = trace.events.time_cycles[starts]
    return _part(trace, "said", starts, thread, starts, time, end, np.ones(len(starts), np.bool_)).instances


def said_needs(trace: Trace, timing: Mapping[str, Timing], fields: Collection[str] = ()) -> dict[str, tuple[Need, ...]]:
    """Return, by name of each activity that a user's file defines by expressions, the events that a trace must have.

    With `fields` of `Timing`, only activities whose entry, or whose chain's entry, sets one of these.

    Raises:
        UsageError: An expression is wrong, or a chain names an activity that does not exist.
    """
    names = [name for name, entry in timing.items() if not fields or any(getattr(entry, key) for key in fields)]
    chains = [timing[name].chain for name in names if timing[name].chain]
    if fields and chains:
        learned = activities(trace, timing)
        names += [learned.activities[number].name for text in chains for number in chain_of(learned, text)]
    texts = {name: [timing[name].start] + [timing[name].end] * (tuple(fields) != ("period",))
             for name in names if name in timing and timing[name].start}  # fmt: skip
    return {name: tuple(events_need(trace, text) for text in own) for name, own in texts.items()}


def lacks(trace: Trace, needs: Mapping[str, Sequence[Need]]) -> list[str]:
    """Return a text for each activity with unmet needs, with the reasons and a remedy: `NAME: REASON; REMEDY`."""
    unmet = {name: [need for need in own if need.reason(trace)] for name, own in needs.items()}
    reasons = {name: " and ".join(dict.fromkeys(need.reason(trace) for need in own)) for name, own in unmet.items()}
    return ["; ".join(filter(None, (f"{name}: {reasons[name]}", own[0].remedy_for(trace))))
            for name, own in unmet.items() if own]  # fmt: skip


# Chains: sequences of activities, each of which continues the work of the one before.


@dataclass(frozen=True, slots=True)
class ChainTimes:
    """Times of a chain, one row per instance of its first activity (reactions) or last (ages); columns (n,).

    Attributes:
        start_cycles: int64, when the instance of the first activity was triggered.
        end_cycles: int64, when the instance of the last activity was done; the end of the trace if it is not done.
        start_row: int64, the event that triggered the instance of the first activity.
        is_open: bool, the chain is not done when the trace ends.
        is_known: bool, no event is missing between start and end.
        steps: int64 (n, activities of the chain), the instance of each activity; -1 = the chain does not reach it.
    """

    start_cycles: _Ints
    end_cycles: _Ints
    start_row: _Ints
    is_open: NDArray[np.bool_]
    is_known: NDArray[np.bool_]
    steps: _Ints

    def __len__(self) -> int:
        return len(self.start_cycles)

    @property
    def length_cycles(self) -> _Ints:
        """Times from start to end, int64 (n,)."""
        return self.end_cycles - self.start_cycles


def chain_of(learned: Activities, text: str) -> tuple[int, ...]:
    """Return the positions of the activities that a chain, such as `camera > control`, names.

    Raises:
        UsageError: The text names fewer than two activities, or an unknown one.
    """
    names = [name.strip() for name in text.split(">")]
    if len(names) < 2:
        raise UsageError(f"{text[:60]!r} is not a chain; write it as camera > control")
    return tuple(learned.named(name) for name in names)


def reactions(trace: Trace, learned: Activities, chain: Sequence[int]) -> ChainTimes:
    """Return the time from each trigger of the first activity to the first response of the last one.

    An instance leads to the instance of the next activity that it triggers, or else to the first one that begins after
    it is done. This is the reaction of an event chain in the AUTOSAR timing extensions.
    """
    positions, parts = _parts_of(learned, chain)
    first_part, steps = parts[0], [np.arange(len(parts[0]))]
    for one, other in itertools.pairwise(parts):
        steps.append(_followed(steps[-1], _next_of(trace, one, other)))
    is_missing = steps[-1] < 0
    last = parts[-1].taken(np.maximum(steps[-1], 0)) if len(parts[-1]) else first_part
    if not learned.unseen.isdisjoint(chain):  # it may have gone on
        first_part = replace(first_part, is_known=first_part.is_known & ~is_missing)
    return _chain_times(trace, first_part, last, is_missing, (positions, steps))


def ages(trace: Trace, learned: Activities, chain: Sequence[int]) -> ChainTimes:
    """Return the age of the input (the trigger of the first activity) each time the last activity is done.

    The input of an instance comes from the previous activity's instance that triggers it, or else from the last one
    that was done when the instance began. Instances without input, as at the start of a trace, are left out.
    """
    positions, parts = _parts_of(learned, chain)
    last, steps = parts[-1], [np.arange(len(parts[-1]))]
    for one, other in itertools.pairwise(reversed(parts)):
        steps.insert(0, _followed(steps[0], _input_of(trace, other, one)))
    answered = np.flatnonzero((steps[0] >= 0) & ~last.is_open)
    steps = [step[answered] for step in steps]
    return _chain_times(
        trace, parts[0].taken(steps[0]), last.taken(answered), np.zeros(len(answered), np.bool_), (positions, steps)
    )


def _parts_of(learned: Activities, chain: Sequence[int]) -> tuple[list[NDArray[np.intp]], list[Instances]]:
    """Return for each activity of a chain the indices of its instances in `learned.instances`, and these instances."""
    positions = [np.flatnonzero(learned.instances.activity == number) for number in chain]
    return positions, [learned.instances.taken(own) for own in positions]


def _chain_times(
    trace: Trace, first_part: Instances, last: Instances, is_missing: NDArray[np.bool_],
    steps: tuple[list[NDArray[np.intp]], list[_Ints]],
) -> ChainTimes:  # fmt: skip
    is_open = is_missing | last.is_open
    end_row = np.where(is_open, last_rows(trace, first_part.start_row), last.end_row)
    end_cycles = np.where(is_open, ends_of_files(trace, first_part.start_row), last.end_cycles)
    is_known = is_whole(trace, first_part.start_row, end_row) & first_part.is_known
    gone_through = np.stack([_followed(step, own) for own, step in zip(*steps, strict=True)], axis=1)
    return ChainTimes(first_part.start_cycles, end_cycles, first_part.start_row, is_open, is_known, gone_through)


def _followed(position: _Ints, following: _Ints) -> _Ints:
    """Return `following[position]`; -1 where the position is -1; both int64 (n,)."""
    out = np.full(len(position), -1, np.int64)
    known = position >= 0
    out[known] = following[position[known]]
    return out


def _triggered(trace: Trace, one: Instances, other: Instances) -> _Ints:
    """Return for each instance of `one` the first of `other` whose start event its thread logs meanwhile; -1 = none."""
    key = trace.events.thread[other.start_row].astype(np.int64) << 32 | other.start_row
    order = stable_order(key)
    begin = np.searchsorted(trace.events.time_cycles, one.begin_cycles)
    position = np.searchsorted(key[order], one.thread << 32 | begin)
    last = one.thread << 32 | np.where(one.end_row < 0, len(trace.events), one.end_row)
    out = np.full(len(one), -1, np.int64)
    known = np.flatnonzero((position < len(key)) & (one.thread > 0))
    known = known[key[order][position[known]] <= last[known]]
    out[known] = order[position[known]]
    return out


def _next_of(trace: Trace, one: Instances, other: Instances) -> _Ints:
    out = _triggered(trace, one, other)
    order = stable_order(other.begin_cycles)
    position = np.searchsorted(other.begin_cycles[order], one.end_cycles)
    later = np.append(order, -1)[position]
    return np.where((out < 0) & ~one.is_open, later, out)


def _input_of(trace: Trace, one: Instances, other: Instances) -> _Ints:
    out = np.full(len(other), -1, np.int64)
    done = np.flatnonzero(~one.is_open)
    order = done[stable_order(one.end_cycles[done])]
    position = np.searchsorted(one.end_cycles[order], other.begin_cycles, side="right") - 1
    out[position >= 0] = order[position[position >= 0]]
    triggered = _triggered(trace, one, other)
    known = np.flatnonzero(triggered >= 0)
    out[triggered[known]] = known
    return out
