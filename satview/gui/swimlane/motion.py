"""Zoom and pan by keys: a first step at once, then faster and faster while the key is held."""

from __future__ import annotations

import time
from typing import Final

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QTimer, Slot
from PySide6.QtGui import QKeyEvent

from satview.gui.next_frame import FRAME_MS
from satview.gui.swimlane.view import SwimlaneView
from satview.session.open_trace import OpenTrace

_HOLD_S: Final = 0.22  # held longer than that, the key keeps moving
_LONGEST_S: Final = 20.0  # should a release get lost, the motion ends by itself
_ZOOM_STEP: Final = 1.5
_PAN_STEP: Final = 0.2


class Motion(QObject):
    """Moves the window while W, S, A or D is held."""

    def __init__(self, opened: OpenTrace, view: SwimlaneView) -> None:
        super().__init__(view)
        self._opened = opened
        self._view = view
        self._zoom = 0
        self._pan = 0
        self._since_s = 0.0
        self._timer = QTimer(self)
        self._timer.setInterval(FRAME_MS)
        self._timer.timeout.connect(self._on_frame)

    def zoom(self, direction: int) -> None:
        """Zoom in (1) or out (-1): one step now, more while the key is held."""
        self._opened.viewport.zoom(_ZOOM_STEP**-direction, self.anchor())
        self._begin(direction, 0)

    def pan(self, direction: int) -> None:
        """Move to later (1) or earlier (-1) times: one step now, more while the key is held."""
        self._opened.viewport.pan(_PAN_STEP * direction)
        self._begin(0, direction)

    def anchor(self) -> int:
        """Return what keeps its position: the time at the mouse, else the selection if it shows, else the middle."""
        selection, window = self._opened.selection, self._opened.viewport.window
        if selection.mouse_cycles is not None and window.contains(selection.mouse_cycles):
            return selection.mouse_cycles
        if selection.event is not None:
            cycles = int(self._opened.trace.events.time_cycles[selection.event])
            if window.contains(cycles):
                return cycles
        return window.start + window.length // 2

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """End the motion when a key is let go or the window loses the keyboard."""
        is_release = (
            event.type() == QEvent.Type.KeyRelease and isinstance(event, QKeyEvent) and not event.isAutoRepeat()
        )
        if is_release or event.type() == QEvent.Type.WindowDeactivate:
            self.stop()
        return False

    def stop(self) -> None:
        """End the motion."""
        self._timer.stop()
        app = QCoreApplication.instance()
        if app is not None:
            app.removeEventFilter(self)

    def _begin(self, zoom: int, pan: int) -> None:
        self._zoom, self._pan = zoom, pan
        self._since_s = time.monotonic()
        app = QCoreApplication.instance()
        if app is not None and not self._timer.isActive():
            app.installEventFilter(self)  # only while a key is held: it would cost time on every event
        self._timer.start()

    @Slot()
    def _on_frame(self) -> None:
        held_s = time.monotonic() - self._since_s
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
