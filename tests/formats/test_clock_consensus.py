"""Flipped bits in TIME events: no other event moves by more than the doubt that is reported.

The truth is the file before its bits were flipped.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest

from satview.capture.run import Capture, run
from satview.capture.sim.calls import Sleep
from satview.capture.workloads.registry import Workload
from satview.events import wire
from satview.events.spec import Release
from satview.formats.kev.reader import open_kev, read_start
from satview.store.time_ranges import outside, trusted_part, trusted_window
from satview.store.trace import Trace
from tests.formats.test_damaged_clock import ROLLOVER, STEP, built
from tests.helpers.commands import satview
from tests.helpers.extent import fewer, points, usually
from tests.helpers.kev import TraceBuilder, write_trace

# The lower half of a TIME event is believed to 2^26 cycles; so far a wrong one may move what is placed by it.
LAG_CYCLES = 1 << 26
DAYS = 20  # the bit of the upper word that makes 52 days of half a second at 1 GHz


class Original:
    """A sound file, its slots and the time of each."""

    def __init__(self, path: Path) -> None:
        trace, start = open_kev(path), read_start(path)
        assert not [problem for problem in trace.problems if problem.kind.slug.startswith("clock")]
        self.raw, self.offset = path.read_bytes(), start.offset
        self.order = "<u4" if start.byte_order == "little" else ">u4"
        self.slots = np.frombuffer(self.raw, self.order, len(start.slots) * 4, self.offset).reshape(-1, 4)
        self.times = slot_times(trace, len(self.slots))
        self.time_slots = np.flatnonzero(self.slots[:, 0] & wire.CODE_MASK == wire.CONTROL_TIME)
        self.cpus = self.slots[self.time_slots, 0] >> 24 & 63

    def flipped(self, path: Path, flips: list[tuple[int, int, int]]) -> Path:
        """Write the file with bits flipped: slot, word and bit of each."""
        slots = self.slots.copy()
        for slot, word, bit in flips:
            slots[slot, word] ^= np.array(1 << bit, self.order)
        path.write_bytes(self.raw[: self.offset] + slots.tobytes() + self.raw[self.offset + slots.nbytes :])
        return path


def slot_times(trace: Trace, slots: int) -> np.ndarray:
    """Return the time of the event that begins at each slot, -1 for none."""
    times = np.full(slots, -1, np.int64)
    times[trace.events.slot] = trace.events.time_cycles
    return times


def doubt_of(trace: Trace) -> int:
    """Return the largest doubt that is reported, in cycles."""
    doubtful = [p.detail for p in trace.problems if p.kind.slug in ("clock-doubt", "clock-unproven")]
    return max((int(re.search(r"(\d+) rollovers", text)[1]) for text in doubtful), default=0) * ROLLOVER


def check_flips(original: Original, folder: Path, rng: random.Random) -> bool:
    """Flip 1 to 5 bits; check that all other events are where they were, within the doubt; return whether they are."""
    count, at = rng.randint(1, 5), original.time_slots
    own = at[original.cpus == rng.choice(np.unique(original.cpus).tolist())]
    first = rng.randrange(max(1, len(at) - count + 1)), rng.randrange(max(1, len(own) - count + 1))
    some = rng.choice((
        at[first[0] : first[0] + count], own[first[1] : first[1] + count], own[:count], own[-count:],
        np.array(rng.sample(at.tolist(), min(count, len(at)))),
    )).tolist()  # fmt: skip
    word, bit, is_same = rng.choice((2, 2, 2, 3, 1)), rng.randrange(32), rng.random() < 0.6
    flips = [(slot, word, bit) if is_same else (slot, rng.choice((2, 3)), rng.randrange(32)) for slot in some]
    trace = open_kev(original.flipped(folder / "flipped.kev", flips))
    times = slot_times(trace, len(original.times))
    moved = np.abs(times - original.times)
    moved[(times < 0) | (original.times < 0)] = 0
    moved[some] = 0
    assert moved.max() <= doubt_of(trace) + LAG_CYCLES, (flips, trace.problems.counts())
    return bool(moved.max() <= LAG_CYCLES)


@points(cpus=(1, 2, 3, 4, 8, 18), step=(STEP, 1_000_000, 20_000), release=("6.4.1", "7.1.0", "8.0.0"))
def test_no_other_event_moves_by_more_than_the_doubt(tmp_path, monkeypatch, cpus, step, release):
    monkeypatch.setattr("tests.formats.test_damaged_clock.STEP", step)
    slots = built(cpus, 600, release)
    original = Original(write_trace(tmp_path / "whole.kev", slots, release=release, cpus=cpus))
    rng = random.Random(cpus * step)
    still = [check_flips(original, tmp_path, rng) for _ in range(usually(3, thorough=100, complete=300))]
    assert sum(still) >= 0.9 * len(still)  # hardly ever is there a doubt to make use of


@pytest.mark.thorough
@points(release=fewer(("8.0", "6.x", "6.6", "7.x"), 2), cpus=fewer((4, 1, 2, 18), 2))
def test_so_it_is_in_captures(tmp_path, release, cpus):
    path = tmp_path / "captured.kev"
    assert (
        satview("tracelogger", "-n", "0", "-s", "0.5", "--release", release, "--cpus", cpus, "-f", path).returncode == 0
    )
    original = Original(path)
    rng = random.Random(cpus)
    still = [check_flips(original, tmp_path, rng) for _ in range(usually(4, thorough=60, complete=300))]
    # Many CPUs of 8.0 have one TIME event only, in a buffer of their own that comes last.
    assert sum(still) >= 0.7 * len(still)


def answers(path: Path) -> tuple[object, ...]:
    """Return duration, threads' times, not how far they are trusted, and verdicts as commands print them for a file."""
    described, counted, judged = (
        json.loads(satview(command, path, *options).stdout)
        for command, options in (("info", ["--json"]), ("stats", ["--format", "json"]), ("check", ["--format", "json"]))
    )
    kept = described["duration_ns"], described["buffers"], described["outside"]
    threads = [{name: value for name, value in row.items() if name != "known"} for row in counted["thread"]]
    return *kept, counted["end_ns"], counted["lost_ns"], threads, judged["verdicts"]


