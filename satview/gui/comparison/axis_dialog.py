"""The dialog for several files on one time axis: the files, and where each begins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QDialogButtonBox,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from satview.analysis.alignment import COUNTER, START, common_events
from satview.base.errors import SatviewError
from satview.base.safe_text import tool_tip, visible_line
from satview.base.time import Clock, format_exactly
from satview.formats.axis import FORMAT, PS_PER_S
from satview.gui import dialogs
from satview.gui.widgets import Dialog, PlainLabel, line_up
from satview.session.axis_files import AxisRequest, plan, write_users_axis
from satview.session.comparison import Comparison
from satview.session.tasks import Task
from satview.store.axis import AxisEntry, names_for, read_axis
from satview.store.trace import Trace

_WIDTH_PX: Final = 680
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

    Attributes:
        table: The files with names and offsets.
        align: Selects how files without an offset are aligned.
        error: Error message.

    Signals:
        written: The axis file was written; sends its path.
    """

    written = Signal(object)

    def __init__(self, trace: Trace, comparison: Comparison, parent: QWidget) -> None:
        """List the open file (or the files of the open axis) and the compared file.

        Args:
            trace: The open trace.
            comparison: Comparison with a second trace, whose offset is used, if there is one.
            parent: The window.
        """
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
        self.resize(min(_WIDTH_PX, parent.width() - 40), self.sizeHint().height())

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
        self.align.setToolTip("Or an expression: the first event of each file that fits is at the same time.")
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
        hint = PlainLabel(_HINT, self, role="dim")
        hint.setWordWrap(True)
        line = line_up(QHBoxLayout(), self._add_button, self._remove_button, None,
                       PlainLabel("Without an offset:", self), (self.align, 1))  # fmt: skip
        line_up(QVBoxLayout(self), hint, (self.table, 1), line, self.error, self.buttons, margins=(20, 18, 20, 16),
                spacing=8)  # fmt: skip

    def add_file(self, path: Path) -> None:
        """Add a file to the table."""
        rows = self._rows()
        self._append(_FileRow(path, names_for([*(Path(row.name) for row in rows), path])[-1], ""))
        self._on_rows()

    def closeEvent(self, event: object) -> None:
        """Cancel the background task."""
        self._job.close()
        super().closeEvent(event)  # type: ignore[arg-type]

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
        """Align the files in the background, which may read them, and write the axis file."""
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
    """Return the initial rows of the table: the files of the open axis, or else the open file and the compared one."""
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
