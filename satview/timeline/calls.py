"""Pairs: the exit of a kernel call, of an interrupt, of a handler; and which buffers were lost between events."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace

_STEP = 1 << 16
_LIMIT = 1 << 24  # events looked at before giving up; a call blocked for longer keeps its pair unknown


def partner(trace: Trace, event: int) -> int | None:
    """Return the event that ends or begins what an event begins or ends, None if there is none or it is not known.

    Kernel calls pair per thread: the exit is the thread's next exit of the same call, unless the same call begins anew
    before it (a restarted call: only the last one counts). Interrupts and their handlers pair per CPU, nested.
    """
    if trace.pairs is not None:
        other = int(trace.pairs[event])
        return other if other < len(trace.events) else None
    code = int(trace.events.code[event])
    kind, number = wire.class_of(code), wire.event_of(code)
    if kind == wire.WireClass.KER_CALL:
        return _call_partner(trace, event, number)
    if kind == wire.WireClass.INT and number in _INT_OPENS | _INT_CLOSES:
        return _interrupt_partner(trace, event, number)
    return None


_INT_OPENS = {1: 2, 5: 2, 3: 4, 6: 4}
_INT_CLOSES = {2: (1, 5), 4: (3, 6)}


def _call_partner(trace: Trace, event: int, number: int) -> int | None:
    events = trace.events
    thread, cpu = int(events.thread[event]), int(events.cpu[event])
    is_enter = number & 0x180 == 0
    base = wire.code(wire.WireClass.KER_CALL, number & 0x7F)
    forms = [base | extra | wide for extra in (0, 128, 256) for wide in (0, wire.KER_64BIT)]
    enters = {base, base | wire.KER_64BIT}
    for rows in _around(trace, event, forward=is_enter):
        same = np.isin(events.code[rows], forms)
        same &= (events.thread[rows] == thread) if thread != UNKNOWN_THREAD else (events.cpu[rows] == cpu)
        found = rows[same]
        if len(found):
            nearest = int(found[0])
            is_pair = (int(events.code[nearest]) in enters) != is_enter
            return nearest if is_pair else None
    return None


def _interrupt_partner(trace: Trace, event: int, number: int) -> int | None:
    events = trace.events
    is_open = number in _INT_OPENS
    closing = _INT_OPENS[number] if is_open else number
    opening = _INT_CLOSES[closing]
    depth = 0
    for rows in _around(trace, event, forward=is_open):
        mine = rows[
            (events.cpu[rows] == events.cpu[event]) & (events.code[rows] >> wire.CLASS_SHIFT == wire.WireClass.INT)
        ]
        for row in mine.tolist():
            kind = wire.event_of(int(events.code[row]))
            step = 1 if kind in opening else -1 if kind == closing else 0
            depth += step if is_open else -step
            if depth < 0:
                return int(row)
    return None


def _around(trace: Trace, event: int, forward: bool) -> Iterator[NDArray[np.int64]]:
    """Yield event rows after (or before) an event, nearest first, some ten thousand at a time."""
    n = len(trace.events)
    for i in range(0, _LIMIT, _STEP):
        if forward:
            start = event + 1 + i
            if start >= n:
                return
            yield np.arange(start, min(n, start + _STEP))
        else:
            end = event - i
            if end <= 0:
                return
            yield np.arange(max(0, end - _STEP), end)[::-1]


def lost_marks(trace: Trace) -> NDArray[np.int64]:
    """Return the stretches of time in which events are missing, shape (k, 2): start and end in cycles, ascending.

    A lost buffer lies between the last event before its place in the file and the first event after it; an event that
    the kernel itself reports as dropped marks its own moment.
    """
    buffers, events = trace.buffers, trace.events
    marks = []
    gaps = np.flatnonzero(buffers.lost_before)
    for i in gaps.tolist():
        end = int(buffers.time_cycles[i])
        before = int(np.searchsorted(events.time_cycles, end)) - 1
        start = int(events.time_cycles[before]) if before >= 0 else end
        marks.append((start, max(end, start + 1)))
    for row in np.flatnonzero(events.code == wire.CONTROL_DROPPED).tolist():
        time = int(events.time_cycles[row])
        marks.append((time, time + 1))
    return np.array(sorted(marks), np.int64).reshape(-1, 2)
