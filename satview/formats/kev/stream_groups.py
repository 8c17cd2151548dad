"""The groups of slots of a chunk that goes by, and its events in the order of their last slots.

A group is an event, or a run of tails that does not follow its event.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from satview.base.ranges import numbers_of
from satview.core import library, streaming
from satview.core.streaming import Columns, Groups
from satview.events import wire
from satview.events.wire import Struct
from satview.formats.kev.open_events import OpenEvent
from satview.formats.kev.slots import combine

_FIRST_TAIL = np.uint32(0x80000000)  # set in middle and last slots
_KIND_SHIFT = np.uint32(wire.STRUCT_SHIFT)


def cpus_of(headers: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return the CPUs of header words, uint8 (n,)."""
    return (headers >> np.uint32(wire.CPU_SHIFT) & np.uint32(wire.CPU_MASK)).astype(np.uint8)


def group_starts(headers: NDArray[np.uint32], stamps: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return for every slot whether it begins an event, or a run of tails whose event is not the one right before.

    Shape (n,), bool; the first slot always begins something.
    """
    starts = np.ones(len(headers), np.bool_)
    # Structure bits 2 and 3 are the top bit of the header (section 3): one comparison finds both.
    tails = np.flatnonzero(headers[1:] >= _FIRST_TAIL) + 1
    before = headers[tails - 1]
    kind_before = before >> _KIND_SHIFT
    is_linked = ((headers[tails] ^ before) & combine.KEY_MASK == 0) & (stamps[tails] == stamps[tails - 1])
    is_linked &= (kind_before == Struct.COMBINE_BEGIN) | (kind_before == Struct.COMBINE_CONTINUE)
    starts[tails[is_linked]] = False
    return starts


def found_groups(slots: NDArray[np.uint32]) -> Groups:
    """Return what a chunk of slots, contiguous (n, 4), is made of."""
    if library.is_available():
        return streaming.groups(slots, combine.MAX_SLOTS)
    headers, stamps = np.ascontiguousarray(slots[:, 0]), np.ascontiguousarray(slots[:, 1])
    at = np.flatnonzero(group_starts(headers, stamps))
    heads = headers[at]
    counts = np.diff(at, append=len(slots))
    kinds, ends = heads >> _KIND_SHIFT, headers[at + counts - 1] >> _KIND_SHIFT
    is_empty, is_tail = heads == 0, kinds >= Struct.COMBINE_CONTINUE
    begins = ~is_tail & ~is_empty
    is_whole = begins & ((kinds == Struct.SIMPLE) | (ends == Struct.COMBINE_END)) & (counts <= combine.MAX_SLOTS)
    zeros, first = at[is_empty], at[begins]
    return Groups(
        np.append(at, len(slots)), is_whole, np.cumsum(begins) - 1, heads[begins] & np.uint32(wire.CODE_MASK),
        cpus_of(heads[begins]), stamps[first], first, np.flatnonzero(~is_whole & ~is_empty),
        np.flatnonzero(kinds == Struct.COMBINE_BEGIN), len(zeros), int(zeros[0]) if len(zeros) else -1,
    )  # fmt: skip


def without_contested(slots: NDArray[np.uint32], found: Groups, open_keys: NDArray[np.uint64]) -> Groups:
    """Return the groups, where events are not whole that share CPU, stamp, class and number with an open one.

    Their tails belong to the oldest of those that are open, which may not be the one right before.

    Args:
        slots: The chunk.
        found: Its groups.
        open_keys: uint64, keys of events that earlier chunks left open.
    """
    opens = found.other[slots[found.at[found.other], 0] < _FIRST_TAIL]
    if not len(open_keys) and not len(opens):
        return found
    begun = found.begun
    if library.is_available():
        # First the events with one of these keys, which are few: comparing all events of the chunk would cost a sort.
        every = np.unique(np.concatenate((keys_of(slots, found, opens), open_keys)))
        begun = streaming.with_keys(slots, found.at, begun, every)
    keys = np.concatenate((keys_of(slots, found, begun), open_keys))
    is_known = np.ones(len(keys), np.bool_)
    is_known[: len(begun)] = ~found.is_whole[begun]
    contested = begun[combine.contested(keys, is_known)[: len(begun)]]
    if not len(contested):
        return found
    is_whole = found.is_whole.copy()
    is_whole[contested] = False
    return found._replace(is_whole=is_whole, other=np.union1d(found.other, contested))


def keys_of(slots: NDArray[np.uint32], found: Groups, groups: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the keys of some groups, uint64 (n,)."""
    at = found.at[groups]
    return combine.keys(slots[at, 0], slots[at, 1])


def ended(events: Sequence[OpenEvent], last: Sequence[int]) -> Columns:
    """Return events that tails have ended as columns; `last` are their last slots, ascending."""
    words = [np.concatenate(event.words) for event in events]
    start = np.zeros(len(events) + 1, np.int64)
    np.cumsum([len(part) for part in words], out=start[1:])
    return Columns(
        np.array([event.header for event in events], np.uint32),
        np.array([event.stamp for event in events], np.uint32),
        np.array([event.time for event in events], np.int64),
        np.array([event.thread for event in events], np.uint32),
        start,
        np.concatenate(words) if words else np.empty(0, np.uint32),
        np.array(last, np.int64),
    )


def delivered(
    slots: NDArray[np.uint32], found: Groups, time: NDArray[np.int64], thread: NDArray[np.uint32], done: Columns
) -> Columns:
    """Return the whole events of a chunk and those that tails have ended, in the order of their last slots.

    Args:
        slots: uint32 (n, 4).
        found: Its groups.
        time: int64 (e,), of events that begin in the chunk.
        thread: uint32 (e,).
        done: Events that tails have ended.
    """
    if library.is_available():
        return streaming.deliver(slots, found, time, thread, done)
    whole = np.flatnonzero(found.is_whole)
    at, end, rows = found.at[whole], found.at[whole + 1], found.event[whole]
    sizes, old = np.concatenate((2 * (end - at), np.diff(done.start))), np.concatenate((2 * at, done.start[:-1]))
    # Words of events that tails have ended are behind those of the chunk's slots in `words`.
    old[len(whole) :] += 2 * len(slots)
    last = np.concatenate((end - 1, done.last))
    order = np.argsort(last, kind="stable")
    start = np.concatenate(([0], np.cumsum(sizes[order]))).astype(np.int64)
    words = np.concatenate((slots[:, 2:4].ravel(), done.words))
    return Columns(
        np.concatenate((slots[at, 0], done.header))[order],
        np.concatenate((slots[at, 1], done.stamp))[order],
        np.concatenate((time[rows], done.time))[order],
        np.concatenate((thread[rows], done.thread))[order],
        start,
        words[numbers_of(old[order], sizes[order])],
        last[order],
    )
