"""Columns written out, as tables and readers have them."""

from __future__ import annotations

import numpy as np


def ints(*values: int, kind: type = np.int64) -> np.ndarray:
    """Return a column of numbers."""
    return np.array(values, kind)
