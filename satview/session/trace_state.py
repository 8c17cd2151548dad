"""Converts an open trace to a storable state, and applies such a state to the same or another trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Final, TypeVar

import numpy as np

from satview.base.errors import UsageError
from satview.base.time import TimeWindow
from satview.events.wire import CODE_COUNT
from satview.session import workspace_file
from satview.session.filter_stack import FilterState
from satview.session.lanes.lane_arrangement import GroupBy, LaneArrangement, LaneGroup, SortBy, labels_in
from satview.session.lanes.lane_list import LaneList
from satview.session.lanes.lane_row import LaneKey, lane_keys
from satview.session.lanes.lane_sorter import Fits, fits_name
from satview.session.open_trace import OpenTrace
from satview.store.trace import Trace
from satview.timeline.lane_info import LaneKind
from satview.timeline.lane_tree import LaneInfo

# From an open trace to its state.


def view_state(opened: OpenTrace, scroll_px: int) -> workspace_file.ViewState:
    """Return the visible part of a trace, time range and top lane below `scroll_px`, in the form to be stored."""
    viewport, clock = opened.viewport, opened.trace.clock
    window = viewport.window
    top = opened.lanes.row_at(scroll_px) or next(iter(opened.lanes.rows_between(scroll_px, scroll_px + 100)), None)
    key = lane_keys(opened.timeline)[top.index] if top is not None and scroll_px else None
    above_px = max(0, scroll_px - top.y_px) if top is not None and scroll_px else 0
    start_ns, end_ns = clock.ns(window.start), clock.ns(window.end)
    return workspace_file.ViewState(
        window.start, window.end, start_ns, end_ns, viewport.width_px, key, above_px, viewport.is_whole
    )


def selection_state(opened: OpenTrace) -> workspace_file.SelectionState:
    """Return the selection in the form to be stored."""
    selection = opened.selection
    lane = None if selection.lane is None else lane_keys(opened.timeline)[selection.lane]
    start, end = (
        (selection.time_range.start, selection.time_range.end) if selection.time_range is not None else (None, None)
    )
    span = selection.span.start_cycles if selection.span is not None else None
    return workspace_file.SelectionState(
        selection.event, lane, span, selection.is_interval, start, end, selection.cursor_a, selection.cursor_b
    )


def lanes_state(lanes: LaneList) -> workspace_file.LanesState:
    """Return the arrangement of the lanes, with pid, tid and names of the thread or process of each lane."""
    arrangement = lanes.arrangement
    named = {
        *arrangement.turned,
        *arrangement.hidden,
        *arrangement.pinned,
        *arrangement.order,
        *(key for group in arrangement.groups for key in group.members),
    }
    index_of = {key: index for index, key in enumerate(sorted(named))}
    owners = {
        key: owner_of_lane(lanes.timeline.trace, info)
        for key, info in zip(lane_keys(lanes.timeline), lanes.timeline.infos, strict=True)
        if key in named
    }

    def rows(keys: Iterable[LaneKey]) -> tuple[int, ...]:
        return tuple(sorted(index_of[key] for key in keys))

    return workspace_file.LanesState(
        tuple(_owned(key, owners.get(key, workspace_file.OwnerName())) for key in index_of),
        open=rows(key for key in arrangement.turned if lanes.is_open(key)),
        closed=rows(key for key in arrangement.turned if not lanes.is_open(key)),
        hidden=rows(arrangement.hidden),
        pinned=tuple(index_of[key] for key in arrangement.pinned),
        hides_empty=arrangement.hides_empty,
        sort=arrangement.sort,
        order=tuple(index_of[key] for key in arrangement.order),
        group=arrangement.group,
        patterns=arrangement.patterns,
        groups=tuple(workspace_file.GroupState(group.title, rows(group.members)) for group in arrangement.groups),
        closed_groups=tuple(sorted(arrangement.closed)),
        classes=tuple(sorted(arrangement.classes)),
        labels=tuple(sorted(arrangement.labels)),
        shows_kinds=arrangement.shows_kinds,
    )


def _owned(key: LaneKey, owner: workspace_file.OwnerName) -> workspace_file.OwnedLane:
    kind, cpu, pid, tid = key
    return workspace_file.OwnedLane(pid, tid, owner.process, owner.thread, kind, cpu)


def filter_state(trace: Trace, state: FilterState) -> workspace_file.FilterPart:
    """Return a filter in its stored form, with pid, tid and names of the threads that are checked or unchecked."""
    shows = np.count_nonzero(state.threads) * 2 < len(state.threads)
    rows = np.flatnonzero(state.threads if shows else ~state.threads).tolist()
    threads = tuple(workspace_file.OwnedThread(**asdict(owner_of_thread(trace, row)), row=row) for row in rows)
    forms = tuple(workspace_file.CodeForm(code, is_wide) for code, is_wide in sorted(state.is_wide.items()))
    codes, stack = _ranges(np.flatnonzero(~state.codes)), state.stack
    return workspace_file.FilterPart(codes, bool(shows), threads, state.effect, stack.passes, stack.combination, forms)


def owner_of_thread(trace: Trace, row: int) -> workspace_file.OwnerName:
    """Return pid, tid and names of a row of the thread table."""
    table = trace.threads
    process = trace.processes.names[int(table.process[row])].rsplit("/", 1)[-1]
    return workspace_file.OwnerName(int(table.pid[row]), int(table.tid[row]), process, table.names[row])


def owner_of_lane(trace: Trace, info: LaneInfo) -> workspace_file.OwnerName:
    """Return pid, tid and names of the thread or process of a lane."""
    if info.thread:
        return owner_of_thread(trace, info.thread)
    name = trace.processes.names[info.process].rsplit("/", 1)[-1] if info.process else ""
    return workspace_file.OwnerName(int(trace.processes.pid[info.process]), -1, name, "")


def _ranges(numbers: np.ndarray[tuple[int], np.dtype[np.intp]]) -> tuple[workspace_file.CodeRange, ...]:
    """Return the first and last number of each run of consecutive numbers; `numbers` ascend."""
    if not len(numbers):
        return ()
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    firsts, lasts = numbers[np.append(0, breaks + 1)], numbers[np.append(breaks, len(numbers) - 1)]
    return tuple(map(workspace_file.CodeRange, firsts.tolist(), lasts.tolist()))


# Sessions that are saved under a name: parts of a state, with name patterns for other traces.


_Owner = TypeVar("_Owner", bound=workspace_file.OwnerName)
PARTS = {
    "lanes": "Lanes: folded, hidden, pinned, order, groups",
    "filter": "Filter",
    "panels": "Panels and what they show",
    "view": "Part of the trace, from its start",
}


def names_in(state: workspace_file.WorkspaceState) -> tuple[str, ...]:
    """Return the names of processes and threads in a state, each once, sorted."""
    owners: list[workspace_file.OwnerName] = [] if state.lanes is None else list(state.lanes.lanes)
    owners += [] if state.filter is None else state.filter.threads
    names = {name for owner in owners for name in (owner.process, owner.thread) if name}
    return tuple(sorted(names, key=str.casefold))


def session_of(
    state: workspace_file.WorkspaceState, parts: frozenset[str], patterns: Mapping[str, str]
) -> workspace_file.WorkspaceState:
    """Return those parts (keys of `PARTS`) of a window's state that are saved as a session, for other traces too.

    Patterns replace the names of processes and threads that they are given for.

    Raises:
        UsageError: A pattern is faulty.
    """
    for pattern in patterns.values():
        fits_name(pattern)
    lanes = state.lanes if "lanes" in parts else None
    part = state.filter if "filter" in parts else None
    panels = state.panels
    if panels is not None:  # the state of the event list holds an event of this trace
        panels = replace(panels, values={name: shown for name, shown in panels.values.items() if name != "events"})
    return workspace_file.WorkspaceState(
        view=state.view if "view" in parts else None,
        lanes=lanes and replace(lanes, lanes=_renamed(lanes.lanes, patterns)),
        filter=part and replace(part, threads=_renamed(part.threads, patterns)),
        panels=panels if "panels" in parts else None,
    )


def _renamed(owners: Iterable[_Owner], patterns: Mapping[str, str]) -> tuple[_Owner, ...]:
    def named(name: str) -> str:
        return patterns.get(name, name)

    return tuple(replace(owner, process=named(owner.process), thread=named(owner.thread)) for owner in owners)


def check_name(name: str) -> str:
    """Return the name of a session without surrounding blanks.

    Raises:
        UsageError: The name is empty.
    """
    if not name.strip():
        raise UsageError("write a name for the session")
    return name.strip()


_MOST_NS: Final = 1 << 62


def restore_view(opened: OpenTrace, state: workspace_file.ViewState, is_same: bool, is_first: bool = False) -> None:
    """Show the stored part of the trace; nothing changes if the trace has no such part.

    Args:
        opened: The trace.
        state: The stored part.
        is_same: True if the state was taken from this trace; if not, its times count from the start of the trace.
        is_first: True if nothing is shown yet, so that there is no view to go back to.
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
    if viewport.width_px <= 1:  # nothing is drawn yet: use the stored width for whole pixels
        viewport.set_width(state.width_px)
    show(window)


