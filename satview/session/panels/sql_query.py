"""Queries in SQL from the window: the task in the background, and what a row of the result is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from satview.base.safe_text import visible_line
from satview.base.time import TimeWindow
from satview.session.tasks import IsCancelled, Report
from satview.store.trace import Trace

if TYPE_CHECKING:
    from satview.tables.result import Result
    from satview.tables.views import View

_SHOWN: Final = 1000  # rows that a query from the list of views returns
_ANSWER_BYTES: Final = 256 << 20
_SAMPLES: Final = {"bin_ns": "10000000", "thread_row": "1", "deadline_ns": "1000000"}


def run_query(trace: Trace, query: str, is_cancelled: IsCancelled, _report: Report) -> Result:
    """Return the result of a query, on a worker thread.

    Raises:
        UsageError: As `sql`.
        Cancelled: It was stopped.
    """
    from satview.tables.question import Limits
    from satview.tables.sql import sql  # with the first query: brings all analyses

    return sql(trace, query, Limits(answer_bytes=_ANSWER_BYTES), is_cancelled, is_part_enough=True)


def query_of(view: View, trace: Trace, window: TimeWindow) -> str:
    """Return a query of a view, or of a macro with arguments that fit the visible window."""
    clock = trace.clock
    given = _SAMPLES | {
        "from_ns": str(clock.ns(max(window.start, trace.window.start))),
        "to_ns": str(clock.ns(min(window.end, trace.window.end))),
        "at_ns": str(clock.ns(max(window.start, trace.window.start))),
    }
    arguments = ", ".join(given[parameter] for parameter in view.parameters)
    source = f"{view.name}({arguments})" if arguments else view.name
    return f"select * from {source} limit {_SHOWN}"  # noqa: S608  -- names and numbers of our own


def event_of_row(trace: Trace, found: Result, row: int) -> int | None:
    """Return the event that a row is about: its column `event`, else the first `..._event`; None if it has none."""
    columns = [name for name in found.columns if name == "event" or name.endswith("_event")]
    for name in sorted(columns, key=lambda name: name != "event"):
        value = _number(found, name, row)
        if value is not None and 0 <= value < len(trace.events):
            return value
    return None


def window_of_row(trace: Trace, found: Result, row: int) -> TimeWindow | None:
    """Return the range that a row is about, from its columns `start_...` and `end_...`; None if it has none.

    A moment, `time_...` or a start without an end, is a range of one cycle.
    """
    start = _cycles(trace, found, "start", row)
    start = _cycles(trace, found, "time", row) if start is None else start
    if start is None:
        return None
    end = _cycles(trace, found, "end", row)
    window = TimeWindow(start, max(end if end is not None else start, start) + 1)
    limits = trace.window
    return window if window.start < limits.end and window.end > limits.start else None


def cell_text(value: Any) -> str:
    """Return a value of a result for a table: on one line, null as nothing."""
    from satview.tables.result import value_text  # as above

    return visible_line(value_text(value))


def _cycles(trace: Trace, found: Result, name: str, row: int) -> int | None:
    cycles = _number(found, f"{name}_cycles", row)
    if cycles is not None:
        return cycles
    ns = _number(found, f"{name}_ns", row)
    return None if ns is None else trace.clock.cycles(ns)


def _number(found: Result, name: str, row: int) -> int | None:
    if name not in found.columns:
        return None
    value = found.value(row, name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
