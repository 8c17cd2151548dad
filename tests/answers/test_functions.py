"""Functions by their callers, and samples of the profiler; checked by hand."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from satview.__main__ import main
from satview.answers.functions import QUESTION, FlameWidth, flame_graph, function_table
from satview.answers.table import Known, Outcome
from satview.base.time import TimeWindow
from satview.capture.run import Capture, run
from satview.capture.workloads.kernel_notes import CHECK, PLAN, SEARCH, STORE
from satview.events import wire
from satview.export.by_ending import export
from satview.formats.kev.reader import open_kev
from satview.formats.outside_names import add_symbols
from tests.helpers.elf import write_elf
from tests.helpers.kev import START, TraceBuilder

ENTER, EXIT, PROFILE = (wire.code(wire.WireClass.SYSTEM, number) for number in (10, 11, 20))


def nested():
    """main calls f twice, 10 to 40 and 50 to 70, and does not return; its thread is READY from 20 to 30."""
    builder = TraceBuilder().time_event(0).process_name(1, 7, "usr/bin/app").state("RUNNING", 2, 7, 1)
    builder.event(ENTER, 5, (0x1000, 0)).event(ENTER, 10, (0x1100, 0x1004))
    builder.state("READY", 20, 7, 1).state("RUNNING", 30, 7, 1)
    builder.event(EXIT, 40, (0x1100, 0)).event(ENTER, 50, (0x1100, 0x1004)).event(EXIT, 70, (0x1100, 0))
    return builder.event(wire.code(wire.WireClass.USER, 1), 99, (1, 2))


def rows(table):
    return {row["stack"]: row for row in table.records()}


def test_time_of_functions_below_their_callers(tmp_path: Path) -> None:
    found = rows(function_table(nested().open(tmp_path)))
    assert list(found) == ["0x1000", "0x1000;0x1100"]  # the function itself at the end, so that it is not its callers
    assert QUESTION.column("stack").title == "Stack"
    outer, inner = found.values()
    assert [inner[name] for name in ("count", "total_ns", "self_ns", "running_ns", "longest_ns")] == [2, 50, 50, 40, 30]
    # From 5 to just behind the last event, 95: the two calls of 50 are not its own, and all waiting is theirs.
    assert [outer[name] for name in ("count", "total_ns", "self_ns", "running_ns")] == [1, 95, 45, 45]
    assert set(outer["known"].values()) == {"at least"}
    assert "known" not in inner
    assert (outer["depth"], inner["depth"], inner["event"], inner["process"]) == (0, 1, 5, "usr/bin/app")


def test_only_a_range(tmp_path: Path) -> None:
    trace = nested().open(tmp_path)
    found = rows(function_table(trace, TimeWindow(START + 35, START + 60)))
    inner = found["0x1000;0x1100"]
    assert [inner[name] for name in ("count", "total_ns", "running_ns")] == [2, 15, 15]
    assert inner["known"]["total_ns"] == "at least"


def test_a_call_whose_exit_is_damaged_ends_with_its_caller(tmp_path: Path) -> None:
    """main calls f from 10 to 20, but the exit of f names another function; main returns at 60, 35 before the end."""
    builder = TraceBuilder().time_event(0).process_name(1, 7, "usr/bin/app").state("RUNNING", 2, 7, 1)
    builder.event(ENTER, 5, (0x1000, 0)).event(ENTER, 10, (0x1100, 0)).event(EXIT, 20, (0x1108, 0))
    trace = builder.event(EXIT, 60, (0x1000, 0)).event(wire.code(wire.WireClass.USER, 1), 95, (1, 2)).open(tmp_path)
    found = rows(function_table(trace))
    assert {stack: (row["total_ns"], row["self_ns"], row["running_ns"]) for stack, row in found.items()} == {
        "0x1000": (55, 55, 55)
    }
    export(trace, tmp_path / "t.folded")
    assert (tmp_path / "t.folded").read_text() == "usr/bin/app;app 1;0x1000 55\n"
    assert export(trace, tmp_path / "t.speedscope.json").count == 1


def test_functions_of_threads_that_the_trace_does_not_show_are_not_none(tmp_path: Path, capsys) -> None:
    builder = TraceBuilder().time_event(0).event(ENTER, 5, (0x1000, 0)).event(EXIT, 60, (0x1000, 0))
    trace = builder.open(tmp_path)
    table = function_table(trace)
    assert table.outcome is Outcome.CANNOT_TELL
    assert table.cannot_tell == "the thread of 1 of 1 call of functions is not known; capture the class THREAD"
    assert main(["export", str(trace.path), "-o", str(tmp_path / "t.folded")]) == 1
    assert capsys.readouterr().out == f"{tmp_path / 't.folded'}: 0 stacks\n  {table.cannot_tell}\n"
    assert not function_table(nested().open(tmp_path)).cannot_tell


def test_where_events_are_lost_figures_are_bounds_and_none_is_no_answer(tmp_path: Path) -> None:
    """f runs from 10 to 20 and from 5,100 to 5,110, a sample comes at 30; what is between 100 and 5,000 is lost."""
    builder = TraceBuilder().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).state("RUNNING", 2, 7, 1)
    builder.event(ENTER, 10, (0x1000, 0)).event(EXIT, 20, (0x1000, 0)).event(PROFILE, 30, (0x2000, 1, 7))
    builder.event(wire.code(wire.WireClass.USER, 1), 100, (1, 2))
    builder.event(wire.CONTROL_BUFFER, 5000, (4, 0)).time_event(5000).state("RUNNING", 5002, 7, 1)
    trace = builder.event(ENTER, 5100, (0x1000, 0)).event(EXIT, 5110, (0x1000, 0)).open(tmp_path)
    table = function_table(trace)
    call, sample = table.records()
    assert (call["count"], call["total_ns"], call["known"]) == (
        2, 20, dict.fromkeys(("count", "total_ns", "self_ns", "running_ns", "longest_ns"), "at least"),
    )  # fmt: skip
    assert (sample["count"], sample["total_ns"], sample["known"]) == (1, None, {"count": "at least"})
    assert table.question.column("count").reasons == {Known.AT_LEAST: "events were lost for 4.900 µs of it"}
    assert flame_graph(table, FlameWidth.SAMPLES).known.tolist()[-1] == Known.AT_LEAST
    before = function_table(trace, TimeWindow(START, START + 50))
    assert ["known" in row for row in before.records()] == [False, False]
    assert function_table(trace, TimeWindow(START + 40, START + 50)).outcome is Outcome.NOTHING
    nothing = function_table(trace, TimeWindow(START + 40, START + 5050))
    assert (len(nothing), nothing.outcome) == (0, Outcome.CANNOT_TELL)
    assert nothing.cannot_tell.startswith("events were lost for 4.900 µs of it; capture fewer events")


def test_without_the_class_of_functions_their_absence_says_nothing(tmp_path: Path) -> None:
    builder = TraceBuilder().time_event(0).state("RUNNING", 2, 7, 1).state("READY", 9, 7, 1)
    missing = "the trace has no calls of functions and no samples of a profiler; capture the class SYSTEM"
    assert function_table(builder.open(tmp_path)).cannot_tell == missing
    trace = builder.event(wire.code(wire.WireClass.SYSTEM, 2), 10, (0, 0)).open(tmp_path)
    assert function_table(trace).outcome is Outcome.NOTHING


def test_a_function_that_calls_itself_is_two_rows(tmp_path: Path) -> None:
    builder = TraceBuilder().time_event(0).state("RUNNING", 2, 7, 1)
    for event, time in ((ENTER, 10), (ENTER, 20), (EXIT, 30), (EXIT, 40)):
        builder.event(event, time, (0x1000, 0))
    found = rows(function_table(builder.open(tmp_path)))
    assert {stack: row["self_ns"] for stack, row in found.items()} == {"0x1000": 20, "0x1000;0x1000": 10}


def test_a_flame_graph_adds_up_functions_of_one_name_in_one_process(tmp_path: Path) -> None:
    """Threads 1 and 2 of process 7 call f for 10 and 20, process 8 calls what lies at the same address for 5."""
    builder = TraceBuilder().time_event(0).process_name(1, 7, "app").process_name(1, 8, "other")
    for pid, tid, entry, end in ((7, 1, 10, 20), (7, 2, 30, 50), (8, 1, 60, 65)):
        builder.state("RUNNING", entry - 1, pid, tid).event(ENTER, entry, (0x1000, 0)).event(EXIT, end, (0x1000, 0))
    table = function_table(builder.open(tmp_path))
    graph = flame_graph(table)
    assert [list(column) for column in (graph.name, graph.start, graph.width, graph.count)] == [
        ["All", "0x1000", "0x1000"], [0, 0, 30], [35, 30, 5], [0, 2, 1],
    ]  # fmt: skip
    assert (graph.longest.tolist(), graph.parent.tolist()) == ([-1, 20, 5], [-1, 0, 0])
    apart = flame_graph(table, FlameWidth.ELAPSED, is_by_thread=True)
    widths = {apart.path(node): int(apart.width[node]) for node in range(len(apart.name))}
    assert widths[("app",)] == 30
    assert widths[("app", "app 2", "0x1000")] == 20
    assert flame_graph(table, FlameWidth.SAMPLES).measure is FlameWidth.RUNNING  # there is no sample


def test_samples_count_by_function_once_it_has_a_name(tmp_path: Path) -> None:
    builder = TraceBuilder().time_event(0).process_name(1, 7, "usr/bin/app").state("RUNNING", 2, 7, 1)
    for time, ip in ((10, 0x1000), (20, 0x1004), (30, 0x1004), (40, 0x2000)):
        builder.event(PROFILE, time, (ip, 1, 7))
    trace = builder.open(tmp_path)
    assert {row["function"]: row["count"] for row in function_table(trace).records()} == {
        "0x1000": 1, "0x1004": 2, "0x2000": 1,
    }  # fmt: skip
    write_elf(tmp_path / "build" / "app", {"work": (0x1000, 0x20)}, base=0x1000)
    add_symbols(trace, tmp_path / "build")
    table = function_table(trace)
    assert {row["function"]: row["count"] for row in table.records()} == {"work": 3, "0x2000": 1}
    assert {row["source"] for row in table.records()} == {"samples"}
    assert [row["running_ns"] for row in table.records()] == [None, None]


def test_what_the_simulated_programs_did(tmp_path: Path) -> None:
    """The planner's own rows: 100 us of itself, 300 of the search, 80 and 60 of two checks, 120 of the store."""
    run(Capture("instrumented"), tmp_path / "t.kev")
    trace = open_kev(tmp_path / "t.kev")
    write_elf(tmp_path / "build" / "planner", {
        "plan": (PLAN, 0x100), "search": (SEARCH, 0x140), "check": (CHECK, 0x140), "store": (STORE, 0x80),
    })  # fmt: skip
    add_symbols(trace, tmp_path / "build")
    found = {row["stack"]: row for row in function_table(trace).records() if row["source"] == "calls"}
    assert list(found) == ["plan", "plan;search", "plan;search;check", "plan;store"]
    each = {stack: row["running_ns"] / row["count"] / 1000 for stack, row in found.items()}
    for stack, length_us in (("plan", 100), ("plan;search", 300), ("plan;search;check", 70), ("plan;store", 120)):
        assert length_us <= each[stack] < length_us + 5, stack


