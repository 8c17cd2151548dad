"""Questions about a trace, answered in the background; an answer is kept until its trace or question changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from satview.analysis.reasons.critical_path import critical_path
from satview.analysis.reasons.why import WhyStep, why
from satview.answers.path import path_answer
from satview.base.errors import SatviewError
from satview.base.time import TimeWindow
from satview.session.tasks import IsCancelled, Task, TaskFunction
from satview.store.trace import Trace

if TYPE_CHECKING:
    from satview.answers.path import PathAnswer


# A question that is answered in the background.


class Answer(QObject):
    """The state of one question: requested, answered or failed; subclasses keep the result.

    Attributes:
        error: Why there is no answer; empty = not yet known, or no error.

    Signals:
        changed: It was requested, answered or dropped, or has failed.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.error = ""
        self._job = Task(self, self._on_done, self._on_failed)

    @property
    def is_busy(self) -> bool:
        """Whether the answer is being computed."""
        return self._job.is_busy

    def close(self) -> None:
        """Stop the background task."""
        self._job.close()

    def _start(self, function: TaskFunction) -> None:
        self.error = ""
        self._job.start(function)
        self.changed.emit()

    def _take(self, result: object) -> None:
        """Store the result of the finished task; `result` is None if the task failed."""
        raise NotImplementedError

    @Slot(object)
    def _on_done(self, result: object) -> None:
        self._take(result)
        self.changed.emit()

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        if not isinstance(error, (SatviewError, MemoryError)):
            raise error
        self.error = str(error) or "There is not enough memory"
        self._take(None)
        self.changed.emit()


class WatchedAnswer(Answer):
    """An answer that is only computed while a view shows it, and again once its input stays unchanged after a change.

    Args:
        settle_ms: How long the input must stay unchanged.
        parent: Owner.
    """

    def __init__(self, settle_ms: int, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._is_watched = False
        self._settle = QTimer(self, singleShot=True, interval=settle_ms)
        self._settle.timeout.connect(self._request)

    @property
    def is_pending(self) -> bool:
        """True while the result is older than the request."""
        return self.is_busy or self._settle.isActive()

    def watch(self, is_watched: bool) -> None:
        """Set whether the answer is visible, and must be kept up to date."""
        if is_watched != self._is_watched:
            self._is_watched = is_watched
            if is_watched:
                self._request()
            else:
                self._settle.stop()
                self._job.cancel()

    def close(self) -> None:
        """Stop the timer and the background task."""
        self._settle.stop()
        super().close()

    @Slot()
    def _request(self) -> None:
        """Start the task for the current request, if the answer is visible."""
        raise NotImplementedError


# The critical path of a thread through an interval.


class PathSearch(Answer):
    """The last requested critical path; kept until another path is requested or `forget` is called.

    Attributes:
        answer: The path; None = none was requested, or it is not ready.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.answer: PathAnswer | None = None

    def search(self, trace: Trace, thread: int, window: TimeWindow) -> None:
        """Start to search for the critical path of a thread.

        Args:
            trace: The events.
            thread: Row of the thread table.
            window: The interval, cycles.
        """
        self.answer = None
        self._start(lambda is_cancelled: path_answer(trace, critical_path(trace, thread, window), is_cancelled))

    @Slot()
    def forget(self) -> None:
        """Clear the path."""
        if self.answer is not None or self.error or self.is_busy:
            self._job.cancel()
            self.answer, self.error = None, ""
            self.changed.emit()

    def _take(self, result: object) -> None:
        self.answer = cast("PathAnswer | None", result)


# An answer about the whole trace.


Result = TypeVar("Result")
Query = Callable[[Trace, IsCancelled], Result]


class TraceAnswer(Answer, Generic[Result]):
    """Answer of one query about a trace, which runs at the first `start`, and at the first `start` after each reload.

    Attributes:
        answer: The answer; after a reload the old one until the query has run again; None = not yet known.
    """

    def __init__(self, trace: Trace, query: Query[Result], parent: QObject | None = None) -> None:
        """Prepare the query.

        Args:
            trace: The trace.
            query: A function that refers to no widget, for the worker thread; never returns None. It may raise
                `Cancelled` when its second argument returns True.
            parent: Owner.
        """
        super().__init__(parent)
        self._trace, self._query = trace, query
        self._is_of_this = False
        self.answer: Result | None = None

    def start(self) -> None:
        """Run the query, unless it is running or done."""
        if not self._is_of_this and not self.is_busy:
            self._start(partial(self._query, self._trace))

    def ask(self, query: Query[Result]) -> None:
        """Replace the query; run the new one if the old one was started. The old answer stays until then."""
        is_asked = self.answer is not None or self.is_busy
        self._query = query
        self.take(self._trace)
        if is_asked:
            self.start()

    def take(self, trace: Trace) -> None:
        """Switch to a reloaded trace; the old answer stays until `start` has run the query again."""
        self._job.cancel()
        self._trace, self._is_of_this = trace, False

    def _take(self, result: object) -> None:
        self._is_of_this = True
        if result is not None:
            self.answer = cast(Result, result)


# Why a thread is in its state at a moment.


class WhySearch(Answer):
    """The answer to the last question Why?; kept while the user follows links in the answer, until the next question.

    Attributes:
        steps: The answer; empty = none yet.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.steps: tuple[WhyStep, ...] = ()

    def search(self, trace: Trace, thread: int, at_cycles: int) -> None:
        """Start to search for the answer.

        Args:
            trace: The events.
            thread: Row of the thread table.
            at_cycles: The moment.
        """
        self.steps = ()
        self._start(lambda _: why(trace, thread, at_cycles))

    @Slot()
    def forget(self) -> None:
        """Clear the question and its answer."""
        if self.steps or self.error or self.is_busy:
            self._job.cancel()
            self.steps, self.error = (), ""
            self.changed.emit()

    def _take(self, result: object) -> None:
        self.steps = result if isinstance(result, tuple) else ()
