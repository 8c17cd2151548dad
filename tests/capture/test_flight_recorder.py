"""The flight recorder: hits of the kernel are those of a view, each is in one file, and files stay within bounds."""

import json

import numpy as np
import pytest

from satview.base.errors import UsageError
from satview.base.time import format_time
from satview.capture.buffers import LoggerOptions
from satview.capture.flight_recorder import Bounds, FlightRecorder, Hit, disk_bytes
from satview.capture.kernel import mode
from satview.capture.run import Capture, run
from satview.capture.sim.calls import Compute, Sleep, TraceEvent
from satview.capture.workloads.registry import Workload
from satview.events.spec import Release
from satview.filters.rules.building import build
from satview.filters.rules.text import Action, parse_rules
from satview.filters.rules.triggers import Trigger, trigger_hits
from satview.formats.registry import open_trace
from satview.store.mark_file import recorded_marks
from tests.helpers.commands import satview
from tests.helpers.extent import WIDTH, points
from tests.helpers.recorder_soak import DISK_BYTES, FILES, WEEK_S, soak

INSERT, INSERT_TEXT = mode("INSERTSUSEREVENT"), mode("INSERTUSRSTREVENT")
MS = 1_000_000
RELEASES = {release.value: release for release in Release if release.is_qnx}
STOP_AFTER_2 = Hit(Trigger(None, Action("late", 2, stops=True)))  # type: ignore[arg-type]  # nothing is compared here
MARK_ONLY = Hit(Trigger(None, Action("seen")))  # type: ignore[arg-type]


def recorder(folder, bounds):
    """Return a recorder of buffers that are one number each, and what it wrote: name and numbers."""
    written = []

    def write(path, slots, _hits):
        written.append((path.name, slots[:, 0].tolist()))
        path.write_bytes(bytes(1000))

    return FlightRecorder(folder / "run.kev", bounds, write, lambda _text: None), written


def buffer(number):
    return np.full((1, 4), number, np.uint32)


def test_the_ring_keeps_the_newest_and_so_many_behind_the_trigger(tmp_path):
    ring, written = recorder(tmp_path, Bounds(4))
    for number in range(10):
        ring.take(buffer(number))
    ring.take(buffer(10), [STOP_AFTER_2])
    ring.take(buffer(11))
    assert written == []
    ring.take(buffer(12))
    ring.take(buffer(13), [STOP_AFTER_2])  # one incident was asked for
    assert written == [("run.kev", [9, 10, 11, 12])]
    assert (ring.is_done, ring.incidents, ring.marks) == (True, 1, 1)


def test_a_second_trigger_is_a_mark_in_the_same_file_and_the_next_file_begins_behind(tmp_path):
    ring, written = recorder(tmp_path, Bounds(4, is_repeated=True))
    hits = {1: [STOP_AFTER_2], 2: [STOP_AFTER_2, MARK_ONLY], 4: [STOP_AFTER_2], 7: [MARK_ONLY]}
    for number in range(9):
        ring.take(buffer(number), hits.get(number, ()))
    assert written == [("run-0001.kev", [0, 1, 2, 3]), ("run-0002.kev", [4, 5, 6])]
    assert (ring.incidents, ring.marks, ring.is_ending) == (2, 4, False)


def test_oldest_files_go_and_those_of_earlier_runs_stay(tmp_path):
    (tmp_path / "run-0007.kev").write_bytes(b"of an earlier run")
    ring, _ = recorder(tmp_path, Bounds(4, is_repeated=True, files=2))
    other, _ = recorder(tmp_path / "..", Bounds(4, is_repeated=True))
    now = Hit(Trigger(None, Action("now", stops=True)))  # type: ignore[arg-type]
    for number in range(5):
        ring.take(buffer(number), [now])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run-0007.kev", "run-0011.kev", "run-0012.kev"]
    assert [path.name for path in ring.files] == ["run-0011.kev", "run-0012.kev"]
    small, _ = recorder(tmp_path, Bounds(4, is_repeated=True, disk_bytes=67_000))  # for 1,000 bytes and a new file
    for number in range(5):
        small.take(buffer(number), [now])
    assert len(small.files) == 2
    assert other.files == []


