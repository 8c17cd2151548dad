"""The views of an open trace: swimlanes in the middle, panels around them, fields in the status bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final, TypeVar

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import (
    QDialog,
    QDockWidget,
    QMainWindow,
    QStackedWidget,
    QStatusBar,
    QTabWidget,
    QToolBar,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from satview.base.column_arrays import borrowed
from satview.base.errors import UsageError
from satview.base.plugins import newly_switched_off
from satview.base.safe_text import counted, menu_text, tool_tip, visible_line
from satview.base.time import TimeWindow, format_duration, format_moment
from satview.gui.comparison.panel import SecondTrace
from satview.gui.event_list import EventListPanel
from satview.gui.filters.chips import ChipBar
from satview.gui.filters.editing import FindBar
from satview.gui.panel import Panel, PanelContext, Value, make_panel, set_row_height
from satview.gui.panels.filter_panel import FilterPanel
from satview.gui.panels.why_panel import VerdictsPanel
from satview.gui.swimlane.area import Motion, Pane, Panes, SwimlaneArea
from satview.gui.theme import Theme, restyle
from satview.gui.widgets import FRAME_MS, ElidedLabel, PlainLabel, capitalized, guard_from_wheel, line_up, withdraw
from satview.gui.windows.docks import (
    Drawer,
    PanelSizes,
    TraceSummary,
    one_topic_in_each_row,
    panel_layout,
    restore_layout,
    scroll_tabs,
    shows,
)
from satview.session.commands import FIRST_PANELS, PANELS, Side
from satview.session.comparison import Comparison
from satview.session.lanes.class_loader import FILE_KEY as USER_EVENTS
from satview.session.navigation import Navigation
from satview.session.open_trace import PIDIN, SYMBOLS, OpenTrace
from satview.session.range_view import length_text
from satview.session.settings import Settings, Stored, StoredJson
from satview.session.tasks import dismantle
from satview.session.workspace_file import PanelLayout, from_text, to_text

# The panels of a workspace, each created on first use.


_PanelType = TypeVar("_PanelType", bound=Panel)


class PanelSet(Mapping[str, Panel]):
    """A mapping of names to panels, each of which is created when it is first accessed.

    Attributes:
        created: Panels created so far.
    """

    def __init__(self, make: Callable[[str], Panel]) -> None:
        self._make = make
        self.created: dict[str, Panel] = {}

    def __getitem__(self, name: str) -> Panel:
        if name not in self.created:
            if name not in self:
                raise KeyError(name)
            self.created[name] = self._make(name)
        return self.created[name]

    def __contains__(self, name: object) -> bool:
        return any(row.name == name for row in PANELS)

    def __iter__(self) -> Iterator[str]:
        return (row.name for row in PANELS)

    def __len__(self) -> int:
        return len(PANELS)


# The status bar field that reports a file of the user that cannot be saved.


_RETRY = "satview retries every few seconds; click to retry now."


class StoreField(QToolButton):
    """Status bar field on why a file of the user is not saved, or on a problem of the file; hidden if all is well."""

    def __init__(self, file: Stored, content: str, bar: QStatusBar) -> None:
        """Create the field on a file with `content` such as `Notes`; it joins the bar once it has a message."""
        super().__init__(bar)
        self.hide()
        # None once the field is in the bar. Most fields never are, and the bar redoes its layout for each one added.
        self._bar: QStatusBar | None = bar
        self._file = file
        self._content = content
        self.setProperty("role", "error")
        self.clicked.connect(self._on_click)
        file.changed.connect(self._show)
        self._show()

    @Slot()
    def _show(self) -> None:
        file = self._file
        if file.failure:
            self.setText(menu_text(f"{self._content} are not saved: {file.failure}"))
            self.setToolTip(tool_tip(_RETRY))
        elif file.notice:
            self.setText(menu_text(f"{self._content}: {file.notice}"))
            self.setToolTip(tool_tip("Click to dismiss this message."))
        says = bool(file.failure or file.notice)
        if says and self._bar is not None:
            self._bar.addPermanentWidget(self)
            self._bar = None
        self.setVisible(says)

    @Slot()
    def _on_click(self) -> None:
        if self._file.failure:
            self._file.retry()
        else:
            self._file.dismiss_notice()


# The status bar fields: time at the mouse, cursors, selected range, visible length, verdicts, problems.


_VERDICTS_AT_MOST: Final = 8  # in the tool tip


class StatusFields(QWidget):
    """The status bar fields of an open trace; a click on problems or verdicts requests their panel."""

    problems_requested = Signal()
    verdicts_requested = Signal()

    def __init__(self, opened: OpenTrace, bar: QStatusBar) -> None:
        super().__init__(bar)
        self.hide()
        self._opened = opened
        self._bar = bar
        # Empty fields stay visible: a field shown while the bar displays a message would be painted over the message.
        self.mouse, self.window_field = PlainLabel(bar), PlainLabel(bar)
        self.selected, self.cursors, self.time_range = (ElidedLabel(bar) for _ in range(3))
        self.problems = QToolButton(bar)
        self.problems.clicked.connect(self.problems_requested)
        self.verdicts = QToolButton(bar)
        self.verdicts.setObjectName("verdicts")
        self.verdicts.clicked.connect(self.verdicts_requested)
        for label in (self.mouse, self.selected, self.cursors, self.time_range):
            bar.addWidget(label)
        for widget in (self.window_field, self.verdicts, self.problems):
            bar.addPermanentWidget(widget)
        opened.selection.mouse_changed.connect(self._show_mouse)
        opened.selection.changed.connect(self._show_selected)
        opened.selection.cursors_changed.connect(self._show_cursors)
        opened.selection.range_changed.connect(self._show_range)
        opened.viewport.window_changed.connect(self._show_window)
        opened.filters.view_changed.connect(self._show_window)
        opened.lanes.changed.connect(self._show_window)
        opened.reloaded.connect(self._show_problems)
        opened.reloaded.connect(self._show_range)
        opened.verdicts.changed.connect(self._show_verdicts)
        for show in (self._show_mouse, self._show_selected, self._show_cursors, self._show_range, self._show_window,
                     self._show_problems, self._show_verdicts):  # fmt: skip
            show()

    def remove(self) -> None:
        """Remove the fields from the status bar."""
        labels = (self.mouse, self.selected, self.cursors, self.time_range, self.window_field)
        for widget in (*labels, self.verdicts, self.problems):
            self._bar.removeWidget(widget)
            widget.deleteLater()
        self.deleteLater()

    @Slot()
    def _show_mouse(self) -> None:
        """Show the time at the mouse while the mouse is over a lane; else a dash."""
        cycles, lane = self._opened.selection.mouse_cycles, self._opened.selection.mouse_lane
        self.mouse.setText(self._time(cycles) if cycles is not None and lane is not None else "\N{EM DASH}")

    @Slot()
    def _show_selected(self) -> None:
        selection, trace = self._opened.selection, self._opened.trace
        parts = []
        if selection.event is not None:
            parts.append(f"#{selection.event + 1:,} {trace.spec(selection.event).name}")
        if selection.span is not None and selection.span.value:
            length = selection.span.end_cycles - selection.span.start_cycles
            label, words = self._opened.timeline.label(selection.span), self._length(length)
            parts.append(label if words in label else f"{label} {words}")  # labels of activities contain the length
        self.selected.setText(" in ".join(parts))

    @Slot()
    def _show_cursors(self) -> None:
        a, b = self._opened.selection.cursor_a, self._opened.selection.cursor_b
        parts = [f"{letter} {self._time(cycles)}" for letter, cycles in (("A", a), ("B", b)) if cycles is not None]
        if a is not None and b is not None:
            length = length_text(b - a, self._opened.trace.clock)
            parts.insert(0, f"\N{GREEK CAPITAL LETTER DELTA} {length}")  # first, because the end may be cut off
        self.cursors.setText("   ".join(parts))

    @Slot()
    def _show_range(self) -> None:
        time_range, text = self._opened.selection.time_range, ""
        if time_range is not None:
            rows = self._opened.trace.rows_between(time_range)
            text = (
                f"Range {length_text(time_range.length, self._opened.trace.clock)}"
                f"   {counted(rows.stop - rows.start, 'event')}"
                f"   {self._time(time_range.start)} \N{EN DASH} {self._time(time_range.end)}"
            )
        self.time_range.setText(text)

    @Slot()
    def _show_window(self) -> None:
        window: TimeWindow = self._opened.viewport.window
        filters = self._opened.filters
        hidden = self._opened.lanes.hidden_count
        text = f"{counted(hidden, 'lane')} hidden   " if hidden else ""
        text += f"Showing {self._length(window.length)}"
        if filters.is_active:
            text += f"   filter: {filters.row_count:,} of {counted(len(self._opened.trace.events), 'event')}"
        self.window_field.setText(text)

    @Slot()
    def _show_problems(self) -> None:
        counts = self._opened.trace.problems.counts()
        self.problems.setText(f"File: {counted(sum(counts.values()), 'problem') if counts else 'no problems'}")
        lines = [f"{slug}: {count:,}" for slug, count in counts.items()] or ["The whole file was understood"]
        self.problems.setToolTip(tool_tip("\n".join(lines)))

    @Slot()
    def _show_verdicts(self) -> None:
        search, state = self._opened.verdicts, ""
        text, hint = "Check for verdicts", "Click to look for deadlocks, inversions, and threads that wait long"
        if search.is_busy:
            text = "Checking\N{HORIZONTAL ELLIPSIS}"
            hint = "Looking for deadlocks, inversions, threads that wait long"
        elif search.error:
            text, hint = "Verdicts: not known", search.error
        elif (answer := search.answer) is not None:
            text = answer.summary
            lines = [f"{verdict.severity}: {verdict.kind}" for verdict in answer.verdicts[:_VERDICTS_AT_MOST]]
            lines += [f"and {left} more"] if (left := len(answer.verdicts) - len(lines)) > 0 else []
            lines += ["Undecided: " + ", ".join(answer.undecided["kind"])] if len(answer.undecided) else []
            hint = "\n".join(lines) or "Found no deadlocks, inversions, or threads that wait too long"
            state = str(answer.verdicts[0].severity) if answer.verdicts else ""
        self.verdicts.setText(text)
        self.verdicts.setToolTip(tool_tip(hint))
        restyle(self.verdicts, "state", state)

    def _time(self, cycles: int) -> str:
        return format_moment(cycles, self._opened.trace.clock)

    def _length(self, cycles: int) -> str:
        return format_duration(self._opened.trace.clock.duration_ns(cycles))


_MOVE_TOGETHER: Final = "Both traces move together; View > Compared trace 2 aligns them by cursors, events or an offset"
_RIGHT_PX: Final = 340
_RIGHT_SHARE: Final = 0.4  # of the window's width, at most
_CHECK_AFTER_MS: Final = 200  # between checks whether the lanes are exact
_CHECK_AGAIN_AFTER_MS: Final = 2000  # after the trace last grew
_BOTTOM_PX: Final = 240
_BOTTOM_SHARE: Final = 0.28  # limit as a share of the window height
_NARROW_PX: Final = 1100  # in a narrower window a panel at the side would take a third of the lanes' width
_LOW_PX: Final = 600
_CLOSED_BELOW_PX: Final = 800  # in a narrower or lower window the drawer is initially closed
_AREAS: Final = {
    Side.RIGHT: Qt.DockWidgetArea.RightDockWidgetArea,
    Side.BOTTOM: Qt.DockWidgetArea.BottomDockWidgetArea,
}
# For visible docks only: each layout of a dock with buttons makes Qt read their icons from twelve files.
_WITH_BUTTONS: Final = (
    QDockWidget.DockWidgetFeature.DockWidgetMovable
    | QDockWidget.DockWidgetFeature.DockWidgetClosable
    | QDockWidget.DockWidgetFeature.DockWidgetFloatable
)


class Workspace(QWidget):
    """Holds the views of one open trace, which share the objects of the session and never call each other.

    Attributes:
        area, chips, find_bar, drawer: Lanes, bar of filter chips, find bar, and line above the bottom panels.
        panes: The lanes, and a second set of lanes if shown.
        panels: Panels by name, created when first shown or used.
        summary: Summary of the trace in the toolbar.
        navigation, motion: Objects that move the view to events and times, and that zoom and pan.
        comparison, second_trace: Comparison with a second trace, and the object that opens it.
        saved_values: Saved field values by panel name, for panels that are created later.
        docks: Docks by panel name.

    Signals:
        menu_requested: A panel was right-clicked; sends the global position and the name of the argument there, or "".
    """

    menu_requested = Signal(QPoint, str)

    def __init__(
        self, opened: OpenTrace, settings: Settings, theme: Theme, window: QMainWindow, pages: QStackedWidget
    ) -> None:
        super().__init__(pages)  # as parent from the start: moving a filled widget takes Qt longer
        pages.addWidget(self)
        self._settings = settings
        self._window = window
        self._theme = theme
        self._stale_panels: set[str] = set()
        self._is_arranging = False
        self.saved_values: dict[str, dict[str, Value]] = {}
        self.docks = {row.name: self._dock(row.name, row.plain_title) for row in PANELS}
        self._sizes = PanelSizes(window, self.docks)
        self._make_views(opened)
        self.arrange()
        self._restore_docks()
        window.installEventFilter(self)
        if not self.area.no_states.isHidden():
            self.show_panel("events")  # without states, only events can be shown
        for dock in self.docks.values():  # after they are arranged, because all docks show for a moment before
            dock.visibilityChanged.connect(self._update_panels)
        # After the window has laid out the panels, and not in the turn of the event loop that draws the lanes.
        QTimer.singleShot(FRAME_MS, self, lambda: QTimer.singleShot(0, self, self._update_panels))

    def _make_views(self, opened: OpenTrace) -> None:
        window, theme = self._window, self._theme
        self.opened = opened
        self.navigation = Navigation(opened, self)
        self.area = SwimlaneArea(opened, self._settings, theme, self)
        self.chips = ChipBar(opened, theme, self)
        self.find_bar = FindBar(opened, theme, self)
        self.motion = Motion(opened, self.area.view)
        self.panes = Panes(Pane(opened, self.area, self.navigation, self.motion), self._settings, self)
        self.comparison = Comparison(opened, self)
        self._second_field: StoreField | None = None
        self.second_trace = SecondTrace(self.comparison, self.panes, self._settings, theme, self)
        self.panels = PanelSet(borrowed(self._make_panel))
        self.status = StatusFields(opened, window.statusBar())
        tools = window.findChild(QToolBar, "toolbar")
        assert isinstance(tools, QToolBar)
        self.summary = TraceSummary(opened, tools)
        self.unsaved = StoreField(opened.marks.file, "Notes", window.statusBar())
        self._file_fields = [self.unsaved]
        self.drawer = Drawer(self.docks, window, self)
        self.drawer.rearranged.connect(self._update_panels)
        line_up(QVBoxLayout(self), self.chips, (self.panes, 1), self.find_bar, self.drawer, margins=(0, 0, 0, 0),
                spacing=0)  # fmt: skip
        self._check = QTimer(self)
        self._check.timeout.connect(self._look_for_verdicts)
        self._check.start(_CHECK_AFTER_MS)
        self._connect()

    @property
    def active(self) -> Pane:
        """The set of lanes on which commands act: the set that last had the keyboard focus."""
        return self.panes.active

    @property
    def is_split(self) -> bool:
        """True while there are two sets of lanes of the same trace."""
        return self.panes.is_split

    def toggle_split(self) -> None:
        """Show a second set of lanes below the first, or remove it."""
        if self.is_split:
            self.panes.join()
        else:
            self.second_trace.close()
            self.panes.split(self._theme)

    def views(self) -> tuple[OpenTrace, ...]:
        """Return the `OpenTrace` of each set of lanes of this trace."""
        second = self.panes.second if self.panes.is_split else None
        return (self.opened,) if second is None else (self.opened, second.opened)

    def panel(self, kind: type[_PanelType]) -> _PanelType:
        """Return the panel that is an instance of a class."""
        home = f"{kind.__module__}:{kind.__qualname__}"
        panel = self.panels[next(row.name for row in PANELS if row.home == home)]
        assert isinstance(panel, kind)
        return panel

    def _make_panel(self, name: str) -> Panel:
        """Create a panel in its dock."""
        context = PanelContext(
            self.opened, self.navigation, self._settings, self._theme, self.area, self.find_bar.look_for, self.report,
            self.comparison,
        )  # fmt: skip
        # The dock is the parent from the start: moving a filled widget takes Qt as long as creating it.
        panel = make_panel(next(row for row in PANELS if row.name == name), context, self.docks[name])
        panel.menu_requested.connect(self.menu_requested)
        guard_from_wheel(panel)
        panel.restore_values(self.saved_values.get(name, {}))
        if panel.waits_to_be_seen:
            self._stale_panels.add(name)
        policy = panel.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # otherwise its dock and the other tabs of that dock would shrink
        panel.setSizePolicy(policy)
        self.docks[name].setWidget(panel)
        return panel

    @Slot()
    def _on_reloaded(self) -> None:
        """Mark all panels to be reloaded once they are visible, and check for verdicts again later."""
        self._stale_panels = set(self.panels.created)
        self._update_panels()
        self._check.start(_CHECK_AGAIN_AFTER_MS)

    @property
    def is_checking(self) -> bool:
        """True while verdicts are searched for, or are to be searched for once the lanes are exact."""
        return self._check.isActive() or self.opened.verdicts.is_busy or self.opened.has_priorities.is_busy

    @Slot()
    def _look_for_verdicts(self) -> None:
        """Search for verdicts automatically once the lanes are exact, unless the trace is too large.

        The search does not run on a low-priority thread: such a thread would block the window while it waits for a
        processor and holds the interpreter lock.
        """
        count, most = len(self.opened.trace.events), self._settings.number("verdicts/check_up_to_events")
        if self.area.is_exact:
            self._check.stop()
            self.opened.has_priorities.start()
            if count <= most:
                self.opened.verdicts.start()

    @Slot(str)
    def _on_setting(self, key: str) -> None:
        if key == "verdicts/check_up_to_events":
            self._check.start(_CHECK_AFTER_MS)
        elif key == "events/row_height_px":
            for panel in self.panels.created.values():
                set_row_height(panel, self._settings.number(key))

    @Slot()
    def _title_verdicts(self) -> None:
        """Show the number of verdicts in the title of the panel Verdicts."""
        answer = self.opened.verdicts.answer
        count = f" ({len(answer.verdicts)})" if answer is not None and answer.verdicts else ""
        self.docks["verdicts"].setWindowTitle(f"Verdicts{count}")

    @Slot()
    def _update_panels(self) -> None:
        """Create and reload the visible panels, and hide the others so that they do no work.

        Hiding is necessary because Qt regards a dock behind a tab, and its content, as visible.
        """
        if self._is_arranging:
            return
        self.drawer.refresh()
        has_made_one = False
        for name in self.panels:
            shows = self.panel_shows(name)
            if shows:
                self.docks[name].setFeatures(_WITH_BUTTONS)
            if shows and name not in self.panels.created:
                if has_made_one:  # create one panel per frame
                    QTimer.singleShot(FRAME_MS, self, self._update_panels)
                    continue
                has_made_one = True
            if shows or name in self.panels.created:
                self.panels[name].setVisible(shows)
            if shows and name in self._stale_panels:
                self._stale_panels.discard(name)
                self.panels[name].reload()

    def arrange(self) -> None:
        """Move all panels to their initial positions; in a small window, all to the drawer at the bottom."""
        window = self._window
        window.setTabPosition(Qt.DockWidgetArea.BottomDockWidgetArea, QTabWidget.TabPosition.North)
        px = self._theme.px  # larger text makes the same window smaller
        is_small = window.width() < px(_NARROW_PX) or window.height() < px(_LOW_PX)
        before: dict[Side, QDockWidget] = {}
        first_topic = next(row.topic for row in PANELS if row.name == FIRST_PANELS[Side.BOTTOM])
        layout = window.layout()
        assert layout is not None
        layout.setEnabled(False)  # otherwise Qt lays out all docks each time one is shown
        for row in PANELS:
            dock, side = self.docks[row.name], Side.BOTTOM if is_small else row.side
            window.addDockWidget(_AREAS[side], dock)
            if side in before:  # immediately: side by side they would be wider than a small window
                window.tabifyDockWidget(before[side], dock)
            before[side] = dock
            dock.setFloating(False)
            dock.setVisible(side is Side.RIGHT or row.topic is first_topic)
        for name in FIRST_PANELS.values():
            self.docks[name].setFeatures(_WITH_BUTTONS)
        layout.setEnabled(True)
        layout.activate()
        if not is_small:
            self.docks[FIRST_PANELS[Side.RIGHT]].raise_()
            self._widen_right(px(_RIGHT_PX))
        self.drawer.show_panel(FIRST_PANELS[Side.BOTTOM])
        bottom_px = min(_BOTTOM_PX, round(window.height() * _BOTTOM_SHARE))
        window.resizeDocks([self.docks[FIRST_PANELS[Side.BOTTOM]]], [bottom_px], Qt.Orientation.Vertical)
        if min(window.width(), window.height()) < _CLOSED_BELOW_PX:
            self.drawer.close_drawer()
        QTimer.singleShot(FRAME_MS, self, self._sizes.note)

    def _widen_right(self, width_px: int) -> None:
        """Give the panels at the right a width, at most a part of the window's."""
        width_px = min(width_px, round(self._window.width() * _RIGHT_SHARE))
        self._window.resizeDocks([self.docks[FIRST_PANELS[Side.RIGHT]]], [width_px], Qt.Orientation.Horizontal)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Remember panel sizes after a drag, and restore them when the window is resized."""
        if event.type() == QEvent.Type.MouseButtonRelease:
            self._sizes.note()
        elif event.type() == QEvent.Type.Resize:
            QTimer.singleShot(0, self, self._sizes.restore)
        return super().eventFilter(watched, event)

    def set_theme(self, theme: Theme) -> None:
        """Use the colours and text size of a theme; panels at the right become wider with larger text."""
        before, self._theme = self._theme, theme
        if theme.text_percent != before.text_percent:
            width_px = self.docks[FIRST_PANELS[Side.RIGHT]].width()
            self._widen_right(round(width_px * theme.text_percent / before.text_percent))
            QTimer.singleShot(FRAME_MS, self, self._sizes.note)
        self.second_trace.theme = theme
        for view in (self.panes, self.chips, self.find_bar):
            view.set_theme(theme)
        for panel in self.panels.created.values():
            panel.set_theme(theme)

    def show_panel(self, name: str) -> None:
        """Show a panel and bring its tab to the front."""
        if name in self.drawer.members():
            self.drawer.show_panel(name)
        else:
            self.docks[name].show()
            self.docks[name].raise_()

    def show_end(self) -> None:
        """Scroll to the end of the event list."""
        self.panel(EventListPanel).table.scrollToBottom()

    def toggle_panel(self, name: str) -> None:
        """Hide a panel if it is visible, otherwise show it; hiding a panel of the drawer closes the drawer."""
        if not self.panel_shows(name):
            self.show_panel(name)
        elif name in self.drawer.members():
            self.drawer.close_drawer()
        else:
            self.docks[name].hide()

    def panel_shows(self, name: str) -> bool:
        """Return whether a panel is visible; a panel behind another tab is not."""
        return shows(self.docks[name])

    def toggle_bottom(self) -> None:
        """Close the drawer, or reopen it with the panel it last showed."""
        if self.drawer.front:
            self.drawer.close_drawer()
        else:
            self.drawer.open_again()

    def close_down(self) -> None:
        """Save the panel layout, cancel all tasks and remove the docks from the window."""
        self._settings.set("window/panels", to_text(self.layout_of_panels()))
        self._stop()
        for dock in self.docks.values():
            self._window.removeDockWidget(dock)
            dock.setObjectName("")  # the next docks have the same names; reparenting would take 5 ms
            dismantle(dock)

    def _stop(self) -> None:
        self._check.stop()
        for dialog in self.findChildren(QDialog):
            dialog.close()
        self.second_trace.close()
        self.comparison.close()
        self.panes.close_down()
        for panel in self.panels.created.values():
            panel.close_down()
        self.status.remove()
        self.summary.remove()
        for field in self._file_fields:
            self._window.statusBar().removeWidget(field)
            field.deleteLater()

    def watch_file(self, file: StoredJson, content: str) -> None:
        """Show a field in the status bar whenever a user's file has a problem; `content` is as for `StoreField`."""
        self._file_fields.append(StoreField(file, content, self._window.statusBar()))

    def report(self, text: str) -> None:
        """Show a message in the status bar for a few seconds."""
        self._window.statusBar().showMessage(visible_line(text), 6000)

    @Slot()
    def report_plugins(self) -> None:
        """Show in the status bar which plug-ins were switched off since the last call."""
        if texts := newly_switched_off():
            self.report("; ".join(texts))

    @Slot(str)
    def report_failure(self, text: str) -> None:
        """Show an error message in the status bar; `text` begins in lower case or with a name, as error messages do."""
        self.report(capitalized(text))

    @Slot(int)
    def _step_hit(self, direction: int) -> None:
        try:
            self.navigation.step_hit(direction)
        except UsageError as error:
            self.report_failure(str(error))

    def _dock(self, name: str, title: str) -> QDockWidget:
        dock = QDockWidget(title, self._window)
        dock.setObjectName(f"dock.{name}")
        dock.setFeatures(QDockWidget.DockWidgetFeature.DockWidgetMovable)
        return dock

    def layout_of_panels(self) -> PanelLayout:
        """Return the positions, sizes and tab groups of the panels."""
        return panel_layout(self._window, self.docks)

    def restore_panels(self, layout: PanelLayout) -> None:
        """Restore a panel layout; only visible panels are created."""
        self._is_arranging = True
        restore_layout(self._window, self.docks, one_topic_in_each_row(layout))
        self._is_arranging = False
        QTimer.singleShot(0, self, self._update_panels)
        QTimer.singleShot(0, self, partial(scroll_tabs, self._window, self.docks))
        QTimer.singleShot(FRAME_MS, self, self._sizes.note)

    def _restore_docks(self) -> None:
        layout = from_text(self._settings.text("window/panels"))
        if layout is not None:
            self.restore_panels(layout)

    @property
    def has_user_events(self) -> bool:
        """Whether the command line names a file with user event descriptions."""
        return self._settings.is_passing(USER_EVENTS)

    def _connect(self) -> None:
        self.find_bar.step_requested.connect(self._step_hit)
        show_panel = borrowed(self.show_panel)
        self.find_bar.list_requested.connect(partial(show_panel, "results"))
        self.chips.edit_requested.connect(self._edit_filter)
        self.chips.rules_requested.connect(self._show_rules)
        self.opened.filters.failed.connect(self.report)
        self.opened.sorter.failed.connect(self.report_failure)
        self.opened.class_loader.failed.connect(self.report_failure)
        if file := self._settings.text(USER_EVENTS):
            try:
                self.opened.describe(file)
            except UsageError as error:
                self.report_failure(str(error))
        self.opened.named.connect(self.report)
        if folder := self._settings.text(SYMBOLS):
            self.opened.name_addresses(folder)
        if text := self._settings.text(PIDIN):
            self.opened.name_processes(text)
        self.find_bar.closed.connect(self.area.view.setFocus)
        self.area.fit_requested.connect(self.navigation.fit)
        self.opened.reloaded.connect(self._on_reloaded)
        self.status.problems_requested.connect(partial(show_panel, "problems"))
        self.summary.panel_requested.connect(self._show_summary_panel)
        self.status.verdicts_requested.connect(partial(show_panel, "verdicts"))
        self.opened.verdicts.changed.connect(self._title_verdicts)
        self.opened.verdicts.changed.connect(self.report_plugins)
        self._settings.changed.connect(self._on_setting)
        self.second_trace.opened.connect(self._on_second_opened)
        self.panes.removed.connect(self._on_second_removed)
        self.second_trace.failed.connect(self.report)
        self.comparison.failed.connect(self.report)
        self.comparison.changed.connect(self._on_comparison)

    @Slot()
    def _on_second_opened(self) -> None:
        """Show the comparison with the second trace that was just opened."""
        second = self.comparison.second
        assert second is not None
        second.marks.file.changed.connect(self._on_second_notes)
        self._on_second_notes()
        self.show_panel("comparison")
        self.report(_MOVE_TOGETHER)

    @Slot()
    def _on_comparison(self) -> None:
        if self.comparison.second is None or not self.comparison.is_linked:
            withdraw(self._window.statusBar(), _MOVE_TOGETHER)

    @Slot()
    def _on_second_notes(self) -> None:
        """Create the field about notes of the second trace only if they have a problem, as the field hides messages."""
        file = self.comparison.second.marks.file if self.comparison.second is not None else None
        if file is not None and self._second_field is None and (file.failure or file.notice):
            self._second_field = StoreField(file, "Notes on the second trace", self._window.statusBar())

    @Slot()
    def _on_second_removed(self) -> None:
        """Remove the status bar field about the notes of the second trace."""
        field, self._second_field = self._second_field, None
        if field is not None:
            self._window.statusBar().removeWidget(field)
            field.deleteLater()

    @Slot(str)
    def _edit_filter(self, name: str) -> None:
        self.show_panel("filter")
        self.panel(FilterPanel).edit(name)

    @Slot()
    def _show_rules(self) -> None:
        self.show_panel("filter")
        self.panel(FilterPanel).show_rules()

    @Slot(str)
    def _show_summary_panel(self, name: str) -> None:
        """Show the panel of a clicked part of the toolbar summary; in the panel Verdicts, go to the worst verdict."""
        self.show_panel(name)
        if name == "verdicts":
            self.panel(VerdictsPanel).show_worst()
