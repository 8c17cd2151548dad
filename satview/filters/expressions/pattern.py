"""Regular expressions and globs whose cost is bounded whatever the pattern and the text are.

Python's `re` backtracks: a pattern from a stranger's file can keep it busy for years. RE2 reads each character of a
text once. The pattern is parsed here, which gives faults with their position and one meaning for views and for exported
programs, and handed to RE2 in its plainest form: sets of code points, and what repeats them. A budget stops a pattern
that is costly even so.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from satview.filters.diagnostics import ExpressionError

# The syntax of patterns: text to a tree, with every limit checked on the way.


PATTERN_LIMIT: Final = 500  # characters
SIZE_LIMIT: Final = 600  # instructions of the automaton
REPEAT_LIMIT: Final = 100
NESTING_LIMIT: Final = 20

Ranges = tuple[tuple[int, int], ...]
"""Code points, (first, last) each; in no order, may overlap."""
_DIGITS: Final[Ranges] = ((48, 57),)
_WORD: Final[Ranges] = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Final[Ranges] = ((9, 13), (32, 32))
_CLASSES: Final = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_LAST: Final = 0x10FFFF
_LAST_LETTER: Final = 0x1E943  # of those with two cases: ADLAM
_LAST_OF_ASCII: Final = 0x212A  # whose small letter is in ASCII: the Kelvin sign
ANY_CHARACTER: Final[Ranges] = ((0, _LAST),)


def _inverted(ranges: Ranges) -> Ranges:
    result, at = [], 0
    for low, high in sorted(ranges):
        if low > at:
            result.append((at, low - 1))
        at = max(at, high + 1)
    return (*result, (at, _LAST)) if at <= _LAST else tuple(result)


def _one(char: str) -> Ranges:
    return ((ord(char), ord(char)),)


def _both_cases(ranges: Ranges) -> Ranges:
    """Return ranges with every character whose capital or small letter is in them."""
    is_ascii = all(high < 0x80 for _, high in ranges)
    others = _other_cases(_LAST_OF_ASCII if is_ascii else _LAST_LETTER)
    more = {
        other
        for low, high in ranges
        for number in (others if high - low > len(others) else range(low, high + 1))
        if low <= number <= high
        for other in others.get(number, ())
    }
    return (*ranges, *((number, number) for number in sorted(more)))


@cache
def _other_cases(last: int) -> dict[int, list[int]]:
    """Return for every letter the characters, up to `last`, that it is the capital or small letter of."""
    found: dict[int, list[int]] = {}
    for char in map(chr, range(last + 1)):
        for other in {char.lower(), char.upper()} - {char}:
            if len(other) == 1:
                found.setdefault(ord(other), []).append(ord(char))
    return found


@dataclass(slots=True)
class PatternNode:
    """A part of a pattern.

    Attributes:
        kind: `set` (one character), `cat` (parts in a row), `alt` (one of the parts), `repeat` (the only part, `low` to
            `high` times), `start`, `end`.
        ranges: Of a set, the characters; both cases where case is ignored.
        parts: Of all but a set and an anchor.
        low, high: Of a repetition; high -1 = without limit.
    """

    kind: str
    ranges: Ranges = ()
    parts: list[PatternNode] = field(default_factory=list)
    low: int = 0
    high: int = -1


def size_of(node: PatternNode) -> int:
    """Return how many instructions the automaton of a part has: what a character of a text costs at most."""
    if not node.parts:
        return int(node.kind in ("set", "start", "end"))
    if node.kind == "cat":
        return sum(map(size_of, node.parts))
    if node.kind == "alt":
        return sum(map(size_of, node.parts)) + len(node.parts) - 1
    size = size_of(node.parts[0])
    optional = size + 1 if node.high < 0 else (node.high - node.low) * (size + 1)
    return node.low * size + optional


class _Reader:
    """Recursive descent over the text of a pattern; every method raises ExpressionError, with the position."""

    def __init__(self, text: str, offset: int, ignores_case: bool = False) -> None:
        self.text, self.offset, self.ignores_case = text, offset, ignores_case
        self.at = self.depth = 0

    def fail(self, message: str, start: int, end: int | None = None) -> ExpressionError:
        return ExpressionError(message, self.offset + start, self.offset + (start + 1 if end is None else end))

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def take(self) -> str:
        char = self.peek()
        self.at += 1
        return char

    def alternatives(self) -> PatternNode:
        branches = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            branches.append(self.sequence())
        return branches[0] if len(branches) == 1 else PatternNode("alt", parts=branches)

    def sequence(self) -> PatternNode:
        parts = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.repeated())
        return PatternNode("cat", parts=parts)

    def repeated(self) -> PatternNode:
        start = self.at
        node = self.atom()
        count = 0
        while (bounds := self.bounds()) is not None:
            count += 1
            if node.kind in ("start", "end"):
                raise self.fail("an anchor cannot be repeated", start, self.at)
            if count > 1:
                raise self.fail("a repetition of a repetition; put the first into brackets", start, self.at)
            if self.peek() == "?":
                raise self.fail("lazy repetition makes no difference here; leave the ? out", self.at)
            node = PatternNode("repeat", parts=[node], low=bounds[0], high=bounds[1])
        return node

    def bounds(self) -> tuple[int, int] | None:
        char = self.peek()
        if char in ("*", "+", "?") and char:
            self.at += 1
            return {"*": (0, -1), "+": (1, -1), "?": (0, 1)}[char]
        end = self.text.find("}", self.at) if char == "{" else -1
        if end < 0:
            return None
        start, (low, comma, high) = self.at, self.text[self.at + 1 : end].partition(",")
        if not _is_count(low) or (high and not _is_count(high)):
            raise self.fail("write a repetition as {2}, {2,} or {2,5}", start, end + 1)
        self.at = end + 1
        least = int(low)
        most = int(high) if high else -1 if comma else least
        if max(least, most) > REPEAT_LIMIT or (most >= 0 and most < least):
            raise self.fail(f"a repetition goes up, and to {REPEAT_LIMIT} at most", start, end + 1)
        return least, most

    def atom(self) -> PatternNode:
        start, char = self.at, self.take()
        if char == "(":
            return self.group(start)
        if char == "[":
            return PatternNode("set", self.char_set(start))
        if char == ".":
            return PatternNode("set", _inverted(((10, 10),)))
        if char in ("^", "$"):
            return PatternNode("start" if char == "^" else "end")
        if char == "\\":
            return PatternNode("set", self.escape(start))
        if char in ("*", "+", "?"):
            raise self.fail(f"there is nothing before {char} to repeat", start)
        return PatternNode("set", self.character(char))

    def group(self, start: int) -> PatternNode:
        if self.peek() == "?":
            if self.text[self.at : self.at + 2] != "?:":
                raise self.fail("look-around, names and flags are not available here", start, self.at + 2)
            self.at += 2
        self.depth += 1
        if self.depth > NESTING_LIMIT:
            raise self.fail(f"brackets nested deeper than {NESTING_LIMIT}", start)
        node = self.alternatives()
        if self.take() != ")":
            raise self.fail("the bracket is not closed", start)
        self.depth -= 1
        return node

    def escape(self, start: int) -> Ranges:
        char = self.take()
        if char.lower() in _CLASSES and char:
            ranges = _CLASSES[char.lower()]
            return ranges if char.islower() else _inverted(ranges)
        if char in _CONTROLS:
            return _one(_CONTROLS[char])
        if not char or char in string.ascii_letters + string.digits:
            raise self.fail("unknown escape; back references and word boundaries are not available", start, self.at)
        return self.character(char)

    def character(self, char: str) -> Ranges:
        return _both_cases(_one(char)) if self.ignores_case else _one(char)

    def char_set(self, start: int) -> Ranges:
        negated = self.peek() == "^"
        self.at += negated
        ranges: list[tuple[int, int]] = []
        first = True
        while (char := self.peek()) != "]" or first:
            if not char:
                raise self.fail("the set is not closed", start)
            ranges += self.set_item()
            first = False
        self.at += 1
        return _inverted(tuple(ranges)) if negated else tuple(ranges)

    def set_item(self) -> Ranges:
        start = self.at
        low = self.set_member()
        if self.peek() != "-" or self.text[self.at + 1 : self.at + 2] in ("]", ""):
            return self.folded(low)
        self.at += 1
        high = self.set_member()
        is_single = all(len(side) == 1 and side[0][0] == side[0][1] for side in (low, high))
        if not is_single or high[0][0] < low[0][0]:
            raise self.fail("a range goes from a lower to a higher character", start, self.at)
        return self.folded(((low[0][0], high[0][0]),))

    def set_member(self) -> Ranges:
        start, char = self.at, self.take()
        if char != "\\":
            return _one(char)
        ignores_case, self.ignores_case = self.ignores_case, False  # a range needs the character as written
        try:
            return self.escape(start)
        finally:
            self.ignores_case = ignores_case

    def folded(self, ranges: Ranges) -> Ranges:
        return _both_cases(ranges) if self.ignores_case else ranges


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


def parse_regex(text: str, ignores_case: bool, offset: int) -> PatternNode:
    """Return the tree of a regular expression.

    Args:
        text: The pattern, without slashes.
        ignores_case: Whether capitals match small letters.
        offset: Where it begins in the expression, for error positions.

    Raises:
        ExpressionError: It is faulty, or larger than the limits above.
    """
    source = _checked(text, offset, ignores_case)
    root = source.alternatives()
    if source.at < len(text):
        raise source.fail("a closing bracket without an opening one", source.at)
    if size_of(root) >= SIZE_LIMIT:
        raise source.fail("the pattern is too large once its repetitions are written out", 0, len(text))
    return root


def parse_glob(text: str, offset: int) -> PatternNode:
    """Return the tree of a glob: `*` any characters, `?` one, `[abc]` one of.

    Raises:
        ExpressionError: It is longer than the limits allow, or a range in it goes down.
    """
    source = _checked(text, offset)
    parts: list[PatternNode] = []
    while char := source.peek():
        start = source.at
        source.at += 1
        if char == "*":
            if not parts or parts[-1].kind != "repeat":
                parts.append(PatternNode("repeat", parts=[PatternNode("set", ANY_CHARACTER)]))
        elif char == "?":
            parts.append(PatternNode("set", ANY_CHARACTER))
        elif char == "[" and "]" in text[source.at + 1 :]:
            parts.append(PatternNode("set", source.char_set(start)))
        else:
            parts.append(PatternNode("set", _one(char)))
    root = PatternNode("cat", parts=parts)
    if size_of(root) >= SIZE_LIMIT:
        raise source.fail("the pattern is too large", 0, len(text))
    return root


def _checked(text: str, offset: int, ignores_case: bool = False) -> _Reader:
    if len(text) > PATTERN_LIMIT:
        raise ExpressionError(f"a pattern may have {PATTERN_LIMIT} characters", offset, offset + len(text))
    return _Reader(text, offset, ignores_case)


TEXT_LIMIT: Final = 4096  # characters looked at
STEP_BUDGET: Final = 20_000_000_000  # bytes times instructions per evaluation: RE2 takes a nanosecond each at worst


class Pattern:
    """A compiled pattern.

    Args:
        text: As written, without slashes.
        root: Its tree.
        ignores_case: True after `/i`.
        is_whole: True for globs: the whole text has to fit, not a part of it.
        offset: Where it begins in the expression, for error positions.

    Attributes:
        allowance: Its budget per evaluation; patterns that are used together share one.

    Raises:
        ExpressionError: RE2 does not take it.
    """

    def __init__(self, text: str, root: PatternNode, ignores_case: bool, is_whole: bool, offset: int) -> None:
        self.text, self.root, self.ignores_case, self.is_whole = text, root, ignores_case, is_whole
        self._search = _compiled(root, is_whole, text, offset).search
        self._cost = size_of(root) + 1
        self.allowance = self._budget = STEP_BUDGET

    def refill(self) -> None:
        """Grant a new budget; called at the start of an evaluation."""
        self._budget = self.allowance

    def matches(self, text: str) -> bool:
        """Return whether the pattern occurs in a text (globs: fits the whole of it); 4096 characters are looked at.

        Raises:
            ExpressionError: The budget of this evaluation is used up.
        """
        data = text[:TEXT_LIMIT].encode("utf-8", "surrogatepass")
        self._budget -= (len(data) + 1) * self._cost
        if self._budget < 0:
            raise ExpressionError(f"the pattern {self.text[:40]!r} takes too long on this trace; make it simpler", 0, 0)
        return self._search(data) is not None


def _compiled(root: PatternNode, is_whole: bool, text: str, offset: int) -> Any:
    import re2  # on first use: a window without patterns need not wait for it

    options = re2.Options()
    options.log_errors = False
    source = regex_of(root)
    try:
        return re2.compile(rf"\A(?:{source})\z" if is_whole else source, options)
    except re2.error as error:
        detail = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        raise ExpressionError(f"the pattern cannot be used: {detail}", offset, offset + len(text)) from None


def regex_of(node: PatternNode) -> str:
    """Return a part of a pattern in the syntax of RE2."""
    if node.kind == "set":
        return _set_of(node.ranges)
    if node.kind in ("start", "end"):
        return r"\A" if node.kind == "start" else r"\z"
    if node.kind == "cat":
        return "".join(map(regex_of, node.parts))
    if node.kind == "alt":
        return f"(?:{'|'.join(map(regex_of, node.parts))})"
    part = node.parts[0]
    if not size_of(part):  # nothing, however often
        return ""
    return f"(?:{regex_of(part)}){{{node.low},{'' if node.high < 0 else node.high}}}"


def _set_of(ranges: Ranges) -> str:
    items = "".join(rf"\x{{{low:x}}}-\x{{{high:x}}}" for low, high in ranges)
    return f"[{items}]" if items else r"[^\x{0}-\x{10ffff}]"


def share_budget(patterns: Sequence[Pattern]) -> None:
    """Let patterns that are used together cost no more than one."""
    for pattern in patterns:
        pattern.allowance = STEP_BUDGET // len(patterns)


def regex(text: str, ignores_case: bool = False, offset: int = 0) -> Pattern:
    """Return a compiled regular expression.

    Args:
        text: The pattern, without slashes.
        ignores_case: Whether capitals match small letters.
        offset: Where it begins in the expression, for error positions.

    Raises:
        ExpressionError: It is faulty, or larger than the limits.
    """
    return Pattern(text, parse_regex(text, ignores_case, offset), ignores_case, False, offset)


def glob(text: str, offset: int = 0) -> Pattern:
    """Return a compiled glob: `*` any characters, `?` one, `[abc]` one of; the whole text has to fit.

    Raises:
        ExpressionError: It is longer than the limits allow.
    """
    return Pattern(text, parse_glob(text, offset), False, True, offset)
