"""The flame graph in a window: zoomed and left by mouse and keys, named by programs, of a range, and empty."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from satview.answers.functions import FlameWidth
from satview.base.time import TimeWindow
from satview.events import wire
from satview.gui.panels.flame_panel import tip_of
from tests.gui.conftest import settle
from tests.gui.hands import LEFT, RIGHT, K, take_keyboard
from tests.gui.test_lanes_of_events import written
from tests.helpers.elf import write_elf
from tests.helpers.kev import TraceBuilder


@pytest.fixture
def panel(empty_window, load, tmp_path, qtbot):
    """0x100 of alpha runs from 1,000 to 4,000, and from 2,000 to 3,000 calls 0x200, which is at the left below it."""
    load(empty_window, written(tmp_path))
    return shown(empty_window, qtbot)


def shown(window, qtbot):
    take_keyboard(window, qtbot)
    window.actions_by_id.by_id["panels.flame_graph"].trigger()
    settle(qtbot, window)
    panel = window.workspace.panels["flame_graph"]
    qtbot.waitUntil(lambda: panel.view.graph is not None and not panel.view.is_pending)
    panel.canvas.setFocus()
    return panel


def node(panel, name):
    return panel.canvas.graph.name.index(name)


def click(panel, name, button=LEFT):
    QTest.mouseClick(panel.canvas.viewport(), button, pos=panel.canvas.rectangle(node(panel, name)).center().toPoint())


def press(panel, *keys):
    for key in keys:
        QTest.keyClick(panel.canvas, key)


def current(panel):
    return panel.canvas.graph.name[panel.canvas.current]


def test_functions_are_as_wide_as_their_share_below_their_callers(panel):
    canvas, width_px = panel.canvas, panel.canvas.viewport().width()
    outer, inner = canvas.rectangle(node(panel, "0x100")), canvas.rectangle(node(panel, "0x200"))
    assert (outer.left(), inner.left(), outer.width()) == (0, 0, pytest.approx(width_px))
    assert inner.width() == pytest.approx(width_px / 3)
    assert inner.top() == outer.bottom() == 2 * canvas.row_px
    image = canvas.viewport().grab().toImage()
    ratio, y = image.devicePixelRatio(), round(inner.bottom() - 4)
    inside, outside = (image.pixelColor(round(x * ratio), round(y * ratio)) for x in (inner.right() - 9, width_px - 9))
    assert outside.rgb() & 0xFFFFFF == panel.canvas.theme.base
    assert inside != outside
    assert tip_of(canvas.graph, node(panel, "0x200")).splitlines() == [
        "0x200", "Time on a CPU: 1.000 µs, 33.3 % of all", "Without what it calls: 1.000 µs",
        "1 call, 1.000 µs from entries to exits, the longest 1.000 µs",
    ]  # fmt: skip


@pytest.mark.thorough
def test_a_click_zooms_and_a_second_one_shows_the_longest_call(panel, empty_window):
    opened, canvas = empty_window.session.opened, panel.canvas
    click(panel, "0x200")
    assert canvas.rectangle(node(panel, "0x200")).width() == canvas.viewport().width()
    assert opened.selection.event is None
    click(panel, "0x200")
    start = opened.trace.window.start
    assert opened.trace.events.time_cycles[opened.selection.event] == start + 2_000
    assert opened.viewport.window == TimeWindow(start + 1_900, start + 3_100)
    click(panel, "All")
    assert canvas.zoomed == 0


@pytest.mark.thorough
def test_keys_go_to_callers_and_to_what_is_called_of_what_shows(panel, empty_window, qtbot):
    opened = empty_window.session.opened
    press(panel, K.Key_Down, K.Key_Down)
    assert current(panel) == "0x200"
    assert "0x200 · Time on a CPU: 1.000 µs, 33.3 % of all" in panel.statement.text()
    press(panel, K.Key_Up)
    assert current(panel) == "0x100"
    press(panel, K.Key_Down, K.Key_Return, K.Key_Return)
    assert opened.trace.events.time_cycles[opened.selection.event] == opened.trace.window.start + 2_000
    press(panel, K.Key_Escape)
    assert (current(panel), panel.canvas.zoomed) == ("0x100", node(panel, "0x100"))
    press(panel, K.Key_Escape)
    assert panel.canvas.zoomed == 0
    # In the range from 1,200 on, 0x200 is not called: what was the current rectangle has no width.
    start = empty_window.session.opened.trace.window.start
    press(panel, K.Key_Down, K.Key_Down)
    empty_window.session.opened.selection.set_range(TimeWindow(start + 1_200, start + 1_800))
    qtbot.waitUntil(lambda: panel.canvas.graph.width[0] == 600)
    press(panel, K.Key_Right, K.Key_Left, K.Key_Down)
    assert current(panel) == "0x100"


@pytest.mark.thorough
def test_processes_and_threads_are_told_apart(panel, qtbot):
    panel.by_thread.click()
    qtbot.waitUntil(lambda: len(panel.canvas.graph.name) == 5)
    assert panel.canvas.graph.path(node(panel, "0x200")) == ("alpha", "alpha 1", "0x100", "0x200")
    assert panel.measures.count() == 2
    panel.measures.setCurrentIndex(1)
    panel.measures.activated.emit(1)
    qtbot.waitUntil(lambda: panel.canvas.graph.measure is FlameWidth.ELAPSED)


@pytest.mark.thorough
def test_it_follows_the_range_and_the_names_and_stays_zoomed(panel, empty_window, qtbot, tmp_path):
    opened, start = empty_window.session.opened, empty_window.session.opened.trace.window.start
    write_elf(tmp_path / "build" / "alpha", {"plan": (0x100, 0x40), "search": (0x200, 0x40)}, base=0)
    opened.name_addresses(str(tmp_path))
    qtbot.waitUntil(lambda: "search" in panel.canvas.graph.name)
    click(panel, "plan")
    opened.selection.set_range(TimeWindow(start + 1_500, start + 2_500))
    qtbot.waitUntil(lambda: panel.canvas.graph.width[0] == 1_000)
    assert panel.canvas.zoomed == node(panel, "plan")
    assert panel.statement.text().startswith("Selection · plan · Time on a CPU: ≥ 1.000 µs, 100.0 % of all")
    assert "some of these calls were not over" in panel.statement.text()


@pytest.mark.thorough
def test_the_menu_filters_to_the_function(panel, empty_window, qtbot):
    """Rows 5 and 6 are the one entry into 0x200 and its exit."""
    filters, viewport = empty_window.session.opened.filters, panel.canvas.viewport()
    position = panel.canvas.rectangle(node(panel, "0x200")).center().toPoint()
    click(panel, "0x200", RIGHT)
    request = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, position, viewport.mapToGlobal(position))
    QApplication.sendEvent(viewport, request)
    menu = QApplication.activePopupWidget()
    next(entry for entry in menu.actions() if entry.text() == "Filter &to thisfn = 0x0000000000000200").trigger()
    menu.close()
    qtbot.waitUntil(lambda: not filters.is_pending)
    assert filters.rows.tolist() == [5, 6]


@pytest.mark.thorough
def test_a_trace_without_functions_says_whether_it_would_show_them(window, load, tmp_path, qtbot):
    """The scene lost events and has none of the class SYSTEM; the other trace has one of it."""
    panel = shown(window, qtbot)
    missing, lost = panel.message.text().splitlines()
    assert missing == (
        "Cannot tell: the trace has no calls of functions and no samples of a profiler; capture the class SYSTEM."
    )
    assert lost.startswith("Cannot tell: events were lost for 4.000 \N{MICRO SIGN}s of it; ")
    assert panel.stack.currentWidget() is panel.message
    path = TraceBuilder().time_event(0).state("RUNNING", 2, 7, 1).event(wire.code(wire.WireClass.SYSTEM, 2), 10)
    load(window, path.write(tmp_path / "system.kev"))
    if not window.workspace.panel_shows("flame_graph"):
        window.actions_by_id.by_id["panels.flame_graph"].trigger()
    panel = window.workspace.panels["flame_graph"]
    nothing = "No function logs its calls, and no profiler its samples."
    qtbot.waitUntil(lambda: panel.message.text() == nothing, timeout=10_000)