@pytest.mark.thorough
@pytest.mark.parametrize("bit", fewer((DAYS, 0), 1))
def test_commands_say_the_same_of_a_file_with_a_stuck_bit(tmp_path, bit):
    """The same bit of five TIME events in a row of one CPU of four; the others go on."""
    path = tmp_path / "captured.kev"
    satview("tracelogger", "-n", "0", "-s", "0.5", "--cpus", 4, "-f", path)
    original, expected = Original(path), answers(path)
    for cpu, number in fewer(((2, 3), (0, 0), (1, -5)), 2):
        own = original.time_slots[original.cpus == cpu]
        some = own[number : number + 5 or None].tolist()
        broken = original.flipped(tmp_path / "stuck.kev", [(slot, 2, bit) for slot in some])  # fmt: skip
        assert answers(broken) == expected
        assert open_kev(broken).problems.counts() == {"clock-damaged": 5}


@pytest.mark.thorough
@pytest.mark.parametrize("cpus", [1, 18])
def test_stamps_of_time_events_move_nothing(tmp_path, cpus):
    """The payload stays sound, so the stamp of the next event shows which of the two is damaged."""
    slots = built(cpus)
    original = Original(write_trace(tmp_path / "whole.kev", slots, cpus=cpus))
    own = original.time_slots[original.cpus == 0]
    for some in (own[:3], own[5:9], own[-4:]):
        broken = original.flipped(tmp_path / "stamps.kev", [(slot, 1, 31) for slot in some.tolist()])
        trace = open_kev(broken)
        moved = np.abs(slot_times(trace, len(slots)) - original.times)
        assert moved.max() <= LAG_CYCLES
        assert trace.problems.counts()["clock-damaged"] == len(some)


def test_lost_buffers_leave_a_doubt(tmp_path):
    """The last TIME of a CPU behind lost buffers may be a rollover late or damaged: nothing else tells."""
    builder = TraceBuilder("8.0.0", cpus=2)
    for number in range(20):
        for cpu in (0, 1):
            builder.event(wire.CONTROL_BUFFER, number * 1_000_000 + cpu, (number + 1 + 3 * (number == 19), 0), cpu)
            builder.time_event(number * 1_000_000 + cpu, cpu).event(wire.code(6, 1), number * 1_000_000 + 10, cpu=cpu)
    slots = np.array(builder.writer.slots(), np.uint32).reshape(-1, 4)
    original = Original(write_trace(tmp_path / "whole.kev", slots, release="8.0.0", cpus=2))
    last = int(original.time_slots[original.cpus == 1][-1])
    trace = open_kev(original.flipped(tmp_path / "late.kev", [(last, 2, 0)]))
    assert (slot_times(trace, len(slots)) - original.times).max() <= doubt_of(trace) == ROLLOVER
    assert trace.problems.counts()["lost-buffers"] == 6


