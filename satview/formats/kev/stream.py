"""Decodes the events of a trace as a stream, chunk by chunk; a combine event may end in a later chunk."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from satview.core import loading
from satview.core.loading import Groups, StreamColumns
from satview.events import wire
from satview.events.spec import Release
from satview.events.wire import MAX_CPUS, SLOT_BYTES, Struct
from satview.formats.kev import combine
from satview.formats.kev.clock import ClockChunk, ClockRebuilder, ClockReview, correct, held_times
from satview.formats.kev.combine import (
    MAX_SLOTS,
    EventRegion,
    last_times,
    missing_before,
    predecessors,
    report_buffers,
    report_control_events,
)
from satview.formats.kev.consensus import ROLLOVER, Correction, Surroundings
from satview.formats.kev.decode import Discontinuities, ThreadNumbers
from satview.formats.kev.repair import LastEvents, first_of_tail, is_ring, verdicts_without_tail
from satview.store.problems import Problems
from satview.store.tables import BufferTable

# Combine events whose end has not been read yet, for a reader that passes once over the slots.
#
# Source: kernel event trace format, section 3.3. There is a queue per CPU, stamp, class and event number, oldest event
# first. The number of open events is limited, because a garbage file has very many: beyond the limit the oldest is
# dropped. An event is also dropped when the clock of its CPU is a rollover away (see `combine`).
#
# A group is an event, or a run of tails that does not follow its event. Nearly all separated events are ended by a
# single run of tails in the same chunk; these are matched all at once.


MAX_OPEN: Final = 1 << 16  # open events; a real trace has a handful, with a few slots each
MAX_WORDS: Final = 1 << 22  # payload words of all open events


@dataclass(slots=True)
class OpenEvent:
    """An event whose end has not been read yet.

    Attributes:
        header, stamp: Words of its first slot.
        time: Time in cycles.
        thread: Number of its thread.
        position: Number of its first slot in the file.
        words: Payload so far: arrays of uint32.
        slots: Number of slots so far.
    """

    header: int
    stamp: int
    time: int
    thread: int
    position: int
    words: list[NDArray[np.uint32]]
    slots: int = 1


class OpenEvents:
    """The open events (end not read yet), in a queue for each key: CPU, stamp, class and event number.

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
        """Return the keys (CPU, stamp, class and event number) that have an open event, uint64 (n,)."""
        return np.fromiter(self._queues, np.uint64, len(self._queues))

    def has_room(self, events: int, words: int) -> bool:
        """Return whether `events` further open events with `words` payload words fit without dropping an event."""
        return self._count + events <= MAX_OPEN and self._words + words <= MAX_WORDS

    def add(self, key: int, event: OpenEvent) -> None:
        """Add an open event; if there are then too many events or words, drop the oldest events."""
        self._queues.setdefault(key, deque()).append(event)
        self._count += 1
        self._words += len(event.words[0])
        # Both are limited, because many short events fill the memory just like a few that never end.
        while self._count > MAX_OPEN or self._words > MAX_WORDS:
            self._give_up_oldest()

    def append(
        self, key: int, words: NDArray[np.uint32], slots: int, now_cycles: int, *, closes: bool
    ) -> OpenEvent | None:
        """Append slots to the oldest open event of a key; return the event if it is now complete, else None.

        An event that exceeds the maximum number of slots is returned as if it were complete. Open events of the key
        that began a rollover or more before `now_cycles`, the time of the CPU's last event, are dropped. `closes` = the
        last slot is an end slot. Raises KeyError if no event of the key is open, or all were dropped.
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
        """Recompute the times of all open events, counting backwards from `from_cycles`, the first TIME of the file."""
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

    The continuation slots after a marked event belong to the oldest open event of its key, which may be another event.

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
    begun = loading.with_keys(slots, groups.group_slot, groups.begun, every)
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
    """Return the keys (CPU, stamp, class and event number) of groups of slots, uint64 (n,).

    Args:
        slots: uint32 (k, 4), the chunk.
        groups: Groups of the chunk.
        numbers: int64 (n,), the groups whose keys are returned.
    """
    first_slots = groups.group_slot[numbers]
    return combine.keys(slots[first_slots, 0], slots[first_slots, 1])


def ended(done: Sequence[tuple[OpenEvent, int]]) -> StreamColumns:
    """Return complete events as columns, given with the positions of their last slots in the chunk, ascending."""
    events, last = [event for event, _ in done], [slot for _, slot in done]
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
        row: int64, row of the event that starts here; for continuation slots, row of the last event before them.
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
        """Return the groups at some positions, or where a mask is set."""
        return TailRuns(*(column[positions] for column in self))


def pairs_of(
    runs: TailRuns, open_keys: NDArray[np.uint64], time: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the event starts that are completed by a single run of continuation slots, and these runs.

    No other group and no open event has the same key, so the result equals that of `OpenEvents`, without a loop.

    Args:
        runs: The groups.
        open_keys: uint64, keys of events that earlier chunks left open.
        time: int64, times of the events that begin in the chunk.

    Returns:
        Positions in `runs` of the event starts, and of the runs that complete them, intp (k,) each.
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
    """Return events that are ended by one run of continuation slots each, in the order of their last slots.

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
    """Return the numbers of several ranges, given by first number and count, concatenated, int64 (sum of counts,)."""
    ends = np.cumsum(count)
    numbers: NDArray[np.int64] = np.repeat(first_numbers - (ends - count), count)
    numbers += np.arange(len(numbers))
    return numbers


