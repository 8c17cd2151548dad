"""The files opened last, newest first."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from PySide6.QtCore import QObject, Signal

_log = logging.getLogger(__name__)


class RecentFiles(QObject):
    """A short list of paths, kept in one JSON file.

    Signals:
        changed: Another file came to the front.
    """

    changed = Signal()

    def __init__(self, path: Path | None, limit: int, parent: QObject | None = None) -> None:
        """Read the list.

        Args:
            path: Where it is kept; None keeps it in memory only.
            limit: How many files are remembered.
            parent: Owner.
        """
        super().__init__(parent)
        self._path = path
        self._limit = limit
        self._files = _stored(path)

    def files(self) -> tuple[Path, ...]:
        """Return the files that still exist, newest first."""
        return tuple(file for file in self._files if file.is_file())[: self._limit]

    def add(self, file: Path) -> None:
        """Put a file at the front."""
        file = file.absolute()
        self._files = [file, *(old for old in self._files if old != file)][: self._limit]
        self._store()
        self.changed.emit()

    def clear(self) -> None:
        """Forget all of them."""
        self._files = []
        self._store()
        self.changed.emit()

    def _store(self) -> None:
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(json.dumps([str(file) for file in self._files], indent=1), encoding="utf-8")
        except OSError as error:
            _log.info("recent files were not stored: %s", error)


def _stored(path: Path | None) -> list[Path]:
    if path is None:
        return []
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return []
    return [Path(entry) for entry in data if isinstance(entry, str)][:100] if isinstance(data, list) else []


def recent_files_file() -> Path:
    """Return where this user's list is kept on this system."""
    from platformdirs import user_state_path  # on first use, as for the settings

    return user_state_path("satview", appauthor=False) / "recent.json"
