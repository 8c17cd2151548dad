"""Event marks on lanes: the lane and the pixel or cell of each event. Cost is proportional to the events given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, Literal

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike, NDArray

from satview.core import pictures
from satview.events import wire
from satview.store.time_ranges import CPU_NUMBERS, doubts
from satview.store.trace import Trace
from satview.timeline.lane_info import LaneInfo, LaneKind
from satview.timeline.spans import LaneSpans

# Columns of lanes that are views of the event table: an interval begins at the time of its event, which is not copied.


_Rows = NDArray[np.uint32]
_MOMENTS: Final = 64  # cached searches


class EventClock:
    """The times of all events of a trace, with cached searches, as all lanes of a picture search for the same times.

    Attributes:
        time: int64 (events,), ascending.
    """

    def __init__(self, time: NDArray[np.int64]) -> None:
        self.time = time
        self._cache: dict[tuple[int, str], np.uint32] = {}

    def row(self, cycles: int, side: Literal["left", "right"]) -> np.uint32:
        """Return the number of events before a time; events at that time are included if `side` is "right"."""
        row = self._cache.get((cycles, side))
        if row is None:
            if len(self._cache) >= _MOMENTS:
                self._cache = {}  # a new dictionary, as other threads may read the old one
            row = self._cache[cycles, side] = np.uint32(self.time.searchsorted(cycles, side))
        return row


class _Behind(NDArrayOperatorsMixin):
    """A column, used like an array: one value, then values that are looked up by ascending event rows, not copied."""

    dtype: np.dtype[Any]
    ndim: Final = 1

    def __init__(self, first: int, rows: _Rows) -> None:
        self.first, self.rows = first, rows

    def _of(self, rows: Any) -> Any:
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int]:
        """Shape, as of a numpy array."""
        return (len(self),)

    @property
    def size(self) -> int:
        """Number of values, as of a numpy array."""
        return len(self)

    @property
    def nbytes(self) -> int:
        """Size of its own data: 0, as it is a view."""
        return 0

    def __len__(self) -> int:
        return len(self.rows) + 1

    def __getitem__(self, key: Any) -> Any:
        # The fast path of drawing, which reads the visible intervals of each lane and the one behind them.
        if type(key) is slice and key.step is None and key.start and key.stop and 0 < key.start <= key.stop:
            return self._of(self.rows[key.start - 1 : key.stop - 1])
        if type(key) is int and 0 < key <= len(self.rows):
            return self._of(self.rows[key - 1])
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1 and start:
                return self._of(self.rows[start - 1 : max(stop, start) - 1])
            key = np.arange(start, stop, step)
        elif isinstance(key, int | np.integer):
            position = range(len(self))[key]
            return self._of(self.rows[position - 1]) if position else self.dtype.type(self.first)
        key = np.asarray(key)
        key = np.flatnonzero(key) if key.dtype == np.bool_ else np.where(key < 0, key + len(self), key)
        times = np.array(self._of(self.rows[np.maximum(key, 1) - 1]))
        times[key == 0] = self.first
        return times

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        whole = np.empty(len(self), self.dtype if dtype is None else dtype)
        whole[0], whole[1:] = self.first, self._of(self.rows)
        return whole

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        arrays = (np.asarray(operand) if isinstance(operand, _Behind) else operand for operand in inputs)
        return getattr(ufunc, method)(*arrays, **options)

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of an array, from a copy."""
        if name.startswith("__"):  # numpy looks for array protocols
            raise AttributeError(name)
        return getattr(np.asarray(self), name)


class EventTimes(_Behind):
    """Start times of the intervals of a lane, int64 (n,): one time, then the times of event rows.

    Attributes:
        clock: The times of all events.
    """

    dtype = np.dtype(np.int64)

    def __init__(self, first: int, rows: _Rows, clock: EventClock) -> None:
        super().__init__(first, rows)
        self.clock = clock

    def _of(self, rows: Any) -> Any:
        return self.clock.time[rows]

    def searchsorted(self, v: Any, side: Literal["left", "right"] = "left", sorter: None = None) -> Any:  # noqa: ARG002  -- numpy gives it
        """Return the same as `ndarray.searchsorted`, by a search among all events and one among the lane's rows."""
        if type(v) is int:
            position = self.rows.searchsorted(self.clock.row(v, side))
            return position + (v > self.first if side == "left" else v >= self.first)
        v = np.asarray(v)
        # As uint32, so that the rows need not be converted.
        row = self.clock.time.searchsorted(v, side).astype(np.uint32)
        return self.rows.searchsorted(row) + (v > self.first if side == "left" else v >= self.first)


