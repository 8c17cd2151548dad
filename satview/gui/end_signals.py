"""Signals that request the end of the process of windows: SIGINT, SIGTERM, SIGHUP.

Python runs its handlers between two steps of Python code, and Qt's event loop runs none while nothing happens. So the
interpreter writes each signal's number into a socket as it arrives, and Qt watches the other end.
"""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from PySide6.QtCore import QObject, QSocketNotifier, Signal, Slot

_NAMES: Final = ("SIGINT", "SIGTERM", "SIGHUP")  # not every system has them all


class EndSignals(QObject):
    """Reports signals that request the end of the process.

    Attributes:
        number: Of the first one; 0 = none has come.

    Signals:
        arrived: The first one has come; sent by Qt's event loop.
    """

    arrived = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.number = 0
        self._here, self._there = socket.socketpair()
        for end in (self._here, self._there):
            end.setblocking(False)
        self._notifier = QSocketNotifier(self._here.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._read)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Take the signals in a block; one that is ignored, as under nohup, stays ignored. On the main thread only."""
        before = {}
        wakeup = signal.set_wakeup_fd(self._there.fileno(), warn_on_full_buffer=False)
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
            self._here.close()
            self._there.close()

    @Slot()
    def _read(self) -> None:
        numbers = b""
        with contextlib.suppress(BlockingIOError):
            numbers = self._here.recv(64)
        # Other signals with a handler of Python come this way too.
        requested = [number for number in numbers if number in {getattr(signal, name, None) for name in _NAMES}]
        if requested and not self.number:
            self.number = requested[0]
            self.arrived.emit()


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Replace the default, which would end the process at once: only signals with a handler reach the socket."""
