"""The result of a query: its columns, its rows as Python values, and values as text.

`satview.tables.query_child` converts to text the types that some output formats lack: intervals, bits, unions, UUIDs,
times with a zone or in nanoseconds, variants, integers beyond 128 bits. All other values have a Python type, except
days before the year 1 and beyond 9999, infinity and 24:00, which are texts in DuckDB's form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.answers.frames import Frames, html_rows
from satview.base.errors import UsageError
from satview.base.plugins import required
from satview.base.safe_text import counted, html_text

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN_ROWS: Final = 20
_DAY_S: Final = 86_400
_PER_S: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_FIRST_DAY: Final = (date.min - date(1970, 1, 1)).days
_LAST_DAY: Final = (date.max - date(1970, 1, 1)).days
_INFINITE_DAY: Final = 2**31 - 1  # DuckDB's infinity for days
_INFINITE: Final = 2**63 - 1  # DuckDB's infinity for times


class Result(Frames):
    """The rows of a query, as columns.

    Attributes:
        is_cut: Whether rows beyond the size limit were cut off.
        cannot_tell: Reasons why the trace cannot show rows of tables and views of the query, each a sentence:
            `message: the trace has no messages; capture the class COMM`. Views are named only if the result shows
            nothing, or if no such trace can show their rows.
        not_all: Reasons why rows are missing, or show less than happened, each a sentence: events that the trace lost,
            classes that it captured in part.
        silent_traces: Names of the traces of a data set that cannot show rows of a table of the query.
        lossy_traces: Names of the traces of a data set in which events are missing; empty if no table of the query
            depends on them.
    """

    def __init__(self, table: pa.Table, is_cut: bool = False) -> None:
        self._columns: tuple[str, ...] = _unique(table.column_names)
        self._table = _whole_numbers(table.rename_columns(list(self._columns)))
        self.is_cut = is_cut
        self.cannot_tell: tuple[str, ...] = ()
        self.not_all: tuple[str, ...] = ()
        self.silent_traces: frozenset[str] = frozenset()
        self.lossy_traces: frozenset[str] = frozenset()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, in order; repeated names get a number."""
        return self._columns

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a column as a numpy array, (n,), of Python objects if numpy lacks its type or a value is null (None).

        Raises:
            UsageError: There is no such column.
        """
        if name not in self.columns:
            raise UsageError(f"the result has no column {name[:40]!r}; it has {', '.join(self.columns)}")
        column, kinds = self._table.column(name), required("pyarrow").types
        is_plain = not kinds.is_nested(column.type) and not kinds.is_time(column.type) and not beyond_python(column)
        if is_plain and not column.null_count:
            return np.asarray(column.to_numpy())
        values = np.empty(len(self), np.object_)
        for row, value in enumerate(values_of(column)):  # one by one, as numpy would turn lists into rows
            values[row] = value
        return values

    def __repr__(self) -> str:
        return f"<Result: {self.summary} of {', '.join(self.columns)}>"

    @property
    def shows_nothing(self) -> bool:
        """Whether the result has no rows, or a single row of zeros and nulls, as a count or sum of no rows gives."""
        return len(self) == 0 or (len(self) == 1 and all(value is None or value == 0 for value in self.rows()[0]))

    @property
    def reservations(self) -> tuple[str, ...]:
        """The lines of `cannot_tell` and `not_all` as people read them: `Cannot tell: ...`, `Not all: ...`."""
        return (*(f"Cannot tell: {line}" for line in self.cannot_tell), *(f"Not all: {line}" for line in self.not_all))

    @property
    def summary(self) -> str:
        """Text with the number of rows, and that there are more if rows were cut off: `3 rows`."""
        return f"{counted(len(self), 'row')}{', cut: there are more' if self.is_cut else ''}"

    def _repr_html_(self) -> str:
        """Return the first rows as HTML for notebooks, with what they do not show."""
        lines = map(html_text, (self.summary, *self.reservations))
        return html_rows(self.columns, self.rows(_SHOWN_ROWS), "<br>".join(lines))

    def rows(self, most: int | None = None) -> list[tuple[Any, ...]]:
        """Return the rows as tuples of Python values.

        Args:
            most: Number of rows to return, from the first; None = all.
        """
        part = self._table if most is None else self._table.slice(0, most)
        return list(zip(*map(values_of, part.columns), strict=True))

    def value(self, row: int, name: str) -> Any:
        """Return one value, None for null."""
        return _value(self._table.column(name)[row])

    def arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self._table


def value_text(value: Any) -> str:
    """Return a value as text for people: floating-point numbers with six digits, null as empty, others as in SQL."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else _sql_text(value)


def json_value(value: Any) -> Any:
    """Return a value for JSON: types that JSON lacks become text, a map becomes a list of pairs."""
    if isinstance(value, dict):
        return {name: json_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(part) for part in value]
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return _sql_text(value)


def beyond_python(column: pa.ChunkedArray) -> bool:
    """Return whether a column has dates, timestamps or times that Python cannot represent."""
    pyarrow, compute = required("pyarrow"), required("pyarrow.compute")
    kinds, kind = pyarrow.types, column.type
    if not (kinds.is_date(kind) or kinds.is_timestamp(kind) or kinds.is_time(kind)):
        return False
    width = pyarrow.int32() if kind.bit_width == 32 else pyarrow.int64()
    numbers = compute.min_max(pyarrow.chunked_array([part.view(width) for part in column.chunks], width)).as_py()
    if numbers["min"] is None:
        return False
    if kinds.is_date(kind):
        return bool(numbers["min"] < _FIRST_DAY or numbers["max"] > _LAST_DAY)
    day = _DAY_S * _PER_S[kind.unit]
    if kinds.is_time(kind):
        return bool(numbers["max"] >= day)
    if kind.unit == "ns":  # Python has microseconds
        return True
    return bool(numbers["min"] < _FIRST_DAY * day or numbers["max"] >= (_LAST_DAY + 1) * day)


