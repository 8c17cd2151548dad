"""The text of an event structure of 6.x, read back into its words. Source: listing format, section 4."""

from __future__ import annotations

import re

from satview.events.header_names import flag_names
from satview.events.words import sigevent_words
from satview.formats.listing.numbers import BARE_HEX, NUMBER, bare_value, value_of
from satview.formats.listing.patterns import Words

_SIGEVENT = {
    "SIGNAL": re.compile(NUMBER),
    "SIGNAL_CODE": re.compile(rf"{NUMBER} {NUMBER}:{NUMBER}"),
    "SIGNAL_THREAD": re.compile(rf"{NUMBER} {NUMBER}:{NUMBER}"),
    "PULSE": re.compile(rf"{NUMBER}:{NUMBER} {NUMBER}:{NUMBER}"),
    "THREAD": re.compile(f"{BARE_HEX}:{BARE_HEX}"),
}


def sigevent_of(text: str, byte_order: str) -> Words | None:
    """Return the four words of a sigevent of 6.x from its text; None if it is none."""
    critical = 0x100 if text.endswith(" CRITICAL") else 0
    kind, _, rest = text.removesuffix(" CRITICAL").partition(" ")
    if unknown := re.fullmatch(r"UNKNOWN\((?:0x)?([0-9a-f]{1,8})\)", kind):
        return [int(unknown[1], 16), 0, 0, 0]
    notify = next((value for value, name in flag_names("sigev_notify").items() if name == kind), None)
    if notify is None and kind != "":
        return None
    pattern = _SIGEVENT.get(kind)
    values = pattern.fullmatch(rest) if pattern else None
    if pattern and values is None:
        return None
    number = value = code = priority = 0
    if kind == "PULSE" and values:
        number, priority, code, value = (value_of(text) for text in values.groups())
    elif kind == "THREAD" and values:
        code, value = (bare_value(text) for text in values.groups())
    elif values:
        number = value_of(values[1])
        code, value = (value_of(values[2]), value_of(values[3])) if kind != "SIGNAL" else (0, 0)
    return sigevent_words((notify or 0) | critical, number, value, code, priority, byte_order)
