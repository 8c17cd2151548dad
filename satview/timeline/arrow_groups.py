"""The arrows of one picture, grouped where they are dense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.time import TimeWindow
from satview.store.trace import Trace
from satview.timeline.arrows import ArrowIndex, ArrowKind, Arrows

_Ints = NDArray[np.int64]
_ABSENT: Final = -1  # instead of the row of a lane that does not show
_CELLS_PX: Final = (2, 6, 16, 48, 160)  # how wide groups may get, the first that makes few enough of them
_WIDE_PX: Final = 16  # cells from that width on have room for groups side by side
_SPREAD: Final = 0.8
FEW: Final = 200  # groups; so many are drawn within half a frame


@dataclass(frozen=True, slots=True)
class ArrowGroups:
    """Arrows of a picture, those of one kind between two rows of lanes that begin near each other as one group.

    Attributes:
        arrows: One arrow of each group, (n,).
        from_position, to_position: int64 (n,), rows of the picture that it joins, from the top.
        drawn_at: int64 (n,), cycles, where it is drawn: an arrow where it begins, a group where its arrows begin on
            average, aside of the groups of other pairs of rows.
        count: int64 (n,), arrows in it; if `is_sample`, of those looked at.
        least_cycles, most_cycles: int64 (n,), the shortest and longest of them.
        total: Arrows in the window between rows of the picture, at least; if `is_sample`, of those looked at.
        share: How many of those in the window were looked at, 0 to 1.
    """

    arrows: Arrows
    from_position: _Ints
    to_position: _Ints
    drawn_at: _Ints
    count: _Ints
    least_cycles: _Ints
    most_cycles: _Ints
    total: int
    share: float = 1.0

    def __len__(self) -> int:
        return len(self.count)

    @property
    def is_sample(self) -> bool:
        """Whether not all arrows in the window were looked at."""
        return self.share < 1

    @property
    def about(self) -> int:
        """How many arrows the window has, estimated from the sample where it is one."""
        return round(self.total / self.share) if self.share else 0


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """What a picture shows.

    Attributes:
        window: Its time.
        width_px: Its width.
        position_of_lane: int64 (lanes,), the row of the picture that a lane shows in or is folded into; -1 = none.
        shown: The rows among these that can be seen: an arrow shows if it crosses one of them.
        codes: bool (32768,), events of which codes show; None = all.
        passing: bool (events,), which events show; None = all.
    """

    window: TimeWindow
    width_px: int
    position_of_lane: _Ints
    shown: tuple[int, int]
    codes: NDArray[np.bool_] | None = None
    passing: NDArray[np.bool_] | None = None


def arrow_groups(trace: Trace, index: ArrowIndex, picture: Picture, most: int = 0) -> ArrowGroups:
    """Return the arrows of a picture.

    Args:
        trace: The events.
        index: Its arrows.
        picture: What shows.
        most: How many arrows to look at, of more an even sample; 0 = all of them.
    """
    parts = index.parts(picture.window)
    count = sum(part.stop - part.start for part in parts)
    step = -(-count // most) if most and count > most else 1
    positions = np.concatenate([np.arange(part.start, part.stop, step) for part in parts] or [np.empty(0, np.int64)])
    share = len(positions) / count if count else 1.0
    arrows = index.arrows
    first, last = (picture.position_of_lane[lane[positions]] for lane in (arrows.from_lane, arrows.to_lane))
    top, bottom = np.minimum(first, last), np.maximum(first, last)
    keep = (top != _ABSENT) & (top != bottom) & (bottom >= picture.shown[0]) & (top <= picture.shown[1])
    keep &= arrows.end[positions] >= picture.window.start
    keep = np.flatnonzero(keep)
    positions, first, last = positions[keep], first[keep], last[keep]
    if picture.codes is not None or picture.passing is not None:
        keep = _pass(trace, arrows.from_row[positions], picture) | _pass(trace, arrows.to_row[positions], picture)
        positions, first, last = positions[keep], first[keep], last[keep]
    return _grouped(arrows.taken(positions), first, last, picture, share)


def _pass(trace: Trace, rows: NDArray[np.uint32], picture: Picture) -> NDArray[np.bool_]:
    passes = np.ones(len(rows), np.bool_)
    if picture.codes is not None:
        passes &= picture.codes[trace.events.code[rows]]
    if picture.passing is not None:
        passes &= picture.passing[rows]
    return passes


def _grouped(arrows: Arrows, first: _Ints, last: _Ints, picture: Picture, share: float) -> ArrowGroups:
    """Return the groups; each has one of its arrows as its example."""
    if not len(arrows):
        none = np.empty(0, np.int64)
        return ArrowGroups(arrows, none, none, none, none, none, none, 0, share)
    offset = arrows.start - picture.window.start
    pixel = np.clip(offset * (picture.width_px / picture.window.length), -1, picture.width_px).astype(np.int64) + 1
    rows = int(picture.position_of_lane.max()) + 1
    pair = (first * rows + last) * len(ArrowKind) + arrows.kind
    order = np.argsort(pair * (picture.width_px + 2) + pixel)  # by pair, and within it by time
    pair, pixel = pair[order], pixel[order]
    is_new = np.append(True, pair[1:] != pair[:-1])
    for cell_px in _CELLS_PX:
        cell = pixel // cell_px
        starts = np.flatnonzero(is_new | np.append(True, cell[1:] != cell[:-1]))
        if len(starts) <= FEW:
            break
    count = np.diff(starts, append=len(order))
    shown = np.arange(len(starts))
    if len(starts) > FEW:  # the largest ones; those drawn say how many they are of
        shown = np.sort(np.argpartition(-count, FEW)[:FEW])
    length = (arrows.end - arrows.start)[order]
    selected = order[starts[shown]]
    # Means of differences, which are small: sums of moments could overflow.
    drawn_at = arrows.start[selected] + _means(arrows.start[order], starts, count)[shown]
    if cell_px >= _WIDE_PX:
        drawn_at = _side_by_side(drawn_at, np.cumsum(is_new)[starts[shown]], count[shown] > 1, cell_px, picture)
    return ArrowGroups(
        arrows.taken(selected), first[selected], last[selected], drawn_at, count[shown],
        np.minimum.reduceat(length, starts)[shown], np.maximum.reduceat(length, starts)[shown], len(arrows), share,
    )  # fmt: skip


def _side_by_side(
    drawn_at: _Ints, pair: NDArray[np.integer], is_group: NDArray[np.bool_], cell_px: int, picture: Picture
) -> _Ints:
    """Return positions of groups moved within their cells by pair: even traffic has the same mean everywhere."""
    rank = np.unique(pair, return_inverse=True)[1]
    share = (rank + 0.5) / (rank.max() + 1) - 0.5
    step = share * (_SPREAD * cell_px * picture.window.length / picture.width_px)
    moved = np.clip(drawn_at + step.astype(np.int64), picture.window.start, picture.window.end - 1)
    return np.where(is_group, moved, drawn_at)


def _means(values: _Ints, starts: NDArray[np.intp], count: NDArray[np.intp]) -> _Ints:
    """Return by how much the values of each part are above its first one, on average."""
    above = values - np.repeat(values[starts], count)
    return np.asarray(np.add.reduceat(above, starts) // count)
