"""The syntax tree of expressions, and their regular expressions and globs, whose cost is bounded."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import re2
from numpy.typing import NDArray

from satview.filters.derived_columns import Bools
from satview.filters.diagnostics import ExpressionError
from satview.filters.external import signed_word

# Regular expressions and globs with bounded cost for any pattern and text.
#
# Python's `re` backtracks, so that a pattern from an untrusted file could run for years. RE2 takes linear time, and a
# budget stops patterns that are too costly even so.


PATTERN_LIMIT: Final = 500  # characters
SIZE_LIMIT: Final = 10_000  # instructions of RE2
TEXT_LIMIT: Final = 4096  # characters of a text that are searched
STEP_BUDGET: Final = 20_000_000_000  # bytes times instructions per evaluation, each at most a nanosecond in RE2

SET: Final = r"\[\^?(?:\[:\^?\w+:\]|\\.|[^\\])(?:\[:\^?\w+:\]|\\.|[^\\\]])*\]"
"""A set in square brackets; a closing bracket that comes first belongs to the set."""
_GLOB_PART: Final = re.compile(rf"\*+|{SET}|.", re.DOTALL)


class Pattern:
    """A compiled regular expression or glob.

    Args:
        text: The pattern, without slashes.
        ignores_case: Whether the pattern ignores case, as after `/i`.
        is_glob: Whether the pattern is a glob, which must match the whole text.
        offset: Position of the pattern in the expression, for error messages.

    Attributes:
        allowance: Maximum number of matching steps in one evaluation of the expression, shared by all its patterns.

    Raises:
        ExpressionError: RE2 rejects the pattern, or the pattern exceeds a limit of this module.
    """

    def __init__(self, text: str, ignores_case: bool, is_glob: bool, offset: int) -> None:
        self.text, self.ignores_case, self.is_glob = text, ignores_case, is_glob
        self.allowance = self._budget = STEP_BUDGET
        end = offset + len(text)
        if len(text) > PATTERN_LIMIT:
            raise ExpressionError(f"a pattern may have {PATTERN_LIMIT} characters", offset, end)
        compiled = compile_source(_source_of_glob(text) if is_glob else text, ignores_case, offset, end)
        if compiled.programsize > SIZE_LIMIT:
            raise ExpressionError("the pattern is too large once its repetitions are written out", offset, end)
        self._cost = compiled.programsize
        self._search = compiled.fullmatch if is_glob else compiled.search

    def refill(self) -> None:
        """Allow the full number of matching steps again; called at the start of an evaluation."""
        self._budget = self.allowance

    def matches(self, text: str) -> bool:
        """Return whether the pattern occurs in (globs: matches) the first 4096 characters of a text.

        Raises ExpressionError if the matching steps allowed for this evaluation are used up.
        """
        data = text[:TEXT_LIMIT].encode("utf-8", "surrogatepass")
        self._budget -= (len(data) + 1) * self._cost
        if self._budget < 0:
            raise ExpressionError(f"the pattern {self.text[:40]!r} takes too long on this trace; make it simpler", 0, 0)
        return self._search(data) is not None


def compile_source(source: str, ignores_case: bool, start: int = 0, end: int = 0) -> Any:
    """Return a pattern compiled by RE2; ExpressionError, with the position, if RE2 rejects it."""
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignores_case
    try:
        return re2.compile(source.encode("utf-8", "surrogatepass"), options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        raise ExpressionError(f"the pattern cannot be used: {reason}", start, end) from None


def glob_parts(text: str) -> Iterator[str]:
    """Yield the parts of a glob: `*`, `?`, sets such as `[abc]`, and literal characters."""
    for part in _GLOB_PART.findall(text):
        yield "*" if part.startswith("*") else part


def _source_of_glob(text: str) -> str:
    wildcards = {"*": "(?s:.*)", "?": "(?s:.)"}
    return "".join(wildcards.get(part) or (part if len(part) > 1 else re.escape(part)) for part in glob_parts(text))


def share_budget(patterns: Sequence[Pattern]) -> None:
    """Divide the allowed number of matching steps equally among patterns that are used together."""
    for pattern in patterns:
        pattern.allowance = STEP_BUDGET // len(patterns)


def regex(text: str, ignores_case: bool = False, offset: int = 0) -> Pattern:
    """Return a compiled regular expression, in the syntax of RE2, which matches a part of a text.

    Raises ExpressionError, with a position from `offset` on, if the pattern is faulty or exceeds the limits.
    """
    return Pattern(text, ignores_case, False, offset)


def glob(text: str, offset: int = 0) -> Pattern:
    """Return a compiled glob for whole texts: `*` matches any characters, `?` one, `[abc]` one of those in brackets.

    Raises ExpressionError if the glob exceeds the limits, or a set in it is faulty.
    """
    return Pattern(text, False, True, offset)


# The syntax tree of expressions: plain values that `syntax` makes and all other modules read.
#
# Import the module, not its names, so that uses read `nodes.Compare`.


# The operators and functions of expressions, each in three forms: for one event, for columns of events, and in C.


KnownMask = Bools | bool
Values = tuple[NDArray[np.integer] | int, KnownMask]
"""Numbers, and whether each is known."""
_HALF: Final = 1 << 63
_FULL: Final = 1 << 64
_BITS: Final = 64


def wrapped(value: int) -> int:
    """Return a number wrapped to a signed 64-bit integer."""
    return (value + _HALF) % _FULL - _HALF


@dataclass(frozen=True, slots=True)
class NumberOperator:
    """An operator or function that takes numbers and returns a number.

    Attributes:
        scalar: Function of ints; returns an int of any size, or None if there is no result (division by 0).
        columns: Function of int64 arrays of one shape; returns int64 results of that shape, arbitrary where there is
            no result, and a mask of the known results.
        c_name: Name of the function in the exported C program.
        help: For functions, the text for completion and docs.
    """

    count: int
    scalar: Callable[..., int | None]
    columns: Callable[..., tuple[NDArray[np.int64], KnownMask]]
    c_name: str
    help: str = ""


@dataclass(frozen=True, slots=True)
class NumberComparison:
    """A comparison of two numbers.

    Attributes:
        swapped: The equivalent sign with operands exchanged.
        opposite: The sign that is true where this one is false.
        c_name: Name of the function in the exported C program.
        is_swapped_in_c: Whether that function takes the operands in reverse order.
    """

    scalar: Callable[[int, int], bool]
    columns: Callable[..., Bools]
    swapped: str
    opposite: str
    c_name: str
    is_swapped_in_c: bool = False


def _total(columns: Callable[..., Any]) -> Callable[..., tuple[NDArray[np.int64], KnownMask]]:
    """Return a `columns` function that applies the numpy function `columns`, and whose results are always known."""
    return lambda *arrays: (columns(*arrays), True)


def _divided(columns: Callable[..., Any]) -> Callable[..., tuple[NDArray[np.int64], KnownMask]]:
    def compute(x: NDArray[np.int64], y: NDArray[np.int64]) -> tuple[NDArray[np.int64], KnownMask]:
        return columns(x, np.where(y == 0, 1, y)), y != 0

    return compute


def _shifted(columns: Callable[..., Any]) -> Callable[..., tuple[NDArray[np.int64], KnownMask]]:
    def compute(x: NDArray[np.int64], y: NDArray[np.int64]) -> tuple[NDArray[np.int64], KnownMask]:
        fits = (y >= 0) & (y < _BITS)
        return columns(x, np.where(fits, y, 0)), fits

    return compute


def _bit(x: NDArray[np.int64], n: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.right_shift(x, n) & 1


ARITHMETIC: Final = {
    "+": NumberOperator(2, operator.add, _total(np.add), "sum"),
    "-": NumberOperator(2, operator.sub, _total(np.subtract), "difference"),
    "*": NumberOperator(2, operator.mul, _total(np.multiply), "product"),
    "/": NumberOperator(2, lambda x, y: x // y if y else None, _divided(np.floor_divide), "quotient"),
    "%": NumberOperator(2, lambda x, y: x % y if y else None, _divided(np.remainder), "rest"),
    "&": NumberOperator(2, operator.and_, _total(np.bitwise_and), "common_bits"),
    "|": NumberOperator(2, operator.or_, _total(np.bitwise_or), "all_bits"),
    "^": NumberOperator(2, operator.xor, _total(np.bitwise_xor), "other_bits"),
    "<<": NumberOperator(2, lambda x, n: x << n if 0 <= n < _BITS else None, _shifted(np.left_shift), "shifted_left"),
    ">>": NumberOperator(2, lambda x, n: x >> n if 0 <= n < _BITS else None, _shifted(np.right_shift), "shifted_right"),
}
LEVELS: Final = (("|",), ("^",), ("&",), ("<<", ">>"), ("+", "-"), ("*", "/", "%"))
"""The signs of `ARITHMETIC` by precedence, lowest first, as in Python."""

FUNCTIONS: Final = {
    "abs": NumberOperator(1, abs, _total(np.abs), "absolute", "abs(x): x without its sign"),
    "min": NumberOperator(2, min, _total(np.minimum), "smaller", "min(x, y): the smaller one"),
    "max": NumberOperator(2, max, _total(np.maximum), "larger", "max(x, y): the larger one"),
    "signed": NumberOperator(
        1,
        lambda x: signed_word(x & 0xFFFFFFFF),
        _total(lambda x: x.astype(np.int32).astype(np.int64)),
        "signed_word",
        "signed(x): the low 32 bits of x as a signed number",
    ),
    "bit": NumberOperator(
        2,
        lambda x, n: x >> n & 1 if 0 <= n < _BITS else None,
        _shifted(_bit),
        "bit_of",
        "bit(x, n): bit n of x, 0 or 1",
    ),
}

COMPARISONS: Final = {
    "==": NumberComparison(operator.eq, np.equal, "==", "!=", "is_equal"),
    "!=": NumberComparison(operator.ne, np.not_equal, "!=", "==", "is_other"),
    "<": NumberComparison(operator.lt, np.less, ">", ">=", "is_less"),
    "<=": NumberComparison(operator.le, np.less_equal, ">=", ">", "is_at_most"),
    ">": NumberComparison(operator.gt, np.greater, "<", "<=", "is_less", is_swapped_in_c=True),
    ">=": NumberComparison(operator.ge, np.greater_equal, "<=", "<", "is_at_most", is_swapped_in_c=True),
}


def of_numbers(how: NumberOperator, *numbers: int | None) -> int | None:
    """Return an operator's result for one event, wrapped to 64 bits; None without a result or with unknown operands."""
    if any(number is None for number in numbers):
        return None
    result = how.scalar(*numbers)
    return None if result is None else wrapped(result)


