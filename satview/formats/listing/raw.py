"""Lines of a listing that fit no row: their arguments as named values, at the words of the row as far as it has them.

A row tells where an argument is, so what a line has of it goes there, and all else behind it. What the row has and the
line has not is no argument of that event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from satview.events.layout import PayloadPart, one_spelling, word_count
from satview.events.spec import Field, Show
from satview.events.words import WORD_MASK, split64
from satview.formats.listing.patterns import NUMBER, listed_text, printed_as, value_of

_NUMBER: Final = rf"(?:{NUMBER[1:-1]})"
_NAME: Final = r"(?:word \d{1,5}|[^\s:=,\"()][^\s:=,\"]{0,79})"
_LATER: Final = rf"(?=[\s,]+{_NAME}[:=][^:=]|\n|$)"  # the next argument, or the end of the line
_ARGUMENT: Final = re.compile(
    rf"(?P<name>{_NAME})\s?[:=]\s?"
    rf'(?:"(?P<message>[^"\n]*)"\s?\((?P<words>\s?{_NUMBER}(?:[\s,]+{_NUMBER}){{0,4095}})\s?\)'
    rf'|"(?P<quoted>[^"\n]*)"(?={_LATER[3:-1]})'
    rf"|(?P<number>{_NUMBER})(?:\s?\({_NUMBER}\))?(?=[\s,]|$)"
    rf"|(?P<text>[^\n]{{0,4096}}?){_LATER})"
)
_OWN_LINE: Final = re.compile(rf"\s+{_NAME}:(?:{_NUMBER}|\"[^\"]*\" \(.*\))\s*")
_COLUMN: Final = 26  # where the colon of an argument on its own line is (listing format, section 3.2)
_MOST: Final = 256  # arguments of one line; the rest of it is one text
OTHER: Final = "text"  # what stands between arguments


@dataclass(frozen=True, slots=True)
class Value:
    """One argument as a line shows it.

    Attributes:
        name: As printed.
        number: Its value, None for texts and messages.
        template: How `%` prints the number, or a text in quotes; empty for other texts.
        text: A text, as printed.
        words: Of a message.
    """

    name: str
    number: int | None = None
    template: str = ""
    text: str = ""
    words: tuple[int, ...] = ()

    @property
    def kind(self) -> str:
        """Its notation as the catalogue's tables write it."""
        if self.number is None:
            return "msg" if self.words else "string"
        wide = "" if _has_room(self.number, 1) else "64"
        return ("dec" if self.template == "%d" else "hex") + wide


@dataclass(frozen=True, slots=True)
class Placed:
    """The arguments of a line as a payload.

    Attributes:
        parts: Where they are.
        words: The payload.
        matched: How many of them the row has.
        is_whole: The line has all that the row has, and nothing else.
    """

    parts: tuple[PayloadPart, ...]
    words: list[int]
    matched: int
    is_whole: bool = False


def is_argument_line(line: str) -> bool:
    """Return whether a line looks like an argument on its own line as printers write it, whatever its name."""
    colon = line.find(":")
    if colon == _COLUMN and line[:colon].lstrip().find(" ") < 0:
        return True
    return _OWN_LINE.fullmatch(line) is not None


def values_of(text: str) -> list[Value]:
    """Return the arguments that a text shows, in its order; what is between them is one text of its own at the end."""
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
        words = [value_of(word) for word in argument["words"].replace(",", " ").split()]
        if all(-1 << 31 <= word <= WORD_MASK for word in words):
            return Value(name, words=tuple(word & WORD_MASK for word in words))
        return Value(name, text=argument["words"])
    if argument["quoted"] is not None:
        return Value(name, text=argument["quoted"], template='"%s"')
    return Value(name, text=argument["text"].strip())


def placed(values: Sequence[Value], rows: Iterable[tuple[Field, ...]], byte_order: str, *, is_long: bool) -> Placed:
    """Return the arguments of a line at the words of the row that has most of them.

    Args:
        values: What the line shows.
        rows: The lists of the event, the likelier before; none of an event that no table has.
        byte_order: Of the target.
        is_long: The line was printed as an event of more than two words.
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
        self._at: dict[int, PayloadPart] = {}  # by number of the value

    def take(self, values: Sequence[Value], row: tuple[Field, ...]) -> Placed:
        """Return the values at the words of a row, those that it has not behind them."""
        self._words = [0] * word_count(row)
        places = dict(_places(row))
        texts: list[tuple[int, Value]] = []
        others: list[tuple[int, Value]] = []
        for number, value in enumerate(values):
            field, word = places.pop(one_spelling(value.name.replace(" ", "_")), (None, 0))
            if field is None or not self._fits(number, value, field, word, row):
                (others if field is None or field.show is not Show.STRING else texts).append((number, value))
        matched = len(self._at) + len(texts)
        self._append_texts(texts)
        self._append_numbers(
            [pair for pair in others if not pair[1].text and (pair[1].number is not None or pair[1].words)]
        )
        self._append_texts([pair for pair in others if pair[0] not in self._at])
        parts = tuple(part for number in sorted(self._at) for part in self._with_rest(self._at[number], values[number]))
        return Placed(parts, self._words, matched, matched == len(values) and not places)

    def _fits(self, number: int, value: Value, field: Field, word: int, row: tuple[Field, ...]) -> bool:
        """Put a value at the words of its field, if they hold it."""
        if field.show is Show.MSG:
            room = 1 + sum(1 for other in row if other.show is Show.MSG_MORE)
            if not 0 < len(value.words) <= room:
                return False
            self._words[word : word + len(value.words)] = value.words
            self._at[number] = PayloadPart(field.name, word, 1, Show.MSG)
            return True
        if value.number is None or not field.words or not _has_room(value.number, field.words):
            return False
        self._words[word : word + field.words] = _words_of(value.number, field.words, self._order)
        self._at[number] = PayloadPart(
            field.name, word, field.words, field.show, field.is_sure, template=value.template
        )
        return True

    def _append_numbers(self, values: Sequence[tuple[int, Value]]) -> None:
        for number, value in values:
            word = len(self._words)
            if value.number is None:
                self._words += value.words
                self._at[number] = PayloadPart(value.name, word, 1, Show.MSG)
                continue
            size = 1 if _has_room(value.number, 1) else 2
            self._words += _words_of(value.number, size, self._order)
            show = Show.DEC if value.template == "%d" and _is_signed(value.number, size) else Show.HEX
            self._at[number] = PayloadPart(value.name, word, size, show, template=value.template)

    def _append_texts(self, values: Sequence[tuple[int, Value]]) -> None:
        """Append texts one after the other, each up to its NUL."""
        if not values:
            return
        word = len(self._words)
        for index, (number, value) in enumerate(values):
            self._at[number] = PayloadPart(value.name, word, 0, Show.STRING, text_index=index, template=value.template)
        self._words += listed_text("\0".join(value.text for _, value in values), self._order)

    @staticmethod
    def _with_rest(part: PayloadPart, value: Value) -> Iterator[PayloadPart]:
        """Yield a part, and those of the other words of a message."""
        yield part
        if part.show is Show.MSG:
            for index in range(1, len(value.words)):
                yield PayloadPart(f"{part.name.removesuffix('[0]')}[{index}]", part.word + index, 1, Show.MSG_MORE)


def _places(row: tuple[Field, ...]) -> Iterator[tuple[str, tuple[Field, int]]]:
    """Yield the fields of a row by spelling, with their first words; of several of one name the first."""
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
