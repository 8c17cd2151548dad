"""Where panels are, as plain values. Qt has a form of its own for it, and crashes when one byte of that is wrong."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Final

from satview.base.checked_json import Fields
from satview.base.shared_file import DamagedFileError, parsed_json

AREAS: Final = ("left", "right", "top", "bottom")
_PX_MAX: Final = 1 << 15


@dataclass(frozen=True, slots=True)
class PanelGroup:
    """Panels behind one row of tabs.

    Attributes:
        area: Side of the window.
        tabs: Names of the panels, hidden ones included.
        front: The one in front; empty if none of them shows.
        x_px, y_px, width_px, height_px: Position in the window and size; all 0 if none of them shows.
    """

    area: str
    tabs: tuple[str, ...]
    front: str = ""
    x_px: int = 0
    y_px: int = 0
    width_px: int = 0
    height_px: int = 0


@dataclass(frozen=True, slots=True)
class FloatingPanel:
    """A panel in a window of its own, and where that is on the screen."""

    name: str
    x_px: int
    y_px: int
    width_px: int
    height_px: int


@dataclass(frozen=True, slots=True)
class PanelLayout:
    """The panels of one window.

    Attributes:
        groups: Those at its sides.
        floating: Those in windows of their own.
        hidden: Names of those that do not show.
    """

    groups: tuple[PanelGroup, ...] = ()
    floating: tuple[FloatingPanel, ...] = ()
    hidden: tuple[str, ...] = ()


def layout_of(fields: Fields) -> PanelLayout:
    """Return a layout that a file holds.

    Raises:
        DamagedFileError: It holds something else.
    """
    groups = []
    for row in fields.parts("groups"):
        area = row.text("area")
        if area not in AREAS:
            raise DamagedFileError("panels: a group is at no side of the window")
        groups.append(PanelGroup(area, row.texts("tabs"), row.text("front"), *_rect(row, 0)))
    floating = tuple(FloatingPanel(row.text("name"), *_rect(row, 1)) for row in fields.parts("floating"))
    return PanelLayout(tuple(groups), floating, fields.texts("hidden"))


def to_text(layout: PanelLayout) -> str:
    """Return a layout as the text of a setting."""
    return json.dumps(asdict(layout))


def from_text(text: str) -> PanelLayout | None:
    """Return the layout that the text of a setting holds, None if it holds none."""
    try:
        return layout_of(Fields(parsed_json(text.encode("utf-8", "replace")), "panels")) if text else None
    except DamagedFileError:
        return None


def _rect(row: Fields, least_px: int) -> tuple[int, int, int, int]:
    names: tuple[Any, ...] = ("x_px", "y_px", "width_px", "height_px")
    x, y, width, height = (row.whole(name, 0, -_PX_MAX, _PX_MAX) for name in names)
    return x, y, max(least_px, width), max(least_px, height)