def values_of(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of an Arrow column as Python values, None for null."""
    kinds = required("pyarrow").types
    is_difficult = kinds.is_nested(column.type) or beyond_python(column)
    if is_difficult or (kinds.is_timestamp(column.type) and column.type.tz):
        return list(map(_value, column))
    values: list[Any] = column.to_pylist()
    return values


def _value(scalar: Any) -> Any:
    """Return an Arrow value as a Python value, also those for which Arrow's `to_pylist` raises OverflowError."""
    kinds, kind = required("pyarrow").types, scalar.type
    if not scalar.is_valid:
        return None
    if kinds.is_map(kind):
        return [(_value(pair[0]), _value(pair[1])) for pair in scalar.values]
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return [_value(part) for part in scalar.values]
    if kinds.is_struct(kind):
        return {kind.field(position).name: _value(scalar[position]) for position in range(kind.num_fields)}
    if kinds.is_date(kind):
        return _day(scalar.value)
    if kinds.is_timestamp(kind):
        return _moment(scalar.value, kind.unit, bool(kind.tz))
    if kinds.is_time(kind):
        return _time_of_day(scalar.value, kind.unit)
    return scalar.as_py()


def _day(number: int) -> date | str:
    """Return the date of a day number since 1970; as text in DuckDB's form if Python cannot represent it."""
    if _FIRST_DAY <= number <= _LAST_DAY:
        return date.fromordinal(number - _FIRST_DAY + 1)
    if abs(number) == _INFINITE_DAY:
        return "infinity" if number > 0 else "-infinity"
    year, month, day = str(np.datetime_as_string(np.datetime64(number, "D"))).rsplit("-", 2)
    month_day = f"{month}-{day}"
    return f"{int(year):04}-{month_day}" if int(year) > 0 else f"{1 - int(year):04}-{month_day} (BC)"


def _time_of_day(number: int, unit: str) -> time | str:
    seconds, part = divmod(number, _PER_S[unit])
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    if hour < 24 and unit != "ns":
        return time(hour, minute, second, part * (1_000_000 // _PER_S[unit]))
    shown = f"{part:0{len(str(_PER_S[unit])) - 1}}".rstrip("0")
    return f"{hour:02}:{minute:02}:{second:02}{'.' + shown if part else ''}"


def _moment(number: int, unit: str, has_zone: bool) -> datetime | str:
    """Return the timestamp that is `number` units after 1970, in UTC if it has a zone; as text if out of range."""
    if abs(number) == _INFINITE:
        return "infinity" if number > 0 else "-infinity"
    days, rest = divmod(number, _DAY_S * _PER_S[unit])
    if unit == "ns" and not rest % 1000:
        rest, unit = rest // 1000, "us"
    day, moment = _day(days), _time_of_day(rest, unit)
    if isinstance(day, date) and isinstance(moment, time):
        return datetime.combine(day, moment, UTC if has_zone else None)
    return f"{day} {moment}{'+00' if has_zone else ''}"


def _sql_text(value: Any) -> str:
    """Return a value in DuckDB's text form, or its `str` if that is the same or as useful."""
    if isinstance(value, bytes):
        return "".join(chr(byte) if 32 <= byte < 127 and byte not in b"\\'\"" else f"\\x{byte:02X}" for byte in value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"'{name}': {_part(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list):
        if value and all(isinstance(part, tuple) for part in value):
            return "{" + ", ".join(f"{_part(key)}={_part(part)}" for key, part in value) + "}"
        return "[" + ", ".join(map(_part, value)) + "]"
    if isinstance(value, Decimal):
        return f"{value:f}"
    return str(value)


def _part(value: Any) -> str:
    return "NULL" if value is None else _sql_text(value)


def texts_of(column: pa.ChunkedArray, text: Callable[[Any], str] = _sql_text) -> pa.Array:
    """Return a column as texts; null stays null."""
    return required("pyarrow").array(
        [None if value is None else text(value) for value in values_of(column)], required("pyarrow").string()
    )


def _unique(names: list[str]) -> tuple[str, ...]:
    """Return the names made unique: a second `a` becomes `a_1`."""
    unique = dict[str, None]()
    for name in names:
        shown, number = name, 0
        while shown in unique or (number and shown in names):
            number += 1
            shown = f"{name}_{number}"
        unique[shown] = None
    return tuple(unique)


def _whole_numbers(table: pa.Table) -> pa.Table:
    """Return a result whose columns of sums (128 bits) have 64 bits if they fit, and are texts beyond 38 digits."""
    pyarrow, compute = required("pyarrow"), required("pyarrow.compute")
    for position, field in enumerate(table.schema):
        if not (pyarrow.types.is_decimal128(field.type) and field.type.scale == 0):
            continue
        column = table.column(position)
        least, most = compute.min_max(column).as_py().values()
        if least is None or -(2**63) <= least <= most < 2**63:
            table = table.set_column(position, field.name, column.cast(pyarrow.int64()))
        elif max(-least, most) >= 10**38:
            table = table.set_column(position, field.name, texts_of(column))
    return table
