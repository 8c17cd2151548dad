"""Combine events whose end has not been read yet, for a reader that passes once over the slots.

Source: kernel event trace format, section 3.3. There is a queue per CPU, stamp, class and event number, oldest event
first. The number of open events is limited, because a garbage file has very many: beyond the limit the oldest is
dropped. An event is also dropped when the clock of its CPU is a rollover away (see `combine`).

A group is an event, or a run of tails that does not follow its event. Nearly all separated events are ended by a single
run of tails in the same chunk; these are matched all at once.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from satview.core import streaming
from satview.core.streaming import Groups, StreamColumns
from satview.events import wire
from satview.events.wire import SLOT_BYTES
from satview.formats.kev.clocks.clock import held_times
from satview.formats.kev.clocks.rollover import ROLLOVER
from satview.formats.kev.slots import combine
from satview.formats.kev.slots.combine import MAX_SLOTS
from satview.store.problems import Problems

MAX_OPEN: Final = 1 << 16  # open events; a real trace has a handful, with a few slots each
MAX_WORDS: Final = 1 << 22  # payload words of all open events


@dataclass(slots=True)
class OpenEvent:
    """An event whose end has not been read yet: data of its first slot, and its payload so far."""

    header: int
    stamp: int
    time: int
    thread: int
    position: int
    words: list[NDArray[np.uint32]]
    slots: int = 1


class OpenEvents:
    """The queues of open events.

    Args:
        problems: Receives dropped events.
        offset: Byte offset of the first slot in the file.
    """

    def __init__(self, problems: Problems, offset: int) -> None:
        self._problems = problems
        self._offset = offset
        self._queues: OrderedDict[int, deque[OpenEvent]] = OrderedDict()
        self._count = 0
        self._words = 0

    def __len__(self) -> int:
        return self._count

    def keys(self) -> NDArray[np.uint64]:
        """Return the keys with an open event.

        Returns:
            uint64 (n,).
        """
        return np.fromiter(self._queues, np.uint64, len(self._queues))

    def has_room(self, events: int, words: int) -> bool:
        """Return whether these numbers of further events and words fit without dropping an event."""
        return self._count + events <= MAX_OPEN and self._words + words <= MAX_WORDS

    def add(self, key: int, event: OpenEvent) -> None:
        """Add an open event; drop the oldest ones beyond the limits."""
        self._queues.setdefault(key, deque()).append(event)
        self._count += 1
        self._words += len(event.words[0])
        # Both are limited, because many short events fill the memory just like a few that never end.
        while self._count > MAX_OPEN or self._words > MAX_WORDS:
            self._give_up_oldest()

    def append(
        self, key: int, words: NDArray[np.uint32], slots: int, now_cycles: int, *, closes: bool
    ) -> OpenEvent | None:
        """Append slots to the oldest open event of a key; return the event if they end it, else None.

        Args:
            key: Key of the event.
            words: Payload to append.
            slots: Number of slots.
            now_cycles: Time of the last event before the slots on their CPU; open events a rollover away are dropped.
            closes: Whether the last slot is an end slot.

        Raises:
            KeyError: No event of the key is open, or all were dropped.
        """
        queue = self._queues[key]
        # Rule 7 of section 3.3: the stamp may have rolled over, and the slots belong to a later event.
        while queue and abs(now_cycles - queue[0].time) >= ROLLOVER:
            self._report(self._remove(key, queue))
        queue = self._queues[key]
        event = queue[0]
        event.words.append(words)
        event.slots += slots
        self._words += len(words)
        # An event without end would grow with the file; at the limit it is delivered as it is.
        if not closes and event.slots <= MAX_SLOTS:
            return None
        self._remove(key, queue)
        return event

    def move_before(self, from_cycles: int) -> None:
        """Recompute the times of all open events, counting backwards from the first TIME of the file."""
        for event in (event for queue in self._queues.values() for event in queue):
            event.time = int(held_times(np.array([event.stamp], np.uint32), from_cycles)[0])

    def finish(self) -> None:
        """Report all events that are still open at the end of the file."""
        left = [event for queue in self._queues.values() for event in queue]
        for event in sorted(left, key=lambda event: event.position):
            self._report(event)

    def _give_up_oldest(self) -> None:
        key, queue = next(iter(self._queues.items()))
        self._report(self._remove(key, queue))

    def _remove(self, key: int, queue: deque[OpenEvent]) -> OpenEvent:
        event = queue.popleft()
        self._count -= 1
        self._words -= sum(len(words) for words in event.words)
        if not queue:
            del self._queues[key]
        return event

    def _report(self, event: OpenEvent) -> None:
        self._problems.add(
            "unfinished-events", "the end of this event is missing", self._offset + event.position * SLOT_BYTES
        )


FIRST_TAIL = np.uint32(0x80000000)  # set in middle and last slots


def cpus_of(headers: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return the CPU in each header word, uint8 (n,)."""
    return (headers >> np.uint32(wire.CPU_SHIFT) & np.uint32(wire.CPU_MASK)).astype(np.uint8)