@pytest.mark.parametrize("bit", [0, 11])
def test_a_cpu_that_worked_alone_is_in_doubt(tmp_path, bit):
    """8.0: one TIME event of a CPU whose buffer comes last, beside one CPU with ten; 2,048 rollovers cannot be."""
    builder = TraceBuilder("8.0.0", cpus=2, start=700 * ROLLOVER)
    for number in range(10):
        builder.time_event(number * 1_000_000).event(wire.code(6, 1), number * 1_000_000 + 10)
    builder.time_event(5, 1).event(wire.code(6, 1), 6, cpu=1)
    slots = np.array(builder.writer.slots(), np.uint32).reshape(-1, 4)
    original = Original(write_trace(tmp_path / "whole.kev", slots, release="8.0.0", cpus=2))
    trace = open_kev(original.flipped(tmp_path / "late.kev", [(int(original.time_slots[-1]), 2, bit)]))
    assert (slot_times(trace, len(slots)) - original.times).max() <= doubt_of(trace) == ROLLOVER


def test_all_time_events_of_the_only_cpu_are_another_start(tmp_path):
    slots = built(1)
    original = Original(write_trace(tmp_path / "whole.kev", slots))
    stuck = [(slot, 2, 12) for slot in original.time_slots.tolist()]
    trace = open_kev(original.flipped(tmp_path / "stuck.kev", stuck))
    assert set((slot_times(trace, len(slots)) - original.times).tolist()) == {4096 * ROLLOVER}
    assert not trace.problems.counts()


@pytest.mark.parametrize("cpus", [1, 4])
@pytest.mark.parametrize("pause", [37 * ROLLOVER // 10, 2517 * ROLLOVER + ROLLOVER // 3])
def test_a_pause_of_all_cpus_stays_a_pause(tmp_path, cpus, pause):
    """Of 16 s, or of three hours: 30 TIME events on both sides."""
    builder = TraceBuilder(cpus=cpus)
    for number in range(60):
        now = number * 1_000_000 + (number >= 30) * pause
        builder.time_event(now, number % cpus).event(wire.code(6, 1), now + 10, cpu=number % cpus)
    trace = open_kev(write_trace(tmp_path / "pause.kev", builder.writer.slots(), cpus=cpus))
    assert trace.duration_ns == 59_000_010 + pause
    assert not trace.problems.counts()


@pytest.mark.thorough
def test_what_lies_outside_is_said_and_not_counted(tmp_path):
    """Twenty events, and one after a pause that nothing confirms."""
    builder = TraceBuilder(cpus=1)
    for number in range(20):
        builder.time_event(number * STEP).state("RUNNING", number * STEP + 10, 1 + number % 2, 1)
    builder.time_event(9 * ROLLOVER).state("RUNNING", 9 * ROLLOVER + 5, 3, 1)
    path = write_trace(tmp_path / "late.kev", builder.writer.slots())
    trace = open_kev(path)
    beyond = outside(trace)
    assert (beyond.events, [kind.slug for kind in beyond.reasons]) == (2, ["clock-unproven"])
    part = trusted_part(trace)
    assert (len(part.events), part.window) == (40, trusted_window(trace))
    described = json.loads(satview("info", "--json", path).stdout)
    assert described["duration_ns"] == 19 * STEP + 10
    assert described["outside"] == {
        "events": 2, "start_ns": 9 * ROLLOVER, "end_ns": 9 * ROLLOVER + 5, "reasons": ["clock-unproven"],
    }  # fmt: skip
    counted = json.loads(satview("stats", "--format", "json", path).stdout)
    assert counted["end_ns"] == 19 * STEP + 11
    assert counted["outside"] == described["outside"]
    everything = json.loads(satview("stats", "--format", "json", "--range", "0s..", path).stdout)
    assert everything["end_ns"] == 9 * ROLLOVER + 6
    for command in (["check"], ["stats"], ["info"]):
        assert b"2 events from 38.6" in satview(*command, path).stdout
    exported = satview("export", path, "-o", tmp_path / "events.csv")
    assert b"2 events from 38.6" in exported.stderr
    assert len((tmp_path / "events.csv").read_text().splitlines()) == 43


@pytest.mark.thorough
def test_a_target_that_was_silent_for_a_minute_is_believed(tmp_path):
    """8.0 has no tick: from 1 s to 61 s neither CPU logs anything, and CPU 1 has few TIME events in all."""

    def body():
        for _ in range(1000):
            yield Sleep(1_000_000)
        yield Sleep(60_000_000_000)
        while True:
            yield Sleep(1_000_000)

    workload = Workload("quiet", "", lambda kernel: kernel.spawn("usr/bin/quiet", body), 2, 64_000_000_000)
    run(Capture(workload, release=Release.QNX_8), tmp_path / "quiet.kev")
    trace = open_kev(tmp_path / "quiet.kev")
    assert not trace.problems.counts()
    for cpu in (0, 1):
        seconds = np.sort(trace.events.time_cycles[trace.events.cpu == cpu]) / trace.clock.cycles_per_s
        assert 59 < np.diff(seconds).max() < 61
