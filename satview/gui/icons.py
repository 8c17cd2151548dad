"""Icons from `resources/icons`: line drawings whose `currentColor` becomes that of the theme."""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap, QPixmapCache

from satview.base.installed import resource_path
from satview.gui.theme import Theme

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
    for ratio in (1, 2):
        drawn = _pixmap(_drawing(name).replace("currentColor", "#000"), size_px, ratio)
        for mode, rgb in ((QIcon.Mode.Normal, theme.dim), (QIcon.Mode.Disabled, theme.line)):
            found.addPixmap(_tinted(drawn, rgb), mode)
    return found


def app_icon() -> QIcon:
    """Return the icon of the application."""
    found = QIcon()
    for size_px in (16, 32, 64, 128):
        found.addPixmap(_pixmap(_drawing("satview"), size_px, 1))
    return found


def _tinted(drawn: QPixmap, rgb: int) -> QPixmap:
    """Return a drawing of one colour in another one, which takes a tenth of reading and drawing it again."""
    pixmap = QPixmap(drawn)
    painter = QPainter(pixmap)
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceIn)
    painter.fillRect(pixmap.rect(), QColor(rgb))
    painter.end()
    return pixmap


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
