"""What a sample of a file shows is what the whole file shows, or nothing."""

from __future__ import annotations

import numpy as np
import pytest

from satview.capture.run import make_tile, write_tiles
from satview.events import wire
from satview.formats.kev import sampling
from satview.formats.kev.consensus import ROLLOVER
from satview.formats.kev.header import slots_as_bytes
from satview.formats.kev.reader import open_kev, read_start
from satview.timeline.lane_tree import LaneKind, Timeline
from satview.timeline.state_lanes import preview_of
from tests.benchmarks.made_traces import make_file
from tests.helpers.kev import write_trace

SLOTS = 60_000


@pytest.fixture(autouse=True)
def small_files_are_sampled(monkeypatch):
    monkeypatch.setattr(sampling, "LEAST_SLOTS", 10_000)
    monkeypatch.setattr(sampling, "SAMPLE_LENGTH", 256)


def times_by_slot(path):
    """Return (time, CPU) of every event of the whole file by its first slot."""
    events = open_kev(path).events
    return dict(zip(events.slot.tolist(), zip(events.time_cycles.tolist(), events.cpu.tolist(), strict=True),
                    strict=True))  # fmt: skip


def sampled_times(sample):
    """Return (time, CPU) of the sampled events whose times are sure, by the slot in the file."""
    events = sample.trace.events
    slot = sample.first_slot[sample.position] + events.slot - sample.position * sampling.SAMPLE_LENGTH
    known = sample.is_timed[sample.position]
    times = zip(events.time_cycles[known].tolist(), events.cpu[known].tolist(), strict=True)
    return dict(zip(slot[known].tolist(), times, strict=True))


def rewritten(path, change):
    """Write the file again after a function has changed its slots, (n, 4) words."""
    start = read_start(path)
    slots = np.array(start.slots.read(0, len(start.slots)))
    head = path.read_bytes()[: start.offset]
    slots = change(slots)
    path.write_bytes(head + slots_as_bytes(slots, "little"))
    return path


@pytest.mark.parametrize(("kind", "cpus"), [("mixed", 4), ("states", 2), ("arm", 18)])
def test_sampled_events_have_the_times_of_the_whole_file(tmp_path, kind, cpus):
    path = make_file(tmp_path / "made.kev", SLOTS, cpus=cpus, kind=kind)
    sample = sampling.sampled(path)
    found, whole = sampled_times(sample), times_by_slot(path)
    assert sample.is_timed.all()
    assert len(sample.is_timed) >= 50
    assert {slot: whole[slot] for slot in found} == found
    assert min(found) == 0
    assert max(found) > SLOTS * 0.9


@pytest.mark.thorough
def test_samples_of_many_cpus_that_are_rollovers_apart(tmp_path, monkeypatch):
    """18 CPUs at 2.6 GHz, wide, 12 s in 12 samples: all clocks go around between two, each CPU by its own TIME."""
    monkeypatch.setattr(sampling, "SAMPLE_LENGTH", 1024)
    monkeypatch.setattr(sampling, "SAMPLES", 5)
    path = tmp_path / "long.kev"
    write_tiles(path, 400_000, make_tile(cpus=18, is_wide=True))
    sample = sampling.sampled(path)
    found, whole, events = sampled_times(sample), times_by_slot(path), sample.trace.events
    assert (len(sample.is_timed), sample.is_timed.all()) == (12, True)
    assert np.diff(events.time_cycles).max() > ROLLOVER
    # A BUFFER event comes before the TIME of its CPU; nothing is drawn of it.
    drawn = events.code != wire.CONTROL_BUFFER
    slots = (sample.first_slot[sample.position] + events.slot % 1024)[drawn].tolist()
    assert len(slots) > 3_000
    assert {slot: whole[slot] for slot in slots} == {slot: found[slot] for slot in slots}


def test_what_is_said_to_run_runs_in_the_whole_file(tmp_path):
    path = make_file(tmp_path / "made.kev", SLOTS, threads=40, cpus=3)
    preview, timeline = preview_of(sampling.sampled(path)), Timeline(open_kev(path))
    lanes = {info.cpu: timeline.lane(info.index) for info in timeline.infos if info.kind is LaneKind.CPU}
    assert preview.window == timeline.trace.window
    for cpu, runs in enumerate(preview.cpus):
        assert len(runs.value) > 100
        middles = (runs.start_cycles + runs.end_cycles) // 2
        assert [lanes[cpu].at(at).value for at in middles.tolist()] == runs.value.tolist()


