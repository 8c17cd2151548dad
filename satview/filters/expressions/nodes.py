"""The tree of an expression: plain values, made by `syntax`, read by everything that evaluates or writes expressions.

Import the module, not the names: `nodes.Compare` says beside its use what it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from satview.filters.expressions.pattern import Pattern


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
    """The time of the event compared with such a moment."""

    sign: str
    moment: Moment


@dataclass(frozen=True, slots=True)
class Text(Node):
    """A text in quotes."""

    value: str


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A bare word that is no field: the name of an event, class, state or error."""

    value: str


@dataclass(frozen=True, slots=True)
class Field(Node):
    """A field of the event; `name` is a key of the vocabulary."""

    name: str


@dataclass(frozen=True, slots=True)
class Word(Node):
    """Payload word number `index`, unsigned."""

    index: int


@dataclass(frozen=True, slots=True)
class Argument(Node):
    """A named argument of the event."""

    name: str


@dataclass(frozen=True, slots=True)
class FunctionCall(Node):
    """A function of the vocabulary."""

    name: str
    arguments: tuple[Node, ...]


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
    """Whether a value is one of a list; unknown if the value is, or if only an unknown item could be equal."""

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
class Known(Node):
    """Whether a number, a text (`as_text`), a state or `failed` is known. Made by `three_valued`, not written."""

    value: Node
    as_text: bool = False


@dataclass(frozen=True, slots=True)
class Not(Node):
    """The opposite; of an unknown part unknown. After `three_valued` no part is, and it means: the part is not true."""

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
    if isinstance(node, PatternMatch | Is | Known):
        return (node.value,)
    return node.arguments if isinstance(node, FunctionCall) else ()


def patterns_in(node: Node) -> Iterator[Pattern]:
    """Yield the patterns of an expression."""
    if isinstance(node, PatternMatch):
        yield node.pattern
    for part in children(node):
        yield from patterns_in(part)
