"""Splits the text of an expression into words, numbers, texts, patterns and signs, each with its position."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from satview.base.time_text import LENGTH, MOMENT, UNITS_NS, amount_ns
from satview.filters.diagnostics import ExpressionError

TEXT_LIMIT: Final = 10_000  # characters of one expression
TOKEN_LIMIT: Final = 2_000


class Kind(StrEnum):
    """Kinds of tokens."""

    NAME = "name"
    NUMBER = "number"
    MOMENT = "moment"
    TEXT = "text"
    REGEX = "regex"
    SIGN = "sign"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Attributes:
        kind: What it is.
        text: Its text; of TEXT and REGEX the content without quotes and slashes.
        start, end: Position in the expression.
        value: Of a NUMBER: its value, nanoseconds if it has a unit.
        has_unit: True for a NUMBER with a unit of time.
        ignores_case: True for a REGEX with `i` after it.
    """

    kind: Kind
    text: str
    start: int
    end: int
    value: int = 0
    has_unit: bool = False
    ignores_case: bool = False


_SPACE: Final = re.compile(r"\s*")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER: Final = re.compile(
    "(0[xX][0-9A-Fa-f_]*|[0-9][0-9_]*(?:\\.[0-9]*)?)([A-Za-z\N{MICRO SIGN}\N{GREEK SMALL LETTER MU}]*)"
)
_MOST_DIGITS: Final = 40
_AMOUNT_BEGINS: Final = re.compile("[.]?[0-9]")
_SIGNS: Final = (
    "<<",
    ">>",
    "<=",
    ">=",
    "==",
    "!=",
    "!~",
    "&&",
    "||",
    "->",
    "<",
    ">",
    "=",
    "~",
    "(",
    ")",
    "[",
    "]",
    ",",
    ".",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "!",
)
_SYNONYMS: Final = {"&&": "and", "||": "or", "!": "not", "=": "=="}


def tokens(text: str) -> list[Token]:
    """Return the tokens of an expression, an END at last.

    Raises:
        ExpressionError: A character, number, text or pattern is faulty, or the expression is too long.
    """
    if len(text) > TEXT_LIMIT:
        raise ExpressionError(
            f"an expression may have {TEXT_LIMIT} characters, this has {len(text)}", TEXT_LIMIT, len(text)
        )
    found: list[Token] = []
    at = 0
    while True:
        space = _SPACE.match(text, at)
        at = space.end() if space else at
        if at >= len(text):
            found.append(Token(Kind.END, "", len(text), len(text)))
            return found
        if len(found) >= TOKEN_LIMIT:
            raise ExpressionError(f"an expression may have {TOKEN_LIMIT} parts", at, len(text))
        found.append(_next(text, at, found[-1] if found else None))
        at = found[-1].end


def _next(text: str, at: int, before: Token | None) -> Token:
    char = text[at]
    if name := _NAME.match(text, at):
        return Token(Kind.NAME, name.group(), at, name.end())
    if moment := MOMENT.match(text, at):
        return Token(Kind.MOMENT, moment.group(), at, moment.end())
    if _AMOUNT_BEGINS.match(text, at):
        return _number(text, at)
    if char in "\"'":
        return _quoted(text, at, char, Kind.TEXT)
    if char == "/" and before is not None and before.text in ("~", "!~"):
        return _quoted(text, at, "/", Kind.REGEX)
    for sign in _SIGNS:
        if text.startswith(sign, at):
            return Token(Kind.SIGN, _SYNONYMS.get(sign, sign), at, at + len(sign))
    raise ExpressionError(f"the character {char!r} has no meaning here", at, at + 1)


def _number(text: str, at: int) -> Token:
    amount = LENGTH.match(text, at)
    if amount is not None and amount[2].lower() in UNITS_NS:
        return _amount(amount)
    found = _NUMBER.match(text, at)
    if found is None:
        raise ExpressionError("a number with a fraction needs a unit of time, as in .5ms", at, at + 2)
    digits, unit = found.group(1).replace("_", ""), found.group(2)
    end = found.end()
    if digits[:2].lower() == "0x" and (len(digits) < 3 or unit):
        raise ExpressionError(f"{found.group()[:40]} is no hexadecimal number", at, end)
    if len(digits) > _MOST_DIGITS:
        raise ExpressionError("the number has too many digits", at, end)
    if unit:
        raise ExpressionError(
            f"{unit[:40]!r} is no unit; there are ns, us, ms, s", end - len(unit), end, ("ns", "us", "ms", "s")
        )
    if "." in digits:
        raise ExpressionError("a number with a fraction needs a unit of time, as in 1.5ms", at, end)
    value = int(digits, 16 if digits[:2].lower() == "0x" else 10)
    if value >= 1 << 64:
        raise ExpressionError("the number does not fit into 64 bits", at, end)
    return Token(Kind.NUMBER, found.group(), at, end, value)


def _amount(found: re.Match[str]) -> Token:
    """Return the token of a length of time, such as `1.5ms` or `1 200 ns`: whole nanoseconds."""
    if len(found[1]) > _MOST_DIGITS:
        raise ExpressionError("the number has too many digits", found.start(), found.end())
    value = round(amount_ns(found[1], found[2]))
    if value >= 1 << 64:
        raise ExpressionError("the number does not fit into 64 bits", found.start(), found.end())
    return Token(Kind.NUMBER, found.group(), found.start(), found.end(), value, True)


def _quoted(text: str, at: int, quote: str, kind: Kind) -> Token:
    """Read up to the closing quote or slash; a backslash keeps the next character from closing it."""
    content, end = [], at + 1
    while end < len(text) and text[end] != quote:
        if text[end] == "\\" and end + 1 < len(text) and text[end + 1] in (quote, "\\"):
            # In a pattern the backslash goes on to mean what it means there, except before the slash.
            content.append(text[end : end + 2] if kind is Kind.REGEX and text[end + 1] == "\\" else text[end + 1])
            end += 2
        else:
            content.append(text[end])
            end += 1
    if end >= len(text):
        raise ExpressionError(
            f"the {'pattern' if kind is Kind.REGEX else 'text'} is not closed with {quote}", at, len(text)
        )
    ignores_case = kind is Kind.REGEX and text[end + 1 : end + 2] == "i"
    return Token(kind, "".join(content), at, end + 1 + ignores_case, ignores_case=ignores_case)
