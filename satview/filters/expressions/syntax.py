"""The parser of expressions, which makes a tree of nodes and checks all limits; and completion at the cursor."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from satview.base.time import LENGTH, MOMENT, UNITS_NS, amount_ns
from satview.events import states
from satview.events.catalogue import listed_catalogue
from satview.events.layout import argument_names
from satview.events.spec import Release
from satview.filters.derived_columns import process_names
from satview.filters.diagnostics import ExpressionError, did_you_mean, nearest
from satview.filters.expressions import nodes
from satview.filters.expressions.nodes import COMPARISONS, FUNCTIONS, LEVELS, glob, regex
from satview.filters.expressions.reach import is_wide_only
from satview.filters.expressions.semantics import (
    FIELDS,
    WORD_LIMIT,
    FieldKind,
    KnownWhen,
    class_names,
    error_names,
    event_names,
    value_names,
)
from satview.store.arguments import taught
from satview.store.trace import Trace

# The parser of expressions, which makes a tree of nodes from a text and checks all limits.
#
# expression = both { "or" both } comparison = value [ sign value | [not] "in" ( list ) | ~ pattern | is ] both =
# inverse { "and" inverse } is = "is" [not] ( "known" | "unknown" | "true" | "false" ) inverse = { "not" } comparison
# value = | ^ & << >> + - * / % in the order of Python primary = number text name field word[n] arg.name call latency (
# ... )
#
# There are no attributes, no assignments, and no functions except those of the vocabulary.


# The tokenizer: words, numbers, texts, patterns and signs, each with its position.


TEXT_LIMIT: Final = 10_000  # characters of one expression
TOKEN_LIMIT: Final = 2_000


class TokenKind(StrEnum):
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
    """One token of an expression.

    Attributes:
        text: Its text; for TEXT and REGEX the content without quotes and slashes.
        start, end: Position in the expression.
        value: Value of a NUMBER, nanoseconds if it has a unit.
        has_unit: True for a NUMBER with a unit of time.
        ignores_case: True for a REGEX with `i` after it.
    """

    kind: TokenKind
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
    "<<", ">>", "<=", ">=", "==", "!=", "!~", "&&", "||", "->", "<", ">", "=", "~", "(", ")", "[", "]", ",", ".", "+",
    "-", "*", "/", "%", "&", "|", "^", "!",
)  # fmt: skip
_SYNONYMS: Final = {"&&": "and", "||": "or", "!": "not", "=": "=="}


def tokens(text: str) -> list[Token]:
    """Return the tokens of an expression; the last one is END.

    Raises ExpressionError if a character, number, text or pattern is faulty, or the expression is too long.
    """
    if len(text) > TEXT_LIMIT:
        raise ExpressionError(
            f"an expression may have {TEXT_LIMIT} characters, this has {len(text)}", TEXT_LIMIT, len(text)
        )
    tokens_read: list[Token] = []
    position = 0
    while True:
        space = _SPACE.match(text, position)
        position = space.end() if space else position
        if position >= len(text):
            tokens_read.append(Token(TokenKind.END, "", len(text), len(text)))
            return tokens_read
        if len(tokens_read) >= TOKEN_LIMIT:
            raise ExpressionError(f"an expression may have {TOKEN_LIMIT} parts", position, len(text))
        tokens_read.append(_next(text, position, tokens_read[-1] if tokens_read else None))
        position = tokens_read[-1].end


def _next(text: str, start: int, before: Token | None) -> Token:
    char = text[start]
    if name := _NAME.match(text, start):
        return Token(TokenKind.NAME, name.group(), start, name.end())
    if moment := MOMENT.match(text, start):
        return Token(TokenKind.MOMENT, moment.group(), start, moment.end())
    if _AMOUNT_BEGINS.match(text, start):
        return _number(text, start)
    if char in "\"'":
        return _quoted(text, start, char, TokenKind.TEXT)
    if char == "/" and before is not None and before.text in ("~", "!~"):
        return _quoted(text, start, "/", TokenKind.REGEX)
    for sign in _SIGNS:
        if text.startswith(sign, start):
            return Token(TokenKind.SIGN, _SYNONYMS.get(sign, sign), start, start + len(sign))
    raise ExpressionError(f"the character {char!r} has no meaning here", start, start + 1)


def _number(text: str, start: int) -> Token:
    amount = LENGTH.match(text, start)
    if amount is not None and amount[2].lower() in UNITS_NS:
        return _amount(amount)
    number = _NUMBER.match(text, start)
    if number is None:
        raise ExpressionError("a number with a fraction needs a unit of time, as in .5ms", start, start + 2)
    digits, unit = number.group(1).replace("_", ""), number.group(2)
    end = number.end()
    if digits[:2].lower() == "0x" and (len(digits) < 3 or unit):
        raise ExpressionError(f"{number.group()[:40]} is not a hexadecimal number", start, end)
    if len(digits) > _MOST_DIGITS:
        raise ExpressionError("the number has too many digits", start, end)
    if unit:
        raise ExpressionError(
            f"{unit[:40]!r} is not a unit; there are ns, us, ms, s", end - len(unit), end, ("ns", "us", "ms", "s")
        )
    if "." in digits:
        raise ExpressionError("a number with a fraction needs a unit of time, as in 1.5ms", start, end)
    value = int(digits, 16 if digits[:2].lower() == "0x" else 10)
    if value >= 1 << 64:
        raise ExpressionError("the number does not fit into 64 bits", start, end)
    return Token(TokenKind.NUMBER, number.group(), start, end, value)


def _amount(amount: re.Match[str]) -> Token:
    """Return the token of a duration such as `1.5ms` or `1 200 ns`, rounded to nanoseconds."""
    if len(amount[1]) > _MOST_DIGITS:
        raise ExpressionError("the number has too many digits", amount.start(), amount.end())
    value = round(amount_ns(amount[1], amount[2]))
    if value >= 1 << 64:
        raise ExpressionError("the number does not fit into 64 bits", amount.start(), amount.end())
    return Token(TokenKind.NUMBER, amount.group(), amount.start(), amount.end(), value, True)


def _quoted(text: str, start: int, quote: str, kind: TokenKind) -> Token:
    """Return the token of a text or pattern up to its closing sign, which a backslash escapes."""
    content, end = [], start + 1
    while end < len(text) and text[end] != quote:
        if text[end] == "\\" and end + 1 < len(text) and text[end + 1] in (quote, "\\"):
            # In a pattern the backslash is kept, as it has its own meaning there, except before the slash.
            content.append(text[end : end + 2] if kind is TokenKind.REGEX and text[end + 1] == "\\" else text[end + 1])
            end += 2
        else:
            content.append(text[end])
            end += 1
    if end >= len(text):
        raise ExpressionError(
            f"the {'pattern' if kind is TokenKind.REGEX else 'text'} is not closed with {quote}", start, len(text)
        )
    ignores_case = kind is TokenKind.REGEX and text[end + 1 : end + 2] == "i"
    return Token(kind, "".join(content), start, end + 1 + ignores_case, ignores_case=ignores_case)


NESTING_LIMIT: Final = 40
PATTERN_COUNT_LIMIT: Final = 40
IS_WORDS: Final = {
    "known": "the event shows the value",
    "unknown": "the event does not show the value",
    "true": "the condition holds",
    "false": "the condition is known not to hold",
}
"""Words that may follow `is`, and their meaning."""
_OF_CONDITIONS: Final = re.compile(
    rf"[=<>!~]|\bin\s*\(|\b(?:and|or|not)\s|\sis\s+(?:not\s+)?(?:{'|'.join(IS_WORDS)})\b"
)
LATENCY: Final = "latency"
_RESERVED: Final = ("and", "or", "not", "in", "is")
DEPTH_LIMIT: Final = 60  # depth of the tree; chains of + count, chains of and/or do not


def looks_like_condition(text: str) -> bool:
    """Return whether a text is more likely a condition than a plain name."""
    return _OF_CONDITIONS.search(text) is not None


def in_quotes(text: str) -> str:
    """Return a text in double quotes for a condition or rule; quotes and backslashes in the text are escaped."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def parse(text: str) -> nodes.Node:
    """Return the tree of an expression, in which names are not resolved yet.

    Raises ExpressionError, with the position, if the text does not follow the grammar or exceeds a limit.
    """
    return _ExpressionParser(text).whole()


