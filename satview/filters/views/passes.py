"""Post-processing: several named filters over one trace. Nothing is lost from the data; a pass only marks or hides.

All values are immutable, so undo is keeping the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

import numpy as np

from satview.base.errors import UsageError
from satview.events.spec import Release
from satview.filters.derived_columns import DerivedColumns, TraceDerivedColumns
from satview.filters.diagnostics import Diagnostic, ExpressionError
from satview.filters.expressions.expression import Expression
from satview.filters.names import process_names
from satview.filters.rows import Bools
from satview.filters.rules.building import BuiltRules, FunctionLoader, build
from satview.filters.rules.capturing import check_capture, check_condition
from satview.filters.rules.rule import Rule
from satview.filters.rules.text import check_rules, parse_rules
from satview.filters.views.combination import names_in, parse_combination
from satview.store.arguments import taught
from satview.store.trace import Trace

PASS_LIMIT: Final = 50
HISTORY_LIMIT: Final = 200
_CACHE_LIMIT: Final = 16


class Effect(StrEnum):
    """What a pass does in the views."""

    COUNT = "count"  # nothing but its number of hits
    MARK = "mark"  # its events are highlighted
    DIM = "dim"  # all other events fade
    HIDE = "hide"  # all other events are left out


@dataclass(frozen=True, slots=True)
class Pass:
    """One named filter.

    Attributes:
        name: Shown on its chip and used in combinations; unique in its stack.
        rules: Rules as text; may be empty.
        expression: A condition; may be empty. Both must hold where both are given.
        effect: What it does.
        is_on: False while it is switched off.
        is_inverted: True if it represents the events that do not fit. As under `not`, of a condition that is unknown
            for an event neither the filter nor the inverted one lets the event through.
    """

    name: str
    rules: str = ""
    expression: str = ""
    effect: Effect = Effect.HIDE
    is_on: bool = True
    is_inverted: bool = False


@dataclass(frozen=True, slots=True)
class PassStack:
    """The passes over one trace, in order.

    Attributes:
        passes: The passes.
        combination: Names with and, or, not and brackets: the hits that search, export and statistics use. A pass
            that is off is left out of it, with its `not`. Empty = all passes that are on must hold.
    """

    passes: tuple[Pass, ...] = ()
    combination: str = ""

    def __post_init__(self) -> None:
        names = [item.name for item in self.passes]
        if len(set(names)) < len(names) or "" in names:
            raise UsageError("every filter needs a name of its own")
        if len(names) > PASS_LIMIT:
            raise UsageError(f"there can be {PASS_LIMIT} filters at a time")

    def added(self, item: Pass) -> PassStack:
        """Return the stack with one pass more."""
        return replace(self, passes=(*self.passes, item))

    def removed(self, name: str) -> PassStack:
        """Return the stack without a pass; a combination that names it is dropped."""
        combination = "" if name in names_in(self.combination) else self.combination
        return PassStack(tuple(item for item in self.passes if item.name != name), combination)

    def changed(self, name: str, item: Pass) -> PassStack:
        """Return the stack with a pass replaced by another."""
        return replace(self, passes=tuple(item if old.name == name else old for old in self.passes))

    def moved(self, name: str, position: int) -> PassStack:
        """Return the stack with a pass at another position."""
        rest = [item for item in self.passes if item.name != name]
        rest[position:position] = [item for item in self.passes if item.name == name]
        return replace(self, passes=tuple(rest))

    def combined(self, combination: str) -> PassStack:
        """Return the stack with another combination.

        Raises:
            ExpressionError: It is faulty or names no pass.
        """
        if combination.strip():
            parse_combination(combination, [item.name for item in self.passes])
        return replace(self, combination=combination.strip())


@dataclass(frozen=True, slots=True)
class History:
    """Undo and redo: the stack now, those before it, and those that were undone."""

    now: PassStack = field(default_factory=PassStack)
    past: tuple[PassStack, ...] = ()
    future: tuple[PassStack, ...] = ()

    def did(self, stack: PassStack) -> History:
        """Return the history after a change; a change to the same is none."""
        return self if stack == self.now else History(stack, (*self.past, self.now)[-HISTORY_LIMIT:])

    def undone(self) -> History:
        """Return the history one change back; itself at the beginning."""
        return History(self.past[-1], self.past[:-1], (self.now, *self.future)) if self.past else self

    def redone(self) -> History:
        """Return the history one change on; itself at the end."""
        return History(self.future[0], (*self.past, self.now), self.future[1:]) if self.future else self


@dataclass(frozen=True, slots=True)
class PassResult:
    """What the passes found.

    Attributes:
        counts: Hits per pass by name, passes that are off included.
        masks: Events that each pass lets through, bool (events,).
        hits: The combination of all, bool (events,).
        hidden: Events that some HIDE pass leaves out.
        dimmed: Events that some DIM pass fades and nobody hides.
        marked: Events that some MARK pass points at and nobody hides.
    """

    counts: dict[str, int]
    masks: dict[str, Bools]
    hits: Bools
    hidden: Bools
    dimmed: Bools
    marked: Bools


class PassEvaluator:
    """Evaluates passes over one trace and keeps the latest results, so that switching one off costs nothing.

    Args:
        trace: The events.
        derived: Where durations and priorities come from; None = worked out from the trace.
        load_function: For rules that call handlers; None = such rules are refused.
    """

    def __init__(
        self, trace: Trace, derived: DerivedColumns | None = None, load_function: FunctionLoader | None = None
    ) -> None:
        self._trace, self._derived, self._load = trace, derived or TraceDerivedColumns(trace), load_function
        self._cache: dict[tuple[str, str, bool], Bools] = {}
        self._limit = _CACHE_LIMIT
        self._is_cancelled: Callable[[], bool] = never

    def mask(self, item: Pass, negated: bool = False) -> Bools:
        """Return the events that fit a pass, or (`negated`) those that do not, whether it is inverted or not.

        Returns:
            bool (events,), shared, not to be changed.

        Raises:
            RuleError: Its rules or its expression are faulty.
            Cancelled: The task was cancelled.
        """
        key, cache = (item.rules, item.expression, negated), self._cache
        if key not in cache:
            result = self._fresh(item, negated)
            result.setflags(write=False)
            while len(cache) >= self._limit:
                cache.pop(next(iter(cache)))
            cache[key] = result
        return cache[key]

    def _fresh(self, item: Pass, negated: bool) -> Bools:
        trace = self._trace
        result = np.full(len(trace.events), not negated)
        rows = None
        if item.rules.strip():
            rules = parse_rules(item.rules, trace.release, process_names(trace))
            passes = self._built(rules).mask(trace, self._derived)
            result, rows = (~passes if negated else passes), np.flatnonzero(passes)
        if item.expression.strip():
            condition = self._condition(item.expression, negated)
            found = condition.mask(trace, rows, self._derived, self._is_cancelled)
            if rows is None:
                return found
            result[rows] = found
        return result

    # A filter may be of a field whose description was taken away since: no event has it any more.

    def _condition(self, text: str, negated: bool) -> Expression:
        release = self._trace.release
        try:
            return Expression(text, release, negated, taught(self._trace))
        except ExpressionError:
            return Expression(text, release, negated)

    def _built(self, rules: tuple[Rule, ...]) -> BuiltRules:
        release = self._trace.release
        try:
            return build(rules, release, self._load, taught=taught(self._trace))
        except ExpressionError:
            return build(rules, release, self._load)

    def shown(self, item: Pass, negated: bool = False) -> Bools:
        """Return the events that a pass represents, or (`negated`) those that it does not, as `mask` does."""
        return self.mask(item, negated is not item.is_inverted)

    def result(self, stack: PassStack) -> PassResult:
        """Return what a stack of passes does to the trace.

        Raises:
            RuleError: One of the passes, or the combination, is faulty.
        """
        n = len(self._trace.events)
        masks = {item.name: self.shown(item) for item in stack.passes}
        active = [item for item in stack.passes if item.is_on]
        hidden, dimmed, marked = (np.zeros(n, np.bool_) for _ in range(3))
        for item in active:
            if item.effect is Effect.HIDE:
                hidden |= ~masks[item.name]
            elif item.effect is Effect.DIM:
                dimmed |= ~masks[item.name]
            elif item.effect is Effect.MARK:
                marked |= masks[item.name]
        counts = {name: int(np.count_nonzero(mask)) for name, mask in masks.items()}
        return PassResult(
            counts, masks, self._combined(stack, masks, active), hidden, dimmed & ~hidden, marked & ~hidden
        )

    def _combined(self, stack: PassStack, masks: dict[str, Bools], active: Iterable[Pass]) -> Bools:
        hits = np.ones(len(self._trace.events), np.bool_)
        if stack.combination:
            by_name = {item.name: item for item in active}

            def mask_of(name: str, negated: bool) -> Bools | None:
                return self.shown(by_name[name], negated) if name in by_name else None

            said = parse_combination(stack.combination, masks).mask(mask_of)
            return hits if said is None else said
        for item in active:
            hits &= masks[item.name]
        return hits


def never() -> bool:
    """Return that nobody cancels."""
    return False


def pass_limits(item: Pass, release: Release) -> tuple[str, ...]:
    """Return what of a filter of a view no capture can test, one sentence each without a full stop."""
    found: list[Diagnostic] = []
    if item.rules.strip():
        found += check_capture(check_rules(item.rules, release)[0], release)[0]
    if item.expression.strip():
        found += check_condition(Expression(item.expression, release))
    return tuple(fault.message for fault in found)
