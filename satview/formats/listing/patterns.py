"""Argument lists as patterns: finds the values of a list in the text of an event and makes payload words of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from satview.events.spec import Field, Show
from satview.events.words import WORD_MASK, split64, text_words

# Numbers of a listing in either notation: decimal as `%d` prints it, hexadecimal with `0x`, any number of zeros.


NUMBER: Final = r"(0[xX][0-9a-fA-F]{1,16}|-?\d{1,20})"  # one group
BARE_HEX: Final = r"((?:0[xX])?[0-9a-fA-F]{1,16})"  # one group; for what is printed as `%x` or `%p`


def value_of(text: str) -> int:
    """Return the value of a text that `NUMBER` matched."""
    return int(text, 16) if text[:2] in ("0x", "0X") else int(text)


def is_wide(text: str) -> bool:
    """Return whether a number was printed as one of 64 bits, or does not fit 32."""
    digits = len(text) - 2 if text[:2] in ("0x", "0X") else 0
    return digits > 8 or not -1 << 31 <= value_of(text) < 1 << 32


def printed_as(text: str) -> str:
    """Return the `%` template that prints a number as this one: `%d`, `0x%08x`, `0x%016x`, `0x%x` or `%x`."""
    if text[:2] in ("0x", "0X"):
        digits = len(text) - 2
        return f"0x%0{digits}x" if digits in (8, 16) or text[2] == "0" < text[3:4] else "0x%x"
    return "%d" if text.lstrip("-").isdigit() else "%x"


def bare_value(text: str) -> int:
    """Return the value of a text that `BARE_HEX` matched."""
    return int(text, 16)


# The text ends at a quote that the numbers follow; it may hold other quotes.
_MESSAGE = r'"[^"]*(?:"(?! \(0x)[^"]*)*" \((0x[0-9a-f]{{1,8}}(?: 0x[0-9a-f]{{1,8}}){{0,{more}}})\)'
_ANY_NUMBER = rf"(?:{NUMBER[1:-1]})"
_ANY_MESSAGE = r'"[^"]*(?:"(?!\s*\([-0-9])[^"]*)*"\s*\(\s*(%s(?:[\s,]+%s){0,%d})\s*\)'
Words = list[int]
Reader = Callable[[str, str], Words | None]  # text of a value, byte order; None if it does not fit


@dataclass(frozen=True, slots=True)
class ListPattern:
    """One argument list, ready to be looked for.

    Attributes:
        regex: One group per value; optional from the second value on if the list may be cut short.
        readers: Per group, what makes words of its text.
        code: The event code that this list belongs to.
        names: Per group, the argument; empty for text and messages, which have one notation.
        spellings: Per group, the argument, whatever it is.
    """

    regex: re.Pattern[str]
    readers: tuple[Reader, ...]
    code: int
    names: tuple[str, ...]
    spellings: tuple[str, ...]

    def shown(self, text: str) -> tuple[str, ...]:
        """Return the arguments of the list that a text of it shows; it may end before the list does."""
        match = self.regex.fullmatch(text)
        return self.spellings[: match.lastindex or 0] if match else ()

    def notations(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield the numbers of a text that the list describes: argument, and how `%` prints a number like it."""
        match = self.regex.fullmatch(text)
        for name, value in zip(self.names, match.groups() if match else (), strict=False):
            if name and value is not None:
                yield name, printed_as(value)

    def words(self, text: str, byte_order: str) -> Words | None:
        """Return the payload words of a text, None if the list does not describe it."""
        match = self.regex.fullmatch(text)
        if match is None:
            return None
        words: Words = []
        texts: list[str] = []
        for reader, value in zip(self.readers, match.groups(), strict=True):
            if value is None:
                break
            if reader is listed_text:  # several follow one another, each up to its NUL
                texts.append(value)
                continue
            group_words = reader(value, byte_order)
            if group_words is None:
                return None
            words += group_words
        return words + listed_text("\0".join(texts), byte_order) if texts else words


