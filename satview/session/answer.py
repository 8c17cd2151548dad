"""A question about the open trace that is answered in the background."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from satview.base.errors import SatviewError
from satview.session.jobs import LatestJob, Work


class Answer(QObject):
    """What was asked last, on its way, answered, or failed; subclasses keep the result.

    Attributes:
        error: Why there is no answer; empty = there is none yet, or it is fine.

    Signals:
        changed: It was asked, answered, has failed, or is gone.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.error = ""
        self._job = LatestJob(self)
        self._job.done.connect(self._on_done)
        self._job.failed.connect(self._on_failed)

    @property
    def is_busy(self) -> bool:
        """Whether the answer is being looked for."""
        return self._job.is_busy

    def close(self) -> None:
        """Stop what runs in the background."""
        self._job.close()

    def _start(self, work: Work) -> None:
        self.error = ""
        self._job.start(work)
        self.changed.emit()

    def _take(self, result: object) -> None:
        """Keep what the job returned, or that it failed (None)."""
        raise NotImplementedError

    @Slot(object)
    def _on_done(self, result: object) -> None:
        self._take(result)
        self.changed.emit()

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        if not isinstance(error, SatviewError):
            raise error if isinstance(error, Exception) else RuntimeError(str(error))
        self.error = str(error)
        self._take(None)
        self.changed.emit()
