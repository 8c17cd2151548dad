"""One set of lanes of a workspace with what moves it, and the place where a second one is put below it."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QSplitter, QWidget

from satview.gui.swimlane.area import SwimlaneArea
from satview.gui.swimlane.motion import Motion
from satview.gui.theme import Theme
from satview.session.dismantle import dismantle
from satview.session.navigation import Navigation
from satview.session.open_trace import OpenTrace
from satview.session.second_view import SecondView
from satview.session.settings import Settings


@dataclass(frozen=True, slots=True)
class Pane:
    """Lanes, and what commands act on while they have the keyboard."""

    opened: OpenTrace
    area: SwimlaneArea
    navigation: Navigation
    motion: Motion


class Panes(QSplitter):
    """One or two sets of lanes, one above the other.

    Attributes:
        first: Always there.
        second: Below it, or None.
        active: The one that had the keyboard last.

    Signals:
        added: A second one is there.
    """

    added = Signal()

    def __init__(self, first: Pane, settings: Settings, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Vertical, parent)
        self.setChildrenCollapsible(False)
        self._settings = settings
        self.first = self.active = first
        self.second: Pane | None = None
        self.addWidget(first.area)
        first.area.view.installEventFilter(self)

    def split(self, theme: Theme) -> Pane:
        """Show a second set of lanes, with what the first one shows; it gets the keyboard."""
        opened = SecondView(self.first.opened, self._settings, self)
        area = SwimlaneArea(opened, self._settings, theme, self)
        self.first.area.show_legend(False)  # one, below both
        navigation = Navigation(opened, self)
        area.fit_requested.connect(navigation.fit)
        self.second = Pane(opened, area, navigation, Motion(opened, area.view))
        self.addWidget(area)
        half = max(1, self.height() // 2)
        self.setSizes([half, half])
        area.view.installEventFilter(self)
        self.added.emit()
        area.view.setFocus()
        return self.second

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        for pane in (self.first, self.second):
            if pane is not None:
                pane.area.set_theme(theme)

    def join(self) -> None:
        """Take the second set of lanes away."""
        if self.second is not None:
            second, self.second = self.second, None
            self._activate(self.first)
            self.first.area.set_active(False)
            self.first.area.show_legend(True)
            self.first.area.view.setFocus()
            second.motion.stop()
            second.area.close_down()
            second.opened.shut_down()
            second.area.hide()
            for part in (second.area, second.navigation, second.opened):
                dismantle(part)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Note which lanes have the keyboard."""
        if event.type() == QEvent.Type.FocusIn and self.second is not None:
            self._activate(self.second if watched is self.second.area.view else self.first)
        return False

    def _activate(self, pane: Pane) -> None:
        self.active = pane
        for each in (self.first, self.second):
            if each is not None:
                each.area.set_active(each is pane)

    @Slot()
    def close_down(self) -> None:
        """Stop all work."""
        self.join()
        self.first.motion.stop()
        self.first.area.close_down()

    @property
    def is_exact(self) -> bool:
        """True if all lanes that show are drawn exactly."""
        return self.first.area.is_exact and (self.second is None or self.second.area.is_exact)
