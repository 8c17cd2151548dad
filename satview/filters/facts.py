"""Facts about events that no single slot holds: durations, state lengths, priorities; and events one by one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from satview.events.states import NOT_A_STATE
from satview.events.wire import CLASS_SHIFT, EVENT_MASK, WireClass
from satview.filters.event_facts import EventFacts
from satview.store.trace import Trace

UNKNOWN: Final = -1
_Rows = NDArray[np.integer]
_PRIORITY_WORD: Final = 2  # of a wide thread state event: pid, tid, priority, policy
_BLOCK: Final = 1 << 16
_NO_EVENT: Final = 2**32 - 1


class Facts(Protocol):
    """Where derived columns come from. Every method takes event rows and returns int64 of the same shape."""

    def duration_ns(self, rows: _Rows) -> NDArray[np.int64]:
        """Length of the kernel call or interrupt that an event enters or leaves; -1 = no pair, or no such event."""

    def state_length_ns(self, rows: _Rows) -> NDArray[np.int64]:
        """How long the thread stays in the state it enters, at most to the end of the trace; -1 = no state event."""

    def priority(self, rows: _Rows) -> NDArray[np.int64]:
        """Priority of the event's thread as last told by a wide state event; -1 = not known."""


class TraceFacts:
    """Facts worked out from a trace; each is made when first asked for and kept: 12 bytes per event of its kind."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def duration_ns(self, rows: _Rows) -> NDArray[np.int64]:
        """See `Facts.duration_ns`."""
        pair_rows, durations = self._pairs
        return _looked_up(pair_rows, durations, rows)

    def state_length_ns(self, rows: _Rows) -> NDArray[np.int64]:
        """See `Facts.state_length_ns`."""
        state_rows, lengths = self._state_lengths
        return _looked_up(state_rows, lengths, rows)

    def priority(self, rows: _Rows) -> NDArray[np.int64]:
        """See `Facts.priority`."""
        keys, values = self._priorities
        if not len(keys):
            return np.full(len(rows), UNKNOWN, np.int64)
        thread = self._trace.events.thread[rows].astype(np.int64)
        at = np.searchsorted(keys, thread << 32 | rows.astype(np.int64), side="right") - 1
        known = (at >= 0) & (keys[at] >> 32 == thread) & (thread != 0)
        return np.where(known, values[at], UNKNOWN)

    def _duration(self, first: NDArray[np.integer], last: NDArray[np.integer]) -> NDArray[np.int64]:
        times, clock = self._trace.events.time_cycles, self._trace.clock
        return clock.ns_array(times[last] - times[first] + clock.start_cycles)

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        if self._trace.pairs is not None:  # the format tells them itself
            rows = np.flatnonzero(self._trace.pairs != _NO_EVENT).astype(np.uint32)
            others = self._trace.pairs[rows]
            return rows, self._duration(np.minimum(rows, others), np.maximum(rows, others))
        calls = self._kernel_call_pairs()
        interrupts = self._interrupt_pairs()
        enters, leaves = (np.concatenate(side) for side in zip(calls, interrupts, strict=True))
        lengths = self._duration(enters, leaves)
        rows = np.concatenate((enters, leaves))
        order = np.argsort(rows)
        return rows[order], np.concatenate((lengths, lengths))[order]

    def _rows_of_class(self, wire_class: WireClass) -> NDArray[np.uint32]:
        code = self._trace.events.code
        found = [
            np.flatnonzero(code[i : i + _BLOCK] >> CLASS_SHIFT == wire_class) + i for i in range(0, len(code), _BLOCK)
        ]
        return np.concatenate(found).astype(np.uint32) if found else np.empty(0, np.uint32)

    def _kernel_call_pairs(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Rows of entries and of the exits (or interrupted forms) that end them: the thread's next call event."""
        events = self._trace.events
        rows = self._rows_of_class(WireClass.KER_CALL)
        rows = rows[events.thread[rows] != 0]
        rows = rows[np.argsort(events.thread[rows], kind="stable")]
        thread, event = events.thread[rows], events.code[rows] & EVENT_MASK
        kind, number = event >> 7 & 3, event & 0x7F
        pair = (kind[:-1] == 0) & ((kind[1:] == 1) | (kind[1:] == 2)) & (number[:-1] == number[1:])
        at = np.flatnonzero(pair & (thread[:-1] == thread[1:]))
        return rows[at], rows[at + 1]

    def _interrupt_pairs(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Rows of interrupt (and handler) entries and their exits: the next event of that CPU at the same depth."""
        events = self._trace.events
        rows = self._rows_of_class(WireClass.INT)
        rows = rows[np.argsort(events.cpu[rows], kind="stable")]
        event = events.code[rows] & EVENT_MASK
        is_enter, is_leave = np.isin(event, (1, 3, 5, 6)), np.isin(event, (2, 4))
        rows, event, is_enter = rows[is_enter | is_leave], event[is_enter | is_leave], is_enter[is_enter | is_leave]
        after = np.cumsum(np.where(is_enter, 1, -1))
        depth = np.where(is_enter, after, after + 1)
        order = np.lexsort((rows, depth, events.cpu[rows]))
        rows, event, is_enter, depth = rows[order], event[order], is_enter[order], depth[order]
        cpu = events.cpu[rows]
        is_handler = np.isin(event, (3, 4, 6))
        pair = is_enter[:-1] & ~is_enter[1:] & (depth[:-1] == depth[1:]) & (cpu[:-1] == cpu[1:])
        at = np.flatnonzero(pair & (is_handler[:-1] == is_handler[1:]))
        return rows[at], rows[at + 1]

    @cached_property
    def _state_lengths(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        states, events = self._trace.states, self._trace.events
        rows = states.event
        if not len(rows):
            return np.empty(0, np.uint32), np.empty(0, np.int64)
        following = np.append(rows[1:], rows[-1])
        ends = states.start[1:][np.diff(states.start) > 0] - 1  # the last state event of every thread
        following[ends] = len(events) - 1
        is_state = self._trace.catalogue.state_value_of_code[events.code[rows]] != NOT_A_STATE
        rows, following = rows[is_state], following[is_state]
        order = np.argsort(rows)
        return rows[order], self._duration(rows, following)[order]

    @cached_property
    def _priorities(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        events = self._trace.events
        rows = self._trace.states.event
        rows = rows[events.slot_count[rows] >= 2]
        keys = events.thread[rows].astype(np.int64) << 32 | rows.astype(np.int64)
        values = self._trace.payloads.column(rows, _PRIORITY_WORD).astype(np.int64)
        order = np.argsort(keys)
        return keys[order], values[order]


def state_rows(trace: Trace) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the rows of all changes of state, grouped by thread and ascending within, and the thread of each."""
    rows = trace.states.event
    owner = np.repeat(np.arange(len(trace.threads)), np.diff(trace.states.start))
    # The index also holds creation and end, which are no states.
    is_state = trace.catalogue.state_value_of_code[trace.events.code[rows]] != NOT_A_STATE
    return rows[is_state], owner[is_state]


def _looked_up(known: NDArray[np.uint32], values: NDArray[np.int64], rows: _Rows) -> NDArray[np.int64]:
    """Return the values of some rows (ascending), -1 where a row is not in `known` (ascending)."""
    result = np.full(len(rows), UNKNOWN, np.int64)
    if not len(known) or not len(rows):
        return result
    first, last = int(rows[0]), int(rows[-1])
    span = last - first + 1
    if span > max(4 * len(rows), _BLOCK) or span < 1:
        at = np.minimum(np.searchsorted(known, rows), len(known) - 1)
        return np.where(known[at] == rows, values[at], UNKNOWN)
    # Rows of one chunk: laying the known values out beside each other is far cheaper than searching for each row.
    # Keys of another type would make numpy convert the whole column.
    low, high = known.searchsorted(np.array((first, last + 1), known.dtype))
    spread = np.full(span, UNKNOWN, np.int64)
    spread[known[low:high] - np.uint32(first)] = values[low:high]
    return spread[rows - first]


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