def of_columns(how: NumberOperator, *values: Values) -> Values:
    """Return the results of an operator for many events.

    Args:
        how: The operator.
        *values: For each operand an integer array (events,), or one int for all events, and a mask of the known ones.

    Returns:
        int64 (events,), or an int if all operands are ints; and a mask of known results, bool (events,) or one bool.
    """
    if all(isinstance(value, int) for value, _ in values):
        result = of_numbers(how, *(int(value) if known is True else None for value, known in values))
        return (0, False) if result is None else (result, True)
    with np.errstate(all="ignore"):
        results, known = how.columns(*(np.asarray(value).astype(np.int64, copy=False) for value, _ in values))
    for other in (known for _, known in values):
        if other is not True:
            known = other if known is True else np.logical_and(known, other)
    return results, known


@dataclass(frozen=True, slots=True)
class Node:
    """Part of an expression; `start` and `end` are its position in the text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Number(Node):
    """An integer; times are in nanoseconds."""

    value: int


@dataclass(frozen=True, slots=True)
class Moment(Node):
    """A time that depends on the trace, in the form of `base.time`: `#1200`, `25%`."""

    text: str


@dataclass(frozen=True, slots=True)
class TimeTest(Node):
    """A comparison of the event's time with a `Moment`."""

    sign: str
    moment: Moment


