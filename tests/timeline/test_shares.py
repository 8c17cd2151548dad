"""Shares of time: each bin holds what its intervals cover, counted cycle by cycle."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.base.time import TimeWindow
from satview.timeline.lane import LaneShares, count_spans
from satview.timeline.spans import NO_EVENT, LaneSpans, touching
from tests.core.reference.replacing import numpy_passes


def lane(starts, values, end):
    return LaneSpans(
        np.array(starts, np.int64), np.array(values, np.uint8), np.full(len(starts), NO_EVENT, np.uint32), None, end
    )


def counted(spans, values, edges, weight=None):
    """Return the same as `LaneShares.cycles`, one cycle at a time."""
    out = np.zeros((len(edges) - 1, len(values)), np.int64)
    column = {int(value): i for i, value in enumerate(values)}
    for position, (start, end) in enumerate(pairwise(edges)):
        for cycle in range(start, end):
            at = spans.index_at(cycle)
            if at >= 0:
                value = int(spans.value[at])
                out[position, 0 if weight else column[value]] += value if weight else 1
    return out


@pytest.mark.thorough
@given(st.data())
def test_every_bin_holds_what_its_intervals_cover(data):
    count = data.draw(st.integers(1, 200))
    steps = data.draw(st.lists(st.integers(1, 5), min_size=count, max_size=count))
    starts = (np.cumsum(steps) + data.draw(st.integers(0, 20))).tolist()
    spans = lane(starts, data.draw(st.lists(st.sampled_from([0, 1, 2, 3, 40, 63]), min_size=count, max_size=count)),
                 starts[-1] + data.draw(st.integers(1, 9)))  # fmt: skip
    edges = sorted(data.draw(st.lists(st.integers(0, starts[-1] + 30), min_size=2, max_size=12)))
    shares = LaneShares.of(spans)
    expected = counted(spans, shares.values, edges)
    assert shares.cycles(np.array(edges)).tolist() == expected.tolist()
    numbers = LaneShares.counting(spans)
    assert numbers.cycles(np.array(edges)).tolist() == counted(spans, [0], edges, weight=True).tolist()
    with numpy_passes():
        assert LaneShares.of(spans).cycles(np.array(edges)).tolist() == expected.tolist()
        assert LaneShares.counting(spans).cycles(np.array(edges)).tolist() == numbers.cycles(np.array(edges)).tolist()


def test_bins_add_up_to_the_window():
    rng = np.random.default_rng(4)
    starts = np.cumsum(rng.integers(1, 1000, 100_000))
    spans = lane(starts, rng.integers(0, 6, 100_000), int(starts[-1]) + 5)
    shares = LaneShares.of(spans)
    edges = np.linspace(0, int(starts[-1]) + 100, 777).astype(np.int64)
    bins = shares.cycles(edges)
    assert bins.sum(axis=0).tolist() == shares.totals(TimeWindow(0, int(edges[-1]))).tolist()
    length = np.diff(spans.start_cycles, append=spans.end_cycles)
    assert bins.sum(axis=0).tolist() == [int(length[spans.value == value].sum()) for value in shares.values]
    with numpy_passes():
        assert LaneShares.of(spans).cycles(edges).tolist() == bins.tolist()


def test_cpus_in_use_are_counted():
    spans = count_spans(np.array([10, 15, 40]), np.array([20, 30, 50]), TimeWindow(0, 100))
    assert list(zip(spans.start_cycles.tolist(), spans.value.tolist(), strict=True)) == [
        (0, 0), (10, 1), (15, 2), (20, 1), (30, 0), (40, 1), (50, 0)]  # fmt: skip
    assert LaneShares.counting(spans).totals(TimeWindow(0, 100)).tolist() == [10 + 15 + 10]


@pytest.mark.parametrize("edges", [[], [5]])
def test_no_bins(edges):
    spans = lane([0, 5], [1, 2], 10)
    assert LaneShares.of(spans).cycles(np.array(edges, np.int64)).shape == (0, 2)
    with numpy_passes():
        assert LaneShares.of(spans).cycles(np.array(edges, np.int64)).shape == (0, 2)


@pytest.mark.parametrize("core", [True, False])
def test_bins_that_are_kept_are_what_their_intervals_add_up_to(core):
    """5,000 intervals of 1 to 9 cycles: bins of 512 cycles and more are stored, shorter ones are added up."""
    random = np.random.default_rng(4)
    start = 1_000 + np.concatenate(([0], np.cumsum(random.integers(1, 10, 4_999))))
    value = random.choice([1, 2, 3, 37], 5_000).astype(np.uint8)
    whole = TimeWindow(1_000, int(start[-1]) + 7)
    spans = touching(start, value, np.zeros(5_000, np.uint32), whole.end)
    with nullcontext() if core else numpy_passes():
        shares = LaneShares.of(spans)
        for shift in (0, 5, 8, 9, 10, 14, 20):
            count = ((whole.length - 1) >> shift) + 1
            for first, last in ((0, count), (count // 3, count // 2 + 1), (count, count)):
                edges = np.minimum(whole.start + (np.arange(first, last + 1) << shift), whole.end)
                assert np.array_equal(shares.binned(whole, shift, first, last), shares.cycles(edges)), shift
        assert sorted(shares._levels) == list(range(9, 16))
        assert int(shares.binned(whole, 20, 0, 1).sum()) == whole.length
