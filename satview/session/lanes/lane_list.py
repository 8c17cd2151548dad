"""Arranges the shown lanes: folds, hides, pins, sorts and groups them; finds their heights in logical pixels."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal, Slot

from satview.base.time import TimeWindow
from satview.session.filter_stack import Edit, EditHistory, FilterStack
from satview.session.lanes.class_loader import busy_lanes
from satview.session.lanes.lane_arrangement import (
    FOLDED_AT_FIRST,
    IDLE_CPUS,
    QUIET,
    GroupBy,
    Label,
    LaneArrangement,
    LaneGroup,
    SortBy,
)
from satview.session.lanes.lane_row import GroupHead, LaneKey, LaneRow, lane_keys
from satview.timeline.lane_tree import LaneInfo, LaneKind, Timeline

# Layout: turns an arrangement into rows and headings.


GROUP_GAP_PX: Final = 8  # between pinned lanes, CPUs and processes
_FOLDED_FROM: Final = 4  # fewer lanes need no heading
OTHERS: Final = "Others"  # heading of lanes that are in no group
_GROWS_TO: Final = 2  # times the configured height
_TALLEST_INTERRUPTS_PX: Final = 20  # ticks say no more in a taller lane
_TALLEST_PX: Final = 48  # to which lanes grow automatically
_NO_RANK: Final = 1 << 60  # sorts after lanes with a rank
_CPU_KINDS: Final = (LaneKind.CPU, LaneKind.INTERRUPTS)


class LaneIndex:
    """Finds the lanes of a trace by key, and the children of each lane in the tree.

    Attributes:
        infos: All lanes.
        keys: Key of each lane.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.infos, self.keys = timeline.infos, lane_keys(timeline)
        self._lanes = {key: index for index, key in enumerate(self.keys)}
        self._children: dict[int, list[int]] = {}
        for info in self.infos:
            self._children.setdefault(info.parent, []).append(info.index)
        self._parents = tuple(index for index in self._children if index >= 0)

    def children(self, index: int) -> list[int]:
        """Return the lanes directly under a lane, in the order of the trace; -1 = the top-level lanes."""
        return self._children.get(index, [])

    @property
    def parents(self) -> tuple[int, ...]:
        """Lanes that have other lanes under them in the tree."""
        return self._parents

    def only_thread(self, process: int) -> int:
        """Return the lane of a process's only thread; -1 for other lanes and for processes with more threads."""
        children = self.children(process) if self.infos[process].kind is LaneKind.PROCESS else []
        threads = [child for child in children if self.infos[child].kind is LaneKind.THREAD]
        return threads[0] if len(threads) == len(children) == 1 else -1

    def keys_of(self, indices: Iterable[int]) -> frozenset[LaneKey]:
        """Return the keys of some lanes."""
        return frozenset(self.keys[index] for index in indices)

    def indices_of(self, keys: Iterable[LaneKey]) -> tuple[int, ...]:
        """Return the indices of the lanes with these keys, in the order of the keys; unknown keys are skipped."""
        return tuple(self._lanes[key] for key in keys if key in self._lanes)

    def is_cpu(self, index: int) -> bool:
        """Return whether a lane shows a CPU."""
        return self.infos[index].kind is LaneKind.CPU

    def is_of_events(self, index: int) -> bool:
        """Return whether a lane shows events of one class."""
        return self.infos[index].track is not None

    def is_about_cpus(self, index: int) -> bool:
        """Return whether a lane shows a CPU or its interrupts."""
        return self.infos[index].kind in _CPU_KINDS


@dataclass(frozen=True, slots=True)
class LaneBlock:
    """One block of the layout: lanes of one group or kind, one below the other.

    Attributes:
        kind: Name of the kind; a gap separates blocks of different kinds.
        group: The group; None = no heading.
        tops: Lanes of the block, without their children.
        nests: True if the children of these lanes are shown too, each below its parent.
    """

    kind: str
    group: LaneGroup | None
    tops: tuple[int, ...]
    nests: bool = True


