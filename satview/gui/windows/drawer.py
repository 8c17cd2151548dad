"""The panels at the bottom: a row of tabs for each topic, and the line above it that selects one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QMainWindow, QToolButton, QWidget

from satview.base.memory import borrowed
from satview.base.resources import resource_path
from satview.base.safe_text import tool_tip
from satview.gui.docks import shows
from satview.gui.widgets import CutLabel
from satview.session.commands import PANELS, Topic
from satview.session.workspace_file import PanelLayout

_BOTTOM: Final = Qt.DockWidgetArea.BottomDockWidgetArea
_ICON_PX: Final = 12
_TOPIC_OF: Final = {row.name: row.topic for row in PANELS}
_ANSWERS: Final = {row.name: row.answers for row in PANELS}


def one_topic_in_each_row(layout: PanelLayout) -> PanelLayout:
    """Return a layout in which no row of tabs at the bottom mixes topics, as those of older versions did.

    Args:
        layout: Where panels were; the topic of the panel in front stays.
    """
    hidden = list(layout.hidden)
    for row in layout.groups:
        if row.area == "bottom" and row.front in _TOPIC_OF:
            hidden += [name for name in row.tabs if _TOPIC_OF.get(name) is not _TOPIC_OF[row.front]]
    return replace(layout, hidden=tuple(dict.fromkeys(hidden)))


class Drawer(QWidget):
    """A button for each topic, what the panel in front answers, and buttons that float that panel or close the drawer.

    A panel is in the drawer while it is docked at the bottom. Qt keeps a hidden dock behind the tabs where it was, so
    a row of tabs shows one topic by hiding the docks of the others.

    Attributes:
        buttons: Those of the topics.
        answers: What the panel in front answers.
        float_button, close_button: Those at the right, while the drawer is open.

    Signals:
        rearranged: Panels were shown or hidden.
    """

    rearranged = Signal()

    def __init__(self, docks: Mapping[str, QDockWidget], window: QMainWindow, parent: QWidget) -> None:
        """Make the line.

        Args:
            docks: Name of a panel to its dock.
            window: Where these are.
            parent: What the line is in.
        """
        super().__init__(parent)
        self.setObjectName("drawer")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._docks, self._window = docks, window
        self._last = "events"
        self._last_of = {topic: next(row.name for row in PANELS if row.topic is topic) for topic in Topic}
        line = QHBoxLayout(self)
        line.setContentsMargins(6, 0, 4, 0)
        line.setSpacing(0)
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
        self.answers = CutLabel(self)
        self.answers.setProperty("role", "answers")
        line.addWidget(self.answers, 1)
        self.float_button = self._button("dock-float", "Show this panel in a window of its own", self._float)
        self.close_button = self._button("dock-close", "Close the drawer", self.close_drawer)
        line.addWidget(self.float_button)
        line.addWidget(self.close_button)
        set_title_bar = borrowed(self._set_title_bar)
        for dock in docks.values():
            dock.topLevelChanged.connect(partial(set_title_bar, dock))
            dock.dockLocationChanged.connect(partial(set_title_bar, dock))

    def members(self) -> list[str]:
        """Return the names of the panels in the drawer, whether they show or not."""
        return [name for name, dock in self._docks.items() if self._is_inside(dock)]

    @property
    def front(self) -> str:
        """The panel of the drawer that shows, the last one used if there are several; empty while it is closed."""
        fronts = [name for name in self.members() if shows(self._docks[name])]
        return self._last if self._last in fronts else fronts[0] if fronts else ""

    def show_panel(self, name: str) -> None:
        """Show a panel of the drawer, and those of its topic as tabs beside it, in place of those of another."""
        dock = self._docks[name]
        self._last = self._last_of[_TOPIC_OF[name]] = name
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
        """Show what showed when it was closed."""
        self.show_panel(self._last if self._is_inside(self._docks[self._last]) else (self.members() or ["events"])[0])

    def close_drawer(self) -> None:
        """Hide all panels of the drawer."""
        for name in self.members():
            self._docks[name].hide()
        self.rearranged.emit()

    def refresh(self) -> None:
        """Show which topic shows, and what its front answers."""
        front, members = self.front, self.members()
        if front:
            self._last = self._last_of[_TOPIC_OF[front]] = front
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
        self.show_panel(self._last_of[topic] if self._last_of[topic] in inside else inside[0])

    def _float(self) -> None:
        """Take the panel in front out of the drawer, which goes on with the next one of its topic."""
        if front := self.front:
            self._docks[front].setFloating(True)
            self.rearranged.emit()

    def _set_title_bar(self, dock: QDockWidget, _where: object) -> None:
        """Leave out the title of a dock in the drawer: its tab has it."""
        has_none = dock.titleBarWidget() is not None
        if has_none is not self._is_inside(dock):
            dock.setTitleBarWidget(None if has_none else QWidget(dock))  # type: ignore[arg-type]  # None is Qt's own

    def _button(self, icon_name: str, tip: str, run: object) -> QToolButton:
        button = QToolButton(self)
        button.setIcon(QIcon(str(resource_path(f"icons/{icon_name}.svg"))))
        button.setIconSize(QSize(_ICON_PX, _ICON_PX))
        button.setToolTip(tool_tip(tip))
        button.setAccessibleName(tip)
        button.clicked.connect(run)
        return button
