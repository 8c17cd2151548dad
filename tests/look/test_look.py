"""Answers as text: every handle that is named can be followed, and the numbers are those of tables and commands."""

from __future__ import annotations

import json
import re

import pytest

from satview.__main__ import command_names, main
from satview.base.errors import UsageError
from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, run
from satview.look import Handle, Subject, as_text, handle_of, look
from satview.opened import open_trace
from satview.tables.table import table
from tests.helpers import linux_scene
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import rounds_of_a_loop, scene


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("look") / "inversion.kev"
    run(Capture("inversion", options=LoggerOptions(iterations=0, is_wide=True)), path)
    return path


@pytest.fixture(scope="module")
def trace(path):
    return open_trace(path)


def handles_in(text):
    return set(re.findall(r"(?:\[|^  )([tpcevm]-\d+)", text, re.MULTILINE))


def test_handles():
    assert handle_of("t-7") == handle_of(" T7 ") == Handle(Subject.THREAD, 7)
    assert str(Handle(Subject.EVENT, 28700)) == "e-28700"
    for text in ("x-1", "t", "t-", "7", "t--7", "t-7x", ""):
        with pytest.raises(UsageError, match="is not a handle; there are t-N"):
            handle_of(text)


def test_the_whole_trace(trace):
    text = as_text(look(trace))
    lines = text.splitlines()
    assert lines[0] == "inversion.kev"
    assert lines[1] == f"{len(trace.events):,} events in 199.0 ms, 1 CPU, release 7.x, 13 threads"
    assert re.search(r"^  v-1 +error: priority-inversion: high 1 \(high\)", text, re.MULTILINE)
    assert re.search(r"^  t-\d+ +middle 1 \(middle\) \(30\.2 % of a CPU, 4 runs", text, re.MULTILINE)
    assert "idle" not in text.partition("Busiest threads")[2].partition("Processes")[0]
    assert "no events are missing" in text


def test_what_was_not_captured_is_no_figure(trace, tmp_path):
    """Interrupts of a Linux schedule and waits for a CPU of a thread trace are not there, and not 0."""
    assert re.search(r"\(30\.2 % of a CPU, 4 runs, longest READY 34\.12 \u00b5s\)$", as_text(look(trace)), re.MULTILINE)
    linux = as_text(look(linux_scene.opened(tmp_path, linux_scene.as_trace_dat())))
    assert "c-0  \u2248 98.6 % busy, 0.0 % not known" in linux, "its interrupts are not known"
    assert "server 200 (server) (\u2248 1.2 % of a CPU, \u2265 1 run, longest READY \u2265 294.0 ms)" in linux
    threads = as_text(look(open_trace("sample_traces/threads")))
    assert "397 events in 45.00 ms, 5 LWPs, release unixware, 5 threads" in threads
    assert "\nLWPs\n  c-0  \u2248 8.2 % busy, 0.0 % not known\n" in threads
    assert "(worker 1) (3.9 % of a CPU, 22 runs)\n" in threads


@pytest.mark.thorough
def test_every_handle_can_be_followed(trace):
    """From the trace on, whatever is named has an answer of its own, whose title begins with its handle."""
    waiting, seen = [""], set()
    while waiting and len(seen) < 80:
        handle = waiting.pop(0)
        text = as_text(look(trace, handle))
        if handle:
            assert text.startswith(f"{handle} ")
            assert text == as_text(look(trace, handle)), "the same each time"
        fresh = handles_in(text) - seen - {handle}
        seen |= fresh
        waiting += sorted(fresh)
    assert {handle[0] for handle in seen} >= {"t", "p", "c", "e", "v"}


def test_without_states_the_time_of_processes_is_unknown_and_not_0(tmp_path):
    builder = TraceBuilder().time_event(0).process_name(1, 7, "bin/dumper").call(11, 100).exit(11, 300)
    trace = builder.open(tmp_path)
    [process] = [line for line in as_text(look(trace)).splitlines() if "dumper" in line]
    assert process.split(maxsplit=1)[1] == "dumper (CPU time unknown)"
    assert re.search("^  CPU +unknown$", as_text(look(trace, process.split()[0])), re.MULTILINE)


def test_kinds_that_cannot_be_decided_are_not_nothing_found(tmp_path):
    """As many as are named at the end; with the states of threads and wide events some fewer."""
    text = as_text(look(TraceBuilder().time_event(0).call(11, 100).exit(11, 300).open(tmp_path)))
    unknown = text.count("Cannot show  ") + text.count("May miss  ")
    assert unknown == 13
    assert f"nothing found, {unknown} of the kinds cannot be decided: see below\n" in text


