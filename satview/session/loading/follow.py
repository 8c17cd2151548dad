"""Live: looks at a growing file a few times a second and says when it is worth reading again. Knows no numpy."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot

if TYPE_CHECKING:
    from satview.formats.kev.growing import GrowingFile

POLL_MS: Final = 250
_REST_FACTOR: Final = 2.0  # reading again takes a third of the time at most, however large the file has become
_RATE_OVER_S: Final = 5.0
_QUIET_AFTER_S: Final = 4.0


class Follow(QObject):
    """Following one file.

    Attributes:
        path: The file.
        file: What reads it; made at the first read, on the worker.
        is_sticking: The view keeps to the end of the trace.
        note: What is special just now, as a sentence: the file is gone, its header is not complete; else empty.

    Signals:
        due: The file has changed and the rest after the last read is over: read it.
        changed: Something to show in the status bar changed.
        noted: There is another note.
        over: The file is complete, and all of it has been read.
    """

    due = Signal()
    changed = Signal()
    noted = Signal(str)
    over = Signal()

    def __init__(self, path: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.path = path
        self.file: GrowingFile | None = None
        self.is_sticking = True
        self.note = ""
        self._is_complete = False
        self._arrivals: list[tuple[float, int]] = []
        self._began_s = 0.0
        self._next_s = 0.0
        self._timer = QTimer(self, interval=POLL_MS)
        self._timer.timeout.connect(self._poll)
        self._timer.start()

    @property
    def events_per_s(self) -> float:
        """Events that came per second of real time, over the last few seconds."""
        now_s = time.monotonic()
        recent = [arrival for arrival in self._arrivals if now_s - arrival[0] <= _RATE_OVER_S]
        if len(recent) < 2:
            return 0.0
        return max(0, recent[-1][1] - recent[0][1]) / max(now_s - recent[0][0], 0.05)

    @property
    def is_quiet(self) -> bool:
        """True if nothing has come for a while."""
        return not self._arrivals or time.monotonic() - self._arrivals[-1][0] > _QUIET_AFTER_S

    def set_sticking(self, sticks: bool) -> None:
        """Keep the view to the end, or let go of it."""
        if sticks != self.is_sticking:
            self.is_sticking = sticks
            self.changed.emit()

    def begin_read(self) -> None:
        """Note that a read begins: nothing is due until it has ended."""
        self._began_s = time.monotonic()
        self._next_s = float("inf")

    def end_read(self, events: int | None, note: str = "") -> None:
        """Note that a read has ended and its result is shown.

        Args:
            events: Events of the trace now; None = there is none.
            note: Why not.
        """
        now_s = time.monotonic()
        self._next_s = now_s + max(0.0, _REST_FACTOR * (now_s - self._began_s))
        self._note(note)
        if events is not None:
            if self._arrivals and events < self._arrivals[-1][1]:
                self._arrivals.clear()
            if not self._arrivals or events != self._arrivals[-1][1]:
                self._arrivals.append((now_s, events))
                del self._arrivals[:-50]
        self.changed.emit()

    def finish(self) -> None:
        """Note that the program that writes the file has ended: what is there is read, then `over` follows."""
        self._is_complete = True

    def stop(self) -> None:
        """Look no more."""
        self._timer.stop()

    @Slot()
    def _poll(self) -> None:
        if time.monotonic() < self._next_s:
            return
        try:
            has_changed = self.file is None or self.file.has_changed
        except FileNotFoundError:
            if self._is_complete:
                self.over.emit()
                return
            name = self.path.name
            if self._arrivals:
                self._say(f"{name} is not there any more, waiting for it")
            else:
                self._say(f"Waiting for {name}: it is not there yet")
            return
        except OSError as error:
            self._say(f"Waiting for {self.path.name}: {error.strerror or error}")
            return
        if has_changed:
            self.due.emit()
        elif self._is_complete:
            self.over.emit()
        else:
            self.changed.emit()

    def _say(self, note: str) -> None:
        self._note(note)
        self.changed.emit()

    def _note(self, note: str) -> None:
        is_new, self.note = note not in ("", self.note), note
        if is_new:
            self.noted.emit(note)
