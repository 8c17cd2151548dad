"""The panel of SQL: typed queries, views, rows that jump, mistakes, and work that is stopped."""

import sys
import threading

import numpy as np
import psutil
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from satview.base.time import TimeWindow
from satview.gui.panels import sql_panel
from satview.session.panels import sql as panel_sql
from satview.session.panels.sql import drawing_of, event_of_row, query_of, sql_completions, window_of_row
from satview.tables.schema import views
from satview.tables.sql import owner_number, sql, waiting
from tests.gui.hands import CONTROL, LEFT, K, all_texts
from tests.helpers.scene import SERVER, rounds_of_a_loop
from tests.helpers.sql_values import one_row_of, query_at_work, sql_values

LOST = "events were lost for 4.000 µs of it"


@pytest.fixture
def panel(window):
    window.actions_by_id.by_id["panels.sql"].trigger()
    return window.workspace.panels["sql"]


def run_query(panel, qtbot, query):
    panel.editor.setPlainText(query)
    QTest.keyClick(panel.editor, K.Key_Return, CONTROL)
    qtbot.waitUntil(lambda: panel.run_button.text() == "Run" and not panel._drawing_job.is_busy, timeout=20_000)


@pytest.mark.thorough
def test_a_query_that_is_typed(panel, qtbot):
    query = "select state, start_ns, length_ns from state join thread using (thread) where label = 'client 1' "
    run_query(panel, qtbot, query + "and state in ('REPLY', 'READY')")
    names = [panel.model.headerData(i, Qt.Orientation.Horizontal) for i in range(3)]
    assert names == ["state", "start_ns", "length_ns"]
    assert all_texts(panel.model) == [["READY", "0", "1000"], ["REPLY", "4000", "4001"]]
    assert (
        panel.message.text()
        == f"2 rows\nNot all: state: {LOST}; CPU 1 logs no event, so it is not known what ran there"
    )
    panel.table.selectRow(1)
    assert panel.copied_text() == "state\tstart_ns\tlength_ns\nREPLY\t4000\t4001"


@pytest.mark.thorough
def test_an_empty_answer_says_what_the_trace_cannot_show(panel, qtbot):
    run_query(panel, qtbot, "select * from interrupt")
    missing = "Cannot tell: interrupt: the trace has no interrupts; capture the class INTR"
    assert panel.message.text() == f"0 rows\n{missing}, and 1 more reason"
    assert panel.message.toolTip() == f"{missing}\nNot all: {LOST}"


@pytest.mark.thorough
def test_rows_jump_to_events_and_times(panel, opened, qtbot):
    run_query(panel, qtbot, "select event, name from event where name = 'EVENT 7' or time_ns = 8000 order by event")
    panel.table.clicked.emit(panel.model.index(0, 1))
    assert opened.trace.spec(opened.selection.event).class_name == "USREVENT"
    panel.table.clicked.emit(panel.model.index(1, 0))
    assert opened.trace.clock.ns(int(opened.trace.events.time_cycles[opened.selection.event])) == 8_000
    run_query(panel, qtbot, "select 4000 as start_ns, 8000 as end_ns")
    panel.table.clicked.emit(panel.model.index(0, 0))
    shown, clock = opened.viewport.window, opened.trace.clock
    assert clock.ns(shown.start) < 4_000
    assert clock.ns(shown.end) > 8_000
    assert shown.length < 6_000


@pytest.mark.thorough
def test_a_view_from_the_list(panel, opened, qtbot):
    index = panel.views.findText("states_at(at_ns)")
    panel.views.activated.emit(index)
    qtbot.waitUntil(lambda: panel.run_button.text() == "Run", timeout=20_000)
    assert panel.editor.toPlainText() == "select * from states_at(0) limit 1000"
    assert [row[1] for row in all_texts(panel.model)] == ["client 1", "server 1"]
    assert panel.views.currentText() == "Views"
    assert panel.views.count() == len(views()) + 1


