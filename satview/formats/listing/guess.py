"""Finds the release of a listing from its events, where the header does not: columns, names, numbers of calls."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import EventSpec, Release
from satview.events.wire import WireClass

_ONLY_8: Final = re.compile(r"INTERRUPT\s*:|CONTROL\s*:\s*(?:BUFFER_END|DROPPED)\b")
_CALL: Final = re.compile(r"KER_(?:CALL|EXIT)\s*:\s*(\w+)/(\d{1,3})\b")
_NEW_COLUMN: Final = re.compile(r"[A-Z_ ]{16}:")  # the class column of 7.1 on
_ORDER: Final = (Release.QNX_7, Release.QNX_8, Release.QNX_6_6, Release.QNX_6)


def guess_release(texts: Iterable[str]) -> Release:
    """Return the release whose events these are.

    Events that 8.0 alone has decide. Else it is the release that knows most of the kernel calls by number and name; of
    several, 6.x for its narrow class column and 7.x for the wide one.

    Args:
        texts: What is behind `CPU:00 ` of some events.
    """
    calls: set[tuple[str, int]] = set()
    is_new: bool | None = None
    for text in texts:
        if _ONLY_8.match(text):
            return Release.QNX_8
        if call := _CALL.match(text):
            calls.add((call[1], int(call[2])))
        if is_new is None:
            is_new = _NEW_COLUMN.match(text) is not None
    order = _ORDER if is_new else (Release.QNX_6, *_ORDER[:-1])
    candidates = order[:-1] if is_new else order
    return max(candidates, key=lambda release: _known_calls(release, calls))  # the first of equal ones


def _known_calls(release: Release, calls: Iterable[tuple[str, int]]) -> int:
    names = catalogue(release)
    return sum(
        _has_call(names.spec(wire.code(WireClass.KER_CALL, number)), name)
        for name, number in calls
        if number < wire.KER_EXIT_OFFSET
    )


def _has_call(spec: EventSpec, name: str) -> bool:
    return name in (spec.name, spec.label)
