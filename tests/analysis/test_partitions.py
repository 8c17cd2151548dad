"""Partitions: scenes with figures that a reader can check, and the accounts of the simulated scheduler."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

from satview.analysis.partitions import IDLE, NOT_LOGGED, _peak, partition_names
from satview.analysis.statistics import Statistics
from satview.answers.statistics import TABLES
from satview.base.time import TimeWindow
from satview.capture.workloads import registry
from satview.events import wire
from satview.events.spec import Release
from tests.capture.later import traced_later
from tests.capture.made import ALL, FAST, WIDE, damaged
from tests.helpers.kev import START, TraceBuilder

NAME, BUDGET, BANKRUPTCY, INFO = (wire.code(wire.WireClass.SYSTEM, number) for number in (3, 4, 5, 24))
CRITICAL = 1
RELEASES = (Release.QNX_6, Release.QNX_7, Release.QNX_8)


class Scene(TraceBuilder):
    """A CPU with partitions 0 (System) and 1 (Drivers)."""

    def __init__(self, *budgets: int) -> None:
        super().__init__()
        self.time_event(0)
        for ident, (name, percent) in enumerate(zip(("System", "Drivers"), budgets, strict=False)):
            self.writer.text_event(NAME, 0, self.at(1 + ident), (ident,), name.encode())
            self.budget(ident, percent, 3 + ident)

    def budget(self, ident: int, percent: int, time: int, critical_ms: int = 10) -> Scene:
        self.event(BUDGET, time, (ident, percent, critical_ms, 100, 0, 100))
        return self

    def run(self, pid: int, time: int, partition: int | None, flags: int = 0) -> Scene:
        extra = () if partition is None else (10, 2, partition, flags)
        self.state("RUNNING", time, pid, 1, extra=extra)
        return self

    def end(self, time: int) -> Scene:
        self.event(wire.code(6, 1), time)
        return self


def reported(trace, window=None):
    """Return (configuration, partition, budget, run, critical, bankruptcies) of every row."""
    table = Statistics(trace, window).partitions
    return list(zip(table.configuration.tolist(), table.partition.tolist(), table.budget.tolist(),
                    table.run_cycles.tolist(), table.critical_cycles.tolist(), table.bankruptcies.tolist(),
                    strict=True))  # fmt: skip


def scene():
    """Drivers run from 1,000 on, critical from 2,000; from 4,000 System runs; the idle thread from 6,000 on."""
    made = Scene(70, 30).run(5, 1_000, 1).run(5, 2_000, 1, CRITICAL)
    made.event(BANKRUPTCY, 2_500, (5, 1, 1)).run(6, 4_000, 0)
    return made.state("RUNNING", 6_000, 1, 1, extra=(0, 1, 0, 0)).end(9_999)


def test_budget_against_use(tmp_path):
    trace = scene().open(tmp_path)
    assert reported(trace) == [(1, 0, 0.7, 2_000, 0, 0), (1, 1, 0.3, 3_000, 2_000, 1), (1, IDLE, -1.0, 4_000, 0, 0)]
    assert partition_names(trace) == {0: "System", 1: "Drivers"}


def test_a_range_cuts_it(tmp_path):
    window = TimeWindow(START + 3_000, START + 5_000)
    assert reported(scene().open(tmp_path), window) == [(1, 0, 0.7, 1_000, 0, 0), (1, 1, 0.3, 1_000, 1_000, 0)]


def test_a_new_budget_begins_a_configuration_and_the_same_one_again_does_not(tmp_path):
    made = Scene(70, 30).run(5, 1_000, 1).budget(1, 30, 2_000).budget(0, 60, 5_000).budget(1, 40, 5_010).end(9_999)
    assert reported(made.open(tmp_path)) == [(1, 0, 0.7, 0, 0, 0), (1, 1, 0.3, 4_000, 0, 0),
                                         (2, 0, 0.6, 0, 0, 0), (2, 1, 0.4, 5_000, 0, 0)]  # fmt: skip
    table = TABLES["partition"](Statistics(made.open(tmp_path)), None)
    assert table["from_ns"].tolist() == [0, 0, 5_000, 5_000]


def test_budgets_with_another_scale(tmp_path):
    made = Scene().event(BUDGET, 3, (0, 1_250, 0, 100, 0, 10_000)).run(5, 1_000, 0).end(2_000)
    assert reported(made.open(tmp_path))[0][2] == 0.125


def test_fast_events_show_no_partition_and_the_table_says_what_to_capture(tmp_path):
    found = Statistics(Scene(70, 30).run(5, 1_000, None).end(2_000).open(tmp_path))
    assert found.partitions.partition.tolist() == [0, 1, NOT_LOGGED]
    table = TABLES["partition"](found, None)
    assert "SETCLASSWIDE THREAD" in table.question.note
    assert [row["used_share"] for row in table.records()[:2]] == [None, None], "not 0 %"
    assert [row["run_ns"] for row in table.records()[:2]] == [None, None]


def test_without_partitions_the_table_says_so(tmp_path):
    table = TABLES["partition"](Statistics(Scene().run(5, 1_000, None).end(2_000).open(tmp_path)), None)
    assert (len(table), table.question.note) == (0, "")
    assert table.says_why_empty.startswith("Cannot tell: no event shows names or budgets of partitions; ")


def test_who_went_bankrupt(tmp_path):
    [system, drivers, _] = TABLES["partition"](Statistics(scene().open(tmp_path)), None).records()
    assert (drivers["bankruptcies"], drivers["bankrupt_threads"], drivers["critical_budget_ms"]) == (1, "pid 5 1", 10)
    assert (system["bankruptcies"], system["bankrupt_threads"]) == (0, "")
    assert drivers["of_budget_share"] == pytest.approx(3_000 / 10_000 / 0.3, abs=1e-6)


def test_garbage_for_numbers_is_no_partition(tmp_path):
    made = Scene(100).run(5, 1_000, 0x7FFFFFFF).budget(0x12345678, 10, 1_500).end(2_000)
    assert [row[1] for row in reported(made.event(BANKRUPTCY, 2_100, (5, 1, 0x80000000)).open(tmp_path))] == [
        0,
        NOT_LOGGED,
    ]


@pytest.mark.parametrize(("start", "end", "length", "expected"), [
    ([0, 50, 90], [10, 60, 120], 40, (30, 80)), ([0, 0], [30, 20], 40, (50, 0)), ([10], [90], 20, (20, 10)),
    ([0, 100], [5, 107], 10, (7, 97)),
])  # fmt: skip
def test_the_most_within_a_window(start, end, length, expected):
    assert _peak(np.array(start), np.array(end), length, 0) == expected


def test_the_averaging_window_is_the_one_that_is_reported(tmp_path):
    made = Scene(100).event(INFO, 5, (2, 0, 0, 0, 1, 8, 0, 0)).run(5, 1_000_000, 0).end(9_000_000)
    table = Statistics(made.open(tmp_path)).partitions
    assert (table.peak_cycles.tolist(), table.peak_start_cycles.tolist()) == ([2_000_000], [START + 1_000_000])


def accounts(made, window):
    """Return the cycles that the simulated scheduler charged to each partition; idle threads left out."""
    used = Counter()
    for partition, thread, start, end in made.truth.charges:
        if thread[0] != 1 or thread[1] > made.trace.cpu_count:
            used[partition] += max(0, min(end, window.end) - max(start, window.start))
    return used


@pytest.mark.parametrize("release", RELEASES, ids=str)
@pytest.mark.parametrize("name", ["partitions", "partition-starvation"])
def test_the_accounts_of_the_scheduler(name, release, tmp_path):
    found = registry.find(name)
    made = traced_later(found.setup, 40, 600, tmp_path, release, found.cpus, WIDE)
    window = TimeWindow(made.trace.dump_end_cycles + 1, made.trace.window.end)
    table = Statistics(made.trace, window).partitions
    expected = accounts(made, window)
    for partition, cycles in zip(table.partition.tolist(), table.run_cycles.tolist(), strict=True):
        if partition >= 0:
            # The kernel charges what it does between two threads to one of them; the trace has no event there.
            assert abs(cycles - expected[partition]) <= 0.002 * window.length, partition
    budgets = {p.ident: p.budget_percent / 100 for p in made.kernel.machine.partitions}
    reported = dict(zip(table.partition.tolist(), table.budget.tolist(), strict=True))
    assert {partition: budget for partition, budget in reported.items() if partition >= 0} == budgets
    broke = defaultdict(int)
    for time, partition, _ in made.truth.bankruptcies:
        broke[partition] += window.start <= time < window.end
    assert dict(zip(table.partition.tolist(), table.bankruptcies.tolist(), strict=True)).items() >= broke.items()


@pytest.mark.parametrize("release", RELEASES, ids=str)
@pytest.mark.parametrize("modes", [FAST, WIDE])
def test_losses_make_no_time(release, modes, tmp_path):
    found = registry.find("partitions")
    made = damaged(
        found.setup,
        300,
        tmp_path,
        release,
        found.cpus,
        ring=False,
        wide=modes is WIDE,
        slots=60,
        skew_ns=0,
        classes=ALL,
    )
    table = Statistics(made.trace).partitions
    expected = accounts(made, made.trace.window)
    for partition, cycles in zip(table.partition.tolist(), table.run_cycles.tolist(), strict=True):
        if partition > 0:
            assert cycles <= 1.01 * expected[partition] + 0.002 * made.trace.window.length
