"""Records whose fields are columns of one length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


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
