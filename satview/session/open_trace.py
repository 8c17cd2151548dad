"""An open trace with the state of its views: viewport, selection, filter, lanes, marks, search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal, Slot

from satview.analysis.needs import PRIORITIES
from satview.analysis.times.basis import Basis
from satview.analysis.verdicts.rule import default_thresholds
from satview.answers.activity_lanes import ACTIVITIES, ActivityLanes
from satview.answers.doctor import doctor
from satview.answers.table import Table
from satview.answers.verdicts import Verdicts
from satview.answers.verdicts import find as find_verdicts
from satview.base.errors import Cancelled, SourceChangedError, UsageError
from satview.base.safe_text import csv_text, visible_line
from satview.base.time import TimeWindow
from satview.events import wire
from satview.events.user_events import Descriptions
from satview.formats.outside_names import Symbols, add_symbols
from satview.linkage.calls import are_made
from satview.linkage.chain import Connections, Hop, NamedHop, are_linked, connections, link_of, way
from satview.linkage.links import Link
from satview.session.event_text import COLUMNS, Meaning, are_named, argument_names, list_row
from satview.session.filter_stack import EditHistory, FilterStack, Search
from satview.session.highlight import Highlight, Highlighted, LegendHighlight, Marks, Selection, of_row
from satview.session.lanes.class_loader import ClassLoader, descriptions_of, timing_of
from satview.session.lanes.label_source import LabelSource
from satview.session.lanes.lane_arrangement import GroupBy, LaneArrangement, SortBy, labels_in
from satview.session.lanes.lane_list import LaneList
from satview.session.lanes.lane_row import event_of_slot
from satview.session.lanes.lane_sorter import LaneSorter
from satview.session.loading.loaded_trace import Reload, ShownState, events_per_thread
from satview.session.settings import Settings
from satview.session.tasks import IsCancelled, PathSearch, Report, Task, TraceAnswer, WhySearch
from satview.session.viewport import PreviewView, Viewport, with_margin
from satview.store.arguments import describe_events
from satview.store.mark_file import Mark, recorded_marks
from satview.store.time_ranges import doubts, trusted_window
from satview.store.trace import Trace
from satview.timeline.lane_classes import classes_in
from satview.timeline.lane_tree import LaneKind, Timeline
from satview.timeline.state_lanes import Preview

# Search hits as text for the clipboard.


_BLOCK: Final = 1 << 10
_FIRST_TEXT: Final = COLUMNS.index("Process")  # from this column on, cells hold names chosen by programs


def hits_text(trace: Trace, rows: NDArray[np.uint32], is_cancelled: IsCancelled, report: Report) -> str:
    """Return event rows as tab-separated text with a header line, for the clipboard.

    Raises:
        Cancelled: `is_cancelled()` returned True.
    """
    lines = _lines(trace, rows, is_cancelled, report)
    return "\n".join(["\t".join(COLUMNS), *("\t".join(cells) for cells in lines)])


def _lines(
    trace: Trace, rows: NDArray[np.uint32], is_cancelled: IsCancelled, report: Report
) -> Iterator[tuple[str, ...]]:
    """Yield the texts of each event, one per column."""
    previous: int | None = None
    for start in range(0, len(rows), _BLOCK):
        if is_cancelled():
            raise Cancelled("the copy was stopped")
        report(start / len(rows))
        for event in rows[start : start + _BLOCK].tolist():
            cells = list_row(trace, event, previous)
            yield (*cells[:_FIRST_TEXT], *map(csv_text, cells[_FIRST_TEXT:]))
            previous = event


# Links of the selected event, found in the background if the search takes longer than a frame.


_PAIRS_AT_ONCE: Final = 500_000  # events whose pairs are found within a frame
LINKS_AT_ONCE: Final = 20_000  # events whose links of all kinds are found within a frame


@dataclass(frozen=True, slots=True)
class FoundLinks:
    """The known links of an event.

    Attributes:
        link: The call, interrupt, handler or state that the event begins or ends; None = none, or not yet known.
        connected: Causes and effects of the event; None = not yet known.
        way: Steps from event to event, from the first cause to the last effect, drawn as arrows.
        names: Meaning of the event's arguments, by argument name.
    """

    link: Link | None = None
    connected: Connections | None = None
    way: tuple[Hop, ...] = ()
    names: Mapping[str, Meaning] = field(default_factory=dict)


class EventLinks(QObject):
    """Finds the links (causes, effects) of the selected event, for all views of a trace.

    Signals:
        changed: More links are known, or another event is selected.
    """

    changed = Signal()

    def __init__(self, selection: Selection, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._selection = selection
        self._trace: Trace | None = None
        self._event: int | None = None
        self.links = FoundLinks()
        self._job = Task(self, self._on_found)
        selection.changed.connect(self._on_selection)

    @property
    def is_busy(self) -> bool:
        """Whether links are still being searched for."""
        return self._job.is_busy

    def take(self, trace: Trace) -> None:
        """Switch to another trace object, for example after a reload, and search again for the selection's links."""
        self._trace, self._event = trace, None
        self._on_selection()

    def close(self) -> None:
        """Stop the background task."""
        self._job.close()

    @Slot()
    def _on_selection(self) -> None:
        event, trace = self._selection.event, self._trace
        if event == self._event or trace is None:
            return
        self._job.cancel()
        self._event, self.links = event, FoundLinks()
        if event is not None:
            if len(trace.events) <= LINKS_AT_ONCE or (are_linked(trace) and are_named(trace)):
                self.links = find_links(trace, event)
            else:
                if len(trace.events) <= _PAIRS_AT_ONCE or are_made(trace):
                    self.links = FoundLinks(link_of(trace, event))
                self._job.start(lambda _: find_links(trace, event))  # the first call builds all links of the trace
        self.changed.emit()

    @Slot(object)
    def _on_found(self, answer: object) -> None:
        if isinstance(answer, FoundLinks):
            self.links = answer
            self.changed.emit()


