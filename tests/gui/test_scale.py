from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.base.time import Clock, TimeWindow
from satview.gui.swimlane.scale import TimeScale, step_ns, tick_text, ticks

GHZ = Clock(1_000_000_000)


@given(st.integers(0, 2**62), st.integers(1, 2**50), st.integers(1, 8000), st.floats(0, 1))
def test_time_to_pixel_and_back(start, length, width_px, share):
    scale = TimeScale(TimeWindow(start, start + length), width_px)
    x = share * width_px
    back = scale.x(scale.cycles(x))
    assert x - scale.px_per_cycle - 1e-6 * width_px <= back <= x + 1e-6 * width_px + 1e-9


def test_far_away_moments_stay_drawable():
    scale = TimeScale(TimeWindow(0, 10), 1000)
    assert scale.x(2**62) == 1e6
    assert scale.x(-(2**62)) == -1e6


@pytest.mark.parametrize(
    ("ns", "step", "text"),
    [
        (1_250_000_000, 50_000_000, "1.25 s"),
        (350_000, 10_000, "350 \u00b5s"),
        (350_500, 500, "350.5 \u00b5s"),
        (0, 1, "0 ns"),
        (1_000_000_000, 1_000_000_000, "1 s"),
        (-5_000, 1_000, "-5 \u00b5s"),
        (1_234_567_890, 10, "1.234 567 89 s"),
    ],
)
def test_labels(ns, step, text):
    assert tick_text(ns, step) == text


@given(st.integers(-(10**9), 10**15), st.integers(8, 10**14), st.integers(100, 4000))
def test_ticks_have_room_and_cover_the_window(start, length, width_px):
    clock = Clock(1_000_000_000)
    scale = TimeScale(TimeWindow(start, start + length), width_px)
    found = ticks(scale, clock)
    labelled = [tick.x for tick in found if tick.text]
    assert all(b - a >= 100 for a, b in pairwise(labelled))
    assert len(found) <= width_px / 10 + 50
    texts = [tick.text for tick in found if tick.text]
    assert len(set(texts)) == len(texts)


def test_steps_are_round():
    for length in (10, 333, 10_000, 7_777_777, 10**12):
        step = step_ns(TimeScale(TimeWindow(0, length), 1000), GHZ)
        assert str(step).rstrip("0") in ("1", "2", "5")


def test_single_cycles_of_a_slow_clock():
    """At 3.3 MHz a cycle is 303 ns: ticks are on nanoseconds, not on cycles."""
    found = ticks(TimeScale(TimeWindow(0, 10), 1000), Clock(3_300_000))
    assert found[0].x == 0
    assert found[1].x == pytest.approx(found[2].x / 2)
