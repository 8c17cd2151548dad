"""Frames of a view that moves: what there is no time for shows its last picture, and at rest all is exact."""

from __future__ import annotations

import random
from math import inf

import numpy as np
import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFont, QImage, QPainter

from satview.base.time import TimeWindow
from satview.gui.swimlane import text
from satview.gui.swimlane.frames import Band, BandPicture, BandPictures, Cost, covered, draw_band
from satview.gui.swimlane.lane_image import image_of
from satview.gui.swimlane.lane_source import Frame, LaneRequest
from satview.gui.swimlane.scale import TimeScale
from satview.gui.swimlane.text import FittedTexts, IntervalText, LaidText, TextSheet, draw_placed, place_texts
from satview.gui.theme import DARK, LIGHT
from satview.session.lanes.lane_row import LaneRow
from tests.helpers.extent import usually

BLACK, RED = 0xFF000000, 0xFFFF0000
LIMITS = TimeWindow(-10_000, 10_000)


def screen(view):
    """Return what is on the screen of a view, which takes pictures otherwise by painting again."""
    store, ratio = view.backingStore().paintDevice(), view.devicePixelRatioF()
    corner, size = view.mapTo(view.window(), view.rect().topLeft()) * ratio, view.size() * ratio
    return store.copy(corner.x(), corner.y(), size.width(), size.height())


def forget(view):
    view.lanes.pictures.show([], object())


def move(rng, view, viewport):
    """Pan, zoom, jump or scroll, by chance."""
    kind = rng.randrange(6)
    if kind < 2:
        viewport.pan(rng.uniform(-0.4, 0.4))
    elif kind < 4:
        window = viewport.window
        viewport.zoom(rng.choice([0.5, 0.9, 1.1, 2.0]), rng.randrange(window.start, window.end))
    elif kind == 4:
        start = rng.randrange(viewport.limits.start, viewport.limits.end - 100)
        viewport.jump(TimeWindow(start, start + rng.randrange(100, viewport.limits.length)))
    else:
        view.scroll_to(rng.randrange(200))


@pytest.fixture
def slow(window, qapp):
    """The view of a machine that has no time for anything, on six lanes of which four show at a time."""
    window.session.opened.lanes.set_lane_height(90)
    view = window.workspace.area.view
    view.repaint()
    view.frame_s = 0.0
    return view


@pytest.mark.thorough
def test_a_view_at_rest_shows_what_one_painted_at_once_shows(slow, window, qtbot, qapp):
    viewport, pictures, unsettled = window.session.opened.viewport, slow.lanes.pictures, 0
    for seed in range(usually(1, thorough=5, complete=20)):
        rng = random.Random(seed)
        for _ in range(10):
            for _ in range(rng.randrange(1, 5)):
                move(rng, slow, viewport)
                qapp.processEvents()
                unsettled += not slow.is_settled
            # Exact values come when the view has rested, and are painted in one more frame.
            qtbot.waitUntil(lambda: slow.is_settled and slow.source.is_refined and not pictures._outdated_bands)
            found = screen(slow)
            forget(slow)
            slow.repaint()
            assert screen(slow) == found
    assert unsettled > 10


@pytest.mark.thorough
def test_pictures_for_files_are_exact_while_the_view_moves_and_other_colours_do_not_wait(slow, window, qapp):
    window.session.opened.viewport.zoom(0.5, window.session.opened.trace.clock.cycles(3_000))
    qapp.processEvents()
    assert not slow.is_settled
    moving, on_screen = slow.grab().toImage(), screen(slow)
    forget(slow)
    assert slow.grab().toImage() == moving
    assert moving.convertToFormat(on_screen.format()) != on_screen
    window.session.opened.viewport.zoom(0.5, window.session.opened.trace.clock.cycles(3_000))
    qapp.processEvents()
    assert not slow.is_settled
    slow.set_theme(DARK)
    qapp.processEvents()
    assert slow.is_settled
    found = screen(slow)
    slow.repaint()
    assert screen(slow) == found


@pytest.mark.thorough
def test_all_lanes_are_exact_in_each_frame_where_there_is_time(slow, window, qapp):
    slow.frame_s = 60.0
    for _ in range(5):
        window.session.opened.viewport.zoom(0.9, window.session.opened.trace.clock.cycles(3_000))
        qapp.processEvents()
        assert slow.is_settled


