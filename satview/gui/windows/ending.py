"""How the process of windows ends: the exit code that files and signals give it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QApplication

from satview.base.process_end import Ended
from satview.gui.end_signals import EndSignals
from satview.gui.windows.main_window import MainWindow
from satview.session.session import Session, Stage

_END_WITHIN_S: Final = 0.7


class Ending(QObject):
    """Ends the process soon after a signal, whatever is being loaded and whatever dialog is open.

    Attributes:
        signals: Where the signals come from.
        code: Exit code after a signal; 0 = none has come.
    """

    def __init__(self, parent: QObject, close_windows: Callable[[], None]) -> None:
        """Wait for signals.

        Args:
            parent: Owner.
            close_windows: Closes all windows without a question.
        """
        super().__init__(parent)
        self._close_windows = close_windows
        self.code = 0
        self.signals = EndSignals(self)
        self.signals.arrived.connect(self._end)

    @Slot()
    def _end(self) -> None:
        self.code = Ended(self.signals.number).code
        # Closing waits for what runs in the background, which stops at its next step; that may be far away.
        limit = threading.Timer(_END_WITHIN_S, os._exit, (self.code,))
        limit.daemon = True
        limit.start()
        self._close_windows()
        QApplication.exit(self.code)  # the loops of open dialogs as well


class Outcome(QObject):
    """Notes how the files of the command line ended, for the exit code; prints what failed."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.code = 0

    @Slot(QObject)
    def watch(self, window: QObject) -> None:
        """Follow the document of a window."""
        assert isinstance(window, MainWindow)
        window.session.stage_changed.connect(self._on_stage)

    @Slot()
    def _on_stage(self) -> None:
        session = self.sender()
        assert isinstance(session, Session)
        if session.stage is Stage.FAILED:
            print(f"satview: {session.error}", file=sys.stderr)  # noqa: T201  -- the command line's own message
            self.code = 2
        elif session.stage is Stage.READY and session.opened is not None and session.opened.trace.problems.cost_data:
            self.code = max(self.code, 1)
