"""Estimates what a capture with rules would have logged: events, slots, bytes per second, and the losses per view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.base.safe_text import counted
from satview.base.threads import Once
from satview.base.time import NS_PER_S, TimeWindow
from satview.events.catalogue import BUFFER_SIZES, BufferSizes
from satview.events.layout import logged_list
from satview.events.spec import Payload
from satview.events.states import NOT_A_STATE
from satview.events.user_events import UserEvent
from satview.events.variants import EXITS, WORD_MASK
from satview.events.wire import (
    CLASS_SHIFT,
    CODE_COUNT,
    CONTROL_BUFFER,
    CONTROL_BUFFER_END,
    CONTROL_TIME,
    SLOT_BYTES,
    THREAD_CREATE,
    THREAD_RUNNING,
    WireClass,
    code,
)
from satview.filters.derived_columns import Bools, DerivedColumns, TraceDerivedColumns
from satview.filters.diagnostics import RuleError
from satview.filters.expressions import nodes
from satview.filters.expressions.compiled import RowColumns
from satview.filters.expressions.expression import Expression
from satview.filters.expressions.reach import codes_that_fit
from satview.filters.rules.building import BuiltRules
from satview.filters.rules.capturing import AllOf, for_capture
from satview.filters.rules.fastwide import as_logged, has_two_forms, inserted_events, passes_inserted, passing_in_view
from satview.filters.rules.handlers import DynamicRule
from satview.filters.rules.rule_set import RuleSet
from satview.filters.rules.switches import C
from satview.store.axis import of_logger
from satview.store.time_ranges import losses
from satview.store.trace import LOGGER, PayloadSource, Trace

# A trace as it would have been logged in another form: every event fast or wide as a rule set requests.


_COUNT_BITS = 16
_SLOT_WORDS = 2
Words = tuple[int, ...]  # of the payload in the new form: number of the word in the old one from 1, 0 = zero


class _LoggedPayloads(PayloadSource):
    """The payloads of a trace as if every event had been logged fast or wide as requested.

    `form` is the index of each event in `layouts`, words of each form, uint16 (events,); 0 = unchanged.
    """

    def __init__(self, source: PayloadSource, form: NDArray[np.uint16], layouts: list[Words], byte_order: str) -> None:
        self._source, self._form, self._layouts, self._byte_order = source, form, layouts, byte_order

    @property
    def described(self) -> dict[int, UserEvent]:
        """Descriptions of events, by code."""
        return self._source.described

    @property
    def check(self) -> Callable[[], None]:
        return self._source.check

    def close(self) -> None:
        self._source.close()

    def tolerate_loss(self) -> None:
        self._source.tolerate_loss()

    def words(self, event: int) -> NDArray[np.uint32]:
        words = self._source.words(event)
        if not self._form[event]:
            return words
        laid_out = np.concatenate((np.zeros(1, np.uint32), words))[list(self._layouts[self._form[event]])]
        return np.append(laid_out, np.zeros(_padded(len(laid_out)) - len(laid_out), np.uint32)).astype(np.uint32)

    def raw(self, event: int) -> bytes:
        if not self._form[event]:
            return self._source.raw(event)
        return self.words(event).astype("<u4" if self._byte_order == "little" else ">u4").tobytes()

    def decode(self, event: int, most: int | None = None) -> Payload:
        return self._source.decode(event, most)

    def column(self, events: NDArray[np.integer], word: int) -> NDArray[np.uint32]:
        form = self._form[events]
        result = np.zeros(len(events), np.uint32)
        for number in np.unique(form).tolist():
            of_form = np.flatnonzero(form == number)
            layout = self._layouts[number]
            old = word + 1 if not number else layout[word] if word < len(layout) else 0
            if old:
                result[of_form] = self._source.column(events[of_form], old - 1)
        return result

    def reading_ahead(self, events: NDArray[np.uint32]) -> AbstractContextManager[None]:
        return self._source.reading_ahead(events)

    def headers(self) -> NDArray[np.uint32] | None:
        return self._source.headers()

    def word_counts(self, events: NDArray[np.integer]) -> NDArray[np.int64]:
        form = self._form[events]
        counts: NDArray[np.int64] = np.array([_padded(len(layout)) for layout in self._layouts], np.int64)[form]
        unchanged = np.flatnonzero(form == 0)
        counts[unchanged] = self._source.word_counts(events[unchanged])
        return counts


@dataclass(frozen=True, slots=True)
class LoggedTrace:
    """A trace as if every event had been logged fast or wide as requested; if not exact, its slots are a lower bound.

    `missing` are the codes of events for which the trace lacks words of the requested form, bool (32768,).
    """

    trace: Trace
    is_exact: bool
    missing: NDArray[np.bool_]


def as_logged_trace(trace: Trace, is_wide: Callable[[int], bool]) -> LoggedTrace:
    """Return a trace with every event in the form that `is_wide` requests for its code.

    Rows, times and threads are those of the trace; codes lose the 64-bit flag if the fast form has none. A word that
    only the fast form has reads 0. Events that programs insert stay as they are; if the kernel may have logged an event
    as well, the shorter form is counted.
    """
    events = trace.events
    keys = events.code.astype(np.int64) << _COUNT_BITS | np.minimum(events.slot_count, (1 << _COUNT_BITS) - 1)
    form = np.zeros(len(events), np.uint16)
    layouts: list[Words] = [()]
    code, slot_count = events.code.copy(), events.slot_count.copy()
    is_exact, missing = True, np.zeros(CODE_COUNT, np.bool_)
    is_inserted, may_be_inserted = inserted_events(trace)
    for key in np.unique(keys).tolist():
        old, count = key >> _COUNT_BITS, _SLOT_WORDS * (key & (1 << _COUNT_BITS) - 1)
        rows = np.flatnonzero((keys == key) & ~is_inserted)
        if not len(rows):
            continue
        spec = trace.catalogue.spec(old)
        wide = is_wide(old)
        logged = as_logged(spec, range(1, count + 1), trace.release, wide=wide, byte_order=trace.byte_order)
        words = logged.words
        if logged.form == "raw" and not spec.is_known:
            continue
        is_missing = bool(logged.missing)
        is_unknown = logged.form == "raw" and has_two_forms(old, trace.release)
        is_exact &= not is_unknown and not (is_missing and wide)
        if logged.words == tuple(range(1, count + 1)):
            continue
        rows = rows[~_has_failed(trace, rows, old)]
        is_unsure = may_be_inserted[rows]
        slot_count[rows] = np.where(is_unsure, min(logged.slots, count // _SLOT_WORDS), logged.slots)
        is_exact &= not is_unsure.any() or logged.slots == count // _SLOT_WORDS
        missing[logged_list(trace.release, old, is_wide=wide)[0]] |= is_missing
        missing[old] |= is_missing
        if is_missing and wide:
            continue  # it stays as it is, but takes the slots of the other form
        form[rows] = len(layouts)
        layouts.append(tuple(word or 0 for word in words))
        code[rows] = logged_list(trace.release, old, is_wide=wide)[0]
    payloads = _LoggedPayloads(trace.payloads, form, layouts, trace.byte_order)
    columns = replace(events, code=code, slot_count=slot_count)
    return LoggedTrace(replace(trace, events=columns, payloads=payloads, _cached=Once()), is_exact, missing)


def _has_failed(trace: Trace, rows: NDArray[np.intp], code: int) -> NDArray[np.bool_]:
    """Return which exits report an error, bool (len(rows),): such exits are the same in both forms."""
    if not EXITS[code]:
        return np.zeros(len(rows), np.bool_)
    return RowColumns(trace, TraceDerivedColumns(trace), rows).failed()


def _padded(count: int) -> int:
    return max(_SLOT_WORDS, count + count % _SLOT_WORDS)


# How selected events would fill kernel buffers, and the BUFFER, BUFFER_END and TIME events that the kernel adds.


_ENTERS: Final = [code(WireClass.INT, event) for event in (1, 5)]
_LEAVES: Final = code(WireClass.INT, 2)


@dataclass(slots=True)
class ControlEvents:
    """Numbers of control events that the kernel adds; each takes one slot."""

    buffers: int = 0
    buffer_ends: int = 0
    times: int = 0

    @property
    def count(self) -> int:
        """Total number of these events."""
        return self.buffers + self.buffer_ends + self.times


def outer_interrupts(codes: NDArray[np.uint16]) -> NDArray[np.int32]:
    """Return the number, from 1, of the outermost interrupt that the kernel is in at each event; 0 = none; int32 (n,).

    Entry and exit are part of an interrupt.

    Args:
        codes: (n,), all events of a trace in time order, those that are not selected included.
    """
    leaves = codes == _LEAVES
    depth = np.cumsum(np.isin(codes, _ENTERS).astype(np.int32) - leaves.astype(np.int32), dtype=np.int32)
    is_inside = depth + leaves > 0
    begins = is_inside & (np.concatenate(([0], depth[:-1])) <= 0)
    return np.asarray(np.where(is_inside, np.cumsum(begins, dtype=np.int32), 0))


def control_events(logged: Trace, passes: Bools, logs_time: bool) -> ControlEvents:
    """Return the numbers of control events that the kernel adds to the events that pass, bool (events,).

    `logged` has events in the form that the rules request; `logs_time` is whether TIME passes the filters. A buffer
    that gets full in an interrupt is closed after its exit.
    """
    events, sizes, control = logged.events, BUFFER_SIZES[logged.release], ControlEvents()
    interrupts, selected = outer_interrupts(events.code), np.flatnonzero(passes)
    cpus = events.cpu[selected]
    for rows in [selected[cpus == cpu] for cpu in np.unique(cpus)] if sizes.has_end else [selected]:
        stamps, slots = events.time_cycles[rows] & WORD_MASK, events.slot_count[rows].astype(np.int64)
        _fill(sizes, events.cpu[rows], stamps, slots, interrupts[rows], logs_time, control)
    return control


def _fill(
    sizes: BufferSizes,
    cpus: NDArray[np.uint8],
    stamps: NDArray[np.int64],
    slots: NDArray[np.int64],
    interrupts: NDArray[np.int32],
    logs_time: bool,
    control: ControlEvents,
) -> None:
    """Simulate how the buffers of one ring are filled, and add the control events that this causes to `control`."""
    rollovers = _rollovers(cpus, stamps)
    start, left = 0, 0  # next event, and slots of the event before it that did not fit in their buffer
    while start < len(cpus) or left:
        control.buffers += 1
        control.buffer_ends += sizes.has_end
        room = sizes.mark_linear - 1 - left
        part = slice(start, start + sizes.slots)
        has_time = rollovers[part].copy()
        has_time[np.unique(cpus[part], return_index=True)[1]] = True
        used = np.cumsum(slots[part] + has_time * logs_time)
        end = int(np.searchsorted(used, room))
        if end == len(used):  # the last buffer
            control.times += int(has_time.sum()) * logs_time
            return
        number = interrupts[start + end]
        if number:
            while end + 1 < len(used) and interrupts[start + end + 1] == number:
                end += 1
            left = 0
        else:
            left = int(used[end]) - room
        control.times += int(has_time[: end + 1].sum()) * logs_time
        if not number and left >= slots[start + end]:  # its TIME was the last that fitted
            left, end = 0, end - 1
        start += end + 1


def _rollovers(cpus: NDArray[np.uint8], stamps: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each event whether its stamp is lower than the previous stamp of the same CPU, bool (n,)."""
    order = np.argsort(cpus, kind="stable")
    lower = np.zeros(len(cpus), np.bool_)
    is_same = cpus[order][1:] == cpus[order][:-1]
    lower[order[1:]] = is_same & (stamps[order][1:] < stamps[order][:-1])
    return lower


