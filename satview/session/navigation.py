"""Goes to events, state changes, lanes, marks and the selection; snaps the mouse to the nearest of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from typing import Final

import numpy as np
from PySide6.QtCore import QObject

from satview.analysis.times.basis import Basis
from satview.base.errors import SourceChangedError, UsageError
from satview.base.safe_text import counted
from satview.base.time import TimeWindow, parse_position, parse_range
from satview.linkage.calls import are_made, partner
from satview.linkage.chain import Step, are_linked, causes, effects
from satview.session.commands import ON
from satview.session.lanes.class_loader import event_near
from satview.session.lanes.lane_list import LaneList
from satview.session.lanes.lane_sorter import LaneSorter
from satview.session.open_trace import LINKS_AT_ONCE, OpenTrace
from satview.session.settings import Settings
from satview.session.viewport import Viewport
from satview.store.mark_file import Mark
from satview.store.trace import Trace

# A second view of an open trace, with its own time window and lane arrangement.


class SecondView(OpenTrace):
    """A second set of lanes with its own viewport; shares selection, filter, marks, search and answers with the first.

    Attributes:
        first: The first view.
    """

    def __init__(self, first: OpenTrace, settings: Settings, parent: QObject | None = None) -> None:
        """Begin with the time range and lanes of the first view, which must live longer."""
        QObject.__init__(self, parent)  # not OpenTrace.__init__: the parts exist already
        self.first, self._settings = first, settings
        self.preview = None
        self._take(first.trace, first.timeline, first.events_of_thread)
        self.edits, self.selection, self.filters = first.edits, first.selection, first.filters
        self.event_links, self.highlight, self.legend = first.event_links, first.highlight, first.legend
        self.labels = first.labels
        self.verdicts, self.doctor, self.why, self.path = first.verdicts, first.doctor, first.why, first.path
        self.marks, self.search = first.marks, first.search
        self.viewport = Viewport(first.viewport.limits, self, first.trace.window.end)
        self.viewport.set_width(first.viewport.width_px)
        self.viewport.begin_at(first.viewport.window)
        sizes = (settings.number("swimlane/lane_height_px"), settings.number("swimlane/unfold_up_to"))
        self.lanes = LaneList(first.timeline, first.filters, first.edits, *sizes, self)
        self.lanes.begin_with(first.lanes.arrangement, first.viewport.window)
        self.class_loader = first.class_loader
        self.lanes.classes_requested.connect(self.class_loader.load)
        self.sorter = LaneSorter(self.lanes, self)
        self.viewport.window_changed.connect(self._on_window)
        first.begins_reload.connect(self.begins_reload)
        first.reloaded.connect(self.reloaded)
        first.described.connect(self.described)
        first.others.append(self)

    @property
    def basis(self) -> Basis:
        """Basis of statistics, shared with the first view."""
        return self.first.basis

    def shut_down(self) -> None:
        """Stop the sorting of this view's lanes, and detach the view from the first; shared tasks go on."""
        self.first.others.remove(self)
        self.edits.forget(self.lanes)
        self.sorter.close()


_AT_ONCE: Final = 500_000  # events that can be searched for pairs within a frame


