"""Decodes the payload of one event into named arguments with their notation, using construct structs.

Source: kernel event trace format, section 8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from struct import unpack
from typing import Any, Final

import construct

from satview.base.safe_text import byte_text
from satview.events import variants
from satview.events.catalogue import Catalogue
from satview.events.layout import Layout, PayloadPart, layout_of, part_names
from satview.events.spec import Argument, EventSpec, Payload, Release, Show
from satview.events.user_events import UserEvent
from satview.events.wire import FAST_WORDS
from satview.events.words import join64
from satview.formats.kev import notation

SLOT_PAYLOAD_BYTES = 8
REST = " rest"  # the blank keeps it different from any argument


def _member(part: PayloadPart, end: str) -> construct.Construct:
    if part.is_text:
        return construct.NullTerminated(construct.GreedyBytes, require=False)
    if part.show is Show.STRUCT:
        return _sigevent(end)
    return getattr(construct, f"Int{32 * part.words}{'s' if part.is_signed else 'u'}{end}")


def _sigevent(end: str) -> construct.Struct:
    """Return the event structure of 6.x (section 8.6)."""
    word, half = getattr(construct, f"Int32u{end}"), getattr(construct, f"Int16s{end}")
    return construct.Struct("notify" / word, "number" / word, "value" / word, "code" / half, "priority" / half)


def struct_of(layout: Layout, byte_order: str) -> construct.Struct:
    """Return the construct of a layout; its member `REST` takes the bytes after the last part."""
    end = "l" if byte_order == "little" else "b"
    known = [part for part in layout.parts if part.words or part.is_text]
    members = [name / _member(part, end) for name, part in zip(part_names(layout), known, strict=False)]
    return construct.Struct(*members, REST / construct.Default(construct.GreedyBytes, b""))


@lru_cache(maxsize=1 << 12)
def prepared(
    release: Release, code: int, count: int, variant: int, byte_order: str
) -> tuple[Layout, tuple[str, ...], construct.Struct]:
    """Return the layout of a payload, the names of the construct's members, and the construct; cached."""
    layout = layout_of(release, code, count, variant)
    return layout, part_names(layout), struct_of(layout, byte_order)


def build(layout: Layout, values: Mapping[str, Any], byte_order: str) -> bytes:
    """Return the payload for values by member name, padded with zeros to whole slots as the kernel does.

    Raises:
        construct.ConstructError: A value is missing, or does not fit its member.
    """
    data: bytes = struct_of(layout, byte_order).build(values)
    return data + bytes(-len(data) % SLOT_PAYLOAD_BYTES)


MORE: Final = "\N{HORIZONTAL ELLIPSIS}"  # name of the argument for words that a preview leaves out
_DOUBT = "or data, if the call itself returned -1"


def decode_payload(
    spec: EventSpec,
    raw: bytes,
    byte_order: str,
    catalogue: Catalogue,
    most: int | None = None,
    listed: int | None = None,
) -> Payload:
    """Return the arguments of one event.

    Args:
        spec: Row of the catalogue for the event's code.
        raw: Payload bytes from all slots of the event; an incomplete last word is not decoded.
        byte_order: `little` or `big`.
        catalogue: The release's, for errno names and rules that depend on it.
        most: Limit for giant events, as for `PayloadSource.decode`.
        listed: Variant of the layout for an event from a line of a listing; None = determined from the payload.

    Returns:
        The decoded payload; a payload that fits no known list becomes raw words. No payload raises an error.
    """
    count = len(raw) // 4
    whole = raw[: 4 * count]
    words = unpack(f"{'<' if byte_order == 'little' else '>'}{count}I", whole)
    if listed is not None:
        layout = layout_of(catalogue.release, spec.code, count, listed)
        shown = _Decoder(spec, layout, whole, words, catalogue, most).listed(byte_order)
        return Payload(layout.form, tuple(shown), words, raw)
    if variants.is_user(spec.code):
        # A user event does not show whether its words are text (section 8.9): they are if they can be read as text.
        variant = variants.BY_COUNT if variants.user_text(whole) is None else variants.TEXT
    else:
        variant = variants.variant_of(catalogue.release, spec.code, words)
    layout, names, struct = prepared(catalogue.release, spec.code, count, variant, byte_order)
    values = struct.parse(whole)
    payload = _Decoder(spec, layout, whole, words, catalogue, most)
    arguments = payload.failed() if variant in variants.FAILURES else payload.arguments(names, values)
    return Payload(layout.form, tuple(arguments), words, raw)


def with_description(payload: Payload, event: UserEvent, byte_order: str) -> Payload:
    """Return a payload with the fields of a user's description as arguments, as far as the payload contains them.

    The fields come before the raw words of a user event, and after the known arguments of other events.
    """
    is_wide = not variants.is_user(event.code) and len(payload.words) > FAST_WORDS
    taken = {argument.name for argument in payload.arguments}
    described: list[Argument] = []
    for index, (field, byte, data, text) in enumerate(event.shown(payload.raw, byte_order, is_wide=is_wide)):
        name = plain = field.label or f"field {index}"
        number = 1
        while name in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name)
        value = field.number(data, byte_order) if field.is_number else text
        first_word, end = byte // 4, -(-(byte + len(data)) // 4)
        described.append(Argument(name, value, text, first_word, end - first_word))
    own = payload.arguments
    return replace(payload, arguments=(*described, *own) if variants.is_user(event.code) else (*own, *described))


