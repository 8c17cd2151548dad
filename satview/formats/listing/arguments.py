"""Converts the arguments of a printed event to payload words: by the lists of the catalogue, or as named values.

A list becomes a pattern that finds its values in the text of an event. If no list matches, each argument of the line is
stored in the words that the event's row in the catalogue assigns to its name; arguments that are not in the row come
after these. Arguments of the row that are not in the line are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from satview.events.layout import PayloadPart, one_spelling, word_count
from satview.events.spec import Field, Show
from satview.events.variants import WORD_MASK, split64, text_words

# Numbers in a listing: decimal as `%d` prints it, or hexadecimal with `0x`, with any number of leading zeros.


NUMBER: Final = r"(0[xX][0-9a-fA-F]{1,16}|-?\d{1,20})"  # one group
BARE_HEX: Final = r"((?:0[xX])?[0-9a-fA-F]{1,16})"  # one group; for numbers printed as `%x` or `%p`


def value_of(text: str) -> int:
    """Return the number in a text that matches the pattern `NUMBER`."""
    return int(text, 16) if text[:2] in ("0x", "0X") else int(text)


def is_wide(text: str) -> bool:
    """Return whether a number was printed with 64 bits, or does not fit 32 bits."""
    digits = len(text) - 2 if text[:2] in ("0x", "0X") else 0
    return digits > 8 or not -1 << 31 <= value_of(text) < 1 << 32


def printed_as(text: str) -> str:
    """Return the `%` template with which a number was printed: `%d`, `0x%08x`, `0x%016x`, `0x%x` or `%x`."""
    if text[:2] in ("0x", "0X"):
        digits = len(text) - 2
        return f"0x%0{digits}x" if digits in (8, 16) or text[2] == "0" < text[3:4] else "0x%x"
    return "%d" if text.lstrip("-").isdigit() else "%x"


def bare_value(text: str) -> int:
    """Return the number in a text that matches the pattern `BARE_HEX`."""
    return int(text, 16)


# The text ends at a quote that is followed by the numbers; it may contain other quotes.
_MESSAGE = r'"[^"]*(?:"(?! \(0x)[^"]*)*" \((0x[0-9a-f]{{1,8}}(?: 0x[0-9a-f]{{1,8}}){{0,{more}}})\)'
_ANY_NUMBER = rf"(?:{NUMBER[1:-1]})"
_ANY_MESSAGE = r'"[^"]*(?:"(?!\s*\([-0-9])[^"]*)*"\s*\(\s*(%s(?:[\s,]+%s){0,%d})\s*\)'
Words = list[int]
Reader = Callable[[str, str], Words | None]  # text of a value, byte order; None if it does not fit


@dataclass(frozen=True, slots=True)
class ListPattern:
    """An argument list as a pattern.

    Attributes:
        regex: Regular expression with a group per value; later values are optional if the line may end early.
        readers: For each group, the function that converts its text to words.
        code: Event code of the list.
        names: For each group, the name of the argument; empty for texts and messages, which have only one notation.
        spellings: For each group, the name of the argument, also for texts and messages.
    """

    regex: re.Pattern[str]
    readers: tuple[Reader, ...]
    code: int
    names: tuple[str, ...]
    spellings: tuple[str, ...]

    def shown(self, text: str) -> tuple[str, ...]:
        """Return the names of the arguments in a text that matches the list, which may be fewer than in the list."""
        match = self.regex.fullmatch(text)
        return self.spellings[: match.lastindex or 0] if match else ()

    def notations(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield name and `%` template of each number in a text that matches the list."""
        match = self.regex.fullmatch(text)
        for name, value in zip(self.names, match.groups() if match else (), strict=False):
            if name and value is not None:
                yield name, printed_as(value)

    def words(self, text: str, byte_order: str) -> Words | None:
        """Return the payload words of a text; None if the text does not match the list."""
        match = self.regex.fullmatch(text)
        if match is None:
            return None
        words: Words = []
        texts: list[str] = []
        for reader, value in zip(self.readers, match.groups(), strict=True):
            if value is None:
                break
            if reader is listed_text:  # texts follow each other in the payload, separated by NUL
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
    """Return the pattern of an argument list.

    Args:
        fields: The argument list.
        code: Event code of the list.
        is_whole: False if the text may end after any value, as for a long event with a short payload.
        has_short_hex: Whether addresses and 64-bit values lack leading zeros, as in 6.x.
        is_lenient: Accept decimal and hexadecimal numbers, any leading zeros, and any blanks and commas.
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
            more = _more_words(fields[index + 1 :])
            value, reader = _MESSAGE.format(more=more), message_words
            if is_lenient:
                value = _ANY_MESSAGE % (_ANY_NUMBER, _ANY_NUMBER, more)
            name = re.escape(field.name.removesuffix("[0]")) + r"(?:\[0\])?"
        elif field.show == Show.STRING:
            value, reader, has_text = "(.*?)", listed_text, True  # up to the next name, or the end
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


def _more_words(fields: Sequence[Field]) -> int:
    count = 0
    while count < len(fields) and fields[count].show == Show.MSG_MORE:
        count += 1
    return count


def _number(field: Field, has_short_hex: bool) -> tuple[str, Reader]:
    wide = field.words == 2
    if field.show == Show.DEC:
        return r"(-?\d{1,20})", number_reader(field.words, int, is_signed=field.words == 1)
    digits = 8 * field.words
    # 6.x prints %p and 0x%llx, which omit leading zeros, but 0x%08x for all other numbers.
    is_short = has_short_hex and (wide or field.show == Show.POINTER)
    count = f"{{1,{digits}}}" if is_short else f"{{{digits}}}"
    prefix = "(?:0x)?" if field.show == Show.POINTER else "0x"
    return rf"({prefix}[0-9a-f]{count})", number_reader(field.words, bare_value)


def _any_number(field: Field, has_short_hex: bool) -> tuple[str, Reader]:
    """Return pattern and reader of a number in any notation; in 6.x addresses have short hex without `0x`."""
    if field.show == Show.POINTER and has_short_hex:
        return BARE_HEX, number_reader(field.words, bare_value)
    return NUMBER, number_reader(field.words, value_of)


def number_reader(words: int, read: Callable[[str], int], *, is_signed: bool = False) -> Reader:
    """Return a function that returns a number as payload words; None if it does not fit, or the sign bit is needed."""

    def payload(text: str, byte_order: str) -> Words | None:
        value = read(text)
        fits = _has_room(value, words) and (not is_signed or _is_signed(value, words))
        return _words_of(value, words, byte_order) if fits else None

    return payload


def message_words(text: str, byte_order: str) -> Words | None:  # noqa: ARG001  -- one signature for all
    """Return the numbers printed after the characters of a message; None if any of them has more than 32 bits."""
    words = [value_of(word) for word in text.replace(",", " ").split()]
    return [word & WORD_MASK for word in words] if all(-1 << 31 <= word <= WORD_MASK for word in words) else None


def listed_text(text: str, byte_order: str) -> Words:
    """Return a text as payload words."""
    return text_words(text.encode("utf-8", "surrogateescape"), byte_order)


_NAME: Final = r"(?:word \d{1,5}|[^\s:=,\"()][^\s:=,\"]{0,79})"
_LATER: Final = rf"(?=[\s,]+{_NAME}[:=][^:=]|\n|$)"  # the next argument, or the end of the line
_ARGUMENT: Final = re.compile(
    rf"(?P<name>{_NAME})\s?[:=]\s?"
    rf'(?:"(?P<message>[^"\n]*)"\s?\((?P<words>\s?{_ANY_NUMBER}(?:[\s,]+{_ANY_NUMBER}){{0,4095}})\s?\)'
    rf'|"(?P<quoted>[^"\n]*)"(?={_LATER[3:-1]})'
    rf"|(?P<number>{_ANY_NUMBER})(?:\s?\({_ANY_NUMBER}\))?(?=[\s,]|$)"
    rf"|(?P<text>[^\n]{{0,4096}}?){_LATER})"
)
_OWN_LINE: Final = re.compile(rf"\s+{_NAME}:(?:{_ANY_NUMBER}|\"[^\"]*\" \(.*\))\s*")
_COLUMN: Final = 26  # position of the colon of an argument on its own line (listing format, section 3.2)
_MOST: Final = 256  # maximum number of arguments of a line; the rest of the line is one text
OTHER: Final = "text"  # name of the argument for text between arguments


@dataclass(frozen=True, slots=True)
class Value:
    """An argument in a line of a listing.

    Attributes:
        name: Printed name.
        number: The number; None for texts and messages.
        template: `%` template of the number, or of a text in quotes; empty for other texts.
        text: The printed text.
        words: Words of a message.
    """

    name: str
    number: int | None = None
    template: str = ""
    text: str = ""
    words: tuple[int, ...] = ()

    @property
    def kind(self) -> str:
        """Notation of the argument in the tables of the catalogue."""
        if self.number is None:
            return "msg" if self.words else "string"
        wide = "" if _has_room(self.number, 1) else "64"
        return ("dec" if self.template == "%d" else "hex") + wide


@dataclass(frozen=True, slots=True)
class Placed:
    """The arguments of a line as a payload.

    Attributes:
        parts: Position of each argument in the payload.
        words: The payload.
        matched: Number of arguments that are in the row of the table.
        is_whole: Whether the line has exactly the arguments of the row.
    """

    parts: tuple[PayloadPart, ...]
    words: list[int]
    matched: int
    is_whole: bool = False


def is_argument_line(line: str) -> bool:
    """Return whether a line looks like an argument of any name that a printer puts on a separate line."""
    colon = line.find(":")
    if colon == _COLUMN and line[:colon].lstrip().find(" ") < 0:
        return True
    return _OWN_LINE.fullmatch(line) is not None


def values_of(text: str) -> list[Value]:
    """Return the arguments in a text, in order; text between arguments becomes a further argument at the end."""
    values: list[Value] = []
    others: list[str] = []
    end = 0
    for argument in _ARGUMENT.finditer(text):
        if len(values) == _MOST:
            break
        others.append(text[end : argument.start()])
        end = argument.end()
        values.append(_value(argument))
    rest = " ".join(" ".join((*others, text[end:])).replace(",", " ").split())
    return [*values, Value(OTHER, text=rest)] if rest else values


def _value(argument: re.Match[str]) -> Value:
    name = argument["name"]
    if argument["number"] is not None:
        number = value_of(argument["number"])
        if -1 << 63 <= number < 1 << 64:
            return Value(name, number, printed_as(argument["number"]))
        return Value(name, text=argument["number"])
    if argument["words"] is not None:
        words = message_words(argument["words"], "")
        return Value(name, text=argument["words"]) if words is None else Value(name, words=tuple(words))
    if argument["quoted"] is not None:
        return Value(name, text=argument["quoted"], template='"%s"')
    return Value(name, text=argument["text"].strip())


def placed(values: Sequence[Value], rows: Iterable[tuple[Field, ...]], byte_order: str, *, is_long: bool) -> Placed:
    """Return the payload of a line, made by the row of the catalogue that has most of the line's arguments.

    `rows` are the lists of the event, most likely first; `is_long` = it was printed as an event of more than two words.
    """
    best = Placed((), [], -1)
    for row in (*rows, ()):
        payload = _Payload(byte_order).take(values, row)
        if (payload.is_whole, payload.matched) > (best.is_whole, best.matched):
            best = payload
    words = best.words
    if is_long or len(words) > 2:
        words += [0] * (max(4, len(words) + len(words) % 2) - len(words))
    return replace(best, words=words)


class _Payload:
    """A payload while it is filled."""

    def __init__(self, byte_order: str) -> None:
        self._order = byte_order
        self._words: list[int] = []
        self._part_of: dict[int, PayloadPart] = {}  # by number of the value

    def take(self, values: Sequence[Value], row: tuple[Field, ...]) -> Placed:
        """Return the payload with values in the words that a row assigns to them, followed by values not in the row."""
        self._words = [0] * word_count(row)
        places = dict(_places(row))
        texts: list[tuple[int, Value]] = []
        others: list[tuple[int, Value]] = []
        for number, value in enumerate(values):
            field, word = places.pop(one_spelling(value.name.replace(" ", "_")), (None, 0))
            if field is None or not self._fits(number, value, field, word, row):
                (others if field is None or field.show is not Show.STRING else texts).append((number, value))
        matched = len(self._part_of) + len(texts)
        self._append_texts(texts)
        self._append_numbers(
            [pair for pair in others if not pair[1].text and (pair[1].number is not None or pair[1].words)]
        )
        self._append_texts([pair for pair in others if pair[0] not in self._part_of])
        parts = tuple(
            part for number in sorted(self._part_of) for part in self._with_rest(self._part_of[number], values[number])
        )
        return Placed(parts, self._words, matched, matched == len(values) and not places)

    def _fits(self, number: int, value: Value, field: Field, word: int, row: tuple[Field, ...]) -> bool:
        """Store argument `number` of the line in the words of a field; return False if it does not fit."""
        if field.show is Show.MSG:
            room = 1 + sum(1 for other in row if other.show is Show.MSG_MORE)
            if not 0 < len(value.words) <= room:
                return False
            self._words[word : word + len(value.words)] = value.words
            self._part_of[number] = PayloadPart(field.name, word, 1, Show.MSG)
            return True
        if value.number is None or not field.words or not _has_room(value.number, field.words):
            return False
        self._words[word : word + field.words] = _words_of(value.number, field.words, self._order)
        self._part_of[number] = PayloadPart(
            field.name, word, field.words, field.show, field.is_sure, template=value.template
        )
        return True

    def _append_numbers(self, values: Sequence[tuple[int, Value]]) -> None:
        for number, value in values:
            word = len(self._words)
            if value.number is None:
                self._words += value.words
                self._part_of[number] = PayloadPart(value.name, word, 1, Show.MSG)
                continue
            size = 1 if _has_room(value.number, 1) else 2
            self._words += _words_of(value.number, size, self._order)
            show = Show.DEC if value.template == "%d" and _is_signed(value.number, size) else Show.HEX
            self._part_of[number] = PayloadPart(value.name, word, size, show, template=value.template)

    def _append_texts(self, values: Sequence[tuple[int, Value]]) -> None:
        """Append texts to the payload, separated by NUL."""
        if not values:
            return
        word = len(self._words)
        for index, (number, value) in enumerate(values):
            self._part_of[number] = PayloadPart(
                value.name, word, 0, Show.STRING, text_index=index, template=value.template
            )
        self._words += listed_text("\0".join(value.text for _, value in values), self._order)

    @staticmethod
    def _with_rest(part: PayloadPart, value: Value) -> Iterator[PayloadPart]:
        """Yield a part, and for a message also the parts of its other words."""
        yield part
        if part.show is Show.MSG:
            for index in range(1, len(value.words)):
                yield PayloadPart(f"{part.name.removesuffix('[0]')}[{index}]", part.word + index, 1, Show.MSG_MORE)


def _places(row: tuple[Field, ...]) -> Iterator[tuple[str, tuple[Field, int]]]:
    """Yield name, field and first word of the fields of a row; for a repeated name only the first field."""
    word, seen = 0, set()
    for field in row:
        name = one_spelling(field.name)
        if name not in seen and field.show not in (Show.MSG_MORE, Show.STRUCT):
            seen.add(name)
            yield name, (field, word)
        word += field.words


def _has_room(number: int, words: int) -> bool:
    return -1 << (32 * words - 1) <= number < 1 << 32 * words


def _is_signed(number: int, words: int) -> bool:
    return number < 1 << (32 * words - 1)


def _words_of(number: int, words: int, byte_order: str) -> list[int]:
    return [number & WORD_MASK] if words == 1 else list(split64(number, byte_order))