# Decodes the events of a trace as a stream, chunk by chunk, in the order of their last slots in the file.
#
# This is for code that needs a single pass: listings, the traceparser library. Only events whose end has not been read
# yet are held in memory, so a pipe of any length can be read. For time order or random access see `reader.open_kev`.


@dataclass(frozen=True, slots=True)
class Batch:
    """Events of a chunk, in the order of their last slots; n events, w payload words, s slots.

    Attributes:
        first_slot: Index in the file of the chunk's first slot.
        slots: uint32 (s, 4), all slots of the chunk in host order.
        header: uint32 (n,), header word of each event's first slot.
        stamp: uint32 (n,).
        time_cycles: int64 (n,), rebuilt time.
        thread: uint32 (n,), number of each event's thread, see `EventStream.thread_ids`; 0 = not known.
        start: int64 (n + 1,): payload of event i is `words[start[i]:start[i + 1]]`.
        words: uint32 (w,), payload words in host order.
        last_slot: int64 (n,), position in `slots` of each event's last slot.
        stray_tails: int64 (k,), positions in `slots` of continuation slots that belong to no event.
    """

    first_slot: int
    slots: NDArray[np.uint32]
    header: NDArray[np.uint32]
    stamp: NDArray[np.uint32]
    time_cycles: NDArray[np.int64]
    thread: NDArray[np.uint32]
    start: NDArray[np.int64]
    words: NDArray[np.uint32]
    last_slot: NDArray[np.int64]
    stray_tails: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.header)

    @property
    def code(self) -> NDArray[np.uint16]:
        """Event code of each event: internal class and event number, uint16 (n,)."""
        return (self.header & np.uint32(wire.CODE_MASK)).astype(np.uint16)

    @property
    def cpu(self) -> NDArray[np.uint8]:
        """CPU of each event, uint8 (n,)."""
        return (self.header >> np.uint32(wire.CPU_SHIFT) & np.uint32(wire.CPU_MASK)).astype(np.uint8)


class BufferWatch:
    """Collects BUFFER events, about 30 bytes for every 700 slots, and reports losses at the end.

    Args:
        release: Determines whether buffers are numbered per CPU.
        problems: Receives the reports.
        offset: Byte offset of the first slot in the file.
    """

    def __init__(self, release: Release, problems: Problems, offset: int) -> None:
        self._release = release
        self._problems = problems
        self._offset = offset
        self._rows: list[NDArray[np.int64]] = []

    def take(self, batch: Batch) -> None:
        """Record the BUFFER events of a batch; report dropped events and damaged end marks."""
        code = batch.code
        rows = np.flatnonzero(code >> wire.CLASS_SHIFT == wire.WireClass.CONTROL)
        if not len(rows):
            return
        # CONTROL events have at least two words, as even a simple slot has two (section 3.1).
        first_words = batch.start[rows]
        words = np.column_stack((batch.words[first_words], batch.words[first_words + 1]))
        slot, time = batch.first_slot + batch.last_slot[rows], batch.time_cycles[rows]
        report_control_events(code[rows], words, slot, time, EventRegion(self._offset, 0), self._problems)
        controls = np.column_stack((slot, batch.cpu[rows], words, time)).astype(np.int64)
        self._rows.append(controls[code[rows] == wire.CONTROL_BUFFER])

    def finish(self, slot_count: int) -> None:
        """Report lost buffers, and buffers out of order or of wrong length, once all slots have been read."""
        if not self._rows:
            return
        slot, cpu, sequence, slots, time = np.concatenate(self._rows).T
        cpus, numbers = cpu.astype(np.uint8), sequence.astype(np.uint32)
        table = BufferTable(
            slot,
            cpus,
            numbers,
            slots.astype(np.uint32),
            time,
            missing_before(numbers, predecessors(cpus, time, self._release)),
        )
        report_buffers(table, EventRegion(self._offset, slot_count), self._release, self._problems)


