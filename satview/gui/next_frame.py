"""What can wait for the next frame, so that the frame before it is not late."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QWidget

FRAME_MS: Final = 16


def paint_next_frame(widget: QWidget) -> None:
    """Let a widget show what it shows for one more frame; then it is painted, whatever it missed.

    Args:
        widget: On the screen. What Qt has noted to be painted of it is left out of the frame before.
    """
    widget.setUpdatesEnabled(False)
    QTimer.singleShot(FRAME_MS, widget, lambda: widget.setUpdatesEnabled(True))