def restore_selection(opened: OpenTrace, state: workspace_file.SelectionState) -> None:
    """Restore the selection in the same trace; an interval only if its lane is built."""
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


def restore_lanes(opened: OpenTrace, state: workspace_file.LanesState, is_same: bool, is_first: bool = False) -> None:
    """Apply an arrangement of lanes; for another trace, lanes are sorted and grouped again.

    Args:
        opened: The trace.
        state: The arrangement.
        is_same: True if the state was taken from this trace, False if from another trace.
        is_first: True if nothing is shown yet, so that there is nothing to undo.

    Raises:
        UsageError: A pattern of names is faulty.
    """
    lanes, finder = opened.lanes, None if is_same else NameFinder(opened)

    def keys(indices: Iterable[int]) -> tuple[LaneKey, ...]:
        owned = [state.lanes[index] for index in indices]
        fitting = (key for lane in owned for key in ((lane.key,) if finder is None else finder.lanes(lane)))
        return tuple(dict.fromkeys(fitting))

    turned = {key for key in keys(state.open) if not lanes.opens_at_first(key)}
    turned |= {key for key in keys(state.closed) if lanes.opens_at_first(key)}
    arrangement = LaneArrangement(
        turned=frozenset(turned),
        hidden=frozenset(keys(state.hidden)) | (frozenset() if is_same else lanes.arrangement.hidden),
        pinned=keys(state.pinned),
        hides_empty=state.hides_empty,
        order=keys(state.order),
        patterns=state.patterns,
        closed=frozenset(state.closed_groups),
        classes=frozenset(state.classes),
        labels=LaneArrangement().labels if state.labels is None else labels_in(",".join(state.labels)),
        shows_kinds=state.shows_kinds,
    )
    if is_same:
        groups = {group.title: LaneGroup(group.title, frozenset(keys(group.members))) for group in state.groups}
        arrangement = replace(arrangement, sort=state.sort, group=state.group, groups=tuple(groups.values()))
    is_sorted = not is_same and state.sort is lanes.arrangement.sort
    if is_sorted:
        arrangement = replace(arrangement, sort=state.sort, order=lanes.arrangement.order)
    if is_first:
        lanes.begin_with(opened.begun_with(arrangement), opened.viewport.window)
    else:
        lanes.arrange(arrangement, opened.viewport.window, "session")
    if is_same:
        return
    if state.sort is not SortBy.TRACE and not is_sorted:
        opened.sort_lanes(state.sort)
    if state.group is not GroupBy.PROCESS:
        opened.group_lanes(state.group, state.patterns)


