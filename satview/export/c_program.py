"""Rule sets as C programs: TraceEvent() calls that set exactly the same state on a target, conditions as handlers.

A condition becomes an event handler that answers what a view answers (`c_conditions`). What a handler cannot know
becomes `#error` where it belongs, so that no program that does less than its rules can be built by mistake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from satview.events.naming import names
from satview.events.spec import Release
from satview.events.wire import THREAD_RUNNING
from satview.export.c_conditions import NAMES_THREAD, Condition, HandledCodes, needs_thread
from satview.export.c_frame import handler_data, head, main, name_lookup
from satview.export.c_offsets import variant_tables
from satview.export.c_parts import FIND_PROCESSES, ordered, parts
from satview.export.c_tables import Tables
from satview.export.c_text import comment, literal
from satview.filters.diagnostics import Diagnostic
from satview.filters.expressions.expression import Expression
from satview.filters.external import (
    CALL_COUNT,
    INT_CLASSES,
    ExternalClass,
    external_of,
    has_event_masks,
    internal_codes,
)
from satview.filters.rules.building import BuiltRules
from satview.filters.rules.capturing import AllOf, for_capture
from satview.filters.rules.handler_table import DynamicRule
from satview.filters.rules.rule import Rule
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.switch_state import C
from satview.filters.rules.writing import handler_rules, rules_of


@dataclass(frozen=True, slots=True)
class CProgram:
    """A program in C.

    Attributes:
        source: Its text, printable ASCII.
        faults: What of the rules could not be written, with line and column in the rules; `#error` in the source.
        notes: What is captured although a view would leave it out; comments in the source.
    """

    source: str
    faults: tuple[Diagnostic, ...]
    notes: tuple[str, ...]


def c_program(rules: RuleSet | BuiltRules, title: str = "") -> CProgram:
    """Return a program that sets a rule set and leaves tracing to a logger in daemon mode.

    Args:
        rules: The rules. `WHERE` lines become what they become in any capture (`filters.capturing.for_capture`).
        title: Shown in the first comment.
    """
    built = rules if isinstance(rules, BuiltRules) else BuiltRules(rules_of(rules), rules, ())
    return _Program(built).written(title)


def event_symbol(external: ExternalClass, event: int, release: Release) -> str:
    """Return the event argument as C writes it: the header's names where it has them, else a number."""
    known = names(release)
    if not has_event_masks(external, release):
        codes = internal_codes(external, event, release) if external not in INT_CLASSES else ()
        found = [known[code].symbol for code in codes if code in known and known[code].symbol]
        return found[0] if found else str(event)
    symbols, rest = [], event
    for code, name in known.items():
        address = external_of(code, release)
        bit = (
            0 if address.external is not external else address.number if external is C.CONTROL else 1 << address.number
        )
        if bit & rest:
            symbols.append(name.symbol)
            rest &= ~bit
    return " | ".join([*symbols, *([f"0x{rest:x}u"] if rest or not symbols else [])])


@dataclass(slots=True)
class _Handler:
    """A handler function: equal conditions on equal terms share it.

    Attributes:
        name: Of the function.
        conditions: All of them have to hold.
        rules: Where it is attached.
    """

    name: str
    conditions: tuple[Expression, ...]
    rules: list[Rule]


