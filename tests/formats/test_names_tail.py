"""Names at the end of a ring capture: they name what there is, and nothing else is taken of them."""

import io
import itertools

import numpy as np
import pytest

from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, run
from satview.events import wire
from satview.events.spec import Release
from satview.export.kev import write_subset
from satview.formats.kev import repair
from satview.formats.kev.consensus import Surroundings
from satview.formats.kev.reader import open_kev
from satview.formats.kev.repair import LastEvents, first_of_tail, is_ring
from satview.formats.source import source_of
from satview.store.time_ranges import trusted_window
from satview.timeline.lane_tree import Timeline
from tests.helpers.extent import fewer, points
from tests.helpers.kev import TraceBuilder, write_trace

MHZ, GHZ = 19_200_000, 2_592_000_000


def ring(release="7.1.0", cpus=1, rate=GHZ, pause_s=2.5, has_time=True, tail="names", count=0):
    """Return a ring capture of 149 ms: each CPU runs a thread, each of a process of its own; then the names."""
    builder, ms = TraceBuilder(release, cpus=cpus, rate=rate), rate // 1000
    sequence = itertools.count(40)
    for cpu in range(cpus):
        builder.event(wire.CONTROL_BUFFER, cpu, (next(sequence), count), cpu).time_event(cpu, cpu)
    for cpu in range(cpus):
        builder.state("RUNNING", 10 + cpu, 2 + cpu, 1, cpu)
    for step in range(1, 149):
        for cpu in range(cpus):
            builder.call(11, step * ms + cpu, cpu=cpu).exit(11, step * ms + 100 + cpu, cpu=cpu)
    for cpu in range(cpus):
        builder.state("RECEIVE", 149 * ms + cpu, 2 + cpu, 1, cpu)
    now = 149 * ms + int(pause_s * rate)
    if tail:
        builder.event(wire.CONTROL_BUFFER, now, (1 if release == "8.0.0" else next(sequence), count))
    if tail and has_time:
        builder.time_event(now)
    if tail == "event":
        builder.event(wire.code(6, 1), now)
    for cpu in range(cpus if tail else 0):
        builder.process_name(now + 10 * cpu, 2 + cpu, f"proc/server{cpu}")
        builder.thread_name(now + 10 * cpu + 5, 2 + cpu, 1, f"worker{cpu}")
    if tail and release == "8.0.0":
        builder.event(wire.CONTROL_BUFFER_END, now + 9000, (wire.BUFFER_END_COOKIE,) * 2)
    return builder


TARGETS = [(*on, rate) for rate in (GHZ, MHZ) for on in (("7.1.0", 1), ("7.1.0", 4), ("8.0.0", 18))]


@points(target=fewer(TARGETS, 4), pause_s=[1.1, 2.5, 60, 7200])
def test_names_after_a_pause_name_and_change_nothing_else(target, pause_s, tmp_path):
    release, cpus, rate = target
    trace = ring(release, cpus, rate, pause_s).open(tmp_path)
    bare = ring(release, cpus, rate, tail="").write(tmp_path / "bare.kev")
    alone = open_kev(bare)
    assert trace.problems.counts() == {"ring-names": 2 * cpus + 2 + (release == "8.0.0")}
    assert not trace.problems.cost_data
    assert "s after the capture name processes and threads" in next(iter(trace.problems)).detail
    assert trace.duration_ns == alone.duration_ns
    assert trace.duration_ns // 1_000_000 == 149
    assert trusted_window(trace) == trace.window
    for column in ("time_cycles", "code", "cpu", "thread", "slot", "slot_count"):
        assert np.array_equal(getattr(trace.events, column), getattr(alone.events, column)), column
    assert trace.buffers.slot.tolist() == alone.buffers.slot.tolist()
    assert trace.states.event.tolist() == alone.states.event.tolist()
    assert [trace.thread_name(row) for row in range(1, cpus + 1)] == [f"server{i} 1 (worker{i})" for i in range(cpus)]
    assert trace.processes.created_cycles.tolist() == [-1] * len(trace.processes)
    ends, sooner = ([lane.spans.end_cycles for lane in (timeline.lane(info.index) for info in timeline.infos)]
                    for timeline in (Timeline(trace), Timeline(alone)))  # fmt: skip
    assert ends == sooner
    assert trace.payloads.words(len(trace.events) - 1).tolist()[:2] == [1 + cpus, 1]


@pytest.mark.parametrize(
    ("built", "slug", "events"),
    [
        ({"has_time": False, "rate": MHZ}, "ring-names", 3),  # stamps alone show the pause
        ({"pause_s": 0.5}, "ring-names", 0),  # less than a second: part of the capture
        ({"tail": "event"}, "ring-names", 0),  # an event that nobody can call a name
        ({"count": 1}, "ring-names", 0),  # the logger took every buffer, and nothing says that it kept a ring
    ],
)
def test_only_names_behind_a_ring_and_after_more_than_a_second_are_taken_so(built, slug, events, tmp_path):
    assert ring(**built).open(tmp_path).problems.counts().get(slug, 0) == events


def test_a_damaged_time_within_the_capture_is_still_found(tmp_path):
    builder = ring("7.1.0", 2)
    slots = builder.writer.slots()
    times = np.flatnonzero((slots[:, 0] & wire.CODE_MASK) == wire.CONTROL_TIME)
    slots[times[1], 2] ^= 1 << 9
    trace = open_kev(write_trace(tmp_path / "damaged.kev", slots, "7.1.0", cpus=2, rate=GHZ))
    assert trace.problems.counts() == {"ring-names": 6, "clock-damaged": 1}
    assert trace.duration_ns // 1_000_000 == 149


