from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from satview.base.errors import UsageError
from satview.base.time import (
    Clock,
    MomentAxis,
    TimePosition,
    TimeWindow,
    format_exactly,
    format_moment,
    moment_text,
    parse_length,
    parse_moment,
    parse_moment_inside,
    parse_position,
    parse_range,
    parse_since_start,
    range_text,
)

CLOCK = Clock(cycles_per_s=2_000_000_000, start_cycles=1_000)
LIMITS = TimeWindow(1_000, 4_000_001_000)  # two seconds
TIMES = np.array([1_000, 3_000, 7_000, 4_000_000_999], np.int64)
AXIS = MomentAxis(CLOCK, LIMITS, TIMES)


@pytest.mark.parametrize(
    ("text", "expected_ns"),
    [
        ("1.2s", 1_200_000_000),
        ("350us", 350_000),
        ("350 \u00b5s", 350_000),
        ("2ms", 2_000_000),
        ("800ns", 800),
        ("3", 3_000_000_000),
        ("1.234 567 890 s", 1_234_567_890),
        (".5s", 500_000_000),
        ("-2ms", -2_000_000),
        ("0", 0),
        ("1 200 ns", 1_200),
        ("1\u202f200\u00a0ns", 1_200),
        ("1\u2009234.562\u20095 ms", 1_234_562_500),
        (".5ms", 500_000),
        ("350.1 \u03bcs", 350_100),
        ("350 US", 350_000),
        ("350 \u039cS", 350_000),
        ("\u22122ms", -2_000_000),
        ("364.583\u2026 ns", Fraction(364_583, 1000)),
    ],
)
def test_times(text, expected_ns):
    assert parse_length(text) == expected_ns


@pytest.mark.parametrize("text", ["", "abc", "1.2.3s", "5 kg", "s", "1e9", "--1s", "\u0663s"])
def test_what_is_no_time(text):
    with pytest.raises(UsageError, match="is not a time"):
        parse_length(text)


@pytest.mark.parametrize(
    ("text", "position"), [("1.2.3s", 4), ("5 kg", 3), ("1 2000 ns", 3), ("3s later", 4), ("12s #3", 5)]
)
def test_what_is_no_time_is_shown_by_its_first_character(text, position):
    with pytest.raises(UsageError, match=f"from character {position} on; write 1.2s"):
        parse_length(text)


@pytest.mark.parametrize("text", ["25%", "#12", "06:19:01"])
def test_a_length_is_not_advised_to_be_a_moment(text):
    lengths = "; write 1.2s, 350us, 2ms or 800ns"
    with pytest.raises(UsageError, match=f"{lengths}$"):
        parse_length(text)
    with pytest.raises(UsageError, match=f"{lengths}$"):
        parse_range(f"1us..+{text}", AXIS)
    with pytest.raises(UsageError, match=f"{lengths}, -5s from the end, #1200, 25% or 06:19:01$"):
        parse_moment("soon", AXIS)


def test_only_times_since_the_start_are_known_before_the_end():
    assert parse_since_start("1 200 ns") == 1_200
    assert parse_since_start("0.0000000004s") == Fraction(4, 10)
    for text in ("-5s", "+5s", "25%", "#1200", "0x10", "7cy", "06:19:01", "soon"):
        assert parse_since_start(text) is None, text


def test_ranges():
    assert parse_range("1us..2us", AXIS) == TimeWindow(3_000, 5_000)
    assert parse_range("..1us", AXIS) == TimeWindow(1_000, 3_000)
    assert parse_range("1s..", AXIS) == TimeWindow(2_000_001_000, LIMITS.end)
    assert parse_range("1us..+1us", AXIS) == TimeWindow(3_000, 5_000)
    assert parse_range("-1us..-0.5us", AXIS) == TimeWindow(LIMITS.end - 2_000, LIMITS.end - 1_000)
    assert parse_range("#2..#3", AXIS) == TimeWindow(3_000, 7_001)


@pytest.mark.parametrize("text", ["100%", "-0s", f"{LIMITS.end}cy"])
def test_the_end_of_the_trace_is_its_last_moment(text):
    assert parse_moment_inside(text, AXIS) == TIMES[-1]
    assert parse_position(text, AXIS).cycles == TIMES[-1]
    assert parse_range(f"{text}..", AXIS) == parse_range("#4..", AXIS) == TimeWindow(LIMITS.end - 1, LIMITS.end)
    assert parse_range(f"0%..{text}", AXIS) == LIMITS


def test_a_moment_outside_says_where_the_trace_ends():
    with pytest.raises(UsageError, match=r"'101%' is outside the trace, whose last event is at 1\.999 999 999 500 s"):
        parse_moment_inside("101%", AXIS)
    with pytest.raises(UsageError, match=r"range '3s\.\.4s' is outside the trace, whose last event is at 1\.999"):
        parse_range("3s..4s", AXIS)
    with pytest.raises(UsageError, match=r"range '\.\.0%' is empty"):
        parse_range("..0%", AXIS)


def test_nothing_of_a_moment_is_rounded_away():
    """At 2 GHz half a nanosecond is a cycle; at 3 Hz a third of a second is one."""
    assert parse_moment("0.5ns", AXIS) == 1_001
    assert parse_moment("1.0000000005s", AXIS) == 2_000_001_001
    slow = MomentAxis(Clock(3, boot_time_s=1_000), TimeWindow(0, 100), TIMES)
    assert parse_moment("1970-01-01 00:16:41.333333333", slow) == 4
    assert parse_moment("1970-01-01 00:16:41.333333334", slow) == 5


