"""A second trace beside the first: aligned, moved together, what changed and a click that shows it in both."""

from __future__ import annotations

import json

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QMessageBox

from satview.base.errors import TraceFormatError, UsageError
from satview.base.time import TimeWindow
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.formats.registry import open_trace
from satview.gui import dialogs
from satview.gui.comparison.panel import NO_RANGE, ComparisonPanel
from satview.gui.comparison.what_if_dialog import AxisDialog
from satview.gui.theme import LIGHT
from satview.session.session import Stage
from satview.store.axis import allow_axis, files_of
from satview.store.mark_file import note_files
from tests.gui.conftest import part, settle
from tests.gui.hands import CONTROL, LEFT, K, click_cell, take_keyboard
from tests.helpers.kev import TraceBuilder
from tests.helpers.scene import scene

MS = 1_000_000
LOCK = catalogue(Release.QNX_7).kernel_call_number("SYNC_MUTEX_LOCK")


def called(path, length, gap=MS, name="app"):
    """`app` runs, then waits in MUTEX within a call of so many ns, three times, a millisecond apart; a mark before."""
    builder = TraceBuilder().time_event(0).process_name(1, 7, name).state("RUNNING", 10, 7, 1).event(6 << 10 | 7, 500)
    for number in range(3):
        at = 10_000 + number * gap
        builder.call(LOCK, at).state("MUTEX", at + 10, 7, 1).state("READY", at + length, 7, 1)
        builder.state("RUNNING", at + length + 100, 7, 1).exit(LOCK, at + length + 200)
    return builder.event(6 << 10, 4 * gap).write(path)


