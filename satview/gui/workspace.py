"""What a window holds while a trace is open: swimlanes in the middle, panels around them."""

from __future__ import annotations

import base64
from typing import Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QDockWidget, QMainWindow, QVBoxLayout, QWidget

from satview.gui.details_panel import DetailsPanel
from satview.gui.event_list.panel import EventListPanel
from satview.gui.filter_panel import FilterPanel
from satview.gui.find_bar import FindBar
from satview.gui.problems_panel import ProblemsPanel
from satview.gui.status_bar import StatusFields
from satview.gui.swimlane.area import SwimlaneArea
from satview.gui.swimlane.motion import Motion
from satview.gui.theme import Theme
from satview.session.navigation import Navigation
from satview.session.open_trace import OpenTrace
from satview.session.settings import Settings

_LAYOUT_VERSION: Final = 1
_RIGHT_PX: Final = 340
_BOTTOM_PX: Final = 240


class Workspace(QWidget):
    """The views of one open trace. They share the session's objects and never call each other.

    Attributes:
        area, find_bar, events, details, filter, problems: The views.
        navigation, motion: The moves.
        docks: Name of the panel to its dock.
    """

    def __init__(self, opened: OpenTrace, settings: Settings, theme: Theme, window: QMainWindow) -> None:
        super().__init__(window)
        self.opened = opened
        self._settings = settings
        self._window = window
        self.navigation = Navigation(opened, self)
        self.area = SwimlaneArea(opened, settings, theme, self)
        self.find_bar = FindBar(opened, self)
        self.motion = Motion(opened, self.area.view)
        self.events = EventListPanel(opened, settings, theme, window)
        self.details = DetailsPanel(opened, theme, window)
        self.filter = FilterPanel(opened, window)
        self.problems = ProblemsPanel(opened, theme, window)
        self.status = StatusFields(opened, window.statusBar())
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.area, 1)
        layout.addWidget(self.find_bar)
        self.docks: dict[str, QDockWidget] = {}
        for name, title, widget in (
            ("details", "Details", self.details),
            ("filter", "Filter", self.filter),
            ("events", "Events", self.events),
            ("problems", "Problems", self.problems),
        ):
            self.docks[name] = self._dock(name, title, widget)
        self.arrange()
        self._restore_docks()
        self._connect()

    def arrange(self) -> None:
        """Put all panels where they are at first."""
        right, bottom = Qt.DockWidgetArea.RightDockWidgetArea, Qt.DockWidgetArea.BottomDockWidgetArea
        window = self._window
        for name, side in (("details", right), ("filter", right), ("events", bottom), ("problems", bottom)):
            window.addDockWidget(side, self.docks[name])
            self.docks[name].setFloating(False)
            self.docks[name].show()
        window.tabifyDockWidget(self.docks["details"], self.docks["filter"])
        window.tabifyDockWidget(self.docks["events"], self.docks["problems"])
        self.docks["details"].raise_()
        self.docks["events"].raise_()
        window.resizeDocks([self.docks["details"]], [_RIGHT_PX], Qt.Orientation.Horizontal)
        window.resizeDocks([self.docks["events"]], [_BOTTOM_PX], Qt.Orientation.Vertical)

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        for view in (self.area, self.events, self.details, self.problems):
            view.set_theme(theme)

    def toggle_panel(self, name: str) -> None:
        """Hide a panel if it shows, else show it."""
        dock = self.docks[name]
        if self.panel_shows(name):
            dock.hide()
        else:
            dock.show()
            dock.raise_()

    def panel_shows(self, name: str) -> bool:
        """Tell whether a panel can be seen; one behind another tab cannot."""
        dock = self.docks[name]
        return dock.isVisible() and not dock.visibleRegion().isEmpty()

    def toggle_bottom(self) -> None:
        """Hide all panels at the bottom if any shows, else show them."""
        bottom = [
            dock
            for dock in self.docks.values()
            if self._window.dockWidgetArea(dock) == Qt.DockWidgetArea.BottomDockWidgetArea
        ]
        any_shows = any(not dock.isHidden() for dock in bottom)
        for dock in bottom:
            dock.setHidden(any_shows)
        if not any_shows and self.docks["events"] in bottom:
            self.docks["events"].raise_()

    def close_down(self) -> None:
        """Store the arrangement, stop all work, leave the window."""
        self._settings.set(
            "window/docks", base64.b64encode(self._window.saveState(_LAYOUT_VERSION).data()).decode("ascii")
        )
        self.motion.stop()
        self.area.close_down()
        self.details.close_down()
        self.status.take_out()
        for dock in self.docks.values():
            self._window.removeDockWidget(dock)
            dock.setParent(None)  # at once: the next trace's docks have the same names
            dock.deleteLater()

    def tell(self, text: str) -> None:
        """Say something in the status bar for a few seconds."""
        self._window.statusBar().showMessage(text, 6000)

    def _dock(self, name: str, title: str, widget: QWidget) -> QDockWidget:
        dock = QDockWidget(title, self._window)
        dock.setObjectName(f"dock.{name}")
        dock.setWidget(widget)
        return dock

    def _restore_docks(self) -> None:
        stored = self._settings.text("window/docks")
        if stored:
            try:
                state = base64.b64decode(stored, validate=True)
            except ValueError:
                return
            self._window.restoreState(state, _LAYOUT_VERSION)

    def _connect(self) -> None:
        self.details.event_wanted.connect(self.navigation.show_event)
        self.problems.time_wanted.connect(self.navigation.show_time)
        self.find_bar.step_wanted.connect(self.navigation.step_hit)
        self.find_bar.closed.connect(self._focus_lanes)
        self.area.fit_wanted.connect(self.navigation.fit)
        self.opened.marks.store_failed.connect(self.tell)
        self.status.problems_wanted.connect(self._show_problems)

    @Slot()
    def _focus_lanes(self) -> None:
        self.area.view.setFocus()

    @Slot()
    def _show_problems(self) -> None:
        self.docks["problems"].show()
        self.docks["problems"].raise_()
