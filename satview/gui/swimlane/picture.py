"""The swimlanes as a picture that explains itself: what is shown of which trace, the lanes, the legend."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QRegion
from PySide6.QtWidgets import QWidget

from satview.base.safe_text import visible_line
from satview.base.time_text import format_moment
from satview.gui.swimlane.legend import Legend
from satview.gui.theme import Theme, colour
from satview.session.open_trace import OpenTrace
from satview.session.range_view import length_text

_MARGIN_PX: Final = 12
_HEAD_PX: Final = 50


class ExplainedPicture:
    """Draws what the swimlanes show now under a title, with the legend below, whether or not that is on the screen.

    Args:
        area: The swimlanes.
        lanes: Which part of them is drawn: all but scroll bar and legend.
        opened: Their trace.
        theme: Colours.
    """

    def __init__(self, area: QWidget, lanes: QRect, opened: OpenTrace, theme: Theme) -> None:
        self._area, self._lanes, self._opened, self._theme = area, lanes, opened, theme
        self._legend = Legend(opened, theme)
        self._legend.resize(self._lanes.width(), 1)
        self._legend.resize(self._lanes.width(), self._legend.sizeHint().height())

    @property
    def size(self) -> QSize:
        """Logical pixels."""
        return QSize(self._lanes.width(), _HEAD_PX + self._lanes.height() + self._legend.height())

    @property
    def title(self) -> str:
        """What the picture is of, on one line."""
        return f"{visible_line(self._opened.trace.title)}, {self.span}"

    @property
    def span(self) -> str:
        """Which part of the trace shows."""
        trace, window = self._opened.trace, self._opened.viewport.window.within(self._opened.trace.window)
        clock = trace.clock
        parts = [
            f"{format_moment(window.start, clock)} to {format_moment(window.end, clock)}",
            length_text(window.length, clock),
        ]
        wall = clock.wall_time(window.start)
        if wall is not None:
            parts.append(f"from about {wall:%Y-%m-%d %H:%M:%S} UTC")
        if self._opened.filters.is_active:
            parts.append(f"filtered: {self._opened.filters.row_count:,} of {len(trace.events):,} events")
        return " \N{MIDDLE DOT} ".join(parts)

    def draw(self, painter: QPainter) -> None:
        """Draw with a painter whose unit is a logical pixel."""
        painter.fillRect(QRect(QPoint(), self.size), colour(self._theme.panel))
        self._draw_head(painter)
        lanes = self._lanes
        _render(self._area, painter, QPoint(0, _HEAD_PX), lanes)
        _render(self._legend, painter, QPoint(0, _HEAD_PX + lanes.height()), self._legend.rect())

    def _draw_head(self, painter: QPainter) -> None:
        font = QFont(self._area.font())
        font.setBold(True)
        font.setPixelSize(self._theme.px(15))
        small = QFont(self._area.font())
        small.setPixelSize(self._theme.px(11))
        room = self._lanes.width() - 2 * _MARGIN_PX
        for face, text, top, rgb in (
            (font, visible_line(self._opened.trace.title), 7, self._theme.text),
            (small, self.span, 28, self._theme.dim),
        ):
            painter.setFont(face)
            painter.setPen(colour(rgb))
            cut = QFontMetricsF(face).elidedText(text, Qt.TextElideMode.ElideRight, room)
            painter.drawText(QRectF(_MARGIN_PX, top, room, 20), Qt.AlignmentFlag.AlignVCenter, cut)


def _render(widget: QWidget, painter: QPainter, position: QPoint, part: QRect) -> None:
    """Draw a part of a widget at a position of the picture."""
    flags = QWidget.RenderFlag.DrawWindowBackground | QWidget.RenderFlag.DrawChildren
    widget.render(painter, position, QRegion(part), flags)
