"""Model of the panel SQL: completes and runs queries, and prepares result rows to be drawn as lanes and plots."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.safe_text import visible_line
from satview.base.time import Clock, TimeWindow
from satview.filters.expressions.syntax import Completion
from satview.session.lanes.class_loader import timing_of
from satview.session.tasks import IsCancelled
from satview.store.trace import Trace
from satview.tables.result import value_text
from satview.tables.schema import SCHEMAS, views
from satview.tables.sql import Limits, sql

if TYPE_CHECKING:
    from satview.tables.result import Result
    from satview.tables.schema import View


# Completion at the cursor of a query: tables, views, columns of its tables, keywords.


_WORD: Final = re.compile(r"[A-Za-z_]\w*$")
_OWNER: Final = re.compile(r"([A-Za-z_]\w*)\.$")
_ALIAS: Final = re.compile(r"\b(?:from|join)\s+(\w+)(?:\s+(?:as\s+)?(\w+))?", re.IGNORECASE)
_AFTER_SOURCE: Final = re.compile(r"\b(?:from|join)\s+$", re.IGNORECASE)
_TEXT: Final = re.compile(r"'(?:[^']|'')*$")
_MOST: Final = 60
_KEYWORDS: Final = (
    "select", "from", "where", "group by", "order by", "limit", "join", "using", "left join", "having", "distinct",
    "and", "or", "not", "in", "between", "like", "is null", "as", "asc", "desc", "case", "when", "then", "else", "end",
    "with", "union all", "over", "partition by", "describe", "summarize", "count", "sum", "min", "max", "avg",
    "quantile_disc", "median", "first", "last", "coalesce", "cast",
)  # fmt: skip


def sql_completions(
    text: str, position: int, more: Callable[[], Iterable[tuple[str, str]]] = tuple
) -> list[Completion]:
    """Return completions at the cursor, most likely first; none within a string. `more` returns more tables."""
    before = text[:position]
    if _TEXT.search(re.sub(r"'(?:[^']|'')*'", "0", before)):
        return []
    typed = _WORD.search(before)
    start = typed.start() if typed else position
    word, head = before[start:].lower(), before[:start]
    if owner := _OWNER.search(head):
        offered = _columns(_sources(text).get(owner[1].lower(), owner[1].lower()))
    elif _AFTER_SOURCE.search(head):
        offered = [*_tables(), *more()]
    else:
        names = dict.fromkeys(_sources(text).values())
        offered = [pair for name in names for pair in _columns(name)]
        offered += [*_tables(), *more()] if word else []
        offered += [(keyword, "") for keyword in _KEYWORDS] if word else []
    fits = {name: says for name, says in reversed(offered) if name.lower().startswith(word) and name.lower() != word}
    fitting = [name for name, _ in dict.fromkeys(offered) if name in fits]
    return [Completion(name, start, position, fits[name].replace("`", "")) for name in dict.fromkeys(fitting)][:_MOST]


def _sources(text: str) -> dict[str, str]:
    """Return the tables and views in a query: lower-case table name by lower-case name or alias."""
    table_of = {}
    for name, alias in _ALIAS.findall(text):
        table_of[name.lower()] = name.lower()
        if alias and alias.lower() not in (word.split()[0] for word in _KEYWORDS):
            table_of[alias.lower()] = name.lower()
    return table_of


def _columns(name: str) -> list[tuple[str, str]]:
    if name in SCHEMAS:
        return [(column.name, column.meaning) for column in SCHEMAS[name].columns]
    return [(column, "") for column in views()[name].columns] if name in views() else []


def _tables() -> list[tuple[str, str]]:
    tables = [(schema.name, schema.meaning) for schema in SCHEMAS.values()]
    return [*tables, *((view.usage, view.meaning) for view in views().values())]


# Drawing the result of a query: values over time, or intervals of a lane.


_Ints = NDArray[np.int64]
_STARTS: Final = ("start_cycles", "time_cycles", "start_ns", "time_ns", "created_ns", "cause_cycles", "cause_ns")
_ENDS: Final = ("end_cycles", "end_ns", "destroyed_ns")
_LENGTHS: Final = ("length_cycles", "length_ns", "response_ns", "duration_ns", "round_trip_ns")
_GROUPS: Final = ("label", "state", "name", "class", "cpu", "vector", "thread", "process", "kind")
# Columns of numbers that identify something and are not worth drawing.
_NUMBERS: Final = frozenset(("event", "thread", "process", "cpu", "bin", "code", "client", "server", "message", "pid",
                             "tid", "waker", "blocker", "vector", "object", "lane"))  # fmt: skip
MOST_GROUPS: Final = 12


@dataclass(frozen=True, slots=True)
class Drawing:
    """The rows of an SQL result that have a time and so can be drawn; one array element per row, (n,).

    Attributes:
        row: int64, row of the result.
        start_cycles: int64, time of the row, or start of its interval.
        end_cycles: int64, end of the interval; equal to the start for rows without an end.
        has_ends: True if the rows are intervals.
        group: int64, index into `groups`.
        groups: Values that the rows are grouped by; if there are too many, the last group has the less frequent ones.
        values: float64 (n,) of each numeric column that can be plotted, by column name; NaN for null.
    """

    row: _Ints
    start_cycles: _Ints
    end_cycles: _Ints
    has_ends: bool
    group: _Ints
    groups: tuple[str, ...]
    values: dict[str, NDArray[np.float64]]


def drawing_of(trace: Trace, result: Result) -> Drawing | str:
    """Return the drawable rows of a result, or a sentence on why there are none."""
    start_name = _first(result, _STARTS)
    if start_name is None:
        return "No column gives a time: a plot needs start_ns, time_ns or their cycles."
    start, is_known = _drawn_cycles(trace.clock, result, start_name)
    end_name, length_name = _first(result, _ENDS), _first(result, _LENGTHS)
    end, has_end = start, is_known
    if end_name is not None:
        end, has_end = _drawn_cycles(trace.clock, result, end_name)
    elif length_name is not None:
        length, has_end = _numbers(result, length_name)
        whole = np.maximum(length, 0).astype(np.int64)
        if length_name.endswith("_ns"):
            whole = trace.clock.cycles_array(whole) - trace.clock.start_cycles
        end = start + whole
    rows = np.flatnonzero(is_known)
    if not len(rows):
        return "No row has a time."
    group, groups = _grouped(result, rows, {start_name, end_name, length_name})
    used = {start_name, end_name}
    values = {}
    for name in result.columns:
        if name in used or name in _NUMBERS or name.endswith(("_event", "_pid")) or not _is_number(result, name):
            continue
        numbers, is_there = _numbers(result, name)
        values[name] = np.where(is_there, numbers, np.nan)[rows]
    return Drawing(
        rows, start[rows], np.where(has_end, np.maximum(end, start), start)[rows],
        end_name is not None or length_name is not None, group, groups, values,
    )  # fmt: skip


def _first(result: Result, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in result.columns and _is_number(result, name)), None)


def _is_number(result: Result, name: str) -> bool:
    kind = str(result.arrow().column(name).type)
    return kind.startswith(("int", "uint", "float", "double", "decimal", "half"))


def _numbers(result: Result, name: str) -> tuple[NDArray[np.float64] | _Ints, NDArray[np.bool_]]:
    """Return the numeric column `name` of a result, 0 for null, and which values are not null, (rows,) each."""
    column = result.arrow().column(name)
    is_valid = np.asarray(column.is_valid().to_numpy())
    filled = column.fill_null(0) if column.null_count else column
    values: NDArray[Any] = np.asarray(filled.to_numpy())
    return values.astype(np.int64) if values.dtype.kind in "iu" else values.astype(np.float64), is_valid


def _drawn_cycles(clock: Clock, result: Result, name: str) -> tuple[_Ints, NDArray[np.bool_]]:
    values, is_valid = _numbers(result, name)
    is_valid &= np.isfinite(values) & (np.abs(values) < 1 << 62)
    whole = np.where(is_valid, values, 0).astype(np.int64)
    return (whole if name.endswith("_cycles") else clock.cycles_array(whole)), is_valid


def _grouped(result: Result, rows: _Ints, used: set[str | None]) -> tuple[_Ints, tuple[str, ...]]:
    """Return the group of each row, by the first text column or else an id column that is not `used`; and the names."""
    names = [name for name in (*_GROUPS, *result.columns) if name in result.columns and name not in used]
    texts = [name for name in names if str(result.arrow().column(name).type) in ("string", "large_string")
             or str(result.arrow().column(name).type).startswith("dictionary")]  # fmt: skip
    name = next(iter(texts or [name for name in names if name in _GROUPS]), None)
    if name is None:
        return np.zeros(len(rows), np.int64), ("",)
    column = result.arrow().column(name).take(rows).combine_chunks()
    if hasattr(column, "dictionary"):
        column = column.dictionary_decode()
    coded = column.dictionary_encode("encode")  # a code for null, too
    shown, place = np.unique([str(value) for value in coded.dictionary.to_pylist()], return_inverse=True)
    code = place[np.asarray(coded.indices)]
    counts = np.bincount(code, minlength=len(shown))
    if len(shown) <= MOST_GROUPS:
        return code.astype(np.int64), tuple(f"{name} {text}" if name not in texts else text for text in shown.tolist())
    often = np.argsort(-counts, kind="stable")[: MOST_GROUPS - 1]
    position = np.full(len(shown), MOST_GROUPS - 1, np.int64)
    position[np.sort(often)] = np.arange(MOST_GROUPS - 1)
    return position[code], (*shown[np.sort(often)].tolist(), f"{len(shown) - MOST_GROUPS + 1} others")


# Queries of the window: the background task, and the event or time range of a result row.


_SHOWN: Final = 1000  # rows that a query from the list of views returns
_ANSWER_BYTES: Final = 256 << 20
_SAMPLES: Final = {"bin_ns": "10000000", "thread_row": "1", "deadline_ns": "1000000"}


def run_query(trace: Trace, query: str, timing_file: str, is_cancelled: IsCancelled) -> Result:
    """Return the result of a query; for a worker thread.

    Args:
        trace: The trace.
        query: A SELECT, WITH or similar statement over the tables, views and macros of the trace.
        timing_file: Name of the timing file, for the tables on activities; empty = none.
        is_cancelled: Polled during the query; True stops the query.

    Raises:
        UsageError: The query or the timing file is faulty, or the query exceeds a limit.
        Cancelled: `is_cancelled()` returned True.
    """
    return sql(trace, query, Limits(answer_bytes=_ANSWER_BYTES), is_cancelled, is_part_enough=True,
               timing=timing_of(trace, timing_file))  # fmt: skip


def query_of(view: View, trace: Trace, window: TimeWindow) -> str:
    """Return the text of a query for the first 1000 rows of a view, or of a macro called for the visible window."""
    clock = trace.clock
    value_of = _SAMPLES | {
        "from_ns": str(clock.ns(max(window.start, trace.window.start))),
        "to_ns": str(clock.ns(min(window.end, trace.window.end))),
        "at_ns": str(clock.ns(max(window.start, trace.window.start))),
    }
    arguments = ", ".join(value_of[parameter] for parameter in view.parameters)
    source = f"{view.name}({arguments})" if arguments else view.name
    return f"select * from {source} limit {_SHOWN}"  # noqa: S608  -- names and numbers of our own


def event_of_row(trace: Trace, result: Result, row: int) -> int | None:
    """Return the event that a result row names in column `event`, else in the first `..._event`; None if in none."""
    columns = [name for name in result.columns if name == "event" or name.endswith("_event")]
    for name in sorted(columns, key=lambda name: name != "event"):
        value = _number(result, name, row)
        if value is not None and 0 <= value < len(trace.events):
            return value
    return None


def window_of_row(trace: Trace, result: Result, row: int) -> TimeWindow | None:
    """Return the time range of a result row from its columns `start_...` and `end_...`; None if not within the trace.

    For a column `time_...`, or a start without an end, the range is one cycle long.
    """
    start = _cycles(trace, result, "start", row)
    start = _cycles(trace, result, "time", row) if start is None else start
    if start is None:
        return None
    end = _cycles(trace, result, "end", row)
    window = TimeWindow(start, max(end if end is not None else start, start) + 1)
    limits = trace.window
    return window if window.start < limits.end and window.end > limits.start else None


def cell_text(value: Any) -> str:
    """Return a result value as one line of text; empty for null."""
    return visible_line(value_text(value))


def _cycles(trace: Trace, result: Result, name: str, row: int) -> int | None:
    cycles = _number(result, f"{name}_cycles", row)
    if cycles is not None:
        return cycles
    ns = _number(result, f"{name}_ns", row)
    return None if ns is None else trace.clock.cycles(ns)


def _number(result: Result, name: str, row: int) -> int | None:
    if name not in result.columns:
        return None
    value = result.value(row, name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
