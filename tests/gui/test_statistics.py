"""The statistics panel as a user has it: keys, clicks, what shows and where one gets."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu

from satview.base.time import TimeWindow
from satview.events import wire
from satview.gui import dialogs
from satview.gui.statistics import FrozenColumn
from satview.gui.theme import DARK
from satview.session.range_view import Extent
from tests.gui.conftest import part
from tests.gui.hands import LEFT, K, all_texts, click_box, click_cell, click_tab, rgb
from tests.helpers.kev import START, TraceBuilder, from_lanes
from tests.helpers.scene import CLIENT, SERVER


@pytest.fixture
def panel(window, view, qtbot):
    qtbot.keyClick(view, K.Key_T)
    panel = window.workspace.panels["statistics"]
    qtbot.waitUntil(lambda: panel.isVisible() and not panel.view.is_pending)
    return panel


def texts(panel, key):
    section = panel.model.section_of(key)
    return [row[section] for row in all_texts(panel.model)]


def tab(panel, key, qtbot):
    keys = [panel.tabs.tabData(i) for i in range(panel.tabs.count())]
    click_tab(panel.tabs, keys.index(key))
    qtbot.waitUntil(lambda: not panel.view.is_pending)
    assert panel.model.answer.question.name == key


def click(panel, row, key):
    click_cell(panel.table, row, panel.model.section_of(key))


def head(panel, key):
    header = panel.table.horizontalHeader()
    section = panel.model.section_of(key)
    panel.table.horizontalScrollBar().setValue(header.sectionPosition(section) - 100)
    return QPoint(header.sectionViewportPosition(section) + header.sectionSize(section) // 2, header.height() // 2)


@pytest.mark.thorough
def test_key_shows_and_hides_it(window, panel, view, qtbot):
    assert window.workspace.panel_shows("statistics")
    assert texts(panel, "thread") == ["client 1", "server 1", "unknown"]
    assert texts(panel, "cpu") == ["≈ 6.999 µs", "≈ 3.999 µs", ""]
    assert panel.statement.text().startswith("Counts all 17 events")
    assert "events were lost for 4.000 µs of it" in panel.statement.text()
    view.setFocus()
    qtbot.keyClick(view, K.Key_T)
    assert not window.workspace.panel_shows("statistics")


@pytest.mark.thorough
def test_a_statement_that_does_not_fit_ends_with_an_ellipsis_and_its_tip_says_all(window, panel, qtbot):
    """It is drawn as if its text were as many of the first words as fit, and the ellipsis."""
    statement, metrics = panel.statement, panel.statement.fontMetrics()
    whole = statement.text()
    window.resize(640, 600)
    qtbot.waitUntil(lambda: 0 < statement.width() < metrics.horizontalAdvance(whole))
    image = statement.grab().toImage()
    tip = statement.toolTip()
    assert all(part in tip for part in whole.split(" \N{MIDDLE DOT} "))
    fitting = metrics.elidedText(whole, Qt.TextElideMode.ElideRight, statement.width())
    assert fitting.endswith("\N{HORIZONTAL ELLIPSIS}")
    statement.setText(fitting)
    assert statement.grab().toImage() == image


@pytest.mark.thorough
def test_every_tab_has_a_table(panel, qtbot):
    for key, least in {"state": 6, "process": 2, "cpu": 2, "event": 1, "call": 1, "message": 0, "interrupt": 0}.items():
        tab(panel, key, qtbot)
        assert panel.model.rowCount() >= least
        if not least:
            assert panel.message.isVisible()
            assert panel.message.text().startswith("Cannot tell: the trace has no ")
            assert not panel.count_all.isVisible()


def test_sort_by_a_click_on_the_head(panel, qtbot):
    header = panel.table.horizontalHeader().viewport()
    qtbot.mouseClick(header, LEFT, pos=head(panel, "receive"))
    assert texts(panel, "thread")[0] == "server 1"  # numbers: largest first
    qtbot.mouseClick(header, LEFT, pos=head(panel, "thread"))
    assert texts(panel, "thread") == ["client 1", "server 1", "unknown"]
    qtbot.mouseClick(header, LEFT, pos=head(panel, "thread"))
    assert texts(panel, "thread") == ["unknown", "server 1", "client 1"]
    tab(panel, "cpu", qtbot)
    tab(panel, "thread", qtbot)
    assert texts(panel, "thread") == ["unknown", "server 1", "client 1"]  # unchanged


@pytest.mark.thorough
def test_the_current_row_stays_the_current_one_in_another_order(panel, qtbot):
    click(panel, 0, "thread")
    qtbot.mouseClick(panel.table.horizontalHeader().viewport(), LEFT, pos=head(panel, "receive"))
    assert texts(panel, "thread") == ["server 1", "unknown", "client 1"]
    assert [index.row() for index in panel.table.selectionModel().selectedRows()] == [2]


@pytest.mark.thorough
def test_a_tip_says_where_a_click_goes_and_why_a_value_is_not_exact(panel):
    role = Qt.ItemDataRole.ToolTipRole
    run, time = (panel.model.index(0, panel.model.section_of(name)) for name in ("longest_run", "cpu"))
    assert "A click goes there." in run.data(role)
    assert "Estimate: interrupts were not captured" in time.data(role)
    assert "A click goes there." not in time.data(role)


@pytest.mark.thorough
def test_names_stay_in_sight_while_numbers_are_scrolled(panel, opened, qtbot):
    names = panel.table.findChild(FrozenColumn)
    assert not names.isVisible()
    panel.table.horizontalScrollBar().setValue(300)
    assert names.isVisible()
    assert names.columnAt(5) == 0
    assert names.width() == panel.table.columnWidth(0)
    qtbot.mouseClick(names.viewport(), LEFT, pos=names.visualRect(panel.model.index(1, 0)).center())
    assert opened.timeline.infos[opened.selection.lane].thread == opened.trace.threads.row(SERVER, 1)
    qtbot.mouseClick(names.horizontalHeader().viewport(), LEFT, pos=QPoint(20, 10))
    assert panel.model.sort_name == "thread"
    panel.table.horizontalScrollBar().setValue(0)
    assert not names.isVisible()


@pytest.mark.thorough
def test_range_buttons(panel, opened, qtbot):
    trace_button, view_button, range_button = panel.extents.buttons()
    qtbot.mouseClick(range_button, LEFT)
    assert "Select a range" in panel.message.text()
    opened.selection.set_range(part(opened, 2_000, 2_500))
    qtbot.waitUntil(lambda: not panel.view.is_pending)
    assert texts(panel, "cpu")[0] == "≈ 500 ns"
    qtbot.mouseClick(view_button, LEFT)
    opened.viewport.jump(part(opened, 1_000, 3_000))
    qtbot.waitUntil(lambda: not panel.view.is_pending)
    assert texts(panel, "cpu")[0].startswith("≈ 2.00")
    qtbot.mouseClick(trace_button, LEFT)
    qtbot.waitUntil(lambda: not panel.view.is_pending)
    assert texts(panel, "cpu")[0] == "≈ 6.999 µs"


@pytest.mark.thorough
def test_says_whether_it_follows_the_filter(panel, opened, qtbot):
    opened.filters.add_pass("class == KER_CALL")
    qtbot.waitUntil(lambda: not opened.filters.is_pending)
    assert "whatever the filter hides" in panel.statement.text()
    calls = panel.model.section_of("calls")
    assert panel.model.headerData(calls, Qt.Orientation.Horizontal, Qt.ItemDataRole.DecorationRole) is None
    click_box(panel.follows)
    qtbot.waitUntil(lambda: not panel.view.is_pending)
    assert panel.statement.text().startswith("Follows the filter: 1 of ")
    role = Qt.ItemDataRole.DecorationRole
    calls, time = panel.model.section_of("calls"), panel.model.section_of("cpu")
    assert panel.model.headerData(calls, Qt.Orientation.Horizontal, role) is not None
    assert panel.model.headerData(time, Qt.Orientation.Horizontal, role) is None
    assert texts(panel, "cpu") == ["≈ 6.999 µs"]
    tab(panel, "event", qtbot)
    assert texts(panel, "event") == ["MSG_SENDV"]


@pytest.mark.thorough
def test_nothing_passes(panel, opened, qtbot):
    tab(panel, "event", qtbot)
    panel.follows.setChecked(True)
    opened.filters.add_pass("pid == 4242")
    qtbot.waitUntil(lambda: not opened.filters.is_pending and not panel.view.is_pending)
    assert panel.message.text() == "No event of the range counts."
    qtbot.mouseClick(panel.count_all, LEFT)
    qtbot.waitUntil(lambda: not panel.view.is_pending)
    assert not panel.follows.isChecked()
    assert sum(int(text.lstrip("\u2265 ")) for text in texts(panel, "count")) == 17


@pytest.mark.thorough
def test_click_selects_the_lane(panel, opened, qtbot):
    click(panel, 1, "thread")
    info = opened.timeline.infos[opened.selection.lane]
    assert info.thread == opened.trace.threads.row(SERVER, 1)
    tab(panel, "process", qtbot)
    click(panel, 0, "process")
    assert opened.timeline.infos[opened.lanes.row_of(opened.selection.lane).unit].title == "client"
    tab(panel, "cpu", qtbot)
    click(panel, 0, "cpu")
    assert opened.timeline.infos[opened.selection.lane].cpu == 0


@pytest.mark.thorough
def test_a_click_on_a_lane_marks_its_row_and_moves_nothing(panel, opened, qtbot):
    lane = opened.lane_of_thread(opened.trace.threads.row(SERVER, 1))
    cycles = opened.trace.clock.cycles(9_000)
    opened.select_at(lane, cycles)
    assert [index.row() for index in panel.table.selectionModel().selectedRows()] == [1]
    span = opened.selection.span
    assert span.start_cycles <= cycles < span.end_cycles
    panel.view.set_extent(Extent.VIEW)
    qtbot.waitUntil(lambda: not panel.view.is_pending)
    row = [index.row() for index in panel.table.selectionModel().selectedRows()]
    assert [texts(panel, "thread")[i] for i in row] == ["server 1"]  # after other numbers came too
    assert opened.selection.span == span


def test_a_click_on_a_blue_value_goes_to_the_longest(panel, opened, qtbot):
    click(panel, 0, "longest_run")
    clock, span = opened.trace.clock, opened.selection.span
    assert (clock.ns(span.start_cycles), clock.ns(span.end_cycles)) == (8_001, 12_000)
    window = opened.viewport.window
    assert window.start < span.start_cycles
    assert window.end > span.end_cycles
    assert window.length < 3 * 3_999


@pytest.mark.thorough
def test_a_click_on_a_call_shows_it_from_entry_to_exit(panel, opened, qtbot):
    tab(panel, "call", qtbot)
    click(panel, 0, "call")
    assert opened.trace.spec(opened.selection.event).class_name == "KER_CALL"
    assert opened.viewport.is_whole
    click(panel, 0, "longest")
    assert opened.trace.spec(opened.selection.event).class_name == "KER_CALL"
    assert opened.timeline.label(opened.selection.span) == "REPLY"  # what it waited for, not the run that entered it
    clock, window = opened.trace.clock, opened.viewport.window
    assert -200 <= clock.ns(window.start) < 2_000
    assert 9_000 < clock.ns(window.end) < 14_000


@pytest.mark.thorough
@pytest.mark.qt_log_ignore("grabbing the keyboard", extend=True)
def test_the_menu_filters_to_the_row(window, panel, opened, qtbot):
    index = panel.model.index(1, panel.model.section_of("thread"))
    panel.table.customContextMenuRequested.emit(panel.table.visualRect(index).center())
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    only = QMenu.menuInAction(next(action for action in menu.actions() if action.text() == "Filter &to"))
    entry = next(action for action in only.actions() if action.text().startswith("This thread"))
    assert "server 1" in entry.text()
    entry.trigger()
    menu.close()
    qtbot.waitUntil(lambda: not opened.filters.is_pending)
    assert opened.filters.state.stack.passes[0].expression == f"pid == {SERVER} and tid == 1"


@pytest.mark.thorough
def test_copy_and_export(window, panel, monkeypatch, tmp_path, qtbot):
    panel.table.selectRow(0)
    panel.table.setFocus()
    window.registry["edit.copy"].run()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0].split("\t")[:2] == ["Thread", "pid"]
    assert lines[1].split("\t")[:2] == ["client 1", str(CLIENT)]
    path = tmp_path / "out.csv"
    monkeypatch.setattr(dialogs, "ask_save", lambda *_: path)
    qtbot.mouseClick(panel._buttons[1], LEFT)
    qtbot.waitUntil(lambda: "Wrote 3 rows" in panel.statement.text())
    assert path.read_text().startswith("thread,pid,tid,cpu_ns,")


@pytest.mark.thorough
def test_bars_are_drawn_in_the_colour_of_the_theme(panel, qtbot):
    panel.set_theme(DARK)
    index = panel.model.index(0, panel.model.section_of("cpu_share"))
    panel.table.scrollTo(index)
    rect = panel.table.visualRect(index)
    image = panel.table.viewport().grab(rect).toImage()
    filled = [rgb(image, x, image.height() - 3) for x in range(image.width())].count(DARK.accent)
    assert filled == pytest.approx(0.35 * (image.width() - 12), abs=4)


def double_click(panel, row, key):
    click(panel, row, key)
    cell = panel.table.visualRect(panel.model.index(row, panel.model.section_of(key)))
    QTest.mouseDClick(panel.table.viewport(), LEFT, pos=cell.center())


def shown_table(window, view, key, qtbot):
    """Show a table whose tab may be out of sight."""
    qtbot.keyClick(view, K.Key_T)
    panel = window.workspace.panels["statistics"]
    panel.tabs.setCurrentIndex([panel.tabs.tabData(i) for i in range(panel.tabs.count())].index(key))
    qtbot.waitUntil(lambda: panel.model.answer is not None and panel.model.answer.question.name == key, timeout=10_000)
    return panel


@pytest.mark.thorough
def test_double_click_goes_to_the_first_migration(empty_window, load, tmp_path, qtbot):
    from_lanes(
        tmp_path,
        """
        cpu0  A A . B A .
        cpu1  . B B . . A
    """,
    )
    window = load(empty_window, tmp_path / "built.kev")
    panel = shown_table(window, window.workspace.area.view, "migration", qtbot)
    opened = window.session.opened
    opened.viewport.fit(TimeWindow(START, START + 100), 0)
    length = opened.viewport.window.length
    double_click(panel, 0, "first")
    first = panel.model.answer.moment(0, "first")
    assert opened.viewport.window.contains(first)
    assert opened.viewport.window.length == length, "a moment has no length to fit"
    assert opened.selection.span.start_cycles == first


@pytest.mark.thorough
def test_double_click_goes_to_the_busiest_window_of_a_partition(empty_window, load, tmp_path, qtbot):
    made = TraceBuilder().time_event(0)
    made.writer.text_event(wire.code(wire.WireClass.SYSTEM, 3), 0, made.at(1), (1,), b"Drivers")
    made.event(wire.code(wire.WireClass.SYSTEM, 24), 2, (1, 0, 0, 0, 1, 8, 0, 0))  # averaged over 1 ms
    for time, partition in ((1_000_000, 1), (1_200_000, 0), (7_000_000, 1), (7_900_000, 0)):
        made.state("RUNNING", time, 5 + partition, 1, extra=(10, 2, partition, 0))
    window = load(empty_window, made.event(wire.code(6, 1), 9_999_999).write(tmp_path / "partitions.kev"))
    panel = shown_table(window, window.workspace.area.view, "partition", qtbot)
    row = texts(panel, "partition").index("Drivers")
    assert texts(panel, "peak")[row] == "\N{ALMOST EQUAL TO} 900.0 µs"  # without a dump idle threads are not known
    double_click(panel, row, "peak")
    shown = window.session.opened.viewport.window
    assert shown.contains(START + 7_000_000)
    assert shown.length < 4_000_000