class _Program:
    def __init__(self, built: BuiltRules) -> None:
        self._built, self._release = built, built.state.release
        captured = for_capture(built)
        self._state, self._notes = captured.state, captured.notes
        self._open_faults = list(captured.faults)
        self._faults: list[Diagnostic] = []
        self._tables = Tables(self._release)
        self._everything = _everything(self._state)
        self._handlers: dict[tuple[object, ...], _Handler] = {}
        self._follows_threads = self._drops_running = False

    def written(self, title: str) -> CProgram:
        """Return the program."""
        attached = [*self._attached()] if self._release is not Release.QNX_8 else []
        functions = [line for handler in self._handlers.values() for line in self._function(handler)]
        static = RuleSet(self._release)
        static.set_like(self._state)
        calls = [self._call(rule) for rule in rules_of(static)]
        data = [number for number, line in enumerate(attached, 1) if "&data_" in line]
        calls_and_notes = [
            *self._errors(self._take_faults(), "    "),
            *(f"    {call}" for call in calls),
            *attached,
            *(line for note in self._notes for line in comment(note, "    ")),
        ]
        body = self._body(functions, data)
        has_handlers, has_names = bool(data), bool(self._tables.named)
        source = [
            *head(title, has_handlers, has_names),
            *body,
            *main(calls_and_notes, has_handlers, has_names),
            "",
        ]
        return CProgram("\n".join(source), tuple(self._faults), self._notes)

    # ---- where handlers are attached -----------------------------------------------------------------------------

    def _attached(self) -> Iterator[str]:
        """Yield the calls that attach handlers, each with data of its own, and collect their functions."""
        positions = [*handler_rules(self._state)]
        self._follows_threads = any(
            rule.external not in NAMES_THREAD and needs_thread(condition.tree)
            for rule, handler in positions
            for condition in _conditions(handler) or ()
        )
        if self._follows_threads:
            positions = self._with_tracker(positions)
        for number, (rule, handler) in enumerate(positions, 1):
            conditions = _conditions(handler)
            if conditions is None:
                yield from self._errors([self._no_c(handler)], "    ")
                continue
            name = self._handler(rule, conditions).name
            yield f"    SET({', '.join([*self._words(rule), name, f'&data_{number}'])});"

    def _with_tracker(self, positions: list[tuple[Rule, DynamicRule]]) -> list[tuple[Rule, DynamicRule]]:
        """Return the positions with a handler of THREAD, which takes note of who runs, if there can be one.

        Where THRUNNING is off, it is switched on for that handler, which lets none of them pass.
        """
        address = external_of(THREAD_RUNNING, self._release)
        has_handler = C.THREAD in self._state.class_handlers
        if self._state.thread_test(address) != (0, 0) or (
            not has_handler and self._state.add_class_ev_handler(C.THREAD, AllOf())
        ):
            self._follows_threads = False
            return positions
        if not self._state.is_on(address, THREAD_RUNNING):
            self._drops_running = True
            self._state.add_event(C.THREAD, 1 << address.number)
        return [*handler_rules(self._state)]

    def _handler(self, rule: Rule, conditions: tuple[Expression, ...]) -> _Handler:
        external = rule.external
        is_tracker = self._follows_threads and external is C.THREAD and rule.event is None
        key = (*(condition.text for condition in conditions), None, external in NAMES_THREAD, is_tracker)
        handler = self._handlers.setdefault(key, _Handler(f"handler_{len(self._handlers) + 1}", conditions, []))
        handler.rules.append(rule)
        return handler

    def _no_c(self, handler: DynamicRule) -> Diagnostic:
        parts = handler.parts if isinstance(handler, AllOf) else (handler,)
        position = next((getattr(part, "position", "") for part in parts if not isinstance(part, Expression)), "")
        rule = next((rule for rule in self._built.rules if rule.function == position and position), None)
        message = f"CALL {position}: a Python function does not become C; write a condition, or a handler in C"
        end = len(rule.text(self._release)) if rule is not None else 0
        return Diagnostic(message, 0, end, rule.line if rule is not None else 0)

    # ---- functions -----------------------------------------------------------------------------------------------

    def _function(self, handler: _Handler) -> list[str]:
        external = handler.rules[0].external
        requested = self._requested(handler)
        tests, errors = [], []
        for expression in handler.conditions:
            condition = Condition(self._tables, requested)
            tests.append((expression.text, condition.text(expression.tree)))
            faults = self._take_faults(expression)
            if requested.on:  # else it is never called
                faults += self._faults_of(expression, condition)
            errors += self._errors(faults, "")
        lines = [f"static int {handler.name}(event_data_t *event)", "{", *errors]
        if self._follows_threads and external is C.THREAD and any(rule.event is None for rule in handler.rules):
            lines.append(f"    {self._tables.use('note_running', 'event')};")
            if self._drops_running:
                lines += [
                    "    /* THRUNNING is on for this handler alone. */",
                    f"    if ({self._tables.use('code_of', 'event')} == 0x{THREAD_RUNNING:x})",
                    "        return 0;",
                ]
        elif not any("event" in test for _, test in tests):
            lines.append("    (void)event;")
        for text, test in tests:
            lines += [*comment(f"WHERE {text}", "    "), f"    if (!({test}))", "        return 0;"]
        return [*lines, "    return 1;", "}", ""]

    def _requested(self, handler: _Handler) -> HandledCodes:
        every, on = (
            np.logical_or.reduce([state.codes_at(rule.external, rule.event) for rule in handler.rules])
            for state in (self._everything, self._state)
        )
        for rule in handler.rules:
            if rule.external is C.KERCALLEXIT:  # any call can fail, those without a name too
                calls = range(CALL_COUNT) if rule.event is None else (rule.event,)
                every[[c for call in calls for c in internal_codes(C.KERCALLEXIT, call, self._release)]] = True
        return HandledCodes(
            handler.rules[0].external in NAMES_THREAD,
            tuple(np.flatnonzero(every).tolist()),
            tuple(np.flatnonzero(on).tolist()),
            self._state.is_wide,
        )

    # ---- faults --------------------------------------------------------------------------------------------------

    def _take_faults(self, expression: Expression | None = None) -> list[Diagnostic]:
        """Return the faults of a condition that any capture has, or all that are left; each is returned once."""
        lines = {rule.line for rule in self._built.rules if expression is None or rule.condition == expression.text}
        found = [fault for fault in self._open_faults if expression is None or fault.line in lines]
        self._open_faults = [fault for fault in self._open_faults if fault not in found]
        return found

    def _faults_of(self, expression: Expression, condition: Condition) -> list[Diagnostic]:
        """Return what only C cannot do."""
        unwritten = list(condition.unwritten)
        if condition.thread_node is not None and not self._follows_threads:
            unwritten.append(
                (
                    condition.thread_node,
                    "an event handler learns whose these events are from THRUNNING, but a pid is set for it, or no "
                    "position for a handler of THREAD is left",
                    "leave THREAD without pid, and a position for its handler",
                )
            )
        rule = next((rule for rule in self._built.rules if rule.condition == expression.text), Rule(None))
        start = rule.condition_start
        return [
            Diagnostic(f"C cannot test this: {why}; {remedy}", start + node.start, start + node.end, rule.line)
            for node, why, remedy in dict.fromkeys(unwritten)
        ]

    def _errors(self, faults: Sequence[Diagnostic], indent: str) -> list[str]:
        """Return `#error` lines, and take note of the faults; of those at one position the first counts."""
        for fault in faults:
            positions = [(known.line, known.start, known.end) for known in self._faults if known.line]
            if (fault.line, fault.start, fault.end) not in positions:
                self._faults.append(fault)
        return [f"{indent}#error {literal(str(fault))}" for fault in faults]

    # ---- the rest ------------------------------------------------------------------------------------------------

    def _words(self, rule: Rule) -> list[str]:
        """Return the arguments of a call of TraceEvent() without handler."""
        assert rule.mode is not None
        words = [rule.mode.symbol]
        if rule.external is not None:
            words.append(f"_NTO_TRACE_{rule.external.name}")
            if rule.event is not None:
                words.append(event_symbol(rule.external, rule.event, self._release))
        return words + [str(value) for value in (rule.pid, rule.tid) if value is not None]

    def _call(self, rule: Rule) -> str:
        return f"SET({', '.join(self._words(rule))});"

    def _body(self, functions: Sequence[str], data: Sequence[int]) -> list[str]:
        tables = self._tables
        lines = [f"#define PATTERN_WORDS {tables.pattern_words}", ""] if "fits" in tables.parts else []
        needed = tables.parts | {part for part in parts()[FIND_PROCESSES].needs if tables.named}
        for name in ordered(needed):
            lines += variant_tables(self._release) if name == "variant_of" else []
            lines += parts()[name].lines
        lines += [*tables.lines, *([""] if tables.lines else [])]
        lines += [*name_lookup(tables.named), *functions]
        lines += [line for number in data for line in handler_data(number)]
        return [*lines, *([""] if data else [])]


def _conditions(handler: DynamicRule) -> tuple[Expression, ...] | None:
    """Return the conditions of a dynamic rule; None if it is more than conditions."""
    parts = handler.parts if isinstance(handler, AllOf) else (handler,)
    found = tuple(part for part in parts if isinstance(part, Expression))
    return found if len(found) == len(parts) else None


def _everything(state: RuleSet) -> RuleSet:
    """Return a rule set of the same release with everything on, to see which events a handler can get."""
    found = RuleSet(state.release)
    for external in sorted(found.known):
        found.add_class(external)
    return found
