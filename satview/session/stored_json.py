"""The user's state in files: merged with changes by other programs; storing is retried until it succeeds."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QLockFile, QObject, QTimer, Signal, Slot

from satview.base.errors import WriteError
from satview.base.shared_file import Damaged, DamagedFileError, change_shared, parsed_json, read_shared
from satview.base.targets import find_target

_RETRY_MS: Final = 3000
_PATIENCE_MS: Final = 1000
_LOCK_NAME: Final = ".satview.lock"
Merge = Callable[[Any], Any]


class Stored(QObject):
    """State that is stored in one or several files; attributes tell whether all of it is stored.

    Attributes:
        path: The file, or the name that stands for several files; None stores nothing.
        failure: Why the last change could not be stored, one sentence; empty if everything is stored.
        notice: Problem of the existing file, one sentence; empty if none.
        is_stored: All changes are stored.

    Signals:
        changed: `failure` or `notice` has changed.
        stored: A change was stored; sends the content of the files.
    """

    changed = Signal()
    stored = Signal(object)

    def __init__(self, path: Path | None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.path = path
        self.failure = self.notice = ""
        self.is_stored = True
        self._retry = QTimer(self, interval=_RETRY_MS)
        self._retry.timeout.connect(self.retry)

    @Slot()
    def retry(self) -> None:
        """Try to store changes that are not stored yet."""
        if self.path is None or self.is_stored:
            self.is_stored = True
            return
        try:
            content, damaged = self._write()
        except (OSError, WriteError) as error:
            self._retry.start()
            reason = error.what if isinstance(error, WriteError) else error.strerror or str(error)
            self._say(self.notice, f"{self.path.name}: {reason}")
            return
        self.is_stored = True
        self._retry.stop()
        notice = self.notice
        for file in damaged:
            notice = f"{file.name} was damaged and is now {file.path.name}: {file.reason}"
        self._say(notice, "")
        self.stored.emit(content)

    def store_now(self) -> None:
        """Store changes now; if that fails, retry until it works."""
        self.is_stored = False
        self.retry()

    def dismiss_notice(self) -> None:
        """Clear `notice`; called when the user has read the message."""
        self._say("", self.failure)

    def give_up(self) -> None:
        """Stop trying to store changes."""
        self.is_stored = True
        self._retry.stop()
        self._say(self.notice, "")

    @abstractmethod
    def _write(self) -> tuple[object, list[Damaged]]:
        """Write the files; return their content, and the damaged files that were found, with new path and reason."""

    def _say(self, notice: str, failure: str) -> None:
        if (notice, failure) != (self.notice, self.failure):
            self.notice, self.failure = notice, failure
            self.changed.emit()


class StoredJson(Stored):
    """One JSON file, changed only while the lock of its folder is held; a change waits until the lock is free."""

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
            check: Function that converts parsed content; raises `DamagedFileError` if the content is not valid.
            limit: Maximum size of the file in bytes.
            parent: Owner.
            makes_folder: Create a missing folder; for satview's own folders.
        """
        super().__init__(path, parent)
        self._check = check
        self._limit = limit
        self._makes_folder = makes_folder
        self._merge: Merge = _unchanged

    def load(self) -> Any:
        """Return the content of the file; None if it is missing or cannot be read, which `notice` then explains."""
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
        """Change the file now; if that fails, retry until it works.

        Args:
            merge: Function of the current content (None = no file) that returns the new content (None = remove the
                file). While writing fails, a later call replaces this function.
        """
        self._merge = merge
        self.store_now()

    def _write(self) -> tuple[object, list[Damaged]]:
        assert self.path is not None
        content: Any = None

        def change(data: bytes | None) -> bytes | None:
            nonlocal content
            content = self._merge(self._parsed(data))
            return None if content is None else json.dumps(content, indent=1).encode("utf-8")

        if self._makes_folder:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        path = find_target(self.path).path
        with _locked(path):
            damaged = change_shared(path, change, self._limit)
        return content, [damaged] if damaged is not None else []

    def _parsed(self, data: bytes | None) -> Any:
        if data is None:
            return None
        return self._check(parsed_json(data))


def _unchanged(content: Any) -> Any:
    return content


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file's folder during a block: a Qt lock file, which works on Windows and network disks too.

    Raises:
        WriteError: Another program holds it for too long.
    """
    lock = QLockFile(str(path.with_name(_LOCK_NAME)))
    if not lock.tryLock(_PATIENCE_MS) and lock.error() is QLockFile.LockError.LockFailedError:
        raise WriteError(path, f"another program holds {_LOCK_NAME} in its folder")
    # If the lock file cannot be created, neither can the file, and that error says why.
    try:
        yield
    finally:
        lock.unlock()
