"""From a state as plain values to an open trace: the same one, or another that has what the names say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import numpy as np

from satview.base.time import TimeWindow
from satview.events.wire import CODE_COUNT
from satview.session.filtering.filter_state import FilterState
from satview.session.lanes.lane_arrangement import GroupBy, SortBy
from satview.session.lanes.remap import LaneKey, lane_keys
from satview.session.name_patterns import Fits, fits_name
from satview.session.open_trace import OpenTrace
from satview.session.take_state import owner_of_lane, owner_of_thread
from satview.session.workspace_state import FilterPart, LanesState, OwnerName, SelectionState, ViewState
from satview.store.trace import Trace
from satview.timeline.lane_info import LaneKind

_MOST_NS: Final = 1 << 62
Keys = Callable[[LaneKey], tuple[LaneKey, ...]]


def put_view(opened: OpenTrace, state: ViewState, is_same: bool, is_first: bool = False) -> None:
    """Show a part of the trace; nothing changes where the trace has no such part.

    Args:
        opened: The trace.
        state: The part.
        is_same: It is the trace that the state was taken of; else times count from the start.
        is_first: Nothing shows yet, so there is nothing to go back to.
    """
    viewport, clock = opened.viewport, opened.trace.clock
    show = viewport.begin_at if is_first else viewport.jump
    if state.is_whole:
        show(viewport.limits)
        return
    window = TimeWindow(state.start_cycles, state.end_cycles)
    if not is_same:
        if max(abs(state.start_ns), abs(state.end_ns)) > _MOST_NS or state.end_ns <= state.start_ns:
            return
        start = clock.cycles(state.start_ns)
        window = TimeWindow(start, max(clock.cycles(state.end_ns), start + 1))
    limits = viewport.limits
    if window.end <= limits.start or window.start >= limits.end:
        return
    if viewport.width_px <= 1:  # nothing is drawn yet: the window begins at the pixels that it had
        viewport.set_width(state.width_px)
    show(window)


def put_selection(opened: OpenTrace, state: SelectionState) -> None:
    """Select what was selected in the same trace; an interval only of a lane that is built."""
    limits, events = opened.viewport.limits, len(opened.trace.events)
    event = state.event if state.event is not None and 0 <= state.event < events else None
    lane = next(iter(_indices(opened, [state.lane])), None) if state.lane is not None else None
    span = None
    has_span = lane is not None and state.span_start is not None and limits.contains(state.span_start)
    if lane is not None and state.span_start is not None and has_span and opened.timeline.is_ready(lane):
        span = opened.timeline.lane(lane).at(state.span_start)
    opened.selection.select(event, lane, span, state.is_interval)
    if state.range_start is not None and state.range_end is not None and state.range_end > state.range_start:
        opened.selection.set_range(TimeWindow(state.range_start, state.range_end))
    opened.selection.set_cursors(state.cursor_a, state.cursor_b)


def put_lanes(opened: OpenTrace, state: LanesState, is_same: bool, is_first: bool = False) -> None:
    """Arrange lanes; sorted and grouped again where the trace is another one.

    Args:
        opened: The trace.
        state: The arrangement.
        is_same: As of `put_view`.
        is_first: Nothing shows yet, so there is nothing to undo.

    Raises:
        UsageError: A pattern of names is faulty.
    """
    lanes, now = opened.lanes, state.arrangement
    find: Keys = (lambda key: (key,)) if is_same else NameFinder(opened, state.names).lanes

    def found(keys: Iterable[LaneKey]) -> tuple[LaneKey, ...]:
        return tuple(dict.fromkeys(other for key in keys for other in find(key)))

    turned = {key for key in found(state.open) if not lanes.opens_at_first(key)}
    turned |= {key for key in found(state.closed) if lanes.opens_at_first(key)}
    arrangement = replace(
        now,
        turned=frozenset(turned),
        hidden=frozenset(found(now.hidden)) | (frozenset() if is_same else lanes.arrangement.hidden),
        pinned=found(now.pinned),
        order=found(now.order),
    )
    if not is_same:
        arrangement = replace(arrangement, group=GroupBy.PROCESS, groups=(), sort=SortBy.TRACE)
    if is_first:
        lanes.begin_with(opened.begun_with(arrangement), opened.viewport.window)
    else:
        lanes.arrange(arrangement, opened.viewport.window, "session")
    if is_same:
        return
    if now.sort is not SortBy.TRACE:
        opened.sort_lanes(now.sort)
    if now.group is not GroupBy.PROCESS:
        opened.group_lanes(now.group, now.patterns)


def put_filter(opened: OpenTrace, part: FilterPart, is_same: bool, is_first: bool = False) -> None:
    """Put a filter in force. Python files that its rules name are not run; the panel requests leave before it does so.

    Args:
        opened: The trace.
        part: The filter.
        is_same: As of `put_view`.
        is_first: As of `put_lanes`.

    Raises:
        UsageError: A pattern of names is faulty.
    """
    codes = np.ones(CODE_COUNT, np.bool_)
    for first, last in part.hidden_codes:
        codes[first : last + 1] = False
    threads = np.full(len(opened.trace.threads), not part.shows)
    rows = _same_rows(opened.trace, part) if is_same else NameFinder(opened, {}).threads(part)
    threads[list(rows)] = part.shows
    if part.shows and not threads.any():  # nothing that it names is here: rather all than nothing
        threads[:] = True
    state = FilterState(codes, threads, part.effect, part.stack, MappingProxyType(dict(part.is_wide)))
    if is_first:
        opened.filters.begin_with(state)
    else:
        opened.filters.put(state, "session")


class NameFinder:
    """Finds what names mean in another trace.

    Args:
        opened: The other trace.
        names: Names of lanes.
    """

    def __init__(self, opened: OpenTrace, names: dict[LaneKey, OwnerName]) -> None:
        self._names, self._trace = names, opened.trace
        self._keys = lane_keys(opened.timeline)
        self._owners = [
            (key, key[0], owner_of_lane(opened.trace, info))
            for key, info in zip(self._keys, opened.timeline.infos, strict=True)
        ]

    def lanes(self, key: LaneKey) -> tuple[LaneKey, ...]:
        """Return the lanes that a name of a lane means: one with the same numbers and name, else all of that name."""
        kind, cpu, pid, tid = key
        name = self._names.get(key)
        has_owner = kind in (LaneKind.PROCESS, LaneKind.THREAD) or (":" in kind and pid > 0)
        if not has_owner or name is None:
            return tuple(other for other in self._keys if other[:2] == (kind, cpu) and kind == other[0])
        fits = _fits_owner(name, kind == LaneKind.THREAD or (":" in kind and tid > 0))
        found = [(other, owner) for other, its_kind, owner in self._owners if its_kind == kind and fits(owner)]
        exact = [other for other, owner in found if owner == name]
        return tuple(exact or (other for other, _ in found))

    def threads(self, part: FilterPart) -> set[int]:
        """Return the rows of the thread table that a filter names."""
        owners = [owner_of_thread(self._trace, row) for row in range(len(self._trace.threads))]
        found: set[int] = set()
        for row, name in part.threads:
            if row == 0:  # the thread that is not known
                found.add(0)
                continue
            fits = _fits_owner(name, is_thread=True)
            found.update(index for index, owner in enumerate(owners) if index and fits(owner))
        return found


def _fits_owner(name: OwnerName, is_thread: bool) -> Callable[[OwnerName], bool]:
    """Return a test whether a process or thread is meant: by name, by number where it has none."""
    process: Fits = fits_name(name.process)
    thread: Fits = fits_name(name.thread)

    def fits(other: OwnerName) -> bool:
        if name.process and not process(other.process):
            return False
        if not name.process and (other.process or other.pid != name.pid):
            return False
        if not is_thread:
            return True
        return thread(other.thread) if name.thread else not other.thread and other.tid == name.tid

    return fits


def _same_rows(trace: Trace, part: FilterPart) -> set[int]:
    table = trace.threads
    return {
        row
        for row, name in part.threads
        if row < len(table) and (int(table.pid[row]), int(table.tid[row])) == (name.pid, name.tid)
    }


def _indices(opened: OpenTrace, keys: Iterable[LaneKey]) -> list[int]:
    index_of = {key: index for index, key in enumerate(lane_keys(opened.timeline))}
    return [index_of[key] for key in keys if key in index_of]
