"""The doctor: what a trace can show, and captures that answer what it cannot."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

import satview
from satview.analysis.doctor import ANALYSES, diagnosis, notes, summary
from satview.analysis.needs import CALLS, INTERRUPTS, MESSAGES, OPENING, PRIORITIES, PULSES, STATES
from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import EXACT, Mark, Trust
from satview.analysis.verdicts.find import find_verdicts
from satview.analysis.verdicts.rule import rules
from satview.answers.doctor import capture_for, doctor
from satview.answers.statistics import process_table, statistics_table, thread_table
from satview.answers.table import Known
from satview.answers.verdicts import undecided_table
from satview.capture.kernel import Kernel
from satview.capture.run import calls_of_text
from satview.capture.sim.target import target
from satview.capture.workloads import registry
from satview.events import wire
from satview.events.spec import Release
from satview.filters.rules.building import build, from_tracelogger_args, tracelogger_command
from satview.filters.rules.text import parse_rules
from satview.formats.axis import Member, trace_on_axis
from satview.formats.registry import open_trace
from satview.store.trace import Trace
from tests.capture.made import ALL, FAST, WIDE, damaged, traced
from tests.helpers.extent import points, usually
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import scene
from tests.helpers.shared import shared_path

MARK = wire.code(wire.WireClass.USER, 1)
RELEASES = (Release.QNX_6, Release.QNX_6_6, Release.QNX_7, Release.QNX_8)
CLASSES = {"KERCALL": 2, "INT": 6, "THREAD": 10, "SYSTEM": 13, "COMM": 14}
NEVER = {"periods", "missed-period", "pulses", "partitions", "names", "interrupts"}  # by what runs, or by the release


def trace_of(name: str, folder: Path, release: Release, modes: tuple[tuple[object, ...], ...]) -> Trace:
    found = registry.find(name)
    return traced(found.setup, 40, folder, release, found.cpus, 5, modes, skew_ns=0).trace


def marks(trace: Trace, is_quick: bool = False) -> dict[str, Mark]:
    return {row["key"]: Mark(row["mark"]) for row in doctor(trace, is_quick)}


def without(name: str) -> tuple[tuple[object, ...], ...]:
    return (("ADDALLCLASSES",), ("DELCLASS", CLASSES[name]))


def test_every_verdict_has_a_row_and_every_row_a_question():
    assert {str(kind) for kind in rules()} == {row.key for row in ANALYSES.values() if row.is_verdict}
    assert all(row.question.endswith("?") and row.title for row in ANALYSES.values())
    for row in ANALYSES.values():
        assert not set(row.needs) & set(row.bounds), row.key


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_whole_wide_capture_shows_everything_exactly(release, tmp_path):
    found = marks(trace_of("automotive", tmp_path, release, WIDE))
    reported = {key for key, mark in found.items() if mark is Mark.EXACT}
    assert set(found) - reported <= {"partitions", "interrupts", "names"}  # names come before START, or with a path
    assert found["interrupts"] is (Mark.NOT_LOGGED if release is Release.QNX_8 else Mark.EXACT)
    assert found["partitions"] is Mark.NEEDS_CLASS


@pytest.mark.parametrize(("left_out", "unmet", "lacking"), [
    ("KERCALL", {CALLS}, {"calls", "message-sizes", "holders", "leak", "lost-wakeup"}),
    ("THREAD", {STATES}, {"cpu", "states", "ready", "migrations", "wake-ups", "holders", "priorities", "deadlock",
                          "periods"}),
    ("COMM", {MESSAGES, PULSES}, {"messages", "message-sizes", "pulses", "periods", "growing-queue"}),
    ("INT", {INTERRUPTS}, {"interrupts", "interrupt-flood"}),
])  # fmt: skip
def test_a_class_that_is_missing(left_out, unmet, lacking, tmp_path):
    trace = trace_of("automotive", tmp_path, Release.QNX_7, (*without(left_out), ("SETALLCLASSESWIDE",)))
    found = {key for key, mark in marks(trace).items() if not mark.is_answer}
    assert found - {"partitions"} == lacking | {kind for kind, rule in rules().items() if unmet & {*rule.needs}}
    line = diagnosis(trace, min(lacking)).capture
    assert line is not None
    assert f"DELCLASS {left_out}\n" not in line.rules


def test_counts_of_a_class_that_is_missing_are_not_exact(tmp_path):
    """A thread that is only seen to run may have sent anything; calls that send nothing prove that nothing was sent."""
    builder = TraceBuilder().time_event(0).state("RUNNING", 10, 5, 1).state("READY", 20, 5, 1)
    calls = TraceBuilder().time_event(0).state("RUNNING", 10, 5, 1).call(2, 12, (0, 0)).exit(2, 14)
    for made, marks_of in ((builder, {"sent": "needs-class", "received": "needs-class", "calls": "needs-class"}),
                           (calls, {})):  # fmt: skip
        for table in (thread_table, process_table):
            shown = table(Statistics(made.open(tmp_path)))
            trusts = {column.name: str((column.trust or EXACT).mark) for column in shown.question.columns}
            names = ("sent", "received", "calls", "events")
            assert {name: trusts[name] for name in names} == dict.fromkeys(names, "exact") | marks_of
            assert shown.text(0, "sent") == ("\N{ALMOST EQUAL TO} 0" if marks_of else "0")


def test_fast_events_show_no_priorities_and_no_sizes(tmp_path):
    found = marks(trace_of("automotive", tmp_path, Release.QNX_7, FAST))
    lacking = {key for key, mark in found.items() if mark is Mark.NEEDS_WIDE}
    assert {"priorities", "priority-inversion", "message-sizes"} <= lacking
    assert found["cpu"] is Mark.EXACT


def test_some_threads_only_are_not_all_events_of_threads(tmp_path):
    trace = trace_of("automotive", tmp_path, Release.QNX_7, (*without("THREAD"), ("ADDEVENT", 10, 2)))
    assert diagnosis(trace, "states").trust == Trust(Mark.NEEDS_CLASS, "the trace has only some events of threads")


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_holes_make_bounds_and_more_buffers_are_the_remedy(release, tmp_path):
    setup = registry.find("client-server").setup
    trace = damaged(setup, 40, tmp_path, release, 1, ring=False, wide=True, skew_ns=0).trace
    found = diagnosis(trace, "calls")
    assert found.trust.mark is Mark.LOWER_BOUND
    assert found.trust.reason.startswith("events were lost for ")
    assert "tracelogger -k 128 -b 256" in found.capture.command
    assert not diagnosis(trace, "lost-wakeup").trust.mark.is_answer or "lost-wakeup" in undecided_table(trace)["kind"]


# Up to 7.x all propose the same.
@pytest.mark.thorough
@points(release=usually(RELEASES[2:], complete=RELEASES), left_out=["KERCALL", "THREAD", "COMM", "INT", "SYSTEM"])
def test_the_capture_that_is_proposed_answers(left_out, release, tmp_path):
    """The workload is captured again with the rules of each proposal: then the analysis is reported."""
    trace = trace_of("automotive", tmp_path, release, without(left_out))
    proposed = defaultdict(set)
    for row in doctor(trace):
        if row["rules"]:
            proposed[row["rules"]].add(row["key"])
    for capture_rules, keys in proposed.items():
        kernel = Kernel(target(release, 2, skew_ns=0), 5)
        calls, _ = calls_of_text(capture_rules, kernel)
        (tmp_path / "again").mkdir(exist_ok=True)
        again = trace_of("automotive", tmp_path / "again", release, tuple((name, *words) for name, words in calls))
        says = {row["key"]: row["reason"] for row in doctor(again) if not Mark(row["mark"]).is_answer}
        assert not {key: says[key] for key in keys - NEVER if key in says}, capture_rules


@pytest.mark.parametrize(("first", "mark"), [("RUNNING", Mark.LOWER_BOUND), ("CREATE", Mark.EXACT)])
def test_a_dump_without_all_threads_makes_bounds_in_doctor_and_statistics(first, mark, tmp_path):
    """Thread 1 of pid 7 is in the dump; thread 2 is seen after the first kernel call, unless it is created there."""
    builder = TraceBuilder().time_event(0).process_name(1, 7, "app").event(wire.THREAD_CREATE, 2, (7, 1))
    builder.state("RUNNING", 3, 7, 1).call(2, 10).exit(2, 12).state("READY", 20, 7, 1)
    if first == "CREATE":
        builder.event(wire.THREAD_CREATE, 20, (7, 2))
    trace = builder.state("RUNNING", 21, 7, 2).time_event(1_000).open(tmp_path)
    found, reason = marks(trace), diagnosis(trace, "states").trust.reason
    table = thread_table(Statistics(trace))
    assert {found["states"], found["ready"], found["lost-wakeup"]} == {mark}
    assert (table.question.column("ready").trust or EXACT).mark is mark
    assert ("lost-wakeup" in undecided_table(trace)["kind"]) == (mark is not Mark.EXACT)
    lacks = "the dump at its start lacks 1 of 2 threads, each unknown before its first event"
    assert reason == (lacks if mark is Mark.LOWER_BOUND else "")


@pytest.mark.parametrize(("cpus", "says"), [(1, ""), (2, "CPU 1 logs"), (3, "CPUs 1, 2 log")])
def test_what_ran_on_a_cpu_without_events_is_not_known(tmp_path, cpus, says):
    trace = TraceBuilder(cpus=cpus).state("RUNNING", 1, 7, 1).state("READY", 9, 7, 1).open(tmp_path)
    reason = diagnosis(trace, "migrations").trust.reason
    assert (f"{says} no event, so it is not known what ran there" in reason) == (says != "")
    assert ("no event" in reason) == (says != "")


def test_a_thread_first_seen_after_a_loss_may_have_been_created_within_it(tmp_path):
    builder = TraceBuilder().event(wire.CONTROL_BUFFER, 0, (1, 6)).process_name(1, 7, "app")
    builder.event(wire.THREAD_CREATE, 2, (7, 1)).state("RUNNING", 3, 7, 1).call(2, 10).exit(2, 12)
    trace = builder.event(wire.CONTROL_BUFFER, 20, (3, 3)).state("RUNNING", 21, 7, 2).time_event(1_000).open(tmp_path)
    assert OPENING.reason(trace) == ""
    assert "events were lost for 8 ns of it" in diagnosis(trace, "states").trust.reason


@pytest.mark.thorough
def test_the_command_line_sets_the_same_as_the_rules(tmp_path):
    trace = trace_of("automotive", tmp_path, Release.QNX_7, without("COMM"))
    for row in doctor(trace):
        if not row["command"]:
            continue
        imported = from_tracelogger_args(row["command"], trace.release)
        built = build(parse_rules(row["rules"], trace.release), trace.release)
        assert build(imported.rules, trace.release).state.switches() == built.state.switches()
        assert tracelogger_command(built).is_exact


def test_one_capture_for_all(tmp_path):
    trace = trace_of("automotive", tmp_path, Release.QNX_7, without("COMM"))
    line = capture_for(doctor(trace))
    assert line.rules == "ADDALLCLASSES\nDELCLASS VTHREAD\nSETALLCLASSESWIDE\n"
    assert line.command == "tracelogger -F5 -w -f /dev/shmem/tracebuffer.kev"


def test_an_empty_trace_shows_nothing(tmp_path):
    trace = open_trace(TraceBuilder().write(tmp_path / "empty.kev"))
    assert not len(trace.events)
    assert {row["reason"] for row in doctor(trace)} == {"the trace has no events"}
    assert not len(undecided_table(trace))


def test_a_threads_library_is_no_kernel():
    trace = open_trace("sample_traces/threads")
    found = marks(trace)
    assert found["messages"] is Mark.NOT_LOGGED
    assert found["locks"] is Mark.EXACT
    assert found["states"] is Mark.EXACT
    assert (found["ready"], found["migrations"], found["cpu"]) == (Mark.NOT_LOGGED, Mark.NOT_LOGGED, Mark.ESTIMATE)
    columns = {column.key: column.trust or EXACT for column in thread_table(Statistics(trace)).question.columns}
    assert {columns[key].mark for key in ("ready_ns", "longest_ready_ns", "migrations")} == {Mark.NOT_LOGGED}
    assert (columns["cpu_ns"].mark, columns["running_ns"].mark) == (Mark.EXACT, Mark.EXACT)  # measured by the threads
    assert diagnosis(trace, "messages").capture is None
    asked = {kind for kind, rule in rules().items() if not rule.timing}
    assert set(undecided_table(trace)["kind"]) == asked - {"data-loss"}


@pytest.mark.thorough
def test_the_words_of_the_program_that_captured(tmp_path):
    path = shared_path("real/qnx71-ker_call.traceprinter.txt")
    trace = open_trace(path)
    assert notes(trace) == ("the logger ran as a daemon: a program chose the events, the arguments do not show which",)
    assert summary(trace).startswith("who used the CPUs, states of threads, waits for a CPU, migrations, wake-ups, ")
    assert diagnosis(trace, "calls").trust.mark is Mark.ESTIMATE
    assert diagnosis(trace, "events").trust.mark is Mark.EXACT


def test_the_public_name(tmp_path):
    trace = trace_of("deadlock", tmp_path, Release.QNX_7, ALL)
    found = satview.doctor(trace)
    assert {row["key"] for row in found if row["mark"] == satview.Mark.NEEDS_WIDE} >= {"deadlock"}
    # What takes long is left out, and nothing is said of it then.
    quick = {row["key"]: row["mark"] for row in satview.doctor(trace, is_quick=True)}
    assert quick["deadlock"] == Mark.EXACT


@pytest.mark.parametrize(("workload", "mark"), [("inversion", Mark.ESTIMATE), ("deadlock", Mark.EXACT)])
def test_exact_is_what_the_rule_could_decide(workload, mark, made_of):
    """All classes are there, wide: of a mutex in shared memory the word has a part of the owner's pid only."""
    trace = made_of(workload, Release.QNX_7, True, False).trace
    kind = {"inversion": "priority-inversion"}.get(workload, workload)
    assert any(verdict.kind == kind for verdict in find_verdicts(trace))
    row = next(row for row in doctor(trace) if row["key"] == kind)
    assert row["mark"] == mark
    if mark is Mark.ESTIMATE:
        assert row["reason"] == "1 verdict of this kind rests on links that no event shows"
        assert row["remedy"].startswith("wide events of the class")
    assert marks(trace, is_quick=True)[kind] is Mark.EXACT


