"""The bits of a trace slot, the classes of events, and numbers of internal classes and events that code refers to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from satview.events import rows
from satview.events.spec import ClassSpec, Release

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# The classes of events: numbers in the header word and for TraceEvent(), printed names, first releases, colours.
#
# The data is `resources/events/classes.toml`. A class with one name everywhere, whose events differ only by their
# number, is one row there (block `plain`); the enumerations of `wire` and `filters.external` include these classes.


_LAST = Release.QNX_8


@dataclass(frozen=True, slots=True)
class PlainClass:
    """An event class that has the same name in C headers, for TraceEvent() and in listings.

    Attributes:
        internal: Number in the header word.
        external: Number of TraceEvent() and of the traceparser library.
        since: First release that has the class.
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


# The bits of a trace slot, and the numbers of internal classes and of events that code refers to.
#
# Source: kernel event trace format, sections 3 and 7. Names and arguments of all events are data in `resources/events`.


SLOT_BYTES: Final = 16

EVENT_MASK: Final = 0x3FF
CLASS_SHIFT: Final = 10
CLASS_MASK: Final = 0x1F
CODE_MASK: Final = 0x7FFF  # class and event together: 15 bits, the `code` column of every table
PROCESS_INJECTED: Final = 0x10000  # 8.0: a process, not the kernel, supplied the event
CPU_SHIFT: Final = 24
CPU_MASK: Final = 0x3F
MAX_CPUS: Final = 64
FAST_WORDS: Final = 2  # payload words of an event of one slot
STRUCT_SHIFT: Final = 30
CODE_COUNT: Final = CODE_MASK + 1


class Struct(IntEnum):
    """Bits 30 and 31 of the header word: a simple event, or begin, continuation or end of a combine event."""

    SIMPLE = 0
    COMBINE_BEGIN = 1
    COMBINE_CONTINUE = 2
    COMBINE_END = 3


class WireClass(IntEnum):
    """Internal classes of the header word, including those of `plain_classes`."""

    _ignore_ = "plain"
    EMPTY = 0
    CONTROL = 1
    KER_CALL = 2
    INT = 3
    PR_TH = 4
    SYSTEM = 5
    USER = 6
    COMM = 7
    for plain in plain_classes():
        vars()[plain.name] = plain.internal


def code(wire_class: int, event: int) -> int:
    """Return the 15-bit code of an internal class and event number."""
    return (wire_class & CLASS_MASK) << CLASS_SHIFT | (event & EVENT_MASK)


def class_of(event_code: int) -> int:
    """Return the internal class of a code."""
    return event_code >> CLASS_SHIFT & CLASS_MASK


def event_of(event_code: int) -> int:
    """Return the 10-bit event number of a code."""
    return event_code & EVENT_MASK


def are_of_threads(codes: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Return whether each code is a thread event, bool of the same shape: class PR_TH with a number below 64.

    Source: section 7.1.
    """
    result: NDArray[np.bool_] = (codes >> CLASS_SHIFT == WireClass.PR_TH) & (codes & EVENT_MASK < 64)
    return result


CONTROL_TIME: Final = code(WireClass.CONTROL, 1)
CONTROL_BUFFER: Final = code(WireClass.CONTROL, 2)
CONTROL_BUFFER_END: Final = code(WireClass.CONTROL, 4)
CONTROL_DROPPED: Final = code(WireClass.CONTROL, 8)
BUFFER_END_COOKIE: Final = 0xE6E6E6E6

KER_EXIT_OFFSET: Final = 128  # event number of a kernel call's exit = call number + 128
KER_INT_OFFSET: Final = 256  # ... of its interrupted form
KER_FORM: Final = KER_EXIT_OFFSET | KER_INT_OFFSET  # mask for exit and interrupted form of a kernel call; 0 = entry
KER_64BIT: Final = 0x200  # 7.x on: payload holds 64-bit values

THREAD_RUNNING: Final = code(WireClass.PR_TH, 1)
THREAD_CREATE: Final = code(WireClass.PR_TH, 24)
THREAD_DESTROY: Final = code(WireClass.PR_TH, 25)
VTHREAD_OFFSET: Final = 26  # up to 7.x: virtual thread events follow the 26 thread events
PROC_CREATE: Final = code(WireClass.PR_TH, 64)
PROC_DESTROY: Final = code(WireClass.PR_TH, 128)
PROC_CREATE_NAME: Final = code(WireClass.PR_TH, 192)
PROC_DESTROY_NAME: Final = code(WireClass.PR_TH, 256)
PROC_THREAD_NAME: Final = code(WireClass.PR_TH, 320)
