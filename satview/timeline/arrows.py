"""Arrows between lanes for messages, replies, pulses and wake-ups: an index by time, and groups for drawing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import ColumnTable
from satview.base.time import TimeWindow
from satview.events import wire
from satview.linkage.calls import TIMER_EVENT
from satview.linkage.chain import link_table
from satview.linkage.links import OPEN, LinkKind, LinkTable
from satview.linkage.messages import ERROR, REPLY
from satview.store.trace import Trace
from satview.timeline.lane_info import LaneInfo, LaneKind

_Ints = NDArray[np.int64]
_ABSENT: Final = -1  # instead of a lane


class ArrowKind(IntEnum):
    """Kinds of arrows between lanes, by their causes."""

    MESSAGE = 0
    """From the send of a message to its receipt."""
    REPLY = 1
    """From the reply, or error, to the client that it unblocks."""
    PULSE = 2
    """From the send of a pulse to its receipt."""
    WAKE_UP = 3
    """From any other cause (a call, a timer, an interrupt) to the thread that it makes ready."""


ARROW_NAMES: Final = {
    ArrowKind.MESSAGE: "message",
    ArrowKind.REPLY: "reply",
    ArrowKind.PULSE: "pulse",
    ArrowKind.WAKE_UP: "wake-up",
}


@dataclass(frozen=True, slots=True)
class Arrows(ColumnTable):
    """Arrows from one lane to another; every column has shape (n,).

    Attributes:
        start, end: int64, times of both ends, cycles.
        from_row, to_row: uint32, the events that the arrow connects.
        from_lane, to_lane: int32, indices of lanes in `Timeline.infos`.
        kind: uint8, `ArrowKind`.
        certainty: uint8, `Certainty` of the link.
    """

    start: _Ints
    end: _Ints
    from_row: NDArray[np.uint32]
    to_row: NDArray[np.uint32]
    from_lane: NDArray[np.int32]
    to_lane: NDArray[np.int32]
    kind: NDArray[np.uint8]
    certainty: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True)
class ArrowIndex:
    """All arrows of a trace, sorted by the power of two of their length, then by start, for searches by time.

    Attributes:
        arrows: The arrows.
        levels: For each group of similar lengths the slice of `arrows` that holds it, and an upper bound of the
            lengths, cycles.
    """

    arrows: Arrows
    levels: tuple[tuple[slice, int], ...]

    def parts(self, window: TimeWindow) -> list[slice]:
        """Return slices of `arrows` that hold all arrows in a window, and some that end a little before the window."""
        out = []
        for positions, longest in self.levels:
            begin, stop = np.searchsorted(self.arrows.start[positions], (window.start - longest, window.end))
            if stop > begin:
                out.append(slice(positions.start + int(begin), positions.start + int(stop)))
        return out


def arrow_index(trace: Trace, infos: tuple[LaneInfo, ...]) -> ArrowIndex:
    """Return an index of all arrows between two different lanes; the first call computes the links of the trace."""
    arrows = _all(trace, infos)
    joins_two = arrows.from_lane != arrows.to_lane
    joins_two &= np.minimum(arrows.from_lane, arrows.to_lane) != _ABSENT
    arrows = arrows.taken(np.flatnonzero(joins_two))
    power = np.frexp(np.maximum(arrows.end - arrows.start, 1).astype(np.float64))[1].astype(np.uint16)
    arrows = arrows.taken(np.lexsort((arrows.start, power)))
    power.sort()
    levels = []
    for value in np.unique(power).tolist():
        begin, stop = np.searchsorted(power, (value, value + 1)).tolist()
        levels.append((slice(begin, stop), 1 << value))
    return ArrowIndex(arrows, tuple(levels))


def _all(trace: Trace, infos: tuple[LaneInfo, ...]) -> Arrows:
    """Return the arrows of all kinds, including those whose ends are on the same lane or on no lane (-1)."""
    messages, pulses, woken = (link_table(trace, kind) for kind in (LinkKind.MESSAGE, LinkKind.PULSE, LinkKind.WAKE_UP))
    # A send with an arrow to its receiver needs no second one for waking the same thread.
    is_known = _same_thread(trace, woken, messages) | _same_thread(trace, woken, pulses)
    unknown = np.flatnonzero(~is_known)
    is_reply = np.isin(trace.events.code[woken.from_row[unknown]], (REPLY, ERROR))
    of_wakes = np.where(is_reply, np.uint8(ArrowKind.REPLY), np.uint8(ArrowKind.WAKE_UP))
    kinds = (np.full(len(messages), ArrowKind.MESSAGE, np.uint8), np.full(len(pulses), ArrowKind.PULSE, np.uint8))
    from_row = np.concatenate((messages.from_row, pulses.from_row, woken.from_row[unknown]))
    to_row = np.concatenate((messages.to_row, pulses.to_row, woken.to_row[unknown]))
    kind = np.concatenate((*kinds, of_wakes))
    certainty = np.concatenate((messages.certainty, pulses.certainty, woken.certainty[unknown]))
    known = np.flatnonzero(to_row < OPEN)
    from_row, to_row, kind, certainty = from_row[known], to_row[known], kind[known], certainty[known]
    time = trace.events.time_cycles
    lanes = _Lanes(trace, infos)
    return Arrows(time[from_row], time[to_row], from_row, to_row, lanes.of_causes(from_row), lanes.of(to_row), kind,
                  certainty)  # fmt: skip


def _same_thread(trace: Trace, woken: LinkTable, sent: LinkTable) -> NDArray[np.bool_]:
    """Return which wake-ups are caused by a send of `sent` whose receipt the woken thread logs."""
    receipt = sent.ends_of(woken.from_row)
    is_same = receipt < OPEN
    thread = trace.events.thread
    is_same[is_same] = thread[receipt[is_same]] == thread[woken.to_row[is_same]]
    return is_same


class _Lanes:
    """Finds the lanes of the events at which arrows begin and end."""

    def __init__(self, trace: Trace, infos: tuple[LaneInfo, ...]) -> None:
        self._trace = trace
        self._of_thread = np.full(len(trace.threads), _ABSENT, np.int32)
        cpus = max([trace.cpu_count, *(info.cpu + 1 for info in infos)], default=1)
        self._of_cpu, self._of_interrupts = (np.full(max(cpus, 256), _ABSENT, np.int32) for _ in range(2))
        for info in infos:
            if info.kind is LaneKind.THREAD:
                self._of_thread[info.thread] = info.index
            elif info.kind is LaneKind.CPU:
                self._of_cpu[info.cpu] = info.index
            elif info.kind is LaneKind.INTERRUPTS:
                self._of_interrupts[info.cpu] = info.index

    def of(self, rows: NDArray[np.uint32]) -> NDArray[np.int32]:
        """Return the lane of each event's thread, or of its CPU if the thread has no lane, int32 (n,); -1 = none."""
        events = self._trace.events
        lane = self._of_thread[events.thread[rows]]
        return np.where(lane == _ABSENT, self._of_cpu[events.cpu[rows]], lane)

    def of_causes(self, rows: NDArray[np.uint32]) -> NDArray[np.int32]:
        """Return the lanes where arrows begin: as `of`, or the interrupt lane if an interrupt or timer is the cause."""
        trace = self._trace
        origin = rows.copy()
        table = link_table(trace, LinkKind.DELIVERY)
        link = table.ended_by(rows)
        origin[link >= 0] = table.from_row[link[link >= 0]]
        code = trace.events.code[origin]
        is_interrupt = (code >> wire.CLASS_SHIFT == wire.WireClass.INT) | (code == TIMER_EVENT)
        cpu = trace.events.cpu[rows]
        lane = np.where(self._of_interrupts[cpu] == _ABSENT, self._of_cpu[cpu], self._of_interrupts[cpu])
        return np.where(is_interrupt & (lane != _ABSENT), lane, self.of(rows))


