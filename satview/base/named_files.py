"""Paths of the files that ship with satview, and which files may be opened because another file names them."""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Final

from platformdirs import user_state_path

from satview.base.errors import SatviewError, UsageError, WriteError, reading_fault
from satview.base.new_file import write_file

# Decides which files may be opened because another file, which may come from a stranger, names them.
#
# A file may name files in its own folder or below. Other named files are opened only if the user has allowed it: by
# creating the naming file with satview, by `satview together --allow`, or in a dialog of the window. The permission is
# stored for the user, as one small file for each naming file, and is valid while the naming file names the same files.
#
# A server that is limited to some folders opens no file outside of them, whatever the user has allowed: `only_below`
# limits its own process, and an environment variable limits the processes that it starts.


VARIABLE: Final = "SATVIEW_ONLY_BELOW"
_SHOWN: Final = 4
_TOML_LINE: Final = re.compile(r"\s*\(at line (\d+), column \d+\)$")
_folders: ContextVar[tuple[str, ...] | None] = ContextVar("folders", default=None)


class OutsideError(SatviewError):
    """A file names files outside of its folder, with symbolic links followed, that the user has not allowed."""

    def __init__(self, owner: Path, files: tuple[Path, ...]) -> None:
        self.owner, self.files = owner, files
        super().__init__(f"{owner.name} names {listed(files)} outside of its folder, which is not opened unasked")


def name_fault(name: str) -> str:
    """Return the reason why a text cannot be the name of a file; empty if it can."""
    if "\0" in name:
        return "there is a NUL in it, which no file's name has"
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return "there is half of a character in it, which no file's name has"
    return ""


def listed(files: tuple[Path, ...]) -> str:
    """Return a text with the names of the first files and the number of the others."""
    more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
    return ", ".join(ascii(str(file))[1:-1] for file in files[:_SHOWN]) + more


def outside_of(owner: Path, files: Iterable[Path]) -> tuple[Path, ...]:
    """Return the files that are not below the folder of `owner`, which names them; symbolic links are followed."""
    folder = os.path.realpath(owner.parent)
    return tuple(path for path in map(_real, files) if not path.is_relative_to(folder))


def check_named(owner: Path, files: Iterable[Path]) -> None:
    """Check that files may be opened because another file names them.

    Raises OutsideError if the user has to allow it, SatviewError for files outside of the folders to which the process
    is limited.
    """
    named = tuple(files)
    if folders() is not None:
        for path in named:
            check_below(path)
        return
    outside = outside_of(owner, named)
    if outside and not _record(owner, outside).is_file():
        raise OutsideError(owner, outside)


def allow(owner: Path, files: Iterable[Path]) -> None:
    """Store the user's permission that the file `owner` may name `files` outside of its folder, or raise WriteError."""
    outside = outside_of(owner, files)
    if not outside:
        return
    path = _record(owner, outside)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(path.parent, error.strerror or str(error)) from error
    write_file(path, "\n".join(ascii(str(file)) for file in (_real(owner), *outside)) + "\n")


def folders() -> tuple[str, ...] | None:
    """Return the folders to which opening files is limited; None if there is no limit."""
    given = os.environ.get(VARIABLE)
    return _folders.get() or (tuple(given.split(os.pathsep)) if given else None)


@contextmanager
def only_below(limits: Iterable[Path]) -> Iterator[None]:
    """Limit the files that may be opened in a block to those below some folders; symbolic links are followed."""
    token = _folders.set(tuple(os.path.realpath(folder) for folder in limits))
    try:
        yield
    finally:
        _folders.reset(token)


def check_below(path: Path) -> None:
    """Raise a SatviewError if opening files is limited to some folders (`only_below`) and a file is below none."""
    limits = folders()
    if limits is not None and not any(_real(path).is_relative_to(folder) for folder in limits):
        raise SatviewError(f"{path.name} is outside of the folders that may be read, {', '.join(map(ascii, limits))}")


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _record(owner: Path, outside: tuple[Path, ...]) -> Path:
    """Return the path of the permission file, whose existence allows `owner` to name the files `outside`."""
    key = "\0".join(map(str, (_real(owner), *sorted(outside))))
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return user_state_path("satview", appauthor=False) / "allowed" / digest


# Small files that people write.


def read_small(path: Path, limit_bytes: int, too_large: str) -> bytes:
    """Return the bytes of a file; of a file larger than the limit, little more than the limit is read.

    Raises UsageError, which names the file, if it cannot be read or, with the text `too_large`, is too large.
    """
    if fault := name_fault(str(path)):
        raise UsageError(f"{path.name}: {fault}")
    try:
        with path.open("rb") as file:
            data = file.read(limit_bytes + 1)
    except OSError as error:
        raise UsageError(f"{path.name or path}: {reading_fault(error)}") from error
    if len(data) > limit_bytes:
        raise UsageError(f"{path.name}: {too_large}")
    return data


def read_toml(path: Path, limit_bytes: int, help_text: str) -> tuple[str, dict[str, object]]:
    """Return the text of a TOML file, and its parsed content.

    Raises UsageError, with file, line and `help_text`, if it cannot be read, is too large, or is no TOML.
    """
    too_large = f"more than {limit_bytes // 1024} KiB; such a file is far smaller"
    return parsed_toml(path, read_small(path, limit_bytes, too_large), help_text)


def parsed_toml(path: Path, data: bytes, help_text: str) -> tuple[str, dict[str, object]]:
    """Return the text and the parsed content of a TOML file that was read; arguments and errors as for `read_toml`."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(f"{path.name}, line {line}: no UTF-8 text; save it as UTF-8") from error
    try:
        return text, tomllib.loads(text)
    except ValueError as error:  # no TOML, or a number of more digits than Python reads
        what, position = str(error), _TOML_LINE.search(str(error))
        line = int(position[1]) if position else text.count("\n") + 1
        raise UsageError(f"{path.name}, line {line}: {_TOML_LINE.sub('', what)}; {help_text}") from error
    except RecursionError as error:
        raise UsageError(f"{path.name}: nested too deep; {help_text}") from error


# Paths of the files that ship with satview.


_PACKAGE = Path(__file__).resolve().parent.parent
_SAMPLE = "dense-4cpu.kev"


@cache
def _root() -> Path:
    # Inside a wheel the folder is satview/_resources; in a checkout it is beside the package.
    shipped = _PACKAGE / "_resources"
    return shipped if shipped.is_dir() else _PACKAGE.parent / "resources"


def resource_path(name: str) -> Path:
    """Return the path of a shipped file, such as `events/thread.toml`; FileNotFoundError, with its name, if missing."""
    path = _root() / name
    if not path.exists():
        raise FileNotFoundError(f"satview ships no file {name!r}")
    return path


def sample_trace() -> Path:
    """Return the path of the trace that comes with satview; the file may have been removed."""
    shipped = _root() / "samples" / _SAMPLE
    return shipped if shipped.exists() else _PACKAGE.parent / "sample_traces" / _SAMPLE