def test_an_event_that_goes_on_in_the_next_buffer_keeps_its_end(tmp_path):
    ring, written = recorder(tmp_path, Bounds(3))
    begin, end = (np.array([[kind << 30 | 0x1BFF, 0, 0, 0]], np.uint32) for kind in (1, 3))
    ring.take(buffer(1), [STOP_AFTER_2])
    ring.take(buffer(2))
    ring.take(begin)
    assert written == []
    ring.take(end)
    assert written == [("run.kev", [1, 2, begin[0, 0], end[0, 0]])]


@pytest.mark.parametrize(
    ("bounds", "triggers", "message"),
    [
        (
            Bounds(2),
            [STOP_AFTER_2],
            "KEEP 2 buffers: the ring has 2, and the one with the trigger has to stay too; -k 3",
        ),
        (Bounds(3), [MARK_ONLY], "WHEN ... THEN STOP"),
        (Bounds(3, files=2), [STOP_AFTER_2], "are for --every"),
        (Bounds(3, is_repeated=True, disk_bytes=1000), [STOP_AFTER_2], "one file of 3 buffers may take 180,224"),
    ],
)
def test_bounds_that_cannot_work_are_refused(bounds, triggers, message):
    with pytest.raises(UsageError, match=r"\w") as error:
        bounds.check([hit.trigger for hit in triggers])
    assert message in str(error.value)


def test_sizes_of_a_disk():
    assert (disk_bytes("2GB", "--disk"), disk_bytes("500k", "--disk"), disk_bytes("7", "--disk")) == (
        2 << 30,
        512000,
        7,
    )
    for text in ("", "0", "-1", "2TB", "1.5G", "9" * 40):
        with pytest.raises(UsageError):
            disk_bytes(text, "--disk")


def jobs(lates, gap_ns=20 * MS):
    """Return a workload whose jobs, between texts tick and done, take 1 ms, and 8 ms where they are late."""

    def body():
        for is_late in lates:
            yield Sleep(gap_ns)
            yield TraceEvent(INSERT_TEXT, 10, "tick")
            yield Compute(8 * MS if is_late else MS)
            yield TraceEvent(INSERT_TEXT, 10, "done")

    return Workload("jobs", "for tests", lambda kernel: kernel.spawn("usr/bin/jobs", body, thread_name="worker"), 1, 0)


RULES = """
WHEN latency("tick", "done") > 5ms THEN MARK "late"; STOP
WHEN event == TRACE_EVENT and class == KER_CALL THEN MARK "call"
WHEN class == THREAD and latency("THREADY", "THRUNNING") > 2us THEN MARK "slow"
"""


@pytest.mark.thorough
@points(release=RELEASES, wide=WIDTH)
def test_the_kernel_marks_what_a_view_finds(release, wide, tmp_path):
    rules = RULES.replace("; STOP", "")
    options = LoggerOptions(iterations=0, is_wide=wide)
    lates = [number % 5 == 3 for number in range(20)]
    run(Capture(jobs(lates), release=release, duration_ns=700 * MS, options=options, rules_text=rules),
        tmp_path / "run.kev")  # fmt: skip
    trace = open_trace(tmp_path / "run.kev")
    marks = recorded_marks(trace)
    rows, which = trigger_hits(build(parse_rules(rules, release), release).triggers, trace)
    names = [("late", "call", "slow")[number] for number in which.tolist()]
    assert sorted(text for _, text in marks) == sorted(names)
    assert [text for _, text in marks].count("late") == 4
    for row, text in marks:  # behind its event, with nothing between but marks and what came into its slots
        before = [hit for hit, name in zip(rows.tolist(), names, strict=True) if name == text and hit < row]
        assert trace.events.time_cycles[before[-1]] == trace.events.time_cycles[row]


