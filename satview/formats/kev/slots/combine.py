"""Reassembles combine events: matches runs of slots that do not follow the first slots of their event.

Source: kernel event trace format, section 3.3. Almost every slot of a combine event follows the previous slot of that
event, which a single comparison shows. Only runs of tail slots after another event are matched with the open events,
oldest first.

A tail belongs to the oldest open event of its key, even if it follows another event of the key. Stamps of a CPU differ,
so only damage gives two events the same key; such events are found by their time, and their tails are matched as if
they were separated. An open event is dropped when its CPU's clock is a rollover away, back or ahead, because its stamp
may then be used again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import ColumnTable
from satview.events.wire import CPU_MASK, CPU_SHIFT
from satview.formats.kev.clocks.rollover import ROLLOVER

KEY_MASK: Final = np.uint32(0x3FFFFFFF)  # CPU, class and event: all except the structure bits
_BLOCK_ROWS: Final = 1 << 12  # a tenth of a second of a busy system, far less than a rollover
_LONG_AGO: Final = -(1 << 62)
MAX_SLOTS: Final = 1 << 20  # of one event; more are reported as damage


def keys(headers: NDArray[np.uint32], stamps: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return for each slot the key that all slots of its combine event share: stamp, CPU, class, event; uint64 (n,).

    The stamp is the upper half, so that the keys of a file nearly ascend and can be sorted fast.
    """
    return stamps.astype(np.uint64) << np.uint64(32) | (headers & KEY_MASK)


