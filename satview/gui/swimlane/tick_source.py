"""Marks of events in the colour of their class, where the events are few enough to be told apart."""

from __future__ import annotations

from typing import Final

import numpy as np

from satview.gui.colours import class_colour
from satview.gui.swimlane.lane_image import OPAQUE, Ticks
from satview.gui.swimlane.lane_source import Request
from satview.gui.theme import Theme
from satview.session.lane_events import MarkTable, place_marks
from satview.session.open_trace import OpenTrace
from satview.timeline.spans import pixel_edges

_EVENTS_PER_PX: Final = 1.5  # more than that in the window, and colours would only flicker


class TickSource:
    """Gives coloured marks for a frame.

    Attributes:
        opened: The trace and its filter.
    """

    def __init__(self, opened: OpenTrace, theme: Theme) -> None:
        self.opened = opened
        self._marks = MarkTable(opened.trace).codes
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        catalogue = self.opened.trace.catalogue
        colours = [class_colour(spec.name, theme.is_dark) | OPAQUE for spec in catalogue.classes]
        self._colours = np.array(colours, np.uint32)[catalogue.class_index_of_code]

    def ticks(self, request: Request) -> list[Ticks]:
        """Return the marks of what a frame shows; none where there are too many."""
        trace = self.opened.trace
        part = trace.rows_between(request.window)
        if part.stop - part.start > request.width_px * _EVENTS_PER_PX:
            return []
        shown = self._marks & self.opened.filters.codes
        rows = (np.flatnonzero(shown[trace.events.code[part]]) + part.start).astype(np.uint32)
        edges = pixel_edges(request.window, request.width_px)
        found = place_marks(self.opened.timeline, request.lanes, rows, edges)
        return [Ticks(place, column, self._colours[trace.events.code[events]]) for place, column, events in found]