# The reason why a filter selects nothing: an empty answer must not look like an answer about a quiet system.


_NAMES_MOST: Final = 4


def why_nothing(
    built: BuiltRules, conditions: Sequence[Expression], trace: Trace, rows: slice, derived: DerivedColumns
) -> str:
    """Return why no event of a part of a trace passes rules and other conditions, a sentence without a full stop."""
    if not len(trace.events):
        return "the trace has no events"
    if rows.start >= rows.stop:
        return "no event is in the range"
    code = trace.events.code[rows]
    passes = passing_in_view(built.state, trace, derived)[rows]
    if not passes.any():
        return f"the rules leave out all that is there, events of {_listed(_classes(trace, code)) or 'CONTROL'}"
    for condition in (*built.conditions, *conditions):
        codes = codes_that_fit(condition.tree)
        if not codes[code].any():
            return f"`{condition.text}` needs {_needed(trace, codes)}, of which there are none"
        if not codes[code[passes]].any():
            return f"`{condition.text}` needs events that the rules leave out"
        if not condition.mask(trace, np.arange(rows.start, rows.stop), derived).any():
            none = f"`{condition.text}` holds for none of {counted(len(code), 'event')}"
            is_unknown = _reads_priority(condition.tree) and not TraceDerivedColumns(trace).has_priorities()
            return none + (": the trace has no priorities, which wide events of THREAD show" if is_unknown else "")
    return "each rule and condition lets some events pass, but none of them passes all"


