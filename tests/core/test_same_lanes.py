"""The compiled passes and the numpy code make the same lanes of the same states."""

from __future__ import annotations

import numpy as np
import pytest

from satview.core import lanes, library
from satview.core.lanes import time_order
from satview.events.spec import Release
from satview.events.states import ABSENT, READY, RUNNING, UNKNOWN, WAITING
from satview.formats.kev import order
from satview.formats.kev.reader import open_kev
from satview.timeline.lane_tree import Timeline
from satview.timeline.per_cpu import run_slices
from satview.timeline.per_thread import process_spans
from satview.timeline.spans import LaneSpans
from tests.analysis.test_why import made_of
from tests.helpers.core import of_damaged_files, without_core
from tests.helpers.extent import usually

pytestmark = pytest.mark.skipif(not library.is_available(), reason="no C compiler here: the numpy code runs alone")


def columns(spans):
    return [None if part is None else np.asarray(part).tolist() for part in (
        spans.start_cycles, spans.value, spans.event, spans.thread, spans.end_cycles)]  # fmt: skip


def lanes_of(path):
    """Return the slices and all lanes of a file as lists."""
    trace = open_kev(path)
    timeline = Timeline(trace)
    timeline.build(range(min(60, len(timeline.infos))))
    lanes = [columns(timeline.lane(index).spans) for index in range(min(60, len(timeline.infos)))]
    return [column.tolist() for column in run_slices(trace)], lanes


def assert_same(path):
    mine = lanes_of(path)
    with without_core():
        assert lanes_of(path) == mine
    return sum(len(lane[0]) for lane in mine[1])


def test_files_that_are_nearly_right(tmp_path):
    files = usually(12, complete=300, thorough=30)
    assert of_damaged_files(tmp_path / "t.kev", files, assert_same) > 10 * files


@pytest.mark.parametrize(("release", "loss"), [(Release.QNX_7, False), (Release.QNX_8, True)])
def test_workloads(release, loss, tmp_path):
    assert assert_same(made_of("client-server", release, True, loss, tmp_path).trace.path) > 50


@pytest.mark.parametrize("seed", range(20))
def test_rows_that_are_not_in_the_order_of_time(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.choice((0, 1, 2, 50, 1023, 1024, 5_000)))
    time = np.sort(rng.integers(0, 1 + count, count))
    for _ in range(int(rng.integers(0, 4))):
        first, last = np.sort(rng.integers(0, count + 1, 2))
        time[first:last] = rng.permutation(time[first:last])
    assert lanes.disordered(time).tolist() == order._plain_disordered(time).tolist()


@pytest.mark.parametrize("seed", range(20))
def test_what_cpus_log_in_order_is_merged(seed):
    rng = np.random.default_rng(seed)
    count, cpus = int(rng.choice((1, 2, 50, 5_000))), int(rng.choice((1, 2, 18, 256)))
    cpu, time = rng.integers(0, cpus, count).astype(np.uint8), rng.integers(-5, 1 + count, count)
    for number in range(cpus):
        time[cpu == number] = np.sort(time[cpu == number])
    rows = np.flatnonzero(rng.random(count) < 0.9)
    assert lanes.merged(time, cpu, rows).tolist() == rows[np.argsort(time[rows], kind="stable")].tolist()


def test_what_a_cpu_logs_out_of_order_is_not_merged():
    assert lanes.merged(np.array([5, 1, 4]), np.array([0, 1, 0], np.uint8), np.arange(3)) is None
    assert lanes.merged(np.array([5, 1, 4]), np.array([0, 1, 0], np.uint8), np.arange(2)).tolist() == [1, 0]


def test_slices_where_threads_have_other_numbers_of_states_than_events():
    """The walk in the order of time is not made for such an index; the numpy code reads any."""
    code, time, cpu = np.zeros(3, np.uint16), np.array([5, 7, 9]), np.zeros(3, np.uint8)
    value = np.full(32768, RUNNING, np.uint8)
    columns = np.array([0, 2, 1], np.uint32), np.array([0, 2, 3]), code, time, cpu
    rows, ends = lanes.run_slices(*columns, np.array([0, 1, 0], np.uint16), value, RUNNING, 20)
    assert (rows.tolist(), ends.tolist()) == ([0, 1, 2], [7, 9, 20])
    assert lanes.run_slices(*columns, np.array([0, 0, 0], np.uint16), value, RUNNING, 20) is None
    assert lanes.run_slices(*columns, np.array([0, 1, 2], np.uint16), value, RUNNING, 20) is None


def test_order_of_times():
    rng = np.random.default_rng(1)
    for count in (0, 1, 2, 50, 5_000):
        for most in (1, 3, 1 << 12, 1 << 40, (1 << 63) - 1):
            time = rng.integers(-most if count % 2 else 0, most, count, endpoint=True)
            assert time_order(time).tolist() == np.argsort(time, kind="stable").tolist()
    assert time_order(np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min])).tolist() == [1, 0]


def test_what_counts_for_a_process():
    """Two threads: the busier one shows; a moment between equal times does not."""
    made = [
        LaneSpans(np.array([0, 10, 20, 30]), np.array([UNKNOWN, RUNNING, READY, ABSENT], np.uint8),
                  np.array([1, 2, 3, 4], np.uint32), None, 40),
        LaneSpans(np.array([5, 20, 25]), np.array([WAITING, RUNNING, WAITING], np.uint8),
                  np.array([5, 6, 7], np.uint32), None, 40),
    ]  # fmt: skip
    found = process_spans(made, 40)
    assert found.start_cycles.tolist() == [0, 10, 25, 30]
    assert found.value.tolist() == [UNKNOWN, RUNNING, READY, WAITING]
    assert found.event.tolist() == [1, 2, 7, 4]
    with without_core():
        assert columns(process_spans(made, 40)) == columns(found)
