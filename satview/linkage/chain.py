"""The link tables of a trace by kind of link, as scripts see them, and the causes and effects of an event."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.events.catalogue import call_numbers
from satview.events.states import NOT_A_STATE, READY, RUNNING
from satview.events.wire import CODE_COUNT, KER_64BIT, KER_EXIT_OFFSET, WireClass, code
from satview.linkage import calls, messages, waits, wake_ups
from satview.linkage.blockers import Blockers, blockers
from satview.linkage.calls import Fate, beginnings, fate_of_call, partner, partners
from satview.linkage.latencies import Latencies, creations, deliveries, latencies
from satview.linkage.links import (
    NO_EVENT,
    OPEN,
    Certainty,
    Link,
    LinkKind,
    LinkTable,
    Rows,
    pairs_of,
    rows_of_class,
    rows_where,
)
from satview.linkage.transactions import Transactions, transactions
from satview.linkage.waits import state_ends
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace

# The link tables of a trace by kind of link, and the link that one event begins or ends.


_HANDLER_EVENTS: Final = (3, 4, 6)
_TABLES: Final[dict[LinkKind, Callable[[Trace], LinkTable]]] = {  # the others are columns with a value per event
    LinkKind.DISPATCH: lambda trace: trace.cached("links.dispatch", _dispatches),
    LinkKind.MESSAGE: messages.messages,
    LinkKind.REPLY: messages.replies,
    LinkKind.ROUND_TRIP: messages.round_trips,
    LinkKind.PULSE: messages.pulses,
    LinkKind.WAKE_UP: wake_ups.wake_ups,
    LinkKind.HOLD: waits.holds,
    LinkKind.DELIVERY: deliveries,
    LinkKind.CREATION: creations,
}


def link_table(trace: Trace, kind: LinkKind) -> LinkTable:
    """Return all links of one kind, computed at the first call and cached with the trace."""
    if kind in _TABLES:
        return _TABLES[kind](trace)
    return trace.cached(f"links.{kind}", partial(_of_columns, kind=kind))


def ends_of(trace: Trace, kind: LinkKind, rows: Rows) -> NDArray[np.uint32]:
    """Return for each event that begins a link of the given kind the event that ends the link.

    Args:
        trace: The trace.
        kind: The kind of links.
        rows: (n,), rows of the event table.

    Returns:
        uint32 (n,), `NO_EVENT` where an event begins no such link, `OPEN` where the trace ends before the link does.
    """
    if kind in _TABLES:
        return link_table(trace, kind).ends_of(rows)
    if kind is LinkKind.STATE:
        return state_ends(trace)[rows]
    ends = partners(trace)[rows]
    ends[(ends < rows) | ~_is_of(trace, kind, rows)] = NO_EVENT
    return ends


def link_of(trace: Trace, event: int) -> Link | None:
    """Return the call, interrupt or handler that an event begins or ends, or else the state that the event begins.

    None for other events.

    The first call makes the links of the whole trace.
    """
    if trace.catalogue.state_value_of_code[trace.events.code[event]] == NOT_A_STATE or trace.pairs is not None:
        pair = _pair_of(trace, event)
        if pair is not None or trace.pairs is None:
            return pair
    end = int(state_ends(trace)[event])
    return Link(LinkKind.STATE, event, end, Certainty.EXACT) if end != NO_EVENT else None


def _pair_of(trace: Trace, event: int) -> Link | None:
    other = partner(trace, event)
    if other is None:
        return None
    rows = np.array([min(event, other)])
    kind = next(kind for kind in (LinkKind.INTERRUPT, LinkKind.HANDLER, LinkKind.CALL) if _is_of(trace, kind, rows)[0])
    return Link(kind, int(rows[0]), max(event, other), Certainty(int(_certainty(trace, kind, rows)[0])))


def _dispatches(trace: Trace) -> LinkTable:
    return LinkTable.of(LinkKind.DISPATCH, pairs_of(*calls.dispatches(trace)))


def _of_columns(trace: Trace, kind: LinkKind) -> LinkTable:
    if kind is LinkKind.STATE:
        rows = np.flatnonzero(state_ends(trace) != NO_EVENT).astype(np.uint32)
        ends = state_ends(trace)[rows]
    else:
        rows = beginnings(trace)
        rows = rows[_codes_of(trace, kind)[trace.events.code[rows]]]
        ends = partners(trace)[rows]
    return LinkTable(kind, rows, ends, _certainty(trace, kind, rows))


def _is_of(trace: Trace, kind: LinkKind, rows: Rows) -> NDArray[np.bool_]:
    """Return for each event that begins a link of `partners` whether that link is of the given kind, bool (n,)."""
    return _codes_of(trace, kind)[trace.events.code[rows]]


def _codes_of(trace: Trace, kind: LinkKind) -> NDArray[np.bool_]:
    """Return which codes begin or end links of a kind (call, interrupt or handler), bool (32768,); read-only."""
    return _codes(kind, trace.pairs is not None)


@cache
def _codes(kind: LinkKind, has_pairs: bool) -> NDArray[np.bool_]:
    codes = np.arange(wire.CODE_COUNT)
    is_interrupt = (codes >> wire.CLASS_SHIFT == wire.WireClass.INT) & (not has_pairs)
    if kind is LinkKind.CALL:
        is_call = codes >> wire.CLASS_SHIFT == wire.WireClass.KER_CALL
        is_end = ~is_interrupt & (is_call | has_pairs)
    else:
        is_handler = np.isin(codes & wire.EVENT_MASK, _HANDLER_EVENTS)
        is_end = is_interrupt & (is_handler == (kind is LinkKind.HANDLER))
    is_end.setflags(write=False)
    return np.asarray(is_end)


def _certainty(trace: Trace, kind: LinkKind, rows: Rows) -> NDArray[np.uint8]:
    """Return the certainty of the links that begin with the given rows, uint8 (n,), values of `Certainty`."""
    if kind is not LinkKind.CALL or trace.pairs is not None:
        return np.full(len(rows), Certainty.EXACT, np.uint8)
    is_guess = trace.events.thread[rows] == UNKNOWN_THREAD
    return np.where(is_guess, np.uint8(Certainty.INFERRED), np.uint8(Certainty.EXACT))


_MOST_AHEAD: Final = 10_000_000  # events; the payload words of more would take hundreds of megabytes


@contextmanager
def reading_ahead(trace: Trace) -> Iterator[None]:
    """Read in advance, in a second thread, the payload words that links need, while the `with` block computes links.

    The words take up to 32 bytes per event that links need, and are freed at the end of the block.
    """
    codes = _codes_ahead(trace)
    if trace.pairs is not None or trace.code_counts[codes].sum() > _MOST_AHEAD:  # with pairs, arguments are in memory
        yield
        return
    with trace.payloads.reading_ahead(rows_where(trace, codes)):
        yield


def _codes_ahead(trace: Trace) -> NDArray[np.bool_]:
    """Return which codes are of events whose arguments links need more than once, bool (32768,)."""
    table = np.zeros(CODE_COUNT, np.bool_)
    table[code(WireClass.SYSTEM, 18)] = True  # expiry of a timer
    table[list(calls.INTERRUPTS)] = True  # the interrupt number
    for name, number in call_numbers(trace.release).items():
        entry = code(WireClass.KER_CALL, number)
        if name.startswith(("SYNC_", "INTERRUPT_", "MSG_RECEIVE")):  # the object waited for, the interrupt number
            table[[entry, entry | KER_64BIT]] = True
        if name.startswith("SYNC_MUTEX_"):  # the result
            table[[entry | KER_EXIT_OFFSET, entry | KER_EXIT_OFFSET | KER_64BIT]] = True
    return table


# Finds the causes and effects of an event: one step along the links that begin or end with it.


_EVENTS_IN_A_CALL: Final = 64  # events of class COMM after an entry that may belong to its call


class Relation(StrEnum):
    """Relation of the other event to the queried event."""

    SENT_BY = "Sent by"
    RECEIVED_BY = "Received by"
    ANSWERS = "Answers"
    ANSWERED_BY = "Answered by"
    SENDS = "Sends"
    WITHIN = "Within"
    DELIVERS = "Delivers"
    DELIVERED_BY = "Delivered by"
    CREATES = "Creates"
    CREATED_BY = "Created by"
    WAKES = "Wakes"
    WOKEN_BY = "Woken by"
    RUNS = "Runs"
    WAS_READY = "Was ready"
    ENDS = "Ends"
    GIVEN_UP_BY = "Given up by"
    GOT_BY = "Got by"


@dataclass(frozen=True, slots=True)
class Step:
    """A link from the queried event to another event.

    Attributes:
        relation: Relation of the other event to the queried one.
        row: Row of the other event in the event table.
        certainty: Certainty of the link.
    """

    relation: Relation
    row: int
    certainty: Certainty


@dataclass(frozen=True, slots=True)
class WaitedFor:
    """The thread and object for which a thread waits in a state that an event begins.

    Attributes:
        value: The state of the wait, as lane value (`events.states`).
        thread: Row of the thread table; -1 for any thread of the process, or not known.
        pid: Process of that thread, or the process that a message was sent to; -1 = not known.
        object: Address, channel or thread number, depending on the state; None = not known.
        is_open: The trace ends before the wait does.
        certainty: Certainty of thread and process; None where neither is known.
    """

    value: int
    thread: int
    pid: int
    object: int | None
    is_open: bool
    certainty: Certainty | None


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of a path from cause to effect: two rows of the event table."""

    from_row: int
    to_row: int
    certainty: Certainty