def frame_of(start, end, ratio, width_px=100):
    window = TimeWindow(start, end)
    scale = TimeScale(window, width_px)
    return Frame(LaneRequest((), window, round(width_px * ratio)), scale, 10, 0, ratio, shows_shares=True)


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0])
@pytest.mark.parametrize(
    ("start", "end", "reds"),
    [
        (1000, 2000, (30, 40)),  # as it was painted
        (1200, 2200, (10, 20)),  # panned by 20 pixels
        (1000, 1500, (60, 80)),  # zoomed in
        (500, 2500, (40, 45)),  # and out
        (1310, 1410, (0, 90)),
        (1003, 2003, (29.7, 39.7)),
    ],
)
def test_what_a_last_picture_shows_is_where_its_time_is(ratio, start, end, reds):
    """Cycles 1300 to 1400 are red in a picture of 1000 to 2000."""
    painted = frame_of(1000, 2000, ratio)
    pixels = np.full((round(10 * ratio), painted.width_px), BLACK, np.uint32)
    pixels[:, round(30 * ratio) : round(40 * ratio)] = RED
    picture = BandPicture(TimeWindow(1000, 2000), pixels, image_of(pixels, ratio), {}, None, is_final=True)
    frame = frame_of(start, end, ratio)
    target = QImage(frame.width_px, len(pixels), QImage.Format.Format_RGB32)
    target.setDevicePixelRatio(ratio)
    painter = QPainter(target)
    draw_band(painter, picture, QRectF(0, 0, 100, 10), frame, LIGHT)
    painter.end()
    row = np.array([target.pixel(x, 3) for x in range(frame.width_px)])
    found = np.flatnonzero(row == RED)
    assert (found[0], found[-1] + 1) == pytest.approx([red * ratio for red in reds], abs=1)
    unknown = np.flatnonzero(row == LIGHT.window | BLACK)
    edges = np.linspace(start, end, frame.width_px + 1)
    beyond = np.flatnonzero((edges[1:] <= 1000) | (edges[:-1] >= 2000))
    assert set(beyond) <= set(unknown)
    assert len(unknown) <= len(beyond) + 2  # one on each side that is known only in part


def test_a_picture_covers_nothing_of_another_time_or_where_it_is_too_coarse():
    whole = TimeWindow(0, 1000)
    assert covered(whole, 100, TimeWindow(1000, 2000), 100) is None
    assert covered(whole, 100, TimeWindow(990, 1990), 100) == (99, 100, 0, 1)
    assert covered(whole, 100, TimeWindow(500, 600), 100) == (50, 60, 0, 100)
    assert covered(whole, 100, TimeWindow(500, 510), 100) is None


def test_a_frame_ahead_shows_more_on_the_side_that_the_view_moves_to():
    """Ten pixels a frame; two frames or three, in steps of four pixels, and not more than a quarter."""
    frame = frame_of(1000, 2000, 2.0)
    assert frame.ahead(None, 3, LIMITS) is frame
    assert frame.ahead(TimeWindow(1000, 2000), 3, LIMITS) is frame
    later = frame.ahead(TimeWindow(900, 1900), 2, LIMITS)
    assert (later.scale.window, later.scale.width_px, later.width_px) == (TimeWindow(1000, 2240), 124, 248)
    outwards = frame.ahead(TimeWindow(1100, 1900), 3, LIMITS)
    assert (outwards.scale.window, outwards.scale.width_px) == (TimeWindow(720, 2280), 156)
    at_end = frame.ahead(TimeWindow(900, 1900), 2, TimeWindow(0, 2050))
    assert at_end.scale == TimeScale(TimeWindow(1000, 2080), 108)
    assert frame.ahead(TimeWindow(900, 1900), 2, TimeWindow(0, 2000)) is frame
    assert frame.ahead(TimeWindow(700, 2300), 3, LIMITS) is frame  # inwards
    assert frame.ahead(TimeWindow(0, 400), 3, LIMITS) is frame  # a jump


def painted_bands(pictures, bands, frame, limit_s, *, is_final=True):
    """Return whether all is exact after a frame, and which bands were painted for it."""
    found = []

    def paint(what, some, _kept):
        found.extend(bands.index(band) for band in some)
        pixels = np.zeros((1, what.width_px), np.uint32)
        return [BandPicture(what.scale.window, pixels, image_of(pixels, 1.0), {}, None, is_final) for _ in some]

    pictures.show(bands, None)
    return pictures.paint(bands, frame, frame, paint, limit_s), found


def test_each_band_has_its_turn_where_there_is_no_time():
    """Two of fourteen in each frame; what shows nothing comes first."""
    pictures, bands = BandPictures(), [Band(()) for _ in range(14)]
    assert painted_bands(pictures, bands, frame_of(0, 1000, 1.0), inf) == (True, list(range(14)))
    for step in range(14):
        turn = step % 7 * 2
        frame = frame_of(step + 1, step + 1001, 1.0)
        assert painted_bands(pictures, bands, frame, 0.0) == (False, [turn, turn + 1])
    assert pictures.round_frames == pytest.approx(7, abs=0.5)
    assert painted_bands(pictures, bands, frame_of(14, 1014, 1.0), -1.0) == (False, [])
    shown = [Band(()), *bands[3:], Band(())]
    assert painted_bands(pictures, shown, frame_of(14, 1014, 1.0), 0.0) == (False, [0, 12])
    rest = [painted_bands(pictures, shown, frame_of(14, 1014, 1.0), 0.0) for _ in range(7)]
    assert [band for _, found in rest for band in found] == list(range(1, 10))  # the last two show that already
    assert [is_exact for is_exact, _ in rest] == [False] * 4 + [True] * 3
    pictures.outdate()
    assert painted_bands(pictures, shown, frame_of(14, 1014, 1.0), inf)[1] != []


