"""The recorder at this end of a line: its hits are those of a view of the whole, whatever pieces the trace comes in."""

from __future__ import annotations

import random
import time

import pytest

from satview.base.errors import UsageError
from satview.capture.buffers import LoggerOptions
from satview.capture.flight_recorder import Bounds
from satview.capture.run import Capture, run
from satview.capture.sim.calls import Compute, TraceEvent
from satview.capture.workloads.registry import Workload
from satview.events.spec import Release
from satview.filters.rules.building import build
from satview.filters.rules.text import parse_rules
from satview.filters.rules.triggers import trigger_hits
from satview.formats.registry import open_trace
from satview.store.mark_file import recorded_marks
from satview.target.capture import capture
from satview.target.line import TargetError
from satview.target.request import TargetRequest
from satview.target.watching import Recording
from tests.capture.test_flight_recorder import INSERT_TEXT, MS, jobs
from tests.helpers.extent import points

RULES = """
WHEN latency("tick", "done") > 5ms THEN MARK "late"; KEEP 1 buffer; STOP
WHEN class == COMM and latency("THREADY", "THRUNNING") > 2us THEN MARK "slow"
WHEN thread_name == "worker" and event == THRUNNING THEN MARK "runs"
WHEN text == "a text of three slots" and tid == 1 and time > 100ms and time < 200ms THEN MARK "text"
"""


