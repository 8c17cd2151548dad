"""Ten tasks of users of the System Profiler by the mouse alone, in one sitting.

1 who used the CPUs; 2 a part of time fills the window; 3 the next events of a thread; 4 events of one kind; 5 a certain
event; 6 a bookmark, and back to it; 7 one thread alone, and all again; 8 why a thread waits; 9 how far apart two events
are; 10 the load by thread.
"""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtWidgets import QApplication

from satview.analysis.times.cpu_times import LoadBy
from satview.session.commands import Menu
from satview.session.panels.plots import PlotKind
from tests.gui.hands import CONTROL, LEFT, NONE, K, click_cell, drag, take_keyboard


class Desk:
    """A window with the dense sample, a copy of it: bookmarks are stored beside a trace.

    Attributes:
        actions: Clicks, keys, drags and typed texts so far; a menu and its entry are two clicks.
    """

    def __init__(self, window, qtbot):
        self.window, self.qtbot, self.actions = window, qtbot, 0
        self.workspace, self.opened = window.workspace, window.session.opened
        self.view, self.trace = self.workspace.area.view, window.session.opened.trace

    def press(self, key, modifiers=NONE):
        """Press a key where the keyboard is."""
        self.actions += 1
        self.qtbot.keyClick(QApplication.focusWidget() or self.view, key, modifiers)

    def type(self, text):
        self.actions += 1
        self.qtbot.keyClicks(QApplication.focusWidget(), text)

    def menu(self, menu, title):
        """Open a menu by a click on the bar, and click an entry."""
        self.actions += 2
        self.leave_lanes()
        bar, opened = self.window.menuBar(), self.window.actions_by_id.menus[menu]
        self.qtbot.mouseClick(bar, LEFT, pos=bar.actionGeometry(opened.menuAction()).center())
        entry = next(action for action in opened.actions() if action.text().replace("&", "") == title)
        assert entry.isEnabled(), title
        self.qtbot.mouseClick(opened, LEFT, pos=opened.actionGeometry(entry).center())

    def row(self, number, modifiers=NONE):
        """Click a row of the list of events."""
        self.actions += 1
        self.leave_lanes()
        click_cell(self.workspace.panels["events"].table, number, 3, modifiers=modifiers)

    def click(self, widget, at=None):
        """Click a widget, in its middle or elsewhere."""
        self.actions += 1
        self.qtbot.mouseClick(widget, LEFT, pos=at if at is not None else widget.rect().center())

    def click_row(self, table, number):
        """Click a row of the table of a panel."""
        self.actions += 1
        click_cell(table, number)

    def drag(self, start, end):
        """Drag over the lanes."""
        self.actions += 1
        drag(self.view, start, end)

    def leave_lanes(self):
        """Report what the system reports when the mouse goes elsewhere."""
        QApplication.sendEvent(self.view, QEvent(QEvent.Type.Leave))

    def wait(self, until):
        self.qtbot.waitUntil(until, timeout=10_000)

    def event_name(self):
        event = self.opened.selection.event
        return None if event is None else self.trace.spec(event).name


def sit_down(window, load, qtbot, path):
    """Open a trace, with the keyboard at its lanes."""
    take_keyboard(load(window, path), qtbot)
    return Desk(window, qtbot)


@pytest.fixture
def desk(empty_window, load, qtbot, dense_copy):
    return sit_down(empty_window, load, qtbot, dense_copy)


def busiest(desk):
    """Return the first row of the statistics, once they are there."""
    panel = desk.workspace.panels["statistics"]
    desk.wait(lambda: panel.isVisible() and panel.model.rowCount() > 3)
    return panel.model.index(0, 0).data()


def plotted(desk):
    panel = desk.workspace.panels["plots"]
    desk.wait(lambda: panel.load is not None and not panel.view.is_pending and PlotKind.LOAD in panel.view.plotted)
    return panel.view.plotted[PlotKind.LOAD].load.by