def find_links(trace: Trace, event: int) -> FoundLinks:
    """Return the links of an event; none if its arguments are gone because the file was truncated.

    The first call for a trace builds all its links.
    """
    try:
        return FoundLinks(link_of(trace, event), connections(trace, event), way(trace, event),
                          argument_names(trace, event))  # fmt: skip
    except SourceChangedError:  # the window reports that itself
        return FoundLinks()


# An open trace with the state of its views: viewport, selection, filter, lanes, marks, search.


PIDIN: Final = "events/pidin"  # setting: text of pidin given on the command line
SYMBOLS: Final = "events/symbols"  # setting: folder of programs given on the command line


def _named(trace: Trace, folder: Path, _is_cancelled: IsCancelled) -> Symbols:
    return add_symbols(trace, folder)


class OpenTrace(QObject):
    """An open trace with all state that the views of one window share.

    Attributes:
        trace: The data, read-only.
        timeline: Its lanes.
        viewport, selection, filters, lanes, labels, sorter, marks, search, edits: Parts, which have their own signals.
        events_of_thread: int64, shape (threads,), number of events of each thread.
        others: Other views of the trace in the same window.
        preview: Sample of the trace, shown on CPU lanes that are not built yet; None = nothing.
        descriptions: Descriptions of events from `user_file`.
        user_file: File of descriptions; empty = none.
        timing_file: Timing file, relative to the folder of the trace; empty = none.
        symbols_folder: Folder of programs whose symbols name addresses; empty = none.
        pidin_file: Output of QNX `pidin` that names processes and threads, even if not read yet; empty = none.

    Signals:
        described: Descriptions of events or names of addresses changed.
        timed: `timing_file` changed.
        named: Symbols of programs, or an output of pidin, were read or could not be read; sends a sentence about this.
        names_requested: Names from an output of pidin are requested; sends the path of its file.
        capture_requested: A new capture is requested; sends its rules as text.
        begins_reload: `reload` was called and has changed nothing yet.
        reloaded: `reload` has changed everything; sent after the signals of the parts. The argument is the `Reload`.
    """

    described = Signal()
    timed = Signal()
    named = Signal(str)
    names_requested = Signal(str)
    capture_requested = Signal(str)
    begins_reload = Signal()
    reloaded = Signal(object)

    def __init__(
        self,
        trace: Trace,
        timeline: Timeline,
        settings: Settings,
        parent: QObject | None = None,
        events_of_thread: NDArray[np.int64] | None = None,
        hidden_lanes: frozenset[int] = frozenset(),
    ) -> None:
        """Create the viewport, selection, filter, lanes and all other parts.

        Args:
            trace: The data.
            timeline: Its lanes.
            settings: Settings, used for the first arrangement of lanes.
            parent: Owner.
            events_of_thread: As the attribute; None = count now.
            hidden_lanes: Lanes hidden by default.
        """
        super().__init__(parent)
        self._settings = settings
        self._basis: Basis | None = None
        self.others: list[OpenTrace] = []
        self.preview: Preview | None = None
        self.descriptions, self.user_file, self.timing_file = Descriptions(), "", ""
        self._take(trace, timeline, events_per_thread(trace) if events_of_thread is None else events_of_thread)
        self.edits = EditHistory(self)
        self.viewport = Viewport(with_margin(trace.window), self, trace.window.end)
        if (trusted := trusted_window(trace)) != trace.window:
            self.viewport.begin_at(with_margin(trusted))
        self.selection = Selection(self)
        self.event_links = EventLinks(self.selection, self)
        self.event_links.take(trace)
        self.highlight = Highlight(self.selection, self)
        self.legend = LegendHighlight(self)
        self.verdicts: TraceAnswer[Verdicts] = TraceAnswer(trace, _verdicts_of, self)
        self.doctor: TraceAnswer[Table] = TraceAnswer(trace, lambda trace, _: doctor(trace), self)
        self.has_priorities: TraceAnswer[bool] = TraceAnswer(trace, _has_priorities, self)
        self.why = WhySearch(self)
        self.path = PathSearch(self)
        self.filters = FilterStack(trace, self.edits, self)
        self.lanes = LaneList(
            timeline,
            self.filters,
            self.edits,
            settings.number("swimlane/lane_height_px"),
            settings.number("swimlane/unfold_up_to"),
            self,
            hidden_lanes,
            labels_in(settings.text("swimlane/labels")),
            classes_in(settings.text("swimlane/lane_classes")),
        )
        self.class_loader = ClassLoader(
            lambda: self.timeline, self._requested_classes, lambda: self.descriptions.user, lambda: self.timing_file,
            settings, self,
        )  # fmt: skip
        self.class_loader.loaded.connect(self._on_classes)
        self.lanes.classes_requested.connect(self.class_loader.load)
        self.class_loader.load()
        self.symbols_folder, self.pidin_file = "", "" if trace.pidin is None else str(trace.pidin.path)
        self._naming = Task(self, self._on_named, self._on_not_named)
        self.labels = LabelSource(trace, self)
        self.sorter = LaneSorter(self.lanes, self)
        self.marks = Marks(trace.path, self.viewport.limits, self, self._recorded_marks())
        self.search = Search(trace, self, self.filters.evaluator)
        self.viewport.window_changed.connect(self._on_window)

    def _recorded_marks(self) -> list[Mark]:
        time = self.trace.events.time_cycles
        return [Mark(int(time[row]), int(time[row]), text) for row, text in recorded_marks(self.trace)]

    def reload(self, reload: Reload, is_at_end: bool) -> None:
        """Switch to a reloaded trace. All parts stay, and so do view, selection and undo history.

        Args:
            reload: The reloaded trace, prepared for what is shown now.
            is_at_end: True to move the view to the end of the trace, which is now later.
        """
        self.begins_reload.emit()
        before, asked = self.trace, self.why.question
        asked_lane = self.lane_of_thread(asked[0]) if asked is not None else None  # threads may get other rows
        for view in (self, *self.others):
            view.use_lanes(reload)
        self.filters.reload(self.trace, reload.evaluator, reload.state, reload.view)
        for view in (self, *self.others):
            sticks = is_at_end and (view is self or view.viewport.is_at_end)
            view.viewport.grow(with_margin(self.trace.window), self.trace.window.end, sticks)
        self.marks.set_limits(self.viewport.limits)
        self.marks.show_recorded(self._recorded_marks())
        self.event_links.take(self.trace)
        self.labels.take(self.trace)
        self.class_loader.load()
        for answer in (self.verdicts, self.has_priorities, self.doctor):
            answer.take(self.trace)
        for shown in (self.why, self.highlight, self.path):
            shown.forget()
        self._reselect(before, reload.moved)
        if asked is not None and asked_lane in reload.moved:  # the answer may be another one now
            self.why.search(self.trace, self.timeline.infos[reload.moved[asked_lane]].thread, asked[1])
        self.search.reload(self.trace, reload.evaluator, reload.hits)
        self.reloaded.emit(reload)

    def use_lanes(self, reload: Reload) -> None:
        """Switch to the trace and lanes of a reload; called before any part of this object sends a signal."""
        loaded = reload.loaded
        self._take(loaded.trace, loaded.timeline, loaded.events_of_thread)
        self.lanes.reload(self.timeline, loaded.silent)

    def continue_preview(self, view: PreviewView) -> None:
        """Continue from a preview: keep its time window, and show its CPU lanes until those of the trace are built."""
        self.preview = view.preview
        if view.viewport.can_go_back and not view.viewport.is_whole:
            self.viewport.set_width(view.viewport.width_px)
            self.viewport.begin_at(view.viewport.window)

    def shown(self, lanes: list[int]) -> ShownState:
        """Return the visible lanes, filter and search text, for which a reloaded trace must be prepared."""
        selected = self.selection.lane
        requested = lanes if selected is None else [*lanes, selected]
        return ShownState(self.timeline, tuple(requested), self.filters.state, self.filters.evaluator, self.search.text)

    @property
    def basis(self) -> Basis:
        """Basis of statistics and plots of any time range; a reloaded trace has a new one."""
        if self._basis is None or self._basis.trace is not self.trace:
            self._basis = Basis(self.trace, self.filters.evaluator.derived)
        return self._basis

    def lane_of_thread(self, thread: int) -> int | None:
        """Return the lane of a row of the thread table."""
        return self._lane_of_thread.get(thread)

    def lane_of_process(self, process: int) -> int | None:
        """Return the lane of a row of the process table."""
        return self._lane_of_process.get(process)

    def lane_of_cpu(self, cpu: int) -> int | None:
        """Return the lane of a CPU."""
        return self._lane_of_cpu.get(cpu)

    def lane_of_event(self, event: int) -> int | None:
        """Return the lane of an event's thread, or else of its CPU."""
        lane = self.lane_of_thread(int(self.trace.events.thread[event]))
        return lane if lane is not None else self.lane_of_cpu(int(self.trace.events.cpu[event]))

    def lane_of_cause(self, event: int) -> int | None:
        """Return the lane that shows an event as a cause: an interrupt lane for an interrupt, else its own lane."""
        if wire.class_of(int(self.trace.events.code[event])) == wire.WireClass.INT:
            lane = self._lane_of_interrupts.get(int(self.trace.events.cpu[event]))
            if lane is not None:
                return lane
        return self.lane_of_event(event)

    def select_event(self, event: int, lane: int | None = None, reveal: bool = True) -> None:
        """Select an event and the interval around it.

        Args:
            event: Row of the event table.
            lane: The lane in which the event is selected; None = its own lane.
            reveal: True to scroll to the event.
        """
        cycles = int(self.trace.events.time_cycles[event])
        lane = self.lane_of_event(event) if lane is None else lane
        span = self.timeline.lane(lane).at(cycles) if lane is not None else None
        if reveal:
            self.viewport.reveal(cycles)
        self.selection.select(event, lane, span)

    def select_link(self, link: NamedHop) -> None:
        """Select a link by its first event, and highlight it, without scrolling to it."""
        self.select_event(link.from_row, self.lane_of_cause(link.from_row), reveal=False)
        self.highlight.show(Highlighted(link.from_row, (link,), (), link=link))

    def select_case(self, number: int, span: tuple[int, int]) -> None:
        """Select one case (occurrence) of a verdict, and highlight it over the lanes.

        Args:
            number: Row of the verdict in the last result.
            span: Start and end of the case, cycles.
        """
        if self.verdicts.answer is None:
            return
        table = self.verdicts.answer.table.whole()
        cases = table.at(table.children(number))
        case = next((row for row in range(len(cases)) if cases.span(row) == span), None)
        shown = of_row(table, number) if case is None else of_row(cases, case)
        if shown.event >= 0:
            self.select_event(shown.event, reveal=False)
            self.highlight.show(shown)

    def select_at(self, lane: int, cycles: int, event: int | None = None, is_point: bool = False) -> None:
        """Select the interval of a lane at a time, and an event: the given one, or else the interval's first.

        Args:
            lane: Index of the lane.
            cycles: The time.
            event: Row of the event table, or None.
            is_point: True if questions such as Why? are about this time, False if about the interval as a whole.
        """
        row = self.lanes.row_of(lane)
        lane = row.index if row is not None else lane  # the lane of an only thread replaces that of its process
        span, is_interval = self.timeline.lane(lane).at(cycles), event is None
        if event is None and span is not None and 0 <= span.event < len(self.trace.events):
            event = span.event
        self.selection.select(event, lane, span, is_interval, cycles if is_point and is_interval else None)

    def sort_lanes(self, sort: SortBy) -> None:
        """Sort lanes by figures of the selected range, or else of the visible range."""
        self.sorter.sort(self.timeline, self.basis, sort, self._window_in_mind)

    def group_lanes(self, group: GroupBy, patterns: str = "") -> None:
        """Group the lanes by a property, or by patterns of names such as `Drivers: devb-*, io-*; HMI: hmi*`.

        Raises:
            UsageError: The patterns are faulty.
        """
        self.sorter.group(self.timeline, self.basis, group, self._window_in_mind, patterns)

    def begun_with(self, arrangement: LaneArrangement) -> LaneArrangement:
        """Return an arrangement with its event lanes and labels replaced by those of the command line, if any."""
        settings, classes, labels = self._settings, arrangement.classes, arrangement.labels
        if settings.is_passing("swimlane/lane_classes"):
            classes = classes_in(settings.text("swimlane/lane_classes"))
        if settings.is_passing("swimlane/labels"):
            labels = labels_in(settings.text("swimlane/labels"))
        return replace(arrangement, classes=classes, labels=labels)

    def describe(self, file: str) -> None:
        """Replace the descriptions of events by those in a file; an empty name removes them.

        Raises:
            UsageError: The file is faulty; nothing has changed.
        """
        self.descriptions, self.user_file = descriptions_of(file), file
        describe_events(self.trace, self.descriptions.events)
        self.class_loader.describe()
        self.filters.evaluator.forget()
        self.filters.recompute()
        self.described.emit()

    def time_activities(self, file: str) -> None:
        """Use the deadlines and activities of another timing file; with an empty name, use none.

        Deadlines are checked with all other verdicts. Errors in the file are reported where it is read.
        """
        if file != self.timing_file:
            self.timing_file = file
            self.class_loader.time_activities()
            self.verdicts.ask(partial(_verdicts_of, timing_file=file))
            self.timed.emit()

    def name_addresses(self, folder: str) -> None:
        """Start to read symbols of the programs in a folder; `named` reports the result."""
        self._naming.start(partial(_named, self.trace, Path(folder)))

    def name_processes(self, file: str) -> None:
        """Start to read names of processes and threads from an output of QNX `pidin`; `named` reports the result."""
        self.pidin_file = file
        self.names_requested.emit(file)

    def say_names(self, error: str = "") -> None:
        """Emit `described` and `named` after pidin output was read; `error` says why that failed, else is empty."""
        names = self.trace.pidin
        self.pidin_file = "" if names is None else str(names.path)
        self.described.emit()
        notes = f"; {names.notes[0]}" if names is not None and names.notes else ""
        self.named.emit(error or visible_line(f"{names}{notes}"))

    @property
    def is_named(self) -> bool:
        """Whether symbols of programs are in use or being read."""
        return bool(self.symbols_folder) or self._naming.is_busy

    @Slot(object)
    def _on_named(self, symbols: object) -> None:
        assert isinstance(symbols, Symbols)
        self.symbols_folder = str(symbols.folder)
        self.class_loader.name_functions()
        self.described.emit()
        notes = f"; {symbols.notes[0]}" if symbols.notes else ""
        more = f" (and {len(symbols.notes) - 1} more)" if len(symbols.notes) > 1 else ""
        self.named.emit(f"{symbols.function_count:,} functions of {visible_line(symbols.folder.name)}{notes}{more}")

    @Slot(object)
    def _on_not_named(self, error: Exception) -> None:
        self.named.emit(str(error))

    def _requested_classes(self) -> frozenset[str]:
        """Return the classes of event lanes that any view shows."""
        return frozenset().union(*(view.lanes.arrangement.classes for view in (self, *self.others)))

    @Slot()
    def _on_classes(self) -> None:
        for view in (self, *self.others):
            view.lanes.add_classes()

    @property
    def _window_in_mind(self) -> TimeWindow:
        """Time range that commands act on: the selected range, or else the visible range, clipped to the trace."""
        whole, range_or_view = self.trace.window, self.selection.time_range or self.viewport.window
        start, end = max(whole.start, range_or_view.start), min(whole.end, range_or_view.end)
        return TimeWindow(start, end) if end > start else whole

    def shut_down(self) -> None:
        """Stop all background tasks and wait for their end."""
        for part in (self._naming, self.sorter, self.labels, self.class_loader, self.filters, self.search, self.path,
                     self.event_links, self.verdicts, self.has_priorities, self.doctor, self.why):  # fmt: skip
            part.close()

    def _take(self, trace: Trace, timeline: Timeline, events_of_thread: NDArray[np.int64]) -> None:
        trace.payloads.tolerate_loss()
        timeline.offer_finder(ACTIVITIES, ActivityLanes())
        self._basis = None
        self.trace, self.timeline, self.events_of_thread = trace, timeline, events_of_thread
        self._lane_of_thread = {info.thread: info.index for info in timeline.infos if info.kind is LaneKind.THREAD}
        self._lane_of_process = {info.process: info.index for info in timeline.infos if info.kind is LaneKind.PROCESS}
        self._lane_of_cpu = {info.cpu: info.index for info in timeline.infos if info.kind is LaneKind.CPU}
        self._lane_of_interrupts = {info.cpu: info.index for info in timeline.infos if info.kind is LaneKind.INTERRUPTS}
        for info in timeline.infos:
            if info.kind is LaneKind.DAMAGED:
                doubtful = doubts(trace)
                self._lane_of_thread |= dict.fromkeys(np.flatnonzero(doubtful.threads).tolist(), info.index)
                self._lane_of_cpu |= dict.fromkeys(np.flatnonzero(doubtful.cpus).tolist(), info.index)

    def _reselect(self, before: Trace, moved: dict[int, int]) -> None:
        """Restore the selection after a reload, which may change numbers of lanes and events, and ends of intervals."""
        event, lane, span = self.selection.event, self.selection.lane, self.selection.span
        if event is not None:
            event = event_of_slot(self.trace, before, event)
        lane = moved.get(lane) if lane is not None else None
        if lane is None:
            span = None
        elif span is not None:
            span = self.timeline.lane(lane).at(span.start_cycles)
        self.selection.select(event, lane, span, self.selection.is_interval, self.selection.point_cycles)

    @Slot()
    def _on_window(self) -> None:
        self.lanes.set_window(self.viewport.window)


def _verdicts_of(trace: Trace, is_cancelled: IsCancelled, timing_file: str = "") -> Verdicts:
    try:
        if timing := timing_of(trace, timing_file):
            return find_verdicts(trace, replace(default_thresholds(), timing=timing), cancelled=is_cancelled)
    except UsageError:
        pass  # errors in the file are reported where it was typed; everything else is checked all the same
    return find_verdicts(trace, cancelled=is_cancelled)


def _has_priorities(trace: Trace, _is_cancelled: IsCancelled) -> bool:
    """Return whether any event of the trace logs a priority; reads all events."""
    return not PRIORITIES.unmet(trace)
