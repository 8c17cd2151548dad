"""Labels of intervals are switched in the menu View, drawn where they fit, stored and undone."""

from __future__ import annotations

import pytest

from satview.gui.swimlane.text import interval_labels, interval_texts
from satview.gui.theme import DARK, LIGHT
from satview.session.lanes.lane_arrangement import Label
from tests.gui.conftest import settle

CLIENT_1 = 3


def trigger(window, name):
    window.actions_by_id.by_id[name].trigger()


def written(window, lane):
    """Return what is written on a lane, left to right."""
    view, opened = window.workspace.area.view, window.session.opened
    rows = view.visible_rows()
    values = opened.timeline.raster([row.index for row in rows], opened.viewport.window, view.width())
    found = interval_texts(opened.timeline, rows, values, view.scale, LIGHT)
    parts = zip(found, interval_labels(opened, found), strict=True)
    return [texts for text, texts in parts if text.row.index == lane]


@pytest.mark.thorough
def test_labels_are_switched_kept_and_undone(window, opened, qtbot):
    assert written(window, CLIENT_1) == [("RUNNING",), ("REPLY",), ("RUNNING",)]
    trigger(window, "view.label_call")
    trigger(window, "view.label_cpu")
    window.workspace.area.view.repaint()  # begins the work
    qtbot.waitUntil(lambda: not opened.labels.is_busy)
    assert written(window, CLIENT_1) == [
        ("RUNNING", "CPU 0"), ("REPLY", "MSG_SENDV"), ("RUNNING", "CPU 0")
    ]  # fmt: skip
    assert window.settings.text("swimlane/labels") == "state,cpu,call"
    trigger(window, "view.label_state")
    assert written(window, CLIENT_1)[1:2] == [("MSG_SENDV",)]
    window.actions_by_id.refresh()
    checked = {label for label in Label if window.actions_by_id.by_id[f"view.label_{label}"].isChecked()}
    assert checked == {Label.CPU, Label.CALL}
    trigger(window, "edit.undo")
    trigger(window, "edit.undo")
    assert opened.lanes.arrangement.labels == {Label.STATE, Label.CALL}


def test_labels_change_the_picture_and_fit_whole(window, view, opened, qtbot):
    before = view.grab().toImage()
    trigger(window, "view.label_cpu")
    settle(qtbot, window)
    assert view.grab().toImage() != before
    texts = view.lanes.texts
    whole = texts.metrics.horizontalAdvance("RUNNING   CPU 0")
    fitted = [
        [part.static_text.text() for _, part in texts.fit_parts(("RUNNING", "CPU 0"), whole + px)] for px in (4, -4)
    ]
    assert fitted == [["RUNNING", "CPU 0"], ["RUNNING"]]
    assert opened.lanes.arrangement.labels == {Label.STATE, Label.CPU}


@pytest.mark.thorough
def test_dark_letters_have_their_colour_around_them_on_dark_lanes(window, view, opened):
    rows = view.visible_rows()
    values = opened.timeline.raster([row.index for row in rows], opened.viewport.window, view.width())
    grounds = {
        theme: {
            text.text: text.behind
            for text in interval_texts(opened.timeline, rows, values, view.scale, theme)
            if text.row.index == CLIENT_1
        }
        for theme in (LIGHT, DARK)
    }
    assert grounds[DARK]["RUNNING"] == 0x4FC878  # light green, black letters: higher than some bars
    assert grounds[DARK]["REPLY"] is None  # white letters show on what is around the bar
    assert grounds[LIGHT]["REPLY"] is None
