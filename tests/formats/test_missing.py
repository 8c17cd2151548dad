"""Silence is unknown: slots cut out inside of buffers, and events that one flipped bit took away."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from satview.capture.logger_options import LoggerOptions
from satview.capture.run import Capture, run
from satview.events import states, wire
from satview.events.spec import Release
from satview.formats.kev.reader import open_kev, read_start
from satview.formats.kev.writer import slots_as_bytes
from satview.linkage.rows import rows_of_codes
from satview.store.losses import EVERY_CPU, losses
from satview.timeline.lane_info import LaneKind
from satview.timeline.lane_tree import Timeline
from tests.helpers.kev import TraceBuilder

INT_EXIT = wire.code(3, 2)


@cache
def capture(release, is_ring=False):
    """Return the head of a capture of 250 ms, and its slots, (n, 4) words."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "whole.kev"
        options = LoggerOptions(iterations=0, kernel_buffers=64, is_ring=is_ring)
        run(Capture("automotive", options=options, release=release, duration_ns=250_000_000), path)
        start = read_start(path)
        return path.read_bytes()[: start.offset], np.array(start.slots.read(0, len(start.slots)))


def changed(folder, release, change, *, is_ring=False):
    head, slots = capture(release, is_ring)
    path = folder / "changed.kev"
    path.write_bytes(head + slots_as_bytes(change(slots.copy()), "little"))
    return open_kev(path)


def values_at(timeline, kind, time, cpu):
    """Return the lane values of the lanes of a kind and CPU at a moment."""
    lanes = [timeline.lane(info.index).spans for info in timeline.infos if info.kind is kind and info.cpu == cpu]
    return {int(spans.value[np.searchsorted(spans.start_cycles, time, side="right") - 1]) for spans in lanes}


@pytest.mark.parametrize(
    ("release", "is_ring"), [(Release.QNX_7, False), (Release.QNX_8, False), (Release.QNX_7, True)]
)
def test_slots_cut_out_inside_of_buffers_leave_unknown_time(release, is_ring, tmp_path):
    first, count = 2500, 4000
    trace = changed(tmp_path, release, lambda slots: np.delete(slots, slice(first, first + count), 0), is_ring=is_ring)
    events, timeline, lost = trace.events, Timeline(trace), losses(trace)
    running, silent = rows_of_codes(trace, wire.THREAD_RUNNING), []
    for cpu in range(trace.cpu_count):
        own = np.flatnonzero(events.cpu == cpu)
        longest = int(np.argmax(np.diff(events.time_cycles[own])))
        start, end = events.time_cycles[own[longest : longest + 2]].tolist()
        if (end - start) / trace.clock.cycles_per_s < 0.04:
            continue
        silent.append(cpu)
        # Nobody runs in the middle of it on this CPU, and nothing is handled.
        middle = (start + end) // 2
        assert any(before < middle < behind and of in (cpu, EVERY_CPU) for before, behind, of in lost.tolist())
        assert values_at(timeline, LaneKind.CPU, middle, cpu) == {states.UNKNOWN}
        nothing = {states.UNKNOWN} if release is Release.QNX_7 else {0}  # 8.0 logs deliveries, which last for no time
        assert values_at(timeline, LaneKind.INTERRUPTS, middle, cpu) <= nothing
        # Behind it events belong to nobody until the CPU shows who runs on it.
        shown = running[(running > own[longest]) & (events.cpu[running] == cpu)]
        rows = own[(own > own[longest]) & (own < (int(shown[0]) if len(shown) else len(events)))]
        assert not events.thread[rows[events.code[rows] >> 10 == wire.WireClass.KER_CALL]].any()
    assert len(silent) == trace.cpu_count if release is Release.QNX_7 else silent


