"""The compiled passes put events into the order of their reference."""

from __future__ import annotations

import numpy as np
import pytest

from satview.core import links
from satview.core.links import stable_order
from tests.core.reference import links as reference


@pytest.mark.parametrize("seed", range(20))
def test_rows_that_are_not_in_the_order_of_time(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.choice((0, 1, 2, 50, 1023, 1024, 5_000)))
    time = np.sort(rng.integers(0, 1 + count, count))
    for _ in range(int(rng.integers(0, 4))):
        first, last = np.sort(rng.integers(0, count + 1, 2))
        time[first:last] = rng.permutation(time[first:last])
    assert links.disordered(time).tolist() == reference.disordered(time).tolist()


@pytest.mark.parametrize("seed", range(20))
def test_what_cpus_log_in_order_is_merged(seed):
    rng = np.random.default_rng(seed)
    count, cpus = int(rng.choice((1, 2, 50, 5_000))), int(rng.choice((1, 2, 18, 256)))
    cpu, time = rng.integers(0, cpus, count).astype(np.uint8), rng.integers(-5, 1 + count, count)
    for number in range(cpus):
        time[cpu == number] = np.sort(time[cpu == number])
    rows = np.flatnonzero(rng.random(count) < 0.9)
    assert links.merged(time, cpu, rows).tolist() == rows[np.argsort(time[rows], kind="stable")].tolist()


def test_what_a_cpu_logs_out_of_order_is_not_merged():
    assert links.merged(np.array([5, 1, 4]), np.array([0, 1, 0], np.uint8), np.arange(3)) is None
    assert links.merged(np.array([5, 1, 4]), np.array([0, 1, 0], np.uint8), np.arange(2)).tolist() == [1, 0]


@pytest.mark.parametrize("seed", range(20))
def test_columns_are_moved_as_numpy_takes_them(seed):
    rng = np.random.default_rng(seed)
    events, far = int(rng.choice((2, 50, 16_384, 70_000, 200_000))), int(rng.choice((1, 30, 20_000)))
    first, end = np.sort(rng.integers(0, events + 1, 2)).tolist()
    rows = np.argsort(np.arange(end - first) + rng.integers(0, far, end - first), kind="stable") + first
    kinds = ("i8", "u2", "u1", "u4", "u8", "?")
    columns = [rng.integers(0, 2 if kind == "?" else 250, events).astype(kind) for kind in kinds]
    before, went = [column.copy() for column in columns], np.arange(events, dtype=rng.choice(("u4", "u8")))
    is_moved = links.move(columns, first, rows, went)
    assert is_moved is bool(np.abs(rows - np.arange(first, end)).max(initial=0) <= len(rows) // links._MIN_PARTS)
    for column, old in zip(columns, before, strict=True):
        if is_moved:
            assert np.array_equal(column[first:end], old.take(rows))
            old[first:end] = column[first:end]
        assert np.array_equal(column, old)
    assert np.array_equal(went.take(rows), np.arange(first, end)) or not is_moved


def test_rows_outside_of_the_range_are_refused():
    column = np.arange(4)
    with pytest.raises(ValueError, match="out of range"):
        links.move([column], 1, np.array([1, 4]), np.arange(4, dtype=np.uint32))
    assert column.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("seed", range(10))
def test_rows_far_from_both_neighbours(seed):
    rng = np.random.default_rng(seed)
    time = np.cumsum(rng.integers(0, 100, 3_000))
    time[rng.integers(0, 3_000, 40)] += rng.choice((-1, 1), 40) * (1 << 40)
    time[rng.integers(0, 3_000, 4)] = rng.choice((np.iinfo(np.int64).min, np.iinfo(np.int64).max), 4)
    for rows in (np.arange(1, 2_999), 1 + np.flatnonzero(rng.random(2_998) < 0.7)):
        far = links.far_rows(time, rows, 1 << 32)
        assert far.tolist() == reference.far_rows(time, rows, 1 << 32).tolist()
    assert len(far) > 20


def test_order_of_times():
    rng = np.random.default_rng(1)
    for count in (0, 1, 2, 50, 5_000):
        for most in (1, 3, 1 << 12, 1 << 40, (1 << 63) - 1):
            time = rng.integers(-most if count % 2 else 0, most, count, endpoint=True)
            assert stable_order(time).tolist() == np.argsort(time, kind="stable").tolist()
    assert stable_order(np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min])).tolist() == [1, 0]