def restore_filter(opened: OpenTrace, part: workspace_file.FilterPart, is_same: bool, is_first: bool = False) -> None:
    """Apply a filter. Python files that its rules name are not run until the panel has asked the user.

    Args:
        opened: The trace.
        part: The filter.
        is_same: True if the state was taken from this trace, False if from another trace.
        is_first: True if nothing is shown yet, so that there is nothing to undo.

    Raises:
        UsageError: A pattern of names is faulty.
    """
    codes = np.ones(CODE_COUNT, np.bool_)
    for hidden in part.hidden_codes:
        codes[hidden.first : hidden.last + 1] = False
    threads = np.full(len(opened.trace.threads), not part.shows)
    rows = _same_rows(opened.trace, part) if is_same else NameFinder(opened).threads(part)
    threads[list(rows)] = part.shows
    if part.shows and not threads.any():  # no thread it names is here: show all rather than none
        threads[:] = True
    is_wide = MappingProxyType({form.code: form.is_wide for form in part.forms})
    state = FilterState(codes, threads, part.effect, part.stack(), is_wide)
    if is_first:
        opened.filters.begin_with(state)
    else:
        opened.filters.put(state, "session")


class NameFinder:
    """Finds lanes and threads of a trace by the names stored from another trace.

    Args:
        opened: The trace in which lanes and threads are searched for.
    """

    def __init__(self, opened: OpenTrace) -> None:
        self._trace = opened.trace
        self._keys = lane_keys(opened.timeline)
        self._owners = [
            (key, key[0], owner_of_lane(opened.trace, info))
            for key, info in zip(self._keys, opened.timeline.infos, strict=True)
        ]

    def lanes(self, lane: workspace_file.OwnedLane) -> tuple[LaneKey, ...]:
        """Return the lanes with pid, tid and names of a stored lane; if there are none, all that fit the names."""
        kind, cpu, pid, tid = lane.key
        if not (kind in (LaneKind.PROCESS, LaneKind.THREAD) or (":" in kind and pid > 0)):
            return tuple(other for other in self._keys if other[:2] == (kind, cpu))
        fits = _fits_owner(lane, kind == LaneKind.THREAD or (":" in kind and tid > 0))
        lanes = [(other, owner) for other, its_kind, owner in self._owners if its_kind == kind and fits(owner)]
        name = workspace_file.OwnerName(pid, tid, lane.process, lane.thread)
        exact = [other for other, owner in lanes if owner == name]
        return tuple(exact or (other for other, _ in lanes))

    def threads(self, part: workspace_file.FilterPart) -> set[int]:
        """Return the rows of the threads that fit the names in a stored filter."""
        owners = [owner_of_thread(self._trace, row) for row in range(len(self._trace.threads))]
        rows: set[int] = set()
        for thread in part.threads:
            if thread.row == 0:  # the unknown thread
                rows.add(0)
                continue
            fits = _fits_owner(thread, is_thread=True)
            rows.update(index for index, owner in enumerate(owners) if index and fits(owner))
        return rows


def _fits_owner(name: workspace_file.OwnerName, is_thread: bool) -> Callable[[workspace_file.OwnerName], bool]:
    """Return a function that tells whether a process or thread matches stored names, or pid and tid if unnamed."""
    process: Fits = fits_name(name.process)
    thread: Fits = fits_name(name.thread)

    def fits(other: workspace_file.OwnerName) -> bool:
        if name.process and not process(other.process):
            return False
        if not name.process and (other.process or other.pid != name.pid):
            return False
        if not is_thread:
            return True
        return thread(other.thread) if name.thread else not other.thread and other.tid == name.tid

    return fits


def _same_rows(trace: Trace, part: workspace_file.FilterPart) -> set[int]:
    table = trace.threads
    return {
        thread.row
        for thread in part.threads
        if thread.row < len(table) and (table.pid[thread.row], table.tid[thread.row]) == (thread.pid, thread.tid)
    }


def _indices(opened: OpenTrace, keys: Iterable[LaneKey]) -> list[int]:
    index_of = {key: index for index, key in enumerate(lane_keys(opened.timeline))}
    return [index_of[key] for key in keys if key in index_of]