def test_a_silence_of_several_rollovers_between_positions(tmp_path):
    path = make_file(tmp_path / "made.kev", SLOTS)
    silence = 3 * ROLLOVER + ROLLOVER // 3

    def quiet(slots):
        # All CPUs are silent before the slot in the middle; the kernel then writes a TIME for each.
        at = next(row for row in range(SLOTS // 2, SLOTS) if slots[row, 0] >> 30 == 0)
        clock = int(open_kev(path).events.time_cycles[-1]) // ROLLOVER * ROLLOVER
        new = (int(slots[at, 1]) + clock + silence) & ~0
        times = [[wire.CONTROL_TIME | cpu << 24, new & 0xFFFFFFFF, new >> 32, new & 0xFFFFFFFF] for cpu in range(4)]
        late = slots[at:].copy()
        late[:, 1] += np.uint32(silence & 0xFFFFFFFF)
        return np.concatenate((slots[:at], np.array(times, np.uint32), late))

    rewritten(path, quiet)
    sample = sampling.sampled(path)
    found, whole = sampled_times(sample), times_by_slot(path)
    assert max(time for time, _ in whole.values()) - min(time for time, _ in whole.values()) > silence
    assert sample.is_timed.any()
    assert {slot: whole[slot] for slot in found} == found


def test_nothing_is_said_where_a_time_event_is_damaged(tmp_path):
    path = make_file(tmp_path / "made.kev", SLOTS)

    def damage(slots):
        slots[300, :2] = wire.CONTROL_TIME, slots[300, 1]
        slots[300, 2:] = 999, slots[300, 1]  # 999 rollovers later than its neighbours
        return slots

    assert sampling.sampled(path) is not None
    assert sampling.sampled(rewritten(path, damage)) is None


def test_nothing_is_said_where_blocks_are_out_of_order(tmp_path):
    path = make_file(tmp_path / "made.kev", SLOTS)
    swapped = rewritten(path, lambda slots: np.concatenate((slots[30_000:], slots[:30_000])))
    assert sampling.sampled(swapped) is None


def test_small_files_and_other_formats_are_not_sampled(tmp_path, monkeypatch):
    path = make_file(tmp_path / "made.kev", SLOTS)
    monkeypatch.setattr(sampling, "LEAST_SLOTS", SLOTS * 2)
    assert sampling.sampled(path) is None
    other = tmp_path / "text.txt"
    other.write_bytes(b"no trace " * 1_000_000)
    assert sampling.sampled(other) is None
    assert sampling.sampled(tmp_path / "missing.kev") is None


@pytest.mark.parametrize("release", ["7.1.0", "8.0.0"])
def test_lost_buffers_that_the_positions_show_of(tmp_path, release):
    """Buffers of 300 slots, every fifth followed by a loss of two; 8.0 has one CPU here, and drops events too."""
    rows, sequence, lost = [], 0, []
    for number in range(120):
        sequence += 1 if number % 5 else 3
        if number and number % 5 == 0:
            lost.append(number * 300_000)
        time = number * 300_000
        rows.append([wire.CONTROL_BUFFER, time, sequence, 300])
        rows.append([wire.CONTROL_TIME, time, 0, time])
        rows += [[wire.THREAD_RUNNING, time + step * 1000, 7, 1 + step % 2] for step in range(1, 299)]
    if release == "8.0.0":
        rows[40] = [wire.CONTROL_DROPPED, rows[40][1], 0, 0]
        lost.append(rows[40][1])
    path = write_trace(tmp_path / "lossy.kev", np.array(rows, np.uint32), release)
    sample = sampling.sampled(path)
    exact = Timeline(open_kev(path)).lost_marks
    assert sorted(exact[:, 1].tolist()) == sorted(lost)
    found = sample.lost_cycles.tolist()
    assert len(found) >= 4  # three of ten buffers are in one of the samples
    assert set(found) <= set(lost)
    assert preview_of(sample).lost_marks[:, 1].tolist() == found
    assert sample.trace.problems.counts().keys() <= {"lost-buffers", "lost-events"}, "a sample cuts buffers itself"
