"""Background tasks, in which the newest request replaces older ones, and answers computed by such tasks."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Final, Generic, TypeVar, cast

from PySide6.QtCore import QObject, QRunnable, Qt, QThreadPool, QTimer, Signal, Slot

from satview.analysis.critical_path import critical_path
from satview.analysis.why import WhyStep, why
from satview.answers.path import PathAnswer, path_answer
from satview.base.column_arrays import give_back, use_one_arena
from satview.base.errors import Cancelled, SatviewError
from satview.base.time import TimeWindow
from satview.store.trace import Trace

# Frees the memory of a closed trace at once, even if deleted Qt objects are still referenced.


_under_way: Final[set[int]] = set()
_numbers = count()


def dismantle(root: QObject) -> None:
    """Delete a tree of Qt objects in the event loop, and then clear the attributes of their Python objects.

    Widgets refer to each other both ways (parents, signals, models), so their Python halves stay in memory until the
    garbage collector runs; without this function, so would every array that they refer to.
    """
    owned = [vars(item) for item in (root, *root.findChildren(QObject)) if type(item).__module__.startswith("satview")]
    number = next(_numbers)
    _under_way.add(number)
    # One pass of the event loop later, as Qt may still call the objects while it deletes the tree.
    root.destroyed.connect(partial(QTimer.singleShot, 0, partial(_empty, owned, number)))
    root.deleteLater()


def _empty(owned: list[dict[str, Any]], number: int, *_: object) -> None:
    for attributes in owned:
        attributes.clear()
    _under_way.discard(number)
    if not _under_way:  # once per window of a dozen trees, as it takes 5 ms
        give_back()


IsCancelled = Callable[[], bool]
Report = Callable[[float], None]
TaskFunction = Callable[[IsCancelled], object]
ReportingFunction = Callable[[IsCancelled, Report], object]
_REPORT_EVERY_S: Final = 0.03


class _TaskRun(QRunnable):
    """One call of a function on a pool thread; refers only to the `_Relay` of its task, never to a widget."""

    def __init__(
        self, number: int, function: Callable[..., object], stop: threading.Event, relay: _Relay, reports: bool
    ) -> None:
        super().__init__()
        self._number = number
        self._function: Callable[..., object] | None = function
        self._reports = reports
        self._stop = stop
        self._relay = relay
        self._reported_s = 0.0

    def run(self) -> None:
        function, self._function = self._function, None
        assert function is not None
        try:
            more = (self._report,) if self._reports else ()
            end: _End = (self._number, function(self._stop.is_set, *more), None)
        except Cancelled:
            end = (self._number, None, None)
        except Exception as error:  # noqa: BLE001  -- whatever a job raises is shown, not lost on a pool thread
            end = (self._number, None, error)
        self._relay.ends.put(end)
        self._relay.ended.emit()

    def _report(self, share: float) -> None:
        now_s = time.monotonic()
        if now_s - self._reported_s >= _REPORT_EVERY_S and not self._stop.is_set():
            self._reported_s = now_s
            self._relay.reported.emit(self._number, share)


def _stop(stops: list[threading.Event], *_: object) -> None:
    stops[0].set()


_End = tuple[int, object, Exception | None]  # number of the run, its result, what it raised


class _Relay(QObject):
    """Passes results and progress from pool threads to the thread of a `Task` by signals."""

    ended = Signal()
    reported = Signal(int, float)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.ends: queue.SimpleQueue[_End] = queue.SimpleQueue()


class Task(QObject):
    """Runs one function at a time in the background; starting another stops the running one and drops its result.

    Signals:
        done: The newest function has ended; sends its result.
        failed: The newest function has failed; sends the exception.
        progress: Sends the fraction done, 0 to 1, at most some thirty times a second.
    """

    done = Signal(object)
    failed = Signal(object)
    progress = Signal(float)

    def __init__(
        self,
        parent: QObject | None = None,
        on_done: Callable[..., object] | None = None,
        on_failed: Callable[..., object] | None = None,
    ) -> None:
        """Begin without a function; the receivers of results are methods of a QObject, or signals."""
        super().__init__(parent)
        for signal, receiver in ((self.done, on_done), (self.failed, on_failed)):
            if receiver is not None:
                signal.connect(receiver)
        use_one_arena()  # before the first thread of a pool begins
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(1)
        self._number = 0
        self._stops = [threading.Event()]  # of the newest function
        # Who is destroyed while a function runs, such as a dialog by Esc, waits for its end.
        self.destroyed.connect(partial(_stop, self._stops))
        self._relay = _Relay(self)
        # Queued, so that a result never interrupts the GUI thread; except in `start` with patience.
        self._relay.ended.connect(self._on_ended, Qt.ConnectionType.QueuedConnection)
        self._relay.reported.connect(self._on_reported, Qt.ConnectionType.QueuedConnection)
        self._is_busy = False

    @property
    def is_busy(self) -> bool:
        """True from `start` until the newest function has ended or was cancelled."""
        return self._is_busy

    def start(self, function: TaskFunction, patience_s: float = 0.0) -> None:
        """Run `function(is_cancelled)` on a pool thread; stop the function that ran before.

        It must not refer to widgets, which Python could free on that thread. If it ends within `patience_s`, `done` or
        `failed` is sent before returning.
        """
        self._run(function, patience_s, reports=False)

    def start_reporting(self, function: ReportingFunction, patience_s: float = 0.0) -> None:
        """Run `function(is_cancelled, report)`, which reports the fraction done, 0 to 1; otherwise like `start`."""
        self._run(function, patience_s, reports=True)

    def _run(self, function: Callable[..., object], patience_s: float, *, reports: bool) -> None:
        _stop(self._stops)
        self._stops[0] = threading.Event()
        self._number += 1
        self._is_busy = True
        self._pool.start(_TaskRun(self._number, function, self._stops[0], self._relay, reports))
        end_s = time.monotonic() + patience_s
        while self._is_busy and (left_s := end_s - time.monotonic()) > 0:
            try:
                self._take(self._relay.ends.get(timeout=left_s))
            except queue.Empty:
                return

    def cancel(self) -> None:
        """Stop the task; neither `done` nor `failed` is sent for it."""
        _stop(self._stops)
        self._number += 1
        self._is_busy = False

    def close(self) -> None:
        """Cancel the function, and wait until the pool thread has ended."""
        self.cancel()
        self._pool.waitForDone()

    @Slot()
    def _on_ended(self) -> None:
        with contextlib.suppress(queue.Empty):  # `start` waited and has taken it already
            self._take(self._relay.ends.get_nowait())

    def _take(self, end: _End) -> None:
        number, result, error = end
        if number != self._number:
            return
        self._is_busy = False
        if error is not None:
            self.failed.emit(error)
        else:
            self.done.emit(result)

    @Slot(int, float)
    def _on_reported(self, number: int, share: float) -> None:
        if number == self._number and self._is_busy:  # `start` may have waited until the end
            self.progress.emit(share)


# A question that is answered in the background.


class Answer(QObject):
    """The state of one question: requested, answered or failed; subclasses keep the result.

    Attributes:
        error: Why there is no answer; empty = not yet known, or no error.

    Signals:
        changed: The question was asked, answered or dropped, or its task has failed.
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
    """An answer that is computed only while a view shows it, and again after its input has changed and then settled.

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


Result = TypeVar("Result")


class LastAnswer(Answer, Generic[Result]):
    """The answer to the last question; kept until the next question is answered or `forget` is called.

    Attributes:
        answer: The answer; None = nothing was asked, it is not yet known, or the task has failed.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.answer: Result | None = None

    @Slot()
    def forget(self) -> None:
        """Clear the answer."""
        if self.answer is not None or self.error or self.is_busy:
            self._job.cancel()
            self.answer, self.error = None, ""
            self.changed.emit()

    def _take(self, result: object) -> None:
        self.answer = cast("Result | None", result)