class _Decoder:
    """Creates the arguments of one payload."""

    def __init__(
        self, spec: EventSpec, layout: Layout, raw: bytes, words: Sequence[int], catalogue: Catalogue,
        most: int | None,
    ) -> None:  # fmt: skip
        self._most = most
        self.spec, self.layout, self.raw, self.words, self.catalogue = spec, layout, raw, words, catalogue

    def arguments(self, names: Sequence[str], values: Mapping[str, Any]) -> Iterator[Argument]:
        """Yield the arguments of the layout, then the words that it does not describe."""
        parts = self.layout.parts
        text_start = -1
        for index, (part, name) in enumerate(zip(parts, names, strict=True)):
            # The words of a message are shown as one text, like in traceprinter.
            if part.show is Show.MSG_MORE:
                continue  # part of the message before it
            if part.is_text:
                # Texts follow each other without alignment (section 8.10), so only the first text begins at the
                # position in the layout.
                text_start = 4 * part.word if text_start < 0 else text_start
                if text_start >= len(self.raw) and part.text_index:
                    return
                yield self.text(part, values[name], text_start)
                text_start += len(values[name]) + 1
            elif part.show is Show.MSG:
                yield notation.message(part.name, self.raw, self.words, part.word, self.layout.message_words(index))
            elif part.show is Show.STRUCT:
                if part.words:
                    yield notation.sigevent(values[name], self.raw, part.word)
            else:
                yield notation.number_argument(self.spec, part, values[name], self.catalogue)
        yield from self.rest()

    def listed(self, byte_order: str) -> Iterator[Argument]:
        """Yield the arguments of an event from a line of a listing, in the order of the line."""
        for index, part in enumerate(self.layout.parts):
            if part.is_text:
                data = (self.raw[4 * part.word :].split(b"\0", part.text_index + 1) + [b""] * 2)[part.text_index]
                start = 4 * part.word + sum(
                    len(text) + 1 for text in self.raw[4 * part.word :].split(b"\0")[: part.text_index]
                )
                yield self.text(part, data, start)
            elif part.show is Show.MSG:
                yield notation.message(part.name, self.raw, self.words, part.word, self.layout.message_words(index))
            elif part.show is not Show.MSG_MORE:
                first_word = self.words[part.word]
                value = first_word if part.words == 1 else join64(first_word, self.words[part.word + 1], byte_order)
                value = notation.signed(value, part.words) if part.is_signed else value
                yield notation.number_argument(self.spec, part, value, self.catalogue)

    def text(self, part: PayloadPart, data: bytes, start: int) -> Argument:
        """Return the argument of a text that begins at byte `start` of the payload."""
        if self._most is not None and len(data) > self._most:
            first_word, words = start // 4, -(-(start + len(data)) // 4) - start // 4
            rest = f"the first {self._most:,} of {len(data):,} bytes"
            return notation.text_argument(part.name, data[: self._most], first_word, words, rest)
        if self.layout.form == "same" and variants.is_user(self.spec.code):
            return notation.text_argument(part.name, data, 0, len(self.words))
        first_word, end = start // 4, min(start + len(data), len(self.raw))
        return notation.text_argument(part.name, data, first_word, max(0, -(-end // 4) - first_word))

    def rest(self) -> Iterator[Argument]:
        """Yield the words that no part describes, except a zero word that only pads the last slot."""
        # The kernel pads to whole slots of two words (section 3.2).
        first_word = self.layout.end
        is_one = bool(self.layout.parts) and len(self.words) == first_word + 1
        is_padding = is_one and first_word % 2 and not self.words[first_word]
        if not is_padding:
            end = len(self.words) if self._most is None else min(len(self.words), first_word + self._most)
            for index in range(first_word, end):
                name, note = f"{self.layout.rest_name}{index}", self.user_note() if index == 0 else ""
                yield Argument(name, self.words[index], notation.hex_text(self.words[index], 1), index, 1, note)
            if end < len(self.words):
                left = len(self.words) - end
                yield Argument(MORE, left, f"{left:,} more words", end, left)

    def user_note(self) -> str:
        """Return a note for the first word of a user event with the text that the words may be; empty if no text."""
        if not (variants.is_user(self.spec.code) and variants.has_letters(self.raw)):
            return ""
        text = self.raw.partition(b"\0")[0]
        shown = text if self._most is None else text[: self._most]
        return f'"{byte_text(shown)}"' + ("" if len(shown) == len(text) else "...")

    def failed(self) -> Iterator[Argument]:
        """Yield -1 and the error of a call that failed (section 8.3)."""
        returned, *error = self.layout.parts
        note = "" if error else "errno unknown"
        yield Argument(returned.name, -1, "-1", returned.word, returned.words, note)
        for part in error:
            yield notation.errno_argument(self.words[part.word], part.word, self.catalogue, _DOUBT)
        if not error:
            yield from self.rest()
