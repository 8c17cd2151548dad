"""Groups of slots that go by."""

from __future__ import annotations

import numpy as np

from satview.base.column_arrays import numbers_of
from satview.core.streaming import Groups, StreamColumns
from satview.events import wire
from satview.formats.kev.open_events import cpus_of
from satview.formats.kev.slots.combine import keys as keys_of
from tests.core.reference.loading import begins_run

_TAIL = 0x80000000  # set in continuation and end slots


def groups(slots, most_slots):
    """Return what a chunk of slots is made of."""
    headers, stamps = np.ascontiguousarray(slots[:, 0]), np.ascontiguousarray(slots[:, 1])
    at = np.flatnonzero(begins_run(slots) | (headers < _TAIL))
    counts, heads = np.diff(at, append=len(slots)), headers[at]
    kinds, ends = heads >> wire.STRUCT_SHIFT, headers[at + counts - 1] >> wire.STRUCT_SHIFT
    is_empty = heads == 0
    begins = (kinds < wire.Struct.COMBINE_CONTINUE) & ~is_empty
    is_whole = begins & ((kinds == wire.Struct.SIMPLE) | (ends == wire.Struct.COMBINE_END)) & (counts <= most_slots)
    zeros, first = at[is_empty], at[begins]
    return Groups(
        np.append(at, len(slots)), is_whole, np.cumsum(begins) - 1, heads[begins] & np.uint32(wire.CODE_MASK),
        cpus_of(heads[begins]), stamps[first], first, np.flatnonzero(~is_whole & ~is_empty),
        np.flatnonzero(kinds == wire.Struct.COMBINE_BEGIN), len(zeros), int(zeros[0]) if len(zeros) else -1,
    )  # fmt: skip


def with_keys(slots, at, group, keys):
    """Return the groups that have one of the keys."""
    first = at[group]
    return group[np.isin(keys_of(slots[first, 0], slots[first, 1]), keys)]


def deliver(slots, found, time, thread, done):
    """Return whole events of a chunk and those that tails have ended, by their last slots."""
    whole = np.flatnonzero(found.is_whole)
    at, end, rows = found.group_slot[whole], found.group_slot[whole + 1], found.event[whole]
    sizes = np.concatenate((2 * (end - at), np.diff(done.start)))
    # Words of events that tails have ended are behind those of the chunk's slots.
    old = np.concatenate((2 * at, done.start[:-1] + 2 * len(slots)))
    last = np.concatenate((end - 1, done.last))
    order = np.argsort(last, kind="stable")
    start = np.concatenate(([0], np.cumsum(sizes[order]))).astype(np.int64)
    words = np.concatenate((slots[:, 2:4].ravel(), done.words))
    return StreamColumns(
        np.concatenate((slots[at, 0], done.header))[order],
        np.concatenate((slots[at, 1], done.stamp))[order],
        np.concatenate((time[rows], done.time))[order],
        np.concatenate((thread[rows], done.thread))[order],
        start,
        words[numbers_of(old[order], sizes[order])],
        last[order],
    )
