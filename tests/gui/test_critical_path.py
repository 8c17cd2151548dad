"""The critical path in the window: by key, over the lanes, as tables."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from satview.__main__ import main
from satview.analysis.thread_names import thread_of
from satview.base.time import TimeWindow
from satview.gui import dialogs
from satview.gui.panel import select_row
from satview.gui.theme import LIGHT


@pytest.fixture(scope="module")
def inversion(tmp_path_factory):
    path = tmp_path_factory.mktemp("path") / "nested-inversion.kev"
    main(["tracelogger", "--workload", "nested-inversion", "-w", "-f", str(path)])
    return path


def row_of(opened, thread):
    """Return the lane of a thread as it shows."""
    return opened.lanes.row_of(opened.lane_of_thread(thread_of(opened.trace, thread)))


def request_path(window, qtbot, thread="high 1"):
    """Select 7 to 35 ms on a lane and press Shift+Y; return the panel."""
    opened, view = window.session.opened, window.workspace.area.view
    clock = opened.trace.clock
    needed = TimeWindow(clock.cycles(7_000_000), clock.cycles(35_000_000))
    opened.viewport.jump(needed)
    opened.select_at(opened.lane_of_thread(thread_of(opened.trace, thread)), needed.start + needed.length // 2)
    opened.selection.set_range(needed)
    QTest.keyClick(view, Qt.Key.Key_Y, Qt.KeyboardModifier.ShiftModifier)
    qtbot.waitUntil(lambda: opened.path.answer is not None, timeout=10_000)
    return window.workspace.panels["path"]


def text_of(model, row):
    return [model.index(row, column).data() for column in range(model.columnCount())]


def test_shift_y_lists_the_path_of_the_range(empty_window, load, inversion, qtbot):
    window = load(empty_window, inversion)
    panel = request_path(window, qtbot)
    assert window.workspace.panel_shows("path")
    assert panel.statement.text().endswith("28.00 ms in 17 pieces")
    assert text_of(panel.totals, 0) == ["store 1", "ready", "20.05 ms", "71.6 %", ""]
    lines = [text_of(panel.model, row) for row in range(panel.model.rowCount())]
    longest = next(line for line in lines if line[2] == "20.05 ms")
    assert longest[0] == "\N{EM SPACE}     store 1"
    assert longest[3].startswith("is ready; meanwhile ran middle 1 20.0")


@pytest.mark.thorough
def test_what_a_piece_does_takes_the_width_that_is_left(empty_window, load, inversion, qtbot):
    window = load(empty_window, inversion)
    panel = request_path(window, qtbot)
    header = panel.table.horizontalHeader()
    for width_px in (1500, 1000):
        window.resize(width_px, 900)
        qtbot.waitUntil(lambda: header.length() == panel.table.viewport().width())
        assert header.sectionSize(3) > header.sectionSize(0) + header.sectionSize(1)


@pytest.mark.thorough
def test_names_of_threads_have_the_room_that_is_there(empty_window, load, inversion, qtbot):
    window = load(empty_window, inversion)
    panel = request_path(window, qtbot)
    assert panel.table.columnWidth(0) >= panel.table.sizeHintForColumn(0)
    for width_px in (1300, 1700):
        window.resize(width_px, 900)
        qtbot.waitUntil(lambda: panel.sums.horizontalHeader().length() == panel.sums.viewport().width())
    assert panel.sums.columnWidth(0) >= panel.sums.sizeHintForColumn(0)


@pytest.mark.thorough
def test_one_click_on_an_interval_is_enough_as_the_empty_panel_says(empty_window, load, inversion, qtbot):
    window = load(empty_window, inversion)
    opened, view = window.session.opened, window.workspace.area.view
    window.workspace.show_panel("path")
    panel = window.workspace.panels["path"]
    assert panel.message.text().startswith("Click an interval of a thread")
    row = row_of(opened, "store 1")
    x = round(view.scale.x(opened.trace.clock.cycles(20_000_000)))
    qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=QPoint(x, row.y_px - view.scroll_px + row.height_px // 2))
    span = opened.selection.span
    QTest.keyClick(view, Qt.Key.Key_Y, Qt.KeyboardModifier.ShiftModifier)
    qtbot.waitUntil(lambda: opened.path.answer is not None, timeout=10_000)
    window_of_path = opened.path.answer.path.window
    assert (window_of_path.start, window_of_path.end) == (span.start_cycles, span.end_cycles)


@pytest.mark.thorough
def test_the_line_goes_over_to_who_holds_the_thread_up(empty_window, load, inversion, qtbot):
    window = load(empty_window, inversion)
    view = window.workspace.area.view
    request_path(window, qtbot)
    opened = window.session.opened
    opened.selection.set_range(None)
    image = view.grab().toImage()

    def accent_in(thread, ms):
        """Return how many pixels of the path's colour are near the top of a lane, right of a moment."""
        row, x = row_of(opened, thread), round(view.scale.x(opened.trace.clock.cycles(int(ms * 1_000_000))))
        top = row.y_px - view.scroll_px
        return sum(
            image.pixelColor(x + dx, top + dy).rgb() & 0xFFFFFF == LIGHT.accent
            for dx in range(30)
            for dy in range(row.height_px // 2)
        )

    assert accent_in("store 1", 32) > 40  # it runs: solid
    assert 10 < accent_in("store 1", 16) < accent_in("store 1", 32)  # it is ready: dashed, beside its name
    assert accent_in("middle 1", 20) == 0
    QTest.keyClick(view, Qt.Key.Key_Escape)  # the selection
    assert opened.path.answer is not None
    QTest.keyClick(view, Qt.Key.Key_Escape)  # the path
    assert opened.path.answer is None
    image = view.grab().toImage()
    assert accent_in("store 1", 32) == 0


@pytest.mark.thorough
def test_a_folded_process_carries_the_line(empty_window, load, inversion, qtbot):
    window = load(empty_window, inversion)
    view, opened = window.workspace.area.view, window.session.opened
    request_path(window, qtbot)
    opened.selection.set_range(None)
    opened.selection.select(None, None, None)
    opened.lanes.fold_all()
    row = opened.lanes.row_of(opened.timeline.infos[opened.lane_of_thread(thread_of(opened.trace, "store 1"))].parent)
    x = round(view.scale.x(opened.trace.clock.cycles(32_000_000)))
    image = view.grab().toImage()
    column = [image.pixelColor(x, row.y_px - view.scroll_px + dy).rgb() & 0xFFFFFF for dy in range(row.height_px // 2)]
    assert LIGHT.accent in column


def test_a_click_on_a_piece_goes_there_and_copy_takes_the_table(empty_window, load, inversion, qtbot):
    window = load(empty_window, inversion)
    panel, opened = request_path(window, qtbot), window.session.opened
    position = next(row for row in range(panel.model.rowCount()) if text_of(panel.model, row)[2] == "20.05 ms")
    panel.table.clicked.emit(panel.model.index(position, 1))
    assert opened.selection.lane == opened.lane_of_thread(thread_of(opened.trace, "store 1"))
    assert opened.selection.span.start_cycles == int(opened.path.answer.path.start_cycles[position])
    panel.table.setFocus()
    QTest.keyClick(panel.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QApplication.clipboard().text().splitlines()
    assert len(lines) == 18
    assert lines[0].split("\t") == ["Thread", "Time", "Length", "Is", "Certainty", "Event", "Ended by", "Depth", "What"]
    select_row(panel.table, position)
    assert [line.split("\t")[2] for line in panel.copied_text().splitlines()] == ["Length", "20.05 ms"]


@pytest.mark.thorough
def test_pieces_are_exported_in_the_order_that_shows(empty_window, load, inversion, monkeypatch, tmp_path, qtbot):
    panel, requested = request_path(load(empty_window, inversion), qtbot), []
    monkeypatch.setattr(
        dialogs, "ask_save", lambda _parent, path, _k: requested.append(path.name) or tmp_path / "p.csv"
    )
    panel._export()
    qtbot.waitUntil(lambda: panel.statement.text() == "Wrote 17 rows")
    assert requested == ["nested-inversion-path.csv"]
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert (len(lines), lines[0]) == (18, "thread,start_ns,length_ns,kind,certainty,event,cause,depth,does")
    assert lines[1].startswith("high 1,7000000,")


def test_without_a_selection_it_says_what_is_missing(window, view):
    window.session.opened.selection.select(None, None, None)
    QTest.keyClick(view, Qt.Key.Key_Y, Qt.KeyboardModifier.ShiftModifier)
    assert "No thread is known for the selection" in window.statusBar().currentMessage()
    panel = window.workspace.panels["path"]
    assert "press Shift+Y" in panel.message.text()