def test_the_load_by_thread_by_the_keyboard_alone(desk):
    """The keys of all other tasks are pressed in test_keys, test_measuring and test_sixteen_tasks."""
    desk.press(K.Key_G)
    panel = desk.workspace.panels["plots"]
    plotted(desk)
    for _ in range(60):
        if QApplication.focusWidget() is panel.by:
            break
        desk.press(K.Key_Tab)
    assert QApplication.focusWidget() is panel.by
    desk.press(K.Key_Down)
    desk.wait(lambda: panel.view.by is LoadBy.THREAD)
    assert plotted(desk) is LoadBy.THREAD


@pytest.mark.thorough
def test_by_the_mouse_alone(desk):
    opened, trace, qtbot = desk.opened, desk.trace, desk.qtbot
    desk.menu(Menu.PANELS, "Statistics")  # 1
    assert "map_update" in busiest(desk)
    desk.menu(Menu.PANELS, "Events")
    drag(desk.view, QPoint(200, 60), QPoint(240, 60))  # 2
    expected = opened.selection.time_range
    desk.menu(Menu.VIEW, "Zoom to range")
    window = opened.viewport.window
    pixel = expected.length // desk.view.width() + 1  # windows begin at whole pixels
    assert abs(window.start - expected.start) <= pixel
    assert abs(window.end - expected.end) <= pixel
    table = desk.workspace.panels["events"].table
    bar = table.verticalScrollBar()
    bar.setValue(0)
    desk.row(2)  # 5: the third row, which is seen
    assert opened.selection.event == table.model().event_at(table.indexAt(QPoint(5, 5)).row() + 2)
    desk.row(3)
    lane, seen = opened.selection.lane, [opened.selection.event]
    for _ in range(3):  # 3
        desk.menu(Menu.GO, "Next event")
        seen.append(opened.selection.event)
    assert opened.selection.lane == lane
    assert seen == sorted(set(seen))
    desk.menu(Menu.EDIT, "Clear selection")  # the range goes, the event stays
    desk.menu(Menu.MARKS, "Bookmark")  # 6
    here = opened.selection.event
    desk.menu(Menu.VIEW, "Show everything")
    desk.menu(Menu.MARKS, "Next mark")
    assert opened.marks.selected.start_cycles == int(trace.events.time_cycles[here])
    name = desk.event_name()
    desk.menu(Menu.EDIT, "Only events of this kind")  # 4
    desk.wait(lambda: opened.filters.row_count < len(trace.events))
    desk.row(1)
    assert desk.event_name() == name
    desk.menu(Menu.EDIT, "Undo")
    desk.wait(lambda: opened.filters.row_count == len(trace.events))
    desk.menu(Menu.EDIT, "Only this thread")  # 7
    desk.wait(lambda: opened.filters.row_count < len(trace.events))
    desk.menu(Menu.EDIT, "Undo")
    desk.wait(lambda: opened.filters.row_count == len(trace.events))
    desk.menu(Menu.GO, "Why?")  # 8
    desk.wait(lambda: bool(opened.why.steps))
    desk.menu(Menu.PANELS, "Events")
    bar.setValue(50)
    desk.row(52)  # 9
    desk.row(54, CONTROL)
    delta = desk.workspace.panels["events"].delta
    assert delta.isVisible()
    assert "#53" in delta.text.text()
    desk.menu(Menu.PANELS, "Plots")  # 10
    panel = desk.workspace.panels["plots"]
    plotted(desk)
    between_clicks_ms = QApplication.doubleClickInterval()
    QApplication.setDoubleClickInterval(0)  # for so long a list that a click opened takes no other one
    try:
        qtbot.mouseClick(panel.by, LEFT)
        QApplication.processEvents()
        options = panel.by.view()
        at = options.visualRect(options.model().index(list(LoadBy).index(LoadBy.THREAD), 0)).center()
        qtbot.mouseMove(options.viewport(), at)
        qtbot.mouseClick(options.viewport(), LEFT, pos=at)
    finally:
        QApplication.setDoubleClickInterval(between_clicks_ms)
    desk.wait(lambda: panel.view.by is LoadBy.THREAD)
    assert plotted(desk) is LoadBy.THREAD
