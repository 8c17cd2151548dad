"""What a window shows first of a trace, as the command line asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Slot

from satview.base.errors import SatviewError
from satview.gui.main_window import MainWindow
from satview.session.session import Session, Stage

if TYPE_CHECKING:
    from satview.gui.workspace import Workspace


@dataclass(frozen=True, slots=True)
class FirstLook:
    """A part of a trace and an event in it.

    Attributes:
        range_text: `A..B` in any notation of ranges, or empty for the whole trace.
        event: Number of the event to select, from 1; None for none.
    """

    range_text: str = ""
    event: int | None = None

    def __bool__(self) -> bool:
        return bool(self.range_text) or self.event is not None


def look_at(views: Workspace, look: FirstLook) -> None:
    """Go there.

    Raises:
        UsageError: The range says nothing, or there is no such event.
    """
    from satview.session.time_text import axis_of, parse_range  # brings numpy, which no first window waits for

    if look.event is not None:
        views.navigation.show_position(f"#{look.event}")
    if look.range_text:
        views.opened.viewport.jump(parse_range(look.range_text, axis_of(views.opened.trace)))


class FirstLooks(QObject):
    """Lets every window that opens a trace of the command line go to the position requested, once."""

    def __init__(self, look: FirstLook, parent: QObject) -> None:
        super().__init__(parent)
        self._look = look
        self._waiting: dict[Session, MainWindow] = {}

    def watch(self, window: MainWindow) -> None:
        """Go there as soon as the window has its trace."""
        if self._look:
            self._waiting[window.session] = window
            window.session.stage_changed.connect(self._on_stage)

    @Slot()
    def _on_stage(self) -> None:
        session = self.sender()
        if isinstance(session, Session) and session in self._waiting and session.stage is Stage.READY:
            # A turn later: by then the window has made its views.
            QTimer.singleShot(0, self, partial(self._go, self._waiting.pop(session)))

    def _go(self, window: MainWindow) -> None:
        if window.workspace is None:
            return
        try:
            look_at(window.workspace, self._look)
        except SatviewError as error:
            window.workspace.report(str(error))
