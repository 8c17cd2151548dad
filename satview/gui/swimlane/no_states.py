"""What is instead of the lanes of a trace that has none: why, and what to capture to have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QFontDatabase, QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QPushButton, QScrollArea, QVBoxLayout, QWidget

from satview.analysis.needs import has_class, has_no_states
from satview.events.wire import WireClass
from satview.gui.plain_label import PlainLabel
from satview.session.open_trace import OpenTrace
from satview.store.trace import Trace

if TYPE_CHECKING:
    from satview.analysis.doctor.capture_line import CaptureLine

_ANALYSIS: Final = "wake-ups"  # who ran, who waited and why: what lanes are looked at for
_CARD_PX: Final = 560
_NAMES: Final = {WireClass.KER_CALL: "kernel calls", WireClass.COMM: "messages", WireClass.INT: "interrupts"}


class NoStates(QWidget):
    """Covers the lanes while the trace has no states of threads, unless the user shows them.

    Signals:
        lanes_requested: The user shows the lanes nevertheless.
    """

    lanes_requested = Signal()

    def __init__(self, opened: OpenTrace, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self._is_dismissed = False
        self._is_made = False
        self.setAutoFillBackground(True)
        self.setAccessibleName("No states of threads")
        opened.reloaded.connect(self._on_reloaded)
        self._fill()

    def _make(self) -> None:
        """Make what it shows: nearly every trace has states, and its window waits for what it makes."""
        self._is_made = True
        self.command = QLineEdit(self)
        self.command.setReadOnly(True)
        self.command.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.command.setAccessibleName("Command line of the capture")
        self._text = PlainLabel("", self)
        self._text.setWordWrap(True)
        self._text.setProperty("role", "dim")
        self._lay_out()

    def _lay_out(self) -> None:
        page = QWidget(self)
        card = QFrame(page)
        card.setMaximumWidth(_CARD_PX)
        title = PlainLabel("No states of threads in this trace", card)
        title.setProperty("role", "title")
        self.copy_line = QPushButton("Copy", card)
        self.copy_line.clicked.connect(self._on_copy)
        self.capture = QPushButton("New capture\N{HORIZONTAL ELLIPSIS}", card)
        self.capture.clicked.connect(self._on_capture)
        self.show_lanes = QPushButton("Show the lanes", card)
        self.show_lanes.clicked.connect(self._on_show)
        line, buttons = QHBoxLayout(), QHBoxLayout()
        line.addWidget(self.command, 1)
        line.addWidget(self.copy_line)
        for button in (self.capture, self.show_lanes):
            buttons.addWidget(button)
        buttons.addStretch()
        inside = QVBoxLayout(card)
        inside.setContentsMargins(16, 12, 16, 12)
        inside.setSpacing(10)
        inside.addWidget(title)
        inside.addWidget(self._text)
        inside.addLayout(line)
        inside.addLayout(buttons)
        middle = QHBoxLayout(page)
        middle.addStretch(1)
        middle.addWidget(card, 100, Qt.AlignmentFlag.AlignVCenter)
        middle.addStretch(1)
        scrolled = QScrollArea(self)  # a low window has no room for all of it
        scrolled.setFrameShape(QFrame.Shape.NoFrame)
        scrolled.setWidgetResizable(True)
        scrolled.setWidget(page)
        outside = QVBoxLayout(self)
        outside.setContentsMargins(0, 0, 0, 0)
        outside.addWidget(scrolled)

    def _fill(self) -> None:
        trace = self._opened.trace
        self.setVisible(not self._is_dismissed and has_no_states(trace))
        if not self.isHidden():
            if not self._is_made:
                self._make()
            self._text.setText(
                f"It has {_classes(trace)} only, so the lanes of threads would be empty. The list of "
                "events below shows all that it has. To see who ran, who waited and why, capture with:"
            )
            line = _capture_line(trace)
            self.command.setText(line.command if line is not None else "")
            self.command.setCursorPosition(0)

    @Slot()
    def _on_reloaded(self) -> None:
        self._fill()

    @Slot()
    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self.command.text())

    @Slot()
    def _on_capture(self) -> None:
        line = _capture_line(self._opened.trace)
        if line is not None:
            self._opened.capture_requested.emit(line.rules)

    @Slot()
    def _on_show(self) -> None:
        self._is_dismissed = True
        self.hide()
        self.lanes_requested.emit()


def _classes(trace: Trace) -> str:
    """Return in words what a trace has: the classes that people know by name."""
    found = [name for number, name in _NAMES.items() if has_class(trace, number)]
    return " and ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)


def _capture_line(trace: Trace) -> CaptureLine | None:
    from satview.analysis.doctor.report import diagnosis  # on first use: most traces have states

    return diagnosis(trace, _ANALYSIS, is_quick=True).capture
