"""All lanes of a trace as a tree, and their conversion to arrays and plain values for a cache."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.plugins import PluginKind, plugins
from satview.base.shared_file import DamagedFileError
from satview.base.threads import Claims
from satview.base.time import TimeWindow
from satview.events import wire
from satview.events.states import (
    ABSENT,
    FIRST_PROCESS,
    IDLE,
    INTERRUPT,
    KERNEL_CALL,
    READY,
    SEEN_EVENT,
    STATE_BY_VALUE,
    UNKNOWN,
    VALUE_COUNT,
    WAITING,
)
from satview.store.axis import files_of
from satview.store.time_ranges import Doubts, doubts, idle_threads, lost_marks
from satview.store.trace import Trace, cached_with_trace
from satview.timeline.event_marks import EventClock, belongs, event_cells, mark_codes, marks_between, with_views
from satview.timeline.finders import Finder, UserLanes, finder_of
from satview.timeline.lane import Lane, LaneShares, Levels, PixelCells, build_levels, count_spans, finest_shift
from satview.timeline.lane_classes import LANE_CLASS_BY_NAME, LANE_CLASSES, LaneClass, Owner
from satview.timeline.lane_info import LaneInfo, LaneKind
from satview.timeline.spans import (
    NO_EVENT,
    LaneSpans,
    Span,
    constant_lane,
    exact_raster,
    pixel_edges,
    settled,
    spread,
    touching,
)
from satview.timeline.state_lanes import (
    cpu_spans,
    idle_values,
    interrupt_spans,
    kind_spans,
    name_values,
    process_spans,
    process_values,
    run_slices,
    thread_spans,
    value_of_code,
)
from satview.timeline.track import Track, tracks_of

# Lanes that plug-ins add below those of the trace.


COLOURS: Final = 9  # number of colours for intervals, taken from those of processes on CPU lanes


@dataclass(frozen=True, slots=True, eq=False)
class PluggedLane:
    """A lane that a plug-in returns.

    Attributes:
        title: Name of the lane.
        start_cycles: int64 (n,), start times of its intervals, ascending; between intervals the lane is empty.
        end_cycles: int64 (n,), end times, not included; not after the start of the next interval.
        texts: n texts, one for each interval.
        colour: int (n,), 0 to 8, one of the colours of processes; None = all 0.
        subtitle: Additional text.
    """

    title: str
    start_cycles: NDArray[np.int64]
    end_cycles: NDArray[np.int64]
    texts: Sequence[str]
    colour: NDArray[np.integer] | None = None
    subtitle: str = ""
    _ends: tuple[NDArray[np.int64], NDArray[np.int64]] = field(init=False)
    _values: NDArray[np.integer] = field(init=False)

    def __post_init__(self) -> None:
        start, end = np.asarray(self.start_cycles, np.int64), np.asarray(self.end_cycles, np.int64)
        colour = np.zeros(len(start), np.int64) if self.colour is None else np.asarray(self.colour, np.int64)
        if not len(start) == len(end) == len(self.texts) == len(colour):
            raise ValueError("the columns of a lane differ in length")
        if np.any(start >= end) or np.any(start[1:] < end[:-1]):
            raise ValueError("the intervals of a lane are empty, overlap, or are out of order")
        object.__setattr__(self, "_ends", (start, end))
        object.__setattr__(self, "_values", colour % COLOURS + FIRST_PROCESS)

    def within(self, trace: Trace) -> LaneSpans:
        """Return the lane over the whole trace, with empty intervals in between.

        Raises:
            ValueError: An interval is outside the trace.
        """
        window, start, end = trace.window, *self._ends
        if len(self.texts) and (int(start[0]) < window.start or int(end[-1]) > window.end):
            raise ValueError("a lane has intervals outside the trace")
        starts, item = spread(start, end, window)
        values = np.where(item >= 0, self._values[item] if len(start) else ABSENT, ABSENT).astype(np.uint8)
        texts = tuple(str(self.texts[row]) if row >= 0 else "" for row in item.tolist())
        return LaneSpans(starts, values, np.full(len(starts), NO_EVENT, np.uint32), None, window.end, texts)


@cached_with_trace("plugged lanes")
def plugged_lanes(trace: Trace) -> tuple[PluggedLane, ...]:
    """Return the lanes of all plug-ins that do not fail; computed at the first call and cached with the trace."""
    plugged: list[PluggedLane] = []
    for plugin in plugins(PluginKind.LANE):
        plugged += plugin.run(lambda lanes: _checked(lanes(trace), trace), [])
    return tuple(plugged)


def _checked(lanes: Sequence[PluggedLane], trace: Trace) -> list[PluggedLane]:
    checked = list(lanes)
    for lane in checked:
        if not isinstance(lane, PluggedLane):
            raise TypeError(f"it returned {type(lane).__name__}, no PluggedLane")
        lane.within(trace)
    return checked


# Track lanes: their parents and titles among the other lanes.


def track_infos(trace: Trace, infos: Sequence[LaneInfo], tracks: Iterable[Track]) -> list[LaneInfo]:
    """Return the lanes for tracks, after all other lanes; tracks whose owner has no lane are left out.

    Tracks of one owner must be neighbours.
    """
    lane_of = {
        Owner.CPU: {info.cpu: info.index for info in infos if info.kind is LaneKind.CPU},
        Owner.THREAD: {info.thread: info.index for info in infos if info.kind is LaneKind.THREAD},
    }
    doubtful = doubts(trace).processes
    track_lanes: list[LaneInfo] = []
    whole = -1
    for track in tracks:
        owner_kind, index = track.content.owner_kind, len(infos) + len(track_lanes)
        title = track.content.title if not track.depth else f"{track.content.title} {track.depth + 1}"
        if owner_kind is Owner.PROCESS:
            if track.is_whole:
                whole = index
            elif doubtful[track.owner]:
                continue
            process = 0 if track.is_whole else track.owner
            name = title if track.is_whole else trace.process_name(process) if process else "not known"
            parent = -1 if track.is_whole else whole
            track_lanes.append(LaneInfo(index, LaneKind.TRACK, name, "", parent, process=process, track=track))
            continue
        parent = lane_of[owner_kind].get(track.owner, -1) if owner_kind in lane_of else -1
        lane = LaneInfo(index, LaneKind.TRACK, title, track.content.subtitle, parent, track=track)
        if parent >= 0:
            owner = infos[parent]
            track_lanes.append(replace(lane, cpu=owner.cpu, process=owner.process, thread=owner.thread))
        elif owner_kind not in lane_of:
            track_lanes.append(lane)
    return track_lanes


__all__ = ["LaneInfo", "LaneKind", "Timeline"]

_LANES_AT_ONCE: Final = 256  # lanes built in one pass over the events
_LOOK_S: Final = 0.05  # interval of checks for cancellation while another thread builds lanes
_CELLS_PER_MARK: Final = 8  # least cells per pixel for marks that are drawn from levels
_TICKS_PER_FRAME: Final = 400_000  # most events that a frame draws one by one; marks for more come from the levels
_LABELS: Final = {
    UNKNOWN: "unknown",
    IDLE: "idle",
    INTERRUPT: "interrupt",
    KERNEL_CALL: "kernel call",
    WAITING: "waiting",
}  # fmt: skip


class Timeline:
    """All lanes of one trace, each built when it is first needed. Thread-safe.

    Attributes:
        trace: The trace.
        infos: Descriptions of all lanes: first the tree of CPUs, processes and threads in order, then track lanes.
        lost_marks: (k, 2) int64, ranges of time in which events are missing.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.lost_marks: NDArray[np.int64] = lost_marks(trace)
        self._idle = idle_threads(trace)
        self._values = value_of_code(trace)
        self._process_values = name_values(trace)
        self._mark_codes = mark_codes()
        self._idle_values = idle_values(self._values)
        self._by_process: tuple[NDArray[np.uint32], NDArray[np.intp]] | None = None  # order of run slices, and starts
        self._clock = EventClock(trace.events.time_cycles)
        self._lanes: dict[int, Lane] = {}
        self._kinds: dict[int, LaneShares] = {}
        self._rows: tuple[int, NDArray[np.uint32]] = (-1, np.empty(0, np.uint32))
        self._lock = threading.Lock()
        self._claims = Claims()
        self._tracks: dict[str, frozenset[int]] = {}
        self._user = UserLanes()
        self._finders: dict[str, Finder] = {}
        self.infos: tuple[LaneInfo, ...] = tuple(self._tree())

    def process_value(self, process: int) -> int:
        """Return the lane value (colour) of a process on CPU lanes.

        Until a CPU lane has been built, it is the value that follows from the name of the process alone.
        """
        return int(self._process_values[process])

    @property
    def cpu_lanes(self) -> list[int]:
        """Indices of the lanes of CPUs and of their interrupts, which are shown first."""
        return [info.index for info in self.infos if info.cpu >= 0 and info.track is None]

    @property
    def lanes_of_cpus(self) -> list[Lane]:
        """The lanes of the CPUs in order; empty until all of them are built."""
        lanes = [self._lanes.get(info.index) for info in self.infos if info.kind is LaneKind.CPU]
        return [lane for lane in lanes if lane is not None] if None not in lanes else []

    @property
    def ready_lanes(self) -> list[Lane]:
        """The lanes that have been built."""
        return list(self._lanes.values())

    def is_ready(self, index: int) -> bool:
        """Return whether a lane has been built."""
        return index in self._lanes

    def lane(self, index: int) -> Lane:
        """Return a lane, building it if needed."""
        if index not in self._lanes:
            self.build([index])
        return self._lanes[index]

    def take(self, index: int, lane: Lane) -> None:
        """Add a lane that was built earlier from the same trace.

        Raises:
            IndexError: There is no such lane.
        """
        if not 0 <= index < len(self.infos):
            raise IndexError(f"lane {index} of {len(self.infos)}")
        self._lanes[index] = lane
        spans = lane.spans
        if self.infos[index].kind is LaneKind.CPU and spans.thread is not None:
            runs = np.flatnonzero(spans.value >= FIRST_PROCESS)
            values = self._process_values.copy()  # another thread may read the old array
            values[self.trace.threads.process[spans.thread[runs]]] = spans.value[runs]
            self._process_values = values

    def lane_classes(self) -> tuple[LaneClass, ...]:
        """Return the lane classes for which the trace has events, whether shown or not."""
        has_codes = self.trace.pairs is None

        def has_events(lane_class: LaneClass) -> bool:
            if not lane_class.codes:
                return lane_class.name in self._finders
            return has_codes and bool(self.trace.code_counts[list(lane_class.codes)].any())

        return tuple(filter(has_events, LANE_CLASSES))

    @property
    def user_lanes(self) -> UserLanes:
        """Descriptions and rules of user events."""
        return self._user

    def describe_user_events(self, user: UserLanes) -> None:
        """Set the descriptions and rules of user events; if they change, `show_classes` finds these lanes again."""
        if user != self._user:
            self._user = user
            self.forget_class("user")

    def use_finder(self, name: str, finder: Finder) -> None:
        """Set the function that finds the lanes of a class; if it changes, `show_classes` finds the lanes again."""
        if self._finders.get(name) != finder:
            self._finders[name] = finder
            self.forget_class(name)

    def offer_finder(self, name: str, finder: Finder) -> None:
        """Set the function that finds the lanes of a class, unless one is set already."""
        self._finders.setdefault(name, finder)

    def take_finders(self, other: Timeline) -> None:
        """Set the functions that find lanes to those of another timeline of the same file."""
        for name, finder in other._finders.items():
            self.use_finder(name, finder)

    def forget_class(self, name: str) -> None:
        """Drop the lanes found for a class, so that `show_classes` finds them again, such as with new names."""
        self._tracks.pop(name, None)

    def has_classes(self, names: Iterable[str]) -> bool:
        """Return whether the lanes of the given classes have been found; unknown names are ignored."""
        return all(name in self._tracks for name in names if name in LANE_CLASS_BY_NAME)

    @property
    def known_classes(self) -> frozenset[str]:
        """Names of the classes whose lanes have been found."""
        return frozenset(self._tracks)

    def lanes_of_class(self, name: str) -> frozenset[int]:
        """Return the lanes of a class; empty if they have not been found yet."""
        return self._tracks.get(name, frozenset())

    def show_classes(self, names: Iterable[str], cancelled: Callable[[], bool] = lambda: False) -> None:
        """Find the lanes of lane classes and append them to `infos`; takes one or more passes over the events.

        Args:
            names: Names of classes; those whose lanes have been found already cost nothing.
            cancelled: Called between classes; True ends the search early.
        """
        classes_with_events = self.lane_classes()
        for lane_class in LANE_CLASSES:
            if lane_class.name not in names or lane_class.name in self._tracks or cancelled():
                continue
            finder = self._finders.get(lane_class.name) or finder_of(lane_class)
            of_class = finder(self.trace, lane_class, self._user) if lane_class in classes_with_events else []
            with self._lock:
                if lane_class.name in self._tracks:  # another view has found its lanes meanwhile
                    continue
                tracks = (track for part in of_class for track in tracks_of(lane_class, part))
                more = track_infos(self.trace, self.infos, tracks)
                self._tracks[lane_class.name] = frozenset(info.index for info in more)
                self.infos = (*self.infos, *more)

    def build(self, indices: Iterable[int], cancelled: Callable[[], bool] = lambda: False) -> None:
        """Build those of the given lanes that are not built yet; stops early when `cancelled()` returns true.

        Waits for lanes that another thread is building.
        """
        indices = tuple(indices)
        while missing := [i for i in indices if i not in self._lanes]:
            claimed = self._claims.take(missing)
            try:
                self._build([i for i in claimed if i not in self._lanes], cancelled)
            finally:
                self._claims.leave(claimed)
            if cancelled():
                return
            if not claimed:
                self._claims.wait(_LOOK_S)

    def _build(self, requested: list[int], cancelled: Callable[[], bool]) -> None:
        for start in range(0, len(requested), _LANES_AT_ONCE):
            batch = requested[start : start + _LANES_AT_ONCE]
            spans, numbers, ready = {}, {}, {}
            for index in batch:
                if cancelled():
                    return
                track = self.infos[index].track
                if track is not None:
                    spans[index], numbers[index] = track.spans(self.trace)
                else:
                    spans[index], ready[index] = self._spans(self.infos[index])
            window = self.trace.window
            shifts = np.array([finest_shift(window, len(lane)) for lane in spans.values()], np.int64)
            cells = event_cells(self.trace, [self.infos[index] for index in spans], shifts, self._mark_codes)
            for (index, lane), seen in zip(spans.items(), cells, strict=True):
                if cancelled():
                    return
                info, levels = self.infos[index], build_levels(lane, window, seen)
                final = self._final(lane, info)
                shares, use = LaneShares.of(final), self._use(info)
                self._lanes[index] = Lane(final, levels, shares, use, ready.get(index), numbers.get(index))

    def kinds(self, index: int) -> LaneShares | None:
        """Return the time of a CPU lane by kind of code (user, kernel, ...); None until `build_kinds` has run."""
        return self._kinds.get(index)

    @property
    def has_kinds(self) -> bool:
        """True if `build_kinds` has completed."""
        return len(self._kinds) == sum(info.kind is LaneKind.CPU for info in self.infos)

    def build_kinds(self, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Compute `kinds` for all CPUs, building their lanes too; stops early when `cancelled()` returns true."""
        kinds = {}
        for info in self.infos:
            if info.kind is not LaneKind.CPU or info.index in self._kinds:
                continue
            if cancelled():
                return
            handled = next((self.lane(other.index).spans for other in self.infos
                            if other.parent == info.index and other.kind is LaneKind.INTERRUPTS), None)  # fmt: skip
            spans = kind_spans(self.trace, info.cpu, self.lane(info.index).spans, handled)
            kinds[info.index] = LaneShares.of(spans)
        self._kinds |= kinds  # all at once, as CPU lanes with and without kinds look different

    def make_bins(self, indices: Iterable[int]) -> None:
        """Compute the sums that drawing the shares of lanes needs, before drawing; lanes not yet built are skipped."""
        for index in indices:
            lane, kinds = self._lanes.get(index), self.kinds(index)
            for shares in (lane.shares, lane.use, lane.ready, kinds) if lane is not None else ():
                if shares is not None:
                    shares.make_bins(self.trace.window)

    def events_of(self, index: int) -> NDArray[np.uint32]:
        """Return the rows of the events on a lane, in time order.

        See `event_marks.belongs` for which events are on a lane. The result of the last lane is cached.

        Returns:
            uint32 (n,).
        """
        with self._lock:
            cached, rows = self._rows
        if cached == index:
            return rows
        track = self.infos[index].track
        if track is not None:
            return track.rows
        rows = np.flatnonzero(belongs(self.trace, self.infos[index], slice(None))).astype(np.uint32)
        with self._lock:
            self._rows = (index, rows)
        return rows

    def raster(
        self, indices: Sequence[int], window: TimeWindow, width_px: int, exact: bool = False
    ) -> NDArray[np.uint8]:
        """Return the pixels of lanes, each a lane value with flags, shape (len(indices), width_px), uint8.

        Args:
            indices: Lanes, top to bottom; those not built yet are `ABSENT`.
            window: Range of time; may reach beyond the trace.
            width_px: Width in pixels.
            exact: Use every interval instead of levels: exact for each pixel, but slow for long windows.
        """
        out = np.zeros((len(indices), width_px), np.uint8)
        edges = pixel_edges(window, width_px)
        cells: dict[tuple[int, int], PixelCells] = {}
        beyond = []
        for row, index in enumerate(indices):
            lane = self._lanes.get(index)
            if lane is None:
                continue
            level = None if exact else lane.levels.level_for(window.length / width_px)
            if level is None:
                beyond.append(row)
                continue
            shift, count = lane.levels.shift + level, len(lane.levels.cells[level])
            if (shift, count) not in cells:
                cells[shift, count] = PixelCells.of(edges, lane.levels.origin, shift, count)
            cells[shift, count].take(lane.levels.cells[level], out[row])
        if beyond:
            lanes = [self._lanes[indices[row]] for row in beyond]
            out[beyond] = exact_raster([lane.spans for lane in lanes], window, width_px)
            self._mark_events(out, beyond, indices, window, edges)
        return out

    def label(self, span: Span) -> str:
        """Return the label of an interval: `RUNNING`, `idle`, `devb-eide 2`, `interrupt`."""
        return span.text or self.label_of(span.value, span.thread)

    def label_of(self, value: int, thread: int) -> str:
        """Return the label of an interval without a text, from its value and thread."""
        if value in STATE_BY_VALUE:
            return STATE_BY_VALUE[value].name
        if value >= FIRST_PROCESS or (value == IDLE and thread):
            name = self.trace.thread_name(thread)
            return f"idle ({name})" if value == IDLE else name
        return _LABELS.get(value, "")

    def _tree(self) -> list[LaneInfo]:
        trace, infos = self.trace, list[LaneInfo]()
        doubtful = doubts(trace)
        for cpu in range(trace.cpu_count):
            infos.append(LaneInfo(len(infos), LaneKind.CPU, trace.cpu_title(cpu), self._cpu_subtitle(cpu), -1, cpu))
            if self._has_interrupts(cpu):
                infos.append(LaneInfo(len(infos), LaneKind.INTERRUPTS, "interrupts", "", len(infos) - 1, cpu))
        threads = np.argsort(trace.threads.process, kind="stable")
        starts = np.searchsorted(trace.threads.process[threads], np.arange(len(trace.processes) + 1))
        for process in np.flatnonzero(~doubtful.processes)[1:].tolist():
            own = threads[starts[process] : starts[process + 1]]
            own = own[np.argsort(trace.threads.tid[own], kind="stable")]
            parent, pid, title = len(infos), int(trace.processes.pid[process]), trace.process_name(process)
            subtitle = f"pid {pid}" if not title.endswith(f"[{pid}]") else ""
            infos.append(LaneInfo(parent, LaneKind.PROCESS, title, subtitle, -1, process=process))
            for thread in own[~doubtful.threads[own]].tolist():
                name, tid = trace.threads.names[thread], int(trace.threads.tid[thread])
                title, subtitle = (name, f"tid {tid}") if name else (f"thread {tid}", "")
                infos.append(
                    LaneInfo(len(infos), LaneKind.THREAD, title, subtitle, parent, process=process, thread=thread)
                )
        if doubtful:
            infos.append(LaneInfo(len(infos), LaneKind.DAMAGED, "damaged", _doubts_text(trace, doubtful), -1))
        for number, lane in enumerate(plugged_lanes(trace)):
            infos.append(LaneInfo(len(infos), LaneKind.PLUGGED, lane.title, lane.subtitle, -1, plugged=number))
        return infos

    def _cpu_subtitle(self, cpu: int) -> str:
        cpus = self.trace.system.cpus if self.trace.system else ()
        return f"{cpus[cpu].speed_mhz} MHz" if cpu < len(cpus) and cpus[cpu].speed_mhz else ""

    def _has_interrupts(self, cpu: int) -> bool:
        events, counts = self.trace.events, self.trace.code_counts
        if not counts[wire.code(wire.WireClass.INT, 0) : wire.code(wire.WireClass.INT, 1023) + 1].any():
            return False
        return any(
            np.any(
                (events.cpu[start : start + (1 << 20)] == cpu)
                & (events.code[start : start + (1 << 20)] >> wire.CLASS_SHIFT == wire.WireClass.INT)
            )
            for start in range(0, len(events), 1 << 20)
        )

    def _spans(self, info: LaneInfo) -> tuple[LaneSpans, LaneShares | None]:
        """Return the intervals of a lane and, for a process, how many of its threads are READY over time."""
        trace = self.trace
        if info.kind == LaneKind.PROCESS:
            return self._process(info.process)
        if info.kind == LaneKind.PLUGGED:
            return plugged_lanes(trace)[info.plugged].within(trace), None
        if info.kind == LaneKind.DAMAGED:
            return constant_lane(trace.window, UNKNOWN), None
        if info.kind == LaneKind.THREAD:
            return self._thread_spans(info.thread), None
        if info.kind == LaneKind.INTERRUPTS:
            return interrupt_spans(trace, info.cpu) or constant_lane(trace.window), None
        self._process_values = process_values(trace)
        return cpu_spans(trace, info.cpu, self._idle), None

    def _process(self, process: int) -> tuple[LaneSpans, LaneShares]:
        window = self.trace.window
        threads = np.flatnonzero(self.trace.threads.process == process)
        lanes = [self._thread_spans(thread) for thread in threads.tolist()]
        start, end = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for lane in lanes:
            waits = np.flatnonzero(lane.value == READY)
            start.append(lane.start_cycles[waits])
            end.append(np.append(lane.start_cycles[1:], lane.end_cycles)[waits])
        ready = count_spans(np.concatenate(start), np.concatenate(end), window)
        return process_spans(lanes, window.end) if lanes else constant_lane(window, UNKNOWN), LaneShares.counting(ready)

    def _final(self, lane: LaneSpans, info: LaneInfo) -> LaneSpans:
        """Return a lane in the form to keep: columns are views of the event table where possible, else `settled`."""
        trace = self.trace
        thread = info.thread if info.kind is LaneKind.THREAD and files_of(trace) is None else 0
        states = trace.states.of(thread) if thread else trace.states.event[:0]
        return settled(with_views(lane, self._clock, states) if info.track is None else lane)

    def _use(self, info: LaneInfo) -> LaneShares | None:
        """Return how many CPUs a process uses over time; None for other lanes."""
        if info.kind is not LaneKind.PROCESS:
            return None
        rows, ends = run_slices(self.trace)
        with self._lock:
            if self._by_process is None:
                count = len(self.trace.processes)
                # 8 or 16 bits, which numpy sorts five times as fast.
                of_thread = np.where(self._idle, 0, self.trace.threads.process).astype(np.min_scalar_type(count))
                process = of_thread[self.trace.events.thread[rows]]
                order = np.argsort(process, kind="stable").astype(np.uint32)
                self._by_process = order, np.cumsum([0, *np.bincount(process, minlength=count)])
            order, starts = self._by_process
        own = order[starts[info.process] : starts[info.process + 1]]
        return LaneShares.counting(count_spans(self.trace.events.time_cycles[rows[own]], ends[own], self.trace.window))

    def _thread_spans(self, thread: int) -> LaneSpans:
        return thread_spans(self.trace, thread, self._idle_values if self._idle[thread] else self._values)

    def _mark_events(
        self,
        out: NDArray[np.uint8],
        rows: list[int],
        indices: Sequence[int],
        window: TimeWindow,
        edges: NDArray[np.int64],
    ) -> None:
        """Set the flag `SEEN_EVENT` in those `rows` of the picture `out` that are drawn from intervals.

        The events of the window are examined if they are few; otherwise the flags of `Levels` are used.
        """
        part = self.trace.rows_between(window)
        if part.stop - part.start > _TICKS_PER_FRAME:
            self._mark_from_levels(out, rows, indices, edges)
            return
        infos = [self.infos[indices[row]] for row in rows]
        marked = marks_between(self.trace, infos, part, self._mark_codes, edges)
        out[rows] |= marked * np.uint8(SEEN_EVENT)

    def _mark_from_levels(
        self, out: NDArray[np.uint8], rows: list[int], indices: Sequence[int], edges: NDArray[np.int64]
    ) -> None:
        pixels: dict[tuple[int, int], PixelCells] = {}
        px_cycles = float(edges[-1] - edges[0]) / out.shape[1]
        for row in rows:
            levels = self._lanes[indices[row]].levels
            level = levels.level_for(px_cycles / _CELLS_PER_MARK) or 0
            grid = (levels.shift + level, len(levels.cells[level]))
            if grid not in pixels:
                pixels[grid] = PixelCells.of(edges, levels.origin, *grid)
            out[row] |= pixels[grid].any_of(levels.cells[level], SEEN_EVENT)


def _doubts_text(trace: Trace, doubtful: Doubts) -> str:
    """Return a text that counts the CPUs, processes and threads of damaged slots: `2 CPUs, 1 process`."""
    of_real = doubtful.threads & ~doubtful.processes[trace.threads.process]
    seen = np.zeros(len(doubtful.cpus), np.bool_)
    seen[np.unique(trace.events.cpu)] = True
    counts = (
        (int((doubtful.cpus & seen).sum()), "CPU", "CPUs"),
        (int(doubtful.processes.sum()), "process", "processes"),
        (int(of_real.sum()), "thread", "threads"),
    )
    return ", ".join(f"{count} {singular if count == 1 else plural}" for count, singular, plural in counts if count)


# Converts lanes to arrays and plain values for a cache, and back.


_NOT_STORED: Final = (LaneKind.PLUGGED, LaneKind.TRACK)  # plug-ins may change; track lanes depend on settings


def lanes_of(timeline: Timeline, indices: Iterable[int]) -> tuple[list[dict[str, Any]], dict[str, NDArray[Any]]]:
    """Return lanes in a form to store in a cache; lanes not yet built, of plug-ins and of tracks are left out.

    Args:
        timeline: The timeline with the lanes.
        indices: The lanes.

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
    """Add lanes from a cache, the results of `lanes_of`, to a timeline.

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
    """Return the stored count `use` (CPUs in use) or `ready` (READY threads) of a process lane; None for others.

    Raises:
        ValueError: The arrays cannot be counts of this lane.
    """
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
