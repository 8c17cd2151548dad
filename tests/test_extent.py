"""The usual run leaves points of matrices out, but no value; the thorough one no pair of values."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from tests.helpers.extent import pairwise_cover, value_cover


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


@pytest.mark.parametrize(
    ("sizes", "most"),
    [((2, 2, 2), 2), ((22, 4, 2, 2), 22), ((28, 4, 2), 28), ((3, 2, 4), 4), ((5, 4), 5), ((3,), 3), ((6, 6, 6, 3), 6)],
)
def test_every_value_is_met_by_as_few_points_as_the_longest_axis_has_values(sizes, most):
    selected = value_cover(sizes)
    assert len(set(selected)) == len(selected) <= most
    for axis, size in enumerate(sizes):
        assert {point[axis] for point in selected} == set(range(size))


def test_pairs_of_short_axes_are_met_where_one_axis_is_long():
    sizes = (22, 4, 2, 2)
    for a, b in combinations((1, 2, 3), 2):
        assert {(point[a], point[b]) for point in value_cover(sizes)} == set(product(range(sizes[a]), range(sizes[b])))
