"""One row of the lane layout; a separate module, so that a preview does not import the trace modules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from satview.store.trace import Trace
from satview.timeline.lane_tree import Timeline

# Finds lanes and events again in a reloaded file: lanes by thread and CPU, events by slots.


LaneKey = tuple[str, int, int, int]


def lane_keys(timeline: Timeline) -> tuple[LaneKey, ...]:
    """Return a key for each lane that is unique and stays the same when the file is reloaded.

    A key is kind, CPU, pid, and tid or the number of a lane of a plug-in. The kind of an event lane is
    `class:lane:depth`.
    """
    trace = timeline.trace
    process_pids = trace.processes.pid.tolist()
    pids, tids = trace.threads.pid.tolist(), trace.threads.tid.tolist()
    keys = []
    for info in timeline.infos:
        pid = pids[info.thread] if info.thread else process_pids[info.process]
        kind = info.kind.value if info.track is None else info.track.key
        keys.append((kind, info.cpu, pid, tids[info.thread] if info.plugged < 0 else info.plugged))
    return tuple(keys)


def moved_lanes(old: Timeline, new: Timeline) -> dict[int, int]:
    """Return a mapping from index in `old` to index in `new`, for all lanes that are in both timelines."""
    positions = {key: index for index, key in enumerate(lane_keys(new))}
    return {index: positions[key] for index, key in enumerate(lane_keys(old)) if key in positions}


def event_of_slot(new: Trace, old: Trace, event: int) -> int | None:
    """Return the row in `new` of an event of `old`, found by its slot number in the file; None if not found."""
    slot = old.events.slot[event]
    if event < len(new.events) and new.events.slot[event] == slot:
        return event
    rows = np.flatnonzero(new.events.slot == slot)
    return int(rows[0]) if len(rows) else None


# Rows and headings of the layout.


@dataclass(frozen=True, slots=True)
class LaneRow:
    """One lane in the layout.

    Attributes:
        index: Index in `Timeline.infos`.
        depth: 0 for CPUs and processes, 1 for lanes under them, 2 for lanes under threads.
        y_px: Top, from the top of the list.
        height_px: Height.
        is_foldable: True if the lane has lanes under it.
        is_open: True if the lane is unfolded.
        is_pinned: True if the user has pinned the lane at the top.
        is_alone: True if the lane is not under its process, so that its label needs the process name.
        process: Lane of the process that this lane replaces, under its name, as its only thread; -1 = none.
    """

    index: int
    depth: int
    y_px: int
    height_px: int
    is_foldable: bool
    is_open: bool
    is_pinned: bool
    is_alone: bool = False
    process: int = -1

    @property
    def unit(self) -> int:
        """The lane that is folded, hidden and moved: the process that this row replaces, or the lane itself."""
        return self.process if self.process >= 0 else self.index


@dataclass(frozen=True, slots=True)
class GroupHead:
    """The heading of a group of lanes.

    Attributes:
        title: Text of the heading.
        count: Number of lanes in the group; a folded process counts as one.
        y_px: Top, from the top of the list.
        height_px: Height.
        is_open: True if the lanes of the group are shown below the heading.
    """

    title: str
    count: int
    y_px: int
    height_px: int
    is_open: bool
