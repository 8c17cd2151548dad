"""One table of a trace: its columns in numpy, Arrow, pandas or Polars."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.answers.frames import Frames, Made, Partial, Texts, Values, arrow_array, html_rows
from satview.base.errors import UsageError
from satview.base.extras import required
from satview.base.safe_text import visible_line
from satview.store.trace import Trace
from satview.tables import builders
from satview.tables.arguments import kinds
from satview.tables.schema import SCHEMAS, Column, Kind, TableSchema
from satview.tables.views import near_tables

if TYPE_CHECKING:
    import pyarrow as pa


# Columns as Arrow arrays over the same memory.


def arrow_table(columns: Sequence[Column], values: Made) -> pa.Table:
    """Return a table of Arrow; numbers stay where they are, only the bits that say what is null are made.

    Args:
        columns: Which, in order.
        values: At least the values of these, by name.

    Raises:
        UsageError: The package pyarrow is not installed.
    """
    pyarrow = required("pyarrow")
    return pyarrow.table(
        {column.name: arrow_array(values[column.name], is_nullable=column.is_nullable) for column in columns}
    )


_SHOWN_ROWS: Final = 10


def table(trace: Trace, name: str) -> Table:
    """Return a table of a trace by name; its columns are made when first requested and cached with the trace.

    Args:
        trace: The trace.
        name: One of `SCHEMAS`, such as `state`; docs/tables.md describes them.

    Raises:
        UsageError: There is no such table.
    """
    if name not in SCHEMAS:
        raise UsageError(f"there is no table {name[:40]!r}; {near_tables(name, kinds(trace))}"
                         f"there are {', '.join(SCHEMAS)}, and those of kinds of events")  # fmt: skip
    build = builders.BUILDERS[name]
    made = (
        build(trace) if name in builders.NOT_CACHED else trace.cached(f"tables.{name}", partial(_frozen, build=build))
    )
    return Table(trace, SCHEMAS[name], made)


def _frozen(trace: Trace, build: builders.Builder) -> Made:
    made = build(trace)
    for values in made.values():
        assert not isinstance(values, Partial)  # such tables are too large to be cached
        (values.code if isinstance(values, Texts) else values).setflags(write=False)
    return made


class Table(Frames):
    """A table of a trace; every column has shape (n,) and is read-only.

        states = trace.table("state")
        states["length_cycles"][states["state"] == "READY"].sum()
        states.arrow(), states.to_pandas(), states.to_polars()

    Attributes:
        schema: Name, meaning and columns.
    """

    def __init__(self, trace: Trace, schema: TableSchema, made: Made) -> None:
        self._trace, self.schema, self._made = trace, schema, made

    def __len__(self) -> int:
        return len(next(iter(self._made.values())))

    def __repr__(self) -> str:
        return f"<Table {self.schema.name} of {visible_line(self._trace.path.name)}: {len(self):,} rows>"

    def _repr_html_(self) -> str:
        """Return the first rows for notebooks."""
        parts = [self._head(column) for column in self.schema.columns]
        return html_rows(self.columns, zip(*parts, strict=True), f"{len(self):,} rows")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return self.schema.names

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return one column in numpy, shape (n,); texts as objects.

        A value that there is none of is -1, in the table `argument` 0; a text the empty one.

        Raises:
            UsageError: There is no such column.
        """
        values = self.values(self._column(name))
        return values if isinstance(values, np.ndarray) else values.numpy()

    def arrow(self) -> pa.Table:
        """Return it as a table of Arrow: columns that the trace has are not copied, and what is not known is null.

        Raises:
            UsageError: The package pyarrow is not installed.
        """
        return arrow_table(self.schema.columns, {column.name: self.values(column) for column in self.schema.columns})

    def values(self, column: Column) -> Values:
        """Return the values of a column; those in nanoseconds are made from the cycles now."""
        if not column.cycles:
            return self._made[column.name]
        return self._ns(column, self._cycles_of(column))

    def _cycles_of(self, column: Column) -> NDArray[np.int64]:
        cycles = self._made[column.cycles]
        assert isinstance(cycles, np.ndarray)
        return cycles

    def _ns(self, column: Column, cycles: NDArray[np.int64]) -> NDArray[np.int64]:
        clock = self._trace.clock
        ns = clock.ns_array(cycles) if column.is_moment else clock.durations_ns(cycles)
        if column.is_nullable:
            ns[cycles < 0] = -1
        ns.setflags(write=False)
        return ns

    def _head(self, column: Column) -> list[Any]:
        """Return the first values of a column, None for what there is none of."""
        if column.cycles:
            found: list[Any] = self._ns(column, self._cycles_of(column)[:_SHOWN_ROWS]).tolist()
        else:
            values = self._made[column.name]
            if isinstance(values, Partial):
                pairs = zip(values.numpy()[:_SHOWN_ROWS].tolist(), values.known[:_SHOWN_ROWS].tolist(), strict=True)
                return [value if is_known else None for value, is_known in pairs]
            if isinstance(values, Texts):
                return list(Texts(values.code[:_SHOWN_ROWS], values.texts).numpy())
            found = values[:_SHOWN_ROWS].tolist()
        return [None if column.is_nullable and value == -1 else value for value in found]

    def _column(self, name: str) -> Column:
        if name not in self.schema.names:
            raise UsageError(
                f"the table {self.schema.name} has no column {name[:40]!r}; it has {', '.join(self.columns)}"
            )
        return self.schema.column(name)


def dtype_of(column: Column) -> tuple[str, ...]:
    """Return the numpy types that the values of a column may have; `object` for texts."""
    return ("object",) if column.kind is Kind.TEXT else tuple(column.kind.value.split(", "))
