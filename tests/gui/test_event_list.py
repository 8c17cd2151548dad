"""The list of events: its rows, what is selected in it, and how it follows the lanes unless it is pinned."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QTableView

from satview.base.time import TimeWindow
from satview.gui import event_list
from satview.gui.event_list import EventListModel
from satview.gui.panel import selected_ranges, set_up_rows
from satview.gui.theme import LIGHT
from satview.session.event_text import COLUMNS
from tests.gui.conftest import settle
from tests.gui.hands import SHIFT, all_texts, click_cell, row_texts
from tests.helpers.kev import TraceBuilder


@pytest.fixture
def panel(window):
    return window.workspace.panels["events"]


@pytest.mark.thorough
def test_model_passes_qts_own_tester(opened, qtmodeltester):
    qtmodeltester.check(EventListModel(opened, 20, LIGHT), force_py=True)


@pytest.mark.thorough
def test_rows_are_the_events_in_order(panel, opened):
    model = panel.model
    assert model.rowCount() == len(opened.trace.events)
    first = row_texts(model, 0)
    assert first[0] == "1"
    assert first[7] == "TIME"
    assert [model.headerData(i, Qt.Orientation.Horizontal) for i in range(len(COLUMNS))] == list(COLUMNS)


@pytest.mark.thorough
def test_a_row_is_formatted_once(panel, monkeypatch):
    calls = []
    real = event_list.list_row
    monkeypatch.setattr(event_list, "list_row", lambda *arguments: calls.append(arguments[1]) or real(*arguments))
    panel.model._texts.cache_clear()
    for _ in range(3):
        row_texts(panel.model, 4)
    assert calls == [4]


@pytest.mark.thorough
def test_vertical_header_stays_hidden(panel):
    """With it visible, a reset with a selected row takes minutes at ten million rows."""
    assert panel.table.verticalHeader().isHidden()
    assert panel.table.verticalHeader().sectionSize(0) == 20


@pytest.mark.thorough
def test_no_text_is_made_to_learn_how_tall_rows_are(opened, monkeypatch):
    """Qt requests the texts of a thousand rows if the height is set after the model."""
    calls, real = [], EventListModel.headerData

    def counted(self, section, orientation, role=Qt.ItemDataRole.DisplayRole):
        calls.append(orientation)
        return real(self, section, orientation, role)

    monkeypatch.setattr(EventListModel, "headerData", counted)
    table = QTableView()
    set_up_rows(table, EventListModel(opened, 20, LIGHT, table), "Events", 20)
    assert table.rowHeight(0) == 20
    assert calls.count(Qt.Orientation.Vertical) < 5


def test_click_on_a_row_selects_in_the_lanes(panel, opened):
    row = [texts[7] for texts in all_texts(panel.model)].index("EVENT 7")
    click_cell(panel.table, row, 7)
    assert opened.selection.event == row
    assert opened.timeline.infos[opened.selection.lane].title == "thread 1"
    assert opened.timeline.label(opened.selection.span) == "RUNNING"


@pytest.mark.thorough
def test_selection_in_the_lanes_shows_in_the_list_where_arrow_keys_move_it(panel, opened, qtbot):
    opened.select_event(10)
    assert panel.table.currentIndex().row() == 10
    assert [index.row() for index in panel.table.selectionModel().selectedRows()] == [10]
    panel.table.setFocus()
    panel.table.selectRow(2)
    qtbot.keyClick(panel.table, Qt.Key.Key_Down)
    assert opened.selection.event == 3


@pytest.mark.thorough
@pytest.mark.parametrize("key", ["Control", "Shift"])
def test_keys_that_are_held_do_not_change_what_the_list_selects(panel, opened, view, key):
    """As those of commands are, which go to the event before or behind."""
    key, modifier = Qt.Key[f"Key_{key}"], Qt.KeyboardModifier[f"{key}Modifier"]
    QTest.keyPress(view, key, modifier)
    try:
        for event in (10, 12, 10):
            opened.select_event(event)
            assert [index.row() for index in panel.table.selectionModel().selectedRows()] == [event]
            assert panel.table.currentIndex().row() == event
    finally:
        QTest.keyRelease(view, key)


@pytest.mark.thorough
def test_a_range_begins_where_the_lanes_went(panel, opened):
    click_cell(panel.table, 1, 3)
    opened.select_event(4)
    click_cell(panel.table, 6, 3, modifiers=SHIFT)
    assert selected_ranges(panel.table.selectionModel()) == [range(4, 7)]


@pytest.mark.thorough
def test_filter_shortens_the_list_and_numbers_stay(panel, opened):
    opened.select_event(5)
    opened.filters.only_codes(list(opened.trace.catalogue.find("EVENT 8")), "only one")
    assert panel.table.selectionModel().selectedRows() == [], "the filter hides it"
    assert opened.selection.event == 5
    assert panel.model.rowCount() == 1
    assert row_texts(panel.model, 0)[0] == str(len(opened.trace.events))
    assert row_texts(panel.model, 0)[2] == ""


@pytest.mark.thorough
def test_delta_is_to_the_row_above(panel, opened):
    codes = [code for name in ("EVENT 7", "EVENT 8") for code in opened.trace.catalogue.find(name)]
    opened.filters.only_codes(codes, "user events")
    assert row_texts(panel.model, 1)[2] == "15.00 \u00b5s"


@pytest.mark.thorough
def test_nothing_passes_the_filter(panel, opened, qtbot):
    opened.filters.only_codes([], "nothing")
    assert panel.shows_nothing
    qtbot.mouseClick(panel._show_all, Qt.MouseButton.LeftButton)
    assert not panel.shows_nothing
    assert panel.model.rowCount() == len(opened.trace.events)


@pytest.mark.thorough
def test_more_rows_than_qt_can_count(opened, monkeypatch):
    """The model then holds a part that moves to where it is looked at."""
    monkeypatch.setattr(event_list, "HEIGHT_LIMIT_PX", 100)  # five rows of 20 px
    model = EventListModel(opened, 20, LIGHT)
    total = len(opened.trace.events)
    assert model.rowCount() == 5
    row = model.bring_in(total - 1)
    assert model.event_at(row) == total - 1
    assert row_texts(model, row)[0] == str(total)
    assert model.bring_in(0) == 0
    assert model.event_at(0) == 0
    for event in range(total):
        row = model.bring_in(event)
        assert model.event_at(row) == event
        assert row_texts(model, row)[0] == str(event + 1)
    opened.filters.only_codes(list(opened.trace.catalogue.find("MSG_SENDV")), "calls")
    model, rows = EventListModel(opened, 20, LIGHT), opened.filters.rows.tolist()
    assert [model.event_at(row) for row in range(model.rowCount())] == rows == sorted(rows)
    assert model.bring_in(rows[0] + 1) == 1, "the next one that the filter shows"


@pytest.mark.thorough
def test_the_longest_time_of_a_trace_fits_its_column(empty_window, load, tmp_path):
    end = 2_592_000_000 * 12_345
    builder = TraceBuilder(rate=2_592_000_000).time_event(0).state("RUNNING", 0, 5, 1)
    builder.time_event(end).state("READY", end, 5, 1)
    load(empty_window, builder.write(tmp_path / "long.kev"))
    for name in ("events", "results"):
        table = empty_window.workspace.panels[name].table
        needed_px = table.fontMetrics().horizontalAdvance("12345.000 000 000 000 s")
        assert table.columnWidth(COLUMNS.index("Time")) >= needed_px + 8  # margins of a cell


@pytest.mark.thorough
def test_the_box_that_pins_hides_no_title(window, panel, qtbot):
    """In a narrow window it has no word; where the list is scrolled aside, it stands over another column."""
    head, pinned = panel.table.horizontalHeader(), panel.pinned
    window.resize(1700, 900)
    settle(qtbot, window)
    assert pinned.text() == "Pin"
    last = head.count() - 1
    panel.table.setColumnWidth(last - 1, head.width())
    settle(qtbot, window)
    assert pinned.text() == ""
    panel.table.setColumnWidth(last - 1, 120)
    settle(qtbot, window)
    assert pinned.text() == "Pin"


RESTS_MS = 300  # longer than the list waits for the lanes to rest


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


@pytest.mark.thorough
def test_the_first_event_in_view_is_at_the_top(dense, qtbot):
    assert top(dense) == "1"
    first = jump(dense, 2, 0.1)
    assert 50_000 < int(first.replace(",", "")) < 60_000  # of 197,137 in 7 s
    qtbot.waitUntil(lambda: top(dense) == first)
    before = dense.session.opened.viewport.window
    qtbot.keyClick(dense.workspace.area.view, Qt.Key.Key_D)  # to later times
    qtbot.waitUntil(lambda: int(top(dense).replace(",", "")) > int(first.replace(",", "")))
    assert dense.session.opened.viewport.window.start > before.start


@pytest.mark.thorough
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
def test_a_selected_event_stays_where_it_is_in_view_and_only_events_that_the_filter_shows_count(dense, qtbot):
    opened = dense.session.opened
    opened.select_event(60_000)
    before = top(dense)
    opened.viewport.zoom(0.001, int(opened.trace.events.time_cycles[60_000]))
    qtbot.wait(RESTS_MS)
    assert top(dense) == before
    first = jump(dense, 6, 0.1)
    qtbot.waitUntil(lambda: top(dense) == first)
    opened.filters.add_pass("event == MSG_SENDV")
    qtbot.waitUntil(lambda: opened.filters.is_active and not opened.filters.is_pending)
    jump(dense, 3, 0.1)
    rows, times = opened.filters.rows, opened.trace.events.time_cycles
    first = int(rows[np.searchsorted(times[rows], opened.viewport.window.start)])
    qtbot.waitUntil(lambda: top(dense) == f"{first + 1:,}")
