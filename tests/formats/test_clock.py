"""The rebuilt clock against the rules, one event at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.formats.kev.clock import ClockChunk, ClockRebuilder
from satview.formats.kev.consensus import ROLLOVER, SLACK, Correction, unwrap, unwrap_segments

UNUSABLE = -1


@dataclass
class Walk:
    """The rules as they read."""

    references: dict[int, int] = field(default_factory=dict)
    times: list[int] = field(default_factory=list)
    ignored: list[int] = field(default_factory=list)

    def take(self, cpu, stamp, value):
        row = len(self.times)
        reference = self.references.setdefault(cpu, self.times[-1] if row else stamp)
        if value is None or value == UNUSABLE:
            if value == UNUSABLE:
                self.ignored.append(row)
            self.times.append(unwrap(reference, stamp))
            self.references[cpu] = max(reference, self.times[-1])
            return
        self.times.append(unwrap(value, stamp))
        self.references[cpu] = value


@st.composite
def events(draw):
    """Events of three CPUs on a clock that makes steps of up to a rollover and a half, with TIME events, some wrong."""
    clock, found = draw(st.sampled_from([1000, 5 * ROLLOVER - 10, 7 * ROLLOVER])), []
    for _ in range(draw(st.integers(1, 40))):
        steps = [0, 1, 1000, SLACK // 2, SLACK, 2 * SLACK, ROLLOVER - SLACK - 1, ROLLOVER + SLACK]
        clock += draw(st.sampled_from(steps))
        kind = draw(st.sampled_from(["plain"] * 4 + ["late", "time", "time", "back", "unusable"]))
        value = {"time": clock, "back": clock - 3 * ROLLOVER, "unusable": UNUSABLE}.get(kind)
        stamp = clock + (7 if kind == "time" else -SLACK // 3 if kind == "late" else 0)
        if value is None or value == UNUSABLE or value >= 0:
            found.append((draw(st.integers(0, 2)), stamp % ROLLOVER, value))
    return found


def rebuilt(given_events, size):
    """Return the clock, and the times it gives (CPU, stamp, value of a TIME or None) in chunks."""
    clock, times = ClockRebuilder(), []
    for begin in range(0, len(given_events), size):
        part = given_events[begin : begin + size]
        out = np.zeros(len(part), np.int64)
        at = np.array([i for i, (_, _, value) in enumerate(part) if value is not None], np.intp)
        chunk = ClockChunk(
            np.array([stamp for _, stamp, _ in part], np.uint32),
            np.array([cpu for cpu, _, _ in part], np.uint8),
            at,
            np.array([part[i][2] for i in at], np.int64),
            np.empty(0, np.intp),
            begin,
        )
        clock.unwrap(chunk, out)
        times += out.tolist()
    return clock, times


@given(events(), st.sampled_from([1, 3, 8, 100]))
def test_clock_follows_the_rules(given_events, chunk):
    clock, times = rebuilt(given_events, chunk)
    walk = Walk()
    for event in given_events:
        walk.take(*event)
    assert times == walk.times
    assert {cpu: clock.references[cpu] for cpu in walk.references} == walk.references
    assert sorted(clock.ignored) == walk.ignored


@pytest.mark.thorough
@given(events(), st.sampled_from([3, 8, 100]))
def test_verdicts_are_the_same_in_chunks_of_any_size(given_events, chunk):
    one_by_one, _ = rebuilt(given_events, 1)
    clock, _ = rebuilt(given_events, chunk)
    for name in ("corrections", "steps", "reseeded", "damaged"):
        key = (lambda entry: (entry.cpu, entry.first_row)) if name == "corrections" else None
        assert sorted(getattr(clock.verdicts(), name), key=key) == sorted(getattr(one_by_one.verdicts(), name), key=key)


def test_two_small_steps_back_are_not_one_of_a_turn():
    """CPU 0 steps back by less than a rollover twice in one chunk, into the rollover below."""
    values = [8 * ROLLOVER + 2000, 7 * ROLLOVER + 3000, 6 * ROLLOVER + 4000, 6 * ROLLOVER + 1000]
    clock, times = rebuilt([(0, value % ROLLOVER, value) for value in values], 2)
    assert times == values
    assert clock.verdicts().steps == []


@pytest.mark.parametrize("chunk", [1, 100])
def test_a_time_before_the_counters_zero_is_a_time(chunk):
    """The stamp of a damaged TIME event is one cycle before its payload of zero; CPU 1 begins there."""
    clock, times = rebuilt([(0, ROLLOVER - 1, 0), (1, ROLLOVER - 1, None), (1, 5, None)], chunk)
    assert times == [-1, -1, 5]
    assert clock.references[1] == 5


@pytest.mark.parametrize("chunk", [1, 2, 100])
def test_only_events_placed_elsewhere_contradict_the_first_time_of_a_cpu(chunk):
    """CPU 2 was placed by its stamps when CPU 0 reported the time; CPU 1 and 0 begin with a TIME."""
    found = [(2, 500, None), (0, 600, 7 * ROLLOVER + 600), (2, 700, 7 * ROLLOVER + 700), (1, 800, 9 * ROLLOVER + 800)]
    clock, times = rebuilt(found, chunk)
    assert times == [500, 7 * ROLLOVER + 600, 7 * ROLLOVER + 700, 9 * ROLLOVER + 800]
    verdicts = clock.verdicts()
    assert verdicts.corrections == [Correction(2, 0, 2, 7)]
    assert verdicts.reseeded == verdicts.damaged == []


@pytest.mark.parametrize("rollovers", [1, 3, 20])
def test_turns_without_a_time_event_are_counted(rollovers):
    clock = np.arange(1, rollovers * 4 + 1) * (ROLLOVER // 4)
    out = np.zeros(len(clock), np.int64)
    stamps = (clock % ROLLOVER).astype(np.uint32)
    ends = unwrap_segments(np.array([0]), stamps, np.arange(len(clock)), np.empty(0, np.intp), out)
    assert out.tolist() == clock.tolist()
    assert ends.tolist() == [clock[-1]]
