"""Events whose only other slots are one run of tails that ends them, in the same chunk: found for all at once.

Of what is apart from its event that is nearly all; the rest goes through `open_events`, one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from satview.core.streaming import Columns
from satview.formats.kev.clocks.rollover import ROLLOVER
from satview.formats.kev.slots.combine import MAX_SLOTS


class Runs(NamedTuple):
    """Groups of slots that are no whole events, in file order; every column has shape (n,).

    Attributes:
        key: uint64, CPU, class, event and stamp.
        row: int64, of a head its event, of tails the last event before them.
        first: int64, first slot.
        end: int64, the one behind the last.
        header: uint32, of the first slot.
        stamp: uint32.
        opens: bool, begins an event.
        closes: bool, its last slot is an end slot.
        now: int64, when the last event before it began on its CPU, cycles.
    """

    key: NDArray[np.uint64]
    row: NDArray[np.int64]
    first: NDArray[np.int64]
    end: NDArray[np.int64]
    header: NDArray[np.uint32]
    stamp: NDArray[np.uint32]
    opens: NDArray[np.bool_]
    closes: NDArray[np.bool_]
    now: NDArray[np.int64]

    def at(self, positions: NDArray[np.generic]) -> Runs:
        """Return some of them."""
        return Runs(*(column[positions] for column in self))


def pairs_of(
    runs: Runs, open_keys: NDArray[np.uint64], time: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return heads that get one run of tails, which ends them, and these runs: positions among the groups, (k,) each.

    Both are alone with their key, and no event of it is open: what `OpenEvents` would do with them one by one.

    Args:
        runs: The groups.
        open_keys: uint64, keys of events that earlier chunks left open.
        time: int64, of the events that begin in the chunk.
    """
    order = np.argsort(runs.key, kind="stable")
    key = runs.key[order]
    differs = np.concatenate(([True], key[1:] != key[:-1], [True]))
    at = np.flatnonzero(differs[:-2] & ~differs[1:-1] & differs[2:])  # two of the key, and no third
    heads, tails = order[at], order[at + 1]
    fits = runs.opens[heads] & ~runs.closes[heads] & ~runs.opens[tails] & runs.closes[tails]
    fits &= np.abs(runs.now[tails] - time[runs.row[heads]]) < ROLLOVER
    fits &= (runs.end[heads] - runs.first[heads]) + (runs.end[tails] - runs.first[tails]) <= MAX_SLOTS
    if len(open_keys):
        fits &= ~np.isin(runs.key[heads], open_keys)
    return heads[fits], tails[fits]


def ended_by(
    slots: NDArray[np.uint32], heads: Runs, tails: Runs, time: NDArray[np.int64], thread: NDArray[np.uint32]
) -> Columns:
    """Return events that one run of tails each has ended, in the order of their last slots.

    Args:
        slots: uint32 (n, 4), the chunk.
        heads: Their first slots.
        tails: Their others, in the same order.
        time: int64, of the events that begin in the chunk.
        thread: uint32, the same.
    """
    order = np.argsort(tails.end)
    heads, tails = heads.at(order), tails.at(order)
    first = np.stack((heads.first, tails.first), axis=1).ravel()
    count = np.stack((heads.end, tails.end), axis=1).ravel() - first
    start = np.concatenate(([0], np.cumsum(count)[1::2])).astype(np.int64)
    return Columns(
        heads.header, heads.stamp, time[heads.row], thread[heads.row].astype(np.uint32, copy=False), 2 * start,
        slots[_spread(first, count), 2:4].ravel(), tails.end - 1,
    )  # fmt: skip


def merged(one: Columns, other: Columns) -> Columns:
    """Return the events of both in the order of their last slots."""
    if not len(one.last) or not len(other.last):
        return one if len(one.last) else other
    order = np.argsort(np.concatenate((one.last, other.last)))
    first = np.concatenate((one.start[:-1], other.start[:-1] + len(one.words)))[order]
    count = np.concatenate((np.diff(one.start), np.diff(other.start)))[order]
    header, stamp, time, thread, last = (
        np.concatenate((getattr(one, name), getattr(other, name)))[order]
        for name in ("header", "stamp", "time", "thread", "last")
    )
    start = np.concatenate(([0], np.cumsum(count))).astype(np.int64)
    words = np.concatenate((one.words, other.words))[_spread(first, count)]
    return Columns(header, stamp, time, thread, start, words, last)


def _spread(first: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of ranges one after the other, int64 (sum of counts,)."""
    ends = np.cumsum(count)
    numbers: NDArray[np.int64] = np.repeat(first - (ends - count), count)
    numbers += np.arange(len(numbers))
    return numbers
