"""The filter of lanes and event list, and the search for events by a condition or by names."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, Signal, Slot

from satview.base.column_arrays import borrowed
from satview.base.errors import Cancelled, SatviewError, UsageError
from satview.events.wire import CODE_COUNT
from satview.filters import derived_columns as event_rows
from satview.filters.derived_columns import EventMask, TraceDerivedColumns
from satview.filters.diagnostics import ExpressionError
from satview.filters.expressions.expression import Expression
from satview.filters.expressions.nodes import regex
from satview.filters.expressions.semantics import FIELDS
from satview.filters.expressions.syntax import looks_like_condition
from satview.filters.external import EventContext
from satview.filters.passes import Effect, Pass, PassEvaluator, PassStack, never
from satview.filters.rules.handlers import FunctionRule, HandlerFile, Handlers
from satview.filters.rules.text import without_comment
from satview.filters.would_capture import why_nothing
from satview.session.tasks import IsCancelled, Task, TaskFunction
from satview.store.arguments import taught
from satview.store.tables import EventTable
from satview.store.trace import Trace

# The filter of a window as an immutable value, so that undo only has to keep the old one.


Mask = NDArray[np.bool_]
_NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True, eq=False)
class FilterState:
    """The state of a filter: check boxes, conditions and rules.

    Attributes:
        codes: bool, shape (32768,): event codes that are checked. Never changed in place.
        threads: bool, shape (threads,): threads that are checked. Never changed in place.
        effect: Whether unchecked events are hidden or dimmed, or (`MARK`) checked events are highlighted.
        stack: Conditions and rules.
        is_wide: By event code: True = show events as wide mode logs them, False = as fast mode; else as logged.
    """

    codes: Mask
    threads: Mask
    effect: Effect = Effect.HIDE
    stack: PassStack = field(default_factory=PassStack)
    is_wide: Mapping[int, bool] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def chooses(self) -> bool:
        """True if some check box is off."""
        return not (self.codes.all() and self.threads.all())

    @property
    def is_active(self) -> bool:
        """True if some check box is off, or some condition or rule is on."""
        return self.chooses or any(item.is_on for item in self.stack.passes)

    def same(self, other: FilterState) -> bool:
        """Return whether two states are equal."""
        return (
            (self.effect, self.stack, self.is_wide) == (other.effect, other.stack, other.is_wide)
            and np.array_equal(self.codes, other.codes)
            and np.array_equal(self.threads, other.threads)
        )

    def for_threads(self, count: int) -> FilterState:
        """Return the filter for a reloaded trace with `count` threads, of which the first are those of this trace.

        New threads are checked if row 0, the unknown thread, is checked. So a filter that selects only some threads
        hides new ones.
        """
        if len(self.threads) == count:
            return self
        threads = np.full(count, self.threads[0])
        known = self.threads[:count]
        threads[: len(known)] = known
        return replace(self, threads=threads)

    def with_form(self, codes: list[int], form: str) -> FilterState:
        """Return a filter that shows events of the given codes as `fast` or `wide` mode logs them; else as logged."""
        forms = {code: wide for code, wide in self.is_wide.items() if code not in codes}
        if form in ("fast", "wide"):
            forms |= dict.fromkeys(codes, form == "wide")
        return replace(self, is_wide=MappingProxyType(forms))


def new_name(stack: PassStack) -> str:
    """Return the first free name for a pass (a condition or rules): A, B, ... Z, A2, ..."""
    taken = {item.name for item in stack.passes}
    rounds = [""] + [str(i) for i in range(2, len(taken) + 3)]
    return next(letter + number for number in rounds for letter in _NAMES if letter + number not in taken)


def pass_title(item: Pass) -> str:
    """Return a pass (a condition or rules) as one line of text."""
    lines = [without_comment(line).strip() for line in item.rules.splitlines()]
    rules = "; ".join(line for line in lines if line)
    text = " and ".join(part for part in (" ".join(item.expression.split()), rules) if part) or "everything"
    return f"not ({text})" if item.is_inverted else text


# The effect of a filter on every event of a trace, computed on the worker thread.


_CACHE_BYTES: Final = 1 << 27
_CACHE_LEAST: Final = 4
_WAIT_S: Final = 0.02
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, eq=False)
class FilterView:
    """The effect of a filter on a trace; a mask that is None affects no event or thread.

    Attributes:
        rows: uint32, ascending event rows that are shown; None = all.
        passing: bool (events,), events that are shown; None = all.
        by_passes: bool (events,), events that conditions and rules show, whatever the check boxes; None = all.
        dimmed: bool (events,), events that fade.
        marked: bool (events,), events that are highlighted.
        faded: bool (events,), events whose intervals fade: dimmed events; if some are highlighted, all others too.
        threads: bool (threads,), threads with an event that is shown.
        counts: Number of hits of each condition or rule, by the name of its pass.
        selected: Number of events whose code and thread are checked.
        notices: Messages for the user, such as handlers that were switched off.
    """

    rows: NDArray[np.uint32] | None = None
    passing: Mask | None = None
    by_passes: Mask | None = None
    dimmed: Mask | None = None
    marked: Mask | None = None
    faded: Mask | None = None
    threads: Mask | None = None
    counts: dict[str, int] = field(default_factory=dict)
    selected: int = 0
    notices: tuple[str, ...] = ()


class FilterEvaluator(PassEvaluator):
    """Evaluates filters on one trace; may be called by several threads, and evaluates one filter at a time.

    Attributes:
        allowed: Python files that the user allowed to run.
        folder: Folder in which rules look for Python files.
    """

    def __init__(self, trace: Trace) -> None:
        self.derived = TraceDerivedColumns(trace)
        super().__init__(trace, self.derived, borrowed(self._load_function))
        self.allowed: set[Path] = set()
        self.folder = Path()
        self.notices: list[str] = []
        self._limit = max(_CACHE_LEAST, min(32, _CACHE_BYTES // max(1, len(trace.events))))
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Drop cached results, because a Python file with handlers may have changed."""
        self._cache = {}  # a running task keeps the old ones

    def alone(self, is_cancelled: IsCancelled, run: Callable[[], _Result]) -> _Result:
        """Call a function under the lock of this object, and return its result.

        Raises:
            Cancelled: `is_cancelled()` returned True while waiting for the lock or inside the function.
        """
        while not self._lock.acquire(timeout=_WAIT_S):
            if is_cancelled():
                raise Cancelled("the filter was stopped")
        try:
            self._is_cancelled = is_cancelled
            return run()
        finally:
            self._is_cancelled = never
            self._lock.release()

    def hits(self, item: Pass) -> tuple[int, str]:
        """Return the number of events that match a pass without rules, and why there are none (see `why_nothing`)."""
        count = self.result(PassStack((item,))).counts[item.name]
        if count:
            return count, ""
        condition = self._condition(item.expression, negated=False)
        every_event = slice(0, len(self._trace.events))
        return 0, why_nothing(self._built(()), [condition], self._trace, every_event, self.derived)

    def view(self, state: FilterState) -> FilterView:
        """Return the effect of a filter on the trace."""
        trace, is_cancelled = self._trace, self._is_cancelled
        self.notices = []
        result = self.result(state.stack)
        hides = [item for item in state.stack.passes if item.is_on and item.effect is Effect.HIDE]
        by_passes = None
        if state.stack.combination:
            by_passes = result.hits
        elif hides:
            by_passes = ~result.hidden
        dimmed, marked, passing = result.dimmed, result.marked, by_passes
        selected = len(trace.events)
        if state.chooses:
            checked = event_rows.event_mask(trace.events, EventMask(state.codes, state.threads), is_cancelled)
            selected = int(np.count_nonzero(checked))
            if state.effect is Effect.HIDE:
                passing = checked if passing is None else passing & checked
            elif state.effect is Effect.DIM:
                dimmed = dimmed | ~checked
            elif state.effect is Effect.MARK:
                marked = marked | checked
        threads = rows = None
        if passing is not None:
            dimmed, marked = dimmed & passing, marked & passing
            rows = event_rows.rows_of(passing)
            threads = np.zeros(len(trace.threads), np.bool_)
            for part in event_rows.chunks(len(rows)):
                threads[trace.events.thread.take(rows[part])] = True
        shown_dimmed, shown_marked = (mask if mask.any() else None for mask in (dimmed, marked))
        return FilterView(
            rows,
            passing,
            by_passes,
            shown_dimmed,
            shown_marked,
            shown_dimmed if shown_marked is None else ~marked | dimmed,
            threads if by_passes is not None else None,
            result.counts,
            selected,
            tuple(self.notices),
        )

    def _load_function(self, position: str) -> _StoppableRule:
        handlers = Handlers(self.allowed.__contains__, self._trace.release, self.folder, self.notices.append)
        return _StoppableRule(handlers(position), self._is_cancelled)


