"""All lanes of a trace as a tree: CPUs with their interrupts, then processes with their threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.time import TimeWindow
from satview.events import wire
from satview.events.states import (
    ABSENT,
    FIRST_PROCESS,
    IDLE,
    INTERRUPT,
    KERNEL_CALL,
    SEEN_EVENT,
    STATE_BY_VALUE,
    UNKNOWN,
    WAITING,
)
from satview.store.trace import Trace
from satview.timeline.calls import lost_marks
from satview.timeline.lane import Lane
from satview.timeline.levels import PixelCells, build_levels, finest_shift
from satview.timeline.per_cpu import cpu_spans, idle_threads, interrupt_spans, run_slices
from satview.timeline.per_thread import idle_values, process_spans, thread_spans, value_of_code
from satview.timeline.spans import LaneSpans, Span, constant_lane, exact_raster, pixel_edges

_TICKS_PER_FRAME: Final = 400_000  # events that a frame may place one by one; beyond it the levels tell
_NO_LANE: Final = 2**32 - 1


class LaneKind(StrEnum):
    """What a lane is about."""

    CPU = "cpu"
    INTERRUPTS = "interrupts"
    PROCESS = "process"
    THREAD = "thread"


@dataclass(frozen=True, slots=True)
class LaneInfo:
    """A lane before it is built.

    Attributes:
        index: Its place in `Timeline.infos`.
        kind: What it is about.
        title: `CPU 0`, `devb-eide`, `2 worker`.
        subtitle: `pid 8195`, `interrupts`; may be empty.
        parent: Index of the lane it unfolds from; -1 = none.
        cpu: Number of the CPU; -1 = not of one.
        process: Row of the process; 0 = none.
        thread: Row of the thread; 0 = none.
    """

    index: int
    kind: LaneKind
    title: str
    subtitle: str
    parent: int
    cpu: int = -1
    process: int = 0
    thread: int = 0


class Timeline:
    """Lanes of one trace, built when asked for. Safe to use from several threads.

    Attributes:
        trace: The trace.
        infos: All lanes in the order of the tree.
        lost_marks: (k, 2) int64, stretches of time in which events are missing.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.lost_marks: NDArray[np.int64] = lost_marks(trace)
        self._idle = idle_threads(trace)
        self._values = value_of_code(trace)
        self._idle_values = idle_values(self._values)
        self._slices: tuple[NDArray[np.uint32], NDArray[np.int64]] | None = None
        self._lanes: dict[int, Lane] = {}
        self._rows: tuple[int, NDArray[np.uint32]] = (-1, np.empty(0, np.uint32))
        self._lock = threading.Lock()
        self.infos: tuple[LaneInfo, ...] = tuple(self._tree())

    def is_ready(self, index: int) -> bool:
        """Tell whether a lane can be drawn at once."""
        return index in self._lanes

    def lane(self, index: int) -> Lane:
        """Return a lane, building it if needed."""
        if index not in self._lanes:
            self.build([index])
        return self._lanes[index]

    def build(self, indices: Iterable[int], cancelled: Callable[[], bool] | None = None) -> None:
        """Build lanes that are not ready yet; stops early when `cancelled()` says so."""
        wanted = [i for i in indices if i not in self._lanes]
        for at in range(0, len(wanted), 64):
            batch = wanted[at : at + 64]
            spans = {}
            for index in batch:
                if cancelled is not None and cancelled():
                    return
                spans[index] = self._spans(self.infos[index])
            cells = self._event_cells(spans)
            for index, lane in spans.items():
                if cancelled is not None and cancelled():
                    return
                self._lanes[index] = Lane(lane, build_levels(lane, self.trace.window, cells.get(index)))

    def events_of(self, index: int) -> NDArray[np.uint32]:
        """Return the rows of the events that belong to a lane, in time order.

        To a thread its state changes and what it did while running; to a process those of its threads; to a CPU all
        that it logged; to an interrupt lane the interrupts. The answer for one lane is kept.
        """
        with self._lock:
            kept, rows = self._rows
        if kept == index:
            return rows
        rows = np.flatnonzero(self._belongs(self.infos[index], slice(None))).astype(np.uint32)
        with self._lock:
            self._rows = (index, rows)
        return rows

    def raster(
        self, indices: Sequence[int], window: TimeWindow, width_px: int, exact: bool = False
    ) -> NDArray[np.uint8]:
        """Return pixels of lanes: value and flags, shape (len(indices), width_px), uint8.

        Args:
            indices: Lanes, top to bottom; those not ready come out as `ABSENT`.
            window: What is shown; may reach beyond the trace.
            width_px: Pixels.
            exact: Sum every interval instead of using levels: right per pixel, but slow for long windows.
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
        """Return a few words for an interval: `RUNNING`, `idle`, `devb-eide 2`, `interrupt`."""
        if span.value in STATE_BY_VALUE:
            return STATE_BY_VALUE[span.value].name
        if span.value >= FIRST_PROCESS or (span.value == IDLE and span.thread):
            name = self.trace.thread_name(span.thread)
            return f"idle ({name})" if span.value == IDLE else name
        return {
            ABSENT: "",
            UNKNOWN: "unknown",
            IDLE: "idle",
            INTERRUPT: "interrupt",
            KERNEL_CALL: "kernel call",
            WAITING: "waiting",
        }.get(span.value, "")

    def _tree(self) -> list[LaneInfo]:
        trace, infos = self.trace, list[LaneInfo]()
        for cpu in range(trace.cpu_count):
            infos.append(LaneInfo(len(infos), LaneKind.CPU, trace.cpu_title(cpu), self._cpu_subtitle(cpu), -1, cpu))
            if self._has_interrupts(cpu):
                infos.append(LaneInfo(len(infos), LaneKind.INTERRUPTS, "interrupts", "", len(infos) - 1, cpu))
        threads = np.argsort(trace.threads.process, kind="stable")
        starts = np.searchsorted(trace.threads.process[threads], np.arange(len(trace.processes) + 1))
        for process in range(1, len(trace.processes)):
            mine = threads[starts[process] : starts[process + 1]]
            mine = mine[np.argsort(trace.threads.tid[mine], kind="stable")]
            parent = len(infos)
            infos.append(
                LaneInfo(
                    parent,
                    LaneKind.PROCESS,
                    trace.process_name(process),
                    f"pid {trace.processes.pid[process]}",
                    -1,
                    process=process,
                )
            )
            for thread in mine.tolist():
                name = trace.threads.names[thread]
                tid = int(trace.threads.tid[thread])
                infos.append(
                    LaneInfo(
                        len(infos),
                        LaneKind.THREAD,
                        name or f"thread {tid}",
                        f"tid {tid}" if name else "",
                        parent,
                        process=process,
                        thread=thread,
                    )
                )
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
                (events.cpu[at : at + (1 << 20)] == cpu)
                & (events.code[at : at + (1 << 20)] >> wire.CLASS_SHIFT == wire.WireClass.INT)
            )
            for at in range(0, len(events), 1 << 20)
        )

    def _threads_of(self, process: int) -> NDArray[np.intp]:
        return np.flatnonzero(self.trace.threads.process == process)

    def _spans(self, info: LaneInfo) -> LaneSpans:
        trace = self.trace
        if info.kind == LaneKind.THREAD:
            return self._thread_spans(info.thread)
        if info.kind == LaneKind.PROCESS:
            lanes = [self._thread_spans(thread) for thread in self._threads_of(info.process).tolist()]
            return process_spans(lanes, trace.window.end) if lanes else constant_lane(trace.window, UNKNOWN)
        if info.kind == LaneKind.INTERRUPTS:
            return interrupt_spans(trace, info.cpu, self.lost_marks[:, 1]) or constant_lane(trace.window)
        with self._lock:
            if self._slices is None:
                self._slices = run_slices(trace)
        return cpu_spans(trace, info.cpu, self._slices, self._idle)

    def _thread_spans(self, thread: int) -> LaneSpans:
        return thread_spans(self.trace, thread, self._idle_values if self._idle[thread] else self._values)

    def _belongs(self, info: LaneInfo, rows: slice) -> NDArray[np.bool_]:
        events = self.trace.events
        if info.kind == LaneKind.THREAD:
            return np.asarray(events.thread[rows] == info.thread)
        if info.kind == LaneKind.PROCESS:
            member = np.zeros(len(self.trace.threads), np.bool_)
            member[self._threads_of(info.process)] = True
            return np.asarray(member[events.thread[rows]])
        mine = events.cpu[rows] == info.cpu
        if info.kind == LaneKind.INTERRUPTS:
            mine &= events.code[rows] >> wire.CLASS_SHIFT == wire.WireClass.INT
        return np.asarray(mine)

    def _is_mark(self, rows: slice) -> NDArray[np.bool_]:
        """Tell which events are marks on a lane: all but state changes and control events."""
        code = self.trace.events.code[rows]
        table = np.ones(wire.CODE_COUNT, np.bool_)
        codes = np.arange(wire.CODE_COUNT)
        table[(codes >> wire.CLASS_SHIFT == wire.WireClass.CONTROL)] = False
        table[(codes >> wire.CLASS_SHIFT == wire.WireClass.PR_TH) & (codes & wire.EVENT_MASK < 64)] = False
        return np.asarray(table[code])

    def _event_cells(self, spans: dict[int, LaneSpans]) -> dict[int, NDArray[np.integer]]:
        """Return the finest cells that hold a mark, for every lane of a batch in one pass over the events."""
        window = self.trace.window
        lane_of = {
            "thread": np.full(len(self.trace.threads), _NO_LANE, np.uint32),
            "cpu": np.full(256, _NO_LANE, np.uint32),
            "interrupts": np.full(256, _NO_LANE, np.uint32),
            "process": np.full(len(self.trace.threads), _NO_LANE, np.uint32),
        }
        order = list(spans)
        for number, index in enumerate(order):
            info = self.infos[index]
            at: Any = {LaneKind.THREAD: info.thread, LaneKind.PROCESS: self._threads_of(info.process)}.get(
                info.kind, info.cpu
            )
            lane_of[info.kind.value][at] = number
        shifts = np.array([finest_shift(window, len(spans[index])) for index in order], np.int64)
        counts = ((window.length - 1) >> shifts) + 1
        offset = np.cumsum(counts) - counts
        seen = np.zeros(int(counts.sum()), np.bool_)
        for begin in range(0, len(self.trace.events), 1 << 17):
            rows = slice(begin, begin + (1 << 17))
            marks = np.flatnonzero(self._is_mark(rows)) + begin
            time = self.trace.events.time_cycles[marks] - window.start
            for name, table in lane_of.items():
                if (table == _NO_LANE).all():
                    continue
                key = self.trace.events.cpu[marks] if name in ("cpu", "interrupts") else self.trace.events.thread[marks]
                lane = table[key]
                mine = lane != _NO_LANE
                if name == "interrupts":
                    mine &= self.trace.events.code[marks] >> wire.CLASS_SHIFT == wire.WireClass.INT
                chosen = lane[mine].astype(np.intp)
                seen[offset[chosen] + (time[mine] >> shifts[chosen])] = True
        return {index: np.flatnonzero(seen[offset[i] : offset[i] + counts[i]]) for i, index in enumerate(order)}

    def _mark_events(
        self,
        out: NDArray[np.uint8],
        rows: list[int],
        indices: Sequence[int],
        window: TimeWindow,
        edges: NDArray[np.int64],
    ) -> None:
        """Set `SEEN_EVENT` on lanes drawn from their intervals: event by event where few are in the window."""
        part = self.trace.rows_between(window)
        if part.stop - part.start > _TICKS_PER_FRAME:
            self._mark_from_levels(out, rows, indices, edges)
            return
        marks = np.flatnonzero(self._is_mark(part)) + part.start
        if not len(marks):
            return
        pixel = np.searchsorted(edges, self.trace.events.time_cycles[marks], side="right") - 1
        if window.length < out.shape[1]:
            pixel = np.searchsorted(edges[:-1], self.trace.events.time_cycles[marks])
        keep = (pixel >= 0) & (pixel < out.shape[1])
        marks, pixel = marks[keep], pixel[keep]
        threads, cpus = self.trace.events.thread[marks], self.trace.events.cpu[marks]
        is_interrupt = self.trace.events.code[marks] >> wire.CLASS_SHIFT == wire.WireClass.INT
        tables = {kind: np.full(max(len(self.trace.threads), 64), -1, np.int64) for kind in LaneKind}
        row_of_process = np.full(len(self.trace.processes), -1, np.int64)
        for row in rows:
            info = self.infos[indices[row]]
            if info.kind == LaneKind.PROCESS:
                row_of_process[info.process] = row
            else:
                tables[info.kind][info.thread if info.kind == LaneKind.THREAD else info.cpu] = row
        tables[LaneKind.PROCESS][: len(self.trace.threads)] = row_of_process[self.trace.threads.process]
        for kind, table in tables.items():
            target = table[threads if kind in (LaneKind.THREAD, LaneKind.PROCESS) else cpus]
            mine = target >= 0
            if kind == LaneKind.INTERRUPTS:
                mine &= is_interrupt
            out[target[mine], pixel[mine]] |= SEEN_EVENT

    def _mark_from_levels(
        self, out: NDArray[np.uint8], rows: list[int], indices: Sequence[int], edges: NDArray[np.int64]
    ) -> None:
        line = np.empty(out.shape[1], np.uint8)
        pixels: dict[tuple[int, int], PixelCells] = {}
        for row in rows:
            levels = self._lanes[indices[row]].levels
            grid = (levels.shift, len(levels.cells[0]))
            if grid not in pixels:
                pixels[grid] = PixelCells.of(edges, levels.origin, *grid)
            pixels[grid].take(levels.cells[0], line)
            out[row] |= line & SEEN_EVENT
