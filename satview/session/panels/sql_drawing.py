"""What can be drawn of the result of a query: values over time, or intervals of a lane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.time import Clock
from satview.store.trace import Trace

if TYPE_CHECKING:
    from satview.tables.result import Result

_Ints = NDArray[np.int64]
_STARTS: Final = ("start_cycles", "time_cycles", "start_ns", "time_ns", "created_ns", "cause_cycles", "cause_ns")
_ENDS: Final = ("end_cycles", "end_ns", "destroyed_ns")
_LENGTHS: Final = ("length_cycles", "length_ns", "response_ns", "duration_ns", "round_trip_ns")
_GROUPS: Final = ("label", "state", "name", "class", "cpu", "vector", "thread", "process", "kind")
# Numbers of rows and things, which are no values.
_NUMBERS: Final = frozenset(("event", "thread", "process", "cpu", "bin", "code", "client", "server", "message", "pid",
                             "tid", "waker", "blocker", "vector", "object", "lane"))  # fmt: skip
MOST_GROUPS: Final = 12


@dataclass(frozen=True, slots=True)
class Drawing:
    """Rows of a result that have a time, (n,) each.

    Attributes:
        row: int64, row of the result.
        start_cycles: int64.
        end_cycles: int64; as the start where the result has no ends.
        has_ends: Whether they are intervals.
        group: int64, which of `groups`.
        groups: What the rows are grouped by; beyond the most frequent ones they are one group, the last.
        values: float64 by column; NaN for null.
    """

    row: _Ints
    start_cycles: _Ints
    end_cycles: _Ints
    has_ends: bool
    group: _Ints
    groups: tuple[str, ...]
    values: dict[str, NDArray[np.float64]]


def drawing_of(trace: Trace, found: Result) -> Drawing | str:
    """Return what can be drawn, or why nothing can."""
    start_name = _first(found, _STARTS)
    if start_name is None:
        return "No column says when: a plot needs start_ns, time_ns or their cycles."
    start, is_known = _cycles(trace.clock, found, start_name)
    end_name, length_name = _first(found, _ENDS), _first(found, _LENGTHS)
    end, has_end = start, is_known
    if end_name is not None:
        end, has_end = _cycles(trace.clock, found, end_name)
    elif length_name is not None:
        length, has_end = _numbers(found, length_name)
        whole = np.maximum(length, 0).astype(np.int64)
        if length_name.endswith("_ns"):
            whole = trace.clock.cycles_array(whole) - trace.clock.start_cycles
        end = start + whole
    rows = np.flatnonzero(is_known)
    if not len(rows):
        return "No row has a time."
    group, groups = _grouped(found, rows, {start_name, end_name, length_name})
    used = {start_name, end_name}
    values = {}
    for name in found.columns:
        if name in used or name in _NUMBERS or name.endswith(("_event", "_pid")) or not _is_number(found, name):
            continue
        numbers, is_there = _numbers(found, name)
        values[name] = np.where(is_there, numbers, np.nan)[rows]
    return Drawing(
        rows, start[rows], np.where(has_end, np.maximum(end, start), start)[rows],
        end_name is not None or length_name is not None, group, groups, values,
    )  # fmt: skip


def _first(found: Result, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in found.columns and _is_number(found, name)), None)


def _is_number(found: Result, name: str) -> bool:
    kind = str(found.arrow().column(name).type)
    return kind.startswith(("int", "uint", "float", "double", "decimal", "half"))


def _numbers(found: Result, name: str) -> tuple[NDArray[np.float64] | _Ints, NDArray[np.bool_]]:
    """Return a column of numbers, 0 for null, and which are there."""
    column = found.arrow().column(name)
    is_there = np.asarray(column.is_valid().to_numpy())
    filled = column.fill_null(0) if column.null_count else column
    values: NDArray[Any] = np.asarray(filled.to_numpy())
    return values.astype(np.int64) if values.dtype.kind in "iu" else values.astype(np.float64), is_there


def _cycles(clock: Clock, found: Result, name: str) -> tuple[_Ints, NDArray[np.bool_]]:
    values, is_there = _numbers(found, name)
    is_there &= np.isfinite(values) & (np.abs(values) < 1 << 62)
    whole = np.where(is_there, values, 0).astype(np.int64)
    return (whole if name.endswith("_cycles") else clock.cycles_array(whole)), is_there


def _grouped(found: Result, rows: _Ints, used: set[str | None]) -> tuple[_Ints, tuple[str, ...]]:
    """Return by what the rows are grouped: the first column of texts, else of numbers of things."""
    names = [name for name in (*_GROUPS, *found.columns) if name in found.columns and name not in used]
    texts = [name for name in names if str(found.arrow().column(name).type) in ("string", "large_string")
             or str(found.arrow().column(name).type).startswith("dictionary")]  # fmt: skip
    name = next(iter(texts or [name for name in names if name in _GROUPS]), None)
    if name is None:
        return np.zeros(len(rows), np.int64), ("",)
    column = found[name][rows]
    shown, code, counts = np.unique(column.astype(np.str_), return_inverse=True, return_counts=True)
    if len(shown) <= MOST_GROUPS:
        return code.astype(np.int64), tuple(f"{name} {text}" if name not in texts else text for text in shown.tolist())
    often = np.argsort(-counts, kind="stable")[: MOST_GROUPS - 1]
    position = np.full(len(shown), MOST_GROUPS - 1, np.int64)
    position[np.sort(often)] = np.arange(MOST_GROUPS - 1)
    return position[code], (*shown[np.sort(often)].tolist(), f"{len(shown) - MOST_GROUPS + 1} others")
