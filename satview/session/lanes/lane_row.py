"""One lane as it is laid out; apart from the list of lanes, so that a preview needs nothing of a trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from satview.store.trace import Trace
from satview.timeline.lane_tree import Timeline

# Finds lanes and events of a file that grows again after it was reloaded: lanes by thread and CPU, events by slots.


LaneKey = tuple[str, int, int, int]


def lane_keys(timeline: Timeline) -> tuple[LaneKey, ...]:
    """Return what distinguishes each lane from all others, in any reading of the same file.

    That is kind, CPU, pid, tid, or the number of a lane of a plug-in. Kinds of lanes of events are `class:lane:depth`.
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
    """Return where lanes have gone, index to index, of all lanes that are in both."""
    positions = {key: index for index, key in enumerate(lane_keys(new))}
    return {index: positions[key] for index, key in enumerate(lane_keys(old)) if key in positions}


def event_of_slot(new: Trace, old: Trace, event: int) -> int | None:
    """Return the row in the new trace of an event of the old one: the one that begins at the same slot."""
    slot = old.events.slot[event]
    if event < len(new.events) and new.events.slot[event] == slot:
        return event
    rows = np.flatnonzero(new.events.slot == slot)
    return int(rows[0]) if len(rows) else None


# What the user has done to the lanes, as an immutable value: undo keeps the old one, and a file can hold it.


@dataclass(frozen=True, slots=True)
class LaneRow:
    """One lane as it is laid out.

    Attributes:
        index: Index in `Timeline.infos`.
        depth: 0 for CPUs and processes, 1 for what is under them, 2 for what is under threads.
        y_px: Top, from the top of the list.
        height_px: Height.
        is_foldable: It has lanes under it.
        is_open: They show.
        is_pinned: It is at the top because the user has pinned it.
        is_alone: It is not under its process, whose name it needs.
        process: The lane of the process whose only thread it shows: it has its name, and folds into it; -1 of others.
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
        """The lane that is folded, hidden and moved: the process whose only thread it shows, or the lane itself."""
        return self.process if self.process >= 0 else self.index


@dataclass(frozen=True, slots=True)
class GroupHead:
    """The heading of a group of lanes.

    Attributes:
        title: As the user reads it.
        count: Lanes of the group, processes not opened counting as one.
        y_px: Top, from the top of the list.
        height_px: Height.
        is_open: Its lanes show.
    """

    title: str
    count: int
    y_px: int
    height_px: int
    is_open: bool
