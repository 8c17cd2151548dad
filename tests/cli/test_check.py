"""`satview check` as a user or a CI job runs it."""

from __future__ import annotations

import gzip
import io
import json
import sys
from xml.etree import ElementTree as ET

import pytest

import satview
from satview.__main__ import main
from satview.analysis.verdicts.rule import rules
from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, run
from satview.events import wire
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import rounds_of_a_loop, scene

HOSTILE = "<x>=cmd()\x1b]0;x\x07[bold]a&\n\u202eb\x9b2J\uffff"
WORDS = ["severity", "kind", "start_ns", "end_ns", "length_ns", "cases", "threads", "objects", "evidence", "says",
         "remedy", "proof", "certainty", "known"]  # fmt: skip


@pytest.fixture(scope="module")
def deadlock(tmp_path_factory):
    path = tmp_path_factory.mktemp("check") / "deadlock.kev"
    run(Capture("deadlock", options=LoggerOptions(iterations=0, is_wide=True)), path)
    return path


@pytest.fixture
def check(capsys):
    """Run the command; return exit code, output, errors."""

    def run_it(*arguments):
        code = main(["check", *map(str, arguments)])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run_it


def test_a_table_for_people(check, deadlock):
    code, out, _ = check(deadlock)
    assert code == 3
    lines = out.splitlines()
    assert lines[0] == "deadlock.kev: 1 error"
    assert lines[2].startswith("error: deadlock  From 0.00")
    assert "Length \N{GREATER-THAN OR EQUAL TO} " in lines[2], "it is still so when the trace ends"
    assert "held by deadlock 3 (backwards)" in lines[3]
    assert lines[4].startswith("  Advice: Let all threads take mutex 0x")
    assert lines[5] == "  Threads: deadlock 2 (forwards), deadlock 3 (backwards)"
    assert lines[7].startswith("  Events: #")


def test_json_is_one_object_with_exactly_these_words(check, deadlock):
    code, out, _ = check(deadlock, "--format", "json")
    reported = json.loads(out)
    assert (code, list(reported)) == (3, ["schema_version", "outcome", "verdicts", "undecided"])
    [verdict] = reported["verdicts"]
    assert list(verdict) == WORDS
    assert verdict["known"] == {"length_ns": "at least"}
    assert (reported["outcome"], reported["undecided"]) == ("found", [])
    assert (verdict["kind"], verdict["severity"]) == ("deadlock", "error")
    assert sorted(verdict["threads"]) == ["deadlock 2 (forwards)", "deadlock 3 (backwards)"]
    trace = satview.open_trace(deadlock)
    [found] = satview.check(trace)
    assert verdict["evidence"] == [row + 1 for row in found.evidence]
    assert verdict["start_ns"] == trace.clock.ns(found.start_cycles)
    names = {event.row + 1: event.name for event in trace.iter_events()}
    assert {names[number] for number in verdict["evidence"]} == {"SYNC_MUTEX_LOCK", "THMUTEX"}
    assert (verdict["says"], verdict["remedy"]) == (found.says, found.remedy)


def test_junit_has_a_case_for_each_kind(check, deadlock):
    code, out, _ = check(deadlock, "--format", "junit")
    assert code == 3
    [suite] = ET.fromstring(out)
    kinds = [kind for kind, rule in rules().items() if not rule.timing]
    assert [case.get("name") for case in suite] == kinds
    assert (suite.get("tests"), suite.get("failures")) == (str(len(kinds)), "1")
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["deadlock"]
    assert "held by" in suite.find("testcase[@name='deadlock']/failure").get("message")
    skipped = {case.get("name") for case in suite if case.find("skipped") is not None}
    assert suite.get("skipped") == str(len(skipped))
    assert "server-saturation" not in skipped


def test_nothing_found(check, deadlock):
    code, out, _ = check(deadlock, "--kind", "leak", "--kind", "interrupt-flood")
    assert code == 0
    assert out.splitlines()[0] == "deadlock.kev: nothing found"
    code, out, _ = check(deadlock, "--kind", "leak", "--format", "json")
    assert (code, json.loads(out)) == (
        0, {"schema_version": 1, "outcome": "nothing", "verdicts": [], "undecided": []})  # fmt: skip
    [suite] = ET.fromstring(check(deadlock, "--kind", "leak", "--format", "junit")[1])
    assert [case.get("name") for case in suite] == ["leak"]