@pytest.fixture
def pair(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    return called(tmp_path / "a" / "before.kev", 20_000), called(tmp_path / "b" / "after.kev", 400_000)


@pytest.fixture
def compared(empty_window, load, pair, qtbot, monkeypatch):
    """Return a window with the second trace beside the first one, opened by its key."""
    window = load(empty_window, pair[0])
    take_keyboard(window, qtbot)
    monkeypatch.setattr(dialogs, "ask_open", lambda *_: [pair[1]])
    qtbot.keyClick(window.workspace.area.view, K.Key_D, CONTROL)
    qtbot.waitUntil(lambda: window.workspace.comparison.second is not None)
    settle(qtbot, window)
    return window


@pytest.fixture
def comparison(compared):
    return compared.workspace.comparison


@pytest.fixture
def panel(compared, qtbot):
    panel = compared.workspace.panel(ComparisonPanel)
    qtbot.waitUntil(lambda: panel.view.changes is not None and not panel.view.is_pending)
    return panel


def trigger(window, command):
    window.actions_by_id.refresh()
    assert window.actions_by_id.by_id[command].isEnabled()
    window.actions_by_id.by_id[command].trigger()


@pytest.mark.thorough
def test_what_a_lossy_trace_does_not_show_is_said(empty_window, load, tmp_path, qtbot):
    """The second trace is the first one without 4,000 of 20,000 ns: how long states were unknown comes last."""
    window = load(empty_window, called(tmp_path / "before.kev", 20_000))
    window.workspace.second_trace.open(scene(tmp_path))
    panel = window.workspace.panel(ComparisonPanel)
    qtbot.waitUntil(lambda: panel.view.changes is not None and not panel.view.is_pending)
    assert panel.missing.isVisible()
    assert "Cannot tell: scene.kev: events were lost for 4.000 \u00b5s of it" in panel.missing.text()
    names = [panel.model.index(row, 0).data() for row in range(panel.model.rowCount())]
    changes = [panel.model.index(row, 4).data() for row in range(len(names))]
    is_in_doubt = [
        name.endswith(" in unknown") or change == "unknown" for name, change in zip(names, changes, strict=True)
    ]
    assert is_in_doubt == sorted(is_in_doubt)
    assert names.index("client 1 in unknown") > names.index("client 1 in RUNNING")
    assert changes[names.index("app 1 in MUTEX")] == "unknown", "it may be lost"


@pytest.mark.thorough
def test_both_move_together_and_name_their_files(compared, comparison):
    first, second = comparison.first, comparison.second
    first.viewport.jump(part(first, 100_000, 150_000))
    assert second.viewport.window == part(second, 100_000, 150_000)
    second.viewport.jump(part(second, 2 * MS, 3 * MS))
    shown = first.viewport.window
    pixel = shown.length // first.viewport.width_px + 1  # windows begin at whole pixels
    assert abs(shown.start - part(first, 2 * MS, 3 * MS).start) <= pixel
    heads = [pane.area._heads[0].text() for pane in (compared.workspace.panes.first, compared.workspace.panes.second)]
    assert heads == ["before.kev", "after.kev"]
    trigger(compared, "compare.linked")
    before = second.viewport.window
    first.viewport.show_all()
    assert second.viewport.window == before


@pytest.mark.thorough
def test_aligned_by_cursors_events_condition_and_offset(compared, comparison, qtbot):
    first, second = comparison.first, comparison.second
    assert comparison.offset_text == "0 ns"
    start = first.trace.window.start
    first.selection.set_cursors(start + 1_000, None)
    trigger(compared, "compare.cursors")
    assert "second trace has no cursor A" in compared.statusBar().currentMessage()
    second.selection.set_cursors(second.trace.window.start + 250, None)
    trigger(compared, "compare.cursors")
    assert (comparison.offset_text, comparison.aligned_by) == ("750 ns", "cursors A")
    first.viewport.jump(TimeWindow(start + 1_000, start + 9_000))
    assert second.viewport.window.start == second.trace.window.start + 250
    comparison.align_by("-2us")
    assert comparison.offset_text == "-2 µs"
    assert first.viewport.limits.start < start - 2_000, "as far as the second one reaches"
    with pytest.raises(UsageError, match="more than a year apart"):
        comparison.align_by("40000000s")
    comparison.align_by('event == "USREVENT/EVENT 7"')
    qtbot.waitUntil(lambda: comparison.aligned_by.startswith("first event"))
    assert comparison.offset_text == "0 ns"
    comparison.align_by("event == MSG_SENDV")
    qtbot.waitUntil(lambda: "before.kev has no event where" in compared.statusBar().currentMessage())


@pytest.mark.thorough
def test_what_changed_first_and_where(panel, comparison, qtbot):
    def cell(row, column):
        return panel.model.index(row, column).data()

    names = [cell(row, 0) for row in range(panel.model.rowCount())]
    assert "app 1 in MUTEX" in names[:3]
    assert cell(names.index("app 1 in MUTEX"), 1).startswith("states: ")
    panel.kind.setCurrentIndex(panel.kind.findData("call"))
    panel.every.setChecked(True)
    assert cell(0, 1) in ("kernel calls: Mean", "kernel calls: 99 %", "kernel calls: Longest")
    panel.words.setText("longest")
    assert panel.model.rowCount() == 1
    assert [cell(0, column) for column in range(2, 5)] == ["20.20 µs", "400.2 µs", "+1,881.2 %"]
    click_cell(panel.table, 0)
    for opened, length in ((comparison.first, 20_200), (comparison.second, 400_200)):
        event = opened.selection.event
        assert opened.trace.spec(event).name == "SYNC_MUTEX_LOCK"
        assert opened.viewport.window.contains(int(opened.trace.events.time_cycles[event]) + length)
    longest = panel._change(0)
    qtbot.waitUntil(lambda: panel.overlaid.overlaid is not None and panel.overlaid.overlaid.change is longest)
    before, after = panel.overlaid.overlaid.sides
    assert (before.tolist(), after.tolist()) == ([20_200] * 3, [400_200] * 3)
    shares = panel.plot.shares
    assert [float(each.sum()) for each in shares] == [1.0, 1.0]
    assert int(shares[0].argmax()) < int(shares[1].argmax())


@pytest.mark.thorough
def test_the_part_that_is_chosen_is_compared(panel, compared, qtbot):
    opened = compared.session.opened
    whole = opened.trace.window
    part_of_it = TimeWindow(whole.start + 1_000_000, whole.start + 1_500_000)

    def compared_part(text):
        panel.extent.setCurrentIndex(panel.extent.findText(text))
        qtbot.waitUntil(lambda: not panel.view.is_pending)
        return panel.view.changes.windows[0]

    compared_part("Selected range")
    assert panel.message.text() == NO_RANGE
    opened.selection.set_range(part_of_it)
    assert compared_part("Whole traces") == whole
    assert compared_part("Selected range") == part_of_it
    opened.viewport.move(TimeWindow(whole.start, whole.start + 2_000_000))
    assert compared_part("In view") == opened.viewport.window.within(whole) != whole


@pytest.mark.thorough
@pytest.mark.parametrize("size", [(1400, 860), (1024, 700)])
def test_figures_are_never_cut_off_where_words_can_be(panel, compared, qtbot, size):
    """Also when the plot beside the table comes, which takes room."""
    compared.resize(*size)
    panel.table.selectRow(0)
    qtbot.waitUntil(lambda: panel.plot is not None and panel.plot.isVisible())
    settle(qtbot, compared)
    head = panel.table.horizontalHeader()
    last = head.count() - 1
    assert head.sectionViewportPosition(last) + head.sectionSize(last) <= panel.table.viewport().width()
    panel.table.setColumnWidth(0, 400)  # as somebody who drags its edge
    compared.resize(compared.width() + 20, compared.height())
    settle(qtbot, compared)
    assert panel.table.columnWidth(0) == 400


@pytest.mark.thorough
def test_keys_act_on_the_trace_whose_lanes_have_the_keyboard(compared, comparison, qtbot):
    second = compared.workspace.panes.second
    second.area.view.setFocus()
    qtbot.waitUntil(lambda: compared.workspace.active is second)
    comparison.set_linked(is_linked=False)
    comparison.second.select_event(5, reveal=False)
    QTest.keyClick(second.area.view, K.Key_R)
    assert comparison.second.selection.time_range is not None
    assert comparison.first.selection.time_range is None


@pytest.mark.thorough
def test_a_filter_of_the_second_trace_is_said_in_its_title(compared, comparison, qtbot):
    second, head = comparison.second, compared.workspace.panes.second.area._heads[0]
    assert head.text() == "after.kev"
    second.filters.add_pass("class == THREAD")
    qtbot.waitUntil(lambda: head.text() == "after.kev (filtered)")
    assert "Filter: 10 of 20 events." in head.toolTip()
    second.filters.show_all()
    qtbot.waitUntil(lambda: head.text() == "after.kev")


@pytest.mark.thorough
@pytest.mark.parametrize("ending", ["compare.linked", "compare.end"])
def test_that_both_move_together_is_said_while_they_do(compared, comparison, ending):
    message = compared.statusBar()
    assert message.currentMessage().startswith("Both traces move together")
    trigger(compared, ending)
    assert message.currentMessage() == ""
    message.showMessage("Something else")
    if ending == "compare.linked":
        trigger(compared, "compare.end")
        assert message.currentMessage() == "Something else"


@pytest.mark.thorough
def test_the_second_trace_goes_and_leaves_nothing(compared, comparison, qtbot):
    limits = comparison.first.viewport.limits
    comparison.align_by("1s")
    trigger(compared, "compare.end")
    assert comparison.second is None
    assert compared.workspace.panes.second is None
    assert comparison.first.viewport.limits == limits
    assert not compared.actions_by_id.by_id["compare.starts"].isEnabled()
    QTest.keyClick(compared.workspace.area.view, K.Key_Backslash, CONTROL)
    assert compared.workspace.is_split, "the same trace again, in two sets of lanes"


@pytest.mark.thorough
def test_a_file_that_is_none_is_said(empty_window, load, pair, qtbot, monkeypatch, tmp_path):
    window = load(empty_window, pair[0])
    (tmp_path / "x.kev").write_bytes(b"nothing")
    for path, says in (
        (tmp_path / "x.kev", "this is not a kernel event trace"),
        (pair[0], "That file is open here already"),
    ):
        monkeypatch.setattr(dialogs, "ask_open", lambda *_, path=path: [path])
        trigger(window, "file.compare")
        qtbot.waitUntil(lambda says=says: says in window.statusBar().currentMessage())
    assert window.workspace.comparison.second is None


@pytest.mark.thorough
def test_both_on_one_axis_with_the_offset_they_were_aligned_by(compared, comparison, qtbot, monkeypatch, tmp_path):
    monkeypatch.setattr("platformdirs.user_state_path", lambda *_, **__: tmp_path / "state")
    comparison.align_by("300us")
    trigger(compared, "file.together")
    dialog = compared.findChild(AxisDialog)
    assert [dialog.table.item(row, 0).text() for row in range(2)] == ["before", "after"]
    assert dialog.table.item(1, 2).text() == "300 µs"
    dialog.table.item(1, 0).setText("guest")
    qtbot.mouseClick(dialog.buttons.button(dialog.buttons.StandardButton.Open), LEFT)
    qtbot.waitUntil(lambda: compared.session.stage is Stage.READY and compared.session.path.suffix == ".sataxis")
    settle(qtbot, compared)
    trace = compared.session.opened.trace
    assert [part.name for part in files_of(trace).parts] == ["before", "guest"]
    first, second = (part.window.start for part in files_of(trace).parts)
    assert second - first == 300_000
    assert trace.cpu_titles == ("before CPU 0", "guest CPU 0")


@pytest.mark.thorough
def test_notes_on_the_second_trace_are_not_lost_when_it_goes(compared, comparison, pair, qtbot):
    folder = pair[1].parent
    folder.rename(folder.with_name("away"))
    second = compared.workspace.panes.second
    second.area.view.setFocus()
    qtbot.waitUntil(lambda: compared.workspace.active is second)
    trigger(compared, "marks.bookmark")
    assert "Notes on the second trace are not saved" in compared.workspace._second_field.text()
    assert len(compared.session.unstored_marks()) == 1
    trigger(compared, "compare.end")
    assert len(compared.session.unstored_marks()) == 1, "the window asks about them before it closes"
    folder.with_name("away").rename(folder)
    assert compared.save_notes() == []
    assert compared.session.unstored_marks() == []
    assert len(note_files(folder / "after.kev")) == 1


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """Return an axis that somebody else made, which names a file outside of its folder, and that file."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "folder").mkdir()
    first = scene(tmp_path / "folder")
    other = tmp_path / "other.kev"
    other.write_bytes(first.read_bytes())
    axis = tmp_path / "folder" / "x.sataxis"
    files = [{"name": "a", "path": first.name, "offset_ps": 0}, {"name": "b", "path": "../other.kev", "offset_ps": 0}]
    axis.write_text(json.dumps({"satview_axis": 1, "files": files}))
    return axis, other


def answer_with(qapp, button):
    """Click a button of the question once it shows; return what the question said."""
    said = []

    def click():
        boxes = (widget for widget in qapp.topLevelWidgets() if isinstance(widget, QMessageBox))
        box = next(box for box in boxes if box.isVisible())
        said.append((box.text(), box.informativeText()))
        QTest.mouseClick(next(each for each in box.buttons() if each.text() == button), LEFT)

    QTimer.singleShot(100, click)
    return said


@pytest.mark.thorough
def test_a_window_asks_before_an_axis_opens_files_of_other_folders(application, empty_window, outside, qapp, qtbot):
    axis, other = outside
    said = answer_with(qapp, "Do not open")
    application.open_files([axis], empty_window)
    assert said == [("x.sataxis names files outside of its folder. They are opened with it:", str(other))]
    assert empty_window.session.path is None
    said = answer_with(qapp, "Open them")
    application.open_files([axis], empty_window)
    assert len(said) == 1
    qtbot.waitUntil(lambda: empty_window.session.stage is Stage.READY, timeout=10_000)
    settle(qtbot, empty_window)
    assert [part.name for part in files_of(empty_window.session.opened.trace).parts] == ["a", "b"]
    assert len(open_trace(axis).events) > 0, "a yes holds for the command line too"


def test_a_yes_holds_for_the_files_that_were_shown_only(outside, tmp_path):
    axis, other = outside
    allow_axis(axis)
    assert len(open_trace(axis).events) > 0
    other.rename(tmp_path / "third.kev")
    axis.write_text(axis.read_text().replace("other.kev", "third.kev"))
    with pytest.raises(TraceFormatError, match=r"third.kev outside of its folder"):
        open_trace(axis)


@pytest.mark.thorough
def test_what_the_logger_did_is_listed_after_the_system(empty_window, load, tmp_path, qtbot, monkeypatch):
    """Of things that all changed: that of tracelogger changed most, and is last and dim."""
    for name, length in (("before", 20_000), ("after", 400_000)):
        (tmp_path / name).mkdir()
        called(tmp_path / name / "t.kev", length, name="usr/sbin/tracelogger")
    window = load(empty_window, tmp_path / "before" / "t.kev")
    monkeypatch.setattr(dialogs, "ask_open", lambda *_: [tmp_path / "after" / "t.kev"])
    window.registry["file.compare"].run()
    panel = window.workspace.panel(ComparisonPanel)
    qtbot.waitUntil(lambda: panel.view.changes is not None and not panel.view.is_pending)
    answer = panel.model.answer
    are_of_logger = [panel._change(row).is_of_logger for row in range(len(answer))]
    assert 0 < sum(are_of_logger) < len(answer)
    assert are_of_logger == sorted(are_of_logger)
    assert answer["weight"].argmax() >= are_of_logger.index(True)
    dim = panel.model.index(are_of_logger.index(True), 0).data(Qt.ItemDataRole.ForegroundRole)
    assert dim.rgb() & 0xFFFFFF == LIGHT.dim
