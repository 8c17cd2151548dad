"""The rows of the catalogue as binary layouts, and the decoding of one payload for people to read.

Columns of many events are read with `dtype` or, in hot paths, straight from the slots; `struct` and `decode_payload`
serve single events. Source: kernel event trace format, section 8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import construct
import numpy as np

from satview.events import arguments
from satview.events.catalogue import Catalogue
from satview.events.spec import Argument, EventSpec, Field, Payload, Release, Show
from satview.formats.kev import notation

MINUS_ONE = 0xFFFFFFFF
LAST_ERRNO = 1023
_USER_CLASSES = ("USREVENT", "QUIP")
_OPEN = (Show.STRING, Show.STRUCT)
Choice = tuple[str, tuple[Field, ...]]


def column_names(fields: Sequence[Field]) -> list[str]:
    """Return the names of a list made unique: the second `empty` becomes `empty_2`."""
    seen: dict[str, int] = {}
    names = []
    for field in fields:
        seen[field.name] = seen.get(field.name, 0) + 1
        names.append(field.name if seen[field.name] == 1 else f"{field.name}_{seen[field.name]}")
    return names


def dtype(fields: Sequence[Field], byte_order: str) -> np.dtype[Any]:
    """Return a list of fixed size as a structured dtype, names as in `column_names`.

    Decimal fields are signed, all others unsigned, of 32 or 64 bits without gaps; 64-bit values are memory images of
    the target, so the file's byte order is also the order of their words.

    Raises:
        ValueError: The list ends in text or a structure.
    """
    if any(field.show in _OPEN for field in fields):
        raise ValueError("a list that ends in text has no fixed size")
    mark = "<" if byte_order == "little" else ">"
    kinds = [f"{mark}{'i' if field.show == Show.DEC else 'u'}{4 * field.words}" for field in fields]
    return np.dtype(list(zip(column_names(fields), kinds, strict=True)))


def struct(fields: Sequence[Field], byte_order: str) -> construct.Struct:
    """Return a list as a construct, texts and structures included, names as in `column_names`."""
    end = "l" if byte_order == "little" else "b"
    members = []
    for name, field in zip(column_names(fields), fields, strict=True):
        if field.show == Show.STRING:
            kind = construct.NullTerminated(construct.GreedyBytes, require=False)
        elif field.show == Show.STRUCT:
            kind = construct.GreedyBytes
        else:
            kind = getattr(construct, f"Int{32 * field.words}{'s' if field.show == Show.DEC else 'u'}{end}")
        members.append(name / kind)
    return construct.Struct(*members)


def word_count(fields: Sequence[Field]) -> int:
    """Return the words of the fixed part of a list."""
    return sum(field.words for field in fields)


def is_open(fields: Sequence[Field]) -> bool:
    """Tell whether a list goes on to the end of the payload."""
    return any(field.show in _OPEN for field in fields)


def _fits(fields: tuple[Field, ...] | None, count: int) -> bool:
    if fields is None:
        return False
    need = word_count(fields)
    return count >= need if is_open(fields) else need > 0 and count == need + need % 2


def choose(spec: EventSpec, words: Sequence[int], catalogue: Catalogue) -> Choice:
    """Return the form of a payload and the list that describes it; `raw` and an empty list if none fits.

    Rules of section 8.1: two words are the fast form; else the wide list counts first, rounded up to even, then the
    fast one, then what the printers of 7.1 and 6.4 use; a payload longer than the wide list begins like it.
    """
    count = len(words)
    if special := _special(spec, words):
        return special
    fast_form = "same" if spec.fast == spec.wide else "fast"
    if count == 2 and spec.fast is not None and _fits(spec.fast, 2):
        return fast_form, spec.fast
    if spec.wide is not None and _fits(spec.wide, count):
        return "same" if spec.fast == spec.wide else "wide", spec.wide
    if spec.fast is not None and _fits(spec.fast, count):
        return fast_form, spec.fast
    printed = arguments.listing_lists(spec, catalogue.release)
    old = arguments.UNKNOWN_LISTS if spec.is_64bit else arguments.old_lists(spec.name, spec.class_name)
    for form, fields in zip(("fast", "wide") * 2, (*printed, *old), strict=True):
        if fields is not None and _fits(fields, count):
            return form, fields
    if spec.wide is not None and not is_open(spec.wide) and count > word_count(spec.wide) > 0:
        return "wide", spec.wide
    return "raw", ()


def _special(spec: EventSpec, words: Sequence[int]) -> Choice | None:
    """Return the choice for the events whose word count alone does not tell the list."""
    count = len(words)
    if spec.class_name == "THREAD" and spec.wide is not None and count == 4 and word_count(spec.wide) > 4:
        return "wide", spec.wide[:4]    # no adaptive partitioning: its two words are missing
    if (spec.class_name, spec.name) != ("KER_CALL", "TRACE_EVENT") or spec.wide is None:
        return None
    if spec.is_64bit:
        doubled = tuple(replace(field, words=2) for field in spec.fast or ())
        return ("fast", doubled) if count == 4 else None
    argc = words[0] >> 28 if words else 0   # wide: as many words as the call has arguments
    if count > 2 and 2 < argc <= len(spec.wide) and argc + argc % 2 == count:
        return "wide", spec.wide[:argc]
    return None


def decode_payload(spec: EventSpec, raw: bytes, byte_order: str, catalogue: Catalogue) -> Payload:
    """Return the arguments of one event.

    Args:
        spec: Row of the catalogue for the event's code.
        raw: Payload bytes as in the file, combine slots joined; a cut last word is not decoded.
        byte_order: `little` or `big`.
        catalogue: The release's, for errno names and rules that depend on it.

    Returns:
        The decoded payload; never raises, whatever the bytes. What fits no known list is shown as raw words.
    """
    words = tuple(np.frombuffer(raw, dtype=f"{'<' if byte_order == 'little' else '>'}u4", count=len(raw) // 4).tolist())
    if spec.class_name in _USER_CLASSES:
        return Payload("same", tuple(_user_arguments(raw, words)), words, raw)
    if spec.class_name == "KER_EXIT" and (failed := _failed(spec, words, catalogue)) is not None:
        return Payload("failed" if failed else "raw", tuple(failed or _raw(words, 0)), words, raw)
    form, fields = choose(spec, words, catalogue)
    return Payload(form, tuple(_arguments(spec, fields, raw, words, byte_order=byte_order, catalogue=catalogue)),
                   words, raw)


def _raw(words: Sequence[int], first: int) -> Iterator[Argument]:
    return (notation.raw_word(words, index) for index in range(first, len(words)))


def _failed(spec: EventSpec, words: Sequence[int], catalogue: Catalogue) -> list[Argument] | None:
    """Return the arguments of a failed call (section 8.3), None if it did not fail, empty if it cannot be told."""
    doubt = "or data, if the call itself returned -1"
    if len(words) < 2 or words[0] != MINUS_ONE:
        return None
    if len(words) == 2 and (not spec.is_64bit or words[1] <= LAST_ERRNO):
        ret_val = Argument("ret_val", -1, "-1", 0, 1)
        return [ret_val, notation.errno_argument(words[1], 1, catalogue, doubt)]
    first_is_64bit = spec.wide is None or (spec.wide[:1] and spec.wide[0].words == 2)
    if not spec.is_64bit or not first_is_64bit:
        return [] if spec.is_64bit and len(words) == 2 else None
    if words[1] != MINUS_ONE:
        return [] if len(words) == 2 else None
    ret_val = Argument("ret_val", -1, "-1", 0, 2)
    if len(words) == 4 and 1 <= words[2] <= LAST_ERRNO:
        return [ret_val, notation.errno_argument(words[2], 2, catalogue, doubt)]
    return [replace(ret_val, note="errno unknown"), *_raw(words, 2)]


def _user_arguments(raw: bytes, words: Sequence[int]) -> Iterator[Argument]:
    """Yield the text or the words of a user event; the file does not tell which it was (section 8.9)."""
    text, nul, rest = raw.partition(b"\0")
    if len(words) > 2 and text and nul and not any(rest) and _is_text(text):
        yield notation.text_argument("text", text, 0, len(words))
        return
    for index, word in enumerate(words):
        yield Argument(f"d{index}", word, notation.hex_text(word, 1), index, 1)


def _is_text(data: bytes) -> bool:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return re.sub("[\t\n]", "", text).isprintable()


def _arguments(
    spec: EventSpec, fields: tuple[Field, ...], raw: bytes, words: Sequence[int], *, byte_order: str,
    catalogue: Catalogue,
) -> Iterator[Argument]:
    """Yield the arguments of a list, then what the payload has beyond it."""
    at = 0
    done: list[Argument] = []
    for index, field in enumerate(fields):
        if field.show == Show.MSG_MORE:
            continue                  # belongs to the item before it
        if field.show == Show.STRING:
            yield from _texts(fields[index:], raw, at, len(words))
            return
        if field.show == Show.STRUCT:
            yield from _structure(raw, words, at, byte_order, catalogue)
            return
        if field.show == Show.MSG:
            more = _run(fields[index + 1:])
            argument = notation.message(field, raw, words, at, 1 + more)
        else:
            argument = notation.number_argument(spec, field, _value(words, at, field.words, byte_order), at,
                                                is_first=not done, catalogue=catalogue)
        yield argument
        done.append(argument)
        at += argument.words
    padding = fields and len(words) == at + 1 and at % 2
    if not (padding and words[at] == 0):
        yield from _raw(words, at)


def _run(fields: Sequence[Field]) -> int:
    length = 0
    for field in fields:
        if field.show != Show.MSG_MORE:
            break
        length += 1
    return length


def _value(words: Sequence[int], at: int, count: int, byte_order: str) -> int:
    if count == 1:
        return words[at]
    low, high = words[at:at + 2] if byte_order == "little" else (words[at + 1], words[at])
    return low | high << 32


def _texts(fields: Sequence[Field], raw: bytes, at: int, end: int) -> Iterator[Argument]:
    """Yield the texts that end a payload, one after the other, each up to its NUL or the end."""
    start = 4 * at
    for field in fields:
        if start >= 4 * end and start > 4 * at:
            return
        stop = raw.find(b"\0", start, 4 * end)
        stop = 4 * end if stop < 0 else stop
        yield notation.text_argument(field.name, raw[start:stop], start // 4, max(0, -(-stop // 4) - start // 4))
        start = stop + 1


def _structure(
    raw: bytes, words: Sequence[int], at: int, byte_order: str, catalogue: Catalogue
) -> Iterator[Argument]:
    if catalogue.release == Release.QNX_6 and len(words) >= at + notation.SIGEVENT_WORDS:
        yield notation.sigevent(words, raw, at, byte_order)
        at += notation.SIGEVENT_WORDS
        if len(words) == at + 1 and words[at] == 0:
            return
    yield from _raw(words, at)
