"""The dialog of predictions: what to change; then how well the replay fits, what changed, and the trace below."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import (
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from satview.base.child import run_satview
from satview.base.errors import SatviewError, UsageError
from satview.base.time_text import format_duration
from satview.gui.comparison.beside import Beside
from satview.gui.widgets import MessageLine, PlainLabel
from satview.session.tasks import IsCancelled, Report, Task
from satview.store.trace import Trace
from satview.whatif.changes import KEYS, parse_changes

_WIDTH_PX: Final = 700
_EDIT_LINES: Final = 3
_OUTCOME_PX: Final = 220
_PATIENCE_S: Final = 600
_MOST_ACTIVITIES: Final = 8


class WhatIfDialog(QDialog):
    """Predicts in a process of its own; what it predicted opens below the trace.

    Attributes:
        changes: A change a line, as `satview whatif --set` takes them.
        predict_button, cancel_button: The buttons.
        fit: How well the unchanged replay fits, or why there is no prediction.
        outcome: What was changed, and which activities it changes most.
    """

    def __init__(self, trace: Trace, change: str, beside: Beside, parent: QWidget) -> None:
        """Begin with a change.

        Args:
            trace: What to predict from.
            change: The beginning of one, to be completed.
            beside: Opens the prediction.
            parent: Closes the dialog when the trace goes.
        """
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("What if")
        self._path, self._beside = trace.path, beside
        self._folder: TemporaryDirectory[str] | None = None
        self._job = Task(self)
        self._job.done.connect(self._on_done)
        self._job.failed.connect(self._on_failed)
        self.changes = QPlainTextEdit(change, self)
        self.changes.setAccessibleName("Changes")
        self.changes.setTabChangesFocus(True)
        self.changes.moveCursor(QTextCursor.MoveOperation.End)
        self.changes.setFixedHeight((_EDIT_LINES + 1) * self.changes.fontMetrics().lineSpacing())
        self.fit, self.outcome = MessageLine(self), PlainLabel(self)
        self.outcome.setAlignment(Qt.AlignmentFlag.AlignTop)
        for label in (self.fit, self.outcome):
            label.setWordWrap(True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.progress = QProgressBar(self)
        self.progress.setRange(0, 0)
        self.predict_button = QPushButton("&Predict", self)
        self.predict_button.setDefault(True)
        self.predict_button.clicked.connect(self._on_predict)
        self.cancel_button = QPushButton("Cancel", self)
        self.cancel_button.clicked.connect(self._on_cancel)
        self._lay_out()
        self._set_busy(False)

    def _lay_out(self) -> None:
        keys = QGridLayout()
        keys.setHorizontalSpacing(16)
        keys.setVerticalSpacing(2)
        keys.setColumnStretch(1, 1)
        for row, (key, meaning) in enumerate({"cpus": "CPUs, without a target: `cpus=2`", **KEYS}.items()):
            for column, text in enumerate((key, meaning.replace("`", ""))):
                label = PlainLabel(text, self)
                label.setProperty("role", "dim")
                keys.addWidget(label, row, column)
        close_button = QPushButton("Close", self)
        close_button.clicked.connect(self.close)
        foot = QHBoxLayout()
        foot.addWidget(self.progress, 1)
        foot.addStretch()
        for button in (self.predict_button, self.cancel_button, close_button):
            foot.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(20, 18, 20, 16)
        layout.setSpacing(10)
        layout.addWidget(PlainLabel("What to change, one TARGET:KEY=VALUE a line, such as planner 1:priority=22", self))
        layout.addWidget(self.changes)
        layout.addLayout(keys)
        said = QWidget(self)
        texts = QVBoxLayout(said)
        texts.setContentsMargins(0, 0, 0, 0)
        texts.addWidget(self.fit)
        texts.addWidget(self.outcome, 1)
        scroll = QScrollArea(self)  # errors, findings and notes may be longer than a screen
        scroll.setWidget(said)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setMinimumHeight(_OUTCOME_PX)
        layout.addWidget(scroll, 1)
        layout.addLayout(foot)
        self.resize(_WIDTH_PX, self.sizeHint().height())

    def done(self, result: int) -> None:
        """Stop what runs in the background; Escape and the frame of the window end here too."""
        self._stop()
        super().done(result)

    def _stop(self) -> None:
        self._job.close()
        if self._folder is not None:
            folder, self._folder = self._folder, None
            folder.cleanup()

    def _set_busy(self, is_busy: bool) -> None:
        self.progress.setVisible(is_busy)
        self.cancel_button.setVisible(is_busy)
        self.predict_button.setVisible(not is_busy)

    def _say(self, text: str, role: str, outcome: str = "") -> None:
        self.fit.say(text, role)
        self.outcome.setText(outcome)
        self._set_busy(False)

    @Slot()
    def _on_predict(self) -> None:
        lines = [line.strip() for line in self.changes.toPlainText().splitlines() if line.strip()]
        try:
            if not lines:
                raise UsageError("there is no change yet, such as planner 1:priority=22")
            parse_changes(lines)
            if not self._path.is_file():
                raise UsageError(f"{self._path.name} is no file that can be read again; save the events first")
        except UsageError as error:
            self._on_failed(error)
            return
        # Its name begins as that of all passing files: they are not listed among the recent ones.
        self._folder = TemporaryDirectory(prefix="satview-", ignore_cleanup_errors=True)
        self._say("Replaying, unchanged and with what you changed\N{HORIZONTAL ELLIPSIS}", "dim")
        self._set_busy(True)
        self._job.start(partial(_predict, self._path.absolute(), lines, self._predicted_path(self._folder)))

    def _predicted_path(self, folder: TemporaryDirectory[str]) -> Path:
        return Path(folder.name) / "predicted.kev"

    @Slot()
    def _on_cancel(self) -> None:
        self._stop()
        self._say("Cancelled; nothing was predicted.", "dim")

    @Slot(object)
    def _on_done(self, prediction: object) -> None:
        assert isinstance(prediction, dict)
        assert self._folder is not None
        fit = " ".join(prediction["fit"]["says"])
        self._say(fit, "warning" if fit.startswith("Warning") else "", _outcome_text(prediction))
        folder, self._folder = self._folder, None
        self._beside.open(self._predicted_path(folder), folder=folder)

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        self._stop()
        if not isinstance(error, (SatviewError, OSError)):
            raise error if isinstance(error, Exception) else RuntimeError(str(error))
        self._say(f"No prediction: {error}.", "error")


def _predict(path: Path, changes: list[str], predicted: Path, is_cancelled: IsCancelled, _report: Report) -> object:
    """Have a prediction written to a file, on a pool thread; return what `satview whatif --format json` says of it."""
    sets = [f"--set={change}" for change in changes]
    arguments = ["whatif", str(path), *sets, "-o", str(predicted), "--format", "json"]
    return json.loads(run_satview(arguments, _PATIENCE_S, is_cancelled))


def _outcome_text(prediction: dict[str, Any]) -> str:
    """Return what was changed, what goes wrong then, and the activities, what changes most first."""
    lines = [f"Changed: {change}" for change in prediction["changes"]]
    lines += [f"On the simulated kernel: {finding}" for finding in prediction["findings"]]
    known = [row for row in prediction["activities"] if row["median_change"] is not None]
    known.sort(key=lambda row: -abs(row["median_change"]))
    lines += [
        f"{row['activity']}: median {format_duration(row['median_ns'])}, replayed "
        f"{format_duration(row['replayed_median_ns'])}, predicted {format_duration(row['predicted_median_ns'])} "
        f"({row['median_change']:+.1f} %), fit {row['fit']}"
        for row in known[:_MOST_ACTIVITIES]
    ]
    left = len(prediction["activities"]) - len(known[:_MOST_ACTIVITIES])
    if left:
        lines.append(f"Not listed, as they change less or cannot be compared: {left}; satview whatif has all")
    lines += [f"Not shown by the trace: {note}" for note in prediction["not_shown"]]
    return "\n".join(lines)
