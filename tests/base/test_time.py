"""Clock arithmetic is exact, windows keep their anchor, times read well."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.base.time import NS_PER_S, Clock, TimeWindow, format_duration, format_exactly, format_time

RATES = st.integers(1, 20_000_000_000)
CYCLES = st.integers(-(2**61), 2**61)


@given(RATES, CYCLES, st.integers(-(2**40), 2**40) | st.integers(-(2**37), 2**37))
def test_nanoseconds_are_the_exact_quotient_rounded_down(rate, start, step):
    clock = Clock(rate, start)
    exact = Fraction(step * NS_PER_S, rate)
    assert clock.ns(start + step) == exact.__floor__()
    limit = (2**63 - 1) // NS_PER_S - 1
    if abs(exact) < limit * NS_PER_S:
        assert clock.ns_array(np.array([start + step])).tolist() == [exact.__floor__()]
    else:
        assert abs(clock.ns_array(np.array([start + step]))[0]) >= limit * NS_PER_S


@given(st.integers(1, 9_000_000_000), st.integers(0, 2**40), st.lists(st.integers(-(2**50), 2**50)))
def test_cycles_of_many_times_are_those_of_each(rate, start, ns):
    clock = Clock(rate, start)
    assert clock.cycles_array(np.array(ns, np.int64)).tolist() == [clock.cycles(each) for each in ns]


@given(RATES, st.integers(0, 2**40), st.integers(0, 2**50))
def test_cycles_of_a_time_is_the_first_cycle_not_before_it(rate, start, ns):
    clock = Clock(rate, start)
    cycles = clock.cycles(ns)
    assert Fraction((cycles - start) * NS_PER_S, rate) >= ns > Fraction((cycles - 1 - start) * NS_PER_S, rate)
    assert clock.cycles_of(ns) * NS_PER_S >= ns * rate


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**9), st.floats(0.01, 100), st.floats(0, 1))
def test_zooming_keeps_the_anchor_in_position(start, length, factor, share):
    window = TimeWindow(start, start + length)
    anchor = start + round(length * share)
    zoomed = window.zoomed(factor, anchor)
    assert zoomed.length == max(1, round(length * factor))
    position = (anchor - window.start) / window.length
    assert abs((anchor - zoomed.start) - zoomed.length * position) <= 1


@given(*[st.integers(-1000, 1000)] * 2, st.integers(1, 500), st.integers(1, 500))
def test_a_clamped_window_is_within_the_limits(start, limit_start, length, limit_length):
    limits = TimeWindow(limit_start, limit_start + limit_length)
    inside = TimeWindow(start, start + length).clamped(limits)
    assert limits.start <= inside.start < inside.end <= limits.end
    assert inside.length == min(length, limit_length)


def test_an_empty_window_is_refused():
    with pytest.raises(ValueError, match="empty window"):
        TimeWindow(5, 5)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (350, "350 ns"),
        (1_204, "1.204 \N{MICRO SIGN}s"),
        (12_345_678, "12.35 ms"),
        (2_500_000_000, "2.500 s"),
        (-1_500_000, "-1.500 ms"),
        (123_456_000_000, "123.5 s"),
    ],
)
def test_durations_for_people(ns, text):
    assert format_duration(ns) == text


@pytest.mark.parametrize(
    ("ns", "resolution_ns", "text"),
    [
        (1_234_567_890, 1, "1.234 567 890 s"),
        (1_234_567_890, 1_000, "1.234 567 s"),
        (1_234_567_890, 1_000_000, "1.234 s"),
        (-5_000_000, 1, "-0.005 000 000 s"),
    ],
)
def test_times_in_groups_of_three(ns, resolution_ns, text):
    assert format_time(ns, resolution_ns) == text


def test_wall_time_is_boot_time_plus_the_counter():
    clock = Clock(1000, 0, boot_time_s=1_000_000_000)
    assert clock.wall_time(60_000).isoformat() == "2001-09-09T01:47:40+00:00"
    assert Clock(1000, 0).wall_time(0) is None
    assert Clock(1000, 0, 1, is_absolute=False).wall_time(0) is None
    assert Clock(1, 0, 1).wall_time(2**62) is None


@pytest.mark.parametrize(
    ("cycles", "rate", "expected"),
    [
        (2_409_125, 2_000_000_000, "1.204 562 5 ms"),
        (7, 19_200_000, "364.583\u2026 ns"),  # 364.58333...
        (-5_500, 1_000_000_000, "-5.5 \u00b5s"),
        (1_000_000_000, 1_000_000_000, "1 s"),
        (3_600_000_000_001, 1_000_000_000, "3600.000 000 001 s"),
        (1, 2_600_000_000, "0.384\u2026 ns"),
        (1, 2_500_000_000, "0.4 ns"),
        (0, 3, "0 ns"),
        (999_999_999, 1_000_000_000, "999.999 999 ms"),
    ],
)
def test_lengths_with_nothing_rounded_away(cycles, rate, expected):
    assert format_exactly(cycles, Clock(rate)) == expected


@given(cycles=st.integers(0, 2**62), rate=st.sampled_from([1_000, 19_200_000, 1_000_000_000, 2_592_000_000]))
def test_an_exact_length_can_be_read_back(cycles, rate):
    text = format_exactly(cycles, Clock(rate)).replace(" ", "")
    number, is_cut = re.match("[0-9.]+", text)[0], "\u2026" in text
    unit = {"s": 10**9, "ms": 10**6, "\u00b5s": 10**3, "ns": 1}[text[len(number) + is_cut :]]
    exact = Fraction(cycles * 10**9, rate)
    assert 0 <= exact - Fraction(number) * unit < Fraction(1, 1000) if is_cut else exact == Fraction(number) * unit


def test_a_wall_clock_to_the_nanosecond():
    exact = Clock(1_000_000_000, 0, 1_718_000_000, boot_rest_ns=250_000_000)
    assert exact.wall_time(500_000_000).isoformat() == "2024-06-10T06:13:20.750000+00:00"
