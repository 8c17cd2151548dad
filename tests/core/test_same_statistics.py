"""The compiled passes and their reference add up the same of the same events."""

from __future__ import annotations

import random
from dataclasses import fields

import numpy as np
import pytest

from satview.analysis.doctor import trust_in_load
from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import Basis
from satview.analysis.times.state_times import walk
from satview.analysis.wait_graph import runs_and_overlaps
from satview.base.time import TimeWindow
from satview.core.statistics import left_open, window_sums
from satview.events import wire
from satview.events.spec import Release
from satview.events.states import DEAD, STEP_OF_CODE
from satview.formats.kev.reader import open_kev
from satview.linkage.calls import nesting
from satview.linkage.links import rows_of_class
from satview.store.time_ranges import EVERY_CPU, TimeRanges, losses
from tests.capture.made import made_of_lesson
from tests.core.reference.replacing import numpy_passes
from tests.helpers.core import of_damaged_files
from tests.helpers.extent import usually
from tests.helpers.kev import TraceBuilder


def columns(table):
    return {field.name: np.asarray(getattr(table, field.name)).tolist() for field in fields(table)}


def added_up(path):
    """Return tables of a file, of all of it and of its middle, and how interrupts are nested, as lists."""
    trace = open_kev(path)
    quarter = trace.window.length // 4
    middle = TimeWindow(trace.window.start + quarter, max(trace.window.end - quarter, trace.window.start + quarter + 1))
    found = [columns(nesting(trace, cpu)) for cpu in range(trace.cpu_count)]
    events, rows = trace.events, rows_of_class(trace, wire.WireClass.INT)
    found += [left_open(events.code, events.cpu, STEP_OF_CODE, rows, most).tolist() for most in (1, 2, 8)]
    found += [runs_and_overlaps(trace), columns(Basis(trace).runs), trust_in_load(Statistics(trace))]
    for window in (None, middle):
        statistics = Statistics(trace, window)
        tables = statistics.states, statistics.threads, statistics.cpus, statistics.events
        found += [columns(table) for table in tables]
    return found


def assert_same(path):
    mine = added_up(path)
    with numpy_passes():
        assert added_up(path) == mine
    return sum(mine[-8]["count"])


def test_files_that_are_nearly_right(tmp_path):
    files = usually(5, complete=300, thorough=60)
    assert of_damaged_files(tmp_path / "t.kev", files, assert_same) > 3 * files


@pytest.mark.parametrize(("release", "loss"), [(Release.QNX_7, False), (Release.QNX_8, True)])
def test_workloads(release, loss, tmp_path):
    assert assert_same(made_of_lesson("client-server", release, True, loss, tmp_path).trace.path) > 50


def test_a_thread_that_ends_and_one_that_is_never_heard_of(tmp_path):
    builder = TraceBuilder(cpus=2).time_event(0).process_name(5, 7, "server")
    for state, at in (("CREATE", 10), ("READY", 20), ("RUNNING", 30), ("READY", 45), ("RUNNING", 45), ("DESTROY", 60)):
        builder.state(state, at, 7, 1)
    builder.state("RUNNING", 61, 7, 2, cpu=1).state("DEAD", 65, 7, 1).state("DEAD", 70, 7, 2, cpu=1)
    path = builder.state("DESTROY", 90, 7, 2, cpu=1).state("RUNNING", 95, 7, 3, cpu=1).write(tmp_path / "t.kev")
    assert_same(path)
    trace = open_kev(path)
    states = Statistics(trace).states
    assert states.preemptions.sum() == 1
    is_dead = states.value == DEAD
    dead = list(zip(trace.threads.tid[states.thread[is_dead]], states.total_cycles[is_dead], strict=True))
    assert dead == [(2, 20)], "from 70 to 90; behind a destruction a thread is nothing any more"