@dataclass(frozen=True, slots=True)
class NamedHop(Hop):
    """A step of a known kind.

    Attributes:
        name: The kind of step: `message`, `reply`, `pulse`, `wake-up`.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Connections:
    """The causes and effects of one event, and the wait or kernel call that it begins.

    Attributes:
        causes: Events that caused the event, the nearest first.
        effects: Events that the event caused.
        waits_for: The thread and object that its thread waits for, if the event begins a wait; else None.
        fate: Why a kernel call that the event enters has no exit in the trace; None for other events.
    """

    causes: tuple[Step, ...]
    effects: tuple[Step, ...]
    waits_for: WaitedFor | None
    fate: Fate | None = None


# By kind of link: the label of its end as seen from its start, and of its start as seen from its end; in the order in
# which links are followed.
_RELATIONS: Final = {
    LinkKind.MESSAGE: (Relation.RECEIVED_BY, Relation.SENT_BY),
    LinkKind.PULSE: (Relation.RECEIVED_BY, Relation.SENT_BY),
    LinkKind.REPLY: (Relation.ANSWERED_BY, Relation.ANSWERS),
    LinkKind.WAKE_UP: (Relation.WAKES, Relation.WOKEN_BY),
    LinkKind.DELIVERY: (Relation.DELIVERS, Relation.DELIVERED_BY),
    LinkKind.CREATION: (Relation.CREATES, Relation.CREATED_BY),
    LinkKind.HOLD: (Relation.GIVEN_UP_BY, Relation.GOT_BY),
}
_MOST_EFFECTS: Final = 16  # of one kind: a broadcast may wake hundreds


def connections(trace: Trace, event: int) -> Connections:
    """Return the causes and effects of an event, and its wait. The first call computes all links of the trace."""
    return Connections(causes(trace, event), effects(trace, event), waits_for(trace, event), fate_of_call(trace, event))


def are_linked(trace: Trace) -> bool:
    """Return whether all links that `connections` needs are cached; making them takes 0.5 us per event of the trace."""
    return all(trace.is_cached(name) for name in ("links.wake_up", "links.blockers", "links.creation"))


def are_waits_known(trace: Trace) -> bool:
    """Return whether the links that `waits_for` needs are cached."""
    return trace.is_cached("links.blockers")


def causes(trace: Trace, event: int) -> tuple[Step, ...]:
    """Return the events that caused an event, the nearest first. The first call makes all links of the trace."""
    steps, row = [], np.array([event], np.uint32)
    for kind, (_, relation) in _RELATIONS.items():
        table = link_table(trace, kind)
        position = int(table.ended_by(row)[0])
        if position >= 0:
            link = table[position]
            steps.append(Step(relation, link.from_row, link.certainty))
    value = int(trace.catalogue.state_value_of_code[trace.events.code[event]])
    if value == RUNNING:
        before = _state_before(trace, event)
        if before >= 0 and trace.catalogue.state_value_of_code[trace.events.code[before]] == READY:
            steps.append(Step(Relation.WAS_READY, before, Certainty.EXACT))
    is_delivered = any(step.relation is Relation.DELIVERED_BY for step in steps)
    if not is_delivered and int(trace.events.code[event]) >> wire.CLASS_SHIFT == wire.WireClass.COMM:
        call = int(calls.open_calls(trace, row)[0])
        if call != NO_EVENT:
            steps.append(Step(Relation.WITHIN, call, Certainty.EXACT))
    return tuple(steps)


def effects(trace: Trace, event: int) -> tuple[Step, ...]:
    """Return the events that an event caused, at most 16 of a kind. The first call makes all links of the trace."""
    steps, row = [], np.array([event], np.uint32)
    code = int(trace.events.code[event])
    if code >> wire.CLASS_SHIFT == wire.WireClass.KER_CALL:
        steps += [Step(Relation.SENDS, sent, Certainty.EXACT) for sent in _sent_within(trace, event)]
    for kind, (relation, _) in _RELATIONS.items():
        table = link_table(trace, kind)
        start, end = np.searchsorted(table.from_row, (event, event + 1)).tolist()
        for position in range(start, min(end, start + _MOST_EFFECTS)):
            link = table[position]
            if link.to_row != OPEN and not any(step.row == link.to_row for step in steps):
                steps.append(Step(relation, link.to_row, link.certainty))
    value = int(trace.catalogue.state_value_of_code[code])
    end_row = int(state_ends(trace)[row][0])
    if value == READY and end_row not in (NO_EVENT, OPEN):
        steps.append(Step(Relation.RUNS, end_row, Certainty.EXACT))
    elif value not in (READY, RUNNING) and end_row not in (NO_EVENT, OPEN):
        steps.append(Step(Relation.ENDS, end_row, Certainty.EXACT))
    return tuple(steps)


def way(trace: Trace, event: int, most: int = 12) -> tuple[Hop, ...]:
    """Return the steps from the causes of an event to its effects, at most `most` each way, in time order.

    The chain continues with the first cause, and with the first effect, of each event in it.
    """
    before, after = list[Hop](), list[Hop]()
    row = event
    while len(before) < most and (steps := causes(trace, row)):
        before.append(Hop(steps[0].row, row, steps[0].certainty))
        row = steps[0].row
    row = event
    while len(after) < most and (steps := effects(trace, row)):
        # Other effects of the same kind are shown too, but the chain follows the first.
        after += [Hop(row, step.row, step.certainty) for step in steps if step.relation is steps[0].relation]
        row = steps[0].row
    return tuple(before[::-1] + after)


def waits_for(trace: Trace, event: int) -> WaitedFor | None:
    """Return the thread and object that a thread waits for in the state or kernel call that an event begins.

    None if the event begins no wait. The first call computes the links that are needed.
    """
    known = blockers(trace)
    waits = known.waits
    candidates = np.flatnonzero(waits.row == event)
    if not len(candidates):
        candidates = np.flatnonzero(waits.call_row == event)[-1:]
    if not len(candidates):
        return None
    position = int(candidates[0])
    certainty = int(known.certainty[position])
    return WaitedFor(
        int(waits.value[position]), int(known.thread[position]), int(known.pid[position]),
        int(waits.object[position]) if waits.has_object[position] else None,
        int(waits.end_row[position]) == OPEN, Certainty(certainty) if certainty else None,
    )  # fmt: skip


def _state_before(trace: Trace, event: int) -> int:
    rows = trace.states.of(int(trace.events.thread[event]))
    position = int(np.searchsorted(rows, event)) - 1
    return int(rows[position]) if position >= 0 else -1


def _sent_within(trace: Trace, call: int) -> list[int]:
    """Return the events of class COMM that a kernel call logged."""
    rows = rows_of_class(trace, wire.WireClass.COMM)
    start = int(np.searchsorted(rows, call))
    near = rows[start : start + _EVENTS_IN_A_CALL]
    near = near[trace.events.cpu[near] == trace.events.cpu[call]]
    return [int(row) for row in near[calls.open_calls(trace, near) == call]]


# The links of a trace for scripts: one table per kind, computed at the first request.


def links(trace: Trace) -> Links:
    """Return the links between the events of a trace: one table of event rows per kind of link."""
    return Links(trace)


class Links:
    """The links between the events of a trace: tables of event rows, computed at the first use and then cached.

        wake_ups = satview.links(trace).wake_ups
        waker = wake_ups.from_row[wake_ups.ended_by(rows)]

    Every table has `from_row`, `to_row` and `certainty` (`satview.linkage.links.LinkTable`); no link crosses a range
    in which events are missing.

    Args:
        trace: The events.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def of(self, kind: LinkKind) -> LinkTable:
        """Return the table of all links of one kind."""
        return link_table(self.trace, kind)

    @property
    def calls(self) -> LinkTable:
        """Kernel calls and their exits."""
        return self.of(LinkKind.CALL)

    @property
    def interrupts(self) -> LinkTable:
        """Entries of interrupts and their exits."""
        return self.of(LinkKind.INTERRUPT)

    @property
    def handlers(self) -> LinkTable:
        """Entries of interrupt handlers and their exits."""
        return self.of(LinkKind.HANDLER)

    @property
    def dispatches(self) -> LinkTable:
        """Entries of interrupts and of their first handlers."""
        return self.of(LinkKind.DISPATCH)

    @property
    def states(self) -> LinkTable:
        """Events that begin states of threads, and the events that end them."""
        return self.of(LinkKind.STATE)

    @property
    def messages(self) -> LinkTable:
        """Messages that are sent and their receipts."""
        return self.of(LinkKind.MESSAGE)

    @property
    def replies(self) -> LinkTable:
        """Receipts of messages and the replies or errors that answer them."""
        return self.of(LinkKind.REPLY)

    @property
    def round_trips(self) -> LinkTable:
        """Messages that are sent and the ends of the kernel calls that sent them."""
        return self.of(LinkKind.ROUND_TRIP)

    @property
    def pulses(self) -> LinkTable:
        """Pulses that are sent and their receipts."""
        return self.of(LinkKind.PULSE)

    @property
    def deliveries(self) -> LinkTable:
        """Kernel calls, timer expiries and interrupts, and the pulses and signals that they deliver."""
        return self.of(LinkKind.DELIVERY)

    @property
    def wake_ups(self) -> LinkTable:
        """Causes that end waits of threads, and the events that make the threads ready, or run at once."""
        return self.of(LinkKind.WAKE_UP)

    @property
    def holds(self) -> LinkTable:
        """Kernel calls that lock a mutex and the calls that unlock it."""
        return self.of(LinkKind.HOLD)

    @property
    def creations(self) -> LinkTable:
        """Kernel calls and the threads and processes that they create."""
        return self.of(LinkKind.CREATION)

    @property
    def blockers(self) -> Blockers:
        """Every wait of every thread, and the thread or process that it waits for."""
        return blockers(self.trace)

    @property
    def transactions(self) -> Transactions:
        """Every message with its receipt, reply, times, server and parent transaction."""
        return transactions(self.trace)

    @property
    def latencies(self) -> Latencies:
        """The times from cause to answering thread, for each pulse and each interrupt that ends InterruptWait()."""
        return latencies(self.trace)
