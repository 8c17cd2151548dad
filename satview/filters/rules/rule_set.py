"""The state that TraceEvent() controls, handlers included, and the test whether an event passes it.

Source: description of the capture side, sections 3.4 and 3.5 (6.4 kernel); the static part is in `switches`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from satview.events import naming
from satview.events.catalogue import catalogue
from satview.events.modes import mode_of
from satview.events.spec import Release
from satview.events.wire import CODE_COUNT, VTHREAD_OFFSET, WireClass, class_of, event_of
from satview.filters.derived_columns import (
    Bools,
    DerivedColumns,
    Rows,
    TableTest,
    TraceDerivedColumns,
    chunks,
    event_contexts,
)
from satview.filters.external import (
    CALL_COUNT,
    COMM_NAMES,
    NOT_TESTED,
    OTHER_VECTOR,
    PROCESS_NAMES,
    STATE_COUNT,
    SYSTEM_COUNT,
    VECTOR_COUNT,
    EventContext,
    ExternalClass,
    ExternalEvent,
    has_event_masks,
    tested_thread,
)
from satview.filters.rules.handlers import HANDLER_CLASSES, HANDLER_LIMIT, DynamicRule, FunctionRule
from satview.filters.rules.switches import ALL_BITS, ENOTSUP, INT_BITS, OK, C, Switches
from satview.store.trace import Trace

# Which events pass the switches, pids and tids of rules: tables once per rule set, then look-ups per chunk.


_MOST_SETTINGS: Final = 4  # different pids and tids up to which each is tested separately
_OFF, _ON, _BY_VECTOR, _BY_OWNER, _BY_PAYLOAD = range(5)


class StaticMask:
    """The switches, pids and tids of a rule set, prepared for one trace.

    Codes that do not occur in the trace are left out of the tables, so that a change of rules takes about a hundred
    look-ups and not 32,768.
    """

    def __init__(self, switches: Switches, trace: Trace) -> None:
        self._trace = trace
        self._kind = np.zeros(CODE_COUNT, np.uint8)
        self._setting = np.zeros(CODE_COUNT, np.uint16)
        self._vector_word = np.zeros(CODE_COUNT, np.int8)
        self._by_vector = np.zeros((CODE_COUNT, 0), np.bool_)
        self._settings: list[tuple[int, int]] = [(0, 0)]
        vectors: dict[int, Bools] = {}
        for code in np.flatnonzero(trace.code_counts).tolist():
            self._add(switches, code, vectors)
        self._vectors = vectors
        occurs = trace.code_counts > 0
        self._on = TableTest(self._kind != _OFF, occurs)
        self._is_special = (self._kind == _BY_VECTOR) | (self._kind == _BY_PAYLOAD)
        self._special_test = TableTest(self._is_special, occurs)
        pid, tid = trace.threads.pid, trace.threads.tid
        self._thread_passes = np.array(
            [
                (pid == set_pid) & ((tid == set_tid) | (set_tid == 0)) if set_pid else np.ones(len(pid), np.bool_)
                for set_pid, set_tid in self._settings
            ]
        )
        by_owner = [np.where(self._kind == _BY_OWNER, self._setting == n, False) for n in range(len(self._settings))]
        self._owned = [
            (TableTest(codes, occurs), TableTest(self._thread_passes[n]))
            for n, codes in enumerate(by_owner)
            if codes.any()
        ]

    def _add(self, switches: Switches, code: int, vectors: dict[int, Bools]) -> None:
        address = switches.address(code)
        if address.vector_word >= 0 and address.external is not None:
            masks = switches.interrupts if address.external in (C.INTENTER, C.INTEXIT) else switches.interrupt_handlers
            table = masks & INT_BITS[address.external] != 0
            self._kind[code] = _ON if table.all() else _BY_VECTOR if table.any() else _OFF
            self._vector_word[code] = address.vector_word
            vectors[code] = table
            return
        if not switches.is_on(address, code):
            return
        setting = switches.thread_test(address)
        if not setting[0]:
            self._kind[code] = _ON
            return
        if setting not in self._settings:
            self._settings.append(setting)
        self._setting[code] = self._settings.index(setting)
        self._kind[code] = _BY_PAYLOAD if _names_its_thread(code, address.external is C.VTHREAD) else _BY_OWNER

    @property
    def codes(self) -> Bools:
        """Codes of this trace whose events always pass, with any thread, vector and payload; bool (32768,)."""
        return np.asarray(self._kind == _ON)

    def of(self, rows: Rows) -> Bools:
        """Return for each of the given events whether it passes, bool (len(rows),)."""
        events = self._trace.events
        code = events.code[rows]
        passes = self._on.of(code)
        if len(self._owned) <= _MOST_SETTINGS:
            for codes, threads in self._owned:
                concerned = codes.of(code)
                if concerned.any():
                    passes &= np.logical_or(~concerned, threads.of(events.thread[rows]))
        else:
            passes &= self._thread_passes[self._setting.take(code, mode="clip"), events.thread[rows]]
        if not self._special_test.is_false:
            special = np.flatnonzero(self._special_test.of(code))
            if len(special):
                passes[special] = self._special(_absolute(rows, special), code[special])
        return passes

    def _special(self, rows: NDArray[np.integer], code: NDArray[np.uint16]) -> Bools:
        kind = self._kind[code]
        passes = np.ones(len(rows), np.bool_)
        for selected, test in ((kind == _BY_VECTOR, self._vector_test), (kind == _BY_PAYLOAD, self._payload_test)):
            if selected.any():
                passes[selected] = test(rows[selected], code[selected])
        return passes

    def _vector_test(self, rows: NDArray[np.integer], code: NDArray[np.uint16]) -> Bools:
        passes = np.zeros(len(rows), np.bool_)
        for value in np.unique(code).tolist():
            selected = code == value
            vector = self._trace.payloads.column(rows[selected], int(self._vector_word[value]))
            passes[selected] = self._vectors[value][np.minimum(vector, OTHER_VECTOR)]
        return passes

    def _payload_test(self, rows: NDArray[np.integer], code: NDArray[np.uint16]) -> Bools:
        """Return which events pass the pid and tid test of the thread in their payload (`tested_thread`), bool (n,)."""
        events, payloads, threads = self._trace.events, self._trace.payloads, self._trace.threads
        word_0, word_1 = (payloads.column(rows, word).view(np.int32) for word in (0, 1))
        owner_pid, owner_tid = threads.pid[events.thread[rows]], threads.tid[events.thread[rows]]
        event = code & 0x3FF
        is_comm = code >> 10 == WireClass.COMM
        pid, tid = word_0.copy(), word_1.copy()  # VTHREAD
        answered = is_comm & (event >= 10)
        pid[answered], tid[answered] = word_1[answered], word_0[answered]
        target = is_comm & (event < 10)
        pid[target], tid[target] = word_1[target], -1
        own = is_comm & (event <= 3) & ((word_1 == -1) | (word_1 == owner_pid))
        pid[own], tid[own] = owner_pid[own], owner_tid[own]
        setting = np.array(self._settings, np.int32)[self._setting[code]]
        return np.asarray((pid == setting[:, 0]) & ((setting[:, 1] == 0) | (tid == -1) | (tid == setting[:, 1])))


def _names_its_thread(code: int, is_vthread: bool) -> bool:
    """Return whether pid and tid rules test a thread that the payload names, instead of the thread of the event."""
    if class_of(code) == WireClass.COMM:
        return event_of(code) in (2, 3, 4, 5, 6, 7, 8, 10, 11)
    return is_vthread and event_of(code) >= VTHREAD_OFFSET


def _absolute(rows: Rows, positions: NDArray[np.intp]) -> NDArray[np.integer]:
    """Return the event rows at `positions` within `rows`, a slice or an array."""
    return positions + (rows.start or 0) if isinstance(rows, slice) else rows[positions]


# Rule sets over a whole trace: chunk by chunk, expressions vectorised, Python handlers in time order.


@runtime_checkable
class VectorRule(Protocol):
    """A dynamic rule that has no state of its own and can test many events at once."""

    def mask(
        self, trace: Trace, rows: NDArray[np.integer] | None = None, derived: DerivedColumns | None = None
    ) -> Bools:
        """Return which events pass, bool (len(rows),) or (events,)."""


def _call_handlers(
    rules: RuleSet, trace: Trace, rows: NDArray[np.integer] | None, passes: Bools, derived: DerivedColumns | None
) -> None:
    """Clear `passes` for the events that the dynamic rule of their class or event suppresses."""
    has_handler = rules.codes_with_handler(np.flatnonzero(trace.code_counts))
    parts = []
    for part in chunks(len(passes)):
        code = trace.events.code[part if rows is None else rows[part]]
        parts.append(np.flatnonzero(passes[part] & has_handler[code]) + part.start)
    all_positions = np.concatenate(parts) if parts else np.empty(0, np.intp)
    if len(all_positions):
        selected = all_positions if rows is None else rows[all_positions]
        passes[all_positions] = _Evaluation(rules, trace, selected, derived or TraceDerivedColumns(trace)).results()


class _Evaluation:
    """Evaluates the dynamic rules for some events: stateless rules for all at once, Python handlers event by event."""

    def __init__(self, rules: RuleSet, trace: Trace, rows: NDArray[np.integer], derived: DerivedColumns) -> None:
        self._rules, self._trace, self._rows, self._derived = rules, trace, rows, derived
        self._list: list[DynamicRule | None] = [None]
        self._of_class = np.zeros(len(rows), np.int16)
        self._of_event = np.zeros(len(rows), np.int16)
        codes = trace.events.code[rows]
        for value in np.unique(codes).tolist():
            self._assign(value, np.flatnonzero(codes == value))

    def _assign(self, code: int, positions: NDArray[np.intp]) -> None:
        address = self._rules.address(code)
        if address.vector_word < 0:
            groups = [(positions, ())]
        else:
            vectors = self._trace.payloads.column(self._rows[positions], address.vector_word)
            groups = [(positions[vectors == v], (*(0,) * address.vector_word, v)) for v in np.unique(vectors).tolist()]
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
        stateless: dict[int, Bools] = {}
        dynamic: Sequence[object] = self._list[1:]
        for number, rule in enumerate(dynamic, 1):
            if not isinstance(rule, VectorRule):
                needs_order[number] = True
                continue
            stateless[number] = np.ones(len(self._rows), np.bool_)
            requested = np.flatnonzero((self._of_class == number) | (self._of_event == number))
            stateless[number][requested] = rule.mask(self._trace, self._rows[requested], self._derived)
            verdict &= stateless[number]
        in_order = needs_order[self._of_class] | needs_order[self._of_event]
        if in_order.any():
            self._call_in_order(verdict, in_order, stateless)
        return verdict

    def _call_in_order(self, verdict: Bools, in_order: Bools, stateless: dict[int, Bools]) -> None:
        """Call Python handlers event by event, as their state depends on the order, and store their results."""
        rules = self._rules
        rules.forget_calls()
        for file in dict.fromkeys(rule.file for rule in self._list if isinstance(rule, FunctionRule)):
            file.restart()
        if C.KERCALLENTER in rules.class_handlers:  # its result may let the exit pass unasked
            code = self._trace.events.code[self._rows]
            in_order |= (code >> 10 == 2) & (code >> 7 & 3 != 0)
        positions = np.flatnonzero(in_order)
        for i, context in zip(
            positions.tolist(), event_contexts(self._trace, self._rows[positions], self._derived), strict=True
        ):
            of_class, of_event = (
                _CONSTANT[bool(stateless[number][i])] if number in stateless else self._list[number]
                for number in (int(self._of_class[i]), int(self._of_event[i]))
            )
            verdict[i] = rules.call(rules.address(context.code), context, of_class, of_event)
        rules.forget_calls()


_CONSTANT: Final[tuple[DynamicRule, DynamicRule]] = (lambda _: 0, lambda _: 1)
PASS_EXIT_TOO: Final = 2  # a KERCALLENTER class handler's result: the exit passes unasked
_CLASS_HANDLER_PARTS: Final = {C.KERCALL: (C.KERCALLENTER, C.KERCALLEXIT), C.INT: (C.INTENTER, C.INTEXIT)}
_CALL_PARTS: Final = (C.KERCALLENTER, C.KERCALLEXIT, C.KERCALLINT)
_Plan = tuple[ExternalEvent, int, int, DynamicRule | None, DynamicRule | None]


class RuleSet(Switches):
    """Exactly the state that TraceEvent() controls: the switches, and a limited number of dynamic rules.

    A view applies a rule set to the events of a trace; the simulated kernel applies its own to every event.

    `apply()` takes a mode by number or name, for a simulated kernel and for rule files; each mode is also a method of
    its own. `apply()` and these methods return 0, or the QNX error number that the kernel would return.

    Args:
        release: Release that the numbers are for.
        handler_limit: Entries of the handler table.

    Attributes:
        class_handlers: Dynamic rule per class.
        event_handlers: Dynamic rule per (class, event number or vector).
    """

    def __init__(self, release: Release = Release.QNX_6, handler_limit: int = HANDLER_LIMIT) -> None:
        super().__init__(release)
        self.handler_limit = handler_limit
        self.class_handlers: dict[ExternalClass, DynamicRule] = {}
        self.event_handlers: dict[tuple[ExternalClass, int], DynamicRule] = {}
        self._exit_passes: set[tuple[int, int]] = set()
        self._plans: dict[int, _Plan] = {}
        self._planned_version = -1

    def copy(self) -> RuleSet:
        """Return an independent rule set in the same state; handlers are shared."""
        twin = RuleSet(self.release, self.handler_limit)
        twin.set_like(self)
        twin.class_handlers, twin.event_handlers = dict(self.class_handlers), dict(self.event_handlers)
        return twin

    def state(self) -> tuple[object, ...]:
        """Return all settings that decide which events pass, as a tuple that can be compared and hashed."""
        return (
            *super().state(),
            *sorted((c, -1, id(rule)) for c, rule in self.class_handlers.items()),
            *sorted((c, e, id(rule)) for (c, e), rule in self.event_handlers.items()),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RuleSet) and self.state() == other.state()

    __hash__ = None  # type: ignore[assignment]  # mutable

    # ---- entry by mode -------------------------------------------------------------------------------------------

    def apply(self, mode: int | str, *arguments: object) -> int:
        """Carry out one mode of TraceEvent().

        Args:
            mode: Number (the argument count in its top bits is ignored) or name, `_NTO_TRACE_` in front or not.
            *arguments: Arguments after the mode: class, event, pid, tid as integers, a handler as a callable. Excess
                arguments are ignored, such as the `data` argument of handlers.

        Returns:
            0, or a QNX error number; ENOTSUP for a mode that sets no filter or for missing arguments.
        """
        number = mode_of(mode)
        if number is None or number.kind != "filter" or len(arguments) < len(number.rule_arguments):
            return ENOTSUP
        method: Callable[..., int] = getattr(self, _METHODS[number.name])
        return method(*arguments[: len(number.rule_arguments)])

    def mask(
        self, trace: Trace, rows: NDArray[np.integer] | None = None, derived: DerivedColumns | None = None
    ) -> NDArray[np.bool_]:
        """Return which events of a trace pass; the same result as `admits()` called for each event in time order.

        Args:
            trace: The trace.
            rows: Event rows, ascending; None = all.
            derived: Source of durations and priorities; None = computed from the trace.

        Returns:
            bool, shape (len(rows),) or (events,).
        """
        static = StaticMask(self, trace)
        passes = np.empty(len(trace.events) if rows is None else len(rows), np.bool_)
        for part in chunks(len(passes)):
            passes[part] = static.of(part if rows is None else rows[part])
        if self.class_handlers or self.event_handlers:
            _call_handlers(self, trace, rows, passes, derived)
        return passes

    # ---- handlers ------------------------------------------------------------------------------------------------

    def add_event_handler(self, external: int, event: int, handler: DynamicRule) -> int:
        """Attach a dynamic rule to one event; an earlier rule of that event is replaced."""
        if external == C.EMPTY:
            return OK
        key = self._handler_key(external, event)
        if key is None or (key not in self.event_handlers and self._handler_count() >= self.handler_limit):
            return ENOTSUP
        self.event_handlers[key] = handler
        return self._changed()

    def del_event_handler(self, external: int, event: int) -> int:
        """Detach the dynamic rule of one event; it is no error if there is none."""
        if external == C.EMPTY:
            return OK
        key = self._handler_key(external, event)
        if key is None:
            return ENOTSUP
        self.event_handlers.pop(key, None)
        return self._changed()

    def add_class_ev_handler(self, external: int, handler: DynamicRule) -> int:
        """Attach a dynamic rule to a class; it is called before the rule of the event."""
        if external == C.EMPTY:
            return OK
        parts = self._handler_parts(external)
        new = [part for part in parts if part not in self.class_handlers]
        if not parts or self._handler_count() + len(new) > self.handler_limit:
            return ENOTSUP
        self.class_handlers.update(dict.fromkeys(parts, handler))
        return self._changed()

    def del_class_ev_handler(self, external: int) -> int:
        """Detach the dynamic rule of a class; it is no error if there is none."""
        if external == C.EMPTY:
            return OK
        parts = self._handler_parts(external)
        for part in parts:
            self.class_handlers.pop(part, None)
        return self._changed() if parts else ENOTSUP

    def replace_handlers(self, change: Callable[[DynamicRule], DynamicRule]) -> None:
        """Replace each dynamic rule by the result of `change`."""
        self.class_handlers = {position: change(rule) for position, rule in self.class_handlers.items()}
        self.event_handlers = {position: change(rule) for position, rule in self.event_handlers.items()}
        self._changed()

    def remove_handlers(self, is_gone: Callable[[DynamicRule], bool]) -> None:
        """Detach every dynamic rule for which `is_gone` returns true, such as those of a process that has ended."""
        self.class_handlers = {position: rule for position, rule in self.class_handlers.items() if not is_gone(rule)}
        self.event_handlers = {position: rule for position, rule in self.event_handlers.items() if not is_gone(rule)}
        self._changed()

    def codes_at(self, external: int | None = None, event: int | None = None) -> NDArray[np.bool_]:
        """Return the codes that are on and whose events would call a handler of a class or event, bool (32768,).

        Args:
            external: The class; None = all classes, even those that take no handler.
            event: The event argument of `add_event_handler`; None = the whole class.
        """
        result = np.zeros(CODE_COUNT, np.bool_)
        parts = self._handler_parts(external) if external is not None else None
        key = self._handler_key(external, event) if external is not None and event is not None else None
        for code in catalogue(self.release).codes():
            address = self.address(code)
            if parts is not None and address.external not in parts:
                continue
            if address.vector_word >= 0:
                vectors = range(OTHER_VECTOR + 1) if key is None else (key[1],)
                result[code] = any(
                    self.is_on(address, code, (*(0,) * address.vector_word, vector)) for vector in vectors
                )
            elif key is None or key[1] == address.number:
                result[code] = self.is_on(address, code)
        return result

    def _handler_count(self) -> int:
        return len(self.class_handlers) + len(self.event_handlers)

    def _handler_parts(self, external: int) -> tuple[ExternalClass, ...]:
        if external not in self.known:
            # 8.0 has only INT, but the slots are kept for its parts.
            return ()
        external = ExternalClass(external)
        return _CLASS_HANDLER_PARTS.get(external, (external,) if external in HANDLER_CLASSES else ())

    def _handler_key(self, external: int, event: int) -> tuple[ExternalClass, int] | None:
        if external not in self.known or external not in HANDLER_CLASSES:
            return None
        external = ExternalClass(external)
        if external is C.CONTROL:
            return (external, 1) if event == 1 else None
        if has_event_masks(external, self.release):
            event = event.bit_length() - 1 if 0 < event <= ALL_BITS else -1
            limit = len(PROCESS_NAMES) if external is C.PROCESS else 31
            if external is not C.PROCESS and event not in naming.state_numbers(self.release).values():
                return None
        else:
            limit = {
                C.KERCALLENTER: CALL_COUNT,
                C.KERCALLEXIT: CALL_COUNT,
                C.INTENTER: VECTOR_COUNT,
                C.INTEXIT: VECTOR_COUNT,
                C.THREAD: STATE_COUNT,
                C.COMM: len(COMM_NAMES),
                C.SYSTEM: SYSTEM_COUNT[self.release],
            }[external]
        return (external, event) if 0 <= event < limit else None

    # ---- one event -----------------------------------------------------------------------------------------------

    def admits(self, context: EventContext) -> bool:
        """Return whether one event passes: its switch, then pid and tid, then the class's and the event's handler.

        Handlers keep state of their own, so call this once per event, in the order of the events.
        """
        return self.is_on(self.address(context.code), context.code, context.words) and self.passes_tests(context)

    def passes_tests(self, context: EventContext) -> bool:
        """Return whether an event that is switched on passes: pid and tid, then the class's and the event's handler."""
        known = self.passes_thread(context.code, tested_thread(context, self.release))
        return self.call_handlers(context) if known is None else known

    def call_handlers(self, context: EventContext) -> bool:
        """Call the class's and the event's handler for an event whose pid and tid pass; return whether it passes."""
        address, _, _, of_class, of_event = self._plan_of(context.code)
        if address.vector_word >= 0:
            return self.call(address, context, *self.handlers_of(address, context.words))
        return self.call(address, context, of_class, of_event)

    def passes_thread(self, event_code: int, actual: tuple[int, int]) -> bool | None:
        """Return whether an event's pid and tid pass the stored ones; None if they do and a handler must still decide.

        Args:
            event_code: Code of the event.
            actual: The pid and tid that are compared, from `tested_thread`.
        """
        address, pid, tid, of_class, of_event = self._plan_of(event_code)
        if pid and (pid != actual[0] or (tid and actual[1] not in (tid, NOT_TESTED))):
            return False
        if of_class is not None or of_event is not None or address.vector_word >= 0:
            return None
        return None if self._follows_calls(address.external) else True

    def _follows_calls(self, external: ExternalClass | None) -> bool:
        """Return whether `call` must see all events of a class: a handler of KERCALLENTER may let the exit pass."""
        return external in _CALL_PARTS and C.KERCALLENTER in self.class_handlers

    def codes_with_handler(self, codes: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return the codes for whose events `call` must be called, bool (32768,).

        Args:
            codes: The codes that occur.
        """
        table = np.zeros(CODE_COUNT, np.bool_)
        of_events = {external for external, _ in self.event_handlers}
        for code in codes.tolist():
            external = self.address(code).external
            if external is not C.KERCALLINT:
                table[code] = external in self.class_handlers or external in of_events
            table[code] |= self._follows_calls(external)
        return table

    def _plan_of(self, event_code: int) -> _Plan:
        plan = self._plans.get(event_code) if self._planned_version == self.version else None
        return plan if plan is not None else self._plan(event_code)

    def _plan(self, event_code: int) -> _Plan:
        """Return the tests and handlers for the events of a code; cached until something changes."""
        if self._planned_version != self.version:
            self._planned_version, self._plans = self.version, {}
        address = self.address(event_code)
        handlers = self.handlers_of(address, ()) if address.vector_word < 0 else (None, None)
        plan = self._plans[event_code] = (address, *self.thread_test(address), *handlers)
        return plan

    def is_tested(self, event_code: int) -> bool:
        """Return whether a pid or tid is checked, or a handler called, before an event is logged."""
        address = self.address(event_code)
        external = address.external
        if external is None:
            return False
        if self._follows_calls(external) or (external is not C.KERCALLINT and external in self.class_handlers):
            return True
        if any(position[0] is external for position in self.event_handlers):
            return True
        return bool(self.thread_test(address)[0])

    def handlers_of(
        self, address: ExternalEvent, words: tuple[int, ...]
    ) -> tuple[DynamicRule | None, DynamicRule | None]:
        """Return two dynamic rules for one event: that of its class, and that of the event itself; None = none.

        Args:
            address: Class and number of the event for TraceEvent().
            words: Payload words of the event, which may hold the interrupt vector.
        """
        external, number = address.external, address.number
        if external is None or external is C.KERCALLINT:  # the interrupted form has no handler of its own
            return None, None
        if address.vector_word >= 0:
            number = words[address.vector_word] if address.vector_word < len(words) else 0
        return self.class_handlers.get(external), self.event_handlers.get((external, number))

    def call(
        self, address: ExternalEvent, context: EventContext, of_class: DynamicRule | None, of_event: DynamicRule | None
    ) -> bool:
        """Return whether an event passes two rules as in the kernel: `of_event` is called only if `of_class` passes it.

        If the class rule of KERCALLENTER returns 2 and the entry has no event rule, the exit of this kernel call passes
        and no handler is called for it.

        Args:
            address: Class and number of the event for TraceEvent().
            context: The event.
            of_class: Dynamic rule of its class; None = none.
            of_event: Dynamic rule of the event; None = none.
        """
        if self._exit_passes and address.external in _CALL_PARTS and (context.pid, context.tid) in self._exit_passes:
            # By an entry too: the exit of the call before was off.
            self._exit_passes.discard((context.pid, context.tid))
            if address.external is C.KERCALLEXIT:
                return True
        if of_class is not None:
            result = of_class(context)
            if not result:
                return False
            if address.external is C.KERCALLENTER and of_event is None and result == PASS_EXIT_TOO:
                self._exit_passes.add((context.pid, context.tid))
        return of_event is None or bool(of_event(context))

    def forget_calls(self) -> None:
        """Forget the kernel calls that wait for their exit, before a second pass over the same events."""
        self._exit_passes.clear()


_METHODS: Final = {name.replace("_", "").upper(): name for name in dir(RuleSet) if not name.startswith("_")}
