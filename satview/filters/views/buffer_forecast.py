"""How selected events would fill kernel buffers: which BUFFER, BUFFER_END and TIME events the kernel adds.

The rules are those of the capture side, section 4, and of the trace format, section 6: a buffer begins with BUFFER, a
CPU's first event in it follows a TIME, so does one whose stamp is lower than the CPU's last; at the high-water mark the
buffer is closed, within an interrupt only once the kernel leaves it; in 8.0 every CPU has buffers of its own, which end
with BUFFER_END. Nobody is too slow here: no buffer is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.kernel_calls import BUFFER_SIZES, BufferSizes
from satview.events.spec import Release
from satview.events.wire import WireClass, code

_LOW: Final = 0xFFFFFFFF
_ENTERS: Final = [code(WireClass.INT, event) for event in (1, 5)]
_LEAVES: Final = code(WireClass.INT, 2)


@dataclass(slots=True)
class ControlEvents:
    """What the kernel adds: numbers of events, each one slot."""

    buffers: int = 0
    buffer_ends: int = 0
    times: int = 0

    @property
    def count(self) -> int:
        """All of them."""
        return self.buffers + self.buffer_ends + self.times


def outer_interrupts(codes: NDArray[np.uint16]) -> NDArray[np.int32]:
    """Return for each event the number, from 1, of the outermost interrupt the kernel is in; 0 = none; int32 (n,).

    Entry and exit of an interrupt belong to it.

    Args:
        codes: (n,), all events of a trace in time order, those that are not selected included.
    """
    leaves = codes == _LEAVES
    depth = np.cumsum(np.isin(codes, _ENTERS).astype(np.int32) - leaves.astype(np.int32), dtype=np.int32)
    is_inside = depth + leaves > 0
    begins = is_inside & (np.concatenate(([0], depth[:-1])) <= 0)
    return np.asarray(np.where(is_inside, np.cumsum(begins, dtype=np.int32), 0))


def control_events(
    release: Release,
    cpus: NDArray[np.uint8],
    times: NDArray[np.int64],
    slots: NDArray[np.integer],
    interrupts: NDArray[np.int32],
    logs_time: bool,
) -> ControlEvents:
    """Return what the kernel adds to events in time order.

    Args:
        release: Decides the sizes.
        cpus: (n,), CPU of each event.
        times: (n,), its stamp in cycles.
        slots: (n,), how many slots it takes.
        interrupts: (n,), as `outer_interrupts` returns them: a buffer that is full within one is closed at its end.
        logs_time: Whether TIME passes the filters.
    """
    sizes, found = BUFFER_SIZES[release], ControlEvents()
    groups = [np.flatnonzero(cpus == cpu) for cpu in np.unique(cpus)] if sizes.has_end else [np.arange(len(cpus))]
    for rows in groups:
        _fill(sizes, cpus[rows], times[rows] & _LOW, slots[rows].astype(np.int64), interrupts[rows], logs_time, found)
    return found


def _fill(
    sizes: BufferSizes,
    cpus: NDArray[np.uint8],
    stamps: NDArray[np.int64],
    slots: NDArray[np.int64],
    interrupts: NDArray[np.int32],
    logs_time: bool,
    found: ControlEvents,
) -> None:
    """Fill the buffers of one ring; a step per buffer."""
    rollovers = _rollovers(cpus, stamps)
    at, left = 0, 0  # next event, and slots of the one before that did not fit its buffer
    while at < len(cpus) or left:
        found.buffers += 1
        found.buffer_ends += sizes.has_end
        room = sizes.mark_linear - 1 - left
        part = slice(at, at + sizes.slots)
        has_time = rollovers[part].copy()
        has_time[np.unique(cpus[part], return_index=True)[1]] = True
        used = np.cumsum(slots[part] + has_time * logs_time)
        end = int(np.searchsorted(used, room))
        if end == len(used):  # the last buffer
            found.times += int(has_time.sum()) * logs_time
            return
        number = interrupts[at + end]
        if number:
            while end + 1 < len(used) and interrupts[at + end + 1] == number:
                end += 1
            left = 0
        else:
            left = int(used[end]) - room
        found.times += int(has_time[: end + 1].sum()) * logs_time
        if not number and left >= slots[at + end]:  # its TIME was the last that fitted
            left, end = 0, end - 1
        at += end + 1


def _rollovers(cpus: NDArray[np.uint8], stamps: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return where a stamp is lower than the last one of the same CPU, bool (n,)."""
    order = np.argsort(cpus, kind="stable")
    lower = np.zeros(len(cpus), np.bool_)
    is_same = cpus[order][1:] == cpus[order][:-1]
    lower[order[1:]] = is_same & (stamps[order][1:] < stamps[order][:-1])
    return lower
