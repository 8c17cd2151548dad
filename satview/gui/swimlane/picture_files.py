"""Pictures in files: widgets as PNG, drawings as PNG, SVG or PDF, the lanes with title and legend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import QBuffer, QIODevice, QMarginsF, QPoint, QRect, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QImage, QPageSize, QPainter, QPdfWriter, QPixmap, QRegion
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QWidget

from satview.base.errors import WriteError
from satview.base.new_file import write_file
from satview.base.safe_text import visible_line
from satview.base.time_text import format_moment
from satview.gui.swimlane.legend import Legend
from satview.gui.theme import Theme, colour
from satview.session.open_trace import OpenTrace
from satview.session.range_view import length_text

Draw = Callable[[QPainter], None]
_DOTS_PER_INCH = 96  # one logical pixel on the page per logical pixel on the screen


def save_png(picture: QImage | QPixmap, path: Path, reading: Sequence[Path], *, streams: bool = False) -> None:
    """Write a picture as PNG, whatever the file extension.

    Args:
        picture: The picture.
        path: The file; replaced once the picture is complete.
        reading: Files that must not be replaced: those of the trace.
        streams: Also write to pipes and devices.

    Raises:
        WriteError: The file cannot be written, or the picture is empty.
    """
    buffer = _buffer()
    is_made = picture.save(buffer, "PNG")  # type: ignore[call-overload]  # the stubs name QIODevice, QBuffer is one
    if not is_made:
        raise WriteError(path, "the picture is empty")
    write_file(path, _bytes(buffer), reading=reading, streams=streams)


def save_drawing(
    draw: Draw,
    size: QSize,
    title: str,
    path: Path,
    reading: Sequence[Path],
    ratio: float = 1.0,
    *,
    kind: str = "",
    streams: bool = False,
) -> None:
    """Draw into a file: SVG or PDF by its extension, otherwise PNG.

    Args:
        draw: Draws with a painter whose unit is a logical pixel.
        size: Size in logical pixels.
        title: Title of the document, not used for PNG.
        path: The file; replaced once the picture is complete.
        reading: Files that must not be replaced: those of the trace.
        ratio: Pixels of a PNG per logical pixel.
        kind: `svg` or `pdf`, whatever the extension; empty = by the extension.
        streams: Also write to pipes and devices.

    Raises:
        WriteError: The file cannot be written.
    """
    make = {".svg": _svg, ".pdf": _pdf}.get(f".{kind}" if kind else path.suffix.lower())
    if make is not None:
        write_file(path, make(draw, size, title), reading=reading, streams=streams)
        return
    image = QImage(size * ratio, QImage.Format.Format_ARGB32_Premultiplied)
    image.setDevicePixelRatio(ratio)
    image.fill(Qt.GlobalColor.white)
    _paint(image, draw)
    save_png(image, path, reading, streams=streams)


def _svg(draw: Draw, size: QSize, title: str) -> bytes:
    buffer, generator = _buffer(), QSvgGenerator()
    generator.setOutputDevice(buffer)
    generator.setResolution(_DOTS_PER_INCH)  # otherwise texts with sizes in points are too small
    generator.setSize(size)
    generator.setViewBox(QRect(0, 0, size.width(), size.height()))
    generator.setTitle(title)
    _paint(generator, draw)
    return _bytes(buffer)


def _pdf(draw: Draw, size: QSize, title: str) -> bytes:
    """Return a PDF with one page of exactly the size of the drawing."""
    buffer = _buffer()
    writer = QPdfWriter(buffer)
    writer.setResolution(_DOTS_PER_INCH)
    points = QSizeF(size) * 72 / _DOTS_PER_INCH
    writer.setPageSize(QPageSize(points, QPageSize.Unit.Point, "", QPageSize.SizeMatchPolicy.ExactMatch))
    writer.setPageMargins(QMarginsF())
    writer.setTitle(title)
    writer.setCreator("satview")
    _paint(writer, draw)
    return _bytes(buffer)


def _paint(device: object, draw: Draw) -> None:
    painter = QPainter(device)  # type: ignore[call-overload]  # any paint device
    try:
        draw(painter)
    finally:
        painter.end()


def _buffer() -> QBuffer:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    return buffer


def _bytes(buffer: QBuffer) -> bytes:
    buffer.close()
    return bytes(buffer.data().data())


# The lanes as a picture with title, time span and legend.


_MARGIN_PX: Final = 12
_HEAD_PX: Final = 50


class ExplainedPicture:
    """Draws the lanes as they are shown, with a title above and the legend below, even if the legend is switched off.

    Args:
        area: The swimlane area.
        lanes: The part of `area` to draw: without scroll bar and legend.
        opened: The trace.
        theme: Colours.
    """

    def __init__(self, area: QWidget, lanes: QRect, opened: OpenTrace, theme: Theme) -> None:
        self._area, self._lanes, self._opened, self._theme = area, lanes, opened, theme
        self._legend = Legend(opened, theme)
        self._legend.resize(self._lanes.width(), 1)
        self._legend.resize(self._lanes.width(), self._legend.sizeHint().height())

    @property
    def size(self) -> QSize:
        """Size in logical pixels."""
        return QSize(self._lanes.width(), _HEAD_PX + self._lanes.height() + self._legend.height())

    @property
    def title(self) -> str:
        """Trace title and time span on one line."""
        return f"{visible_line(self._opened.trace.title)}, {self.span}"

    @property
    def span(self) -> str:
        """The visible time span, wall time and filter, as text."""
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
    """Draw a part of a widget with the painter of a picture, at a position of the picture."""
    flags = QWidget.RenderFlag.DrawWindowBackground | QWidget.RenderFlag.DrawChildren
    widget.render(painter, position, QRegion(part), flags)