def contested(event_keys: NDArray[np.uint64], is_open: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which events share their key with another event, if any event of the key is open, bool (n,)."""
    open_keys = np.unique(event_keys[is_open])
    if not len(open_keys):
        return np.zeros(len(event_keys), np.bool_)
    position = np.searchsorted(open_keys, event_keys)
    position[position == len(open_keys)] = 0
    is_open_key = open_keys[position] == event_keys
    # If a key has only one event, its tails are certain.
    counts = np.bincount(position[is_open_key], minlength=len(open_keys))
    return np.asarray(is_open_key & (counts[position] > 1))


def is_expired(now: NDArray[np.int64], begun: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which open events are dropped, by the time of their CPU and their start, in cycles, bool (n,)."""
    return np.asarray(np.abs(now - begun) >= ROLLOVER)


@dataclass(frozen=True, slots=True)
class Unmatched(ColumnTable):
    """Open events and runs of tails that follow another event; one row each, in file order.

    Attributes:
        slot: int64, first slot.
        count: int64, number of adjacent slots.
        header: uint32, header of the first slot.
        stamp: uint32.
        closes: bool, whether the last slot is an end slot.
        event: int64, row in file order of an open event; -1 for a run of tails.
        before: int64, row of the last event that begins before these slots in the file; -1 = none.
    """

    slot: NDArray[np.int64]
    count: NDArray[np.int64]
    header: NDArray[np.uint32]
    stamp: NDArray[np.uint32]
    closes: NDArray[np.bool_]
    event: NDArray[np.int64]
    before: NDArray[np.int64]

    @classmethod
    def none(cls) -> Unmatched:
        """Return an empty table."""
        whole = np.empty(0, np.int64)
        return cls(whole, whole, whole.astype(np.uint32), whole.astype(np.uint32), whole.astype(np.bool_), whole, whole)


def split(
    unmatched: Unmatched,
    rows: NDArray[np.int64],
    slot: NDArray[np.int64],
    counts: NDArray[np.int64],
    headers: NDArray[np.uint32],
    stamps: NDArray[np.uint32],
) -> Unmatched:
    """Add some events and the tails that follow them as separate rows, so that the tails are matched again.

    Args:
        unmatched: Unmatched rows so far.
        rows: (k,), rows of the events in file order, ascending.
        slot: (k,), first slots of the events.
        counts: (k,), numbers of adjacent slots.
        headers: (k,), headers of the first slots.
        stamps: (k,), stamps of the events.
    """
    is_open = np.isin(rows, unmatched.event)
    others = ~np.isin(unmatched.event, rows) | (unmatched.event < 0)
    has_tails = counts > 1
    no_end, no_event = np.zeros(len(rows), np.bool_), np.full(len(rows), -1)
    heads = Unmatched(slot, np.ones_like(counts), headers, stamps, no_end, rows, rows)
    tails = Unmatched(slot + 1, counts - 1, headers, stamps, ~is_open, no_event, rows)
    parts = Unmatched.concatenated([unmatched.taken(others), heads, tails.taken(has_tails)])
    return parts.taken(np.argsort(parts.slot, kind="stable"))


@dataclass(frozen=True, slots=True)
class Matched:
    """Events to which runs of tails belong.

    Attributes:
        owner: int64, shape (n,): for each unmatched row the row in file order of its event; -1 = orphan.
        unfinished: int64, rows of events whose end is missing.
    """

    owner: NDArray[np.int64]
    unfinished: NDArray[np.int64]


def match(
    unmatched: Unmatched, event_times: NDArray[np.int64], event_cpus: NDArray[np.uint8], *, ascends: bool = False
) -> Matched:
    """Match runs of tails with open events of the same key, first come first served.

    Within a key the k-th closing run closes the k-th open event; closing runs without an open event do not count.

    Args:
        unmatched: Rows to match.
        event_times: int64 (events,), cycles, in file order.
        event_cpus: uint8 (events,).
        ascends: Whether the times never decrease, which makes it faster to find dropped events.
    """
    n = len(unmatched.slot)
    owner = unmatched.event.copy()
    if not n:
        return Matched(owner, np.empty(0, np.int64))
    key = keys(unmatched.header, unmatched.stamp)
    order = np.argsort(key, kind="stable")
    key = key[order]
    begins = np.concatenate(([True], key[1:] != key[:-1]))
    is_rest = _match_pairs(owner, unmatched, order, begins)
    if is_rest.any():
        _match_queues(owner, unmatched, order[is_rest], begins[is_rest])
    is_changed = _expire(owner, unmatched, order, begins, event_times, event_cpus, ascends=ascends)
    # Paired events have their end; it is searched for other events, and for all if any event was dropped.
    doubtful = unmatched.event if is_changed else unmatched.event[order[is_rest]]
    heads = np.sort(doubtful[doubtful >= 0])
    finished = np.sort(owner[(unmatched.event < 0) & (owner >= 0) & unmatched.closes]) if len(heads) else heads
    return Matched(owner, heads[~contains(finished, heads)])


def _match_pairs(
    owner: NDArray[np.int64], unmatched: Unmatched, order: NDArray[np.intp], begins: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Match the keys that have just an open event and a run of tails that ends it; nearly all keys do.

    Args:
        owner: int64 (n,), receives the owners.
        unmatched: Rows to match.
        order: (n,), rows sorted by key, in file order within each key.
        begins: bool (n,), whether a row of `order` is the first of its key.

    Returns:
        bool (n,), which rows of `order` have other keys.
    """
    pairs = np.flatnonzero(begins & np.append(~begins[1:], False) & np.append(begins[2:], [True, True])[: len(begins)])
    heads, tails = order[pairs], order[pairs + 1]
    events = unmatched.event[heads]
    fits = (events >= 0) & (unmatched.event[tails] < 0) & unmatched.closes[tails]
    owner[tails[fits]] = events[fits]
    is_rest = np.ones(len(order), np.bool_)
    is_rest[pairs[fits]] = is_rest[pairs[fits] + 1] = False
    return is_rest


def _match_queues(
    owner: NDArray[np.int64], unmatched: Unmatched, order: NDArray[np.intp], begins: NDArray[np.bool_]
) -> None:
    """Match the rows of some keys by the queues of section 3.3, without a loop; arguments are as for `_match_pairs`.

    The k-th closing tail of a key belongs to its k-th head, not counting tails that came while no event was open.
    """
    n, segment = len(order), np.cumsum(begins) - 1
    is_head = unmatched.event[order] >= 0
    closing = unmatched.closes[order] & ~is_head
    heads = _within(np.cumsum(is_head), segment, begins)
    closed_before = _within(np.cumsum(closing), segment, begins) - closing
    orphan_ends = _running_excess(closed_before + closing - heads, segment, n)
    before = np.concatenate(([0], orphan_ends[:-1]))
    before[begins] = 0
    index = closed_before - before  # the oldest open event of the key
    has_owner = ~is_head & (index < heads)
    head_rows = np.flatnonzero(is_head)
    head_start = np.concatenate(([0], np.cumsum(is_head)))[np.flatnonzero(begins)[segment]]
    owner_sorted = np.where(is_head, unmatched.event[order], -1)
    owner_sorted[has_owner] = unmatched.event[order][head_rows[head_start[has_owner] + index[has_owner]]]
    owner[order] = owner_sorted


def contains(ascending: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which values are in an ascending array, bool (n,); fast if the values ascend too."""
    if not len(ascending):
        return np.zeros(len(values), np.bool_)
    position = np.searchsorted(ascending, values)
    position[position == len(ascending)] = 0
    return np.asarray(ascending[position] == values)


def _within(counts: NDArray[np.intp], segment: NDArray[np.intp], begins: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return running counts that restart in every segment."""
    base = np.concatenate(([0], counts))[np.flatnonzero(begins)]
    return counts - base[segment]


def _running_excess(excess: NDArray[np.intp], segment: NDArray[np.intp], n: int) -> NDArray[np.intp]:
    """Return per segment the running maximum of `excess`, never below 0."""
    # No excess is larger than n, so values lifted in a segment are never above those in the next one.
    lifted = np.maximum(excess, 0) + segment * n
    return np.maximum.accumulate(lifted) - segment * n


def _expire(
    owner: NDArray[np.int64],
    unmatched: Unmatched,
    order: NDArray[np.intp],
    begins: NDArray[np.bool_],
    event_times: NDArray[np.int64],
    event_cpus: NDArray[np.uint8],
    *,
    ascends: bool,
) -> bool:
    """Remove tails from events that were dropped because their CPU was a rollover away; return if there are any."""
    tails = np.flatnonzero((unmatched.event < 0) & (owner >= 0))
    tails = tails[_may_be_given_up(unmatched.before[tails], owner[tails], event_times, ascends=ascends)]
    if not len(tails):
        return False
    aged = is_expired(_cpu_times(unmatched, tails, event_times, event_cpus), event_times[owner[tails]])
    if not aged.any():
        return False
    # Dropping an event shifts the rest of its queue, so the few keys concerned are processed one by one.
    segment = np.cumsum(begins, dtype=np.intp)
    segment_of = np.empty_like(segment)
    segment_of[order] = segment
    concerned = np.zeros(int(segment[-1]) + 1, np.bool_)
    concerned[segment_of[tails[aged]]] = True
    rows = order[concerned[segment]]  # by key, within a key in file order
    owner[rows] = _owners_one_by_one(unmatched, rows, segment_of[rows], event_times, event_cpus)
    return True


def _may_be_given_up(
    before: NDArray[np.int64], owner: NDArray[np.int64], event_times: NDArray[np.int64], *, ascends: bool
) -> NDArray[np.bool_]:
    """Return which tails may belong to a dropped event: a clock may have been a rollover away from its start.

    This is a fast test by the time ranges of blocks of rows from the event to the row `before`; tails that it cannot
    exclude are examined exactly later. If times never decrease, the time of `before` is the latest.
    """
    if ascends:
        return is_expired(event_times[before], event_times[owner])
    if not len(before):
        return np.zeros(0, np.bool_)
    starts = np.arange(0, len(event_times), _BLOCK_ROWS)
    low, high = np.minimum.reduceat(event_times, starts), np.maximum.reduceat(event_times, starts)
    first_block, last_block = owner // _BLOCK_ROWS, before // _BLOCK_ROWS
    is_near = last_block - first_block <= 1
    lowest = np.where(is_near, np.minimum(low[first_block], low[last_block]), low.min())
    highest = np.where(is_near, np.maximum(high[first_block], high[last_block]), high.max())
    begun = event_times[owner]
    return np.asarray(is_expired(lowest, begun) | is_expired(highest, begun))


def _owners_one_by_one(
    unmatched: Unmatched,
    rows: NDArray[np.intp],
    segments: NDArray[np.intp],
    event_times: NDArray[np.int64],
    event_cpus: NDArray[np.uint8],
) -> list[int]:
    events, now = unmatched.event[rows], _cpu_times(unmatched, rows, event_times, event_cpus)
    now[events >= 0] = event_times[events[events >= 0]]
    owners: list[int] = []
    queue: deque[tuple[int, int]] = deque()  # open events of the key, oldest first, and their start times
    last = -1
    columns = (segments, events, now, unmatched.closes[rows])
    for segment, event, time, closes in zip(*(column.tolist() for column in columns), strict=True):
        if segment != last:
            queue.clear()
            last = segment
        if event >= 0:
            queue.append((event, time))
            owners.append(event)
            continue
        while queue and abs(time - queue[0][1]) >= ROLLOVER:
            queue.popleft()
        owners.append(queue[0][0] if queue else -1)
        if queue and closes:
            queue.popleft()
    return owners


def _cpu_times(
    unmatched: Unmatched, rows: NDArray[np.intp], event_times: NDArray[np.int64], event_cpus: NDArray[np.uint8]
) -> NDArray[np.int64]:
    """Return for unmatched rows the time of the last event before them on their CPU; `_LONG_AGO` = none."""
    cpus = (unmatched.header[rows] >> np.uint32(CPU_SHIFT) & np.uint32(CPU_MASK)).astype(np.uint8)
    return last_times(cpus, unmatched.before[rows], event_times, event_cpus, np.full(CPU_MASK + 1, _LONG_AGO))


def last_times(
    cpus: NDArray[np.uint8],
    before: NDArray[np.int64],
    event_times: NDArray[np.int64],
    event_cpus: NDArray[np.uint8],
    earlier: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the time of the last event of a CPU up to a row, for many pairs, in cycles, shape (len(cpus),).

    Args:
        cpus: (n,), the CPUs.
        before: (n,), the rows.
        event_times: Times of all events, in file order.
        event_cpus: CPUs of all events.
        earlier: (64,), result for a CPU that has no such event.
    """
    times = earlier[cpus]
    for cpu in np.unique(cpus).tolist():
        rows_of_cpu = np.flatnonzero(event_cpus == cpu)
        requests = np.flatnonzero(cpus == cpu)
        last = np.searchsorted(rows_of_cpu, before[requests], side="right") - 1
        times[requests[last >= 0]] = event_times[rows_of_cpu[last[last >= 0]]]
    return times
