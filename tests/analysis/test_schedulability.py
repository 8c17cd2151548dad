"""Response-time analysis: textbook examples by hand, and never below what the simulated kernel does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from satview import open_trace
from satview.__main__ import main
from satview.analysis.activities import Timing, activities
from satview.analysis.schedulability import ASSUMPTIONS, Arrivals, response_bound, response_bounds
from satview.answers.late import Replayed, schedulability
from satview.base.errors import UsageError
from satview.capture.kernel import Kernel
from satview.capture.sim.calls import Compute, Sleep, ThreadRunmask
from satview.capture.sim.threads import Program
from satview.events import wire
from satview.events.spec import Release
from satview.formats.axis import Member, trace_on_axis
from satview.store.trace import Trace
from satview.tables.table import table
from tests.capture.made import FAST, WIDE, damaged, traced
from tests.helpers.extent import points
from tests.helpers.kev import TraceBuilder

from .test_statistics_truth import NAMES, RELEASES, workload

FAR = 10**6
MS = 10**6
COVERED = {"automotive": 5, "convoy": 5, "periodic": 3, "instrumented": 3}  # with a bound, at least


def column(*values: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def bound(execution: int, period: int, *others: tuple[int, int], cpus: int = 1, jitter: int = 0) -> int | None:
    """Return the bound of a task among others, (cycles, period) each."""
    costs, periods = column(*(cost for cost, _ in others)), column(*(length for _, length in others))
    arrivals = Arrivals.periodic(periods, np.full(len(others), jitter))
    return response_bound(execution, Arrivals.periodic(column(period)), arrivals, costs, FAR, cpus=cpus)


def test_three_tasks_of_a_textbook() -> None:
    """C = 1, 2, 3 and T = 4, 6, 12: 3 + 3 times the first + 2 times the second is 10."""
    assert bound(1, 4) == 1
    assert bound(2, 6, (1, 4)) == 3
    assert bound(3, 12, (1, 4), (2, 6)) == 10


def test_a_response_longer_than_the_period_is_that_of_a_later_instance() -> None:
    """Lehoczky 1990: C = 26, T = 70 and C = 62, T = 100: 114, 102, 116, 104, 118, 106, 94."""
    assert bound(62, 100, (26, 70)) == 118


def test_jitter_brings_one_arrival_more() -> None:
    """3 + one of 2 are done at 5, just before the next; with a jitter of 1 that is there too: 7."""
    assert bound(3, 20, (2, 5)) == 5
    assert bound(3, 20, (2, 5), jitter=1) == 7


@pytest.mark.thorough
def test_more_than_the_cpu_has_time_for_has_no_bound() -> None:
    assert bound(2, 5, (3, 5)) == 5, "all of it is used"
    assert bound(3, 5, (3, 5)) is None


def test_on_two_cpus_half_of_the_others_is_met_with_what_was_begun_before() -> None:
    """Two others of 2 every 10 may each run twice: 3 + (4 + 4) / 2. One alone never keeps it from both CPUs."""
    assert bound(3, 20, (2, 10), (2, 10), cpus=2) == 7
    assert bound(3, 20, (2, 10), cpus=2) == 5, "a bound, not what happens"


def test_arrivals_are_as_dense_as_seen() -> None:
    """At 0, 1, 2 and 50 of 100: three within 3, and those again after the time that all were watched."""
    seen = Arrivals.seen([column(0, 1, 2, 50)], 100)
    assert [int(seen.most_within(length)[0]) for length in (1, 2, 3, 50, 51, 100, 101, 103)] == [1, 2, 3, 3, 4, 4, 5, 7]
    assert [seen.least_for(count) for count in (1, 2, 3, 4, 5, 6)] == [0, 1, 2, 50, 100, 101]
    many = Arrivals.seen([column(*range(0, 10_000, 10))], 10_000)
    assert int(many.most_within(9_991)[0]) == 1_000, "beyond what is looked at in a row"


@points(name=NAMES, release=RELEASES, seed=[1, 5])
def test_no_response_is_longer_than_its_bound(name: str, release: Release, seed: int, tmp_path: Path) -> None:
    setup, ms, cpus = workload(name)
    trace = traced(setup, ms, tmp_path, release, cpus, seed, WIDE, skew_ns=0).trace
    found = activities(trace)
    bounds = response_bounds(trace, found, [-1] * len(found.activities))
    for activity, one in zip(found.activities, bounds, strict=True):
        assert one.reason or one.bound_cycles >= one.measured_cycles >= 0, (activity.name, one)
        assert not one.reason or one.bound_cycles == -1
    assert sum(not one.reason for one in bounds) >= COVERED.get(name, 0), [one.reason for one in bounds]


def test_what_cannot_be_covered_is_refused_with_the_reason(tmp_path: Path) -> None:
    setup, ms, cpus = workload("automotive")
    reasons = []
    fast, lost = tmp_path / "fast", tmp_path / "lost"
    fast.mkdir()
    lost.mkdir()
    for trace in (
        traced(setup, ms, fast, Release.QNX_7, cpus, 1, FAST, skew_ns=0).trace,
        damaged(setup, ms, lost, Release.QNX_7, cpus, ring=False, wide=True, slots=64).trace,
    ):
        found = activities(trace)
        bounds = response_bounds(trace, found, [-1] * len(found.activities))
        assert len(bounds) > 3
        assert all(one.bound_cycles == -1 for one in bounds)
        reasons += [{one.reason.partition(";")[0] for one in bounds}]
    assert reasons[0] == {"the trace has no priorities"}
    assert len(reasons[1]) == 1
    assert "lost" in reasons[1].pop()


def periodic_threads(folder: Path, switch: int = 0) -> Trace:
    """Return control (priority 20), 3,000 every 20,000, driver (30), 4,000 every 25,000, and rest (10), what is left.

    Both begin together at every 100,000, where control takes 7,000. A switch to the driver may take some time.
    """
    build = TraceBuilder().time_event(0)
    for pid, name in ((5, "control"), (6, "driver"), (7, "rest")):
        build.process_name(pid, pid, f"bin/{name}")
    priority = {5: 20, 6: 30, 7: 10}
    events: list[tuple[int, str, int]] = [(10, "RUNNING", 5), (20, "NANOSLEEP", 5), (20, "RUNNING", 6),
                                          (30, "NANOSLEEP", 6), (30, "RUNNING", 7)]  # fmt: skip
    for time in range(20_000, 800_001, 20_000):
        is_late = time % 100_000 == 0
        runs = time + (switch + 4_000) * is_late
        events += [(time, "READY", 5), (runs, "RUNNING", 5), (runs + 3_000, "NANOSLEEP", 5)]
        events += [(runs + 3_000, "RUNNING", 7)]
        events += [] if is_late else [(time, "READY", 7)]
    for time in range(25_000, 800_001, 25_000):
        runs, done = time + switch, time + switch + 4_000
        events += [(time, "READY", 6), (runs, "READY", 7), (runs, "RUNNING", 6), (done, "NANOSLEEP", 6)]
        events += [(done, "RUNNING", 7)] if time % 100_000 else []
    order = ("NANOSLEEP", "READY", "RUNNING")
    for time, state, pid in sorted(events, key=lambda event: (event[0], order.index(event[1]))):
        build.state(state, time, pid, 1, extra=(priority[pid], 1))
    return build.event(wire.code(6, 1), 815_000).open(folder)


def test_bounds_of_a_trace_by_hand(tmp_path: Path) -> None:
    """Control: 3,000 + 4,000, as it was at 100,000; the driver, above all others, its own 4,000.

    What else their threads did may come before: as the trace began control ran from 10 to 20, the driver to 30.
    """
    trace = periodic_threads(tmp_path)
    rows = {row["activity"]: row for row in schedulability(trace).records()}
    control, driver = rows["control 1"], rows["driver 1"]
    names = ("period", "execution", "blocking", "bound", "measured", "deadline")
    assert [control[f"{name}_ns"] for name in names] == [20_000, 3_000, 0, 7_020, 7_000, 20_000]
    assert [driver[f"{name}_ns"] for name in names] == [25_000, 4_000, 0, 4_030, 4_000, 25_000]
    assert (control["priority"], control["cpus"], control["holds"], control["reason"]) == (20, "0", "yes", "")
    tight = schedulability(trace, {"control": Timing(deadline="7019 ns"), "driver": Timing(period="4030 ns")})
    rows = {row["activity"]: row for row in tight.records()}
    assert next(iter(rows)) == "control 1", "what does not hold is first"
    assert (rows["control 1"]["holds"], rows["driver 1"]["holds"]) == ("no", "yes")
    assert rows["driver 1"]["bound_ns"] == 4_030, "it is done just as the next one comes"
    rows = {row["activity"]: row for row in schedulability(trace, {"driver": Timing(period="3999 ns")}).records()}
    assert (rows["driver 1"]["holds"], rows["driver 1"]["bound_ns"]) == ("cannot tell", None)
    assert rows["driver 1"]["reason"] == "it and what goes before it may need all the time of its CPUs"


def test_time_until_a_thread_is_dispatched_is_its_own(tmp_path: Path) -> None:
    """Switches of 100 to the driver: it takes 4,100, and keeps control waiting 100 longer while rest still runs."""
    rows = {row["activity"]: row for row in schedulability(periodic_threads(tmp_path, 100)).records()}
    control, driver = rows["control 1"], rows["driver 1"]
    assert [driver[f"{name}_ns"] for name in ("execution", "blocking", "measured")] == [4_000, 100, 4_100]
    assert [control[f"{name}_ns"] for name in ("execution", "blocking", "measured")] == [3_000, 100, 7_100]
    assert control["bound_ns"] == 3_000 + 100 + 4_100 + 20


def test_the_command_prints_bounds_and_assumptions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(periodic_threads(tmp_path).path)
    assert main(["late", path, "--schedulability"]) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith("control 1"))
    assert row.split()[2:10] == ["20", "~", "0", "20.00", "\N{MICRO SIGN}s", "3.000", "\N{MICRO SIGN}s", "0"]
    assert [line for line in lines if line.startswith("Assumed: ")] == [f"Assumed: {line}" for line in ASSUMPTIONS]
    assert main(["late", path, "--schedulability", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["bound_ns"] for row in document["schedulability"]] == [7_020, 4_030]
    assert document["assumptions"] == list(ASSUMPTIONS)
    assert main(["late", path, "driver", "--schedulability", "--format", "csv"]) == 0
    assert [line.partition(",")[0] for line in capsys.readouterr().out.splitlines()[1:]] == ["driver 1"]
    sql = table(open_trace(path), "schedulability")
    assert sql["bound_ns"].tolist() == [7_020, 4_030], "as SQL has it"
    assert sql["cpus_known"].tolist() == ["inferred"] * 2
    assert "replayed_ns" not in sql.columns, "a replay takes long; SQL has none"


def pinned(is_other_wide: bool) -> Callable[[Kernel], None]:
    """Return a set-up for two CPUs: a task on each, one of higher priority, and one that changes its CPU every round.

    That of higher priority may run anywhere, but runs on CPU 0 only; its call may say so.
    """

    def task(masks: tuple[int, ...], work_ms: int, sleep_ms: int, begin_ms: int) -> Program:
        yield Sleep(begin_ms * MS + 1)
        while True:
            for mask in masks:
                if mask:
                    yield ThreadRunmask(mask)
                yield Compute(work_ms * MS)
                yield Sleep(sleep_ms * MS)

    def setup(kernel: Kernel) -> None:
        kernel.spawn("bin/left", task, (1,), 2, 10, 0, priority=20, thread_name="left")
        kernel.spawn("bin/right", task, (2,), 2, 10, 0, priority=20, thread_name="right")
        mask = 3 if is_other_wide else 0
        kernel.spawn("bin/other", task, (mask,), 3, 20, 4, priority=30, thread_name="other")
        kernel.spawn("bin/hops", task, (1, 2), 1, 16, 8, priority=10, thread_name="hops")

    return setup


def test_runmasks_that_threads_set_say_where_they_may_run(tmp_path: Path) -> None:
    """What may run on CPU 1, though it never did, goes before what is bound to it: 3 ms more, at least."""
    bounds = []
    for is_wide in (False, True):
        folder = tmp_path / str(is_wide)
        folder.mkdir()
        trace = traced(pinned(is_wide), 200, folder, cpus=2, modes=WIDE, skew_ns=0).trace
        rows = {row["activity"].rpartition("(")[2].rstrip(")"): row for row in schedulability(trace).records()}
        assert [rows[name]["cpus"] for name in ("left", "right")] == ["0", "1"]
        assert not any("known" in rows[name] for name in ("left", "right")), "they have called ThreadCtl()"
        assert rows["hops"]["reason"] == "its runmask changes: there is no CPU that it allows all the time"
        assert rows["hops"]["bound_ns"] is None
        assert rows["other"]["cpus"] == ("0, 1" if is_wide else "0")
        assert rows["other"].get("known") == (None if is_wide else {"cpus": "inferred"})
        for name in ("left", "right", "other"):
            assert rows[name]["bound_ns"] >= rows[name]["measured_ns"]
        bounds.append(rows["right"]["bound_ns"])
    assert bounds[0] + 3 * MS <= bounds[1] <= bounds[0] + 7 * MS


def test_a_file_of_timing_says_where_threads_may_run(tmp_path: Path) -> None:
    trace = traced(pinned(False), 200, tmp_path, cpus=2, modes=WIDE, skew_ns=0).trace

    def row_of(name: str, **cpus: tuple[int, ...]) -> dict[str, object]:
        timing = {name: Timing(cpus=some) for name, some in cpus.items()}
        return next(row for row in schedulability(trace, timing).records() if row["activity"].endswith(f"({name})"))

    assert (row_of("other", other=(0, 1))["cpus"], row_of("other", other=(0, 1)).get("known")) == ("0, 1", None)
    assert row_of("right", other=(0, 1))["bound_ns"] > row_of("right")["bound_ns"], "it may come to CPU 1 now"  # type: ignore[operator]
    assert row_of("other", other=(1,))["reason"] == "it ran on CPU 0, which the timing file does not allow"
    with pytest.raises(UsageError, match="names CPU 2; the trace has CPUs 0 to 1"):
        row_of("other", other=(0, 2))


def test_what_the_replay_gives_is_beside_what_was_measured(tmp_path: Path) -> None:
    trace = periodic_threads(tmp_path)
    rows = {row["activity"]: row for row in schedulability(trace, replayed=Replayed({"control 1": 7_500})).records()}
    assert (rows["control 1"]["replayed_ns"], rows["driver 1"]["replayed_ns"]) == (7_500, None)
    assert [rows[name]["known"]["replayed_ns"] for name in ("control 1", "driver 1")] == ["estimate", "unknown"]
    without = schedulability(trace, replayed=Replayed({}, "it has no threads"))
    assert without.missing == ["no replay: it has no threads"]
    assert [row["replayed_ns"] for row in without.records()] == [None, None]


def test_bounds_on_an_axis_are_those_of_the_file_alone(tmp_path: Path) -> None:
    """Events of the host are fast, and its clock counts twice as fast; the guest is late by 1 us, and has CPU 1."""
    (tmp_path / "host").mkdir()
    build = TraceBuilder(rate=2 * 10**9).time_event(0)
    for time in range(0, 400_000, 20_000):
        build.state("RUNNING", time + 10, 5, 1).state("NANOSLEEP", time + 3_000, 5, 1)
        build.state("READY", time + 20_000, 5, 1)
    host, guest = build.open(tmp_path / "host"), periodic_threads(tmp_path)
    both = trace_on_axis(tmp_path / "x.sataxis", [Member("host", host), Member("guest", guest, 10**6)])
    names = ("bound_ns", "measured_ns", "period_ns", "priority", "holds", "reason", "deadline_ns")

    def bounds(trace: Trace, prefix: str = "") -> dict[str, list[object]]:
        return {row["activity"].removeprefix(prefix): [row[name] for name in names]
                for row in schedulability(trace).records() if row["activity"].startswith(prefix)}  # fmt: skip

    assert bounds(both, "guest:") == bounds(guest)
    assert bounds(guest)["control 1"][:2] == [7_020, 7_000]
    assert {row["cpus"] for row in schedulability(both).records() if row["bound_ns"]} == {"1"}
    (reason,) = {found[5] for found in bounds(both, "host:").values()}
    assert reason == "the trace has no priorities; capture wide events of the class THREAD", "not taken as the highest"
