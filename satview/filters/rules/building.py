"""Builds a rule set from rules, and writes a rule set as a short list of rules."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.events.layout import Taught
from satview.events.modes import Mode
from satview.events.spec import Release
from satview.filters.derived_columns import Bools, DerivedColumns
from satview.filters.diagnostics import Diagnostic, ExpressionError, RuleError
from satview.filters.expressions.expression import Expression, possible
from satview.filters.expressions.nodes import share_budget
from satview.filters.external import (
    COMM_NAMES,
    LATER_CLASSES,
    NO_RING0,
    RING0,
    SECURITY,
    SYSTEM_COUNT,
    ExternalClass,
    classes_of,
)
from satview.filters.rules.fastwide import passing_in_view
from satview.filters.rules.handlers import DynamicRule
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.switches import ALL_BITS, EINVAL, ENOTSUP, ON, PID_CLASSES, WIDE, C
from satview.filters.rules.text import Rule
from satview.filters.rules.triggers import Trigger
from satview.store.trace import Trace

# Builds a rule set from rules: the kernel's state after the TraceEvent() calls that the rules stand for.


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
        taught: Arguments that a trace adds (`store.arguments.taught`); None = those that all traces added so far.

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
    """Return rules that switch every class on, to be put before `rules`; none if `rules` switch classes or events.

    ADDALLCLASSES leaves SEC out, so the classes of later releases have a rule each.
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


# Rule sets as tracelogger command lines, and back. Options: description of the capture side, section 7.1.


_CLASS_OF_FILTER: Final = {1: C.KERCALL, 2: C.INT, 3: C.PROCESS, 4: C.THREAD, 5: C.VTHREAD, 6: C.COMM, 7: C.SYSTEM}
DEFAULT_OUTPUT: Final = "/dev/shmem/tracebuffer.kev"  # noqa: S108  -- on the target, tracelogger's own default
_WITH_VALUE: Final = "AbDdFfknpSs"


@dataclass(frozen=True, slots=True)
class TraceloggerCommand:
    """A command line, and whether a capture with it has exactly the events that the rules let pass.

    Otherwise `reasons` are rules that tracelogger cannot carry out but the C program can, one sentence each.
    """

    text: str
    is_exact: bool
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedArguments:
    """The rules in a TRACELOGGER_ARGS attribute, if any; a sentence for each other option, or one that is not known."""

    rules: tuple[Rule, ...]
    notes: tuple[str, ...]


def tracelogger_command(rules: RuleSet | BuiltRules, file_name: str = DEFAULT_OUTPUT) -> TraceloggerCommand:
    """Return the tracelogger command, with a file on the target, that comes closest without losing any event."""
    state = rules.state if isinstance(rules, BuiltRules) else rules
    words = ["tracelogger"]
    reasons = []
    for number, external in _CLASS_OF_FILTER.items():
        if external in state.known and _is_off(state, external):
            words.append(f"-F{number}")
    if SECURITY in state.known and state.later[SECURITY].any():
        words.append("-a")
    is_wide = _anything_wide(state)
    if is_wide:
        words.append("-w")
    rebuilt = RuleSet(state.release)
    for rule in from_tracelogger_args(" ".join(words), state.release).rules:
        if rule.mode is not None:
            rebuilt.apply(rule.mode, *rule.arguments())
    reasons += _differences(state, rebuilt)
    if isinstance(rules, BuiltRules) and rules.conditions:
        reasons.append(
            "WHERE lines and other conditions are for views; the capture keeps the events they would leave out"
        )
    if isinstance(rules, BuiltRules) and rules.triggers:
        reasons.append("WHEN lines: tracelogger has no triggers; a recorder of satview has")
    words += ["-f", file_name]
    return TraceloggerCommand(shlex.join(words), not reasons, tuple(reasons))


def _is_off(state: RuleSet, external: C) -> bool:
    probe = state.copy()
    probe.del_class(external)
    return probe.switches() == state.switches()


def _anything_wide(state: RuleSet) -> bool:
    """Return whether any event that is switched on is logged wide."""
    enters, leaves = state.calls & 5 == 5, state.calls & 10 == 10
    is_thread = state.thread_is_wide and bool(state.thread & state.all_states)
    return bool(
        enters.any() or leaves.any() or is_thread or (state.comm & 3 == 3).any() or (state.system & 3 == 3).any()
    )


