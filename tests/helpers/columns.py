"""Columns written out, as tables and readers have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from satview.store.tables import EventTable


def ints(*values: int, kind: type = np.int64) -> np.ndarray:
    """Return a column of numbers."""
    return np.array(values, kind)


def event_table(time: Any, code: Any = 0, cpu: Any = 0, thread: Any = 0, slot: Any = None) -> EventTable:
    """Return events of one slot each, one behind the other; a number in place of a column is that of all events."""
    count = len(time)

    def column(values: Any, kind: type) -> np.ndarray:
        return np.broadcast_to(np.asarray(values), count).astype(kind)

    return EventTable(
        np.asarray(time, np.int64), column(code, np.uint16), column(cpu, np.uint8), column(thread, np.uint16),
        column(np.arange(count) if slot is None else slot, np.uint32), column(1, np.uint16),
    )  # fmt: skip