@given(st.integers(0, 2**55), st.sampled_from([3, 19_200_000, 10**9, 2_592_000_000]))
def test_a_range_is_read_back_to_the_cycle(start, rate):
    clock, window = Clock(rate, start_cycles=1_000), TimeWindow(start, start + 12_345)
    axis = MomentAxis(clock, TimeWindow(0, 2**56), TIMES)
    assert parse_range(range_text(window, clock), axis) == window
    if 1_000 <= start < 10**10:
        assert (
            parse_range(f"{format_moment(window.start, clock)} to {format_moment(window.end, clock)}", axis) == window
        )


@example(10_000_001_001, 1)
@given(st.integers(-(2**40), 2**40), st.integers(1, 10**12))
def test_a_moment_and_a_length_are_read_back_at_every_rate(cycles, rate):
    clock = Clock(rate, start_cycles=1_000)
    axis = MomentAxis(clock, TimeWindow(0, 2**56), TIMES)
    assert parse_moment(moment_text(cycles, clock), axis) == cycles
    # Beyond 317 years typed times are cut; `moment_text` writes cycles there.
    if clock.start_cycles <= cycles and (cycles - clock.start_cycles) // rate < 10**10:
        assert parse_moment(format_moment(cycles, clock), axis) == cycles
        length = format_exactly(cycles - clock.start_cycles, clock)
        assert parse_moment(length, axis) == cycles


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1us", "is not a range"),
        ("2us..1us", "before it begins"),
        ("1us..1us", "is empty"),
        ("5s..6s", "outside"),
        ("a..b", "not a time"),
    ],
)
def test_what_is_no_range(text, why):
    with pytest.raises(UsageError, match=why):
        parse_range(text, AXIS)


def test_positions():
    assert parse_position("# 4", AXIS) == TimePosition(event=3)
    assert parse_position("1us", AXIS) == TimePosition(cycles=3_000)
    assert parse_position("0x1000", AXIS) == TimePosition(cycles=4_096)
    assert parse_position("5000 cycles", AXIS) == TimePosition(cycles=5_000)


@pytest.mark.parametrize("text", ["#0", "#5", "#x", "99s", "0x1", "#"])
def test_what_is_no_position(text):
    with pytest.raises(UsageError):
        parse_position(text, AXIS)


@given(st.text(max_size=60))
def test_any_text_is_a_position_or_a_usage_error(text):
    try:
        position = parse_position(text, AXIS)
    except UsageError:
        return
    assert (position.cycles is None) != (position.event is None)


def test_moments_of_every_kind():
    assert parse_moment("#2", AXIS) == 3_000
    assert parse_moment("25%", AXIS) == 1_000 + 1_000_000_000
    assert parse_moment("-500ms", AXIS) == LIMITS.end - 1_000_000_000
    assert parse_moment("0x1000", AXIS) == 4_096
    assert parse_moment("7cy", AXIS) == 7
    assert parse_moment("5,000 cycles", AXIS) == 5_000
    assert parse_moment("-7 CY", AXIS) == -7
    assert parse_moment(".5 %", AXIS) == 1_000 + 20_000_000
    assert parse_position("#1 ", AXIS) == TimePosition(event=0)


def test_ranges_of_every_kind():
    assert parse_range("-1s..", AXIS) == TimeWindow(LIMITS.end - 2_000_000_000, LIMITS.end)
    assert parse_range("50%..75%", AXIS) == TimeWindow(2_000_001_000, 3_000_001_000)
    assert parse_range("#2..#3", AXIS) == TimeWindow(3_000, 7_001), "the last event is in it"
    assert parse_range("#2..+80cy", AXIS) == TimeWindow(3_000, 3_080)
    assert parse_range("1 US TO 2 \u00b5s", AXIS) == TimeWindow(3_000, 5_000)
    assert parse_range("2000cy..0x1000", AXIS) == TimeWindow(2_000, 4_096)


def test_time_of_day():
    booted_s = 1_718_000_340  # 2024-06-10 06:19:00 UTC
    clock = Clock(cycles_per_s=1_000_000, start_cycles=1_000_000, boot_time_s=booted_s)
    axis = MomentAxis(clock, TimeWindow(1_000_000, 11_000_000), np.array([1_000_000], np.int64))  # 06:19:01 to 06:19:11
    assert parse_moment("2024-06-10 06:19:03.25", axis) == 3_250_000
    assert parse_moment("06:19:01", axis) == 1_000_000
    assert parse_range("06:19:02..2024-06-10T06:19:04Z", axis) == TimeWindow(2_000_000, 4_000_000)
    for text in ("06:61:00", "2024-13-01 00:00:00"):
        with pytest.raises(UsageError, match="not a time of day"):
            parse_moment(text, axis)
    with pytest.raises(UsageError, match="does not show the time of day"):
        parse_moment("06:19:01", AXIS)


@pytest.mark.parametrize(("length_ns", "text"), [
    (999_999, "12.101 234 567 s"), (1_000_000, "12.101 235 s"), (999_999_999, "12.101 235 s"),
    (1_000_000_000, "12.102 s"),
])  # fmt: skip
def test_a_moment_beside_a_length_has_no_digits_that_the_length_makes_idle(length_ns: int, text: str) -> None:
    """Rounded up: what begins at the moment has begun at the one that is written."""
    clock = Clock(10**9, 500)
    assert format_moment(500 + 12_101_234_567, clock, length_ns) == text
    assert format_moment(500 + 12_101_000_000, clock, 1_000_000) == "12.101 000 s"
