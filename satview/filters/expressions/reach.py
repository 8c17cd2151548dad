"""The events for which a capture's condition can be true, and the parts of it that an event handler cannot evaluate.

A view knows the whole trace; an event handler knows one event, in the form in which it is logged. `KnownWhen` tells
when each field is known; the event catalogue tells which arguments an event has in fast and wide form. Capture rules,
their dialog, completion and the C export use this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.catalogue import catalogue
from satview.events.layout import USER_TEXT, codes_of_argument, described_part, is_same_name, layout_of, logged_list
from satview.events.spec import Field as Item
from satview.events.spec import Release, Show
from satview.events.variants import EXITS, FAILED_ARGUMENTS, USER_CLASSES, is_user
from satview.events.wire import CODE_COUNT, FAST_WORDS, class_of
from satview.filters.expressions import nodes
from satview.filters.expressions.compiled import domains, table_of
from satview.filters.expressions.nodes import COMPARISONS
from satview.filters.expressions.semantics import FIELDS, CodeTest, Domain, KnownWhen

Bools = NDArray[np.bool_]
_TEXT: Final = "text"
_MOST_WORDS: Final = 1 << 15  # no payload is longer
_NUMBER_MAX: Final = 1 << 62  # larger ones wrap


@dataclass(frozen=True, slots=True)
class Limit:
    """A part of a condition, with its position in the text, that no event handler can evaluate."""

    node: nodes.Node
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Logged:
    """The events for which a handler is called, bool (32768,), and the form in which they are logged."""

    release: Release
    codes: Bools
    is_wide: Callable[[int], bool]

    def having(self, name: str, wide: bool | None = None) -> Bools:
        """Return the codes whose events have an argument with this name, bool (32768,).

        Args:
            name: Name of the argument.
            wide: Whether the events' wide (True) or fast (False) form must have it; None = the form in which they are
                logged.
        """
        result = np.zeros(CODE_COUNT, np.bool_)
        for code in codes_of_argument(self.release, name):
            if self.codes[code]:
                result[code] = has_argument(self.release, code, name, self.is_wide(code) if wide is None else wide)
        return result

    def longer_than(self, word: int) -> Bools:
        """Return the codes whose payload may have a word with this index, bool (32768,)."""
        return self._where(lambda code: _has_room(items_logged(self.release, code, self.is_wide(code)), word))

    def with_text(self) -> Bools:
        """Return the codes whose payload may hold a text, bool (32768,)."""
        return self._where(
            lambda code: (
                class_of(code) in USER_CLASSES
                or any(item.show is Show.STRING for item in items_logged(self.release, code, self.is_wide(code)))
            )
        )

    def _where(self, test: Callable[[int], bool]) -> Bools:
        result = np.zeros(CODE_COUNT, np.bool_)
        present = np.flatnonzero(self.codes).tolist()
        result[present] = [test(code) for code in present]
        return result


def items_logged(release: Release, code: int, wide: bool) -> tuple[Item, ...]:
    """Return the arguments of an event in its wide or fast form; empty if they are not known."""
    return logged_list(release, code, is_wide=wide)[1] or ()


def has_argument(release: Release, code: int, name: str, wide: bool) -> bool:
    """Return whether an event has an argument in its wide or fast form; for exits, those of failed calls count too."""
    count = _MOST_WORDS if wide else FAST_WORDS
    return _is_listed(release, code, name, wide) or described_part(release, code, count, name) is not None


@cache
def _is_listed(release: Release, code: int, name: str, wide: bool) -> bool:
    if EXITS[code] and name in FAILED_ARGUMENTS:
        return True
    items = items_logged(release, code, wide)
    if any(is_same_name(item.name, name) for item in items):
        return True
    layout = layout_of(release, code, 0)
    if (index := layout.rest_index(name)) is not None:
        return index >= sum(item.words for item in items) and _has_room(items, index)
    return is_user(code) and name == USER_TEXT


def is_wide_only(name: str, release: Release) -> bool:
    """Return whether no event has an argument with this name in fast form."""
    return not any(has_argument(release, code, name, False) for code in codes_of_argument(release, name))


def _has_room(items: tuple[Item, ...], word: int) -> bool:
    """Return whether a payload with these arguments may have a word with this index, including padding."""
    if not items or any(item.show in (Show.STRING, Show.STRUCT) for item in items):
        return True
    count = sum(item.words for item in items)
    return word < max(2, count + count % 2)


def can_hold(node: nodes.Node, logged: Logged) -> Bools:
    """Return for each code whether a condition can be true for some of its events in a capture, bool (32768,)."""
    return _outcomes(node, lambda part: _knowable(part, logged))[0] & logged.codes


def always_holds(node: nodes.Node, logged: Logged) -> Bools:
    """Return for each code whether a condition is true for all of its events, bool (32768,)."""
    return ~_outcomes(node, lambda part: _knowable(part, logged))[1] & logged.codes


def never_true(node: nodes.Node, release: Release) -> nodes.Node | None:
    """Return the smallest part that prevents a condition from being true for any event; None if no part does.

    Other systems than QNX take names from the trace, so the result is always None.
    """
    if not release.is_qnx or _outcomes(node, lambda part: _in_traces(part, release))[0].any():
        return None
    for part in node.parts if isinstance(node, nodes.And) else ():
        if (smallest := never_true(part, release)) is not None:
            return smallest
    return node


def codes_that_fit(node: nodes.Node) -> Bools:
    """Return for each code whether a condition can be true, judging by class and event only, bool (32768,)."""
    every = np.ones(CODE_COUNT, np.bool_)
    return _outcomes(node, lambda _part: every)[0]


def _in_traces(node: nodes.Node, release: Release) -> Bools:
    """Return for each code whether all parts of a comparison can be known in a complete trace, bool (32768,)."""
    result = np.ones(CODE_COUNT, np.bool_)
    if isinstance(node, nodes.EventField) and FIELDS[node.name].known is KnownWhen.EXIT:
        return EXITS
    if isinstance(node, nodes.NamedArgument):
        codes = codes_of_argument(release, node.name)
        return np.isin(np.arange(CODE_COUNT), codes) if codes else result
    if isinstance(node, nodes.In):
        return _in_traces(node.value, release)
    for part in nodes.children(node):
        result = result & _in_traces(part, release)
    return result


def _is_contradiction(parts: Iterable[nodes.Node]) -> bool:
    """Return whether conditions joined by `and` contradict: no number fits, or a value must be known and unknown."""
    bounds: dict[tuple[type, object], tuple[int, int]] = {}
    known: set[object] = set()
    unknown: set[object] = set()
    for part in parts:
        inner = part.part if isinstance(part, nodes.Not) else part
        if isinstance(inner, nodes.IsKnown):
            (known if inner is part else unknown).add((_value_key(inner.value), inner.as_text))
        if isinstance(part, nodes.Compare | nodes.In | nodes.PatternMatch):
            value = part.left if isinstance(part, nodes.Compare) else part.value
            other = (
                part.right if isinstance(part, nodes.Compare) else part.items[0] if isinstance(part, nodes.In) else None
            )
            known.add((_value_key(value), other is None or isinstance(other, nodes.Text)))
        if not isinstance(part, nodes.Compare):
            continue
        sign, value, number = part.sign, part.left, part.right
        if isinstance(value, nodes.Number):
            sign, value, number = COMPARISONS[sign].swapped, number, value
        if not isinstance(number, nodes.Number) or number.value >= _NUMBER_MAX:
            continue
        key = _value_key(value)
        if key is None:
            continue
        least, most = bounds.get(key, (-_NUMBER_MAX * 2, _NUMBER_MAX * 2))
        if sign in ("==", ">=", ">"):
            least = max(least, number.value + (sign == ">"))
        if sign in ("==", "<=", "<"):
            most = min(most, number.value - (sign == "<"))
        bounds[key] = (least, most)
    known -= {(None, False), (None, True)}
    return bool(known & unknown) or any(least > most for least, most in bounds.values())


def _value_key(value: nodes.Node) -> tuple[type, object] | None:
    """Return a key that is the same for each mention of a field, argument or word; None for computed values."""
    if isinstance(value, nodes.EventField | nodes.NamedArgument):
        return type(value), value.name
    return (nodes.Word, value.index) if isinstance(value, nodes.Word) else None


def _outcomes(node: nodes.Node, knowable: Callable[[nodes.Node], Bools]) -> tuple[Bools, Bools]:
    """Return for each code whether a condition can be true, and whether it can be false, bool (32768,) each."""
    if isinstance(node, nodes.Not):
        true, false = _outcomes(node.part, knowable)
        return false, true
    if isinstance(node, nodes.And | nodes.Or):
        if isinstance(node, nodes.And) and _is_contradiction(node.parts):
            return np.zeros(CODE_COUNT, np.bool_), np.ones(CODE_COUNT, np.bool_)
        pairs = [_outcomes(part, knowable) for part in node.parts]
        both, either = np.logical_and.reduce, np.logical_or.reduce
        trues, falses = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        return (both(trues), either(falses)) if isinstance(node, nodes.And) else (either(trues), both(falses))
    if isinstance(node, CodeTest) or domains(node) <= {Domain.CODE}:
        table = table_of(node)
        return table, ~table
    if isinstance(node, nodes.Compare) and node.sign == "!=" and node.left == node.right:
        return np.zeros(CODE_COUNT, np.bool_), np.ones(CODE_COUNT, np.bool_)
    return knowable(node), np.ones(CODE_COUNT, np.bool_)


def _knowable(node: nodes.Node, logged: Logged) -> Bools:
    """Return for each code whether all parts of a comparison can be known in a capture, bool (32768,)."""
    if isinstance(node, nodes.TimeTest):
        return np.zeros(CODE_COUNT, np.bool_)
    if isinstance(node, nodes.EventField):
        known = FIELDS[node.name].known
        if known is KnownWhen.LATER:
            return np.zeros(CODE_COUNT, np.bool_)
        if known is KnownWhen.EXIT:
            return EXITS
        return logged.with_text() if node.name == _TEXT else np.ones(CODE_COUNT, np.bool_)
    if isinstance(node, nodes.NamedArgument):
        return logged.having(node.name)
    if isinstance(node, nodes.Word):
        return logged.longer_than(node.index)
    if isinstance(node, nodes.In):
        items = np.logical_or.reduce([_knowable(item, logged) for item in node.items])
        return np.asarray(_knowable(node.value, logged) & items)
    result = np.ones(CODE_COUNT, np.bool_)
    for part in nodes.children(node):
        result = result & _knowable(part, logged)
    return result


def limits(node: nodes.Node, logged: Logged) -> Iterator[Limit]:
    """Yield every part of a condition that no event handler can evaluate for the events in `logged`."""
    if isinstance(node, nodes.EventField):
        yield from _field_limits(node, logged)
    elif isinstance(node, nodes.NamedArgument):
        yield from _argument_limits(node, logged)
    elif isinstance(node, nodes.TimeTest):
        yield Limit(
            node,
            f"{node.moment.text} is a moment of a trace, which is not there yet",
            "capture without it and filter the trace afterwards",
        )
    else:
        for part in nodes.children(node):
            yield from limits(part, logged)


def later_parts(condition: nodes.Node) -> Iterator[tuple[int, int, str]]:
    """Yield the parts of a condition that are never known at the event itself: start, end and reason."""
    for node in (condition, *(_descendants(condition))):
        if isinstance(node, nodes.EventField) and FIELDS[node.name].known is KnownWhen.LATER:
            yield (node.start, node.end, f"{node.name} is known only later, and a trigger is decided at the event; "
                   'compare latency("first", "last")')  # fmt: skip
        elif isinstance(node, nodes.TimeTest):
            yield (node.start, node.end, f"{node.moment.text} is a moment of a whole trace, and a trigger is decided "
                   "at the event; compare time with a number, as in time > 5s")  # fmt: skip


def _descendants(node: nodes.Node) -> Iterator[nodes.Node]:
    for part in nodes.children(node):
        yield part
        yield from _descendants(part)


def _field_limits(node: nodes.EventField, logged: Logged) -> Iterator[Limit]:
    known = FIELDS[node.name].known
    if known is KnownWhen.LATER:
        yield Limit(
            node,
            f"{node.name} is known only later, when the event has long been logged",
            "capture without it and filter the trace afterwards",
        )
    elif known is KnownWhen.EXIT and not (logged.codes & EXITS).any():
        yield Limit(
            node, f"{node.name} is known at the exit of a kernel call only", "attach the condition to KERCALLEXIT"
        )
    elif node.name == _TEXT and not logged.with_text().any():
        yield Limit(node, "none of these events has a text in the form that is logged", "log them wide")


def _argument_limits(node: nodes.NamedArgument, logged: Logged) -> Iterator[Limit]:
    if logged.having(node.name).any():
        return
    wide = np.flatnonzero(logged.having(node.name, wide=True)).tolist()
    if wide:
        name = catalogue(logged.release).name(wide[0])
        yield Limit(
            node,
            f"arg.{node.name} is logged in wide form only, and {name} would be fast",
            "make it wide with SETEVENTWIDE, SETCLASSWIDE or SETALLCLASSESWIDE",
        )
        return
    fast = logged.having(node.name, wide=False).any()
    reason = "in fast form only" if fast else "by none of these events"
    yield Limit(
        node,
        f"arg.{node.name} is logged {reason}",
        "make it fast" if fast else "attach the condition to an event that has it",
    )
