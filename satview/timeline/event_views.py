"""Columns of lanes that are views: when an interval begins is when its event happened, and no copy of that is stored.

They replace arrays in `LaneSpans`: an index, a slice or a search looks up what it needs, and numpy gets
a copy where it needs a whole column.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike, NDArray

from satview.timeline.spans import LaneSpans

_Rows = NDArray[np.uint32]
_MOMENTS: Final = 64


class EventClock:
    """When events happened, for all lanes of a trace: what one lane looks up, as the edges of a window, others do too.

    Attributes:
        time: int64 (events,), ascending.
    """

    def __init__(self, time: NDArray[np.int64]) -> None:
        self.time = time
        self._found: dict[tuple[int, str], np.uint32] = {}

    def row(self, cycles: int, side: Literal["left", "right"]) -> np.uint32:
        """Return how many events are before a moment, those in it included if `side` is "right"."""
        found = self._found.get((cycles, side))
        if found is None:
            if len(self._found) >= _MOMENTS:
                self._found = {}  # another one: threads may look into this one now
            found = self._found[cycles, side] = np.uint32(self.time.searchsorted(cycles, side))
        return found


class _Behind(NDArrayOperatorsMixin):
    """A column of one value, and behind it a column of some rows of events.

    Attributes:
        first: The value.
        rows: uint32 (n - 1,), rows of events, ascending.
    """

    dtype: np.dtype[Any]
    ndim: Final = 1

    def __init__(self, first: int, rows: _Rows) -> None:
        self.first, self.rows = first, rows

    def _of(self, rows: Any) -> Any:
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int]:
        """As of an array."""
        return (len(self),)

    @property
    def size(self) -> int:
        """As of an array."""
        return len(self)

    @property
    def nbytes(self) -> int:
        """Bytes of its own: none, as all are views."""
        return 0

    def __len__(self) -> int:
        return len(self.rows) + 1

    def __getitem__(self, key: Any) -> Any:
        # What each frame reads of each lane: the intervals in sight, and the one behind them.
        if type(key) is slice and key.step is None and key.start and key.stop and 0 < key.start <= key.stop:
            return self._of(self.rows[key.start - 1 : key.stop - 1])
        if type(key) is int and 0 < key <= len(self.rows):
            return self._of(self.rows[key - 1])
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1 and start:
                return self._of(self.rows[start - 1 : max(stop, start) - 1])
            key = np.arange(start, stop, step)
        elif isinstance(key, int | np.integer):
            at = range(len(self))[key]
            return self._of(self.rows[at - 1]) if at else self.dtype.type(self.first)
        key = np.asarray(key)
        key = np.flatnonzero(key) if key.dtype == np.bool_ else np.where(key < 0, key + len(self), key)
        found = np.array(self._of(self.rows[np.maximum(key, 1) - 1]))
        found[key == 0] = self.first
        return found

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        whole = np.empty(len(self), self.dtype if dtype is None else dtype)
        whole[0], whole[1:] = self.first, self._of(self.rows)
        return whole

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        arrays = (np.asarray(each) if isinstance(each, _Behind) else each for each in inputs)
        return getattr(ufunc, method)(*arrays, **options)

    def __getattr__(self, name: str) -> Any:
        """Return what else an array has, of a copy."""
        if name.startswith("__"):  # numpy looks for the protocols of arrays
            raise AttributeError(name)
        return getattr(np.asarray(self), name)


class EventTimes(_Behind):
    """When the intervals of a lane begin, int64 (n,): the first at a time of its own, the others with their events.

    Attributes:
        clock: When each event of the trace happened.
    """

    dtype = np.dtype(np.int64)

    def __init__(self, first: int, rows: _Rows, clock: EventClock) -> None:
        super().__init__(first, rows)
        self.clock = clock

    def _of(self, rows: Any) -> Any:
        return self.clock.time[rows]

    def searchsorted(self, v: Any, side: Literal["left", "right"] = "left", sorter: None = None) -> Any:  # noqa: ARG002  -- numpy gives it
        """As of an array: a search among all events, and one among the rows of the lane."""
        if type(v) is int:
            found = self.rows.searchsorted(self.clock.row(v, side))
            return found + (v > self.first if side == "left" else v >= self.first)
        v = np.asarray(v)
        # No row has the number that means none; rows and numbers of one type need no copy of the rows.
        row = self.clock.time.searchsorted(v, side).astype(np.uint32)
        return self.rows.searchsorted(row) + (v > self.first if side == "left" else v >= self.first)


class EventRows(_Behind):
    """The events that begin the intervals of a lane, uint32 (n,): as in the index of states, behind the first."""

    dtype = np.dtype(np.uint32)

    def _of(self, rows: Any) -> Any:
        return rows


def with_views(spans: LaneSpans, clock: EventClock, states: _Rows) -> LaneSpans:
    """Return a lane without copies of what is there already; itself where its intervals do not begin with its events.

    Args:
        spans: The lane.
        clock: When each event of the trace happened.
        states: uint32, the state events of the thread of the lane; empty for other lanes.
    """
    rows = spans.event[1:]
    # Missing events end states at a time of their own, and no row: such lanes keep their copies.
    if len(rows) == 0 or int(rows.max()) >= len(clock.time):
        return spans
    if not np.array_equal(clock.time[rows], spans.start_cycles[1:]):
        return spans
    event: Any = spans.event
    if np.array_equal(rows, states):
        event, rows = EventRows(int(spans.event[0]), states), states
    start: Any = EventTimes(int(spans.start_cycles[0]), rows, clock)
    return replace(spans, start_cycles=start, event=event)