def without_contested(slots: NDArray[np.uint32], groups: Groups, open_keys: NDArray[np.uint64]) -> Groups:
    """Mark events as incomplete if an open event has the same CPU, stamp, class and number; return the groups.

    The tails of such an event belong to the oldest open event, which may be another one.

    Args:
        slots: The chunk.
        groups: Groups of the chunk.
        open_keys: uint64, keys of events that earlier chunks left open.
    """
    opens = groups.other[slots[groups.group_slot[groups.other], 0] < FIRST_TAIL]
    if not len(open_keys) and not len(opens):
        return groups
    # First select the few events with one of these keys: comparing all events of the chunk would need a sort.
    every = np.unique(np.concatenate((keys_of(slots, groups, opens), open_keys)))
    begun = streaming.with_keys(slots, groups.group_slot, groups.begun, every)
    keys = np.concatenate((keys_of(slots, groups, begun), open_keys))
    is_known = np.ones(len(keys), np.bool_)
    is_known[: len(begun)] = ~groups.is_whole[begun]
    contested = begun[combine.contested(keys, is_known)[: len(begun)]]
    if not len(contested):
        return groups
    is_whole = groups.is_whole.copy()
    is_whole[contested] = False
    return groups._replace(is_whole=is_whole, other=np.union1d(groups.other, contested))