def _reads_priority(node: nodes.Node) -> bool:
    """Return whether an expression reads the priority of a thread."""
    is_priority = isinstance(node, nodes.EventField) and node.name == "priority"
    return is_priority or any(map(_reads_priority, nodes.children(node)))


def _needed(trace: Trace, codes: Bools) -> str:
    """Return the names of events, or of their classes if there are many events."""
    known = [code for code in trace.catalogue.codes() if codes[code]]
    if not known:
        return "codes of no known event"
    names = sorted({trace.catalogue.name(code) for code in known})
    return f"events of {_listed(_classes(trace, np.array(known)))}" if len(names) > _NAMES_MOST else _listed(names)


def _classes(trace: Trace, code: NDArray[np.integer]) -> list[str]:
    """Return the names of the classes of some codes, without the class of control events."""
    codes = np.unique(code)
    codes = codes[codes >> CLASS_SHIFT != WireClass.CONTROL]
    return [trace.catalogue.classes[index].name for index in np.unique(trace.catalogue.class_index_of_code[codes])]


def _listed(names: Sequence[str]) -> str:
    more = ", ..." if len(names) > _NAMES_MOST else ""
    return ", ".join(names[:_NAMES_MOST]) + more


_Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ViewLoss:
    """The number of events that one view, such as the CPU lanes, would lose, and the consequence as a sentence."""

    view: str
    lost: int
    total: int
    text: str


