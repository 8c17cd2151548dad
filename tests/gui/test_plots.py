"""The plots panel as a user has it: its key, what is drawn, clicks, exports, both themes."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QFontMetrics
from PySide6.QtWidgets import QApplication

import satview
from satview.analysis.times.basis import scope_of
from satview.analysis.times.cpu_times import LoadBy
from satview.analysis.times.state_times import activations
from satview.base.time import TimeWindow
from satview.gui import dialogs
from satview.gui.colours import value_colour
from satview.gui.theme import DARK
from satview.session.panels.plots import PlotKind
from satview.session.range_view import Extent
from tests.gui.conftest import DENSE
from tests.gui.hands import LEFT, K, click_box, click_tab, colours, rgb, run_program
from tests.helpers.extent import fewer
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import scene

SYNC_SEM_POST = 84  # never blocks, so that its caller had the CPU
_PROGRAM = """
import sys, time
from pathlib import Path
from satview.gui.windows.application import Application, make_qt_application
from satview.gui.windows.command_window import Shared
from satview.session.loading.files import RecentFiles
from satview.session.session import Stage
from satview.session.settings import Settings

app = make_qt_application()
window = Application(Shared(Settings(None), RecentFiles(None, 0))).new_window()
window.session.open(Path(sys.argv[1]))
def settle(until):
    end = time.monotonic() + 20
    while not until() and time.monotonic() < end:
        app.processEvents()
