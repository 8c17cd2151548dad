"""Columns as Arrow arrays over the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from satview.answers.frames import Made, arrow_array
from satview.base.installed import required
from satview.tables.schema import Column

if TYPE_CHECKING:
    import pyarrow as pa


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
