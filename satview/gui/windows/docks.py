"""Docks of a window, whose positions are saved, and the summary of the trace in the toolbar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Final

from PySide6.QtCore import QRect, QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QIcon, QResizeEvent
from PySide6.QtWidgets import (
    QDockWidget,
    QHBoxLayout,
    QMainWindow,
    QSizePolicy,
    QStackedWidget,
    QTabBar,
    QToolBar,
    QToolButton,
    QWidget,
)

from satview.analysis.needs import PRIORITIES, has_no_states
from satview.analysis.verdicts.evidence import Severity
from satview.answers.verdicts import Verdicts
from satview.base.column_arrays import borrowed
from satview.base.named_files import resource_path
from satview.base.safe_text import counted, menu_text, tool_tip
from satview.base.time import format_duration
from satview.gui.swimlane.shares import busy_text
from satview.gui.theme import restyle
from satview.gui.widgets import ElidedLabel, line_up, named
from satview.session.commands import PANELS, Topic
from satview.session.open_trace import OpenTrace
from satview.session.workspace_file import Area, FloatingPanel, PanelGroup, PanelLayout
from satview.store.problems import KINDS
from satview.store.trace import Trace

# Docks of a window: save and restore the positions of panels; the drawer at the bottom shows one topic at a time.


_AREAS: Final[dict[Area, Qt.DockWidgetArea]] = {
    "left": Qt.DockWidgetArea.LeftDockWidgetArea,
    "right": Qt.DockWidgetArea.RightDockWidgetArea,
    "top": Qt.DockWidgetArea.TopDockWidgetArea,
    "bottom": Qt.DockWidgetArea.BottomDockWidgetArea,
}
_DIRECTIONS: Final = {
    area: Qt.Orientation.Horizontal if name in ("left", "right") else Qt.Orientation.Vertical
    for name, area in _AREAS.items()
}
_NAMES: Final = {area: name for name, area in _AREAS.items()}
Docks = Mapping[str, QDockWidget]


def panel_layout(window: QMainWindow, docks: Docks) -> PanelLayout:
    """Return the positions, sizes and tab groups of all panels, whose docks are given by name."""
    names = {dock: name for name, dock in docks.items()}
    bars = _bars(window, docks)
    members: dict[str, list[str]] = {}  # panels of a group of tabs, by its first panel
    hidden = [name for name, dock in docks.items() if dock.isHidden()]
    for name, dock in docks.items():
        tabs = [names[other] for other in (dock, *window.tabifiedDockWidgets(dock))]
        if not dock.isFloating() and name not in hidden:
            front = next(other for other in docks if other in tabs and other not in hidden)
            members.setdefault(front, []).append(name)
    for name in hidden:  # Qt reports only the side of a hidden dock
        area = window.dockWidgetArea(docks[name])
        front = next((other for other in members if window.dockWidgetArea(docks[other]) == area), name)
        members.setdefault(front, []).append(name)
    groups = [
        _group(window, docks, tuple(other for other in docks if other in tabs), bars) for tabs in members.values()
    ]
    groups.sort(key=lambda group: (group.area, group.y_px, group.x_px))
    floating = tuple(FloatingPanel(name, *_rect(dock)) for name, dock in docks.items() if dock.isFloating())
    return PanelLayout(tuple(groups), floating, tuple(hidden))


def restore_layout(window: QMainWindow, docks: Docks, layout: PanelLayout) -> None:
    """Move panels that exist to the positions of a layout; hide others, which stay on their side of the window."""
    if _shape(panel_layout(window, docks)) != _shape(layout):  # moving docks takes Qt tens of milliseconds
        _dock_all(window, docks, layout)
    _size(window, docks, layout)


def shows(dock: QDockWidget) -> bool:
    """Return whether a panel is visible; a panel behind another tab is not."""
    return dock.isVisible() and not dock.visibleRegion().isEmpty()


class PanelSizes:
    """Remembers the sizes of docked panels, and restores the sizes when a window that was made small grows again."""

    def __init__(self, window: QMainWindow, docks: Docks) -> None:
        self._window, self._docks = window, docks
        self._shares: dict[Qt.DockWidgetArea, tuple[int, int]] = {}

    def note(self) -> None:
        """Remember the sizes of the visible panels."""
        bars = _bars(self._window, self._docks)
        for area, (name, dock) in self._front_docks().items():
            size_px = self._size(area, dock)
            if _DIRECTIONS[area] is Qt.Orientation.Vertical and name in bars:
                size_px += bars[name].height()  # Qt counts the tabs
            self._shares[area] = size_px, self._size(area, self._window)

    def restore(self) -> None:
        """Restore the remembered sizes, or smaller ones in a smaller window."""
        for area, (_, dock) in self._front_docks().items():
            if area in self._shares:
                size_px, window_px = self._shares[area]
                fitting_px = min(size_px, round(size_px * self._size(area, self._window) / window_px))
                self._window.resizeDocks([dock], [fitting_px], _DIRECTIONS[area])

    def _front_docks(self) -> dict[Qt.DockWidgetArea, tuple[str, QDockWidget]]:
        """Return name and dock of one visible docked panel on each side of the window."""
        seen = [row for row in self._docks.items() if not row[1].isFloating() and shows(row[1])]
        return {self._window.dockWidgetArea(dock): (name, dock) for name, dock in seen}

    @staticmethod
    def _size(area: Qt.DockWidgetArea, widget: QWidget) -> int:
        return widget.width() if _DIRECTIONS[area] is Qt.Orientation.Horizontal else widget.height()


def scroll_tabs(window: QMainWindow, docks: Docks) -> None:
    """Scroll each tab bar, once laid out, only as far as its current tab needs; Qt scrolls a narrow one too far."""
    for bar in _bars(window, docks).values():
        front = bar.currentIndex()
        with QSignalBlocker(bar):  # do not switch panels
            bar.setCurrentIndex(0)
            bar.setCurrentIndex(front)


def _shape(layout: PanelLayout) -> tuple[object, ...]:
    """Return a layout without sizes, for comparison: groups with their tabs, floating and hidden panels."""
    groups = tuple((group.area, group.tabs) for group in layout.groups)
    return groups, layout.floating, frozenset(layout.hidden)


def _dock_all(window: QMainWindow, docks: Docks, layout: PanelLayout) -> None:
    groups = [(group, [docks[name] for name in dict.fromkeys(group.tabs) if name in docks]) for group in layout.groups]
    last: dict[str, tuple[PanelGroup, QDockWidget]] = {}
    for group, members in groups:  # place the first dock of each group: Qt cannot split an area that has tabs
        if not members:
            continue
        _dock_again(members[0])
        window.addDockWidget(_AREAS[group.area], members[0])
        if group.area in last:
            before, neighbour = last[group.area]
            is_below = group.y_px >= before.y_px + max(1, before.height_px) // 2
            side = Qt.Orientation.Vertical if is_below else Qt.Orientation.Horizontal
            window.splitDockWidget(neighbour, members[0], side)
        last[group.area] = group, members[0]
    for _, members in groups:
        for before_dock, dock in pairwise(members):
            _dock_again(dock)
            window.tabifyDockWidget(before_dock, dock)
    named = {name for group in layout.groups for name in group.tabs} | {panel.name for panel in layout.floating}
    for name, dock in docks.items():  # panels newer than the layout become tabs at their side
        if name not in named and (row := last.get(_NAMES.get(window.dockWidgetArea(dock), ""))) is not None:
            window.tabifyDockWidget(row[1], dock)
    for panel in layout.floating:
        if panel.name in docks:
            docks[panel.name].setFloating(True)
            docks[panel.name].setGeometry(QRect(panel.x_px, panel.y_px, panel.width_px, panel.height_px))
    for name, dock in docks.items():
        dock.setHidden(name in layout.hidden or name not in named)


def _dock_again(dock: QDockWidget) -> None:
    if dock.isFloating():
        dock.setFloating(False)


def _size(window: QMainWindow, docks: Docks, layout: PanelLayout) -> None:
    """Bring the front panel of each group to the front, and set the sizes of the groups."""
    shown = [group for group in layout.groups if group.front in docks and group.width_px > 0 and group.height_px > 0]
    for group in shown:
        docks[group.front].raise_()
    for area in _AREAS:
        in_area = [group for group in shown if group.area == area]
        beside, above = (_first_per_position(in_area, axis) for axis in ("x_px", "y_px"))
        if len(beside) > 1 or area in ("left", "right"):  # otherwise the group is as wide as the window
            sizes = [group.width_px for group in beside]
            window.resizeDocks([docks[group.front] for group in beside], sizes, Qt.Orientation.Horizontal)
        if len(above) > 1 or area in ("top", "bottom"):
            sizes = [group.height_px for group in above]
            window.resizeDocks([docks[group.front] for group in above], sizes, Qt.Orientation.Vertical)
    for bar in _tab_bars(window):
        if not bar.count():  # Qt 6.8 and 6.9 leave it where a row of tabs was: its line shows in the panel there
            bar.hide()


def _first_per_position(groups: list[PanelGroup], axis: str) -> list[PanelGroup]:
    """Return the first of the groups at each position along an axis: groups at the same position have equal sizes."""
    return list({getattr(group, axis): group for group in reversed(groups)}.values())[::-1]


def _group(window: QMainWindow, docks: Docks, tabs: tuple[str, ...], bars: Mapping[str, QTabBar]) -> PanelGroup:
    area = _NAMES.get(window.dockWidgetArea(docks[tabs[0]]), "bottom")
    shown = [name for name in tabs if not docks[name].isHidden()]
    front = next((name for name in shown if name in bars), shown[0] if shown else "")
    if not front:
        return PanelGroup(area, tabs)
    x, y, width, height = _rect(docks[front])
    return PanelGroup(area, tabs, front, x, y, width, height + (bars[front].height() if front in bars else 0))


def _bars(window: QMainWindow, docks: Docks) -> dict[str, QTabBar]:
    """Return the visible tab bars, each by the name of the panel in its current tab."""
    titles = {dock.windowTitle(): name for name, dock in docks.items()}
    by_title = {titles.get(bar.tabText(bar.currentIndex())): bar for bar in _tab_bars(window)}
    return {name: bar for name, bar in by_title.items() if name is not None}


def _tab_bars(window: QMainWindow) -> list[QTabBar]:
    """Return the visible tab bars of rows of panels."""
    bars = window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
    return [bar for bar in bars if bar.isVisible()]


def _rect(dock: QDockWidget) -> tuple[int, int, int, int]:
    area = dock.geometry()
    return area.x(), area.y(), area.width(), area.height()


# The drawer: a row of tabs per topic, and the line of topic buttons above it.


_BOTTOM: Final = Qt.DockWidgetArea.BottomDockWidgetArea
_ICON_PX: Final = 12
_TOPIC_OF: Final = {row.name: row.topic for row in PANELS}
_ANSWERS: Final = {row.name: row.answers for row in PANELS}


def one_topic_in_each_row(layout: PanelLayout) -> PanelLayout:
    """Return a layout of an older version with one topic, that of the front panel, in each row of tabs below."""
    hidden = list(layout.hidden)
    for row in layout.groups:
        if row.area == "bottom" and row.front in _TOPIC_OF:
            hidden += [name for name in row.tabs if _TOPIC_OF.get(name) is not _TOPIC_OF[row.front]]
    return replace(layout, hidden=tuple(dict.fromkeys(hidden)))


class Drawer(QWidget):
    """The line above the drawer (the panels docked at the bottom): topic buttons, a question, float and close buttons.

    A row of tabs shows one topic at a time, by hiding the docks of the others: Qt keeps the position of a hidden dock
    among the tabs.

    Signals:
        rearranged: Panels were shown or hidden.
    """

    rearranged = Signal()

    def __init__(self, docks: Mapping[str, QDockWidget], window: QMainWindow, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("drawer")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._docks, self._window = docks, window
        self._last = "events"
        self._last_of_topic = {topic: next(row.name for row in PANELS if row.topic is topic) for topic in Topic}
        line = line_up(QHBoxLayout(self), margins=(6, 0, 4, 0), spacing=0)
        self.buttons: dict[Topic, QToolButton] = {}
        for topic in Topic:
            button = self.buttons[topic] = QToolButton(self)
            button.setText(topic.value)
            button.setCheckable(True)
            button.setProperty("role", "topic")
            titles = ", ".join(row.plain_title for row in PANELS if row.topic is topic)
            button.setToolTip(tool_tip(f"{titles}\nClick again to close the drawer."))
            button.clicked.connect(partial(borrowed(self._on_topic), topic))
            line.addWidget(button)
        self.answers = ElidedLabel(self, role="answers")
        self.float_button = self._button("dock-float", "Show this panel in a window of its own", self._float)
        self.close_button = self._button("dock-close", "Close the drawer", self.close_drawer)
        line_up(line, (self.answers, 1), self.float_button, self.close_button)
        set_title_bar = borrowed(self._set_title_bar)
        for dock in docks.values():
            dock.topLevelChanged.connect(partial(set_title_bar, dock))
            dock.dockLocationChanged.connect(partial(set_title_bar, dock))

    def members(self) -> list[str]:
        """Return the names of the panels in the drawer (docked at the bottom), including hidden panels."""
        return [name for name, dock in self._docks.items() if self._is_inside(dock)]

    @property
    def front(self) -> str:
        """Name of the visible panel of the drawer (of several, the last used one); empty while the drawer is closed."""
        fronts = [name for name in self.members() if shows(self._docks[name])]
        return self._last if self._last in fronts else fronts[0] if fronts else ""

    def show_panel(self, name: str) -> None:
        """Show a panel of the drawer with the panels of its topic as tabs, and hide the other topics in that row."""
        dock = self._docks[name]
        self._last = self._last_of_topic[_TOPIC_OF[name]] = name
        topic, others = _TOPIC_OF[name], set(self.members()) - {name}
        dock.show()
        for other in others:
            if _TOPIC_OF[other] is topic:
                self._docks[other].show()
        in_its_row = self._window.tabifiedDockWidgets(dock)
        for other in others:
            if _TOPIC_OF[other] is not topic and self._docks[other] in in_its_row:
                self._docks[other].hide()
        dock.raise_()
        self.rearranged.emit()

    def open_again(self) -> None:
        """Show the panel that was visible when the drawer was closed."""
        self.show_panel(self._last if self._is_inside(self._docks[self._last]) else (self.members() or ["events"])[0])

    def close_drawer(self) -> None:
        """Hide all panels of the drawer."""
        for name in self.members():
            self._docks[name].hide()
        self.rearranged.emit()

    def refresh(self) -> None:
        """Update the checked topic button and the question of the front panel."""
        front, members = self.front, self.members()
        if front:
            self._last = self._last_of_topic[_TOPIC_OF[front]] = front
        for topic, button in self.buttons.items():
            button.setVisible(any(_TOPIC_OF[name] is topic for name in members))
            button.setChecked(bool(front) and _TOPIC_OF[front] is topic)
        self.answers.setText(_ANSWERS.get(front, ""))
        for button in (self.float_button, self.close_button):
            button.setVisible(bool(front))

    def _is_inside(self, dock: QDockWidget) -> bool:
        return not dock.isFloating() and self._window.dockWidgetArea(dock) == _BOTTOM

    def _on_topic(self, topic: Topic) -> None:
        front = self.front
        if front and _TOPIC_OF[front] is topic:
            self.close_drawer()
            return
        inside = [name for name in self.members() if _TOPIC_OF[name] is topic]
        self.show_panel(self._last_of_topic[topic] if self._last_of_topic[topic] in inside else inside[0])

    def _float(self) -> None:
        """Move the front panel into a window of its own; the drawer shows the next panel of the topic."""
        if front := self.front:
            self._docks[front].setFloating(True)
            self.rearranged.emit()

    def _set_title_bar(self, dock: QDockWidget, _where: object) -> None:
        """Hide the title bar of a dock in the drawer, whose tab shows the title; restore it elsewhere."""
        has_none = dock.titleBarWidget() is not None
        if has_none is not self._is_inside(dock):
            # None is Qt's own title bar. An empty stack is 0 px high; an empty widget is -1 px, of which Qt 6.8 warns.
            dock.setTitleBarWidget(None if has_none else QStackedWidget(dock))  # type: ignore[arg-type]

    def _button(self, icon_name: str, tip: str, run: object) -> QToolButton:
        button = named(QToolButton(self), tip, tip)
        button.setIcon(QIcon(str(resource_path(f"icons/{icon_name}.svg"))))
        button.setIconSize(QSize(_ICON_PX, _ICON_PX))
        button.clicked.connect(run)
        return button


# The summary in the toolbar: trace length, losses, missing classes, worst verdict; each part opens a panel.


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """One part (a button) of the summary in the toolbar, and the panel that the button opens.

    Attributes:
        text: Text of the button.
        panel: Name of the panel.
        tone: `error`, `warning`, or empty if nothing is wrong.
        hint: Tool tip that describes the result of a click.
    """

    text: str
    panel: str
    tone: str = ""
    hint: str = ""


def size_part(trace: Trace, busy: str) -> SummaryPart:
    """Return the summary part with the trace's length, its number of CPUs and, if known, how busy they are."""
    length = format_duration(trace.clock.duration_ns(trace.window.length))
    if trace.pairs is not None:  # recorded by a threads library, which has no CPU information
        threads = counted(len(trace.threads) - 1, "thread")
        return SummaryPart(f"{length}, {threads}", "statistics", hint="Show statistics")
    of_cpus = f" {busy} busy" if busy else ""
    return SummaryPart(f"{length}, {counted(trace.cpu_count, 'CPU')}{of_cpus}", "statistics", hint="Show statistics")


