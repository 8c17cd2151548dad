"""Converts lanes to arrays and plain values for a cache, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.shared_file import DamagedFileError
from satview.events.states import VALUE_COUNT
from satview.timeline.lane import Lane, Levels
from satview.timeline.lane_info import LaneKind
from satview.timeline.lane_tree import Timeline
from satview.timeline.shares import LaneShares
from satview.timeline.spans import NO_EVENT, LaneSpans, touching

_NOT_STORED: Final = (LaneKind.PLUGGED, LaneKind.TRACK)  # plug-ins may change; track lanes depend on settings


def lanes_of(timeline: Timeline, indices: Iterable[int]) -> tuple[list[dict[str, Any]], dict[str, NDArray[Any]]]:
    """Return the given lanes in a form to store, without those not yet built and those of plug-ins and tracks.

    Returns:
        For each lane a dictionary that JSON can hold; and arrays (n,) by name.
    """
    values, arrays = [], dict[str, NDArray[Any]]()
    storable = (index for index in indices if timeline.infos[index].kind not in _NOT_STORED)
    for index in sorted({index for index in storable if timeline.is_ready(index)}):
        lane, name = timeline.lane(index), f"lane.{index}"
        arrays[f"{name}.start"], arrays[f"{name}.value"] = np.asarray(lane.spans.start_cycles), lane.spans.value
        arrays[f"{name}.event"] = np.asarray(lane.spans.event)
        if lane.spans.thread is not None:
            arrays[f"{name}.thread"] = lane.spans.thread
        if lane.shares.sums is not None:
            arrays[f"{name}.sums"] = lane.shares.sums
        for count, shares in (("use", lane.use), ("ready", lane.ready)):
            if shares is not None:
                arrays[f"{name}.{count}.start"] = shares.spans.start_cycles
                arrays[f"{name}.{count}.value"], arrays[f"{name}.{count}.sums"] = shares.spans.value, shares.sums
        arrays[f"{name}.cells"] = np.concatenate(lane.levels.cells)
        values.append({"index": index, "end": lane.spans.end_cycles, "origin": lane.levels.origin,
                       "shift": lane.levels.shift, "levels": [len(cells) for cells in lane.levels.cells]})  # fmt: skip
    return values, arrays


def add_lanes(timeline: Timeline, values: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Add lanes from a cache to a timeline.

    Raises:
        DamagedFileError: The data cannot be lanes of this timeline.
    """
    try:
        for entry in values:
            timeline.take(int(entry["index"]), _lane(timeline, entry, arrays))
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise DamagedFileError(f"it holds no lanes: {error}") from error


def _lane(timeline: Timeline, entry: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Lane:
    trace, name = timeline.trace, f"lane.{entry['index']}"
    start, value = _typed(arrays[f"{name}.start"], ("i8",)), _typed(arrays[f"{name}.value"], ("u1",))
    event = _typed(arrays[f"{name}.event"], ("u4",))
    thread = arrays.get(f"{name}.thread")
    if not len(start) or not len(start) == len(value) == len(event) == (len(start) if thread is None else len(thread)):
        raise ValueError("columns of a lane differ in length")
    if np.any(start[1:] <= start[:-1]) or int(value.max()) >= VALUE_COUNT:
        raise ValueError("intervals of a lane are out of order")
    if np.any((event >= len(trace.events)) & (event != NO_EVENT)):
        raise ValueError("a lane names events that are not there")
    if thread is not None and int(_typed(thread, ("u2", "u4")).max()) >= len(trace.threads):
        raise ValueError("a lane names threads that are not there")
    end, shift = int(entry["end"]), int(entry["shift"])
    lengths, cells = [int(length) for length in entry["levels"]], _typed(arrays[f"{name}.cells"], ("u1",))
    window = trace.window
    if end <= int(start[-1]) or int(entry["origin"]) != window.start or not 0 <= shift < 63:
        raise ValueError("a lane does not fit the trace")
    finest = ((window.length - 1) >> shift) + 1
    if not lengths or lengths[0] != finest or sum(lengths) != len(cells):
        raise ValueError("levels of a lane do not fit")
    if any(after != (before + 1) // 2 for before, after in pairwise(lengths)):
        raise ValueError("levels of a lane do not fit")
    parts = np.split(cells, np.cumsum(lengths)[:-1])
    spans = LaneSpans(start, value, event, thread, end)
    shares = LaneShares.of(spans, arrays.get(f"{name}.sums"))
    use, ready = (_count(timeline, entry, arrays, count) for count in ("use", "ready"))
    return Lane(spans, Levels(window.start, shift, tuple(parts)), shares, use, ready)


def _count(
    timeline: Timeline, entry: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], count: str
) -> LaneShares | None:
    """Return the stored counts of a process lane, `use` or `ready`; None if the lane is not of a process."""
    name = f"lane.{entry['index']}.{count}"
    if timeline.infos[int(entry["index"])].kind is not LaneKind.PROCESS:
        return None
    start, value = _typed(arrays[f"{name}.start"], ("i8",)), _typed(arrays[f"{name}.value"], ("u1",))
    if not len(start) or len(start) != len(value) or np.any(start[1:] <= start[:-1]) or int(value.max()) >= VALUE_COUNT:
        raise ValueError("the counts of a process are out of order")
    spans = touching(start, value, np.full(len(start), NO_EVENT, np.uint32), timeline.trace.window.end)
    if int(start[-1]) > timeline.trace.window.end:
        raise ValueError("the counts of a process go on after the trace")
    return LaneShares.counting(spans, arrays.get(f"{name}.sums"))


def _typed(array: NDArray[Any], kinds: tuple[str, ...]) -> NDArray[Any]:
    if array.ndim != 1 or array.dtype not in [np.dtype(kind) for kind in kinds]:
        raise ValueError("a column of a lane is of another type")
    return array
