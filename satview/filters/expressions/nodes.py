"""The tree of an expression: plain values, made by `syntax`, read by everything that evaluates or writes expressions.

Import the module, not its names: `nodes.Compare` is clear where it is used.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.filters.event_context import signed_word
from satview.filters.expressions.pattern import Pattern
from satview.filters.rows import Bools

# The operators and functions of expressions, one entry each: for one event, for columns of events, and in C.


KnownMask = Bools | bool
Values = tuple[NDArray[np.integer] | int, KnownMask]
"""Numbers, and which of them are known."""
_HALF: Final = 1 << 63
_FULL: Final = 1 << 64
_BITS: Final = 64


def wrapped(value: int) -> int:
    """Return a number cut to 64 bits, signed, as machine arithmetic leaves it."""
    return (value + _HALF) % _FULL - _HALF


@dataclass(frozen=True, slots=True)
class NumberOperator:
    """An operator or function from numbers to a number.

    Attributes:
        count: How many numbers it takes.
        scalar: From ints to its result, which need not be cut to 64 bits; None = it has none.
        columns: From int64 arrays of one shape to the results, int64 of that shape, and which are known; it may
            return anything where they are not.
        c_name: Function of the exported C program.
        help: Of a function: shown by completion and in the docs.
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
        scalar: From two ints.
        columns: From two arrays, or an array and an int.
        swapped: The sign that says the same with the sides exchanged.
        opposite: The sign that is true where this one is false.
        c_name: Function of the exported C program.
        is_swapped_in_c: Whether that function takes the sides the other way round.
    """

    scalar: Callable[[int, int], bool]
    columns: Callable[..., Bools]
    swapped: str
    opposite: str
    c_name: str
    is_swapped_in_c: bool = False


def _total(columns: Callable[..., Any]) -> Callable[..., tuple[NDArray[np.int64], KnownMask]]:
    """Return the columns of an operator that always has a result."""
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
"""The signs of `ARITHMETIC` by how closely they bind, loosest first: the order of Python."""

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
    """Return the result of an operator for one event, cut to 64 bits; None if it or a number is not known."""
    if any(number is None for number in numbers):
        return None
    result = how.scalar(*numbers)
    return None if result is None else wrapped(result)


def of_columns(how: NumberOperator, *values: Values) -> Values:
    """Return the results of an operator for many events; constants among the values stay constants.

    Args:
        how: The operator.
        *values: As many as it takes: an integer array (events,) or one int for all, and which are known.

    Returns:
        int64, shape (events,), or an int where all values are; and which are known, bool (events,) or one for all.
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
    """A whole number; a time counts nanoseconds."""

    value: int


@dataclass(frozen=True, slots=True)
class Moment(Node):
    """A moment that only a trace has, as `base.time_text` reads it: `#1200`, `25%`."""

    text: str


@dataclass(frozen=True, slots=True)
class TimeTest(Node):
    """Compares the time of the event with a moment."""

    sign: str
    moment: Moment


@dataclass(frozen=True, slots=True)
class Text(Node):
    """A text in quotes."""

    value: str


@dataclass(frozen=True, slots=True)
class BareWord(Node):
    """A bare word that is no field: the name of an event, class, state or error."""

    value: str


@dataclass(frozen=True, slots=True)
class EventField(Node):
    """A field of the event; `name` is a key of the vocabulary."""

    name: str


@dataclass(frozen=True, slots=True)
class Word(Node):
    """Payload word number `index`, unsigned."""

    index: int


@dataclass(frozen=True, slots=True)
class NamedArgument(Node):
    """A named argument of the event."""

    name: str


@dataclass(frozen=True, slots=True)
class FunctionCall(Node):
    """A function of the vocabulary."""

    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Latency(Node):
    """The time between two events of a thread, as a recorder keeps it: in rules that trigger something.

    `first` and `last` are as written. `begins` and `ends` are conditions on one event; None until names are looked up.
    """

    first: Text | Number
    last: Text | Number
    begins: Node | None = None
    ends: Node | None = None

    @property
    def named_ends(self) -> tuple[tuple[str, Text | Number, Node], ...]:
        """Both ends as sentences name them, as written, and their conditions; none before names are looked up."""
        return tuple(
            (f"user event {end.value}" if isinstance(end, Number) else repr(end.value), end, condition)
            for end, condition in ((self.first, self.begins), (self.last, self.ends))
            if condition is not None
        )


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """Two numbers and a sign; results wrap at 64 bits."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Negative(Node):
    """A number with its sign changed."""

    part: Node


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """A comparison; unknown whenever one side is."""

    sign: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class In(Node):
    """Whether a value is in a list; unknown if the value is, or if no known item equals it and one is unknown."""

    value: Node
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class PatternMatch(Node):
    """Whether a text fits a pattern; unknown if it is."""

    value: Node
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Is(Node):
    """Whether a value is `known` or `unknown`, or a condition `true` or `false`; never unknown itself."""

    value: Node
    word: str


@dataclass(frozen=True, slots=True)
class IsKnown(Node):
    """Whether a number, a text (`as_text`), a state or `failed` is known. Made by `two_valued`, not written."""

    value: Node
    as_text: bool = False


@dataclass(frozen=True, slots=True)
class Not(Node):
    """The opposite; of an unknown part unknown. After `two_valued` no part is, and it means: the part is not true."""

    part: Node


@dataclass(frozen=True, slots=True)
class And(Node):
    """All of the parts."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """At least one of the parts."""

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
