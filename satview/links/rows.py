"""Rows of events that links are made of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events.wire import CLASS_SHIFT, WireClass
from satview.store.trace import Trace

_BLOCK: Final = 1 << 16


def rows_of_class(trace: Trace, wire_class: WireClass) -> NDArray[np.uint32]:
    """Return the rows of the events of an internal class, uint32, ascending."""
    code = trace.events.code
    found = [np.flatnonzero(code[i : i + _BLOCK] >> CLASS_SHIFT == wire_class) + i for i in range(0, len(code), _BLOCK)]
    return np.concatenate(found).astype(np.uint32) if found else np.empty(0, np.uint32)


def by_cpu(trace: Trace, rows: NDArray[np.uint32]) -> Iterator[tuple[int, NDArray[np.uint32]]]:
    """Yield every CPU that has some of the ascending rows, and its rows, ascending."""
    cpu = trace.events.cpu[rows]
    order = np.argsort(cpu, kind="stable")
    rows = rows[order]
    ends = np.cumsum(np.bincount(cpu))
    for number, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
        if end > start:
            yield number, rows[start:end]


def narrow(numbers: NDArray[np.integer], count: int) -> NDArray[np.integer]:
    """Return numbers below `count` in the type that numpy sorts by their digits, five times as fast, if they fit."""
    return numbers.astype(np.uint16) if count <= 1 << 16 else numbers
