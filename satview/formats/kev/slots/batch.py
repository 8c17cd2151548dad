"""Some events of a stream as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from satview.events import wire


@dataclass(frozen=True, slots=True)
class Batch:
    """Events of one chunk, in delivery order; n events, w payload words, s slots.

    Attributes:
        first_slot: Index in the file of the chunk's first slot.
        slots: uint32 (s, 4), the chunk's slots in host order, of all kinds.
        header: uint32 (n,), header word of each event's first slot.
        stamp: uint32 (n,).
        time_cycles: int64 (n,), rebuilt time.
        thread: uint32 (n,), number of the thread it belongs to, see `EventStream.thread_ids`; 0 = not known.
        start: int64 (n + 1,): payload of event i is `words[start[i]:start[i + 1]]`.
        words: uint32 (w,), payload words in host order.
        last_slot: int64 (n,), position in `slots` of each event's last slot.
        stray_tails: int64 (k,), positions in `slots` of continuation slots that belong to no event.
    """

    first_slot: int
    slots: NDArray[np.uint32]
    header: NDArray[np.uint32]
    stamp: NDArray[np.uint32]
    time_cycles: NDArray[np.int64]
    thread: NDArray[np.uint32]
    start: NDArray[np.int64]
    words: NDArray[np.uint32]
    last_slot: NDArray[np.int64]
    stray_tails: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.header)

    @property
    def code(self) -> NDArray[np.uint16]:
        """Internal class and event, uint16 (n,)."""
        return (self.header & np.uint32(wire.CODE_MASK)).astype(np.uint16)

    @property
    def cpu(self) -> NDArray[np.uint8]:
        """CPU numbers, uint8 (n,)."""
        return (self.header >> np.uint32(wire.CPU_SHIFT) & np.uint32(wire.CPU_MASK)).astype(np.uint8)