@dataclass(frozen=True, slots=True)
class WouldCapture:
    """The events that a capture of the same run would have logged.

    Attributes:
        events, total_events: Number of events certainly logged, and of all events in the trace or window.
        undecided: Number of further events that may have been logged: the trace lacks the values that decide this.
        slots, total_slots: Number of slots that these events take in the form that the rules request, and of all slots
            in the trace or window.
        is_exact: Whether the capture would have exactly these events and slots; if False, at least these.
        bytes_per_s, total_bytes_per_s: Data rate of the capture, and of the trace.
        by_class: Numbers of logged events and of all events, by printed class.
        notes: Events that are logged although a WHERE line would hide them, and limits of the result, one sentence
            each.
    """

    events: int
    undecided: int
    total_events: int
    slots: int
    total_slots: int
    is_exact: bool
    bytes_per_s: float
    total_bytes_per_s: float
    by_class: dict[str, tuple[int, int]]
    losses: tuple[ViewLoss, ...]
    notes: tuple[str, ...]


def would_capture(
    rules: RuleSet | BuiltRules, trace: Trace, derived: DerivedColumns | None = None, window: TimeWindow | None = None
) -> WouldCapture:
    """Return the events and slots that a capture of the same run with these rules would have logged, and the losses.

    The kernel is simulated: every event is tested in the form that the rules request, `WHERE` lines are the handlers
    that they become in a capture, and the buffers are filled with the events that pass, to count the events that the
    kernel writes about its buffers.

    Args:
        rules: A rule set, or rules with conditions.
        trace: The captured trace; rules cannot restore events that are not in it.
        derived: Source of priorities; None = computed from the trace.
        window: START and STOP of the capture; None = the whole trace.

    Raises:
        RuleError: A rule that no kernel can carry out, with the message of `tracelogger --rules`.
        UsageError: The trace is not of QNX.
    """
    if not trace.release.is_qnx:
        raise UsageError(f"{trace.path.name}: this is not a trace of QNX, so no capture of tracelogger would have it")
    built = rules if isinstance(rules, BuiltRules) else BuiltRules((), rules, ())
    captured = for_capture(built)
    if captured.faults:
        raise RuleError(list(captured.faults))
    state = captured.state
    converted = as_logged_trace(trace, state.is_wide)
    logged = converted.trace
    part = trace.rows_between(window) if window is not None else slice(0, len(trace.events))
    passes, may_pass = _passing(state, trace, converted, derived or TraceDerivedColumns(trace), part)
    doubts = _doubts(trace, may_pass & ~passes)
    logs_time = state.is_on(state.address(CONTROL_TIME), CONTROL_TIME)
    added = control_events(logged, passes, logs_time)
    counts = np.bincount(logged.events.code[passes], minlength=CODE_COUNT)
    counts[CONTROL_BUFFER], counts[CONTROL_BUFFER_END] = added.buffers, added.buffer_ends
    counts[CONTROL_TIME] = added.times
    events = trace.events
    totals = np.bincount(events.code[part], minlength=CODE_COUNT)
    slots = int(logged.events.slot_count[passes].sum(dtype=np.int64)) + added.count
    total_slots = int(events.slot_count[part].sum(dtype=np.int64))
    seconds = (window.length / trace.clock.cycles_per_s) if window is not None else trace.duration_ns / NS_PER_S
    unknown = _left_out(trace, part, logs_time, C.CONTROL in state.class_handlers)
    return WouldCapture(
        int(counts.sum()),
        int(np.count_nonzero(may_pass & ~passes)),
        int(totals.sum()),
        slots,
        total_slots,
        converted.is_exact and not doubts and not unknown,
        slots * SLOT_BYTES / seconds if seconds else 0.0,
        total_slots * SLOT_BYTES / seconds if seconds else 0.0,
        _by_class(trace, counts, totals),
        _losses(trace, counts, totals),
        (*captured.notes, *doubts, *unknown, *_of_logger(trace, logged, passes)),
    )


