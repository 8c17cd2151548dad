"""What tables of rows have in common: their looks, and the buttons above them."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QAbstractItemModel, QItemSelectionModel, Qt
from PySide6.QtWidgets import QAbstractItemView, QHBoxLayout, QHeaderView, QPushButton, QTableView, QWidget


def set_up_rows(table: QTableView, model: QAbstractItemModel, name: str, height_px: int) -> None:
    """Make a table one of whole rows, all equally tall.

    Args:
        table: The table.
        model: What it shows.
        name: For screen readers.
        height_px: Of a row.
    """
    table.setAccessibleName(name)
    # With this header visible, a reset would call Python for a text per row: minutes at ten million rows.
    rows = table.verticalHeader()
    rows.setVisible(False)
    rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
    rows.setMinimumSectionSize(height_px)
    rows.setDefaultSectionSize(height_px)
    table.setModel(model)  # not before: Qt would request a thousand texts to learn how tall rows are
    table.horizontalHeader().setHighlightSections(False)
    table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    table.setShowGrid(False)
    table.setAlternatingRowColors(True)
    table.setWordWrap(False)
    table.setTabKeyNavigation(False)
    table.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)


def add_copy_and_export(
    head: QHBoxLayout, parent: QWidget, copy: Callable[[], None], export: Callable[[], None]
) -> tuple[QPushButton, QPushButton]:
    """Put the buttons "Copy" and "Export CSV" at the right of a line; return them."""
    buttons = QPushButton("Copy", parent), QPushButton("Export CSV\N{HORIZONTAL ELLIPSIS}", parent)
    for button, run in zip(buttons, (copy, export), strict=True):
        button.setProperty("flat", "true")
        button.clicked.connect(run)
        head.addWidget(button)
    return buttons


def select_row(table: QTableView, row: int) -> None:
    """Select a row and no other, whatever keys are held; a range that is then clicked with Shift begins there.

    `QTableView.selectRow` alone adds it to others while Ctrl is held, and selects none with Shift.

    Args:
        table: The table.
        row: Of its model.
    """
    table.selectRow(row)
    flags, selected = QItemSelectionModel.SelectionFlag, table.selectionModel()
    if selected_ranges(selected) != [range(row, row + 1)]:
        selected.setCurrentIndex(table.currentIndex(), flags.ClearAndSelect | flags.Rows)


def selected_ranges(selected: QItemSelectionModel) -> list[range]:
    """Return the selected rows as ranges, ascending: Ctrl+A selects millions of rows, which nobody should list."""
    ranges = selected.selection()
    found = (ranges.at(number) for number in range(ranges.count()))
    return sorted((range(rows.top(), rows.bottom() + 1) for rows in found), key=lambda rows: rows.start)
