"""One filter in force, drawn as a chip."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QPoint, Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QToolButton, QWidget

from satview.base.safe_text import menu_text, tool_tip
from satview.gui.plain_label import PlainLabel


@dataclass(frozen=True, slots=True)
class ChipText:
    """What a chip says: its text, how many events fit, its tool tip, and `on`, `mark` or `off` for its colours."""

    text: str
    count: str
    tip: str
    state: str


class Chip(QFrame):
    """One filter; can be given to another one when its own is gone, for a new widget takes milliseconds.

    Attributes:
        name: Of the filter.
        label: The part that is clicked.
        count: How many events fit.
        cross: Takes the filter away.

    Signals:
        clicked, dropped: The label was clicked, the cross was: name of the filter.
        menu_requested: Right click: name of the filter, global position.
    """

    clicked = Signal(str)
    dropped = Signal(str)
    menu_requested = Signal(str, QPoint)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.name = ""
        self.label = QPushButton(self)
        self.label.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.label.clicked.connect(self._on_label)
        self.count = PlainLabel(self)
        self.count.setObjectName("chipCount")
        self.cross = QToolButton(self)
        self.cross.setText("\N{MULTIPLICATION SIGN}")
        self.cross.setToolTip("Take this filter away")
        self.cross.clicked.connect(self._on_cross)
        self.cross.installEventFilter(self)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._on_menu)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 1, 3, 1)
        row.setSpacing(6)
        for part in (self.label, self.count, self.cross):
            row.addWidget(part)
        self.setFixedHeight(chip_height_px(self))
        self._says: ChipText | None = None

    def say(self, says: ChipText) -> None:
        """Show another text."""
        if says == self._says:
            return
        if self._says is None or says.state != self._says.state:
            self.setProperty("chip", says.state)
            for part in (self, self.label, self.count, self.cross):
                part.style().unpolish(part)
                part.style().polish(part)
        self._says = says
        self.label.setText(menu_text(says.text))
        self.label.setToolTip(tool_tip(says.tip))
        self.label.setAccessibleName(f"Filter {says.text}, {says.count}")
        self.count.setText(says.count)
        self.cross.setAccessibleName(f"Take filter {says.text} away")

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        """Keep clicks on the cross from the menu of the chip."""
        return event.type() == QEvent.Type.ContextMenu

    @Slot()
    def _on_label(self) -> None:
        self.clicked.emit(self.name)

    @Slot()
    def _on_cross(self) -> None:
        self.dropped.emit(self.name)

    @Slot(QPoint)
    def _on_menu(self, position: QPoint) -> None:
        self.menu_requested.emit(self.name, self.mapToGlobal(position))


def chip_height_px(widget: QWidget) -> int:
    """Return how tall a chip is: always the same, or the lanes below would move when its text changes."""
    return widget.fontMetrics().height() + 11
