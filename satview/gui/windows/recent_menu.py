"""The menu of the files opened last."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QMenu, QWidget

from satview.base.safe_text import menu_text, tool_tip
from satview.session.loading.recent_files import RecentFiles


class RecentMenu(QMenu):
    """Filled each time it opens.

    Signals:
        file_requested: A file was selected.
    """

    file_requested = Signal(Path)

    def __init__(self, recent: RecentFiles, parent: QWidget) -> None:
        super().__init__("Open &recent", parent)
        self._recent = recent
        self.aboutToShow.connect(self.fill)

    @Slot()
    def fill(self) -> None:
        """Show the files that are there now."""
        self.clear()
        for file in self._recent.files():
            action = self.addAction(menu_text(file.name))
            action.setToolTip(tool_tip(str(file)))
            action.setData(str(file))
            action.triggered.connect(self._on_file)
        if self.isEmpty():
            self.addAction("No recent files").setEnabled(False)

    @Slot()
    def _on_file(self) -> None:
        action = self.sender()
        self.file_requested.emit(Path(action.data()))  # type: ignore[attr-defined]  # the sender is a QAction
