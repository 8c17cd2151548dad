"""Columns that lie beside each other as tables, and ranges of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

# Records whose fields are columns of one length.


@dataclass(frozen=True, slots=True)
class ColumnTable:
    """A table of columns: subclasses are frozen dataclasses whose fields are all arrays of shape (n,)."""

    def taken(self, rows: NDArray[Any] | slice) -> Self:
        """Return some rows.

        Args:
            rows: Their positions, intp (k,), in any order; or bool (n,); or a range of them.
        """
        return type(self)(*(getattr(self, column.name)[rows] for column in fields(self)))

    @classmethod
    def concatenated(cls, tables: Sequence[Self]) -> Self:
        """Return the rows of several tables as one; of one table at least, whose types the columns have."""
        return cls(*(np.concatenate([getattr(table, column.name) for table in tables]) for column in fields(cls)))


# Ranges of whole numbers, many at a time.


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
