"""What the view shows: check boxes over event codes and threads, conditions and rules. Lanes and list follow it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal, Slot

from satview.base.errors import SatviewError
from satview.events.wire import CODE_COUNT
from satview.filters import rows as event_rows
from satview.filters.rows import EventMask
from satview.filters.views.passes import Effect, Pass, PassStack
from satview.session.edit_history import Edit, EditHistory
from satview.session.filtering.filter_state import FilterState, Mask, new_name
from satview.session.filtering.filter_task import FilterEvaluator, FilterView, evaluate
from satview.session.tasks import IsCancelled, Report, Task, TaskFunction
from satview.store.tables import EventTable
from satview.store.trace import Trace

_PATIENCE_S: Final = 0.01  # small traces have their answer by then: nothing has to be drawn in between
_AT_ONCE: Final = 4_000_000  # up to that many events a filter answers within a frame or two; above, in the background


class FilterStack(QObject):
    """The filter in force, with undo. Nothing is ever removed from the data.

    Attributes:
        state: The filter: check boxes, conditions, rules.
        view: What shows: what the filter does to the events; that of the filter before while `is_pending`.
        evaluator: Works out conditions and rules; search shares it.

    Signals:
        changed: Panel and chips follow: `state` changed, or it has been worked out.
        view_changed: Lanes and list follow: `view` changed.
        failed: Why a condition or rule could not be worked out.
    """

    changed = Signal()
    view_changed = Signal()
    failed = Signal(str)

    def __init__(self, trace: Trace, history: EditHistory, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._events = trace.events
        self._history = history
        self._job = Task(self)
        self._job.done.connect(self._on_view)
        self._job.failed.connect(self._on_failed)
        self.evaluator = FilterEvaluator(trace)
        self.state = FilterState(_all(CODE_COUNT), _all(len(trace.threads)))
        self.view = FilterView(selected=len(trace.events))
        self._shown = self.state  # `view` is what this one does
        self._all_codes, self._all_threads = self.state.codes, self.state.threads

    @property
    def codes(self) -> Mask:
        """bool, shape (32768,): False = events of this code are hidden."""
        return self._shown.codes if self._shown.effect is Effect.HIDE else self._all_codes

    @property
    def threads(self) -> Mask:
        """bool, shape (threads,): False = the thread is hidden, by itself or because nothing of it shows."""
        threads = self._shown.threads if self._shown.effect is Effect.HIDE else self._all_threads
        return threads if self.view.threads is None else threads & self.view.threads

    @property
    def rows(self) -> NDArray[np.uint32] | None:
        """uint32, ascending event rows that show; None = all of them."""
        return self.view.rows

    @property
    def is_active(self) -> bool:
        """True if some check box is off, or some condition or rule is on."""
        return self.state.is_active

    @property
    def is_pending(self) -> bool:
        """True while `view` is older than the filter."""
        return self._job.is_busy

    @property
    def row_count(self) -> int:
        """How many events show."""
        return len(self._events) if self.rows is None else len(self.rows)

    def show_codes(self, codes: NDArray[np.integer] | list[int], show: bool, title: str = "filter of events") -> None:
        """Show or hide all events with these codes."""
        changed = self.state.codes.copy()
        changed[codes] = show
        self.set(changed, self.state.threads, title)

    def show_threads(
        self, threads: NDArray[np.integer] | list[int], show: bool, title: str = "filter of threads"
    ) -> None:
        """Show or hide these rows of the thread table."""
        changed = self.state.threads.copy()
        changed[threads] = show
        self.set(self.state.codes, changed, title)

    def only_codes(self, codes: list[int], title: str) -> None:
        """Hide all events but those with these codes."""
        only = np.zeros_like(self.state.codes)
        only[codes] = True
        self.set(only, self.state.threads, title)

    def only_threads(self, threads: NDArray[np.integer] | list[int], title: str) -> None:
        """Hide all rows of the thread table but these."""
        only = np.zeros_like(self.state.threads)
        only[threads] = True
        self.set(self.state.codes, only, title)

    @Slot()
    def show_all(self) -> None:
        """Take the filter away."""
        plain = replace(self.state, codes=self._all_codes, threads=self._all_threads, stack=PassStack())
        self.put(plain, "no filter")

    def set(self, codes: Mask, threads: Mask, title: str) -> None:
        """Put other check boxes in force; can be undone under that title."""
        self.put(replace(self.state, codes=codes, threads=threads), title)

    def set_effect(self, effect: Effect) -> None:
        """Say what happens to what is not checked."""
        self.put(replace(self.state, effect=effect), f"{effect.value} what is not checked")

    def set_form(self, codes: list[int], form: str) -> None:
        """Show events as `fast` or `wide` would have logged them, else as they were logged."""
        self.put(self.state.with_form(codes, form), "fast or wide")

    def add_pass(self, expression: str = "", rules: str = "", effect: Effect = Effect.HIDE) -> str:
        """Add a condition or rules; return the name of the new pass.

        Raises:
            UsageError: There are too many.
        """
        name = new_name(self.state.stack)
        item = Pass(name, rules, expression, effect)
        self.put(replace(self.state, stack=self.state.stack.added(item)), "new filter")
        return name

    def change_pass(self, name: str, **changes: Any) -> None:
        """Change fields of a pass."""
        stack = self.state.stack
        item = replace(self.pass_named(name), **changes)
        self.put(replace(self.state, stack=stack.changed(name, item)), "change of a filter")

    def remove_pass(self, name: str) -> None:
        """Take a pass away."""
        self.put(replace(self.state, stack=self.state.stack.removed(name)), "removed filter")

    def combine(self, combination: str) -> None:
        """Say how passes are combined: `A or not B`; empty = all of them must hold.

        Raises:
            ExpressionError: It is faulty or names no pass.
        """
        self.put(replace(self.state, stack=self.state.stack.combined(combination)), "combination of filters")

    def recompute(self) -> None:
        """Evaluate the same filter again: a file of handlers may have changed."""
        self._apply(self.state)

    def pass_named(self, name: str) -> Pass:
        """Return a pass by its name."""
        return next(item for item in self.state.stack.passes if item.name == name)

    @property
    def is_wide(self) -> Mapping[int, bool]:
        """Codes that show in another form than the logged one; True = wide."""
        return self.state.is_wide

    def put(self, state: FilterState, title: str) -> None:
        """Put another filter in force; can be undone under that title."""
        before = self.state
        if state.same(before):
            return
        self._apply(state)
        self._history.add(Edit(title, partial(self._apply, before), partial(self._apply, state)))

    def begin_with(self, state: FilterState) -> None:
        """Begin with a filter that was stored; there is nothing to undo."""
        if not state.same(self.state):
            self._apply(state)

    def reload(self, trace: Trace, evaluator: FilterEvaluator, state: FilterState, view: FilterView) -> None:
        """Take a longer reading of the same file, without a moment of another look; undo goes on.

        Args:
            trace: The reading.
            evaluator: Of the reading.
            state: The filter of now, made for its threads.
            view: What the filter does to it.
        """
        news = view.notices if view.notices != self.view.notices else ()
        self._job.cancel()
        self._events, self.evaluator, self.state = trace.events, evaluator, state
        self._all_threads = _all(len(trace.threads))
        self._show(view)
        if news:
            self.failed.emit("\n".join(news[:5]))

    def close(self) -> None:
        """Cancel the background task."""
        self._job.close()

    def _apply(self, state: FilterState) -> None:
        state = state.for_threads(len(self._all_threads))  # undo may bring one back that is older than the last threads
        self.state = state
        self._job.cancel()
        is_plain = not state.stack.passes and (state.effect is Effect.HIDE or not state.chooses)
        if is_plain and not state.chooses:
            self._show(FilterView(selected=len(self._events)))
        elif is_plain and len(self._events) <= _AT_ONCE:
            self._show(_view_of_rows(passing_rows(self._events, state.codes, state.threads)))
        else:
            function: TaskFunction = partial(evaluate, self.evaluator, state)
            if is_plain:
                function = partial(_rows_of, self._events, state.codes, state.threads)
            self._job.start(function, _PATIENCE_S if len(self._events) <= _AT_ONCE else 0.0)
            if self._job.is_busy:
                self.changed.emit()

    @Slot(object)
    def _on_view(self, result: object) -> None:
        if isinstance(result, np.ndarray):
            result = _view_of_rows(result)
        if isinstance(result, FilterView):
            self._show(result)
            if result.notices:
                self.failed.emit("\n".join(result.notices[:5]))

    def _show(self, view: FilterView) -> None:
        self.view, self._shown = view, self.state
        self.changed.emit()
        self.view_changed.emit()

    @Slot(object)
    def _on_failed(self, error: object) -> None:
        if not isinstance(error, SatviewError):
            raise error if isinstance(error, Exception) else RuntimeError(error)
        self.failed.emit(str(error))


def _view_of_rows(rows: NDArray[np.uint32]) -> FilterView:
    return FilterView(rows=rows, selected=len(rows))


def _rows_of(
    events: EventTable, codes: Mask, threads: Mask, is_cancelled: IsCancelled, _report: Report
) -> NDArray[np.uint32]:
    """Run in the task; holds arrays only."""
    return passing_rows(events, codes, threads, is_cancelled)


def passing_rows(
    events: EventTable, codes: Mask, threads: Mask, is_cancelled: IsCancelled | None = None
) -> NDArray[np.uint32]:
    """Return the rows of the events whose code and thread show, ascending, uint32.

    Raises:
        Cancelled: `is_cancelled()` said so.
    """
    return event_rows.rows(events, EventMask(codes, threads), is_cancelled)


def _all(count: int) -> Mask:
    return np.ones(count, np.bool_)