class EventRows(_Behind):
    """Rows of the events that begin the intervals of a lane, uint32 (n,): the first row, then a view of other rows."""

    dtype = np.dtype(np.uint32)

    def _of(self, rows: Any) -> Any:
        return rows


def with_views(spans: LaneSpans, clock: EventClock, states: _Rows) -> LaneSpans:
    """Return a lane whose start times, and events if they are `states`, are views of the event table.

    A lane whose intervals do not begin at the times of their events is returned unchanged.

    Args:
        spans: The lane.
        clock: The times of all events.
        states: uint32, the state events of the thread of the lane; empty for other lanes.
    """
    rows = spans.event[1:]
    # Where events are missing, intervals begin without an event: such lanes keep their own columns.
    if len(rows) == 0 or int(rows.max()) >= len(clock.time):
        return spans
    if not np.array_equal(clock.time[rows], spans.start_cycles[1:]):
        return spans
    event: Any = spans.event
    if np.array_equal(rows, states):
        event, rows = EventRows(int(spans.event[0]), states), states
    start: Any = EventTimes(int(spans.start_cycles[0]), rows, clock)
    return replace(spans, start_cycles=start, event=event)


Rows = NDArray[np.unsignedinteger]
_CHUNK: Final = 1 << 17
_NO_INTERRUPTS: Final = (LaneKind.CPU, LaneKind.PROCESS, LaneKind.THREAD)  # lanes without marks for interrupts
_APART: Final = (LaneKind.PLUGGED, LaneKind.TRACK)  # lanes that are not in the tables by thread and CPU


def mark_codes() -> NDArray[np.bool_]:
    """Return which codes have marks on lanes, bool (32768,): all but state changes, CREATE, DESTROY and CONTROL."""
    codes = np.arange(wire.CODE_COUNT)
    classes = codes >> wire.CLASS_SHIFT
    is_thread_event = (classes == wire.WireClass.PR_TH) & (codes & wire.EVENT_MASK < wire.VTHREAD_OFFSET * 2)
    return np.asarray((classes != wire.WireClass.CONTROL) & ~is_thread_event)


def belongs(trace: Trace, info: LaneInfo, rows: NDArray[np.integer] | slice) -> NDArray[np.bool_]:
    """Return for every event row whether it is on a lane, bool (events,).

    A thread lane contains the events logged by the thread and its state changes; a process lane the events of its
    threads; a CPU lane all events logged on the CPU; an interrupt lane the interrupts of its CPU; a track lane the
    events of its track. Interrupts have marks on interrupt lanes only, see `is_marked`.
    """
    events = trace.events
    if info.track is not None:
        numbers = np.arange(len(events))[rows] if isinstance(rows, slice) else rows
        return _is_among(numbers, info.track.rows)
    if info.kind is LaneKind.THREAD:
        return np.asarray(events.thread[rows] == info.thread)
    if info.kind is LaneKind.DAMAGED:
        doubtful = doubts(trace)
        return np.asarray(doubtful.cpus[events.cpu[rows]] | doubtful.threads[events.thread[rows]])
    if info.kind is LaneKind.PROCESS:
        return np.asarray(trace.threads.process[events.thread[rows]] == info.process)
    is_own = events.cpu[rows] == info.cpu  # never true on the lane of a plug-in, which has no CPU
    if info.kind is LaneKind.INTERRUPTS:
        is_own &= events.code[rows] >> wire.CLASS_SHIFT == wire.WireClass.INT
    return np.asarray(is_own)


