"""Builds slots from events as they are read, in host order."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from satview.events.wire import CPU_SHIFT, STRUCT_SHIFT, Struct

_BEGIN = Struct.COMBINE_BEGIN << STRUCT_SHIFT
_CONTINUE = Struct.COMBINE_CONTINUE << STRUCT_SHIFT
_END = Struct.COMBINE_END << STRUCT_SHIFT
_LOW = 0xFFFFFFFF


class SlotList:
    """A growing list of slots: 16 bytes each, and 8 for its full time where the listing gives one."""

    def __init__(self) -> None:
        self._words = array("I")  # 32 bits wherever CPython runs
        self._times = array("q")
        self.has_full_times = False
        self._listed_slot, self._listed_variant = array("q"), array("i")

    def __len__(self) -> int:
        return len(self._words) // 4

    def event(self, code: int, cpu: int, time_cycles: int, words: list[int], variant: int = 0) -> None:
        """Append an event: one slot for up to two words, else combine slots, padded with a zero word.

        Args:
            code: 15 bits.
            cpu: 0 to 63.
            time_cycles: As printed, 32 or up to 63 bits.
            words: Payload.
            variant: Of its layout where only its line shows that; else 0.
        """
        if variant:
            self._listed_slot.append(len(self) + max(1, (len(words) + 1) // 2) - 1)
            self._listed_variant.append(variant)
        header, stamp = code | cpu << CPU_SHIFT, time_cycles & _LOW
        self.has_full_times |= time_cycles > _LOW
        if len(words) <= 2:
            self._words.extend((header, stamp, words[0], words[1] if len(words) > 1 else 0))
            self._times.append(time_cycles)
            return
        last = len(words) - 1 & ~1
        for at in range(0, len(words), 2):
            kind = _BEGIN if at == 0 else _END if at == last else _CONTINUE
            self._words.extend((header | kind, stamp, words[at], words[at + 1] if at + 1 < len(words) else 0))
            self._times.append(time_cycles)

    def slot(self, header: int, stamp: int, first: int, second: int) -> None:
        """Append one slot as it is."""
        self._words.extend((header, stamp, first, second))
        self._times.append(stamp)

    def slots(self) -> NDArray[np.uint32]:
        """Return all slots, shape (n, 4), host order."""
        return np.frombuffer(self._words, np.uint32).reshape(-1, 4)

    def listed(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return the last slots of the events whose layout only their line shows, ascending, and its variants."""
        return np.frombuffer(self._listed_slot, np.int64), np.frombuffer(self._listed_variant, np.int32)

    def times(self) -> NDArray[np.int64]:
        """Return the time of every slot as printed, shape (n,)."""
        return np.frombuffer(self._times, dtype=np.int64)
