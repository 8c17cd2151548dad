"""Dragging a lane by its name to another position among its siblings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from satview.session.lanes.lane_list import LaneList
from satview.session.lanes.lane_row import LaneRow

_BEGINS_PX: Final = 6


@dataclass(frozen=True, slots=True)
class _Gap:
    """A position where the lane may go: above a sibling, None = below the last; its height in the list."""

    before: int | None
    y_px: int


class LaneDrag:
    """One drag, from the press on a name to the release.

    Attributes:
        is_on: The mouse has moved so far that it is a drag and no click.
    """

    def __init__(self, lanes: LaneList, row: LaneRow, y_px: int) -> None:
        """Begin with a press.

        Args:
            lanes: All of them.
            row: The lane that was pressed.
            y_px: Where, from the top of the list.
        """
        self._lanes, self._row, self._start_px = lanes, row, y_px
        self._gap: _Gap | None = None
        self.is_on = False

    @property
    def line_px(self) -> int | None:
        """Height in the list of the line that shows where the lane goes; None = it stays."""
        return self._gap.y_px if self._gap is not None else None

    def move(self, y_px: int) -> None:
        """Follow the mouse to a height of the list."""
        self.is_on = self.is_on or abs(y_px - self._start_px) >= _BEGINS_PX
        if self.is_on:
            gaps = self._gaps()
            self._gap = min(gaps, key=lambda gap: abs(gap.y_px - y_px)) if gaps else None

    def drop(self) -> None:
        """Put the lane where the line is."""
        if self._gap is not None and self._gap.before != self._row.index:
            self._lanes.move(self._row.index, self._gap.before)

    def _gaps(self) -> list[_Gap]:
        siblings = self._lanes.siblings(self._row.index)
        tops = {row.index: row.y_px for row in self._lanes.rows if row.index in siblings}
        if len(tops) < 2:
            return []
        gaps = [_Gap(index, tops[index]) for index in siblings]
        return [*gaps, _Gap(None, self._end_of(siblings[-1]))]

    def _end_of(self, index: int) -> int:
        """Return where a lane ends with all under it."""
        rows = self._lanes.rows
        first = next(i for i, row in enumerate(rows) if row.index == index)
        last = rows[first]
        for row in rows[first + 1 :]:
            if row.depth <= rows[first].depth or row.y_px != last.y_px + last.height_px:
                break
            last = row
        return last.y_px + last.height_px
