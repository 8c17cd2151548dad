"""Events of a trace as they come, chunk by chunk, in the order in which their last slots are in the file.

For what prints or counts and never looks back: listings, the traceparser library. Nothing is kept but the events whose
end has not come yet, so a pipe of any length can be read. `reader.open_kev` is the door for everything that needs time
order or a second look.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.events.spec import Release
from satview.events.wire import SLOT_BYTES, Struct
from satview.formats.kev import combine
from satview.formats.kev.batch import Batch
from satview.formats.kev.buffer_watch import BufferWatch
from satview.formats.kev.clock import ClockRebuilder, held_times
from satview.formats.kev.clock_chunk import ClockChunk
from satview.formats.kev.clock_review import ClockReview, Verdicts, correct
from satview.formats.kev.combine import MAX_SLOTS, last_times
from satview.formats.kev.open_events import OpenEvent, OpenEvents
from satview.formats.kev.owners import Discontinuities, RunningThreads, ThreadNumbers
from satview.store.problems import Problems

CHUNK_SLOTS: Final = 1 << 16
_FIRST_TAIL: Final = np.uint32(0x80000000)  # set in middle and last slots
_END: Final = int(Struct.COMBINE_END)
_KIND_SHIFT: Final = np.uint32(wire.STRUCT_SHIFT)
_MOST_WAITING: Final = 1024  # more BUFFER slots in a row are rubbish, and must not pile up
_FIRST_BYTES: Final = 1 << 14  # one kernel buffer
_SPELLED_OUT: Final = 100  # problems of one kind in one chunk; the others are counted


def group_starts(headers: NDArray[np.uint32], stamps: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return for every slot whether it begins an event, or a run of tails whose event is not the one right before.

    Shape (n,), bool; the first slot always begins something.
    """
    starts = np.ones(len(headers), np.bool_)
    tails = np.flatnonzero(headers[1:] >= _FIRST_TAIL) + 1
    before = headers[tails - 1]
    kind_before = before >> _KIND_SHIFT
    is_linked = ((headers[tails] ^ before) & combine.KEY_MASK == 0) & (stamps[tails] == stamps[tails - 1])
    is_linked &= (kind_before == Struct.COMBINE_BEGIN) | (kind_before == Struct.COMBINE_CONTINUE)
    starts[tails[is_linked]] = False
    return starts


