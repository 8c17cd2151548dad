"""Functions that find the intervals, moments and numbers of each lane class in a whole trace, when first shown.

No interval crosses a range in which events are missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core.ordering import stable_order
from satview.events import wire
from satview.events.states import WAITING
from satview.linkage.rows import nested_pairs, rows_of_class, rows_of_codes, rows_where
from satview.linkage.table import OPEN, LinkKind
from satview.linkage.trace_links import link_table
from satview.linkage.whole import is_whole
from satview.store.arguments import argument, argument_under
from satview.store.axis import by_file, files_of
from satview.store.losses import losses
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace
from satview.timeline.lane_classes import LANE_CLASS_BY_NAME, LaneClass, Owner
from satview.timeline.tracks.track import Rows, TrackRows, hues
from satview.timeline.tracks.user import UserLanes, user_lanes

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
        newest = _last_of_each(trace.events.thread[rows], rows)
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

    The exit of a call that has not returned when the trace ends is `OPEN`.
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
    without = np.ones(len(rows), np.bool_)
    without[entries] = False
    waiting = rows[np.flatnonzero(without & (step > 0))]
    return _with_open(trace, rows[entries], rows[exits], waiting)


def guests(trace: Trace, lane_class: LaneClass, _user: UserLanes) -> list[TrackRows]:
    """Return when threads of virtual CPUs ran their guests, and the other guest events."""
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

    The first mode holds from the start of the trace, as the power manager logs the mode of every CPU when tracing
    begins. Source: format description, system event 15.
    """
    rows, bits, mode = _power(trace)
    changes = np.flatnonzero(bits & (_POWER_IDLE | _POWER_START) == 0)
    cpu, start = (bits[changes] & _POWER_CPU).astype(np.int64), trace.events.time_cycles[rows[changes]].copy()
    _, earliest = np.unique(cpu, return_index=True)
    start[earliest] = trace.window.start
    value = hues(np.full(len(changes), _FREQUENCY_HUE))
    return [TrackRows(Owner.CPU, cpu, start, start, rows[changes], value, lane_class.title,
                      number=mode[changes].astype(np.float64), text="mode {mode}")]  # fmt: skip


def idle_modes(trace: Trace, lane_class: LaneClass, _user: UserLanes) -> list[TrackRows]:
    """Return when CPUs sleep: from an entry to an idle mode to the CPU's next idle event, be it an exit or an entry."""
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
    """Return the rows of the events of a class, ascending."""
    if trace.pairs is not None:  # a format with codes of its own
        return np.empty(0, np.uint32)
    table = np.zeros(wire.CODE_COUNT, np.bool_)
    table[list(codes)] = True
    return rows_where(trace, table)


def _owners(trace: Trace, rows: Rows, owner_kind: Owner) -> NDArray[np.integer]:
    """Return the owner of each event: its CPU, its thread, or the process in its argument `pid`, else of its thread."""
    if owner_kind is Owner.CPU:
        return trace.events.cpu[rows]
    if owner_kind is Owner.THREAD:
        return trace.events.thread[rows]
    pid, known = argument(trace, rows, "pid")
    named = np.where(known, trace.processes.rows_of(pid), 0)
    return np.where(named > 0, named, trace.threads.process[trace.events.thread[rows]])


def _parts(trace: Trace, rows: Rows, owner: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the part number of each event; a part ends with the owner or at a loss; `rows` are sorted by owner."""
    lost = np.sort(losses(trace)[:, 1])
    before = np.searchsorted(lost, trace.events.time_cycles[rows], side="right")
    changes = np.ones(len(rows), np.bool_)
    changes[1:] = (owner[1:] != owner[:-1]) | (before[1:] != before[:-1])
    return np.asarray(np.cumsum(changes) - 1)


def _last_of_each(owner: NDArray[np.integer], rows: Rows) -> Rows:
    """Return the last row of every owner; rows ascend."""
    last = np.full(int(owner.max(initial=0)) + 1, -1, np.int64)
    last[owner] = rows
    return last[last >= 0].astype(np.uint32)


def _with_open(trace: Trace, begin: Rows, over: Rows, waiting: Rows) -> tuple[Rows, Rows]:
    """Return begins and ends, extended by those begins of `waiting` that have no end before the trace ends (OPEN)."""
    if not len(waiting):
        return begin, over
    end = np.full(len(waiting), len(trace.events) - 1, np.uint32)
    waiting = waiting[is_whole(trace, waiting, end)]
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
    """Return the intervals between two events each; those without an end last until the trace ends."""
    time = trace.events.time_cycles
    end = np.full(len(over), trace.window.end, np.int64)
    end[over != OPEN] = time[over[over != OPEN]]
    start = time[begin]
    # An interval without length still shows.
    end = np.maximum(end, start + 1)
    return TrackRows(lane_class.owner_kind, owner.astype(np.int64), start, end, begin, value, lane_class.title)


def _nothing(_trace: Trace, _lane_class: LaneClass, _user: UserLanes) -> list[TrackRows]:
    return []


_FINDERS: Final[dict[str, Finder]] = {
    finder.__name__: finder
    for finder in (moments, calls, handlers, functions, guests, frequencies, idle_modes, user_events)
}


def finder_of(lane_class: LaneClass) -> Finder:
    """Return the function that finds the content of a lane class, or one that finds nothing if a higher layer does."""
    return _FINDERS.get(lane_class.finder, _nothing)
