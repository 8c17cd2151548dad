"""The states of each thread, from its state events; and what a process does as a whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from satview.core import lanes as core_lanes
from satview.events import wire
from satview.events.states import ABSENT, DEAD, IDLE, NOT_A_STATE, READY, RUNNING, UNKNOWN, VALUE_COUNT, WAITING
from satview.store.axis import files_of
from satview.store.trace import Trace
from satview.timeline.forgetting import forget_thread
from satview.timeline.on_axis import on_axis
from satview.timeline.spans import NO_EVENT, LaneSpans, constant_lane, touching

_KIND = np.full(VALUE_COUNT, WAITING, np.uint8)  # what the state of one thread is to its process
_KIND[[ABSENT, UNKNOWN, READY, RUNNING]] = (ABSENT, UNKNOWN, READY, RUNNING)
_RANKED = (ABSENT, WAITING, UNKNOWN, READY, RUNNING)  # the more to the right, the more it counts
_RANK = np.zeros(256, np.uint8)  # of every value
_RANK[:VALUE_COUNT] = [_RANKED.index(kind) for kind in _KIND.tolist()]


def value_of_code(trace: Trace) -> NDArray[np.uint8]:
    """Return the lane value that every code of the state index puts a thread into, shape (32768,), uint8.

    Creation leaves the state unknown until the kernel reports one; destruction ends the thread.
    """
    table = trace.catalogue.state_value_of_code.copy()
    table[table == NOT_A_STATE] = UNKNOWN
    table[wire.THREAD_DESTROY] = ABSENT
    for part in files.parts if (files := files_of(trace)) is not None else ():
        table[part.codes[wire.THREAD_DESTROY]] = ABSENT
    return table


def idle_values(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the same table for an idle thread: when it runs nothing does, and it is always ready.

    Returns:
        uint8 (32768,), lane value by code.
    """
    table = values.copy()
    table[values == RUNNING] = IDLE
    table[values == READY] = WAITING
    return table


def thread_spans(trace: Trace, thread: int, values: NDArray[np.uint8]) -> LaneSpans:
    """Return the states of one thread over the whole trace.

    A thread that the opening state dump reports had that state before: its first state begins with the trace. One that
    appears later without having been created is unknown until then; one that was created did not exist before. Where
    events are missing it is unknown until its next event.
    """
    if (files := files_of(trace)) is not None and (found := files.part_of_thread(thread)) is not None:
        part, row = found
        return on_axis(trace, part, thread_spans(part.trace, row, values[part.codes]))
    rows = trace.states.of(thread)
    window = trace.window
    if not len(rows):
        return constant_lane(window, UNKNOWN)
    time, value = _states(trace, rows, values)
    before, first = _value_before(trace, time, int(trace.events.code[rows[0]]), value), int(time[0])
    if first > window.start:
        time = np.concatenate((np.array([window.start]), time))
        value = np.concatenate((np.array([before], np.uint8), value))
        rows = np.concatenate((np.array([NO_EVENT], np.uint32), rows))
    return forget_thread(trace, touching(time, value, rows, window.end), first)


def _states(
    trace: Trace, rows: NDArray[np.uint32], values: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return when a thread entered its states, and their values."""
    events = trace.events
    columns = events.code, events.time_cycles, values
    return core_lanes.thread_states(rows, *columns, wire.THREAD_DESTROY, DEAD, ABSENT)


def _value_before(trace: Trace, time: NDArray[np.int64], first_code: int, value: NDArray[np.uint8]) -> int:
    is_created = first_code == wire.THREAD_CREATE
    if int(time[0]) <= trace.dump_end_cycles:
        state = 1 if is_created and len(value) > 1 else 0
        return int(value[state]) if int(time[state]) <= trace.dump_end_cycles else UNKNOWN
    return ABSENT if is_created else UNKNOWN


def process_spans(lanes: Sequence[LaneSpans], end_cycles: int) -> LaneSpans:
    """Return what a process does: RUNNING while any of its threads runs, else READY while any could, else WAITING.

    `ABSENT` while it has no thread. It is not WAITING but `UNKNOWN` while that is not known of all its threads.

    Args:
        lanes: Those of its threads, at least one.
        end_cycles: End of the trace.
    """
    time = np.concatenate([lane.start_cycles for lane in lanes])
    values = np.concatenate([lane.value for lane in lanes])
    event = np.concatenate([lane.event for lane in lanes])
    first = np.concatenate(([0], np.cumsum([len(lane) for lane in lanes])))
    columns = core_lanes.process_states(time, values, event, first, _RANK, _RANKED)
    return LaneSpans(*columns, None, max(end_cycles, int(time.max()) + 1))