@dataclass(frozen=True, slots=True)
class Text(Node):
    """A quoted text."""

    value: str


@dataclass(frozen=True, slots=True)
class BareWord(Node):
    """An unquoted word that is no field: the name of an event, class, state or error."""

    value: str


@dataclass(frozen=True, slots=True)
class EventField(Node):
    """A field of the event; `name` is a key of `semantics.FIELDS`."""

    name: str


@dataclass(frozen=True, slots=True)
class Word(Node):
    """Payload word number `index`, unsigned."""

    index: int


@dataclass(frozen=True, slots=True)
class NamedArgument(Node):
    """Expression node: the value of the event's argument with a given name."""

    name: str


@dataclass(frozen=True, slots=True)
class FunctionCall(Node):
    """A call of a function; `name` is a key of `FUNCTIONS`."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Latency(Node):
    """The time between two events of a thread, which a recorder measures for trigger rules.

    `first` and `last` are the events as written. `begins` and `ends` are the conditions for them; None until names are
    resolved.
    """

    first: Text | Number
    last: Text | Number
    begins: Node | None = None
    ends: Node | None = None

    @property
    def named_ends(self) -> tuple[tuple[str, Text | Number, Node], ...]:
        """First and last event: name for messages, node as written, and condition; empty before names are resolved."""
        return tuple(
            (f"user event {end.value}" if isinstance(end, Number) else repr(end.value), end, condition)
            for end, condition in ((self.first, self.begins), (self.last, self.ends))
            if condition is not None
        )


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """An arithmetic operation on two numbers; results wrap at 64 bits."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Negative(Node):
    """A number with its sign changed."""

    part: Node


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """A comparison; unknown if one side is unknown."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class In(Node):
    """Whether a value is in a list; unknown if the value is unknown, or if no item is equal and some are unknown."""

    value: Node
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class PatternMatch(Node):
    """Whether a text matches a pattern; unknown if the text is unknown."""

    value: Node
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Is(Node):
    """Whether a value is `known` or `unknown`, or a condition `true` or `false`; never unknown itself."""

    value: Node
    word: str


@dataclass(frozen=True, slots=True)
class IsKnown(Node):
    """Whether a number, a text (`as_text`), a state or `failed` is known. Only `two_valued` makes these nodes."""

    value: Node
    as_text: bool = False


@dataclass(frozen=True, slots=True)
class Not(Node):
    """The negation of a condition: unknown where the condition is unknown; in a tree from `two_valued`, true there."""

    part: Node


@dataclass(frozen=True, slots=True)
class And(Node):
    """Whether all of the parts are true."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """Whether at least one of the parts is true."""

    parts: tuple[Node, ...]


def children(node: Node) -> tuple[Node, ...]:
    """Return the direct parts of a node."""
    if isinstance(node, And | Or):
        return node.parts
    if isinstance(node, Not | Negative):
        return (node.part,)
    if isinstance(node, Compare | Arithmetic):
        return node.left, node.right
    if isinstance(node, In):
        return (node.value, *node.items)
    if isinstance(node, PatternMatch | Is | IsKnown):
        return (node.value,)
    return node.arguments if isinstance(node, FunctionCall) else ()


def latencies_in(node: Node) -> Iterator[Latency]:
    """Yield the latencies that an expression compares."""
    if isinstance(node, Latency):
        yield node
    for part in children(node):
        yield from latencies_in(part)


def patterns_in(node: Node) -> Iterator[Pattern]:
    """Yield the patterns of an expression."""
    if isinstance(node, PatternMatch):
        yield node.pattern
    for part in children(node):
        yield from patterns_in(part)
