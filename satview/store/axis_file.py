"""Axis files, `.sataxis`: JSON with the file names of traces and their offsets on a common time axis."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from satview.base.errors import TraceFormatError, UsageError
from satview.base.named_files import allow, name_fault
from satview.base.new_file import write_file
from satview.base.shared_file import DamagedFileError, as_declared, parsed_json, read_shared

SUFFIX: Final = ".sataxis"
MARK: Final = "satview_axis"
VERSION: Final = 1
MOST_FILES: Final = 16
_HEAD_BYTES: Final = 4096
_FILE_BYTES_MAX: Final = 1 << 20
_MOST_PS: Final = 10**12 * 86_400 * 366  # a year


@dataclass(frozen=True, slots=True)
class AxisEntry:
    """A file on the axis.

    Attributes:
        path: The file.
        name: Name of the file on the axis, such as `guest`.
        offset_ps: Picoseconds from the first event of the first file to the first event of this file.
    """

    path: Path
    name: str
    offset_ps: int = 0


@dataclass(frozen=True, slots=True)
class _Version:
    satview_axis: int = 0


@dataclass(frozen=True, slots=True)
class _Content:
    files: tuple[AxisEntry, ...] = ()


def read_axis(path: Path) -> list[AxisEntry]:
    """Return the files listed in an axis file; relative names are relative to its folder.

    Raises:
        TraceFormatError: The axis file is damaged, or lists files that cannot be combined; the text has the remedy.
        OSError: The axis file cannot be read.
    """
    remedy = "make it again with `satview together`"
    try:
        data = read_shared(path, _FILE_BYTES_MAX)
        content = parsed_json(data or b"")
        if as_declared(content, _Version).satview_axis != VERSION:
            raise TraceFormatError(path, 0, f"it is no axis of version {VERSION}", "open it with a newer satview")
        entries = [replace(entry, path=path.parent / entry.path) for entry in as_declared(content, _Content).files]
        check_entries(entries)
    except (DamagedFileError, UsageError) as error:
        raise TraceFormatError(path, 0, str(error), remedy) from error
    return entries


def allow_axis(path: Path) -> list[AxisEntry]:
    """Permit an axis file to list files outside its folder from now on; return its entries.

    Raises:
        TraceFormatError, OSError: As for `read_axis`.
        WriteError: The permission cannot be stored.
    """
    entries = read_axis(path)
    allow(path, (entry.path for entry in entries))
    return entries


def write_axis(path: Path, entries: Sequence[AxisEntry]) -> None:
    """Write an axis file; paths below its folder are relative, so that the folder can be moved.

    The new file is permitted to list files outside its folder from now on, because this user has named them.

    Raises:
        UsageError: The files cannot be combined.
        WriteError: The axis file cannot be written.
    """
    check_entries(entries)
    files = [
        {"name": entry.name, "path": _written(entry.path, path), "offset_ps": entry.offset_ps} for entry in entries
    ]
    # In ASCII: the bytes of a file name may not be valid UTF-8.
    text = json.dumps({MARK: VERSION, "files": files}, indent=1) + "\n"
    write_file(path, text, reading=[entry.path for entry in entries])
    allow(path, (entry.path for entry in entries))


def check_entries(entries: Sequence[AxisEntry]) -> None:
    """Reject entries that make no valid axis.

    Raises:
        UsageError: There are too few or too many files, a file or a name occurs twice, a file is itself an axis, or a
            name, path or offset is not valid.
    """
    if not 2 <= len(entries) <= MOST_FILES:
        raise UsageError(f"an axis has 2 to {MOST_FILES} files, and here are {len(entries)}")
    if any(str(entry.path) == "-" for entry in entries):
        raise UsageError("standard input cannot be read again, as an axis has to be; write it to a file first")
    for entry in entries:
        if fault := name_fault(str(entry.path)):
            raise UsageError(f"{ascii(str(entry.path))[:80]}: {fault}")
    paths = [os.path.realpath(entry.path) for entry in entries]
    for entry, path in zip(entries, paths, strict=True):
        if paths.count(path) > 1:
            raise UsageError(f"{entry.path.name} is named twice; one file cannot be beside itself on an axis")
        if is_axis(entry.path):  # it could list this one again
            raise UsageError(f"{entry.path.name} is an axis itself; name the files that it names")
        if abs(entry.offset_ps) > _MOST_PS:
            raise UsageError(f"{entry.name[:40]} would begin more than a year away; check its offset")
        if not entry.name.strip() or len(entry.name) > 40 or any(sign in entry.name for sign in "/:*?\n"):
            raise UsageError(f"{entry.name[:40]!r} is no name for a file on an axis; use letters and digits")
    for name in (entry.name for entry in entries):
        if sum(entry.name == name for entry in entries) > 1:
            raise UsageError(f"two files are called {name[:40]!r}; give each a name of its own")


def looks_like_axis(head: bytes, path: Path) -> bool:
    """Return whether a file is an axis file, by its first bytes."""
    return head.lstrip()[:1] == b"{" and (f'"{MARK}"'.encode() in head or path.suffix == SUFFIX)


def is_axis(path: Path) -> bool:
    """Return whether a file is an axis file, by its content."""
    if not path.is_file():  # opening a pipe would block
        return False
    try:
        with path.open("rb") as file:
            return looks_like_axis(file.read(_HEAD_BYTES), path)
    except OSError:  # opening it as a trace reports the error
        return False


def files_in(path: Path) -> list[Path]:
    """Return the files listed in an axis file; none if it cannot be read."""
    try:
        return [entry.path for entry in read_axis(path)]
    except (TraceFormatError, OSError):
        return []


def names_for(paths: Sequence[Path]) -> list[str]:
    """Return unique short names for files: the part before the first dot, with a number if it is already used."""
    names: list[str] = []
    for path in paths:
        stem = path.name.partition(".")[0] or path.name
        name = "".join("_" if sign in "/:*?\n" else sign for sign in stem)[:30].strip() or "trace"
        number, base = 2, name
        while name in names:
            name, number = f"{base}-{number}", number + 1
        names.append(name)
    return names


def _written(file: Path, axis: Path) -> str:
    file, folder = file.absolute(), axis.absolute().parent
    return file.relative_to(folder).as_posix() if file.is_relative_to(folder) else str(file)
