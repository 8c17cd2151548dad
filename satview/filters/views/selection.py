"""Converts a selection in a view (check boxes, forms, conditions) to rules that capture it.

Static rules are used as far as possible: classes and events, fast or wide, one process or one thread. If TraceEvent()
has no switch for something, a condition is written, which a C program evaluates in an event handler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.events.layout import logged_list, word_count
from satview.events.modes import Mode
from satview.events.wire import WireClass, class_of, event_of
from satview.filters.expressions.syntax import TEXT_LIMIT, tokens
from satview.filters.external import INT_CLASSES, ExternalClass, ExternalEvent, has_event_masks
from satview.filters.rows import process_names
from satview.filters.rules.fastwide import has_two_forms, inserted_by_code
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.switches import COMM_ERROR, COMM_REPLY, C
from satview.filters.rules.text import Rule, rules_text
from satview.filters.rules.writing import rules_of
from satview.filters.views.passes import Effect, Pass, PassStack, names_in, parse_combination
from satview.store.trace import Trace

_WITH_PIDS: Final = (C.KERCALL, C.THREAD, C.VTHREAD, C.COMM)
_CLEARING: Final = (Mode.CLRCLASSPID, Mode.CLRCLASSTID)
_LEFT_OUT: Final = "# A filter made of rules cannot be combined with the rest: copy its lines by hand.\n"
_NOT_TESTED: Final = "# Other classes are logged for all processes: a kernel compares pids in these only.\n"


def rules_of_selection(
    trace: Trace,
    codes: NDArray[np.bool_],
    threads: NDArray[np.bool_],
    stack: PassStack | None = None,
    is_wide: Mapping[int, bool] | None = None,
) -> str:
    """Return the text of rules that pass exactly the events that a view shows.

    An event that does not occur in the trace is switched on if most events of its class are selected; if none of its
    class occur, if most events of the trace are selected. Events are logged wide if the trace was logged wide, or if
    `is_wide` says so.

    Args:
        trace: The trace in the view.
        codes: bool (32768,), selected events.
        threads: bool (threads,), selected rows of the thread table; row 0 means events whose thread is not known.
        stack: Conditions and rules; only those that hide are used.
        is_wide: The form in which each code is shown; the other codes keep the form in which they were logged.
    """
    stack = stack or PassStack()
    ruled = [item for item in _hiding(stack) if item.rules.strip()]
    conditions, all_said = _conditions(stack)
    every_code = bool(codes[trace.code_counts > 0].all())
    if len(ruled) == 1 and not ruled[0].is_inverted and every_code and threads.all() and not is_wide:
        return ruled[0].rules.rstrip() + "\n" + conditions
    rules = rules_of(_switches(trace, codes, is_wide or {}))
    # At the start of a file of rules no pid is set.
    static = rules_text([rule for rule in rules if rule.mode not in _CLEARING and rule.pid is None], trace.release)
    left_out = "" if all_said and not ruled else _LEFT_OUT
    return left_out + _of_inserted(trace, codes) + static + _of_threads(trace, threads) + conditions


# ---- events ------------------------------------------------------------------------------------------------------


def _of_inserted(trace: Trace, codes: NDArray[np.bool_]) -> str:
    """Return a comment line on selected inserted events, which the switches of USER control; empty if none."""
    selected = np.flatnonzero(codes & inserted_by_code(trace) & (trace.code_counts > 0)).tolist()
    names = dict.fromkeys(trace.catalogue.name(code) for code in selected if class_of(code) != WireClass.USER)
    return (
        f"# Programs insert {', '.join(names)}: for these a kernel looks at their numbers in USER.\n" if names else ""
    )


def _switches(trace: Trace, codes: NDArray[np.bool_], is_wide: Mapping[int, bool]) -> RuleSet:
    """Return the rule set of the selected events, without pids."""
    state = RuleSet(trace.release)
    occurs = trace.code_counts > 0
    known = np.union1d(np.flatnonzero(occurs), trace.catalogue.codes())
    if _are_most(codes[known]) and _are_most(codes[occurs]):
        state.add_all_classes()
    of_class: dict[ExternalClass, list[int]] = {}
    inserted = inserted_by_code(trace)
    for code in known.tolist():
        external = _switched_by(state, code, inserted)
        if external is not None:
            of_class.setdefault(external, []).append(code)
    for external, members in of_class.items():
        logged_codes = [code for code in members if occurs[code]]
        if not logged_codes:
            continue
        is_on = _are_most(codes[members]) and _are_most(codes[logged_codes])
        state.apply(Mode.ADDCLASS if is_on else Mode.DELCLASS, external)
        odd = [switch_of(state, code, inserted) for code in logged_codes if codes[code] != is_on]
        _switch(state, external, odd, Mode.DELEVENT if is_on else Mode.ADDEVENT)
    state.apply(Mode.SETALLCLASSESWIDE if _is_logged_wide(trace) else Mode.SETALLCLASSESFAST)
    for code, wide in is_wide.items():
        address = state.address(code)
        if address.external is C.THREAD:
            state.apply(Mode.SETCLASSWIDE if wide else Mode.SETCLASSFAST, C.THREAD)
        elif address.external is not None:
            state.apply(Mode.SETEVENTWIDE if wide else Mode.SETEVENTFAST, address.external, address.number)
    return state


def switch_of(state: RuleSet, code: int, inserted: NDArray[np.bool_]) -> ExternalEvent:
    """Return the switch that controls the events of a code; for inserted events, that of the same number in USER."""
    return ExternalEvent(C.USER, event_of(code)) if inserted[code] else state.address(code)


def _switched_by(state: RuleSet, code: int, inserted: NDArray[np.bool_]) -> ExternalClass | None:
    """Return the class whose switches control the events of a code."""
    external = switch_of(state, code, inserted).external
    if external is C.KERCALLINT:
        return C.KERCALLEXIT
    # 8.0 has only INT, not its parts.
    return C.INT if external in INT_CLASSES and external not in state.known else external


def _are_most(selected: NDArray[np.bool_]) -> bool:
    return 2 * int(np.count_nonzero(selected)) > len(selected)


def _switch(state: RuleSet, external: ExternalClass, events: list[ExternalEvent], mode: Mode) -> None:
    """Switch single events on or off after their class has been switched."""
    for address in events:
        number = address.number
        if address.vector_word >= 0:  # the switches are per vector here, so the class is switched for a whole event
            state.apply(Mode.ADDCLASS if mode is Mode.ADDEVENT else Mode.DELCLASS, external)
            return
        if external is C.COMM and number == COMM_ERROR:
            number = COMM_REPLY  # ERROR has no switch of its own
        is_bit = external is not C.CONTROL and has_event_masks(external, state.release)
        state.apply(mode, external, 1 << number if is_bit else number)


def _is_logged_wide(trace: Trace) -> bool:
    """Return whether the trace was logged wide: some event is longer than its fast form can be."""
    long = np.bincount(trace.events.code[trace.events.slot_count > 1], minlength=len(trace.code_counts))
    fasts = (
        logged_list(trace.release, code, is_wide=False)[1]
        for code in np.flatnonzero(long).tolist()
        if has_two_forms(code, trace.release)
    )
    return any(fast is not None and word_count(fast) <= 2 for fast in fasts)


# ---- threads -----------------------------------------------------------------------------------------------------


def _of_threads(trace: Trace, threads: NDArray[np.bool_]) -> str:
    """Return lines of rules that select threads.

    Raises:
        UsageError: There are too many to list.
    """
    if threads.all():
        return ""
    known = np.flatnonzero(trace.threads.pid > 0)
    selected, left = known[threads[known]], known[~threads[known]]
    pid = trace.threads.pid
    if len(np.unique(pid[selected])) == 1 and (len(selected) == 1 or pid[selected[0]] not in pid[left]):
        return "".join(_static(trace, selected)) + _NOT_TESTED
    if not len(selected):
        return "WHERE 1 == 0\n"
    # Events whose thread is not known pass an exclusion and fail a list.
    keeps_unknown = bool(threads[0] or (trace.threads.tid[selected] <= 0).any())
    text = f"({_listed(trace, left, selected)}) is not true" if keeps_unknown else _listed(trace, selected, left)
    if len(text) > TEXT_LIMIT:
        raise UsageError("too many threads are selected one by one: a rule cannot list them; choose whole processes")
    return f"WHERE {text}\n" if len(left) or not keeps_unknown else ""


def _static(trace: Trace, selected: NDArray[np.intp]) -> Iterator[str]:
    """Yield rules for one process, or for one of its threads."""
    pid, tid = int(trace.threads.pid[selected[0]]), int(trace.threads.tid[selected[0]])
    is_whole = np.count_nonzero(trace.threads.pid == pid) == len(selected)
    # A rule is one line, so a process with a line break or the like in its name is written as a number.
    names = [name for name, pids in process_names(trace).items() if pids == (pid,) and name.isprintable()]
    known = RuleSet(trace.release).known
    for external in _WITH_PIDS:
        if external in known:
            mode = Mode.SETCLASSPID if is_whole else Mode.SETCLASSTID
            rule = Rule(mode, external, None, pid, None if is_whole else tid, min(names, key=len, default=""))
            yield rule.text(trace.release) + "\n"


def _listed(trace: Trace, selected: NDArray[np.intp], others: NDArray[np.intp]) -> str:
    """Return the condition that holds for the selected threads and for none of the others."""
    pid, tid = trace.threads.pid, trace.threads.tid
    mixed = np.intersect1d(pid[selected], pid[others])
    whole = np.setdiff1d(pid[selected], mixed)
    parts = [f"pid in ({_numbers(whole)})"] if len(whole) else []
    parts += [f"(pid == {p} and tid in ({_numbers(tid[selected][pid[selected] == p])}))" for p in mixed.tolist()]
    return " or ".join(parts)


def _numbers(numbers: NDArray[np.integer]) -> str:
    return ", ".join(str(number) for number in numbers.tolist() if number > 0)


# ---- conditions --------------------------------------------------------------------------------------------------


def _hiding(stack: PassStack) -> list[Pass]:
    return [item for item in stack.passes if item.is_on and item.effect is Effect.HIDE]


def _conditions(stack: PassStack) -> tuple[str, bool]:
    """Return the conditions of a stack as `WHERE` lines, and whether they are equivalent to its combination."""
    if not stack.combination:
        return "".join(f"WHERE {_condition(item)}\n" for item in _hiding(stack) if item.expression.strip()), True
    texts = {item.name: _condition(item) for item in stack.passes if item.is_on and not item.rules.strip()}
    mentioned = names_in(stack.combination)
    if any(item.name in mentioned and item.is_on and item.name not in texts for item in stack.passes):
        return "", False
    text = parse_combination(stack.combination, mentioned).condition(texts)
    return f"WHERE {text}\n" if text else "", True


def _condition(item: Pass) -> str:
    text = _on_one_line(item.expression) or "1 == 1"
    return f"not ({text})" if item.is_inverted else f"({text})"


def _on_one_line(expression: str) -> str:
    """Return an expression without line breaks and unnecessary blanks; texts in quotes stay as they are.

    Raises:
        UsageError: A text in it has a line break, which a rule cannot have.
    """
    text, end = "", 0
    for token in tokens(expression):
        text += (" " if end < token.start else "") + expression[token.start : token.end]
        end = token.end
    if len(text.splitlines()) > 1:
        raise UsageError("a text with a line break in it cannot be in a rule")
    return text.strip()
