"""Numbers of the programming interface: external classes, bits inside payloads."""

from __future__ import annotations

from functools import cache

from satview.events import rows
from satview.events.spec import Release


@cache
def external_classes(release: Release) -> dict[str, int]:
    """Return the classes that TraceEvent() and the traceparser library know, without prefix, and their numbers."""
    here = rows.RELEASE_ORDER.index(release)
    found = {}
    for number, name, first, last in rows.columns("classes", "external"):
        if rows.RELEASE_ORDER.index(Release(first)) <= here <= rows.RELEASE_ORDER.index(Release(last)):
            found[name] = int(number)
    return found


@cache
def internal_classes(release: Release) -> dict[str, int]:
    """Return the classes of the header word and their numbers."""
    here = rows.RELEASE_ORDER.index(release)
    return {
        name: int(number)
        for number, name, since in rows.columns("classes", "internal")
        if rows.RELEASE_ORDER.index(Release(since)) <= here
    }


@cache
def flag_names(table: str) -> dict[int, str]:
    """Return a table of bits or values of `flags.toml`: `power`, `runstate`, `able`, `path_attach`, `timer`, ..."""
    return rows.numbers("flags", table)
