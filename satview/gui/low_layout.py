"""Panels in a low drawer: what is stacked otherwise goes side by side, so that nothing is squeezed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtWidgets import QGridLayout, QWidget

_LOW_PX: Final = 230
_WIDE_PX: Final = 400  # below, there is no room side by side

Cell = tuple[QWidget, int, int, int]
"""A widget, its row, its column, how many rows it takes."""


def is_low(panel: QWidget) -> bool:
    """Return whether a panel has more room beside each other than one above the other."""
    return panel.height() < _LOW_PX and panel.width() >= _WIDE_PX


class LowGrid(QGridLayout):
    """The layout of a panel whose widgets are one above the other, and otherwise where it is low.

    Args:
        panel: The panel, which calls `follow` when its size changes.
        stacked: The widgets from top to bottom.
        stretched: The one of them that takes the height that is left.
        low: Where they are in a low panel.
        columns: How the columns of a low panel share its width.
        low_stretched_row: The row that takes the height that is left there.
    """

    def __init__(
        self,
        panel: QWidget,
        stacked: Sequence[QWidget],
        stretched: QWidget,
        low: Sequence[Cell],
        columns: Sequence[int],
        low_stretched_row: int,
    ) -> None:
        super().__init__(panel)
        self._panel, self._low, self._columns = panel, low, columns
        self._stacked = [(widget, row, 0, 1) for row, widget in enumerate(stacked)]
        self._stretched_rows = stacked.index(stretched), low_stretched_row
        self._is_low: bool | None = None
        self.follow()

    def follow(self) -> None:
        """Arrange the widgets for the size that the panel has."""
        low = is_low(self._panel)
        if low is self._is_low:
            return
        self._is_low = low
        cells = self._low if low else self._stacked
        for widget, *_ in cells:
            self.removeWidget(widget)
        for widget, row, column, rows in cells:
            self.addWidget(widget, row, column, rows, 1)
        for row in range(self.rowCount()):
            self.setRowStretch(row, int(row == self._stretched_rows[low]))
        for column, share in enumerate(self._columns):
            self.setColumnStretch(column, share if low else int(column == 0))
