"""The list of recently opened files, newest first."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

from platformdirs import user_state_path
from PySide6.QtCore import QObject, Signal

from satview.base.shared_file import DamagedFileError
from satview.session.settings import StoredJson

_FILE_BYTES_MAX: Final = 1 << 20
_FILES_MAX: Final = 100


class RecentFiles(QObject):
    """A short list of paths, stored in one JSON file.

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
        """Put a file at the front."""
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
        """Return the new content of the list's file: `file`, then the files that any window has stored."""
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
    """Return the path of this user's list."""
    return user_state_path("satview", appauthor=False) / "recent.json"
