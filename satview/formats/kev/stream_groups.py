"""The groups of slots of a chunk that goes by, and its events in the order of their last slots.

A group is an event, or a run of tails that does not follow its event.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from satview.core import streaming
from satview.core.streaming import Columns, Groups
from satview.events import wire
from satview.formats.kev.open_events import OpenEvent
from satview.formats.kev.slots import combine

_FIRST_TAIL = np.uint32(0x80000000)  # set in middle and last slots


def cpus_of(headers: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return the CPUs of header words, uint8 (n,)."""
    return (headers >> np.uint32(wire.CPU_SHIFT) & np.uint32(wire.CPU_MASK)).astype(np.uint8)


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
    # First the events with one of these keys, which are few: comparing all events of the chunk would cost a sort.
    every = np.unique(np.concatenate((keys_of(slots, found, opens), open_keys)))
    begun = streaming.with_keys(slots, found.at, found.begun, every)
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
