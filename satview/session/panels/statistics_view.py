"""The statistics that a window shows: which sheet, of which part of the trace, and whether they follow the filter."""

from __future__ import annotations

from functools import partial
from typing import Final

from PySide6.QtCore import QObject, Slot

from satview.session.extent import Extent, ExtentAnswer
from satview.session.open_trace import OpenTrace
from satview.session.panels.statistics_task import Counted, Found

_SETTLE_MS: Final = 150  # the range has to rest that long before it is counted again


class StatisticsView(ExtentAnswer):
    """Works statistics out in the background, whenever what they depend on has changed and somebody looks.

    Attributes:
        counted: What was worked out last; None = nothing yet.
        key: The sheet that is requested.
        follows: True to follow the filter.
    """

    def __init__(self, opened: OpenTrace, parent: QObject | None = None) -> None:
        super().__init__(opened, Extent.TRACE, _SETTLE_MS, parent)
        self._opened = opened
        self.counted: Counted | None = None
        self.key = "thread"
        self.follows = False
        self._found: Found | None = None
        opened.filters.view_changed.connect(self._on_filter)
        opened.filters.changed.connect(self.changed)

    @property
    def ignores_filter(self) -> bool:
        """True if a filter is on that the numbers do not follow."""
        return not self.follows and self._opened.filters.is_active

    def show_sheet(self, key: str) -> None:
        """Show another sheet."""
        if key != self.key:
            self.key = key
            self._request()

    def set_extent(self, extent: Extent) -> None:
        """Show another part of the trace."""
        before = self.extent
        self._extent.select(extent)
        if extent is not before:
            self._request()

    def set_follows(self, follows: bool) -> None:
        """Follow the filter, or do not."""
        if follows != self.follows:
            self.follows = follows
            self._request()

    @Slot()
    def _request(self) -> None:
        self._settle.stop()
        if not self._is_watched:
            return
        self.error = ""
        if self.needs_range:
            self._job.cancel()
            self.changed.emit()
            return
        filters, trace, window = self._opened.filters, self._opened.trace, self._extent.window()
        rows = filters.rows if self.follows else None
        threads = filters.threads if self.follows else None
        found = self._found
        if found is None or not found.fits(trace, window, self.follows, rows, threads):
            found = Found(trace, window, self.follows, rows, threads, self._opened.basis)
        self._found = found
        self._start(partial(found.counted, self.key))

    def _take(self, result: object) -> None:
        if isinstance(result, Counted):
            self.counted = result

    @Slot()
    def _on_filter(self) -> None:
        if self.follows:
            self._later()

    @Slot(object)
    def _on_reloaded(self, _reload: object) -> None:
        self._found = None  # it holds the shorter trace
        self._later()

    def _later(self) -> None:
        """Count again once things rest; what is being counted is of no use any more."""
        if self._is_watched:
            self._job.cancel()
            self._settle.start()
            self.changed.emit()
