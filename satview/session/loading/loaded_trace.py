"""Reads traces on the worker thread and prepares, on the same thread, all data that the window needs to show them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import SatviewError, UsageError
from satview.formats.kev.sampling import GrowingFile
from satview.formats.outside_names import add_symbols, read_pidin, symbols_of, with_names
from satview.session.filter_stack import FilterEvaluator, FilterState, FilterView, task_for
from satview.session.lanes.class_loader import silent_cpus
from satview.session.lanes.lane_overlay import LaneOverlay
from satview.session.lanes.lane_row import moved_lanes
from satview.session.tasks import IsCancelled, Report
from satview.store.arguments import describe_events
from satview.store.trace import Trace
from satview.timeline.lane_tree import Timeline
from satview.timeline.spans import pixel_edges

_CHUNK: Final = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class LoadedTrace:
    """A trace that was read, with its lanes and with counts of events.

    Attributes:
        trace, timeline: The trace and its lanes.
        events_of_thread: int64, shape (threads,), number of events of each thread.
        silent: Lanes of CPUs without events or intervals, which are hidden at first.
        restart: Sentence on why a followed file had to be read from its start again; else empty.
        key: Cache key of the file, computed before the file was read; empty if the trace is not to be cached.
        is_cached: True if the trace was read from the cache.
    """

    trace: Trace
    timeline: Timeline
    events_of_thread: NDArray[np.int64]
    silent: frozenset[int]
    restart: str = ""
    key: str = ""
    is_cached: bool = False

    @classmethod
    def of(cls, trace: Trace, restart: str = "", key: str = "") -> LoadedTrace:
        """Create the lanes of a trace and count its events."""
        timeline = Timeline(trace)
        return cls(trace, timeline, events_per_thread(trace), silent_cpus(timeline), restart, key)


@dataclass(frozen=True, slots=True, eq=False)
class ShownState:
    """The displayed parts of a trace, which must be prepared in a reloaded trace before this is shown.

    Attributes:
        timeline: Lanes of the trace that is shown.
        lanes: Visible lanes, and the selected one.
        state: The filter.
        evaluator: Evaluator of the filter, with the Python files that the user allowed to run.
        text: The text that is searched for.
    """

    timeline: Timeline
    lanes: tuple[int, ...]
    state: FilterState
    evaluator: FilterEvaluator
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Reload:
    """A reloaded trace with all prepared data that a window needs to switch to this trace in one step.

    Attributes:
        loaded: The reloaded trace.
        shown: The displayed state for which the reload was prepared.
        moved: Index of each lane in the reloaded trace, by its index in the shown one.
        state, evaluator, view: The filter for the reloaded trace, its evaluator and its effect on events.
        overlay: The effect of the filter on intervals, already computed for the visible lanes.
        hits: Event rows of the search hits.
    """

    loaded: LoadedTrace
    shown: ShownState
    moved: dict[int, int]
    state: FilterState
    evaluator: FilterEvaluator
    view: FilterView
    overlay: LaneOverlay
    hits: NDArray[np.uint32]

    def fits(self, shown: ShownState) -> bool:
        """Return whether everything shown now is prepared in this reload; if not, `prepared` must be called again."""
        own = self.shown
        is_same = (own.timeline, own.state, own.text) == (shown.timeline, shown.state, shown.text)
        return is_same and all(
            self.loaded.timeline.is_ready(self.moved[lane]) for lane in shown.lanes if lane in self.moved
        )


def read_on(file: GrowingFile, is_cancelled: IsCancelled, report: Report) -> LoadedTrace:
    """Read the data added to a followed file since the last read; return the whole trace."""
    trace = file.read(report, is_cancelled)
    return LoadedTrace.of(trace, file.restart)


def prepared(loaded: LoadedTrace, shown: ShownState, is_cancelled: IsCancelled) -> Reload:
    """Return a reloaded trace with everything that a window needs to show it: names, lanes, filter, hits.

    Raises:
        Cancelled: `is_cancelled()` returned True.
    """
    names = shown.timeline.trace.pidin
    if names is not None and loaded.trace.pidin is None:
        loaded = LoadedTrace.of(with_names(loaded.trace, names), loaded.restart, loaded.key)
    trace, timeline = loaded.trace, loaded.timeline
    describe_events(trace, shown.timeline.trace.payloads.described)
    symbols = symbols_of(shown.timeline.trace)
    if symbols is not None:
        with suppress(UsageError):  # the programs are gone: a following window goes on with addresses
            add_symbols(trace, symbols.folder)
    timeline.describe_user_events(shown.timeline.user_lanes)
    timeline.take_finders(shown.timeline)
    with suppress(UsageError):  # the timing file may be gone, which the class loader reports
        timeline.show_classes(shown.timeline.known_classes, is_cancelled)
    moved = moved_lanes(shown.timeline, timeline)
    lanes = tuple(moved[lane] for lane in shown.lanes if lane in moved)
    timeline.build(lanes, is_cancelled)
    if shown.timeline.has_kinds:
        timeline.build_kinds(is_cancelled)
    evaluator = FilterEvaluator(trace)
    evaluator.allowed, evaluator.folder = set(shown.evaluator.allowed), shown.evaluator.folder
    state = shown.state.for_threads(len(trace.threads))
    view = _view(trace, evaluator, state, is_cancelled)
    overlay = LaneOverlay(timeline, view)
    _make_ready(overlay, lanes, pixel_edges(trace.window, 1))
    hits = _hits(trace, evaluator, shown.text, is_cancelled)
    return Reload(loaded, shown, moved, state, evaluator, view, overlay, hits)


def named_reading(path: Path, shown: ShownState, is_cancelled: IsCancelled) -> Reload:
    """Return the shown trace with names from an output of QNX `pidin` added, prepared to be shown.

    Raises:
        UsageError: The file is no output of pidin, or names cannot be added to the trace.
        Cancelled: `is_cancelled()` returned True.
    """
    return prepared(LoadedTrace.of(with_names(shown.timeline.trace, read_pidin(path))), shown, is_cancelled)


def events_per_thread(trace: Trace) -> NDArray[np.int64]:
    """Return the number of events of every thread, int64, shape (threads,)."""
    total = np.zeros(len(trace.threads), np.int64)
    for start in range(0, len(trace.events), _CHUNK):
        total += np.bincount(trace.events.thread[start : start + _CHUNK], minlength=len(total))
    return total


def _view(trace: Trace, evaluator: FilterEvaluator, state: FilterState, is_cancelled: IsCancelled) -> FilterView:
    if not (state.chooses or state.stack.passes):
        return FilterView(selected=len(trace.events))
    try:
        view = evaluator.alone(is_cancelled, lambda: evaluator.view(state))
    except SatviewError as error:  # a handler of a rule failed on new events
        return FilterView(selected=len(trace.events), notices=(str(error),))
    assert isinstance(view, FilterView)
    return view


def _make_ready(overlay: LaneOverlay, lanes: tuple[int, ...], edges: NDArray[np.int64]) -> None:
    """Compute the sums that the overlay keeps for these lanes, so that no frame has to compute them."""
    if lanes and not overlay.does_nothing:
        overlay.hide(lanes, np.zeros((len(lanes), len(edges) - 1), np.uint8), edges, waits=True)
        overlay.faded(lanes, edges, waits=True)
        overlay.marked(lanes, edges, waits=True)


def _hits(trace: Trace, evaluator: FilterEvaluator, text: str, is_cancelled: IsCancelled) -> NDArray[np.uint32]:
    nothing = np.empty(0, np.uint32)
    if not text:
        return nothing
    try:
        hits = task_for(text, trace, evaluator)(is_cancelled)
    except UsageError:  # the find bar has shown the reason since the text was typed
        return nothing
    assert isinstance(hits, np.ndarray)
    return hits
