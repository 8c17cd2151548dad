"""Expressions over events: checked conditions that are evaluated for one event or for a whole trace.

    >>> slow = Expression("event == MSG_SENDV and duration > 2ms", Release.QNX_7)
    >>> rows = np.flatnonzero(slow.mask(trace))

An expression has no state and can only compare, so that expressions from untrusted sources are safe.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled
from satview.events import variants
from satview.events.catalogue import catalogue
from satview.events.layout import PayloadPart, Taught, argument_part, described_part, text_at, text_offset
from satview.events.spec import Release
from satview.events.wire import WireClass, class_of, event_of
from satview.filters.derived_columns import Bools, DerivedColumns, TraceDerivedColumns, chunks, rows_of
from satview.filters.diagnostics import Diagnostic, ExpressionError
from satview.filters.expressions import nodes
from satview.filters.expressions.compiled import Condition, bounded, compile_expression
from satview.filters.expressions.nodes import ARITHMETIC, COMPARISONS, FUNCTIONS, of_numbers, share_budget, wrapped
from satview.filters.expressions.reach import never_true
from satview.filters.expressions.semantics import (
    FIELDS,
    NAMED,
    CodeTest,
    FieldKind,
    class_codes,
    enters_state,
    resolve,
    state_value,
)
from satview.filters.expressions.syntax import parse
from satview.filters.external import EventContext, signed_word
from satview.store import arguments
from satview.store.trace import Trace

# Conversion of three-valued conditions (true, false, unknown, as in SQL) to two-valued ones, which are evaluated.


def two_valued(node: nodes.Node, release: Release, negated: bool = False) -> nodes.Node:
    """Return a condition with two results: true where `node` is true, false where `node` is false or unknown.

    Args:
        node: The condition, from `semantics.resolve`.
        release: Release whose names it uses.
        negated: True to return instead a condition that is true where `node` is false, and false elsewhere.

    Returns:
        A tree without `nodes.Is`, in which `nodes.Not` means that its part is not true.
    """
    if isinstance(node, nodes.Not):
        return replace(two_valued(node.part, release, not negated), start=node.start, end=node.end)
    if isinstance(node, nodes.And | nodes.Or):
        joint = nodes.And if isinstance(node, nodes.And) is not negated else nodes.Or
        return joint(node.start, node.end, tuple(two_valued(part, release, negated) for part in node.parts))
    is_two_valued = isinstance(node, nodes.Is | nodes.IsKnown)
    if isinstance(node, nodes.Is):
        node = replace(two_valued(node.value, release, node.word == "false"), start=node.start, end=node.end)
    if isinstance(node, nodes.IsKnown) and isinstance(node.value, nodes.EventField):
        kind = FIELDS[node.value.name].kind
        if kind is FieldKind.STATE:
            node = enters_state(node.start, node.end, release)
        elif kind in NAMED:  # each event has a class and a name
            node = replace(node, value=nodes.Number(node.start, node.end, 1))
    if not negated:
        return node
    if is_two_valued:
        return nodes.Not(node.start, node.end, node)
    if isinstance(node, nodes.TimeTest) or (isinstance(node, nodes.Compare) and not isinstance(node.right, nodes.Text)):
        return replace(node, sign=COMPARISONS[node.sign].opposite)
    opposite = nodes.Not(node.start, node.end, node)
    known = _known_parts(node, release)
    return nodes.And(node.start, node.end, (*known, opposite)) if known else opposite


def _known_parts(node: nodes.Node, release: Release) -> tuple[nodes.Node, ...]:
    """Return conditions, at the position of a comparison, that all hold exactly if its result is known."""
    start, end = node.start, node.end
    if isinstance(node, CodeTest):
        return (enters_state(start, end, release),) if node.kind is FieldKind.STATE else ()
    if isinstance(node, nodes.EventField):
        return (nodes.IsKnown(start, end, node),)
    if isinstance(node, nodes.In) and not isinstance(node.items[0], nodes.Text):
        values = (value for value in (node.value, *node.items) if not isinstance(value, nodes.Number))
        return tuple(nodes.IsKnown(start, end, value) for value in values)
    if isinstance(node, nodes.Compare):
        return (nodes.IsKnown(start, end, node.left, as_text=True),)
    assert isinstance(node, nodes.In | nodes.PatternMatch)
    return (nodes.IsKnown(start, end, node.value, as_text=True),)


# Evaluation for one event, which captures use and with which tests compare the vectorised form.


def evaluate(node: nodes.Node, context: EventContext, release: Release) -> bool:
    """Return whether a two-valued condition (`two_valued`) holds for one event."""
    return _Event(context, release).is_true(node)


class _Event:
    def __init__(self, context: EventContext, release: Release) -> None:
        self.context, self.release = context, release

    def is_true(self, node: nodes.Node) -> bool:
        if isinstance(node, nodes.And):
            return all(self.is_true(part) for part in node.parts)
        if isinstance(node, nodes.Or):
            return any(self.is_true(part) for part in node.parts)
        if isinstance(node, nodes.Not):
            return not self.is_true(node.part)
        if isinstance(node, CodeTest):
            return self.code_test(node)
        if isinstance(node, nodes.Compare):
            return self.compare(node)
        if isinstance(node, nodes.In):
            return self.membership(node)
        if isinstance(node, nodes.PatternMatch):
            node.pattern.refill()
            return any(node.pattern.matches(text) for text in self.texts(node.value))
        if isinstance(node, nodes.TimeTest):
            return False  # it needs a trace, of which an event alone knows nothing
        if isinstance(node, nodes.IsKnown):
            return self.is_known(node)
        assert isinstance(node, nodes.EventField)
        # The only flag is `failed`.
        return self.variant() in variants.FAILURES

    def is_known(self, node: nodes.IsKnown) -> bool:
        if node.as_text:
            return bool(self.texts(node.value))
        if isinstance(node.value, nodes.EventField) and FIELDS[node.value.name].kind is FieldKind.FLAG:
            return variants.is_exit(self.context.code) and self.variant() != variants.DOUBTFUL
        return self.number(node.value) is not None

    def variant(self) -> int:
        return variants.variant_of(self.release, self.context.code, self.context.words)

    def code_test(self, node: CodeTest) -> bool:
        code, book = self.context.code, catalogue(self.release)
        if node.pattern is not None:
            node.pattern.refill()
            names = {FieldKind.CLASS: book.class_name(code), FieldKind.EVENT: book.name(code)}
            if node.kind is FieldKind.STATE:
                return bool(node.table[code])
            is_listed = node.kind is FieldKind.CLASS or code in book.codes()
            return is_listed and node.pattern.matches(names[node.kind])
        if not node.names:
            return bool(node.table[code])
        if node.kind is FieldKind.STATE:
            return int(book.state_value_of_code[code]) in [state_value(name) for name in node.names]
        if node.kind is FieldKind.EVENT:
            return any(code in book.find_shown(name) for name in node.names)
        printed = book.class_name(code).upper()
        tables = [class_codes(name, self.release) for name in node.names if name.strip().upper() != printed]
        return len(tables) < len(node.names) or any(table is not None and bool(table[code]) for table in tables)

    def compare(self, node: nodes.Compare) -> bool:
        if isinstance(node.right, nodes.Text):
            return node.right.value in self.texts(node.left)
        left, right = self.number(node.left), self.number(node.right)
        return left is not None and right is not None and COMPARISONS[node.sign].scalar(left, right)

    def membership(self, node: nodes.In) -> bool:
        if isinstance(node.items[0], nodes.Text):
            own = self.texts(node.value)
            return any(isinstance(item, nodes.Text) and item.value in own for item in node.items)
        value = self.number(node.value)
        return value is not None and value in [self.number(item) for item in node.items]

    def texts(self, node: nodes.Node) -> tuple[str, ...]:
        """Return the texts of a field or argument, () if unknown; a process has its path and its bare file name."""
        context = self.context
        if isinstance(node, nodes.NamedArgument):
            position = self.part_named(node.name)
            text = text_at(context.payload, position) if position is not None and not position.words else None
            return () if text is None else (text,)
        assert isinstance(node, nodes.EventField)
        if node.name == "name":
            full = context.process_name
            return (full, full.rsplit("/", 1)[-1]) if full else ()
        if node.name == "thread_name":
            return (context.thread_name,) if context.thread_name else ()
        position = text_offset(self.release, context.code, len(context.words))
        if position is None:
            return ()
        text = (
            variants.user_text(context.payload)
            if variants.is_user(context.code)
            else text_at(context.payload, position)
        )
        return () if text is None else (text,)

    def part_named(self, name: str) -> PayloadPart | None:
        context = self.context
        if variants.is_user(context.code):
            variant = variants.BY_COUNT if variants.user_text(context.payload) is None else variants.TEXT
        else:
            variant = self.variant()
        count = len(context.words)
        part = argument_part(self.release, context.code, count, name, variant)
        return part or described_part(self.release, context.code, count, name)

    def number(self, node: nodes.Node) -> int | None:
        if isinstance(node, nodes.Number):
            return wrapped(node.value)
        if isinstance(node, nodes.Word):
            return self.context.word(node.index) if node.index < len(self.context.words) else None
        if isinstance(node, nodes.EventField):
            return self.field(node.name)
        if isinstance(node, nodes.NamedArgument):
            return self.argument(node.name)
        if isinstance(node, nodes.Latency):
            return self.context.latency_ns
        if isinstance(node, nodes.Negative):
            return of_numbers(ARITHMETIC["-"], 0, self.number(node.part))
        if isinstance(node, nodes.Arithmetic):
            return of_numbers(ARITHMETIC[node.sign], self.number(node.left), self.number(node.right))
        assert isinstance(node, nodes.FunctionCall)
        return of_numbers(FUNCTIONS[node.name], *(self.number(part) for part in node.arguments))

    def field(self, name: str) -> int | None:
        context = self.context
        plain = {
            "code": context.code,
            "number": number_of(context.code),
            "time": context.time_ns,
            "cpu": context.cpu,
            "words": len(context.words),
        }
        if name in plain:
            return plain[name]
        if name == "errno":
            return variants.error_of(self.release, context.code, context.words)
        if name in ("pid", "tid"):
            value = context.pid if name == "pid" else context.tid
            return value if value >= 0 else None
        return {"priority": context.priority, "duration": context.duration_ns, "length": context.length_ns}[name]

    def argument(self, name: str) -> int | None:
        context, position = self.context, self.part_named(name)
        if position is None or not position.words:
            return None
        word, order = context.word(position.word), "little" if context.is_little_endian else "big"
        if position.size:
            return position.from_bytes(context.payload, order)
        if position.words == 2:
            return wrapped(variants.join64(word, context.word(position.word + 1), order))
        return signed_word(word) if position.is_signed else word


def number_of(code: int) -> int:
    """Return the event number of a code in its class; for kernel calls the call number, common to entry and exit."""
    event = event_of(code)
    return event & 0x7F if class_of(code) == WireClass.KER_CALL else event


class Expression:
    """A condition on one event.

    Args:
        negated: Whether the expression holds where the text is false, as `not (text)`, instead of where it is true.
        taught: Arguments that a trace adds (`store.arguments.taught`); None = those that all traces added so far.
        is_trigger: True for the condition of a WHEN rule, which may compare a latency.

    Attributes:
        latency: The latency that the expression compares; None if it compares none.
        tree: The checked expression in two-valued form (`two_valued`).
        patterns: All patterns in the expression.

    Raises:
        ExpressionError: The text is no valid expression; with the position of the fault.
    """

    def __init__(
        self,
        text: str,
        release: Release,
        negated: bool = False,
        taught: Taught | None = None,
        *,
        is_trigger: bool = False,
    ) -> None:
        self.text, self.release = text, release
        parsed = parse(text)
        self._check_latencies(parsed, is_trigger=is_trigger)
        self.patterns = tuple(nodes.patterns_in(parsed))
        share_budget(self.patterns)
        resolved = resolve(parsed, release, taught)
        self.latency = next(nodes.latencies_in(resolved), None)
        self.tree: nodes.Node = two_valued(resolved, release, negated)

    @staticmethod
    def _check_latencies(parsed: nodes.Node, *, is_trigger: bool) -> None:
        """Raise an error for a latency outside a trigger, and for latencies of two different pairs of events."""
        pairs: dict[tuple[object, object], nodes.Latency] = {}
        for node in nodes.latencies_in(parsed):
            if not is_trigger:
                raise ExpressionError.of(
                    node,
                    "a latency is kept by a recorder, for WHEN ... THEN; in a view, duration and length are lengths",
                )
            pairs.setdefault((node.first.value, node.last.value), node)
        if len(pairs) > 1:
            second = [*pairs.values()][1]
            raise ExpressionError.of(second, "a WHEN rule compares the latency of one pair; write a second rule")

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def __call__(self, context: EventContext, /) -> int:
        """Return 1 if the expression holds for one event, else 0, as event handlers do."""
        return int(evaluate(self.tree, context, self.release))

    def bounded(self, missing: Bools, *, may: bool) -> Expression:
        """Return an upper (`may`) or lower bound of the result in a kernel; arguments as for `compiled.bounded`."""
        twin = copy(self)
        twin.tree = bounded(self.tree, missing, may=may)
        return twin

    def plan(self, trace: Trace, derived: DerivedColumns | None = None) -> Condition:
        """Return the expression compiled for a trace, for callers that evaluate it chunk by chunk.

        Raises:
            ExpressionError: The trace is of another release, whose names may mean other events.
        """
        if trace.release is not self.release:
            raise ExpressionError(
                f"the expression was written for {self.release}, the trace is of {trace.release}", 0, len(self.text)
            )
        return compile_expression(self.tree, trace, derived or TraceDerivedColumns(trace))

    def mask(
        self,
        trace: Trace,
        rows: NDArray[np.integer] | None = None,
        derived: DerivedColumns | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> Bools:
        """Return for each event of a trace whether the expression holds.

        Args:
            trace: The trace.
            rows: Event rows, ascending; None = all.
            derived: Source of durations and priorities; None = computed from the trace.
            cancelled: Called between chunks; if it returns True, `Cancelled` is raised.

        Returns:
            bool, shape (len(rows),) or (events,).

        Raises:
            ExpressionError: A pattern takes too long, or the release does not fit.
            Cancelled: `cancelled()` returned True.
        """
        condition = self.plan(trace, derived)
        count = len(trace.events) if rows is None else len(rows)
        result = np.empty(count, np.bool_)
        for part in chunks(count):
            if cancelled is not None and cancelled():
                raise Cancelled("the filter was stopped")
            result[part] = condition.of(part if rows is None else rows[part])
        return result


def possible(expression: Expression) -> Expression:
    """Return an expression unchanged if it can be true for some event of any trace.

    Raises ExpressionError, with the position of the part that prevents it, if it cannot.
    """
    part = never_true(expression.tree, expression.release)
    if part is not None:
        text = expression.text[part.start : part.end]
        raise ExpressionError.of(part, f"no event can ever fit {text[:80]!r}")
    return expression


def select(trace: Trace, text: str, derived: DerivedColumns | None = None) -> NDArray[np.uint32]:
    """Return the rows of the events for which an expression holds, uint32, ascending.

    Raises:
        ExpressionError: The text is no valid expression, or can be true for no event of any trace; with the position
            of the fault and similar names.
    """
    expression = possible(Expression(text, trace.release, taught=arguments.taught(trace)))
    return rows_of(expression.mask(trace, derived=derived))


def validate(text: str, release: Release, taught: Taught | None = None) -> Diagnostic | None:
    """Return the first fault in the text of an expression, None if there is none; for checks while a user types."""
    try:
        Expression(text, release, taught=taught)
    except ExpressionError as error:
        return error.diagnostics[0]
    return None
