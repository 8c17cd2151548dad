"""Creates an axis file, which puts several traces on one time axis, from a user's request."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from platformdirs import user_state_path

from satview.analysis.alignment import PS_PER_S, START, offsets_ps
from satview.base.errors import UsageError
from satview.base.time import NS_PER_S, parse_length
from satview.events.user_events import UserEvent
from satview.formats.registry import open_trace
from satview.store.arguments import describe_events
from satview.store.axis import SUFFIX, AxisEntry, check_entries, names_for, write_axis

_MOST_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class AxisRequest:
    """Files to put on one time axis, and how to align them.

    Attributes:
        paths: Two or more files; all but the first are aligned with the first.
        names: Name of each file on the axis; empty = derived from the file names.
        offsets: Time from the first event of the first file to that of another, as text such as `12.5ms` or `-2s`;
            the key is the name or number (from 1) of the other file.
        align: How to align files without an offset: `start`, `counter`, or an expression that matches an event of each.
        number: Number of the matching event to use in each file, from 1.
        described: Descriptions of events by code, whose fields the expression may name; None = none.
    """

    paths: tuple[Path, ...]
    names: tuple[str, ...] = ()
    offsets: Mapping[str, str] | None = None
    align: str = START
    number: int = 1
    described: Mapping[int, UserEvent] | None = None


def plan(request: AxisRequest, cancelled: Callable[[], bool] | None = None) -> list[AxisEntry]:
    """Return path, name and offset of each file on the axis; files are only read if events are needed to align them.

    Raises:
        UsageError: The request cannot be carried out.
        TraceFormatError: A file cannot be read.
        Cancelled: `cancelled()` returned True.
    """
    names = list(request.names) or names_for(request.paths)
    if len(names) != len(request.paths):
        raise UsageError(f"there are {len(request.paths)} files and {len(names)} names for them")
    if request.number < 1:
        raise UsageError(f"{request.number} is not an event number; the first event is 1")
    typed = _typed(names, request.offsets or {})
    entries = [AxisEntry(path, name, typed.get(name, 0)) for path, name in zip(request.paths, names, strict=True)]
    check_entries(entries)
    unplaced = [number for number, name in enumerate(names) if number and name not in typed]
    if request.align == START or not unplaced:  # no event has to be read for that
        return entries
    traces = [open_trace(request.paths[number], None, cancelled) for number in (0, *unplaced)]
    for trace in traces:
        describe_events(trace, request.described or {})
    for number, offset in zip(unplaced, offsets_ps(traces, request.align, request.number)[1:], strict=True):
        entries[number] = AxisEntry(request.paths[number], names[number], offset)
    return entries


def users_axis(entries: Sequence[AxisEntry]) -> Path:
    """Return the path of this user's axis file for these traces; the same for all offsets."""
    key = "\0".join(str(entry.path.absolute()) for entry in entries)
    name = "+".join(entry.name for entry in entries)[:_MOST_NAME]
    digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return user_state_path("satview", appauthor=False) / "axes" / f"{name}-{digest}{SUFFIX}"


def write_users_axis(entries: Sequence[AxisEntry]) -> Path:
    """Write this user's axis file for these traces; return its path.

    Raises:
        UsageError: The traces cannot share an axis, or the file cannot be written.
    """
    path = users_axis(entries)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path.parent}: {error.strerror or error}") from error
    write_axis(path, entries)
    return path


def _typed(names: Sequence[str], offsets: Mapping[str, str]) -> dict[str, int]:
    offset_of = {}
    for label, text in offsets.items():
        name = names[int(label) - 1] if label.isdecimal() and 0 < int(label) <= len(names) else label
        if name not in names:
            raise UsageError(f"there is no file {label[:40]!r} on the axis; there are {', '.join(names)}")
        if name == names[0]:
            raise UsageError(f"{name} is the file that the others are placed by; give the offset of another one")
        offset_of[name] = round(parse_length(text) * PS_PER_S / NS_PER_S)
    return offset_of
