"""A JSON file with state of the user: merged with what others have stored, tried again until it is stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from satview.base.errors import WriteError
from satview.base.shared_file import DamagedFileError, change_shared, parsed_json, read_shared

_RETRY_MS: Final = 3000
Merge = Callable[[Any], Any]


class StoredJson(QObject):
    """One file, and whether all of it is stored.

    Attributes:
        path: The file; None keeps nothing.
        failure: Why the last change could not be stored, one sentence; empty if everything is stored.
        notice: What was wrong with the file that was there, one sentence; empty if nothing was.

    Signals:
        changed: `failure` or `notice` has changed.
        stored: A change was stored: what the file holds now.
    """

    changed = Signal()
    stored = Signal(object)

    def __init__(
        self,
        path: Path | None,
        check: Merge,
        limit: int,
        parent: QObject | None = None,
        *,
        makes_folder: bool = False,
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            path: The file.
            check: Returns what a parsed file holds; raises `DamagedFileError` for what it does not understand.
            limit: Bytes a file may have.
            parent: Owner.
            makes_folder: Create the folder if it is not there, for folders of satview itself.
        """
        super().__init__(parent)
        self.path = path
        self.failure = self.notice = ""
        self._check = check
        self._limit = limit
        self._makes_folder = makes_folder
        self._merge: Merge | None = None
        self._retry = QTimer(self)
        self._retry.setInterval(_RETRY_MS)
        self._retry.timeout.connect(self.retry)

    def load(self) -> Any:
        """Return what the file holds, None if there is none or it cannot be read; `notice` then says why."""
        if self.path is None:
            return None
        try:
            return self._parsed(read_shared(self.path, self._limit))
        except DamagedFileError as error:
            self._say(f"{self.path.name} is damaged and was not read: {error}", self.failure)
        except (OSError, ValueError) as error:
            self._say(f"{self.path.name} cannot be read: {getattr(error, 'strerror', None) or error}", self.failure)
        return None

    def store(self, merge: Merge) -> None:
        """Change the file now; if that fails, again and again until it works.

        Args:
            merge: Gets what the file holds by now, None if there is none; returns what it is to hold, None to remove
                it. A later call replaces one that has not worked yet.
        """
        self._merge = merge
        self.retry()

    @Slot()
    def retry(self) -> None:
        """Try to store what is not stored yet."""
        merge = self._merge
        if self.path is None or merge is None:
            self._merge = None
            return
        content: Any = None

        def change(data: bytes | None) -> bytes | None:
            nonlocal content
            content = merge(self._parsed(data))
            return None if content is None else json.dumps(content, indent=1).encode("utf-8")

        try:
            if self._makes_folder:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            damaged = change_shared(self.path, change, self._limit)
        except (OSError, WriteError) as error:
            self._retry.start()
            what = error.what if isinstance(error, WriteError) else error.strerror or str(error)
            self._say(self.notice, f"{self.path.name}: {what}")
            return
        self._merge = None
        self._retry.stop()
        notice = self.notice
        if damaged is not None:
            notice = f"{self.path.name} was damaged and is now {damaged.path.name}: {damaged.reason}"
        self._say(notice, "")
        self.stored.emit(content)

    @property
    def is_stored(self) -> bool:
        """True if nothing waits to be stored."""
        return self._merge is None

    def dismiss_notice(self) -> None:
        """Forget what was wrong with the file, as the user has read it."""
        self._say("", self.failure)

    def give_up(self) -> None:
        """Forget what could not be stored."""
        self._merge = None
        self._retry.stop()
        self._say(self.notice, "")

    def _parsed(self, data: bytes | None) -> Any:
        if data is None:
            return None
        return self._check(parsed_json(data))

    def _say(self, notice: str, failure: str) -> None:
        if (notice, failure) != (self.notice, self.failure):
            self.notice, self.failure = notice, failure
            self.changed.emit()