def _differences(state: RuleSet, rebuilt: RuleSet) -> list[str]:
    """Return sentences on events that the command line logs although the rules do not, or logs in another form."""
    reasons = []
    if state.switches() != rebuilt.switches():
        reasons.append("some classes are partly on: tracelogger can only leave out whole classes")
    if _widths_of_what_is_on(state, state) != _widths_of_what_is_on(rebuilt, state):
        reasons.append("some events are fast and some wide: tracelogger logs all in one form, here wide")
    if any(test.pid.any() for test in state.threads_of.values()):
        reasons.append("events of selected processes or threads only: tracelogger has no option for that")
    if state.class_handlers or state.event_handlers:
        reasons.append("dynamic rules: they need a program that attaches handlers")
    return reasons


def _widths_of_what_is_on(state: RuleSet, on: RuleSet) -> tuple[object, ...]:
    thread = state.thread_is_wide if on.thread & on.all_states else False
    calls = (on.calls & 1) * (state.calls >> 2 & 1) | (on.calls & 2) * (state.calls >> 3 & 1)
    return (
        thread,
        calls.tobytes(),
        ((on.comm & 1) * (state.comm & 2)).tobytes(),
        ((on.system & 1) * (state.system & 2)).tobytes(),
    )


def from_tracelogger_args(arguments: str, release: Release) -> ImportedArguments:
    """Return the rules that a command line sets, as in TRACELOGGER_ARGS: with or without `tracelogger` in front."""
    options, notes = _options(arguments)
    if any(option == "d" for option, _ in options) and not any(option == "E" for option, _ in options):
        notes.append("the logger ran as a daemon: a program chose the events, the arguments do not show which")
        return ImportedArguments((), tuple(notes))
    rules = [
        Rule(mode, c)
        for c in (C.KERCALL, C.THREAD, C.VTHREAD, C.COMM)
        for mode in (Mode.CLRCLASSPID, Mode.CLRCLASSTID)
        if c is not C.VTHREAD or release is not Release.QNX_8
    ]
    rules.append(Rule(Mode.ADDALLCLASSES))
    for option, value in options:
        if option == "F":
            rules += _left_out(value, release, notes)
        elif option == "a" and SECURITY in classes_of(release):
            rules.append(Rule(Mode.ADDCLASS, SECURITY))
    is_wide = any(option == "w" for option, _ in options)
    rules.append(Rule(Mode.SETALLCLASSESWIDE if is_wide else Mode.SETALLCLASSESFAST))
    notes += [text for key, text in _MEANINGS.items() if any(option == key for option, _ in options)]
    return ImportedArguments(tuple(rules), tuple(notes))


_MEANINGS: Final = {
    "r": "captured in ring mode: only the last part of the run is in the file",
    "S": "captured with a size limit: the end may be cut",
    "s": "captured for a given time",
    "c": "captured until stopped",
    "n": "captured for a given number of buffers",
}


def logger_numbers(arguments: str) -> dict[str, int]:
    """Return the decimal numbers in options of a tracelogger command line, by letter; the last of repeated ones."""
    options, _ = _options(arguments)
    return {key: int(value) for key, value in options if value.isascii() and value.isdigit() and len(value) < 7}


def _left_out(value: str, release: Release, notes: list[str]) -> list[Rule]:
    number = int(value) if value.isascii() and value.isdigit() and len(value) < 6 else -1
    if number == NO_RING0:
        return [Rule(Mode.DELEVENT, C.KERCALL, RING0)]
    external = _CLASS_OF_FILTER.get(number)
    if external is None:
        if number != 0:
            notes.append(f"the filter -F {value[:20]} is not known")
        return []
    if external is C.VTHREAD and release is Release.QNX_8:
        return []
    return [Rule(Mode.DELCLASS, external)]