def test_what_a_trace_cannot_show_is_said(check, tmp_path):
    run(Capture("polite"), tmp_path / "fast.kev")
    code, out, _ = check(tmp_path / "fast.kev")
    assert code == 4
    assert "Cannot tell: priority-inversion: the trace has no priorities; capture wide events" in out
    assert out.splitlines()[0] == "fast.kev: nothing found, 1 of the kinds cannot be decided"
    reported = json.loads(check(tmp_path / "fast.kev", "--format", "json")[1])
    assert (reported["outcome"], [row["kind"] for row in reported["undecided"]]) == (
        "cannot tell", ["priority-inversion"])  # fmt: skip
    assert check(tmp_path / "fast.kev", "--allow-undecided")[0] == 0
    assert check(tmp_path / "fast.kev", "--kind", "leak")[0] == 0, "that can be decided"
    assert check(tmp_path / "fast.kev", "--kind", "priority-inversion")[0] == 4
    code, out, _ = check("sample_traces/vendor-eh_sample.kev")
    assert "Cannot tell: busy-loop, deadlock, lock-contention, long-ready, lost-wakeup, ping-pong" in out


def test_kinds_that_a_trace_shows_only_in_part_are_not_nothing_found(check, tmp_path):
    """Two threads wait for each other's messages. Without the class COMM a deadlock of mutexes would be found only."""
    path = tmp_path / "part.kev"
    assert main(["tracelogger", "--workload", "message-deadlock", "-w", "-F6", "-f", str(path)]) in (0, 1)
    code, out, _ = check(path, "--kind", "deadlock")
    assert (code, out.splitlines()[0]) == (4, "part.kev: nothing found, 1 of the kinds cannot be decided")
    assert "Cannot tell: deadlock: the trace has no messages; capture the class COMM." in out
    [row] = json.loads(check(path, "--kind", "deadlock", "--format", "json")[1])["undecided"]
    assert (row["kind"], row["shown"]) == ("deadlock", "some")
    assert check(path, "--kind", "leak")[0] == 0


def test_a_deadlock_is_probable_where_no_event_shows_the_holders(check, tmp_path):
    run(Capture("deadlock"), tmp_path / "fast.kev")
    code, out, _ = check(tmp_path / "fast.kev")
    assert code == 3
    assert "warning: deadlock" in out
    assert out.count("whose holder no event shows") == 2
    assert "Not all: deadlock, waits-for-ever: at the end 2 threads wait for a mutex of which no event shows" in out


def test_what_is_less_severe_than_requested_is_no_failure(check, tmp_path):
    run(Capture("convoy", options=LoggerOptions(iterations=0, is_wide=True)), tmp_path / "convoy.kev")
    code, out, _ = check(tmp_path / "convoy.kev", "--severity", "error")
    assert code == 0
    assert "warning: lock-contention" in out
    assert check(tmp_path / "convoy.kev", "--severity", "warning")[0] == 3


def test_a_range_has_its_own_losses_and_not_the_longest_of_all(check, tmp_path):
    """Events are missing from 100 to 5,000 and from 6,000 to 7,000."""
    builder = TraceBuilder().event(wire.CONTROL_BUFFER, 0, (1, 0)).time_event(0).event(6 << 10, 100)
    for first, number in ((5_000, 4), (7_000, 8)):
        builder.event(wire.CONTROL_BUFFER, first, (number, 0)).time_event(first).event(6 << 10, first + 1_000)
    path = builder.write(tmp_path / "lossy.kev")
    (verdict,) = json.loads(check(path, "--kind", "data-loss", "--format", "json")[1])["verdicts"]
    assert (verdict["cases"], verdict["length_ns"]) == (2, 4_900)
    assert "data-loss" in check(path, "--kind", "data-loss", "--range", "6100ns..6200ns")[1]
    assert "data-loss" not in check(path, "--kind", "data-loss", "--range", "5100ns..5200ns")[1]


def test_losses_are_a_verdict_and_other_damage_exit_code_1(check, tmp_path):
    code, out, _ = check(scene(tmp_path), "--format", "json")
    assert code == 3
    assert [verdict["kind"] for verdict in json.loads(out)["verdicts"]] == ["data-loss"]
    assert check(tmp_path / "scene.kev", "--kind", "busy-loop")[0] == 1


def test_rules_of_a_file(check, deadlock, tmp_path):
    rules = tmp_path / "mine.toml"
    rules.write_text("[deadlock]\nleast_ms = 2000\n")
    assert check(deadlock, "--rules", rules)[0] == 0
    rules.write_text("[deadlock]\nleast = 2000\n")
    code, out, err = check(deadlock, "--rules", rules)
    assert (code, out) == (2, "")
    assert err == (
        "satview: mine.toml, line 2: [deadlock] has no 'least'; it has enabled, least_ms, severity, threads\n"
    )


