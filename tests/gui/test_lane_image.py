from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from satview.events import states
from satview.gui.colours import THICK, process_colour, value_colour
from satview.gui.swimlane.lane_image import SEEN_INTERRUPT, LanePalette, bands, compose
from satview.gui.theme import DARK, LIGHT
from satview.session.lane_row import LaneRow

ROW = LaneRow(0, 0, 0, 20, False, False, False)
REPLY = states.STATE_BY_NAME["REPLY"].value


def pixels(image):
    return np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), image.bytesPerLine() // 4) & 0xFFFFFF


def draw(values, theme=LIGHT, rows=(ROW,), ratio=1.0, height=20, **more):
    table = np.array(values, np.uint8).reshape(len(rows), -1)
    return pixels(compose(table, rows, LanePalette(theme), 0, height, ratio, **more))


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_thick_and_thin_states(theme):
    picture = draw([states.RUNNING, REPLY], theme)
    parts = bands(20)
    middle = (parts.bar_top + parts.bar_end) // 2
    assert picture[middle].tolist() == [value_colour(states.RUNNING, theme.is_dark), value_colour(REPLY, theme.is_dark)]
    assert picture[parts.bar_top].tolist() == [value_colour(states.RUNNING, theme.is_dark), theme.base]
    assert picture[0].tolist() == [theme.base, theme.base]


def test_something_ran_in_a_pixel_that_waiting_dominates():
    picture = draw([REPLY, REPLY | states.SEEN_RUNNING])
    foot = picture[bands(20).lower_top]
    assert foot.tolist() == [value_colour(REPLY, False), value_colour(states.RUNNING, False)]


def test_event_marks_the_top_of_its_pixel():
    picture = draw([states.RUNNING, states.RUNNING | states.SEEN_EVENT])
    top = picture[bands(20).ticks_top]
    assert top[0] == LIGHT.base
    assert top[1] != LIGHT.base


def test_short_interrupt_shows_in_red():
    middle = draw([0, SEEN_INTERRUPT])[9]
    assert middle[0] == LIGHT.base
    red, green = middle[1] >> 16, middle[1] >> 8 & 0xFF
    assert red > green + 40


def test_hidden_states_show_the_background():
    palette = LanePalette(LIGHT, frozenset({REPLY}))
    picture = pixels(compose(np.array([[REPLY]], np.uint8), (ROW,), palette, 0, 20, 1.0))
    assert set(picture[2:18, 0].tolist()) == {LIGHT.base}


def test_interval_begins_with_a_darker_column():
    picture = draw([states.RUNNING] * 4, edges={0: np.array([2])})
    middle = picture[10]
    assert middle[1] == middle[3] == value_colour(states.RUNNING, False)
    assert middle[2] != middle[1]


def test_two_lanes_with_a_gap_between():
    rows = (ROW, LaneRow(1, 0, 28, 20, False, False, False))
    picture = draw([[states.RUNNING], [states.READY]], rows=rows, height=48)
    assert picture[24, 0] == LIGHT.window
    assert picture[10, 0] == value_colour(states.RUNNING, False)
    assert picture[38, 0] == value_colour(states.READY, False)


def test_two_device_pixels_per_logical_one():
    picture = draw([states.RUNNING] * 6, ratio=2.0)
    assert picture.shape == (40, 6)
    assert picture[20, 0] == value_colour(states.RUNNING, False)


@pytest.mark.parametrize("height", range(8, 65))
@pytest.mark.parametrize("unit", [1.0, 1.5, 2.0])
def test_parts_of_a_lane_lie_in_order_at_any_height(height, unit):
    parts = bands(round(height * unit), unit)
    assert 0 < parts.ticks_top < parts.ticks_end <= parts.bar_top <= parts.inner_top < parts.inner_end <= parts.bar_end
    assert parts.inner_top < parts.lower_top < parts.bar_end < round(height * unit) + 1


@pytest.mark.parametrize("is_dark", [False, True])
def test_every_state_has_a_colour_of_its_own(is_dark):
    colours = {state.name: value_colour(state.value, is_dark) for state in states.STATES}
    assert len(set(colours.values())) == len(colours)
    assert states.RUNNING in THICK
    assert states.READY in THICK


@pytest.mark.parametrize("is_dark", [False, True])
def test_neighbouring_processes_are_far_apart(is_dark):
    def distance(a, b):
        return sum(abs((a >> shift & 0xFF) - (b >> shift & 0xFF)) for shift in (0, 8, 16))

    hues = [process_colour(hue, is_dark) for hue in range(states.PROCESS_HUES)]
    assert len(set(hues)) == len(hues)
    assert min(distance(a, b) for a, b in pairwise(hues)) > 60
