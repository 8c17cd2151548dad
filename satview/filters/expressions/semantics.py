"""Checks an expression against the names of a release, and resolves names to numbers and tables."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import states
from satview.events.catalogue import called, error_texts, listed_catalogue, table_texts
from satview.events.layout import PayloadPart, Taught, argument_names, arguments_of, codes_of_argument, is_same_name
from satview.events.spec import Release, Show
from satview.events.user_events import ValueText
from satview.events.wire import CLASS_SHIFT, CODE_COUNT, EVENT_MASK, WireClass
from satview.filters.derived_columns import LABEL
from satview.filters.diagnostics import ExpressionError, did_you_mean, nearest
from satview.filters.expressions import nodes
from satview.filters.expressions.nodes import COMPARISONS, Pattern, glob
from satview.filters.external import ExternalClass, external_of

# The vocabulary of expressions: fields, and the names of events, classes, states and errors.


WORD_LIMIT: Final = 8192
_SIMPLE_BYTES: Final = 8  # payload bytes of an event of one slot


class FieldKind(StrEnum):
    """Types of fields; the type decides which values a field can be compared with."""

    NUMBER = "number"
    TIME = "time"  # nanoseconds; compared like a number
    TEXT = "text"
    FLAG = "flag"
    CLASS = "class"
    EVENT = "event"
    STATE = "state"
    ERROR = "error"  # a number that may be given by name


class Domain(StrEnum):
    """Unit for which the value of a field is computed: a code (class and event), a thread, or a single event."""

    CODE = "code"
    THREAD = "thread"
    ROW = "row"


class KnownWhen(StrEnum):
    """The moment from which a kernel knows the value of a field."""

    EVENT = "at the event"
    EXIT = "at the exit of a kernel call"
    LATER = "only later"  # no event handler can know it; views and searches can


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """Description of a field of the expression language, such as `pid`.

    Attributes:
        domain: What has one value of the field: an event code, a thread, or a single event.
        help: Text for completion and docs.
        known: When the kernel knows its value.
    """

    kind: FieldKind
    domain: Domain
    cost: int
    help: str
    known: KnownWhen = KnownWhen.EVENT


_K, _D = FieldKind, Domain
FIELDS: Final = {
    "class": FieldSpec(_K.CLASS, _D.CODE, 0, "class as listings print it, or as TraceEvent() names it"),
    "event": FieldSpec(_K.EVENT, _D.CODE, 0, "event by name: MSG_SENDV, THRUNNING, SND_MESSAGE"),
    "state": FieldSpec(_K.STATE, _D.CODE, 0, "state that the thread enters; no value for other events"),
    "number": FieldSpec(_K.NUMBER, _D.CODE, 0, "event number in its class: kernel call, user event, interrupt event"),
    "code": FieldSpec(_K.NUMBER, _D.CODE, 0, "internal class and event, 15 bits"),
    "pid": FieldSpec(_K.NUMBER, _D.THREAD, 1, "process the event belongs to"),
    "tid": FieldSpec(_K.NUMBER, _D.THREAD, 1, "thread the event belongs to, from 1"),
    "name": FieldSpec(_K.TEXT, _D.THREAD, 1, "name of the process, with or without its folders"),
    "thread_name": FieldSpec(_K.TEXT, _D.THREAD, 1, "name of the thread"),
    "time": FieldSpec(_K.TIME, _D.ROW, 2, "time since the start of the trace"),
    "cpu": FieldSpec(_K.NUMBER, _D.ROW, 2, "CPU that logged the event, from 0"),
    "words": FieldSpec(_K.NUMBER, _D.ROW, 3, "payload words, padding included"),
    "failed": FieldSpec(_K.FLAG, _D.ROW, 5, "the kernel call returned an error", KnownWhen.EXIT),
    "errno": FieldSpec(_K.ERROR, _D.ROW, 5, "error of a failed kernel call, by QNX number or name", KnownWhen.EXIT),
    "priority": FieldSpec(_K.NUMBER, _D.ROW, 6, "priority of the thread as last logged (wide THREAD events)"),
    "duration": FieldSpec(
        _K.TIME, _D.ROW, 6, "length of the kernel call or interrupt entered or left", KnownWhen.LATER
    ),
    "length": FieldSpec(_K.TIME, _D.ROW, 6, "how long the thread stays in the state it enters", KnownWhen.LATER),
    "text": FieldSpec(_K.TEXT, _D.ROW, 7, "text in the payload: names, paths, user texts"),
}


def class_codes(name: str, release: Release) -> NDArray[np.bool_] | None:
    """Return the codes of a class given by its printed or TraceEvent() name, bool (32768,); None = no such class."""
    book = listed_catalogue(release)
    requested = name.strip().upper()
    printed = [i for i, spec in enumerate(book.classes) if spec.name.upper() == requested]
    if printed:
        return np.isin(book.class_index_of_code, printed)
    external = requested.removeprefix("_NTO_TRACE_")
    return _external_codes(release).get(external)


@cache
def _external_codes(release: Release) -> dict[str, NDArray[np.bool_]]:
    """Return the codes of every class of TraceEvent() by name, bool (32768,) each, including unions such as KERCALL."""
    if not release.is_qnx:
        return {}
    owner = np.full(CODE_COUNT, -1, np.int16)
    for code in range(CODE_COUNT):
        external = external_of(code, release).external
        owner[code] = -1 if external is None else external
    tables = {c.name: owner == c for c in ExternalClass}
    tables["EMPTY"] = np.arange(CODE_COUNT) < 1024
    tables["KERCALL"] = tables["KERCALLENTER"] | tables["KERCALLEXIT"] | tables["KERCALLINT"]
    tables["INT"] = tables["INTENTER"] | tables["INTEXIT"] | tables["INT_HANDLER_ENTER"] | tables["INT_HANDLER_EXIT"]
    return {name: table for name, table in tables.items() if table.any()}


def class_names(release: Release) -> tuple[str, ...]:
    """Return the names of all printed classes of a release, then of other classes of TraceEvent()."""
    printed = [spec.name for spec in listed_catalogue(release).classes if not spec.name.startswith("CLASS ")]
    return (*printed, *(name for name in _external_codes(release) if name not in printed))


def state_value(name: str) -> int | None:
    """Return the lane value of a state by its name, such as REPLY, STATE_REPLY or THREPLY; None = no such state."""
    bare = name.strip().upper().removeprefix("_NTO_TRACE_").removeprefix("STATE_")
    for spelling in (bare, bare.removeprefix("TH"), "READY" if bare == "THREADY" else bare):
        if spelling in states.STATE_BY_NAME:
            return states.STATE_BY_NAME[spelling].value
    return None


def error_number(name: str, release: Release) -> int | None:
    """Return the QNX number of an error name, None if there is none."""
    return _errors(release).get(name.strip().upper())


@cache
def _errors(release: Release) -> dict[str, int]:
    return {text.text: text.value for text in error_texts(release)}


def error_names(release: Release) -> tuple[str, ...]:
    """Return all error names, in the order of their numbers."""
    return tuple(_errors(release))


def event_names(release: Release) -> tuple[str, ...]:
    """Return the distinct names of all events of a release, without user events, which have numbers only."""
    book = listed_catalogue(release)
    return tuple(dict.fromkeys(book.name(code) for code in book.codes() if book.class_name(code) != "USREVENT"))


Groups = list[tuple[ValueText, ...]]
NAMED: Final = (FieldKind.CLASS, FieldKind.EVENT, FieldKind.STATE)


class Type(StrEnum):
    """Types of the parts of an expression."""

    BOOL = "a condition"
    NUMBER = "a number"
    TEXT = "a text"
    NAMED = "a name"


@dataclass(frozen=True, slots=True)
class CodeTest(nodes.Node):
    """A test of class, event or state by names, or a pattern for them; `table` has the results, bool (32768,)."""

    kind: FieldKind
    names: tuple[str, ...]
    pattern: Pattern | None
    table: NDArray[np.bool_]


def resolve(node: nodes.Node, release: Release, taught: Taught | None = None) -> nodes.Node:
    """Return the tree of a condition with all names resolved and all types checked; `taught` as in `arguments_of`.

    Raises ExpressionError if a name is unknown, or the types of a comparison do not match.
    """
    checker = _Checker(release, taught)
    result, kind = checker.visit(node)
    checker.require(result, kind, Type.BOOL, "an expression is a condition, such as pid == 7")
    return result


class _Checker:
    """Walks the tree; every method raises ExpressionError, with the position, for unknown names and wrong types."""

    def __init__(self, release: Release, taught: Taught | None) -> None:
        self.release, self.taught = release, taught

    @staticmethod
    def require(node: nodes.Node, kind: Type, requested: Type, message: str) -> None:
        if kind is not requested:
            raise ExpressionError.of(node, f"this is {kind.value}; {message}")

    def visit(self, node: nodes.Node) -> tuple[nodes.Node, Type]:
        if isinstance(node, nodes.Number | nodes.Word):
            return node, Type.NUMBER
        if isinstance(node, nodes.Text):
            return node, Type.TEXT
        if isinstance(node, nodes.EventField):
            return node, self.type_of_field(node)
        if isinstance(node, nodes.NamedArgument):
            return self.argument(node), Type.NUMBER
        if isinstance(node, nodes.Latency):
            return replace(node, begins=self.pair_end(node.first), ends=self.pair_end(node.last)), Type.NUMBER
        if isinstance(node, nodes.BareWord):
            raise self.unknown_field(node)
        if isinstance(node, nodes.Moment):
            raise ExpressionError.of(
                node, f"{node.text[:40]} is a moment of the trace; compare time with it, as in time >= {node.text[:40]}"
            )
        if isinstance(node, nodes.And | nodes.Or | nodes.Not):
            return self.joined(node), Type.BOOL
        test = self.test(node)
        return (self.number(node), Type.NUMBER) if test is None else (test, Type.BOOL)

    def test(self, node: nodes.Node) -> nodes.Node | None:
        """Return the resolved form of a comparison, or of a test by `in`, `~` or `is`; None if the node is a number."""
        if isinstance(node, nodes.Compare):
            return self.compare(node)
        if isinstance(node, nodes.In):
            return self.membership(node)
        if isinstance(node, nodes.PatternMatch):
            return self.match(node)
        return self.question(node) if isinstance(node, nodes.Is) else None

    @staticmethod
    def type_of_field(node: nodes.EventField) -> Type:
        kind = FIELDS[node.name].kind
        if kind is FieldKind.FLAG:
            return Type.BOOL
        if kind in NAMED:
            return Type.NAMED
        return Type.TEXT if kind is FieldKind.TEXT else Type.NUMBER

    def pair_end(self, name: nodes.Text | nodes.Number) -> nodes.Node:
        """Return a node for one end of a latency: a user event by number, an event by name, or a user event by text."""
        start, end = name.start, name.end
        if isinstance(name, nodes.Number):
            if name.value > EVENT_MASK:
                raise ExpressionError(f"user events are numbered 0 to {EVENT_MASK}", start, end)
            table = np.zeros(CODE_COUNT, np.bool_)
            table[WireClass.USER << CLASS_SHIFT | name.value] = True
            return code_table(start, end, table)
        known = name_table(FieldKind.EVENT, name.value, self.release)
        if known is not None:
            return CodeTest(start, end, FieldKind.EVENT, (name.value,), None, known)
        of_users = np.arange(CODE_COUNT) >> CLASS_SHIFT == WireClass.USER
        raw = name.value.encode()
        text: nodes.Node = nodes.Compare(start, end, "==", nodes.EventField(start, end, "text"), name)
        if len(raw) < _SIMPLE_BYTES:  # a short text is two words, shown as numbers in the target's byte order
            pairs = [struct.unpack(f"{order}2I", raw.ljust(_SIMPLE_BYTES, b"\0")) for order in "<>"]
            text = nodes.Or(start, end, tuple(_has_words(start, end, words) for words in pairs))
        return nodes.And(start, end, (code_table(start, end, of_users), text))

    def joined(self, node: nodes.And | nodes.Or | nodes.Not) -> nodes.Node:
        parts = (node.part,) if isinstance(node, nodes.Not) else node.parts
        checked = []
        for part in parts:
            result, kind = self.visit(part)
            self.require(result, kind, Type.BOOL, "and, or and not join conditions")
            checked.append(result)
        return replace(node, part=checked[0]) if isinstance(node, nodes.Not) else replace(node, parts=tuple(checked))

    def number(self, node: nodes.Node) -> nodes.Node:
        if isinstance(node, nodes.Arithmetic):
            return replace(node, left=self.operand(node.left), right=self.operand(node.right))
        if isinstance(node, nodes.Negative):
            return replace(node, part=self.operand(node.part))
        assert isinstance(node, nodes.FunctionCall)
        return replace(node, arguments=tuple(self.operand(part) for part in node.arguments))

    def operand(self, node: nodes.Node) -> nodes.Node:
        result, kind = self.visit(node)
        self.require(result, kind, Type.NUMBER, "a number is needed here")
        return result

    def question(self, node: nodes.Is) -> nodes.Node:
        """Return a node that tests whether a condition is true or false, or whether a value is known or unknown."""
        start, end, value = node.start, node.end, node.value
        if node.word in ("true", "false"):
            result, kind = self.visit(value)
            self.require(result, kind, Type.BOOL, f"is {node.word} asks about a condition; is known about a value")
            return replace(node, value=result)
        if isinstance(value, nodes.NamedArgument):
            shows = self.shows_of(value)
            forms = (show is Show.STRING for show in shows)
            parts = tuple(nodes.IsKnown(start, end, value, as_text) for as_text in sorted(set(forms)))
            known: nodes.Node = parts[0] if len(parts) == 1 else nodes.Or(start, end, parts)
        else:
            result, kind = self.visit(value)
            if kind is Type.BOOL and not isinstance(result, nodes.EventField):
                raise ExpressionError.of(
                    value, f"this is a condition; is {node.word} asks about a value, is true about a condition"
                )
            if kind is Type.TEXT:
                self.text_source(result)
            known = nodes.IsKnown(start, end, result, kind is Type.TEXT)
        return nodes.Not(start, end, known) if node.word == "unknown" else known

    def shows_of(self, node: nodes.NamedArgument) -> set[Show]:
        """Return all notations in which events of any code show an argument."""
        codes = self.codes_of(node)
        if not codes:
            hints = nearest(node.name, argument_names(self.release, self.taught))
            raise ExpressionError.of(
                node,
                f"no event has an argument {node.name[:40]!r}{did_you_mean(hints)}",
                [f"arg.{hint}" for hint in hints],
            )
        return {part.show for code in codes for part in self.parts_of(node, code)}

    def codes_of(self, node: nodes.NamedArgument) -> tuple[int, ...]:
        return codes_of_argument(self.release, node.name, self.taught)

    def parts_of(self, node: nodes.NamedArgument, code: int) -> list[PayloadPart]:
        parts = arguments_of(self.release, code, self.taught)
        return [part for part in parts if is_same_name(part.name, node.name)]

    def value_texts(self, node: nodes.Node) -> dict[tuple[ValueText, ...], list[int]]:
        """Return all texts for values of an argument, each set with the codes of the events that use it."""
        codes_by_texts: dict[tuple[ValueText, ...], list[int]] = {}
        if isinstance(node, nodes.NamedArgument):
            same: dict[int, list[int]] = {}  # by id, as comparing hundreds of texts for hundreds of events is slow
            for code in self.codes_of(node):
                described = (part.texts for part in self.parts_of(node, code) if part.words and part.texts)
                texts = next(described, None) or table_texts(self.release, code, node.name)
                codes = same.get(id(texts)) or codes_by_texts.setdefault(texts, [])
                codes.append(code)
                same[id(texts)] = codes
        codes_by_texts.pop((), None)
        return codes_by_texts

    def as_text(self, value: nodes.Node, item: nodes.Node) -> nodes.Node:
        """Return `item` as a text if it is an unquoted word and the values of the argument `value` have texts."""
        if isinstance(item, nodes.BareWord) and self.value_texts(value):
            return nodes.Text(item.start, item.end, item.value)
        return item

    def with_value(
        self, node: nodes.Node, argument: nodes.NamedArgument, groups_of: Callable[[tuple[ValueText, ...]], Groups]
    ) -> nodes.Node | None:
        """Return a node that tests whether an argument has a value with certain texts; None if no value can have them.

        `groups_of` picks groups of the texts for an argument's values: all texts of one group must stand for the value.
        """
        start, end, tests = node.start, node.end, list[nodes.Node]()
        having = set(self.codes_of(argument))
        for texts, codes in self.value_texts(argument).items():
            if not (groups := groups_of(texts)):
                continue
            test = _either(start, end, [_has_texts(start, end, argument, group) for group in groups])
            is_among = np.isin(np.arange(CODE_COUNT), codes)
            own = CodeTest(start, end, FieldKind.EVENT, (), None, is_among)
            tests.append(test if having == set(codes) else nodes.And(start, end, (own, test)))
        if tests and not (len(tests) == 1 and not isinstance(tests[0], nodes.And)):
            # Makes the test false, not unknown, where the argument is a number without such a text.
            tests.append(nodes.Compare(start, end, "!=", argument, argument))
        return _either(start, end, tests) if tests else None

    def is_called(self, node: nodes.Node, argument: nodes.NamedArgument, text: nodes.Text) -> nodes.Node:
        """Return a node that tests whether an argument is a text equal to `text`, or a number with that name."""
        test = self.with_value(node, argument, lambda texts: called(texts, text.value))
        if Show.STRING in self.shows_of(argument):
            equal = nodes.Compare(node.start, node.end, "==", argument, text)
            return equal if test is None else nodes.Or(node.start, node.end, (equal, test))
        if test is None:
            names = dict.fromkeys(value_text.text for texts in self.value_texts(argument) for value_text in texts)
            hints = nearest(text.value, names)
            raise ExpressionError.of(
                text,
                f"no value of the argument {argument.name!r} is called {text.value[:40]!r}{did_you_mean(hints)}",
                [f'"{hint}"' for hint in hints],
            )
        return test

    def argument(self, node: nodes.NamedArgument, is_text: bool = False) -> nodes.NamedArgument:
        shows = self.shows_of(node)
        if is_text and Show.STRING not in shows:
            raise ExpressionError.of(node, f"the argument {node.name!r} is a number")
        if not is_text and shows == {Show.STRING}:
            raise ExpressionError.of(node, f"the argument {node.name!r} is a text; compare it with one in quotes")
        return node

    def unknown_field(self, node: nodes.BareWord) -> ExpressionError:
        hints = nearest(node.value, FIELDS)
        return ExpressionError.of(node, f"there is no field {node.value[:40]!r}{did_you_mean(hints)}", hints)

    def compare(self, node: nodes.Compare) -> nodes.Node:
        left, right, sign = node.left, node.right, node.sign
        if not isinstance(left, nodes.EventField | nodes.NamedArgument) and isinstance(
            right, nodes.EventField | nodes.NamedArgument
        ):
            left, right, sign = right, left, COMPARISONS[sign].swapped
        right = self.as_text(left, right)
        if isinstance(right, nodes.Moment) and isinstance(left, nodes.EventField) and left.name == "time":
            return nodes.TimeTest(node.start, node.end, sign, right)
        if isinstance(left, nodes.EventField) and FIELDS[left.name].kind in NAMED:
            if sign not in ("==", "!="):
                raise ExpressionError.of(node, f"{left.name} is a name: it is equal to another or not")
            test = self.named(node, left, (right,))
            return nodes.Not(node.start, node.end, test) if sign == "!=" else test
        if self.is_text(left) or isinstance(right, nodes.Text):
            return self.compare_texts(replace(node, left=left, right=right, sign=sign))
        return replace(node, left=self.operand(left), right=self.other(left, right), sign=sign)

    def is_text(self, node: nodes.Node) -> bool:
        return isinstance(node, nodes.Text) or (
            isinstance(node, nodes.EventField) and FIELDS[node.name].kind is FieldKind.TEXT
        )

    def compare_texts(self, node: nodes.Compare) -> nodes.Node:
        if node.sign not in ("==", "!="):
            raise ExpressionError.of(node, "texts are equal or not; they have no order here")
        if (
            isinstance(node.left, nodes.NamedArgument)
            and isinstance(node.right, nodes.Text)
            and self.value_texts(node.left)
        ):
            equal = self.is_called(node, node.left, node.right)
        else:
            self.text_source(node.left)
            if not isinstance(node.right, nodes.Text):
                raise ExpressionError.of(node.right, "a text in quotes is needed here")
            equal = _with_label(replace(node, sign="=="))
        return nodes.Not(node.start, node.end, equal) if node.sign == "!=" else equal

    def text_source(self, node: nodes.Node) -> None:
        if isinstance(node, nodes.NamedArgument):
            self.argument(node, is_text=True)
        elif not (isinstance(node, nodes.EventField) and FIELDS[node.name].kind is FieldKind.TEXT):
            raise ExpressionError.of(node, "a text is compared with name, thread_name, text or a text argument")

    def other(self, left: nodes.Node, right: nodes.Node) -> nodes.Node:
        """Return the resolved right side of a comparison of numbers; the name of an error is replaced by its number."""
        if isinstance(right, nodes.BareWord) and isinstance(left, nodes.EventField):
            if FIELDS[left.name].kind is FieldKind.ERROR:
                return self.error(right)
            if left.name == "pid":
                raise ExpressionError.of(
                    right,
                    f'pid is a number; for a process by name write name == "{right.value[:40]}"',
                    (f'"{right.value[:40]}"',),
                )
        return self.operand(right)

    def error(self, node: nodes.BareWord) -> nodes.Number:
        number = error_number(node.value, self.release)
        if number is None:
            hints = nearest(node.value, error_names(self.release))
            raise ExpressionError.of(node, f"there is no error {node.value[:40]!r}{did_you_mean(hints)}", hints)
        return nodes.Number(node.start, node.end, number)

    def membership(self, node: nodes.In) -> nodes.Node:
        value = node.value
        if isinstance(value, nodes.EventField) and FIELDS[value.name].kind in NAMED:
            return self.named(node, value, node.items)
        node = replace(node, items=tuple(self.as_text(value, item) for item in node.items))
        has_texts = any(isinstance(item, nodes.Text) for item in node.items)
        if has_texts and isinstance(value, nodes.NamedArgument) and self.value_texts(value):
            tests = [self.is_called(node, value, item) if isinstance(item, nodes.Text)
                     else nodes.Compare(node.start, node.end, "==", value, self.operand(item))
                     for item in node.items]  # fmt: skip
            return _either(node.start, node.end, tests)
        if self.is_text(value) or has_texts:
            self.text_source(value)
            for item in node.items:
                if not isinstance(item, nodes.Text):
                    raise ExpressionError.of(item, "a text in quotes is needed here")
            equal = [nodes.Compare(node.start, node.end, "==", value, item) for item in node.items]
            labels = [test for comparison in equal if (test := _with_label(comparison)) is not comparison]
            return nodes.Or(node.start, node.end, (node, *labels)) if labels else node
        return replace(node, value=self.operand(value), items=tuple(self.other(value, item) for item in node.items))

    def match(self, node: nodes.PatternMatch) -> nodes.Node:
        value = node.value
        if isinstance(value, nodes.EventField) and FIELDS[value.name].kind in NAMED:
            kind = FIELDS[value.name].kind
            return CodeTest(
                node.start, node.end, kind, (), node.pattern, pattern_table(kind, node.pattern, self.release)
            )
        if isinstance(value, nodes.NamedArgument) and self.value_texts(value):
            node.pattern.refill()
            fits = node.pattern.matches
            test = self.with_value(node, value, lambda texts: [(text,) for text in texts if fits(text.text)])
            if Show.STRING in self.shows_of(value):
                return node if test is None else nodes.Or(node.start, node.end, (node, test))
            return nodes.Compare(node.start, node.end, "!=", value, value) if test is None else test
        self.text_source(value)
        return node

    def named(self, node: nodes.Node, field: nodes.EventField, items: Iterable[nodes.Node]) -> CodeTest:
        kind = FIELDS[field.name].kind
        table, names = np.zeros(CODE_COUNT, np.bool_), []
        for item in items:
            if not isinstance(item, nodes.BareWord | nodes.Text):
                hint = "; number compares event numbers" if kind is FieldKind.EVENT else ""
                raise ExpressionError.of(item, f"the name of {_an(kind)} is needed here{hint}")
            table |= self.lookup(kind, item)
            names.append(item.value)
        return CodeTest(node.start, node.end, kind, tuple(names), None, table)

    def lookup(self, kind: FieldKind, node: nodes.BareWord | nodes.Text) -> NDArray[np.bool_]:
        table = name_table(kind, node.value, self.release)
        if table is None:
            known = {
                FieldKind.CLASS: lambda: class_names(self.release),
                FieldKind.EVENT: lambda: event_names(self.release),
                FieldKind.STATE: lambda: tuple(states.STATE_BY_NAME),
            }[kind]()
            hints = nearest(node.value, known)
            raise ExpressionError.of(
                node, f"there is no {kind.value} {node.value[:40]!r} in {self.release}{did_you_mean(hints)}", hints
            )
        return table


def enters_state(start: int, end: int, release: Release) -> CodeTest:
    """Return a node, at a position in the text, that tests whether an event begins a state."""
    return code_table(start, end, listed_catalogue(release).state_value_of_code != states.NOT_A_STATE)


def code_table(start: int, end: int, table: NDArray[np.bool_]) -> CodeTest:
    """Return a node, at a position in the text, that looks up an event's code in a table, bool (32768,)."""
    return CodeTest(start, end, FieldKind.STATE, (), glob("*"), table)


