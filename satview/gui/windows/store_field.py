"""Says in the status bar that something of the user is not stored yet, for as long as that is so."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QStatusBar, QToolButton

from satview.base.safe_text import menu_text, tool_tip
from satview.session.stored_json import Stored

_RETRY = "It is tried again every few seconds; a click tries at once."


class StoreField(QToolButton):
    """Shows what is wrong with one file of the user; hidden while nothing is."""

    def __init__(self, file: Stored, what: str, bar: QStatusBar) -> None:
        """Prepare a field for a status bar.

        Args:
            file: The file.
            what: What it holds, in the plural, such as `Notes`.
            bar: Where.
        """
        super().__init__(bar)
        self.hide()
        # Until the field is in it, which most never are: the bar lays itself out again for each that comes.
        self._bar: QStatusBar | None = bar
        self._file = file
        self._what = what
        self.setProperty("role", "error")
        self.clicked.connect(self._on_click)
        file.changed.connect(self._show)
        self._show()

    @Slot()
    def _show(self) -> None:
        file = self._file
        if file.failure:
            self.setText(menu_text(f"{self._what} are not saved: {file.failure}"))
            self.setToolTip(tool_tip(_RETRY))
        elif file.notice:
            self.setText(menu_text(f"{self._what}: {file.notice}"))
            self.setToolTip(tool_tip("A click takes this message away."))
        says = bool(file.failure or file.notice)
        if says and self._bar is not None:
            self._bar.addPermanentWidget(self)
            self._bar = None
        self.setVisible(says)

    @Slot()
    def _on_click(self) -> None:
        if self._file.failure:
            self._file.retry()
        else:
            self._file.dismiss_notice()
