"""Rules in a capture: the TraceEvent() calls they become, and the parts that no kernel can carry out.

A view applies rules to a whole trace, a kernel to one event at a time. This module handles the difference for
tracelogger, "what would be captured", the C export and the hints in the window:

* `WHERE` lines become class handlers. CONTROL is left alone, since without TIME events a trace has no clock.
* A `WHERE` line that depends only on class and event becomes a switch instead.
* Classes that take no handler are captured whole, with a note. So are classes whose handlers are not given a thread,
  if the line compares one.
* Fields that are known only later, or only in the other form, are faults with their offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from satview.events.modes import RULE_MODES, Mode
from satview.events.spec import Release
from satview.events.wire import CLASS_SHIFT, CODE_COUNT, WireClass
from satview.filters.diagnostics import Diagnostic, RuleError
from satview.filters.expressions import nodes
from satview.filters.expressions.expression import Expression
from satview.filters.expressions.reach import Limit, Logged, always_holds, can_hold, limits
from satview.filters.expressions.semantics import FIELDS, Domain
from satview.filters.external import KER_CLASSES, EventContext, ExternalClass, has_event_masks
from satview.filters.rules.building import SWITCHING, BuiltRules, build, carry_out, opening_rules
from satview.filters.rules.handlers import HANDLER_CLASSES, DynamicRule
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.switches import COMM_REPLY, PID_CLASSES, C
from satview.filters.rules.text import Rule
from satview.filters.rules.triggers import Trigger
from satview.store.mark_file import MARK_EVENT

THREAD_CLASSES: Final = frozenset({C.KERCALLENTER, C.KERCALLEXIT, C.THREAD, C.VTHREAD, C.COMM})
"""Classes whose handlers are given a pid and a tid (capture side, section 3.4)."""


class AllOf:
    """Several dynamic rules as one: all must let an event pass; after a rule suppresses it, no other rule is called."""

    def __init__(self, *parts: DynamicRule) -> None:
        self.parts = parts

    def __call__(self, context: EventContext, /) -> int:
        """Return 0 if a rule suppresses the event, else the result of the last rule."""
        result = 1
        for part in self.parts:
            result = part(context)
            if not result:
                return 0
        return result


@dataclass(frozen=True, slots=True)
class CaptureRules:
    """Rules converted for a capture.

    Attributes:
        rules: The lines that are calls of TraceEvent(), in order, with the switches that replace `WHERE` lines.
        handlers: The other `WHERE` lines: a dynamic rule per class, attached after the rules.
        faults: Lines that no kernel can carry out, with line and column. A capture with faults does not start.
        triggers: Triggers of the `WHEN` lines; if there are any, the user event of their marks is on.
        notes: Events that are captured although a `WHERE` line would leave them out, and why; lines that are never
            used. One sentence each.
    """

    rules: tuple[Rule, ...]
    handlers: dict[ExternalClass, DynamicRule]
    state: RuleSet
    faults: tuple[Diagnostic, ...]
    notes: tuple[str, ...]
    triggers: tuple[Trigger, ...] = ()


def for_capture(built: BuiltRules, has_handlers: bool = True) -> CaptureRules:
    """Return rules of a view as a capture uses them, with faults and notes; the kernel of 8.0 never has handlers."""
    release, state = built.state.release, built.state.copy()
    rules = [*opening_rules(built.rules, release), *(rule for rule in built.rules if rule.mode is not None)]
    has_handlers = has_handlers and release is not Release.QNX_8
    faults = [*_faults(built, has_handlers)]
    unasked = [*never_called(built.rules, built.state)]
    if built.rules and not state.codes_at().any():
        faults += unasked
        unasked = []
    handlers: dict[ExternalClass, DynamicRule] = {}
    notes: list[str] = []
    if built.conditions and not faults:
        where = _Where(built.conditions, state, has_handlers)
        faults += where.faults(built)
        switches = [*where.switches()]
        for rule in switches:
            carry_out(rule, state)
        rules += switches
        handlers, notes = where.handlers, where.notes()
        faults += _unasked(built, where.undecided)
        for external, handler in handlers.items():
            if state.add_class_ev_handler(external, handler):
                faults.append(_fault(built, f"all {state.handler_limit} positions for handlers are taken"))
    notes += [f"line {note.line}: {note.message}" for note in unasked]
    if built.triggers:
        faults += _pair_faults(built, state)
        marks = Rule(Mode.ADDEVENT, C.USER, MARK_EVENT)
        carry_out(marks, state)
        rules.append(marks)
    return CaptureRules(tuple(rules), handlers, state, tuple(faults), tuple(notes), built.triggers)


def check_capture(
    rules: Sequence[Rule], release: Release, is_wide: bool = False
) -> tuple[tuple[Diagnostic, ...], tuple[str, ...]]:
    """Return the faults that rules have in a capture, with line and column, and the notes of `CaptureRules`.

    No code is run: functions of CALL rules are assumed to exist. `is_wide` as with `tracelogger -w`.
    """
    try:
        built = build(rules, release, lambda _name: _pass, is_wide)
    except RuleError as error:
        return error.diagnostics, ()
    captured = for_capture(built)
    return captured.faults, captured.notes


def check_condition(condition: Expression) -> tuple[Diagnostic, ...]:
    """Return a message with columns for each part of a condition that handlers can evaluate for some events only."""
    release = condition.release
    by_place: dict[tuple[int, int], Diagnostic] = {}
    for wide in (True, False):
        logged = Logged(release, np.ones(CODE_COUNT, np.bool_), lambda _code, wide=wide: wide)  # type: ignore[misc]
        for limit in limits(condition.tree, logged):
            start, end = limit.node.start, limit.node.end
            by_place.setdefault((start, end), Diagnostic(f"{limit.reason}; {limit.remedy}", start, end))
    return tuple(by_place.values())


# ---- faults ------------------------------------------------------------------------------------------------------


def _faults(built: BuiltRules, has_handlers: bool) -> Iterator[Diagnostic]:
    state = built.state
    for rule in built.rules:
        is_dynamic = rule.mode is not None and bool(rule.condition or rule.function)
        if is_dynamic and not has_handlers:
            message = f"release {state.release} has no event handlers, so rules with WHERE or CALL are for views only"
            yield Diagnostic(message, 0, len(rule.text(state.release)), rule.line)
        elif rule.condition:
            logged = Logged(state.release, state.codes_at(rule.external, rule.event), state.is_wide)
            yield from condition_faults(rule.expression(state.release), logged, rule)


def condition_faults(condition: Expression, logged: Logged, rule: Rule) -> Iterator[Diagnostic]:
    """Yield the parts of a condition that a capture cannot evaluate, each with its column in the line of the rule."""
    if not logged.codes.any():
        return  # it is off at the end; `never_called` reports that
    faults = [*limits(condition.tree, logged)]
    for limit in faults:
        yield _limit_fault(limit, rule)
    if not faults and not can_hold(condition.tree, logged).any():
        start = rule.condition_start
        yield Diagnostic(
            "no event that this is evaluated for can fit, so nothing of them would be captured",
            start,
            start + len(condition.text),
            rule.line,
        )


def _pair_faults(built: BuiltRules, state: RuleSet) -> Iterator[Diagnostic]:
    """Yield a fault for every end of a latency that is not captured, since its trigger could never hit."""
    logged = Logged(state.release, state.codes_at(), state.is_wide)
    for rule in built.rules:
        pair = rule.expression(state.release).latency if rule.action is not None else None
        for name, end, condition in pair.named_ends if pair is not None else ():
            if not can_hold(condition, logged).any():
                start = rule.condition_start
                message = f"{name} is not among the events that are captured; switch it on"
                yield Diagnostic(message, start + end.start, start + end.end, rule.line)


def never_called(rules: Sequence[Rule], state: RuleSet) -> Iterator[Diagnostic]:
    """Yield a hint for every pid or dynamic rule of events that are off at the end; only one if all events are off."""
    switching = [rule for rule in rules if rule.mode in SWITCHING]
    if switching and state.switches() == RuleSet(state.release).switches():
        text = switching[-1].text(state.release)
        yield Diagnostic("nothing is on at the end: no event passes", 0, len(text), switching[-1].line)
        return
    for rule in rules:
        if rule.external is None or rule.external is C.EMPTY or not (rule.pid or rule.condition or rule.function):
            continue
        without = state.copy()
        if rule.event is None:
            without.del_class(rule.external)
        else:
            without.del_event(rule.external, rule.event)
        if without.switches() == state.switches():
            what = rule.external.name if rule.event is None else f"this event of {rule.external.name}"
            message = f"{what} is off at the end, so this is never called"
            yield Diagnostic(message, 0, len(rule.text(state.release)), rule.line)


def _limit_fault(limit: Limit, rule: Rule) -> Diagnostic:
    start = rule.condition_start
    message = f"a capture cannot test this: {limit.reason}; {limit.remedy}"
    return Diagnostic(message, start + limit.node.start, start + limit.node.end, rule.line)


def _fault(built: BuiltRules, message: str) -> Diagnostic:
    rule = next(rule for rule in built.rules if rule.is_where)
    return Diagnostic(message, 0, len(rule.text(built.state.release)), rule.line)


def _unasked(built: BuiltRules, undecided: Sequence[str]) -> list[Diagnostic]:
    """Return the fault of WHERE lines that need handlers in a release without them; empty if there is none."""
    if not undecided:
        return []
    release = built.state.release
    return [
        _fault(
            built,
            f"release {release} has no event handlers, and {', '.join(undecided)} cannot be switched "
            "by class and event alone; this line works in views only",
        )
    ]


# ---- WHERE lines -------------------------------------------------------------------------------------------------


class _Where:
    """The conditions of WHERE lines, turned into switches and into a handler for each class, behind its earlier one.

    `undecided` are names of classes that would need a handler in a kernel without handlers.
    """

    def __init__(self, conditions: Sequence[Expression], state: RuleSet, has_handlers: bool) -> None:
        self._state = state
        on = state.codes_at()
        logged = Logged(state.release, on, state.is_wide)
        self._on = on
        self._can = np.logical_and.reduce([can_hold(condition.tree, logged) for condition in conditions])
        self._always = np.logical_and.reduce([always_holds(condition.tree, logged) for condition in conditions])
        self._off = self._never_fitting()
        self._whole: dict[str, list[str]] = {"take no handler": [], "show a handler no thread": []}
        self.handlers: dict[ExternalClass, DynamicRule] = {}
        self.undecided: list[str] = []
        needs_thread = any(_needs_thread(condition.tree) for condition in conditions)
        for external in self._open_classes():
            if external in HANDLER_CLASSES and not has_handlers:
                self.undecided.append(external.name)
            elif external not in HANDLER_CLASSES:
                self._whole["take no handler"].append(external.name)
            elif needs_thread and external not in THREAD_CLASSES:
                self._whole["show a handler no thread"].append(external.name)
            else:
                before = state.class_handlers.get(external)
                parts = [*([before] if before is not None else []), *conditions]
                self.handlers[external] = parts[0] if len(parts) == 1 else AllOf(*parts)

    def _open_classes(self) -> list[ExternalClass]:
        """Return the classes with events for which class and event number do not decide the conditions, ascending."""
        classes: set[ExternalClass] = set()
        for code in np.flatnonzero(self._on & ~self._always).tolist():
            external = self._state.address(code).external
            if external is None or external in (C.CONTROL, C.KERCALLINT):
                continue
            if self._switch_of(code) not in self._off:
                classes.add(external)
        return sorted(classes)

    def _switch_of(self, code: int) -> tuple[ExternalClass | None, int]:
        """Return the switch of a code: class and event number; -1 if only the whole class has a switch."""
        address = self._state.address(code)
        external = C.KERCALLEXIT if address.external is C.KERCALLINT else address.external
        if address.vector_word >= 0:
            return external, -1
        if external is C.COMM:
            return external, min(address.number, COMM_REPLY)  # ERROR follows REPLY
        return external, address.number

    def _never_fitting(self) -> set[tuple[ExternalClass, int]]:
        """Return the switches whose events can never meet the conditions, without those of CONTROL."""
        switches = {self._switch_of(code) for code in np.flatnonzero(self._on & ~self._can).tolist()}
        switches -= {self._switch_of(code) for code in np.flatnonzero(self._on & self._can).tolist()}
        return {(external, number) for external, number in switches if external not in (None, C.CONTROL)}

    def switches(self) -> Iterator[Rule]:
        """Yield rules that switch off the events that cannot fit, or the whole class if none of its events can."""
        on_of_class: dict[ExternalClass, set[int]] = {}
        for code in np.flatnonzero(self._on).tolist():
            external, number = self._switch_of(code)
            if external is not None:
                on_of_class.setdefault(external, set()).add(number)
        for external in sorted({position for position, _number in self._off}):
            numbers = {number for position, number in self._off if position is external}
            if -1 in numbers or numbers >= on_of_class[external]:
                known = C.INT if external not in self._state.known else external  # 8.0 has only INT
                yield Rule(Mode.DELCLASS, known)
                continue
            is_bit = has_event_masks(external, self._state.release)
            for number in sorted(numbers):
                yield Rule(Mode.DELEVENT, external, 1 << number if is_bit else number)

    def faults(self, built: BuiltRules) -> Iterator[Diagnostic]:
        """Yield the fault of conditions that each hold for some events, but never for the same event."""
        is_control = np.arange(len(self._on)) >> CLASS_SHIFT == WireClass.CONTROL
        if (self._on & ~is_control).any() and not (self._can & ~is_control).any():
            rule = [rule for rule in built.rules if rule.is_where][-1]
            text = rule.text(self._state.release)
            yield Diagnostic("no event can fit this and the other conditions", 0, len(text), rule.line)

    def notes(self) -> list[str]:
        """Return sentences that name the classes to which WHERE does not apply, one for each reason."""
        return [
            f"WHERE does not apply to {', '.join(names)}: these classes {reason}, so their events are captured whole"
            for reason, names in self._whole.items()
            if names
        ]


def _needs_thread(node: nodes.Node) -> bool:
    if isinstance(node, nodes.EventField):
        return FIELDS[node.name].domain is Domain.THREAD or node.name == "priority"
    return any(_needs_thread(part) for part in nodes.children(node))


# Hints on rules that are allowed, as in the kernel, but do not do what a user might expect.


_EXPLAIN_LIMIT: Final = 100  # rules that are compared with each other: every pair takes about 20 microseconds


def explain(rules: Sequence[Rule], release: Release) -> tuple[Diagnostic, ...]:
    """Return hints on rules that are allowed but do not do what a user might expect, each with its line."""
    notes: list[Diagnostic] = []
    state = RuleSet(release)
    for rule in opening_rules(rules, release):
        carry_out(rule, state)
    accepted: list[Rule] = []
    last_pid: dict[object, Rule] = {}
    last_handler: dict[object, Rule] = {}
    for rule in rules:
        if rule.mode is None:
            continue
        before = state.state()
        keeps_pids = rule.mode is Mode.CLRCLASSPID and _has_tids(state, rule)
        substitute = [_pass] if rule.condition or rule.function else []
        if state.apply(rule.mode, *rule.arguments(), *substitute):
            continue
        accepted.append(rule)
        is_same = state.state() == before and not substitute
        oddities = [*_oddities(rule, release, is_same, last_pid), *_replaced(rule, last_handler)]
        if keeps_pids:
            oddities.append("clears only the pids of events without a tid; CLRCLASSTID clears the others")
        notes += [_note(rule, message, release) for message in oddities]
    notes += _undone(rules, release)
    notes += never_called(accepted, state)
    faults, whole = check_capture([rule for rule in rules if rule.mode is None or rule in accepted], release)
    line = next((rule.line for rule in rules if rule.is_where), 1)
    notes += [*faults, *(Diagnostic(note, 0, 1, line) for note in whole)]
    return tuple(sorted(dict.fromkeys(notes), key=lambda note: note.line))


def _pass(_context: EventContext, /) -> int:
    """Return 1: a dynamic rule that lets all events pass; used to find out to which events a rule would be attached."""
    return 1


def _note(rule: Rule, message: str, release: Release) -> Diagnostic:
    return Diagnostic(message, 0, len(rule.text(release)), rule.line)


def _has_tids(state: RuleSet, rule: Rule) -> bool:
    key = PID_CLASSES.get(rule.external) if rule.external is not None else None
    return key is not None and bool(state.threads_of[key].tid.any())


def _replaced(rule: Rule, last_handler: dict[object, Rule]) -> Iterator[str]:
    """Yield a hint if a dynamic rule replaces an earlier one for the same class and event.

    `last_handler` has the last dynamic rule by (class, event), and is updated.
    """
    assert rule.mode is not None
    if "HANDLER" not in rule.mode.name:
        return
    position = (rule.external, rule.event)
    earlier = last_handler.pop(position, None)
    if rule.condition or rule.function:
        last_handler[position] = rule
        if earlier is not None:
            yield (
                f"this replaces the dynamic rule of line {earlier.line}: a class or event has one; "
                "join conditions with and"
            )


def _oddities(rule: Rule, release: Release, is_same: bool, last_pid: dict[object, Rule]) -> Iterator[str]:
    mode, external = rule.mode, rule.external
    assert mode is not None
    if external is C.EMPTY or external is C.KERCALLINT:
        yield f"{external.name} is accepted but has no effect"
        return
    if mode is Mode.ADDCLASS and external is C.THREAD:
        yield "ADDCLASS THREAD also makes THREAD wide; SETCLASSFAST THREAD after it makes it fast"
    if mode in (Mode.SETEVENTFAST, Mode.SETEVENTWIDE) and external not in (*KER_CLASSES, C.COMM, C.SYSTEM):
        yield "accepted but without effect: only kernel calls, COMM and SYSTEM have a width per event"
        return
    if mode in (Mode.SETCLASSFAST, Mode.SETCLASSWIDE) and external not in (*KER_CLASSES, C.COMM, C.SYSTEM, C.THREAD):
        yield "accepted but without effect: this class has one form only"
        return
    if external is C.SYSTEM and mode.name.startswith("SET") and mode.name.endswith(("PID", "TID")):
        yield "pid and tid of SYSTEM events are stored but never tested: all of them pass"
    if mode is Mode.CLRCLASSTID and external in (C.SYSTEM, C.COMM) and release is Release.QNX_6:
        yield "in 6.4 this clears the events without a tid instead of those with one"
    if mode in (Mode.SETCLASSPID, Mode.SETCLASSTID, Mode.SETEVENTPID, Mode.SETEVENTTID) and external in PID_CLASSES:
        position = (PID_CLASSES[external], rule.event)
        earlier = last_pid.get(position)
        if earlier is not None and (earlier.pid, earlier.tid) != (rule.pid, rule.tid):
            yield (
                f"this replaces {_who(earlier)} of line {earlier.line}: an event has one pid, settings do not add up; "
                "use a WHERE for several"
            )
        last_pid[position] = rule
    is_reset = mode.name.startswith(("DELALL", "CLR")) or mode is Mode.SETALLCLASSESFAST or rule.pid == 0
    if is_same and not is_reset:
        yield "changes nothing: it is so already"


def _who(rule: Rule) -> str:
    return f"pid {rule.pid}" + (f" tid {rule.tid}" if rule.tid else "")


def _undone(rules: Sequence[Rule], release: Release) -> Iterator[Diagnostic]:
    """Yield a note for every rule that changes something, but whose effect later rules undo completely."""
    plain = [rule for rule in rules if rule.mode in RULE_MODES and not (rule.condition or rule.function)]
    if len(plain) > _EXPLAIN_LIMIT:
        return
    final = _state_after(plain, release)
    for i, rule in enumerate(plain):
        rest = [*plain[:i], *plain[i + 1 :]]
        starts_over = rule.mode in (Mode.DELALLCLASSES, Mode.SETALLCLASSESFAST) and not any(
            other.mode in SWITCHING for other in plain[:i]
        )
        if starts_over or _state_after(rest, release).state() != final.state():
            continue
        changed = _state_after(plain[: i + 1], release).state() != _state_after(plain[:i], release).state()
        if changed:
            undoer = _undoer(plain, i, release)
            text = (
                f"line {undoer.line} takes this back: {undoer.text(release)}"
                if undoer
                else "later lines take this back"
            )
            yield Diagnostic(text, 0, len(rule.text(release)), rule.line)


def _undoer(rules: Sequence[Rule], position: int, release: Release) -> Rule | None:
    """Return the first later rule after which the rule at `position` makes no difference to the state, or None."""
    with_it, without_it = _state_after(rules[: position + 1], release), _state_after(rules[:position], release)
    for rule in rules[position + 1 :]:
        carry_out(rule, with_it)
        carry_out(rule, without_it)
        if with_it.state() == without_it.state():
            return rule
    return None


def _state_after(rules: Sequence[Rule], release: Release) -> RuleSet:
    state = RuleSet(release)
    for rule in rules:
        carry_out(rule, state)
    return state