@pytest.mark.thorough
def test_each_incident_is_a_file_that_opens_with_its_names(tmp_path):
    rules = 'WHEN latency("tick", "done") > 5ms THEN MARK "late"; STOP'
    bounds = Bounds(4, is_repeated=True)
    lates = [number in (3, 12) for number in range(20)]
    options = LoggerOptions(is_ring=True, kernel_buffers=4)
    result = run(Capture(jobs(lates), duration_ns=700 * MS, options=options, rules_text=rules, bounds=bounds),
                 tmp_path / "run.kev")  # fmt: skip
    assert result.findings == []
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == ["run-0001.kev", "run-0002.kev"]
    for path in files:
        trace = open_trace(path)
        ((row, text),) = recorded_marks(trace)
        assert text == "late"
        assert trace.thread_name(int(trace.events.thread[row])).startswith("jobs")
        assert not trace.problems.cost_data


@pytest.mark.thorough
def test_info_and_filter_say_where_the_marks_and_hits_are(tmp_path):
    rules = 'WHEN latency("tick", "done") > 5ms THEN MARK "late"; KEEP 1 buffer; STOP'
    (tmp_path / "late.satrules").write_text(rules)
    lates = [number == 3 for number in range(40)]
    options = LoggerOptions(is_ring=True, kernel_buffers=4)
    run(Capture(jobs(lates), duration_ns=1000 * MS, options=options, rules_text=rules), tmp_path / "a.kev")
    trace = open_trace(tmp_path / "a.kev")
    ((row, _),) = recorded_marks(trace)
    (mark,) = json.loads(satview("info", "--json", tmp_path / "a.kev").stdout)["marks"]
    assert (mark["text"], mark["event"]) == ("late", row)
    text = satview("info", tmp_path / "a.kev").stdout.decode()
    assert f"Marks  late at {format_time(mark['time_ns'])} (#{row})" in text
    text = satview("filter", tmp_path / "a.kev", "-r", tmp_path / "late.satrules").stdout.decode()
    assert f"{rules}\n  1 hit: {format_time(mark['time_ns'])} (#" in text


@pytest.mark.thorough
def test_a_capture_without_a_ring_ends_behind_its_trigger(tmp_path):
    rules = 'WHEN latency("tick", "done") > 5ms THEN MARK "late"; STOP'
    options = LoggerOptions(iterations=0)
    lates = [number in (3, 12) for number in range(20)]
    run(Capture(jobs(lates), duration_ns=700 * MS, options=options, rules_text=rules), tmp_path / "run.kev")
    assert [text for _, text in recorded_marks(open_trace(tmp_path / "run.kev"))] == ["late"]


def test_a_ring_whose_trigger_never_hits_is_saved_as_at_a_signal(tmp_path):
    rules = 'WHEN latency("tick", "done") > 50ms THEN STOP'
    options = LoggerOptions(is_ring=True)
    result = run(
        Capture(jobs([False] * 5), duration_ns=200 * MS, options=options, rules_text=rules), tmp_path / "a.kev"
    )
    assert result.findings == ["no trigger has hit; the file has the newest buffers"]
    assert len(open_trace(tmp_path / "a.kev").events) > 100


def test_options_that_cannot_work_are_refused(tmp_path):
    options = LoggerOptions(iterations=0)
    for rules, bounds in (("WHEN pid == 1 THEN STOP", Bounds(4, is_repeated=True)), ("", Bounds(4, is_repeated=True))):
        with pytest.raises(UsageError, match="it needs a ring"):
            run(Capture(jobs([]), options=options, rules_text=rules, bounds=bounds), tmp_path / "a.kev")
    assert not [*tmp_path.iterdir()]


@pytest.mark.thorough
def test_a_week_with_a_thousand_late_jobs(tmp_path):
    found = soak(tmp_path, 1000)
    assert (found.late, found.simulated_s >= WEEK_S) == (1000, True)
    assert found.numbers == list(range(1000))  # each in one file, none twice, in their order
    assert 400 < found.files < 900  # jobs that are late soon after each other share a file
    assert found.most_files <= FILES
    assert 0.8 * DISK_BYTES < found.most_bytes <= DISK_BYTES
    assert found.memory_kb[1] - found.memory_kb[0] < 20_000


def test_an_hour_on_the_release_whose_cpus_have_buffers_of_their_own(tmp_path):
    found = soak(tmp_path, 40, 3600, Release.QNX_8)
    assert sorted(found.numbers) == list(range(40))
