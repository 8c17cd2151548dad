"""Which lanes show, in which order and how tall: folding, hiding, pinning. Pixels here are logical ones."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from PySide6.QtCore import QObject, Signal

from satview.base.time import TimeWindow
from satview.session.edit_history import Edit, EditHistory
from satview.session.filter_stack import FilterStack
from satview.session.lane_events import busy_lanes
from satview.timeline.lane_tree import LaneInfo, LaneKind, Timeline

GROUP_GAP_PX: Final = 8  # between pinned lanes, CPUs and processes


@dataclass(frozen=True, slots=True)
class LaneRow:
    """One lane as it is laid out.

    Attributes:
        index: Index in `Timeline.infos`.
        depth: 0 for CPUs and processes, 1 for what is under them.
        y_px: Top, from the top of the list.
        height_px: Height.
        is_foldable: It has lanes under it.
        is_open: They show.
        is_pinned: It stands at the top because the user wants it there.
    """

    index: int
    depth: int
    y_px: int
    height_px: int
    is_foldable: bool
    is_open: bool
    is_pinned: bool


@dataclass(frozen=True, slots=True)
class _Arrangement:
    open: frozenset[int]
    hidden: frozenset[int] = frozenset()
    pinned: tuple[int, ...] = ()
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
        self._infos = timeline.infos
        self._timeline = timeline
        self._filters = filters
        self._history = history
        self._lane_height_px = lane_height_px
        self._window: TimeWindow | None = None
        self._children: dict[int, list[int]] = {}
        for info in self._infos:
            self._children.setdefault(info.parent, []).append(info.index)
        is_small = len(self._infos) - len(hidden) <= unfold_up_to
        opened = frozenset(i for i in self._children if i >= 0 and (is_small or self._is_cpu(i)))
        self._now = _Arrangement(opened, hidden)
        self.rows: tuple[LaneRow, ...] = ()
        self._tops: list[int] = []
        filters.changed.connect(self._lay_out)
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
        place = bisect_right(self._tops, y_px) - 1
        if place < 0 or y_px >= self.rows[place].y_px + self.rows[place].height_px:
            return None
        return self.rows[place]

    def rows_between(self, top_px: int, bottom_px: int) -> tuple[LaneRow, ...]:
        """Return the rows that show between two heights."""
        first = max(0, bisect_right(self._tops, top_px) - 1)
        last = bisect_right(self._tops, bottom_px)
        return tuple(row for row in self.rows[first:last] if row.y_px + row.height_px > top_px)

    def row_of(self, index: int) -> LaneRow | None:
        """Return the row of a lane, None if it does not show."""
        return next((row for row in self.rows if row.index == index), None)

    def is_pinned(self, index: int) -> bool:
        """Tell whether a lane stands at the top because the user wants it there."""
        return index in self._now.pinned

    def lanes_under(self, index: int) -> tuple[int, ...]:
        """Return the lanes under a lane."""
        return tuple(self._children.get(index, ()))

    def fold(self, index: int, is_open: bool | None = None) -> None:
        """Open or close a lane; None turns it round."""
        if index not in self._children:
            return
        is_open = index not in self._now.open if is_open is None else is_open
        change = self._now.open | {index} if is_open else self._now.open - {index}
        self._change("folding", replace(self._now, open=change))

    def unfold_all(self) -> None:
        """Open all lanes."""
        self._change("unfold all", replace(self._now, open=frozenset(i for i in self._children if i >= 0)))

    def fold_all(self) -> None:
        """Close all lanes but those of the CPUs."""
        self._change("fold all", replace(self._now, open=frozenset(i for i in self._now.open if self._is_cpu(i))))

    def pin(self, index: int) -> None:
        """Pin a lane at the top, or let it go back to its place."""
        pinned = (
            tuple(i for i in self._now.pinned if i != index) if self.is_pinned(index) else (*self._now.pinned, index)
        )
        self._change("pinning", replace(self._now, pinned=pinned))

    def hide(self, index: int) -> None:
        """Hide a lane and all under it."""
        self._change("hide lane", replace(self._now, hidden=self._now.hidden | {index}))

    def show_all(self) -> None:
        """Show what was hidden by hand, empty lanes too."""
        self._change("show all lanes", replace(self._now, hidden=frozenset(), hides_empty=False))

    def hide_empty(self, hides: bool, window: TimeWindow) -> None:
        """Leave out the lanes without events in a window, or stop doing so."""
        self._window = window
        self._change("empty lanes", replace(self._now, hides_empty=hides))

    def set_window(self, window: TimeWindow) -> None:
        """Tell which window shows; matters only while empty lanes are hidden."""
        if self._now.hides_empty and window != self._window:
            self._window = window
            self._lay_out()

    def reveal(self, index: int) -> None:
        """Make a lane show: open what it lies under and unhide it."""
        parent = self._infos[index].parent
        hidden = self._now.hidden - {index, parent}
        is_open = self._now.open | {parent} if parent >= 0 else self._now.open
        if self.row_of(index) is None:
            self._change("show lane", replace(self._now, hidden=hidden, open=is_open, hides_empty=False))

    def set_lane_height(self, height_px: int) -> None:
        """Change the height of lanes."""
        if height_px != self._lane_height_px:
            self._lane_height_px = height_px
            self._lay_out()

    def resume(self, other: LaneList, moved: Mapping[int, int]) -> None:
        """Take over what is folded, hidden and pinned in the lanes of an earlier reading of the same file.

        Args:
            other: Those lanes.
            moved: Index there to index here, for all lanes that are in both.
        """
        before, now = other._now, self._now
        stays = frozenset(moved.values())
        opened = frozenset(moved[i] for i in before.open if i in moved)
        hidden = frozenset(moved[i] for i in before.hidden if i in moved)
        pinned = tuple(moved[i] for i in before.pinned if i in moved)
        # Parents that got their first lane just now were not foldable before: they open as new ones do.
        fresh = frozenset(i for i in now.open if i not in stays or not any(c in stays for c in self._children[i]))
        self._lane_height_px = other._lane_height_px
        self._window = other._window
        self._restore(_Arrangement(opened | fresh, hidden | (now.hidden - stays), pinned, before.hides_empty))

    def _change(self, title: str, after: _Arrangement) -> None:
        before = self._now
        if after == before:
            return
        self._restore(after)
        self._history.add(Edit(title, partial(self._restore, before), partial(self._restore, after)))

    def _restore(self, arrangement: _Arrangement) -> None:
        self._now = arrangement
        self._lay_out()

    def _is_cpu(self, index: int) -> bool:
        return self._infos[index].kind is LaneKind.CPU

    def _lay_out(self) -> None:
        rows: list[LaneRow] = []
        y_px = 0
        group = ""
        busy = self._busy_lanes()
        for index, depth, is_pinned in self._order(busy):
            info = self._infos[index]
            new_group = (
                "pinned" if is_pinned else "cpu" if info.kind in (LaneKind.CPU, LaneKind.INTERRUPTS) else "process"
            )
            if group and group != new_group:
                y_px += GROUP_GAP_PX
            group = new_group
            height_px = self._height_of(info)
            foldable = not is_pinned and bool(self._children.get(index))
            rows.append(
                LaneRow(index, depth, y_px, height_px, foldable, foldable and index in self._now.open, is_pinned)
            )
            y_px += height_px
        self.rows = tuple(rows)
        self._tops = [row.y_px for row in rows]
        self.changed.emit()

    def _order(self, busy: frozenset[int] | None) -> Iterable[tuple[int, int, bool]]:
        for index in self._now.pinned:
            yield index, 0, True
        for top in self._children.get(-1, []):
            if not self._shows(top, busy):
                continue
            if top not in self._now.pinned:
                yield top, 0, False
            if top in self._now.open:
                yield from (
                    (child, 1, False)
                    for child in self._children.get(top, [])
                    if child not in self._now.pinned and self._shows(child, busy)
                )

    def _shows(self, index: int, busy: frozenset[int] | None) -> bool:
        if index in self._now.hidden or (busy is not None and index not in busy):
            return False
        info = self._infos[index]
        if info.kind is LaneKind.THREAD:
            return bool(self._filters.threads[info.thread])
        if info.kind is LaneKind.PROCESS:
            threads = [self._infos[child].thread for child in self._children.get(index, [])]
            return not threads or bool(self._filters.threads[threads].any())
        return True

    def _busy_lanes(self) -> frozenset[int] | None:
        """Return the lanes with events in the window; None = do not ask."""
        if not self._now.hides_empty or self._window is None:
            return None
        return busy_lanes(self._timeline, self._window)

    def _height_of(self, info: LaneInfo) -> int:
        if info.kind is LaneKind.CPU:
            return self._lane_height_px + 4
        if info.kind is LaneKind.INTERRUPTS:
            return max(8, self._lane_height_px * 3 // 4)
        return self._lane_height_px
