"""Builds a rule set from rules: the kernel's state after the TraceEvent() calls that the rules stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from satview.base.errors import UsageError
from satview.events.layout import Taught
from satview.events.modes import Mode
from satview.events.spec import Release
from satview.filters.derived_columns import DerivedColumns
from satview.filters.diagnostics import Diagnostic, ExpressionError, RuleError
from satview.filters.expressions.expression import Expression, possible
from satview.filters.expressions.pattern import share_budget
from satview.filters.external import LATER_CLASSES, classes_of
from satview.filters.rows import Bools
from satview.filters.rules.fastwide import passing_in_view
from satview.filters.rules.handlers import DynamicRule
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.switches import EINVAL, ENOTSUP, PID_CLASSES, C
from satview.filters.rules.text import Rule
from satview.filters.rules.triggers import Trigger
from satview.store.trace import Trace

FunctionLoader = Callable[[str], DynamicRule]
SWITCHING: Final = (Mode.ADDALLCLASSES, Mode.DELALLCLASSES, Mode.ADDCLASS, Mode.DELCLASS, Mode.ADDEVENT, Mode.DELEVENT)
_ERRORS: Final = {
    ENOTSUP: "ENOTSUP: the kernel has no such setting for this class or event",
    EINVAL: "EINVAL: the event number is too large",
}


@dataclass(frozen=True, slots=True)
class BuiltRules:
    """Rules in the forms that filters use.

    Attributes:
        rules: The rules as the user gave them.
        state: State of the kernel's filters after all `TraceEvent()` rules.
        conditions: Conditions of the `WHERE` lines, which a kernel does not have; an event must meet all of them.
        triggers: Triggers of the `WHEN` lines, which do not filter events.
    """

    rules: tuple[Rule, ...]
    state: RuleSet
    conditions: tuple[Expression, ...]
    triggers: tuple[Trigger, ...] = ()

    def mask(self, trace: Trace, derived: DerivedColumns | None = None) -> Bools:
        """Return which events of a trace pass, bool (events,)."""
        passes = passing_in_view(self.state, trace, derived)
        for condition in self.conditions:
            rows = np.flatnonzero(passes)
            passes[rows] = condition.mask(trace, rows, derived)
        return passes


def _no_functions(name: str) -> DynamicRule:
    raise UsageError(f"the rules call {name}, which is code; allow it first, if you trust its author")


def build(
    rules: Iterable[Rule],
    release: Release,
    load_function: FunctionLoader | None = None,
    is_wide: bool = False,
    taught: Taught | None = None,
) -> BuiltRules:
    """Return the rules as filters use them, carried out from top to bottom on the state after boot: all off and fast.

    Rules that switch nothing on or off (only pids, handlers and conditions) start with everything on, since otherwise
    no event would pass.

    Args:
        rules: The rules in order.
        release: Release that the numbers are for.
        load_function: Loads `file.py:name` as a handler, after the user has allowed that file to run
            (`satview.filters.rules.handlers.Handlers`); None = rules with functions are refused.
        is_wide: Whether everything is wide before the rules, as after `tracelogger -w`.
        taught: Arguments described by the trace (`store.arguments.taught`); None = by all traces so far.

    Raises:
        RuleError: A rule that the kernel would refuse.
        UsageError: A function that is not allowed to run or cannot be loaded.
    """
    rules = tuple(rules)
    state = RuleSet(release)
    if is_wide:
        state.set_all_classes_wide()
    for rule in opening_rules(rules, release):
        carry_out(rule, state)
    conditions, triggers = [], []
    for rule in rules:
        if rule.action is not None:
            triggers.append(Trigger(rule.expression(release, taught), rule.action, rule.line))
            continue
        if rule.mode is None:
            conditions.append(rule.expression(release, taught))
            continue
        error = carry_out(rule, state, load_function or _no_functions, taught)
        if error:
            raise RuleError([Diagnostic(_refusal(rule, error), 0, len(rule.text(release)), rule.line)])
    of_triggers = (trigger.condition for trigger in triggers)
    dynamic = (*state.class_handlers.values(), *state.event_handlers.values(), *conditions, *of_triggers)
    share_budget([pattern for item in set(dynamic) if isinstance(item, Expression) for pattern in item.patterns])
    return BuiltRules(rules, state, tuple(conditions), tuple(triggers))


def never_true_rules(rules: Iterable[Rule], release: Release) -> Iterator[Diagnostic]:
    """Yield a fault for each rule whose condition no event of any trace can meet."""
    for rule in rules:
        if not rule.condition:
            continue
        try:
            possible(rule.expression(release))
        except ExpressionError as error:
            fault = error.diagnostics[0]
            start = rule.condition_start
            yield Diagnostic(fault.message, start + fault.start, start + fault.end, rule.line)


def opening_rules(rules: Iterable[Rule], release: Release) -> tuple[Rule, ...]:
    """Return rules that switch every class on, to be put before rules that switch nothing; none if `rules` switch some.

    ADDALLCLASSES leaves SEC out, so the classes of later releases are switched on one by one.
    """
    if any(rule.mode in SWITCHING for rule in rules):
        return ()
    later = (Rule(Mode.ADDCLASS, external) for external in classes_of(release) if external in LATER_CLASSES)
    return (Rule(Mode.ADDALLCLASSES), *later)


def carry_out(
    rule: Rule, state: RuleSet, load_function: FunctionLoader = _no_functions, taught: Taught | None = None
) -> int:
    """Apply one rule to `state` and return 0 or the kernel's QNX error number; other arguments as in `build`."""
    assert rule.mode is not None
    extra: list[object] = []
    if rule.condition:
        extra.append(Expression(rule.condition, state.release, taught=taught))
    elif rule.function:
        extra.append(load_function(rule.function))
    return state.apply(rule.mode, *rule.arguments(), *extra)


def _refusal(rule: Rule, error: int) -> str:
    assert rule.mode is not None
    if rule.external is C.KERCALLINT:
        return "interrupted calls have no switch of their own: they follow KERCALLEXIT of the call"
    if rule.mode.name.endswith("PID") or rule.mode.name.endswith("TID"):
        if rule.external not in PID_CLASSES:
            return "only KERCALL, THREAD, VTHREAD, SYSTEM and COMM have pids and tids (ENOTSUP)"
        if rule.mode is Mode.CLREVENTPID:
            return "a tid is stored for this event; CLREVENTTID clears both (ENOTSUP)"
    if "HANDLER" in rule.mode.name and rule.external is not None:
        return f"no handler can be attached here in {rule.external.name} (ENOTSUP)"
    return f"{rule.mode.name} would fail with {_ERRORS.get(error, str(error))}"