def test_a_verdict_leads_to_its_events(trace):
    [verdict] = trace.verdicts()
    text = as_text(look(trace, "v-1"))
    for row in verdict.evidence:
        assert f"[e-{row + 1}]" in text
    for thread in verdict.threads:
        assert f"[t-{thread}]" in text
    assert verdict.remedy in text
    assert f"--select {verdict.evidence[0] + 1}" in text


def test_what_is_there_once_is_one(tmp_path):
    trace = TraceBuilder().time_event(0).state("RUNNING", 10, 7, 1).state("RECEIVE", 20, 7, 1).open(tmp_path)
    assert "3 events in 20 ns, 1 CPU, release 7.x, 1 thread" in as_text(look(trace))
    assert "10 ns, 1 time, longest 10 ns" in as_text(look(trace, "t-1"))


def test_a_thread_has_the_numbers_of_the_tables(trace):
    row = next(row for row in range(len(trace.threads)) if trace.thread_name(row).startswith("high"))
    text = as_text(look(trace, f"t-{row}"))
    states = trace.table("state")
    mutex = (states["thread"] == row) & (states["state"] == "MUTEX")
    longest = mutex.nonzero()[0][states["length_cycles"][mutex].argmax()]
    assert re.search(
        rf"MUTEX +68\.\d\d ms, {int(mutex.sum())} times, longest 34\.06 ms \[e-{states['event'][longest] + 1}\]", text
    )
    assert re.search(r"MUTEX +34\.06 ms from .* for low 1 \(low\)", text)
    assert "v-1" in text


def test_what_is_done_again_and_again_leads_to_its_longest_round(tmp_path):
    """40 rounds, of which the one that begins at 110,000 ns is the first of those that last longest."""
    looping = rounds_of_a_loop().open(tmp_path)
    thread = next(row for row in range(len(looping.threads)) if looping.thread_name(row) == "control 1")
    event = int(looping.events.time_cycles.searchsorted(looping.window.start + 110_000)) + 1
    for handle, handles in (("", rf" \[e-{event}\] \[t-{thread}\]"), (f"t-{thread}", "")):
        text = as_text(look(looping, handle)).replace("\N{MICRO SIGN}", "u")
        figures = r"control 1 +40 times, median 1\.100 us, longest 5\.100 us, deadline 10\.00 us, misses 0"
        assert re.search(figures + handles, text)
        assert "4.100 us ready while hog 1 ran, 1.000 us own work." in text
    hog = next(row for row in range(len(looping.threads)) if looping.thread_name(row) == "hog 1")
    assert "again and again" not in as_text(look(looping, f"t-{hog}"))


def test_what_does_not_fit_on_a_page_is_counted(tmp_path):
    """Of 14 threads that ran on a CPU ten are listed, and of 15 waits of a thread too."""
    builder = TraceBuilder().time_event(0)
    for number in range(15):
        for thread in range(1, 15):
            builder.state("RUNNING", 1000 * (15 * number + thread), 5, thread)
            builder.state("RECEIVE", 1000 * (15 * number + thread) + 500, 5, thread)
    trace = builder.open(tmp_path)
    threads = next(part for part in look(trace, "c-0").sections if part.title == "Threads that ran on it")
    assert len(threads.lines) == 11
    assert threads.lines[-1].text == "and 4 more"
    waits = next(part for part in look(trace, "t-1").sections if part.title.startswith("Waits"))
    assert [line.text for line in waits.lines[10:]] == [f"and {len(table(trace, 'wait')) // 14 - 10} more"]


def test_an_event_says_why(trace):
    [verdict] = trace.verdicts()
    text = as_text(look(trace, f"e-{verdict.evidence[0] + 1}"))
    assert text.splitlines()[0] == f"e-{verdict.evidence[0] + 1} THMUTEX"
    assert re.search(r"priority +30$", text, re.MULTILINE)
    assert re.search(r"  1\.  high 1 \(high\).* waits in MUTEX .* held by low 1 \(low\)", text)


def test_a_message():
    trace = open_trace("sample_traces/dense-4cpu.kev")
    text = as_text(look(trace, "m-7"))
    sent = trace.table("message")
    assert f"[e-{sent['event'][7] + 1}]" in text
    assert f"Client       {trace.thread_name(int(sent['client'][7]))} [t-{sent['client'][7]}]" in text
    assert re.search(r"round trip +20\.68 ", text)


