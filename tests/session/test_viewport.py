from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.base.time import TimeWindow
from satview.session.viewport import SHORTEST_CYCLES, Viewport

LIMITS = TimeWindow(1_000, 10_001_000)


@pytest.fixture
def viewport(qapp):
    viewport = Viewport(LIMITS)
    viewport.set_width(1000)
    return viewport


def test_begins_with_everything(viewport):
    assert viewport.window == LIMITS
    assert viewport.is_whole


def test_zoom_keeps_the_moment_under_the_mouse(viewport):
    anchor = 2_501_000  # a quarter from the left
    viewport.zoom(0.1, anchor)
    window = viewport.window
    assert (anchor - window.start) / window.length == pytest.approx(0.25, abs=1 / 1000)


@pytest.mark.parametrize("x", [100, 433, 999])
def test_many_steps_keep_it_too(x):
    """As a wheel does: the moment is read from the pixel at each step."""
    whole = TimeWindow(0, 18_453_864_823)
    viewport = Viewport(whole)
    viewport.set_width(1100)

    def under_mouse():
        return viewport.window.start + x * viewport.window.length // 1100

    first = under_mouse()
    for factor in (*[0.8] * 25, *[1.25] * 20, *[0.8] * 10):
        viewport.zoom(factor, under_mouse())
        position = (first - viewport.window.start) * 1100 / viewport.window.length
        assert abs(position - x) <= 1.5
    elsewhere = viewport.window.start + 300 * viewport.window.length // 1100  # the mouse moved: that is what stays now
    viewport.zoom(0.5, elsewhere)
    assert abs((elsewhere - viewport.window.start) * 1100 / viewport.window.length - 300) <= 1.5


def test_zoom_ends_at_a_few_cycles(viewport):
    for _ in range(100):
        viewport.zoom(0.5, 5_000_000)
    assert viewport.window.length == SHORTEST_CYCLES
    assert viewport.window.contains(5_000_000)


def test_pan_stops_at_the_ends(viewport):
    viewport.zoom(0.1, 5_000_000)
    viewport.pan(-1e6)
    assert viewport.window.start == LIMITS.start
    viewport.pan(1e6)
    assert viewport.window.end == LIMITS.end


def test_window_begins_at_a_whole_pixel(viewport):
    """Else panning by whole pixels would change what every pixel shows."""
    viewport.jump(TimeWindow(1_234_567, 3_234_567))
    cycles_per_px = viewport.window.length // 1000
    assert viewport.window.length % 1000 == 0
    assert viewport.window.start % cycles_per_px == 0
    assert abs(viewport.window.start - 1_234_567) <= cycles_per_px


def test_history_goes_back_and_forward(viewport):
    first = viewport.window
    viewport.jump(TimeWindow(2_000_000, 3_000_000))
    second = viewport.window
    viewport.jump(TimeWindow(4_000_000, 4_500_000))
    viewport.back()
    assert viewport.window == second
    viewport.back()
    assert viewport.window == first
    assert not viewport.can_go_back
    viewport.forward()
    assert viewport.window == second


def test_a_new_view_after_going_back_ends_the_way_forward(viewport):
    viewport.jump(TimeWindow(2_000_000, 3_000_000))
    viewport.back()
    viewport.jump(last := TimeWindow(6_000_000, 7_000_000))
    viewport.forward()
    assert viewport.window == last


def test_one_gesture_is_one_step_of_history(viewport):
    for _ in range(20):
        viewport.zoom(0.9, 5_000_000)
    viewport.back()
    assert viewport.window == LIMITS


def test_reveal_moves_only_if_it_must(viewport):
    viewport.jump(TimeWindow(2_000_000, 3_000_000))
    before = viewport.window
    viewport.reveal(2_500_000)
    assert viewport.window == before
    viewport.reveal(9_000_000)
    assert viewport.window.contains(9_000_000)
    assert viewport.window.length == before.length


@given(
    st.lists(
        st.tuples(st.sampled_from(["zoom", "pan", "jump"]), st.floats(0.01, 50), st.integers(-(10**8), 10**8)),
        max_size=20,
    ),
    st.integers(1, 5000),
)
def test_nothing_beyond_the_trace_is_ever_shown(moves, width_px):
    viewport = Viewport(LIMITS)
    viewport.set_width(width_px)
    for kind, factor, position in moves:
        if kind == "zoom":
            viewport.zoom(factor, position)
        elif kind == "pan":
            viewport.pan(factor - 25)
        else:
            viewport.jump(TimeWindow(position, position + int(factor * 1e5) + 1))
        assert LIMITS.start <= viewport.window.start < viewport.window.end <= LIMITS.end
