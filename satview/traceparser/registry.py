"""From external classes and events, which programs name, to the internal numbers of the header word.

Source: kernel event trace format, section 7.1; listing format, section 6.
"""

from __future__ import annotations

from collections.abc import Iterator

from satview.events import wire
from satview.events.class_table import external_classes, plain_classes
from satview.events.spec import Release
from satview.events.wire import WireClass

ALL_EVENTS = 0xFFFFFFFF
_PLAIN = {
    "CONTROL": WireClass.CONTROL,
    "SYSTEM": WireClass.SYSTEM,
    "USER": WireClass.USER,
    "COMM": WireClass.COMM,
} | {plain.name: WireClass(plain.internal) for plain in plain_classes()}
_KERNEL = {
    "KERCALL": (0, wire.KER_EXIT_OFFSET),
    "KERCALLENTER": (0,),
    "KERCALLEXIT": (wire.KER_EXIT_OFFSET,),
    "KERCALLINT": (wire.KER_INT_OFFSET,),
}
_INTERRUPT = {
    "INT": range(wire.EVENT_MASK + 1),  # with forms that no table names
    "INTENTER": (1, 5),
    "INTEXIT": (2,),
    "INT_HANDLER_ENTER": (3, 6),
    "INT_HANDLER_EXIT": (4,),
}


class RegistrationError(ValueError):
    """A class or event that the library does not take."""


def class_name(number: int, release: Release) -> str:
    """Return the name of an external class.

    Raises:
        RegistrationError: The release has none of that number.
    """
    for name, known in external_classes(release).items():
        if known == number:
            return name
    raise RegistrationError(f"release {release} has no class {number}")


def codes_of(number: int, event: int, release: Release) -> list[int]:
    """Return the internal codes of one external event.

    Raises:
        RegistrationError: The class cannot be registered event by event, or there is no such event.
    """
    name = class_name(number, release)
    if name in _INTERRUPT:
        raise RegistrationError("interrupt classes are registered as a whole range only")
    return list(_codes(name, event, event, release))


def codes_of_range(number: int, first: int, last: int, release: Release) -> list[int]:
    """Return the internal codes of a range of external events, both ends included.

    Raises:
        RegistrationError: As for `codes_of`; interrupt classes take 0 to 0xffffffff only.
    """
    name = class_name(number, release)
    if name in _INTERRUPT:
        if (first, last) != (0, ALL_EVENTS):
            raise RegistrationError("interrupt classes take the range 0 to 0xffffffff only")
        return [wire.code(WireClass.INT, event) for event in _INTERRUPT[name]]
    return list(_codes(name, first, last, release))


def _codes(name: str, first: int, last: int, release: Release) -> Iterator[int]:
    if name == "EMPTY":
        if (first, last) != (0, 0):
            raise RegistrationError("class 0 has event 0 only")
        yield 0
        return
    for offset in _KERNEL.get(name, ()):
        yield from _span(WireClass.KER_CALL, first + offset, last + offset)
    if name in _PLAIN:
        yield from _span(_PLAIN[name], first, last)
    if name in ("THREAD", "VTHREAD"):
        offset = wire.VTHREAD_OFFSET if name == "VTHREAD" else 0
        # 8.0 numbers states; before, an event is one bit.
        ends = (first, last) if release == Release.QNX_8 else (_bit(first), _bit(last))
        yield from _span(WireClass.PR_TH, ends[0] + offset, ends[1] + offset)
    if name == "PROCESS":
        yield from _span(WireClass.PR_TH, (_bit(first) + 1) << 6, (_bit(last) + 1) << 6)


def _span(wire_class: int, first: int, last: int) -> Iterator[int]:
    if not 0 <= first <= wire.EVENT_MASK or not 0 <= last <= wire.EVENT_MASK:
        raise RegistrationError("events go from 0 to 1023")
    return (wire.code(wire_class, event) for event in range(first, last + 1))


def _bit(value: int) -> int:
    """Return the number of the lowest set bit."""
    if value <= 0:
        raise RegistrationError("an event of this class is one bit")
    return (value & -value).bit_length() - 1
