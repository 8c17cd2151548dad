"""Computes pixel values of lanes: approximate values at once, exact values soon afterwards in a background task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QTimer, Signal, Slot

from satview.base.column_arrays import give_back
from satview.base.process import timed
from satview.base.threads import Begun
from satview.base.time import TimeWindow
from satview.events.states import SEEN_EVENT
from satview.gui.swimlane.scale import TimeScale
from satview.session.lanes.lane_overlay import LaneOverlay
from satview.session.open_trace import OpenTrace
from satview.session.tasks import IsCancelled, Report, Task
from satview.timeline.event_marks import mark_codes, marks
from satview.timeline.lane_tree import Timeline
from satview.timeline.spans import pixel_edges

Values = NDArray[np.uint8]
_REST_MS = 120
_EVENTS_PER_BLOCK = 1_000_000
_ROWS_PER_STEP = 1 << 20
_MARKS_PER_FRAME = 1_000_000


@dataclass(frozen=True, slots=True)
class LaneRequest:
    """The lanes and the time window of a frame.

    Attributes:
        lanes: Lane indices, from top to bottom.
        window: The part of the trace.
        width_px: Width in device pixels.
        kinds: True if CPU lanes show kinds of work: user code, kernel calls, interrupts and idle time.
    """

    lanes: tuple[int, ...]
    window: TimeWindow
    width_px: int
    kinds: bool = False


# What a frame shows of the lanes, and what the next frames will show if the motion continues.


_JUMP: Final = 0.3  # a view that moves by a larger share of its width per frame jumps unpredictably
_WIDEST_MARGIN: Final = 0.25  # limit of the margin on each side, as a share of the width
_STEP_PX: Final = 4  # logical pixels; a whole number of device pixels at all usual ratios


@dataclass(frozen=True, slots=True)
class Frame:
    """Describes one picture of the lanes on the screen: its lanes, time range, size and kind of drawing.

    Attributes:
        request: All visible lanes, the time window and the width in device pixels.
        scale: Time to logical pixels.
        height_px: Height in logical pixels.
        scroll_px: Height of the lanes scrolled out above the frame.
        ratio: Device pixels per logical pixel.
        shows_shares: True to show shares of time in lanes whose intervals are too dense for bars.
        is_dense: True if intervals are too dense for bars at this scale.
        cpus: Number of CPUs that the full height of process lanes stands for.
    """

    request: LaneRequest
    scale: TimeScale
    height_px: int
    scroll_px: int
    ratio: float
    shows_shares: bool
    is_dense: bool = True
    cpus: int = 1

    @property
    def width_px(self) -> int:
        """Width in device pixels."""
        return self.request.width_px

    def ahead(self, before: TimeWindow | None, frames: float, limits: TimeWindow) -> Frame:
        """Return the frame widened, at the same zoom, on the side to which the view moves from the window `before`.

        `frames` is how many frames to look ahead; beyond `limits` the frame is widened by a few pixels only.
        """
        window, width_px = self.scale.window, self.scale.width_px
        if before is None or before == window:
            return self
        px_per_cycle = width_px / window.length
        moved = before.start - window.start, window.end - before.end  # on both sides
        room = window.start - limits.start, limits.end - window.end
        left, right = (
            _margin(cycles * px_per_cycle, beyond * px_per_cycle, frames, width_px)
            for cycles, beyond in zip(moved, room, strict=True)
        )
        if left == right == 0:
            return self
        start, end = (px * window.length // width_px for px in (left, right))
        wider = TimeScale(TimeWindow(window.start - start, window.end + end), left + width_px + right)
        device_px = self.width_px + round((left + right) * self.ratio)
        return replace(self, request=replace(self.request, window=wider.window, width_px=device_px), scale=wider)


def _margin(moved_px: float, room_px: float, frames: float, width_px: int) -> int:
    """Return how much to paint ahead on a side where `moved_px` came into view and `room_px` are left, in pixels."""
    if not 0 < moved_px <= _JUMP * width_px or room_px <= 0:
        return 0
    return (int(min(frames * moved_px, room_px, _WIDEST_MARGIN * width_px)) // _STEP_PX + 1) * _STEP_PX


# The values of the pixels.


class LaneSource(QObject):
    """Provides the pixel values of lanes without delaying a frame: approximate at first, exact after `refined`.

    Attributes:
        overlay: Finds the pixels that the filter hides, fades or marks.

    Signals:
        refined: Better values are available for some or all visible lanes, which must be drawn again.
    """

    refined = Signal()

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._timeline = opened.timeline
        self._filters = opened.filters
        self._requested: LaneRequest | None = None
        self._task_request: LaneRequest | None = None  # request of the background task
        self._exact_result: tuple[LaneRequest, Values] | None = None
        self._marks = mark_codes()
        self.overlay = LaneOverlay(self._timeline, self._filters.view)
        self._job = Task(self, self._on_done, self._on_failed)
        self._job.progress.connect(self.refined)  # draw lanes as they are built
        self._rest_timer = QTimer(self, singleShot=True, interval=_REST_MS)
        self._rest_timer.timeout.connect(self._refine)
        opened.filters.view_changed.connect(self._on_filter)

    @property
    def is_refined(self) -> bool:
        """True if the values of the visible lanes are exact."""
        return self._exact_result is not None and self._exact_result[0] == self._requested

    def show(self, request: LaneRequest) -> None:
        """Request exact values of a frame: once the view rests, or immediately if lanes are not built yet."""
        if self._requested == request:
            return
        self._requested = request
        if (
            any(not self._timeline.is_ready(lane) for lane in request.lanes)
            or (request.kinds and not self._timeline.has_kinds)
            or not self.overlay.has_shares(_shared(self._timeline, request))
        ):
            self._refine()
        else:
            self._rest_timer.start()

    def values(self, part: LaneRequest) -> Values:
        """Return value and flags per pixel of some or all visible lanes: uint8, shape (lanes, width)."""
        if self._exact_result is not None and self._exact_result[0] == self._requested:
            request, values = self._exact_result
            if replace(part, lanes=request.lanes) == request:
                return values[[request.lanes.index(lane) for lane in part.lanes]]
        with timed("lane values"):
            values = self._timeline.raster(part.lanes, part.window, part.width_px)
            values = with_filter(self._timeline, values, part, self._current_filter(), _MARKS_PER_FRAME)
            return with_overlay(values, part, self.overlay, waits=False)

    def reload(self, timeline: Timeline, overlay: LaneOverlay) -> None:
        """Switch to the lanes and the overlay of the refreshed trace."""
        self._timeline = timeline
        self._on_filter()
        self.overlay = overlay

    def close(self) -> None:
        """Cancel the background task and wait for it."""
        self._rest_timer.stop()
        self._job.close()

    @Slot()
    def _refine(self) -> None:
        if self._requested is None:
            return
        self._task_request = self._requested
        if not self._job.is_busy:  # a running task notices the new request, or `_on_done` starts it again
            self._job.start_reporting(
                partial(exact_values, self._timeline, self._next_request, self._current_filter(), self.overlay)
            )

    def _next_request(self) -> LaneRequest:
        assert self._task_request is not None
        return self._task_request

    @Slot(object)
    def _on_done(self, result: object) -> None:
        if not isinstance(result, tuple):
            return
        self._exact_result = result
        if result[0] is not self._task_request:  # the request changed after the task last looked
            self._refine()
        self.refined.emit()

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        raise error  # the last-resort dialog shows it

    @Slot()
    def _on_filter(self) -> None:
        self._exact_result = self._requested = None
        self._job.cancel()
        self.overlay = LaneOverlay(self._timeline, self._filters.view)

    def _current_filter(self) -> MarkFilter | None:
        codes, passing = self._filters.codes, self._filters.view.passing
        return None if codes.all() and passing is None else MarkFilter(codes & self._marks, passing)


@dataclass(frozen=True, slots=True, eq=False)
class MarkFilter:
    """The events that are drawn as marks while a filter is active.

    Attributes:
        codes: bool, shape (32768,), event codes that are drawn.
        events: bool, shape (events,), event rows that are drawn; None = all with these codes.
    """

    codes: NDArray[np.bool_]
    events: NDArray[np.bool_] | None = None


def with_filter(
    timeline: Timeline, values: Values, request: LaneRequest, shown: MarkFilter | None, limit: int = 1 << 62
) -> Values:
    """Return pixel values of a request, as `Timeline.raster` returns them, with marks of `shown` events only.

    None leaves them as they are; if the window has more events than `limit`, there are no marks, to save time.
    """
    if shown is None:
        return values
    values = values & np.uint8(~SEEN_EVENT & 0xFF)
    events, part = timeline.trace.events, timeline.trace.rows_between(request.window)
    if part.stop - part.start <= limit:
        edges = pixel_edges(request.window, request.width_px)
        infos = [timeline.infos[lane] for lane in request.lanes]
        for start in range(part.start, part.stop, _ROWS_PER_STEP):
            block = slice(start, min(part.stop, start + _ROWS_PER_STEP))
            passes = shown.codes.take(events.code[block])
            if shown.events is not None:
                passes &= shown.events[block]
            rows = (np.flatnonzero(passes) + start).astype(np.uint32)
            values[marks(timeline.trace, infos, rows, edges)] |= np.uint8(SEEN_EVENT)
    return values


def with_overlay(values: Values, request: LaneRequest, overlay: LaneOverlay, *, waits: bool) -> Values:
    """Return pixel values, uint8 (lanes, width), without the intervals that the filter hides.

    `waits` includes all lanes, however long that takes, and prepares which of their pixels fade or are marked;
    otherwise lanes that would delay a frame are left out.
    """
    if overlay.does_nothing:
        return values
    edges = pixel_edges(request.window, request.width_px)
    values = values.copy()
    overlay.hide(request.lanes, values, edges, waits)
    if waits:
        overlay.faded(request.lanes, edges, waits)
        overlay.marked(request.lanes, edges, waits)
    return values


def exact_values(
    timeline: Timeline,
    requested: Callable[[], LaneRequest],
    shown: MarkFilter | None,
    overlay: LaneOverlay | None,
    is_cancelled: IsCancelled,
    report: Report,
) -> tuple[LaneRequest, Values] | None:
    """Build missing lanes, then return the current request with its exact pixel values; None if cancelled.

    `requested` returns the current request, which may change meanwhile, such as when the view moves by a few pixels;
    lanes that are being built remain useful. `report` is called when lanes are ready.
    """
    while not is_cancelled():
        request = requested()
        _build(timeline, request, lambda lanes: lanes.isdisjoint(requested().lanes), is_cancelled, report)
        is_outdated = lambda: is_cancelled() or requested() is not request  # noqa: B023, E731 -- called in this round
        values = _compute(timeline, request, shown, overlay, is_outdated, report)
        if values is not None:
            return request, values
    return None


def _build(
    timeline: Timeline,
    request: LaneRequest,
    are_gone: Callable[[frozenset[int]], bool],
    is_cancelled: IsCancelled,
    report: Report,
) -> None:
    """Build all CPU lanes, and those of a request unless `are_gone` (scrolled out); report when lanes are ready."""
    # All CPU lanes are built, because the overview shows the load of the whole trace.
    cpu_lanes = timeline.cpu_lanes
    others = frozenset(request.lanes).difference(cpu_lanes)
    if not all(timeline.is_ready(lane) for lane in (*cpu_lanes, *others)):
        in_order = [lane for lane in request.lanes if lane in others]
        beside = Begun(partial(_make, timeline, in_order, lambda: is_cancelled() or are_gone(others)), "satview-lanes")
        try:
            _make(timeline, cpu_lanes, is_cancelled)
            report(0.5)
        finally:
            beside.wait()
        beside.result()
        give_back()  # return freed memory to the system
    if request.kinds and not timeline.has_kinds:
        timeline.build_kinds(is_cancelled)
        timeline.make_bins(request.lanes)
        give_back()
        report(0.5)


def _make(timeline: Timeline, lanes: Sequence[int], is_cancelled: IsCancelled) -> None:
    """Build lanes and the cumulative sums behind their shares."""
    timeline.build(lanes, is_cancelled)
    timeline.make_bins(lanes)


def _shared(timeline: Timeline, request: LaneRequest) -> tuple[int, ...]:
    """Return the lanes whose shares a frame draws: the requested ones, and CPU lanes for the use of quiet processes."""
    return tuple(dict.fromkeys((*request.lanes, *timeline.cpu_lanes)))


def _compute(
    timeline: Timeline,
    request: LaneRequest,
    shown: MarkFilter | None,
    overlay: LaneOverlay | None,
    is_cancelled: IsCancelled,
    report: Report,
) -> Values | None:
    """Return the exact pixel values of a request, or None if cancelled; takes the arguments of `exact_values`."""
    if overlay is not None and not overlay.has_shares(_shared(timeline, request)):
        for lane in _shared(timeline, request):
            if is_cancelled():
                return None
            overlay.plain(lane, waits=True)
        report(0.5)
    timeline.make_bins(request.lanes)  # lanes read from a cache have no bins yet
    values = np.zeros((len(request.lanes), request.width_px), np.uint8)
    part = timeline.trace.rows_between(request.window)
    for columns, window in column_blocks(request, int(part.stop - part.start)):
        if is_cancelled():
            return None
        width_px = columns.stop - columns.start
        values[:, columns] = timeline.raster(request.lanes, window, width_px, exact=True)
    values = with_filter(timeline, values, request, shown)
    return values if overlay is None else with_overlay(values, request, overlay, waits=True)


def column_blocks(request: LaneRequest, event_count: int) -> list[tuple[slice, TimeWindow]]:
    """Return blocks of pixel columns with their time windows, each with a limited number of the window's events.

    Some numpy steps of an exact raster hold the interpreter lock; small blocks keep the window responsive.
    """
    count = max(1, min(event_count // _EVENTS_PER_BLOCK, request.width_px // 8))
    edges = pixel_edges(request.window, request.width_px)
    positions = [i * request.width_px // count for i in range(count + 1)]
    return [
        (slice(begin, stop), TimeWindow(int(edges[begin]), int(edges[stop]))) for begin, stop in pairwise(positions)
    ]
