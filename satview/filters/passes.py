"""Passes, which are named filters over one trace, and rules that capture what a view selects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.events import wire
from satview.events.layout import logged_list, word_count
from satview.events.modes import Mode
from satview.events.spec import Release
from satview.events.wire import THREAD_RUNNING, WireClass, class_of, event_of
from satview.filters.derived_columns import Bools, DerivedColumns, TraceDerivedColumns, process_names, state_rows
from satview.filters.diagnostics import Diagnostic, ExpressionError, did_you_mean, nearest
from satview.filters.expressions.expression import Expression
from satview.filters.expressions.syntax import TEXT_LIMIT, Token, TokenKind, tokens
from satview.filters.external import INT_CLASSES, ExternalClass, ExternalEvent, has_event_masks
from satview.filters.rules.building import BuiltRules, FunctionLoader, build, rules_of
from satview.filters.rules.capturing import check_capture, check_condition
from satview.filters.rules.fastwide import has_two_forms, inserted_by_code
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.switches import COMM_ERROR, COMM_REPLY, C
from satview.filters.rules.text import Rule, check_rules, parse_rules, rules_text
from satview.linkage.chain import link_table
from satview.linkage.links import LinkKind, rows_of_codes, thread_rows
from satview.store.arguments import taught
from satview.store.time_ranges import idle_threads
from satview.store.trace import Trace

# Passes: several named filters over one trace. They only mark or hide events; the data stays as it is.
#
# All values are immutable, so undo only needs to keep the old ones.


# How named filters are combined: `A or not (B and C)`, as a small tree.


MaskOf = Callable[[str, bool], Bools | None]
_NESTING_LIMIT: Final = 40


@dataclass(frozen=True, slots=True)
class FilterCombination:
    """A combination of named filters: one filter, or `not` of one part, or `and` or `or` of several parts.

    The `joint` is empty for a filter. Filters without a mask or a text are left out, and so are combinations that have
    only such filters.
    """

    joint: str
    parts: tuple[FilterCombination, ...] = ()
    name: str = ""

    def mask(self, mask_of: MaskOf, negated: bool = False) -> Bools | None:
        """Return which events fit the combination, or its negation, bool (events,); None if no filter has a mask.

        `mask_of` returns the mask of a filter by name, or of its negation; events of unknown result are in neither.
        """
        if not self.joint:
            return mask_of(self.name, negated)
        if self.joint == "not":
            return self.parts[0].mask(mask_of, not negated)
        masks = [mask for mask in (part.mask(mask_of, negated) for part in self.parts) if mask is not None]
        if not masks:
            return None
        return np.asarray((np.logical_or if (self.joint == "or") is not negated else np.logical_and).reduce(masks))

    def condition(self, conditions: Mapping[str, str]) -> str:
        """Return one condition made of the filters' conditions; empty if no filter has one."""
        if not self.joint:
            return conditions.get(self.name, "")
        inner = [(part, part.condition(conditions)) for part in self.parts]
        texts = [f"({text})" if part.joint in ("and", "or") else text for part, text in inner if text]
        return f"not {texts[0]}" if self.joint == "not" and texts else f" {self.joint} ".join(texts)


def names_in(combination: str) -> set[str]:
    """Return the filter names in the text of a combination; empty if the text cannot be parsed."""
    try:
        parts = tokens(combination)
    except ExpressionError:
        return set()
    return {
        token.text
        for token in parts
        if token.kind is TokenKind.TEXT or (token.kind is TokenKind.NAME and token.text not in ("and", "or", "not"))
    }


def parse_combination(text: str, names: Iterable[str]) -> FilterCombination:
    """Return a combination of filters, such as `a and not b`, as a tree.

    Raises ExpressionError if the text is faulty, or contains a name that no filter has.
    """
    parser = _Parser(tokens(text), tuple(names))
    result = parser.any_of(0)
    if parser.token.kind is not TokenKind.END:
        raise parser.fault("and, or, or the end is expected here")
    return result


