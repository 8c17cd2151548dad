"""What rules of verdicts look at: times of events, windows over intervals, and runs that some ranges meet."""

from __future__ import annotations

import numpy as np
import pytest

from satview.analysis.verdicts.evidence import Evidence, full_windows
from tests.analysis.scenes import END, Scene
from tests.helpers.kev import START


def two_runs():
    """6.1 runs from 10 to 20 and from 30 to 40, 5.1 from 20 to 30; the trace ends a cycle behind 40."""
    scene = Scene().time_event(0).state("RUNNING", 10, 6, 1).swap(20, (6, 1), "READY", (5, 1))
    return scene.swap(30, (5, 1), "READY", (6, 1)).swap(40, (6, 1), "READY", (1, 1)).event(END, 40)


def test_the_number_of_events_represents_the_end_of_the_trace(tmp_path):
    trace = two_runs().open(tmp_path)
    times, count = Evidence(trace).times, len(trace.events)
    assert len(times) == count + 1
    assert times[count] == trace.window.end
    assert (times[[0, count]] - START).tolist() == [0, 40_001]
    assert times[np.array([], np.int64)].tolist() == []


@pytest.mark.parametrize(("first", "last", "begins"), [
    (20, 30, {"pid 5 1": [20]}), (10, 30, {"pid 5 1": [20], "pid 6 1": [10]}), (30, 40, {"pid 6 1": [30]}),
])  # fmt: skip
def test_runs_are_those_that_a_range_meets(first, last, begins, tmp_path):
    """The range begins with the first event at one time, and ends with the first one at another."""
    trace = two_runs().open(tmp_path)
    rows = (np.searchsorted(trace.events.time_cycles, [START + time * 1000]) for time in (first, last))
    [runs] = Evidence(trace).runs_in(*rows)
    found: dict[str, list[float]] = {}
    for thread, row in zip(runs.thread.tolist(), runs.row.tolist(), strict=True):
        found.setdefault(trace.thread_name(thread), []).append((trace.events.time_cycles[row] - START) / 1000)
    assert found == begins


@pytest.mark.parametrize(("window", "least", "begins"), [
    (60, 50, [0]), (60, 51, []), (70, 60, []), (71, 60, []), (110, 60, [0]), (10, 10, [0, 20, 40, 50, 100]),
    (10, 11, []),
])  # fmt: skip
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_windows_that_intervals_fill(window, least, begins, order):
    """From 0 to 30, 40 to 60 and 100 to 110: a window of 71 could meet all three, of 60 in all, and meets 21 to 31."""
    start, end = np.array([0, 40, 100])[order], np.array([30, 60, 110])[order]
    assert np.unique(full_windows(start, end, window, least)[0]).tolist() == begins


def test_an_interval_within_another_hides_nothing():
    """The window of 60 from 50 on has the last 50 of the long one and 10 of the last: the short one ends first."""
    start, end = np.array([0, 10, 100]), np.array([100, 20, 110])
    begins, covers = full_windows(start, end, 60, 60)
    assert dict(zip(begins.tolist(), covers.tolist(), strict=True)) == {0: 70, 10: 70, 40: 60, 50: 60}
