"""Two traces held against each other, table by table."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from satview.store.trace import Trace


def columns(table: Any) -> dict[str, Any]:
    """Return the public fields of a table by name."""
    return {field.name: getattr(table, field.name) for field in fields(table) if not field.name.startswith("_")}


def same_table(mine: Any, theirs: Any) -> None:
    """Assert that two tables have the same columns with the same values and types."""
    for name, column in columns(mine).items():
        other = getattr(theirs, name)
        if isinstance(column, np.ndarray):
            assert column.dtype == other.dtype, name
            # Lists show where they differ, and would take gigabytes of a large trace.
            assert np.array_equal(column, other) or column.tolist() == other.tolist(), name
        else:
            assert column == other, name


def same_trace(mine: Trace, theirs: Trace) -> None:
    """Assert that two traces have the same tables, problems and clock."""
    for table in ("events", "threads", "processes", "states", "buffers", "fragments"):
        same_table(getattr(mine, table), getattr(theirs, table))
    assert list(mine.problems) == list(theirs.problems)
    assert mine.problems.suppressed == theirs.problems.suppressed
    assert mine.truncated.tolist() == theirs.truncated.tolist()
    assert (mine.clock, mine.dump_end_cycles, mine.cpu_count) == (
        theirs.clock, theirs.dump_end_cycles, theirs.cpu_count,
    )  # fmt: skip