@pytest.mark.thorough
def test_mistakes_and_a_missing_package_are_reported(panel, qtbot, monkeypatch):
    run_query(panel, qtbot, "select nothing from event")
    assert '"nothing" not found' in panel.message.text()
    assert panel.model.rowCount() == 0
    run_query(panel, qtbot, "create table a as select 1")
    assert "CREATE is not a query" in panel.message.text()
    monkeypatch.setitem(sys.modules, "duckdb", None)
    run_query(panel, qtbot, "select 1")
    assert "pip install 'duckdb>=" in panel.message.text()


@pytest.mark.thorough
def test_a_query_is_stopped_within_a_function(panel, qtbot):
    """The click is answered at once, and then nothing computes any more, which would take minutes otherwise."""
    run_query(panel, qtbot, "select 1 as one")
    panel.editor.setPlainText("select levenshtein(repeat('a', 120000), repeat('b', 120000))")
    QTest.mouseClick(panel.run_button, LEFT)
    at_work = []
    qtbot.waitUntil(lambda: at_work.append(query_at_work()) or at_work[-1] is not None, timeout=20_000)
    busy = at_work[-1]
    assert panel.run_button.text() == "Stop"
    QTest.mouseClick(panel.run_button, LEFT)
    assert (panel.message.text(), panel.run_button.text()) == ("Stopped", "Run")
    qtbot.waitUntil(lambda: not busy.is_running() or busy.status() == psutil.STATUS_ZOMBIE, timeout=5_000)
    run_query(panel, qtbot, "select 2 as two")
    assert all_texts(panel.model) == [["2"]]


@pytest.mark.thorough
def test_the_process_of_queries_is_closed_with_the_panel(panel, qtbot):
    run_query(panel, qtbot, "select count(*) as n from event")
    [process] = waiting.of_owner(owner_number(panel._opened.trace))
    panel.close_down()
    assert not process.is_alive


@pytest.mark.thorough
def test_a_large_answer_is_cut(panel, qtbot, monkeypatch):
    monkeypatch.setattr(panel_sql, "_ANSWER_BYTES", 1 << 20)
    run_query(panel, qtbot, "select * from range(1000000)")
    assert panel.message.text() == "129,055 rows, cut: there are more; add a LIMIT"
    assert panel.model.rowCount() == 129_055


@pytest.mark.thorough
def test_every_type_has_a_text_and_can_be_copied(panel, qtbot):
    run_query(panel, qtbot, one_row_of(sql_values()))
    texts = [each.text for each in sql_values()]
    assert all_texts(panel.model) == [texts]
    panel.table.selectRow(0)
    assert panel.copied_text().splitlines()[1].split("\t") == texts


@pytest.mark.thorough
def test_what_rows_are_about(opened):
    trace = opened.trace
    found = sql(trace, f"select 3 as reply_event, 5 as event, {trace.window.start} as time_cycles union all "
                       "select null, 1000000, null union all select 4, null, 5 order by 1")  # fmt: skip
    assert [event_of_row(trace, found, row) for row in range(3)] == [5, 4, None]
    assert [window_of_row(trace, found, row) for row in range(3)] == [
        TimeWindow(trace.window.start, trace.window.start + 1), None, None]  # fmt: skip
    assert trace.threads.pid.tolist().count(SERVER) == 1
    window = TimeWindow(trace.clock.cycles(4000), trace.clock.cycles(5000))
    assert query_of(views()["load_between"], trace, window) == "select * from load_between(4000, 5000) limit 1000"
    for view in views().values():
        if view.parameters:
            sql(trace, query_of(view, trace, window))


def show_as(panel, name):
    panel.shown.setCurrentIndex([panel.shown.tabText(i) for i in range(panel.shown.count())].index(name))


def shown_as(panel, qtbot, name):
    show_as(panel, name)
    qtbot.waitUntil(lambda: not panel._drawing_job.is_busy, timeout=20_000)