@pytest.mark.parametrize("release", [Release.QNX_6, Release.QNX_7, Release.QNX_8])
def test_the_simulated_logger_writes_them_where_the_kernel_does(release, tmp_path):
    path = tmp_path / "ring.kev"
    options = LoggerOptions(is_ring=True, kernel_buffers=2)
    run(Capture("client-server", options=options, release=release, duration_ns=150_000_000), path)
    trace = open_kev(path)
    has_names = release is not Release.QNX_6
    assert ("ring-names" in trace.problems.counts()) is has_names
    assert trace.duration_ns < 200_000_000
    assert "slow_server" in {trace.short_process_name(row) for row in range(1, len(trace.processes))}
    # The listing has every slot, at its own time.
    printed = list(source_of(io.BytesIO(path.read_bytes()), path).events)
    assert sum(map(len, printed)) == len(trace.events) + trace.problems.counts().get("ring-names", 0)
    if has_names:
        pause = max(int(batch.time_cycles.max()) for batch in printed) - int(trace.events.time_cycles[-1])
        assert 2.4 < pause / trace.clock.cycles_per_s < 2.7
        part = tmp_path / "part.kev"
        write_subset(trace, part, trace.events.code == wire.code(2, 11))
        names = {open_kev(part).short_process_name(row) for row in range(1, 5)}
        assert "slow_server" in names


MARK, NAME, THREAD_NAME = wire.code(6, 1), wire.PROC_CREATE_NAME, wire.PROC_THREAD_NAME
CREATE, BORN, READY, RUNNING = wire.PROC_CREATE, wire.THREAD_CREATE, wire.code(4, 2), wire.THREAD_RUNNING


@pytest.mark.parametrize(
    ("events", "first"),
    [
        ([(MARK, 0), (NAME, 11)], 1), ([(MARK, 0), (THREAD_NAME, 11)], 1), ([(MARK, 0), (NAME, 10)], None),
        ([(NAME, 0), (NAME, 50)], None), ([], None),  # nothing is in front of them
        ([(MARK, 0), (CREATE, 20)], None), ([(MARK, 0), (CREATE, 20), (NAME, 21)], 1),
        ([(MARK, 0), (wire.CONTROL_BUFFER, 20), (wire.CONTROL_TIME, 20), (NAME, 21)], 1),
        ([(MARK, 0), (wire.PROC_DESTROY, 20), (NAME, 21)], None),
        ([(MARK, 0), (NAME, 5), (NAME, 30)], 2), ([(MARK, 0), (NAME, 5), (CREATE, 30)], None),
        ([(MARK, 0), (NAME, 30), (NAME, 5), (NAME, 60)], 1), ([(MARK, 0), (MARK, 20), (NAME, 25)], None),
        ([(MARK, 25), (MARK, 0), (NAME, 30)], None), ([(MARK, 25), (MARK, 0), (NAME, 36)], 2),
        ([(MARK, 0), (NAME, 15), (MARK, 0), (NAME, 26)], 3),
        # One state of each thread that is created there.
        ([(MARK, 0), (BORN, 20, 1), (READY, 20, 1), (NAME, 21)], 1),
        ([(MARK, 0), (BORN, 20, 1), (READY, 20, 2), (NAME, 21)], None),
        ([(MARK, 0), (BORN, 20, 1), (BORN, 20, 2), (RUNNING, 20, 2), (READY, 20, 1), (NAME, 21)], 1),
        ([(MARK, 0), (BORN, 20, 1), (READY, 21, 1), (RUNNING, 22, 1), (NAME, 40)], 4),
        ([(MARK, 0), (BORN, 20, 1), (READY, 21, 1), (RUNNING, 35, 1), (NAME, 40)], 3),
        ([(MARK, 0), (BORN, 20, 1), (wire.THREAD_DESTROY, 20, 1), (NAME, 21)], None),
    ],
)  # fmt: skip
def test_where_names_behind_a_capture_begin(events, first):
    """Behind a pause of more than a second, which is ten cycles here; the events before are numbers 0 to 99."""
    code, time, thread = (np.array(column, np.int64) for column in (
        zip(*((*event, 0)[:3] for event in events), strict=True) if events else [()] * 3))  # fmt: skip
    last = LastEvents(100, time, np.zeros(len(time), np.uint8), code.astype(np.uint16), thread.astype(np.uint32))
    assert first_of_tail(last, 10, None) == (None if first is None else 100 + first)


@pytest.mark.parametrize(
    ("says_ring", "rows", "expected"),
    [(True, [], True), (False, [], False), (False, [(wire.CONTROL_BUFFER, 7, 0)], True),
     (False, [(wire.CONTROL_BUFFER, 0, 7)], False), (False, [(wire.CONTROL_TIME, 7, 0)], False),
     (False, [(wire.CONTROL_BUFFER, 7, 5), (wire.CONTROL_BUFFER, 8, 0)], True)],
)  # fmt: skip
def test_a_ring_by_its_header_or_a_buffer_without_a_length(says_ring, rows, expected):
    code, words = np.array([row[0] for row in rows], np.uint16), np.array([row[1:] for row in rows], np.uint32)
    assert is_ring(Surroundings(says_ring=says_ring), code, words.reshape(-1, 2)) is expected


@pytest.mark.parametrize("first", [150, -1])
def test_what_is_no_pause_in_the_end_is_part_of_the_capture(tmp_path, monkeypatch, first):
    """Of more events than are looked at those before may be later; the last name is behind another one."""
    path = ring(pause_s=2.5).write(tmp_path / "a.kev")
    monkeypatch.setattr(repair, "first_of_tail", lambda last, *_: range(len(last.time))[first])
    trace = open_kev(path)
    assert "ring-names" not in trace.problems.counts()
    assert len(trace.events) == len(trace.last_slots())
    assert trace.duration_ns // 1_000_000 == 149 + 2500
