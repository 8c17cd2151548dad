"""Lets several views of one trace show the same part of time, and select the same, as long as they are linked."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

if TYPE_CHECKING:
    from satview.session.open_trace import OpenTrace  # brings numpy, which no first window waits for


class ViewLinks(QObject):
    """The views that are linked, of all windows; those of one file follow each other.

    Signals:
        changed: Another view is linked, or one no longer.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._members: dict[OpenTrace, list[object]] = {}  # with the connections to each
        self._is_passing_on = False

    def has(self, view: OpenTrace) -> bool:
        """Return whether a view is linked."""
        return view in self._members

    def add(self, view: OpenTrace) -> None:
        """Link a view; it comes to where the others are."""
        if view in self._members:
            return
        other = next((each for each in self._members if _is_same(each, view)), None)
        connections: list[object] = []
        for signal, pass_on in (
            (view.viewport.window_changed, self._pass_window),
            (view.selection.changed, self._pass_selection),
            (view.selection.range_changed, self._pass_range),
            (view.selection.cursors_changed, self._pass_cursors),
        ):
            connections.append(signal.connect(partial(pass_on, view)))
        self._members[view] = connections
        view.destroyed.connect(partial(self.remove, view))
        if other is not None:
            self._pass_window(other)
        self.changed.emit()

    def remove(self, view: OpenTrace, *_: object) -> None:
        """Let a view go its own way again, or forget one that is deleted, whose selection lives on in another view."""
        for connection in self._members.pop(view, []):
            QObject.disconnect(connection)  # type: ignore[call-overload]  # PySide declares no connections
        self.changed.emit()

    def _others(self, view: OpenTrace) -> list[OpenTrace]:
        return [other for other in self._members if other is not view and _is_same(other, view)]

    def _pass_window(self, view: OpenTrace) -> None:
        if not self._is_passing_on:
            self._is_passing_on = True
            for other in self._others(view):
                other.viewport.move(view.viewport.window)
            self._is_passing_on = False

    def _pass_selection(self, view: OpenTrace) -> None:
        now = view.selection
        for other in self._others(view):
            if other.timeline is view.timeline:  # lanes and events have the same numbers
                if now.lane is not None and not other.lanes.knows(now.lane):
                    other.lanes.take_classes()
                other.selection.select(now.event, now.lane, now.span, now.is_interval)

    def _pass_range(self, view: OpenTrace) -> None:
        for other in self._others(view):
            other.selection.set_range(view.selection.time_range)

    def _pass_cursors(self, view: OpenTrace) -> None:
        for other in self._others(view):
            other.selection.set_cursors(view.selection.cursor_a, view.selection.cursor_b)


def _is_same(one: OpenTrace, other: OpenTrace) -> bool:
    return one.trace is other.trace or one.trace.path.absolute() == other.trace.path.absolute()
