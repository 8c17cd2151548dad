"""Makes the file that puts several traces on one time axis, from what people type."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from platformdirs import user_state_path

from satview.analysis.alignment import PS_PER_S, START, offsets_ps
from satview.base.errors import UsageError
from satview.base.time import NS_PER_S
from satview.base.time_text import parse_length
from satview.events.user_events import UserEvent
from satview.formats.registry import open_trace
from satview.store.arguments import describe_events
from satview.store.axis_file import SUFFIX, AxisEntry, check_entries, names_for, write_axis

_MOST_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class AxisRequest:
    """Which files are to be on one axis, and where.

    Attributes:
        paths: The files, two or more; the first one is what the others are placed by.
        names: What each is called; empty = by the name of its file.
        offsets: Name or number (from 1) of a file to the time from the first event of the first file to its first
            event, as text: `12.5ms`, `-2s`.
        align: `start`, `counter` or an expression that each file has an event for; for files without an offset.
        number: Which of the events that fit the expression, from 1.
        described: Descriptions of events by code, whose fields the expression may name; None = none.
    """

    paths: tuple[Path, ...]
    names: tuple[str, ...] = ()
    offsets: Mapping[str, str] | None = None
    align: str = START
    number: int = 1
    described: Mapping[int, UserEvent] | None = None


def plan(request: AxisRequest, cancelled: Callable[[], bool] | None = None) -> list[AxisEntry]:
    """Return where each file is on the axis; files are read where that follows from their events.

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
    open_ones = [number for number, name in enumerate(names) if number and name not in typed]
    if request.align == START or not open_ones:  # starts are where they are without looking
        return entries
    traces = [open_trace(request.paths[number], None, cancelled) for number in (0, *open_ones)]
    for trace in traces:
        describe_events(trace, request.described or {})
    for number, offset in zip(open_ones, offsets_ps(traces, request.align, request.number)[1:], strict=True):
        entries[number] = AxisEntry(request.paths[number], names[number], offset)
    return entries


def users_axis(entries: Sequence[AxisEntry]) -> Path:
    """Return where the axis of some files is stored for this user; the offsets make no difference."""
    key = "\0".join(str(entry.path.absolute()) for entry in entries)
    name = "+".join(entry.name for entry in entries)[:_MOST_NAME]
    digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return user_state_path("satview", appauthor=False) / "axes" / f"{name}-{digest}{SUFFIX}"


def write_users_axis(entries: Sequence[AxisEntry]) -> Path:
    """Write the axis of some files where it is stored for this user; return the file.

    Raises:
        UsageError: The files cannot be together, or the file cannot be written.
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
    for which, text in offsets.items():
        name = names[int(which) - 1] if which.isdecimal() and 0 < int(which) <= len(names) else which
        if name not in names:
            raise UsageError(f"there is no file {which[:40]!r} on the axis; there are {', '.join(names)}")
        if name == names[0]:
            raise UsageError(f"{name} is the file that the others are placed by; give the offset of another one")
        offset_of[name] = round(parse_length(text) * PS_PER_S / NS_PER_S)
    return offset_of
