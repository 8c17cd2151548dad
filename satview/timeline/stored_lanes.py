"""Lanes as arrays and plain values, and back: what a cache keeps of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from satview.base.shared_file import DamagedFileError
from satview.events.states import VALUE_COUNT
from satview.timeline.lane import Lane
from satview.timeline.lane_tree import Timeline
from satview.timeline.levels import Levels
from satview.timeline.shares import Shares
from satview.timeline.spans import NO_EVENT, LaneSpans


def lanes_of(timeline: Timeline, indices: Iterable[int]) -> tuple[list[dict[str, Any]], dict[str, NDArray[Any]]]:
    """Return lanes that are ready as values that JSON can hold, and arrays by name."""
    values, arrays = [], dict[str, NDArray[Any]]()
    for index in sorted({index for index in indices if timeline.is_ready(index)}):
        lane, name = timeline.lane(index), f"lane.{index}"
        arrays |= _columns(name, lane.spans)
        arrays[f"{name}.cells"] = np.concatenate(lane.levels.cells)
        entry = {"index": index, "end": lane.spans.end_cycles, "origin": lane.levels.origin,
                 "shift": lane.levels.shift, "levels": [len(cells) for cells in lane.levels.cells],
                 "values": lane.shares.values.tolist()}  # fmt: skip
        if lane.use is not None:
            arrays |= _columns(f"{name}.use", lane.use.spans)
            entry["use_end"] = lane.use.spans.end_cycles
        values.append(entry)
    return values, arrays


def take_lanes(timeline: Timeline, values: Any, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Give a timeline lanes that were built before.

    Raises:
        DamagedFileError: They cannot be its lanes.
    """
    try:
        for entry in values:
            timeline.take(int(entry["index"]), _lane(timeline, entry, arrays))
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise DamagedFileError(f"it holds no lanes: {error}") from error


def _columns(name: str, spans: LaneSpans) -> dict[str, NDArray[Any]]:
    found: dict[str, NDArray[Any]] = {
        f"{name}.start": spans.start_cycles, f"{name}.value": spans.value, f"{name}.event": spans.event
    }  # fmt: skip
    if spans.thread is not None:
        found[f"{name}.thread"] = spans.thread
    return found


def _lane(timeline: Timeline, entry: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Lane:
    name, window = f"lane.{entry['index']}", timeline.trace.window
    spans = _spans(timeline, name, int(entry["end"]), arrays)
    shift, cells = int(entry["shift"]), _typed(arrays[f"{name}.cells"], ("u1",))
    if int(entry["origin"]) != window.start or not 0 <= shift < 63:
        raise ValueError("a lane does not fit the trace")
    lengths, first = [int(length) for length in entry["levels"]], ((window.length - 1) >> shift) + 1
    if not lengths or lengths[0] != first or sum(lengths) != len(cells):
        raise ValueError("levels of a lane do not fit")
    if any(after != (before + 1) // 2 for before, after in pairwise(lengths)):
        raise ValueError("levels of a lane do not fit")
    levels = Levels(window.start, shift, tuple(np.split(cells, np.cumsum(lengths)[:-1])))
    values = [int(value) for value in entry["values"]]
    if not values or sorted(set(values)) != values or not 0 <= values[0] <= values[-1] < VALUE_COUNT:
        raise ValueError("the values of a lane are out of order")
    use = None
    if "use_end" in entry:
        use = Shares.counting(_spans(timeline, f"{name}.use", int(entry["use_end"]), arrays))
    return Lane(spans, levels, Shares.of(spans, np.array(values, np.uint8)), use)


def _spans(timeline: Timeline, name: str, end: int, arrays: Mapping[str, NDArray[Any]]) -> LaneSpans:
    trace = timeline.trace
    start, value = _typed(arrays[f"{name}.start"], ("i8",)), _typed(arrays[f"{name}.value"], ("u1",))
    event, thread = _typed(arrays[f"{name}.event"], ("u4",)), arrays.get(f"{name}.thread")
    if not len(start) or not len(start) == len(value) == len(event) == (len(start) if thread is None else len(thread)):
        raise ValueError("columns of a lane differ in length")
    if np.any(start[1:] <= start[:-1]) or int(value.max()) >= VALUE_COUNT:
        raise ValueError("intervals of a lane are out of order")
    if np.any((event >= len(trace.events)) & (event != NO_EVENT)):
        raise ValueError("a lane names events that are not there")
    if thread is not None and int(_typed(thread, ("u2", "u4")).max()) >= len(trace.threads):
        raise ValueError("a lane names threads that are not there")
    if end <= int(start[-1]):
        raise ValueError("a lane does not fit the trace")
    return LaneSpans(start, value, event, thread, end)


def _typed(array: NDArray[Any], kinds: tuple[str, ...]) -> NDArray[Any]:
    if array.ndim != 1 or array.dtype not in [np.dtype(kind) for kind in kinds]:
        raise ValueError("a column of a lane is of another type")
    return array
