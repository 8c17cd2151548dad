"""The list of events follows the lanes: the first event in view is at the top, unless the list is pinned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt

from satview.base.time import TimeWindow

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "dense-4cpu.kev"
RESTS_MS = 300  # longer than the list waits for the lanes to rest


@pytest.fixture
def dense(empty_window, load, qtbot):
    window = load(empty_window, SAMPLE)
    window.activateWindow()
    window.workspace.area.view.setFocus()
    qtbot.waitUntil(window.isActiveWindow)
    return window


def top(window):
    """Return the number of the first event that the list shows, as it writes it."""
    panel = window.workspace.panels["events"]
    return panel.model.index(panel.table.rowAt(0), 0).data()


def jump(window, start_s, length_s):
    opened = window.session.opened
    cycles = opened.trace.clock.cycles
    opened.viewport.jump(TimeWindow(cycles(round(start_s * 1e9)), cycles(round((start_s + length_s) * 1e9))))
    times = opened.trace.events.time_cycles
    return f"{int(np.searchsorted(times, opened.viewport.window.start)) + 1:,}"


def test_the_first_event_in_view_is_at_the_top(dense, qtbot):
    assert top(dense) == "1"
    first = jump(dense, 2, 0.1)
    assert 50_000 < int(first.replace(",", "")) < 60_000  # of 197,137 in 7 s
    qtbot.waitUntil(lambda: top(dense) == first)
    before = dense.session.opened.viewport.window
    qtbot.keyClick(dense.workspace.area.view, Qt.Key.Key_D)  # to later times
    qtbot.waitUntil(lambda: int(top(dense).replace(",", "")) > int(first.replace(",", "")))
    assert dense.session.opened.viewport.window.start > before.start


def test_a_pinned_list_stays_until_it_is_unpinned(dense, qtbot):
    pin = dense.workspace.panels["events"].pinned
    qtbot.mouseClick(pin, Qt.MouseButton.LeftButton, pos=pin.rect().center())
    assert pin.isChecked()
    first = jump(dense, 2, 0.1)
    qtbot.wait(RESTS_MS)
    assert top(dense) == "1"
    qtbot.mouseClick(pin, Qt.MouseButton.LeftButton, pos=pin.rect().center())
    assert top(dense) == first


@pytest.mark.thorough
def test_a_selected_event_stays_where_it_is_while_it_is_in_view(dense, qtbot):
    opened = dense.session.opened
    opened.select_event(60_000)
    before = top(dense)
    opened.viewport.zoom(0.001, int(opened.trace.events.time_cycles[60_000]))
    qtbot.wait(RESTS_MS)
    assert top(dense) == before
    first = jump(dense, 6, 0.1)
    qtbot.waitUntil(lambda: top(dense) == first)


@pytest.mark.thorough
def test_only_events_that_the_filter_shows_count(dense, qtbot):
    opened = dense.session.opened
    opened.filters.add_pass("event == MSG_SENDV")
    qtbot.waitUntil(lambda: opened.filters.is_active and not opened.filters.is_pending)
    jump(dense, 3, 0.1)
    rows, times = opened.filters.rows, opened.trace.events.time_cycles
    first = int(rows[np.searchsorted(times[rows], opened.viewport.window.start)])
    qtbot.waitUntil(lambda: top(dense) == f"{first + 1:,}")
