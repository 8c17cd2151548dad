"""Checks targets of output: files, or pipes and devices that the user named, but never a file that is being read."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from satview.base.errors import WriteError

Sources = Iterable[Path | str | int]
_STDOUT: Final = 1
_DESCRIPTOR: Final = re.compile(r"/dev/(?:(stdin)|(stdout)|(stderr))|/(?:dev|proc/self)/fd/([0-9]{1,6})")


class TargetKind(StrEnum):
    """Ways to write a target."""

    FILE = "file"
    DESCRIPTOR = "descriptor"
    STREAM = "stream"


@dataclass(frozen=True, slots=True)
class OutputTarget:
    """The file, pipe or device to which output is written.

    Attributes:
        kind: A file that is replaced, an open descriptor of this process, or a pipe or device that is opened.
        path: Path with all symbolic links followed; for kinds other than files, as given.
        descriptor: Number of the open descriptor; -1 for the other kinds.
        mode: Permission bits of the file that is replaced; None if there is none.
    """

    kind: TargetKind
    path: Path
    descriptor: int = -1
    mode: int | None = None


class _KeptInputs:
    """The inputs of the running command; no output of any of its threads may replace one of these files."""

    sources: Callable[[], Sources] = staticmethod(tuple)


_kept = _KeptInputs()


@contextmanager
def keeps_inputs(sources: Callable[[], Sources]) -> Iterator[None]:
    """Refuse, in a block, outputs that would replace an input of the command.

    Args:
        sources: Returns the inputs; called before an existing file is replaced.
    """
    _kept.sources = sources
    try:
        yield
    finally:
        del _kept.sources


def find_target(path: Path | str, reading: Sources = (), *, streams: bool = False) -> OutputTarget:
    """Return the output target that a name stands for.

    Args:
        path: The name; symbolic links are followed. With `streams`, `-` is standard output.
        reading: Inputs: paths or open descriptors, `-` for standard input. A folder represents all files in it.
        streams: Allow pipes, terminals and `/dev/null`, because the user named the output on a command line. Disks and
            sockets are always refused.

    Raises:
        WriteError: The name is a folder, is in a missing folder, is a device that is refused, is write-protected, or is
            one of the inputs.
    """
    if streams and (number := descriptor_of(path)) >= 0:
        _refuse_same(Path(path), os.fstat(number), reading)
        return OutputTarget(TargetKind.DESCRIPTOR, Path(path), number)
    path = Path(path)
    try:
        status = path.stat()
    except FileNotFoundError:
        refuse_missing_folder(path)
        return OutputTarget(TargetKind.FILE, Path(os.path.realpath(path)))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise WriteError(path, getattr(error, "strerror", None) or str(error)) from error
    _refuse_same(path, status, reading)
    if stat.S_ISREG(status.st_mode):
        if not os.access(path, os.W_OK):
            raise WriteError(path, "the file is write-protected")
        return OutputTarget(TargetKind.FILE, Path(os.path.realpath(path)), mode=stat.S_IMODE(status.st_mode))
    if stat.S_ISDIR(status.st_mode):
        raise WriteError(path, "this is a folder; name a file in it")
    if streams and (stat.S_ISFIFO(status.st_mode) or stat.S_ISCHR(status.st_mode)):
        return OutputTarget(TargetKind.STREAM, path)
    raise WriteError(path, "this is a device or a pipe, which a file must not replace")


def refuse_missing_folder(path: Path) -> None:
    """Check that the parent folder of a file or folder to be created exists.

    Raises:
        WriteError: The folder does not exist; the text names it.
    """
    home = Path(os.path.realpath(path)).parent
    if not home.exists():
        shown = home if path.is_symlink() else path.parent
        raise WriteError(path, f"there is no folder {str(shown)!r}; make it first, or give another name")


def descriptor_of(path: Path | str) -> int:
    """Return the open descriptor for a name such as `-`, `/dev/stdout` or `/dev/fd/3`; -1 for the name of a file.

    Raises:
        WriteError: The descriptor is not open.
    """
    if str(path) == "-":
        return _STDOUT
    parts = _DESCRIPTOR.fullmatch(str(path))
    if parts is None:
        return -1
    number = int(parts[4]) if parts[4] else next(i for i in range(3) if parts[i + 1])
    try:
        os.fstat(number)
    except OSError as error:
        raise WriteError(path, "this descriptor is not open") from error
    return number


def is_standard_output(path: Path | str | None) -> bool:
    """Return whether an output name stands for standard output; if so, messages must go to standard error."""
    return path is not None and descriptor_of(path) == _STDOUT


def _refuse_same(path: Path, status: os.stat_result, reading: Sources) -> None:
    if not stat.S_ISREG(status.st_mode):
        return
    for source in (*reading, *_kept.sources()):
        if (status.st_dev, status.st_ino) in _identities(source):
            raise WriteError(path, "this is the file that is being read; give another name")


def _identities(source: Path | str | int) -> set[tuple[int, int]]:
    """Return (device, inode) of a file, or of all files in a folder; empty if it cannot be read."""
    try:
        source = 0 if str(source) == "-" else source
        status = os.fstat(source) if isinstance(source, int) else Path(source).stat()
        if stat.S_ISDIR(status.st_mode) and not isinstance(source, int):
            with os.scandir(source) as entries:
                inside = [entry.stat() for entry in entries if entry.is_file()]
            return {(inner.st_dev, inner.st_ino) for inner in inside}
    except (OSError, ValueError):  # ValueError: a NUL in the name, or half a surrogate
        return set()
    return {(status.st_dev, status.st_ino)}