def click_at(panel, qtbot, cycles, value):
    """Click into the plot at a time and a value, as the mouse does."""
    box = panel.plot.plot.getViewBox()
    at = box.mapViewToScene(QPointF(cycles - panel.plot._axis.origin, value))
    point = panel.plot.plot.mapFromScene(at)
    QTest.mouseClick(panel.plot.plot.viewport(), LEFT, pos=point)


@pytest.mark.thorough
def test_proposals_while_a_query_is_typed(panel, qtbot):
    panel.editor.setFocus()
    QTest.keyClicks(panel.editor, "select * from sta")
    proposals = panel.editor.proposals
    assert proposals.isVisible()
    texts = [proposals.item(row).text().split("    ")[0] for row in range(proposals.count())]
    assert texts[:2] == ["state", "states_between(from_ns, to_ns)"]
    QTest.keyClick(panel.editor, K.Key_Tab)
    assert panel.editor.toPlainText() == "select * from state"
    QTest.keyClicks(panel.editor, " where star")
    QTest.keyClick(panel.editor, K.Key_Down)
    QTest.keyClick(panel.editor, K.Key_Return)
    assert panel.editor.toPlainText() == "select * from state where start_cycles"
    QTest.keyClicks(panel.editor, " = 'star")
    assert not proposals.isVisible()
    QTest.keyClick(panel.editor, K.Key_Escape)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("select * from ready_", ["ready_wait"]),
        ("select s.len| from state s", ["length_cycles", "length_ns"]),
        ("select le| from state", ["length_cycles", "length_ns", "least", "left join"]),
        ("select 'it''s sta|", []),
        ("sel", ["select"]),
        ("select count(*) from event where name = 'a' and cl", ["class"]),
    ],
)
def test_what_fits_at_the_cursor(text, first):
    at = text.index("|") if "|" in text else len(text)
    found = [each.text for each in sql_completions(text.replace("|", ""), at)]
    assert found[: len(first)] == first or found[:1] == first[:1]
    assert bool(found) == bool(first)


@pytest.mark.thorough
def test_values_over_time(panel, opened, qtbot):
    run_query(panel, qtbot, "select time_ns, event, event * 2 as twice from event order by event")
    shown_as(panel, qtbot, "Plot")
    assert panel.value.currentText() == "twice"
    drawing = panel._drawing
    assert drawing.values["twice"].tolist() == [2 * row for row in range(len(opened.trace.events))]
    qtbot.waitUntil(lambda: panel.plot is not None, timeout=10_000)  # its modules are imported in the background
    qtbot.waitUntil(lambda: len(panel.plot.plot.getPlotItem().items) == 1)
    click_at(panel, qtbot, int(opened.trace.events.time_cycles[3]), 6)
    assert opened.selection.event == 3


@pytest.mark.thorough
def test_intervals_as_lanes(panel, opened, qtbot):
    query = "select state, start_ns, length_ns from state join thread using (thread) where label = 'client 1' "
    run_query(panel, qtbot, query + "and state in ('REPLY', 'READY') order by start_ns")
    shown_as(panel, qtbot, "Lanes")
    assert panel._drawing.groups == ("READY", "REPLY")
    clock = opened.trace.clock
    starts = [clock.ns(cycles) for cycles in panel._drawing.start_cycles.tolist()]
    assert starts == [0, 4000]
    assert [clock.ns(cycles) for cycles in panel._drawing.end_cycles.tolist()] == pytest.approx([1000, 8001], abs=1)
    assert [panel.plot.legend.item(row).text() for row in range(2)] == ["READY", "REPLY"]
    qtbot.waitUntil(lambda: len(panel.plot.plot.getPlotItem().items) == 2)
    click_at(panel, qtbot, clock.cycles(6000), 1)
    assert clock.ns(opened.viewport.window.start) <= 4_000
    click_at(panel, qtbot, clock.cycles(6000), 2)  # nothing there: it stays


