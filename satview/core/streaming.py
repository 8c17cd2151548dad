"""Compiled passes over streamed slots, which form groups of slots and events; see streaming.c.

A group is a run of adjacent slots of one event. Events are delivered in the order of their last slots.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from satview.core.library import call

_COUNTS: Final = 6


class Groups(NamedTuple):
    """The groups of a chunk of slots: g groups, of which e start an event.

    Attributes:
        group_slot: int64 (g + 1,), first slot of each group; the last element is the number of slots.
        is_whole: bool (g,), whether the group is a complete event.
        event: int64 (g,), index of the last event that starts in or before the group, -1 for none.
        code: uint32 (e,), code of each event.
        cpu: uint8 (e,).
        stamp: uint32 (e,).
        first_slot: int64 (e,).
        other: int64, groups that are an event without its end, or a tail without its event.
        begun: int64, groups that start a combine event.
        zeros: Number of groups that are an all-zero slot.
        zero: The first all-zero slot, -1 for none.
    """

    group_slot: NDArray[np.int64]
    is_whole: NDArray[np.bool_]
    event: NDArray[np.int64]
    code: NDArray[np.uint32]
    cpu: NDArray[np.uint8]
    stamp: NDArray[np.uint32]
    first_slot: NDArray[np.int64]
    other: NDArray[np.int64]
    begun: NDArray[np.int64]
    zeros: int
    zero: int


def groups(slots: NDArray[np.uint32], most_slots: int) -> Groups:
    """Return the slots of a chunk in groups: each is an event, a part of one, or an all-zero slot.

    Args:
        slots: uint32 (n, 4).
        most_slots: Maximum number of slots of a complete event.
    """
    types = {"is_whole": np.bool_, "code": np.uint32, "cpu": np.uint8, "stamp": np.uint32}
    names = ("group_slot", "is_whole", "event", "code", "cpu", "stamp", "first_slot", "other", "begun")
    columns: dict[str, NDArray[Any]] = {name: np.empty(len(slots) + 1, types.get(name, np.int64)) for name in names}
    counts = np.zeros(_COUNTS, np.int64)
    call("stream_groups", slots, most_slots, *columns.values(), counts)
    size, events, others, begun, zeros, zero = counts.tolist()
    sizes = dict.fromkeys(("code", "cpu", "stamp", "first_slot"), events)
    sizes |= {"group_slot": size + 1, "other": others, "begun": begun}
    return Groups(
        **{name: column[: sizes.get(name, size)] for name, column in columns.items()}, zeros=zeros, zero=zero
    )  # fmt: skip


def with_keys(
    slots: NDArray[np.uint32], first_slots: NDArray[np.int64], group: NDArray[np.int64], keys: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Return the groups in `group` whose first slot has one of the ascending `keys`, int64 (k,)."""
    out = np.empty(len(group), np.int64)
    return out[: call("with_keys", slots, first_slots, group, keys, out)]


class StreamColumns(NamedTuple):
    """Columns of n events with w payload words.

    Attributes:
        header: uint32 (n,), first words.
        stamp: uint32 (n,).
        time: int64 (n,), cycles.
        thread: uint32 (n,).
        start: int64 (n + 1,), index in `words` at which each payload begins.
        words: uint32 (w,), payload words.
        last: int64 (n,), last slot of each event.
    """

    header: NDArray[np.uint32]
    stamp: NDArray[np.uint32]
    time: NDArray[np.int64]
    thread: NDArray[np.uint32]
    start: NDArray[np.int64]
    words: NDArray[np.uint32]
    last: NDArray[np.int64]


def deliver(
    slots: NDArray[np.uint32],
    chunk_groups: Groups,
    time: NDArray[np.int64],
    thread: NDArray[np.uint32],
    done: StreamColumns,
) -> StreamColumns:
    """Merge the complete events of a chunk with the events completed by tails, in the order of their last slots.

    Args:
        slots: uint32 (n, 4), slots of the chunk.
        chunk_groups: Groups of the chunk.
        time: int64 (e,), times of the events that start in the chunk.
        thread: uint32 (e,), threads of these events.
        done: Events completed by tails.
    """
    count = int(np.count_nonzero(chunk_groups.is_whole)) + len(done.header)
    size = 2 * len(slots) + len(done.words)
    columns = StreamColumns(
        np.empty(count, np.uint32), np.empty(count, np.uint32), np.empty(count, np.int64), np.empty(count, np.uint32),
        np.empty(count + 1, np.int64), np.empty(size, np.uint32), np.empty(count, np.int64),
    )  # fmt: skip
    time, thread = np.ascontiguousarray(time, np.int64), np.ascontiguousarray(thread, np.uint32)
    before = (done.last, done.header, done.stamp, done.time, done.thread, done.start, done.words)
    call(
        "deliver",
        slots,
        chunk_groups.group_slot,
        chunk_groups.is_whole,
        chunk_groups.event,
        time,
        thread,
        *before,
        *columns,
    )
    return columns._replace(words=columns.words[: int(columns.start[-1])])
