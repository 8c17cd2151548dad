"""What statistics count."""

from __future__ import annotations

import numpy as np


def nesting(code, cpu, time, step, rows, number, lost):
    """Return how the interrupts of a CPU are nested, walking from one entry or exit to the next."""
    rows = rows[(cpu[rows] == number) & (step[code[rows]] != 0)]
    steps, parts = step[code[rows]], np.searchsorted(lost, time[rows], side="right")
    depths, stray = [], []
    depth, part_before, has_entry = 0, 0, False
    for change, part in zip(steps.tolist(), parts.tolist(), strict=True):
        if part != part_before:
            depth, part_before, has_entry = 0, part, False
        has_entry |= change > 0
        depth = max(0, depth + change)
        depths.append(depth)
        stray.append(not has_entry)
    return rows, parts, steps, np.array(depths, np.int64), np.array(stray, np.bool_)


def left_open(code, cpu, step, rows, most):
    """Return the CPUs that are in interrupts at the end, or for many events on end; none that never leaves one."""
    is_open = np.zeros(256, np.bool_)
    for number in np.unique(cpu[rows]).tolist():
        depth, inside, longest, leaves = 0, 0, 0, False
        for change in step[code[rows[cpu[rows] == number]]].tolist():
            if change:
                depth = max(0, depth + change)
                inside = inside + 1 if depth else 0
                longest, leaves = max(longest, inside), leaves or change < 0
        is_open[number] = leaves and (longest >= most or depth > 0)
    return is_open


def covered(start, end, first, last):
    """Return how much of each interval the ranges cover."""
    total = np.append(0, np.cumsum(end - start))

    def before(moment):
        if not len(start):
            return np.zeros(len(moment), np.int64)
        number = np.searchsorted(start, moment, side="right")
        return np.where(number > 0, total[number] - np.maximum(end[number - 1] - moment, 0), 0)

    with np.errstate(over="ignore"):
        return before(last) - before(first)


def window_sums(start, end, begins, window):
    """Return how much of each window the intervals cover."""
    sums = np.zeros(len(begins), np.int64)
    for edges, sign in ((start, 1), (end, -1)):
        total = np.append(0, np.cumsum(edges - edges[:1]))
        for moment, of_moment in ((begins + window, sign), (begins, -sign)):
            count = np.searchsorted(edges, moment)
            sums += of_moment * (count * (moment - edges[:1]) - total[count]) if len(edges) else 0
    return sums


def event_counts(code, thread, start, role, sums):
    """Add events to the sums."""
    counts, first, last, by_thread = sums
    for number in np.unique(code):
        rows = start + np.flatnonzero(code == number)
        first[number] = first[number] if counts[number] else rows[0]
        last[number] = rows[-1]
        counts[number] += len(rows)
    np.add.at(by_thread, (thread, role[code]), 1)


def scheduling(*_arguments):
    """Return None, as where the walk cannot tell: the analyses add up lanes and links then, without it."""
