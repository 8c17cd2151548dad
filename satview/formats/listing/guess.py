"""Finds the release of a listing from its events, where the header does not: columns, names, numbers of calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import EventSpec, Release
from satview.events.wire import WireClass

_ONLY_8: Final = re.compile(r"INTERRUPT\s*:|CONTROL\s*:\s*(?:BUFFER_END|DROPPED)\b")
_CALL: Final = re.compile(r"KER_(?:CALL|EXIT)\s*:\s*(\w+)/(\d{1,3})\b")
_NEW_COLUMN: Final = re.compile(r"[A-Z_ ]{16}:")  # the class column of 7.1 on
_OLD_COLUMN: Final = re.compile(r"[A-Z_]+ *:(?! )|CONTROL: BUFFER")
_WIDE_STAMP: Final = re.compile(r"t:0x[1-9a-f][0-9a-f]{8,}")
_NEW: Final = (Release.QNX_7, Release.QNX_8, Release.QNX_6_6)
_OLD: Final = (Release.QNX_6, Release.QNX_7, Release.QNX_8, Release.QNX_6_6)
_ORDER: Final = (Release.QNX_7, Release.QNX_8, Release.QNX_6_6, Release.QNX_6)


def possible_releases(events: Sequence[tuple[str, str]]) -> tuple[Release, ...]:
    """Return the releases that events may be of; of several the likelier before.

    Events that 8.0 alone has decide. Else it is the release that knows most of the kernel calls by number and name; of
    several, 6.x and 6.6 for their narrow class column, and 7.x and 8.0 for the wide one or stamps of more than 32 bits.

    Args:
        events: What is behind `CPU:00 ` of some events, and what is before it.
    """
    calls: set[tuple[str, int]] = set()
    is_new: bool | None = None
    for text, time in events:
        if _ONLY_8.match(text):
            return (Release.QNX_8,)
        if call := _CALL.match(text):
            calls.add((call[1], int(call[2])))
        if is_new is None and _NEW_COLUMN.match(text):
            is_new = True
        elif is_new is None and _OLD_COLUMN.match(text):
            is_new = False
        if is_new is None and _WIDE_STAMP.search(time):
            is_new = True
    candidates = _ORDER if is_new is None else _NEW if is_new else _OLD
    known = [_known_calls(release, calls) for release in candidates]
    return tuple(release for release, count in zip(candidates, known, strict=True) if count == max(known))


def _known_calls(release: Release, calls: Iterable[tuple[str, int]]) -> int:
    names = catalogue(release)
    return sum(
        _has_call(names.spec(wire.code(WireClass.KER_CALL, number)), name)
        for name, number in calls
        if number < wire.KER_EXIT_OFFSET
    )


def _has_call(spec: EventSpec, name: str) -> bool:
    return name in (spec.name, spec.label)
