"""What of the legend the lanes highlight: a state, or another thing that it explains."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal


class LegendHighlight(QObject):
    """One for all views of a trace.

    Attributes:
        keys: Lane values that are highlighted, or one of the keys of `gui.swimlane.legend` below 0; empty = none.

    Signals:
        changed: `keys` has changed.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.keys: frozenset[int] = frozenset()

    def toggle(self, keys: frozenset[int]) -> None:
        """Highlight these; none if they are highlighted."""
        self.keys = frozenset() if keys == self.keys else keys
        self.changed.emit()

    def clear(self) -> bool:
        """Let all be alike; return whether something stood out."""
        stood_out = bool(self.keys)
        if stood_out:
            self.toggle(self.keys)
        return stood_out
