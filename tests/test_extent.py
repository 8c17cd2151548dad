"""The usual run leaves points of matrices out, but no value and no pair of values."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from tests.helpers.extent import pairwise_cover


@pytest.mark.parametrize(
    ("sizes", "most"), [((2, 2, 2), 4), ((22, 4, 2, 2), 88), ((28, 4, 2), 112), ((3, 3, 3, 3), 12)]
)
def test_every_pair_is_met_by_few_points(sizes, most):
    selected = pairwise_cover(sizes)
    assert len(set(selected)) == len(selected) <= most
    for (a, size_a), (b, size_b) in combinations(enumerate(sizes), 2):
        assert {(point[a], point[b]) for point in selected} == set(product(range(size_a), range(size_b)))


def test_two_axes_are_complete():
    assert pairwise_cover((2, 3)) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert pairwise_cover((3,)) == [(0,), (1,), (2,)]
