"""A trace may call its programs anything; wherever a name shows, it is text."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from PySide6.QtCore import QAbstractListModel, QModelIndex, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QAbstractButton, QAbstractItemView, QApplication, QLabel, QTextBrowser, QWidget

import satview.gui
from satview.gui.dialogs import InfoDialog
from satview.gui.swimlane.mouse import HoverCard, hover_text
from satview.gui.widgets import PlainLabel
from satview.session.session import Stage
from satview.store.mark_file import Mark
from tests.helpers.kev import TraceBuilder

IMAGE = '<img src="file:///etc/x.png">'
HOSTILE = f"&a {IMAGE}\x1b[2J\n=cmd()\u202egnp\u200b"
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f\u200b\u202e]")
ROLES = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole)


@pytest.fixture
def hostile(empty_window, qtbot, tmp_path):
    builder = TraceBuilder().time_event(0)
    builder.process_name(1, 2, HOSTILE).thread_name(2, 2, 1, HOSTILE)
    for time in range(10, 500, 10):
        builder.state(("RUNNING", "READY")[time // 10 % 2], time, 2, 1)
    builder.call(11, 505, (1, 2)).exit(11, 509)
    empty_window.session.open(builder.write(tmp_path / "a&b<i>.kev"))
    qtbot.waitUntil(lambda: empty_window.session.stage is Stage.READY, timeout=20_000)
    workspace = empty_window.workspace
    for name, dock in workspace.docks.items():
        dock.show()
        dock.raise_()
        QApplication.processEvents()
        if name == "statistics":  # works only while it can be seen
            qtbot.waitUntil(lambda: workspace.panels["statistics"].model.rowCount() > 0, timeout=20_000)
    moment = workspace.opened.trace.window.start + 5
    workspace.opened.marks.add(Mark(moment, moment, HOSTILE))
    workspace.opened.select_event(20)
    QApplication.processEvents()
    return empty_window


def cells(model, parent=None):
    parent = QModelIndex() if parent is None else parent
    for row in range(model.rowCount(parent)):
        for column in range(1 if isinstance(model, QAbstractListModel) else model.columnCount(parent)):
            index = model.index(row, column, parent)
            yield index
            if column == 0:
                yield from cells(model, index)


def check(text, where):
    assert not UNSEEN.search(text), (where, text)


def check_tip(tip, where):
    check(tip, where)
    assert "<img" not in tip, (where, tip)
    assert "<" not in tip or tip.startswith('<span style="white-space: pre-wrap">'), (where, tip)


def walk(window):
    """Check every widget of a window; return how many texts hold the name."""
    found = 0
    for widget in window.findChildren(QWidget):
        check_tip(widget.toolTip(), widget)
        if isinstance(widget, QLabel) and not isinstance(widget, HoverCard):
            assert widget.textFormat() == Qt.TextFormat.PlainText or "<" not in widget.text(), widget.text()
            check(widget.text(), widget)
            found += IMAGE in widget.text()
        if isinstance(widget, QAbstractButton):
            check(widget.text(), widget)
        if isinstance(widget, QTextBrowser):
            html = widget.toHtml()
            assert "<img" not in html
            check(widget.toPlainText(), widget)
            found += IMAGE in widget.toPlainText()
        if isinstance(widget, QAbstractItemView) and widget.model() is not None:
            for index in cells(widget.model()):
                text, tip = (str(index.data(role) or "") for role in ROLES)
                check(text, widget)
                assert "\n" not in text, (widget, text)
                check_tip(tip, widget)
                found += IMAGE in text
    for action in window.findChildren(QAction):
        check(action.text(), action)
        check_tip(action.toolTip(), action)
    return found


@pytest.mark.thorough
def test_every_widget_shows_names_as_text(hostile):
    assert walk(hostile) > 10


@pytest.mark.thorough
def test_information_hover_and_search_show_names_as_text(hostile, qtbot):
    workspace = hostile.workspace
    dialog = InfoDialog(workspace.opened.trace, hostile)
    walk(dialog)
    dialog.close()
    lane = next(info.index for info in workspace.opened.timeline.infos if info.thread)
    span = workspace.opened.timeline.lane(lane).at(workspace.opened.trace.window.start + 100)
    text = hover_text(workspace.opened, lane, span, 20, workspace.opened.trace.window.start + 100)
    assert "&lt;img" in text
    assert "<img" not in text
    check(text, "hover")
    hostile.registry["go.to_lane"].run()
    QApplication.processEvents()
    assert walk(hostile) > 11


@pytest.mark.thorough
def test_plots_and_their_files_show_names_as_text(hostile, qtbot, tmp_path):
    workspace = hostile.workspace
    workspace.show_panel("plots")
    plots = workspace.panels["plots"]
    qtbot.waitUntil(lambda: plots.plot is not None and plots.plot is plots.load)
    lines = [plots.load.legend.item(row).text() for row in range(plots.load.legend.count())]
    assert sum('x.png">\\x1b' in line for line in lines) == 1  # the name of a process is what follows its last slash
    for kind in ("svg", "csv"):
        plots.export(kind, tmp_path / f"load.{kind}")
        qtbot.waitUntil((tmp_path / f"load.{kind}").exists)
    drawing = ET.parse(tmp_path / "load.svg")
    assert not [node for node in drawing.iter() if node.tag.endswith("img")]
    text = (tmp_path / "load.csv").read_text("utf-8")
    assert not UNSEEN.search(text)
    assert "\n=cmd" not in text
    plots.tabs.setCurrentIndex(1)
    qtbot.waitUntil(lambda: plots.plot is plots.durations)
    assert IMAGE in plots.durations.worst.topLevelItem(0).text(2)
    lane = workspace.opened.lane_of_thread(int(workspace.opened.trace.events.thread[20]))
    workspace.opened.selection.select(None, lane, None)
    plots.only_selected.click()
    qtbot.waitUntil(lambda: IMAGE in plots.statement.text())
    for plot in (plots.load.plot, plots.durations.plot):
        assert not [item for item in plot.scene().items() if hasattr(item, "toHtml") and "<img" in item.toHtml()]
    walk(hostile)


@pytest.mark.thorough
def test_every_tool_tip_and_label_goes_through_the_one_function():
    root = Path(satview.gui.__file__).parent
    for path in root.rglob("*.py"):
        for call in (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)):
            name = ast.unparse(call.func)
            if name.endswith("setToolTip") or name == "QToolTip.showText":
                tip = call.args[1] if len(call.args) > 1 else call.args[0]
                tip = tip.body if isinstance(tip, ast.IfExp) else tip
                assert isinstance(tip, ast.Constant) or ast.unparse(tip).startswith("tool_tip("), (path, call.lineno)
            assert name != "QLabel", (path, call.lineno)


@pytest.mark.parametrize("text", ["a &lt;b&gt; c", "<b>a</b>", "a & b", "plain"])
def test_a_label_draws_what_is_written(qapp, text):
    """Compared with a label of Qt that knows its format before it got its text."""
    mine, plain = PlainLabel(text), QLabel()
    plain.setTextFormat(Qt.TextFormat.PlainText)
    plain.setText(text)
    assert mine.sizeHint() == plain.sizeHint()
    for label in (mine, plain):
        label.resize(plain.sizeHint())
    assert mine.grab().toImage() == plain.grab().toImage()
    mine.deleteLater()
    plain.deleteLater()
