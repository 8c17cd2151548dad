"""Ranges of time against sets of single cycles, sums by key against loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from satview.analysis.times.basis import largest_by, percentile_by, sum_by
from satview.store.time_ranges import TimeRanges

PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12)


def made(pairs):
    return TimeRanges.of(np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64))


def cycles(ranges):
    return {t for a, b in zip(ranges.start.tolist(), ranges.end.tolist(), strict=True) for t in range(a, b)}


def covered(pairs):
    return {t for a, b in pairs for t in range(a, b)}


@given(PAIRS)
def test_of_covers_what_any_covers_and_nothing_touches(pairs):
    found = made(pairs)
    assert cycles(found) == covered(pairs)
    assert (found.end > found.start).all()
    assert (found.start[1:] > found.end[:-1]).all()


@given(PAIRS, st.tuples(st.integers(-5, 70), st.integers(-5, 70)).map(sorted))
def test_within(pairs, ends):
    start, end = (np.array([t]) for t in ends)
    assert made(pairs).within(start, end).tolist() == [len(covered(pairs) & set(range(*ends)))]


@given(PAIRS, st.tuples(st.integers(-5, 70), st.integers(-5, 70)).map(sorted))
def test_meet(pairs, ends):
    expected = bool(covered(pairs) & set(range(*ends)))
    assert made(pairs).meet(np.array(ends[:1]), np.array(ends[1:])).tolist() == [expected] or ends[0] == ends[1]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2**60)), max_size=40))
def test_sums_and_largest_by_key(rows):
    keys, values = np.array([k for k, _ in rows], np.int64), np.array([v for _, v in rows], np.int64)
    total, (largest, position) = sum_by(keys, values % 2**57, 5), largest_by(keys, values, 5)
    for key in range(5):
        mine = [(v, i) for i, (k, v) in enumerate(rows) if k == key]
        assert total[key] == sum(v % 2**57 for v, _ in mine)  # more than a float holds exactly
        assert largest[key] == max((v for v, _ in mine), default=0)
        assert position[key] == min((i for v, i in mine if v == largest[key]), default=-1)


def test_percentile_is_a_value_that_occurred():
    keys = np.array([0] * 100 + [1] * 3 + [3])
    values = np.array([*range(100, 0, -1), 7, 9, 8, 5])
    assert percentile_by(keys, values, 4, 0.99).tolist() == [99, 9, 0, 5]
    assert percentile_by(keys, values, 4, 0.5).tolist() == [50, 8, 0, 5]