class LaneLayout:
    """Computes the rows and headings of all lanes from one arrangement.

    Args:
        lanes: The lanes.
        arrangement: The user's arrangement.
        opens: Returns whether a lane is unfolded.
        shows: Returns whether a lane may be shown when its parent is unfolded.
        lane_height_px: Height of a lane.
        quiet: Nearly idle processes, under one heading if lanes are grouped by process.
        idle: Unused CPUs, under one heading.
    """

    def __init__(
        self,
        lanes: LaneIndex,
        arrangement: LaneArrangement,
        opens: Callable[[int], bool],
        shows: Callable[[int], bool],
        lane_height_px: int,
        quiet: frozenset[LaneKey] = frozenset(),
        idle: frozenset[LaneKey] = frozenset(),
    ) -> None:
        self._lanes, self._arrangement = lanes, arrangement
        self._quiet, self._idle = (frozenset(lanes.indices_of(keys)) for keys in (quiet, idle))
        self._opens, self._shows = opens, shows
        self._lane_height_px = lane_height_px
        self._ranks = {key: rank for rank, key in enumerate(arrangement.order)}
        self._pinned = lanes.indices_of(arrangement.pinned)
        self._hidden = frozenset(lanes.indices_of(arrangement.hidden))

    def siblings(self, index: int) -> tuple[int, ...]:
        """Return, in order, the lanes among which a lane can be moved, including the lane itself and hidden lanes."""
        if index in self._pinned:
            return self._pinned
        for block in self.blocks():
            if index in block.tops:
                return block.tops
        return self._ordered(self._lanes.children(self._lanes.infos[index].parent))

    def blocks(self) -> tuple[LaneBlock, ...]:
        """Return the blocks below the pinned lanes: CPUs, events, then processes or groups; hidden lanes included."""
        tops = self._lanes.children(-1)
        cpus = [index for index in tops if self._lanes.is_about_cpus(index)]
        events = [index for index in tops if self._lanes.is_of_events(index)]
        apart = {*cpus, *events}
        others = [index for index in tops if index not in apart]
        blocks = [*self._blocks("cpu", cpus, IDLE_CPUS, self._idle), LaneBlock("events", None, self._ordered(events))]
        if not self._arrangement.groups:
            return (*blocks, *self._blocks("process", others, QUIET, self._quiet))
        in_groups: set[int] = set()
        nests = False
        for group in self._arrangement.groups:
            members = self._lanes.indices_of(group.members)
            nests = any(self._lanes.infos[index].kind is LaneKind.PROCESS for index in members)
            blocks.append(LaneBlock(group.title, group, self._ordered(members), nests))
            in_groups.update(members)
        units = others if nests else [unit for top in others for unit in self._units(top)]
        rest = [index for index in units if index not in in_groups]
        if rest:
            blocks.append(LaneBlock("", LaneGroup(OTHERS, frozenset()), self._ordered(rest), nests))
        return tuple(blocks)

    def _blocks(self, name: str, lanes: Sequence[int], title: str, folded: frozenset[int]) -> Iterator[LaneBlock]:
        """Yield a block of the lanes outside `folded`, then one of the lanes in `folded` under the heading `title`."""
        yield LaneBlock(name, None, self._ordered(index for index in lanes if index not in folded))
        if under := [index for index in lanes if index in folded]:
            yield LaneBlock(title, LaneGroup(title, self._lanes.keys_of(under)), self._ordered(under))

    def _units(self, top: int) -> list[int]:
        """Return the lanes of a process that are put into groups: its threads, or without these its own lane `top`."""
        return [child for child in self._lanes.children(top) if not self._lanes.is_of_events(child)] or [top]

    def lay_out(self) -> tuple[tuple[LaneRow, ...], tuple[GroupHead, ...]]:
        """Return the rows from top to bottom, and the headings among them."""
        rows: list[LaneRow] = []
        heads: list[GroupHead] = []
        y_px = 0
        for index in self._pinned:
            rows.append(self._row(index, 0, y_px, is_pinned=True))
            y_px += rows[-1].height_px
        for block in self.blocks():
            tops = tuple(index for index in block.tops if self._stays(index))
            if not any(True for _ in self._lanes_of(block, tops)):
                continue
            y_px += GROUP_GAP_PX if y_px else 0
            if block.group is not None:
                is_open = block.group.title not in self._arrangement.closed
                count = len(set(tops).difference(self._pinned))
                heads.append(GroupHead(block.group.title, count, y_px, self._lane_height_px, is_open))
                y_px += self._lane_height_px
                if not is_open:
                    continue
            for index, depth in self._lanes_of(block, tops):
                process = self._lanes.infos[index].parent if block.nests and not depth else -1
                rows.append(self._row(index, depth, y_px, is_alone=not block.nests, process=process))
                y_px += rows[-1].height_px
        return tuple(rows), tuple(heads)

    def _lanes_of(self, block: LaneBlock, tops: tuple[int, ...]) -> Iterator[tuple[int, int]]:
        for top in tops:
            shown = self._only_thread(top) if block.nests else top
            if shown not in self._pinned:
                yield shown, 0
            if block.nests or self._lanes.infos[top].kind is LaneKind.THREAD:
                yield from self._lanes_under(shown, 1)

    def _only_thread(self, top: int) -> int:
        """Return the lane of an unfolded process's only thread, if it is shown and neither is pinned; else `top`."""
        thread = self._lanes.only_thread(top)
        is_in_place = thread >= 0 and self._opens(top) and self._stays(thread) and not {top, thread} & set(self._pinned)
        return thread if is_in_place else top

    def _lanes_under(self, lane: int, depth: int) -> Iterator[tuple[int, int]]:
        """Yield index and depth of each shown lane below a lane; `depth` is the depth of its children."""
        if not self._opens(lane):
            return
        for child in self._ordered(self._lanes.children(lane)):
            if child not in self._pinned and self._stays(child):
                yield child, depth
                yield from self._lanes_under(child, depth + 1)

    def _stays(self, index: int) -> bool:
        """Return whether neither the lane nor its parent is hidden, and the lane may be shown."""
        parent = self._lanes.infos[index].parent
        return index not in self._hidden and parent not in self._hidden and self._shows(index)

    def _ordered(self, indices: Iterable[int]) -> tuple[int, ...]:
        keys = self._lanes.keys
        return tuple(sorted(indices, key=lambda index: (self._ranks.get(keys[index], _NO_RANK), index)))

    def _row(
        self, index: int, depth: int, y_px: int, is_pinned: bool = False, is_alone: bool = False, process: int = -1
    ) -> LaneRow:
        info = self._lanes.infos[index]
        foldable = not is_pinned and any(self._stays(child) for child in self._children_of(index, is_alone))
        return LaneRow(
            index,
            depth,
            y_px,
            height_of(info, self._lane_height_px),
            foldable or process >= 0,
            process >= 0 or (foldable and self._opens(index)),
            is_pinned,
            is_alone and info.parent >= 0,
            process,
        )

    def _children_of(self, index: int, is_alone: bool) -> list[int]:
        """Return the lanes that folding a lane hides: its children; if shown alone in a group, only its event lanes."""
        children = self._lanes.children(index)
        return [child for child in children if self._lanes.is_of_events(child)] if is_alone else children


