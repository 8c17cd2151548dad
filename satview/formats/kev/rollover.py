"""Extends 32-bit stamps, the low half of a 64-bit counter, to the full counter.

Source: kernel event trace format, section 5.3. A stamp is at most a quarter of a rollover period before the reference
of its CPU and less than three quarters after it; the reference is the latest time found so far.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

ROLLOVER: Final = 1 << 32  # cycles from one rollover of the 32-bit stamp to the next
SLACK: Final = 1 << 30
# At 2.6 GHz stamps roll over every 1.65 s.
_MOST_SPANS: Final = 8  # maximum rollovers of a CPU between two TIMEs; later events are garbage, handled one by one


def unwrap(reference: int, stamp: int) -> int:
    """Return the 64-bit time of a stamp, given its CPU's reference."""
    # Asymmetric on purpose: a late block goes back only a little, while a CPU may be silent for long (section 5.4).
    ahead = (stamp - reference) % ROLLOVER
    return reference + ahead if ahead < ROLLOVER - SLACK else reference - (ROLLOVER - ahead)


def unwrap_segments(
    starts: NDArray[np.int64],
    stamps: NDArray[np.uint32],
    rows: NDArray[np.intp],
    time_at: NDArray[np.intp],
    out: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Set the 64-bit times of the events of a CPU; every TIME event begins a segment with a new reference.

    Args:
        starts: int64, (k + 1,), the initial reference and the reference from each TIME event.
        stamps: uint32, of all events.
        rows: Positions of the CPU's events, ascending.
        time_at: (k,), indices of the TIME events in `rows`, ascending.
        out: int64, receives the times at `rows`.

    Returns:
        int64, (k + 1,), the reference at the end of each segment.
    """
    sizes = np.diff(time_at, prepend=0, append=len(rows))
    start = np.repeat(starts, sizes)
    ahead = stamps[rows].astype(np.int64)
    ahead -= start
    ahead &= ROLLOVER - 1
    ahead[ahead >= ROLLOVER - SLACK] -= ROLLOVER
    start += ahead
    out[rows] = start
    # The stamp of a TIME event is read a little after the counter, so it does not move the reference.
    ahead[time_at] = 0
    # The running maximum within segments: each segment is lifted above those before it.
    # Distances within a segment are below 2^33, so lifted segments cannot reach each other.
    lift = np.repeat(np.arange(len(starts)) << 33, sizes)
    latest = np.maximum(ahead, 0)
    latest += lift
    np.maximum.accumulate(latest, out=latest)
    latest -= lift
    filled, last = sizes > 0, np.cumsum(sizes) - 1
    ends = starts.copy()
    ends[filled] += latest[last[filled]]
    # In a segment of more than half a rollover, stamps may be too far from the reference: it is processed in steps.
    behind = np.concatenate(([0], latest[:-1]))
    behind[time_at] = 0
    left = np.flatnonzero(ahead < behind - SLACK)
    for number in np.unique(np.searchsorted(last, left)).tolist():
        begin = last[number] - sizes[number] + 1 + (number > 0)  # without the TIME event
        segment_rows = rows[begin : last[number] + 1]
        ends[number] = _unwrap_spans(int(starts[number]), stamps, segment_rows, out)
    return ends


def _unwrap_spans(reference: int, stamps: NDArray[np.uint32], rows: NDArray[np.intp], out: NDArray[np.int64]) -> int:
    """Set the times of a CPU's events between two TIMEs, rollover by rollover; return the new reference."""
    for _ in range(_MOST_SPANS):
        if not len(rows):
            return reference
        low_times = stamps[rows].astype(np.int64)
        times = low_times + (unwrap(reference, int(low_times[0])) - int(low_times[0]))
        running = np.maximum.accumulate(np.maximum(times, reference))
        # Each event is judged by the reference before it: the running maximum one position earlier.
        before = np.concatenate(([reference], running[:-1]))
        misplaced = (times < before - SLACK) | (times >= before + ROLLOVER - SLACK)
        fits = int(np.argmax(misplaced)) if misplaced.any() else len(rows)
        out[rows[:fits]] = times[:fits]
        reference = int(running[fits - 1])
        rows = rows[fits:]
    return _unwrap_rest(reference, stamps, rows, out)


def _unwrap_rest(reference: int, stamps: NDArray[np.uint32], rows: NDArray[np.intp], out: NDArray[np.int64]) -> int:
    times, limit = [], ROLLOVER - SLACK
    for stamp in stamps[rows].tolist():
        ahead = (
            stamp - reference
        ) % ROLLOVER  # as in `unwrap`, without the call: damaged files run this loop for each event
        if ahead < limit:
            reference += ahead
            times.append(reference)
        else:
            times.append(reference - ROLLOVER + ahead)
    out[rows] = times
    return reference
