"""The labels of intervals for frames: what is known at once, the rest a moment later from a worker."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QObject, Signal, Slot

from satview.base.errors import SourceChangedError
from satview.session.lanes.interval_labels import IntervalLabels
from satview.session.lanes.lane_arrangement import Label
from satview.session.tasks import IsCancelled, Report, Task
from satview.store.trace import Trace


class LabelSource(QObject):
    """Gives labels without ever making a frame wait; all views of a trace share one.

    Signals:
        refined: More labels are known; draw again.
    """

    refined = Signal()

    def __init__(self, trace: Trace, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._labels = IntervalLabels(trace)
        self._failed: frozenset[Label] = frozenset()
        self._requested: frozenset[Label] = frozenset()
        self._job = Task(self)
        self._job.done.connect(self._on_done)
        self._job.failed.connect(self._on_failed)

    @property
    def is_busy(self) -> bool:
        """True while something that was requested is worked out."""
        return self._job.is_busy

    def take(self, trace: Trace) -> None:
        """Give the labels of a longer reading."""
        self._job.cancel()
        self._labels, self._failed, self._requested = IntervalLabels(trace), frozenset(), frozenset()

    def texts(self, rows: Sequence[int], labels: frozenset[Label]) -> list[tuple[str, ...]]:
        """Return the labels of intervals as `IntervalLabels.texts` does; those not ready yet are left out and begun."""
        missing = self._labels.needs(labels) - self._failed
        if missing and not missing <= self._requested:
            self._requested = missing
            self._job.start(partial(_made_ready, self._labels, missing))
        return self._labels.texts(rows, labels)

    def close(self) -> None:
        """Stop what runs in the background."""
        self._job.close()

    @Slot(object)
    def _on_done(self, _result: object) -> None:
        self._requested = frozenset()
        self.refined.emit()

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        self._failed |= self._requested
        if not isinstance(error, SourceChangedError):  # that the window says by itself
            raise error if isinstance(error, Exception) else RuntimeError(str(error))


def _made_ready(
    labels: IntervalLabels, requested: frozenset[Label], _is_cancelled: IsCancelled, _report: Report
) -> IntervalLabels:
    """Run in the task; holds no widget."""
    labels.make_ready(requested)
    return labels
