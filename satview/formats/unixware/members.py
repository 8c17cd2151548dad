"""Finds the files of a set, `tr.xxxxxxx.yyy` with pid and LWP id in hexadecimal, and its files of names and times."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from satview.base.errors import TraceFormatError

_MEMBER = re.compile(r"tr\.([0-9a-fA-F]{1,7})\.([0-9a-fA-F]{1,3})")
NAMES_SUFFIX = "names"
TIMES_SUFFIX = "time"


def is_member_name(name: str) -> bool:
    """Return whether a file name is that of a thread trace."""
    return _MEMBER.fullmatch(name) is not None


def is_set(path: Path) -> bool:
    """Return whether a path is a directory with thread traces."""
    return path.is_dir() and any(is_member_name(entry.name) for entry in path.iterdir())


def _members(directory: Path, process: str | None) -> list[Path]:
    members = []
    for entry in directory.iterdir():
        match = _MEMBER.fullmatch(entry.name)
        if match and (process is None or int(match[1], 16) == int(process, 16)) and entry.is_file():
            members.append(entry)
    return members


def files_of(paths: Iterable[Path]) -> list[Path]:
    """Return the files of a set, ordered by process and LWP.

    A directory stands for all thread traces in it, a single file for all files of its process in the same directory;
    several files are exactly the set. Files that do not exist are returned too, so that the reader reports them.

    Raises:
        TraceFormatError: A directory contains no thread trace.
        OSError: A directory cannot be read.
    """
    named_paths = list(paths)
    files: dict[Path, None] = {}
    for path in named_paths:
        if path.is_dir():
            inside = _members(path, None)
            if not inside:
                raise TraceFormatError(
                    path,
                    None,
                    "the directory holds no thread trace",
                    "name one with files tr.xxxxxxx.yyy, or a trace file in it",
                )
            files.update(dict.fromkeys(inside))
        else:
            match = _MEMBER.fullmatch(path.name)
            files[path] = None
            if match and len(named_paths) == 1 and path.parent.is_dir():
                files.update(dict.fromkeys(_members(path.parent, match[1])))
    return sorted(files, key=_order)


def _order(path: Path) -> tuple[str, bool, list[int], str]:
    """Return the sort key of a file: by process and LWP; files with other names come last."""
    match = _MEMBER.fullmatch(path.name)
    numbers = [int(digits, 16) for digits in match.groups()] if match else []
    return str(path.parent), match is None, numbers, path.name


def names_files(files: Iterable[Path]) -> list[Path]:
    """Return the files with names beside the members of a set."""
    name_files: dict[Path, None] = {}
    for path in files:
        match = _MEMBER.fullmatch(path.name)
        if match:
            beside = path.with_name(f"tr.{match[1]}.{NAMES_SUFFIX}")
            if beside.is_file():
                name_files[beside] = None
    return list(name_files)


def times_files(files: Iterable[Path]) -> list[Path]:
    """Return the files of times beside the members of a set: `tr.xxxxxxx.yyy.time`."""
    besides = [path.with_name(f"{path.name}.{TIMES_SUFFIX}") for path in files if is_member_name(path.name)]
    return [beside for beside in besides if beside.is_file()]