def _options(arguments: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Return options with their values, and notes on faults; parsed as by getopt: `-wF1`, `-w -F 1`, `-d1`."""
    words = arguments.split()
    words = words[1:] if words and not words[0].startswith("-") else words
    options: list[tuple[str, str]] = []
    notes = []
    next_word = 0
    while next_word < len(words):
        word = words[next_word]
        next_word += 1
        if not word.startswith("-") or word == "-":
            notes.append(f"{word[:40]!r} is not an option")
            continue
        position = 1
        while position < len(word):
            option = word[position]
            position += 1
            if option in _WITH_VALUE:
                value = word[position:]
                if not value and next_word < len(words):
                    value = words[next_word]
                    next_word += 1
                options.append((option, value))
                break
            options.append((option, ""))
    return options, notes[:5]


def rules_of(state: RuleSet) -> tuple[Rule, ...]:
    """Return rules that produce exactly this state, whatever the state before; dynamic rules are last.

    Handlers that are neither expressions nor named functions cannot be written as text and are left out.
    """
    return tuple(_written(state))


def _written(state: RuleSet) -> Iterator[Rule]:
    yield Rule(Mode.DELALLCLASSES)
    for external in (C.KERCALL, C.THREAD, C.VTHREAD):
        if external in state.threads_of and external in state.known:
            yield Rule(Mode.CLRCLASSPID, external)
            yield Rule(Mode.CLRCLASSTID, external)
    for external in (C.SYSTEM, C.COMM):
        # CLRCLASSTID clears the wrong ones here (a bug of 6.4); pid 0 is "none" and clears the tid as well.
        yield Rule(Mode.SETCLASSPID, external, pid=0)
    yield from _switches(state)
    yield from _widths(state)
    for external, test in state.threads_of.items():
        if external in state.known:
            yield from _threads(state, external, test.pid, test.tid)
    yield from _handlers(state)


def _switches(state: RuleSet) -> Iterator[Rule]:
    everything = RuleSet(state.release)
    everything.add_all_classes()
    on = everything.switches() == state.switches()
    if on:
        yield Rule(Mode.ADDALLCLASSES)
        return
    for external in (C.CONTROL, C.PROCESS, C.THREAD, C.VTHREAD):
        if external in state.known:
            yield from _mask(state, external)
    parts = (
        (C.KERCALL, C.KERCALLENTER, C.KERCALLEXIT, state.calls, None),
        (C.INT, C.INTENTER, C.INTEXIT, state.interrupts, state.interrupt_handlers),
    )
    for union, enter, leave, masks, handlers in parts:
        yield from _pairs(state, union, enter, leave, masks, handlers)
    if C.INT_HANDLER_ENTER in state.known:
        for external, bit in ((C.INT_HANDLER_ENTER, 1), (C.INT_HANDLER_EXIT, 2)):
            yield from _flags(external, state.interrupt_handlers & bit != 0, _has_int_class(state), 256)
    yield from _flags(C.SYSTEM, state.system & ON != 0, False, SYSTEM_COUNT[state.release])
    yield from _flags(C.COMM, state.comm & ON != 0, False, len(COMM_NAMES))
    yield from _flags(C.USER, state.user, False, len(state.user))
    for external, events in state.later.items():
        yield from _flags(external, events, False, len(events))


def _mask(state: RuleSet, external: ExternalClass) -> Iterator[Rule]:
    """Yield rules for a class of event masks: switch the class on and some events off, or only some events on."""
    mask: int = getattr(state, external.name.lower())
    whole = ALL_BITS
    if external is C.THREAD:
        whole, mask = state.all_states, mask & state.all_states
    if not mask:
        return
    is_most = mask.bit_count() * 2 > whole.bit_count()
    if is_most:
        yield Rule(Mode.ADDCLASS, external)
    rest = whole & ~mask if is_most else mask
    mode = Mode.DELEVENT if is_most else Mode.ADDEVENT
    if external is C.THREAD and state.release is Release.QNX_8:
        for number in range(rest.bit_length()):
            if rest >> number & 1:
                yield Rule(mode, external, number)
    elif rest:
        yield Rule(mode, external, rest)


def _has_int_class(state: RuleSet) -> bool:
    """Return whether the rules include ADDCLASS INT, which switches the interrupt handlers on as well."""
    return _whole_class(state.interrupts, 3) and _whole_class(state.interrupt_handlers, 3)


def _whole_class(masks: NDArray[np.uint8], bits: int) -> bool:
    return bool((masks & bits == bits).all())


def _pairs(
    state: RuleSet,
    union: ExternalClass,
    enter: ExternalClass,
    leave: ExternalClass,
    masks: NDArray[np.uint8],
    handlers: NDArray[np.uint8] | None,
) -> Iterator[Rule]:
    """Yield rules that switch entries (bit 1 of `masks`) and exits (bit 2) of kernel calls or interrupts on.

    Only interrupts have `handlers`, which are switched only with their whole class.
    """
    if enter not in state.known:  # 8.0 has INT alone
        both = masks & 3 == 3
        if both.all():
            yield Rule(Mode.ADDCLASS, union)
        else:
            yield from _flags(union, both, False, 256)
        return
    if _whole_class(masks, 3) and (handlers is None or _whole_class(handlers, 3)):
        yield Rule(Mode.ADDCLASS, union)
        return
    # Vectors above 255 can only be switched with their whole class.
    limit = 256 if handlers is not None else len(masks)
    bases = {}
    for external, bit in ((enter, 1), (leave, 2)):
        on = masks & bit != 0
        bases[bit] = bool(on[-1]) if handlers is not None else int(on.sum()) * 2 > len(on)
        if bases[bit]:
            yield Rule(Mode.ADDCLASS, external)
    for index in range(limit):
        wrong = [bit for bit in (1, 2) if bool(masks[index] & bit) != bases[bit]]
        if wrong == [1, 2] and bases[1] == bases[2]:
            yield Rule(Mode.DELEVENT if bases[1] else Mode.ADDEVENT, union, index)
        else:
            for bit in wrong:
                yield Rule(Mode.DELEVENT if bases[bit] else Mode.ADDEVENT, enter if bit == 1 else leave, index)


def _flags(external: ExternalClass, on: NDArray[np.bool_], already: bool, limit: int) -> Iterator[Rule]:
    """Yield rules for a class with one switch per event; from event `limit` on, only the whole class has a switch."""
    base = bool(on[limit]) if limit < len(on) else int(on.sum()) * 2 > len(on)
    if base and not already:
        yield Rule(Mode.ADDCLASS, external)
    for index in np.flatnonzero(on[:limit] != base).tolist():
        yield Rule(Mode.DELEVENT if base else Mode.ADDEVENT, external, index)


def _widths(state: RuleSet) -> Iterator[Rule]:
    parts = [
        (C.KERCALLENTER, state.calls & 4 != 0, len(state.calls)),
        (C.KERCALLEXIT, state.calls & 8 != 0, len(state.calls)),
        (C.COMM, state.comm & WIDE != 0, len(COMM_NAMES)),
        (C.SYSTEM, state.system & WIDE != 0, SYSTEM_COUNT[state.release]),
    ]
    is_wide = sum(int(wide[-1]) for _, wide, _ in parts) + state.thread_is_wide > 2
    yield Rule(Mode.SETALLCLASSESWIDE if is_wide else Mode.SETALLCLASSESFAST)
    if state.thread_is_wide != is_wide:
        yield Rule(Mode.SETCLASSWIDE if state.thread_is_wide else Mode.SETCLASSFAST, C.THREAD)
    for external, wide, limit in parts:
        base = bool(wide[limit]) if limit < len(wide) else int(wide.sum()) * 2 > len(wide)
        if base != is_wide:
            yield Rule(Mode.SETCLASSWIDE if base else Mode.SETCLASSFAST, external)
        for index in np.flatnonzero(wide[:limit] != base).tolist():
            yield Rule(Mode.SETEVENTFAST if base else Mode.SETEVENTWIDE, external, index)


def _threads(
    state: RuleSet, external: ExternalClass, pids: NDArray[np.int32], tids: NDArray[np.int32]
) -> Iterator[Rule]:
    """Yield rules for the pids and tids of one class: the most common setting for the class, others by event."""
    settings = list(zip(pids.tolist(), tids.tolist(), strict=True))
    is_mask = external in (C.THREAD, C.VTHREAD) and not (external is C.THREAD and state.release is Release.QNX_8)
    limit = {C.COMM: len(COMM_NAMES), C.SYSTEM: SYSTEM_COUNT[state.release]}.get(
        external, 32 if is_mask else len(settings)
    )
    base = settings[limit] if limit < len(settings) else Counter(settings).most_common(1)[0][0]
    if base != (0, 0):
        yield _thread_rule(Mode.SETCLASSPID, Mode.SETCLASSTID, external, None, base)
    for index, setting in enumerate(settings[:limit]):
        if setting == base:
            continue
        event = 1 << index if is_mask else index
        if setting == (0, 0):
            yield Rule(Mode.CLREVENTTID if base[1] else Mode.CLREVENTPID, external, event)
        else:
            yield _thread_rule(Mode.SETEVENTPID, Mode.SETEVENTTID, external, event, setting)


def _thread_rule(
    by_pid: Mode, by_tid: Mode, external: ExternalClass, event: int | None, setting: tuple[int, int]
) -> Rule:
    pid, tid = setting
    return Rule(by_tid, external, event, pid, tid) if tid else Rule(by_pid, external, event, pid)


def handler_rules(state: RuleSet) -> Iterator[tuple[Rule, DynamicRule]]:
    """Yield each dynamic rule as a pair: a `Rule` that names its class or event, without condition, and its handler."""
    for external, handler in sorted(state.class_handlers.items()):
        yield Rule(Mode.ADDCLASSEVHANDLER, external), handler
    for (external, number), handler in sorted(state.event_handlers.items(), key=lambda item: item[0]):
        is_bit = external in (C.PROCESS, C.VTHREAD) or (external is C.THREAD and state.release is not Release.QNX_8)
        yield Rule(Mode.ADDEVENTHANDLER, external, 1 << number if is_bit else number), handler


def _handlers(state: RuleSet) -> Iterator[Rule]:
    for rule, handler in handler_rules(state):
        if isinstance(handler, Expression):
            yield replace(rule, condition=handler.text)
        elif name := getattr(handler, "position", ""):
            yield replace(rule, function=name)
