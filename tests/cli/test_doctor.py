"""`satview doctor` as a user runs it, and the marks in what other commands print."""

from __future__ import annotations

import json

import pytest

from satview.__main__ import main
from satview.analysis.doctor import ANALYSES
from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, run
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import scene


@pytest.fixture
def satview(capsys):
    """Run a command; return exit code, output, errors."""

    def run_it(*arguments):
        code = main([*map(str, arguments)])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run_it


@pytest.fixture(scope="module")
def fast(tmp_path_factory):
    path = tmp_path_factory.mktemp("doctor") / "fast.kev"
    run(Capture("deadlock", options=LoggerOptions(iterations=0)), path)
    return path


def test_a_table_for_people(satview, fast):
    code, out, _ = satview("doctor", fast)
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("fast.kev: exact in ")
    at = lines.index("  the trace has no priorities; capture wide events of the class THREAD")
    assert lines[at - 1] == "Needs wide events: Priorities, verdicts (priority inversion)"
    assert lines[at + 1] == "  Capture with: tracelogger -F2 -F5 -F7 -w -f /dev/shmem/tracebuffer.kev"
    assert lines[-1].startswith("Exact: Who used the CPUs, States of threads, ")


def test_json_has_one_record_for_each_analysis(satview, fast):
    code, out, _ = satview("doctor", fast, "--format", "json")
    reported = json.loads(out)
    assert (code, list(reported)) == (0, ["schema_version", "outcome", "analyses", "file", "notes"])
    found = {one["key"]: one for one in reported["analyses"]}
    assert set(found) == set(ANALYSES) - {"locks"}
    assert found["cpu"]["mark"] == "exact"
    assert (found["cpu"]["command"], found["cpu"]["rules"]) == ("", "")
    assert found["priorities"] == {
        "key": "priorities", "title": "Priorities", "question": "At which priority does each thread run?",
        "mark": "needs-wide", "trust": "Needs wide events",
        "reason": "the trace has no priorities", "remedy": "capture wide events of the class THREAD",
        "command": "tracelogger -F1 -F2 -F5 -F6 -F7 -w -f /dev/shmem/tracebuffer.kev",
        "rules": "ADDALLCLASSES\nDELCLASS KERCALL\nDELCLASS INT\nDELCLASS VTHREAD\nDELCLASS COMM\nDELCLASS SYSTEM\n"
                 "SETALLCLASSESWIDE\n",
    }  # fmt: skip


@pytest.mark.thorough
def test_the_rules_make_a_capture_that_answers(satview, fast, tmp_path):
    code, rules, _ = satview("doctor", fast, "--rules", "deadlock")
    assert code == 0
    (tmp_path / "more.satrules").write_text(rules)
    assert satview("tracelogger", "--workload", "deadlock", "--rules", tmp_path / "more.satrules",
                   "-f", tmp_path / "again.kev")[0] == 1  # it reports the deadlock itself  # fmt: skip
    assert "warning: deadlock" in satview("check", fast, "--kind", "deadlock")[1]
    assert "error: deadlock" in satview("check", tmp_path / "again.kev", "--kind", "deadlock")[1]


def test_what_is_exact_needs_no_rules(satview, fast):
    code, out, err = satview("doctor", fast, "--rules", "cpu")
    assert (code, out) == (2, "")
    assert "no capture would show more of who used the cpus" in err


def test_rules_have_one_format(satview, fast):
    code, out, err = satview("doctor", fast, "--rules", "all", "--format", "json")
    assert (code, out) == (2, "")
    assert "leave out --format" in err


def test_bad_use(satview, tmp_path):
    (tmp_path / "x.kev").write_bytes(b"nothing")
    assert satview("doctor", tmp_path / "x.kev")[0] == 2
    assert satview("doctor", tmp_path / "x.kev", "--rules", "nonsense")[0] == 2


def test_an_empty_trace(satview, tmp_path):
    path = TraceBuilder().write(tmp_path / "empty.kev")
    code, out, _ = satview("doctor", path)
    assert code == 0
    assert out.splitlines()[0] == f"empty.kev: exact in 0 of {len(set(ANALYSES) - {'locks'})} analyses"
    assert "the trace has no events" in out
    assert "Cannot show" not in satview("info", path)[1]


def test_info_says_it_in_one_line(satview, fast):
    lines = [line.strip() for line in satview("info", fast)[1].splitlines() if "Cannot show" in line]
    assert len(lines) == 1
    assert "priorities (the trace has no priorities)" in lines[0]
    assert lines[0].endswith("; satview doctor says what to capture")
    reported = json.loads(satview("info", fast, "--json")[1])["untold"]
    assert {"key": "priorities", "mark": "needs-wide", "reason": "the trace has no priorities"} in reported


def test_info_proposes_no_capture_of_a_threads_library(satview):
    line = next(line for line in satview("info", "sample_traces/threads")[1].splitlines() if "Cannot show" in line)
    assert "waits for a CPU, migrations (a threads library does not log who has a CPU: " in line
    assert line.endswith("(the trace is that of a threads library, not of a kernel)")


def test_processor_time_that_threads_measured_does_not_rest_on_who_had_a_cpu(satview):
    reported = json.loads(satview("stats", "sample_traces/threads", "--by", "thread", "--format", "json")[1])
    marks = {column: trust["mark"] for column, trust in reported["trust"]["thread"].items()}
    assert (marks["cpu_ns"], marks["cpu_share"], marks["ready_ns"]) == ("exact", "exact", "not-logged")


def test_figures_of_a_lossy_trace_are_marked(satview, tmp_path):
    path = scene(tmp_path)
    out = satview("stats", path)[1].splitlines()
    client = next(line for line in out if line.startswith("client 1"))
    assert "\N{GREATER-THAN OR EQUAL TO} 6.999 µs" in client or "\N{ALMOST EQUAL TO} 6.999 µs" in client
    assert "8.000 µs" in client  # how long it is unknown is known
    assert any("events were lost for 4.000 µs of it" in line for line in out[-3:])
    trust = json.loads(satview("stats", path, "--format", "json", "--by", "thread", "--by", "event")[1])["trust"]
    assert trust["thread"]["unknown_ns"] == trust["thread"]["tid"] == {"mark": "exact"}
    assert trust["thread"]["cpu_ns"]["mark"] in ("lower-bound", "estimate")
    assert trust["event"]["count"]["mark"] == "lower-bound"
    assert trust["event"]["share"]["mark"] == "estimate"


def test_figures_of_a_whole_trace_are_not_marked(satview):
    out = satview("stats", "sample_traces/dense-4cpu.kev", "--by", "thread", "--by", "cpu", "--by", "call")[1]
    assert "\N{GREATER-THAN OR EQUAL TO}" not in out
    assert "\N{ALMOST EQUAL TO}" not in out


def test_check_says_that_there_may_be_more(satview, tmp_path):
    assert "Not all: events were lost for " in satview("check", scene(tmp_path))[1]


def test_locks_say_how_far_they_can_be_trusted(satview):
    reported = json.loads(satview("locks", "sample_traces/threads", "--json")[1])
    assert all("known" not in row for row in reported["locks"])
