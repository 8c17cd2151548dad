"""The line in the tool bar that says what the trace is and what stands out in it; each part leads to a panel."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QToolBar, QToolButton, QWidget

from satview.base.memory import borrowed
from satview.base.safe_text import menu_text, tool_tip
from satview.gui.swimlane.cpu_use import busy_share, knows_use
from satview.gui.theme import restyle
from satview.session.open_trace import OpenTrace
from satview.session.panels.glance import Part, lack_part, loss_part, size_part, verdict_part

_LEAST_PX = 60


class Glance(QWidget):
    """Buttons side by side at the right of the tool bar, which has room to spare; those without room are left out.

    What takes time to find out appears once it is known.

    Attributes:
        buttons: Those that show something, the most important last: it is at the right, where the eye ends.

    Signals:
        panel_requested: A part was clicked: name of its panel.
    """

    panel_requested = Signal(str)

    def __init__(self, opened: OpenTrace, bar: QToolBar) -> None:
        super().__init__(bar)
        self._opened, self._bar = opened, bar
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        line = QHBoxLayout(self)
        line.setContentsMargins(12, 0, 0, 0)
        line.setSpacing(0)
        line.addStretch()
        self.buttons: dict[str, QToolButton] = {}
        for name in ("size", "loss", "lack", "verdict"):
            button = self.buttons[name] = QToolButton(self)
            button.setProperty("role", "glance")
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
        """Return little: a tool bar hides what it has no room for."""
        return QSize(_LEAST_PX, super().minimumSizeHint().height())

    def take_out(self) -> None:
        """Leave the tool bar."""
        self._bar.removeAction(self._action)
        self._action.deleteLater()
        self.deleteLater()

    @Slot()
    def refresh(self) -> None:
        """Show what is known now."""
        trace, timeline, verdicts = self._opened.trace, self._opened.timeline, self._opened.verdicts.found
        self._show("size", size_part(trace, busy_share(timeline) if knows_use(timeline) else None))
        self._show("loss", loss_part(trace))
        self._show("lack", lack_part(trace, self._opened.has_priorities.found))
        self._show("verdict", verdict_part(trace, verdicts) if verdicts is not None else None)
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave out what has no room, and show it again."""
        super().resizeEvent(event)
        self._fit()

    def _show(self, name: str, part: Part | None) -> None:
        button = self.buttons[name]
        if part is None:
            self._panels.pop(name, None)
            return
        self._panels[name] = part.panel
        button.setText(menu_text(part.text))
        button.setToolTip(tool_tip(part.hint))
        restyle(button, "state", part.tone)

    def _fit(self) -> None:
        """Show the parts that have room; the last ones stay longest."""
        room_px = self.width() - self.layout().contentsMargins().left()  # type: ignore[union-attr]  # it has one
        for name in ("verdict", "lack", "loss", "size"):
            width_px = self.buttons[name].sizeHint().width()
            is_shown = name in self._panels and width_px <= room_px
            self.buttons[name].setVisible(is_shown)
            room_px -= width_px if is_shown else 0

    def _on_click(self, name: str) -> None:
        self.panel_requested.emit(self._panels[name])
