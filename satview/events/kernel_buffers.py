"""Sizes of the kernel's trace buffers by release. Source: trace format, sections 3.2 and 6; capture side, section 4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from satview.events.spec import Release


@dataclass(frozen=True, slots=True)
class BufferSizes:
    """One kernel buffer of 16 KiB.

    Attributes:
        slots: Slots that fit behind its header.
        mark_linear, mark_ring: Slots at which it is closed.
        has_end: It ends with BUFFER_END, and belongs to one CPU (8.0).
    """

    slots: int
    mark_linear: int
    mark_ring: int
    has_end: bool = False


BUFFER_SIZES: Final = {
    Release.QNX_6: BufferSizes(1014, 714, 963),
    Release.QNX_6_6: BufferSizes(1014, 709, 963),
    Release.QNX_7: BufferSizes(1012, 708, 911),
    Release.QNX_8: BufferSizes(1011, 707, 909, has_end=True),
}
