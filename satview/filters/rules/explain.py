"""Hints on rules that are allowed, as in the kernel, but do not do what one might think."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from satview.events.modes import RULE_MODES, Mode
from satview.events.spec import Release
from satview.filters.diagnostics import Diagnostic
from satview.filters.event_context import EventContext
from satview.filters.external import KER_CLASSES
from satview.filters.rules.building import SWITCHING, carry_out, opening_rules
from satview.filters.rules.capturing import check_capture, never_called
from satview.filters.rules.rule import Rule
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.switch_state import C
from satview.filters.rules.switches import PID_CLASSES

_EXPLAIN_LIMIT: Final = 100  # rules that are compared with each other: every pair costs some 20 microseconds


def explain(rules: Sequence[Rule], release: Release) -> tuple[Diagnostic, ...]:
    """Return hints on rules that are allowed but do not do what one might think; each with its line."""
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
        found = [*_oddities(rule, release, is_same, last_pid), *_replaced(rule, last_handler)]
        if keeps_pids:
            found.append("clears only the pids of events without a tid; CLRCLASSTID clears the others")
        notes += [_note(rule, message, release) for message in found]
    notes += _undone(rules, release)
    notes += never_called(accepted, state)
    faults, whole = check_capture([rule for rule in rules if rule.mode is None or rule in accepted], release)
    line = next((rule.line for rule in rules if rule.mode is None), 1)
    notes += [*faults, *(Diagnostic(note, 0, 1, line) for note in whole)]
    return tuple(sorted(dict.fromkeys(notes), key=lambda note: note.line))


def _pass(_context: EventContext, /) -> int:
    """Replace every dynamic rule: what they test is not needed to see what rules do."""
    return 1


def _note(rule: Rule, message: str, release: Release) -> Diagnostic:
    return Diagnostic(message, 0, len(rule.text(release)), rule.line)


def _has_tids(state: RuleSet, rule: Rule) -> bool:
    key = PID_CLASSES.get(rule.external) if rule.external is not None else None
    return key is not None and bool(state.threads_of[key].tid.any())


def _replaced(rule: Rule, last_handler: dict[object, Rule]) -> Iterator[str]:
    """Say whether a dynamic rule replaces another one."""
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
    """Yield a note for every rule without which the final state would be the same, though it changed something."""
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


def _undoer(rules: Sequence[Rule], at: int, release: Release) -> Rule | None:
    """Return the first later rule after which it no longer matters whether rule `at` was there."""
    with_it, without_it = _state_after(rules[: at + 1], release), _state_after(rules[:at], release)
    for rule in rules[at + 1 :]:
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
