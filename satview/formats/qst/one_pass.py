"""The slots of a QST file in time order, for commands that go through a trace once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.formats.kev.slots.slot_source import ScatteredSlots
from satview.formats.qst.reader import Start, open_qst, read_start
from satview.formats.qst.sections import Buffers
from satview.store.trace import Trace

_CHUNK: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class OnePass:
    """What one pass over a QST file needs.

    Attributes:
        start: Heads, header, problems so far.
        slots: Buffers of all CPUs in the order of their first events.
        times: int64 (slots,), cycles.
    """

    start: Start
    slots: ScatteredSlots
    times: NDArray[np.int64]

    def blocks(self) -> Iterator[NDArray[np.uint32]]:
        """Yield the slots in chunks, uint32 (n, 4), host order."""
        for start in range(0, len(self.slots), _CHUNK):
            yield self.slots.read(start, min(start + _CHUNK, len(self.slots)))


def one_pass(path: Path) -> OnePass:
    """Return the slots of a file in time order: it is opened first, since the buffers of a CPU are together in it.

    Raises:
        TraceFormatError: As `reader.open_qst`.
        OSError: It cannot be read.
    """
    times = _slot_times(open_qst(path))
    start = read_start(path)
    first_slots = start.slots.first
    order = np.argsort(times[first_slots[:-1]], kind="stable")
    main = start.contents.main
    buffers = Buffers(main.at[order], main.slots[order], main.cpu[order], main.sequence[order])
    moved = np.concatenate([times[first_slots[buffer] : first_slots[buffer + 1]] for buffer in order.tolist()])
    return OnePass(start, buffers.slots_in(start.file, start.contents.byte_order), moved)


def _slot_times(trace: Trace) -> NDArray[np.int64]:
    """Return the time of every slot: that of the event which begins there or before."""
    order = np.argsort(trace.events.slot, kind="stable")
    slot, time = trace.events.slot[order].astype(np.int64), trace.events.time_cycles[order]
    row = np.searchsorted(slot, np.arange(trace.slot_count), "right") - 1
    return np.asarray(time[np.maximum(row, 0)])
