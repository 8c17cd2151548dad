"""The swimlane area: overview, ruler, labels, lanes, scroll bar and legend; and the panes of a window."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QPoint, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QFontDatabase, QGuiApplication, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QScrollArea,
    QScrollBar,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from satview.analysis.doctor import diagnosis
from satview.analysis.needs import has_class, has_no_states
from satview.base.safe_text import counted, tool_tip, visible_line
from satview.events.states import QUIET_PROCESS
from satview.events.wire import WireClass
from satview.gui.swimlane.labels import LaneLabels, Ruler
from satview.gui.swimlane.legend import ExplainedPicture, Legend, save_drawing
from satview.gui.swimlane.mouse import HoverCard, SwimlaneMouse
from satview.gui.swimlane.overview import OverviewStrip
from satview.gui.swimlane.view import FRAME_S, SwimlaneView
from satview.gui.theme import Theme, restyle
from satview.gui.widgets import FRAME_MS, PlainLabel, line_up, named, paint_next_frame, push_button
from satview.session.arrow_source import ArrowMode
from satview.session.lanes.lane_arrangement import SortBy
from satview.session.lanes.lane_row import LaneRow
from satview.session.lanes.lane_sorter import idle_cpus, sorted_lanes, use_of
from satview.session.navigation import Navigation, SecondView
from satview.session.open_trace import OpenTrace
from satview.session.settings import Settings
from satview.session.tasks import dismantle
from satview.store.mark_file import Mark
from satview.store.trace import Trace
from satview.timeline.lane_info import LaneKind

if TYPE_CHECKING:
    from satview.analysis.needs import CaptureLine


# The page shown instead of lanes if a trace has no thread states: why, and what to capture.


_ANALYSIS: Final = "wake-ups"  # the analysis whose capture command line is proposed
_CARD_PX: Final = 560
_NAMES: Final = {WireClass.KER_CALL: "kernel calls", WireClass.COMM: "messages", WireClass.INT: "interrupts"}


class NoStates(QWidget):
    """A page that covers the lanes while the trace has no thread states, until the user asks for the lanes."""

    lanes_requested = Signal()

    def __init__(self, opened: OpenTrace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self._is_dismissed = False
        self._is_created = False
        self.setAutoFillBackground(True)
        self.setAccessibleName("No states of threads")
        opened.reloaded.connect(self._fill)
        self._fill()

    def _make(self) -> None:
        """Create the child widgets when first needed: few traces lack states, and creation would delay the window."""
        self._is_created = True
        self.command = named(QLineEdit(self, readOnly=True), "Command line of the capture")
        self.command.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self._text = PlainLabel("", self, role="dim", wraps=True)
        self._lay_out()

    def _lay_out(self) -> None:
        page = QWidget(self)
        card = QFrame(page)
        card.setMaximumWidth(_CARD_PX)
        title = PlainLabel("No states of threads in this trace", card, role="title")
        self.copy_line = push_button("Copy", card, self._on_copy)
        self.capture = push_button("New capture\N{HORIZONTAL ELLIPSIS}", card, self._on_capture)
        self.show_lanes = push_button("Show the lanes", card, self._on_show)
        line = line_up(QHBoxLayout(), (self.command, 1), self.copy_line)
        buttons = line_up(QHBoxLayout(), self.capture, self.show_lanes, None)
        line_up(QVBoxLayout(card), title, self._text, line, buttons, margins=(16, 12, 16, 12), spacing=10)
        middle = QHBoxLayout(page)
        middle.addStretch(1)
        middle.addWidget(card, 100, Qt.AlignmentFlag.AlignVCenter)
        middle.addStretch(1)
        scrolled = QScrollArea(self)  # for low windows
        scrolled.setFrameShape(QFrame.Shape.NoFrame)
        scrolled.setWidgetResizable(True)
        scrolled.setWidget(page)
        line_up(QVBoxLayout(self), scrolled, margins=(0, 0, 0, 0))

    @Slot()
    def _fill(self) -> None:
        trace = self._opened.trace
        self.setVisible(not self._is_dismissed and has_no_states(trace))
        if not self.isHidden():
            if not self._is_created:
                self._make()
            self._text.setText(
                f"It has {_classes(trace)} only, so the lanes of threads would be empty. The list of "
                "events below shows all that it has. To see who ran, who waited and why, capture with:"
            )
            line = _capture_line(trace)
            self.command.setText(line.command if line is not None else "")
            self.command.setCursorPosition(0)

    @Slot()
    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self.command.text())

    @Slot()
    def _on_capture(self) -> None:
        line = _capture_line(self._opened.trace)
        if line is not None:
            self._opened.capture_requested.emit(line.rules)

    @Slot()
    def _on_show(self) -> None:
        self._is_dismissed = True
        self.hide()
        self.lanes_requested.emit()


def _classes(trace: Trace) -> str:
    """Return as text which of the event classes in `_NAMES` occur in a trace: `A, B and C`."""
    names = [name for number, name in _NAMES.items() if has_class(trace, number)]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _capture_line(trace: Trace) -> CaptureLine | None:
    return diagnosis(trace, _ANALYSIS, is_quick=True).capture


# Zoom and pan by keys: one step on the press, then continuous and accelerating while the key is held.


_HOLD_S: Final = 0.22  # a key held longer than this moves continuously
_LONGEST_S: Final = 20.0  # limit of a motion, in case the release is lost
_ZOOM_STEP: Final = 1.5
_PAN_STEP: Final = 0.2


class Motion(QObject):
    """Zooms or pans while W, S, A or D is held."""

    def __init__(self, opened: OpenTrace, view: SwimlaneView) -> None:
        super().__init__(view)
        self._opened = opened
        self._view = view
        self._zoom = 0
        self._pan = 0
        self._shown_at_s = 0.0
        self._timer = QTimer(self, interval=FRAME_MS)
        self._timer.timeout.connect(self._on_frame)

    def zoom(self, direction: int) -> None:
        """Zoom in (1) or out (-1): one step now, and continuously while the key is held."""
        self._opened.viewport.zoom(_ZOOM_STEP**-direction, self.anchor())
        self._begin(direction, 0)

    def pan(self, direction: int) -> None:
        """Pan to later (1) or earlier (-1) times: one step now, and continuously while the key is held."""
        self._opened.viewport.pan(_PAN_STEP * direction)
        self._begin(0, direction)

    def anchor(self) -> int:
        """Return the time that zooming keeps in place, cycles: at the mouse, else the selected event, else the middle.

        A selected event outside the window does not count.
        """
        selection, window = self._opened.selection, self._opened.viewport.window
        if selection.mouse_cycles is not None and window.contains(selection.mouse_cycles):
            return selection.mouse_cycles
        if selection.event is not None:
            cycles = int(self._opened.trace.events.time_cycles[selection.event])
            if window.contains(cycles):
                return cycles
        return window.start + window.length // 2

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Stop when a key is released or the window is deactivated."""
        is_release = (
            event.type() == QEvent.Type.KeyRelease and isinstance(event, QKeyEvent) and not event.isAutoRepeat()
        )
        if is_release or event.type() == QEvent.Type.WindowDeactivate:
            self.stop()
        return False

    def stop(self) -> None:
        """Stop moving."""
        self._timer.stop()
        app = QCoreApplication.instance()
        if app is not None:
            app.removeEventFilter(self)

    def _begin(self, zoom: int, pan: int) -> None:
        self._zoom, self._pan = zoom, pan
        self._shown_at_s = time.monotonic()
        app = QCoreApplication.instance()
        if app is not None and not self._timer.isActive():
            app.installEventFilter(self)  # only while a key is held, because it slows down every event
        self._timer.start()

    @Slot()
    def _on_frame(self) -> None:
        held_s = time.monotonic() - self._shown_at_s
        if held_s > _LONGEST_S or not self._view.isVisible():
            self.stop()
            return
        if held_s < _HOLD_S:
            return
        speed = min(1.0, (held_s - _HOLD_S) / 0.8)
        if self._zoom:
            self._opened.viewport.zoom((1.03 + 0.06 * speed) ** -self._zoom, self.anchor())
        else:
            self._opened.viewport.pan((0.012 + 0.04 * speed) * self._pan)


