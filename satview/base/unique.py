"""Values without their repetitions, without what `numpy.unique` imports for masked arrays."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Scalar = TypeVar("_Scalar", bound=np.generic)


def unique(values: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Return the different values, ascending, as `numpy.unique` does, which imports `numpy.ma` (10 ms).

    Args:
        values: (n,), any type that can be sorted, without NaN.
    """
    ordered: NDArray[_Scalar] = np.sort(values)
    found: NDArray[_Scalar] = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return found


def unique_rows(rows: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Return the different rows of a table (n, k), ascending by their first column, then by the second, and so on."""
    ordered: NDArray[_Scalar] = rows[np.lexsort(rows.T[::-1])]
    found: NDArray[_Scalar] = ordered[np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))[: len(ordered)]]
    return found
