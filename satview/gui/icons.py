"""Icons from `resources/icons`: line drawings whose `currentColor` becomes that of the theme."""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap, QPixmapCache

from satview.base.resources import resource_path
from satview.gui.theme import Theme, css

_SIZE_PX = 18


@cache
def _drawing(name: str) -> str:
    return resource_path(f"icons/{name}.svg").read_text(encoding="utf-8")


def icon(name: str, theme: Theme, size_px: int = _SIZE_PX) -> QIcon:
    """Return an icon in the colours of a theme, sharp at 1x and 2x.

    Raises:
        FileNotFoundError: There is no such icon.
    """
    found = QIcon()
    for mode, rgb in ((QIcon.Mode.Normal, theme.dim), (QIcon.Mode.Disabled, theme.line)):
        drawing = _drawing(name).replace("currentColor", css(rgb))
        for ratio in (1, 2):
            found.addPixmap(_pixmap(drawing, size_px, ratio), mode)
    return found


def app_icon() -> QIcon:
    """Return the icon of the application."""
    found = QIcon()
    for size_px in (16, 32, 64, 128):
        found.addPixmap(_pixmap(_drawing("satview"), size_px, 1))
    return found


def _pixmap(drawing: str, size_px: int, ratio: int) -> QPixmap:
    """Return a drawing as a pixmap, drawn once for all windows."""
    key = f"satview {size_px} {ratio} {drawing}"
    known = QPixmap()
    if QPixmapCache.find(key, known):
        return known
    from PySide6.QtSvg import QSvgRenderer  # on first use: windows show without it

    pixmap = QPixmap(size_px * ratio, size_px * ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    QSvgRenderer(QByteArray(drawing.encode())).render(painter, QRectF(0, 0, size_px * ratio, size_px * ratio))
    painter.end()
    pixmap.setDevicePixelRatio(ratio)
    QPixmapCache.insert(key, pixmap)
    return pixmap