@pytest.mark.parametrize("bits", [0x3FF, 0x7C00, 0x3F000000], ids=["event", "class", "cpu"])
@pytest.mark.parametrize("release", [Release.QNX_7, Release.QNX_8])
def test_a_flipped_bit_loses_no_event(release, bits, tmp_path):
    """Simple events only: of one that has several slots the others would not find their first."""
    _, slots = capture(release)
    simple = np.flatnonzero(
        (slots[:, 0] >> wire.STRUCT_SHIFT == 0) & (slots[:, 0] >> 10 & 31 != wire.WireClass.CONTROL)
    )
    rng = np.random.default_rng(bits)
    hit = rng.choice(simple, 60, replace=False)
    masks = np.uint32(1) << rng.choice([bit for bit in range(32) if bits >> bit & 1], 60).astype(np.uint32)

    def flip(slots):
        slots[hit, 0] ^= masks
        return slots

    whole, trace = changed(tmp_path, release, lambda slots: slots), changed(tmp_path, release, flip)
    empty = int(np.count_nonzero((slots[hit, 0] ^ masks) == 0))
    assert len(trace.events) == len(whole.events) - empty
    assert set(trace.events.slot.tolist()) >= set(hit.tolist()) - set(hit[(slots[hit, 0] ^ masks) == 0].tolist())
    Timeline(trace)


def test_a_buffer_from_which_slots_are_missing_lost_events_too(tmp_path):
    builder = TraceBuilder()
    for number in range(3):
        builder.event(wire.CONTROL_BUFFER, number * 100, (number + 1, 6 if number == 1 else 4))
        builder.time_event(number * 100)
        for step in (1, 2) if number != 1 else (1, 80):
            builder.event(wire.code(6, 1), number * 100 + step)
    trace = builder.open(tmp_path)
    assert trace.problems.counts() == {"buffer-length": 1}
    assert losses(trace).tolist() == [[builder.at(101), builder.at(180), EVERY_CPU]]


def test_an_interrupt_without_its_exit_ends_where_threads_run_again(tmp_path):
    _, slots = capture(Release.QNX_7)
    exits = np.flatnonzero((slots[:, 0] & wire.CODE_MASK) == INT_EXIT)
    flipped = int(exits[len(exits) // 3])

    def flip(slots):
        slots[flipped, 0] ^= 0x40
        return slots

    whole, trace = changed(tmp_path, Release.QNX_7, lambda slots: slots), changed(tmp_path, Release.QNX_7, flip)
    assert trace.problems.counts() == {"unknown-events": 1, "contradiction": 1}
    cpu = int(slots[flipped, 0] >> wire.CPU_SHIFT & wire.CPU_MASK)
    lengths = []
    for each in (whole, trace):
        timeline = Timeline(each)
        lane = next(info for info in timeline.infos if info.kind is LaneKind.INTERRUPTS and info.cpu == cpu)
        spans = timeline.lane(lane.index).spans
        length = np.append(spans.start_cycles[1:], spans.end_cycles) - spans.start_cycles
        lengths.append(int(length[spans.value == states.INTERRUPT].sum()))
    assert 0 <= lengths[0] - lengths[1] < 100_000
    assert len(losses(trace)) == 1


def test_a_thread_does_not_run_on_where_its_cpu_runs_another(tmp_path):
    builder = TraceBuilder().time_event(0)
    builder.state("RUNNING", 10, 2, 1).state("RUNNING", 200, 3, 1)  # what ended the first run is damaged
    trace = builder.state("RECEIVE", 900, 2, 1).event(wire.code(6, 1), 1000).open(tmp_path)
    timeline = Timeline(trace)
    lanes = {info.thread: timeline.lane(info.index).spans for info in timeline.infos if info.kind is LaneKind.THREAD}
    first = lanes[int(np.flatnonzero(trace.threads.pid == 2)[0])]
    receive = states.STATE_BY_NAME["RECEIVE"].value
    assert first.value.tolist()[1:] == [states.RUNNING, states.UNKNOWN, receive]
    assert (first.start_cycles[1:] - builder.start).tolist() == [10, 200, 900]
    assert (
        sum(states.RUNNING in spans.value[spans.start_cycles <= builder.at(500)][-1:] for spans in lanes.values()) == 1
    )
