"""What a window holds while a trace is open: swimlanes in the middle, panels around them."""

from __future__ import annotations

import base64
from typing import Final

from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtWidgets import QDockWidget, QMainWindow, QVBoxLayout, QWidget

from satview.base.safe_text import visible_line
from satview.base.time import TimeWindow
from satview.gui.details_panel import DetailsPanel
from satview.gui.event_list.panel import EventListPanel
from satview.gui.filter_panel import FilterPanel
from satview.gui.filters.chips import ChipBar
from satview.gui.filters.results_panel import ResultsPanel
from satview.gui.find_bar import FindBar
from satview.gui.plots.panel import PlotsPanel
from satview.gui.problems_panel import ProblemsPanel
from satview.gui.statistics.panel import StatisticsPanel
from satview.gui.status_bar import StatusFields
from satview.gui.store_field import StoreField
from satview.gui.swimlane.area import SwimlaneArea
from satview.gui.swimlane.motion import Motion
from satview.gui.theme import Theme
from satview.gui.verdicts_panel import VerdictsPanel
from satview.session.dismantle import dismantle
from satview.session.navigation import Navigation
from satview.session.open_trace import OpenTrace
from satview.session.settings import Settings

_LAYOUT_VERSION: Final = 3
_RIGHT_PX: Final = 340
_BOTTOM_PX: Final = 240


