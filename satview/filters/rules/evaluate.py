"""Rule sets over a whole trace: chunk by chunk, expressions vectorised, Python handlers in time order."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from satview.filters.derived_columns import DerivedColumns, TraceDerivedColumns, event_contexts
from satview.filters.event_context import EventContext
from satview.filters.rows import Bools, chunks
from satview.filters.rules.handler_table import DynamicRule, HandlerTable
from satview.filters.rules.static_mask import StaticMask
from satview.filters.rules.switch_state import C
from satview.store.trace import Trace


@runtime_checkable
class VectorRule(Protocol):
    """A dynamic rule that has no state of its own and can look at many events at once."""

    def mask(
        self, trace: Trace, rows: NDArray[np.integer] | None = None, derived: DerivedColumns | None = None
    ) -> Bools:
        """Return which events pass, bool (len(rows),) or (events,)."""


class Restartable(Protocol):
    """Something whose state can be set back to its beginning."""

    def restart(self) -> None:
        """Begin again."""


@runtime_checkable
class StatefulRule(Protocol):
    """A dynamic rule whose results depend on the events before; `file` holds the state."""

    file: Restartable


def ruleset_mask(
    rules: HandlerTable, trace: Trace, rows: NDArray[np.integer] | None = None, derived: DerivedColumns | None = None
) -> Bools:
    """Return which events of a trace a rule set lets pass, bool (len(rows),) or (events,); see `RuleSet.mask`."""
    static = StaticMask(rules, trace)
    count = len(trace.events) if rows is None else len(rows)
    passes = np.empty(count, np.bool_)
    for part in chunks(count):
        passes[part] = static.of(part if rows is None else rows[part])
    if rules.class_handlers or rules.event_handlers:
        _call_handlers(rules, trace, rows, passes, derived)
    return passes


def _call_handlers(
    rules: HandlerTable, trace: Trace, rows: NDArray[np.integer] | None, passes: Bools, derived: DerivedColumns | None
) -> None:
    """Clear `passes` where a class's or an event's dynamic rule says no."""
    has_handler = rules.codes_with_handler(np.flatnonzero(trace.code_counts))
    at = []
    for part in chunks(len(passes)):
        code = trace.events.code[part if rows is None else rows[part]]
        at.append(np.flatnonzero(passes[part] & has_handler[code]) + part.start)
    positions = np.concatenate(at) if at else np.empty(0, np.intp)
    if len(positions):
        selected = positions if rows is None else rows[positions]
        passes[positions] = _Evaluation(rules, trace, selected, derived or TraceDerivedColumns(trace)).results()


class _Evaluation:
    """The dynamic rules of some events: which rule each event has, and what the stateless ones say."""

    def __init__(self, rules: HandlerTable, trace: Trace, rows: NDArray[np.integer], derived: DerivedColumns) -> None:
        self._rules, self._trace, self._rows, self._derived = rules, trace, rows, derived
        self._list: list[DynamicRule | None] = [None]
        self._of_class = np.zeros(len(rows), np.int16)
        self._of_event = np.zeros(len(rows), np.int16)
        codes = trace.events.code[rows]
        for value in np.unique(codes).tolist():
            self._assign(value, np.flatnonzero(codes == value))

    def _assign(self, code: int, at: NDArray[np.intp]) -> None:
        address = self._rules.address(code)
        if address.vector_word < 0:
            groups = [(at, ())]
        else:
            vectors = self._trace.payloads.column(self._rows[at], address.vector_word)
            groups = [(at[vectors == v], (*(0,) * address.vector_word, v)) for v in np.unique(vectors).tolist()]
        for members, words in groups:
            of_class, of_event = self._rules.handlers_of(address, words)
            self._of_class[members] = self._number(of_class)
            self._of_event[members] = self._number(of_event)

    def _number(self, rule: DynamicRule | None) -> int:
        for number, known in enumerate(self._list):
            if known is rule:
                return number
        self._list.append(rule)
        return len(self._list) - 1

    def results(self) -> Bools:
        """Return which of the events pass, bool (len(rows),)."""
        verdict = np.ones(len(self._rows), np.bool_)
        needs_order = np.zeros(len(self._list), np.bool_)
        said: dict[int, Bools] = {}
        for number, rule in enumerate(self._list[1:], 1):
            vector = _as_vector(rule)
            if vector is None:
                needs_order[number] = True
                continue
            said[number] = np.ones(len(self._rows), np.bool_)
            requested = np.flatnonzero((self._of_class == number) | (self._of_event == number))
            said[number][requested] = vector.mask(self._trace, self._rows[requested], self._derived)
            verdict &= said[number]
        in_order = needs_order[self._of_class] | needs_order[self._of_event]
        if in_order.any():
            self._call_in_order(verdict, in_order, said)
        return verdict

    def _call_in_order(self, verdict: Bools, in_order: Bools, said: dict[int, Bools]) -> None:
        """Call Python handlers event by event, as the kernel would: their state depends on the order."""
        rules = self._rules
        rules.forget_calls()
        for file in {id(rule.file): rule.file for rule in map(_as_stateful, self._list) if rule is not None}.values():
            file.restart()
        if C.KERCALLENTER in rules.class_handlers:  # its result may let the exit pass unasked
            code = self._trace.events.code[self._rows]
            in_order |= (code >> 10 == 2) & (code >> 7 & 3 != 0)
        at = np.flatnonzero(in_order)
        for i, context in zip(at.tolist(), event_contexts(self._trace, self._rows[at], self._derived), strict=True):
            of_class, of_event = (
                _constant(bool(said[number][i])) if number in said else self._list[number]
                for number in (int(self._of_class[i]), int(self._of_event[i]))
            )
            verdict[i] = rules.call(rules.address(context.code), context, of_class, of_event)
        rules.forget_calls()


def _as_stateful(rule: object) -> StatefulRule | None:
    return rule if isinstance(rule, StatefulRule) else None


def _as_vector(rule: object) -> VectorRule | None:
    return rule if isinstance(rule, VectorRule) else None


def _yes(_: EventContext, /) -> int:
    return 1


def _no(_: EventContext, /) -> int:
    return 0


def _constant(result: bool) -> DynamicRule:
    return _yes if result else _no
