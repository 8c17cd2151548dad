"""The compiled passes over chunks that go by: groups of slots, and events in the order of their last slots.

`streaming.c` says what each does and which numpy code is its twin. Arrays must be contiguous and of the types named
here; sizes are taken from them.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from satview.core.library import I64, POINTER, address, function
from satview.core.signatures import call

_COUNTS: Final = 6


class _Groups(ctypes.Structure):
    """`satview_groups` of streaming.c."""

    _fields_ = [
        (name, I64 if name in ("slot_count", "most_slots") else POINTER)
        for name in ("slots", "slot_count", "most_slots", "at", "is_whole", "event", "code", "cpu", "stamp", "first",
                     "other", "begun", "counts")
    ]  # fmt: skip


class _Delivery(ctypes.Structure):
    """`satview_delivery` of streaming.c."""

    _fields_ = [
        (name, I64 if name in ("groups", "done") else POINTER)
        for name in (
            "slots", "groups", "at", "is_whole", "event", "time_of", "thread_of", "done", "done_last", "done_header",
            "done_stamp", "done_time", "done_thread", "done_start", "done_words", "header", "stamp", "time", "thread",
            "start", "words", "last")
    ]  # fmt: skip


class Groups(NamedTuple):
    """What a chunk of slots is made of: g groups, of which e begin an event.

    Attributes:
        at: int64 (g + 1,), first slot of each group; the last element is the number of slots.
        is_whole: bool (g,), an event with all its slots.
        event: int64 (g,), the last event that begins in it or before it, -1 for none.
        code: uint32 (e,), of each event.
        cpu: uint8 (e,).
        stamp: uint32 (e,).
        first: int64 (e,), its first slot.
        other: int64, groups that are events without their end, or tails without their event.
        begun: int64, groups that begin a combine event.
        zeros: How many groups are a slot of zeros.
        zero: The first of their slots, -1 for none.
    """

    at: NDArray[np.int64]
    is_whole: NDArray[np.bool_]
    event: NDArray[np.int64]
    code: NDArray[np.uint32]
    cpu: NDArray[np.uint8]
    stamp: NDArray[np.uint32]
    first: NDArray[np.int64]
    other: NDArray[np.int64]
    begun: NDArray[np.int64]
    zeros: int
    zero: int


def groups(slots: NDArray[np.uint32], most_slots: int) -> Groups:
    """Return what a chunk is made of.

    Args:
        slots: uint32 (n, 4).
        most_slots: Of an event that is whole.
    """
    assert slots.flags.c_contiguous
    count = len(slots)
    types = {"is_whole": np.uint8, "code": np.uint32, "cpu": np.uint8, "stamp": np.uint32}
    names = ("at", "is_whole", "event", "code", "cpu", "stamp", "first", "other", "begun")
    columns: dict[str, NDArray[Any]] = {name: np.empty(count + 1, types.get(name, np.int64)) for name in names}
    counts = np.zeros(_COUNTS, np.int64)
    chunk = _Groups(address(slots), count, most_slots, *(address(columns[name]) for name in names), address(counts))
    function("satview_stream_groups")(ctypes.byref(chunk))
    found, events, others, begun, zeros, zero = counts.tolist()
    sizes = dict.fromkeys(("code", "cpu", "stamp", "first"), events) | {
        "at": found + 1,
        "other": others,
        "begun": begun,
    }
    columns = {name: column[: sizes.get(name, found)] for name, column in columns.items()}
    columns["is_whole"] = columns["is_whole"].view(np.bool_)
    return Groups(**columns, zeros=zeros, zero=zero)


def with_keys(
    slots: NDArray[np.uint32], at: NDArray[np.int64], group: NDArray[np.int64], keys: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Return which of some groups have a key that is among ascending ones, int64 (k,)."""
    out = np.empty(len(group), np.int64)
    found = call("satview_with_keys", slots, at, group, len(group), keys, len(keys), out)
    return out[:found]


class Columns(NamedTuple):
    """Events one after the other; n events, w words.

    Attributes:
        header: uint32 (n,), first words.
        stamp: uint32 (n,).
        time: int64 (n,), cycles.
        thread: uint32 (n,).
        start: int64 (n + 1,), where payloads begin.
        words: uint32 (w,).
        last: int64 (n,), last slots.
    """

    header: NDArray[np.uint32]
    stamp: NDArray[np.uint32]
    time: NDArray[np.int64]
    thread: NDArray[np.uint32]
    start: NDArray[np.int64]
    words: NDArray[np.uint32]
    last: NDArray[np.int64]


def deliver(
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
    count = int(np.count_nonzero(found.is_whole)) + len(done.header)
    size = 2 * len(slots) + len(done.words)
    columns = Columns(
        np.empty(count, np.uint32), np.empty(count, np.uint32), np.empty(count, np.int64), np.empty(count, np.uint32),
        np.empty(count + 1, np.int64), np.empty(size, np.uint32), np.empty(count, np.int64),
    )  # fmt: skip
    time, thread = np.ascontiguousarray(time, np.int64), np.ascontiguousarray(thread, np.uint32)
    assert len(time) == len(thread) == len(found.code)
    before = (done.last, done.header, done.stamp, done.time, done.thread, done.start, done.words)
    delivery = _Delivery(
        address(slots), len(found.is_whole), address(found.at), address(found.is_whole), address(found.event),
        address(time), address(thread), len(done.header), *(address(column) for column in before),
        *(address(column) for column in columns),
    )  # fmt: skip
    rows = function("satview_deliver")(ctypes.byref(delivery))
    assert rows == count
    return columns._replace(words=columns.words[: int(columns.start[-1])])
