"""Which lanes show, in which order and how tall: folding, hiding, pinning. Pixels here are logical ones."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from satview.base.time import TimeWindow
from satview.session.edit_history import Edit, EditHistory
from satview.session.filter_stack import FilterStack
from satview.session.lane_events import busy_lanes
from satview.session.lane_row import LaneRow
from satview.session.remap import LaneKey, lane_keys
from satview.timeline.lane_tree import LaneInfo, LaneKind, Timeline

GROUP_GAP_PX: Final = 8  # between pinned lanes, CPUs and processes
_MOST_GAPS: Final = 2  # between pinned lanes, CPUs and processes
_GROWS_TO: Final = 2  # times the height that is set
_TALLEST_PX: Final = 48  # that lanes grow to by themselves


@dataclass(frozen=True, slots=True)
class _Arrangement:
    """What the user has done to the lanes; keys, not indices, so that it means the same in a longer reading.

    Attributes:
        turned: Lanes that are open though they were closed at first, or the other way round.
        hidden, pinned: Lanes hidden, and pinned in this order.
        hides_empty: Lanes without events in the window are left out.
    """

    turned: frozenset[LaneKey] = frozenset()
    hidden: frozenset[LaneKey] = frozenset()
    pinned: tuple[LaneKey, ...] = ()
    hides_empty: bool = False


class LaneList(QObject):
    """The lanes of one window.

    Attributes:
        rows: What is laid out, from top to bottom.

    Signals:
        changed: `rows` changed.
    """

    changed = Signal()

    def __init__(
        self,
        timeline: Timeline,
        filters: FilterStack,
        history: EditHistory,
        lane_height_px: int,
        unfold_up_to: int,
        parent: QObject | None = None,
        hidden: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(parent)
        self._take(timeline)
        self._filters = filters
        self._history = history
        self._lane_height_px = lane_height_px
        self._room_px = 0
        self._shown_px = lane_height_px
        self._grows = True
        self._window: TimeWindow | None = None
        self._is_small = len(self._infos) - len(hidden) <= unfold_up_to
        self._silent = self._keys_of(hidden)
        self._now = _Arrangement(hidden=self._silent)
        self.rows: tuple[LaneRow, ...] = ()
        self._tops: list[int] = []
        filters.view_changed.connect(self._lay_out)
        self._lay_out()

    @property
    def height_px(self) -> int:
        """Height of all rows together."""
        return self.rows[-1].y_px + self.rows[-1].height_px if self.rows else 0

    @property
    def hidden_count(self) -> int:
        """Lanes hidden by hand."""
        return len(self._now.hidden)

    @property
    def hides_empty(self) -> bool:
        """True if lanes without events in the window are left out."""
        return self._now.hides_empty

    def row_at(self, y_px: int) -> LaneRow | None:
        """Return the lane at a height, None between and below them."""
        position = bisect_right(self._tops, y_px) - 1
        if position < 0 or y_px >= self.rows[position].y_px + self.rows[position].height_px:
            return None
        return self.rows[position]

    def position_at(self, y_px: int) -> int:
        """Return the index of the row at a height, or of the last one above it; 0 if there is none."""
        return max(0, bisect_right(self._tops, y_px) - 1)

    def rows_between(self, top_px: int, bottom_px: int) -> tuple[LaneRow, ...]:
        """Return the rows that show between two heights."""
        first = max(0, bisect_right(self._tops, top_px) - 1)
        last = bisect_right(self._tops, bottom_px)
        return tuple(row for row in self.rows[first:last] if row.y_px + row.height_px > top_px)

    def row_of(self, index: int) -> LaneRow | None:
        """Return the row of a lane, None if it does not show."""
        return next((row for row in self.rows if row.index == index), None)

    def is_pinned(self, index: int) -> bool:
        """Return whether a lane is at the top because the user wants it there."""
        return self._keys[index] in self._now.pinned

    def fold(self, index: int, is_open: bool | None = None) -> None:
        """Open or close a lane; None turns it round."""
        if index in self._children and is_open is not self._is_open(index):
            self._change("folding", replace(self._now, turned=self._now.turned ^ {self._keys[index]}))

    def unfold_all(self) -> None:
        """Open all lanes."""
        closed = (i for i in self._children if i >= 0 and not self._opens_at_first(i))
        self._change("unfold all", replace(self._now, turned=self._keys_of(closed)))

    def fold_all(self) -> None:
        """Close all lanes but those of the CPUs."""
        stays = {i for i in self._children if i >= 0 and self._is_cpu(i) and self._is_open(i)}
        turned = (i for i in self._children if i >= 0 and self._opens_at_first(i) != (i in stays))
        self._change("fold all", replace(self._now, turned=self._keys_of(turned)))

    def pin(self, index: int) -> None:
        """Pin a lane at the top, or let it go back to its position."""
        mine, pinned = self._keys[index], self._now.pinned
        others = tuple(key for key in pinned if key != mine)
        self._change("pinning", replace(self._now, pinned=others if mine in pinned else (*pinned, mine)))

    def hide(self, index: int) -> None:
        """Hide a lane and all under it."""
        self._change("hide lane", replace(self._now, hidden=self._now.hidden | {self._keys[index]}))

    def show_all(self) -> None:
        """Show what was hidden by hand, empty lanes too."""
        self._change("show all lanes", replace(self._now, hidden=frozenset(), hides_empty=False))

    def hide_empty(self, hides: bool, window: TimeWindow) -> None:
        """Leave out the lanes without events in a window, or stop doing so."""
        self._window = window
        self._change("empty lanes", replace(self._now, hides_empty=hides))

    def set_window(self, window: TimeWindow) -> None:
        """Return which window shows; matters only while empty lanes are hidden."""
        if self._now.hides_empty and window != self._window:
            self._window = window
            self._lay_out()

    def reveal(self, index: int) -> None:
        """Make a lane show: open what it is under and unhide it."""
        if self.row_of(index) is not None:
            return
        parent = self._infos[index].parent
        hidden, turned = self._now.hidden - {self._keys[index]}, self._now.turned
        if parent >= 0:
            hidden = hidden - {self._keys[parent]}
            turned = turned if self._is_open(parent) else turned ^ {self._keys[parent]}
        self._change("show lane", replace(self._now, hidden=hidden, turned=turned, hides_empty=False))

    def set_lane_height(self, height_px: int) -> None:
        """Change the height of lanes."""
        if height_px != self._lane_height_px:
            self._lane_height_px = height_px
            self._lay_out()

    def keep_height(self) -> int:
        """Return how tall lanes are now; they stay so from here on, for the user says how tall they are."""
        self._grows = False
        self._lane_height_px = self._shown_px
        return self._shown_px

    def set_room(self, room_px: int) -> None:
        """Tell how much height there is: a few lanes grow into it, up to twice the height that was asked for."""
        if room_px != self._room_px:
            self._room_px = room_px
            self._lay_out()

    def reload(self, timeline: Timeline, silent: frozenset[int]) -> None:
        """Take a longer reading of the same file; it is laid out when the filter has taken it too.

        Args:
            timeline: The reading.
            silent: CPUs that have logged nothing so far; those that begin to do so show.
        """
        self._take(timeline)
        before, self._silent = self._silent, self._keys_of(silent)
        self._now = replace(self._now, hidden=self._now.hidden - (before - self._silent))

    def _change(self, title: str, after: _Arrangement) -> None:
        before = self._now
        if after == before:
            return
        self._restore(after)
        self._history.add(Edit(title, partial(self._restore, before), partial(self._restore, after)))

    def _restore(self, arrangement: _Arrangement) -> None:
        self._now = arrangement
        self._lay_out()

    def _take(self, timeline: Timeline) -> None:
        self._timeline, self._infos, self._keys = timeline, timeline.infos, lane_keys(timeline)
        self._positions = {key: index for index, key in enumerate(self._keys)}
        self._children: dict[int, list[int]] = {}
        for info in self._infos:
            self._children.setdefault(info.parent, []).append(info.index)

    def _keys_of(self, indices: Iterable[int]) -> frozenset[LaneKey]:
        return frozenset(self._keys[i] for i in indices)

    def _indices_of(self, keys: Iterable[LaneKey]) -> tuple[int, ...]:
        return tuple(self._positions[key] for key in keys if key in self._positions)

    def _opens_at_first(self, index: int) -> bool:
        return self._is_small or self._is_cpu(index)

    def _is_open(self, index: int) -> bool:
        return self._opens_at_first(index) != (self._keys[index] in self._now.turned)

    def _is_cpu(self, index: int) -> bool:
        return self._infos[index].kind is LaneKind.CPU

    def _lay_out(self) -> None:
        rows: list[LaneRow] = []
        y_px = 0
        group = ""
        busy = self._busy_lanes()
        order = list(self._order(busy))
        self._shown_px = lane_px = self._grown([self._infos[index] for index, _, _ in order])
        for index, depth, is_pinned in order:
            info = self._infos[index]
            new_group = (
                "pinned" if is_pinned else "cpu" if info.kind in (LaneKind.CPU, LaneKind.INTERRUPTS) else "process"
            )
            if group and group != new_group:
                y_px += GROUP_GAP_PX
            group = new_group
            height_px = _height_of(info, lane_px)
            foldable = not is_pinned and bool(self._children.get(index))
            rows.append(LaneRow(index, depth, y_px, height_px, foldable, foldable and self._is_open(index), is_pinned))
            y_px += height_px
        if self.rows != tuple(rows):
            self.rows = tuple(rows)
            self._tops = [row.y_px for row in rows]
            self.changed.emit()

    def _order(self, busy: frozenset[int] | None) -> Iterable[tuple[int, int, bool]]:
        pinned, hidden = self._indices_of(self._now.pinned), frozenset(self._indices_of(self._now.hidden))
        shown = self._filters.threads
        for index in pinned:
            yield index, 0, True
        for top in self._children.get(-1, []):
            if top in hidden or not self._shows(top, busy, shown):
                continue
            if top not in pinned:
                yield top, 0, False
            if self._is_open(top):
                yield from (
                    (child, 1, False)
                    for child in self._children.get(top, [])
                    if child not in pinned and child not in hidden and self._shows(child, busy, shown)
                )

    def _shows(self, index: int, busy: frozenset[int] | None, shown: NDArray[np.bool_]) -> bool:
        if busy is not None and index not in busy:
            return False
        info = self._infos[index]
        if info.kind is LaneKind.THREAD:
            return bool(shown[info.thread])
        if info.kind is LaneKind.PROCESS:
            threads = [self._infos[child].thread for child in self._children.get(index, [])]
            return not threads or bool(shown[threads].any())
        return True

    def _busy_lanes(self) -> frozenset[int] | None:
        """Return the lanes with events in the window; None = do not ask."""
        if not self._now.hides_empty or self._window is None:
            return None
        return busy_lanes(self._timeline, self._window)

    def _grown(self, infos: list[LaneInfo]) -> int:
        """Return the height of a lane at which all of them just fill the room, within bounds."""
        least_px, gaps_px = self._lane_height_px, _MOST_GAPS * GROUP_GAP_PX
        if not self._grows or not infos or len(infos) * least_px > self._room_px * 2:  # many lanes need not be added up
            return least_px
        for lane_px in range(min(_GROWS_TO * least_px, _TALLEST_PX), least_px, -1):
            if sum(_height_of(info, lane_px) for info in infos) + gaps_px <= self._room_px:
                return lane_px
        return least_px


def _height_of(info: LaneInfo, lane_px: int) -> int:
    if info.kind is LaneKind.CPU:
        return lane_px + 4
    if info.kind is LaneKind.INTERRUPTS:
        return max(8, lane_px * 3 // 4)
    return lane_px