class _ExpressionParser:
    """Recursive descent parser; every method raises ExpressionError, with the position, for an unexpected token."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens = text, tokens(text)
        self.position = self.depth = self.pattern_count = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        token = self.tokens[self.position]
        self.position += token.kind is not TokenKind.END
        return token

    def is_next(self, *texts: str) -> bool:
        return self.token.kind in (TokenKind.SIGN, TokenKind.NAME) and self.token.text in texts

    def expect(self, sign: str, opener: Token) -> Token:
        if self.is_next(sign):
            return self.take()
        raise ExpressionError(
            f"{sign!r} is missing for {opener.text!r} at column {opener.start + 1}",
            self.token.start,
            max(self.token.end, self.token.start + 1),
        )

    def whole(self) -> nodes.Node:
        if not self.is_more():
            raise ExpressionError("the expression is empty", 0, 0)
        node = self.any_of()
        if self.is_more():
            raise self.unexpected("and, or, or the end is expected here")
        return node

    def is_more(self) -> bool:
        return self.token.kind is not TokenKind.END

    def unexpected(self, message: str, words: tuple[str, ...] = _RESERVED) -> ExpressionError:
        token = self.token
        if token.kind is TokenKind.END:
            return ExpressionError.of(token, f"the expression ends too early; {message}")
        hints = nearest(token.text, words) if token.kind is TokenKind.NAME else ()
        return ExpressionError.of(token, f"{token.text[:40]!r} does not fit; {message}{did_you_mean(hints)}", hints)

    def any_of(self) -> nodes.Node:
        parts = [self.all_of()]
        while self.is_next("or"):
            self.take()
            parts.append(self.all_of())
        return parts[0] if len(parts) == 1 else nodes.Or(parts[0].start, parts[-1].end, tuple(parts))

    def all_of(self) -> nodes.Node:
        parts = [self.inverse()]
        while self.is_next("and"):
            self.take()
            parts.append(self.inverse())
        return parts[0] if len(parts) == 1 else nodes.And(parts[0].start, parts[-1].end, tuple(parts))

    def inverse(self) -> nodes.Node:
        start, count = self.token.start, 0
        while self.is_next("not"):
            self.take()
            count += 1
        node = self.comparison()
        return nodes.Not(start, node.end, node) if count % 2 else node

    def comparison(self) -> nodes.Node:
        left = self.value(0)
        negated = self.is_next("not") and self.tokens[self.position + 1].text == "in"
        if negated:
            self.take()
        if self.is_next("in"):
            node: nodes.Node = self.membership(left)
        elif self.is_next("~", "!~"):
            negated = self.take().text == "!~"
            node = self.match(left)
        elif self.is_next("is"):
            node, negated = self.question(left)
        elif self.is_next(*COMPARISONS):
            sign = self.take().text
            right = self.value(0)
            node = nodes.Compare(left.start, right.end, sign, left, right)
        else:
            return left
        if self.is_next(*COMPARISONS, "~", "!~", "in", "is"):
            raise self.unexpected("compare twice and join with and")
        return nodes.Not(node.start, node.end, node) if negated else node

    def question(self, left: nodes.Node) -> tuple[nodes.Node, bool]:
        """Return the node of a test such as `is known` after a value, and whether `not` follows the `is`."""
        self.take()
        negated = self.is_next("not")
        if negated:
            self.take()
        if not self.is_next(*IS_WORDS):
            raise self.unexpected("known, unknown, true or false follows is", tuple(IS_WORDS))
        token = self.take()
        return nodes.Is(left.start, token.end, left, token.text), negated

    def membership(self, left: nodes.Node) -> nodes.Node:
        self.take()
        opener = self.token
        if not self.is_next("("):
            raise self.unexpected("a list in brackets follows in, as in (1, 2)")
        self.take()
        items = [self.value(0)]
        while self.is_next(","):
            self.take()
            if self.is_next(")"):
                break
            items.append(self.value(0))
        return nodes.In(left.start, self.expect(")", opener).end, left, tuple(items))

    def match(self, left: nodes.Node) -> nodes.Node:
        token = self.token
        if token.kind is TokenKind.TEXT:
            pattern = glob(token.text, token.start + 1)
        elif token.kind is TokenKind.REGEX:
            pattern = regex(token.text, token.ignores_case, token.start + 1)
        else:
            raise self.unexpected('a pattern follows ~, as in "devb-*" or /dev[bc]/')
        self.take()
        self.pattern_count += 1
        if self.pattern_count > PATTERN_COUNT_LIMIT:
            raise ExpressionError.of(
                token, f"an expression may have {PATTERN_COUNT_LIMIT} patterns; one like /a|b|c/ represents several"
            )
        return nodes.PatternMatch(left.start, token.end, left, pattern)

    def value(self, level: int) -> nodes.Node:
        """Parse operators of one precedence level, whose operands are parsed at the next level; return the node."""
        left = self.value(level + 1) if level + 1 < len(LEVELS) else self.unary()
        count = 0
        while self.token.kind is TokenKind.SIGN and self.token.text in LEVELS[level]:
            sign = self.take().text
            right = self.value(level + 1) if level + 1 < len(LEVELS) else self.unary()
            left = nodes.Arithmetic(left.start, right.end, sign, left, right)
            count += 1
            if count > DEPTH_LIMIT:
                raise ExpressionError.of(left, f"more than {DEPTH_LIMIT} values in one sum")
        return left

    def unary(self) -> nodes.Node:
        start, count = self.token.start, 0
        while self.is_next("-", "+") and self.token.kind is TokenKind.SIGN:
            count += self.take().text == "-"
        node = self.primary()
        return nodes.Negative(start, node.end, node) if count % 2 else node

    def primary(self) -> nodes.Node:
        token = self.token
        if token.kind is TokenKind.NUMBER:
            self.take()
            return nodes.Number(token.start, token.end, token.value)
        if token.kind is TokenKind.MOMENT:
            self.take()
            return nodes.Moment(token.start, token.end, token.text)
        if token.kind is TokenKind.TEXT:
            self.take()
            return nodes.Text(token.start, token.end, token.text)
        if token.kind is TokenKind.NAME and token.text not in _RESERVED:
            return self.named()
        if self.is_next("("):
            return self.bracket()
        raise self.unexpected("a value is expected here")

    def bracket(self) -> nodes.Node:
        opener = self.take()
        self.depth += 1
        if self.depth > NESTING_LIMIT:
            raise ExpressionError.of(opener, f"brackets nested deeper than {NESTING_LIMIT}")
        node = self.any_of()
        self.expect(")", opener)
        self.depth -= 1
        return node

    def named(self) -> nodes.Node:
        token = self.take()
        if token.text == "arg" and self.is_next("."):
            return self.argument(token)
        if token.text == "word":
            return self.word(token)
        if self.is_next("("):
            return self.call(token)
        if self.is_next("."):
            raise ExpressionError.of(self.token, "a field has no parts; only arg. is followed by a name")
        if token.text in FIELDS:
            return nodes.EventField(token.start, token.end, token.text)
        return nodes.BareWord(token.start, token.end, token.text)

    def word(self, token: Token) -> nodes.Node:
        opener = self.token
        if not self.is_next("["):
            raise ExpressionError.of(token, "write word[0], word[1], ...")
        self.take()
        index = self.token
        if index.kind is not TokenKind.NUMBER or index.has_unit or index.value >= WORD_LIMIT:
            raise ExpressionError.of(index, f"the number of a payload word, 0 to {WORD_LIMIT - 1}, is expected here")
        self.take()
        return nodes.Word(token.start, self.expect("]", opener).end, index.value)

    def argument(self, token: Token) -> nodes.Node:
        """Parse the name of an argument, such as `rparts`, `msg[0]`, `new->sec`, or text in quotes; return the node."""
        self.take()
        name = self.token
        if name.kind is TokenKind.TEXT:
            self.take()
            return nodes.NamedArgument(token.start, name.end, name.text)
        if name.kind is not TokenKind.NAME:
            raise self.unexpected("the name of an argument follows arg.")
        end = self.take().end
        while self.is_next("[", "->", ".") and self.token.start == end:
            sign = self.take()
            part = self.token
            if part.kind is not (TokenKind.NUMBER if sign.text == "[" else TokenKind.NAME):
                raise self.unexpected("the name of the argument goes on here; put unusual names into quotes")
            self.take()
            end = self.expect("]", sign).end if sign.text == "[" else part.end
        return nodes.NamedArgument(token.start, end, self.text[name.start : end])

    def call(self, token: Token) -> nodes.Node:
        if token.text == LATENCY:
            return self.latency(token)
        if token.text not in FUNCTIONS:
            hints = nearest(token.text, (*FUNCTIONS, LATENCY))
            raise ExpressionError.of(token, f"there is no function {token.text[:40]!r}{did_you_mean(hints)}", hints)
        opener = self.take()
        self.depth += 1
        if self.depth > NESTING_LIMIT:
            raise ExpressionError.of(opener, f"brackets nested deeper than {NESTING_LIMIT}")
        arguments = [] if self.is_next(")") else [self.value(0)]
        while self.is_next(","):
            self.take()
            arguments.append(self.value(0))
        end = self.expect(")", opener).end
        self.depth -= 1
        if len(arguments) != FUNCTIONS[token.text].count:
            raise ExpressionError(f"{token.text} takes {FUNCTIONS[token.text].count}", token.start, end)
        return nodes.FunctionCall(token.start, end, token.text, tuple(arguments))

    def latency(self, token: Token) -> nodes.Node:
        """Parse the two events of `latency("tick", "done")`; return the node."""
        opener = self.take()
        from_event = self.pair_name()
        if not self.is_next(","):
            raise self.unexpected('two events, as in latency("tick", "done"), are expected here')
        self.take()
        to_event = self.pair_name()
        return nodes.Latency(token.start, self.expect(")", opener).end, from_event, to_event)

    def pair_name(self) -> nodes.Text | nodes.Number:
        token = self.token
        if token.kind is TokenKind.TEXT and token.text:
            self.take()
            return nodes.Text(token.start, token.end, token.text)
        if token.kind is TokenKind.NUMBER and not token.has_unit:
            self.take()
            return nodes.Number(token.start, token.end, token.value)
        raise self.unexpected("the name of an event in quotes, or the number of a user event, is expected here")


# Completion of expressions: the proposals that fit at the cursor.


LIMIT: Final = 200
_LOOK_BACK: Final = 4000  # characters before the cursor that are examined
_WORD: Final = re.compile(r"[A-Za-z_][\w]*$")
_QUOTED: Final = re.compile(r'"[^"]*$')
_ARGUMENT: Final = re.compile(r"\barg\.([\w\[\]>.-]*)$")
_AFTER_FIELD: Final = re.compile(r"(\w+)\s*(==|!=|~|!~|(?:not\s+)?in\s*\((?:[^()]*,)?)\s*$")
_AFTER_ARGUMENT: Final = re.compile(
    r'\barg\.(?:([A-Za-z_][\w\[\]>.-]*?)|"([^"]+)")\s*(?:==|!=|~|!~|(?:not\s+)?in\s*\((?:[^()]*,)?)\s*$'
)
_OPERAND_ENDS: Final = re.compile(r"([\w\])\"'/])\s*$")
_EVENT: Final = re.compile(r"\bevent\s*==\s*\"?(\w+)")


@dataclass(frozen=True, slots=True)
class Completion:
    """A text that can complete an expression at the cursor.

    Attributes:
        text: Text that replaces the expression from `start` to `end`.
        start, end: Position of the replaced part: the word before the cursor.
        help: Meaning of the text; may be empty.
    """

    text: str
    start: int
    end: int
    help: str = ""


def completions(text: str, position: int, release: Release, trace: Trace | None = None) -> list[Completion]:
    """Return the proposals that fit at the cursor, most likely first, at most 200.

    Args:
        text: The expression, which may be incomplete.
        position: Position of the cursor, 0 to len(text).
        release: Release whose names are proposed.
        trace: Trace whose processes and threads are proposed too; None = without these.
    """
    before = text[max(0, position - _LOOK_BACK) : position]
    if argument := _ARGUMENT.search(before):
        typed, items = argument.group(1), _arguments(before, release, trace)
    elif (quoted := _QUOTED.search(before)) and before.count('"') % 2:
        typed = quoted.group()
        items = list(_values(before[: quoted.start()], release, trace, in_quotes=True))
    else:
        word = _WORD.search(before)
        typed = word.group() if word else ""
        items = list(_completions(before[: len(before) - len(typed)], release, trace))
    requested = typed.strip('"').upper()
    start = position - len(typed)
    bare = [(name.strip('"').upper(), name, note) for name, note in dict(items).items()]
    beginning = [(name, note) for key, name, note in bare if key.startswith(requested)]
    containing = [(name, note) for key, name, note in bare if requested in key and not key.startswith(requested)]
    return [Completion(name, start, position, note) for name, note in (*beginning, *containing) if name != typed][
        :LIMIT
    ]


def _completions(before: str, release: Release, trace: Trace | None) -> Iterator[tuple[str, str]]:
    values = list(_values(before, release, trace))
    if values:
        yield from values
        return
    bare = before.rstrip()
    if follows_is := re.search(r"\bis(\s+not)?$", bare):
        yield from (*IS_WORDS.items(), *(() if follows_is[1] else (("not", "the opposite"),)))
        return
    follows_operator = re.search(r"\b(and|or|not|in)$", bare) is not None
    if _OPERAND_ENDS.search(bare) and not follows_operator:
        yield from _signs(bare)
        return
    yield from ((name, field_help(name)) for name in FIELDS)
    yield from (("arg.", "argument by name"), ("word[", "payload word by number"), ("not", "the opposite"))
    yield from ((f"{name}(", spec.help) for name, spec in FUNCTIONS.items())


def field_help(name: str) -> str:
    """Return the help text of a field, with a note if a capture knows the value only after the event."""
    spec = FIELDS[name]
    return spec.help if spec.known is KnownWhen.EVENT else f"{spec.help} (known {spec.known})"


def _signs(before: str) -> Iterator[tuple[str, str]]:
    field = _WORD.search(before)
    kind = FIELDS[field.group()].kind if field and field.group() in FIELDS else None
    if kind is FieldKind.FLAG:
        signs: Iterable[str] = ()
    elif kind in (FieldKind.CLASS, FieldKind.EVENT, FieldKind.STATE, FieldKind.TEXT):
        signs = ("==", "!=", "in", "~", "!~")
    else:
        signs = ("==", "!=", "<", "<=", ">", ">=", "in", "~")
    yield from ((sign, "") for sign in signs)
    yield from ((f"is {word}", help_) for word, help_ in IS_WORDS.items())
    yield from (("and", "both hold"), ("or", "at least one holds"))


def _values(before: str, release: Release, trace: Trace | None, in_quotes: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the values that can be compared with the field or argument before the cursor, each with a note."""
    if argument := _AFTER_ARGUMENT.search(before):
        taught_by_trace = None if trace is None else taught(trace)
        texts = value_names(release, argument[1] or argument[2], taught_by_trace)
        yield from ((f'"{text}"', note) for text, note in texts.items() if '"' not in text)
        return
    comparison = _AFTER_FIELD.search(before)
    name = comparison.group(1) if comparison else ""
    if comparison is None or name not in FIELDS:
        return
    kind, is_pattern = FIELDS[name].kind, "~" in comparison.group(2)
    names: Iterable[tuple[str, str]] = ()
    if kind is FieldKind.CLASS:
        names = ((item, "") for item in class_names(release))
    elif kind is FieldKind.EVENT:
        names = ((item, "") for item in event_names(release))
    elif kind is FieldKind.STATE:
        names = ((state.name, state.meaning) for state in states.STATES)
    elif kind is FieldKind.ERROR:
        names = ((item, "") for item in error_names(release))
    elif trace is not None:
        names = _of_trace(name, trace)
    quotes = is_pattern or in_quotes
    yield from ((f'"{item}"' if quotes and not item.startswith('"') else item, note) for item, note in names)


