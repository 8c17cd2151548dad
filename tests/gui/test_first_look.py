"""`satview FILE --range A..B --select N`: the window opens there."""

from __future__ import annotations

from satview.gui.first_look import FirstLook, FirstLooks
from tests.gui.conftest import settle
from tests.helpers.scene import scene


def opened_with(application, qtbot, load, tmp_path, **look):
    window = application.new_window()
    window.resize(1000, 700)
    FirstLooks(FirstLook(**look), application).watch(window)
    load(window, scene(tmp_path))
    settle(qtbot, window)
    return window


def test_range_and_event(application, qtbot, load, tmp_path):
    window = opened_with(application, qtbot, load, tmp_path, range_text="4us..9us", event=12)
    opened = window.session.opened
    clock, shown = opened.trace.clock, opened.viewport.window
    assert (clock.ns(shown.start), clock.ns(shown.end)) == (4_000, 9_000)
    assert opened.selection.event == 11
    load(window, scene(tmp_path))  # opened again by hand: requested once
    assert window.session.opened.viewport.is_whole


def test_a_range_that_says_nothing_is_reported_and_shows_all(application, qtbot, load, tmp_path):
    window = opened_with(application, qtbot, load, tmp_path, range_text="nonsense")
    assert "is no range" in window.statusBar().currentMessage()
    assert window.session.opened.viewport.is_whole