def hog():
    """Return a workload whose one thread never stops, so that its THRUNNING is in no later buffer."""

    def body():
        number = 0
        while True:
            number += 1
            yield TraceEvent(INSERT_TEXT, 10, "tick")
            yield TraceEvent(INSERT_TEXT, 11, "a text of three slots")
            yield Compute(6 * MS if number % 50 == 0 else MS // 5)
            yield TraceEvent(INSERT_TEXT, 10, "done")

    return Workload("hog", "for tests", lambda kernel: kernel.spawn("usr/bin/hog", body, thread_name="hog"), 1, 0)


RELEASES = {"6.6": Release.QNX_6_6, "7.x": Release.QNX_7, "8.0": Release.QNX_8}
WORKLOADS = {
    "jobs": (jobs([number % 7 == 3 for number in range(60)], 5 * MS), 1),
    "automotive": ("automotive", 4),
    "hog": (hog(), 1),
}


def recorded(path, built, folder, bounds, sizes, said):
    """Let a file arrive in pieces at a recorder; return it."""
    recording = Recording(folder / "part.kev", [], built, bounds, said.append)
    data = path.read_bytes()
    while data and not recording.is_done:
        size = sizes()
        recording.take(data[:size])
        data = data[size:]
    recording.finish()
    return recording


@points(release=RELEASES, workload=WORKLOADS, wide={"fast": False, "wide": True})
def test_hits_are_those_of_the_whole(release, workload, wide, tmp_path, monkeypatch):
    monkeypatch.setattr("satview.target.watching._LOOK_S", -1)  # look at every piece, as at what comes slowly
    program, cpus = workload
    options = LoggerOptions(iterations=0, is_wide=wide, flush_every_s=0.05)
    run(Capture(program, release=release, cpus=cpus, duration_ns=600 * MS, options=options), tmp_path / "all.kev")
    whole = open_trace(tmp_path / "all.kev")
    built = build(parse_rules(RULES, release), release)
    rows, which = trigger_hits(built.triggers, whole)
    expected = sorted(zip(whole.events.time_cycles[rows].tolist(), which.tolist(), strict=True))
    rng = random.Random(3)
    folder = tmp_path / "parts"
    folder.mkdir()
    bounds, said = Bounds(1000, is_repeated=True), []
    recording = recorded(
        tmp_path / "all.kev", built, folder, bounds, lambda: rng.choice((1, 17, 4000, 16384, 90000)), said
    )
    assert recording.hits == len(expected)
    assert len(expected) > 3
    marked = []
    names = [trigger.mark for trigger in built.triggers]
    for path in sorted(folder.iterdir()):
        trace = open_trace(path)
        marked += [(int(trace.events.time_cycles[row]), names.index(text)) for row, text in recorded_marks(trace)]
        assert not trace.problems.cost_data
    assert set(marked) <= set(expected)  # a header has 100, and what comes behind the last incident is in no file
    lates = [hit for hit in expected if hit[1] == 0]
    in_files = sum(hit in marked for hit in lates)
    assert in_files == len(lates)
    left_out = sum(int(text.split()[-4]) for text in said if "left out" in text)
    written = sum(int(text.split()[-2]) for text in said if "left out" not in text)
    assert len(marked) + left_out == written


@pytest.mark.thorough
def test_files_have_the_buffers_around_their_trigger_and_names(tmp_path):
    options = LoggerOptions(iterations=0)
    run(Capture(jobs([number == 90 for number in range(120)], 5 * MS), duration_ns=900 * MS, options=options),
        tmp_path / "all.kev")  # fmt: skip
    rules = 'WHEN latency("tick", "done") > 5ms THEN MARK "late"; KEEP 1 buffer; STOP'
    built = build(parse_rules(rules, Release.QNX_7), Release.QNX_7)
    folder = tmp_path / "parts"
    folder.mkdir()
    recording = recorded(tmp_path / "all.kev", built, folder, Bounds(3), lambda: 5000, [])
    assert [path.name for path in recording.recorder.files] == ["part.kev"]
    trace = open_trace(folder / "part.kev")
    ((row, text),) = recorded_marks(trace)
    assert text == "late"
    assert trace.thread_name(int(trace.events.thread[row])).startswith("jobs")
    whole = open_trace(tmp_path / "all.kev")
    first = whole.buffers.sequence.tolist().index(int(trace.buffers.sequence[0]))
    assert trace.buffers.sequence.tolist() == whole.buffers.sequence.tolist()[first : first + 3]
    assert whole.buffers.time_cycles[first + 1] < trace.events.time_cycles[row] < whole.buffers.time_cycles[first + 2]


def rules_request(board, path, rules, **more):
    return TargetRequest(board.profile, path, rules=rules, rules_name="r.satrules", **more)


@pytest.mark.thorough
@pytest.mark.usefixtures("quick_clock")
def test_a_trigger_ends_a_recording_over_ssh(board, tmp_path):
    said = []
    rules = 'WHEN event == SND_MESSAGE and time > 1.5s THEN MARK "sent"; KEEP 2 buffers; STOP'
    request = rules_request(board, tmp_path / "incident.kev", rules, is_ring=True, seconds=60)
    told = []
    captured = capture(request, lambda: False, told.append, said.append)
    assert captured.faults == []
    assert any("0 hits, 0 files" in text for text in told)
    assert captured.seconds < 20
    assert "-c -D 1" in captured.command
    assert "-r" not in captured.command.split()
    assert any("hits of triggers, noticed here" in note or "hit of triggers" in note for note in captured.notes)
    assert any(text.startswith("incident.kev: ") for text in said)
    trace = open_trace(tmp_path / "incident.kev")
    assert recorded_marks(trace)[0][1] == "sent"
    assert trace.header.get("CAPTURE_HOST") == "127.0.0.1"
    assert board.is_clean_within(5)


@pytest.mark.thorough
@pytest.mark.usefixtures("quick_clock")
def test_what_cannot_be_watched_is_refused_and_nothing_starts(board, tmp_path):
    rules = "WHEN event == SND_MESSAGE THEN KEEP 40 buffers; STOP"
    for more, error, message in (
        ({"is_ring": True}, UsageError, "-k 41 or more"),
        ({}, UsageError, "rules with WHEN need a ring"),
        ({"is_ring": True, "rules": "ADDCLASS COMM", "bounds": Bounds(32, is_repeated=True)}, UsageError, "--every"),
    ):
        with pytest.raises(error) as refusal:
            capture(rules_request(board, tmp_path / "a.kev", **{"rules": rules, **more}), lambda: False, print, print)
        assert message in str(refusal.value)
    board.runs("6.4.1", "6.x")
    with pytest.raises(TargetError, match="sends nothing while it runs"):
        capture(rules_request(board, tmp_path / "a.kev", rules, is_ring=True), lambda: False, print, print)
    assert not board.loggers()
    assert not (tmp_path / "a.kev").exists()


STOPPER = """
from satview.capture.sim.calls import Sleep, TraceEvent
from satview.capture.kernel import mode

def setup(kernel):
    def body():
        yield Sleep(1_500_000_000)
        yield TraceEvent(mode("INSERTUSRSTREVENT"), 1023, "#0000000 trigger: late")
        yield TraceEvent(mode("STOP"))
        while True:
            yield Sleep(10_000_000)

    kernel.spawn("usr/bin/set_rules", body)
"""


@pytest.mark.thorough
@pytest.mark.usefixtures("quick_clock")
def test_a_program_on_the_board_that_stops_the_ring_ends_the_capture(board, tmp_path):
    (tmp_path / "stopper.py").write_text(STOPPER)
    board.runs("7.1.0", "7.x", f"--workload {tmp_path}/stopper.py")
    begin_s = time.monotonic()
    request = TargetRequest(board.profile, tmp_path / "a.kev", is_ring=True)
    captured = capture(request, lambda: time.monotonic() - begin_s > 30, lambda _text: None, print)
    assert captured.faults == []
    assert time.monotonic() - begin_s < 30  # nobody stopped it here
    trace = open_trace(tmp_path / "a.kev")
    assert [text for _, text in recorded_marks(trace)] == ["late"]
    assert board.is_clean_within(5)