class PathSearch(LastAnswer[PathAnswer]):
    """Finds the critical path of a thread through an interval."""

    def search(self, trace: Trace, thread: int, window: TimeWindow) -> None:
        """Start to search for the critical path of a thread.

        Args:
            trace: The trace.
            thread: Row of the thread table.
            window: The interval, cycles.
        """
        self.answer = None
        self._start(lambda is_cancelled: path_answer(trace, critical_path(trace, thread, window), is_cancelled))


# An answer about the whole trace.


Query = Callable[[Trace, IsCancelled], Result]


class TraceAnswer(Answer, Generic[Result]):
    """Answer of one query about a trace; the query runs at the first `start`, also at the first after each reload.

    Attributes:
        answer: The answer; after a reload the old one until the query has run again; None = not yet known.
    """

    def __init__(self, trace: Trace, query: Query[Result], parent: QObject | None = None) -> None:
        """Prepare the query: a function that refers to no widget, for the worker thread, and never returns None.

        It may raise `Cancelled` when its second argument returns True.
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
        """Replace the query, and run the new one if the old one was started; the old answer stays until it is done."""
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
        question: Thread and moment that were asked about; None = no question.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.steps: tuple[WhyStep, ...] = ()
        self.question: tuple[int, int] | None = None

    def search(self, trace: Trace, thread: int, at_cycles: int) -> None:
        """Start to search for the answer."""
        self.steps, self.question = (), (thread, at_cycles)
        self._start(lambda _: why(trace, thread, at_cycles))

    @Slot()
    def forget(self) -> None:
        """Clear the question and its answer."""
        if self.steps or self.error or self.is_busy:
            self._job.cancel()
            self.steps, self.error, self.question = (), "", None
            self.changed.emit()

    def _take(self, result: object) -> None:
        self.steps = result if isinstance(result, tuple) else ()