def compile_list(
    fields: Sequence[Field], code: int, *, is_whole: bool, has_short_hex: bool, is_lenient: bool = False
) -> ListPattern:
    """Return the pattern of a list.

    Args:
        fields: The list.
        code: Event code it belongs to.
        is_whole: False if the text may end after any value, as that of a long event whose payload ended.
        has_short_hex: 6.x prints addresses and 64-bit values without leading zeros; later releases with all of them.
        is_lenient: Numbers in either notation, with or without leading zeros, and any blanks and commas between.
    """
    before, colon = (r"[\s,]+", r"\s*[:=]\s*") if is_lenient else (r"\s+", ":")
    pieces: list[str] = []
    readers: list[Reader] = []
    names: list[str] = []
    spellings: list[str] = []
    has_text = False
    for index, field in enumerate(fields):
        if field.show == Show.MSG_MORE:
            continue
        name = re.escape(field.name).replace("_", "[_ ]") if is_lenient else re.escape(field.name)
        value: str
        reader: Reader
        if field.show == Show.MSG:
            more = _more(fields[index + 1 :])
            value, reader = _MESSAGE.format(more=more), message_words
            if is_lenient:
                value = _ANY_MESSAGE % (_ANY_NUMBER, _ANY_NUMBER, more)
            name = re.escape(field.name.removesuffix("[0]")) + r"(?:\[0\])?"
        elif field.show == Show.STRING:
            value, reader, has_text = "(.*?)", listed_text, True  # up to where the next name begins, or the end
        elif field.show == Show.STRUCT:
            break
        else:
            value, reader = _any_number(field, has_short_hex) if is_lenient else _number(field, has_short_hex)
        pieces.append(rf"{before}{name}{colon}{value}")
        readers.append(reader)
        spellings.append(field.name)
        names.append("" if field.show in (Show.MSG, Show.STRING) else field.name)
    end = "" if has_text else r"[\s,]*" if is_lenient else r"\s*"
    if is_whole:
        source = "".join(pieces)
    else:
        source = pieces[0] + "".join(f"(?:{piece}" for piece in pieces[1:]) + ")?" * (len(pieces) - 1)
    return ListPattern(re.compile(source + end, re.DOTALL), tuple(readers), code, tuple(names), tuple(spellings))


def _more(fields: Sequence[Field]) -> int:
    count = 0
    while count < len(fields) and fields[count].show == Show.MSG_MORE:
        count += 1
    return count


def _number(field: Field, has_short_hex: bool) -> tuple[str, Reader]:
    wide = field.words == 2
    if field.show == Show.DEC:
        return r"(-?\d{1,20})", number64 if wide else number32
    digits = 8 * field.words
    # 6.x prints %p and 0x%llx, which leave out zeros, but 0x%08x for all other words.
    is_short = has_short_hex and (wide or field.show == Show.POINTER)
    count = f"{{1,{digits}}}" if is_short else f"{{{digits}}}"
    prefix = "(?:0x)?" if field.show == Show.POINTER else "0x"
    return rf"({prefix}[0-9a-f]{count})", hex64 if wide else hex32


def _any_number(field: Field, has_short_hex: bool) -> tuple[str, Reader]:
    """Return a number in either notation; one without `0x` is decimal except where 6.x prints `%p`."""
    wide = field.words == 2
    if field.show == Show.POINTER and has_short_hex:
        return BARE_HEX, hex64 if wide else hex32
    return NUMBER, number64 if wide else any32


def number32(text: str, byte_order: str) -> Words | None:  # noqa: ARG001  -- one signature for all
    """Return a signed decimal number as one word, None if it has more than 32 bits."""
    value = int(text)
    return [value & WORD_MASK] if -1 << 31 <= value < 1 << 31 else None


def any32(text: str, byte_order: str) -> Words | None:  # noqa: ARG001  -- one signature for all
    """Return a number in either notation, signed or not, as one word, None if it has more than 32 bits."""
    value = value_of(text)
    return [value & WORD_MASK] if -1 << 31 <= value <= WORD_MASK else None


def number64(text: str, byte_order: str) -> Words | None:
    """Return a number as two words in payload order, None if it has more than 64 bits."""
    value = value_of(text)
    return list(split64(value, byte_order)) if -1 << 63 <= value < 1 << 64 else None


def hex32(text: str, byte_order: str) -> Words | None:  # noqa: ARG001  -- one signature for all
    """Return a hexadecimal number, with or without `0x`, as one word, None if it has more than 32 bits."""
    value = int(text, 16)
    return [value] if value <= WORD_MASK else None


def hex64(text: str, byte_order: str) -> Words:
    """Return a hexadecimal number, with or without `0x`, as two words in payload order."""
    return list(split64(int(text, 16), byte_order))


def message_words(text: str, byte_order: str) -> Words | None:  # noqa: ARG001  -- one signature for all
    """Return the numbers that are behind the characters of a message; None if one has more than 32 bits."""
    words = [value_of(word) for word in text.replace(",", " ").split()]
    return [word & WORD_MASK for word in words] if all(-1 << 31 <= word <= WORD_MASK for word in words) else None


def listed_text(text: str, byte_order: str) -> Words:
    """Return a text as payload words."""
    return text_words(text.encode("utf-8", "surrogateescape"), byte_order)
