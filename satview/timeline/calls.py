"""Pairs: the exit of a kernel call, of an interrupt, of a handler."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.store.losses import losses, losses_of
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace

_STEP = 1 << 16
_LIMIT = 1 << 24  # events looked at before giving up; a call blocked for longer keeps its pair unknown


def partner(trace: Trace, event: int) -> int | None:
    """Return the event that ends or begins what an event begins or ends, None if there is none or it is not known.

    Kernel calls pair per thread: the exit is the thread's next exit of the same call, unless the same call begins anew
    before it (a restarted call: only the last one counts). Interrupts and their handlers pair per CPU, nested. Where
    events are missing in between, no pair is sure.
    """
    if trace.pairs is not None:
        other = int(trace.pairs[event])
        return other if other < len(trace.events) else None
    code = int(trace.events.code[event])
    kind, number = wire.class_of(code), wire.event_of(code)
    if kind == wire.WireClass.KER_CALL:
        return _if_whole(trace, event, _call_partner(trace, event, number), losses(trace)[:, :2])
    if kind == wire.WireClass.INT and number in _INT_OPENS | _INT_CLOSES:
        lost = losses_of(losses(trace), int(trace.events.cpu[event]))
        return _if_whole(trace, event, _interrupt_partner(trace, event, number), lost)
    return None


def _if_whole(trace: Trace, event: int, other: int | None, lost: NDArray[np.int64]) -> int | None:
    """Return the other event of a pair, None if events are missing between the two."""
    if other is None or not len(lost):
        return other
    first, last = sorted((int(trace.events.time_cycles[event]), int(trace.events.time_cycles[other])))
    return None if np.any((lost[:, 0] < last) & (lost[:, 1] > first)) else other


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
        mine = same & (events.thread[rows] == thread)
        if thread == UNKNOWN_THREAD:
            # Such a caller can only be told from the next thread that the CPU runs by its being there still.
            mine &= events.cpu[rows] == cpu
            doubt = (events.code[rows] == wire.THREAD_RUNNING) & (events.cpu[rows] == cpu)
        else:
            doubt = same & (events.thread[rows] == UNKNOWN_THREAD)  # may be its own
        found = np.flatnonzero(mine | doubt)
        if len(found):
            nearest = int(rows[found[0]])
            is_pair = not doubt[found[0]] and (int(events.code[nearest]) in enters) != is_enter
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
