"""The critical path in the window: by key, over the lanes, as tables."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from satview.analysis.thread_names import thread_of
from satview.base.time import TimeWindow
from satview.gui import dialogs
from satview.gui.panel import select_row
from satview.gui.theme import LIGHT
from tests.gui.conftest import part
from tests.gui.hands import CONTROL, LEFT, SHIFT, K, all_texts, rgb, row_texts


@pytest.fixture
def window(empty_window, load, lesson):
    return load(empty_window, lesson("nested-inversion"))


@pytest.fixture
def panel(window, opened, view, qtbot):
    """Select 7 to 35 ms on the lane of `high 1` and press Shift+Y; return the panel."""
    needed = part(opened, 7_000_000, 35_000_000)
    opened.viewport.jump(needed)
    opened.select_at(lane_of(opened, "high 1"), needed.start + needed.length // 2)
    opened.selection.set_range(needed)
    QTest.keyClick(view, K.Key_Y, SHIFT)
    qtbot.waitUntil(lambda: opened.path.answer is not None, timeout=10_000)
    return window.workspace.panels["path"]


def lane_of(opened, thread):
    return opened.lane_of_thread(thread_of(opened.trace, thread))


def accent_at(view, opened, row, ms, width_px=30):
    """Return how many pixels of the path's colour are near the top of a lane, right of a moment."""
    image, x = view.grab().toImage(), view.scale.x(opened.trace.clock.cycles(ms * 1_000_000))
    top = row.y_px - view.scroll_px
    return sum(
        rgb(image, x + dx, top + dy) == LIGHT.accent for dx in range(width_px) for dy in range(row.height_px // 2)
    )


@pytest.mark.thorough
def test_shift_y_lists_the_path_of_the_range(window, panel):
    assert window.workspace.panel_shows("path")
    assert panel.statement.text().endswith("28.00 ms in 17 pieces")
    assert row_texts(panel.totals, 0) == ["store 1", "ready", "20.05 ms", "71.6 %", ""]
    longest = next(line for line in all_texts(panel.model) if line[2] == "20.05 ms")
    assert longest[0] == "\N{EM SPACE}     store 1"
    assert longest[3].startswith("is ready; meanwhile ran middle 1 20.0")


@pytest.mark.thorough
def test_what_a_piece_does_takes_the_width_that_is_left_and_names_of_threads_what_they_need(window, panel, qtbot):
    header, sums = panel.table.horizontalHeader(), panel.sums
    assert panel.table.columnWidth(0) >= panel.table.sizeHintForColumn(0)
    for width_px in (1500, 1000, 1300, 1700):
        window.resize(width_px, 900)
        qtbot.waitUntil(lambda: header.length() == panel.table.viewport().width())
        qtbot.waitUntil(lambda: sums.horizontalHeader().length() == sums.viewport().width())
        assert header.sectionSize(3) > header.sectionSize(0) + header.sectionSize(1)
    assert sums.columnWidth(0) >= sums.sizeHintForColumn(0)


@pytest.mark.thorough
def test_one_click_on_an_interval_is_enough_as_the_empty_panel_says(window, opened, view, qtbot):
    window.workspace.show_panel("path")
    panel = window.workspace.panels["path"]
    assert panel.message.text().startswith("Click an interval of a thread")
    row = opened.lanes.row_of(lane_of(opened, "store 1"))
    x = round(view.scale.x(opened.trace.clock.cycles(20_000_000)))
    qtbot.mouseClick(view, LEFT, pos=QPoint(x, row.y_px - view.scroll_px + row.height_px // 2))
    span = opened.selection.span
    QTest.keyClick(view, K.Key_Y, SHIFT)
    qtbot.waitUntil(lambda: opened.path.answer is not None, timeout=10_000)
    assert opened.path.answer.path.window == TimeWindow(span.start_cycles, span.end_cycles)


@pytest.mark.thorough
def test_the_line_goes_over_to_who_holds_the_thread_up(panel, opened, view):
    opened.selection.set_range(None)

    def accent(thread, ms):
        return accent_at(view, opened, opened.lanes.row_of(lane_of(opened, thread)), ms)

    assert accent("store 1", 32) > 40  # it runs: solid
    assert 10 < accent("store 1", 16) < accent("store 1", 32)  # it is ready: dashed, beside its name
    assert accent("middle 1", 20) == 0
    QTest.keyClick(view, K.Key_Escape)  # the selection
    assert opened.path.answer is not None
    QTest.keyClick(view, K.Key_Escape)  # the path
    assert opened.path.answer is None
    assert accent("store 1", 32) == 0


@pytest.mark.thorough
def test_a_folded_process_carries_the_line(panel, opened, view):
    opened.selection.set_range(None)
    opened.selection.select(None, None, None)
    opened.lanes.fold_all()
    row = opened.lanes.row_of(opened.timeline.infos[lane_of(opened, "store 1")].parent)
    assert accent_at(view, opened, row, 32, width_px=1) > 0


@pytest.mark.thorough
def test_a_click_on_a_piece_goes_there_and_copy_takes_the_table(panel, opened):
    position = [line[2] for line in all_texts(panel.model)].index("20.05 ms")
    panel.table.clicked.emit(panel.model.index(position, 1))
    assert opened.selection.lane == lane_of(opened, "store 1")
    assert opened.selection.span.start_cycles == int(opened.path.answer.path.start_cycles[position])
    panel.table.setFocus()
    QTest.keyClick(panel.table, K.Key_C, CONTROL)
    lines = QApplication.clipboard().text().splitlines()
    assert len(lines) == 18
    assert lines[0].split("\t") == ["Thread", "Time", "Length", "Is", "Certainty", "Event", "Ended by", "Depth", "What"]
    select_row(panel.table, position)
    assert [line.split("\t")[2] for line in panel.copied_text().splitlines()] == ["Length", "20.05 ms"]


@pytest.mark.thorough
def test_pieces_are_exported_in_the_order_that_shows(panel, monkeypatch, tmp_path, qtbot):
    proposed = []
    monkeypatch.setattr(dialogs, "ask_save", lambda _parent, path, _k: proposed.append(path.name) or tmp_path / "p.csv")
    panel._export()
    qtbot.waitUntil(lambda: panel.statement.text() == "Wrote 17 rows")
    assert proposed == ["nested-inversion-path.csv"]
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert (len(lines), lines[0]) == (18, "thread,start_ns,length_ns,kind,certainty,event,cause,depth,does")
    assert lines[1].startswith("high 1,7000000,")


def test_without_a_selection_it_says_what_is_missing(window, opened, view):
    opened.selection.select(None, None, None)
    QTest.keyClick(view, K.Key_Y, SHIFT)
    assert "No thread is known for the selection" in window.statusBar().currentMessage()
    assert "press Shift+Y" in window.workspace.panels["path"].message.text()
