"""The dialogs What if, with changes to simulate, and One time axis, with files and their offsets."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QTextCursor
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QDialogButtonBox,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from satview.analysis.alignment import COUNTER, START, AxisRequest, common_events, plan, write_users_axis
from satview.analysis.partitions import first_budgets, partition_names, partition_title
from satview.answers.whatif import OPEN
from satview.base.child import run_satview
from satview.base.errors import SatviewError, UsageError
from satview.base.new_file import NewFile
from satview.base.safe_text import tool_tip, visible_line
from satview.base.time import Clock, format_duration, format_exactly
from satview.events.spec import Release
from satview.filters.expressions.syntax import Completion
from satview.formats.axis import FORMAT, PS_PER_S
from satview.gui import dialogs
from satview.gui.comparison.panel import SecondTrace
from satview.gui.filters.editing import ProposingEditor
from satview.gui.widgets import Dialog, MessageLine, PlainLabel, flat_button, line_up, push_button
from satview.linkage.latencies import latencies
from satview.linkage.waits import MUTEX, waits
from satview.session.comparison import Comparison
from satview.session.lanes.class_loader import timing_of, timing_path
from satview.session.open_trace import OpenTrace
from satview.session.tasks import IsCancelled, Task
from satview.store.axis import AxisEntry, names_for, read_axis
from satview.store.time_ranges import idle_threads
from satview.store.trace import Trace
from satview.whatif.steps import KEYS, parse_changes

# The dialog What if: changes to simulate, the quality of the replay, and the predicted trace.
#
# It uses the timing file and the descriptions of user events of the window.


# The editor for changes, with completion.


CPUS_MEANING: Final = "CPUs that the target has"
_MOST: Final = 60
_LOAD: Final = "load burner"
_OF_THREADS: Final = ("priority", "policy", "runmask", "speed")
_VALUES: Final = {"policy": ("fifo", "rr"), "inherit": ("yes", "no"), "handler": ("thread 40",),
                  "runmask": ("0x1", "0x2", "0x3"), "period": ("10ms,work=2ms,priority=30",)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChangeTarget:
    """A subject that a prediction can change: a thread, process, lock, interrupt, partition or the whole target.

    Attributes:
        name: Name of the subject in a change: `planner 1 (plan-50ms)`, `lock 0x80d4390`; empty = the whole target.
        what: Kind of the subject, for the completion list.
        keys: Keys of changes, such as `priority`, that apply to the subject.
    """

    name: str
    what: str
    keys: tuple[str, ...]


def targets_of(trace: Trace, is_cancelled: IsCancelled) -> tuple[ChangeTarget, ...]:
    """Return the threads, processes, locks, interrupts and partitions that can be changed. For a background task."""
    every_wait = waits(trace)
    if is_cancelled():
        return ()
    threads = np.unique(every_wait.thread[every_wait.thread > 0])
    threads = threads[~idle_threads(trace)[threads]]
    rows = [row for row in trace.threads.process[threads].tolist() if row > 0]
    processes = dict.fromkeys(trace.short_process_name(row) or trace.process_name(row) for row in rows)
    locks = np.unique(every_wait.object[(every_wait.value == MUTEX) & every_wait.has_object])
    delivered = latencies(trace)
    # The clock interrupt sends timer pulses, has no handler, and cannot be changed.
    is_device = (delivered.handler_row >= 0) | (delivered.pulse_row < 0) | (trace.release is Release.QNX_8)
    numbers = np.unique(delivered.number[is_device & (delivered.number >= 0)])
    handled = np.unique(delivered.number[delivered.handler_row >= 0])
    names = partition_names(trace)
    return (
        *(ChangeTarget(trace.thread_name(row), "thread", _OF_THREADS) for row in threads.tolist()),
        *(ChangeTarget(name, "process", (*_OF_THREADS, "threads")) for name in processes),
        *(ChangeTarget(f"lock {lock:#x}", "lock", ("inherit", "ceiling")) for lock in locks.tolist()),
        *(ChangeTarget(f"interrupt {number:#x}", "interrupt", ("rate", "handler") if number in handled else ("rate",))
          for number in numbers.tolist()),
        *(ChangeTarget(f"partition {partition_title(names, number)}", "partition", ("budget",))
          for number in first_budgets(trace)),
    )  # fmt: skip


def change_completions(line: str, position: int, targets: Sequence[ChangeTarget]) -> list[Completion]:
    """Return completions at the cursor, 0 to len(line), in a line with one change, the most likely first."""
    left, equals, _ = line[:position].partition("=")
    target, colon, key = left.rpartition(":")
    if equals:
        start, offered = len(left) + 1, [(value, "") for value in _VALUES.get(key.strip(), ())]
    elif colon:
        start, name = len(target) + 1, target.strip().casefold()
        keys = next((one.keys for one in targets if one.name.casefold() == name),
                    ("period",) if name.startswith("load ") else tuple(KEYS))  # fmt: skip
        offered = [(f"{one}=", KEYS[one].rpartition(": ")[2].replace("`", "")) for one in keys]
    else:
        start = 0
        offered = [("cpus=", CPUS_MEANING), *((f"{one.name}:", one.what) for one in targets),
                   (f"{_LOAD}:period=10ms,work=2ms,priority=30", "a thread that is added")]  # fmt: skip
    word = line[start:position].strip().casefold()
    fits = [(not text.casefold().startswith(word), number, text, what) for number, (text, what) in enumerate(offered)
            if word in text.casefold() and word != text.casefold()]  # fmt: skip
    return [Completion(text, start, position, what) for _, _, text, what in sorted(fits)][:_MOST]


class ChangeEditor(ProposingEditor):
    """An editor with one change per line; `targets`, the subjects that can be changed, are empty until known."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.targets: tuple[ChangeTarget, ...] = ()
        self.proposals.taken.connect(self._on_next)

    def completions(self) -> tuple[list[Completion], int]:
        """Return the completions at the cursor, and the document position at which the line of the cursor begins."""
        cursor = self.textCursor()
        block = cursor.block()
        return change_completions(block.text(), cursor.positionInBlock(), self.targets), block.position()

    @Slot(object)
    def _on_next(self, _completion: object) -> None:
        """Show the completions that can follow the completion just accepted."""
        self.propose()