def verdict_part(trace: Trace, verdicts: Verdicts) -> SummaryPart:
    """Return the summary part of the most severe verdict: its longest occurrence, and the number of other verdicts."""
    wrong = [verdict for verdict in verdicts.verdicts if verdict.severity is not Severity.INFO]
    if not wrong:
        if verdicts.verdicts:  # only verdicts of severity INFO; the status bar counts them too
            return SummaryPart(f"nothing wrong for certain, {verdicts.summary}", "verdicts", hint=verdicts.summary)
        unknown = len(verdicts.undecided)
        doubt = f", {counted(unknown, 'kind')} of verdict undecided" if unknown else ""
        return SummaryPart(f"nothing wrong found{doubt}", "verdicts", hint=verdicts.summary)
    worst = wrong[0]
    length = format_duration(trace.clock.duration_ns(max(
        case.end_cycles - case.start_cycles for case in worst.occurrences)))  # fmt: skip
    times = len(worst.occurrences)
    lasts = f" of {length}" if times == 1 else f" {times:,} times, longest {length}"
    more = f", {counted(len(wrong) - 1, 'more verdict')}" if len(wrong) > 1 else ""
    return SummaryPart(f"{worst.kind.replace('-', ' ')}{lasts}{more}", "verdicts", str(worst.severity), worst.says)


