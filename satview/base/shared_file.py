"""Reads and changes small files that several windows, programs or users share.

A change reads the file and replaces it by `NewFile`; the caller holds a lock, as `session.workspace_file` does. A
damaged file is renamed to `NAME.damaged-N` and kept.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from satview.base.errors import SatviewError, WriteError
from satview.base.new_file import sync_folder, write_file
from satview.base.safe_text import visible_line

Change = Callable[[bytes | None], bytes | None]
_Kind = TypeVar("_Kind")
_SAID_MAX: Final = 200
_WORDS: Final = {"int": "a whole number", "str": "text", "bool": "true or false", "array": "a list",
                 "object": "an object", "null": "nothing", "float": "a fraction"}  # fmt: skip


class DamagedFileError(SatviewError):
    """A file exists, but its content is not as expected; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Damaged:
    """A damaged file that was renamed."""

    name: str
    path: Path
    reason: str


def parsed_json(data: bytes) -> Any:
    """Return the content of a JSON file; DamagedFileError, with the position, if it is not JSON."""
    try:
        return json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise DamagedFileError(f"byte {error.start} is not text") from error
    except json.JSONDecodeError as error:
        raise DamagedFileError(f"line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise DamagedFileError("it holds a number or a nesting beyond all bounds") from error


def as_declared(content: Any, kind: type[_Kind]) -> _Kind:
    """Return parsed JSON as a dataclass whose fields declare their types and bounds.

    Raises DamagedFileError, with position and reason, if a value has another type or is out of its bounds.
    """
    try:
        return msgspec.convert(content, kind, dec_hook=_converted)
    except UnicodeEncodeError as error:  # in a text; paths may have any bytes
        raise DamagedFileError(f"{ascii(error.object)[:_SAID_MAX]} is not text") from error
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        what = re.sub(
            "`([^`]*)`", lambda types: " or ".join(_WORDS.get(name, name) for name in types[1].split(" | ")), what
        )
        where = f"{place.strip('.`')}: " if place else ""
        raise DamagedFileError(visible_line(f"{where}{what[:1].lower()}{what[1:]}")[:_SAID_MAX]) from error


def tables_as_declared(content: Mapping[str, Any], kind: type[_Kind]) -> dict[str, _Kind]:
    """Return the tables of a parsed TOML file by name, each as a dataclass whose fields declare their types and bounds.

    Raises:
        DamagedFileError: See `as_declared`; the text names the table.
    """
    tables = {}
    for name, table in content.items():
        try:
            tables[name] = as_declared(table, kind)
        except DamagedFileError as error:
            raise DamagedFileError(visible_line(f"[{name[:_SAID_MAX]}] {error}")) from error
    return tables


def _converted(kind: type[_Kind], value: Any) -> _Kind:
    """Return a JSON value converted to a type that JSON does not have, such as a path."""
    return kind(value)  # type: ignore[call-arg]


def read_shared(path: Path, limit: int) -> bytes | None:
    """Return the content of a file; None if there is no such file.

    Raises DamagedFileError if it is larger than `limit` bytes, or is a folder, OSError if it cannot be read.
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
    """Replace the content of a file by the result of `change`; the caller holds the lock of the file.

    Only the folder must exist. `change` gets the content, None = no file, and returns the new one, or None
    to remove the file; it may be called twice, and raises `DamagedFileError` for invalid content, or if it exceeds
    `limit` bytes. Returned are old and new name of a damaged file that was renamed; else None. Raises WriteError if the
    file cannot be read or written, or would be too large; the old content remains.
    """
    damaged = None
    try:
        try:
            old = read_shared(path, limit)
            new = change(old)
        except DamagedFileError as error:
            damaged = Damaged(path.name, set_aside(path), str(error))
            old = None
            new = change(None)
        if new is None:
            path.unlink(missing_ok=True)
            sync_folder(path.parent)
        elif len(new) > limit:
            raise WriteError(path, f"it would have more than {limit:,} bytes")
        elif new != old:
            write_file(path, new)
    except OSError as error:
        raise WriteError(path, error.strerror or str(error)) from error
    return damaged


def set_aside(path: Path) -> Path:
    """Rename a damaged file to `NAME.damaged-N` with the first free number; return the new path, OSError on failure."""
    number = 1
    while os.path.lexists(aside := path.with_name(f"{path.name}.damaged-{number}")):
        number += 1
    rename(path, aside)
    return aside


def rename(path: Path, new: Path) -> None:
    """Rename a file, and sync the change to the disk; OSError if that fails."""
    os.rename(path, new)  # noqa: PTH104  -- says what it does
    sync_folder(path.parent)