def one_thread(folder: Path, first: str, extra: tuple[int, ...] = ()) -> Trace:
    """Return a trace of a thread in a state and then in RECEIVE; `extra` is its priority and policy in wide events."""
    folder.mkdir()
    builder = TraceBuilder().state(first, 0, 2, 1, extra=extra)
    return builder.state("RECEIVE", 500, 2, 1, extra=extra).time_event(1_000).open(folder)


def on_axis(folder: Path, host: Trace, guest: Trace) -> Trace:
    return trace_on_axis(folder / "x.sataxis", [Member("host", host), Member("guest", guest)])


def test_each_file_of_an_axis_has_to_show_something(tmp_path):
    """Only events of the host are wide: inversions in the guest are not decided, as in the guest alone."""
    host, guest = one_thread(tmp_path / "a", "RUNNING", (10, 1)), one_thread(tmp_path / "b", "RUNNING")
    both = on_axis(tmp_path, host, guest)
    alone, found = ({row["kind"]: row["reason"] for row in undecided_table(trace)} for trace in (guest, both))
    assert found.keys() == alone.keys()
    assert not PRIORITIES.reason(host)
    assert alone["priority-inversion"] == "the trace has no priorities; capture wide events of the class THREAD"
    assert found["priority-inversion"] == f"guest: {alone['priority-inversion']}"
    assert found["server-saturation"] == alone["server-saturation"], "neither has messages"
    assert marks(both)["priorities"] is Mark.NEEDS_WIDE


