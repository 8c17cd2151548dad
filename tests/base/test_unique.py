"""The different values are those that numpy finds."""

from __future__ import annotations

import numpy as np
import pytest

from satview.base.unique import unique, unique_rows


@pytest.mark.parametrize("count", [0, 1, 2, 300])
def test_values_and_rows_are_those_of_numpy(count: int) -> None:
    rng = np.random.default_rng(count)
    values, rows = rng.integers(-9, 9, count), rng.integers(-2, 3, (count, 3))
    assert unique(values).tolist() == np.unique(values).tolist()
    assert unique_rows(rows).tolist() == np.unique(rows, axis=0).tolist()


def test_by_hand() -> None:
    assert unique(np.array([3, 1, 3, -1], np.int32)).tolist() == [-1, 1, 3]
    assert unique_rows(np.array([[2, 1], [1, 5], [2, 1], [1, 4]])).tolist() == [[1, 4], [1, 5], [2, 1]]
