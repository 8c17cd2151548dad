"""The field of the status bar that shows how a followed file is doing."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QStatusBar, QToolButton

from satview.base.safe_text import tool_tip
from satview.gui.theme import restyle
from satview.session.session import Session


class LiveField(QToolButton):
    """`LIVE 12,300 events/s` while a file is followed; a click sticks to the end, or lets go of it.

    Signals:
        stick_requested: It was clicked.
    """

    stick_requested = Signal()

    def __init__(self, session: Session, bar: QStatusBar) -> None:
        super().__init__(bar)
        self._session = session
        self.setObjectName("live")
        self.setAccessibleName("Live")
        bar.addPermanentWidget(self)
        self.clicked.connect(self.stick_requested)
        session.follow_changed.connect(self.refresh)
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Show how it is now."""
        follow = self._session.follow
        self.setVisible(follow is not None)
        if follow is None:
            return
        if follow.note or follow.is_quiet:
            state, text = "quiet", "LIVE  waiting"
        else:
            state, text = "busy", f"LIVE  {round(follow.events_per_s):,} events/s"
        self.setText(f"\N{BLACK CIRCLE} {text}" + ("  \N{RIGHTWARDS ARROW TO BAR}" if follow.is_sticking else ""))
        where = "The view keeps to the end; click to let go" if follow.is_sticking else "Click to keep to the end"
        self.setToolTip(tool_tip(f"{follow.note or f'Following {follow.path.name}'}.\n{where}."))
        restyle(self, "state", state)
