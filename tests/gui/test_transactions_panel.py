"""The panel of transactions, by keys and clicks: order, filter, nesting, range, and what is drawn over the lanes."""

from __future__ import annotations

import csv

import pytest
from PySide6.QtCore import QItemSelectionModel, QModelIndex, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from satview.base.time import TimeWindow
from satview.events import wire
from satview.gui import dialogs
from satview.gui.panel import select_row
from satview.gui.panels.transactions_panel import RowMode
from satview.gui.theme import LIGHT
from tests.gui.conftest import settle
from tests.gui.hands import CONTROL_SHIFT, LEFT, K, click_cell
from tests.helpers.exchange import Exchange
from tests.helpers.kev import START, TraceBuilder
from tests.linkage.test_latencies import interrupted


def exchange(folder):
    """Write the trace of `tests.answers.test_transactions`: round trips 698, 298 within it, 418, an open one."""
    made = Exchange()
    made.send(100, 2, 3, 0x57)
    made.receive(200, 2, 3)
    made.send(300, 3, 4, 0x101)
    made.receive(400, 3, 4)
    made.reply(500, 3)
    made.goes_on(600, 3)
    made.reply(700, 2)
    made.goes_on(800, 2)
    made.send(900, 2, 4, 0x57)
    made.receive(1300, 2, 4)
    made.reply(1310, 2)
    made.goes_on(1320, 2)
    made.send(1400, 2, 3, 0x58)
    return made.build.write(folder / "exchange.kev")


def panel_of(window, qtbot):
    """Show the panel by its key and wait for its rows."""
    QTest.keyClick(window.workspace.area.view, K.Key_X, CONTROL_SHIFT)
    panel = window.workspace.panels["transactions"]
    wait(panel, qtbot)
    return panel


def wait(panel, qtbot):
    qtbot.waitUntil(lambda: panel.view.answer is not None and not panel.view.is_busy, timeout=10_000)


def column(panel, title):
    """Return the texts of a column."""
    titles = [column.title for column in panel.model.columns]
    section = titles.index(title)
    return [panel.model.index(row, section).data().strip() for row in range(panel.model.rowCount())]


@pytest.fixture
def shown(empty_window, load, tmp_path, qtbot):
    """A window with the trace open, its panel shown."""
    window = load(empty_window, exchange(tmp_path))
    return window, panel_of(window, qtbot)


@pytest.mark.thorough
def test_nothing_is_looked_for_before_the_panel_is_seen(empty_window, load, tmp_path):
    window = load(empty_window, exchange(tmp_path))
    panel = window.workspace.panels["transactions"]
    assert panel.view.answer is None
    assert not panel.view.is_busy


