"""The box in which a condition is written: line, effect, live number of hits, what is wrong."""

from __future__ import annotations

from functools import partial
from typing import Final

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from satview.base.errors import UsageError
from satview.filters.views.passes import Effect, Pass
from satview.gui.filters.chips import EFFECTS
from satview.gui.filters.expression_line import ExpressionLine, fault_text
from satview.gui.message_line import MessageLine
from satview.gui.theme import Theme
from satview.session.filtering.filter_task import count_hits, make_columns_ready
from satview.session.open_trace import OpenTrace
from satview.session.tasks import Task

_TYPING_MS: Final = 150


class ConditionBox(QWidget):
    """Return adds the condition to the filter, or changes the one that is being edited.

    Attributes:
        line: The text.
        effect: What the filter is to do.
        message: Hits, or what is wrong.
        editing: Name of the pass that is being edited; empty for a new one.

    Signals:
        search_requested: The condition is to be searched for instead: its text.
    """

    search_requested = Signal(str)

    def __init__(self, opened: OpenTrace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self.editing = ""
        self.line = ExpressionLine(opened.trace, theme, self)
        self.line.setPlaceholderText("Condition: pid == 7 and event == MSG_SENDV and duration > 2ms")
        self.line.setAccessibleName("Condition")
        self.effect = QComboBox(self)
        for effect, text in EFFECTS.items():
            self.effect.addItem(text, effect)
        self.effect.setAccessibleName("Effect")
        self.effect.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.effect.setMinimumContentsLength(6)
        self._add = QPushButton("Add filter", self)
        self._add.setProperty("primary", "true")
        self._find = QPushButton("Find", self)
        self.message = MessageLine(self)
        self.message.setWordWrap(True)
        self._job = Task(self)
        self._job.done.connect(self._on_count)
        self._job.failed.connect(self._on_failed)
        self._typing = QTimer(self)
        self._typing.setSingleShot(True)
        self._typing.setInterval(_TYPING_MS)
        self._typing.timeout.connect(self._count)
        row = QHBoxLayout()
        row.addWidget(self.effect, 1)
        row.addWidget(self._find)
        row.addWidget(self._add)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 6, 8, 4)
        layout.setSpacing(6)
        layout.addWidget(self.line)
        layout.addWidget(self.message)
        layout.addLayout(row)
        self.line.checked.connect(self._on_checked)
        self.line.submitted.connect(self.submit)
        self.line.focused.connect(self._get_ready)
        self._add.clicked.connect(self.submit)
        self._find.clicked.connect(self._on_find)
        opened.filters.failed.connect(self._say_error)
        opened.reloaded.connect(self._on_reloaded)
        self._on_checked()

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self.line.set_theme(theme)

    def edit(self, name: str) -> None:
        """Put a pass into the line."""
        item = self._opened.filters.pass_named(name)
        self.line.setText(item.expression)
        self.editing = name
        self.effect.setCurrentIndex(list(EFFECTS).index(item.effect))
        self._add.setText(f"Change {name}")
        self.line.setFocus()

    def close_down(self) -> None:
        """Cancel the background task."""
        self._typing.stop()
        self._job.close()

    @Slot()
    def submit(self) -> None:
        """Take the condition over into the filter."""
        text, effect = self.line.text().strip(), Effect(self.effect.currentData())
        if not text or self.line.fault is not None:
            return
        names = {item.name for item in self._opened.filters.state.stack.passes}
        try:
            if self.editing in names:
                self._opened.filters.change_pass(self.editing, expression=text, effect=effect)
            else:
                self._opened.filters.add_pass(text, effect=effect)
        except UsageError as error:
            self._say_error(str(error))
            return
        self.line.clear()

    @Slot()
    def _get_ready(self) -> None:
        if not self.line.text():
            self._job.start(partial(make_columns_ready, self._opened.filters.evaluator))

    @Slot()
    def _on_reloaded(self) -> None:
        self.line.set_trace(self._opened.trace)

    @Slot()
    def _on_find(self) -> None:
        if self.line.text().strip() and self.line.fault is None:
            self.search_requested.emit(self.line.text().strip())

    @Slot()
    def _on_checked(self) -> None:
        self._job.cancel()
        self._typing.stop()
        text, fault = self.line.text().strip(), self.line.fault
        self._add.setEnabled(bool(text) and fault is None)
        self._find.setEnabled(self._add.isEnabled())
        if not text:
            self.editing = ""
            self._add.setText("Add filter")
            self.message.say("Tab completes; Return adds the filter.", "faint")
        elif fault is not None:
            self.message.say(fault_text(fault), "error")
        else:
            self.message.say("\N{HORIZONTAL ELLIPSIS}", "dim")
            self._typing.start()

    @Slot()
    def _count(self) -> None:
        self._job.start(partial(count_hits, self._opened.filters.evaluator, Pass("x", "", self.line.text())))

    @Slot(object)
    def _on_count(self, count: object) -> None:
        if isinstance(count, int):
            hits = f"{count:,} of {len(self._opened.trace.events):,} events"
            limits = [f"In views only: {limit.message}." for limit in self.line.limits[:1]]
            self.message.say("\n".join([hits, *limits]), "dim")

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        self._say_error(str(error))

    @Slot(str)
    def _say_error(self, text: str) -> None:
        self.message.say(text[:1].upper() + text[1:], "error")
