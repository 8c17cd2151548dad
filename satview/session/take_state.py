"""From an open trace to its state as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from satview.session.filtering.filter_state import FilterState
from satview.session.lanes.lane_list import LaneList
from satview.session.lanes.remap import LaneKey, lane_keys
from satview.session.open_trace import OpenTrace
from satview.session.workspace_state import (
    FilterPart,
    LanesState,
    OwnerName,
    SelectionState,
    ViewState,
)
from satview.store.trace import Trace
from satview.timeline.lane_tree import LaneInfo, Timeline


def take_view(opened: OpenTrace, scroll_px: int) -> ViewState:
    """Return the part of the trace that shows.

    Args:
        opened: The trace.
        scroll_px: Height of the lanes above the top edge.
    """
    viewport, clock = opened.viewport, opened.trace.clock
    window = viewport.window
    top = opened.lanes.row_at(scroll_px) or next(iter(opened.lanes.rows_between(scroll_px, scroll_px + 100)), None)
    key = lane_keys(opened.timeline)[top.index] if top is not None and scroll_px else None
    above_px = max(0, scroll_px - top.y_px) if top is not None and scroll_px else 0
    start_ns, end_ns = clock.ns(window.start), clock.ns(window.end)
    return ViewState(window.start, window.end, start_ns, end_ns, viewport.width_px, key, above_px, viewport.is_whole)


def take_selection(opened: OpenTrace) -> SelectionState:
    """Return what is selected."""
    now = opened.selection
    lane = None if now.lane is None else lane_keys(opened.timeline)[now.lane]
    start, end = (now.time_range.start, now.time_range.end) if now.time_range is not None else (None, None)
    span = now.span.start_cycles if now.span is not None else None
    return SelectionState(now.event, lane, span, now.is_interval, start, end, now.cursor_a, now.cursor_b)


def take_lanes(lanes: LaneList) -> LanesState:
    """Return how lanes are arranged, and whose they are."""
    now = lanes.arrangement
    opened = frozenset(key for key in now.turned if lanes.is_open(key))
    named = {*now.turned, *now.hidden, *now.pinned, *now.order, *(key for group in now.groups for key in group.members)}
    names = _names(lanes.timeline, named)
    return LanesState(replace(now, turned=frozenset()), opened, now.turned - opened, names)


def take_filter(trace: Trace, state: FilterState) -> FilterPart:
    """Return a filter, with the names of the threads that it chooses."""
    shows = np.count_nonzero(state.threads) * 2 < len(state.threads)
    rows = np.flatnonzero(state.threads if shows else ~state.threads).tolist()
    threads = tuple((row, owner_of_thread(trace, row)) for row in rows)
    forms = tuple(sorted(state.is_wide.items()))
    return FilterPart(_ranges(np.flatnonzero(~state.codes)), bool(shows), threads, state.effect, state.stack, forms)


def owner_of_thread(trace: Trace, row: int) -> OwnerName:
    """Return the numbers and names of a row of the thread table."""
    table = trace.threads
    process = trace.processes.names[int(table.process[row])].rsplit("/", 1)[-1]
    return OwnerName(int(table.pid[row]), int(table.tid[row]), process, table.names[row])


def owner_of_lane(trace: Trace, info: LaneInfo) -> OwnerName:
    """Return the numbers and names of what a lane is about."""
    if info.thread:
        return owner_of_thread(trace, info.thread)
    name = trace.processes.names[info.process].rsplit("/", 1)[-1] if info.process else ""
    return OwnerName(int(trace.processes.pid[info.process]), -1, name, "")


def _names(timeline: Timeline, named: Iterable[LaneKey]) -> dict[LaneKey, OwnerName]:
    requested = set(named)
    return {
        key: owner_of_lane(timeline.trace, timeline.infos[index])
        for index, key in enumerate(lane_keys(timeline))
        if key in requested
    }


def _ranges(numbers: np.ndarray[tuple[int], np.dtype[np.intp]]) -> tuple[tuple[int, int], ...]:
    """Return first and last of each run of neighbouring numbers."""
    if not len(numbers):
        return ()
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    firsts, lasts = numbers[np.append(0, breaks + 1)], numbers[np.append(breaks, len(numbers) - 1)]
    return tuple(zip(firsts.tolist(), lasts.tolist(), strict=True))