@pytest.mark.thorough
def test_the_slowest_come_first_and_a_head_sorts(shown, qtbot):
    _, panel = shown
    assert column(panel, "Round trip") == ["698 ns", "418 ns", "298 ns", "\u2265 2 ns"]
    header = panel.table.horizontalHeader()
    for expected in (["399 ns", "99 ns", "99 ns", "\u2265 2 ns"], ["\u2265 2 ns", "99 ns", "99 ns", "399 ns"]):
        head = QPoint(header.sectionViewportPosition(4) + 20, header.height() // 2)
        QTest.mouseClick(header.viewport(), LEFT, pos=head)
        wait(panel, qtbot)
        assert column(panel, "Queued") == expected
    assert panel.model.headerData(4, Qt.Orientation.Horizontal).startswith("\N{BLACK UP-POINTING SMALL TRIANGLE}")


def test_a_message_that_waits_for_ever_is_on_top_and_says_why(empty_window, load, tmp_path, qtbot):
    """Received at 201 and not answered until the trace ends at 9,001; the row below it took 418."""
    made = Exchange()
    made.send(100, 2, 3, 0x57)
    made.receive(200, 2, 3)
    made.send(900, 4, 3, 0x57)
    made.receive(1300, 4, 3)
    made.reply(1310, 4)
    made.goes_on(1320, 4)
    made.build.event(wire.code(wire.WireClass.USER, 7), 9001)
    window = load(empty_window, made.build.write(tmp_path / "open.kev"))
    panel = panel_of(window, qtbot)
    assert column(panel, "Round trip") == ["\u2265 8.900 \u00b5s", "418 ns"]
    titles = [entry.title for entry in panel.model.columns]
    tip = panel.model.index(0, titles.index("Round trip")).data(Qt.ItemDataRole.ToolTipRole)
    assert "At least: not over when the trace ends" in tip
    head = panel.model.headerData(titles.index("Service"), Qt.Orientation.Horizontal, Qt.ItemDataRole.ToolTipRole)
    assert "From the receipt until the server replies." in head
    assert "\u2265 1 of 2 in Service, Round trip" in panel.line.statement.text()
    click_cell(panel.table, 0, 1)
    opened = window.session.opened
    assert opened.viewport.window.length > 8_000
    assert [leg.title for leg in opened.highlight.shown.legs] == ["queued", "in service", "service"]


@pytest.mark.thorough
def test_copy_and_export_take_what_shows(shown, qapp, qtbot, tmp_path, monkeypatch):
    """The nested message is unfolded, so that it is copied and written too."""
    _, panel = shown
    panel.model.unfold(0)
    buttons = {button.text(): button for button in panel.findChildren(QPushButton)}
    QTest.mouseClick(buttons["Copy"], LEFT)
    lines = qapp.clipboard().text().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["Client", "shell 1", "disk 1", "shell 1", "disk 1", "shell 1"]
    path = tmp_path / "rows.csv"
    monkeypatch.setattr(dialogs, "ask_save", lambda *_: path)
    QTest.mouseClick(buttons["Export CSV\N{HORIZONTAL ELLIPSIS}"], LEFT)
    qtbot.waitUntil(lambda: "Wrote 5 rows" in panel.line.statement.text(), timeout=5_000)
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert [row["round_trip_ns"] for row in rows] == ["698", "298", "418", "298", "2"]
    assert [row["round_trip_known"] for row in rows] == ["exact"] * 4 + ["at least"]


@pytest.mark.thorough
def test_typing_filters(shown, qtbot):
    _, panel = shown
    QTest.keyClicks(panel.line.server, "driver")
    qtbot.waitUntil(lambda: panel.model.rowCount() == 2, timeout=5_000)
    assert {text.split()[-2] for text in column(panel, "Client")} == {"shell", "disk"}
    QTest.keyClicks(panel.line.number, "0x57")
    qtbot.waitUntil(lambda: panel.model.rowCount() == 1, timeout=5_000)
    assert "1 of 4 messages" in panel.line.statement.text()
    QTest.keyClicks(panel.line.number, "zz")
    QTest.keyClick(panel.line.number, K.Key_Return)
    assert "decimal" in panel.line.statement.text()
    panel.line.number.clear()
    QTest.keyClicks(panel.line.client, "nobody")
    qtbot.waitUntil(panel.message.isVisible, timeout=5_000)
    assert panel.message.text() == "There are no messages in the trace that fit the filter."


@pytest.mark.thorough
def test_nested_messages_unfold_by_keys_and_by_a_click_on_the_sign(shown, qtbot):
    _, panel = shown
    table = panel.table
    table.setFocus()
    table.setCurrentIndex(panel.model.index(0, 0))
    QTest.keyClick(table, K.Key_Right)
    assert [text.split()[-2] for text in column(panel, "Client")] == ["shell", "disk", "shell", "disk", "shell"]
    assert [panel.model.depth_at(row) for row in range(5)] == [0, 1, 0, 0, 0]
    QTest.keyClick(table, K.Key_Left)
    assert panel.model.rowCount() == 4
    for count in (5, 4):
        click_cell(table, 0, x_px=9)
        assert panel.model.rowCount() == count


@pytest.mark.thorough
def test_a_click_shows_the_transaction_over_the_lanes(shown, qtbot):
    window, panel = shown
    opened, view = window.session.opened, window.workspace.area.view
    click_cell(panel.table, 0, 1)
    assert opened.viewport.window.start < START + 102 < START + 800 < opened.viewport.window.end
    assert opened.viewport.window.length < 2 * 698
    assert int(opened.trace.events.time_cycles[opened.selection.event]) == START + 102
    times = opened.trace.events.time_cycles - START
    hops = [(int(times[hop.from_row]), int(times[hop.to_row])) for hop in opened.highlight.shown.hops]
    assert hops == [(102, 201), (700, 800)]
    assert [leg.title for leg in opened.highlight.shown.legs] == ["queued", "in service", "reply", "service"]
    settle(qtbot, window)
    picture = view.grab().toImage()
    # The bracket is at the top of the server's lane, from the receipt to the reply.
    lane = view._opened.lanes.row_of(opened.lane_of_thread(opened.trace.threads.row(3, 1)))
    y = lane.y_px - view.scroll_px + 1

    def accent_at(cycles):
        x = round(view.scale.x(START + cycles))
        return min(
            abs(picture.pixelColor(x, y + step).blue() - (LIGHT.accent & 0xFF))
            + abs(picture.pixelColor(x, y + step).red() - (LIGHT.accent >> 16))
            for step in (0, 1, 2)
        )

    assert accent_at(260) < 60 < accent_at(160)
    assert accent_at(660) < 60 < accent_at(760)
    panel.table.setFocus()
    QTest.keyClick(panel.table, K.Key_Down)
    assert int(times[opened.selection.event]) == 902
    opened.select_event(int(times.searchsorted(900)))
    assert opened.highlight.shown is None


@pytest.mark.thorough
def test_the_selected_range_is_followed_and_caught_up_with_if_the_panel_was_hidden(shown, qtbot):
    window, panel = shown
    window.session.opened.selection.set_range(TimeWindow(START + 250, START + 1000))
    wait(panel, qtbot)
    assert column(panel, "Round trip") == ["418 ns", "298 ns"]
    assert panel.line.statement.text() == "2 of 4 messages, those that begin in the selected range"
    window.session.opened.selection.set_range(None)
    wait(panel, qtbot)
    assert panel.model.rowCount() == 4
    window.workspace.show_panel("events")
    qtbot.waitUntil(lambda: panel.visibleRegion().isEmpty())
    found = panel.view.answer
    window.session.opened.selection.set_range(TimeWindow(START + 250, START + 1000))
    assert not panel.view.is_busy
    assert panel.view.answer is found
    window.workspace.show_panel("transactions")
    qtbot.waitUntil(lambda: panel.model.rowCount() == 2, timeout=5_000)


@pytest.mark.thorough
def test_latencies_and_their_figures(empty_window, load, tmp_path, qtbot):
    window = load(empty_window, interrupted().write(tmp_path / "interrupt.kev"))
    panel, opened = panel_of(window, qtbot), window.session.opened
    assert panel.message.text() == "There are no messages in the trace."
    panel.tabs.setCurrentIndex(1)
    wait(panel, qtbot)
    assert (column(panel, "Source"), column(panel, "Total")) == (["interrupt 0x7"], ["~ 90 ns"])
    legs = [column(panel, title)[0] for title in ("To handler", "Handler", "To pulse", "To READY", "To RUNNING")]
    assert legs == ["~ 10 ns", "~ 20 ns", "~ 10 ns", "10 ns", "20 ns"]
    click_cell(panel.table, 0, 1)
    times = opened.trace.events.time_cycles
    assert int(times[opened.selection.event]) == START + 100
    assert [leg.title for leg in opened.highlight.shown.legs] == [
        "to handler", "handler", "to pulse", "to READY", "to RUNNING", "to receipt",
    ]  # fmt: skip
    panel.tabs.setCurrentIndex(2)
    wait(panel, qtbot)
    assert panel.view.mode is RowMode.FIGURES
    assert panel.model.rowCount() == 7
    assert column(panel, "Leg") == ["handler-entry", "handler", "delivery", "ready", "scheduling", "receipt", "total"]
    assert column(panel, "Longest")[1] == "~ 20 ns"
    opened.selection.select(None, None, None)
    click_cell(panel.table, 0, 1)
    assert int(times[opened.selection.event]) == START + 100


@pytest.mark.thorough
def test_copy_takes_the_selected_rows(shown, qapp, qtbot):
    """One row, too; a row that has only the keyboard is not selected. The button takes all while one is selected."""
    window, panel = shown
    window.activateWindow()

    def copied(run):
        qapp.clipboard().clear()
        run()
        title, *lines = qapp.clipboard().text().splitlines()
        assert title.split("\t")[:3] == ["Client", "Server", "Type"]
        return lines

    key = window.registry["edit.copy"].run
    button = next(button for button in panel.findChildren(QPushButton) if button.text() == "Copy").click
    panel.table.setFocus()
    qtbot.waitUntil(panel.table.hasFocus)
    assert panel.table.currentIndex().row() == 0
    every = copied(key)
    assert len(every) == 4
    select_row(panel.table, 2)
    assert copied(key) == [every[2]]
    assert copied(button) == every
    flags = QItemSelectionModel.SelectionFlag
    panel.table.selectionModel().select(panel.model.index(0, 0), flags.Select | flags.Rows)
    assert copied(key) == copied(button) == [every[0], every[2]]


@pytest.mark.thorough
def test_a_trace_without_threads_says_what_is_missing(empty_window, load, tmp_path, qtbot):
    path = TraceBuilder().time_event(0).call(11, 100, (1, 2)).exit(11, 200).write(tmp_path / "calls.kev")
    panel = panel_of(load(empty_window, path), qtbot)
    assert panel.message.text() == "Cannot tell: the trace has no messages; capture the class COMM."


@pytest.mark.thorough
def test_the_model_is_sound(shown, qtmodeltester):
    _, panel = shown
    qtmodeltester.check(panel.model)
    panel.model.unfold(0)
    qtmodeltester.check(panel.model)
    assert panel.model.rowCount(panel.model.index(0, 0)) == 0
    assert panel.model.data(QModelIndex()) is None


@pytest.mark.thorough
def test_names_are_text(empty_window, load, tmp_path, qtbot):
    made = Exchange()
    made.build.process_name(5, 2, "<b>x\x1b[2J\u202e")
    made.send(100, 2, 3, 1)
    panel = panel_of(load(empty_window, made.build.write(tmp_path / "hostile.kev")), qtbot)
    text = panel.model.index(0, 0).data()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "<b>" in text
    assert "&lt;b&gt;" in panel.model.index(0, 0).data(Qt.ItemDataRole.ToolTipRole)
