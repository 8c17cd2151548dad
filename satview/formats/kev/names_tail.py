"""Finds the names appended to a ring capture, whose times are after the capture.

A kernel of 7.x or 8.0 writes the names of processes and threads when a ring is saved, after a pause of more than a
second. The trace has no events from this pause, so no state may extend through it.

Source: kernel event trace format, sections 5.5 and 6.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.formats.kev.clocks.clock import ClockRebuilder
from satview.formats.kev.clocks.clock_review import correct
from satview.formats.kev.clocks.consensus import ClockVerdicts, Surroundings
from satview.formats.kev.decoded import Decoded
from satview.formats.kev.slots.buffers import EventRegion
from satview.store.problems import Problems

MOST_EVENTS: Final = 1 << 17  # upper limit for the number of names of processes and threads
_PAUSE_S: Final = 1
_NAMES: Final = (wire.PROC_CREATE, wire.PROC_CREATE_NAME, wire.PROC_THREAD_NAME)


def _table_of_codes() -> NDArray[np.bool_]:
    """Return which codes the tail may contain: control events, names, creations, states; bool (32768,)."""
    codes = np.arange(wire.CODE_COUNT)
    wire_class = codes >> wire.CLASS_SHIFT
    is_state = wire.are_of_threads(codes)
    is_state[wire.THREAD_DESTROY] = False
    return np.asarray((wire_class == wire.WireClass.CONTROL) | is_state | np.isin(codes, _NAMES))


_MAY_HOLD: Final = _table_of_codes()


def is_ring(surroundings: Surroundings, code: NDArray[np.unsignedinteger], words: NDArray[np.uint32]) -> bool:
    """Return whether a file is a ring capture: by the logger's arguments, or by buffers that were never handed over.

    Args:
        surroundings: Information from the header.
        code: uint16 (n,), codes of all CONTROL events, and maybe of others.
        words: uint32 (n, 2), first two payload words of these events.
    """
    return surroundings.says_ring or bool(np.any((code == wire.CONTROL_BUFFER) & (words[:, 1] == 0)))


@dataclass(frozen=True, slots=True)
class LastEvents:
    """The last events of a file in file order, with times before corrections.

    Attributes:
        first_row: Row of the first of these events.
        time: int64 (n,), cycles.
        cpu: uint8 (n,).
        code: uint16 (n,).
        thread: (n,), identifies the thread of THREAD events.
    """

    first_row: int
    time: NDArray[np.int64]
    cpu: NDArray[np.uint8]
    code: NDArray[np.uint16]
    thread: NDArray[np.unsignedinteger]


def first_of_tail(last: LastEvents, cycles_per_s: int, clock: ClockRebuilder | None) -> int | None:
    """Return the row of the first of the names appended to a ring capture; None if there are none.

    This event follows a pause of more than a second. After it there are only names, control events, and creations with
    at most one state each (as in the dump of START).

    Args:
        last: The last events; more than a target has processes and threads.
        cycles_per_s: Rate of the clock.
        clock: The clock after all events; None = the source gives the times.
    """
    start = _names_from(last.code, last.thread)
    if not start > 0 or not np.isin(last.code[start:], _NAMES[1:]).any():
        return None
    time = last.time
    if clock is not None:
        corrections = verdicts_without_tail(clock, time[:start], last.cpu[:start], last.first_row + start).corrections
        time = time.copy()
        correct(corrections, time[:start], last.cpu[:start], last.code[:start], last.first_row)
    latest = np.maximum.accumulate(np.append(time[:start].max(), time[start:-1]))
    behind = np.flatnonzero(time[start:] - latest > _PAUSE_S * cycles_per_s)
    if not len(behind) or not np.isin(last.code[start + behind[0] :], _NAMES[1:]).any():
        return None
    return last.first_row + start + int(behind[0])


def _names_from(code: NDArray[np.uint16], thread: NDArray[np.unsignedinteger]) -> int:
    """Return the start of the longest tail of names, control events, and creations with at most one state each."""
    others = np.flatnonzero(~_MAY_HOLD[code])
    start = int(others[-1]) + 1 if len(others) else 0
    code, thread = code[start:], thread[start:]
    is_thread = wire.are_of_threads(code)
    states = np.flatnonzero(is_thread & (code != wire.THREAD_CREATE))
    _, from_end = np.unique(thread[states][::-1], return_index=True)
    is_last = np.zeros(len(states), np.bool_)
    is_last[len(states) - 1 - from_end] = True
    is_reported = is_last & np.isin(thread[states], thread[code == wire.THREAD_CREATE])
    activity = states[~is_reported]
    return start + (int(activity[-1]) + 1 if len(activity) else 0)


def verdicts_without_tail(
    clock: ClockRebuilder, time: NDArray[np.int64], cpu: NDArray[np.uint8], tail_row: int
) -> ClockVerdicts:
    """Return the clock verdicts as if the file ended before the appended names, whose only TIME event is unconfirmed.

    Args:
        clock: The clock after all events.
        time: int64 (n,), times of the last events before the tail, in file order.
        cpu: uint8 (n,), CPUs of these events.
        tail_row: Row of the first event of the tail.
    """
    cpus, from_end = np.unique(cpu[-MOST_EVENTS:][::-1], return_index=True)
    rows = len(cpu) - 1 - from_end
    ends = dict(
        zip(cpus.tolist(), zip((rows + tail_row - len(cpu)).tolist(), time[rows].tolist(), strict=True), strict=True)
    )
    return clock.verdicts_before(tail_row, ends)


def report_names(decoded: Decoded, tail_row: int, cycles_per_s: int, region: EventRegion, problems: Problems) -> None:
    """Report the names appended to a ring capture.

    Args:
        decoded: Columns in file order, times corrected.
        tail_row: First event of the tail.
        cycles_per_s: Rate of the clock.
        region: For byte offsets.
        problems: Receives the report.
    """
    count = len(decoded.time) - tail_row
    pause_s = int(decoded.time[tail_row:].min() - decoded.time[:tail_row].max()) / cycles_per_s
    problems.add(
        "ring-names",
        f"{count} events {pause_s:.3g} s after the capture name processes and threads; nothing else is taken of them",
        region.byte(int(decoded.slot[tail_row])),
        count,
    )