def _of_trace(field: str, trace: Trace) -> Iterator[tuple[str, str]]:
    if field == "pid":
        for pid, name in zip(trace.processes.pid.tolist(), trace.processes.names, strict=True):
            if pid >= 0:
                yield str(pid), name
    elif field == "name":
        for name, pids in process_names(trace).items():
            if "/" not in name and '"' not in name:
                yield f'"{name}"', f"pid {', '.join(map(str, pids[:5]))}"
    elif field == "thread_name":
        yield from ((f'"{name}"', "") for name in sorted({*trace.threads.names} - {""}) if '"' not in name)
    elif field == "cpu":
        yield from ((str(cpu), "") for cpu in range(trace.cpu_count))


def _arguments(before: str, release: Release, trace: Trace | None) -> list[tuple[str, str]]:
    """Return the arguments of the events that the expression names, else of all, in quotes if necessary, with notes."""
    named = _EVENT.findall(before)
    known = argument_names(release, None if trace is None else taught(trace))
    if named:
        codes = {code for name in named for code in listed_catalogue(release).find(name)}
        of_event = [name for name, owners in known.items() if codes.intersection(owners)]
    names = of_event if named and of_event else list(known)
    return [
        (
            name if re.fullmatch(r"[A-Za-z_]\w*(?:\[\d+\]|->\w+|\.\w+)*", name) else f'"{name}"',
            "wide form only" if is_wide_only(name, release) else "",
        )
        for name in names
        if '"' not in name and name != "empty"
    ]
