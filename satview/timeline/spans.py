"""The contiguous intervals of a lane, and their exact picture in pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base import column_arrays
from satview.base.column_arrays import numbers_of
from satview.base.time import TimeWindow
from satview.core import pictures
from satview.events.states import ABSENT, IS_BUSY, SEEN_RUNNING

NO_EVENT: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Span:
    """One interval of a lane.

    Attributes:
        start_cycles, end_cycles: Start and end, end not included.
        value: Lane value (`events.states`).
        event: Row of the event that begins the interval; `NO_EVENT` if none does.
        thread: Row of the thread that ran, on CPU lanes, in the thread table; 0 = none.
        text: Text of the interval on the lane of a plug-in or a track; empty elsewhere.
    """

    start_cycles: int
    end_cycles: int
    value: int
    event: int
    thread: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class LaneSpans:
    """The intervals of a lane, in time order; each ends where the next begins.

    Attributes:
        start_cycles: int64, (n,), strictly ascending. `start_cycles` and `event` may be views (`event_marks`).
        value: uint8, (n,), lane values; neighbours may be equal.
        event: uint32, (n,), row of the event that begins each interval, or `NO_EVENT`.
        thread: (n,), row of the thread that ran, on CPU lanes; None elsewhere.
        end_cycles: End of the last interval.
        texts: Texts of the intervals, on lanes of plug-ins and tracks; None elsewhere.
    """

    start_cycles: NDArray[np.int64]
    value: NDArray[np.uint8]
    event: NDArray[np.uint32]
    thread: NDArray[np.unsignedinteger] | None
    end_cycles: int
    texts: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.start_cycles)

    def index_at(self, cycles: int) -> int:
        """Return the index of the interval that covers a time; -1 before the first and from the end on."""
        if cycles >= self.end_cycles:
            return -1
        return int(self.start_cycles.searchsorted(cycles, "right")) - 1

    def end_of(self, part: slice) -> int:
        """Return the end of the last interval of a slice of the intervals, cycles."""
        return int(self.start_cycles[part.stop]) if part.stop < len(self) else self.end_cycles

    def visible(self, window: TimeWindow) -> slice:
        """Return the slice of the intervals that overlap a window."""
        begin = max(0, int(self.start_cycles.searchsorted(window.start, side="right")) - 1)
        return slice(begin, int(self.start_cycles.searchsorted(window.end)))


def touching(
    start_cycles: NDArray[np.int64], value: NDArray[np.uint8], event: NDArray[np.uint32], end_cycles: int
) -> LaneSpans:
    """Return the lane of intervals that each end where the next begins, without those of length zero.

    Args:
        start_cycles: int64 (n,), ascending; of several equal ones the last is kept.
        value: uint8 (n,), lane value of each interval.
        event: uint32 (n,), event that begins each; `NO_EVENT` = none.
        end_cycles: End of the last interval; if the interval would be empty, it ends one cycle after its beginning.
    """
    keep = np.append(start_cycles[1:] > start_cycles[:-1], True) if len(start_cycles) else np.empty(0, np.bool_)
    if not keep.all():
        start_cycles, value, event = start_cycles[keep], value[keep], event[keep]
    end_cycles = max(end_cycles, int(start_cycles[-1]) + 1) if len(start_cycles) else end_cycles
    return LaneSpans(start_cycles, value, event, None, end_cycles)


def spread(
    start: NDArray[np.int64], end: NDArray[np.int64], window: TimeWindow
) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Return a sequence that fills a window: intervals, and the gaps before, between and behind them.

    Args:
        start: int64 (n,), start times of the intervals, ascending.
        end: int64 (n,), end times, at least a cycle later and not after the next start.
        window: The window to fill.

    Returns:
        Start times of all intervals and gaps, int64 (m,), ascending; and the index of each interval, intp (m,), -1 for
        gaps.
    """
    after = np.append(start[1:], window.end)
    gaps = np.flatnonzero(end < after)
    before = np.array([window.start] if not len(start) or int(start[0]) > window.start else [], np.int64)
    starts = np.concatenate((before, start, end[gaps]))
    item = np.concatenate((np.full(len(before), -1), np.arange(len(start)), np.full(len(gaps), -1)))
    order = np.argsort(starts, kind="stable")
    return starts[order], item[order].astype(np.intp)


def settled(spans: LaneSpans) -> LaneSpans:
    """Return a complete lane in the form in which it is kept.

    Beyond the memory bound, its columns are in pages that the system can reclaim.

    Raises:
        OSError: See `column_arrays.settled`.
    """
    return replace(
        spans,
        start_cycles=_settled(spans.start_cycles),
        value=_settled(spans.value),
        event=_settled(spans.event),
    )


def _settled(column: NDArray[Any]) -> NDArray[Any]:
    return column_arrays.settled(column) if isinstance(column, np.ndarray) else column  # views stay as they are


def pixel_edges(window: TimeWindow, width_px: int) -> NDArray[np.int64]:
    """Return the start times of pixels, in cycles, and the end of the last: shape (width_px + 1,), exact."""
    if window.length <= (1 << 62) // (width_px + 1):
        return window.start + np.arange(width_px + 1, dtype=np.int64) * window.length // width_px
    return np.array([window.start + i * window.length // width_px for i in range(width_px + 1)], np.int64)


def exact_raster(lanes: Sequence[LaneSpans], window: TimeWindow, width_px: int) -> NDArray[np.uint8]:
    """Return the value that covers most of each pixel, per lane; shape (len(lanes), width_px), uint8.

    If two values cover equal times, the smaller value wins. Pixels in which anything ran have `SEEN_RUNNING`. The
    window may have fewer cycles than pixels. Cost is proportional to the number of intervals in the window.
    """
    edges = pixel_edges(window, width_px)
    out = np.zeros((len(lanes), width_px), np.uint8)
    parts = [(i, lane, lane.visible(window)) for i, lane in enumerate(lanes)]
    parts = [(i, lane, part) for i, lane, part in parts if part.stop > part.start]
    if window.length >= width_px:
        raster = pictures.Raster(edges, IS_BUSY.astype(np.uint8), out)
        for position, lane, part in parts:
            raster.draw(position, lane.start_cycles[part], lane.value[part], lane.end_of(part))
        return out
    if not parts:
        return out
    sizes = np.array([part.stop - part.start for _, _, part in parts])
    row = np.repeat(np.array([i for i, _, _ in parts]), sizes)
    start = np.concatenate([lane.start_cycles[part] for _, lane, part in parts])
    value = np.concatenate([lane.value[part] for _, lane, part in parts])
    end = np.empty_like(start)
    end[:-1] = start[1:]
    ends = np.cumsum(sizes) - 1
    end[ends] = [lane.end_of(part) for _, lane, part in parts]
    start, end = np.maximum(start, window.start), np.minimum(end, window.end)
    inside = end > start
    row, value = row[inside], value[inside]
    # Pixels are shorter than a cycle: each shows the cycle that contains its left edge.
    begin, stop = np.searchsorted(edges[:-1], start[inside]), np.searchsorted(edges[:-1], end[inside])
    flagged = value | IS_BUSY[value] * np.uint8(SEEN_RUNNING)
    out.ravel()[numbers_of(row * width_px + begin, stop - begin)] = np.repeat(flagged, stop - begin)
    return out


def constant_lane(window: TimeWindow, value: int = ABSENT) -> LaneSpans:
    """Return a lane of one interval, which covers the whole window and has the given value."""
    return LaneSpans(
        np.array([window.start]), np.array([value], np.uint8), np.array([NO_EVENT], np.uint32), None, window.end
    )