def _passing(
    state: RuleSet, trace: Trace, converted: LoggedTrace, derived: DerivedColumns, part: slice
) -> tuple[Bools, Bools]:
    """Return which events of a part certainly, and which possibly pass; bool (events,) each, without CONTROL events."""
    bounds, code = [], converted.trace.events.code
    is_inserted, may_be_inserted = inserted_events(trace)
    passes_as_user = passes_inserted(state)[trace.events.code]
    for may in (False, True):
        bound = state.copy()
        bound.replace_handlers(lambda rule, may=may: _bounded(rule, converted.missing, may=may))  # type: ignore[misc]
        passes = bound.mask(converted.trace, None, derived)
        passes[is_inserted] = passes_as_user[is_inserted]
        as_user = passes_as_user[may_be_inserted]
        passes[may_be_inserted] = passes[may_be_inserted] | as_user if may else passes[may_be_inserted] & as_user
        passes[: part.start] = passes[part.stop :] = False
        passes &= code >> CLASS_SHIFT != WireClass.CONTROL
        bounds.append(passes)
    return bounds[0], bounds[1]


def _bounded(rule: DynamicRule, missing: Bools, *, may: bool) -> DynamicRule:
    if isinstance(rule, AllOf):
        return AllOf(*(_bounded(part, missing, may=may) for part in rule.parts))
    return rule.bounded(missing, may=may) if isinstance(rule, Expression) else rule