def test_compressed_traces_standard_input_and_listings(check, deadlock, tmp_path, capsys, monkeypatch):
    (tmp_path / "d.kev.gz").write_bytes(gzip.compress(deadlock.read_bytes()))
    assert check(tmp_path / "d.kev.gz", "--kind", "deadlock")[0] == 3
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(deadlock.read_bytes())))
    assert check("-", "--kind", "deadlock")[0] == 3
    assert main(["traceprinter", "-f", str(deadlock)]) == 0
    (tmp_path / "listing.txt").write_text(capsys.readouterr().out)
    code, out, _ = check(tmp_path / "listing.txt", "--format", "json")
    assert code == 3
    assert [verdict["kind"] for verdict in json.loads(out)["verdicts"]] == ["deadlock"]


def test_a_thread_trace_has_no_verdicts(check):
    code, out, _ = check("sample_traces/threads")
    assert code == 4
    assert out.startswith("threads: nothing found")


@pytest.mark.parametrize("form", ["table", "json", "junit"])
def test_names_of_a_trace_are_text(form, check, tmp_path):
    builder = TraceBuilder().time_event(0).process_name(1, 2, HOSTILE).thread_name(2, 2, 1, HOSTILE)
    builder.process_name(3, 3, "other")
    for time in range(10, 2_000_010, 1_000_000):
        builder.state("RUNNING", time, 2, 1).state("REPLY", time + 5, 2, 1).state("RUNNING", time + 7, 3, 1)
        builder.state("RECEIVE", time + 500, 3, 1)
    builder.state("READY", 3_000_000, 2, 1).state("RUNNING", 3_000_010, 3, 1)
    builder.state("RECEIVE", 90_000_000, 3, 1)
    path = builder.state("RUNNING", 90_000_020, 2, 1).write(tmp_path / "hostile.kev")
    code, out, _ = check(path, "--format", form, "--severity", "info")
    assert code == 3
    assert "long-ready" in out
    assert not set(out) & set("\x1b\x07\x9b\x00\r")
    if form == "junit":
        assert "\uffff" not in out
        [suite] = ET.fromstring(out)
        assert r"cmd()\x1b" in suite.find("testcase/failure").text
    if form == "table":
        assert "[bold]a" in out


@pytest.mark.parametrize("arguments", [("--kind", "nonsense"), ("--format", "xml")])
def test_bad_use(arguments, deadlock, capsys):
    assert main(["check", str(deadlock), *arguments]) == 2
    assert "invalid choice" in capsys.readouterr().err


def test_a_kind_that_the_rules_switch_off_cannot_be_asked_for(check, deadlock, tmp_path):
    (tmp_path / "off.toml").write_text("[deadlock]\nenabled = false\n")
    code, out, err = check(deadlock, "-r", tmp_path / "off.toml", "--kind", "deadlock", "--format", "junit")
    assert (code, out) == (2, "")
    assert err == "satview: deadlock is switched off by the file of thresholds: enabled = false\n"


def test_not_a_trace(check, tmp_path):
    (tmp_path / "x.kev").write_bytes(b"nothing")
    code, out, err = check(tmp_path / "x.kev")
    assert (code, out) == (2, "")
    assert err.startswith("satview: x.kev")


def test_only_what_happens_in_a_range(check, deadlock):
    _, whole, _ = check(deadlock, "--format", "json")
    verdicts = json.loads(whole)["verdicts"]
    start = min(verdict["start_ns"] for verdict in verdicts)
    assert start > 1_000
    assert check(deadlock, "--range", f"0..{start - 1_000}ns")[0] == 0
    assert json.loads(check(deadlock, "--range", f"{start}ns..", "--format", "json")[1])["verdicts"] == verdicts


def test_a_file_of_timing_is_checked(check, tmp_path):
    path = rounds_of_a_loop().write(tmp_path / "loop.kev")
    (tmp_path / "timing.toml").write_text('[control]\ndeadline = "5us"\n')
    code, out, _ = check(path, "-c", tmp_path / "timing.toml", "--kind", "deadline", "--format", "json")
    [verdict] = json.loads(out)["verdicts"]
    assert (code, verdict["kind"], verdict["cases"]) == (3, "deadline", 3)
    assert check(path, "--kind", "deadline")[::2] == (
        2, "satview: deadline needs a timing file that says a deadline or period (docs/late.md)\n")  # fmt: skip
    code, out, _ = check(path, "-c", tmp_path / "timing.toml", "--format", "junit")
    cases = {case.get("name"): case for case in ET.fromstring(out).iter("testcase")}
    assert cases["deadline"].find("failure") is not None
    assert not {"chain", "period"} & {*cases}, "nothing is said of them"
    (tmp_path / "other.toml").write_text("[serve]\nstart = 'event == SND_MESSAGE'\nend = 'event == REPLY_MESSAGE'\n"
                                         'deadline = "5us"\n')  # fmt: skip
    code, out, _ = check(path, "-c", tmp_path / "other.toml", "--kind", "deadline")
    assert (code, out.splitlines()[1]) == (
        4, "Cannot tell: deadline: serve: the trace has no events of the class COMM; capture them.")  # fmt: skip
