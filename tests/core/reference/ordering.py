"""Events in the order of time."""

from __future__ import annotations

import numpy as np


def stable_order(time):
    """Return the order of times; equal ones stay as they are."""
    return np.argsort(time, kind="stable")


def disordered(time):
    """Return the rows that are earlier than one before them, or later than one behind them."""
    if not len(time):
        return np.empty(0, np.int64)
    before = np.append(np.iinfo(np.int64).min, np.maximum.accumulate(time)[:-1])
    after = np.append(np.minimum.accumulate(time[::-1])[::-1][1:], np.iinfo(np.int64).max)
    return np.flatnonzero((time < before) | (time > after))


def merged(time, _cpu, rows):
    """Return rows in the order of their times."""
    return rows[np.argsort(time[rows], kind="stable")]


def move(_columns, _first, _rows, _went):
    """Move nothing, as where rows go too far: the caller gathers the columns then."""
    return False


def far_rows(time, rows, near):
    """Return the rows that are far from the events before and behind them, on the same side."""
    with np.errstate(over="ignore"):
        before, after = time[rows] - time[rows - 1], time[rows] - time[rows + 1]
        return rows[(np.minimum(np.abs(before), np.abs(after)) > near) & ((before > 0) == (after > 0))]