def value_names(release: Release, name: str, taught: Taught | None = None) -> dict[str, str]:
    """Return the values of an argument by name, each as decimal or hexadecimal text; parameters as in `resolve`."""
    texts_of_argument = _Checker(release, taught).value_texts(nodes.NamedArgument(0, 0, name))
    return {text.text: str(text.value) if text.mask == -1 else hex(text.value)
            for texts in texts_of_argument for text in texts if text.text}  # fmt: skip


def _either(start: int, end: int, tests: Sequence[nodes.Node]) -> nodes.Node:
    return tests[0] if len(tests) == 1 else nodes.Or(start, end, tuple(tests))


def _has_words(start: int, end: int, words: Sequence[int]) -> nodes.Node:
    """Return a node that tests whether a payload consists of exactly these words, unsigned."""
    count = nodes.Compare(start, end, "==", nodes.EventField(start, end, "words"), nodes.Number(start, end, len(words)))
    equal = (
        nodes.Compare(start, end, "==", nodes.Word(start, end, index), nodes.Number(start, end, word))
        for index, word in enumerate(words)
    )
    return nodes.And(start, end, (count, *equal))


def _has_texts(start: int, end: int, argument: nodes.NamedArgument, group: Sequence[ValueText]) -> nodes.Node:
    """Return a node that tests whether the value of an argument is shown with all of some texts."""

    def equal(value: nodes.NamedArgument, mask: int, number: int) -> nodes.Node:
        masked = value if mask == -1 else nodes.Arithmetic(start, end, "&", value, nodes.Number(start, end, mask))
        return nodes.Compare(start, end, "==", masked, nodes.Number(start, end, number & mask))

    tests = []
    for text in group:
        tests.append(equal(argument, text.mask, text.value))
        if text.when is not None:
            label, mask, number = text.when
            tests.append(equal(nodes.NamedArgument(start, end, label), mask, number))
    return tests[0] if len(tests) == 1 else nodes.And(start, end, tuple(tests))