def keys_of(slots: NDArray[np.uint32], groups: Groups, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the keys of groups, uint64 (n,)."""
    first_slots = groups.group_slot[numbers]
    return combine.keys(slots[first_slots, 0], slots[first_slots, 1])


def ended(events: Sequence[OpenEvent], last: Sequence[int]) -> StreamColumns:
    """Return complete events as columns; `last` contains their last slots, ascending."""
    words = [np.concatenate(event.words) for event in events]
    start = np.zeros(len(events) + 1, np.int64)
    np.cumsum([len(part) for part in words], out=start[1:])
    return StreamColumns(
        np.array([event.header for event in events], np.uint32),
        np.array([event.stamp for event in events], np.uint32),
        np.array([event.time for event in events], np.int64),
        np.array([event.thread for event in events], np.uint32),
        start,
        np.concatenate(words) if words else np.empty(0, np.uint32),
        np.array(last, np.int64),
    )


class TailRuns(NamedTuple):
    """Groups of slots that are not whole events, in file order; every column has shape (n,).

    Attributes:
        key: uint64, CPU, class, event and stamp.
        row: int64, for a head its event, for tails the last event before them.
        start: int64, first slot.
        end: int64, the slot after the last.
        header: uint32, header of the first slot.
        stamp: uint32.
        opens: bool, whether the group begins an event.
        closes: bool, whether the last slot is an end slot.
        time_before: int64, start of the last event before the group on its CPU, cycles.
    """

    key: NDArray[np.uint64]
    row: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    header: NDArray[np.uint32]
    stamp: NDArray[np.uint32]
    opens: NDArray[np.bool_]
    closes: NDArray[np.bool_]
    time_before: NDArray[np.int64]

    def at(self, positions: NDArray[np.generic]) -> TailRuns:
        """Return a selection of rows."""
        return TailRuns(*(column[positions] for column in self))


def pairs_of(
    runs: TailRuns, open_keys: NDArray[np.uint64], time: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return heads that are ended by a single run of tails, and these runs: positions among the groups, (k,) each.

    No other group and no open event has the same key, so the result equals that of `OpenEvents`, without a loop.

    Args:
        runs: The groups.
        open_keys: uint64, keys of events that earlier chunks left open.
        time: int64, times of the events that begin in the chunk.
    """
    order = np.argsort(runs.key, kind="stable")
    key = runs.key[order]
    differs = np.concatenate(([True], key[1:] != key[:-1], [True]))
    head_positions = np.flatnonzero(differs[:-2] & ~differs[1:-1] & differs[2:])  # exactly two groups with the key
    heads, tails = order[head_positions], order[head_positions + 1]
    fits = runs.opens[heads] & ~runs.closes[heads] & ~runs.opens[tails] & runs.closes[tails]
    fits &= np.abs(runs.time_before[tails] - time[runs.row[heads]]) < ROLLOVER
    fits &= (runs.end[heads] - runs.start[heads]) + (runs.end[tails] - runs.start[tails]) <= MAX_SLOTS
    if len(open_keys):
        fits &= ~np.isin(runs.key[heads], open_keys)
    return heads[fits], tails[fits]


def ended_by(
    slots: NDArray[np.uint32], heads: TailRuns, tails: TailRuns, time: NDArray[np.int64], thread: NDArray[np.uint32]
) -> StreamColumns:
    """Return events that are ended by one run of tails each, in the order of their last slots.

    Args:
        slots: uint32 (n, 4), the chunk.
        heads: Groups with the first slots of the events.
        tails: Groups with the other slots, in the same order.
        time: int64, times of the events that begin in the chunk.
        thread: uint32, threads of the events that begin in the chunk.
    """
    order = np.argsort(tails.end)
    heads, tails = heads.at(order), tails.at(order)
    first_slots = np.stack((heads.start, tails.start), axis=1).ravel()
    count = np.stack((heads.end, tails.end), axis=1).ravel() - first_slots
    start = np.concatenate(([0], np.cumsum(count)[1::2])).astype(np.int64)
    return StreamColumns(
        heads.header, heads.stamp, time[heads.row], thread[heads.row].astype(np.uint32, copy=False), 2 * start,
        slots[_spread(first_slots, count), 2:4].ravel(), tails.end - 1,
    )  # fmt: skip


def merged(first: StreamColumns, second: StreamColumns) -> StreamColumns:
    """Merge the events of two tables in the order of their last slots."""
    if not len(first.last) or not len(second.last):
        return first if len(first.last) else second
    order = np.argsort(np.concatenate((first.last, second.last)))
    first_words = np.concatenate((first.start[:-1], second.start[:-1] + len(first.words)))[order]
    count = np.concatenate((np.diff(first.start), np.diff(second.start)))[order]
    header, stamp, time, thread, last = (
        np.concatenate((getattr(first, name), getattr(second, name)))[order]
        for name in ("header", "stamp", "time", "thread", "last")
    )
    start = np.concatenate(([0], np.cumsum(count))).astype(np.int64)
    words = np.concatenate((first.words, second.words))[_spread(first_words, count)]
    return StreamColumns(header, stamp, time, thread, start, words, last)


def _spread(first_numbers: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers in several ranges, concatenated, int64 (sum of counts,)."""
    ends = np.cumsum(count)
    numbers: NDArray[np.int64] = np.repeat(first_numbers - (ends - count), count)
    numbers += np.arange(len(numbers))
    return numbers