def loss_part(trace: Trace) -> SummaryPart:
    """Return the summary part that describes lost events and lost data of the file."""
    counts = trace.problems.counts()
    costly = [f"{KINDS[slug].title.lower()}: {count:,}" for slug, count in counts.items() if KINDS[slug].costs_data]
    if not costly:
        return SummaryPart("nothing lost", "problems", hint="Show problems of the file")
    more = "\N{HORIZONTAL ELLIPSIS}" if len(costly) > 2 else ""
    return SummaryPart(", ".join(costly[:2]) + more, "problems", "warning", "Show problems of the file")


def lack_part(trace: Trace, knows_priorities: bool | None) -> SummaryPart | None:
    """Return the part on data missing for most questions, and what to capture; None if nothing (known) is missing."""
    if not trace.release.is_qnx or trace.pairs is not None or not len(trace.events):
        return None
    if has_no_states(trace):
        return SummaryPart(
            "no states of threads: capture the class THREAD", "doctor", "warning", "Show what to capture"
        )
    if knows_priorities is False:
        return SummaryPart(f"no priorities: {PRIORITIES.remedy}", "doctor", "warning", "Show what to capture")
    return None


_LEAST_PX = 60


class TraceSummary(QWidget):
    """Summary of a trace as buttons at the right end of the toolbar; buttons that do not fit are hidden.

    The most important part is the last. The button of a part that takes time to compute appears once it is known.

    Signals:
        panel_requested: A part was clicked; sends the name of its panel.
    """

    panel_requested = Signal(str)

    def __init__(self, opened: OpenTrace, bar: QToolBar) -> None:
        super().__init__(bar)
        self._opened, self._bar = opened, bar
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        line = line_up(QHBoxLayout(self), None, margins=(12, 0, 0, 0), spacing=0)
        self.buttons: dict[str, QToolButton] = {}
        for name in ("size", "loss", "lack", "verdict"):
            button = self.buttons[name] = QToolButton(self)
            button.setProperty("role", "summary")
            button.setCursor(Qt.CursorShape.PointingHandCursor)
            button.hide()
            button.clicked.connect(partial(borrowed(self._on_click), name))
            line.addWidget(button)
        self._panels: dict[str, str] = {}
        self._action = bar.addWidget(self)
        for signal in (opened.verdicts.changed, opened.has_priorities.changed, opened.reloaded):
            signal.connect(self.refresh)
        self.refresh()

    def minimumSizeHint(self) -> QSize:
        """Return a small width, because a toolbar hides a widget whose minimum width does not fit."""
        return QSize(_LEAST_PX, super().minimumSizeHint().height())

    def remove(self) -> None:
        """Remove the summary from the toolbar."""
        self._bar.removeAction(self._action)
        self._action.deleteLater()
        self.deleteLater()

    @Slot()
    def refresh(self) -> None:
        """Show the parts that are known now."""
        trace, timeline, verdicts = self._opened.trace, self._opened.timeline, self._opened.verdicts.answer
        self._show("size", size_part(trace, busy_text(timeline)))
        self._show("loss", loss_part(trace))
        self._show("lack", lack_part(trace, self._opened.has_priorities.answer))
        self._show("verdict", verdict_part(trace, verdicts) if verdicts is not None else None)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show the buttons that fit the new width."""
        super().resizeEvent(event)
        self._fit()

    def _show(self, name: str, part: SummaryPart | None) -> None:
        button = self.buttons[name]
        if part is None:
            self._panels.pop(name, None)
            return
        self._panels[name] = part.panel
        button.setText(menu_text(part.text))
        button.setToolTip(tool_tip(part.hint))
        restyle(button, "state", part.tone)

    def _fit(self) -> None:
        """Show as many buttons as fit, in the order of importance: verdict, missing data, losses, size."""
        room_px = self.width() - self.layout().contentsMargins().left()  # type: ignore[union-attr]  # it has one
        for name in ("verdict", "lack", "loss", "size"):
            width_px = self.buttons[name].sizeHint().width()
            is_shown = name in self._panels and width_px <= room_px
            self.buttons[name].setVisible(is_shown)
            room_px -= width_px if is_shown else 0

    def _on_click(self, name: str) -> None:
        self.panel_requested.emit(self._panels[name])