class _StoppableRule:
    """A rule's Python handler, called for each event; raises `Cancelled` instead once its task is cancelled."""

    def __init__(self, rule: FunctionRule, is_cancelled: IsCancelled) -> None:
        self._rule, self._is_cancelled = rule, is_cancelled
        self.file: HandlerFile = rule.file
        self.position = rule.position

    def __call__(self, derived: EventContext, /) -> int:
        """Return the handler's result for an event, given what the handler can read about the event.

        Raises:
            Cancelled: The task was cancelled.
        """
        if self._is_cancelled():
            raise Cancelled("the filter was stopped")
        return self._rule(derived)


def evaluate(evaluator: FilterEvaluator, state: FilterState, is_cancelled: IsCancelled) -> FilterView:
    """Return the effect of a filter on the evaluator's trace; may be called on any thread."""
    return evaluator.alone(is_cancelled, lambda: evaluator.view(state))


def count_hits(evaluator: FilterEvaluator, item: Pass, is_cancelled: IsCancelled) -> tuple[int, str]:
    """Return the number of events that match a pass with a condition, and why there are none (see `why_nothing`)."""
    return evaluator.alone(is_cancelled, lambda: evaluator.hits(item))


def find_hits(evaluator: FilterEvaluator, item: Pass, is_cancelled: IsCancelled) -> NDArray[np.uint32]:
    """Return the rows of the events that match a pass (a condition or rules), ascending, uint32 (n,)."""
    return evaluator.alone(is_cancelled, lambda: event_rows.rows_of(evaluator.mask(item)))