# The dialog.


_WIDTH_PX: Final = 700
_EDIT_LINES: Final = 3
_OUTCOME_PX: Final = 220
_PATIENCE_S: Final = 600
_MOST_ACTIVITIES: Final = 8


class WhatIfDialog(Dialog):
    """Dialog that predicts the effect of changes in a child process, and opens the predicted trace below the open one.

    `fit` says how well a replay without changes reproduces the trace, `outcome` which activities change most.
    """

    def __init__(self, opened: OpenTrace, change: str, second_trace: SecondTrace, parent: QWidget) -> None:
        super().__init__("What if", parent)
        self._opened, self._path, self._second_trace = opened, opened.trace.path, second_trace
        self._folder: TemporaryDirectory[str] | None = None
        self._predicted: Path | None = None
        self._job = Task(self, self._on_done, self._on_failed)
        self._save_task = Task(self, self._on_saved, self._on_not_saved)
        self._targets_task = Task(self, self._on_targets, self._on_targets)  # on failure, nothing is proposed
        self.changes = ChangeEditor(self)
        self.changes.setPlainText(change)
        self.changes.setAccessibleName("Changes")
        self.changes.setTabChangesFocus(True)
        self.changes.moveCursor(QTextCursor.MoveOperation.End)
        self.changes.setFixedHeight((_EDIT_LINES + 1) * self.changes.fontMetrics().lineSpacing())
        self.timing = QLineEdit(opened.timing_file, self)
        self.timing.setClearButtonEnabled(True)
        self.timing.setPlaceholderText("None: deadlines are the periods")
        self.timing.setAccessibleName("Timing file")
        self.timing.setToolTip(
            tool_tip("A TOML file with deadlines, activities and chains of your own, for this prediction")
        )
        self.fit, self.outcome, self.saved = MessageLine(self), PlainLabel(self), MessageLine(self)
        self.outcome.setAlignment(Qt.AlignmentFlag.AlignTop)
        for label in (self.fit, self.outcome):
            label.setWordWrap(True)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.progress = QProgressBar(self)
        self.progress.setRange(0, 0)
        self.predict_button = QPushButton("&Predict", self, default=True)
        self.predict_button.clicked.connect(self._on_predict)
        self.cancel_button = push_button("Cancel", self, self._on_cancel)
        self.save_button = QPushButton("&Save as\N{HORIZONTAL ELLIPSIS}", self)
        self.save_button.setToolTip(tool_tip("Keep the predicted trace: a trace like any other, marked as predicted"))
        self.save_button.clicked.connect(self._on_save)
        self._lay_out()
        self._set_busy(False)
        self._targets_task.start(partial(targets_of, opened.trace))

    def _lay_out(self) -> None:
        keys = QGridLayout()
        keys.setHorizontalSpacing(16)
        keys.setVerticalSpacing(2)
        keys.setColumnStretch(1, 1)
        for row, (key, meaning) in enumerate({"cpus": f"{CPUS_MEANING}, without a name: `cpus=2`", **KEYS}.items()):
            for column, text in enumerate((key, meaning.replace("`", ""))):
                label = PlainLabel(text, self, role="dim")
                keys.addWidget(label, row, column)
        close_button = push_button("Close", self, self.close)
        foot = line_up(QHBoxLayout(), (self.progress, 1), None, self.predict_button, self.cancel_button,
                       self.save_button, close_button)  # fmt: skip
        layout = line_up(QVBoxLayout(self),
                         PlainLabel("What to change, one TARGET:KEY=VALUE a line, such as planner 1:priority=22", self),
                         self.changes, keys, self._timing_line(), margins=(20, 18, 20, 16), spacing=10)  # fmt: skip
        if self._opened.user_file:
            described = f"User events as described in {Path(self._opened.user_file).name}"
            layout.addWidget(PlainLabel(visible_line(described), self, role="dim"))
        results = QWidget(self)
        line_up(QVBoxLayout(results), self.fit, (self.outcome, 1), margins=(0, 0, 0, 0))
        scroll = QScrollArea(self)  # texts may be longer than a screen
        scroll.setWidget(results)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setMinimumHeight(_OUTCOME_PX)
        layout.addWidget(scroll, 1)
        layout.addWidget(self.saved)
        layout.addLayout(foot)
        self.resize(_WIDTH_PX, self.sizeHint().height())

    def _timing_line(self) -> QHBoxLayout:
        choose = flat_button("Choose\N{HORIZONTAL ELLIPSIS}", self, self._on_choose)
        choose.setAutoDefault(False)
        return line_up(QHBoxLayout(), PlainLabel("Timing file", self), (self.timing, 1), choose)

    def done(self, result: int) -> None:
        """Cancel background tasks; also called for Escape and the window's close button."""
        self._stop()
        self._targets_task.close()
        self._save_task.close()
        super().done(result)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Cancel the running prediction on Escape, which closes the dialog otherwise, with the changes typed in it."""
        if event.key() == Qt.Key.Key_Escape and self.cancel_button.isVisible():
            self._on_cancel()
        else:
            super().keyPressEvent(event)

    def _stop(self) -> None:
        self._job.close()
        if self._folder is not None:
            folder, self._folder = self._folder, None
            folder.cleanup()

    def _set_busy(self, is_busy: bool) -> None:
        self.progress.setVisible(is_busy)
        self.cancel_button.setVisible(is_busy)
        self.predict_button.setVisible(not is_busy)
        self.save_button.setVisible(not is_busy)
        self.save_button.setEnabled(self._predicted is not None and not self._save_task.is_busy)

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
                raise UsageError(f"{self._path.name} is not a file that can be read again; save the events first")
            options = self._options()
        except UsageError as error:
            self._on_failed(error)
            return
        # The prefix keeps its files out of the list of recent files.
        self._folder = TemporaryDirectory(prefix="satview-", ignore_cleanup_errors=True)
        self._say("Replaying, unchanged and with what you changed\N{HORIZONTAL ELLIPSIS}", "dim")
        self.saved.say("", "dim")
        self._set_busy(True)
        self._job.start(partial(_predict, self._path.absolute(), lines, options, self._predicted_path(self._folder)))

    def _options(self) -> list[str]:
        """Return timing file and user events as options of `satview whatif`; raise `UsageError` for a faulty file."""
        options, trace, file = [], self._opened.trace, self.timing.text().strip()
        if file:
            timing_of(trace, file)
            options.append(f"--timing={timing_path(trace, file).absolute()}")
        if self._opened.user_file:
            options.append(f"--user-events={Path(self._opened.user_file).expanduser().absolute()}")
        return options

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
        self._predicted = self._predicted_path(folder)
        self._second_trace.open(self._predicted, folder=folder)
        self._set_busy(False)

    @Slot()
    def _on_choose(self) -> None:
        path = dialogs.ask_file(self, "Timing file", "TOML (*.toml);;All files (*)")
        if path is not None:
            self.timing.setText(str(path))

    @Slot(object)
    def _on_targets(self, targets: object) -> None:
        if isinstance(targets, tuple):
            self.changes.targets = targets

    @Slot()
    def _on_save(self) -> None:
        predicted = self._predicted
        if predicted is None or not predicted.is_file():
            self.saved.say("The prediction is closed; predict again.", "error")
            return
        path = dialogs.ask_save(self, Path(f"predicted-{self._path.stem}.kev"), "Kernel event traces (*.kev)")
        if path is not None:
            self._save_task.start(partial(_copy, predicted, path, self._path))
            self.save_button.setEnabled(False)

    @Slot(object)
    def _on_saved(self, path: object) -> None:
        self.saved.say(visible_line(f"Saved: {path}"), "dim")
        self._set_busy(self._job.is_busy)

    @Slot(object)
    def _on_not_saved(self, error: Exception) -> None:
        self._set_busy(self._job.is_busy)
        if not isinstance(error, (SatviewError, OSError)):
            raise error
        self.saved.say(f"Not saved: {error}.", "error")

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        self._stop()
        if not isinstance(error, (SatviewError, OSError)):
            raise error
        self._say(f"No prediction: {error}.", "error")


def _copy(predicted: Path, path: Path, source: Path, _is_cancelled: IsCancelled) -> Path:
    """Copy the predicted trace to a file other than its source, on a pool thread; return that file."""
    with predicted.open("rb") as stream, NewFile(path, reading=(predicted, source)) as copy:
        shutil.copyfileobj(stream, copy.stream)
    return path


def _predict(path: Path, changes: list[str], options: list[str], predicted: Path, is_cancelled: IsCancelled) -> object:
    """Write a predicted trace, on a pool thread; return the output of `satview whatif --format json`."""
    sets = [f"--set={change}" for change in changes]
    arguments = ["whatif", str(path), *sets, *options, "-o", str(predicted), "--format", "json"]
    return json.loads(run_satview(arguments, _PATIENCE_S, is_cancelled))


def _outcome_text(prediction: dict[str, Any]) -> str:
    """Return lines of text: the changes, the problems that they cause, and the activities, largest change first."""
    lines = [f"Changed: {change}" for change in prediction["changes"]]
    lines += [f"On the simulated kernel: {finding}" for finding in prediction["findings"]]
    comparable = [row for row in prediction["activities"] if row["median_change"] is not None]
    comparable.sort(key=lambda row: -abs(row["median_change"]))
    lines += [
        f"{row['activity']}: median {format_duration(row['median_ns'])}, replayed "
        f"{format_duration(row['replayed_median_ns'])}, predicted {format_duration(row['predicted_median_ns'])} "
        f"({'? ' if _is_open(row) else ''}{row['median_change']:+z.1f} %), fit {row['fit']}"
        for row in comparable[:_MOST_ACTIVITIES]
    ]
    if any(map(_is_open, comparable[:_MOST_ACTIVITIES])):
        lines.append(f"?: {OPEN}")
    left = len(prediction["activities"]) - len(comparable[:_MOST_ACTIVITIES])
    if left:
        lines.append(f"Not listed, as they change less or cannot be compared: {left}; satview whatif has all")
    lines += [f"Not shown by the trace: {note}" for note in prediction["not_shown"]]
    return "\n".join(lines)


def _is_open(row: dict[str, Any]) -> bool:
    """Return whether a predicted change of an activity's median is uncertain, as some instances are unfinished."""
    return "median_change" in row.get("known", ())


