"""The swimlane area: overview, ruler, names, lanes, scroll bar and legend, combined."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QPoint, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QScrollBar, QWidget

from satview.base.safe_text import tool_tip, visible_line
from satview.gui.next_frame import paint_next_frame
from satview.gui.plain_label import PlainLabel
from satview.gui.swimlane.hover import HoverCard
from satview.gui.swimlane.labels import LaneLabels
from satview.gui.swimlane.legend import Legend
from satview.gui.swimlane.mouse import SwimlaneMouse
from satview.gui.swimlane.no_states import NoStates
from satview.gui.swimlane.overview import OverviewStrip
from satview.gui.swimlane.picture import LanePicture
from satview.gui.swimlane.ruler import Ruler
from satview.gui.swimlane.view import SwimlaneView
from satview.gui.theme import Theme
from satview.session.arrow_source import ArrowMode
from satview.session.lanes.lane_row import LaneRow
from satview.session.open_trace import OpenTrace
from satview.session.settings import Settings
from satview.store.mark_file import Mark

_HEAD: Final = "Whole trace"
_LOW_PX: Final = 340  # below, lanes need the height more than the overview and further rows of the legend


class SwimlaneArea(QWidget):
    """All that shows lanes.

    Attributes:
        view: The lanes themselves; has the focus for keys.
        no_states: Covers them where there are none.

    Signals:
        menu_requested: Right click on a lane: global position.
        fit_requested: Double click on a lane.
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
        self._mouse.take_wheel_of(self.ruler)
        self._bar = QScrollBar(Qt.Orientation.Vertical, self)
        self._lay_out()
        self._connect()
        self._has_legend = True
        self._rows: tuple[LaneRow, ...] = ()  # before the trace was read on
        self.show_legend(True)
        self.view.arrows.set_mode(ArrowMode(settings.text("swimlane/arrows")))
        self.view.set_shares(settings.flag("swimlane/shares"))
        self._on_scrolled()

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme
        for part in (self.view, self.labels, self.ruler, self.overview, self.legend):
            part.set_theme(theme)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave what height there is to the lanes."""
        super().resizeEvent(event)
        is_low = self.height() < _LOW_PX
        self.overview.set_low(is_low)
        self.legend.set_low(is_low)

    def show_legend(self, shows: bool) -> None:
        """Show the legend below these lanes, if the setting says so."""
        self._has_legend = shows
        self.legend.setVisible(shows and self._settings.flag("swimlane/show_legend"))

    def set_active(self, is_active: bool) -> None:
        """Show by the colour of the heads that keys act on these lanes and not on others."""
        for label in self._heads:
            label.setProperty("active", "true" if is_active else "false")
            label.style().unpolish(label)
            label.style().polish(label)

    def set_title(self, title: str) -> None:
        """Say above the names which trace the lanes are of; empty where there is only one."""
        head = self._heads[0]
        head.setText(visible_line(title) or _HEAD)
        head.setToolTip(tool_tip(title))

    @property
    def is_exact(self) -> bool:
        """True if what shows is drawn exactly; lanes that nobody sees are not drawn."""
        return not self.no_states.isHidden() or not self._opened.lanes.rows or self.view.source.is_refined

    def save_picture(self, path: Path, reading: Sequence[Path], *, streams: bool = False) -> None:
        """Save what the area shows with title, time span and legend, as SVG or PDF if the name ends so, else as PNG.

        Args:
            path: The file; replaced once the picture is complete.
            reading: Files that must not be replaced: those of the trace.
            streams: Pipes and devices are written to.

        Raises:
            WriteError: The file cannot be written.
        """
        self.hover.hide()
        lanes = self.view.geometry().united(self.overview.geometry()).united(self.labels.geometry())
        picture = LanePicture(self, lanes, self._opened, self._theme)
        ratio = self.devicePixelRatioF()
        from satview.gui.pictures import save_drawing  # on first use: brings what writes PDF

        save_drawing(picture.draw, picture.size, picture.title, path, reading, ratio, streams=streams)

    def close_down(self) -> None:
        """Stop everything in the background."""
        self.view.source.close()
        self.view.arrows.source.close()

    def _lay_out(self) -> None:
        head, scale_head = PlainLabel(_HEAD, self), PlainLabel("Time", self)
        for label in (head, scale_head):
            label.setProperty("role", "head")
        self._heads = (head, scale_head)
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
        self.view.source.refined.connect(self.overview.follow_lanes)
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

    @Slot(int)
    def _set_label_width(self, width_px: int) -> None:
        width_px = min(max(80, width_px), 600)
        for widget in (self.labels, *self._heads):
            widget.setFixedWidth(width_px)

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
        elif key == "swimlane/label_width_px":  # of a second set of lanes
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
        """Let lanes come first; what is beside them has its own frame, unless it would be beside other lanes."""
        paint_next_frame(self.overview)
        if self._opened.lanes.rows == self._rows:
            paint_next_frame(self.labels)

    @Slot()
    def _on_selection(self) -> None:
        if self._opened.selection.lane is not None:
            self.view.reveal_lane(self._opened.selection.lane)