def height_of(info: LaneInfo, lane_px: int) -> int:
    """Return the height of a lane, given the height of thread lanes."""
    if info.kind in (LaneKind.CPU, LaneKind.PROCESS):
        return lane_px + 4
    if info.kind is LaneKind.INTERRUPTS:
        return min(max(8, lane_px * 3 // 4), _TALLEST_INTERRUPTS_PX)
    if info.is_counter:
        return lane_px + 8  # steps need height
    return lane_px


def lane_shows(
    timeline: Timeline,
    lanes: LaneIndex,
    classes: frozenset[str],
    shown: NDArray[np.bool_],
    busy: frozenset[int] | None,
    index: int,
) -> bool:
    """Return whether filter, classes and the hiding of empty lanes let a lane be shown; its parent may still be folded.

    Args:
        timeline: The lanes.
        lanes: The same lanes as a tree.
        classes: Classes of event lanes that are shown.
        shown: bool (threads,), threads that the filter shows.
        busy: Lanes with events in the window if empty lanes are hidden; None = empty lanes are shown.
        index: The lane.
    """
    if busy is not None and index not in busy:
        return False
    info = timeline.infos[index]
    if info.track is not None:
        name = info.track.lane_class.name
        # A class that was found again has new lanes; the old ones stay in the list, out of date.
        if name not in classes or index not in timeline.lanes_of_class(name):
            return False
    if info.thread:
        return bool(shown[info.thread])
    if info.track is not None and info.process:
        return bool(shown[timeline.trace.threads.process == info.process].any())
    if info.kind is LaneKind.PROCESS:
        threads = [timeline.infos[child].thread for child in lanes.children(index)]
        return not threads or bool(shown[threads].any())
    return True


def bottom_px(rows: Sequence[LaneRow], heads: Sequence[GroupHead]) -> int:
    """Return the bottom of the last lane or heading."""
    last = rows[-1].y_px + rows[-1].height_px if rows else 0
    return max(last, heads[-1].y_px + heads[-1].height_px if heads else 0)


def grown_height_px(
    rows: Sequence[LaneRow], heads: Sequence[GroupHead], infos: Sequence[LaneInfo], least_px: int, room_px: int
) -> int:
    """Return the height of a lane at which all lanes just fill the room, within bounds, from a layout at `least_px`."""
    total_px = bottom_px(rows, heads)
    if not rows or total_px >= room_px:
        return least_px
    laid_out = [infos[row.index] for row in rows]
    gaps_px = total_px - sum(row.height_px for row in rows) - sum(head.height_px for head in heads)
    for lane_px in range(_tallest_px(least_px), least_px, -1):
        if sum(height_of(info, lane_px) for info in laid_out) + len(heads) * lane_px <= room_px - gaps_px:
            return lane_px
    return least_px


def _tallest_px(least_px: int) -> int:
    return min(_GROWS_TO * least_px, _TALLEST_PX)


class LaneList(QObject):
    """Arranges the lanes of one window, and holds the resulting rows.

    Attributes:
        rows: The shown lanes, from top to bottom.
        heads: Headings of groups among the rows.

    Signals:
        changed: `rows`, `heads` or `shows_kinds` changed.
        classes_requested: Lane classes are to be shown that the timeline has not found yet.
    """

    changed = Signal()
    classes_requested = Signal()

    def __init__(
        self,
        timeline: Timeline,
        filters: FilterStack,
        history: EditHistory,
        lane_height_px: int,
        unfold_up_to: int,
        parent: QObject | None = None,
        hidden: frozenset[int] = frozenset(),
        labels: frozenset[Label] = frozenset({Label.STATE}),
        classes: frozenset[str] = frozenset(),
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
        self._silent = self._lane_index.keys_of(hidden)
        self._quiet = self._idle = frozenset[LaneKey]()
        self._is_as_usual = True  # the user has not arranged the lanes
        self._unfolded = frozenset[LaneKey]()  # processes unfolded because there was room
        self._arrangement = LaneArrangement(hidden=self._silent, labels=labels, classes=classes)
        self.rows: tuple[LaneRow, ...] = ()
        self.heads: tuple[GroupHead, ...] = ()
        self._tops: list[int] = []
        self._shown_threads = filters.threads  # of the last layout
        filters.view_changed.connect(self._on_filter)
        self._lay_out()

    @property
    def height_px(self) -> int:
        """Height of all rows and headings together."""
        return bottom_px(self.rows, self.heads)

    @property
    def timeline(self) -> Timeline:
        """The timeline whose lanes this list arranges."""
        return self._timeline

    @property
    def arrangement(self) -> LaneArrangement:
        """The user's arrangement of the lanes."""
        return self._arrangement

    @property
    def hidden_count(self) -> int:
        """Number of lanes that the user has hidden."""
        return len(self._arrangement.hidden)

    @property
    def hides_empty(self) -> bool:
        """True if lanes without events in the window are left out."""
        return self._arrangement.hides_empty

    def row_at(self, y_px: int) -> LaneRow | None:
        """Return the row at a y position; None between and below rows."""
        position = bisect_right(self._tops, y_px) - 1
        if position < 0 or y_px >= self.rows[position].y_px + self.rows[position].height_px:
            return None
        return self.rows[position]

    def position_at(self, y_px: int) -> int:
        """Return the index of the row at a y position, or else of the last row above; 0 if there is no such row."""
        return max(0, bisect_right(self._tops, y_px) - 1)

    def rows_between(self, top_px: int, bottom_px: int) -> tuple[LaneRow, ...]:
        """Return the rows that are visible between two y positions."""
        begin = max(0, bisect_right(self._tops, top_px) - 1)
        stop = bisect_right(self._tops, bottom_px)
        return tuple(row for row in self.rows[begin:stop] if row.y_px + row.height_px > top_px)

    def head_at(self, y_px: int) -> GroupHead | None:
        """Return the heading at a y position; None elsewhere."""
        return next((head for head in self.heads if head.y_px <= y_px < head.y_px + head.height_px), None)

    def row_of(self, index: int) -> LaneRow | None:
        """Return the row of a lane, or of the only thread shown in place of a process; None if not shown."""
        return next((row for row in self.rows if index in (row.index, row.unit)), None)

    def _unit_of(self, index: int) -> int:
        """Return the lane to fold, hide or move: the process of a thread shown in its place, else `index`."""
        row = self.row_of(index)
        if row is not None:
            return row.unit
        parent = self._infos[index].parent if self.knows(index) else -1
        is_all = parent >= 0 and not self._arrangement.groups and self._lane_index.only_thread(parent) == index
        return parent if is_all else index

    def is_pinned(self, index: int) -> bool:
        """Return whether the user has pinned a lane at the top."""
        return self.knows(index) and self._lane_index.keys[index] in self._arrangement.pinned

    def opens_at_first(self, key: LaneKey) -> bool:
        """Return whether a lane is unfolded by default."""
        return any(self._opens_at_first(index) for index in self._lane_index.indices_of([key]))

    def is_open(self, key: LaneKey) -> bool:
        """Return whether a lane is unfolded."""
        return any(self._is_open(index) for index in self._lane_index.indices_of([key]))

    def fold(self, index: int, is_open: bool | None = None) -> None:
        """Unfold a lane if `is_open`, fold it if False; None = toggle."""
        index = self._unit_of(index)
        if index in self._lane_index.parents and is_open is not self._is_open(index):
            self._change(
                "folding", replace(self._arrangement, turned=self._arrangement.turned ^ {self._lane_index.keys[index]})
            )

    def unfold_all(self) -> None:
        """Unfold all lanes."""
        closed = (i for i in self._lane_index.parents if not self._opens_at_first(i))
        self._change("unfold all", replace(self._arrangement, turned=self._lane_index.keys_of(closed)))

    def fold_all(self) -> None:
        """Fold all lanes except CPUs and threads."""
        keeps = (LaneKind.CPU, LaneKind.THREAD)
        stays = {i for i in self._lane_index.parents if self._infos[i].kind in keeps and self._is_open(i)}
        turned = (i for i in self._lane_index.parents if self._opens_at_first(i) != (i in stays))
        self._change("fold all", replace(self._arrangement, turned=self._lane_index.keys_of(turned)))

    def pin(self, index: int) -> None:
        """Pin a lane at the top, or unpin it."""
        own_key, pinned = self._lane_index.keys[index], self._arrangement.pinned
        others = tuple(key for key in pinned if key != own_key)
        self._change("pinning", replace(self._arrangement, pinned=others if own_key in pinned else (*pinned, own_key)))

    def hide(self, index: int) -> None:
        """Hide a lane and all lanes under it."""
        hidden = self._arrangement.hidden | {self._lane_index.keys[self._unit_of(index)]}
        self._change("hide lane", replace(self._arrangement, hidden=hidden))

    def show_all(self) -> None:
        """Show lanes that the user has hidden, and empty lanes."""
        self._change("show all lanes", replace(self._arrangement, hidden=frozenset(), hides_empty=False))

    def arrange(self, arrangement: LaneArrangement, window: TimeWindow, title: str) -> None:
        """Apply another arrangement; can be undone. The window is the visible one, to find empty lanes."""
        self._window = window
        self._change(title, arrangement)

    def begin_with(self, arrangement: LaneArrangement, window: TimeWindow) -> None:
        """Apply a stored arrangement without an entry in the undo history; the window serves to find empty lanes."""
        self._window = window
        self._is_as_usual = False
        self._restore(arrangement)

    def sort_by_use(self, order: Iterable[int], quiet: Iterable[int], idle: Iterable[int] = ()) -> None:
        """Sort lanes by CPU use unless the user has arranged them, and fold nearly idle processes and idle CPUs.

        Nothing is folded if all lanes are unfolded because they are few. If lanes of maximum height leave room, the
        processes that used the CPU most are unfolded. There is no entry in the undo history.
        """
        if not self._is_small:
            folded = [self._lane_index.keys_of(lanes) for lanes in (quiet, idle)]
            self._quiet, self._idle = (keys if len(keys) >= _FOLDED_FROM else frozenset() for keys in folded)
        if self._is_as_usual and self._arrangement.sort is SortBy.TRACE and not self._arrangement.groups:
            keys = tuple(self._lane_index.keys[index] for index in order)
            self._arrangement = replace(self._arrangement, sort=SortBy.CPU, order=keys)
            self._unfold_into_room()
        self._lay_out()

    def _unfold_into_room(self) -> None:
        """Unfold processes from the first on, as long as all lanes fit into the window at the maximum lane height."""
        if (
            not self._is_as_usual
            or self._arrangement.sort is not SortBy.CPU
            or self._arrangement.turned != self._unfolded
        ):
            return
        busy, tallest_px = self._busy_lanes(), _tallest_px(self._lane_height_px)
        usual = replace(self._arrangement, turned=frozenset())
        lanes = self._lane_index.indices_of(usual.order)  # without lanes that a rewritten file no longer has
        keys = {index: self._lane_index.keys[index] for index in lanes if self._infos[index].kind is LaneKind.PROCESS}
        closed = [index for index, key in keys.items() if key not in self._quiet and not self._opens_at_first(index)]
        self._arrangement = usual
        rows, heads = self._layout(busy, tallest_px).lay_out()
        left_px, folded = self._room_px - bottom_px(rows, heads), self._heights_of_processes(rows)
        self._arrangement = replace(usual, turned=frozenset(keys[index] for index in closed))
        unfolded = self._heights_of_processes(self._layout(busy, tallest_px).lay_out()[0])
        fitting = []
        for index in closed:
            process = self._infos[index].process
            left_px -= unfolded[process] - folded[process]
            if left_px < 0:
                break
            fitting.append(keys[index])
        self._unfolded = frozenset(fitting)
        self._arrangement = replace(usual, turned=self._unfolded)

    def _heights_of_processes(self, rows: Iterable[LaneRow]) -> Counter[int]:
        """Return the total height in pixels of the lanes of each process, by process row."""
        heights = Counter[int]()
        for row in rows:
            heights[self._infos[row.index].process] += row.height_px
        return heights

    def sort(self, sort: SortBy, order: Iterable[int]) -> None:
        """Sort processes, and the threads in each, by all their lanes in order; none = order of the trace."""
        keys = tuple(self._lane_index.keys[index] for index in order)
        self._change(f"sorting by {sort.value}", replace(self._arrangement, sort=sort, order=keys))

    def group_by(self, group: GroupBy, groups: tuple[LaneGroup, ...], patterns: str = "") -> None:
        """Group the lanes; without groups, by process. Groups by pattern keep the text that the user typed."""
        after = replace(self._arrangement, group=group, groups=groups, patterns=patterns, closed=FOLDED_AT_FIRST)
        self._change(f"groups by {group.value}", after)

    def set_labels(self, labels: frozenset[Label]) -> None:
        """Set the labels shown in intervals."""
        self._change("labels", replace(self._arrangement, labels=labels))

    def show_classes(self, classes: frozenset[str]) -> None:
        """Set which classes of event lanes are shown; unknown ones appear once the timeline has found them."""
        self._change("lanes of events", replace(self._arrangement, classes=classes))

    def knows(self, index: int) -> bool:
        """Return whether this list contains a lane; the timeline has more lanes if another window has added some."""
        return index < len(self._lane_index.keys)

    def add_classes(self) -> None:
        """Add the lanes that the timeline has found since the last call."""
        self._take(self._timeline)
        if not self._lay_out():
            self.changed.emit()

    def fold_group(self, title: str) -> None:
        """Fold or unfold a group."""
        self._change("folding", replace(self._arrangement, closed=self._arrangement.closed ^ {title}))

    def siblings(self, index: int) -> tuple[int, ...]:
        """Return the shown lanes among which a lane can be moved, in their order."""
        shown = {row.unit for row in self.rows}
        siblings = self._layout(None, self._lane_height_px).siblings(self._unit_of(index))
        return tuple(other for other in siblings if other in shown)

    def move(self, index: int, before: int | None) -> None:
        """Move a lane among its siblings above another one; None = to the end."""
        index = self._unit_of(index)
        others = [other for other in self._layout(None, self._lane_height_px).siblings(index) if other != index]
        others.insert(others.index(before) if before in others else len(others), index)
        keys = tuple(self._lane_index.keys[other] for other in others)
        if self.is_pinned(index):
            self._change("moving a lane", replace(self._arrangement, pinned=keys))
        else:
            rest = tuple(key for key in self._arrangement.order if key not in set(keys))
            self._change("moving a lane", replace(self._arrangement, order=rest + keys))

    def step(self, index: int, direction: int) -> None:
        """Move a lane past its next shown sibling: 1 = down, -1 = up."""
        index = self._unit_of(index)
        shown = self.siblings(index)
        target = shown.index(index) + direction if index in shown else -1
        if 0 <= target < len(shown):
            after = shown[target + 1 :] if direction > 0 else shown[target:]
            self.move(index, after[0] if after else None)

    def hide_empty(self, hides: bool, window: TimeWindow) -> None:
        """Hide the lanes without events in a window, or stop doing so."""
        self._window = window
        self._change("empty lanes", replace(self._arrangement, hides_empty=hides))

    @property
    def shows_kinds(self) -> bool:
        """True if CPU lanes show the kind of code that runs, not its process."""
        return self._arrangement.shows_kinds

    def show_kinds(self, shows: bool) -> None:
        """Let CPU lanes show user, kernel, interrupt and idle time, or processes."""
        self._change("lanes of CPUs", replace(self._arrangement, shows_kinds=shows))

    def set_window(self, window: TimeWindow) -> None:
        """Set the visible time range; matters only while empty lanes are hidden."""
        if self._arrangement.hides_empty and window != self._window:
            self._window = window
            self._lay_out()

    def reveal(self, index: int) -> None:
        """Make a lane visible: unhide the lane, unhide and unfold its parents, and unfold its group.

        The class of the lane is shown, and empty lanes are no longer hidden.
        """
        if self.row_of(index) is not None:
            return
        above = self._above(index)
        group = next(
            (group for group in self._arrangement.groups if not group.members.isdisjoint(self._names_of(index))), None
        )
        folded = ((IDLE_CPUS, self._idle), (QUIET, self._quiet))
        under = (title for title, keys in folded if not keys.isdisjoint(self._names_of(index)))
        closed = self._arrangement.closed - {group.title if group is not None else next(under, OTHERS)}
        hidden, turned = self._arrangement.hidden - {self._lane_index.keys[index]}, self._arrangement.turned
        for parent in above:
            hidden = hidden - {self._lane_index.keys[parent]}
            turned = turned if self._is_open(parent) else turned ^ {self._lane_index.keys[parent]}
        track = self._infos[index].track
        classes = self._arrangement.classes | ({track.lane_class.name} if track is not None else set())
        after = replace(
            self._arrangement, hidden=hidden, turned=turned, closed=closed, hides_empty=False, classes=classes
        )
        self._change("show lane", after)

    def set_lane_height(self, height_px: int) -> None:
        """Change the height of lanes."""
        if height_px != self._lane_height_px:
            self._lane_height_px = height_px
            self._lay_out()

    def keep_height(self) -> int:
        """Fix the height of lanes at its current value and return this height; called when the user sets the height."""
        self._grows = False
        self._lane_height_px = self._shown_px
        return self._shown_px

    def set_room(self, room_px: int) -> None:
        """Set the available height: a few lanes grow into it, up to twice the configured height.

        If room is left even then, and the user has not arranged the lanes, processes are unfolded.
        """
        if room_px != self._room_px:
            self._room_px = room_px
            self._unfold_into_room()
            self._lay_out()

    def reload(self, timeline: Timeline, silent: frozenset[int]) -> None:
        """Switch to the reloaded trace; the layout follows when the filter has switched too.

        Of the lanes of CPUs without events (`silent`), those that have events now are shown again.
        """
        self._take(timeline)
        before, self._silent = self._silent, self._lane_index.keys_of(silent)
        self._arrangement = replace(self._arrangement, hidden=self._arrangement.hidden - (before - self._silent))

    def _change(self, title: str, after: LaneArrangement) -> None:
        before = self._arrangement
        if after == before:
            return
        self._restore(after)
        self._history.add(Edit(title, partial(self._restore, before), partial(self._restore, after), (self,)))

    def _restore(self, arrangement: LaneArrangement) -> None:
        before, self._arrangement = self._arrangement, arrangement
        looks = (before.labels, before.classes, before.shows_kinds)
        is_other = looks != (arrangement.labels, arrangement.classes, arrangement.shows_kinds)
        if not self._lay_out() and is_other:
            self.changed.emit()
        if not self._timeline.has_classes(arrangement.classes):
            self.classes_requested.emit()

    def _take(self, timeline: Timeline) -> None:
        self._timeline, self._infos, self._lane_index = timeline, timeline.infos, LaneIndex(timeline)

    def _names_of(self, index: int) -> set[LaneKey]:
        """Return the keys of a lane and of all lanes above it in the tree."""
        return {self._lane_index.keys[lane] for lane in (index, *self._above(index))}

    def _above(self, index: int) -> list[int]:
        """Return the ancestors of a lane, nearest first."""
        above = []
        while (index := self._infos[index].parent) >= 0:
            above.append(index)
        return above

    def _opens_at_first(self, index: int) -> bool:
        if self._lane_index.is_of_events(index):
            return False
        return self._is_small or self._infos[index].kind in (LaneKind.CPU, LaneKind.THREAD)

    def _is_open(self, index: int) -> bool:
        return self._opens_at_first(index) != (self._lane_index.keys[index] in self._arrangement.turned)

    def _layout(self, busy: frozenset[int] | None, lane_px: int) -> LaneLayout:
        shows = partial(
            lane_shows, self._timeline, self._lane_index, self._arrangement.classes, self._filters.threads, busy
        )
        return LaneLayout(self._lane_index, self._arrangement, self._is_open, shows, lane_px, self._quiet, self._idle)

    @Slot()
    def _on_filter(self) -> None:
        if not np.array_equal(self._filters.threads, self._shown_threads):
            self._lay_out()

    def _lay_out(self) -> bool:
        """Compute the layout; return whether it changed."""
        busy, self._shown_threads = self._busy_lanes(), self._filters.threads
        rows, heads = self._layout(busy, self._lane_height_px).lay_out()
        self._shown_px = self._lane_height_px
        if self._grows:
            self._shown_px = grown_height_px(rows, heads, self._infos, self._lane_height_px, self._room_px)
        if self._shown_px != self._lane_height_px:
            rows, heads = self._layout(busy, self._shown_px).lay_out()
        if (self.rows, self.heads) == (rows, heads):
            return False
        self.rows, self.heads = rows, heads
        self._tops = [row.y_px for row in rows]
        self.changed.emit()
        return True

    def _busy_lanes(self) -> frozenset[int] | None:
        """Return the lanes with events in the visible range of time; None if empty lanes are not hidden."""
        if not self._arrangement.hides_empty or self._window is None:
            return None
        return busy_lanes(self._timeline, self._window)