class _Parser:
    def __init__(self, all_tokens: list[Token], names: tuple[str, ...]) -> None:
        self.tokens, self.names, self.position = all_tokens, names, 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def fault(self, message: str) -> ExpressionError:
        return ExpressionError.of(self.token, message)

    def takes(self, word: str) -> bool:
        is_taken = self.token.kind is not TokenKind.TEXT and self.token.text == word
        self.position += is_taken
        return is_taken

    def any_of(self, depth: int) -> FilterCombination:
        if depth > _NESTING_LIMIT:
            raise self.fault(f"brackets nested deeper than {_NESTING_LIMIT}")
        parts = [self.all_of(depth)]
        while self.takes("or"):
            parts.append(self.all_of(depth))
        return parts[0] if len(parts) == 1 else FilterCombination("or", tuple(parts))

    def all_of(self, depth: int) -> FilterCombination:
        parts = [self.single(depth)]
        while self.takes("and"):
            parts.append(self.single(depth))
        return parts[0] if len(parts) == 1 else FilterCombination("and", tuple(parts))

    def single(self, depth: int) -> FilterCombination:
        negations = 0
        while self.takes("not"):
            negations += 1
        part = self.named(depth)
        return FilterCombination("not", (part,)) if negations % 2 else part

    def named(self, depth: int) -> FilterCombination:
        if self.takes("("):
            inner = self.any_of(depth + 1)
            if not self.takes(")"):
                raise self.fault("a closing bracket is missing")
            return inner
        token = self.token
        if token.kind not in (TokenKind.NAME, TokenKind.TEXT):
            raise self.fault("the name of a filter is expected here")
        if token.text not in self.names:
            hints = nearest(token.text, self.names)
            raise ExpressionError.of(token, f"there is no filter {token.text[:40]!r}{did_you_mean(hints)}", hints)
        self.position += 1
        return FilterCombination("", (), token.text)


# Ready-made selections of threads: those that used a CPU, changed state or exchanged messages, and their servers.


_SEND, _RECEIVE, _REPLY, _ERROR = (wire.code(WireClass.COMM, event) for event in (0, 2, 10, 11))
_PAIR_LIMIT = 1 << 20


def used_cpu(trace: Trace) -> Bools:
    """Return which threads ran, idle threads left out; bool (threads,)."""
    rows = rows_of_codes(trace, THREAD_RUNNING)
    selected = np.zeros(len(trace.threads), np.bool_)
    selected[trace.events.thread[rows]] = True
    return _real(selected & ~idle_threads(trace))


def changed_state(trace: Trace) -> Bools:
    """Return which threads have several state events in the trace, bool (threads,); START logs one for each thread."""
    _, owner = state_rows(trace)
    return _real(np.bincount(owner, minlength=len(trace.threads)) > 1)


def did_ipc(trace: Trace) -> Bools:
    """Return which threads sent or received a message or pulse, or replied or got a reply; bool (threads,)."""
    rows = rows_of_codes(trace, *(wire.code(WireClass.COMM, event) for event in (0, 1, 2, 3, 10, 11)))
    selected = np.zeros(len(trace.threads), np.bool_)
    selected[trace.events.thread[rows]] = True
    results = rows_of_codes(trace, _REPLY, _ERROR)
    selected[thread_rows(trace, trace.payloads.column(results, 1), trace.payloads.column(results, 0))] = True
    return _real(selected)


def top_by_cpu(trace: Trace, count: int, cpu_cycles: NDArray[np.int64]) -> Bools:
    """Return the `count` threads that ran longest by `cpu_cycles` (threads,), without idle ones; bool (threads,)."""
    cycles = np.where(idle_threads(trace), 0, cpu_cycles)
    selected = np.zeros(len(cycles), np.bool_)
    order = np.argsort(-cycles, kind="stable")[: max(count, 0)]
    selected[order[cycles[order] > 0]] = True
    return selected


