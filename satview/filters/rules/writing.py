"""From a rule set back to rules: the shortest list, within reason, that sets exactly its state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from satview.events.modes import Mode
from satview.events.spec import Release
from satview.filters.expressions.expression import Expression
from satview.filters.external import COMM_NAMES, SYSTEM_COUNT, ExternalClass
from satview.filters.rules.handler_table import DynamicRule
from satview.filters.rules.rule import Rule
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.switch_state import ALL_BITS, ON, WIDE, C


def rules_of(state: RuleSet) -> tuple[Rule, ...]:
    """Return rules that set exactly this state, whatever was set before, dynamic rules last.

    Handlers that are neither expressions nor named functions are left out: they cannot be written down.
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
    """Rules for a class of event masks: the class and what to take away, or the events alone."""
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
    """Whether ADDCLASS INT was written, which switches the interrupt handlers on as well."""
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
    """Rules for enter and exit bits per call or vector: unions where both are set."""
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
    """Rules for a class with one switch per event, of which those from `limit` on follow the class alone."""
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
    """Rules for the pids and tids of one class: the usual setting for the class, the others one by one."""
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
    """Yield where every dynamic rule is attached, as a rule without its condition, and the dynamic rule."""
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