def _with_label(node: nodes.Compare) -> nodes.Node:
    """Return a comparison of the field `name`, extended by process labels such as `pid 7`; others unchanged."""
    text, name = node.right, node.left
    if not (isinstance(text, nodes.Text) and isinstance(name, nodes.EventField) and name.name == "name"):
        return node
    label = LABEL.fullmatch(text.value)
    if label is None:
        return node
    start, end = node.start, node.end
    pid = nodes.Number(start, end, int(label["numbered"] or label["pid"]))
    test: nodes.Node = nodes.Compare(start, end, "==", nodes.EventField(start, end, "pid"), pid)
    if label["name"]:
        test = nodes.And(start, end, (replace(node, right=replace(text, value=label["name"])), test))
    return nodes.Or(start, end, (node, test))


def _an(kind: FieldKind) -> str:
    return f"an {kind.value}" if kind is FieldKind.EVENT else f"a {kind.value}"


def name_table(kind: FieldKind, name: str, release: Release) -> NDArray[np.bool_] | None:
    """Return the codes of the class, event or state with the given name, bool (32768,); None = no such name."""
    if kind is FieldKind.CLASS:
        return class_codes(name, release)
    if kind is FieldKind.STATE:
        value = state_value(name)
        return None if value is None else listed_catalogue(release).state_value_of_code == value
    codes = listed_catalogue(release).find_shown(name[:100])
    if not codes:
        return None
    table = np.zeros(CODE_COUNT, np.bool_)
    table[list(codes)] = True
    return table


def pattern_table(kind: FieldKind, pattern: Pattern, release: Release) -> NDArray[np.bool_]:
    """Return the codes whose class, event or state has a name that matches a pattern, bool (32768,)."""
    book = listed_catalogue(release)
    pattern.refill()
    if kind is FieldKind.CLASS:
        fits = np.array([pattern.matches(spec.name) for spec in book.classes])
        return np.asarray(fits[book.class_index_of_code])
    if kind is FieldKind.STATE:
        values = [state.value for state in states.STATES if pattern.matches(state.name)]
        return np.isin(book.state_value_of_code, values)
    table = np.zeros(CODE_COUNT, np.bool_)
    table[[code for code in book.codes() if pattern.matches(book.name(code))]] = True
    return table