def message_graph(trace: Trace) -> NDArray[np.int64]:
    """Return which thread sends to which, int64 (pairs, 2): thread rows (client, server), each pair once.

    The server is the thread that received the message or replied to the client. If this thread is not known for a
    client and a process, all threads of the process that receive messages are servers, or all its threads if none does.
    """
    replies = rows_of_codes(trace, _REPLY, _ERROR)
    payloads, events = trace.payloads, trace.events
    clients = thread_rows(trace, payloads.column(replies, 1), payloads.column(replies, 0))
    answered = _unique_pairs(clients, events.thread[replies])
    sends = rows_of_codes(trace, _SEND)
    to_process = _unique_pairs(events.thread[sends], payloads.column(sends, 1).view(np.int32))
    receivers = np.unique(events.thread[rows_of_codes(trace, _RECEIVE)])
    received = link_table(trace, LinkKind.MESSAGE)
    direct = np.concatenate((answered, _unique_pairs(events.thread[received.from_row], events.thread[received.to_row])))
    edges = [direct]
    known = {(int(client), int(trace.threads.pid[server])) for client, server in direct if server > 0}
    for client, pid in to_process.tolist():
        if (client, pid) not in known:
            servers = np.flatnonzero(trace.threads.pid == pid)
            receiving = servers[np.isin(servers, receivers)]
            servers = receiving if len(receiving) else servers
            edges.append(np.column_stack((np.full(len(servers), client), servers)).astype(np.int64))
    pairs = np.concatenate(edges)
    return np.unique(pairs[(pairs > 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])], axis=0)


def message_family(trace: Trace, threads: Bools, graph: NDArray[np.int64] | None = None) -> Bools:
    """Return `threads` and all threads to which these send messages, directly or through others; bool (threads,).

    Args:
        trace: The trace.
        threads: bool (threads,), the senders to begin with.
        graph: Result of `message_graph`; None = it is computed.
    """
    pairs = message_graph(trace) if graph is None else graph
    selected = threads.copy()
    while True:
        fresh = pairs[selected[pairs[:, 0]] & ~selected[pairs[:, 1]], 1]
        if not len(fresh):
            return selected
        selected[fresh] = True


def _real(selected: Bools) -> Bools:
    selected[0] = False  # the row that means "not known"
    return selected


def _unique_pairs(left: NDArray[np.integer], right: NDArray[np.integer]) -> NDArray[np.int64]:
    pairs = np.unique(left.astype(np.int64) << 32 | right.astype(np.int64) & 0xFFFFFFFF)[:_PAIR_LIMIT]
    return np.column_stack((pairs >> 32, (pairs & 0xFFFFFFFF).astype(np.uint32).view(np.int32)))


PASS_LIMIT: Final = 50
_CACHE_LIMIT: Final = 16


class Effect(StrEnum):
    """The effect of a pass, a named filter, in the views."""

    COUNT = "count"  # nothing but its number of hits
    MARK = "mark"  # its events are highlighted
    DIM = "dim"  # all other events fade
    HIDE = "hide"  # all other events are left out


@dataclass(frozen=True, slots=True)
class Pass:
    """One named filter.

    Attributes:
        name: Its name, on its chip and in combinations; unique in its stack.
        rules: Rules as text; may be empty.
        expression: A condition; may be empty. If rules are given too, both must hold.
        is_inverted: True if the pass represents the events that do not fit. As with `not`, an event for which the
            condition is unknown passes neither the filter nor the inverted filter.
    """

    name: str
    rules: str = ""
    expression: str = ""
    effect: Effect = Effect.HIDE
    is_on: bool = True
    is_inverted: bool = False


@dataclass(frozen=True, slots=True)
class PassStack:
    """The passes (named filters) over one trace, in order, and how they are combined for search, export and statistics.

    The combination consists of names with and, or, not and brackets; a pass that is off is left out together with its
    `not`. Empty = all passes that are on must hold.
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
        """Return the stack with one more pass."""
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
        """Return the stack with another combination of its passes, such as `a and not b`.

        Raises ExpressionError if the combination is faulty, or contains a name that no pass has.
        """
        if combination.strip():
            parse_combination(combination, [item.name for item in self.passes])
        return replace(self, combination=combination.strip())


@dataclass(frozen=True, slots=True)
class PassResult:
    """Results of the passes.

    Attributes:
        counts: Hits of each pass, by its name; passes that are off are included.
        masks: By name of each pass, the events that it lets through, bool (events,).
        hits: bool (events,), events that fit the combination of the stack.
        hidden: bool (events,), events that some HIDE pass leaves out.
        dimmed: bool (events,), events that some DIM pass fades and no pass hides.
        marked: bool (events,), events that some MARK pass highlights and no pass hides.
    """

    counts: dict[str, int]
    masks: dict[str, Bools]
    hits: Bools
    hidden: Bools
    dimmed: Bools
    marked: Bools


class PassEvaluator:
    """Evaluates passes over one trace and keeps the latest results, so that a pass is switched off at no cost.

    Rules that call handlers are refused without `load_function`.
    """

    def __init__(
        self, trace: Trace, derived: DerivedColumns | None = None, load_function: FunctionLoader | None = None
    ) -> None:
        self._trace, self._derived, self._load = trace, derived or TraceDerivedColumns(trace), load_function
        self._cache: dict[tuple[str, str, bool], Bools] = {}
        self._limit = _CACHE_LIMIT
        self._is_cancelled: Callable[[], bool] = never

    def mask(self, item: Pass, negated: bool = False) -> Bools:
        """Return the events that fit a pass, or (`negated`) do not; bool (events,), shared. `is_inverted` is ignored.

        Raises RuleError if rules or expression are faulty, Cancelled if the task was cancelled.
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
            passes_condition = condition.mask(trace, rows, self._derived, self._is_cancelled)
            if rows is None:
                return passes_condition
            result[rows] = passes_condition
        return result

    # A filter may name a field whose description has been removed since: then no event has the field.

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
        """Return the `mask` of a pass, or of its negation if the pass is inverted or `negated`, but not both."""
        return self.mask(item, negated is not item.is_inverted)

    def result(self, stack: PassStack) -> PassResult:
        """Return the results of a stack of passes; RuleError if one of them, or the combination, is faulty."""
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

            combined = parse_combination(stack.combination, masks).mask(mask_of)
            return hits if combined is None else combined
        for item in active:
            hits &= masks[item.name]
        return hits


