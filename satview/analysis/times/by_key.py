"""Sums, maxima and percentiles of values that belong to keys: all in whole cycles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from satview.store.time_ranges import Cycles

Keys = NDArray[np.integer[Any]]


def sum_by(keys: Keys, values: Cycles, count: int) -> Cycles:
    """Return the sum of the values of each key below `count`, exact, int64 (count,)."""
    total = np.zeros(count, np.int64)
    np.add.at(total, keys, values)
    return total


def largest_by(keys: Keys, values: Cycles, count: int) -> tuple[Cycles, Cycles]:
    """Return the largest value of each key and where it first is, int64 (count,); 0 and -1 for keys without one."""
    largest, position = np.zeros(count, np.int64), np.full(count, -1, np.int64)
    np.maximum.at(largest, keys, values)
    found = np.flatnonzero(values == largest[keys])[::-1]  # backwards, so that the first of equals is written last
    position[keys[found]] = found
    return largest, position


def percentile_by(keys: Keys, values: Cycles, count: int, share: float) -> Cycles:
    """Return the value of each key that a share of its values do not exceed, int64 (count,); 0 for keys without one."""
    return percentiles_by(keys, values, count, (share,))[0]


def percentiles_by(keys: Keys, values: Cycles, count: int, shares: Sequence[float]) -> tuple[Cycles, ...]:
    """Return what `percentile_by` does for several shares; the values are sorted once."""
    order = np.argsort(values)
    by_key = keys[order].astype(np.uint16) if count <= 1 << 16 else keys[order]  # short keys sort fast
    order = order[np.argsort(by_key, kind="stable")]
    size = np.bincount(keys, minlength=count)
    start, ascending = np.cumsum(size) - size, np.append(values[order], 0)
    ranks = (np.maximum(np.ceil(share * size).astype(np.int64) - 1, 0) for share in shares)
    return tuple(ascending[np.where(size > 0, start + rank, len(values))] for rank in ranks)