@dataclass(slots=True)
class _Done:
    """Events that were completed by a run of tails, in order."""

    events: list[OpenEvent] = field(default_factory=list)
    last: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A chunk of slots whose events have times.

    Attributes:
        slots: (n, 4).
        at: (k,), where its groups begin.
        heads: (k,), their first words.
        begins: (k,), which of them begin an event.
        code, cpu, time: Of these events.
        discontinuities: Position among these events and CPU of missing buffers.
        first_row: Number of the first of these events in the file.
    """

    slots: NDArray[np.uint32]
    at: NDArray[np.intp]
    heads: NDArray[np.uint32]
    begins: NDArray[np.bool_]
    code: NDArray[np.uint32]
    cpu: NDArray[np.uint8]
    time: NDArray[np.int64]
    discontinuities: list[tuple[int, int]]
    first_row: int


class EventStream:
    """Turns a sequence of slots into batches of events.

    Args:
        blocks: Arrays (k, 4) of slots in host order, of any size, in file order.
        problems: Receives what costs data: orphans, unfinished events, empty slots.
        offset: Byte offset of the first slot in the file, for problems.
        release: Whose rules for buffers apply; None = the slots come from a listing, where buffers have gaps.
        times: int64, full time of every slot where the source gives it (listings of 7.1 on); else it is rebuilt.
    """

    def __init__(
        self,
        blocks: Iterable[NDArray[np.uint32]],
        problems: Problems,
        offset: int = 0,
        release: Release | None = Release.QNX_7,
        times: NDArray[np.int64] | None = None,
    ) -> None:
        self._blocks = blocks
        self._problems = problems
        self._offset = offset
        self._watch = BufferWatch(release, problems, offset) if release is not None else None
        self._times = times
        self._clock = ClockRebuilder()
        self._numbers = ThreadNumbers()
        self._running = RunningThreads()
        self._discontinuities = Discontinuities(release == Release.QNX_8)
        self._open = OpenEvents(problems, offset)
        self._awaits_time = True
        self._position = 0
        self._count = self._placed_slots = 0
        self._waiting: deque[_Placed] = deque()
        self._last_times = np.zeros(wire.CPU_MASK + 1, np.int64)

    def thread_ids(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return pid and tid of every thread number met so far; -1 for number 0.

        Returns:
            Two of int32 (threads,).
        """
        keys = np.ascontiguousarray(self._numbers.keys()).view(np.uint32).reshape(-1, 2).astype(np.int32)
        keys[0] = -1
        return keys[:, 0], keys[:, 1]

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches; afterwards everything unfinished has been reported."""
        carry = np.empty((0, 4), np.uint32)
        for block in self._blocks:
            whole = np.concatenate((carry, block)) if len(carry) else block
            usable = self._usable(whole)
            carry = whole[usable:]
            if usable:
                self._waiting.append(self._placed(np.ascontiguousarray(whole[:usable])))
                yield from self._settled(self._clock.review.verdicts, self._clock.review.waits_from(self._count))
        if len(carry):
            self._waiting.append(self._placed(np.ascontiguousarray(carry)))
        yield from self._settled(self._clock.verdicts(), None)
        if self._watch is not None:
            self._watch.finish(self._position)
        self._open.finish()

    def _byte(self, slot: int) -> int:
        return self._offset + slot * SLOT_BYTES

    @staticmethod
    def _usable(slots: NDArray[np.uint32]) -> int:
        """Return how many slots to take now: BUFFER slots at the end wait for the event whose time they take."""
        headers = slots[:, 0]
        waits = (headers == 0) | (headers & np.uint32(wire.CODE_MASK) == wire.CONTROL_BUFFER)
        if not len(slots) or not waits[-1]:
            return len(slots)
        others = np.flatnonzero(~waits)
        if len(others):
            return int(others[-1]) + 1
        return 0 if len(slots) < _MOST_WAITING else len(slots)

    def _placed(self, slots: NDArray[np.uint32]) -> _Placed:
        """Find the events of a chunk and their times, which later TIME events may still correct."""
        headers, stamps = np.ascontiguousarray(slots[:, 0]), np.ascontiguousarray(slots[:, 1])
        at = np.flatnonzero(group_starts(headers, stamps))
        heads = headers[at]
        begins = (heads >> _KIND_SHIFT < Struct.COMBINE_CONTINUE) & (heads != 0)
        code = heads[begins] & np.uint32(wire.CODE_MASK)
        cpu = _cpus(heads[begins])
        first = at[begins]
        marks = np.flatnonzero((code == wire.CONTROL_BUFFER) | (code == wire.CONTROL_DROPPED))
        discontinuities = self._discontinuities.find(
            marks, cpu[marks], slots[first[marks], 2], code[marks] == wire.CONTROL_DROPPED
        )
        if self._times is not None:
            time = self._times[self._placed_slots + first]
        else:
            self._clock.review.add_breaks([(self._count + row, ring) for row, ring in discontinuities])
            time = self._rebuild(slots, first, code, cpu, stamps)
        placed = _Placed(slots, at, heads, begins, code, cpu, time, discontinuities, self._count)
        self._count += len(first)
        self._placed_slots += len(slots)
        return placed

    def _settled(self, verdicts: Verdicts, until: int | None) -> Iterator[Batch]:
        """Yield the batches of waiting chunks whose times are final.

        Args:
            verdicts: On the clock.
            until: First event, counted in file order, whose time is not final; None = all are.
        """
        waiting = self._waiting
        while waiting and (until is None or waiting[0].first_row + len(waiting[0].time) <= until):
            chunk = waiting.popleft()
            if self._times is None:
                correct(verdicts.corrections, chunk.time, chunk.cpu, chunk.code, chunk.first_row)
            yield self._batch(chunk)

    def _batch(self, chunk: _Placed) -> Batch:
        slots, at, heads, begins = chunk.slots, chunk.at, chunk.heads, chunk.begins
        counts = np.diff(at, append=len(slots))
        kinds = heads >> _KIND_SHIFT
        ends = slots[at + counts - 1, 0] >> _KIND_SHIFT
        is_tail = kinds >= Struct.COMBINE_CONTINUE
        is_empty = heads == 0
        is_whole = begins & ((kinds == Struct.SIMPLE) | (ends == Struct.COMBINE_END)) & (counts <= MAX_SLOTS)
        if is_empty.any():
            count = int(np.count_nonzero(is_empty))
            first = self._byte(self._position + int(at[is_empty][0]))
            self._problems.add("empty-slots", f"{count} slots of zeros", first, count)
        is_whole &= ~self._is_contested(slots, at, kinds, begins & ~is_whole)
        time, thread = chunk.time, self._owners(chunk)
        done, stray = self._unmatched(slots, at, counts, begins & ~is_whole, is_tail, time, thread, begins, ends)
        if len(self._open):  # only then their CPUs' clocks matter, and an open event is one of its CPU
            self._last_times[chunk.cpu] = time  # of several the last one stays
        whole = np.flatnonzero(is_whole)
        kept = is_whole[begins]
        batch = self._whole_events(slots, at[whole], counts[whole], time[kept], thread[kept], stray)
        if done.events:
            batch = _merged(batch, done)
        if self._watch is not None:
            self._watch.take(batch)
        self._position += len(slots)
        return batch

    def _is_contested(
        self, slots: NDArray[np.uint32], at: NDArray[np.intp], kinds: NDArray[np.uint32], is_open: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return which combine groups share CPU, stamp, class and number with an open event.

        Their tails belong to the oldest of those that are open, which may not be the one right before.
        """
        contested = np.zeros(len(at), np.bool_)
        if not self._open and not is_open.any():
            return contested
        begins = np.flatnonzero(kinds == Struct.COMBINE_BEGIN)
        keys = combine.keys(slots[at[begins], 0], slots[at[begins], 1])
        before = self._open.keys()
        is_known = np.concatenate((is_open[begins], np.ones(len(before), np.bool_)))
        contested[begins] = combine.contested(np.concatenate((keys, before)), is_known)[: len(begins)]
        return contested

    def _owners(self, chunk: _Placed) -> NDArray[np.uint32]:
        """Return the thread of every event that begins in a chunk."""
        is_thread = (chunk.code >> wire.CLASS_SHIFT == wire.WireClass.PR_TH) & (chunk.code & wire.EVENT_MASK < 64)
        subjects = np.flatnonzero(is_thread)
        at = chunk.at[chunk.begins][subjects]
        keys = np.ascontiguousarray(chunk.slots[at, 2:4]).view(np.uint64)[:, 0]
        numbers = self._numbers.numbers(keys)
        running = chunk.code[subjects] == wire.THREAD_RUNNING
        threads = self._running.owners(chunk.cpu, subjects[running], numbers[running], chunk.discontinuities)
        threads[subjects] = numbers
        return threads

    def _rebuild(
        self,
        slots: NDArray[np.uint32],
        at: NDArray[np.intp],
        code: NDArray[np.uint32],
        cpu: NDArray[np.uint8],
        stamps: NDArray[np.uint32],
    ) -> NDArray[np.int64]:
        """Return the 64-bit times of events from their stamps and the TIME events among them."""
        stamps = stamps[at]
        time = np.empty(len(at), np.int64)
        rows, buffers = np.flatnonzero(code == wire.CONTROL_TIME), np.flatnonzero(code == wire.CONTROL_BUFFER)
        chunk = ClockChunk.of(slots[at[rows]], stamps, cpu, rows, buffers, self._count)
        held = self._hold_back(chunk, time)
        self._clock.place(chunk.without(held), time[held:])
        return time

    def _hold_back(self, given: ClockChunk, time: NDArray[np.int64]) -> int:
        """Place what comes before the first TIME of the file backwards from it; return how many events that are.

        Events of blocks before that are delivered keep times that count from the first stamp; all others move.
        """
        is_usable = given.time_values >= 0
        if not self._awaits_time or not is_usable.any():
            return 0
        self._awaits_time = False
        first = int(np.argmax(is_usable))
        held, value = int(given.time_rows[first]), int(given.time_values[first])
        self._clock = ClockRebuilder(review=ClockReview(breaks=self._clock.review.breaks))
        self._clock.start_from(value)
        time[:held] = held_times(given.stamps[:held], value)
        for chunk in self._waiting:
            chunk.time[:] = held_times(chunk.slots[chunk.at[chunk.begins], 1], value)
        self._open.place_back(value)
        self._last_times = held_times(self._last_times.astype(np.uint32), value)
        return held

    def _unmatched(
        self,
        slots: NDArray[np.uint32],
        at: NDArray[np.intp],
        counts: NDArray[np.intp],
        is_open: NDArray[np.bool_],
        is_tail: NDArray[np.bool_],
        time: NDArray[np.int64],
        thread: NDArray[np.uint32],
        begins: NDArray[np.bool_],
        ends: NDArray[np.uint32],
    ) -> tuple[_Done, NDArray[np.int64]]:
        """Open events, and give runs of tails to the oldest open event of their CPU, stamp, class and number."""
        groups = np.flatnonzero(is_open | is_tail)
        if not len(groups):
            return _Done(), np.empty(0, np.int64)
        heads = slots[at[groups]]
        keys = combine.keys(heads[:, 0], heads[:, 1])
        opens = is_open[groups]
        has_event = opens | np.isin(keys, np.concatenate((keys[opens], self._open.keys())))
        done = _Done()
        strays = [
            np.arange(first, first + n)
            for first, n in zip(at[groups][~has_event].tolist(), counts[groups][~has_event].tolist(), strict=True)
        ]
        rows = (np.cumsum(begins) - 1)[groups]
        payload = np.ascontiguousarray(slots[:, 2:4]).ravel()
        event_cpus, head_cpus = _cpus(slots[at[begins], 0]), _cpus(heads[:, 0])
        now = last_times(head_cpus, rows, time, event_cpus, self._last_times)
        columns = (
            keys,
            rows,
            at[groups],
            at[groups] + counts[groups],
            heads[:, 0],
            heads[:, 1],
            opens,
            ends[groups] == _END,
            now,
        )
        # Unmatched slots are rare in real traces; this is the one loop over them.
        for key, row, first, end, header, stamp, is_head, closes, now_cycles in zip(
            *(column[has_event].tolist() for column in columns), strict=True
        ):
            start = first
            if is_head:
                words = payload[2 * first : 2 * first + 2].copy()
                position = self._position + first
                self._open.add(key, OpenEvent(header, stamp, int(time[row]), int(thread[row]), position, [words]))
                start += 1
            if start == end:
                continue
            try:
                words = payload[2 * start : 2 * end].copy()
                event = self._open.append(key, words, end - start, now_cycles, closes=closes)
            except KeyError:  # its beginning comes later, or was given up
                strays.append(np.arange(start, end))
                continue
            if event is not None:
                done.events.append(event)
                done.last.append(end - 1)
        return done, self._report_strays(strays)

    def _report_strays(self, strays: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        """List runs of tails without event, the first of a chunk one by one; return their slots, ascending."""
        strays.sort(key=lambda slots: int(slots[0]))
        for slots in strays[:_SPELLED_OUT]:
            self._problems.add(
                "orphan-slots",
                f"{len(slots)} slots of an event whose beginning is missing",
                self._byte(self._position + int(slots[0])),
                len(slots),
            )
        rest = sum(len(slots) for slots in strays[_SPELLED_OUT:])
        if rest:
            self._problems.add("orphan-slots", "and more of the same", None, rest)
        return np.concatenate(strays) if strays else np.empty(0, np.int64)

    def _whole_events(
        self,
        slots: NDArray[np.uint32],
        at: NDArray[np.intp],
        counts: NDArray[np.intp],
        time: NDArray[np.int64],
        thread: NDArray[np.uint32],
        stray: NDArray[np.int64],
    ) -> Batch:
        start = np.zeros(len(at) + 1, np.int64)
        np.cumsum(2 * counts, out=start[1:])
        if int(counts.sum()) == len(slots):
            words = slots[:, 2:4].ravel()
        else:
            offsets = np.arange(int(counts.sum())) - np.repeat(start[:-1] // 2 - at, counts)
            words = slots[offsets, 2:4].ravel()
        return Batch(
            self._position, slots, slots[at, 0], slots[at, 1], time, thread, start, words, at + counts - 1, stray
        )


def _cpus(headers: NDArray[np.uint32]) -> NDArray[np.uint8]:
    return (headers >> np.uint32(wire.CPU_SHIFT) & np.uint32(wire.CPU_MASK)).astype(np.uint8)


def _merged(batch: Batch, done: _Done) -> Batch:
    """Return a batch with the events that tails completed, everything in the order of last slots."""
    added = done.events
    unmatched = [np.concatenate(event.words) for event in added]
    order = np.argsort(np.concatenate((batch.last_slot, done.last)), kind="stable")
    sizes = np.concatenate((np.diff(batch.start), [len(words) for words in unmatched])).astype(np.int64)
    words = np.concatenate((batch.words, *unmatched))
    old = np.concatenate(([0], np.cumsum(sizes)))[:-1][order]
    start = np.concatenate(([0], np.cumsum(sizes[order]))).astype(np.int64)
    moved = words[np.arange(len(words)) + np.repeat(old - start[:-1], sizes[order])]
    return Batch(
        batch.first_slot,
        batch.slots,
        np.concatenate((batch.header, np.array([event.header for event in added], np.uint32)))[order],
        np.concatenate((batch.stamp, np.array([event.stamp for event in added], np.uint32)))[order],
        np.concatenate((batch.time_cycles, np.array([event.time for event in added], np.int64)))[order],
        np.concatenate((batch.thread, np.array([event.thread for event in added], np.uint32)))[order],
        start,
        moved,
        np.concatenate((batch.last_slot, np.array(done.last, np.int64)))[order],
        batch.stray_tails,
    )


def blocks_of_array(slots: NDArray[np.uint32]) -> Iterator[NDArray[np.uint32]]:
    """Yield the slots of an array, or of a memory map in either byte order, in chunks of host order.

    Yields:
        uint32 (n, 4).
    """
    for at in range(0, len(slots), CHUNK_SLOTS):
        yield np.asarray(slots[at : at + CHUNK_SLOTS], dtype=np.uint32)


def blocks_of_file(
    file: BinaryIO, rest: bytes, byte_order: str, problems: Problems, offset: int = 0
) -> Iterator[NDArray[np.uint32]]:
    """Yield the slots of an open file or pipe, as they come; a cut last slot is reported.

    Args:
        file: Standing behind `rest`.
        rest: Bytes of the event region that were read already.
        byte_order: Of the file.
        problems: Receives `partial-slot`.
        offset: Byte offset of the event region.

    Yields:
        uint32 (n, 4).
    """
    dtype = np.dtype("<u4" if byte_order == "little" else ">u4")
    read = getattr(file, "read1", file.read)  # what a pipe has now, not a whole chunk
    done = 0
    # The first TIME event places what comes before it, so the beginning is read in one piece.
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
