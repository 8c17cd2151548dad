from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.base.errors import UsageError
from satview.base.time import Clock, TimeWindow
from satview.session.time_text import Place, parse_place, parse_range, parse_time_ns

CLOCK = Clock(cycles_per_s=2_000_000_000, start_cycles=1_000)
LIMITS = TimeWindow(1_000, 4_000_001_000)  # two seconds


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
    ],
)
def test_times(text, expected_ns):
    assert parse_time_ns(text) == expected_ns


@pytest.mark.parametrize("text", ["", "abc", "1.2.3s", "5 kg", "s", "1e9", "--1s", "\u0663s"])
def test_what_is_no_time(text):
    with pytest.raises(UsageError, match="is no time"):
        parse_time_ns(text)


def test_ranges():
    assert parse_range("1us..2us", CLOCK, LIMITS) == TimeWindow(3_000, 5_000)
    assert parse_range("..1us", CLOCK, LIMITS) == TimeWindow(1_000, 3_000)
    assert parse_range("1s..", CLOCK, LIMITS) == TimeWindow(2_000_001_000, LIMITS.end)


@pytest.mark.parametrize(
    ("text", "why"),
    [("1us", "is no range"), ("2us..1us", "before it begins"), ("5s..6s", "outside"), ("a..b", "no time")],
)
def test_what_is_no_range(text, why):
    with pytest.raises(UsageError, match=why):
        parse_range(text, CLOCK, LIMITS)


def test_places():
    assert parse_place("#1,200", CLOCK, LIMITS, 5_000) == Place(event=1_199)
    assert parse_place("1us", CLOCK, LIMITS, 10) == Place(cycles=3_000)
    assert parse_place("0x1000", CLOCK, LIMITS, 10) == Place(cycles=4_096)
    assert parse_place("5000 cycles", CLOCK, LIMITS, 10) == Place(cycles=5_000)


@pytest.mark.parametrize("text", ["#0", "#11", "#x", "99s", "0x1", "#"])
def test_what_is_no_place(text):
    with pytest.raises(UsageError):
        parse_place(text, CLOCK, LIMITS, 10)


@given(st.text(max_size=60))
def test_any_text_is_a_place_or_a_usage_error(text):
    try:
        place = parse_place(text, CLOCK, LIMITS, 10)
    except UsageError:
        return
    assert (place.cycles is None) != (place.event is None)