def is_marked(trace: Trace, info: LaneInfo, rows: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return for every event row whether it can have a mark on a lane, bool (events,).

    As `belongs`, but an interrupt has a mark on the interrupt lane only, not on those of CPU, process and thread.
    """
    shown = belongs(trace, info, rows)
    if info.kind in _NO_INTERRUPTS:
        shown &= trace.events.code[rows] >> wire.CLASS_SHIFT != wire.WireClass.INT
    return shown


class LanePositions:
    """Finds on which of several lanes events have marks: `is_marked` for many lanes at once.

    Args:
        trace: The events.
        infos: The lanes; results are positions in this sequence.
    """

    def __init__(self, trace: Trace, infos: Sequence[LaneInfo]) -> None:
        self._events = trace.events
        self.nowhere = len(infos)
        self._tables, damaged = _lane_tables(trace, infos, self.nowhere)
        self._damaged = (damaged, doubts(trace)) if damaged >= 0 else None

    def of(self, rows: Rows | NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
        """Yield arrays with the lane of each event; there are several arrays, as an event can be on several lanes.

        Yields:
            intp (len(rows),), positions of lanes, `nowhere` for none.
        """
        events = self._events
        threads, cpus = events.thread[rows], events.cpu[rows]
        are_interrupts = events.code[rows] >> wire.CLASS_SHIFT == wire.WireClass.INT
        for kind, table in self._tables.items():
            position = table.take(threads if kind in (LaneKind.THREAD, LaneKind.PROCESS) else cpus)
            position[are_interrupts if kind in _NO_INTERRUPTS else ~are_interrupts] = self.nowhere
            yield position
        if self._damaged is not None:
            lanes, doubtful = self._damaged
            yield np.where(doubtful.cpus[cpus] | doubtful.threads[threads], lanes, self.nowhere)


def marks(trace: Trace, infos: Sequence[LaneInfo], rows: Rows, edges: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each lane and pixel whether it holds one of the given events, bool (len(infos), len(edges) - 1).

    Args:
        trace: The events.
        infos: The lanes.
        rows: Event rows, ascending, all within the edges.
        edges: Edges of the pixels in cycles.
    """
    width_px = len(edges) - 1
    cells = np.zeros((len(infos) + 1, width_px), np.bool_)  # the last row is for events on none of the lanes
    positions = LanePositions(trace, infos)
    for start in range(0, len(rows), _CHUNK):
        part = rows[start : start + _CHUNK]
        column = columns_of(trace.events.time_cycles[part], edges)
        for position in positions.of(part):
            cells.reshape(-1)[position * width_px + column] = True
    for lane, own in _of_tracks(infos, rows):
        cells[lane, columns_of(trace.events.time_cycles[own], edges)] = True
    return cells[:-1]


def marks_between(
    trace: Trace, infos: Sequence[LaneInfo], part: slice, codes: NDArray[np.bool_], edges: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return for each lane and pixel whether it holds an event with a given code, bool (len(infos), len(edges) - 1).

    Args:
        trace: The events.
        infos: The lanes.
        part: Event rows, all within the edges.
        codes: Codes that have marks, bool (32768,).
        edges: Edges of the pixels in cycles.
    """
    events = trace.events
    width_px, count = len(edges) - 1, len(infos)
    # Pixel numbers are passed as times, with cells of length 1.
    column = columns_of(events.time_cycles[part], edges).astype(np.int64, copy=False)
    offset, shift = np.arange(count + 1, dtype=np.int64) * width_px, np.zeros(count, np.int64)
    cells = pictures.event_cells(
        column, events.code[part], events.cpu[part], events.thread[part], 0, codes, wire.WireClass.INT,
        wire.CLASS_SHIFT, _cell_tables(trace, infos), offset, shift,
    ).reshape(count, width_px)  # fmt: skip
    for lane, info in enumerate(infos):
        if info.track is not None:
            own = info.track.moments
            own = own[slice(*np.searchsorted(own, (part.start, part.stop)).tolist())]
            own = own[codes[events.code[own]]]
            cells[lane, columns_of(events.time_cycles[own], edges)] = True
    return cells


def event_positions(
    trace: Trace, infos: Sequence[LaneInfo], rows: Rows, edges: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], Rows]]:
    """Yield in parts all marks of events: position of the lane in `infos`, pixel, and event row.

    An event can be on several lanes. Args as for `marks`.

    Yields:
        Positions and pixels, intp (n,) each, and rows, uint32 (n,).
    """
    positions = LanePositions(trace, infos)
    for start in range(0, len(rows), _CHUNK):
        part = rows[start : start + _CHUNK]
        column = columns_of(trace.events.time_cycles[part], edges)
        for position in positions.of(part):
            on_lane = position < positions.nowhere
            yield position[on_lane], column[on_lane], part[on_lane]
    for lane, moments in _of_tracks(infos, rows):
        yield np.full(len(moments), lane, np.intp), columns_of(trace.events.time_cycles[moments], edges), moments


def _of_tracks(infos: Sequence[LaneInfo], rows: Rows) -> Iterator[tuple[int, Rows]]:
    """Yield the index of every track lane in `infos`, and those of the given rows, ascending, that have marks on it."""
    for position, info in enumerate(infos):
        if info.track is not None and len(rows):
            moments = info.track.moments
            begin, stop = np.searchsorted(moments, (rows[0], int(rows[-1]) + 1)).tolist()
            moments = moments[begin:stop]
            yield position, moments[_is_among(moments, rows)]


def _is_among(rows: NDArray[np.integer], known: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return whether each row is among ascending `known` rows, bool (n,)."""
    if not len(known):
        return np.zeros(len(rows), np.bool_)
    nearest = np.minimum(np.searchsorted(known, rows), len(known) - 1)
    return np.asarray(known[nearest] == rows)


def columns_of(times: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the pixel of each time, intp (n,); times ascend and are within the edges, (pixels + 1,)."""
    last = len(edges) - 2
    if edges[-1] - edges[0] <= last:  # a cycle is several pixels wide: the first one has the mark
        return np.clip(np.searchsorted(edges[:-1], times), 0, last)
    # Searching the times for the edges is cheaper than the reverse, as there are fewer edges.
    begins = np.searchsorted(times, edges[1:-1])
    return np.repeat(np.arange(last + 1), np.diff(begins, prepend=0, append=len(times)))


def event_cells(
    trace: Trace, infos: Sequence[LaneInfo], shifts: NDArray[np.int64], codes: NDArray[np.bool_]
) -> list[NDArray[np.bool_]]:
    """Return for every lane whether each cell (period of 2^shift cycles) holds a mark, bool (cells,).

    Args:
        trace: The events.
        infos: The lanes.
        shifts: For each lane, log2 of the length of its cells in cycles; the first cell begins with the trace.
        codes: Codes that have marks, bool (32768,).
    """
    counts = ((trace.window.length - 1) >> shifts) + 1
    offset = np.append(np.cumsum(counts) - counts, counts.sum())
    events = trace.events
    seen = pictures.event_cells(
        events.time_cycles, events.code, events.cpu, events.thread, trace.window.start, codes, wire.WireClass.INT,
        wire.CLASS_SHIFT, _cell_tables(trace, infos), offset.astype(np.int64), shifts.astype(np.int64)
    )  # fmt: skip
    return _with_tracks(trace, infos, shifts, [seen[begin:stop] for begin, stop in pairwise(offset.tolist())])


def _with_tracks(
    trace: Trace, infos: Sequence[LaneInfo], shifts: NDArray[np.int64], seen: list[NDArray[np.bool_]]
) -> list[NDArray[np.bool_]]:
    """Set the marks of track lanes in `seen`, and return `seen`."""
    for info, shift, cells in zip(infos, shifts.tolist(), seen, strict=True):
        if info.track is not None:
            cells[(trace.events.time_cycles[info.track.moments] - trace.window.start) >> shift] = True
    return seen


def _cell_tables(trace: Trace, infos: Sequence[LaneInfo]) -> pictures.CellTables:
    """Return the positions of the lanes of all threads and CPUs, in the form that the compiled core takes."""
    by_kind, number = _lane_tables(trace, infos, -1)
    tables = {kind: table.astype(np.int32) for kind, table in by_kind.items()}
    damaged: tuple[NDArray[np.int32], NDArray[np.int32]] | None = None
    if number >= 0:
        doubtful = doubts(trace)
        damaged = (np.where(doubtful.threads, number, -1).astype(np.int32),
                   np.where(doubtful.cpus, number, -1).astype(np.int32))  # fmt: skip
    return pictures.CellTables(
        (tables.get(LaneKind.THREAD), tables.get(LaneKind.PROCESS), damaged[0] if damaged else None),
        (tables.get(LaneKind.CPU), damaged[1] if damaged else None),
        tables.get(LaneKind.INTERRUPTS),
    )


def _lane_tables(trace: Trace, infos: Sequence[LaneInfo], nowhere: int) -> tuple[dict[LaneKind, NDArray[np.intp]], int]:
    """Return for each kind of lane a table from thread or CPU to its lane or `nowhere`, and the damaged lane, or -1."""
    tables: dict[LaneKind, NDArray[np.intp]] = {}
    damaged = -1
    for position, info in enumerate(infos):
        if info.kind is LaneKind.DAMAGED:
            damaged = position
        elif info.kind not in _APART:
            by_thread = info.kind in (LaneKind.THREAD, LaneKind.PROCESS)
            blank = np.full(len(trace.threads) if by_thread else CPU_NUMBERS, nowhere, np.intp)
            table = tables.setdefault(info.kind, blank)
            if info.kind is LaneKind.PROCESS:
                table[trace.threads.process == info.process] = position
            else:
                table[info.thread if by_thread else info.cpu] = position
    return tables, damaged
