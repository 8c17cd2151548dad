"""Durations one by one: they are those that statistics add up."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import satview
from satview.analysis.times.basis import scope_of
from satview.analysis.times.message_times import event_of, histogram, measures, occurrences
from satview.base.time import TimeWindow
from satview.events.states import READY
from tests.helpers.scene import scene


@pytest.fixture(scope="module")
def dense():
    return satview.open_trace("sample_traces/dense-4cpu.kev")


def of(trace, key, window=None, threads=None):
    return occurrences(scope_of(trace, window, None, None, None), key, threads)


def test_calls_and_interrupts_are_those_of_the_statistics(dense):
    found = satview.Statistics(dense)
    for row, code in enumerate(found.calls.code.tolist()):
        made = of(dense, f"call:{dense.catalogue.name(code)}")
        assert len(made) == found.calls.times.count[row]
        assert len(made) + made.unfinished == found.calls.count[row]
        assert made.cycles.sum() == found.calls.times.total_cycles[row]
        if len(made):
            assert made.event[made.longest(1)[0]] == found.calls.times.longest[row]
            assert made.percentiles((0.99,)) == (found.calls.times.p99_cycles[row],)
    for key, times in (("interrupt", found.interrupts.times), ("latency", found.interrupts.latency)):
        assert of(dense, key).cycles.sum() == times.total_cycles.sum()


def test_runs_and_waits_are_those_of_the_statistics(dense):
    found = satview.Statistics(dense)
    ready, run = of(dense, "state:READY"), of(dense, "run")
    assert ready.unfinished == 0
    assert ready.cycles.sum() == found.states.total_cycles[found.states.value == READY].sum()
    assert ready.cycles.max() == found.threads.longest_ready_cycles.max()
    assert run.cycles.max() == found.cpus.longest_run_cycles.max()
    worst = run.longest(1)[0]
    assert run.start[worst] in found.cpus.longest_run_start_cycles
    event = event_of(dense, int(run.start[worst]), int(run.thread[worst]))
    assert dense.catalogue.name(int(dense.events.code[event])) == "THRUNNING"
    assert dense.events.thread[event] == run.thread[worst]


@pytest.mark.parametrize("key", ["run", "state:READY", "state:REPLY", "call", "queued", "round_trip", "interrupt"])
def test_windows_share_out_what_the_trace_has(dense, key):
    whole = dense.window
    edges = np.linspace(whole.start, whole.end, 8).astype(np.int64).tolist()
    parts = [of(dense, key, TimeWindow(*ends)) for ends in pairwise(edges)]
    everything = of(dense, key)
    assert sorted(np.concatenate([part.cycles for part in parts])) == sorted(everything.cycles)
    assert sum(part.unfinished for part in parts) == everything.unfinished


def test_only_some_threads(dense):
    thread = int(dense.events.thread[of(dense, "call").event[0]])
    mine = of(dense, "call", threads=np.arange(len(dense.threads)) == thread)
    assert len(mine) > 0
    assert set(mine.thread.tolist()) == {thread}
    other = of(dense, "call", threads=np.arange(len(dense.threads)) != thread)
    assert len(mine) + len(other) == len(of(dense, "call"))


def test_what_a_loss_or_the_end_cuts_has_no_duration(tmp_path):
    trace = satview.open_trace(scene(tmp_path))
    start = trace.window.start
    run = of(trace, "run")
    assert sorted((run.start - start).tolist()) == [1_000, 4_001, 8_001]
    assert sorted(run.cycles.tolist()) == [3_000, 3_999, 3_999]
    receive = of(trace, "state:RECEIVE")
    assert len(receive) == 0  # the first is reported by the opening dump, the second ends in the lost buffers
    assert receive.unfinished == 2
    assert {measure.key for measure in measures(trace)} >= {"state:NANOSLEEP", "call:MSG_SENDV"}
    assert of(trace, "state:NANOSLEEP").unfinished == 1


def test_histogram_counts_every_duration_in_its_bin():
    duration = np.array([0, 1, 9, 10, 1_000, 1_001, 10**9])
    made = histogram(duration)
    assert made.counts.sum() == len(duration)
    position = np.log10(np.maximum(duration, 1))
    assert np.all(made.edges_log10[made.bin] <= position)
    assert np.all(position < made.edges_log10[made.bin + 1])
    assert len(histogram(np.array([5, 5, 5])).counts) == 1


def test_a_bound_divides_the_bin_in_which_it_is():
    """Of 900, 990, 1,010 and 1,900 with a bound of 1,000 the last two are beyond, by flags, not by nanoseconds."""
    duration = np.array([900, 990, 1_000, 1_000, 1_900])
    made = histogram(duration, np.array([False, False, False, True, True]), 1_000)
    assert made.counts.tolist() == np.bincount(made.bin).tolist()
    assert int(made.counts[: made.first_beyond].sum()) == 3
    assert int(made.counts[made.first_beyond :].sum()) == 2
    assert made.edges_log10[made.first_beyond] == 3
    assert (np.diff(made.edges_log10) >= 0).all()
    assert histogram(duration, np.ones(5, np.bool_), 10).first_beyond == 0, "all are beyond"
    none = histogram(duration, np.zeros(5, np.bool_), 10**9)
    assert (none.first_beyond, none.counts.tolist()) == (len(none.counts), histogram(duration).counts.tolist())


def test_longest_are_in_order_and_earlier_ones_first(dense):
    made = of(dense, "state:READY")
    best = made.longest(20)
    assert made.cycles[best].tolist() == sorted(made.cycles.tolist(), reverse=True)[:20]
    among = made.cycles < np.median(made.cycles)
    assert np.all(among[made.longest(20, among)])
