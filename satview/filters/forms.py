"""Where a named argument stands in a payload, given the event and how many words it has.

The same rules as for showing one payload (kernel event trace format, section 8.1), but decided by code and word count
alone, so that they can be looked up for a million events at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from satview.events import arguments
from satview.events.catalogue import catalogue
from satview.events.spec import EventSpec, Field, Release, Show
from satview.events.wire import KER_EXIT_OFFSET, WireClass, class_of, event_of

MINUS_ONE: Final = 0xFFFFFFFF
LAST_ERRNO: Final = 1023
_OPEN: Final = (Show.STRING, Show.STRUCT)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an argument is.

    Attributes:
        word: Its first payload word.
        words: 1 or 2; 0 = text up to the end of the payload.
        is_signed: Whether the number is signed.
        text_index: Of several texts one after the other, which; 0 for the first.
    """

    word: int
    words: int
    is_signed: bool
    text_index: int = 0


def is_same_name(one: str, other: str) -> bool:
    """Tell whether two spellings name one argument: releases write the first word of a message `msg` or `msg[0]`."""
    return one == other or one.removesuffix("[0]") == other.removesuffix("[0]")


def _size(fields: Sequence[Field]) -> int:
    return sum(item.words for item in fields)


def _fits(fields: Sequence[Field] | None, count: int) -> bool:
    if fields is None:
        return False
    need = _size(fields)
    if any(item.show in _OPEN for item in fields):
        return count >= need
    return need > 0 and count == need + need % 2


def fields_for(spec: EventSpec, count: int) -> tuple[Field, ...]:
    """Return the list that describes a payload of `count` words; empty if none fits."""
    special = _special(spec, count)
    if special is not None:
        return special
    candidates = [spec.fast if count == 2 else None, spec.wide, spec.fast]
    if not spec.is_64bit:
        candidates += arguments.old_lists(spec.name, spec.class_name)
    for fields in candidates:
        if fields is not None and _fits(fields, count):
            return fields
    is_longer = spec.wide is not None and count > _size(spec.wide) > 0
    return spec.wide if is_longer and spec.wide and not any(item.show in _OPEN for item in spec.wide) else ()


def _special(spec: EventSpec, count: int) -> tuple[Field, ...] | None:
    """Return the list of the events whose word count alone does not tell it; None for all others."""
    if spec.class_name == "THREAD" and spec.wide is not None and count == 4 and _size(spec.wide) > 4:
        return spec.wide[:4]  # no adaptive partitioning: its two words are missing
    if (spec.class_name, spec.name) != ("KER_CALL", "TRACE_EVENT") or spec.wide is None:
        return None
    if spec.is_64bit:
        return tuple(replace(item, words=2) for item in spec.fast or ()) if count == 4 else None
    return spec.wide[:count] if count > 2 else None  # as many words as the call has arguments


@lru_cache(maxsize=1 << 14)
def place_of(release: Release, code: int, count: int, name: str) -> Place | None:
    """Return where an argument of a given name stands, None if events of that code and size have none."""
    fields = fields_for(catalogue(release).spec(code), count)
    word = text_index = 0
    for item in fields:
        if item.show is Show.STRUCT:
            return None
        if is_same_name(item.name, name) and (item.show is Show.STRING or word + item.words <= count):
            return Place(word, item.words, item.show is Show.DEC, text_index)
        word += item.words
        text_index += item.show is Show.STRING
    return None


@lru_cache(maxsize=1 << 12)
def text_place(release: Release, code: int, count: int) -> Place | None:
    """Return where the text of an event stands; user events may be text from their first word on."""
    if class_of(code) in (WireClass.USER, WireClass.QUIP):
        return Place(0, 0, False) if count > 2 else None
    word = 0
    for item in fields_for(catalogue(release).spec(code), count):
        if item.show is Show.STRUCT:
            return None
        if item.show is Show.STRING:
            return Place(word, 0, False)
        word += item.words
    return None


def is_exit(code: int) -> bool:
    """Tell whether a code is the exit of a kernel call, whose payload may say that the call failed."""
    return class_of(code) == WireClass.KER_CALL and event_of(code) >> 7 & 3 == KER_EXIT_OFFSET >> 7


def error_of(words: Sequence[int], is_64bit: bool) -> int | None:
    """Return the error of a kernel call from the payload of its exit; None if it did not fail (section 8.3)."""
    if len(words) < 2 or words[0] != MINUS_ONE:
        return None
    if len(words) == 2 and (not is_64bit or words[1] <= LAST_ERRNO):
        return words[1]
    if is_64bit and len(words) == 4 and words[1] == MINUS_ONE and 1 <= words[2] <= LAST_ERRNO:
        return words[2]
    return None


def text_of(payload: bytes, place: Place, is_user: bool) -> str | None:
    """Return the text at a place; None if there is none, or a user event's payload is no text (section 8.9)."""
    rest = payload[4 * place.word :]
    parts = rest.split(b"\0", place.text_index + 1)
    if place.text_index >= len(parts):
        return None
    data = parts[place.text_index]
    if not is_user:
        return data.decode("utf-8", "replace")
    if not data or len(parts) < 2 or parts[1].strip(b"\0"):
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if text.replace("\t", "").replace("\n", "").isprintable() else None
