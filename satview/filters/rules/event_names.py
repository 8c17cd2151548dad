"""Names of events in rules, and TraceEvent()'s argument for each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.filters.external import INT_CLASSES, PROCESS_NAMES, ExternalClass, external_of, has_event_masks

PREFIX: Final = "_NTO_TRACE_"  # of the names in sys/trace.h, which rules may leave out
_INTERRUPT: Final = re.compile(r"^interrupt ", re.IGNORECASE)  # before the number, as the window shows it
NUMBER: Final = re.compile(r"0[xX][0-9A-Fa-f]{1,16}|[0-9]{1,20}")


@cache
def names_of_class(external: ExternalClass, release: Release) -> dict[str, int]:
    """Return the event names of a class and TraceEvent()'s argument for each; empty where events are numbers.

    Shared: not to be changed.
    """
    if external in INT_CLASSES or external in (ExternalClass.USER, ExternalClass.EMPTY):
        return {}
    if external is ExternalClass.PROCESS:
        return {name: 1 << i for i, name in enumerate(PROCESS_NAMES)}
    requested = ExternalClass.KERCALLENTER if external is ExternalClass.KERCALL else external
    book = catalogue(release)
    found: dict[str, int] = {}
    for code in book.codes():
        address = external_of(code, release)
        if address.external is requested:
            name = book.name(code).removesuffix("_64")
            found.setdefault(name, 1 << address.number if _is_bit(external, release) else address.number)
    return found


def _is_bit(external: ExternalClass, release: Release) -> bool:
    return has_event_masks(external, release) and external is not ExternalClass.CONTROL


def event_argument(name: str, external: ExternalClass, release: Release) -> int | None:
    """Return the event argument for a name or number, None if the class has no such event; `|` joins bits of a mask."""
    if external in INT_CLASSES:
        name = _INTERRUPT.sub("", name)
    if NUMBER.fullmatch(name):
        return int(name, 0) if name[:2].lower() == "0x" else int(name)
    if "|" in name and has_event_masks(external, release):
        parts = [event_argument(part.strip(), external, release) for part in name.split("|")]
        known = [part for part in parts if part is not None]
        return None if len(known) < len(parts) else _bit_union(known)
    names = names_of_class(external, release)
    requested = name.upper()
    for spelling in (requested, requested.removeprefix(PREFIX), f"TH{requested}", f"VTH{requested}"):
        if spelling in names:
            return names[spelling]
    arguments = []
    for code in catalogue(release).find(name[:100]):
        address = external_of(code, release)
        is_in = address.external is external or (
            external is ExternalClass.KERCALL and address.external is ExternalClass.KERCALLENTER
        )
        if is_in:
            arguments.append(1 << address.number if _is_bit(external, release) else address.number)
    is_public_call = name != name.upper()  # one may be behind several kernel calls
    return arguments[0] if arguments and (not is_public_call or len({*arguments}) == 1) else None


def _bit_union(bits: Sequence[int]) -> int:
    result = 0
    for bit in bits:
        result |= bit
    return result


def event_text(external: ExternalClass, event: int, release: Release) -> str:
    """Return an event argument as it is written in a rule: names with `|` between for masks, else a name or number."""
    by_number = {number: name for name, number in reversed(names_of_class(external, release).items())}
    if event in by_number:
        return by_number[event]
    if not has_event_masks(external, release) or not event:
        return str(event)
    named = [name for bit, name in by_number.items() if bit & event == bit]
    rest = event & ~_bit_union([bit for bit in by_number if bit & event == bit])
    parts = sorted(named, key=lambda name: names_of_class(external, release)[name])
    return "|".join([*parts, *([hex(rest)] if rest else [])])
