"""Marks of events in the colour of their class, where the events are few enough to be distinguished."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.gui.colours import FADE, class_colour, mixed
from satview.gui.swimlane.lane_image import OPAQUE, Ticks
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

    def ticks(self, request: Request) -> list[Ticks]:
        """Return the marks of what a frame shows; none where there are too many."""
        trace = self.opened.trace
        part = trace.rows_between(request.window)
        if part.stop - part.start > request.width_px * _EVENTS_PER_PX:
            return []
        shown = (self._marks & self.opened.filters.codes)[trace.events.code[part]]
        view = self.opened.filters.view
        if view.passing is not None:
            shown &= view.passing[part]
        edges = pixel_edges(request.window, request.width_px)
        infos = [self.opened.timeline.infos[lane] for lane in request.lanes]
        ticks = []
        for colours, selected in self._groups(view, part, shown):
            rows = (np.flatnonzero(selected) + part.start).astype(np.uint32)
            found = event_positions(trace, infos, rows, edges)
            ticks += [Ticks(position, column, colours[trace.events.code[events]]) for position, column, events in found]
        return ticks

    def marked(self, request: Request) -> list[Ticks]:
        """Return the events that a filter marks, in the colour of hits, however many events there are."""
        trace, marked = self.opened.trace, self.opened.filters.view.marked
        if marked is None:
            return []
        part = trace.rows_between(request.window)
        rows = (np.flatnonzero(marked[part]) + part.start).astype(np.uint32)
        rows = rows[:: len(rows) // _MARKED_PER_FRAME + 1]
        edges = pixel_edges(request.window, request.width_px)
        infos = [self.opened.timeline.infos[lane] for lane in request.lanes]
        found = event_positions(trace, infos, rows, edges)
        return [
            Ticks(position, column, np.full(len(events), self._hit, np.uint32)) for position, column, events in found
        ]

    def _groups(
        self, view: FilterView, part: slice, shown: NDArray[np.bool_]
    ) -> tuple[tuple[NDArray[np.uint32], NDArray[np.bool_]], ...]:
        """Return colours by code with the events that have them; faded ones first, so that they are below."""
        if self.fades:
            return ((self._faded, shown),)
        if view.dimmed is None:
            return ((self._colours, shown),)
        dimmed = view.dimmed[part]
        return ((self._faded, shown & dimmed), (self._colours, shown & ~dimmed))