def _doubts(trace: Trace, undecided: Bools) -> list[str]:
    """Return the reasons why events are undecided, one sentence each."""
    inserted = int(np.count_nonzero(undecided & inserted_events(trace).maybe))
    others = int(np.count_nonzero(undecided)) - inserted
    sentences = []
    if inserted:
        sentences.append(
            f"Cannot tell whether {inserted:,} events would be logged: programs insert such events, for which the "
            "kernel looks at the switch of USER, and the trace does not show who logged them"
        )
    if others:
        sentences.append(
            f"Cannot tell whether {others:,} events would be logged: the rules compare a priority or a word that the "
            "trace does not have; capture wide"
        )
    return sentences


def _of_logger(trace: Trace, logged: Trace, passes: Bools) -> list[str]:
    """Return a note on the logger's own events that pass: with other rules there would be more or fewer."""
    is_own = passes & of_logger(trace)[trace.threads.process[trace.events.thread]]
    if not is_own.any():
        return []
    slots = int(logged.events.slot_count[is_own].sum(dtype=np.int64))
    return [
        f"{LOGGER} itself adds {np.count_nonzero(is_own):,} of these events in {slots:,} slots, for as many "
        "buffers as this trace has; with other rules it writes fewer or more. A probe of the simulated target adds none"
    ]


def _left_out(trace: Trace, part: slice, logs_time: bool, has_handler: bool) -> list[str]:
    """Return sentences on events that the estimate does not include."""
    sentences = []
    if part.start:
        sentences.append(
            "A capture that starts later begins with a dump of processes and threads, which is not counted"
        )
    if logs_time and has_handler:
        sentences.append(
            "The handler of CONTROL was not requested: the TIME events of the new buffers are not in the trace"
        )
    if len(losses(trace)):
        sentences.append("Events are lost in this trace, so a capture would have more")
    return sentences


def _by_class(trace: Trace, counts: _Counts, totals: _Counts) -> dict[str, tuple[int, int]]:
    result: dict[str, tuple[int, int]] = {}
    for number in np.flatnonzero(counts + totals).tolist():
        name = trace.catalogue.class_name(number)
        logged, total = result.get(name, (0, 0))
        result[name] = logged + int(counts[number]), total + int(totals[number])
    return result


def _losses(trace: Trace, counts: _Counts, totals: _Counts) -> tuple[ViewLoss, ...]:
    codes = np.arange(CODE_COUNT)
    wire_class, event = codes >> 10, codes & 1023
    is_state = trace.catalogue.state_value_of_code != NOT_A_STATE
    groups = (
        ("Thread lanes", is_state, "state changes would be missing, so lanes show the last state that was logged"),
        (
            "CPU lanes",
            codes == THREAD_RUNNING,
            "switches would be missing: CPU use is wrong, and other events belong to the wrong thread",
        ),
        (
            "Names and tree",
            ((wire_class == WireClass.PR_TH) & (event >= 64)) | (codes == THREAD_CREATE),
            "creations and names would be missing: processes show as numbers",
        ),
        (
            "Kernel calls",
            wire_class == WireClass.KER_CALL,
            "entries or exits would be missing: durations and return values of those calls are not known",
        ),
        ("Interrupts", wire_class == WireClass.INT, "interrupt events would be missing: their time counts for threads"),
        (
            "Messages",
            wire_class == WireClass.COMM,
            "messages would be missing: arrows and IPC times of those are not known",
        ),
        (
            "Time axis",
            codes == CONTROL_TIME,
            "TIME events would be missing: without any of them only the low half of the clock is known",
        ),
        ("User events", wire_class == WireClass.USER, "user events would be missing"),
    )
    view_losses = []
    for view, table, text in groups:
        total = int(totals[table].sum())
        lost = max(0, total - int(counts[table].sum()))
        if total:
            view_losses.append(ViewLoss(view, lost, total, f"{lost:,} of {total:,} {text}" if lost else ""))
    return tuple(view_losses)
