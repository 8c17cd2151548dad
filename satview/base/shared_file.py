"""Changes small files that several windows, programs or users have in common, so that nobody's change is lost.

A change reads the file, and replaces it by `NewFile`, under a lock of its folder (POSIX); where a folder cannot be
locked, as on some network file systems and on Windows, the file is compared once more right before it is replaced.
A file that cannot be understood is renamed to `NAME.damaged-N` and stays there.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from satview.base.dataclass import dataclass
from satview.base.errors import SatviewError, WriteError
from satview.base.new_file import NewFile, sync_folder
from satview.base.targets import find_target

_IS_WINDOWS: Final = os.name == "nt"
if not _IS_WINDOWS:
    import fcntl

_PATIENCE_S: Final = 1.0
_TRIES: Final = 20
Change = Callable[[bytes | None], bytes | None]


class DamagedFileError(SatviewError):
    """A file is there, but is not what it should be; the text says why."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """What became of a damaged file.

    Attributes:
        path: Its new name.
        reason: What was wrong with it.
    """

    path: Path
    reason: str


def parsed_json(data: bytes) -> Any:
    """Return what a file of JSON holds.

    Raises:
        DamagedFileError: It is none; says where.
    """
    try:
        return json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise DamagedFileError(f"byte {error.start} is no text") from error
    except json.JSONDecodeError as error:
        raise DamagedFileError(f"line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise DamagedFileError("it holds a number or a nesting beyond all bounds") from error


def read_shared(path: Path, limit: int) -> bytes | None:
    """Return the content of a file, None if there is none.

    Raises:
        DamagedFileError: It is larger than `limit` bytes, or no file.
        OSError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except FileNotFoundError:
        return None
    except IsADirectoryError as error:
        raise DamagedFileError("it is a folder") from error
    if len(data) > limit:
        raise DamagedFileError(f"it has more than {limit:,} bytes")
    return data


def change_shared(path: Path, change: Change, limit: int) -> Damaged | None:
    """Replace a file by what `change` makes of it.

    Args:
        path: The file; it need not exist, its folder must.
        change: Gets the content, None if there is no file; returns the new content, None to remove the file. It may
            be called several times, and raises `DamagedFileError` for content that it does not understand.
        limit: Size in bytes from which a file is damaged.

    Returns:
        Where a damaged file was put; None if there was none.

    Raises:
        WriteError: The file cannot be read or written; it is as it was.
    """
    path = find_target(path).path
    damaged = None
    try:
        with _locked(path.parent):
            for _ in range(_TRIES):
                before = _identity(path)
                try:
                    old = read_shared(path, limit)
                    new = change(old)
                except DamagedFileError as error:
                    damaged = Damaged(_set_aside(path), str(error))
                    continue
                if new == old or _replaced(path, new, before):
                    return damaged
    except OSError as error:
        raise WriteError(path, error.strerror or str(error)) from error
    raise WriteError(path, "somebody else changes it all the time")


def _replaced(path: Path, new: bytes | None, before: tuple[int, ...] | None) -> bool:
    """Replace a file unless it has changed since `before`; return whether that was done."""
    if new is None:
        if _identity(path) != before:
            return False
        path.unlink(missing_ok=True)
        sync_folder(path.parent)
        return True
    file = NewFile(path)
    try:
        file.stream.write(new)
        file.stream.flush()
        if _identity(path) != before:
            file.discard()
            return False
    except BaseException:
        file.discard()
        raise
    file.commit()
    return True


def _identity(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _set_aside(path: Path) -> Path:
    """Rename a damaged file to the first free name."""
    number = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}.damaged-{number}")):
        number += 1
    os.rename(path, aside)  # noqa: PTH104  -- says what it does
    sync_folder(path.parent)
    return aside


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; go on without it where there are no such locks, or somebody holds it for too long."""
    if _IS_WINDOWS:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        deadline_s = time.monotonic() + _PATIENCE_S
        with suppress(OSError):
            while time.monotonic() < deadline_s:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(0.005)
        yield
    finally:
        os.close(descriptor)
