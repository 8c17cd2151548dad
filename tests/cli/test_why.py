"""`satview why` as a user runs it."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

import satview
from satview.__main__ import main
from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, run
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import scene

HOSTILE = "=cmd()\x1b]0;x\x07[bold]a\n\u202eb\x9b2J"


@pytest.fixture(scope="module")
def inversion(tmp_path_factory):
    path = tmp_path_factory.mktemp("why") / "inversion.kev"
    run(Capture("inversion", options=LoggerOptions(iterations=0, is_wide=True)), path)
    return path


@pytest.fixture
def why(capsys):
    """Run the command; return exit code, output, errors."""

    def run_it(file, *arguments):
        code = main(["why", str(file), *arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run_it


def test_one_line_for_each_step(why, inversion):
    code, out, _ = why(inversion, "--thread", "high", "--at", "90ms")
    assert code == 0
    first, second = out.splitlines()
    span = "from 0.066 994 s to 0.101 021 s"
    assert first.startswith(f"1. high 1 (high) (priority 30) waits in MUTEX {span} for mutex 0x")
    assert ", held by low 1 (low); SYNC_MUTEX_UNLOCK (event #277) of low 1 (low) ends it." in first
    runs = "middle 1 (middle) (priority 20) has CPU 0 since 0.068 992 s"
    lost, ended = "0.068 991 s", "0.064 991 s"
    assert second.startswith(
        f"2. low 1 (low) (priority 10) is ready since {lost} and does not run: {runs}; interrupt 0x0 "
    )
    assert f"It lost CPU 0 at {lost}, after 1.997 ms on it; its wait in RECEIVE ended at {ended} by " in second
    assert why(inversion, "--thread", "high", "--at", "90ms", "--steps", "1")[1].splitlines() == [first]


def test_the_same_from_python_and_as_json(why, inversion):
    _, text, _ = why(inversion, "--thread", "low 1 (low)", "--at", "90ms")
    reported = json.loads(why(inversion, "--thread", "2:1", "--at", "0.09", "--format", "json")[1])["steps"]
    trace = satview.open_trace(inversion)
    steps = satview.why(trace, "low", trace.clock.cycles(90_000_000))
    assert [step["says"] for step in reported] == [step.says for step in steps]
    assert text == "".join(f"{i + 1}. {step.says}\n" for i, step in enumerate(steps))
    names = {event.row + 1: event.name for event in trace.iter_events()}
    assert (reported[0]["state"], names[reported[0]["event"]], names[reported[0]["cause_event"]]) == (
        "READY",
        "THREADY",
        "SND_PULSE_EXE",
    )
    assert reported[0]["ran_instead"][0]["priority"] == 20
    assert reported[0]["on_cpus"] == [
        {"cpu": 0, "thread": "middle 1 (middle)", "priority": 20, "since_ns": trace.clock.ns(steps[0].on_cpus[0][3])}
    ]
    assert (reported[0]["waker"], reported[0]["holder"], reported[0]["certainty"]) == (None, None, "exact")


def test_a_moment_may_be_an_event(why, inversion):
    trace = satview.open_trace(inversion)
    event = next(event for event in trace.iter_events("THMUTEX"))
    code, out, _ = why(inversion, "--thread", "high", "--at", f"#{event.row + 1}")
    assert code == 0
    assert "waits in MUTEX" in out


def test_damage_shows_in_the_exit_code(why, tmp_path):
    assert why(scene(tmp_path), "--thread", "client 1", "--at", "5us")[0] == 1


def test_names_of_a_trace_are_text(why, tmp_path):
    builder = TraceBuilder().time_event(0).process_name(1, 2, HOSTILE).thread_name(2, 2, 1, HOSTILE)
    path = (
        builder.state("RUNNING", 10, 2, 1).state("READY", 20, 2, 1).state("RUNNING", 30, 2, 1).write(tmp_path / "t.kev")
    )
    for form in ("text", "json"):
        code, out, _ = why(path, "--thread", "2:1", "--at", "15ns", "--format", form)
        assert code == 0
        assert "cmd()" in out
        assert not set(out) & set("\x1b\x07\x9b\u202e")


@pytest.mark.parametrize(("arguments", "message"), [
    (("--thread", "nobody", "--at", "1ms"), "the trace has no thread 'nobody'"),
    (("--thread", "high", "--at", "5s"), "is outside the trace"),
    (("--thread", "high", "--at", "soon"), "is not a time"),
    (("--thread", "high", "--at", "1ms", "--steps", "0"), "--steps must be at least 1, not 0"),
    (("--thread", "7:99999999999999999999", "--at", "1ms"), "no thread"),
    (("--thread", "9999999999:1", "--at", "1ms"), "no thread"),
    (("--thread", "high", "--range", "9s..10s"), "outside the trace"),
    (("--thread", "high", "--range", "2ms"), "is not a range"),
    (("--thread", "high", "--range", "1ms..2ms", "--steps", "2"), "--steps needs --at"),
    (("--thread", "high", "--range", "1ms..2ms", "--top", "0"), "--top must be at least 1, not 0"),
    (("--thread", "high", "--at", "1ms", "--top", "3"), "--top needs --range"),
])  # fmt: skip
def test_what_does_not_fit_is_one_sentence(why, inversion, arguments, message):
    code, out, err = why(inversion, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_one_piece_is_one_piece(why, inversion):
    """From 70 to 80 ms *middle* runs without a break."""
    _, text, _ = why(inversion, "--thread", "middle", "--range", "70ms..80ms")
    assert text.splitlines()[0] == "middle 1 (middle): 10.00 ms in 1 piece"


def test_a_critical_path_adds_up(why, inversion):
    _, text, _ = why(inversion, "--thread", "high", "--range", "60ms..100ms", "--top", "2")
    reported = json.loads(why(inversion, "--thread", "high", "--range", "60ms..100ms", "--format", "json")[1])
    pieces = reported["pieces"]
    assert (pieces[0]["start_ns"], reported["start_ns"], reported["end_ns"]) == (60_000_000, 60_000_000, 100_000_000)
    assert all(abs(one["start_ns"] + one["length_ns"] - other["start_ns"]) <= 1 for one, other in pairwise(pieces))
    whole = 40_000_000
    assert abs(sum(total["length_ns"] for total in reported["totals"]) - whole) <= len(reported["totals"])
    assert (reported["totals"][0]["thread"], reported["totals"][0]["kind"]) == ("low 1 (low)", "ready")
    lines = text.splitlines()
    assert lines[0] == f"high 1 (high): 40.00 ms in {len(pieces)} pieces"
    assert any(line.startswith(f"{len(pieces) - 2} shorter pieces: ") for line in lines)
