"""Columns of printed values: each converts the payload words of many events of one kind to values for a template."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from satview.core import printing
from satview.core.printing import LineField
from satview.events.layout import SIGEVENT_WORDS, PayloadPart
from satview.events.user_events import UserEvent
from satview.events.variants import has_letters, is_user, user_text
from satview.events.wire import FAST_WORDS
from satview.events.words import join64
from satview.formats.kev.notation import plain_text, sigevent_text, vendor_text

_LINE_FEED = 0x0A
_PRINTABLE = np.zeros(256, np.bool_)
_PRINTABLE[0x20:0x7F] = True
_SHOWN = _PRINTABLE.copy()
_SHOWN[_LINE_FEED] = True


@dataclass(frozen=True, slots=True)
class EventGroup:
    """Events of one kind and size.

    Attributes:
        words: uint32 (m, k), payload words in host order.
        byte_order: Byte order of the target, for 64-bit values and text.
    """

    words: NDArray[np.uint32]
    byte_order: str

    def raw(self, start: int, count: int) -> NDArray[np.uint8]:
        """Return payload words in the target's byte order, uint8 (m, 4 * count)."""
        dtype = "<u4" if self.byte_order == "little" else ">u4"
        part = np.ascontiguousarray(self.words[:, start : start + count]).astype(dtype)
        return part.view(np.uint8).reshape(len(part), 4 * count)

    def wide(self, start: int) -> NDArray[np.uint64]:
        """Return the words `start` and `start + 1` as 64-bit values, uint64 (m,)."""
        halves = self.words[:, start : start + 2].astype(np.uint64)
        return join64(halves[:, 0], halves[:, 1], self.byte_order)


@dataclass(frozen=True, slots=True)
class TemplateColumn:
    """The values for one conversion of a template.

    Attributes:
        values: Returns the values of a group of events.
        field: The same conversion for the compiled core; None if the core cannot make it.
    """

    values: Callable[[EventGroup], Sequence[Any]]
    field: LineField | None = None

    def __call__(self, group: EventGroup) -> Sequence[Any]:
        """Return the values of a group."""
        return self.values(group)


def unsigned(word: int) -> TemplateColumn:
    """Return a column of one word as an unsigned number."""
    return TemplateColumn(lambda group: group.words[:, word].tolist(), LineField(printing.WORD, word))


def swapped(word: int) -> TemplateColumn:
    """Return a column of one word with its bytes reversed, as the vendor's printer shows words of big-endian files."""
    field = LineField(printing.WORD, word, flags=printing.SWAPPED)
    return TemplateColumn(lambda group: group.words[:, word].byteswap().tolist(), field)


def signed_swapped(word: int) -> TemplateColumn:
    """Return a column of one word with its bytes reversed, as a signed number."""
    return TemplateColumn(
        lambda group: np.ascontiguousarray(group.words[:, word]).byteswap().view(np.int32).tolist(),
        LineField(printing.WORD, word, flags=printing.SWAPPED | printing.SIGNED),
    )


def masked(word: int, mask: int) -> TemplateColumn:
    """Return a column of the bits of one word under a mask."""
    field = LineField(printing.WORD, word, mask=mask)
    return TemplateColumn(lambda group: (group.words[:, word] & np.uint32(mask)).tolist(), field)


def signed(word: int) -> TemplateColumn:
    """Return a column of one word as a signed number."""
    return TemplateColumn(
        lambda group: np.ascontiguousarray(group.words[:, word]).view(np.int32).tolist(),
        LineField(printing.WORD, word, flags=printing.SIGNED),
    )


def number(part: PayloadPart) -> TemplateColumn:
    """Return a column of a number with the width (one or two words) and sign that a layout gives it."""
    if part.words == 1:
        return signed(part.word) if part.is_signed else unsigned(part.word)
    if part.is_signed:
        field = LineField(printing.WIDE, part.word, flags=printing.SIGNED)
        return TemplateColumn(lambda group: group.wide(part.word).view(np.int64).tolist(), field)
    return TemplateColumn(lambda group: group.wide(part.word).tolist(), LineField(printing.WIDE, part.word))


def message(word: int, count: int, *, has_line_feeds: bool = True) -> TemplateColumn:
    """Return a column of the characters of message words, by the rule of `notation.message_text`.

    `has_line_feeds` is False for the first printers, which treat a line feed as unprintable.
    """
    return TemplateColumn(
        lambda group: message_texts(group.raw(word, count), _SHOWN if has_line_feeds else _PRINTABLE),
        LineField(printing.MESSAGE, word, count, printing.LINE_FEEDS if has_line_feeds else 0),
    )


def message_texts(raw: NDArray[np.uint8], shown_bytes: NDArray[np.bool_] = _SHOWN) -> list[str]:
    """Return the texts that listings show for message bytes, uint8 (m, 4 * words).

    A word with a byte that is not in `shown_bytes` is shown as no characters; the text ends with the first word that
    is shown as fewer than four characters.
    """
    words = raw.reshape(len(raw), -1, 4)
    is_text = np.cumprod(words != 0, axis=2, dtype=np.int8).astype(bool)  # up to the first NUL
    length = is_text.sum(axis=2)
    good = (shown_bytes[words] | ~is_text).all(axis=2)
    length[~good] = 0
    goes_on = np.cumprod(length == 4, axis=1, dtype=np.int8).astype(bool)
    length[:, 1:][~goes_on[:, :-1]] = 0
    shown = np.where(np.arange(4) < length[:, :, None], words, 0).reshape(len(raw), -1)
    rows = np.ascontiguousarray(shown).view(f"S{raw.shape[1]}")[:, 0].tolist()
    return b"\0".join(rows).decode("ascii").split("\0")  # one step for all; no text holds a NUL


