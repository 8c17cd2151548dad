"""When a followed file has grown: the new trace takes over what the user sees and has chosen in the old one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from satview.session.open_trace import OpenTrace
from satview.store.trace import Trace
from satview.timeline.lane_tree import LaneInfo, Timeline

LaneKey = tuple[str, int, int, int]


def lane_key(trace: Trace, info: LaneInfo) -> LaneKey:
    """Return what tells a lane from all others, in any reading of the same file."""
    pid = int(trace.processes.pid[info.process]) if info.process else -1
    tid = -1
    if info.thread:
        pid, tid = int(trace.threads.pid[info.thread]), int(trace.threads.tid[info.thread])
    return str(info.kind), info.cpu, pid, tid


def lanes_by_key(timeline: Timeline) -> dict[LaneKey, int]:
    """Return the lanes by their keys; of lanes with one key (a pid used again) the last."""
    return {lane_key(timeline.trace, info): info.index for info in timeline.infos}


def carry_over(old: OpenTrace, new: OpenTrace, is_at_end: bool) -> None:
    """Make a new reading look like the old one: window, lanes, filter, selection, marks, search.

    Args:
        old: What was shown.
        new: The same file, read again; nothing of it is shown yet.
        is_at_end: Move to the end of the new one, as far from it as before.
    """
    places = lanes_by_key(new.timeline)
    moved = {
        info.index: places[key]
        for info in old.timeline.infos
        if (key := lane_key(old.trace, info)) in places
    }  # fmt: skip
    new.viewport.resume(old.viewport, is_at_end)
    new.lanes.resume(old.lanes, moved)
    new.marks.resume(old.marks)
    _filter(old, new)
    _select(old, new, moved)
    if old.search.text:
        new.search.find(old.search.text)


def _filter(old: OpenTrace, new: OpenTrace) -> None:
    state = old.filters.state
    threads = np.ones(len(new.trace.threads), np.bool_)
    before, now = old.trace.threads, new.trace.threads
    for row in np.flatnonzero(~state.threads).tolist():
        threads[(now.pid == before.pid[row]) & (now.tid == before.tid[row])] = False
    new.filters.evaluator.allowed, new.filters.evaluator.folder = (
        set(old.filters.evaluator.allowed),
        old.filters.evaluator.folder,
    )
    new.filters.put(replace(state, threads=threads), "filter")


def _select(old: OpenTrace, new: OpenTrace, moved: dict[int, int]) -> None:
    before, now = old.selection, new.selection
    now.set_range(before.time_range)
    now.set_cursors(before.cursor_a, before.cursor_b)
    now.set_mouse(before.mouse_cycles)
    event = event_of_slot(new.trace, old.trace, before.event) if before.event is not None else None
    lane = moved.get(before.lane) if before.lane is not None else None
    span = None
    if lane is not None and before.span is not None:
        span = new.timeline.lane(lane).at(before.span.start_cycles)
    now.select(event, lane, span)


def event_of_slot(new: Trace, old: Trace, event: int) -> int | None:
    """Return the row in the new trace of an event of the old one: the one that begins at the same slot."""
    slot = old.events.slot[event]
    if event < len(new.events) and new.events.slot[event] == slot:
        return event
    rows: NDArray[np.intp] = np.flatnonzero(new.events.slot == slot)
    return int(rows[0]) if len(rows) else None
