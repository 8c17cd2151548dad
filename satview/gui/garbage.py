"""Runs Python's garbage collector in the GUI thread only.

Python collects in whatever thread allocates the object too many. A worker that did so destroyed widgets of a closed
window: Qt held a lock of its signals and waited for the interpreter, the GUI thread held the interpreter and waited for
that lock, and the window stood still for ever.
"""

from __future__ import annotations

import gc
import time
from functools import cache
from typing import Final

from PySide6.QtCore import QObject, QTimer, Slot

_EVERY_MS: Final = 500
_START_S: Final = 1.5  # of processor time, that starting takes, a file of the command line included


@cache
def set_apart() -> None:
    """Take what modules have made out of collections, once: they stay as long as the process.

    Half a million objects of 500 modules made the first collection of all of them hold the window for 90 ms.
    """
    gc.freeze()


class GuiThreadCollector(QObject):
    """Switches automatic collection off for the rest of the process, and collects from the event loop instead.

    The thresholds are those of Python; a first one of 0 means no collection. It is not switched on again when the
    collector goes: a collection in the middle of Qt's destruction of objects would wait for a lock of its own thread.

    While the program starts there is nothing but modules to look at, for 80 ms in which no file is decoded either: they
    are set apart instead.
    """

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        gc.disable()
        timer = QTimer(self)
        timer.timeout.connect(self.collect)
        timer.start(_EVERY_MS)

    @Slot()
    def collect(self) -> None:
        """Collect the oldest generation that has reached its threshold."""
        counts, thresholds = gc.get_count(), gc.get_threshold()
        if not thresholds[0]:
            return
        if not set_apart.cache_info().currsize and time.process_time() < _START_S:
            gc.freeze()
            return
        for generation in (2, 1, 0):
            if counts[generation] > thresholds[generation]:
                gc.collect(generation)
                return