_HEAD: Final = "Whole trace"
_TIME: Final = "Time"
_HEAD_MARGIN_PX: Final = 24  # total margin of the headings above the labels
_LOW_PX: Final = 440  # as in a 1024x700 window with its drawer open


class SwimlaneArea(QWidget):
    """Combines the lanes, which have the keyboard focus, with overview, ruler, labels, scroll bar and legend.

    Signals:
        menu_requested: A lane was right-clicked; sends the global position of the mouse.
        fit_requested: A lane was double-clicked.
    """

    menu_requested = Signal(QPoint)
    fit_requested = Signal()

    def __init__(self, opened: OpenTrace, settings: Settings, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self._settings = settings
        self._theme = theme
        self.view = SwimlaneView(opened, theme, self)
        self.labels = LaneLabels(opened, self.view, theme, self)
        self.ruler = Ruler(opened, theme, self)
        self.overview = OverviewStrip(opened, theme, self)
        self.legend = Legend(opened, theme, self)
        self.hover = HoverCard(self)
        self.no_states = NoStates(opened, self)
        self._mouse = SwimlaneMouse(self.view, opened, settings, self.hover)
        self._mouse.handle_wheel_of(self.ruler)
        self._bar = QScrollBar(Qt.Orientation.Vertical, self)
        self._lay_out()
        self._connect()
        self._has_legend = True
        self._is_sorted = False
        self._rows: tuple[LaneRow, ...] = ()  # rows before the trace was refreshed
        self.show_legend(True)
        self.view.arrows.set_mode(ArrowMode(settings.text("swimlane/arrows")))
        self.view.set_shares(settings.flag("swimlane/shares"))
        self._on_scrolled()

    def set_theme(self, theme: Theme) -> None:
        """Use the colours and text size of a theme."""
        self._theme = theme
        for part in (self.view, self.labels, self.ruler, self.overview, self.legend):
            part.set_theme(theme)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Make the overview and the legend lower in a low area, to leave more height for the lanes."""
        super().resizeEvent(event)
        is_low = self.height() < _LOW_PX
        self.overview.set_low(is_low)
        self.legend.set_low(is_low)

    def show_legend(self, shows: bool) -> None:
        """Show or hide the legend below these lanes; it stays hidden if the setting for legends is off."""
        self._has_legend = shows
        self.legend.setVisible(shows and self._settings.flag("swimlane/show_legend"))

    def set_active(self, is_active: bool) -> None:
        """Set whether keys act on this set of lanes; the colour of the headings shows this."""
        for label in self._heads:
            restyle(label, "active", "true" if is_active else "false")

    def set_title(self, title: str, filtered: str = "") -> None:
        """Show the trace's name above the labels; `filtered` describes a filter that no chips show, for the tip."""
        self._title = visible_line(f"{title} (filtered)" if filtered else title)
        self._heads[0].setToolTip(tool_tip("\n".join(filter(None, (title, filtered)))))
        self._show_head(0, self._title or _HEAD)

    @Slot()
    def _on_arrows(self) -> None:
        self.legend.explain_arrows(self.view.arrows.kinds)

    @property
    def is_exact(self) -> bool:
        """True if the lanes are drawn exactly, or no lane is visible."""
        return not self.no_states.isHidden() or not self._opened.lanes.rows or self.view.source.is_refined

    def save_picture(self, path: Path, reading: Sequence[Path], *, streams: bool = False) -> None:
        """Save the area with title, time span and legend: as PNG, SVG or PDF by the ending of the file.

        The files of the trace, `reading`, are never replaced; `streams` allows pipes and devices.

        Raises:
            WriteError: The file cannot be written, or has another ending.
        """
        self.hover.hide()
        lanes = self.view.geometry().united(self.overview.geometry()).united(self.labels.geometry())
        picture = ExplainedPicture(self, lanes, self._opened, self._theme)
        ratio = self.devicePixelRatioF()
        save_drawing(picture.draw, picture.size, picture.title, path, reading, ratio, streams=streams)

    def close_down(self) -> None:
        """Cancel all background tasks."""
        self.view.source.close()
        self.view.arrows.source.close()

    def _lay_out(self) -> None:
        head, scale_head = PlainLabel(_HEAD, self), PlainLabel(_TIME, self)
        for label in (head, scale_head):
            label.setProperty("role", "head")
        self._heads, self._title = (head, scale_head), ""
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(0)
        grid.addWidget(head, 0, 0)
        grid.addWidget(self.overview, 0, 1)
        grid.addWidget(scale_head, 1, 0)
        grid.addWidget(self.ruler, 1, 1)
        grid.addWidget(self.labels, 2, 0)
        grid.addWidget(self.view, 2, 1)
        grid.addWidget(self._bar, 2, 2)
        grid.addWidget(self.no_states, 2, 0, 1, 3)
        self.no_states.raise_()
        grid.addWidget(self.legend, 3, 0, 1, 3)
        grid.setColumnStretch(1, 1)
        grid.setRowStretch(2, 1)
        self._set_label_width(self._settings.number("swimlane/label_width_px"))

    def _connect(self) -> None:
        self.view.scrolled.connect(self._on_scrolled)
        self.view.scaled.connect(self._show_scale)
        self.view.source.refined.connect(self.overview.follow_lanes)
        self.view.source.refined.connect(self.legend.follow_lanes)
        self.view.source.refined.connect(self._sort_by_use)
        self.view.arrows.changed.connect(self._on_arrows)
        self._bar.valueChanged.connect(self.view.scroll_to)
        self.labels.width_requested.connect(self._set_label_width)
        self.labels.width_selected.connect(self._on_width_selected)
        self.labels.menu_requested.connect(self.menu_requested)
        self._mouse.menu_requested.connect(self.menu_requested)
        self._mouse.fit_requested.connect(self.fit_requested)
        self.no_states.lanes_requested.connect(self.view.setFocus)
        self._mouse.lane_height_requested.connect(self.change_lane_height)
        self.ruler.mark_clicked.connect(self._on_mark)
        self._settings.changed.connect(self._on_setting)
        self._opened.selection.changed.connect(self._on_selection)
        self._opened.begins_reload.connect(self._note_rows)
        self._opened.reloaded.connect(self._on_reloaded)

    @Slot()
    def _sort_by_use(self) -> None:
        """Sort lanes by CPU use, once, as soon as the CPU lanes exist."""
        timeline = self._opened.timeline
        if not self._is_sorted and (use := use_of(timeline)) is not None:
            self._is_sorted = True  # once, so that lanes of a growing file do not move
            processes = (info for info in timeline.infos if info.kind is LaneKind.PROCESS)
            quiet = (info.index for info in processes if timeline.process_value(info.process) == QUIET_PROCESS)
            self._opened.lanes.sort_by_use(sorted_lanes(timeline, SortBy.CPU, use), quiet, idle_cpus(timeline))

    @Slot()
    def _show_scale(self) -> None:
        """Show in the heading how many CPUs the full height of process lanes stands for."""
        cpus = self.view.cpus_high
        noun = self._opened.trace.cpu_noun
        text = f"{_TIME}, processes up to {counted(cpus, noun)}" if cpus else _TIME
        self._show_head(1, text)
        words = (f"Lanes of processes: the height of green is the number of {noun}s in use, that of orange the threads "
                 f"that are READY; the whole height is {counted(cpus, noun)}")  # fmt: skip
        self._heads[1].setToolTip(tool_tip(words if cpus else ""))

    def _show_head(self, number: int, text: str) -> None:
        """Show as much of a text as fits in the heading with the number `number`."""
        head = self._heads[number]
        head.setText(head.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, head.width() - _HEAD_MARGIN_PX))

    @Slot(int)
    def _set_label_width(self, width_px: int) -> None:
        width_px = min(max(80, width_px), 600)
        for widget in (self.labels, *self._heads):
            widget.setFixedWidth(width_px)
        self._show_head(0, self._title or _HEAD)
        self._show_scale()

    @Slot(int)
    def change_lane_height(self, change_px: int) -> None:
        """Make lanes taller or shorter."""
        self._settings.set("swimlane/lane_height_px", self._opened.lanes.keep_height() + change_px * 2)

    @Slot()
    def _on_scrolled(self) -> None:
        height = self._opened.lanes.height_px
        self._bar.blockSignals(True)
        self._bar.setRange(0, max(0, height - self.view.height()))
        self._bar.setPageStep(max(1, self.view.height()))
        self._bar.setSingleStep(self._settings.number("swimlane/lane_height_px"))
        self._bar.setValue(self.view.scroll_px)
        self._bar.setVisible(self._bar.maximum() > 0)
        self._bar.blockSignals(False)

    @Slot()
    def _on_width_selected(self) -> None:
        self._settings.set("swimlane/label_width_px", self.labels.width())

    @Slot(object)
    def _on_mark(self, mark: object) -> None:
        assert isinstance(mark, Mark)
        self._opened.marks.select(mark)

    @Slot(str)
    def _on_setting(self, key: str) -> None:
        if key == "swimlane/lane_height_px":
            self._opened.lanes.set_lane_height(self._settings.number(key))
        elif key == "swimlane/show_legend":
            self.show_legend(self._has_legend)
        elif key == "swimlane/label_width_px":  # changed by the other set of lanes
            self._set_label_width(self._settings.number(key))
        elif key == "swimlane/shares":
            self.view.set_shares(self._settings.flag(key))
        elif key == "swimlane/arrows":
            self.view.arrows.set_mode(ArrowMode(self._settings.text(key)))

    @Slot()
    def _note_rows(self) -> None:
        self._rows = self._opened.lanes.rows

    @Slot()
    def _on_reloaded(self) -> None:
        """Paint the refreshed lanes now, the overview (and labels, if no row changed) one frame later."""
        paint_next_frame(self.overview)
        if self._opened.lanes.rows == self._rows:
            paint_next_frame(self.labels)

    @Slot()
    def _on_selection(self) -> None:
        if self._opened.selection.lane is not None:
            self.view.reveal_lane(self._opened.selection.lane)


