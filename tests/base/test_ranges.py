from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.base.column_arrays import numbers_of


def test_one_range_after_the_other():
    assert numbers_of(np.array([7, 100, 3]), np.array([3, 0, 2])).tolist() == [7, 8, 9, 3, 4]


@given(st.lists(st.tuples(st.integers(0, 1 << 31), st.integers(0, 9))))
@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64, np.int64])
def test_as_a_loop_would(dtype, ranges):
    first = np.array([each for each, _ in ranges], np.uint32)
    size = np.array([each for _, each in ranges], dtype)
    found = numbers_of(first, size)
    assert found.dtype == np.int64
    assert found.tolist() == [number for start, count in ranges for number in range(start, start + count)]
