"""Facts about events that no single slot holds: durations, state lengths, priorities; and events one by one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from satview.events.states import NOT_A_STATE, RUNNING
from satview.events.wire import CLASS_SHIFT, EVENT_MASK, THREAD_CREATE, WireClass
from satview.filters.event_facts import EventFacts
from satview.store.losses import EVERY_CPU, losses
from satview.store.stretches import Stretches
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace

UNKNOWN: Final = -1
_Rows = NDArray[np.integer]
_PRIORITY_WORD: Final = 2  # of a wide thread state event: pid, tid, priority, policy
_BLOCK: Final = 1 << 16
_NO_EVENT: Final = 2**32 - 1
_CALL_NUMBER: Final = 0x7F  # in the codes of all events of a kernel call


class Facts(Protocol):
    """Where derived columns come from. Every method takes event rows and returns int64 of the same shape."""

    def duration_ns(self, rows: _Rows) -> NDArray[np.int64]:
        """Length of the kernel call or interrupt that an event enters or leaves; -1 = no pair, or no such event.

        Where events are missing in between no pair is sure.
        """

    def state_length_ns(self, rows: _Rows) -> NDArray[np.int64]:
        """How long the thread stays in the state it enters, at most to the end of the trace; -1 = no state event.

        -1 too if events are missing before the thread's next one.
        """

    def priority(self, rows: _Rows) -> NDArray[np.int64]:
        """Priority of the event's thread as last logged by a wide state event; -1 = not known.

        Of a creation without priority that of the state which follows.
        """


class TraceFacts:
    """Facts worked out from a trace; each is made when first asked for and kept: 4 bytes per event."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def duration_ns(self, rows: _Rows) -> NDArray[np.int64]:
        """See `Facts.duration_ns`."""
        return self._distances_ns(rows, self.partners[rows])

    def state_length_ns(self, rows: _Rows) -> NDArray[np.int64]:
        """See `Facts.state_length_ns`."""
        return self._distances_ns(rows, self._state_ends[rows])

    def priority(self, rows: _Rows) -> NDArray[np.int64]:
        """See `Facts.priority`."""
        keys, values = self._priorities
        if not len(keys):
            return np.full(len(rows), UNKNOWN, np.int64)
        thread = self._trace.events.thread[rows].astype(np.int64)
        at = np.searchsorted(keys, thread << 32 | rows.astype(np.int64), side="right") - 1
        known = (at >= 0) & (keys[at] >> 32 == thread) & (thread != 0)
        # Up to 6.5 the creation of a thread has no priority; the state that it enters at once has.
        first = np.flatnonzero(~known & (thread != 0) & (self._trace.events.code[rows] == THREAD_CREATE))
        at[first] = np.minimum(at[first] + 1, len(keys) - 1)
        known[first] = keys[at[first]] >> 32 == thread[first]
        return np.where(known, values[at], UNKNOWN)

    def make_ready(self) -> None:
        """Find pairs and ends of states now, which the first question for a duration or length has to wait for else."""
        _ = self.partners, self._state_ends

    def _distances_ns(self, rows: _Rows, others: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return the times between events and others, -1 where there is no other."""
        times, clock = self._trace.events.time_cycles, self._trace.clock
        result = np.full(len(rows), UNKNOWN, np.int64)
        known = np.flatnonzero(others != _NO_EVENT)
        cycles = np.abs(times[others[known]] - times[rows[known]])
        result[known] = clock.ns_array(cycles + clock.start_cycles)
        return result

    @cached_property
    def partners(self) -> NDArray[np.uint32]:
        """For every event the row of the other end of its kernel call or interrupt, 2**32 - 1 for none, (events,)."""
        if self._trace.pairs is not None:  # the format tells them itself
            return self._trace.pairs
        partners = np.full(len(self._trace.events), _NO_EVENT, np.uint32)
        lost = Stretches.of_rows(losses(self._trace))
        for enters, leaves in (self._kernel_call_pairs(), self._interrupt_pairs()):
            sure = self._is_whole(enters, leaves, lost)
            partners[enters[sure]], partners[leaves[sure]] = leaves[sure], enters[sure]
        return partners

    def _is_whole(self, first: _Rows, last: _Rows, lost: Stretches) -> NDArray[np.bool_]:
        """Tell for pairs of events whether none is missing in between."""
        times = self._trace.events.time_cycles
        return ~lost.meet(times[first], times[last]) if len(lost.start) else np.ones(len(first), np.bool_)

    def _rows_of_class(self, wire_class: WireClass) -> NDArray[np.uint32]:
        code = self._trace.events.code
        found = [
            np.flatnonzero(code[i : i + _BLOCK] >> CLASS_SHIFT == wire_class) + i for i in range(0, len(code), _BLOCK)
        ]
        return np.concatenate(found).astype(np.uint32) if found else np.empty(0, np.uint32)

    def _kernel_call_pairs(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Rows of entries and of the exits (or interrupted forms) that end them: the thread's next call event.

        Where an event of the same call in between has no known thread, that may be the exit, and the one found that of
        a later call: there is no pair then.
        """
        events = self._trace.events
        rows = self._rows_of_class(WireClass.KER_CALL)
        thread = events.thread[rows]
        of_nobody = self._calls(rows[thread == UNKNOWN_THREAD])
        order = np.argsort(_narrow(thread, len(self._trace.threads)), kind="stable")
        rows = rows[order]
        event = events.code[rows]
        first, second = event[:-1], event[1:]
        is_pair = (first ^ second) & _CALL_NUMBER == 0
        is_pair &= first & 0x180 == 0
        is_pair &= (second & 0x180 == 0x80) | (second & 0x180 == 0x100)
        at = np.flatnonzero(is_pair)
        thread = thread[order[at]]
        at = at[(thread != UNKNOWN_THREAD) & (thread == events.thread[rows[at + 1]])]
        enters, leaves = rows[at], rows[at + 1]
        if len(of_nobody):
            of_nobody.sort()
            call = self._calls(enters)
            is_clear = np.searchsorted(of_nobody, call) == np.searchsorted(of_nobody, call - enters + leaves)
            enters, leaves = enters[is_clear], leaves[is_clear]
        return enters, leaves

    def _calls(self, rows: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return number of the call << 32 | row for events of kernel calls."""
        return (self._trace.events.code[rows] & _CALL_NUMBER).astype(np.int64) << 32 | rows

    def _interrupt_pairs(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Rows of interrupt entries and their exits, and of handlers: the CPU's next such event at the same depth.

        Each kind by itself: an exit that is missing does not make others pair wrongly.
        """
        events = self._trace.events
        rows = self._rows_of_class(WireClass.INT)
        event = events.code[rows] & EVENT_MASK
        is_known = (event >= 1) & (event <= 6)
        rows, event = rows[is_known], event[is_known]
        kind = events.cpu[rows] * np.uint8(2) + np.isin(event, (3, 4, 6))
        order = np.argsort(kind, kind="stable")
        rows, event, kind = rows[order], event[order], kind[order]
        is_enter = (event != 2) & (event != 4)
        after = np.cumsum(np.where(is_enter, 1, -1))
        depth = np.where(is_enter, after, after + 1)
        depth -= depth.min(initial=0)
        # CPU, kind and depth in one number
        level = kind.astype(np.int64) * (int(depth.max(initial=0)) + 1) + depth
        order = np.argsort(_narrow(level, int(level.max(initial=0)) + 1), kind="stable")
        rows, is_enter, level = rows[order], is_enter[order], level[order]
        at = np.flatnonzero(is_enter[:-1] & ~is_enter[1:] & (level[:-1] == level[1:]))
        return rows[at], rows[at + 1]

    @cached_property
    def _state_ends(self) -> NDArray[np.uint32]:
        """For every change of state the row of the thread's next one, or the last event of the trace, (events,)."""
        states, events = self._trace.states, self._trace.events
        ends = np.full(len(events), _NO_EVENT, np.uint32)
        rows = states.event
        if len(rows):
            following = np.append(rows[1:], rows[-1])
            following[states.start[1:][np.diff(states.start) > 0] - 1] = len(events) - 1
            value = self._trace.catalogue.state_value_of_code[events.code[rows]]
            is_known = value != NOT_A_STATE
            lost = losses(self._trace)
            for cpu in np.unique(lost[:, 2]).tolist():
                # While a thread runs, only its own CPU can end that.
                is_elsewhere = (value == RUNNING) & (cpu != EVERY_CPU) & (events.cpu[rows] != cpu)
                concerned = np.flatnonzero(is_known & ~is_elsewhere)
                stretches = Stretches.of_rows(lost[lost[:, 2] == cpu])
                is_known[concerned] = self._is_whole(rows[concerned], following[concerned], stretches)
            ends[rows[is_known]] = following[is_known]
        return ends

    @cached_property
    def _priorities(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        events = self._trace.events
        rows = self._trace.states.event
        rows = rows[events.slot_count[rows] >= 2]
        keys = events.thread[rows].astype(np.int64) << 32 | rows.astype(np.int64)
        values = self._trace.payloads.column(rows, _PRIORITY_WORD).astype(np.int64)
        order = np.argsort(keys)
        return keys[order], values[order]


def _narrow(numbers: NDArray[np.integer], count: int) -> NDArray[np.integer]:
    """Return numbers below `count` in the type that numpy sorts by their digits, five times as fast, if they fit."""
    return numbers.astype(np.uint16) if count <= 1 << 16 else numbers


def state_rows(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the rows of all changes of state, grouped by thread and ascending within, and the thread of each."""
    rows = trace.states.event
    owner = np.repeat(np.arange(len(trace.threads)), np.diff(trace.states.start))
    # The index also holds creation and end, which are no states.
    is_state = trace.catalogue.state_value_of_code[trace.events.code[rows]] != NOT_A_STATE
    return rows[is_state], owner[is_state]


def event_facts(trace: Trace, rows: _Rows, facts: Facts | None = None) -> Iterator[EventFacts]:
    """Yield the facts of some events one by one, for handlers and for tests; in the order of `rows`."""
    facts = facts or TraceFacts(trace)
    events, threads, processes = trace.events, trace.threads, trace.processes
    for start in range(0, len(rows), _BLOCK):
        part = rows[start : start + _BLOCK]
        times = trace.clock.ns_array(events.time_cycles[part]).tolist()
        columns = zip(
            part.tolist(),
            events.code[part].tolist(),
            events.thread[part].tolist(),
            events.cpu[part].tolist(),
            times,
            facts.priority(part).tolist(),
            facts.duration_ns(part).tolist(),
            facts.state_length_ns(part).tolist(),
            strict=True,
        )
        for row, code, thread, cpu, time_ns, priority, duration, length in columns:
            yield EventFacts(
                code,
                int(threads.pid[thread]),
                int(threads.tid[thread]),
                tuple(trace.payloads.words(row).tolist()),
                cpu,
                time_ns,
                None,
                processes.names[int(threads.process[thread])],
                threads.names[thread],
                None if priority < 0 else priority,
                None if duration < 0 else duration,
                None if length < 0 else length,
                trace.payloads.raw(row),
                trace.byte_order == "little",
            )
