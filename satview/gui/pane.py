"""A set of lanes with its navigation (`Pane`), and the splitter that shows one or two of them (`Panes`)."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QSplitter, QWidget

from satview.gui.swimlane.area import Motion, SwimlaneArea
from satview.gui.swimlane.view import FRAME_S
from satview.gui.theme import Theme
from satview.session.navigation import Navigation, SecondView
from satview.session.open_trace import OpenTrace
from satview.session.settings import Settings
from satview.session.tasks import dismantle


@dataclass(frozen=True, slots=True)
class Pane:
    """A set of lanes, with the trace, navigation and motion that commands use while the lanes have the focus."""

    opened: OpenTrace
    area: SwimlaneArea
    navigation: Navigation
    motion: Motion


class Panes(QSplitter):
    """One or two sets of lanes, one above the other.

    Attributes:
        first: The upper set of lanes, which always exists.
        second: The lower set, or None.
        active: The set that last had the keyboard focus.

    Signals:
        added: A second set was added.
        removed: The second set was removed.
    """

    added = Signal()
    removed = Signal()

    def __init__(self, first: Pane, settings: Settings, parent: QWidget) -> None:
        super().__init__(Qt.Orientation.Vertical, parent)
        self.setChildrenCollapsible(False)
        self._settings = settings
        self.first = self.active = first
        self.second: Pane | None = None
        self.addWidget(first.area)
        first.area.view.installEventFilter(self)

    def split(self, theme: Theme) -> Pane:
        """Add a second set of lanes of the same trace, and give it the keyboard focus."""
        pane = self._add(SecondView(self.first.opened, self._settings, self), theme)
        pane.area.view.setFocus()
        return pane

    def show_beside(self, opened: OpenTrace, theme: Theme) -> Pane:
        """Show the lanes of another trace below the first set, in place of any second set.

        Args:
            opened: The other trace; it must outlive the pane.
            theme: Colours.
        """
        self.join()
        pane = self._add(opened, theme)
        pane.area.legend.explain_also(self.first.opened)
        for shown in (self.first, pane):
            shown.area.set_title(shown.opened.trace.title)
        return pane

    def shows(self, opened: OpenTrace) -> bool:
        """Return whether the second set of lanes shows a given trace."""
        return self.second is not None and self.second.opened is opened

    @property
    def is_split(self) -> bool:
        """True while there is a second set of lanes of the same trace."""
        return self.second is not None and isinstance(self.second.opened, SecondView)

    def _add(self, opened: OpenTrace, theme: Theme) -> Pane:
        area = SwimlaneArea(opened, self._settings, theme, self)
        area.view.answers_first = False
        self.first.area.show_legend(False)  # the legend of the second set serves both
        navigation = Navigation(opened, self)
        area.fit_requested.connect(navigation.fit)
        self.second = Pane(opened, area, navigation, Motion(opened, area.view))
        self.addWidget(area)
        self._share_frames(2)
        half = max(1, self.height() // 2)
        self.setSizes([half, half])
        area.view.installEventFilter(self)
        self.added.emit()
        return self.second

    def _share_frames(self, count: int) -> None:
        """Give each of `count` sets of lanes its share of the time limit of a frame, as they move together."""
        for pane in (self.first, self.second):
            if pane is not None:
                pane.area.view.frame_s = FRAME_S / count

    def set_theme(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        for pane in (self.first, self.second):
            if pane is not None:
                pane.area.set_theme(theme)

    def join(self) -> None:
        """Remove the second set of lanes."""
        if self.second is not None:
            second, self.second = self.second, None
            self._activate(self.first)
            self.first.area.set_active(False)
            self.first.area.show_legend(True)
            self._share_frames(1)
            self.first.area.set_title("")
            self.first.area.view.setFocus()
            second.motion.stop()
            second.area.close_down()
            second.area.hide()
            parts: list[QObject] = [second.area, second.navigation]
            if isinstance(second.opened, SecondView):
                second.opened.shut_down()
                parts.append(second.opened)
            for part in parts:
                dismantle(part)
            self.removed.emit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Note which set of lanes has the keyboard focus."""
        if event.type() == QEvent.Type.FocusIn and self.second is not None:
            self._activate(self.second if watched is self.second.area.view else self.first)
        return False

    def _activate(self, pane: Pane) -> None:
        self.active = pane
        for shown in (self.first, self.second):
            if shown is not None:
                shown.area.set_active(shown is pane)

    @Slot()
    def close_down(self) -> None:
        """Cancel all background tasks."""
        self.join()
        self.first.motion.stop()
        self.first.area.close_down()

    @property
    def is_exact(self) -> bool:
        """True if all visible lanes are drawn exactly."""
        return self.first.area.is_exact and (self.second is None or self.second.area.is_exact)
