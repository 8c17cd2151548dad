"""What is known of kernel calls beyond names and arguments."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from satview.events import rows, wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release


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
    """Return name to number of the kernel calls of a release, 64-bit forms left out; empty for other formats."""
    if release not in rows.RELEASE_ORDER:
        return {}
    book = catalogue(release)
    return {book.name(wire.code(wire.WireClass.KER_CALL, number)): number for number in range(wire.KER_EXIT_OFFSET)}
