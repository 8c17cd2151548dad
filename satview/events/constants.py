"""Numbers of the programming interface: external classes, TraceEvent() modes, bits inside payloads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from satview.events import rows
from satview.events.spec import Release

ARGC_SHIFT = 28   # a mode's argument count stands in its top four bits


@dataclass(frozen=True, slots=True)
class TraceMode:
    """One mode of TraceEvent().

    Attributes:
        name: `_NTO_TRACE_ADDCLASS`.
        number: Number of the mode alone.
        argc: Arguments of the call, the mode included.
        since: First release that has it.
    """

    name: str
    number: int
    argc: int
    since: Release

    @property
    def value(self) -> int:
        """What a program passes as first argument."""
        return self.argc << ARGC_SHIFT | self.number


@cache
def trace_modes() -> tuple[TraceMode, ...]:
    """Return the modes of TraceEvent() in the order of their numbers."""
    return tuple(TraceMode(name, int(number), int(argc), Release(since))
                 for number, argc, since, name in rows.columns("trace_modes", "modes"))


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
    return {name: int(number) for number, name, since in rows.columns("classes", "internal")
            if rows.RELEASE_ORDER.index(Release(since)) <= here}


@cache
def flag_names(table: str) -> dict[int, str]:
    """Return a table of bits or values of `flags.toml`: `power`, `runstate`, `able`, `path_attach`, `timer`, ..."""
    return rows.numbers("flags", table)
