"""Kernel calls by release: numbers and whether they block; and the sizes of the kernel's trace buffers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import rows, wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release

# Sizes of the kernel's trace buffers by release. Source: trace format, sections 3.2 and 6; capture side, section 4.


@dataclass(frozen=True, slots=True)
class BufferSizes:
    """Sizes of one trace buffer of the kernel, which has 16 KiB.

    Attributes:
        slots: Number of event slots that fit behind the header of the buffer.
        mark_linear, mark_ring: Number of slots at which the kernel closes the buffer in linear and in ring mode.
        has_end: Whether the buffer ends with BUFFER_END and belongs to one CPU (8.0).
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


@cache
def never_block(release: Release) -> NDArray[np.bool_]:
    """Return which kernel calls never block their caller, bool (128,) by number; read-only.

    Source: `resources/events/kernel_calls.toml`, block `never_block`.
    """
    table = np.zeros(128, np.bool_)
    if release in rows.RELEASE_ORDER:
        names = {name for line in rows.columns("kernel_calls", "never_block") for name in line}
        column = rows.RELEASE_ORDER.index(release)
        for name, *numbers in rows.columns("kernel_calls", "calls"):
            if name in names and numbers[column] != "-":
                table[int(numbers[column])] = True
    table.setflags(write=False)
    return table


@cache
def call_numbers(release: Release) -> dict[str, int]:
    """Return the numbers of the kernel calls of a release by name, without 64-bit forms; empty for other systems."""
    if release not in rows.RELEASE_ORDER:
        return {}
    book = catalogue(release)
    return {book.name(wire.code(wire.WireClass.KER_CALL, number)): number for number in range(wire.KER_EXIT_OFFSET)}
