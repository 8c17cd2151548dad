"""Live: a file grows in steps, is cut, vanishes and comes back while a window follows it."""

from __future__ import annotations

import struct
import weakref

import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QApplication

from satview.capture.buffers import LoggerOptions
from satview.capture.run import Capture, run
from satview.events import wire
from satview.gui.swimlane.view import SwimlaneView
from satview.session.session import Stage
from tests.gui.conftest import settle
from tests.helpers.collector import no_collector
from tests.helpers.commands import satview
from tests.helpers.kev import TraceBuilder

END = b"TRACE_HEADER_END::"


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """The bytes of a real capture: header and system page, and the slots."""
    path = tmp_path_factory.mktemp("capture") / "periodic.kev"
    run(Capture("periodic", options=LoggerOptions(iterations=0), duration_ns=300_000_000), path)
    data = path.read_bytes()
    page = int(data[data.index(b"TRACE_SYSPAGE_LEN::") + 19 :].split(b"TRACE_")[0])
    start = data.index(END) + len(END) + page
    return data[:start], data[start:]


class Writer:
    """Writes a capture bit by bit."""

    def __init__(self, path, captured):
        self.path = path
        self.start, self.slots = captured
        self.count = len(self.slots) // 16

    def write(self, share):
        self.path.write_bytes(self.start + self.slots[: self.upto(share) * 16])
        self.share = share

    def append(self, share):
        with self.path.open("ab") as file:
            file.write(self.slots[self.upto(self.share) * 16 : self.upto(share) * 16])
        self.share = share

    def upto(self, share):
        return int(self.count * share)


@pytest.fixture
def writer(tmp_path, captured):
    return Writer(tmp_path / "live.kev", captured)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("satview.session.loading.files.POLL_MS", 30)
    monkeypatch.setattr("satview.session.loading.files._REST_FACTOR", 0.0)


@pytest.fixture
def follow(empty_window, qtbot):
    def begin(path):
        empty_window.session.open(path, is_followed=True)
        qtbot.waitUntil(lambda: empty_window.session.stage is Stage.READY)
        return empty_window

    return begin


@pytest.fixture
def live(writer, follow):
    """Return a function that follows a file with a share of the capture."""

    def begin(share):
        writer.write(share)
        return follow(writer.path)

    return begin


@pytest.fixture
def grow(writer, empty_window, qtbot):
    """Return a function that lets the file grow to a share of the capture, and waits until the window shows that."""

    def until(share):
        writer.append(share)
        return grown(qtbot, empty_window, writer.upto(share))

    return until


def grown(qtbot, window, slots):
    """Wait until the window shows that many slots."""
    qtbot.waitUntil(
        lambda: window.session.opened is not None and window.session.opened.trace.slot_count == slots, timeout=8_000
    )
    return window.session.opened


@pytest.mark.thorough
def test_new_events_appear_and_end_like_a_trace_opened_at_once(live, grow, writer, qtbot, load, application):
    window = live(0.3)
    first = window.session.opened
    count = len(first.trace.events)
    assert first.trace.slot_count == writer.upto(0.3)
    for share in (0.5, 0.9, 1.0):
        grow(share)
    opened = window.session.opened
    assert len(opened.trace.events) > count * 2
    assert window.workspace.opened is opened
    assert window.workspace.panels["events"].model.rowCount() == len(opened.trace.events)
    settle(qtbot, window)
    other = load(application.new_window(), writer.path).session.opened
    assert (other.trace.events.time_cycles == opened.trace.events.time_cycles).all()
    assert other.trace.problems.counts() == opened.trace.problems.counts()
    assert [info.title for info in other.timeline.infos] == [info.title for info in opened.timeline.infos]