def test_lanes_that_are_not_made_yet_are_not_painted_again_and_again():
    """A signal says when they are; a picture for a file has to know now."""
    pictures, bands, frame = BandPictures(), [Band(())], frame_of(0, 1000, 1.0)
    assert painted_bands(pictures, bands, frame, inf, is_final=False) == (True, [0])
    assert painted_bands(pictures, bands, frame, 0.0, is_final=False) == (True, [])
    assert painted_bands(pictures, bands, frame, inf) == (True, [0])
    assert painted_bands(pictures, bands, frame, inf) == (True, [])


def test_what_fits_into_a_time_is_learnt_from_what_work_took():
    """Two seconds, and one for each piece."""
    cost = Cost()
    assert cost.pieces_within(0.0) == float("inf")
    cost.add(4, 6.0)
    assert cost.pieces_within(6.0) == pytest.approx(4)
    cost.add(10, 12.0)
    assert cost.pieces_within(9.0) == pytest.approx(7)
    assert cost.pieces_within(1.0) < 0
    for _ in range(20):
        cost.add(5, 10.0)  # of late, all takes longer
    assert cost.pieces_within(10.0) == pytest.approx(5, abs=0.1)


def inked(texts, fonts, start, end):
    """Return the columns in which texts that were made for 1000 to 2000 draw something in another window."""
    target = QImage(100, 20, QImage.Format.Format_RGB32)
    target.fill(0xFFFFFFFF)
    with QPainter(target) as painter:
        draw_placed(painter, TextSheet(), [], [texts], TimeScale(TimeWindow(start, end), 100), 0, 12.0)
    return [x for x in range(100) if any(target.pixel(x, y) != 0xFFFFFFFF for y in range(20))]


def test_names_move_with_their_intervals_and_go_where_they_have_no_room(qapp):
    """An interval of 1200 to 1900 cycles; its name takes some 45 pixels, and begins five behind it."""
    row, window = LaneRow(0, 0, 0, 20, False, False, False), TimeWindow(1000, 2000)
    fonts = FittedTexts(QFont("sans", 8), Qt.TextElideMode.ElideRight)
    text = IntervalText(row, 20.0, 90.0, 1200, 1900, "RUNNING", None, 0)
    texts = place_texts([(text, ("RUNNING",))], fonts, {None: 0}, window)
    made = inked(texts, fonts, 1000, 2000)
    assert 24 <= made[0] <= 27
    assert inked(texts, fonts, 1100, 2100) == [x - 10 for x in made]
    assert inked(texts, fonts, 1250, 2250) == [x - 20 for x in made]  # at the left edge
    assert inked(texts, fonts, 900, 2900) == []  # 35 pixels are left of the interval
    assert inked(texts, fonts, 2000, 3000) == []


WHITE, INK = 0xFFFFFFFF, 0x102030


def picture(texts, ratio, sheet, draw):
    """Return texts in rows, put by a sheet or by `drawStaticText`."""
    image = QImage(round(200 * ratio), round(80 * ratio), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    image.fill(WHITE)
    with QPainter(image) as painter:
        sheet.begin(painter)
        for row, text in enumerate(texts):
            draw(10, 10 + 14 * row, text, INK)  # whole device pixels at each ratio
        sheet.end()
    return image


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0])
def test_copied_texts_are_drawn_ones(qapp, monkeypatch, ratio):
    font, sheet = QFont(), TextSheet()
    font.setPixelSize(10)
    texts = [LaidText(name, font) for name in ("RUNNING", "p10", "RUNNING", "devb-eide 2")]
    drawn = picture(texts, ratio, sheet, sheet._draw)
    assert drawn != picture([], ratio, sheet, sheet.put)
    assert picture(texts, ratio, sheet, sheet.put) == drawn
    assert picture(texts, ratio, sheet, sheet.put) == drawn  # from the sheet alone
    monkeypatch.setattr(text, "_HEIGHT_PX", 16)  # room for one row: it is emptied in between
    monkeypatch.setattr(text, "_WIDTH_PX", 70)
    small = TextSheet()
    assert picture(texts, ratio, small, small.put) == drawn
    monkeypatch.setattr(text, "_WIDTH_PX", 20)  # none at all: they are drawn
    none = TextSheet()
    assert picture(texts, ratio, none, none.put) == drawn
