"""Regular expressions and globs whose cost is bounded whatever the pattern and the text are.

Python's `re` backtracks: a pattern from a stranger's file can keep it busy for years. Here a pattern becomes a small
automaton that reads each character once (Thompson's construction, its state sets kept as they turn up), so the cost
is at most text times pattern, and a budget stops even that. There are no back references and no look-around;
everything else means what it means in `re`.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from satview.filters.diagnostics import ExpressionError

PATTERN_LIMIT: Final = 500  # characters
PROGRAM_LIMIT: Final = 600  # instructions
REPEAT_LIMIT: Final = 100
NESTING_LIMIT: Final = 20
TEXT_LIMIT: Final = 4096  # characters looked at
STEP_BUDGET: Final = 3_000_000  # instructions visited per evaluation: some seconds, then it stops with a message
_CACHE_LIMIT: Final = 2000  # state sets remembered

Ranges = tuple[tuple[int, int], ...]
_DIGITS: Final[Ranges] = ((48, 57),)
_WORD: Final[Ranges] = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Final[Ranges] = ((9, 13), (32, 32))
_CLASSES: Final = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROLS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_LAST: Final = 0x10FFFF


def _inverted(ranges: Ranges) -> Ranges:
    result, at = [], 0
    for low, high in sorted(ranges):
        if low > at:
            result.append((at, low - 1))
        at = max(at, high + 1)
    return (*result, (at, _LAST)) if at <= _LAST else tuple(result)


@dataclass(slots=True)
class _Node:
    """Part of a pattern: `set`, `cat`, `alt`, `repeat`, `start`, `end`."""

    kind: str
    ranges: Ranges = ()
    parts: list[_Node] = field(default_factory=list)
    low: int = 0
    high: int = -1  # -1 = without limit


class _Reader:
    """Recursive descent over the text of a pattern."""

    def __init__(self, text: str, offset: int) -> None:
        self.text, self.offset, self.at, self.depth = text, offset, 0, 0

    def fail(self, message: str, start: int, end: int | None = None) -> ExpressionError:
        return ExpressionError(message, self.offset + start, self.offset + (start + 1 if end is None else end))

    def peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def take(self) -> str:
        char = self.peek()
        self.at += 1
        return char

    def alternatives(self) -> _Node:
        branches = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            branches.append(self.sequence())
        return branches[0] if len(branches) == 1 else _Node("alt", parts=branches)

    def sequence(self) -> _Node:
        parts = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.repeated())
        return _Node("cat", parts=parts)

    def repeated(self) -> _Node:
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
            node = _Node("repeat", parts=[node], low=bounds[0], high=bounds[1])
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

    def atom(self) -> _Node:
        start, char = self.at, self.take()
        if char == "(":
            return self.group(start)
        if char == "[":
            return _Node("set", self.char_set(start))
        if char == ".":
            return _Node("set", _inverted(((10, 10),)))
        if char in ("^", "$"):
            return _Node("start" if char == "^" else "end")
        if char == "\\":
            return _Node("set", self.escape(start))
        if char in ("*", "+", "?"):
            raise self.fail(f"nothing stands before {char}", start)
        return _Node("set", ((ord(char), ord(char)),))

    def group(self, start: int) -> _Node:
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
            return ((ord(_CONTROLS[char]),) * 2,)
        if not char or char in string.ascii_letters + string.digits:
            raise self.fail("unknown escape; back references and word boundaries are not available", start, self.at)
        return ((ord(char), ord(char)),)

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
        start, char = self.at, self.take()
        low = self.escape(start) if char == "\\" else ((ord(char), ord(char)),)
        if self.peek() != "-" or self.text[self.at + 1 : self.at + 2] in ("]", ""):
            return low
        self.at += 1
        char = self.take()
        high = self.escape(self.at - 1) if char == "\\" else ((ord(char), ord(char)),)
        is_single = all(len(side) == 1 and side[0][0] == side[0][1] for side in (low, high))
        if not is_single or high[0][0] < low[0][0]:
            raise self.fail("a range goes from a lower to a higher character", start, self.at)
        return ((low[0][0], high[0][0]),)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


_CHAR, _SPLIT, _START, _END, _MATCH = range(5)


class _Program:
    """Instructions: (operation, ranges, next, other)."""

    def __init__(self, source: _Reader) -> None:
        self.source = source
        self.code: list[tuple[int, Ranges, int, int]] = [(_MATCH, (), 0, 0)]

    def add(self, operation: int, following: int, ranges: Ranges = (), other: int = 0) -> int:
        if len(self.code) >= PROGRAM_LIMIT:
            raise self.source.fail(
                "the pattern is too large once its repetitions are written out", 0, len(self.source.text)
            )
        self.code.append((operation, ranges, following, other))
        return len(self.code) - 1

    def build(self, node: _Node, following: int) -> int:
        """Add the instructions of a node that go on at `following`; return where it begins."""
        if node.kind == "set":
            return self.add(_CHAR, following, node.ranges)
        if node.kind in ("start", "end"):
            return self.add(_START if node.kind == "start" else _END, following)
        if node.kind == "cat":
            for part in reversed(node.parts):
                following = self.build(part, following)
            return following
        if node.kind == "alt":
            branches = [self.build(part, following) for part in node.parts]
            entry = branches[-1]
            for branch in reversed(branches[:-1]):
                entry = self.add(_SPLIT, branch, other=entry)
            return entry
        return self.repeat(node, following)

    def repeat(self, node: _Node, following: int) -> int:
        body, entry = node.parts[0], following
        if node.high < 0:
            loop = self.add(_SPLIT, 0, other=following)
            inner = self.build(body, loop)
            self.code[loop] = (_SPLIT, (), inner, following)
            entry = loop
        else:
            for _ in range(node.high - node.low):
                entry = self.add(_SPLIT, self.build(body, entry), other=following)
        for _ in range(node.low):
            entry = self.build(body, entry)
        return entry


class Pattern:
    """A compiled pattern.

    Attributes:
        text: As written, without slashes.
        is_whole: True for globs: the whole text has to fit, not a part of it.
        ignores_case: True after `/i`.
        allowance: Its budget per evaluation; patterns that are used together share one.
        entry: Instruction where it begins.
    """

    def __init__(self, text: str, ignores_case: bool, is_whole: bool, root: _Node, source: _Reader) -> None:
        self.text, self.ignores_case, self.is_whole = text, ignores_case, is_whole
        program = _Program(source)
        self.entry = program.build(root, 0)
        self._code = program.code
        self.allowance = self._budget = STEP_BUDGET
        self._next: dict[tuple[frozenset[int], str, bool], frozenset[int]] = {}
        self._closures: dict[tuple[bool, bool], frozenset[int]] = {}

    def refill(self) -> None:
        """Grant a new budget; called at the start of an evaluation."""
        self._budget = self.allowance

    def matches(self, text: str) -> bool:
        """Tell whether the pattern occurs in a text (globs: fits the whole of it); 4096 characters are looked at.

        Raises:
            ExpressionError: The budget of this evaluation is used up.
        """
        text = text[:TEXT_LIMIT]
        begin = self._initial(at_start=True, at_end=not text)
        states = begin
        for i, char in enumerate(text):
            if not self.is_whole and 0 in states:
                return True
            at_end = i == len(text) - 1
            states = self._step(states, char, at_end)
            if not states:
                return False
        return 0 in states

    def _initial(self, at_start: bool, at_end: bool) -> frozenset[int]:
        key = (at_start, at_end)
        if key not in self._closures:
            self._closures[key] = self.closure([self.entry], at_start, at_end)
        return self._closures[key]

    def _step(self, states: frozenset[int], char: str, at_end: bool) -> frozenset[int]:
        key = (states, char, at_end)
        if key in self._next:
            return self._next[key]
        self._budget -= len(states)
        number = ord(char)
        cases = {number}
        if self.ignores_case:
            cases |= {ord(c) for c in (char.lower(), char.upper()) if len(c) == 1}
        moved = [
            following
            for op, ranges, following, _ in (self._code[s] for s in states)
            if op == _CHAR and any(low <= n <= high for n in cases for low, high in ranges)
        ]
        result = self.closure(moved, at_start=False, at_end=at_end)
        if not self.is_whole:
            # A match may begin at any character. Kept with the step, so that known sets are the same objects.
            result |= self._initial(at_start=False, at_end=at_end)
        if len(self._next) >= _CACHE_LIMIT:
            self._next.clear()
        self._next[key] = result
        return result

    def characters(self) -> list[tuple[int, Ranges, int]]:
        """Return every instruction that reads a character: its index, what it reads, where it goes on."""
        return [(i, ranges, following) for i, (op, ranges, following, _) in enumerate(self._code) if op == _CHAR]

    def closure(self, entries: list[int], at_start: bool, at_end: bool) -> frozenset[int]:
        """Return all instructions reachable without reading a character; 0 is the end of the pattern."""
        seen: set[int] = set()
        open_ = list(entries)
        while open_:
            index = open_.pop()
            if index in seen:
                continue
            seen.add(index)
            op, _, following, other = self._code[index]
            if op == _SPLIT:
                open_ += (following, other)
            elif (op == _START and at_start) or (op == _END and at_end):
                open_.append(following)
        self._budget -= len(seen) + 1
        if self._budget < 0:
            raise ExpressionError(f"the pattern {self.text[:40]!r} takes too long on this trace; make it simpler", 0, 0)
        return frozenset(seen)


def share_budget(patterns: Sequence[Pattern]) -> None:
    """Let patterns that are used together cost no more than one."""
    for pattern in patterns:
        pattern.allowance = STEP_BUDGET // len(patterns)


def regex(text: str, ignores_case: bool = False, offset: int = 0) -> Pattern:
    """Compile a regular expression.

    Args:
        text: The pattern, without slashes.
        ignores_case: Whether capitals match small letters.
        offset: Where it stands in the expression, for error positions.

    Raises:
        ExpressionError: It is faulty, or larger than the limits above.
    """
    source = _checked(text, offset)
    root = source.alternatives()
    if source.at < len(text):
        raise source.fail("a closing bracket without an opening one", source.at)
    return Pattern(text, ignores_case, False, root, source)


def glob(text: str, offset: int = 0) -> Pattern:
    """Compile a glob: `*` any characters, `?` one, `[abc]` one of; the whole text has to fit.

    Raises:
        ExpressionError: It is longer than the limits allow.
    """
    source = _checked(text, offset)
    parts: list[_Node] = []
    everything: Ranges = ((0, _LAST),)
    while char := source.peek():
        start = source.at
        source.at += 1
        if char == "*":
            if not parts or parts[-1].kind != "repeat":
                parts.append(_Node("repeat", parts=[_Node("set", everything)]))
        elif char == "?":
            parts.append(_Node("set", everything))
        elif char == "[" and "]" in text[source.at + 1 :]:
            parts.append(_Node("set", source.char_set(start)))
        else:
            parts.append(_Node("set", ((ord(char), ord(char)),)))
    return Pattern(text, False, True, _Node("cat", parts=parts), source)


def _checked(text: str, offset: int) -> _Reader:
    if len(text) > PATTERN_LIMIT:
        raise ExpressionError(f"a pattern may have {PATTERN_LIMIT} characters", offset, offset + len(text))
    return _Reader(text, offset)
