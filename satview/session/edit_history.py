"""Undo and redo for what the user changes in the view: filters and lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QObject, Signal

_LENGTH: Final = 100


@dataclass(frozen=True, slots=True)
class Edit:
    """One change: what it was, and how to go either way."""

    title: str
    undo: Callable[[], None]
    redo: Callable[[], None]


class EditHistory(QObject):
    """The changes made so far.

    Signals:
        changed: Something can be undone or redone, or no longer.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._done: list[Edit] = []
        self._undone: list[Edit] = []

    @property
    def undo_title(self) -> str:
        """What `undo` would take back; empty if there is nothing."""
        return self._done[-1].title if self._done else ""

    @property
    def redo_title(self) -> str:
        """What `redo` would do again; empty if there is nothing."""
        return self._undone[-1].title if self._undone else ""

    def add(self, edit: Edit) -> None:
        """Note a change that has been made."""
        self._done.append(edit)
        del self._done[:-_LENGTH]
        self._undone.clear()
        self.changed.emit()

    def undo(self) -> None:
        """Take back the last change."""
        if self._done:
            edit = self._done.pop()
            self._undone.append(edit)
            edit.undo()
            self.changed.emit()

    def redo(self) -> None:
        """Do the last change again that was taken back."""
        if self._undone:
            edit = self._undone.pop()
            self._done.append(edit)
            edit.redo()
            self.changed.emit()
