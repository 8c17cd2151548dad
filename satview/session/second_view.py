"""A second look at an open trace: part of time and arrangement of lanes are its own, all else is that of the first."""

from __future__ import annotations

from PySide6.QtCore import QObject

from satview.analysis.times.basis import Basis
from satview.session.lanes.lane_list import LaneList
from satview.session.lanes.lane_sorter import LaneSorter
from satview.session.open_trace import OpenTrace
from satview.session.settings import Settings
from satview.session.viewport import Viewport


class SecondView(OpenTrace):
    """What a second set of lanes shows. Selection, filter, marks, search and answers are those of the first.

    Attributes:
        first: The open trace.
    """

    def __init__(self, first: OpenTrace, settings: Settings, parent: QObject | None = None) -> None:
        """Begin with what the first one shows.

        Args:
            first: The open trace; it must live longer.
            settings: For the height of lanes.
            parent: Owner.
        """
        QObject.__init__(self, parent)  # and not that of OpenTrace: the parts are there already
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
        """That of the first view."""
        return self.first.basis

    def shut_down(self) -> None:
        """Stop what is of this view only."""
        self.first.others.remove(self)
        self.sorter.close()