@pytest.mark.thorough
def test_the_answer_of_why_stays_when_the_file_grows(live, grow, qtbot):
    """Of the same thread at the same moment; what ended its state is in the later part of the file now."""
    window = live(0.5)
    window.activateWindow()
    opened, why = window.session.opened, window.session.opened.why
    states = opened.trace.states.event
    event = int(states[len(states) // 2])
    opened.select_event(event)
    qtbot.keyClick(window.workspace.area.view, Qt.Key.Key_Y)
    qtbot.waitUntil(lambda: bool(why.steps))
    name, since = opened.trace.thread_name(why.steps[0].thread), why.steps[0].since_cycles
    browser = window.workspace.panels["why"].browser
    for share in (0.8, 1.0):
        grow(share)
        qtbot.waitUntil(lambda: bool(why.steps))
        assert (opened.trace.thread_name(why.steps[0].thread), why.steps[0].since_cycles) == (name, since)
        assert name in browser.toPlainText()


@pytest.mark.thorough
def test_the_selected_row_of_a_table_stays_when_the_file_grows(live, grow, qtbot):
    """Of latencies, the longest first, which get more rows: the same begin is selected, wherever it stands now."""
    window = live(0.5)
    window.workspace.toggle_panel("transactions")
    panel = window.workspace.panels["transactions"]
    tabs = panel.tabs
    qtbot.mouseClick(tabs, Qt.MouseButton.LeftButton, pos=tabs.tabRect(1).center())
    qtbot.waitUntil(lambda: panel.view.answer is not None and panel.model.rowCount() > 3)
    table, model = panel.table, panel.model
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=table.visualRect(model.index(2, 0)).center())
    start, before = int(model.answer["start_cycles"][2]), model.answer.trace
    assert table.currentIndex().row() == 2
    grow(1.0)
    qtbot.waitUntil(lambda: model.answer.trace is not before)
    assert model.rowCount() > 3
    assert int(model.answer["start_cycles"][table.currentIndex().row()]) == start
    assert [index.row() for index in table.selectionModel().selectedRows()] == [table.currentIndex().row()]


@pytest.mark.thorough
def test_plots_follow_the_longer_reading(live, grow, qtbot):
    import satview

    window = live(0.4)
    window.workspace.toggle_panel("plots")
    plots = window.workspace.panels["plots"]
    qtbot.waitUntil(lambda: plots.plot is plots.load is not None)
    shown = plots.view.plotted
    for share in (0.7, 1.0):
        opened = grow(share)
        whole = opened.trace.window
        opened.viewport.show_all()
        qtbot.waitUntil(lambda whole=whole: not plots.view.is_pending and shown["Load over time"].window == whole)
        load = shown["Load over time"].load
        assert load.busy_cycles.sum() == satview.Statistics(opened.trace).cpus.busy_cycles.sum()
        bars = [item.opts for item in plots.load.plot.getPlotItem().items if "x0" in getattr(item, "opts", {})]
        origin = plots.load.plot.getAxis("bottom").origin
        assert [int(bars[0]["x0"][0]) + origin, int(bars[0]["x1"][-1]) + origin] == [whole.start, whole.end]
        assert plots.plot is plots.load


@pytest.mark.thorough
def test_half_a_slot_is_no_problem_and_is_read_when_whole(writer, follow, qtbot):
    cut = writer.upto(0.5) * 16
    writer.path.write_bytes(writer.start + writer.slots[: cut + 5])
    window = follow(writer.path)
    assert window.session.opened.trace.slot_count == cut // 16
    assert "partial-slot" not in window.session.opened.trace.problems.counts()
    with writer.path.open("ab") as file:
        file.write(writer.slots[cut + 5 : cut + 32])
    opened = grown(qtbot, window, cut // 16 + 2)
    assert bytes(opened.trace.payloads.raw(0)) is not None


@pytest.mark.thorough
def test_window_selection_filter_folds_and_texts_stay(live, grow, qtbot):
    window = live(0.6)
    opened, workspace = window.session.opened, window.workspace
    trace = opened.trace
    opened.viewport.jump(type(trace.window)(trace.window.start + 1_000_000, trace.window.start + 90_000_000))
    event = len(trace.events) // 4
    opened.select_event(event, reveal=False)
    time = int(trace.events.time_cycles[event])
    hidden = int(trace.threads.row(1, 1))
    opened.filters.show_threads([hidden], False)
    folded = next(row.index for row in opened.lanes.rows if row.is_foldable and row.is_open)
    title = opened.timeline.infos[folded].title
    opened.lanes.fold(folded)
    workspace.find_bar.start()
    workspace.find_bar.line.setText("TIMER")
    group = workspace.panels["filter"].events.tree.topLevelItem(1)
    group.setExpanded(True)
    shown = opened.viewport.window
    view = workspace.area.view
    now = grow(1.0)
    assert now.trace is not trace
    assert workspace.area.view is view  # the views stay, and are reported
    pixel = shown.length // opened.viewport.width_px  # windows start at whole pixels; the scroll bar may have come
    assert abs(now.viewport.window.start - shown.start) <= pixel
    assert abs(now.viewport.window.length - shown.length) <= pixel
    assert not window.session.follow.is_sticking
    assert int(now.trace.events.time_cycles[now.selection.event]) == time
    assert now.trace.events.slot[now.selection.event] == trace.events.slot[event]
    assert not now.filters.threads[now.trace.threads.row(1, 1)]
    assert now.filters.threads.sum() == len(now.trace.threads) - 1
    row = next(row for row in now.lanes.rows if now.timeline.infos[row.index].title == title)
    assert not row.is_open
    assert workspace.find_bar.line.text() == "TIMER"
    assert not workspace.find_bar.isHidden()
    qtbot.waitUntil(lambda: len(now.search.hits) > 0)
    group = workspace.panels["filter"].events.tree.topLevelItem(1)
    assert group.isExpanded()


@pytest.mark.thorough
def test_lanes_are_not_painted_before_they_are_those_of_the_longer_reading(live, grow, qtbot, monkeypatch):
    window = live(0.4)
    settle(qtbot, window)
    opened = window.session.opened
    opened.filters.add_pass("event == MSG_RECEIVEV")
    settle(qtbot, window)
    view, painted, real = window.workspace.area.view, [], SwimlaneView._paint
    is_changing = []
    opened.begins_reload.connect(lambda: is_changing.append(True))
    opened.reloaded.connect(is_changing.clear)
    monkeypatch.setattr(SwimlaneView, "_paint", lambda self: (painted.append(bool(is_changing)), real(self))[1])
    view.repaint()
    assert painted == [False]
    grow(0.6)
    settle(qtbot, window)
    assert len(painted) > 1
    assert True not in painted


class Paints(QObject):
    """Notes which widgets Qt paints, in the order in which it does."""

    def __init__(self, **widgets):
        super().__init__()
        self._names, self.found = {widget: name for name, widget in widgets.items()}, []
        for widget in self._names:
            widget.installEventFilter(self)

    def eventFilter(self, watched, event):
        if event.type() is QEvent.Type.Paint:
            self.found.append(self._names[watched])
        return False


@pytest.mark.thorough
def test_names_overview_and_list_are_painted_after_the_lanes_of_the_longer_reading(live, grow, qtbot):
    window = live(0.4)
    settle(qtbot, window)
    area, table = window.workspace.area, window.workspace.panels["events"].table
    beside = {"names": area.labels, "overview": area.overview, "list": table.viewport()}
    paints = Paints(lanes=area.view, **beside)
    window.session.opened.reloaded.connect(paints.found.clear)  # the overview may still be painted for the opening
    paused = []
    window.session.opened.reloaded.connect(  # once all others have heard of it, and before anything is painted
        lambda: paused.append([name for name, widget in beside.items() if not widget.updatesEnabled()])
    )
    grow(0.6)
    qtbot.waitUntil(lambda: set(paints.found) == {"lanes", *beside})
    assert paused == [["names", "overview", "list"]]
    assert paints.found.index("lanes") < min(map(paints.found.index, beside))
    assert all(widget.updatesEnabled() for widget in beside.values())


@pytest.mark.thorough
def test_nothing_is_replaced_while_the_user_is_at_it_and_a_filter_set_meanwhile_is_not_forgotten(live, writer, qtbot):
    window = live(0.4)
    opened, trace = window.session.opened, window.session.opened.trace
    window.session.may_reload = lambda: False
    writer.append(0.6)
    qtbot.waitUntil(lambda: window.session._held is not None)
    qtbot.wait(100)
    assert window.session.opened.trace is trace
    opened.filters.add_pass("event == MSG_RECEIVEV")
    opened.search.find("event == MSG_RECEIVEV")
    window.session.may_reload = lambda: True
    grown(qtbot, window, writer.upto(0.6))
    assert 0 < opened.filters.row_count < len(opened.trace.events)
    assert len(opened.search.hits) == opened.filters.row_count


@pytest.mark.thorough
def test_hits_in_what_is_new_can_be_read(live, grow, qtbot):
    window = live(0.4)
    opened, model = window.session.opened, window.workspace.panels["results"].model
    opened.search.find("event == MSG_RECEIVEV")
    qtbot.waitUntil(lambda: model.rowCount() > 0)
    old, before = opened.trace, model.rowCount()
    grow(1.0)
    qtbot.waitUntil(lambda: model.rowCount() > before)
    last = model.rowCount() - 1
    assert opened.search.hits[last] >= len(old.events)
    assert model.index(last, 0).data() == f"{opened.search.hits[last] + 1:,}", "numbers count from 1"
    assert model.index(last, 4).data()


@pytest.mark.thorough
def test_list_keeps_its_position_and_its_selected_row(live, grow):
    window = live(0.5)
    opened, table = window.session.opened, window.workspace.panels["events"].table
    opened.select_event(40, reveal=False)
    position = table.verticalScrollBar().value()
    assert position < table.verticalScrollBar().maximum()
    assert table.currentIndex().row() == 40
    texts = [table.model().index(row, 1).data() for row in (40, 41)]
    grow(1.0)
    assert table.verticalScrollBar().value() == position
    assert table.currentIndex().row() == 40
    assert [table.model().index(row, 1).data() for row in (40, 41)] == texts
    assert table.model().rowCount() == len(opened.trace.events)


def append_rest(path, builder):
    """Append what a trace has more than its file; written again, the file would be empty for a moment."""
    whole = builder.write(path.with_name("whole.kev")).read_bytes()
    with path.open("ab") as file:
        file.write(whole[path.stat().st_size :])


def counts_of(tree):
    """Return the numbers of events of all leaves together."""
    tops = [tree.topLevelItem(i) for i in range(tree.topLevelItemCount())]
    return sum(int(top.child(i).text(1).replace(",", "")) for top in tops for i in range(top.childCount()))


@pytest.mark.thorough
def test_filter_panel_counts_on_while_it_shows_and_when_it_is_shown(live, grow, qtbot):
    window = live(0.2)
    opened, workspace = window.session.opened, window.workspace
    panel = workspace.panels["filter"]
    workspace.show_panel("filter")
    qtbot.waitUntil(lambda: workspace.panel_shows("filter"))
    group = panel.threads.tree.topLevelItem(0)
    group.setExpanded(True)
    panel.condition.line.setText("cpu ==")
    few = panel.events.tree.topLevelItemCount()
    grow(0.5)
    assert workspace.panels["filter"] is panel
    assert counts_of(panel.events.tree) == counts_of(panel.threads.tree) == len(opened.trace.events)
    assert group.isExpanded()
    assert panel.condition.line.text() == "cpu =="
    workspace.show_panel("details")
    qtbot.waitUntil(lambda: not workspace.panel_shows("filter"))
    stale = counts_of(panel.events.tree)
    grow(1.0)
    assert counts_of(panel.events.tree) == stale
    workspace.show_panel("filter")
    qtbot.waitUntil(lambda: counts_of(panel.events.tree) == len(opened.trace.events))
    assert panel.events.tree.topLevelItemCount() >= few
    assert all(
        panel.events.tree.topLevelItem(i).checkState(0) == Qt.CheckState.Checked
        for i in range(panel.events.tree.topLevelItemCount())
    )


@pytest.mark.thorough
def test_lanes_in_view_stay_in_position_when_others_come_above(tmp_path, follow, qtbot, empty_window):
    """Processes are in the order of their pids; one that is born late may have a low one."""
    builder = TraceBuilder().time_event(0)
    for at in range(60):
        builder.state("READY", 100 + at, 100 + at, 1)
    path = builder.write(tmp_path / "many.kev")
    window = follow(path)
    opened, view = window.session.opened, window.workspace.area.view
    opened.lanes.fold_all()
    view.scroll_to(opened.lanes.rows[30].y_px + 5)
    titles = [opened.timeline.infos[row.index].title for row in view.visible_rows()]
    assert titles[0] != "CPU 0"
    for at in range(10):
        builder.state("READY", 200 + at, 10 + at, 1)
    append_rest(path, builder)
    grown(qtbot, window, 71)
    shown = [opened.timeline.infos[row.index].title for row in view.visible_rows()]
    assert shown[: len(titles) - 1] == titles[:-1], "how many fit may change with what is below"
    assert (view.scroll_px - view.visible_rows()[0].y_px) == 5


@pytest.mark.thorough
def test_problems_and_legend_follow(tmp_path, follow, qtbot):
    builder = TraceBuilder().time_event(0).state("READY", 100, 5, 1)
    path = builder.write(tmp_path / "grows.kev")
    window = follow(path)
    workspace = window.workspace
    workspace.show_panel("problems")
    qtbot.waitUntil(lambda: workspace.panel_shows("problems"))
    assert "RUNNING" not in workspace.area.legend.accessibleName()
    assert workspace.status.problems.text() == "File: no problems"
    append_rest(path, builder.state("RUNNING", 200, 5, 1))
    with path.open("ab") as file:  # the end of an event without beginning
        file.write(struct.pack("<4I", 3 << 30 | wire.code(2, 11), builder.at(300) & 0xFFFFFFFF, 0, 0))
    grown(qtbot, window, 4)
    assert "RUNNING" in workspace.area.legend.accessibleName()
    assert workspace.status.problems.text() == "File: 1 problem"
    assert workspace.panels["problems"].tree.topLevelItemCount() == 1


@pytest.mark.thorough
def test_view_sticks_to_the_end_until_one_scrolls_back(live, grow):
    window = live(0.3)
    opened = window.session.opened
    assert window.session.follow.is_sticking
    opened.viewport.zoom(0.25, opened.viewport.limits.end)
    length = opened.viewport.window.length
    now = grow(0.5)
    end = now.trace.window.end
    assert now.viewport.window.start < end <= now.viewport.window.end
    assert now.viewport.window.end - end < length / 20
    assert abs(now.viewport.window.length - length) <= length / 100
    now.viewport.pan(-1.5)
    back = now.viewport.window
    assert not window.session.follow.is_sticking
    assert not window.registry["capture.stick"].is_checked()
    now = grow(0.7)
    assert now.viewport.window == back
    window.workspace.area.view.setFocus()
    window.actions_by_id.by_id["capture.stick"].trigger()
    assert window.session.follow.is_sticking
    assert now.viewport.window.end >= now.trace.window.end
    now = grow(1.0)
    assert now.viewport.window.end >= now.trace.window.end


@pytest.mark.thorough
def test_whole_trace_stays_whole_and_the_list_stays_at_its_end(live, grow):
    window = live(0.3)
    now = grow(1.0)
    assert now.viewport.is_whole
    bar = window.workspace.panels["events"].table.verticalScrollBar()
    assert bar.value() == bar.maximum() > 100


@pytest.mark.thorough
def test_cut_file_begins_again_with_a_sentence(live, grow, writer, qtbot):
    window = live(0.8)
    window.session.opened.select_event(50)
    with qtbot.waitSignal(window.session.reported, timeout=8_000) as reported:
        writer.write(0.2)
    assert f"from {len(writer.start) + writer.upto(0.8) * 16:,} to" in reported.args[0]
    assert "it was cut short, or a new capture began" in reported.args[0]
    now = grown(qtbot, window, writer.upto(0.2))
    assert now.selection.is_empty
    assert now.viewport.is_whole
    assert window.session.follow.is_sticking
    grow(0.4)


@pytest.mark.thorough
def test_cut_below_its_header_waits_and_keeps_the_view(live, writer, qtbot):
    window = live(0.5)
    shown = window.session.opened
    writer.path.write_bytes(writer.start[:40])
    qtbot.waitUntil(lambda: "ends inside the header" in window.session.follow.note)
    assert window.session.opened is shown
    assert window.live.text().endswith("waiting  \N{RIGHTWARDS ARROW TO BAR}")
    with qtbot.waitSignal(window.session.reported, timeout=8_000):
        writer.write(0.1)
    grown(qtbot, window, writer.upto(0.1))


@pytest.mark.thorough
def test_ring_lap_of_the_same_length_is_noticed(live, writer, qtbot):
    window = live(0.5)
    half = writer.upto(0.5) * 16
    with qtbot.waitSignal(window.session.reported, timeout=8_000) as reported:
        writer.path.write_bytes(writer.start + writer.slots[half : 2 * half])
    assert "was written over from byte" in reported.args[0]
    now = grown(qtbot, window, writer.upto(0.5))
    assert int(now.trace.payloads.words(0)[0]) is not None


@pytest.mark.thorough
def test_file_that_vanishes_and_comes_back(live, writer, qtbot):
    window = live(0.4)
    shown = window.session.opened
    with qtbot.waitSignal(window.session.reported, timeout=8_000) as reported:
        writer.path.unlink()
    assert reported.args[0] == "live.kev is not there any more, waiting for it; what is shown stays"
    assert window.statusBar().currentMessage() == reported.args[0]
    assert "is not there" in window.session.follow.note
    assert window.session.opened is shown
    writer.write(0.6)
    grown(qtbot, window, writer.upto(0.6))
    assert window.session.follow.note == ""
    assert window.statusBar().currentMessage() == "", "it is there again"


@pytest.mark.thorough
def test_what_is_no_trace_any_more_ends_the_following_and_keeps_the_view(live, writer, qtbot):
    window = live(0.4)
    with qtbot.waitSignal(window.session.reported, timeout=8_000) as reported:
        writer.path.write_text("Dear all, this is no trace. " * 20)
    assert reported.args[0] == "live.kev: this is not a .kev file; following has ended, what is shown stays"
    assert window.session.follow is None
    assert window.session.opened.trace.slot_count == writer.upto(0.4)


@pytest.mark.thorough
def test_waits_for_a_file_that_is_not_there_yet(writer, empty_window, qtbot):
    empty_window.session.open(writer.path, is_followed=True)
    qtbot.waitUntil(lambda: "is not there yet" in empty_window.views.loading.text.text())
    writer.path.write_bytes(b"")
    qtbot.waitUntil(lambda: "empty so far" in empty_window.views.loading.text.text())
    writer.write(0.2)
    qtbot.waitUntil(lambda: empty_window.session.stage is Stage.READY)
    assert empty_window.live.isVisibleTo(empty_window)


def test_what_is_no_kev_fails_with_a_page(empty_window, tmp_path, qtbot):
    path = tmp_path / "letter.kev"
    path.write_text("Dear all, this is long enough to be no header.")
    empty_window.session.open(path, is_followed=True)
    qtbot.waitUntil(lambda: empty_window.session.stage is Stage.FAILED)
    assert "only .kev files can be followed" in empty_window.views.failed.remedy.text().lower()
    assert empty_window.session.follow is None


@pytest.mark.thorough
def test_live_command_follows_the_open_file(grow, writer, empty_window, load, qtbot):
    writer.write(0.4)
    window = load(empty_window, writer.path)
    assert not window.live.isVisibleTo(window)
    window.workspace.area.view.setFocus()
    qtbot.keyClick(window.workspace.area.view, Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier)
    assert window.registry["capture.live"].is_checked()
    grow(0.8)
    assert window.live.isVisibleTo(window)
    assert "events/s" in window.live.text()
    window.registry["capture.live"].run()
    assert window.session.follow is None
    assert not window.live.isVisibleTo(window)
    writer.append(1.0)
    qtbot.wait(150)
    assert window.session.opened.trace.slot_count == writer.upto(0.8)


@pytest.mark.thorough
def test_listings_cannot_be_followed(empty_window, load, tmp_path, writer, monkeypatch):
    writer.write(0.1)
    window = load(empty_window, writer.path)
    object.__setattr__(window.session.opened.trace, "format", "traceprinter")
    window.registry["capture.live"].run()
    assert window.session.follow is None
    assert "Only .kev files" in window.statusBar().currentMessage()


def test_rest_after_a_slow_read_is_longer(qapp, tmp_path, monkeypatch):
    from satview.session.loading import files as module

    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module, "_REST_FACTOR", 2.0)
    path = tmp_path / "x.kev"
    path.write_bytes(b"x")
    follow = module.Follow(path)
    dues = []
    follow.due.connect(lambda: dues.append(now[0]))
    follow.begin_read()
    now[0] = 103.0
    follow._poll()
    assert dues == []
    follow.end_read(10)
    for now[0] in (104.0, 108.9, 109.1):
        follow._poll()
    assert dues == [109.1]
    follow.stop()


@pytest.mark.thorough
def test_live_demo_runs_in_a_window_and_leaves_nothing(empty_window, qtbot):
    empty_window.registry["capture.demo"].run()
    qtbot.waitUntil(lambda: empty_window.session.stage is Stage.READY, timeout=10_000)
    path = empty_window.session.path
    count = len(empty_window.session.opened.trace.events)
    qtbot.waitUntil(lambda: len(empty_window.session.opened.trace.events) > count, timeout=10_000)
    assert path.exists()
    assert empty_window.actions_by_id.by_id["capture.stop"].isEnabled()
    assert list(empty_window.recent.files()) == []
    empty_window.close()
    QApplication.processEvents()
    assert not path.parent.exists()


@pytest.mark.thorough
def test_command_line_checks_follow():
    done = satview("--follow")
    assert (done.returncode, b"--follow needs a FILE" in done.stderr) == (2, True)


@pytest.mark.thorough
def test_a_reading_that_was_followed_on_is_gone_without_the_collector(live, writer, qtbot):
    window = live(0.3)
    with no_collector():
        for share in (0.5, 0.7, 0.9):
            times = weakref.ref(window.session.opened.trace.events.time_cycles)
            with qtbot.waitSignal(window.session.reloaded, timeout=10_000):
                writer.append(share)
            qtbot.waitUntil(lambda times=times: times() is None, timeout=3_000)


@pytest.mark.thorough
def test_a_second_view_takes_the_refreshed_trace_too(live, grow, qtbot):
    window = live(0.3)
    opened = window.session.opened
    settle(qtbot, window)
    second = window.workspace.panes.split(window.theme).opened
    stays = second.viewport.window.shifted(0)
    second.viewport.zoom(0.25, stays.start)
    stays = second.viewport.window
    grow(1.0)
    assert second.trace is opened.trace
    assert second.lanes.timeline is opened.timeline
    assert second.viewport.limits == opened.viewport.limits
    assert second.viewport.window == stays
    settle(qtbot, window)


@pytest.mark.thorough
def test_names_from_pidin_stay_while_the_file_grows(follow, tmp_path, qtbot):
    """The trace knows process 7 by its number; the text calls it `planner`."""
    path, text = tmp_path / "live.kev", tmp_path / "board.txt"
    text.write_text("pid name\n7 bin/planner\n")
    builder = TraceBuilder().time_event(0)
    for time in (100, 200):
        builder.state("RUNNING", time, 7, 1)
    builder.write(tmp_path / "begun.kev")
    builder.state("READY", 300, 7, 1).write(tmp_path / "grown.kev")
    path.write_bytes((tmp_path / "begun.kev").read_bytes())
    session = follow(path).session
    with qtbot.waitSignal(session.opened.named):
        session.opened.name_processes(str(text))
    assert session.opened.trace.processes.names[-1] == "bin/planner"
    with qtbot.waitSignal(session.opened.reloaded), path.open("ab") as file:
        file.write((tmp_path / "grown.kev").read_bytes()[path.stat().st_size :])
    assert len(session.opened.trace.events) == 4
    assert session.opened.trace.processes.names[-1] == "bin/planner"