settle(lambda: window.session.stage is Stage.READY)
rest = time.monotonic() + 0.5
settle(lambda: time.monotonic() > rest)
print("pyqtgraph" in sys.modules)
window.registry["panels.plots"].run()
settle(lambda: window.workspace.panels["plots"].load is not None)
print("pyqtgraph" in sys.modules)
"""


def shown(window, qtbot):
    qtbot.keyClick(window.workspace.area.view, K.Key_G)
    panel = window.workspace.panels["plots"]
    qtbot.waitUntil(lambda: panel.load is not None)
    drawn(panel, qtbot)
    return panel


def drawn(panel, qtbot):
    qtbot.waitUntil(lambda: not panel.view.is_pending and panel.view.kind in panel.view.plotted)
    QApplication.processEvents()
    return panel.view.plotted[panel.view.kind]


@pytest.fixture
def panel(dense, qtbot):
    return shown(dense, qtbot)


@pytest.fixture
def durations(panel, qtbot):
    click_tab(panel.tabs, 1)
    assert panel.view.kind is PlotKind.DURATIONS
    drawn(panel, qtbot)
    return panel


def choose(box, text):
    box.setCurrentIndex(box.findText(text))


def click(plot, x, y, qtbot):
    """Click where a point of a plot is drawn."""
    position = plot.mapFromScene(plot.getViewBox().mapViewToScene(QPointF(x, y)))
    qtbot.mouseClick(plot.viewport(), LEFT, pos=position)


def bars(plot):
    return [item for item in plot.getPlotItem().items if type(item).__name__ == "BarGraphItem"]


@pytest.mark.thorough
def test_pyqtgraph_is_imported_when_the_panel_is_first_seen(tmp_path):
    done = run_program(_PROGRAM, scene(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.thorough
def test_hidden_by_its_key_it_does_not_work(panel, dense, qtbot):
    dense.workspace.area.view.setFocus()
    qtbot.keyClick(dense.workspace.area.view, K.Key_G)
    assert not dense.workspace.panel_shows("plots")
    dense.session.opened.viewport.zoom(0.5, dense.session.opened.trace.window.start)
    assert not panel.view.is_pending


@pytest.mark.thorough
def test_drawn_bars_are_the_cpu_time_of_the_statistics(panel, dense, qtbot):
    trace, viewport = dense.session.opened.trace, dense.session.opened.viewport
    whole = trace.window
    viewport.jump(TimeWindow(whole.start + whole.length // 3, whole.start + whole.length // 2))
    for by in LoadBy:
        choose(panel.by, f"By {by.value if by is LoadBy.CPU else by.value.lower()}")
        plotted = drawn(panel, qtbot)
        assert plotted.load.by is by
        assert (plotted.window.start, plotted.window.end) == (viewport.window.start, viewport.window.end)
        cpus = satview.Statistics(trace, plotted.window).cpus
        assert plotted.load.busy_cycles.sum() == cpus.busy_cycles.sum()
        drawn_as = [item.opts for item in bars(panel.load.plot)]
        area = sum(float(np.sum((each["x1"] - each["x0"]) * (each["y1"] - each["y0"]))) for each in drawn_as)
        reported = cpus.busy_cycles.sum() + cpus.interrupt_cycles.sum() + cpus.unknown_cycles.sum()
        assert area == pytest.approx(reported, rel=1e-9)
        assert panel.load.legend.count() == len(bars(panel.load.plot))


@pytest.mark.thorough
def test_bands_have_the_hues_of_the_lanes(panel, dense, qtbot):
    plotted = panel.view.plotted[PlotKind.LOAD]
    first = int(plotted.load.subjects[0])
    value = dense.session.opened.timeline.process_value(first)
    requested = QColor.fromRgb(value_colour(value, False))
    picture = panel.load.plot.grab().toImage()
    box = panel.load.plot.getViewBox()
    widest = int(np.argmax(plotted.load.busy_cycles[0]))
    x = float(plotted.load.edges[widest : widest + 2].mean()) - panel.load.plot.getAxis("bottom").origin
    position = panel.load.plot.mapFromScene(box.mapViewToScene(QPointF(x, 0.2)))
    assert picture.pixelColor(position) == requested


def test_no_text_of_the_time_axis_is_cut_off_at_its_end(panel, dense):
    axis, length = panel.load.plot.getAxis("bottom"), dense.session.opened.trace.window.length
    width_of = QFontMetrics(QApplication.font()).horizontalAdvance
    shown = 0
    for width_px in range(300, 900, 25):
        (_, labelled), _ = axis.tickValues(0, length, width_px)
        texts = axis.tickStrings(labelled, 1, 1)
        assert all(
            x / length * width_px + width_of(text) / 2 <= width_px + 1 for x, text in zip(labelled, texts, strict=True)
        )
        shown += len(texts)
    assert shown > 50


@pytest.mark.thorough
def test_plot_and_lanes_show_the_same_window_both_ways(panel, dense, qtbot):
    viewport, box = dense.session.opened.viewport, panel.load.plot.getViewBox()
    origin = panel.load.plot.getAxis("bottom").origin

    def ends():
        return [origin + round(x) for x in box.viewRange()[0]]

    assert ends() == [viewport.window.start, viewport.window.end]
    viewport.jump(viewport.window.zoomed(0.25, viewport.window.start + viewport.window.length // 2))
    assert ends() == [viewport.window.start, viewport.window.end]
    before = viewport.window
    view = panel.load.plot.viewport()
    middle = view.rect().center()
    qtbot.mousePress(view, LEFT, pos=middle)
    for step in range(1, 11):
        qtbot.mouseMove(view, middle - QPoint(10 * step, 0))
    qtbot.mouseRelease(view, LEFT, pos=middle - QPoint(100, 0))
    QApplication.processEvents()
    assert viewport.window.length == before.length
    assert viewport.window.start > before.start
    assert ends() == [viewport.window.start, viewport.window.end]
    viewport.back()
    assert viewport.window == before
    assert box.viewRange()[1][0] == pytest.approx(0)


@pytest.mark.thorough
def test_plot_is_below_the_lanes(panel, dense):
    lanes = dense.workspace.area.view
    left = lanes.mapToGlobal(QPoint(0, 0)).x()
    box = panel.load.plot.getViewBox().sceneBoundingRect()
    at = panel.load.plot.viewport().mapToGlobal(panel.load.plot.mapFromScene(box.topLeft())).x()
    assert abs(at - left) <= 3
    assert abs(box.width() - lanes.width()) <= 6


@pytest.mark.thorough
def test_click_on_a_bin_goes_there(panel, dense, qtbot):
    opened = dense.session.opened
    limits = opened.viewport.limits
    opened.viewport.zoom(0.5, limits.start + limits.length // 2)
    plotted = drawn(panel, qtbot)
    edges = plotted.load.edges
    x = float(edges[250]) + 1.0 - panel.load.plot.getAxis("bottom").origin + float(edges[1] - edges[0]) / 2
    click(panel.load.plot, x, 1.0, qtbot)
    qtbot.waitUntil(lambda: opened.selection.event is not None)
    at = int(opened.trace.events.time_cycles[opened.selection.event])
    assert abs(at - int(edges[250])) < 3 * int(edges[1] - edges[0])


def test_histogram_marks_percentiles_and_lists_the_longest(durations, dense, qtbot):
    choose(durations.measure, "READY: wait for a CPU")
    plotted = drawn(durations, qtbot)
    trace = dense.session.opened.trace
    longest = int(satview.Statistics(trace).threads.longest_ready_cycles.max())
    assert [name for name, _ in plotted.marks] == ["p50", "p90", "p99", "p99.9", "max"]
    assert plotted.marks[-1][1] == trace.clock.duration_ns(longest)
    assert int(np.count_nonzero(plotted.duration_ns <= plotted.marks[0][1])) >= len(plotted.occurrences) / 2
    heights = 10 ** bars(durations.durations.plot)[0].opts["height"] - 1
    assert np.rint(heights).astype(int).tolist() == plotted.histogram.counts.tolist()
    worst = durations.durations.worst
    assert worst.topLevelItemCount() == 20
    assert worst.topLevelItem(0).text(0) == "9.440 ms"


@pytest.mark.thorough
@pytest.mark.parametrize("height_px", fewer((200, 360), 1))
def test_texts_of_percentiles_do_not_overprint(durations, dense, qtbot, height_px):
    choose(durations.measure, "READY: wait for a CPU")
    drawn(durations, qtbot)
    dense.resizeDocks([dense.workspace.docks["plots"]], [height_px], Qt.Orientation.Vertical)
    plot = durations.durations.plot
    qtbot.waitUntil(lambda: (plot.height() < 150) is (height_px < 300))
    labels = [item.label for item in plot.getPlotItem().items if hasattr(item, "label")]
    assert [label.toPlainText().split()[0] for label in labels] == ["p50", "p90", "p99", "p99.9", "max"]
    boxes = [label.mapRectToScene(label.boundingRect()) for label in labels]
    overlaps = [
        (first, second) for first in range(5) for second in range(first) if (boxes[first] & boxes[second]).height() > 2
    ]
    assert not overlaps


@pytest.mark.thorough
def test_bar_lists_its_worst_and_a_line_jumps(durations, dense, qtbot):
    made, opened = durations.view.plotted[PlotKind.DURATIONS], dense.session.opened
    bar = int(np.argmax(made.histogram.counts))
    middle = float(made.histogram.edges_log10[bar : bar + 2].mean())
    click(durations.durations.plot, middle, 0.2, qtbot)
    qtbot.waitUntil(lambda: durations.durations.bar == bar)
    worst = durations.durations.worst
    of_bar = made.occurrences.longest(20, made.histogram.bin == bar)
    assert worst.topLevelItemCount() == 20
    qtbot.mouseClick(worst.viewport(), LEFT, pos=worst.visualItemRect(worst.topLevelItem(3)).center())
    event, row = opened.selection.event, int(of_bar[3])
    assert int(opened.trace.events.time_cycles[event]) == made.occurrences.start[row]
    assert int(opened.trace.events.thread[event]) == made.occurrences.thread[row]
    click(durations.durations.plot, float(made.histogram.edges_log10[0]) - 0.05, 0.2, qtbot)
    assert durations.durations.bar is None


@pytest.mark.thorough
def test_view_or_trace_and_all_or_the_selected(durations, dense, qtbot):
    opened = dense.session.opened
    everything = len(durations.view.plotted[PlotKind.DURATIONS].occurrences)
    opened.viewport.zoom(0.1, opened.trace.window.start + opened.trace.window.length // 2)
    part = len(drawn(durations, qtbot).occurrences)
    assert 0 < part < everything
    choose(durations.extent, "Whole trace")
    assert durations.view.extent is Extent.TRACE
    assert len(drawn(durations, qtbot).occurrences) == everything
    lane = next(info for info in opened.timeline.infos if info.thread and info.title.endswith("tiles-1"))
    opened.selection.select(None, lane.index, None)
    click_box(durations.only_selected)
    plotted = drawn(durations, qtbot)
    assert set(plotted.occurrences.thread.tolist()) == {lane.thread}
    assert f"times of {opened.trace.thread_name(lane.thread)};" in durations.statement.text()


@pytest.mark.thorough
def test_exports_are_the_picture_and_the_numbers(panel, dense, qtbot, tmp_path, monkeypatch):
    plotted, trace = drawn(panel, qtbot), dense.session.opened.trace
    size = panel.plot.size()
    for number, kind in enumerate(("png", "svg", "csv")):
        path = tmp_path / f"load.{kind}"
        monkeypatch.setattr(dialogs, "ask_save", lambda *_, path=path: path)
        panel.export_button.menu().actions()[number].trigger()
        qtbot.waitUntil(path.exists)
        qtbot.waitUntil(lambda path=path: panel.statement.text() == f"Wrote {path.name}")
    assert panel.plot.size() == size
    assert (tmp_path / "load.png").read_bytes().startswith(b"\x89PNG")
    drawing = (tmp_path / "load.svg").read_text("utf-8")
    # What is drawn is not scrolled: the first band and the last, whatever the panel has room for.
    assert panel.load.legend.count() > panel.load.legend.height() // panel.load.legend.sizeHintForRow(0)
    assert "Interrupts" in drawing
    assert "26.3 %" in drawing
    with (tmp_path / "load.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0][:2] == ["start_ns", "end_ns"]
    assert rows[0][2:-2] == list(plotted.titles)
    assert len(rows) == len(plotted.load.lengths) + 1
    total = sum(int(cell) for row in rows[1:] for cell in row[2:-2])
    assert total == pytest.approx(trace.clock.duration_ns(int(plotted.load.busy_cycles.sum())), abs=10 * 3_000)
    before = DENSE.read_bytes()
    panel.export("csv", DENSE)
    qtbot.waitUntil(lambda: not panel.statement.text().startswith("Wrote"))
    assert DENSE.read_bytes() == before


@pytest.mark.thorough
def test_dark_theme_paints_the_plots_dark(durations, dense, qtbot):
    dense.registry["view.theme_dark"].run()
    QApplication.processEvents()
    picture = durations.durations.plot.grab().toImage()
    assert rgb(picture, picture.width() - 2, 2) == DARK.base
    assert DARK.accent in colours(picture)


@pytest.mark.thorough
def test_without_threads_or_priorities_it_says_what_to_capture(window, qtbot):
    panel = shown(window, qtbot)
    choose(panel.by, "By priority")
    drawn(panel, qtbot)
    assert panel.plot is None
    assert "SETCLASSWIDE THREAD" in panel.message.text()
    assert not panel.export_button.isEnabled()
    click_tab(panel.tabs, 1)
    choose(panel.measure, "Message round trip")
    drawn(panel, qtbot)
    assert "COMM events" in panel.message.text()


@pytest.mark.thorough
def test_calls_without_states_are_no_load(empty_window, load, tmp_path, qtbot):
    """Calls show CPUs for an instant, so that it would be 0.0 % beside the rest, of which nothing is known."""
    trace = TraceBuilder().time_event(0).call(SYNC_SEM_POST, 5_000).exit(SYNC_SEM_POST, 5_500).call(11, 10_000)
    window = load(empty_window, trace.write(tmp_path / "calls.kev"))
    window.workspace.toggle_panel("plots")
    panel = window.workspace.panels["plots"]
    qtbot.waitUntil(lambda: panel.load is not None)
    drawn(panel, qtbot)
    assert panel.message.text().startswith("The trace does not show who had the CPUs here")
    assert panel.statement.text() == ""


@pytest.mark.thorough
def test_lost_time_is_hatched(window, opened, qtbot):
    panel = shown(window, qtbot)
    titles = [panel.load.legend.item(row).text() for row in range(panel.load.legend.count())]
    assert any(title.endswith("Not known") for title in titles)
    assert bars(panel.load.plot)[-1].opts["brush"].style() == Qt.BrushStyle.BDiagPattern


@pytest.mark.thorough
def test_a_view_that_keeps_moving_is_drawn_and_ends_right(panel, dense, qtbot):
    viewport, trace = dense.session.opened.viewport, dense.session.opened.trace
    viewport.jump(viewport.window.zoomed(0.2, viewport.window.start))
    drawn(panel, qtbot)
    windows = set()
    panel.view.changed.connect(lambda: windows.add(panel.view.plotted[PlotKind.LOAD].window))
    for _ in range(60):
        viewport.pan(0.01)
        qtbot.wait(5)
    assert len(windows) > 2
    plotted = drawn(panel, qtbot)
    assert plotted.window == viewport.window.clamped(trace.window)


@pytest.fixture
def counts(panel, qtbot):
    click_tab(panel.tabs, 2)
    assert panel.view.kind is PlotKind.COUNTS
    drawn(panel, qtbot)
    return panel


@pytest.mark.thorough
def test_counts_of_classes_and_of_conditions_per_division(counts, dense, qtbot, tmp_path):
    opened = dense.session.opened
    plotted = drawn(counts, qtbot)
    totals = dict(zip(plotted.titles, plotted.divisions.counts.sum(axis=1).tolist(), strict=True))
    assert totals["THREAD"] == satview.select(opened.trace, "class == THREAD").size
    assert sum(totals.values()) == len(opened.trace.events)
    assert counts.counts.legend.item(0).text() == f"{max(totals.values()):,}  {plotted.titles[0]}"
    qtbot.keyClicks(counts.conditions, "event == MSG_SENDV; state == MUTEX and cpu == 1")
    qtbot.keyClick(counts.conditions, K.Key_Return)
    counts.divisions.setValue(7)
    plotted = drawn(counts, qtbot)
    assert plotted.titles == ("event == MSG_SENDV", "state == MUTEX and cpu == 1")
    assert plotted.divisions.counts.shape == (2, 7)
    rows = satview.select(opened.trace, "event == MSG_SENDV")
    times = opened.trace.events.time_cycles[rows]
    assert plotted.divisions.counts[0].tolist() == np.histogram(times, plotted.divisions.edges)[0].tolist()
    path = tmp_path / "counts.csv"
    counts.export("csv", path)
    qtbot.waitUntil(path.exists)
    table = list(csv.reader(path.read_text("utf-8").splitlines()))
    assert table[0] == ["start_ns", "end_ns", *plotted.titles]
    assert [int(row[2]) for row in table[1:]] == plotted.divisions.counts[0].tolist()


@pytest.mark.thorough
def test_a_click_on_a_division_goes_to_its_first_event(counts, dense, qtbot):
    plotted = drawn(counts, qtbot)
    made, kind, number = plotted.divisions, plotted.titles.index("THREAD"), 40
    edges = made.edges - dense.session.opened.trace.window.start
    x, y = float(edges[number : number + 2].mean()), float(made.counts[kind, number])
    click(counts.counts.plot, x, y, qtbot)
    event = dense.session.opened.selection.event
    assert made.edges[number] <= dense.session.opened.trace.events.time_cycles[event] < made.edges[number + 1]
    assert event == made.first_row[kind, number]


@pytest.mark.thorough
def test_a_faulty_condition_is_told_and_the_next_one_counts(counts, qtbot):
    qtbot.keyClicks(counts.conditions, "duraton > 2ms")
    qtbot.keyClick(counts.conditions, K.Key_Return)
    qtbot.waitUntil(lambda: not counts.view.is_pending)
    assert "column 1" in counts.message.text()
    counts.conditions.clear()
    qtbot.keyClicks(counts.conditions, "class == COMM")
    qtbot.keyClick(counts.conditions, K.Key_Return)
    assert drawn(counts, qtbot).titles == ("class == COMM",)
    assert counts.plot is counts.counts


@pytest.mark.thorough
def test_load_by_thread_names_threads(panel, qtbot):
    choose(panel.by, "By thread")
    drawn(panel, qtbot)
    lines = [panel.load.legend.item(row).text() for row in range(panel.load.legend.count())]
    assert any("map_update 1 (tiles-1)" in line for line in lines)
    choose(panel.by, "By partition")
    drawn(panel, qtbot)
    assert "partition" in panel.message.text()


@pytest.mark.thorough
def test_periods_and_responses_have_histograms(durations, dense, qtbot):
    """Those of a thread are those of the table of activations."""
    opened = dense.session.opened
    info = next(info for info in opened.timeline.infos if info.title == "plan-50ms")
    opened.select_at(info.index, opened.trace.window.start + 10**9)
    durations.only_selected.click()
    choose(durations.extent, "Whole trace")
    choose(durations.measure, "Period: from one activation to the next")
    found = drawn(durations, qtbot).occurrences
    table = activations(scope_of(opened.trace, None, None, None, None))
    mine = table.thread == info.thread
    known = table.period_cycles[mine & (table.period_cycles >= 0)]
    assert sorted(found.cycles.tolist()) == sorted(known.tolist())
    assert set((found.start + found.cycles).tolist()) <= set(table.start[mine].tolist())
    choose(durations.measure, "Response: from ready to the next wait")
    found = drawn(durations, qtbot).occurrences
    whole = mine & ~table.is_cut
    assert sorted(found.cycles.tolist()) == sorted((table.end - table.start)[whole].tolist())