CHUNK_SLOTS: Final = 1 << 16
_END: Final = int(Struct.COMBINE_END)
_KIND_SHIFT: Final = np.uint32(wire.STRUCT_SHIFT)
_MOST_WAITING: Final = 1024  # maximum number of successive BUFFER slots that wait; more are garbage
_FIRST_BYTES: Final = 1 << 14  # one kernel buffer
_SPELLED_OUT: Final = 100  # number of orphans of a chunk that are reported one by one; the others are counted


@dataclass(frozen=True, slots=True)
class _TimedChunk:
    """A chunk of slots whose events have times.

    Attributes:
        slots: (n, 4).
        groups: Events and runs of continuation slots of the chunk.
        time: (e,), times of the events that begin in the chunk.
        discontinuities: Position among these events, and CPU, of missing buffers.
        first_row: Number in the file of the first of these events.
    """

    slots: NDArray[np.uint32]
    groups: Groups
    time: NDArray[np.int64]
    discontinuities: list[tuple[int, int]]
    first_row: int


class EventStream:
    """Decodes a sequence of slots into batches of events.

    Args:
        blocks: Arrays (k, 4) of slots in host order, of any size, in file order.
        problems: Receives losses, orphans, unfinished events and empty slots.
        offset: Byte offset of the first slot in the file, for problems.
        release: Release whose buffer rules apply; None for slots from a listing, whose buffers have gaps.
        times: int64, full time of every slot, if the source contains it (listings from 7.1 on); None = rebuild times.
        has_whole_buffers: False for files made from a listing, whose buffers have gaps.
    """

    def __init__(
        self,
        blocks: Iterable[NDArray[np.uint32]],
        problems: Problems,
        offset: int = 0,
        release: Release | None = Release.QNX_7,
        times: NDArray[np.int64] | None = None,
        *,
        has_whole_buffers: bool = True,
    ) -> None:
        self._blocks = blocks
        self._problems = problems
        self._offset = offset
        self._watch = BufferWatch(release, problems, offset) if release is not None and has_whole_buffers else None
        self._times = times
        self._clock = ClockRebuilder()
        self._numbers = ThreadNumbers()
        self._running = np.zeros(MAX_CPUS, np.uint32)  # the thread on each CPU
        self._discontinuities = Discontinuities(release == Release.QNX_8)
        self._open = OpenEvents(problems, offset)
        self._awaits_time = True
        self._position = 0
        self._count = self._placed_slots = 0
        self._waiting: deque[_TimedChunk] = deque()
        self._last_times = np.zeros(wire.CPU_MASK + 1, np.int64)

    def inform(self, surroundings: Surroundings) -> None:
        """Set the information on the clock from header and system page, before the first batch."""
        self._clock = ClockRebuilder(review=ClockReview(surroundings))

    def thread_ids(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return pid and tid by thread number, int32 (threads,) each, for all threads so far; -1 for number 0."""
        keys = np.ascontiguousarray(self._numbers.keys()).view(np.uint32).reshape(-1, 2).astype(np.int32)
        keys[0] = -1
        return keys[:, 0], keys[:, 1]

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches; after the last one, all unfinished events have been reported."""
        carry = np.empty((0, 4), np.uint32)
        for block in self._blocks:
            whole = np.concatenate((carry, block)) if len(carry) else block
            usable = self._usable(whole)
            # The rest waits for the next block, at most `_MOST_WAITING` slots.
            carry = whole[usable:]
            if usable:
                self._waiting.append(self._placed(np.ascontiguousarray(whole[:usable])))
                self._clock.settle()
                review = self._clock.review
                yield from self._settled(review.final_corrections(), review.waits_from(self._count))
        if len(carry):
            self._waiting.append(self._placed(np.ascontiguousarray(carry)))
        yield from self._settled(self._last_corrections(), None)
        if self._watch is not None:
            self._watch.finish(self._position)
        self._open.finish()

    def _byte(self, slot: int) -> int:
        return self._offset + slot * SLOT_BYTES

    @staticmethod
    def _usable(slots: NDArray[np.uint32]) -> int:
        """Return the number of slots to process now.

        BUFFER events and zero slots at the end wait, because a BUFFER event takes the time of the next event.
        """
        headers = slots[:, 0]
        waits = (headers == 0) | (headers & np.uint32(wire.CODE_MASK) == wire.CONTROL_BUFFER)
        if not len(slots) or not waits[-1]:
            return len(slots)
        others = np.flatnonzero(~waits)
        if len(others):
            return int(others[-1]) + 1
        return 0 if len(slots) < _MOST_WAITING else len(slots)

    def _placed(self, slots: NDArray[np.uint32]) -> _TimedChunk:
        """Return the events of a chunk with their times, which later TIME events may still correct."""
        groups = loading.groups(slots, combine.MAX_SLOTS)
        code, cpu, first_slots = groups.code, groups.cpu, groups.first_slot
        marks = np.flatnonzero((code == wire.CONTROL_BUFFER) | (code == wire.CONTROL_DROPPED))
        discontinuities = self._discontinuities.find(
            marks, cpu[marks], slots[first_slots[marks], 2], code[marks] == wire.CONTROL_DROPPED
        )
        if self._times is not None:
            time = self._times[self._placed_slots + first_slots]
        else:
            self._clock.review.add_breaks([(self._count + row, ring) for row, ring in discontinuities])
            time = self._rebuild(slots, groups)
        placed = _TimedChunk(slots, groups, time, discontinuities, self._count)
        self._count += len(first_slots)
        self._placed_slots += len(slots)
        return placed

    def _last_corrections(self) -> list[Correction]:
        """Return the corrections for the waiting chunks, ignoring names appended to a ring capture."""
        waiting = self._waiting
        if not waiting or self._times is not None:
            return self._clock.verdicts().corrections
        code, cpu, time = (
            np.concatenate(columns)
            for columns in zip(*((chunk.groups.code, chunk.groups.cpu, chunk.time) for chunk in waiting), strict=True)
        )
        slots = np.concatenate([chunk.slots[chunk.groups.first_slot] for chunk in waiting])
        surroundings = self._clock.review.surroundings
        if not is_ring(surroundings, code, slots[:, 2:]):
            return self._clock.verdicts().corrections
        thread = np.ascontiguousarray(slots[:, 2:]).view(np.uint64)[:, 0]
        begin = waiting[0].first_row
        row = first_of_tail(LastEvents(begin, time, cpu, code, thread), surroundings.cycles_per_s, self._clock)
        if row is None:
            return self._clock.verdicts().corrections
        corrections = verdicts_without_tail(self._clock, time[: row - begin], cpu[: row - begin], row).corrections
        return [replace(correction, end_row=min(correction.end_row, row)) for correction in corrections]

    def _settled(self, corrections: list[Correction], until: int | None) -> Iterator[Batch]:
        """Yield the batches of waiting chunks before event `until`, whose times are final; None = all are."""
        waiting = self._waiting
        while waiting and (until is None or waiting[0].first_row + len(waiting[0].time) <= until):
            chunk = waiting.popleft()
            if self._times is None:
                groups = chunk.groups
                correct(corrections, chunk.time, groups.cpu, groups.code, chunk.first_row)
            yield self._batch(chunk)

    def _batch(self, chunk: _TimedChunk) -> Batch:
        slots, groups, time = chunk.slots, chunk.groups, chunk.time
        if groups.zeros:
            offset = self._byte(self._position + groups.zero)
            self._problems.add("empty-slots", f"{groups.zeros} slots of zeros", offset, groups.zeros)
        groups = without_contested(slots, groups, self._open.keys())
        thread = self._owners(chunk)
        done, stray = self._unmatched(slots, groups, time, thread)
        if len(self._open):  # the last times per CPU matter only for open events
            self._last_times[groups.cpu] = time  # of several events of a CPU, the last one counts
        events = loading.deliver(slots, groups, time, thread, done)
        batch = Batch(
            self._position, slots, events.header, events.stamp, events.time, events.thread, events.start,
            events.words, events.last, stray,
        )  # fmt: skip
        if self._watch is not None:
            self._watch.take(batch)
        self._position += len(slots)
        return batch

    def _owners(self, chunk: _TimedChunk) -> NDArray[np.uint32]:
        """Return the thread of every event that begins in a chunk, uint32 (n,)."""
        code, cpu = chunk.groups.code, chunk.groups.cpu
        subjects = np.flatnonzero(wire.are_of_threads(code))
        first_slots = chunk.groups.first_slot[subjects]
        keys = np.ascontiguousarray(chunk.slots[first_slots, 2:4]).view(np.uint64)[:, 0]
        numbers = self._numbers.numbers(keys)
        traits, threads = np.zeros(len(code), np.uint8), np.empty(len(code), np.uint32)
        traits[subjects] = loading.IS_SUBJECT
        traits[code == wire.THREAD_RUNNING] |= loading.IS_RUNNING
        jumps = np.array(chunk.discontinuities, np.int64).reshape(-1, 2).T
        loading.owners(cpu, traits, numbers, jumps, self._running, threads)
        return threads

    def _rebuild(self, slots: NDArray[np.uint32], groups: Groups) -> NDArray[np.int64]:
        """Return the 64-bit times of events from their stamps and the TIME events among them, int64 (n,)."""
        code, cpu = groups.code, groups.cpu
        time = np.empty(len(code), np.int64)
        rows, buffers = np.flatnonzero(code == wire.CONTROL_TIME), np.flatnonzero(code == wire.CONTROL_BUFFER)
        chunk = ClockChunk.of(slots[groups.first_slot[rows]], groups.stamp, cpu, rows, buffers, self._count)
        held = self._hold_back(chunk)
        self._clock.unwrap(self._clock.hold(chunk, held, self._clock.last, time), time[held:])
        return time

    def _hold_back(self, new_chunk: ClockChunk) -> int:
        """Restart the clock at the first TIME of the file; return the number of events of the chunk before it.

        Waiting events get new times; events that were already delivered keep times relative to the first stamp.
        """
        is_usable = new_chunk.time_values >= 0
        if not self._awaits_time or not is_usable.any():
            return 0
        self._awaits_time = False
        first_usable = int(np.argmax(is_usable))
        held, value = int(new_chunk.time_rows[first_usable]), int(new_chunk.time_values[first_usable])
        # The earlier clock had no upper half; only the positions of missing buffers stay valid.
        self._clock = ClockRebuilder(review=ClockReview(self._clock.review.surroundings))
        self._clock.start_from(value)
        for chunk in self._waiting:
            chunk.time[:] = held_times(chunk.groups.stamp, value)
        self._open.move_before(value)
        self._last_times = held_times(self._last_times.astype(np.uint32), value)
        return held

    def _unmatched(
        self, slots: NDArray[np.uint32], groups: Groups, time: NDArray[np.int64], thread: NDArray[np.uint32]
    ) -> tuple[StreamColumns, NDArray[np.int64]]:
        """Add open events, and append slots to the oldest with their key; return complete events, and stray slots."""
        if not len(groups.other):
            return ended(()), np.empty(0, np.int64)
        begin, end = groups.group_slot[groups.other], groups.group_slot[groups.other + 1]
        heads = slots[begin]
        keys, opens = combine.keys(heads[:, 0], heads[:, 1]), heads[:, 0] < FIRST_TAIL
        open_keys = self._open.keys()
        has_event = opens | np.isin(keys, np.concatenate((keys[opens], open_keys)))
        strays = [
            np.arange(start, stop)
            for start, stop in zip(begin[~has_event].tolist(), end[~has_event].tolist(), strict=True)
        ]
        rows = groups.event[groups.other]
        now = last_times(cpus_of(heads[:, 0]), rows, time, groups.cpu, self._last_times)
        closes = slots[end - 1, 0] >> _KIND_SHIFT == _END
        runs = TailRuns(keys, rows, begin, end, heads[:, 0], heads[:, 1], opens, closes, now).at(has_event)
        near = ended(())
        if self._open.has_room(len(runs.key), 2 * int((runs.end - runs.start).sum())):
            head_rows, tail_rows = pairs_of(runs, open_keys, time)
            near = ended_by(slots, runs.at(head_rows), runs.at(tail_rows), time, thread)
            runs = runs.at(np.delete(np.arange(len(runs.key)), np.concatenate((head_rows, tail_rows))))
        done = self._one_by_one(slots, runs, time, thread, strays)
        return merged(near, ended(done)), self._report_strays(strays)

    def _one_by_one(
        self,
        slots: NDArray[np.uint32],
        runs: TailRuns,
        time: NDArray[np.int64],
        thread: NDArray[np.uint32],
        strays: list[NDArray[np.int64]],
    ) -> list[tuple[OpenEvent, int]]:
        """Return the events that `runs` complete, and their last slots; `strays` receives slots without an event."""
        done: list[tuple[OpenEvent, int]] = []
        # These groups are rare in real traces, so a loop is fast enough.
        for key, row, first_slot, end_slot, header, stamp, is_head, is_end, now_cycles in zip(
            *(column.tolist() for column in runs), strict=True
        ):
            start = first_slot
            if is_head:
                words = slots[first_slot, 2:4].copy()
                position = self._position + first_slot
                self._open.add(key, OpenEvent(header, stamp, int(time[row]), int(thread[row]), position, [words]))
                start += 1
            if start == end_slot:
                continue
            try:
                words = slots[start:end_slot, 2:4].ravel()
                event = self._open.append(key, words, end_slot - start, now_cycles, closes=is_end)
            except KeyError:  # the event begins later, or was dropped
                strays.append(np.arange(start, end_slot))
                continue
            if event is not None:
                done.append((event, end_slot - 1))
        return done

    def _report_strays(self, strays: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Report runs of continuation slots without an event; return these slots, ascending, int64 (k,)."""
        strays.sort(key=lambda slots: int(slots[0]))
        for slots in strays[:_SPELLED_OUT]:
            self._problems.add(
                "orphan-slots",
                f"{len(slots)} slot{'s' * (len(slots) > 1)} of an event whose beginning is missing",
                self._byte(self._position + int(slots[0])),
                len(slots),
            )
        rest = sum(len(slots) for slots in strays[_SPELLED_OUT:])
        if rest:
            self._problems.add("orphan-slots", "and more of the same", None, rest)
        return np.concatenate(strays) if strays else np.empty(0, np.int64)


def blocks_of_array(slots: NDArray[np.uint32]) -> Iterator[NDArray[np.uint32]]:
    """Yield the slots of an array of either byte order in chunks, converted to host order, uint32 (n, 4)."""
    for start in range(0, len(slots), CHUNK_SLOTS):
        yield np.asarray(slots[start : start + CHUNK_SLOTS], dtype=np.uint32)


def blocks_of_file(
    file: BinaryIO, rest: bytes, byte_order: str, problems: Problems, offset: int = 0
) -> Iterator[NDArray[np.uint32]]:
    """Yield slots, uint32 (n, 4), of an open file or pipe as they arrive; an incomplete last slot is reported.

    `rest` are the bytes of the event region, which begins at byte `offset`, that were read from the file already.
    """
    dtype = np.dtype("<u4" if byte_order == "little" else ">u4")
    read = getattr(file, "read1", file.read)  # read1 returns the bytes that a pipe has now, not a whole chunk
    done = 0
    # The first TIME event determines the times of events before it, so the start is read in one piece.
    while len(rest) < _FIRST_BYTES and (more := file.read(_FIRST_BYTES - len(rest))):
        rest += more
    while True:
        whole = len(rest) - len(rest) % SLOT_BYTES
        if whole:
            yield np.frombuffer(rest[:whole], dtype).reshape(-1, 4).astype(np.uint32)
            done += whole
            rest = rest[whole:]
        more = read(CHUNK_SLOTS * SLOT_BYTES)
        if not more:
            break
        rest += more
    if rest:
        problems.add("partial-slot", f"{len(rest)} of {SLOT_BYTES} bytes of the last slot", offset + done)
