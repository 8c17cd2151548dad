"""Slow against fast instances of one trace and of several, in traces that can be checked by hand."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from satview.__main__ import main
from satview.analysis.activities import Timing
from satview.answers.late import late
from satview.answers.late_comparison import thinned
from satview.base.errors import UsageError
from satview.capture.kernel import Kernel
from satview.capture.sim.calls import Compute, MutexLock, MutexUnlock
from satview.capture.sim.threads import Mutex, Program
from satview.capture.workloads.kernel_notes import CHECK, PLAN, SEARCH, STORE
from satview.capture.workloads.parts import MS, periodic
from satview.events import wire
from satview.events.spec import Release
from satview.opened import with_answers
from satview.store.trace import Trace
from tests.analysis.test_statistics_truth import workload
from tests.capture.made import WIDE, traced
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import chained, rounds_of_a_loop

from .test_late import CAMERA, CONTROL

MUTEX_LOCK = 80
PAGE_FAULT = wire.code(wire.WireClass.SYSTEM, 17)


def loop(folder: Path, slow: tuple[int, ...]) -> Trace:
    folder.mkdir()
    return rounds_of_a_loop(40, slow).open(folder)


def moving(folder: Path) -> Trace:
    """Return 40 rounds of 1,000; every tenth takes 3,000, of which it locks a mutex, twice, and ends on another CPU.

    The round after a slow one moves back: 2 of the 20 that are compared. One of the fast ones has a page fault.
    """
    build = TraceBuilder(cpus=2).time_event(0).time_event(0, 1).process_name(1, 5, "bin/control")
    build.state("RUNNING", 10, 5, 1).state("NANOSLEEP", 20, 5, 1)
    for number in range(40):
        woken = 10_000 * (number + 1)
        build.state("RUNNING", woken, 5, 1)
        if number % 10 == 9:
            for time in (woken + 100, woken + 400):
                build.call(MUTEX_LOCK, time).exit(MUTEX_LOCK, time + 200)
            build.state("READY", woken + 1_000, 5, 1).state("RUNNING", woken + 1_000, 5, 1, cpu=1)
            build.state("NANOSLEEP", woken + 3_000, 5, 1, cpu=1)
        else:
            if number == 5:
                build.event(PAGE_FAULT, woken + 500)
            build.state("NANOSLEEP", woken + 1_000, 5, 1)
    return build.event(wire.code(6, 1), 420_000).open(folder)


def test_what_happens_more_often_in_slow_rounds(tmp_path: Path) -> None:
    found = late(moving(tmp_path))
    causes = found.compared(found.learned.named("control 1")).causes.records()
    assert [(row["cause"], row["what"], row["slow"], row["fast"], row["in_slow"], row["in_fast"], row["sure"])
            for row in causes] == [("call", "SYNC_MUTEX_LOCK", 2, 0, 4, 0, "sure"),
                                   ("CPU moved", "", 1, 0.1, 4, 2, "likely")]  # fmt: skip


def test_two_traces_are_compared_by_name(tmp_path: Path) -> None:
    """In one trace 10 of 40 rounds wait for 4,000 more, in the other none: 1,000 on average."""
    slow = late(loop(tmp_path / "slow", tuple(range(0, 40, 4))))
    fast = late(loop(tmp_path / "fast", ()))
    (row,) = slow.compared(0, against=[fast]).times.records()
    assert (row["part"], row["whom"], row["explains_ns"], row["slow_ns"]) == ("preempted", "hog 1", 1_000, 1_100)
    assert (row["fast_ns"], row["in_slow"], row["in_fast"], row["share"], row["sure"]) == (100, 40, 40, 1.0, "likely")
    assert not len(fast.compared(0, against=[slow]).times)


def test_the_slowest_of_several_traces_are_compared_with_the_faster_half_of_all(tmp_path: Path) -> None:
    """Of 120 rounds the slowest 12 are the slow ones of the second trace, and 2 others: 12 of 14."""
    traces = [late(loop(tmp_path / str(number), slow)) for number, slow in enumerate([(), tuple(range(12)), ()])]
    (row,) = traces[0].compared(0, others=traces[1:]).times.records()
    assert (row["whom"], row["explains_ns"], row["in_slow"], row["in_fast"], row["sure"]) == (
        "hog 1",
        4_000,
        12,
        60,
        "sure",
    )


def test_a_trace_without_the_activity_is_refused(tmp_path: Path) -> None:
    found, other = late(loop(tmp_path / "a", ())), late(TraceBuilder().time_event(0).open(tmp_path))
    for others, against in (([found, other], []), ([], [found, other])):
        with pytest.raises(UsageError, match=f"^{re.escape(other.trace.path.name)}: 'control 1' names no activity"):
            found.compared(0, others, against)


def test_instances_are_chosen_evenly() -> None:
    assert thinned(np.arange(9), 3).tolist() == [0, 4, 8]
    assert thinned(np.arange(3), 9).tolist() == [0, 1, 2]


def test_the_command_compares_with_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(loop(tmp_path / name, slow).path) for name, slow in (("a", (1, 2, 3)), ("b", ()))]
    assert main(["late", paths[0], "--against", paths[1], "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["slow_against_fast"]
    assert (row["whom"], row["explains_ns"]) == ("hog 1", 300)
    assert main(["late", paths[0], "--with", *[paths[1]] * 65]) == 2
    assert "65 traces are too many to compare at once; 64 at most" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [(), ("--schedulability", "--no-replay")])
def test_a_name_of_no_activity_is_not_every_activity(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert main(["late", str(loop(tmp_path / "a", ()).path), "none", *arguments]) == 2
    assert capsys.readouterr().err == "satview: 'none' names no activity; there are control 1\n"


def test_the_command_names_the_trace_that_lacks_an_activity_of_the_timing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "timing.toml").write_text('["control 1"]\ndeadline = "1 ms"\n')
    paths = [str(loop(tmp_path / "a", (1, 2, 3)).path), str(TraceBuilder().time_event(0).write(tmp_path / "other.kev"))]
    assert main(["late", paths[0], "-c", str(tmp_path / "timing.toml"), "--with", paths[1]]) == 2
    assert capsys.readouterr().err == "satview: other.kev: 'control 1' names no activity; the trace has none\n"


@pytest.mark.parametrize("table", ["slow-against-fast", "more-in-slow", "slow-paths"])
def test_the_command_prints_every_table_of_a_trace_without_activities(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    states = TraceBuilder().time_event(0).state("RUNNING", 10, 5, 1).state("RECEIVE", 20, 5, 1)
    for number in (0, 3):  # a message that is sent, a pulse that is received
        states.event(wire.code(wire.WireClass.COMM, number), 30 + number, (1, 5))
    states.event(wire.code(wire.WireClass.INT, 1), 40, (0x1B, 0)).event(wire.code(wire.WireClass.KER_CALL, 1), 50)
    nothing = TraceBuilder().time_event(0).event(wire.code(wire.WireClass.USER, 1), 10, (1, 2))
    for builder, outcome in ((states, "nothing"), (nothing, "cannot tell")):
        path = str(builder.write(tmp_path / "t.kev"))
        assert main(["late", path, "--table", table, "--format", "json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert (document["outcome"], document[table.replace("-", "_")]) == (outcome, [])
        assert main(["late", path, "--table", table]) == 0
        assert ("Cannot tell: the trace has no states of threads" in capsys.readouterr().out) == (
            outcome == "cannot tell"
        )


def locking(kernel: Kernel) -> None:
    """Every 10 ms low locks a mutex for 4 ms of work, high works 1 ms from 2 ms on, and middle 2 ms from 3 ms on.

    In every tenth round high needs the mutex: low works for 2 ms more, and middle keeps it from the CPU for 2 ms.
    """
    mutex = Mutex("shared", inherit=False)

    def low(_count: int) -> Program:
        yield MutexLock(mutex)
        yield Compute(4 * MS)
        yield MutexUnlock(mutex)

    def middle(_count: int) -> Program:
        yield Compute(2 * MS)

    def high(count: int) -> Program:
        if count % 10 == 9:
            yield MutexLock(mutex)
        yield Compute(MS)
        if count % 10 == 9:
            yield MutexUnlock(mutex)

    for priority, offset_ms, task in ((10, 0, low), (20, 3, middle), (30, 2, high)):
        program = partial(periodic, 10 * MS, task, offset_ns=offset_ms * MS, priority=priority)
        kernel.spawn(f"bin/{task.__name__}", program, priority=priority, thread_name=task.__name__)


def test_paths_go_from_the_lock_to_what_keeps_its_holder(tmp_path: Path) -> None:
    trace = traced(locking, 1_005, tmp_path, Release.QNX_8, modes=WIDE, skew_ns=0).trace
    found = late(trace)
    number = next(
        number for number, activity in enumerate(found.learned.activities) if activity.name.endswith("(high)")
    )
    compared = found.compared(number)
    work, middle = sorted(compared.paths.head(2).records(), key=lambda row: row["path"].rpartition("> ")[2])
    lock, _, last = work["path"].partition(" > ")
    assert lock.startswith("lock 0x")
    assert lock.endswith("(low)")
    assert last == "own work"
    assert middle["path"].startswith(f"{lock} > preempted by ")
    assert middle["path"].endswith("(middle)")
    for row in (work, middle):
        assert row["explains_ns"] == pytest.approx(2 * MS, rel=0.01)
        assert (row["via"], row["in_slow"], row["in_fast"], row["fast_ns"], row["sure"]) == (
            "waits",
            9,
            0,
            0,
            "sure",
        ), "a tenth of 99"
    begins = {int(row) for row in found.learned.instances.start_row[found.worst(number, 10)]}
    assert {int(event) for event in compared.paths.head(2)["event"]} <= begins


@pytest.mark.thorough
def test_paths_through_functions_are_those_of_the_program(tmp_path: Path) -> None:
    """Slow rounds of the planner have 4 requests, fast ones 1 or 2: each searches 300 us, and checks 140 us in it."""
    setup, _, cpus = workload("instrumented")
    found = late(traced(setup, 1_000, tmp_path, cpus=cpus, modes=WIDE, skew_ns=0).trace)
    names = [activity.name for activity in found.learned.activities]
    number = next(number for number, name in enumerate(names) if name.endswith("(plan)"))
    rows = {row["path"]: row for row in found.compared(number).paths.records() if row["via"] == "functions"}
    plan, search, check, store = (f"0x{address:x}" for address in (PLAN, SEARCH, CHECK, STORE))
    lengths = {plan: 100, f"{plan} > {search}": 300, f"{plan} > {search} > {check}": 140, f"{plan} > {store}": 120}
    assert set(rows) == set(lengths)
    for path, length_us in lengths.items():
        assert rows[path]["slow_ns"] == pytest.approx(4_000 * length_us, rel=0.05)
        assert 1_000 * length_us < rows[path]["fast_ns"] < 2_000 * length_us
    assert next(iter(rows)) == f"{plan} > {search}", "what explains most is first"


def test_what_is_compared_says_where_to_look(tmp_path: Path) -> None:
    """The first of the slow rounds locks first 100 after it wakes at 100,000, and ends on CPU 1 1,000 after that."""
    trace = moving(tmp_path)
    compared = late(trace).compared(late(trace).learned.named("control 1"))
    events = compared.causes["event"]
    assert trace.events.time_cycles[events].tolist() == [
        trace.clock.start_cycles + after for after in (100_100, 101_000)
    ]
    assert {trace.events.time_cycles[event] - trace.clock.start_cycles for event in compared.times["event"]} == {
        100_000
    }


def test_events_of_other_traces_have_no_place_in_this_one(tmp_path: Path) -> None:
    fast, slow = (late(loop(tmp_path / name, rounds)) for name, rounds in (("a", ()), ("b", tuple(range(10)))))
    (row,) = fast.compared(0, others=[slow]).times.records()
    assert (row["in_slow"], row["event"]) == (8, None), "the 8 slowest of 80 are all in the other one"


@pytest.mark.thorough
def test_sql_has_the_comparisons_of_all_activities(tmp_path: Path) -> None:
    trace = with_answers(moving(tmp_path))
    assert trace.sql("select activity, cause, what, slow, event from more_in_slow order by slow desc").rows() == [
        ("control 1", "call", "SYNC_MUTEX_LOCK", 2.0, int(late(trace).compared(0).causes["event"][0])),
        ("control 1", "CPU moved", "", 1.0, int(late(trace).compared(0).causes["event"][1])),
    ]
    by_hand = late(trace).compared(0).times.records()
    rows = trace.sql("select part, explains_ns, whom from slow_against_fast where activity = 'control 1'").rows()
    assert [(part, length) for part, length, _ in rows] == [(row["part"], row["explains_ns"]) for row in by_hand]
    assert trace.sql("select * from slow_path").rows() == [], "it waits for nobody"
    without = with_answers(TraceBuilder().time_event(0).open(tmp_path))
    assert without.sql("select count(*) from slow_against_fast").rows() == [(0,)]


@pytest.mark.thorough
def test_sql_follows_the_file_of_timing(tmp_path: Path) -> None:
    """Chains are those of the file; deadlines are its own, also after a query without it, and before one."""
    (tmp_path / "chained").mkdir()
    trace = with_answers(chained(tmp_path / "chained", 6, (1_600, 3_600, 5_600)))
    said = {"camera": CAMERA, "control": CONTROL, "path": Timing(chain="camera > control", reaction="1us")}
    query = "select chain, measure, count, max_ns, bound_ns, misses from chain"
    assert trace.sql(query).rows() == []
    assert trace.sql(query, timing=said).rows() == [("path", "reaction", 5, 1_900, 1_000, 2),
                                                    ("path", "age", 3, 900, None, None)]  # fmt: skip
    assert trace.sql(query).rows() == []
    (tmp_path / "loop").mkdir()
    trace = with_answers(rounds_of_a_loop().open(tmp_path / "loop"))
    query = "select deadline_ns, misses from activity"
    assert trace.sql(query).rows() == [(10_000, 0)]
    assert trace.sql(query, timing={"control": Timing(deadline="5us")}).rows() == [(5_000, 3)]
    assert trace.sql(query).rows() == [(10_000, 0)]


def test_traces_with_other_clocks_are_compared_by_time(tmp_path: Path) -> None:
    """The clock of the slow trace is half as fast: the same cycles take 2,200 ns instead of 1,100."""
    (tmp_path / "slow").mkdir()
    build = rounds_of_a_loop(40, ())
    build.rate = 500_000_000
    slow, fast = late(build.open(tmp_path / "slow")), late(loop(tmp_path / "fast", ()))
    rows = slow.compared(0, against=[fast]).times.records()
    assert [(row["part"], row["explains_ns"], row["slow_ns"], row["fast_ns"]) for row in rows] == [
        ("own work", 1_000, 2_000, 1_000), ("preempted", 100, 200, 100)]  # fmt: skip
    slowest = fast.compared(0, others=[slow]).times.records()
    assert [(row["part"], row["explains_ns"]) for row in slowest] == [("own work", 1_000), ("preempted", 100)]


def test_a_share_of_nothing_is_none(tmp_path: Path) -> None:
    """Both traces take equally long: what one has more of explains nothing of a difference."""
    slow = late(loop(tmp_path / "a", (5,)))
    fast = late(moving(tmp_path))
    row = slow.compared(0, against=[fast]).times.records()[0]
    assert (row["part"], row["share"]) == ("preempted", None)
