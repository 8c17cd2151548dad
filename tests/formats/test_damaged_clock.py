"""Times and names that damaged slots claim: what is believed, what is corrected, what is reported."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from satview.events import wire
from satview.formats.kev.clock import LOOK_AHEAD_EVENTS
from satview.formats.kev.header import slots_as_bytes, write_start
from satview.formats.kev.reader import open_kev
from satview.formats.kev.sampling import GrowingFile
from satview.formats.source import source_of
from satview.store.time_ranges import damage, doubts, trusted_window
from satview.timeline.lane_tree import Timeline
from tests.helpers.extent import points, usually
from tests.helpers.kev import TraceBuilder, header_and_page, write_trace

ROLLOVER = 1 << 32
STEP = 40_000_000  # cycles between events: a rollover every hundred events
BUFFER_EVENTS = 25


def built(cpus: int = 2, events: int = 600, release: str = "7.1.0", start: int = 700 * ROLLOVER + 5) -> np.ndarray:
    """Return slots of CPUs one after the other; a TIME for each CPU after every buffer change and every rollover."""
    builder = TraceBuilder(release, cpus=cpus, start=start)
    needs_time, upper = [True] + [False] * (cpus - 1), [start >> 32] * cpus
    for number in range(events):
        now, cpu = number * STEP, number % cpus
        if number % BUFFER_EVENTS == 0:
            builder.event(wire.CONTROL_BUFFER, now, (number // BUFFER_EVENTS + 1, 0), cpu)
            needs_time = [True] * cpus if number else needs_time
        if needs_time[cpu] or builder.at(now) >> 32 != upper[cpu]:
            builder.time_event(now, cpu)
            needs_time[cpu], upper[cpu] = False, builder.at(now) >> 32
        builder.event(wire.code(6, 1), now, (number, 0), cpu)
    return np.array(builder.writer.slots(), np.uint32).reshape(-1, 4)


def times_of(folder: Path, slots: np.ndarray, cpus: int = 2, name: str = "t.kev"):
    """Return the trace of slots and its times in file order."""
    trace = open_kev(write_trace(folder / name, slots, cpus=cpus))
    return trace, trace.events.time_cycles[np.argsort(trace.events.slot)]


def time_slots(slots: np.ndarray) -> np.ndarray:
    return np.flatnonzero(slots[:, 0] & wire.CODE_MASK == wire.CONTROL_TIME)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("clock")


@points(bit=[0, 1, 5, 9, 20, 29], cpus=[1, 2, 3])
def test_one_flipped_time_event_changes_no_time(folder, cpus, bit):
    slots = built(cpus)
    _, truth = times_of(folder, slots, cpus)
    at = time_slots(slots)
    # The first and the last of a CPU have a neighbour on one side only.
    for number in range(1, len(at) - cpus, usually(8, complete=1, thorough=3)):
        broken = slots.copy()
        broken[at[number], 2] ^= np.uint32(1 << bit)
        trace, times = times_of(folder, broken, cpus)
        assert times.tolist() == truth.tolist(), f"TIME {number} at slot {at[number]}"
        assert trace.problems.counts() == {"clock-damaged": 1}


def test_a_silent_cpu_is_believed(folder):
    """CPU 1 sleeps for 30 rollovers; its TIME shows the truth, whatever its stamps suggest."""
    builder = TraceBuilder(cpus=2).time_event(0, 0).time_event(5, 1)
    for number in range(1, 400):
        builder.time_event(number * ROLLOVER // 8, 0)
    builder.time_event(30 * ROLLOVER, 1).event(wire.code(6, 1), 30 * ROLLOVER + 10, cpu=1)
    builder.time_event(30 * ROLLOVER + 20, 1).event(wire.code(6, 1), 50 * ROLLOVER, cpu=0)
    trace, times = times_of(folder, builder.writer.slots())
    assert times[-3] - times[0] == 30 * ROLLOVER + 10
    assert "clock-damaged" not in trace.problems.counts()


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_stamp_before_a_buffer_that_is_half_a_rollover_late_moves_no_other_event(folder, cpus):
    """The TIME behind the BUFFER goes back; to believe it is cheaper than to reject all before it, or after it."""
    slots = built(cpus, 300)
    _, truth = times_of(folder, slots, cpus)
    buffers = np.flatnonzero(slots[:, 0] & wire.CODE_MASK == wire.CONTROL_BUFFER)
    for buffer in buffers[2:-1].tolist():
        broken = slots.copy()
        broken[buffer - 1, 1] ^= np.uint32(1 << 31)
        trace, times = times_of(folder, broken, cpus)
        assert set(np.flatnonzero(times != truth).tolist()) <= {buffer - 1}, f"BUFFER at slot {buffer}"
        assert trace.problems.counts().get("clock-damaged", 0) <= 1, (
            "at most one, to which the stamp may as well be due"
        )


@pytest.mark.thorough
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_flipped_stamp_moves_nothing_but_its_event_and_that_not_far(folder, data):
    cpus = data.draw(st.integers(1, 3))
    slots = built(cpus, 300)
    _, truth = times_of(folder, slots, cpus)
    plain = np.flatnonzero(slots[:, 0] & wire.CODE_MASK == wire.code(6, 1))
    at = data.draw(st.sampled_from(plain[cpus:-cpus].tolist()))
    broken = slots.copy()
    bit = data.draw(st.integers(0, 31))
    # Half a rollover in the first buffer, or the last: without a TIME on both sides the others may be moved instead.
    assume(bit < 31 or BUFFER_EVENTS + 1 < at < len(slots) - BUFFER_EVENTS - cpus)
    broken[at, 1] ^= np.uint32(1 << bit)
    times = times_of(folder, broken, cpus)[1]
    moved = np.flatnonzero(times != truth)
    assert set(moved) <= {at, at - 1}  # a BUFFER before it shares its time
    # Nearer than four times the distance of its neighbours it might be right.
    assert np.all(np.abs(times - truth) <= 4 * 3 * cpus * STEP)


@pytest.mark.thorough
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_all_readers_make_the_same_corrections(folder, data):
    cpus = data.draw(st.integers(1, 3))
    slots = built(cpus, 200)
    at = time_slots(slots)
    for _ in range(data.draw(st.integers(1, 4))):
        slots[data.draw(st.sampled_from(at.tolist())), 2] ^= np.uint32(1 << data.draw(st.integers(0, 31)))
    path = write_trace(folder / "same.kev", slots, cpus=cpus)
    trace = open_kev(path)
    with path.open("rb") as file:
        streamed = np.concatenate([batch.time_cycles for batch in source_of(file, path).events])
    assert sorted(streamed.tolist()) == trace.events.time_cycles.tolist()

    whole, growing = path.read_bytes(), folder / "growing.kev"
    growing.write_bytes(whole[: len(whole) - 16 * (len(slots) * 2 // 3)])
    follower = GrowingFile(growing)
    for left in (len(slots) * 2 // 3, len(slots) // 3, 7, 0):
        growing.write_bytes(whole[: len(whole) - 16 * left])
        followed = follower.read()
    assert followed.events.time_cycles.tolist() == trace.events.time_cycles.tolist()
    assert [(p.kind.slug, p.detail) for p in followed.problems] == [(p.kind.slug, p.detail) for p in trace.problems]


def test_a_stream_holds_no_more_than_its_look_ahead():
    """A CPU that never gets another TIME does not keep the events of the others back for ever."""
    builder = TraceBuilder(cpus=2).time_event(0, 0).time_event(1, 1).time_event(2, 0)
    builder.time_event(300 * ROLLOVER, 1)
    pairs, page = header_and_page(cpus=2)
    file = io.BytesIO()
    write_start(file, pairs, page)
    rest = np.zeros((3 * LOOK_AHEAD_EVENTS, 4), np.uint32)
    rest[:, 0], rest[:, 1] = wire.code(6, 1), np.arange(len(rest))
    slots = np.array(builder.writer.slots(), np.uint32).reshape(-1, 4)
    file.write(slots_as_bytes(np.concatenate((slots, rest)), "little"))
    file.seek(0)
    source = source_of(file, Path("t.kev"))
    first = next(iter(source.events))
    assert len(first.time_cycles) < len(rest)


def test_an_impossible_time_event_is_ignored(folder):
    """Its upper half is no clock's, or its lower half is not what the slot's stamp says."""
    slots = built(1)
    _, truth = times_of(folder, slots, 1)
    for word, bit in ((2, 31), (3, 28)):
        broken = slots.copy()
        broken[time_slots(slots)[5], word] ^= np.uint32(1 << bit)
        trace, times = times_of(folder, broken, 1)
        assert times.tolist() == truth.tolist()
        assert [p.detail for p in trace.problems] == ["a TIME event of CPU 0 holds an impossible value and was ignored"]


@pytest.mark.parametrize(
    ("times", "others", "cpus"), [([], [], 2), ([37], [], 2), ([37, 37], [], 2), ([37], [37], 38), ([5], [37, 5], 6)]
)
def test_cpus_that_the_header_does_not_know_log_time_and_more(times, others, cpus, folder):
    """A kernel writes a TIME event in front of an event of the same CPU; a flipped bit changes one of both."""
    builder = TraceBuilder(cpus=2)
    for number in range(300):
        builder.event(wire.code(6, 1), number * 10, cpu=number % 2)
    for cpu in times:
        builder.time_event(4000, cpu)
    for cpu in others:
        builder.event(wire.code(6, 1), 4010, cpu=cpu)
    assert builder.open(folder).cpu_count == cpus


def test_cpus_and_processes_of_damaged_slots_have_one_lane(folder):
    builder = TraceBuilder(cpus=2).process_name(0, 1, "procnto")
    for pid in range(2, 8):
        builder.process_name(pid, pid, f"p{pid}").event(wire.THREAD_CREATE, pid, (pid, 1))
        builder.state("READY", pid, pid, 1)
    for number in range(300):
        builder.state("RUNNING", 100 + number * 10, 2 + number % 6, 1, number % 2)
        builder.state("READY", 105 + number * 10, 2 + number % 6, 1, number % 2)
    slots = np.array(builder.writer.slots(), np.uint32).reshape(-1, 4)
    slots[100, 0] |= np.uint32(40 << 24)
    slots[120, 2] |= np.uint32(1 << 26)
    slots[140, 3] |= np.uint32(1 << 9)
    trace = times_of(folder, slots)[0]
    assert trace.cpu_count == 2
    doubtful = doubts(trace)
    assert np.flatnonzero(doubtful.cpus).tolist() == [40 + (slots[100, 0] >> 24 & 1)]
    assert trace.threads.pid[doubtful.threads].tolist() == [slots[120, 2], slots[140, 2]]
    assert trace.processes.pid[doubtful.processes].tolist() == [slots[120, 2]]
    lanes = [(info.kind, info.title, info.subtitle) for info in Timeline(trace).infos]
    assert [lane[1] for lane in lanes if lane[0] == "cpu"] == ["CPU 0", "CPU 1"]
    assert lanes[-1] == ("damaged", "damaged", "1 CPU, 1 process, 1 thread")
    assert sum(lane[0] == "thread" for lane in lanes) == 6
    rows = Timeline(trace).events_of(len(lanes) - 1)
    assert {100, 120, 140} <= {int(slot) for slot in trace.events.slot[rows]}


def test_clean_traces_have_no_doubts(folder):
    trace = open_kev(Path(__file__).parents[2] / "sample_traces" / "dense-4cpu.kev")
    assert not doubts(trace)
    assert damage(trace) == []
    assert trusted_window(trace) == trace.window


def test_damage_is_reported_with_its_time(folder):
    slots = built(1)
    slots[time_slots(slots)[7], 2] ^= np.uint32(1 << 20)
    slots[200] = (wire.code(2, 11) | 3 << 30, 5, 0, 0)  # the end of an event that never began
    trace, _ = times_of(folder, slots, 1)
    found = damage(trace)
    assert [problem.kind.slug for _, problem in found] == ["clock-damaged", "orphan-slots"]
    assert found[0][0] == int(trace.events.time_cycles[trace.events.slot == time_slots(slots)[7]][0])
    assert abs(found[1][0] - int(trace.events.time_cycles[trace.events.slot == 201][0])) <= STEP
