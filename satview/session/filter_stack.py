"""What the view shows: a table over event codes and a table over threads. Lanes and the list both follow it."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal

from satview.events.wire import CODE_COUNT
from satview.filters import evaluate
from satview.filters.mask import EventMask
from satview.session.edit_history import Edit, EditHistory
from satview.session.jobs import IsCancelled, LatestJob, Report
from satview.store.tables import EventTable
from satview.store.trace import Trace

Mask = NDArray[np.bool_]
_AT_ONCE: Final = 4_000_000  # up to that many events a filter answers within a frame or two; above, in the background


class FilterStack(QObject):
    """The filter in force, with undo. Nothing is ever removed from the data.

    Attributes:
        codes: bool, shape (32768,): True = events of this code show. Never changed in place.
        threads: bool, shape (threads,): True = this thread shows. Never changed in place.
        rows: uint32, ascending event rows that pass; None = all of them.

    Signals:
        changed: `codes` or `threads` changed; lanes follow at once.
        rows_changed: `rows` changed; the list follows.
    """

    changed = Signal()
    rows_changed = Signal()

    def __init__(self, trace: Trace, history: EditHistory, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._events = trace.events
        self._history = history
        self._job = LatestJob(self)
        self._job.done.connect(self._on_rows)
        self.codes: Mask = _all(CODE_COUNT)
        self.threads: Mask = _all(len(trace.threads))
        self.rows: NDArray[np.uint32] | None = None

    @property
    def is_active(self) -> bool:
        """True if anything is hidden."""
        return not (self.codes.all() and self.threads.all())

    @property
    def is_pending(self) -> bool:
        """True while `rows` is older than the filter."""
        return self._job.is_busy

    @property
    def row_count(self) -> int:
        """How many events pass."""
        return len(self._events) if self.rows is None else len(self.rows)

    def show_codes(self, codes: NDArray[np.integer] | list[int], show: bool, title: str = "filter of events") -> None:
        """Show or hide all events with these codes."""
        changed = self.codes.copy()
        changed[codes] = show
        self.set(changed, self.threads, title)

    def show_threads(
        self, threads: NDArray[np.integer] | list[int], show: bool, title: str = "filter of threads"
    ) -> None:
        """Show or hide these rows of the thread table."""
        changed = self.threads.copy()
        changed[threads] = show
        self.set(self.codes, changed, title)

    def only_codes(self, codes: list[int], title: str) -> None:
        """Hide all events but those with these codes."""
        only = np.zeros_like(self.codes)
        only[codes] = True
        self.set(only, self.threads, title)

    def only_threads(self, threads: list[int], title: str) -> None:
        """Hide all rows of the thread table but these."""
        only = np.zeros_like(self.threads)
        only[threads] = True
        self.set(self.codes, only, title)

    def show_all(self) -> None:
        """Take the filter away."""
        self.set(_all(len(self.codes)), _all(len(self.threads)), "no filter")

    def set(self, codes: Mask, threads: Mask, title: str) -> None:
        """Put another filter in force; can be undone under that title."""
        if np.array_equal(codes, self.codes) and np.array_equal(threads, self.threads):
            return
        before, after = (self.codes, self.threads), (codes, threads)
        self._apply(after)
        self._history.add(Edit(title, partial(self._apply, before), partial(self._apply, after)))

    def close(self) -> None:
        """Stop the work in the background."""
        self._job.close()

    def _apply(self, masks: tuple[Mask, Mask]) -> None:
        self.codes, self.threads = masks
        self.changed.emit()
        if not self.is_active:
            self._job.cancel()
            self._on_rows(None)
        elif len(self._events) <= _AT_ONCE:
            self._job.cancel()
            self._on_rows(passing_rows(self._events, *masks))
        else:
            self._job.start(_RowsWork(self._events, *masks))

    def _on_rows(self, rows: object) -> None:
        self.rows = rows if isinstance(rows, np.ndarray) else None
        self.rows_changed.emit()


class _RowsWork:
    """The work of the job: holds arrays only."""

    def __init__(self, events: EventTable, codes: Mask, threads: Mask) -> None:
        self._arguments = (events, codes, threads)

    def __call__(self, is_cancelled: IsCancelled, _report: Report) -> object:
        return passing_rows(*self._arguments, is_cancelled)


def passing_rows(
    events: EventTable, codes: Mask, threads: Mask, is_cancelled: IsCancelled | None = None
) -> NDArray[np.uint32]:
    """Return the rows of the events whose code and thread show, ascending, uint32.

    Raises:
        Cancelled: `is_cancelled()` said so.
    """
    return evaluate.rows(events, EventMask(codes, threads), is_cancelled)


def _all(count: int) -> Mask:
    return np.ones(count, np.bool_)
