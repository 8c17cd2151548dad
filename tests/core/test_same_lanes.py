"""The compiled passes and their reference make the same lanes of the same states."""

from __future__ import annotations

import numpy as np
import pytest

from satview.analysis.wait_graph import runs_and_overlaps, whole_states
from satview.core import pictures
from satview.events.spec import Release
from satview.events.states import ABSENT, READY, RUNNING, UNKNOWN, WAITING
from satview.formats.kev.reader import open_kev
from satview.timeline.lane_tree import Timeline
from satview.timeline.spans import LaneSpans
from satview.timeline.state_lanes import contradicted_runs, process_spans, run_slices
from tests.capture.made import made_of_lesson
from tests.core.reference import pictures as reference
from tests.core.reference.replacing import numpy_passes
from tests.helpers.core import of_damaged_files
from tests.helpers.extent import usually


def columns(spans):
    return [None if part is None else np.asarray(part).tolist() for part in (
        spans.start_cycles, spans.value, spans.event, spans.thread, spans.end_cycles)]  # fmt: skip


def lanes_of(path):
    """Return the slices and all lanes of a file as lists."""
    trace = open_kev(path)
    timeline = Timeline(trace)
    timeline.build(range(min(60, len(timeline.infos))))
    lanes = [columns(timeline.lane(index).spans) for index in range(min(60, len(timeline.infos)))]
    states = whole_states(trace)
    whole = [column.tolist() for column in (states.thread, states.value, states.row, states.end_row)]
    return (
        [column.tolist() for column in (*run_slices(trace), *contradicted_runs(trace))],
        lanes,
        whole,
        runs_and_overlaps(trace),
    )


def assert_same(path):
    mine = lanes_of(path)
    with numpy_passes():
        assert lanes_of(path) == mine
    return sum(len(lane[0]) for lane in mine[1])


@pytest.mark.thorough
def test_files_that_are_nearly_right(tmp_path):
    files = usually(12, complete=300, thorough=30)
    assert of_damaged_files(tmp_path / "t.kev", files, assert_same) > 10 * files


@pytest.mark.parametrize(("release", "loss"), [(Release.QNX_7, False), (Release.QNX_8, True)])
def test_workloads(release, loss, tmp_path):
    assert assert_same(made_of_lesson("client-server", release, True, loss, tmp_path).trace.path) > 50


def test_slices_where_threads_have_other_numbers_of_states_than_events():
    """The walk in the order of time is not made for such an index; the numpy code reads any."""
    code, time, cpu = np.zeros(3, np.uint16), np.array([5, 7, 9]), np.zeros(3, np.uint8)
    value = np.full(32768, RUNNING, np.uint8)
    columns = np.array([0, 2, 1], np.uint32), np.array([0, 2, 3]), code, time, cpu
    rows, ends, is_cut = pictures.run_slices(*columns, np.array([0, 1, 0], np.uint16), value, RUNNING, 20)
    assert (rows.tolist(), ends.tolist()) == ([0, 1, 2], [7, 9, 20])
    assert is_cut.tolist() == [True, True, False], "thread 0 runs till 9, as its next event says, and thread 1 on"
    assert pictures.run_slices(*columns, np.array([0, 0, 0], np.uint16), value, RUNNING, 20) is None
    assert pictures.run_slices(*columns, np.array([0, 1, 2], np.uint16), value, RUNNING, 20) is None


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
    with numpy_passes():
        assert columns(process_spans(made, 40)) == columns(found)


@pytest.mark.parametrize("seed", range(20))
def test_who_had_a_cpu_and_in_which_interrupt(seed):
    rng = np.random.default_rng(seed)

    def part(count, values):
        return np.sort(rng.integers(0, 50, count)), rng.integers(0, 9, count).astype(values)

    counts = rng.choice((0, 1, 2, 30), 3)
    parts = [part(count, kind) for count, kind in zip(counts, (np.int32, np.bool_, np.int64), strict=True)]
    times, _ = parts[2]
    parts[2] = times, rng.integers(-1, 4, len(times)), rng.integers(-1, 9, len(times))
    compiled, expected = pictures.cpu_timeline(*parts, 45), reference.cpu_timeline(*parts, 45)
    assert [column.tolist() for column in compiled] == [column.tolist() for column in expected]
