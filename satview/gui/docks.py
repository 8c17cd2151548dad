"""Takes down where the panels of a window are, and puts them there again."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from PySide6.QtCore import QRect, QSignalBlocker, Qt
from PySide6.QtWidgets import QDockWidget, QMainWindow, QTabBar, QWidget

from satview.session.workspace_file import Area, FloatingPanel, PanelGroup, PanelLayout

_AREAS: Final[dict[Area, Qt.DockWidgetArea]] = {
    "left": Qt.DockWidgetArea.LeftDockWidgetArea,
    "right": Qt.DockWidgetArea.RightDockWidgetArea,
    "top": Qt.DockWidgetArea.TopDockWidgetArea,
    "bottom": Qt.DockWidgetArea.BottomDockWidgetArea,
}
_DIRECTIONS: Final = {
    area: Qt.Orientation.Horizontal if name in ("left", "right") else Qt.Orientation.Vertical
    for name, area in _AREAS.items()
}
_NAMES: Final = {area: name for name, area in _AREAS.items()}
Docks = Mapping[str, QDockWidget]


def take_layout(window: QMainWindow, docks: Docks) -> PanelLayout:
    """Return where the panels are.

    Args:
        window: Their window.
        docks: Name of a panel to its dock.
    """
    names = {dock: name for name, dock in docks.items()}
    bars = _bars(window, docks)
    members: dict[str, list[str]] = {}  # by the first of the group
    hidden = [name for name, dock in docks.items() if dock.isHidden()]
    for name, dock in docks.items():
        tabs = [names[other] for other in (dock, *window.tabifiedDockWidgets(dock))]
        if not dock.isFloating() and name not in hidden:
            front = next(other for other in docks if other in tabs and other not in hidden)
            members.setdefault(front, []).append(name)
    for name in hidden:  # Qt reports only at which side it is
        area = window.dockWidgetArea(docks[name])
        front = next((other for other in members if window.dockWidgetArea(docks[other]) == area), name)
        members.setdefault(front, []).append(name)
    groups = [
        _group(window, docks, tuple(other for other in docks if other in tabs), bars) for tabs in members.values()
    ]
    groups.sort(key=lambda group: (group.area, group.y_px, group.x_px))
    floating = tuple(FloatingPanel(name, *_rect(dock)) for name, dock in docks.items() if dock.isFloating())
    return PanelLayout(tuple(groups), floating, tuple(hidden))


def put_layout(window: QMainWindow, docks: Docks, layout: PanelLayout) -> None:
    """Put the panels where a layout says; panels that it does not name stay at their side, hidden.

    Args:
        window: Their window.
        docks: Name of a panel to its dock.
        layout: Where they are to be; names that no panel has are left out.
    """
    if _shape(take_layout(window, docks)) != _shape(layout):  # to move docks costs Qt tens of milliseconds
        _dock_all(window, docks, layout)
    _size(window, docks, layout)


def shows(dock: QDockWidget) -> bool:
    """Return whether a panel can be seen; one behind another tab cannot."""
    return dock.isVisible() and not dock.visibleRegion().isEmpty()


class KeptSizes:
    """How wide and high the panels at the sides are, so that they are so again after the window was small."""

    def __init__(self, window: QMainWindow, docks: Docks) -> None:
        self._window, self._docks = window, docks
        self._shares: dict[Qt.DockWidgetArea, tuple[int, int]] = {}

    def note(self) -> None:
        """Note the sizes of the panels that can be seen."""
        bars = _bars(self._window, self._docks)
        for area, (name, dock) in self._fronts().items():
            size_px = self._size(area, dock)
            if _DIRECTIONS[area] is Qt.Orientation.Vertical and name in bars:
                size_px += bars[name].height()  # Qt counts the tabs
            self._shares[area] = size_px, self._size(area, self._window)

    def restore(self) -> None:
        """Give panels the noted sizes, or less in a smaller window."""
        for area, (_, dock) in self._fronts().items():
            if area in self._shares:
                size_px, window_px = self._shares[area]
                fitting_px = min(size_px, round(size_px * self._size(area, self._window) / window_px))
                self._window.resizeDocks([dock], [fitting_px], _DIRECTIONS[area])

    def _fronts(self) -> dict[Qt.DockWidgetArea, tuple[str, QDockWidget]]:
        """Return one panel that can be seen at each side."""
        seen = [row for row in self._docks.items() if not row[1].isFloating() and shows(row[1])]
        return {self._window.dockWidgetArea(dock): (name, dock) for name, dock in seen}

    @staticmethod
    def _size(area: Qt.DockWidgetArea, widget: QWidget) -> int:
        return widget.width() if _DIRECTIONS[area] is Qt.Orientation.Horizontal else widget.height()


def scroll_tabs(window: QMainWindow, docks: Docks) -> None:
    """Scroll each row of tabs no further than its front needs; Qt scrolls on while a row is still narrow.

    Args:
        window: The window, laid out.
        docks: The panels.
    """
    for bar in _bars(window, docks).values():
        front = bar.currentIndex()
        with QSignalBlocker(bar):  # no panel comes to the front meanwhile
            bar.setCurrentIndex(0)
            bar.setCurrentIndex(front)


def _shape(layout: PanelLayout) -> tuple[object, ...]:
    """Return what of a layout is not a matter of sizes."""
    groups = tuple((group.area, group.tabs) for group in layout.groups)
    return groups, layout.floating, frozenset(layout.hidden)


def _dock_all(window: QMainWindow, docks: Docks, layout: PanelLayout) -> None:
    groups = [(group, [docks[name] for name in dict.fromkeys(group.tabs) if name in docks]) for group in layout.groups]
    last: dict[str, tuple[PanelGroup, QDockWidget]] = {}
    for group, own in groups:  # first one of each group: what is split must not have tabs yet
        if not own:
            continue
        _dock_again(own[0])
        window.addDockWidget(_AREAS[group.area], own[0])
        if group.area in last:
            before, neighbour = last[group.area]
            is_below = group.y_px >= before.y_px + max(1, before.height_px) // 2
            side = Qt.Orientation.Vertical if is_below else Qt.Orientation.Horizontal
            window.splitDockWidget(neighbour, own[0], side)
        last[group.area] = group, own[0]
    for _, own in groups:
        for before_dock, dock in pairwise(own):
            _dock_again(dock)
            window.tabifyDockWidget(before_dock, dock)
    named = {name for group in layout.groups for name in group.tabs} | {panel.name for panel in layout.floating}
    for name, dock in docks.items():  # newer than the layout: behind the tabs at their side, where there are any
        if name not in named and (row := last.get(_NAMES.get(window.dockWidgetArea(dock), ""))) is not None:
            window.tabifyDockWidget(row[1], dock)
    for panel in layout.floating:
        if panel.name in docks:
            docks[panel.name].setFloating(True)
            docks[panel.name].setGeometry(QRect(panel.x_px, panel.y_px, panel.width_px, panel.height_px))
    for name, dock in docks.items():
        dock.setHidden(name in layout.hidden or name not in named)


def _dock_again(dock: QDockWidget) -> None:
    if dock.isFloating():
        dock.setFloating(False)


def _size(window: QMainWindow, docks: Docks, layout: PanelLayout) -> None:
    """Bring panels in front of their groups, and give the groups their sizes."""
    shown = [group for group in layout.groups if group.front in docks and group.width_px > 0 and group.height_px > 0]
    for group in shown:
        docks[group.front].raise_()
    for area in _AREAS:
        in_area = [group for group in shown if group.area == area]
        beside, above = (_one_of_each(in_area, axis) for axis in ("x_px", "y_px"))
        if len(beside) > 1 or area in ("left", "right"):  # else the width is that of the window
            sizes = [group.width_px for group in beside]
            window.resizeDocks([docks[group.front] for group in beside], sizes, Qt.Orientation.Horizontal)
        if len(above) > 1 or area in ("top", "bottom"):
            sizes = [group.height_px for group in above]
            window.resizeDocks([docks[group.front] for group in above], sizes, Qt.Orientation.Vertical)


def _one_of_each(groups: list[PanelGroup], axis: str) -> list[PanelGroup]:
    """Return the first group of each that begin at one position: the others have the same size there."""
    return list({getattr(group, axis): group for group in reversed(groups)}.values())[::-1]


def _group(window: QMainWindow, docks: Docks, tabs: tuple[str, ...], bars: Mapping[str, QTabBar]) -> PanelGroup:
    area = _NAMES.get(window.dockWidgetArea(docks[tabs[0]]), "bottom")
    shown = [name for name in tabs if not docks[name].isHidden()]
    front = next((name for name in shown if name in bars), shown[0] if shown else "")
    if not front:
        return PanelGroup(area, tabs)
    x, y, width, height = _rect(docks[front])
    return PanelGroup(area, tabs, front, x, y, width, height + (bars[front].height() if front in bars else 0))


def _bars(window: QMainWindow, docks: Docks) -> dict[str, QTabBar]:
    """Return the rows of tabs by the panel that is in front of each."""
    titles = {dock.windowTitle(): name for name, dock in docks.items()}
    bars = [bar for bar in window.findChildren(QTabBar) if bar.parent() is window and bar.isVisible()]
    by_title = {titles.get(bar.tabText(bar.currentIndex())): bar for bar in bars}
    return {name: bar for name, bar in by_title.items() if name is not None}


def _rect(dock: QDockWidget) -> tuple[int, int, int, int]:
    area = dock.geometry()
    return area.x(), area.y(), area.width(), area.height()