def never() -> bool:
    """Return False: the default of a function that tells whether a task is cancelled."""
    return False


def pass_limits(item: Pass, release: Release) -> tuple[str, ...]:
    """Return the parts of a filter that no capture can test, one sentence each without a full stop."""
    faults: list[Diagnostic] = []
    if item.rules.strip():
        faults += check_capture(check_rules(item.rules, release)[0], release)[0]
    if item.expression.strip():
        faults += check_condition(Expression(item.expression, release))
    return tuple(fault.message for fault in faults)


# Converts a selection in a view (check boxes, forms, conditions) to rules that capture it.
#
# Static rules are used as far as possible: classes and events, fast or wide, one process or one thread. If TraceEvent()
# has no switch for something, a condition is written, which a C program evaluates in an event handler.


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

    A code that does not occur in the trace is switched on if most codes of its class are selected, or, if no code of
    the class occurs, if most codes of the trace are selected.

    Args:
        trace: The trace.
        codes: bool (32768,), the selected codes.
        threads: bool (threads,), the selected threads; row 0 stands for unknown ones.
        stack: Filters of the view, of which only those that hide events count; None = none.
        is_wide: Codes that the user has set to be logged wide (True) or fast (False); others as in the trace.
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
    """Return the rule set that logs selected events, without pids; arguments as for `rules_of_selection`."""
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
    """Return the switch that decides whether events of a code are logged.

    For codes `inserted` by programs, bool (32768,), that is the switch of class USER with the number of the event.
    """
    return ExternalEvent(C.USER, event_of(code)) if inserted[code] else state.address(code)


def _switched_by(state: RuleSet, code: int, inserted: NDArray[np.bool_]) -> ExternalClass | None:
    """Return the class whose switches decide whether events of a code are logged; arguments as for `switch_of`."""
    external = switch_of(state, code, inserted).external
    if external is C.KERCALLINT:
        return C.KERCALLEXIT
    # 8.0 has only INT, not its parts.
    return C.INT if external in INT_CLASSES and external not in state.known else external


def _are_most(selected: NDArray[np.bool_]) -> bool:
    return 2 * int(np.count_nonzero(selected)) > len(selected)


def _switch(state: RuleSet, external: ExternalClass, events: list[ExternalEvent], mode: Mode) -> None:
    """Switch single events on or off in a rule set, after their whole class has been switched."""
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
    """Return lines of rules that select threads."""
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
    """Yield rules that let only the selected process, or the selected thread of a process, pass."""
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
    """Return the conditions of a stack as `WHERE` lines, and whether the lines are equivalent to its combination."""
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
    """Return an expression without line breaks and unnecessary blanks; texts in quotes stay as they are."""
    text, end = "", 0
    for token in tokens(expression):
        text += (" " if end < token.start else "") + expression[token.start : token.end]
        end = token.end
    if len(text.splitlines()) > 1:
        raise UsageError("a text with a line break in it cannot be in a rule")
    return text.strip()