class Navigation(QObject):
    """Carries out commands and links that go to events, times, lanes and marks."""

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self._focus_before: TimeWindow | None = None
        self._focus_shows: TimeWindow | None = None
        opened.selection.changed.connect(self._forget_focus)

    def step_edge(self, direction: int, extend: bool = False) -> None:
        """Go to the next (ON) or previous (BACK) state change of the selected lane.

        Args:
            direction: ON or BACK.
            extend: True to move the end of the selected range to the state change instead.
        """
        selection, lane = self._opened.selection, self._lane()
        if lane is None:
            return
        model = self._opened.timeline.lane(lane)
        position_cycles = self._range_end() if extend else self._cycles()
        edge = model.next_edge(position_cycles) if direction == ON else model.previous_edge(position_cycles)
        if edge is None:
            return
        if extend:
            anchor = selection.time_range.start if selection.time_range else self._cycles()
            selection.set_range(TimeWindow(min(anchor, edge), max(anchor, edge)) if edge != anchor else None)
        else:
            self._opened.select_at(lane, edge)
        self._opened.viewport.reveal(edge)

    def step_event(self, direction: int) -> None:
        """Go to the next or previous event of the selected lane that the filter shows."""
        lane = self._lane()
        if lane is None:
            return
        events = self._opened.timeline.events_of(lane)
        position = self._position_in(events, direction)
        while 0 <= position < len(events):
            if self._is_shown(int(events[position])):
                self._opened.select_event(int(events[position]), lane)
                return
            position += direction

    def step_hit(self, direction: int) -> None:
        """Go to the next or previous hit of the search that the filter shows.

        Raises:
            UsageError: The filter hides all hits.
        """
        opened = self._opened
        start_row = (
            opened.selection.event
            if opened.selection.event is not None
            else self._row_at(opened.viewport.window.start) - 1
        )
        find_hit = opened.search.next_hit if direction == ON else opened.search.previous_hit
        hit = find_hit(start_row, opened.filters.rows)
        if hit is not None:
            self.show_event(hit)
        elif len(opened.search.hits):
            raise UsageError(f"the filter hides all {counted(len(opened.search.hits), 'hit')} of the search")

    def step_lane(self, move: Callable[[int, int], int]) -> None:
        """Select the lane in the row that `move` returns for the selected row (-1 = none) and the number of rows."""
        rows = self._opened.lanes.rows
        if not rows:
            return
        positions = [i for i, row in enumerate(rows) if row.index == self._opened.selection.lane]
        position = min(max(move(positions[0] if positions else -1, len(rows)), 0), len(rows) - 1)
        self._opened.select_at(rows[position].index, self._cycles())

    def step_mark(self, direction: int) -> None:
        """Go to the next or previous mark."""
        marks, viewport = self._opened.marks, self._opened.viewport
        mark = marks.next_to(direction, viewport.window.start + viewport.window.length // 2)
        if mark is not None:
            viewport.reveal(mark.start_cycles)
            marks.select(mark)

    def show_mark(self, mark: Mark) -> None:
        """Bring a mark into view: centred if it fits the window, else zoomed to its range."""
        viewport = self._opened.viewport
        if mark.end_cycles - mark.start_cycles > viewport.window.length:
            viewport.fit(TimeWindow(mark.start_cycles, mark.end_cycles))
        else:
            viewport.centre((mark.start_cycles + mark.end_cycles) // 2)

    def show_event(self, event: int) -> None:
        """Select an event, and scroll to it and its lane."""
        lane = self._opened.lane_of_event(event)
        if lane is not None:
            self._opened.lanes.reveal(lane)
        self._opened.select_event(event)

    def show_time(self, cycles: int) -> None:
        """Centre a time, and select the first event at or after that time."""
        self._opened.viewport.centre(cycles)
        event = self._row_at(cycles)
        if event < len(self._opened.trace.events):
            self._opened.select_event(event, reveal=False)

    def show_position(self, text: str) -> None:
        """Go to a position typed as text; a range is selected and fills the window.

        Raises:
            UsageError: The text is no position in this trace.
        """
        trace = self._opened.trace
        if ".." in text:
            self._opened.viewport.jump(self.select_range(text))
            return
        position = parse_position(text, trace.time_axis)
        if position.event is not None:
            self.show_event(position.event)
        elif position.cycles is not None:
            self.show_time(position.cycles)

    def select_range(self, text: str) -> TimeWindow:
        """Select and return a range typed as text, clipped to the trace.

        Raises:
            UsageError: The text is no range of this trace.
        """
        trace = self._opened.trace
        window = parse_range(text, trace.time_axis).within(trace.window)
        self._opened.selection.set_range(window)
        return window

    def show_partner(self) -> None:
        """Go from the event that begins a call, interrupt, handler or state to its end event, or back.

        Raises:
            UsageError: The trace does not show that event, or pairs of a long trace are still being searched for.
        """
        event, trace = self._opened.selection.event, self._opened.trace
        if event is not None and len(trace.events) > _AT_ONCE and not are_made(trace):
            raise UsageError("matching events are still being looked for; try again in a moment")
        other = partner(trace, event) if event is not None else None
        if other is None:
            raise UsageError("the selected event has no matching enter or exit")
        self.show_event(other)

    def show_cause(self) -> None:
        """Go to the cause of the selected event: the event that woke the thread, the send of a received message, ...

        Raises:
            UsageError: The cause is not known, or the links of a long trace are still being built.
        """
        self._follow(causes, "nothing in the trace shows what the selected event follows from")

    def show_effect(self) -> None:
        """Go to the effect of the selected event: the thread it wakes, the receipt of its message, ...

        Raises:
            UsageError: The effect is not known, or the links of a long trace are still being built.
        """
        self._follow(effects, "nothing in the trace shows what follows from the selected event")

    def _follow(self, steps: Callable[[Trace, int], tuple[Step, ...]], otherwise: str) -> None:
        event, trace = self._opened.selection.event, self._opened.trace
        if event is None:
            raise UsageError("select an event first")
        if len(trace.events) > LINKS_AT_ONCE and not are_linked(trace):
            raise UsageError("the links between events are still being looked for; try again in a moment")
        try:
            linked = steps(trace, event)
        except SourceChangedError as error:
            raise UsageError("the file was cut meanwhile, so links between events cannot be found") from error
        if not linked:
            raise UsageError(otherwise)
        self.show_event(linked[0].row)

    def request_why(self, thread: int) -> None:
        """Start to find why a thread is in its state at the clicked time, or else at the selection."""
        self._opened.why.search(self._opened.trace, thread, self.moment)

    def request_path(self, thread: int) -> None:
        """Start to find the critical path of a thread through the selected range, or else the selected interval.

        Raises:
            UsageError: No range or interval is selected.
        """
        window = self._opened.selection.time_range or self.target()
        if window is None:
            raise UsageError("select a range of time: drag over the lanes, or click an interval")
        self._opened.path.search(self._opened.trace, thread, window)

    def show_lane(self, index: int) -> None:
        """Select a lane, and unfold its parents."""
        self._opened.lanes.reveal(index)
        self._opened.select_at(index, self._cycles())

    def show_interval(self, thread: int, cycles: int) -> None:
        """Select the interval of a thread's lane at a time, and scroll to it; the selected range stays.

        Args:
            thread: Row of the thread table.
            cycles: The time.
        """
        lane = self._opened.lane_of_thread(thread)
        if lane is not None:
            self._opened.lanes.reveal(lane)
            self._opened.select_at(lane, cycles)
            self._opened.viewport.reveal(cycles)

    def show_owner(self, is_thread: bool, row: int) -> None:
        """Select the lane of a thread or process, if it has one.

        Args:
            is_thread: True for a thread.
            row: Row of the thread or process table.
        """
        lane = self._opened.lane_of_thread(row) if is_thread else self._opened.lane_of_process(row)
        if lane is not None:
            self.show_lane(lane)

    def focus(self) -> None:
        """Zoom to the selected interval, or centre the selected event; called again, go back to the previous view.

        If the view has moved or the selection has changed in between, the second call zooms or centres again.
        """
        viewport, target = self._opened.viewport, self.target()
        if target is None:
            return
        if self._focus_before is not None and viewport.window == self._focus_shows:
            viewport.jump(self._focus_before)
            self._forget_focus()
            return
        self._focus_before = viewport.window
        if target.length > 1:
            viewport.fit(target)
        else:
            viewport.centre(target.start)
        self._focus_shows = viewport.window

    def fit(self) -> None:
        """Zoom to the selection."""
        target = self.target()
        if target is not None:
            self._opened.viewport.fit(target)

    def target(self) -> TimeWindow | None:
        """Return the time range of the selected interval or event; None without one."""
        selection = self._opened.selection
        if selection.span is not None:
            return TimeWindow(
                selection.span.start_cycles, max(selection.span.end_cycles, selection.span.start_cycles + 1)
            )
        if selection.event is not None:
            cycles = int(self._opened.trace.events.time_cycles[selection.event])
            return TimeWindow(cycles, cycles + 1)
        return None

    def _forget_focus(self) -> None:
        self._focus_before = None

    def _lane(self) -> int | None:
        lane = self._opened.selection.lane
        if lane is None and self._opened.lanes.rows:
            lane = self._opened.lanes.rows[0].index
        return lane

    @property
    def moment(self) -> int:
        """Time for questions such as Why?, in cycles: the clicked time, or else the time of the selection."""
        point = self._opened.selection.point_cycles
        return self._cycles() if point is None else point

    def _cycles(self) -> int:
        """Return the time of the selection, or else the middle of the window."""
        selection = self._opened.selection
        if selection.event is not None:
            return int(self._opened.trace.events.time_cycles[selection.event])
        if selection.span is not None:
            return selection.span.start_cycles
        window = self._opened.viewport.window
        return window.start + window.length // 2

    def _range_end(self) -> int:
        time_range = self._opened.selection.time_range
        return time_range.end if time_range else self._cycles()

    def _row_at(self, cycles: int) -> int:
        return int(np.searchsorted(self._opened.trace.events.time_cycles, cycles))

    def _position_in(self, events: np.ndarray[tuple[int], np.dtype[np.uint32]], direction: int) -> int:
        event = self._opened.selection.event
        row = event if event is not None else self._row_at(self._cycles())
        if direction == ON:
            return int(np.searchsorted(events, row, side="right" if event is not None else "left"))
        return int(np.searchsorted(events, row, side="left")) - 1

    def _is_shown(self, event: int) -> bool:
        filters, events = self._opened.filters, self._opened.trace.events
        if filters.view.passing is not None:
            return bool(filters.view.passing[event])
        return bool(filters.codes[events.code[event]] and filters.threads[events.thread[event]])


# Snaps a position of the mouse to nearby edges, events, cursors and marks.


SNAP_PX: Final = 6


class Moved(Enum):
    """The kind of object that the user drags; when the object is snapped to others, its own position is left out."""

    CURSOR_A = auto()
    CURSOR_B = auto()
    RANGE = auto()


def snapped(opened: OpenTrace, cycles: int, within: int, lane: int | None = None, moved: Moved | None = None) -> int:
    """Return the time that a position snaps to; the position itself if nothing is near.

    Cursors, marks, the selection and the ends of the range come first, then edges and events of the lane. On the ruler,
    edges and events of the selected lane are used, then the events of all lanes that the filter shows.

    Args:
        opened: The trace and its selection.
        cycles: The position.
        within: Largest distance in cycles.
        lane: Index of the lane under the mouse; None on the ruler.
        moved: The dragged object.
    """
    for candidates in _candidates(opened, cycles, within, lane, moved):
        near = min(candidates, key=lambda moment: abs(moment - cycles), default=None)
        if near is not None and abs(near - cycles) <= within:
            return near
    return cycles


def _candidates(
    opened: OpenTrace, cycles: int, within: int, lane: int | None, moved: Moved | None
) -> Iterator[Iterable[int]]:
    yield _landmarks(opened, moved)
    of = opened.selection.lane if lane is None else lane
    if of is not None:
        yield _on_lane(opened, of, cycles, within)
    if lane is None:
        yield _shown_events(opened, cycles)


def _landmarks(opened: OpenTrace, moved: Moved | None) -> Iterator[int]:
    selection = opened.selection
    for cursor, own in ((selection.cursor_a, Moved.CURSOR_A), (selection.cursor_b, Moved.CURSOR_B)):
        if cursor is not None and moved is not own:
            yield cursor
    for mark in opened.marks:
        yield mark.start_cycles
        yield mark.end_cycles
    if selection.event is not None:
        yield int(opened.trace.events.time_cycles[selection.event])
    if selection.span is not None:
        yield selection.span.start_cycles
        yield selection.span.end_cycles
    if selection.time_range is not None and moved is not Moved.RANGE:
        yield selection.time_range.start
        yield selection.time_range.end


def _on_lane(opened: OpenTrace, lane: int, cycles: int, within: int) -> Iterator[int]:
    """Yield the times, cycles, of the edges before and after a time on a lane, and of the nearest event.

    Nothing is yielded if the lane is not built yet. Edges come first, so that an edge is preferred to an event at the
    same distance.
    """
    if not opened.timeline.is_ready(lane):
        return
    of = opened.timeline.lane(lane)
    for edge in (of.previous_edge(cycles + 1), of.next_edge(cycles)):
        if edge is not None:
            yield edge
    event = event_near(opened.timeline, lane, cycles, within, opened.filters.codes, opened.filters.view.passing)
    if event is not None:
        yield int(opened.trace.events.time_cycles[event])


def _shown_events(opened: OpenTrace, cycles: int) -> Iterator[int]:
    """Yield the times, cycles, of the last shown event before a time, and of the first one at or after it."""
    times, rows = opened.trace.events.time_cycles, opened.filters.rows
    row = int(np.searchsorted(times, cycles))
    position = row if rows is None else int(np.searchsorted(rows, row))
    count = len(times) if rows is None else len(rows)
    for near in (position - 1, position):
        if 0 <= near < count:
            yield int(times[near if rows is None else rows[near]])