class Workspace(QWidget):
    """The views of one open trace. They share the session's objects and never call each other.

    Attributes:
        area, chips, find_bar, events, statistics, plots, details, filter, problems, results: The views.
        navigation, motion: The moves.
        docks: Name of the panel to its dock.
    """

    def __init__(self, opened: OpenTrace, settings: Settings, theme: Theme, window: QMainWindow) -> None:
        super().__init__(window)
        self._settings = settings
        self._window = window
        self._theme = theme
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        self._stale: set[str] = set()
        self._make_views(opened)
        self.docks: dict[str, QDockWidget] = {}
        for name, title, widget in (
            ("details", "Details", self.details),
            ("filter", "Filter", self.filter),
            ("events", "Events", self.events),
            ("statistics", "Statistics", self.statistics),
            ("plots", "Plots", self.plots),
            ("problems", "Problems", self.problems),
            ("verdicts", "Verdicts", self.verdicts),
            ("results", "Search results", self.results),
        ):
            self.docks[name] = self._dock(name, title, widget)
        self.arrange()
        self._restore_docks()
        self._stale = {"verdicts"}
        QTimer.singleShot(0, self, self._freshen)  # once the window has laid the panels out

    def _make_views(self, opened: OpenTrace) -> None:
        window, theme = self._window, self._theme
        self.opened = opened
        self.navigation = Navigation(opened, self)
        self.area = SwimlaneArea(opened, self._settings, theme, self)
        self.chips = ChipBar(opened, theme, self)
        self.find_bar = FindBar(opened, theme, self)
        self.motion = Motion(opened, self.area.view)
        self.events = EventListPanel(opened, self._settings, theme, window)
        self.statistics = StatisticsPanel(opened, self.navigation, self._settings, theme, window)
        self.plots = PlotsPanel(opened, self.statistics.view.basis_of, self.area.labels.width(), theme, window)
        self.details = DetailsPanel(opened, theme, window)
        self.filter = FilterPanel(opened, theme, window)
        self.results = ResultsPanel(opened, self._settings, theme, window)
        self.problems = ProblemsPanel(opened, theme, window)
        self.verdicts = VerdictsPanel(opened, theme, window)
        self.status = StatusFields(opened, window.statusBar())
        self.unsaved = StoreField(opened.marks.file, "Notes", window.statusBar())
        layout = self.layout()
        assert isinstance(layout, QVBoxLayout)
        layout.addWidget(self.chips)
        layout.addWidget(self.area, 1)
        layout.addWidget(self.find_bar)
        self._connect()

    @Slot()
    def _on_renewed(self) -> None:
        """Let the panels that do not follow by themselves show the longer reading, once they can be seen."""
        self._stale = {"filter", "problems", "verdicts"}
        self._freshen()

    @Slot()
    def _freshen(self) -> None:
        renew = {"filter": self.filter.renew, "problems": self.problems.renew, "verdicts": self.verdicts.renew}
        for name in [name for name in self._stale if self.panel_shows(name)]:
            self._stale.discard(name)
            renew[name]()

    def arrange(self) -> None:
        """Put all panels where they are at first."""
        right, bottom = Qt.DockWidgetArea.RightDockWidgetArea, Qt.DockWidgetArea.BottomDockWidgetArea
        window = self._window
        before: dict[Qt.DockWidgetArea, QDockWidget] = {}
        for name, side in (
            ("details", right),
            ("filter", right),
            ("events", bottom),
            ("statistics", bottom),
            ("plots", bottom),
            ("problems", bottom),
            ("verdicts", bottom),
            ("results", bottom),
        ):
            dock = self.docks[name]
            window.addDockWidget(side, dock)
            if side in before:  # at once: side by side they would be wider than a small window
                window.tabifyDockWidget(before[side], dock)
            before[side] = dock
            dock.setFloating(False)
            dock.show()
        self.docks["details"].raise_()
        self.docks["events"].raise_()
        window.resizeDocks([self.docks["details"]], [_RIGHT_PX], Qt.Orientation.Horizontal)
        window.resizeDocks([self.docks["events"]], [_BOTTOM_PX], Qt.Orientation.Vertical)

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme
        for view in (
            self.area,
            self.chips,
            self.find_bar,
            self.events,
            self.statistics,
            self.plots,
            self.details,
            self.filter,
            self.problems,
            self.verdicts,
            self.results,
        ):
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
        self._stop()
        for dock in self.docks.values():
            self._window.removeDockWidget(dock)
            dock.setParent(None)  # at once: the next trace's docks have the same names
            dismantle(dock)

    def _stop(self) -> None:
        self.motion.stop()
        self.area.close_down()
        self.statistics.close_down()
        self.plots.close_down()
        self.filter.close_down()
        self.results.close_down()
        self.status.take_out()
        self._window.statusBar().removeWidget(self.unsaved)
        self.unsaved.deleteLater()

    def tell(self, text: str) -> None:
        """Say something in the status bar for a few seconds."""
        self._window.statusBar().showMessage(visible_line(text), 6000)

    def _dock(self, name: str, title: str, widget: QWidget) -> QDockWidget:
        dock = QDockWidget(title, self._window)
        dock.setObjectName(f"dock.{name}")
        dock.setWidget(widget)
        dock.visibilityChanged.connect(self._freshen)
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
        self.verdicts.event_wanted.connect(self.navigation.show_event)
        self.verdicts.place_wanted.connect(self._show_verdict)
        self.area.labels.width_wanted.connect(self.plots.set_left)
        self.plots.time_wanted.connect(self.navigation.show_time)
        self.plots.event_wanted.connect(self.navigation.show_event)
        self.find_bar.step_wanted.connect(self.navigation.step_hit)
        self.find_bar.list_wanted.connect(self._show_results)
        self.filter.search_wanted.connect(self.find_bar.look_for)
        self.chips.edit_wanted.connect(self._edit_filter)
        self.chips.rules_wanted.connect(self._show_rules)
        self.opened.filters.failed.connect(self.tell)
        self.find_bar.closed.connect(self._focus_lanes)
        self.area.fit_wanted.connect(self.navigation.fit)
        self.opened.renewed.connect(self._on_renewed)
        self.status.problems_wanted.connect(self._show_problems)

    @Slot(object, int)
    def _show_verdict(self, window: TimeWindow, event: int) -> None:
        if event >= 0:
            self.navigation.show_event(event)
        self.opened.viewport.fit(window)

    @Slot()
    def _focus_lanes(self) -> None:
        self.area.view.setFocus()

    @Slot()
    def _show_results(self) -> None:
        self.docks["results"].show()
        self.docks["results"].raise_()

    @Slot(str)
    def _edit_filter(self, name: str) -> None:
        self.docks["filter"].show()
        self.docks["filter"].raise_()
        self.filter.edit(name)

    @Slot()
    def _show_rules(self) -> None:
        self.docks["filter"].show()
        self.docks["filter"].raise_()
        self.filter.show_rules()

    @Slot()
    def _show_problems(self) -> None:
        self.docks["problems"].show()
        self.docks["problems"].raise_()