# A set of lanes with its navigation (`Pane`), and the splitter that shows one or two of them (`Panes`).


@dataclass(frozen=True, slots=True)
class Pane:
    """A set of lanes with its trace, navigation and motion, on which commands act while the lanes have the focus."""

    opened: OpenTrace
    area: SwimlaneArea
    navigation: Navigation
    motion: Motion


class Panes(QSplitter):
    """One or two sets of lanes, one above the other.

    Attributes:
        first: The upper set of lanes, which always exists.
        second: The lower set, or None.
        active: The set that last had the keyboard focus.

    Signals:
        added: A second set was added.
        removed: The second set was removed.
    """

    added = Signal()
    removed = Signal()

    def __init__(self, first: Pane, settings: Settings, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Vertical, parent)
        self.setChildrenCollapsible(False)
        self._settings = settings
        self.first = self.active = first
        self.second: Pane | None = None
        self.addWidget(first.area)
        first.area.view.installEventFilter(self)

    def split(self, theme: Theme) -> Pane:
        """Add a second set of lanes of the same trace, and give it the keyboard focus."""
        pane = self._add(SecondView(self.first.opened, self._settings, self), theme)
        pane.area.view.setFocus()
        return pane

    def show_beside(self, opened: OpenTrace, theme: Theme) -> Pane:
        """Show another trace, which must outlive the pane, below the first, in place of any second set of lanes."""
        self.join()
        pane = self._add(opened, theme)
        pane.area.legend.explain_also(self.first.opened)
        self.first.area.set_title(self.first.opened.trace.title)
        opened.filters.view_changed.connect(self._say_filter)
        self._say_filter()
        return pane

    @Slot()
    def _say_filter(self) -> None:
        """Show in the title of the second trace whether it is filtered: the chips show only the filter of the first."""
        if self.second is None or self.is_split:
            return
        trace, filters = self.second.opened.trace, self.second.opened.filters
        shown = f"Filter: {filters.row_count:,} of {counted(len(trace.events), 'event')}."
        how = "Edit > Show all events and threads removes it, while these lanes have the keyboard."
        self.second.area.set_title(trace.title, f"{shown} {how}" if filters.is_active else "")

    def shows(self, opened: OpenTrace) -> bool:
        """Return whether the second set of lanes shows a given trace."""
        return self.second is not None and self.second.opened is opened

    @property
    def is_split(self) -> bool:
        """True while there is a second set of lanes of the same trace."""
        return self.second is not None and isinstance(self.second.opened, SecondView)

    def _add(self, opened: OpenTrace, theme: Theme) -> Pane:
        area = SwimlaneArea(opened, self._settings, theme, self)
        area.view.answers_first = False
        self.first.area.show_legend(False)  # the legend of the second set serves both
        navigation = Navigation(opened, self)
        area.fit_requested.connect(navigation.fit)
        self.second = Pane(opened, area, navigation, Motion(opened, area.view))
        self.addWidget(area)
        self._share_frames(2)
        half = max(1, self.height() // 2)
        self.setSizes([half, half])
        area.view.installEventFilter(self)
        self.added.emit()
        return self.second

    def _share_frames(self, count: int) -> None:
        """Divide the time limit of a frame among the `count` sets of lanes, since all are painted in the same frame."""
        for pane in (self.first, self.second):
            if pane is not None:
                pane.area.view.frame_s = FRAME_S / count

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        for pane in (self.first, self.second):
            if pane is not None:
                pane.area.set_theme(theme)

    def join(self) -> None:
        """Remove the second set of lanes."""
        if self.second is not None:
            second, self.second = self.second, None
            self._activate(self.first)
            self.first.area.set_active(False)
            self.first.area.show_legend(True)
            self._share_frames(1)
            self.first.area.set_title("")
            self.first.area.view.setFocus()
            second.motion.stop()
            second.area.close_down()
            second.area.hide()
            parts: list[QObject] = [second.area, second.navigation]
            if isinstance(second.opened, SecondView):
                second.opened.shut_down()
                parts.append(second.opened)
            for part in parts:
                dismantle(part)
            self.removed.emit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Note which set of lanes has the keyboard focus."""
        if event.type() == QEvent.Type.FocusIn and self.second is not None:
            self._activate(self.second if watched is self.second.area.view else self.first)
        return False

    def _activate(self, pane: Pane) -> None:
        self.active = pane
        for shown in (self.first, self.second):
            if shown is not None:
                shown.area.set_active(shown is pane)

    @Slot()
    def close_down(self) -> None:
        """Cancel all background tasks."""
        self.join()
        self.first.motion.stop()
        self.first.area.close_down()

    @property
    def is_exact(self) -> bool:
        """True if all visible lanes are drawn exactly."""
        return self.first.area.is_exact and (self.second is None or self.second.area.is_exact)
