"""The picture that shows while a large file is read."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication

from satview.base.errors import Cancelled
from satview.events.states import FIRST_PROCESS, IDLE
from satview.formats import registry
from satview.formats.kev import sampling
from satview.gui.colours import value_colour
from satview.gui.swimlane.fills import lane_pixels
from satview.gui.theme import DARK, LIGHT
from satview.gui.windows.preview_page import RULER_PX, STRIP_PX
from satview.session.session import Stage
from satview.timeline.lane_tree import Timeline
from tests.benchmarks.made_traces import make_file
from tests.gui.conftest import settle
from tests.gui.hands import CONTROL, LEFT, K, rgb, turn_wheel


@pytest.fixture
def held(monkeypatch, empty_window, qtbot, tmp_path):
    """A window with a preview; reading all of the file goes on when the returned event is set."""
    release, real = threading.Event(), registry.open_trace
    monkeypatch.setattr(sampling, "LEAST_SLOTS", 10_000)
    monkeypatch.setattr(sampling, "SAMPLE_LENGTH", 256)

    def slow(path, progress, cancelled):
        progress(0.37)
        while not release.wait(0.01):
            if cancelled():
                raise Cancelled("stopped")
        return real(path, progress, cancelled)

    monkeypatch.setattr(registry, "open_trace", slow)
    empty_window.session.open(make_file(tmp_path / "large.kev", 60_000, cpus=2, threads=12))
    qtbot.waitUntil(lambda: empty_window.session.preview is not None)
    qtbot.waitUntil(lambda: empty_window.preview_page.bar.value() == 370)
    yield empty_window, release
    release.set()
    qtbot.waitUntil(lambda: empty_window.session.stage is not Stage.LOADING)


def page(window):
    return window._pages.currentWidget()


@pytest.mark.thorough
def test_it_says_that_it_is_provisional_and_lanes_of_cpus_are_filled_and_striped(held):
    window, _ = held
    assert window.session.stage is Stage.LOADING
    assert page(window) is window.preview_page
    positions = window.session.preview.preview.positions
    assert positions == 60
    assert window.preview_page.note.text() == (
        f"Provisional: who ran at {positions} sampled positions of large.kev. Loading, 37 %"
    )
    lanes = window.preview_page.lanes
    for cpu in range(2):
        middle = STRIP_PX + RULER_PX + cpu * 24 + 12
        assert len(colours(window, middle)) > 5  # hues of processes, paler than in an exact picture
        exact = {value_colour(value, False) for value in range(FIRST_PROCESS, 64)}
        assert not exact & colours(window, middle)
    below = STRIP_PX + RULER_PX + 2 * 24 + 30
    assert colours(window, below) == {LIGHT.base}
    window.set_theme(DARK)
    assert colours(window, below) == {DARK.base}
    assert lanes.grab().toImage().pixelColor(20, below) == QColor(DARK.panel)


def colours(window, y):
    picture = window.preview_page.lanes.grab().toImage()
    return {rgb(picture, x, y) for x in range(300, 1100)}


@pytest.mark.thorough
def test_keys_wheel_and_drag_move_and_the_trace_begins_there(held, qtbot):
    window, release = held
    lanes, viewport = window.preview_page.lanes, window.session.preview.viewport
    whole = viewport.window
    assert QApplication.focusWidget() is lanes or not window.isActiveWindow()
    qtbot.keyClick(lanes, K.Key_W)
    assert viewport.window.length == pytest.approx(whole.length / 1.5, rel=0.01)
    qtbot.keyClick(lanes, K.Key_0)
    assert viewport.window == whole
    turn_wheel(lanes, QPoint(700, 200), 4, CONTROL)
    zoomed = viewport.window
    assert zoomed.length == pytest.approx(whole.length / 1.25**4, rel=0.01)
    qtbot.mousePress(lanes, LEFT, pos=QPoint(700, 120))
    qtbot.mouseMove(lanes, QPoint(800, 120))
    qtbot.mouseRelease(lanes, LEFT, pos=QPoint(800, 120))
    assert viewport.window.start < zoomed.start
    last = viewport.window
    release.set()
    qtbot.waitUntil(lambda: window.session.stage is Stage.READY)
    shown = window.workspace.opened.viewport.window
    assert shown.start == pytest.approx(last.start, abs=last.length / 100)
    assert shown.length == pytest.approx(last.length, rel=0.01)
    assert window.session.preview is None


@pytest.mark.thorough
def test_exact_lanes_take_its_position(held, qtbot):
    window, release = held
    release.set()
    qtbot.waitUntil(lambda: window.session.stage is Stage.READY)
    assert page(window) is window.workspace
    settle(qtbot, window)
    assert window.workspace.opened.preview is None
    assert window.workspace.opened.viewport.is_whole


@pytest.mark.thorough
def test_lanes_that_are_not_built_yet_keep_it(held, qtbot, monkeypatch):
    window, release = held
    building, real = threading.Event(), Timeline.build

    def slow(self, indices, cancelled=None):
        building.wait(10)
        real(self, indices, cancelled)

    monkeypatch.setattr(Timeline, "build", slow)
    release.set()
    qtbot.waitUntil(lambda: window.session.stage is Stage.READY)
    view = window.workspace.area.view
    view.repaint()
    picture = view.grab().toImage()
    assert len({picture.pixelColor(x, 12).rgb() for x in range(60, 500)}) > 5
    building.set()
    settle(qtbot, window)
    assert window.workspace.opened.preview is None


@pytest.mark.thorough
def test_names_are_as_wide_as_in_an_open_trace(held, qtbot):
    window, _ = held
    row = STRIP_PX + RULER_PX + 200
    assert window.preview_page.lanes.grab().toImage().pixelColor(260, row) == QColor(LIGHT.base)
    window.settings.set("swimlane/label_width_px", 300)
    window.session.open(window.session.path)
    qtbot.waitUntil(lambda: window.session.preview is not None)
    assert window.preview_page.lanes.grab().toImage().pixelColor(260, row) == QColor(LIGHT.panel)


def test_cancel_and_another_file(held, qtbot):
    window, _ = held
    qtbot.mouseClick(window.preview_page.cancel, LEFT)
    assert page(window) is window.welcome
    assert window.session.preview is None


def test_shares_stack_from_the_bottom_with_idle_time_above():
    cover = np.zeros((64, 3))
    first, second = FIRST_PROCESS, FIRST_PROCESS + 1
    cover[first, 0], cover[second, 0], cover[IDLE, 0] = 25, 25, 50
    cover[second, 1] = 7
    colour_of = {value: value_colour(value, False) for value in (first, second, IDLE)}
    pixels = lane_pixels(cover, 3, 8, LIGHT) & 0xFFFFFF
    assert pixels[:, 0].tolist() == [colour_of[IDLE]] * 4 + [colour_of[second]] * 2 + [colour_of[first]] * 2
    assert pixels[:, 1].tolist() == [colour_of[second]] * 8
    assert pixels[:, 2].tolist() == [LIGHT.base] * 8
