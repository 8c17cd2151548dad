"""Keeps windows and dialogs on the screen: at twice the size a full HD screen has 960 x 540 logical pixels."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QWidget

_FRAME: Final = QSize(8, 36)  # what a window manager puts around a window, about


def resize_on_screen(window: QWidget, width_px: int, height_px: int) -> None:
    """Give a window that does not show yet a size, or as much of it as the screen has."""
    room = window.screen().availableGeometry().size() - _FRAME
    window.resize(QSize(width_px, height_px).boundedTo(room))