@pytest.mark.thorough
def test_rows_are_shown_before_it_is_known_what_can_be_drawn(panel, qtbot, monkeypatch):
    """Five million rows let the window stand still for 13 s to find their groups, which no list of rows needs."""
    asked = []
    monkeypatch.setattr(
        sql_panel, "drawing_of", lambda trace, result: asked.append(result) or drawing_of(trace, result)
    )
    run_query(panel, qtbot, "select 5 as time_ns, 1 as v")
    assert (panel.table.isVisible(), asked) == (True, [])
    shown_as(panel, qtbot, "Plot")
    assert len(asked) == 1
    assert panel.value.currentText() == "v"


@pytest.mark.thorough
def test_the_window_goes_on_while_rows_that_can_be_drawn_are_looked_for(panel, qtbot, monkeypatch):
    gate = threading.Event()
    monkeypatch.setattr(sql_panel, "drawing_of", lambda trace, result: gate.wait(60) and drawing_of(trace, result))
    run_query(panel, qtbot, "select 5 as time_ns, 1 as v")
    show_as(panel, "Plot")
    assert panel.reason.text() == "Looking for the rows that can be drawn\N{HORIZONTAL ELLIPSIS}"
    assert panel.reason.isVisible()
    show_as(panel, "Rows")
    assert panel.table.isVisible()
    show_as(panel, "Plot")
    gate.set()
    qtbot.waitUntil(lambda: panel.value.currentText() == "v", timeout=10_000)
    assert panel.plot.isVisible()


@pytest.mark.thorough
def test_why_nothing_can_be_drawn(panel, qtbot):
    run_query(panel, qtbot, "select 1 as one")
    shown_as(panel, qtbot, "Plot")
    assert panel.reason.isVisible()
    assert panel.reason.text().startswith("No column gives a time")
    run_query(panel, qtbot, "select 5 as time_ns")
    assert panel.reason.text() == "No column has values to plot."
    shown_as(panel, qtbot, "Lanes")
    assert panel.reason.text().startswith("No column gives a duration")
    shown_as(panel, qtbot, "Rows")
    assert panel.table.isVisible()
    run_query(panel, qtbot, "select nothing from event")
    shown_as(panel, qtbot, "Lanes")
    assert panel.table.isVisible()


@pytest.mark.thorough
def test_many_groups_and_nulls(opened):
    found = sql(
        opened.trace, "select i as time_ns, i % 20 as cpu, case when i % 2 = 0 then i end as v from range(100) t(i)"
    )
    drawing = drawing_of(opened.trace, found)
    assert len(drawing.groups) == 12
    assert drawing.groups[-1] == "9 others"
    assert np.isnan(drawing.values["v"]).sum() == 50
    assert drawing_of(opened.trace, sql(opened.trace, "select null::bigint as time_ns")) == "No row has a time."


@pytest.mark.thorough
def test_tables_on_activities_follow_the_file_of_timing(empty_window, load, tmp_path, qtbot):
    """Three of 40 rounds take longer than the 5 us of the file, none longer than the period."""
    window = load(empty_window, rounds_of_a_loop().write(tmp_path / "looping.kev"))
    window.workspace.show_panel("sql")
    panel = window.workspace.panels["sql"]
    run_query(panel, qtbot, "select misses from activity")
    assert all_texts(panel.model) == [["0"]]
    (tmp_path / "timing.toml").write_text('["control 1"]\ndeadline = "5us"\n')
    window.workspace.opened.time_activities("timing.toml")
    run_query(panel, qtbot, "select misses from activity where true")
    assert all_texts(panel.model) == [["3"]]


@pytest.mark.thorough
def test_ctrl_c_copies_the_selected_row_though_nothing_is_selected_in_the_lanes(window, panel, qtbot):
    run_query(panel, qtbot, "select 1 as a, 'x' as b union all select 2, 'y'")
    window.session.opened.selection.select(None, None, None)
    panel.table.setFocus()
    panel.table.selectRow(1)
    window.actions_by_id.refresh()
    assert window.actions_by_id.by_id["edit.copy"].isEnabled()
    window.actions_by_id.by_id["edit.copy"].trigger()
    assert QGuiApplication.clipboard().text() == "a\tb\n2\ty"
