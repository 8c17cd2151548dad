"""Kernel buffers by hand: marks, sequence numbers, hand-over, overrun, ring mode, combine events across buffers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.capture.buffers import Buffer, TraceBuffers
from satview.capture.sim.target import target
from satview.events import wire
from satview.events.spec import Release
from tests.capture.made import as_trace, kernel

EVENT = wire.code(6, 5)


class Bench:
    """Buffers with a hand-over that only notes."""

    def __init__(
        self, release: Release = Release.QNX_6, count: int = 3, cpus: int = 1, takes: bool = True, times: bool = True
    ) -> None:
        self.handed: list[Buffer] = []
        self.saved: list[list[int]] = []
        self.takes = takes
        self.buffers = TraceBuffers(target(release, cpus), count, self.hand_over, lambda *_args: times, lambda: None)
        self.time = 5 << 32 | 1000

    def hand_over(self, buffer: Buffer) -> None:
        self.handed.append(buffer)
        if self.takes:
            self.saved.append(buffer.words)
            buffer.empty()

    def put(self, words: tuple[int, ...] = (1, 2), cpu: int = 0, step: int = 10) -> bool:
        self.time += step
        return self.buffers.put(cpu, EVENT, self.time, words)


def slots(words: list[int]) -> np.ndarray:
    return np.array(words, dtype=np.uint32).reshape(-1, 4)


def test_a_buffer_begins_with_buffer_and_a_time_per_cpu() -> None:
    bench = Bench(Release.QNX_7, cpus=2)
    bench.put(cpu=1)
    bench.put(cpu=0)
    bench.put(cpu=1)
    found = slots(bench.buffers.rings[0].current.words)
    kinds = [(int(h) & 0x7FFF, int(h) >> 24) for h in found[:, 0]]
    assert kinds == [
        (wire.CONTROL_BUFFER, 1),
        (wire.CONTROL_TIME, 1),
        (EVENT, 1),
        (wire.CONTROL_TIME, 0),
        (EVENT, 0),
        (EVENT, 1),
    ]
    assert found[0, 1] == found[1, 1] == found[2, 1] == 1010, "one stamp for BUFFER, TIME and their cause"
    assert found[1, 2:].tolist() == [5, 1010]


def test_time_is_read_early_in_6_x() -> None:
    bench = Bench()
    bench.put()
    assert slots(bench.buffers.rings[0].current.words)[1, 1:].tolist() == [1010, 5, 1010 - 0x32C]


@pytest.mark.parametrize(("release", "mark"), [(Release.QNX_6, 714), (Release.QNX_6_6, 709), (Release.QNX_7, 708)])
def test_hand_over_at_the_mark(release: Release, mark: int) -> None:
    bench = Bench(release)
    for _ in range(mark - 2):
        assert not bench.handed
        bench.put()
    assert len(bench.handed) == 1
    first = slots(bench.saved[0])
    assert len(first) == mark
    assert first[0, 2:].tolist() == [1, mark], "sequence number and slots, itself included"
    bench.put()
    assert bench.buffers.rings[0].current.sequence == 2


def test_8_0_ends_buffers_with_cookies_and_keeps_one_ring_per_cpu() -> None:
    bench = Bench(Release.QNX_8, cpus=2)
    for _ in range(1500):
        bench.put(cpu=0)
    bench.put(cpu=1)
    assert [buffer.sequence for buffer in bench.handed] == [1, 2]
    last = slots(bench.saved[0])[-1]
    assert int(last[0]) & 0x7FFF == wire.CONTROL_BUFFER_END
    assert last[2:].tolist() == [0xE6E6E6E6] * 2
    assert slots(bench.saved[0])[0, 3] == len(bench.saved[0]) // 4
    assert bench.buffers.rings[1].current.sequence == 1


def test_8_0_says_that_it_dropped_events() -> None:
    bench = Bench(Release.QNX_8, takes=False)
    fill(bench, 3)
    for buffer in bench.handed:
        buffer.is_busy = True
    assert not bench.put()
    for buffer in bench.handed:
        buffer.is_busy = False
        buffer.empty()
    assert bench.put()
    kinds = [int(h) & 0x7FFF for h in slots(bench.buffers.rings[0].current.words)[:, 0]]
    assert kinds == [wire.CONTROL_BUFFER, wire.CONTROL_DROPPED, wire.CONTROL_TIME, EVENT]


def fill(bench: Bench, buffers: int) -> None:
    while len(bench.handed) < buffers:
        assert bench.put()


def test_waiting_buffers_are_overwritten_by_default() -> None:
    bench = Bench(takes=False)
    fill(bench, 3)
    assert bench.put(), "the oldest waiting buffer is thrown away"
    ring = bench.buffers.rings[0]
    assert ring.lost_buffers == 1
    assert ring.current.index == 0
    assert ring.current.sequence == 4


def test_busy_buffers_are_stepped_over_and_an_event_is_dropped_when_all_are() -> None:
    bench = Bench(takes=False)
    fill(bench, 3)
    bench.handed[0].is_busy = True
    assert bench.put()
    assert bench.buffers.rings[0].current.index == 1, "the logger copies buffer 0"
    bench = Bench(takes=False)
    fill(bench, 3)
    for buffer in bench.handed:
        buffer.is_busy = True
    assert not bench.put()
    assert bench.buffers.dropped_events == 1
    bench.handed[0].is_busy = False
    bench.handed[0].empty()
    assert bench.put()


def test_skip_mode_tries_two_buffers_further() -> None:
    bench = Bench(count=4, takes=False)
    ring = bench.buffers.rings[0]
    ring.skips = True
    fill(bench, 4)
    bench.handed[2].empty()
    assert bench.put()
    assert ring.current.index == 2
    assert ring.lost_buffers == 0


def test_ring_mode_hands_nothing_over_and_dumps_oldest_first() -> None:
    bench = Bench(count=3)
    ring = bench.buffers.rings[0]
    ring.set_mode(True)
    for _ in range(ring.mark * 5):
        bench.put()
    assert not bench.handed
    ordered = ring.oldest_first()
    sequences = [buffer.sequence for buffer in ordered]
    assert sequences == sorted(sequences)
    assert len(sequences) == 3
    assert [slots(buffer.words)[0, 3] for buffer in ordered[:-1]] == [0, 0], "the kernel never fills the number in"


def test_a_mark_reached_in_an_interrupt_waits_until_it_is_over_then_events_are_dropped() -> None:
    bench = Bench()
    bench.buffers.in_interrupt = 1
    passed = sum(bench.put() for _ in range(1200))
    assert not bench.handed
    assert passed == 1014 - 2, "up to the physical end, behind BUFFER and TIME"
    assert bench.buffers.dropped_events == 1200 - passed
    bench.buffers.leave_interrupt(5)
    assert len(bench.handed) == 1


def test_a_combine_event_may_straddle_buffers() -> None:
    bench = Bench(Release.QNX_7)
    for _ in range(708 - 2 - 1):
        bench.put()
    bench.put((1, 2, 3, 4, 5))
    assert len(bench.handed) == 1
    first, second = slots(bench.saved[0]), slots(bench.buffers.rings[0].current.words)
    assert int(first[-1, 0]) >> 30 == 1
    assert [int(h) & 0x7FFF for h in second[:, 0]] == [wire.CONTROL_BUFFER, EVENT, EVENT]
    assert set(second[:, 1].tolist()) == {int(first[-1, 1])}, "one stamp throughout"
    assert [int(h) >> 30 for h in second[1:, 0]] == [2, 3]
    assert second[2, 2:].tolist() == [5, 0]


def test_turnover_makes_a_time_event() -> None:
    bench = Bench(Release.QNX_7)
    bench.put()
    bench.put(step=1 << 32)  # silent for a whole rollover: invisible, as on a target
    bench.put(step=(1 << 32) - 100)  # the low half falls: visible
    kinds = [int(h) & 0x7FFF for h in slots(bench.buffers.rings[0].current.words)[:, 0]]
    assert kinds == [wire.CONTROL_BUFFER, wire.CONTROL_TIME, EVENT, EVENT, wire.CONTROL_TIME, EVENT]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(1, 5000)), max_size=300))
def test_whatever_is_put_can_be_read_back(events: list[tuple[int, int, int]]) -> None:
    """Payloads come back in order, whatever their lengths, however buffers cut them."""
    base = target(Release.QNX_7, 4)
    saved: list[int] = []

    def hand_over(buffer: Buffer) -> None:
        saved.extend(buffer.words)
        buffer.empty()

    buffers = TraceBuffers(replace(base, mark_linear=23), 2, hand_over, lambda *_a: True, lambda: None)
    time, expected = 7 << 32, []
    for cpu, length, step in events:
        time += step
        words = tuple(range(length))
        assert buffers.put(cpu, EVENT, time, words)
        expected.append((cpu, time & 0xFFFFFFFF, list(words) + [0] * (2 - length if length < 2 else length % 2)))
    buffers.rings[0].close(time)
    found: list[tuple[int, int, list[int]]] = []
    for header, stamp, first, second in slots(saved).tolist():
        if header & 0x7FFF != EVENT:
            continue
        if header >> 30 < 2:
            found.append((header >> 24 & 63, stamp, [first, second]))
        else:
            found[-1][2].extend((first, second))
    assert found == expected


def test_flush_hands_over_what_there_is(tmp_path: Path) -> None:
    made, sink = kernel()
    made.trace_event(0x1000000A)
    made.trace_event(0x1000000E)
    assert sink.buffers == 1
    found = sink.slots()
    assert found[0, 3] == len(found) < 708
    made.trace_event(0x1000000B)
    assert not as_trace(made, found, tmp_path).problems.counts()
