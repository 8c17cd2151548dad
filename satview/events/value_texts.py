"""Texts for the values of arguments, from the tables and from files of event descriptions.

The details of an event show these texts, and filter expressions compare with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from satview.base.safe_text import visible_line
from satview.events.catalogue import catalogue
from satview.events.header_names import flag_names
from satview.events.spec import Release
from satview.events.user_events import ValueText

_ERRORS: Final = 1024
_POWER_IDLE: Final = 0x10000
_BITS: Final = {
    ("SYSTEM", "RUNSTATE", "bitset"): "runstate",
    ("SYSTEM", "TIMER", "flags"): "timer",
    ("SEC", "ABLE", "flags"): "able",
}
_VALUES: Final = {("SEC", "PATH_ATTACH", "status"): "path_attach", ("SEC", "QNET_CONNECT", "status"): "qnet_connect"}
_NONE: Final = {
    ("SEC", "ABLE", "flags"): ValueText(0, "DENY"),
    ("SYSTEM", "TIMER", "timer_id"): ValueText(0xFFFFFFFF, "TimerTimeout()"),
}


@cache
def table_texts(release: Release, code: int, name: str) -> tuple[ValueText, ...]:
    """Return the texts that the tables of a release have for values of an argument; empty for most arguments."""
    if name == "errno":
        return error_texts(release)
    if name == "policy":
        return _values("policy")
    spec = catalogue(release).spec(code)
    key = (spec.class_name, spec.name, name)
    if key == ("SYSTEM", "POWER", "bitset"):
        return tuple(_power())
    bits = (ValueText(bit, text, bit) for bit, text in flag_names(_BITS[key]).items()) if key in _BITS else ()
    values = _values(_VALUES[key]) if key in _VALUES else ()
    return (*bits, *values, *([_NONE[key]] if key in _NONE else ()))


@cache
def error_texts(release: Release) -> tuple[ValueText, ...]:
    """Return the names of the error numbers of a release, in the order of the numbers."""
    book = catalogue(release)
    named = ((number, book.errno_name(number)) for number in range(_ERRORS))
    return tuple(ValueText(number, text) for number, text in named if text is not None)


@cache
def _values(table: str) -> tuple[ValueText, ...]:
    return tuple(ValueText(value, text) for value, text in flag_names(table).items())


def _power() -> Iterator[ValueText]:
    """Yield the texts of the bits of POWER; the meaning of some bits depends on the bit IDLE."""
    yield from (ValueText(bit, text, bit) for bit, text in flag_names("power").items())
    for table, idle in (("power_idle", _POWER_IDLE), ("power_frequency", 0)):
        yield from (ValueText(bit | idle, text, bit | _POWER_IDLE) for bit, text in flag_names(table).items())


def shown_texts(texts: Sequence[ValueText], value: int, numbers: Mapping[str, int]) -> str | None:
    """Return all texts that fit a value, separated by spaces; None if there are none; `numbers` as in `fits`."""
    return " ".join(visible_line(text.text) for text in texts if text.fits(value, numbers)) or None


def called(texts: Sequence[ValueText], wanted: str) -> list[tuple[ValueText, ...]]:
    """Return groups of texts: a value is shown as `wanted` if it has all texts of one group.

    `wanted` may be one text (`late`), several (`ALLOW IS_ROOT`), or have the number before or behind it (`5 key`,
    `ETIMEDOUT (260)`).
    """
    single: list[tuple[ValueText, ...]] = [(text,) for text in texts if text.text == wanted]
    if single:
        return single
    number, text = _with_number(wanted)
    if number is not None:
        exact = ValueText(number, wanted)
        return [(exact, *group) for group in called(texts, text)]
    group, rest = [], wanted
    for value_text in texts:
        name = value_text.text
        if name and (rest == name or rest.startswith(f"{name} ")):
            group.append(value_text)
            rest = rest[len(name) + 1 :]
    return [tuple(group)] if group and not rest else []


def _with_number(shown: str) -> tuple[int | None, str]:
    """Return number and text from `0x5 key` or `key (5)`; None and an empty text for other forms."""
    before, _, text = shown.partition(" ")
    behind = shown.rpartition(" (")
    for number, rest in ((before, text), (behind[2].removesuffix(")"), behind[0])):
        try:
            if rest:
                return int(number[:20], 0), rest
        except ValueError:
            continue
    return None, ""
