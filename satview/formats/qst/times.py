"""The time of every slot of a QST file, counted backwards from its end where no TIME event shows it.

Stamps have 32 bits. Where every CPU has TIME events, they say which rollover it is, and the rule of .kev files holds.
Elsewhere the last stamp of a CPU is at the end of the trace, and what is before it is counted back from there.
Source: QST description; kernel event trace format, section 5.3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.formats.kev.clocks.clock import held_times
from satview.formats.kev.clocks.rollover import ROLLOVER, unwrap_segments
from satview.formats.kev.slots.slot_source import SlotSource

_CHUNK = 1 << 17
_Ints = NDArray[np.int64]


def times_without_clock(slots: SlotSource) -> _Ints | None:
    """Return the time of every slot in cycles where some CPU has no TIME event; None where all have.

    Args:
        slots: In the order in which the kernel filled its buffers, those of each CPU ascending.

    Returns:
        int64 (len(slots),).
    """
    cpu, is_time = _heads(slots)
    present = np.flatnonzero(np.bincount(cpu, minlength=64))
    timed = np.bincount(cpu[is_time], minlength=64)
    if timed[present].all():
        return None
    stamps = slots.take(np.arange(len(slots), dtype=np.int64), 1)
    out = np.empty(len(slots), np.int64)
    ends = {number: _unwrap(number, slots, stamps, cpu, is_time, out) for number in present.tolist()}
    known = [end for number, end in ends.items() if timed[number]]
    last = max(known) if known else max(ends.values(), key=lambda end: end % ROLLOVER) % ROLLOVER
    for number, end in ends.items():
        if not timed[number]:  # its last stamp is less than a rollover before the end, or at it
            out[cpu == number] += last - (last - end) % ROLLOVER - end
    lowest = int(out.min())
    return out + (-lowest // ROLLOVER + 1) * ROLLOVER if lowest < 0 else out


def _heads(slots: SlotSource) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return the CPU of every slot, and which are usable TIME events."""
    cpu, is_time = np.empty(len(slots), np.uint8), np.empty(len(slots), np.bool_)
    for start in range(0, len(slots), _CHUNK):
        part = slots.read(start, min(start + _CHUNK, len(slots)))
        rows = slice(start, start + len(part))
        cpu[rows] = part[:, 0] >> wire.CPU_SHIFT & wire.CPU_MASK
        is_time[rows] = (part[:, 0] & wire.CODE_MASK == wire.CONTROL_TIME) & (part[:, 2] >> 31 == 0)
    return cpu, is_time


def _unwrap(
    cpu: int,
    slots: SlotSource,
    stamps: NDArray[np.uint32],
    cpus: NDArray[np.uint8],
    is_time: NDArray[np.bool_],
    out: _Ints,
) -> int:
    """Set the times of the slots of one CPU; return the latest one."""
    rows = np.flatnonzero(cpus == cpu)
    time_at = np.flatnonzero(is_time[rows])
    time_slots = rows[time_at].astype(np.int64)
    values = slots.take(time_slots, 2).astype(np.int64) << 32 | slots.take(time_slots, 3)
    unwrap_segments(np.append(int(stamps[rows[0]]), values), stamps, rows, time_at, out)
    if len(time_at):
        before = rows[: time_at[0]]
        out[before] = held_times(stamps[before], int(values[0]))
    return int(out[rows].max())
