"""What every panel of the workspace has, and what it is made with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import QPoint, Signal
from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QWidget

from satview.gui.saved_values import Value, put_values, values_of
from satview.gui.theme import Theme
from satview.session.panel_table import PanelRow

if TYPE_CHECKING:
    from satview.gui.swimlane.area import SwimlaneArea
    from satview.session.comparison.comparison import Comparison
    from satview.session.navigation import Navigation
    from satview.session.open_trace import OpenTrace
    from satview.session.settings import Settings


@dataclass(frozen=True, slots=True)
class PanelContext:
    """What a panel is made with.

    Attributes:
        opened: The trace, its selection, filter and lanes.
        navigation: Goes to events, times and lanes.
        settings: Settings of the program.
        theme: Colours at first.
        area: The swimlanes, for panels whose time axis is theirs.
        find: Searches for a condition, as if it were typed into the find bar.
        report: Says something in the status bar for a few seconds.
        comparison: The trace with a second one, if there is one.
    """

    opened: OpenTrace
    navigation: Navigation
    settings: Settings
    theme: Theme
    area: SwimlaneArea
    find: Callable[[str], None]
    report: Callable[[str], None]
    comparison: Comparison


class Panel(QWidget):
    """A widget in a dock beside the swimlanes.

    Attributes:
        saved_fields: Fields whose values are there again when the trace is next opened, as `saved_values` returns them.
        waits_to_be_seen: `reload` is called when the panel is first seen too, for what nothing else needs.

    Signals:
        menu_requested: Right click: global position, name of the argument under it or empty.
    """

    waits_to_be_seen: ClassVar[bool] = False
    saved_fields: ClassVar[tuple[str, ...]] = ()
    menu_requested = Signal(QPoint, str)

    def __init__(self, context: PanelContext, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._opened = context.opened
        self._navigation = context.navigation
        self._theme = context.theme

    def set_theme(self, theme: Theme) -> None:
        """Draw in other colours."""
        self._theme = theme

    def reload(self) -> None:
        """Show what a refreshed trace has more, once the panel can be seen; for panels that do not follow signals."""

    def rest(self) -> None:
        """Stop working: nobody looks."""

    def hideEvent(self, event: QHideEvent) -> None:
        """Rest."""
        super().hideEvent(event)
        self.rest()

    def close_down(self) -> None:
        """Cancel the background task."""

    def saved_values(self) -> dict[str, Value]:
        """Return what is to be there again when the trace is opened the next time."""
        return values_of(self, self.saved_fields)

    def take_values(self, values: Mapping[str, Value]) -> None:
        """Show saved values; those that do not fit, of a file that somebody changed, are left out."""
        put_values(self, self.saved_fields, values)

    def copied_text(self) -> str:
        """Return what Copy takes while the panel has the focus; empty leaves Copy to the details."""
        return ""


def make_panel(row: PanelRow, context: PanelContext, parent: QWidget) -> Panel:
    """Return the panel of a row of the table, imported on first use."""
    panel = getattr(import_module(row.module), row.home.partition(":")[2])(context, parent)
    assert isinstance(panel, Panel), f"{row.home} is not a Panel"
    return panel
