"""Saves pictures: of widgets as they are on the screen, and drawings as PNG, SVG or PDF."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice, QMarginsF, QRect, QSize, QSizeF, Qt
from PySide6.QtGui import QImage, QPageSize, QPainter, QPdfWriter, QPixmap
from PySide6.QtSvg import QSvgGenerator

from satview.base.errors import WriteError
from satview.base.new_file import write_file

Draw = Callable[[QPainter], None]
_DOTS_PER_INCH = 96  # a pixel of the screen is one of the page


def save_png(picture: QImage | QPixmap, path: Path, reading: Sequence[Path], *, streams: bool = False) -> None:
    """Write a picture as PNG, whatever the name ends in.

    Args:
        picture: What to write.
        path: The file; replaced once the picture is complete.
        reading: Files that must not be replaced: those of the trace.
        streams: Pipes and devices are written to.

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
    """Draw into a file: SVG or PDF if its name ends so, else PNG.

    Args:
        draw: Draws with a painter whose unit is a logical pixel.
        size: Logical pixels.
        title: Of the document; PNG has none.
        path: The file; replaced once the picture is complete.
        reading: Files that must not be replaced: those of the trace.
        ratio: Pixels of a PNG for each logical one.
        kind: `svg` or `pdf` whatever the name ends in; empty = as it ends.
        streams: Pipes and devices are written to.

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
    generator.setResolution(_DOTS_PER_INCH)  # else texts whose size is in points come out smaller than the others
    generator.setSize(size)
    generator.setViewBox(QRect(0, 0, size.width(), size.height()))
    generator.setTitle(title)
    _paint(generator, draw)
    return _bytes(buffer)


def _pdf(draw: Draw, size: QSize, title: str) -> bytes:
    """Return one page of exactly the size of the drawing."""
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
