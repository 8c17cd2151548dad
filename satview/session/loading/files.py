"""The list of recently opened files, and growing files, which are polled. Imports no numpy."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from platformdirs import user_state_path
from PySide6.QtCore import QObject, QTimer, Signal, Slot

from satview.base.shared_file import DamagedFileError
from satview.session.settings import StoredJson

if TYPE_CHECKING:
    from satview.formats.kev.sampling import GrowingFile


# The list of recently opened files, newest first.


_FILE_BYTES_MAX: Final = 1 << 20
_FILES_MAX: Final = 100


class RecentFiles(QObject):
    """The list of recently opened files, stored in one JSON file.

    Signals:
        changed: The list changed.
    """

    changed = Signal()

    def __init__(self, path: Path | None, limit: int, parent: QObject | None = None) -> None:
        """Read the list.

        Args:
            path: File of the list; None keeps it in memory only.
            limit: Number of files to remember.
            parent: Owner.
        """
        super().__init__(parent)
        self.file = StoredJson(path, _checked, _FILE_BYTES_MAX, self, makes_folder=True)
        self._limit = limit
        self._files = _paths(self.file.load())

    def files(self) -> tuple[Path, ...]:
        """Return the files that still exist, newest first."""
        return tuple(file for file in self._files if _exists(file))[: self._limit]

    def add(self, file: Path) -> None:
        """Put a file at the front of the list."""
        file = file.absolute()
        self._files = [file, *(old for old in self._files if old != file)][: self._limit]
        self.file.store(partial(self._with_first, file))
        self.changed.emit()

    def clear(self) -> None:
        """Empty the list."""
        self._files = []
        self.file.store(lambda _content: [])
        self.changed.emit()

    def _with_first(self, file: Path, content: Any) -> Any:
        """Return the new content of the list's file: `file`, then the files that are in the present `content`."""
        others = self._files[1:] if content is None else _paths(content)
        self._files = [file, *(old for old in others if old != file)][: self._limit]
        return [str(path) for path in self._files]


def _checked(content: Any) -> Any:
    if not isinstance(content, list):
        raise DamagedFileError("it holds no list of files")
    return content


def _paths(content: Any) -> list[Path]:
    return [Path(entry) for entry in content or () if isinstance(entry, str)][:_FILES_MAX]


def _exists(file: Path) -> bool:
    """Return whether a path names a file; a damaged list may hold names that the system rejects."""
    try:
        return file.is_file()
    except OSError:  # too long, a loop of links, a disk that fails
        return False


def recent_files_file() -> Path:
    """Return the path of this user's list of recent files."""
    return user_state_path("satview", appauthor=False) / "recent.json"


# Polls a growing file and signals when it should be read again. Imports no numpy.


POLL_MS: Final = 250
_REST_FACTOR: Final = 2.0  # pause after a read, as a multiple of its length: reads take at most a third of the time
_RATE_OVER_S: Final = 5.0
_QUIET_AFTER_S: Final = 4.0


class Follow(QObject):
    """State of a view that follows one growing file; polls the file for changes.

    Attributes:
        path: The file.
        file: Its reader, created at the first read on the worker thread.
        is_sticking: True if the view stays at the end of the trace as the trace grows.
        note: Sentence about a special state, such as a missing file or an incomplete header; else empty.

    Signals:
        due: The file must be read: it has changed, and the pause after the last read is over.
        changed: The event rate, `is_sticking` or `note` may have changed.
        noted: `note` changed; sends the new note, which may be "".
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
        """Events that arrived per second of real time, over the last few seconds."""
        now_s = time.monotonic()
        recent = [arrival for arrival in self._arrivals if now_s - arrival[0] <= _RATE_OVER_S]
        if len(recent) < 2:
            return 0.0
        return max(0, recent[-1][1] - recent[0][1]) / max(now_s - recent[0][0], 0.05)

    @property
    def is_quiet(self) -> bool:
        """True if no events have arrived for a while."""
        return not self._arrivals or time.monotonic() - self._arrivals[-1][0] > _QUIET_AFTER_S

    def set_sticking(self, sticks: bool) -> None:
        """Set whether the view stays at the end."""
        if sticks != self.is_sticking:
            self.is_sticking = sticks
            self.changed.emit()

    def begin_read(self) -> None:
        """Record that a read begins; until `end_read`, `due` is not sent."""
        self._began_s = time.monotonic()
        self._next_s = float("inf")

    def end_read(self, events: int | None, note: str = "") -> None:
        """Record that a read has ended and is shown: the number of events, or None and why there is no trace."""
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
        """Record that the program that writes the file has ended; `over` is sent once the rest of the file is read."""
        self._is_complete = True

    def stop(self) -> None:
        """Stop polling."""
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
        is_new, self.note = note != self.note, note
        if is_new:
            self.noted.emit(note)
