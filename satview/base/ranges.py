"""Ranges of whole numbers, many at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def numbers_of(first: NDArray[np.integer[Any]], size: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return the numbers of all ranges, one range after the other, int64 (size.sum(),).

    Args:
        first: (n,), where they begin.
        size: (n,), how many numbers each has, 0 or more.
    """
    first, size = first.astype(np.int64, copy=False), size.astype(np.int64, copy=False)
    ahead = np.cumsum(size) - size  # how far counting all of them is ahead of each first number
    numbers: NDArray[np.int64] = np.arange(int(size.sum()), dtype=np.int64)
    numbers += np.repeat(first - ahead, size)
    return numbers