def any_schedule(seed):
    """Return a trace of threads that begin, run anywhere, at once even on two CPUs, and end; with interrupts.

    In every second one kernel buffers are lost.
    """
    rng, now, buffer = random.Random(seed), 0, 1
    cpus = rng.randint(1, 3)
    builder = TraceBuilder(cpus=cpus).time_event(0).event(wire.CONTROL_BUFFER, 0, (buffer, 0))
    builder.process_name(rng.randint(0, 2), 7, "server")
    if rng.random() < 0.6:  # else there is no opening dump
        builder.state("CREATE", now, 7, 1)
    dumped = rng.randint(0, 8)
    for number in range(dumped + 60):
        now += rng.choice((0, 0, 1, 3, 10))
        if seed % 2 and rng.random() < 0.1:
            buffer += rng.choice((1, 2, 3))
            builder.event(wire.CONTROL_BUFFER, now, (buffer, 0), rng.randrange(cpus))
        cpu, owner = rng.randrange(cpus), rng.choice(((1, 1), (1, 2), (7, 1), (7, 2), (7, 3), (8, 1)))
        if number > dumped and rng.random() < 0.3:
            builder.event(wire.code(wire.WireClass.INT, rng.choice((1, 2))), now, (5, 0), cpu)
        builder.state(
            rng.choice(("RUNNING", "RUNNING", "READY", "REPLY", "CREATE", "DESTROY", "DEAD")), now, *owner, cpu
        )
    for cpu in range(cpus):
        builder.state("RUNNING", now + rng.randint(0, 1), 7, 1, cpu)
    if seed % 4 == 1:  # what was lost is the end
        builder.event(wire.CONTROL_BUFFER, now + 9, (buffer + 5, 0))
    return builder


@pytest.mark.thorough
def test_threads_that_run_anywhere(tmp_path):
    lossy = 0
    for seed in range(usually(16, complete=1000, thorough=100)):
        path = any_schedule(seed).write(tmp_path / "t.kev")
        trace = open_kev(path)
        if np.any(losses(trace)[:, 2] != EVERY_CPU):
            continue  # an interrupt without its exit: CPUs lost events each for itself, and nothing is walked
        assert walk(trace).cpus is not None, "else the code without the walk is compared with itself"
        lossy += len(losses(trace)) > 0
        assert_same(path)
    assert lossy > 5


def test_a_thread_that_the_dump_shows_on_two_cpus(tmp_path):
    builder = TraceBuilder(cpus=2).time_event(0).process_name(0, 7, "server")
    builder.state("RUNNING", 0, 7, 1).state("RUNNING", 5, 7, 1, cpu=1)  # the dump: so it was on CPU 1 from 0 on
    path = builder.state("READY", 10, 7, 2).state("RUNNING", 20, 7, 1).write(tmp_path / "t.kev")
    assert_same(path)
    assert Statistics(open_kev(path)).threads.migrations.tolist() == [0, 2, 0], "0 to 1 at the start, and back at 20"


@pytest.mark.parametrize("seed", range(3))
def test_how_much_of_intervals_ranges_cover(seed):
    rng = np.random.default_rng(seed)
    edges = np.unique(rng.integers(-1000, 1000, 60))[: 2 * rng.integers(0, 25)]
    ranges = TimeRanges(edges[::2], edges[1::2])
    start = rng.integers(-1200, 1200, 200)
    end = start + rng.integers(0, 900, 200)
    found = ranges.within(start, end)
    by_hand = [sum(max(0, min(b, d) - max(a, c)) for c, d in zip(ranges.start, ranges.end, strict=True))
               for a, b in zip(start, end, strict=True)]  # fmt: skip
    assert found.tolist() == by_hand
    with numpy_passes():
        assert ranges.within(start, end).tolist() == by_hand


def test_cover_of_all_time_there_is():
    most = np.iinfo(np.int64)
    ranges = TimeRanges(np.array([5]), np.array([9]))
    assert ranges.within(np.array([most.min, 7]), np.array([most.max, most.max])).tolist() == [4, 2]


def test_how_much_of_windows_intervals_cover():
    """Windows of 10 from 0, 5 and 20: intervals 3..8, 4..30 and 25..26 cover 5 + 6, 3 + 10 and 10 + 1 of them."""
    start, end, begins = (np.array(moments, np.int64) for moments in ([3, 4, 25], [8, 26, 30], [0, 5, 20]))
    assert window_sums(start, end, begins, 10).tolist() == [11, 13, 11]
    late = np.int64(2**62)  # sums stay small
    assert window_sums(start + late, end + late, begins + late, 10).tolist() == [11, 13, 11]
    assert window_sums(start[:0], end[:0], begins, 10).tolist() == [0, 0, 0]
    rng = np.random.default_rng(5)
    for _ in range(50):
        first = rng.integers(0, 1000, rng.integers(1, 40))
        last = first + rng.integers(0, 100, len(first))
        begins = np.sort(rng.integers(0, 1000, 20))
        expected = (np.minimum(last, begins[:, None] + 37) - np.maximum(first, begins[:, None])).clip(0).sum(axis=1)
        assert window_sums(np.sort(first), np.sort(last), begins, 37).tolist() == expected.tolist()