def test_folded_stacks_and_speedscope(tmp_path: Path) -> None:
    builder = nested()
    builder.event(PROFILE, 110, (0x1004, 1, 7)).event(PROFILE, 120, (0x1004, 1, 7))
    trace = builder.open(tmp_path)
    written = export(trace, tmp_path / "t.folded")
    assert (tmp_path / "t.folded").read_text().splitlines() == [
        "usr/bin/app;app 1;0x1000 66",
        "usr/bin/app;app 1;0x1000;0x1100 40",
    ]
    assert (written.count, written.unit) == (2, "stacks")
    assert written.left_out == ("2 samples of the profiler are left out: a folded file has one unit, here nanoseconds",)
    export(trace, tmp_path / "t.speedscope.json")
    scope = json.loads((tmp_path / "t.speedscope.json").read_text())
    frames = [frame["name"] for frame in scope["shared"]["frames"]]
    profiles = {
        profile["name"]: [
            (";".join(frames[number] for number in stack), weight)
            for stack, weight in zip(profile["samples"], profile["weights"], strict=True)
        ]
        for profile in scope["profiles"]
    }
    assert profiles == {
        "usr/bin/app app 1, calls": [("0x1000", 66), ("0x1000;0x1100", 40)],
        "usr/bin/app app 1, samples": [("0x1004", 2)],
    }
    assert [(profile["unit"], profile["endValue"]) for profile in scope["profiles"]] == [
        ("nanoseconds", 106),
        ("none", 2),
    ]