def test_figures_of_a_file_do_not_rest_on_what_another_file_of_the_axis_lacks(tmp_path):
    """No event shows that a thread of the guest runs, so its figures are doubtful, and those of the host are not."""
    both = on_axis(tmp_path, one_thread(tmp_path / "a", "RUNNING"), one_thread(tmp_path / "b", "READY"))
    table = statistics_table("thread", Statistics(both))
    rows = [
        (row["thread"][:4], table.known(number, "ready")) for number, row in enumerate(table) if ":" in row["thread"]
    ]
    assert sorted(rows) == [("gues", Known.ESTIMATE), ("host", Known.EXACT)]


def test_losses_of_a_file_do_not_touch_figures_of_another_file_of_the_axis(tmp_path):
    """Buffers of the guest are lost: how long it was READY is a bound; of the host it is not."""
    (tmp_path / "b").mkdir()
    both = on_axis(tmp_path, one_thread(tmp_path / "a", "RUNNING"), open_trace(scene(tmp_path / "b")))
    table = statistics_table("thread", Statistics(both))
    files = [row["thread"].partition(":")[0] for row in table]
    for name in ("ready", "runs", "events"):
        known = {(file, table.known(number, name)) for number, file in enumerate(files) if file != "unknown"}
        assert known == {("host", Known.EXACT), ("guest", Known.AT_LEAST)}, name


def test_messages_of_a_file_are_as_sure_beside_a_file_without_messages(tmp_path):
    builder = TraceBuilder().state("RUNNING", 0, 2, 1).event(wire.code(wire.WireClass.COMM, 0), 100, (1, 8))
    host = builder.time_event(1_000).open(tmp_path)
    for trace in (host, on_axis(tmp_path, host, one_thread(tmp_path / "b", "RUNNING"))):
        table = statistics_table("message", Statistics(trace))
        assert (len(table), table.known(0, "count")) == (1, Known.EXACT)
