"""The state that TraceEvent() controls, handlers included, and whether one event passes it.

Source: description of the capture side, sections 3.4 and 3.5 (6.4 kernel); the static part is in `switches`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from satview.events.modes import Mode, mode_of
from satview.events.wire import CODE_COUNT, VTHREAD_OFFSET, WireClass, class_of, event_of
from satview.filters.derived_columns import DerivedColumns, TraceDerivedColumns, event_contexts
from satview.filters.event_context import EventContext
from satview.filters.external import OTHER_VECTOR
from satview.filters.rows import Bools, Rows, TableTest, chunks
from satview.filters.rules.handlers import DynamicRule, HandlerTable
from satview.filters.rules.switches import ENOTSUP, INT_BITS, C, Switches
from satview.store.trace import Trace

# Which events pass the switches, pids and tids of rules: tables once per rule set, then look-ups per chunk.


_MOST_SETTINGS: Final = 4  # different pids and tids up to which each is looked at by itself
_OFF, _ON, _BY_VECTOR, _BY_OWNER, _BY_PAYLOAD = range(5)


class StaticMask:
    """The switches, pids and tids of a rule set, made ready for one trace.

    Codes that do not occur in the trace are left out of the tables, so that a change of rules costs some hundred
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
        """Codes of this trace whose events pass whatever their thread, vector and payload are; bool (32768,)."""
        return np.asarray(self._kind == _ON)

    def of(self, rows: Rows) -> Bools:
        """Return which of some events pass, bool (len(rows),)."""
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
        """The vectorised form of `event_context.tested_thread` for events whose payload names the thread."""
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
    """Return whether the thread that is tested is in the payload, not beside the event."""
    if class_of(code) == WireClass.COMM:
        return event_of(code) in (2, 3, 4, 5, 6, 7, 8, 10, 11)
    return is_vthread and event_of(code) >= VTHREAD_OFFSET


def _absolute(rows: Rows, positions: NDArray[np.intp]) -> NDArray[np.integer]:
    """Return event rows from positions within a slice or an array of rows."""
    return positions + (rows.start or 0) if isinstance(rows, slice) else rows[positions]


# Rule sets over a whole trace: chunk by chunk, expressions vectorised, Python handlers in time order.


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
    parts = []
    for part in chunks(len(passes)):
        code = trace.events.code[part if rows is None else rows[part]]
        parts.append(np.flatnonzero(passes[part] & has_handler[code]) + part.start)
    all_positions = np.concatenate(parts) if parts else np.empty(0, np.intp)
    if len(all_positions):
        selected = all_positions if rows is None else rows[all_positions]
        passes[all_positions] = _Evaluation(rules, trace, selected, derived or TraceDerivedColumns(trace)).results()


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
        positions = np.flatnonzero(in_order)
        for i, context in zip(
            positions.tolist(), event_contexts(self._trace, self._rows[positions], self._derived), strict=True
        ):
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


class RuleSet(HandlerTable):
    """Exactly the state that TraceEvent() controls: the switches, and a limited number of dynamic rules.

    A view applies it to the events of a trace; the simulated kernel holds one and applies it to every event.

    `apply()` takes modes by number or name, as a simulated kernel or a rule file has them; every mode is also a
    method of its own. Both return 0 or the QNX error number the kernel would give.

    Args:
        release: Which numbers apply.
        handler_limit: Entries of the handler table.

    Attributes:
        class_handlers: Dynamic rule per class.
        event_handlers: Dynamic rule per (class, event number or vector).
    """

    def copy(self) -> RuleSet:
        """Return an independent rule set in the same state; handlers are shared."""
        twin = RuleSet(self.release, self.handler_limit)
        twin.set_like(self)
        twin.class_handlers, twin.event_handlers = dict(self.class_handlers), dict(self.event_handlers)
        return twin

    def state(self) -> tuple[object, ...]:
        """Return everything that decides what passes, comparable and hashable."""
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
            *arguments: What follows the mode: class, event, pid, tid as integers, a handler as a callable. More
                than the mode takes are ignored, as the `data` argument of handlers is.

        Returns:
            0, or a QNX error number; ENOTSUP for a mode that sets no filter or for missing arguments.
        """
        number = mode_of(mode)
        if number is None or number.kind != "filter" or len(arguments) < len(number.rule_arguments):
            return ENOTSUP
        method: Callable[..., int] = getattr(self, _METHODS[number])
        return method(*arguments[: len(number.rule_arguments)])

    def mask(
        self, trace: Trace, rows: NDArray[np.integer] | None = None, derived: DerivedColumns | None = None
    ) -> NDArray[np.bool_]:
        """Return which events of a trace pass, the same as `admits()` one by one in time order.

        Args:
            trace: The events.
            rows: Event rows, ascending; None = all.
            derived: Where durations and priorities come from; None = worked out from the trace.

        Returns:
            bool, shape (len(rows),) or (events,).
        """
        return ruleset_mask(self, trace, rows, derived)


_METHODS: Final = {
    Mode.ADDALLCLASSES: "add_all_classes",
    Mode.DELALLCLASSES: "del_all_classes",
    Mode.ADDCLASS: "add_class",
    Mode.DELCLASS: "del_class",
    Mode.ADDEVENT: "add_event",
    Mode.DELEVENT: "del_event",
    Mode.SETALLCLASSESFAST: "set_all_classes_fast",
    Mode.SETALLCLASSESWIDE: "set_all_classes_wide",
    Mode.SETCLASSFAST: "set_class_fast",
    Mode.SETCLASSWIDE: "set_class_wide",
    Mode.SETEVENTFAST: "set_event_fast",
    Mode.SETEVENTWIDE: "set_event_wide",
    Mode.SETCLASSPID: "set_class_pid",
    Mode.SETCLASSTID: "set_class_tid",
    Mode.SETEVENTPID: "set_event_pid",
    Mode.SETEVENTTID: "set_event_tid",
    Mode.CLRCLASSPID: "clr_class_pid",
    Mode.CLRCLASSTID: "clr_class_tid",
    Mode.CLREVENTPID: "clr_event_pid",
    Mode.CLREVENTTID: "clr_event_tid",
    Mode.ADDEVENTHANDLER: "add_event_handler",
    Mode.DELEVENTHANDLER: "del_event_handler",
    Mode.ADDCLASSEVHANDLER: "add_class_ev_handler",
    Mode.DELCLASSEVHANDLER: "del_class_ev_handler",
}
