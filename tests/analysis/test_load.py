"""Load over time: what the bins add up to is what statistics say, to the cycle."""

from __future__ import annotations

import numpy as np
import pytest

import satview
from satview.analysis.times.basis import scope_of
from satview.analysis.times.cpu_times import LARGEST, OTHERS, LoadBy, bin_edges, load_over_time
from satview.base.time import TimeWindow
from satview.store.time_ranges import cut_at
from tests.analysis.test_partitions import scene as partitions_scene
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import scene

DENSE = "sample_traces/dense-4cpu.kev"


@pytest.fixture(scope="module")
def dense():
    return satview.open_trace(DENSE)


def windows(trace):
    whole = trace.window
    third = whole.start + whole.length // 3
    return (
        whole,
        TimeWindow(third, third + whole.length // 50),
        TimeWindow(third, third + 100_003),
        TimeWindow(third, third + 7),
    )


@pytest.mark.parametrize("by", LoadBy)
@pytest.mark.parametrize("number", range(4))
def test_bins_add_up_to_the_statistics_of_the_same_window(dense, by, number):
    window = windows(dense)[number]
    load = load_over_time(scope_of(dense, window, None, None, None), by, 300)
    cpus = satview.Statistics(dense, window).cpus
    assert load.busy_cycles.sum() == cpus.busy_cycles.sum()
    assert load.interrupt_cycles.sum() == cpus.interrupt_cycles.sum()
    assert load.unknown_cycles.sum() == cpus.unknown_cycles.sum()
    total = load.busy_cycles.sum(axis=0) + load.interrupt_cycles + load.unknown_cycles
    assert np.all(total <= load.lengths * load.cpus)
    assert load.unknown_cycles.min() >= 0
    assert load.edges[0] == window.start
    assert load.edges[-1] == window.end


def test_bands_are_the_rows_of_the_statistics(dense):
    scope = scope_of(dense, None, None, None, None)
    found = satview.Statistics(dense)
    by_cpu = load_over_time(scope, LoadBy.CPU, 50)
    assert by_cpu.subjects.tolist() == [0, 1, 2, 3]
    assert by_cpu.busy_cycles.sum(axis=1).tolist() == found.cpus.busy_cycles.tolist()
    by_process = load_over_time(scope, LoadBy.PROCESS, 50)
    assert len(by_process.subjects) == LARGEST + 1
    assert by_process.subjects[-1] == OTHERS
    largest = np.argsort(-found.processes.cpu_cycles)[:LARGEST]
    assert by_process.subjects[:-1].tolist() == largest.tolist()
    assert by_process.busy_cycles[:-1].sum(axis=1).tolist() == found.processes.cpu_cycles[largest].tolist()


def test_each_bin_is_a_window_of_its_own(dense):
    window = windows(dense)[1]
    load = load_over_time(scope_of(dense, window, None, None, None), LoadBy.CPU, 7)
    for number in range(7):
        part = TimeWindow(int(load.edges[number]), int(load.edges[number + 1]))
        cpus = satview.Statistics(dense, part).cpus
        assert load.busy_cycles[:, number].tolist() == cpus.busy_cycles[load.subjects].tolist()
        assert load.interrupt_cycles[number] == cpus.interrupt_cycles.sum()


def test_lost_time_is_unknown_and_interrupts_are_no_load(tmp_path):
    trace = satview.open_trace(scene(tmp_path))
    load = load_over_time(scope_of(trace, None, None, None, None), LoadBy.CPU, 20)
    start = trace.window.start
    at = np.searchsorted(load.edges, start + 14_000) - 1  # in the middle of the lost buffers
    assert load.unknown_cycles[at] == load.lengths[at] * load.cpus
    assert load.busy_cycles[:, at].tolist() == [0] * len(load.subjects)
    assert load.busy_cycles.sum() == satview.Statistics(trace).cpus.busy_cycles.sum() > 0


def test_a_new_priority_within_a_run_begins_a_piece(tmp_path):
    builder = TraceBuilder().time_event(0)
    builder.process_name(10, 2, "boosted")
    for time, priority in ((1_000, 10), (3_000, 21), (4_000, 10)):
        builder.state("RUNNING", time, 2, 1, extra=(priority, 1))
    builder.state("READY", 6_000, 2, 1, extra=(10, 1)).state("READY", 8_000, 2, 1, extra=(10, 1))
    trace = satview.open_trace(builder.write(tmp_path / "a.kev"))
    load = load_over_time(scope_of(trace, None, None, None, None), LoadBy.PRIORITY, 10)
    assert load.subjects.tolist() == [21, 10]
    assert load.busy_cycles.sum(axis=1).tolist() == [1_000, 5_000]  # the dump: it ran from the start


def test_edges_of_a_long_window_do_not_overflow():
    window = TimeWindow(-(1 << 61), 1 << 61)
    edges = bin_edges(window, 300)
    assert (edges[0], edges[-1]) == (window.start, window.end)
    assert np.ptp(np.diff(edges)) <= 1
    assert bin_edges(TimeWindow(5, 8), 300).tolist() == [5, 6, 7, 8]


def test_pieces_cover_what_the_spans_cover():
    pieces = cut_at(np.array([-5, 12, 30]), np.array([3, 27, 30]), np.array([0, 10, 20, 25]))
    assert [column.tolist() for column in pieces] == [[0, 1, 1], [0, 1, 2], [0, 12, 20], [3, 20, 25]]


def test_threads_have_bands_and_the_rest_one(dense):
    load = load_over_time(scope_of(dense, None, None, None, None), LoadBy.THREAD, 50)
    found = satview.Statistics(dense)
    largest = np.argsort(-np.where(found.basis.is_idle, 0, found.threads.cpu_cycles), kind="stable")[:LARGEST]
    assert load.subjects.tolist() == [*largest.tolist(), OTHERS]
    assert load.busy_cycles[:-1].sum(axis=1).tolist() == found.threads.cpu_cycles[largest].tolist()


def test_partitions_have_bands_of_their_own(tmp_path):
    """Drivers (1) run from 1,000 to 4,000, System (0) to 6,000, then nobody."""
    trace = partitions_scene().open(tmp_path)
    load = load_over_time(scope_of(trace, None, None, None, None), LoadBy.PARTITION, 10)
    shown = dict(zip(load.subjects.tolist(), load.busy_cycles.sum(axis=1).tolist(), strict=True))
    assert shown == {1: 3_000, 0: 2_000}
    assert load.busy_cycles[0].tolist() == [0, 1_000, 1_000, 1_000, *[0] * 6]