def make_columns_ready(evaluator: FilterEvaluator, is_cancelled: IsCancelled) -> None:
    """Compute the columns of durations, priorities and latencies in advance, while the user types a condition."""
    evaluator.alone(is_cancelled, evaluator.derived.make_ready)


# Undo and redo for what the user changes in the view: filters and lanes.


_LENGTH: Final = 100


@dataclass(frozen=True, slots=True)
class Edit:
    """A change that can be undone: its title, functions that undo and redo the change, and the changed objects."""

    title: str
    undo: Callable[[], object]
    redo: Callable[[], object]
    subjects: tuple[QObject, ...]


class EditHistory(QObject):
    """The changes that can be undone and redone.

    Signals:
        changed: A change was added, undone, redone or dropped.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._done: list[Edit] = []
        self._undone: list[Edit] = []
        self._parts: list[Edit] | None = None  # of one change that is under way

    @property
    def undo_title(self) -> str:
        """Title of the change that `undo` would revert; empty if there is no such change."""
        return self._done[-1].title if self._done else ""

    @property
    def redo_title(self) -> str:
        """Title of the change that `redo` would repeat; empty if there is no such change."""
        return self._undone[-1].title if self._undone else ""

    def add(self, edit: Edit) -> None:
        """Record a change that was made."""
        if self._parts is not None:
            self._parts.append(edit)
            return
        self._done.append(edit)
        del self._done[:-_LENGTH]
        self._undone.clear()
        self.changed.emit()

    @contextmanager
    def as_one(self, title: str) -> Iterator[None]:
        """Record the changes that are made in a block as one."""
        parts: list[Edit] = []
        self._parts = parts
        try:
            yield
        finally:
            self._parts = None
            if parts:
                self.add(Edit(title, lambda: [part.undo() for part in reversed(parts)],
                              lambda: [part.redo() for part in parts],
                              tuple(subject for part in parts for subject in part.subjects)))  # fmt: skip

    def forget(self, subject: QObject) -> None:
        """Drop the changes to an object that is being deleted."""
        self._done = [edit for edit in self._done if subject not in edit.subjects]
        self._undone = [edit for edit in self._undone if subject not in edit.subjects]
        self.changed.emit()

    def undo(self) -> None:
        """Undo the last change."""
        if self._done:
            edit = self._done.pop()
            self._undone.append(edit)
            edit.undo()
            self.changed.emit()

    def redo(self) -> None:
        """Redo the last undone change."""
        if self._undone:
            edit = self._undone.pop()
            self._done.append(edit)
            edit.redo()
            self.changed.emit()


_PATIENCE_S: Final = 0.01  # small traces have their answer by then, and no frame shows the old one
_AT_ONCE: Final = 4_000_000  # up to that many events a filter answers within a frame or two; above, in the background


class FilterStack(QObject):
    """The active filter, with undo. It never removes data.

    Attributes:
        state: The filter: check boxes, conditions, rules.
        view: The effect of the filter on the events; while `is_pending`, still the effect of the previous filter.
        evaluator: Evaluates conditions and rules; shared with search.

    Signals:
        changed: `state` changed, or its evaluation finished; panel and chips must update.
        view_changed: `view` changed; lanes and list must update.
        failed: A condition or rule could not be evaluated; the text says why.
    """

    changed = Signal()
    view_changed = Signal()
    failed = Signal(str)

    def __init__(self, trace: Trace, history: EditHistory, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._events = trace.events
        self._history = history
        self._job = Task(self, self._on_view, self._on_failed)
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
        """bool, shape (threads,): False = hidden by its check box, or because none of its events is shown."""
        threads = self._shown.threads if self._shown.effect is Effect.HIDE else self._all_threads
        return threads if self.view.threads is None else threads & self.view.threads

    @property
    def rows(self) -> NDArray[np.uint32] | None:
        """uint32, ascending event rows that are shown; None = all of them."""
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
        """Number of events that are shown."""
        return len(self._events) if self.rows is None else len(self.rows)

    def show_codes(self, codes: NDArray[np.integer] | list[int], show: bool, title: str = "filter of events") -> None:
        """Show or hide all events with these codes."""
        changed = self.state.codes.copy()
        changed[codes] = show
        self.set(changed, self.state.threads, title)

    def show_threads(
        self, threads: NDArray[np.integer] | list[int], show: bool, title: str = "filter of threads"
    ) -> None:
        """Show or hide the threads with these rows of the thread table."""
        changed = self.state.threads.copy()
        changed[threads] = show
        self.set(self.state.codes, changed, title)

    def only_codes(self, codes: list[int], title: str) -> None:
        """Hide all events but those with these codes."""
        only = np.zeros_like(self.state.codes)
        only[codes] = True
        self.set(only, self.state.threads, title)

    def only_threads(self, threads: NDArray[np.integer] | list[int], title: str) -> None:
        """Hide all threads but those with these rows of the thread table."""
        only = np.zeros_like(self.state.threads)
        only[threads] = True
        self.set(self.state.codes, only, title)

    @Slot()
    def show_all(self) -> None:
        """Remove the filter."""
        plain = replace(self.state, codes=self._all_codes, threads=self._all_threads, stack=PassStack())
        self.put(plain, "no filter")

    def set(self, codes: Mask, threads: Mask, title: str) -> None:
        """Set the check boxes; the title names the change for undo."""
        self.put(replace(self.state, codes=codes, threads=threads), title)

    def set_effect(self, effect: Effect) -> None:
        """Set whether unchecked events are hidden or dimmed, or checked events are highlighted."""
        self.put(replace(self.state, effect=effect), f"{effect.value} what is not checked")

    def set_form(self, codes: list[int], form: str) -> None:
        """Show events as `fast` or `wide` mode logs them; for any other `form`, as they were logged."""
        self.put(self.state.with_form(codes, form), "fast or wide")

    def add_pass(self, expression: str = "", rules: str = "", effect: Effect = Effect.HIDE) -> str:
        """Add a pass (a condition, rules, or both) to the filter; return its name.

        The effect is to HIDE or DIM the events that do not match, MARK those that match, or only COUNT these.

        Raises:
            UsageError: There are too many passes.
        """
        name = new_name(self.state.stack)
        item = Pass(name, rules, expression, effect)
        self.put(replace(self.state, stack=self.state.stack.added(item)), "new filter")
        return name

    def change_pass(self, name: str, **changes: Any) -> None:
        """Change a pass (a condition or rules); `changes` are the new values of its fields, by name."""
        stack = self.state.stack
        item = replace(self.pass_named(name), **changes)
        self.put(replace(self.state, stack=stack.changed(name, item)), "change of a filter")

    def remove_pass(self, name: str) -> None:
        """Remove a pass."""
        self.put(replace(self.state, stack=self.state.stack.removed(name)), "removed filter")

    def combine(self, combination: str) -> None:
        """Set the expression that combines passes by their names: `A or not B`; empty = all passes must hold.

        Raises:
            ExpressionError: The combination is faulty or names an unknown pass.
        """
        self.put(replace(self.state, stack=self.state.stack.combined(combination)), "combination of filters")

    def recompute(self) -> None:
        """Evaluate the filter again, because a Python file with handlers may have changed."""
        self._apply(self.state)

    def pass_named(self, name: str) -> Pass:
        """Return the pass (a condition or rules) with the given name."""
        return next(item for item in self.state.stack.passes if item.name == name)

    @property
    def is_wide(self) -> Mapping[int, bool]:
        """By event code: True = events are shown as wide mode logs them, False = as fast mode; else as logged."""
        return self.state.is_wide

    def put(self, state: FilterState, title: str) -> None:
        """Replace the active filter by another; the title names the change for undo."""
        before = self.state
        if state.same(before):
            return
        self._apply(state)
        self._history.add(Edit(title, partial(self._apply, before), partial(self._apply, state), (self,)))

    def begin_with(self, state: FilterState) -> None:
        """Apply a stored filter without an entry in the undo history."""
        if not state.same(self.state):
            self._apply(state)

    def reload(self, trace: Trace, evaluator: FilterEvaluator, state: FilterState, view: FilterView) -> None:
        """Switch to the reloaded trace in one repaint, with its filter and the effect of that; undo history is kept."""
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
        state = state.for_threads(len(self._all_threads))  # undo may restore a filter from before a reload
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
                function = partial(passing_rows, self._events, state.codes, state.threads)
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
    def _on_failed(self, error: Exception) -> None:
        if not isinstance(error, SatviewError):
            raise error
        self.failed.emit(str(error))


def _view_of_rows(rows: NDArray[np.uint32]) -> FilterView:
    return FilterView(rows=rows, selected=len(rows))


def passing_rows(
    events: EventTable, codes: Mask, threads: Mask, is_cancelled: IsCancelled | None = None
) -> NDArray[np.uint32]:
    """Return the rows of the events whose code and thread are shown, ascending, uint32 (n,).

    Raises:
        Cancelled: `is_cancelled()` returned True.
    """
    return event_rows.rows(events, EventMask(codes, threads), is_cancelled)


def _all(count: int) -> Mask:
    return np.ones(count, np.bool_)


# Search for events: by a condition, or by names of events, public calls, classes, processes and threads.


_CHUNK: Final = 1 << 17
_FIELD_AND_VALUE: Final = re.compile(r"(\w+)\s+([\w.]+)")


def suggested(text: str) -> str:
    """Return the condition that a field name followed by a value probably means: `pid == 7` for `pid 7`; else ""."""
    parts = _FIELD_AND_VALUE.fullmatch(text)
    return f"{parts[1]} == {parts[2]}" if parts is not None and parts[1] in FIELDS else ""


class Search(QObject):
    """Searches in the background for the events that match a text, and holds the hits, for one window.

    Attributes:
        text: The text that is searched for; empty = no search.
        hits: uint32, ascending event rows.
        error: Why the text cannot be searched for; empty if it can.

    Signals:
        changed: Text, hits or error changed.
    """

    changed = Signal()

    def __init__(self, trace: Trace, parent: QObject | None = None, evaluator: FilterEvaluator | None = None) -> None:
        super().__init__(parent)
        self._trace = trace
        self._evaluator = evaluator or FilterEvaluator(trace)
        self._job = Task(self, self._on_hits, self._on_failed)
        self.text = ""
        self.error = ""
        self.hits: NDArray[np.uint32] = np.empty(0, np.uint32)

    @property
    def is_pending(self) -> bool:
        """True while the search runs."""
        return self._job.is_busy

    def find(self, text: str) -> None:
        """Start to search for a text in the background."""
        self.text = text.strip()
        self.error = ""
        self._job.cancel()
        self.hits = np.empty(0, np.uint32)
        if self.text:
            try:
                self._job.start(task_for(self.text, self._trace, self._evaluator))
            except UsageError as error:
                self.error = str(error)
        self.changed.emit()

    def reload(self, trace: Trace, evaluator: FilterEvaluator, hits: NDArray[np.uint32]) -> None:
        """Switch to the reloaded trace and to `hits`, the hits of the current text in the reloaded trace."""
        self._job.cancel()
        self._trace, self._evaluator, self.hits = trace, evaluator, hits
        self.changed.emit()

    def next_hit(self, event: int, shown: NDArray[np.uint32] | None = None) -> int | None:
        """Return the row of the first search hit after an event, else of the very first hit; None without hits.

        Args:
            event: Row to start from; -1 = from the beginning.
            shown: Rows that a filter shows; None = all.
        """
        hits = self.shown_hits(shown)
        return int(hits[np.searchsorted(hits, event, side="right") % len(hits)]) if len(hits) else None

    def previous_hit(self, event: int, shown: NDArray[np.uint32] | None = None) -> int | None:
        """Return the last search hit before an event, or the very last hit if none precedes; None without hits."""
        hits = self.shown_hits(shown)
        return int(hits[int(np.searchsorted(hits, event, side="left")) - 1]) if len(hits) else None

    def shown_hits(self, shown: NDArray[np.uint32] | None) -> NDArray[np.uint32]:
        """Return the hits among the rows `shown` that a filter shows (None = all hits), ascending, uint32 (n,)."""
        if shown is None:
            return self.hits
        return self.hits[np.searchsorted(shown, self.hits) < np.searchsorted(shown, self.hits, side="right")]

    def close(self) -> None:
        """Cancel the background task."""
        self._job.close()

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        if not isinstance(error, SatviewError):
            raise error
        self.error = str(error)
        self.changed.emit()

    def _on_hits(self, hits: object) -> None:
        assert isinstance(hits, np.ndarray)
        self.hits = hits
        self.changed.emit()


def task_for(text: str, trace: Trace, evaluator: FilterEvaluator) -> TaskFunction:
    """Return a task function that searches for a text: as a condition if the text is a valid one, else in names.

    The task returns the ascending rows of matching events, uint32 (n,).

    Raises:
        UsageError: The condition or the pattern is faulty.
    """
    is_pattern = len(text) > 2 and text.startswith("/") and text.endswith("/")
    try:
        Expression(text, trace.release, taught=taught(trace))
    except ExpressionError as error:
        if not is_pattern and looks_like_condition(text):
            raise UsageError(f"column {error.start + 1}: {error.message}") from error
        try:
            return partial(find_names, trace, fits_of(text))
        except ExpressionError as fault:
            raise UsageError(f"pattern, column {fault.start + 1}: {fault.message}") from fault
    return partial(find_hits, evaluator, Pass("search", "", text))


def fits_of(text: str) -> Callable[[str], bool]:
    """Return a function that tells whether a name contains a text, or matches `/a regular expression/`; ignores case.

    Raises:
        ExpressionError: The regular expression is faulty, or its cost has no bound.
    """
    if len(text) > 2 and text.startswith("/") and text.endswith("/"):
        return regex(text[1:-1], ignores_case=True, offset=1).matches
    requested = text.casefold()
    return lambda name: requested in name.casefold()


def find_names(trace: Trace, fits: Callable[[str], bool], is_cancelled: IsCancelled) -> NDArray[np.uint32]:
    """Return the rows of the events for whose own name or thread name `fits` is True, ascending, uint32 (n,).

    Raises:
        Cancelled: `is_cancelled()` returned True.
    """
    events = trace.events
    codes, threads = matching_codes(trace, fits), matching_threads(trace, fits)
    parts = []
    for start in range(0, len(events), _CHUNK):
        if is_cancelled():
            raise Cancelled
        part = slice(start, start + _CHUNK)
        mask = codes.take(events.code[part])
        mask |= threads.take(events.thread[part])
        parts.append((np.flatnonzero(mask) + start).astype(np.uint32))
    return np.concatenate(parts) if parts else np.empty(0, np.uint32)


def matching_codes(trace: Trace, fits: Callable[[str], bool]) -> NDArray[np.bool_]:
    """Return the event codes that occur in a trace and for one of whose names `fits` is True, bool (32768,)."""
    mask = np.zeros(CODE_COUNT, np.bool_)
    for code in np.flatnonzero(trace.code_counts):
        spec = trace.catalogue.spec(int(code))
        names = (spec.name, spec.label, f"{spec.class_name}/{spec.name}", *spec.calls)
        mask[code] = any(map(fits, names))
    return mask


def matching_threads(trace: Trace, fits: Callable[[str], bool]) -> NDArray[np.bool_]:
    """Return the threads for whose name `fits` is True, bool (threads,)."""
    threads = trace.threads
    return np.array([row > 0 and fits(trace.thread_name(row)) for row in range(len(threads))], np.bool_)
