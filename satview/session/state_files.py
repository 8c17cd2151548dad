"""Finds, reads and writes the JSON files with states of windows: one per trace, and one per saved session."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from platformdirs import user_config_path, user_state_path

from satview.base.errors import UsageError, WriteError
from satview.base.shared_file import DamagedFileError, parsed_json, read_shared
from satview.session.settings import StoredJson

if TYPE_CHECKING:
    from satview.session.workspace_file import TraceSign, WorkspaceState


SUFFIX: Final = ".satsession"
_HEAD_BYTES: Final = 64 << 10
_MOST_FILES: Final = 500
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")
_NAME: Final = re.compile(r"[^/\\\x00-\x1f:*?\"<>|]{1,80}")


class StateFiles:
    """Reads and writes the files of one user with states of windows and with saved sessions.

    Args:
        views: Folder of the states of windows, one file per trace; None stores nothing.
        sessions: Folder of sessions saved under a name; None stores nothing.
    """

    def __init__(self, views: Path | None = None, sessions: Path | None = None) -> None:
        self._views, self._sessions = views, sessions

    def of_trace(self, path: Path) -> StoredJson:
        """Return the file with the window state of a trace; for standard input, an object that stores nothing."""
        file = None
        if self._views is not None and str(path) != "-":
            name = _digest(os.fsencode(path.absolute()))[:16]
            file = self._views / f"{_NOT_IN_NAMES.sub('_', path.name)[:60]}-{name}{SUFFIX}"
        from satview.session.workspace_file import FILE_BYTES_MAX, checked  # brings numpy, as below

        return StoredJson(file, checked, FILE_BYTES_MAX, makes_folder=True)

    def shrink(self) -> None:
        """Remove the states of the least recently opened traces if there are too many."""
        if self._views is None:
            return
        stored = []
        for file in self._views.glob("*"):
            with suppress(OSError):
                stored.append((file.stat().st_mtime_ns, file))
        for _, file in sorted(stored)[:-_MOST_FILES]:
            with suppress(OSError):
                file.unlink()

    def names(self) -> tuple[str, ...]:
        """Return the names of the saved sessions, sorted."""
        if self._sessions is None:
            return ()
        with suppress(OSError):
            return tuple(sorted((file.stem for file in self._sessions.glob(f"*{SUFFIX}")), key=str.casefold))
        return ()

    def path_of(self, name: str) -> Path:
        """Return the path of the file of a session, given its name or its path.

        Raises:
            UsageError: The name is not valid.
        """
        return Path(name) if _is_path(name) else self._saved(name)

    def _saved(self, name: str) -> Path:
        """Return the path of a session in the folder of sessions, the only one in which files are written or removed.

        Raises:
            UsageError: The name is not valid, or it is a path.
        """
        if self._sessions is None or _is_path(name) or not _NAME.fullmatch(name) or name.startswith("."):
            raise UsageError(f"{name[:40]!r} is not a name for a session; use letters, digits and blanks")
        return self._sessions / f"{name}{SUFFIX}"

    def save(self, name: str, state: WorkspaceState) -> Path:
        """Save a session, replacing any session of the same name; return the path of its file.

        Raises:
            UsageError: The name is not valid.
            WriteError: The file cannot be written.
        """
        from satview.session.workspace_file import FILE_BYTES_MAX, checked, to_json

        path = self._saved(name)
        file = StoredJson(path, checked, FILE_BYTES_MAX, makes_folder=True)
        file.store(lambda _content: to_json(state))
        if not file.is_stored:
            failure = file.failure
            file.give_up()
            raise WriteError(path, failure.partition(": ")[2] or failure)
        return path

    def load(self, name: str) -> WorkspaceState:
        """Return a saved session.

        Raises:
            UsageError: There is no session of that name, or it cannot be read.
        """
        from satview.session.workspace_file import FILE_BYTES_MAX, from_json

        path = self.path_of(name)
        try:
            data = read_shared(path, FILE_BYTES_MAX)
            if data is None:
                raise UsageError(f"there is no session {name[:80]!r}; --session takes a name or a file NAME{SUFFIX}")
            return from_json(parsed_json(data))
        except DamagedFileError as error:
            raise UsageError(f"the file {path.name} is not a session: {error}") from error
        except OSError as error:
            raise UsageError(f"{path.name} cannot be read: {error.strerror or error}") from error

    def remove(self, name: str) -> None:
        """Delete a saved session.

        Raises:
            UsageError: The name is not valid.
            WriteError: The file cannot be removed.
        """
        path = self._saved(name)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise WriteError(path, error.strerror or str(error)) from error


def _is_path(name: str) -> bool:
    """Return whether the given name of a session is a file path, and not a name in the folder of sessions."""
    return name.endswith(SUFFIX) or "/" in name or "\\" in name


def sign_of(path: Path) -> TraceSign | None:
    """Return the path, size and digest of a file by which a trace is recognized; None if it cannot be read."""
    from satview.session.workspace_file import TraceSign

    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(_HEAD_BYTES)
    except OSError:
        return None
    return TraceSign(str(path.absolute()), size, len(head), _digest(head))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def is_same(sign: TraceSign | None, path: Path) -> bool:
    """Return whether a file is the trace with this signature, even if the file has grown since."""
    if sign is None or sign.head_bytes > _HEAD_BYTES:
        return False
    try:
        with path.open("rb") as file:
            head = file.read(sign.head_bytes)
            size = os.fstat(file.fileno()).st_size
    except OSError:
        return False
    return size >= sign.size and _digest(head) == sign.head


def users_files() -> StateFiles:
    """Return this user's folders for states and sessions."""
    views = user_state_path("satview", appauthor=False) / "views"
    return StateFiles(views, user_config_path("satview", appauthor=False) / "sessions")


def users_sessions() -> StateFiles:
    """Return this user's folder of sessions, without a folder of window states, which screenshots do not store."""
    return StateFiles(None, user_config_path("satview", appauthor=False) / "sessions")
