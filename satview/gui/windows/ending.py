"""Ends the GUI process on signals such as SIGTERM, and derives its exit code."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from PySide6.QtCore import QObject, QSocketNotifier, Signal, Slot
from PySide6.QtWidgets import QApplication

from satview.base.process import Ended
from satview.gui.windows.main_window import MainWindow
from satview.session.session import Session, Stage

# Signals that request the end of the process.


_NAMES: Final = ("SIGINT", "SIGTERM", "SIGHUP")  # not every system has all three


class EndSignals(QObject):
    """Reports signals that request the end of the process.

    Attributes:
        number: Number of the first signal; 0 = none so far.

    Signals:
        arrived: The first signal has arrived; emitted from Qt's event loop.
    """

    arrived = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.number = 0
        self._read_end, self._write_end = socket.socketpair()
        for end in (self._read_end, self._write_end):
            end.setblocking(False)
        self._notifier = QSocketNotifier(self._read_end.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._read)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Handle the signals during a `with` block; ignored signals, as under nohup, stay ignored. Main thread only."""
        before = {}
        wakeup = signal.set_wakeup_fd(self._write_end.fileno(), warn_on_full_buffer=False)
        for name in _NAMES:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                before[number] = signal.signal(number, _do_nothing)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup)
            self._notifier.setEnabled(False)
            self._read_end.close()
            self._write_end.close()

    @Slot()
    def _read(self) -> None:
        numbers = b""
        with contextlib.suppress(BlockingIOError):
            numbers = self._read_end.recv(64)
        # The socket also receives other signals that have a Python handler.
        requested = [number for number in numbers if number in {getattr(signal, name, None) for name in _NAMES}]
        if requested and not self.number:
            self.number = requested[0]
            self.arrived.emit()


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: only a signal with a Python handler reaches the socket, and the default would end the process."""


_END_WITHIN_S: Final = 0.7


class Ending(QObject):
    """Ends the process soon after a signal, even during loading or in a modal dialog.

    Attributes:
        signals: Source of the signals.
        code: Exit code after a signal; 0 = no signal so far.
    """

    def __init__(self, parent: QObject, close_windows: Callable[[], None]) -> None:
        super().__init__(parent)
        self._close_windows = close_windows
        self.code = 0
        self.signals = EndSignals(self)
        self.signals.arrived.connect(self._end)

    @Slot()
    def _end(self) -> None:
        self.code = Ended(self.signals.number).code
        # Closing waits until background tasks reach their next cancellation check, which may take long.
        limit = threading.Timer(_END_WITHIN_S, os._exit, (self.code,))
        limit.daemon = True
        limit.start()
        self._close_windows()
        QApplication.exit(self.code)  # also ends the loops of open dialogs


class FilesOutcome(QObject):
    """Derives the exit code from how files of the command line loaded: 2 = failed, 1 = lost data. Prints failures."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.code = 0

    @Slot(QObject)
    def watch(self, window: QObject) -> None:
        """Take the results of loading files in a window into account."""
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