# The dialog for several files on one time axis: the files, and where each begins.


_AXIS_WIDTH_PX: Final = 680
_TABLE_PX: Final = 170
_NAME, _FILE, _OFFSET = range(3)
_HINT: Final = (
    "The first file stays where it is. An offset, such as 12.5ms or -2s, is the time from its beginning to the "
    "beginning of another file; files without one are aligned."
)
_ALIGN: Final = {START: "at their starts", COUNTER: "by their counters, which began together"}


@dataclass(frozen=True, slots=True)
class _FileRow:
    path: Path
    name: str
    offset: str


class AxisDialog(Dialog):
    """Dialog that writes an axis file: the open trace and others, with offsets, to be shown on one time axis.

    Signals:
        written: The axis file was written; sends its path.
    """

    written = Signal(object)

    def __init__(self, trace: Trace, comparison: Comparison, parent: QWidget) -> None:
        super().__init__("Files on one time axis", parent)
        self._folder = trace.path.parent
        self._described = trace.payloads.described
        self._job = Task(self, self._on_planned, self._on_failed)
        self.table = QTableWidget(self)
        self.align = QComboBox(self)
        self.error = PlainLabel(self, role="error")
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Open | QDialogButtonBox.StandardButton.Cancel)
        self._add_button = QPushButton("&Add file\N{HORIZONTAL ELLIPSIS}", self)
        self._remove_button = QPushButton("&Remove", self)
        self._set_up(trace, comparison)
        self._lay_out()
        for row in _first_rows(trace, comparison):
            self._append(row)
        self._on_rows()
        self.resize(min(_AXIS_WIDTH_PX, parent.width() - 40), self.sizeHint().height())

    def _set_up(self, trace: Trace, comparison: Comparison) -> None:
        self.table.setColumnCount(3)
        self.table.setHorizontalHeaderLabels(["Name", "File", "Offset"])
        self.table.verticalHeader().hide()
        self.table.horizontalHeader().setSectionResizeMode(_FILE, QHeaderView.ResizeMode.Stretch)
        self.table.setColumnWidth(_NAME, 140)
        self.table.setColumnWidth(_OFFSET, 170)
        self.table.setMinimumHeight(_TABLE_PX)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setAccessibleName("Files")
        self.align.setEditable(True)
        self.align.setAccessibleName("Align files without an offset")
        self.align.setToolTip("Or an expression: the first matching event of each file is placed at the same time.")
        for key, title in _ALIGN.items():
            self.align.addItem(title, key)
        if comparison.second is not None:
            for condition in common_events([trace, comparison.second.trace], 8):
                self.align.addItem(condition, condition)
        self.error.setWordWrap(True)
        self.error.hide()
        self._add_button.clicked.connect(self._on_add)
        self._remove_button.clicked.connect(self._on_remove)
        self.table.itemSelectionChanged.connect(self._on_rows)
        self.buttons.accepted.connect(self._on_open)
        self.buttons.rejected.connect(self.close)

    def _lay_out(self) -> None:
        hint = PlainLabel(_HINT, self, role="dim", wraps=True)
        line = line_up(QHBoxLayout(), self._add_button, self._remove_button, None,
                       PlainLabel("Without an offset:", self), (self.align, 1))  # fmt: skip
        line_up(QVBoxLayout(self), hint, (self.table, 1), line, self.error, self.buttons, margins=(20, 18, 20, 16),
                spacing=8)  # fmt: skip

    def add_file(self, path: Path) -> None:
        """Add a file to the table."""
        rows = self._rows()
        self._append(_FileRow(path, names_for([*(Path(row.name) for row in rows), path])[-1], ""))
        self._on_rows()

    def done(self, result: int) -> None:
        """Cancel the background task; also called for Escape and the window's close button."""
        self._job.close()
        super().done(result)

    def _append(self, row: _FileRow) -> None:
        position = self.table.rowCount()
        self.table.insertRow(position)
        name, offset = QTableWidgetItem(row.name), QTableWidgetItem(row.offset if position else "")
        file = QTableWidgetItem(visible_line(row.path.name))
        file.setData(Qt.ItemDataRole.UserRole, str(row.path))
        file.setToolTip(tool_tip(str(row.path)))
        file.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable)
        if not position:
            offset.setFlags(Qt.ItemFlag.ItemIsSelectable)
        for column, item in ((_NAME, name), (_FILE, file), (_OFFSET, offset)):
            self.table.setItem(position, column, item)

    def _rows(self) -> list[_FileRow]:
        rows = []
        for row in range(self.table.rowCount()):
            name, file, offset = (self.table.item(row, column) for column in (_NAME, _FILE, _OFFSET))
            assert name is not None
            assert file is not None
            assert offset is not None
            path = Path(str(file.data(Qt.ItemDataRole.UserRole)))
            rows.append(_FileRow(path, name.text().strip(), offset.text().strip()))
        return rows

    @Slot()
    def _on_rows(self) -> None:
        self.buttons.button(QDialogButtonBox.StandardButton.Open).setEnabled(self.table.rowCount() > 1)
        self._remove_button.setEnabled(self.table.currentRow() > 0)

    @Slot()
    def _on_add(self) -> None:
        for path in dialogs.ask_open(self, self._folder):
            self.add_file(path)

    @Slot()
    def _on_remove(self) -> None:
        if self.table.currentRow() > 0:
            self.table.removeRow(self.table.currentRow())
            self._on_rows()

    @Slot()
    def _on_open(self) -> None:
        """Align the files, which may require reading them, and write the axis file, both in the background."""
        rows = self._rows()
        offsets = {row.name: row.offset for row in rows[1:] if row.offset}
        text = self.align.currentText().strip()
        align = next((key for key, title in _ALIGN.items() if title == text), text)
        paths, names = tuple(row.path for row in rows), tuple(row.name for row in rows)
        request = AxisRequest(paths, names, offsets, align, described=self._described)
        self._say("")
        self.buttons.button(QDialogButtonBox.StandardButton.Open).setEnabled(False)
        self._job.start(lambda is_cancelled: write_users_axis(plan(request, is_cancelled)))

    @Slot(object)
    def _on_planned(self, result: object) -> None:
        assert isinstance(result, Path)
        self.written.emit(result)
        self.close()

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        if not isinstance(error, SatviewError):
            raise error
        self._say(str(error))
        self._on_rows()

    def _say(self, text: str) -> None:
        self.error.setText(text)
        self.error.setVisible(bool(text))


def _first_rows(trace: Trace, comparison: Comparison) -> list[_FileRow]:
    """Return the initial rows of the table: the files of the open axis, or else the open and the compared file."""
    if trace.format == FORMAT:
        return [_row_of_entry(entry) for entry in read_axis(trace.path)]
    paths, offsets = [trace.path], [""]
    if comparison.second is not None:
        paths.append(comparison.second.trace.path)
        offsets.append(_offset_text(comparison.offset_ps))
    return [_FileRow(path, name, offset) for path, name, offset in zip(paths, names_for(paths), offsets, strict=True)]


def _row_of_entry(entry: AxisEntry) -> _FileRow:
    return _FileRow(entry.path, entry.name, _offset_text(entry.offset_ps))


def _offset_text(offset_ps: int) -> str:
    """Return an offset as the user would type it, exactly: `12.5 ms`."""
    return format_exactly(offset_ps, Clock(PS_PER_S))