@pytest.mark.thorough
def test_functions_of_one_name_have_frames_of_their_own_in_speedscope(tmp_path: Path) -> None:
    """Each of two files has a function `work` that only this file sees."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no C compiler; on Debian: apt-get install gcc libc6-dev")
    for name in ("plan", "send"):
        (tmp_path / f"{name}.c").write_text(
            f"static int work(int x) {{ return x; }}\nint {name}(void) {{ return work(1); }}\n"
        )
    (tmp_path / "main.c").write_text("int plan(void), send(void);\nint main(void) { return plan() + send(); }\n")
    build = tmp_path / "build"
    build.mkdir()
    sources = [str(tmp_path / f"{name}.c") for name in ("plan", "send", "main")]
    subprocess.run([gcc, "-g", "-O0", "-no-pie", "-o", str(build / "app"), *sources], check=True)
    listed = subprocess.run(["nm", str(build / "app")], capture_output=True, text=True, check=True).stdout
    works = sorted(int(line.split()[0], 16) for line in listed.splitlines() if line.endswith(" t work"))
    builder = TraceBuilder().time_event(0).process_name(1, 7, "usr/bin/app").state("RUNNING", 2, 7, 1)
    for event, time, address in (
        (ENTER, 10, works[0]),
        (ENTER, 20, works[1]),
        (EXIT, 40, works[1]),
        (EXIT, 70, works[0]),
    ):
        builder.event(event, time, (address, 0))
    trace = builder.open(tmp_path)
    add_symbols(trace, build)
    export(trace, tmp_path / "t.speedscope.json")
    scope = json.loads((tmp_path / "t.speedscope.json").read_text())
    assert scope["shared"]["frames"] == [
        {"name": "work", "file": "plan.c", "line": 1}, {"name": "work", "file": "send.c", "line": 1},
    ]  # fmt: skip
    assert (scope["profiles"][0]["samples"], scope["profiles"][0]["weights"]) == ([[0], [0, 1]], [40, 20])
