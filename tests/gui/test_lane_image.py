from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from PySide6.QtCore import QPointF
from PySide6.QtGui import QImage, QPainter

from satview.events import states
from satview.gui.colours import THICK, process_colour, value_colour
from satview.gui.swimlane.lane_image import SEEN_INTERRUPT, LanePalette, LanePicture, band_edges, bands, image_of
from satview.gui.theme import DARK, LIGHT
from satview.session.lanes.lane_row import LaneRow
from satview.session.settings import PALETTES

ROW = LaneRow(0, 0, 0, 20, False, False, False)
REPLY = states.STATE_BY_NAME["REPLY"].value


def pixels(image):
    return np.frombuffer(image.constBits(), np.uint32).reshape(image.height(), image.bytesPerLine() // 4) & 0xFFFFFF


def whole_picture(picture, height_px):
    """Return all lanes of a picture as one band, on the background."""
    height = max(1, round(height_px * picture.ratio))
    out = np.full((height, picture.values.shape[1]), picture.palette.background, np.uint32)
    top, bottom = band_edges(picture.rows, picture.scroll_px, picture.ratio)
    for lanes in picture.bands([(0, len(picture.rows))]):
        out[max(0, top) : bottom] = lanes[max(0, -top) : max(0, height - top)]
    return out & 0xFFFFFF


def draw(values, theme=LIGHT, rows=(ROW,), ratio=1.0, height=20, **more):
    table = np.array(values, np.uint8).reshape(len(rows), -1)
    return whole_picture(LanePicture(table, rows, LanePalette(theme), 0, ratio, **more), height)


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
    picture = whole_picture(LanePicture(np.array([[REPLY]], np.uint8), (ROW,), palette, 0, 1.0), 20)
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
def test_parts_of_a_lane_are_in_order_at_any_height(height, unit):
    parts = bands(round(height * unit), unit)
    assert 0 < parts.ticks_top < parts.ticks_end <= parts.bar_top <= parts.inner_top < parts.inner_end <= parts.bar_end
    assert parts.inner_top < parts.lower_top < parts.bar_end < round(height * unit) + 1


@pytest.mark.parametrize("is_dark", [False, True])
def test_every_state_has_a_colour_of_its_own(is_dark):
    colours = {state.name: value_colour(state.value, is_dark) for state in states.STATES}
    assert len(set(colours.values())) == len(colours)
    assert states.RUNNING in THICK
    assert states.READY in THICK


def test_processes_are_far_apart():
    """Any two colours of processes, and each from idle and unknown time, light and dark (CIELAB)."""
    hues = [process_colour(hue) for hue in range(states.PROCESS_HUES)]
    others = [value_colour(value, is_dark) for value in (states.IDLE, states.UNKNOWN) for is_dark in (False, True)]
    for position, hue in enumerate(hues):
        for other in (*hues[:position], *others):
            assert np.linalg.norm(seen(hue, "normal") - seen(other, "normal")) > 25, f"{hue:06x} {other:06x}"
    assert process_colour(states.PROCESS_HUES + 3) == hues[3]


@pytest.mark.parametrize("vision", ["deuteranopia", "protanopia"])
def test_processes_are_apart_for_the_colour_blind(vision):
    """No two nearer than 14, where greens and reds are yellows; the busiest two of the dense sample more than 60."""
    colours = [seen(process_colour(hue, "colour-blind"), vision) for hue in range(states.PROCESS_HUES)]
    apart = [np.linalg.norm(one - other) for position, one in enumerate(colours) for other in colours[:position]]
    assert min(apart) > 14
    busiest = [colours[states.process_value(name) - states.FIRST_PROCESS] for name in ("map_update", "sensor_fusion")]
    assert np.linalg.norm(busiest[0] - busiest[1]) > 60


# Machado, Oliveira, Fernandes (2009), severity 1: what a red or green cone that is missing leaves of linear RGB.
_VISION = {
    "normal": np.eye(3),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
}


def seen(colour, vision):
    """Return a colour as CIE L*a*b* of somebody with that vision."""
    encoded = np.array([colour >> 16 & 255, colour >> 8 & 255, colour & 255]) / 255
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    linear = np.clip(_VISION[vision] @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    xyz = xyz / (0.9505, 1, 1.089)
    root = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


@pytest.mark.parametrize("vision", _VISION)
@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("palette", PALETTES)
def test_what_runs_and_what_keeps_it_from_running_can_be_reported_apart(palette, is_dark, vision):
    """RUNNING, READY, MUTEX and interrupts are bars of one thickness: their colours must do, for everybody."""
    names = ("RUNNING", "READY", "MUTEX")
    values = [*(states.STATE_BY_NAME[name].value for name in names), states.INTERRUPT]
    colours = [seen(value_colour(value, is_dark, palette), vision) for value in values]
    distances = [np.linalg.norm(one - other) for one, other in combinations(colours, 2)]
    assert min(distances) >= 15, distances


@pytest.mark.parametrize("vision", _VISION)
@pytest.mark.parametrize("is_dark", [False, True])
def test_kinds_of_waiting_can_be_reported_apart_in_the_palette_for_it(is_dark, vision):
    names = ("RUNNING", "READY", "MUTEX", "SEND", "REPLY", "RECEIVE", "SEM", "CONDVAR", "NANOSLEEP", "INTR")
    colours = [seen(value_colour(states.STATE_BY_NAME[name].value, is_dark, "colour-blind"), vision) for name in names]
    pairs = {
        (a, b): np.linalg.norm(one - other)
        for (a, one), (b, other) in combinations(zip(names, colours, strict=True), 2)
    }
    assert min(pairs.values()) >= 7, min(pairs, key=pairs.get)


def test_every_state_has_a_colour_in_every_palette():
    for palette in PALETTES:
        for state in states.STATES:
            assert value_colour(state.value, False, palette) is not None
        greys = {value_colour(state.value, False, "print") for state in states.STATES} - {None}
        assert sum(rgb >> 16 == rgb >> 8 & 255 == rgb & 255 for rgb in greys) >= 10


@pytest.mark.thorough
def test_a_setting_changes_the_colours(window, view, application, qtbot):
    before = view.grab().toImage()
    application.settings.set("swimlane/palette", "colour-blind")
    assert window.theme.palette == "colour-blind"
    after = view.grab().toImage()
    blue = value_colour(states.RUNNING, False, "colour-blind")
    shown = {after.pixel(x, y) & 0xFFFFFF for x in range(after.width()) for y in range(0, after.height(), 3)}
    assert blue in shown
    assert before != after


@pytest.mark.parametrize("ratio", [1.0, 1.25, 2.0])
def test_bands_are_the_whole_picture(ratio):
    """Nine lanes, scrolled by half of one, drawn part by part where an image of the whole would be."""
    rng = np.random.default_rng(3)
    values, theme = rng.integers(1, 40, (9, 60)).astype(np.uint8), replace(LIGHT, is_hatched=True)
    rows = tuple(LaneRow(i, 0, 21 * i, 20, False, False, False) for i in range(9))
    picture = LanePicture(values, rows, LanePalette(theme), 10, ratio)
    whole = whole_picture(picture, 150)
    cuts = [(0, 2), (2, 3), (3, 9)]
    target = QImage(60, len(whole), QImage.Format.Format_RGB32)
    target.setDevicePixelRatio(ratio)
    target.fill(LIGHT.window)  # between lanes
    painter = QPainter(target)
    for (first, last), band in zip(cuts, picture.bands(cuts), strict=True):
        top, bottom = band_edges(rows[first:last], 10, ratio)
        assert len(band) == bottom - top
        painter.drawImage(QPointF(0, top / ratio), image_of(band, ratio))
    painter.end()
    assert np.array_equal(pixels(target), whole)
    room = np.zeros((bottom - top, 60), np.uint32)
    (again,) = picture.bands([(3, 9)], [room])
    assert again is room
    assert np.array_equal(room, band)
