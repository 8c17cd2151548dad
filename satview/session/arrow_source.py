"""Finds the arrows of a frame (one repaint of the lanes) without delaying it: first a sample if there are many."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QTimer, Signal, Slot

from satview.base.errors import SourceChangedError
from satview.base.time import TimeWindow
from satview.session.lanes.lane_list import LaneList
from satview.session.open_trace import OpenTrace
from satview.session.tasks import IsCancelled, Task
from satview.store.trace import Trace
from satview.timeline.arrows import ArrowGroups, ArrowIndex, ArrowKind, Picture, arrow_groups, arrow_index
from satview.timeline.lane_info import LaneInfo

_AT_ONCE: Final = 4_000  # arrows that a frame looks at
_REST_MS: Final = 120


class ArrowMode(StrEnum):
    """Which arrows are drawn between lanes: all, those of the selection, or none."""

    OFF = "off"
    SELECTION = "selection"
    ALL = "all"


class ArrowSource(QObject):
    """Returns the arrows of a frame; builds their index in the background at the first request.

    Attributes:
        kinds: Kinds of arrows in the trace; empty until the index (of all arrows of the trace) is built.
        is_ready: True once the index is built.
        latest: The arrows returned last; None once other lanes or events are shown.

    Signals:
        refined: More arrows were found after `groups` returned a sample or None; call `groups` again and redraw.
    """

    refined = Signal()

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._opened = opened
        self._index: ArrowIndex | None = None
        self.kinds: tuple[ArrowKind, ...] = ()
        self._has_failed = False
        self._positions: NDArray[np.int64] | None = None
        self._cache: dict[bool, tuple[tuple[object, ...], ArrowGroups]] = {}  # by whether they are exact
        self._requested: tuple[tuple[object, ...], Picture] | None = None
        self.latest: ArrowGroups | None = None
        self._build = Task(self, self._on_built, self._on_failed)
        self._job = Task(self, self._on_exact, self._on_failed)
        self._rest_timer = QTimer(self, singleShot=True, interval=_REST_MS)
        self._rest_timer.timeout.connect(self._refine)
        opened.lanes.changed.connect(self._on_lanes)
        opened.filters.view_changed.connect(self._forget)
        opened.reloaded.connect(self._on_reloaded)

    @property
    def is_ready(self) -> bool:
        """Whether the index of arrows is built."""
        return self._index is not None

    def groups(self, window: TimeWindow, width_px: int, shown: tuple[int, int]) -> ArrowGroups | None:
        """Return the arrows of a frame, or a sample if there are many; None if there is no index yet, or it failed.

        `shown` are the first and the last visible row in `LaneList.rows`.
        """
        if self._index is None:
            if not self._build.is_busy and not self._has_failed:
                trace, infos = self._opened.trace, self._opened.timeline.infos
                self._build.start(lambda _: arrow_index(trace, infos))
            return None
        key = (window, width_px, shown)
        for exact in (True, False):
            if exact in self._cache and self._cache[exact][0] == key:
                self.latest = self._cache[exact][1]
                return self.latest
        picture = self._picture(window, width_px, shown)
        grouped = arrow_groups(self._opened.trace, self._index, picture, _AT_ONCE)
        self._cache[not grouped.is_sample], self.latest = (key, grouped), grouped
        self._requested = key, picture
        if grouped.is_sample:
            self._rest_timer.start()
        return grouped

    def close(self) -> None:
        """Stop background tasks."""
        self._rest_timer.stop()
        self._build.close()
        self._job.close()

    def _picture(self, window: TimeWindow, width_px: int, shown: tuple[int, int]) -> Picture:
        if self._positions is None:
            self._positions = positions_of_lanes(self._opened.lanes, self._opened.timeline.infos)
        filters = self._opened.filters
        codes = None if filters.codes.all() else filters.codes
        return Picture(window, width_px, self._positions, shown, codes, filters.view.passing)

    @Slot()
    def _refine(self) -> None:
        if self._requested is not None and self._index is not None:
            self._job.start(partial(_exact, self._opened.trace, self._index, *self._requested))

    @Slot(object)
    def _on_built(self, index: object) -> None:
        if isinstance(index, ArrowIndex):
            self._index = index
            self.kinds = tuple(ArrowKind(kind) for kind in np.unique(index.arrows.kind).tolist())
            self.refined.emit()

    @Slot(object)
    def _on_exact(self, result: object) -> None:
        if isinstance(result, tuple) and self._requested is not None and result[0] == self._requested[0]:
            self._cache[True] = result
            self.refined.emit()

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        self._has_failed = True
        if not isinstance(error, SourceChangedError):  # the window reports that itself
            raise error

    @Slot()
    def _on_lanes(self) -> None:
        self._positions = None
        self._forget()

    @Slot()
    def _on_reloaded(self) -> None:
        self._build.cancel()
        self._index, self._positions, self._has_failed = None, None, False
        self._forget()

    @Slot()
    def _forget(self) -> None:
        self._job.cancel()
        self._rest_timer.stop()
        self._cache.clear()
        self._requested = self.latest = None


def positions_of_lanes(lanes: LaneList, infos: tuple[LaneInfo, ...]) -> NDArray[np.int64]:
    """Return each lane's row number, int64 (lanes,); a lane in a folded parent has that of the parent; -1 = none."""
    positions = np.full(len(infos), -1, np.int64)
    folded = np.full(len(infos) + 1, -1, np.int64)  # the last entry is for lanes without a parent
    for position, row in enumerate(lanes.rows):
        positions[row.index] = position
        if row.is_foldable and not row.is_open:
            folded[row.index] = position
    parents = np.array([info.parent for info in infos], np.int64)
    return np.where(positions < 0, folded[parents], positions)


def _exact(
    trace: Trace, index: ArrowIndex, key: tuple[object, ...], picture: Picture, _is_cancelled: IsCancelled,
) -> tuple[tuple[object, ...], ArrowGroups]:  # fmt: skip
    """Return `key`, which identifies the request, and all arrows of its frame; runs in the background."""
    return key, arrow_groups(trace, index, picture)