_NEAR_PX: Final = 2  # arrows that begin within this distance are drawn as one
_CELLS_PX: Final = (64, 160)  # widths of cells for counts; the first that gives at most `FEW` of them is used
DRAWN: Final = 60  # most arrows that are drawn; more are counted
FEW: Final = 200  # most counts, which take half a frame to draw


@dataclass(frozen=True, slots=True)
class ArrowGroups:
    """The arrows of a picture in groups: arrows of one kind between the same two rows that begin near each other.

    Attributes:
        arrows: One arrow of each group, (n,).
        from_position, to_position: int64 (n,), rows of the picture that the group connects, from the top.
        drawn_at: int64 (n,), cycles, where the group is drawn: at the mean start of its arrows, or for a count beside
            the other counts of its row.
        row_position: int64 (n,), row of the picture in which a count is written: the row where the arrows end, or the
            row where they begin if the former is not visible.
        begin, end: int64 (n,), cycles, from the earliest start to the latest end of the arrows.
        count: int64 (n,), number of arrows; if `is_sample`, in the sample.
        least_cycles, most_cycles: int64 (n,), lengths of the shortest and longest arrow.
        total: Number of all arrows that belong in the picture; if `is_sample`, only of those in the sample.
        share: Share of the arrows in the window that were examined, 0 to 1.
        is_counted: There are too many arrows to draw, so that counts are shown instead.
    """

    arrows: Arrows
    from_position: _Ints
    to_position: _Ints
    drawn_at: _Ints
    row_position: _Ints
    begin: _Ints
    end: _Ints
    count: _Ints
    least_cycles: _Ints
    most_cycles: _Ints
    total: int
    share: float = 1.0
    is_counted: bool = False

    def __len__(self) -> int:
        return len(self.count)

    @property
    def is_sample(self) -> bool:
        """Whether only a sample of the arrows in the window was examined."""
        return self.share < 1

    @property
    def about(self) -> int:
        """Number of arrows that belong in the picture; an estimate if `is_sample`."""
        return round(self.total / self.share) if self.share else 0

    def of_kinds(self, kinds: Collection[ArrowKind]) -> ArrowGroups:
        """Return the groups of the given kinds; `total` stays that of all kinds."""
        kept = np.flatnonzero(np.isin(self.arrows.kind, list(kinds)))
        return ArrowGroups(
            self.arrows.taken(kept), self.from_position[kept], self.to_position[kept], self.drawn_at[kept],
            self.row_position[kept], self.begin[kept], self.end[kept], self.count[kept], self.least_cycles[kept],
            self.most_cycles[kept], self.total, self.share, self.is_counted,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """The visible part of the timeline, and the events that are shown in it.

    Attributes:
        window: Range of time.
        width_px: Width of the picture in pixels.
        position_of_lane: int64 (lanes,), the row of the picture in which a lane is shown or folded; -1 = none.
        shown: First and last visible row; an arrow is visible if it touches or crosses a row from first to last.
        codes: bool (32768,), codes of the events that show; None = all.
        passing: bool (events,), the events that show; None = all.
    """

    window: TimeWindow
    width_px: int
    position_of_lane: _Ints
    shown: tuple[int, int]
    codes: NDArray[np.bool_] | None = None
    passing: NDArray[np.bool_] | None = None


def arrow_groups(trace: Trace, index: ArrowIndex, picture: Picture, most: int = 0) -> ArrowGroups:
    """Return the arrows of a picture, combined into groups few enough to draw.

    `most` limits the arrows looked at: if there are more, the groups are those of an even sample of about this size;
    0 = no limit.
    """
    parts = index.parts(picture.window)
    count = sum(part.stop - part.start for part in parts)
    step = -(-count // most) if most and count > most else 1
    positions = np.concatenate([np.arange(part.start, part.stop, step) for part in parts] or [np.empty(0, np.int64)])
    share = len(positions) / count if count else 1.0
    arrows = index.arrows
    from_row, to_row = (picture.position_of_lane[lane[positions]] for lane in (arrows.from_lane, arrows.to_lane))
    top, bottom = np.minimum(from_row, to_row), np.maximum(from_row, to_row)
    keep = (top != _ABSENT) & (top != bottom) & (bottom >= picture.shown[0]) & (top <= picture.shown[1])
    keep &= arrows.end[positions] >= picture.window.start
    keep = np.flatnonzero(keep)
    positions, from_row, to_row = positions[keep], from_row[keep], to_row[keep]
    if picture.codes is not None or picture.passing is not None:
        keep = _pass(trace, arrows.from_row[positions], picture) | _pass(trace, arrows.to_row[positions], picture)
        positions, from_row, to_row = positions[keep], from_row[keep], to_row[keep]
    return _grouped(arrows.taken(positions), from_row, to_row, picture, share)


def _pass(trace: Trace, rows: NDArray[np.uint32], picture: Picture) -> NDArray[np.bool_]:
    passes = np.ones(len(rows), np.bool_)
    if picture.codes is not None:
        passes &= picture.codes[trace.events.code[rows]]
    if picture.passing is not None:
        passes &= picture.passing[rows]
    return passes


def _grouped(arrows: Arrows, from_row: _Ints, to_row: _Ints, picture: Picture, share: float) -> ArrowGroups:
    """Return groups of arrows that begin in the same 2 pixels; if too many, one count per cell of a row."""
    if not len(arrows):
        none = np.empty(0, np.int64)
        return ArrowGroups(arrows, none, none, none, none, none, none, none, none, none, 0, share)
    offset = arrows.start - picture.window.start
    pixel = np.clip(offset * (picture.width_px / picture.window.length), -1, picture.width_px).astype(np.int64) + 1
    rows = int(picture.position_of_lane.max()) + 1
    pair = (from_row * rows + to_row) * len(ArrowKind) + arrows.kind
    order = np.argsort(pair * (picture.width_px + 2) + pixel)  # by pair, and within it by time
    pair, pixel = pair[order], pixel[order]
    is_new = np.append(True, pair[1:] != pair[:-1])
    for cell_px, most in ((_NEAR_PX, DRAWN), *((cell_px, FEW) for cell_px in _CELLS_PX)):
        cell = pixel // cell_px
        starts = np.flatnonzero(is_new | np.append(True, cell[1:] != cell[:-1]))
        if len(starts) <= most:
            break
    is_counted = cell_px != _NEAR_PX
    count = np.diff(starts, append=len(order))
    shown = np.arange(len(starts))
    if len(starts) > FEW:  # keep the largest groups
        shown = np.sort(np.argpartition(-count, FEW)[:FEW])
    start, end = arrows.start[order], arrows.end[order]
    selected = order[starts[shown]]
    to = to_row[selected]
    row = np.where((picture.shown[0] <= to) & (to <= picture.shown[1]), to, from_row[selected])
    # Means of differences, as sums of times could overflow.
    drawn_at = arrows.start[selected] + _means(start, starts, count)[shown]
    if is_counted:
        drawn_at = _side_by_side(row, cell[starts[shown]], cell_px, picture)
    return ArrowGroups(
        arrows.taken(selected), from_row[selected], to, drawn_at, row, np.minimum.reduceat(start, starts)[shown],
        np.maximum.reduceat(end, starts)[shown], count[shown], np.minimum.reduceat(end - start, starts)[shown],
        np.maximum.reduceat(end - start, starts)[shown], len(arrows), share, is_counted,
    )  # fmt: skip


def _side_by_side(row: _Ints, cell: NDArray[np.integer], cell_px: int, picture: Picture) -> _Ints:
    """Return times at which to draw counts, cycles, int64 (n,): those of one row and cell evenly spread in the cell."""
    key = row * (int(cell.max(initial=0)) + 1) + cell
    order = np.argsort(key, kind="stable")
    count, begin = (column[np.unique(key[order], return_inverse=True)[1]] for column in (
        np.unique(key, return_counts=True)[1], np.unique(key[order], return_index=True)[1]))  # fmt: skip
    share = np.empty(len(row))
    share[order] = (np.arange(len(row)) - begin + 0.5) / count
    px = np.minimum((cell + share) * cell_px - 1, picture.width_px - 1)
    moment = picture.window.start + (px * (picture.window.length / picture.width_px)).astype(np.int64)
    return np.asarray(np.clip(moment, picture.window.start, picture.window.end - 1))


def _means(values: _Ints, starts: NDArray[np.intp], count: NDArray[np.intp]) -> _Ints:
    """Return for each part of `values` the mean of its values minus its first value, rounded down, int64 (n,)."""
    above = values - np.repeat(values[starts], count)
    return np.asarray(np.add.reduceat(above, starts) // count)