@pytest.mark.parametrize(
    ("handle", "says"),
    [
        ("t-0", "there is no thread t-0; there are t-1 to t-13"),
        ("t-99", "there are t-1 to t-13"),
        ("v-2", "there is no verdict v-2; there is only v-1$"),
        ("m-999999", "there is no message"),
        ("e-0", "there are e-1 to e-"),
        ("c-1", "there is only c-0$"),
    ],
)
def test_what_is_not_there(trace, handle, says):
    with pytest.raises(UsageError, match=says):
        look(trace, handle)


def test_losses_are_told(tmp_path):
    assert "events are missing in 1 range, 4.000 \N{MICRO SIGN}s, first 0.000 012 000 s" in as_text(
        look(open_trace(scene(tmp_path)))
    )


def test_names_are_text(tmp_path):
    builder = TraceBuilder().time_event(0).process_name(1, 7, "a\x1b]0;x\x07\n[e-1]").state("RUNNING", 10, 7, 1)
    trace = open_trace(builder.state("READY", 90, 7, 1).write(tmp_path / "a.kev"))
    for handle in ("", "t-1", "p-1", "e-3"):
        text = as_text(look(trace, handle))
        assert "\x1b" not in text
        assert not any(line.startswith("[e-1]") for line in text.splitlines())


def test_a_trace_without_events(tmp_path):
    assert as_text(look(open_trace(TraceBuilder().write(tmp_path / "a.kev")))).startswith("a.kev\n0 events")


def test_the_commands(path, capsys):
    assert main(["look", str(path), "--handle", "v-1", "--handle", "c-0"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("v-1 priority-inversion\n")
    assert "\n\nc-0 CPU 0\n" in text
    assert main(["look", str(path), "--format", "json"]) == 0
    [found] = json.loads(capsys.readouterr().out)
    assert (found["kind"], found["title"]) == ("trace", "inversion.kev")
    assert found["sections"][0]["lines"][0]["name"] == "v-1"
    assert main(["look", str(path), "--handle", "x"]) == 2
    assert "'x' is not a handle" in capsys.readouterr().err
    assert main(["guide"]) == 0


@pytest.mark.thorough
def test_every_command_of_the_guide_works(path, capfd, tmp_path, monkeypatch):
    """As it is printed, with a trace, a thread and a moment filled in."""
    monkeypatch.chdir(tmp_path)
    assert main(["guide"]) == 0
    lines = re.findall(r"satview ([a-zA-Z]+ [^`\n]*?)(?:  .*|`.*)?$", capfd.readouterr().out, re.MULTILINE)
    run_them = [line.split("  ")[0] for line in lines if line.split()[0] in command_names() and "[" not in line]
    assert {line.split()[0] for line in run_them} >= {"look", "check", "why", "snapshot", "query", "doctor"}
    for line in run_them:
        query = '"select ..."'
        words = line.split("; ")[0].replace(query, "QUERY").split()
        given = {"FILE": str(path), "T": "high", "QUERY": "select 1"}
        words = [given.get(word, word) for word in words]
        words = ["100ms" if word == "1.25s" else "0s..0.1s" if word == "1.2s..1.5s" else word for word in words]
        words = ["0.1s" if word == "1.2s" else "0.101s" if word == "1.201s" else word for word in words]
        assert main(words) in (0, 3), words
        capfd.readouterr()


def test_figures_are_bounds_where_events_are_lost(tmp_path):
    """The scene shows who runs up to 12,000 ns, of CPU 0; then buffers are lost."""
    trace = open_trace(scene(tmp_path))
    text, client = as_text(look(trace)), as_text(look(trace, "t-1"))
    assert "  t-1  client 1 (\u2248 35.0 % of a CPU, \u2265 2 runs, longest READY \u2265 1.000 \u00b5s)\n" in text
    assert "  p-2  server (\u2248 20.0 % of a CPU)\n" in text, "interrupts, which count for it, were not captured"
    assert "RUNNING    \u2265 6.999 \u00b5s, \u2265 2 times, longest \u2265 3.999 \u00b5s [e-13]\n" in client
    assert "UNKNOWN    8.000 \u00b5s, 1 time, longest 8.000 \u00b5s\n" in client, "so long is it not known"
    assert "REPLY  4.001 \u00b5s from 0.000 004 000 s [e-9]" in client, "its end is in the trace"
