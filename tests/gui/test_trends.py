"""The window of trends: figures, points and rows that open traces at their positions."""

import re

import pytest
from PySide6.QtCore import QPoint, QPointF
from PySide6.QtWidgets import QApplication

from satview.fleet.export import export_folder
from satview.gui import dialogs
from satview.gui.theme import DARK, LIGHT
from satview.gui.windows import application as windows
from satview.session.session import Stage
from satview.session.trace_link import TraceLink
from tests.fleet.test_fleet import ready
from tests.gui.hands import CONTROL, LEFT, K, all_texts, click_cell, colours


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fleet")
    for number in range(7):
        ready(folder / "nightly", f"{number}.kev", 9_000 if number == 4 else 100 + number)
    export_folder(folder / "nightly", folder / "fleet", ["state"])
    return folder / "fleet"


def await_first_trend(window, qtbot):
    """Wait until a new window has its trend: a process starts for it, which takes long on a busy machine."""
    qtbot.waitUntil(lambda: not window.is_busy, timeout=60_000)


@pytest.fixture
def trends(application, fleet, qtbot):
    application.open_files([fleet])
    [window] = application.trends
    qtbot.waitExposed(window)
    await_first_trend(window, qtbot)
    return window


def opened_by(application, qtbot):
    [window] = application.windows
    qtbot.waitUntil(lambda: window.session.stage is Stage.READY and window.workspace is not None, timeout=20_000)
    return window


@pytest.mark.thorough
def test_points_and_rows_in_both_themes(trends):
    assert trends.windowTitle().startswith("fleet")
    assert all_texts(trends.model)[0][:4] == [
        "4.kev",
        "2021-10-21T07:57:59.294967+00:00",
        "9.000 \N{MICRO SIGN}s",
        "far from the others",
    ]
    assert [row[0] for row in all_texts(trends.model)[1:]] == [f"{number}.kev" for number in (0, 1, 2, 3, 5, 6)]
    assert "Median 103 ns, 7 traces, 1 far from the others" in trends.message.text()
    _, y = trends.plot.points.getData()
    assert y.tolist() == [100, 101, 102, 103, 9000, 105, 106]
    for theme in (DARK, LIGHT):
        trends.set_theme(theme)
        assert theme.base in colours(trends.plot.plot.grab().toImage())


@pytest.mark.thorough
def test_a_click_on_a_point_opens_the_trace_at_the_place(trends, application, qtbot):
    plot = trends.plot.plot
    spot = next(spot for spot in trends.plot.points.points() if spot.data() == 4)
    at = plot.mapFromScene(trends.plot.points.mapToScene(QPointF(spot.pos())))
    qtbot.mouseClick(plot.viewport(), LEFT, pos=at)
    window = opened_by(application, qtbot)
    assert window.session.path.name == "4.kev"
    opened = window.session.opened
    qtbot.waitUntil(lambda: opened.selection.event is not None, timeout=5_000)
    assert opened.trace.spec(opened.selection.event).name == "THREADY"
    shown = opened.viewport.window
    assert opened.trace.clock.ns(shown.start) <= 1_000
    assert 10_000 <= opened.trace.clock.ns(shown.end) < 100_000


@pytest.mark.thorough
def test_a_row_opens_its_trace(trends, application, qtbot):
    click_cell(trends.traces, 2)
    assert opened_by(application, qtbot).session.path.name == trends.model.index(2, 0).data() == "1.kev"


@pytest.mark.thorough
def test_another_figure_and_one_that_cannot_be_made(trends, qtbot):
    trends.figure.setCurrentIndex(trends.figure.findData("event-rate"))
    qtbot.waitUntil(lambda: not trends.is_busy, timeout=20_000)
    assert all_texts(trends.model)[0][2].endswith("/s")
    trends.figure.setCurrentIndex(trends.figure.findData("message-p99"))
    qtbot.waitUntil(lambda: not trends.is_busy, timeout=20_000)
    assert re.search("message.*not|not.*message", trends.message.text())
    assert trends.message.property("role") == "error"
    assert all_texts(trends.model) == [], "those of the figure before would stand under the name of this one"
    assert trends.plot.points not in trends.plot.plot.plotItem.items


@pytest.mark.thorough
def test_headings_sort_and_rows_are_copied_whole(trends, qtbot):
    header = trends.traces.horizontalHeader()
    shown = []
    for section in (2, 2, 0):
        at = QPoint(header.sectionViewportPosition(section) + 20, header.height() // 2)
        qtbot.mouseClick(header.viewport(), LEFT, pos=at)
        shown.append("".join(row[0][0] for row in all_texts(trends.model)))
    assert shown == ["4653210", "0123564", "0123456"]
    trends.traces.setFocus()
    trends.traces.selectRow(4)
    qtbot.keyClick(trends.traces, K.Key_C, CONTROL)
    assert "4.kev\t2021-10-21T07:57:59.294967+00:00\t9.000 \N{MICRO SIGN}s\tfar" in QApplication.clipboard().text()


def test_the_key_that_closes_windows_closes_this_one(trends, application, qtbot):
    trends.activateWindow()
    qtbot.waitUntil(trends.isActiveWindow)
    qtbot.keyClick(trends.traces, K.Key_W, CONTROL)
    assert not trends.isVisible()


@pytest.mark.thorough
def test_the_command_asks_for_a_folder(empty_window, application, fleet, tmp_path, monkeypatch, qtbot):
    reported = []
    monkeypatch.setattr(dialogs, "report", lambda _parent, title, text, **_: reported.append((title, text)))
    monkeypatch.setattr(dialogs, "ask_folder", lambda *_: tmp_path)
    empty_window.actions_by_id.by_id["file.trends"].trigger()
    assert application.trends == []
    assert reported[0][0] == "No data set of traces"
    assert "satview export" in reported[0][1]
    monkeypatch.setattr(dialogs, "ask_folder", lambda *_: fleet)
    empty_window.actions_by_id.by_id["file.trends"].trigger()
    [window] = application.trends
    await_first_trend(window, qtbot)
    assert len(all_texts(window.model)) == 7


@pytest.mark.thorough
def test_the_command_line_shows_nothing_else(application, fleet, monkeypatch, qapp, qtbot):
    monkeypatch.setattr(windows, "_until_closed", lambda _app, outcome: outcome.code)
    assert windows._run_windows(qapp, application, [TraceLink(fleet)], False) == 0
    assert application.windows == []
    [window] = application.trends
    await_first_trend(window, qtbot)
    assert len(all_texts(window.model)) == 7