def texts(part: PayloadPart, *, is_vendor: bool) -> TemplateColumn:
    """Return a column of a text at the end of the payload."""

    def column(group: EventGroup) -> list[str]:
        raw = group.raw(part.word, group.words.shape[1] - part.word)
        show = vendor_text if is_vendor else plain_text
        if not part.text_index:
            return [show(bytes(row)) for row in raw]
        return [
            show(b"".join(bytes(row).split(b"\0", part.text_index + 1)[part.text_index : part.text_index + 1]))
            for row in raw
        ]

    return TemplateColumn(column)


def user_tails(*, is_vendor: bool) -> TemplateColumn:
    """Return a column with the arguments of user events of more than two words, as the printer of 6.x writes them."""

    def column(group: EventGroup) -> list[str]:
        raw = group.raw(0, group.words.shape[1])
        if is_vendor:  # it prints everything as text and overwrites the last byte with NUL
            return [f' STR:"{vendor_text(bytes(row[:-1]))}"' for row in raw]
        return [_user_tail(bytes(row), words) for row, words in zip(raw, group.words.tolist(), strict=True)]

    return TemplateColumn(column)


def _user_tail(raw: bytes, words: list[int]) -> str:
    if user_text(raw) is not None:
        return f' STR:"{plain_text(raw)}"'
    # As 7.1 prints it: a possible text and all words, so that no data is hidden.
    text = f' STR:"{plain_text(raw)}"' if has_letters(raw) else ""
    return f"{text}, {word_list(words)}"


def word_list(words: Sequence[int]) -> str:
    """Return the words as text, `d0:0x00000001 d1:...`."""
    return " ".join(f"d{index}:0x{word:08x}" for index, word in enumerate(words))


def user_texts_and_words(*, is_vendor: bool) -> TemplateColumn:
    """Return a column with the arguments of user events of more than two words, as the printer of 7.1 writes them."""

    def column(group: EventGroup) -> list[str]:
        show = vendor_text if is_vendor else plain_text
        raw = group.raw(0, group.words.shape[1])
        return [
            f'STR:"{show(bytes(row))}", {word_list(words)}'
            for row, words in zip(raw, group.words.tolist(), strict=True)
        ]

    return TemplateColumn(column)


def sigevents(word: int, *, is_vendor: bool) -> TemplateColumn:
    """Return a column of sigevents of 6.x as text.

    The vendor's printer shows the type of an unknown sigevent without its flags. In a big-endian file it reads the
    halves of the last word as little-endian numbers, sign-extends them to 32 bits and reverses the four bytes.
    """

    def column(group: EventGroup) -> list[str]:
        raw = group.raw(word + 3, 1).copy()
        if is_vendor and group.byte_order == "big":
            halves = raw.view("<i2").astype(np.int32).byteswap().tolist()
        else:
            halves = raw.view("<i2" if group.byte_order == "little" else ">i2").tolist()
        words = group.words[:, word : word + SIGEVENT_WORDS].tolist()
        return [
            sigevent_text(notify, number, value, code, priority, is_vendor=is_vendor)
            for (notify, number, value, _), (code, priority) in zip(words, halves, strict=True)
        ]

    return TemplateColumn(column)


def flag_words(word: int, table: dict[int, str]) -> TemplateColumn:
    """Return a column with the names of the bits set in a word, each after a blank, in the order of the table."""

    def column(group: EventGroup) -> list[str]:
        values = group.words[:, word]
        kinds, inverse = np.unique(values, return_inverse=True)
        names = ["".join(f" {name}" for bit, name in table.items() if kind & bit) for kind in kinds.tolist()]
        return [names[index] for index in inverse.ravel().tolist()]

    return TemplateColumn(column)


def fields_column(event: UserEvent, count: int, index: int | None = None) -> TemplateColumn:
    """Return a column of the user's fields of an event: ` label:value` for all fields, or the value of one field.

    Args:
        event: The user's description of the event.
        count: Number of payload words.
        index: The field; empty text if the payload has no such field. None = all fields.
    """
    is_wide = not is_user(event.code) and count > FAST_WORDS

    def text_of(payload: bytes, byte_order: str) -> str:
        shown = event.shown(payload, byte_order, is_wide=is_wide)
        if index is None:
            return "".join(f" {field.label}:{text}" for field, _, _, text in shown)
        return next((text for field, _, _, text in shown if field is event.fields[index]), "")

    def values(group: EventGroup) -> list[str]:
        raw = group.raw(0, count)
        payloads, number = np.unique(raw.view(f"V{raw.shape[1]}")[:, 0], return_inverse=True)
        texts = [text_of(payload, group.byte_order) for payload in payloads.tolist()]
        return [texts[which] for which in number.reshape(-1).tolist()]

    return TemplateColumn(values)
