"""Marks of events in the colour of their class, where the events are few enough to be distinguished."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.gui.colours import FADE, class_colour, mixed
from satview.gui.swimlane.lane_image import OPAQUE, Marks, Ticks
from satview.gui.swimlane.lane_source import Request
from satview.gui.theme import Theme
from satview.session.filtering.filter_task import FilterView
from satview.session.open_trace import OpenTrace
from satview.timeline.event_marks import event_positions, mark_codes
from satview.timeline.spans import pixel_edges

_MARKED_PER_FRAME: Final = 200_000
_EVENTS_PER_PX: Final = 1.5  # more than that in the window, and colours would only flicker


class TickSource:
    """Gives coloured marks for a frame.

    Attributes:
        opened: The trace and its filter.
        fades: Something else is highlighted.
    """

    def __init__(self, opened: OpenTrace, theme: Theme) -> None:
        self.opened = opened
        self.fades = False
        self._marks = mark_codes()
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        catalogue = self.opened.trace.catalogue
        colours = [class_colour(spec.name, theme.is_dark) | OPAQUE for spec in catalogue.classes]
        self._colours = np.array(colours, np.uint32)[catalogue.class_index_of_code]
        pale = [mixed(colour & 0xFFFFFF, theme.base, FADE) | OPAQUE for colour in colours]
        self._faded = np.array(pale, np.uint32)[catalogue.class_index_of_code]
        self._hit = np.uint32(theme.hit | OPAQUE)

    @property
    def above_shares(self) -> Marks:
        """Which marks show above shares: those of events that a filter selects by conditions, rules or boxes."""
        filters = self.opened.filters
        if filters.view.by_passes is not None or (self._marks & ~filters.codes).any():
            return Marks.ALL
        return Marks.NONE if filters.view.marked is None and filters.view.dimmed is None else Marks.TICKS

    def ticks(self, request: Request) -> list[Ticks]:
        """Return the marks of what a frame shows; none where there are too many."""
        trace, view = self.opened.trace, self.opened.filters.view
        part = trace.rows_between(request.window)
        if view.rows is not None:
            part = slice(*np.searchsorted(view.rows, (part.start, part.stop)).tolist())
        if part.stop - part.start > request.width_px * _EVENTS_PER_PX:
            return self._bright(request)
        rows = np.arange(part.start, part.stop, dtype=np.uint32) if view.rows is None else view.rows[part]
        rows = rows[(self._marks & self.opened.filters.codes)[trace.events.code[rows]]]
        edges = pixel_edges(request.window, request.width_px)
        infos = [self.opened.timeline.infos[lane] for lane in request.lanes]
        ticks = []
        for colours, selected in self._groups(view, rows):
            found = event_positions(trace, infos, selected, edges)
            ticks += [Ticks(position, column, colours[trace.events.code[events]]) for position, column, events in found]
        return ticks

    def marked(self, request: Request) -> list[Ticks]:
        """Return the events that a filter marks, in the colour of hits, however many events there are."""
        marked = self.opened.filters.view.marked
        if marked is None:
            return []
        part = self.opened.trace.rows_between(request.window)
        return [
            Ticks(position, column, np.full(len(events), self._hit, np.uint32))
            for position, column, events in self._some(request, np.flatnonzero(marked[part]) + part.start)
        ]

    def _bright(self, request: Request) -> list[Ticks]:
        """Return the events that stay bright while all others fade, however many events there are."""
        trace, view = self.opened.trace, self.opened.filters.view
        if view.dimmed is None or self.fades:
            return []
        part = trace.rows_between(request.window)
        bright = ~view.dimmed[part] if view.passing is None else view.passing[part] & ~view.dimmed[part]
        rows = np.flatnonzero(bright) + part.start
        rows = rows[self._marks[trace.events.code[rows]]]
        return [
            Ticks(position, column, self._colours[trace.events.code[events]])
            for position, column, events in self._some(request, rows)
        ]

    def _some(
        self, request: Request, rows: NDArray[np.intp]
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.unsignedinteger]]]:
        """Yield position, column and row of events, of very many but a part."""
        rows = rows[:: len(rows) // _MARKED_PER_FRAME + 1]
        infos = [self.opened.timeline.infos[lane] for lane in request.lanes]
        edges = pixel_edges(request.window, request.width_px)
        return event_positions(self.opened.trace, infos, rows.astype(np.uint32), edges)

    def _groups(
        self, view: FilterView, rows: NDArray[np.uint32]
    ) -> tuple[tuple[NDArray[np.uint32], NDArray[np.uint32]], ...]:
        """Return colours by code with the events that have them; faded ones first, so that they are below."""
        if self.fades:
            return ((self._faded, rows),)
        if view.dimmed is None:
            return ((self._colours, rows),)
        dimmed = view.dimmed[rows]
        return ((self._faded, rows[dimmed]), (self._colours, rows[~dimmed]))
