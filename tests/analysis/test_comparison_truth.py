"""Before and after a change of one priority: the differences are those that the simulated kernel made."""

from __future__ import annotations

from functools import partial

import pytest

from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import Basis
from satview.answers.comparison import by_weight, compare_statistics, durations
from satview.base.time import TimeWindow
from satview.capture.sim.calls import Compute
from satview.capture.sim.threads import Policy
from satview.capture.workloads.parts import MS, periodic
from satview.events.states import READY
from tests.capture.made import WIDE, traced
from tests.capture.truth_sums import TruthSums

HOG, LOW, HIGH = 15, 10, 20
LABELS = {"hog": "pid 2 1 (hog)", "app": "pid 3 1 (app)"}  # processes that are there before their names


def setup(kernel, priority):
    """Every 10 ms `hog` computes 4 ms at priority 15; 1 ms later `app` needs 1 ms at its own priority."""
    for name, own, offset_ms, length_ms in (("hog", HOG, 0, 4), ("app", priority, 1, 1)):
        program = partial(periodic, 10 * MS, partial(_compute, length_ms), offset_ns=offset_ms * MS, priority=own)
        kernel.spawn(f"usr/bin/{name}", program, priority=own, policy=Policy.FIFO, thread_name=name)


def _compute(length_ms, _count):
    yield Compute(length_ms * MS)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return [traced(partial(setup, priority=priority), 60, tmp_path_factory.mktemp("p"), cpus=1, seed=3, modes=WIDE)
            for priority in (LOW, HIGH)]  # fmt: skip


def window(trace):
    """Return the part after the start of tracing, when threads begin."""
    return TimeWindow(trace.clock.cycles(8 * MS), trace.window.end)


def changes(made, tables):
    return compare_statistics(*(Statistics(each.trace, window(each.trace)) for each in made), tables)[0]


def waits_ns(made, name):
    """Return how long a thread was READY each time, as the kernel knows, nanoseconds."""
    truth, trace = TruthSums(made, window(made.trace)), made.trace
    row = next(row for row in range(1, len(trace.threads)) if trace.thread_name(row) == LABELS[name])
    spans = (span for span in truth.states if truth.row[span.thread] == row and span.value == READY)
    return sorted(trace.clock.duration_ns(span.end - span.start) for span in spans if truth.begins(span.start))


def test_the_waits_for_a_cpu_are_those_of_the_kernel(made):
    found = {(each.name, each.column.key): each for each in changes(made, ["thread"])}
    for name in ("app", "hog"):
        change = found[LABELS[name], "longest_ready_ns"]
        assert (change.before, change.after) == tuple(max(waits_ns(each, name), default=0) for each in made)
    assert found[LABELS["app"], "longest_ready_ns"].before > 2_900_000, "the rest of the hog's 4 ms"
    assert found[LABELS["app"], "longest_ready_ns"].after < 10_000
    assert found[LABELS["app"], "longest_ready_ns"].is_worse(1) is False
    assert found[LABELS["hog"], "longest_ready_ns"].is_worse(1), "who was first before has to wait now"


def test_what_changed_most_is_who_waits(made):
    names = [change.name for change in by_weight(changes(made, ["thread", "state"]), once=True)]
    assert {f"{LABELS[name]} in READY" for name in LABELS} <= set(names[:4])


def test_the_durations_behind_a_figure(made):
    change = next(each for each in changes(made, ["state"])
                  if each.name == f"{LABELS['app']} in READY" and each.column.key == "longest_ns")  # fmt: skip
    for side, each in enumerate(made):
        trace = each.trace
        found = durations(trace, Basis(trace), window(trace), change, side)
        assert sorted(found.tolist()) == waits_ns(each, "app")
