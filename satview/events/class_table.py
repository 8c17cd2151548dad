"""The classes of events: numbers in the header word and for TraceEvent(), printed names, first releases, colours.

The data is `resources/events/classes.toml`. A class with one name everywhere, whose events differ only by their number,
is one row there (block `plain`); the enumerations of `wire` and `filters.external` include these classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from satview.events import rows
from satview.events.spec import ClassSpec, Release

_LAST = Release.QNX_8


@dataclass(frozen=True, slots=True)
class PlainClass:
    """An event class that has the same name in C headers, for TraceEvent() and in listings.

    Attributes:
        name: Name of the class, such as `SEC`.
        internal: Number in the header word.
        external: Number of TraceEvent() and of the traceparser library.
        since: First release that has it.
        spec: The class as listings print it.
    """

    name: str
    internal: int
    external: int
    since: Release
    spec: ClassSpec

    @property
    def file(self) -> str:
        """Name of the file under `resources/events` with the events of the class; empty if there is no such file."""
        file = self.name.lower()
        return file if rows.is_there(file) else ""

    def is_in(self, release: Release) -> bool:
        """Return whether a release has the class."""
        return _is_from(self.since, release)


@cache
def plain_classes() -> tuple[PlainClass, ...]:
    """Return the classes whose events differ only by their number, in table order."""
    classes = []
    for line in rows.lines("classes", "plain"):
        name, internal, external, since, light, dark, title = line.split(None, 6)
        spec = ClassSpec(name, title, int(external), int(internal), (int(light, 16), int(dark, 16)))
        classes.append(PlainClass(name, int(internal), int(external), Release(since), spec))
    return tuple(classes)


@cache
def printed_classes() -> tuple[ClassSpec, ...]:
    """Return the classes that listings of QNX print, in table order; EMPTY is the last."""
    specs = []
    for line in rows.lines("classes", "printed"):
        name, internal, external, light, dark, title = line.split(None, 5)
        specs.append(ClassSpec(name, title, int(external), int(internal), (int(light, 16), int(dark, 16))))
    specs += [plain.spec for plain in plain_classes()]
    return tuple(sorted(specs, key=lambda spec: spec.internal == 0))


def undefined_classes() -> tuple[ClassSpec, ...]:
    """Return a class for every number of the header word that no release defines."""
    known = set(internal_classes(_LAST).values())
    unknown = (number for number in range(32) if number not in known)
    return tuple(ClassSpec(f"CLASS {number}", f"Undefined class {number}", None, number) for number in unknown)


@cache
def mark_colours(class_name: str) -> tuple[int, int]:
    """Return the colours 0xRRGGBB of marks of a printed class, in the light and in the dark theme."""
    specs = (spec for spec in printed_classes() if spec.name == class_name)
    return next(specs, ClassSpec(class_name, "", None, 0)).mark_colours


@cache
def external_classes(release: Release) -> dict[str, int]:
    """Return the classes of TraceEvent() and the traceparser library: name without prefix to number."""
    numbers = {
        name: int(number)
        for number, name, since, until in rows.columns("classes", "external")
        if _is_from(Release(since), release) and _is_from(release, Release(until))
    }
    return numbers | {plain.name: plain.external for plain in plain_classes() if plain.is_in(release)}


@cache
def internal_classes(release: Release) -> dict[str, int]:
    """Return the classes of the header word: name to number."""
    numbers = {name: int(number) for number, name in rows.columns("classes", "internal")}
    return numbers | {plain.name: plain.internal for plain in plain_classes() if plain.is_in(release)}


def _is_from(since: Release, release: Release) -> bool:
    if release not in rows.RELEASE_ORDER:
        return False  # UnixWare has classes of its own
    return rows.RELEASE_ORDER.index(since) <= rows.RELEASE_ORDER.index(release)
