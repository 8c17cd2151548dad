"""A question about the open trace that is answered in the background."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from satview.base.errors import SatviewError
from satview.session.tasks import Task, TaskFunction


class Answer(QObject):
    """What was requested last, on its way, answered, or failed; subclasses keep the result.

    Attributes:
        error: Why there is no answer; empty = there is none yet, or it is fine.

    Signals:
        changed: It was requested, answered, has failed, or is gone.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.error = ""
        self._job = Task(self)
        self._job.done.connect(self._on_done)
        self._job.failed.connect(self._on_failed)

    @property
    def is_busy(self) -> bool:
        """Whether the answer is being looked for."""
        return self._job.is_busy

    def close(self) -> None:
        """Stop what runs in the background."""
        self._job.close()

    def _start(self, function: TaskFunction) -> None:
        self.error = ""
        self._job.start(function)
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
        if not isinstance(error, (SatviewError, MemoryError)):
            raise error if isinstance(error, Exception) else RuntimeError(str(error))
        self.error = str(error) or "There is not enough memory"
        self._take(None)
        self.changed.emit()


class WatchedAnswer(Answer):
    """An answer that is computed while it is seen, and again once what it depends on has settled.

    Args:
        settle_ms: How long that has to stay unchanged.
        parent: Owner.
    """

    def __init__(self, settle_ms: int, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._is_watched = False
        self._settle = QTimer(self)
        self._settle.setSingleShot(True)
        self._settle.setInterval(settle_ms)
        self._settle.timeout.connect(self._request)

    @property
    def is_pending(self) -> bool:
        """True while the result is older than what is requested."""
        return self.is_busy or self._settle.isActive()

    def watch(self, is_watched: bool) -> None:
        """Start or stop following the trace: the answer is seen, or is not."""
        if is_watched != self._is_watched:
            self._is_watched = is_watched
            if is_watched:
                self._request()
            else:
                self._settle.stop()
                self._job.cancel()

    def close(self) -> None:
        """Stop what runs in the background."""
        self._settle.stop()
        super().close()

    @Slot()
    def _request(self) -> None:
        """Start the task for what is requested now, if it is seen."""
        raise NotImplementedError
