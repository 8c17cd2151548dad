"""Expressions over events: checked text that answers for one event or for a whole trace.

    >>> slow = Expression("event == MSG_SENDV and duration > 2ms", Release.QNX_7)
    >>> rows = np.flatnonzero(slow.mask(trace))

An expression has no state and can do nothing but compare: it is safe to take one from anybody.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled
from satview.events.layout import Taught
from satview.events.spec import Release
from satview.filters.derived_columns import DerivedColumns, TraceDerivedColumns
from satview.filters.diagnostics import Diagnostic, ExpressionError
from satview.filters.event_context import EventContext
from satview.filters.expressions import nodes
from satview.filters.expressions.bounds import bounded
from satview.filters.expressions.compiled import Condition, compile_expression
from satview.filters.expressions.pattern import share_budget
from satview.filters.expressions.reach import never_true
from satview.filters.expressions.scalar import evaluate
from satview.filters.expressions.semantics import resolve
from satview.filters.expressions.syntax import parse
from satview.filters.expressions.three_valued import two_valued
from satview.filters.rows import Bools, chunks, rows_of
from satview.store import arguments
from satview.store.trace import Trace


class Expression:
    """A condition on one event.

    Args:
        text: As written.
        release: Whose names it uses.
        negated: Whether it is to hold where the text is false, as `not (text)` does, instead of where it is true.
        taught: Arguments that a trace brings (`store.arguments.taught`); None = those that all traces have brought.

    Attributes:
        text: As written.
        release: Whose names it uses.
        tree: The checked expression, which holds or does not (`three_valued.two_valued`).
        patterns: Those in it.

    Raises:
        ExpressionError: The text is no valid expression; with the position of the fault.
    """

    def __init__(self, text: str, release: Release, negated: bool = False, taught: Taught | None = None) -> None:
        self.text, self.release = text, release
        parsed = parse(text)
        self.patterns = tuple(nodes.patterns_in(parsed))
        share_budget(self.patterns)
        self.tree: nodes.Node = two_valued(resolve(parsed, release, taught), release, negated)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def __call__(self, context: EventContext, /) -> int:
        """Return 1 if it holds for one event, else 0: the form of a dynamic rule."""
        return int(evaluate(self.tree, context, self.release))

    def bounded(self, missing: Bools, *, may: bool) -> Expression:
        """Return the expression with its tree bounded, as `bounds.bounded`: what it may say in a kernel, or must."""
        twin = copy(self)
        twin.tree = bounded(self.tree, missing, may=may)
        return twin

    def plan(self, trace: Trace, derived: DerivedColumns | None = None) -> Condition:
        """Return the expression made ready for a trace, for callers that go through it chunk by chunk.

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
        """Return for which events of a trace it holds.

        Args:
            trace: The events.
            rows: Event rows, ascending; None = all.
            derived: Where durations and priorities come from; None = worked out from the trace.
            cancelled: Called between chunks; True stops it.

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
    """Return an expression that some event may fit.

    Raises:
        ExpressionError: None of any trace can; with the position of the part that forbids it.
    """
    part = never_true(expression.tree, expression.release)
    if part is not None:
        text = expression.text[part.start : part.end]
        raise ExpressionError(f"no event can ever fit {text[:80]!r}", part.start, part.end)
    return expression


def select(trace: Trace, text: str, derived: DerivedColumns | None = None) -> NDArray[np.uint32]:
    """Return the rows of the events for which an expression holds, uint32, ascending.

    Raises:
        ExpressionError: The text is no valid expression; says where and what is near.
    """
    return rows_of(Expression(text, trace.release, taught=arguments.taught(trace)).mask(trace, derived=derived))


def validate(text: str, release: Release, taught: Taught | None = None) -> Diagnostic | None:
    """Return what is wrong with the text of an expression, None if nothing is; for live checking."""
    try:
        Expression(text, release, taught=taught)
    except ExpressionError as error:
        return error.diagnostics[0]
    return None
