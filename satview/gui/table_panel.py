"""A panel around one table of rows that are about events."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from PySide6.QtCore import QPoint, Slot
from PySide6.QtWidgets import QTableView

from satview.gui.panel import Panel
from satview.gui.theme import Theme


class ThemedModel(Protocol):
    """A model that gives colours to its rows."""

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""


Model = TypeVar("Model", bound=ThemedModel)


class TablePanel(Panel, Generic[Model]):
    """What the list of events, the results of a search and the transactions have in common.

    Attributes:
        table: The table.
        model: What it shows.

    Signals:
        menu_requested: Right click on a row: global position, and an empty text.
    """

    table: QTableView
    model: Model

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        super().set_theme(theme)
        self.model.set_theme(theme)
        self.table.viewport().update()

    @Slot(QPoint)
    def _on_menu(self, position: QPoint) -> None:
        self.menu_requested.emit(self.table.viewport().mapToGlobal(position), "")
