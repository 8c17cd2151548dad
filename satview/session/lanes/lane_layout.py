"""Where lanes are: an arrangement and what may show become rows and headings. Pixels are logical ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.session.lanes.lane_arrangement import LaneArrangement, LaneGroup
from satview.session.lanes.lane_row import GroupHead, LaneRow
from satview.session.lanes.remap import LaneKey, lane_keys
from satview.timeline.lane_tree import LaneInfo, LaneKind, Timeline

GROUP_GAP_PX: Final = 8  # between pinned lanes, CPUs and processes
OTHERS: Final = "Others"  # heading of what no group has
_GROWS_TO: Final = 2  # times the height that is set
_TALLEST_PX: Final = 48  # that lanes grow to by themselves
_NO_RANK: Final = 1 << 60  # behind those that have one
_CPU_KINDS: Final = (LaneKind.CPU, LaneKind.INTERRUPTS)


class LaneIndex:
    """The lanes of a reading of a trace by key, and what is under what.

    Attributes:
        infos: All lanes.
        keys: Key of each.
    """

    def __init__(self, timeline: Timeline) -> None:
        self.infos, self.keys = timeline.infos, lane_keys(timeline)
        self._lanes = {key: index for index, key in enumerate(self.keys)}
        self._children: dict[int, list[int]] = {}
        for info in self.infos:
            self._children.setdefault(info.parent, []).append(info.index)
        self._parents = tuple(index for index in self._children if index >= 0)

    def children(self, index: int) -> list[int]:
        """Return the lanes under a lane, in the order of the trace; -1 = those under none."""
        return self._children.get(index, [])

    @property
    def parents(self) -> tuple[int, ...]:
        """The lanes that have others under them."""
        return self._parents

    def keys_of(self, indices: Iterable[int]) -> frozenset[LaneKey]:
        """Return the keys of some lanes."""
        return frozenset(self.keys[index] for index in indices)

    def indices_of(self, keys: Iterable[LaneKey]) -> tuple[int, ...]:
        """Return the lanes with some keys, in their order; keys of no lane are left out."""
        return tuple(self._lanes[key] for key in keys if key in self._lanes)

    def is_cpu(self, index: int) -> bool:
        """Return whether a lane is that of a CPU."""
        return self.infos[index].kind is LaneKind.CPU

    def is_of_events(self, index: int) -> bool:
        """Return whether a lane is one of events of one sort."""
        return self.infos[index].track is not None

    def is_about_cpus(self, index: int) -> bool:
        """Return whether a lane is that of a CPU or of its interrupts."""
        return self.infos[index].kind in _CPU_KINDS


@dataclass(frozen=True, slots=True)
class Block:
    """Lanes of one group, one below the other.

    Attributes:
        kind: Blocks of different kinds have a gap between them.
        group: The group, None without a heading.
        tops: Its lanes, without those under them.
        nests: Lanes under these show below them.
    """

    kind: str
    group: LaneGroup | None
    tops: tuple[int, ...]
    nests: bool = True


class LaneLayout:
    """Lays lanes out by one arrangement.

    Args:
        lanes: The lanes.
        arrangement: What the user has done to them.
        opens: Returns whether a lane is open.
        shows: Returns whether a lane may show, whatever it is under.
        lane_height_px: Height of a lane.
    """

    def __init__(
        self,
        lanes: LaneIndex,
        arrangement: LaneArrangement,
        opens: Callable[[int], bool],
        shows: Callable[[int], bool],
        lane_height_px: int,
    ) -> None:
        self._lanes, self._now = lanes, arrangement
        self._opens, self._shows = opens, shows
        self._lane_height_px = lane_height_px
        self._ranks = {key: rank for rank, key in enumerate(arrangement.order)}
        self._pinned = lanes.indices_of(arrangement.pinned)
        self._hidden = frozenset(lanes.indices_of(arrangement.hidden))

    def siblings(self, index: int) -> tuple[int, ...]:
        """Return the lanes among which a lane has its position, in their order, hidden ones included."""
        if index in self._pinned:
            return self._pinned
        for block in self.blocks():
            if index in block.tops:
                return block.tops
        return self._ordered(self._lanes.children(self._lanes.infos[index].parent))

    def blocks(self) -> tuple[Block, ...]:
        """Return all lanes but pinned ones, by group; hidden ones included."""
        tops = self._lanes.children(-1)
        cpus = [index for index in tops if self._lanes.is_about_cpus(index)]
        events = [index for index in tops if self._lanes.is_of_events(index)]
        apart = {*cpus, *events}
        others = [index for index in tops if index not in apart]
        found = [Block("cpu", None, self._ordered(cpus)), Block("events", None, self._ordered(events))]
        if not self._now.groups:
            return (*found, Block("process", None, self._ordered(others)))
        in_groups: set[int] = set()
        nests = False
        for group in self._now.groups:
            members = self._lanes.indices_of(group.members)
            nests = any(self._lanes.infos[index].kind is LaneKind.PROCESS for index in members)
            found.append(Block(group.title, group, self._ordered(members), nests))
            in_groups.update(members)
        units = others if nests else [unit for top in others for unit in self._units(top)]
        rest = [index for index in units if index not in in_groups]
        if rest:
            found.append(Block("", LaneGroup(OTHERS, frozenset()), self._ordered(rest), nests))
        return tuple(found)

    def _units(self, top: int) -> list[int]:
        """Return the lanes under a process that groups are made of, or itself if it has none."""
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
                is_open = block.group.title not in self._now.closed
                count = len(set(tops).difference(self._pinned))
                heads.append(GroupHead(block.group.title, count, y_px, self._lane_height_px, is_open))
                y_px += self._lane_height_px
                if not is_open:
                    continue
            for index, depth in self._lanes_of(block, tops):
                rows.append(self._row(index, depth, y_px, is_alone=not block.nests))
                y_px += rows[-1].height_px
        return tuple(rows), tuple(heads)

    def _lanes_of(self, block: Block, tops: tuple[int, ...]) -> Iterator[tuple[int, int]]:
        for top in tops:
            if top not in self._pinned:
                yield top, 0
            if block.nests or self._lanes.infos[top].kind is LaneKind.THREAD:
                yield from self._lanes_under(top, 1)

    def _lanes_under(self, lane: int, depth: int) -> Iterator[tuple[int, int]]:
        """Yield the lanes that show under a lane, and those under these."""
        if not self._opens(lane):
            return
        for child in self._ordered(self._lanes.children(lane)):
            if child not in self._pinned and self._stays(child):
                yield child, depth
                yield from self._lanes_under(child, depth + 1)

    def _stays(self, index: int) -> bool:
        """Return whether a lane shows, unless it is pinned or what it is under is closed."""
        parent = self._lanes.infos[index].parent
        return index not in self._hidden and parent not in self._hidden and self._shows(index)

    def _ordered(self, indices: Iterable[int]) -> tuple[int, ...]:
        keys = self._lanes.keys
        return tuple(sorted(indices, key=lambda index: (self._ranks.get(keys[index], _NO_RANK), index)))

    def _row(self, index: int, depth: int, y_px: int, is_pinned: bool = False, is_alone: bool = False) -> LaneRow:
        info = self._lanes.infos[index]
        foldable = not is_pinned and any(self._stays(child) for child in self._children_of(index, is_alone))
        return LaneRow(
            index,
            depth,
            y_px,
            height_of(info, self._lane_height_px),
            foldable,
            foldable and self._opens(index),
            is_pinned,
            is_alone and info.parent >= 0,
        )

    def _children_of(self, index: int, is_alone: bool) -> list[int]:
        """Return the lanes that can fold into a lane; into one of no group only those of events."""
        children = self._lanes.children(index)
        return [child for child in children if self._lanes.is_of_events(child)] if is_alone else children


def height_of(info: LaneInfo, lane_px: int) -> int:
    """Return how tall a lane is where those of threads are `lane_px` tall."""
    if info.kind is LaneKind.CPU:
        return lane_px + 4
    if info.kind is LaneKind.INTERRUPTS:
        return max(8, lane_px * 3 // 4)
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
    """Return whether a lane shows, whatever it is under.

    Args:
        timeline: The lanes.
        lanes: The same, by what is under what.
        classes: Classes of lanes of events that show.
        shown: bool (threads,), threads that the filter shows.
        busy: Lanes with events in the window, where empty ones are hidden; None = they are not.
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


def grown_height_px(rows: Sequence[LaneRow], infos: Sequence[LaneInfo], least_px: int, room_px: int) -> int:
    """Return the height of a lane at which all of them just fill a room, within bounds.

    Args:
        rows: The lanes at the least height.
        infos: All lanes.
        least_px: The height that is set.
        room_px: The room.
    """
    total_px = rows[-1].y_px + rows[-1].height_px if rows else 0
    if not rows or total_px >= room_px:
        return least_px
    laid_out = [infos[row.index] for row in rows]
    rest_px = room_px - (total_px - sum(row.height_px for row in rows))  # without gaps and headings
    for lane_px in range(min(_GROWS_TO * least_px, _TALLEST_PX), least_px, -1):
        if sum(height_of(info, lane_px) for info in laid_out) <= rest_px:
            return lane_px
    return least_px
