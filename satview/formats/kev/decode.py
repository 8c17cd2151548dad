"""Turns slots into columns: the bulk decoder behind every .kev-like source.

One pass over the file in chunks that stay in the processor's cache; per chunk group slots into events, position times,
number threads, find owners. What one pass cannot know (events whose slots stand far apart, blocks out of order) is
repaired after it. No step looks at events one by one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base import column_room
from satview.base.dataclass import dataclass
from satview.base.errors import Cancelled
from satview.core import library, loading
from satview.events import wire
from satview.events.catalogue import Catalogue
from satview.events.spec import Release
from satview.events.states import NOT_A_STATE
from satview.formats.kev.clocks.clock import ClockRebuilder, held_times
from satview.formats.kev.clocks.clock_chunk import ClockChunk, time_values
from satview.formats.kev.growing_column import GrowingColumn
from satview.formats.kev.owners import Discontinuities, RunningThreads, ThreadNumbers
from satview.formats.kev.slots import combine
from satview.formats.kev.slots.slot_source import SlotSource, source_of

CHUNK_SLOTS: Final = 1 << 17  # measured best between 2^16 and 2^17: scratch stays in the second-level cache
_LOW_HALF: Final = 0 if sys.byteorder == "little" else 1  # where a word has its lower half, in halves
_TOP_BYTE: Final = 3 if sys.byteorder == "little" else 0
_LONGEST_TAIL: Final = 1 << 16  # a chunk ends where an event begins, if one begins that near its end
_KIND_SHIFT: Final = np.uint32(wire.STRUCT_SHIFT)
_MAX_NARROW_THREADS: Final = 65_000
_MAX_NARROW_SLOTS: Final = 65_535
COLUMNS: Final = ("time", "code", "cpu", "thread", "slot", "slots")


@dataclass(slots=True)
class Decoded:
    """What the pass leaves: columns in file order, and what stood out on the way.

    Attributes:
        count: Events.
        time, code, cpu, thread, slot, slots: Columns of `EventTable`, in file order of first slots.
        state_rows: uint32, rows of THREAD state, create and destroy events, ascending.
        rare_rows: int64, rows of CONTROL and PROCESS events, ascending.
        keys: uint64 (pid, tid) per thread row, as two words in payload order.
        unmatched: Open events and runs of tails for the repair.
        empty: (first slot, slots) of spans of zero slots.
        clock: Its state at the end.
        unknown: Per code that no table of the release names: row of the first such event, and how many.
    """

    count: int
    time: NDArray[np.int64]
    code: NDArray[np.uint16]
    cpu: NDArray[np.uint8]
    thread: NDArray[np.unsignedinteger]
    slot: NDArray[np.unsignedinteger]
    slots: NDArray[np.unsignedinteger]
    state_rows: NDArray[np.uint32]
    rare_rows: NDArray[np.int64]
    keys: NDArray[np.uint64]
    unmatched: combine.Unmatched
    empty: list[tuple[int, int]]
    clock: ClockRebuilder
    unknown: dict[int, tuple[int, int]]


@dataclass(slots=True)
class _Parts:
    """Lists of small arrays that the chunks add to."""

    state_rows: list[NDArray[np.uint32]] = field(default_factory=list)
    rare_rows: list[NDArray[np.int64]] = field(default_factory=list)
    unmatched: list[combine.Unmatched] = field(default_factory=list)
    empty: list[tuple[int, int]] = field(default_factory=list)
    unknown: dict[int, tuple[int, int]] = field(default_factory=dict)

    def copy(self) -> _Parts:
        """Return other lists of the same arrays."""
        return _Parts(
            list(self.state_rows), list(self.rare_rows), list(self.unmatched), list(self.empty), dict(self.unknown)
        )


@dataclass(slots=True)
class _Mark:
    """The state of the pass where a chunk begins."""

    start: int
    count: int
    clock: ClockRebuilder
    numbers: ThreadNumbers
    running: RunningThreads
    discontinuities: Discontinuities
    parts: _Parts


class Decoder:
    """Decodes the slots of one file.

    A file that grows is decoded by one decoder for all its life: only the last chunk is decoded again, for only there
    may what follows make a difference. So the result is that of a decoder that sees the file for the first time.

    Args:
        slots: (n, 4) words, or where they are read.
        catalogue: Of the file's release: which codes are thread states.
        goes_on: `extend` will be called before each further `run`.
    """

    def __init__(self, slots: NDArray[np.uint32] | SlotSource, catalogue: Catalogue, *, goes_on: bool = False) -> None:
        self._slots = source_of(slots)
        self._goes_on = goes_on
        n = len(slots)
        dtypes = (np.int64, np.uint16, np.uint8, np.uint16, np.uint32 if n < 1 << 32 else np.uint64, np.uint16)
        self._growing = {name: GrowingColumn(dtype) for name, dtype in zip(COLUMNS, dtypes, strict=True) if goes_on}
        self.time: NDArray[np.int64]
        self.code: NDArray[np.uint16]
        self.cpu: NDArray[np.uint8]
        self.thread: NDArray[np.unsignedinteger]
        self.slot: NDArray[np.unsignedinteger]
        self.slots: NDArray[np.unsignedinteger]
        for name, dtype in zip(COLUMNS, dtypes, strict=True):
            # Room takes address space only; pages are real once written, so the size by slots costs nothing.
            setattr(self, name, self._growing[name].writable(n) if goes_on else column_room.empty(n, dtype))
        self.count = 0
        self._clock = ClockRebuilder()
        self._numbers = ThreadNumbers()
        self._running = RunningThreads()
        self._discontinuities = Discontinuities(catalogue.release == Release.QNX_8)
        self._parts = _Parts()
        self._mark = self._marked(0)
        self._trait_scratch = np.empty(CHUNK_SLOTS, np.uint8)
        self._slot_scratch = self._part = np.empty((0, 4), np.uint32)
        thread_class = [i for i, c in enumerate(catalogue.classes) if c.name == "THREAD"]
        self._is_thread = np.isin(catalogue.class_index_of_code, thread_class)
        self._is_state = catalogue.state_value_of_code != NOT_A_STATE
        self._is_state[[wire.THREAD_CREATE, wire.THREAD_DESTROY]] = True
        codes = np.arange(wire.CODE_COUNT)
        wire_class = codes >> wire.CLASS_SHIFT
        process = (wire_class == wire.WireClass.PR_TH) & ~self._is_thread
        known = np.zeros(wire.CODE_COUNT, np.bool_)
        known[list(catalogue.codes())] = True
        rare = process | (wire_class == wire.WireClass.CONTROL)
        # Bit 0: belongs to a thread by its payload; 1: a state; 2: rare, looked at again later; 3: in no table.
        self._traits: NDArray[np.uint8] = (self._is_thread | self._is_state << 1 | rare << 2 | ~known << 3).astype(
            np.uint8
        )
        self._grouper = (loading.Grouper(self._traits, wire.CONTROL_BUFFER, CHUNK_SLOTS)
                         if library.is_available() else None)  # fmt: skip

    def extend(self, slots: NDArray[np.uint32] | SlotSource) -> None:
        """Take more slots; those of before must be the same. The next `run` gives the result for all of them."""
        self._slots = source_of(slots)
        room = self._mark.count + len(self._slots) - self._mark.start  # of what is decoded, events are counted
        for name, column in self._growing.items():
            setattr(self, name, column.writable(room))

    def _widen(self, name: str) -> None:
        """Give a column rows of 32 bits; those so far stay."""
        narrow = getattr(self, name)
        if self._growing:
            self._growing[name] = GrowingColumn(np.uint32)
            wide = self._growing[name].writable(len(narrow))
        else:
            wide = column_room.empty(len(narrow), np.uint32)
        wide[: self.count] = narrow[: self.count]
        setattr(self, name, wide)

    def run(
        self, progress: Callable[[float], None] | None = None, cancelled: Callable[[], bool] | None = None
    ) -> Decoded:
        """Decode everything.

        Raises:
            Cancelled: `cancelled()` returned True.
        """
        n, start = len(self._slots), self._mark.start
        self._return_to_mark()
        if not start:
            self._start_clock()
        while start < n:
            if cancelled is not None and cancelled():
                raise Cancelled("loading was cancelled")
            if self._goes_on and start + CHUNK_SLOTS >= n:
                self._mark = self._marked(start)
            start += self._chunk(start, min(n, start + CHUNK_SLOTS))
            for name in COLUMNS:
                column_room.let_go(getattr(self, name))
            if progress is not None:
                progress(start / n)
        return self._finish()

    def _marked(self, start: int) -> _Mark:
        now = (self._clock, self._numbers, self._running, self._discontinuities)
        return _Mark(start, self.count, *deepcopy(now), self._parts.copy())

    def _return_to_mark(self) -> None:
        mark = self._mark
        self.count, self._parts = mark.count, mark.parts.copy()
        now = (mark.clock, mark.numbers, mark.running, mark.discontinuities)
        self._clock, self._numbers, self._running, self._discontinuities = deepcopy(now)

    def _start_clock(self) -> None:
        """Find the first usable TIME of the file near its start: events before it are placed backwards from it."""
        head = self._slots.read(0, min(len(self._slots), CHUNK_SLOTS))
        code, kind = head[:, 0] & np.uint32(wire.CODE_MASK), head[:, 0] >> _KIND_SHIFT
        times = np.flatnonzero((code == wire.CONTROL_TIME) & (kind <= wire.Struct.COMBINE_BEGIN))
        self._held, self._held_from = 0, 0
        values = time_values(head[times, 2], head[times, 3], head[times, 1])
        for at, value in zip(times[values >= 0][:1].tolist(), values[values >= 0][:1].tolist(), strict=True):
            self._held, self._held_from = at, value
            self._clock.start_from(value)

    def _chunk(self, start: int, end: int) -> int:
        """Decode slots from `start`, at most to `end`; return how many are done: up to where a later event begins."""
        if len(self._slot_scratch) < end - start:
            self._slot_scratch = np.empty((end - start, 4), np.uint32)
        part = self._part = self._slots.read(start, end, self._slot_scratch)
        if self._grouper is not None:
            return self._chunk_by_core(self._grouper, start, part, is_last=end >= len(self._slots))
        headers, stamps = part[:, 0].copy(), part[:, 1].copy()
        is_event, unmatched = combine.link(headers, stamps)
        length = self._usable(is_event, unmatched, headers) if end < len(self._slots) else len(headers)
        if length != len(headers):
            headers, stamps, is_event = headers[:length], stamps[:length], is_event[:length]
            unmatched = unmatched[: np.searchsorted(unmatched, length)]
        zeros = np.flatnonzero(headers == 0) if int(headers.min()) == 0 else unmatched[:0]
        is_event[zeros] = False
        at = np.flatnonzero(is_event)
        # Nothing but simple events: their headers need no gathering.
        heads, times = (headers, stamps) if len(at) == length else (headers[at], stamps[at])
        counts = self._set_aside(start, at, unmatched, zeros, heads, headers)
        self._append(start, part, at, counts, heads, times)
        return length

    def _chunk_by_core(self, grouper: loading.Grouper, start: int, part: NDArray[np.uint32], *, is_last: bool) -> int:
        """Do what `_chunk` does with the compiled passes."""
        first = self.count
        found = grouper.group(part, first, self.code[first:], self.cpu[first:], is_last=is_last)
        if len(found.zero):
            self._note_empty(start + found.zero.astype(np.intp))
        if len(found.opened) or len(found.run_at):
            opened, at = found.opened.astype(np.intp), found.at[found.opened].astype(np.intp)
            runs = (found.run_at.astype(np.intp), found.run_size.astype(np.intp), found.run_before.astype(np.intp),
                    found.run_closes)  # fmt: skip
            self._note_unmatched(start, (at, found.size[found.opened].astype(np.intp), opened), runs, part[:, 0])
        n = len(found.at)
        if not n:
            return found.length
        rows = slice(first, first + n)
        code, cpu, slot = self.code[rows], self.cpu[rows], self.slot[rows]
        np.add(found.at, slot.dtype.type(start), out=slot)
        if found.longest > _MAX_NARROW_SLOTS and self.slots.dtype == np.uint16:
            self._widen("slots")
        self.slots[rows] = found.size
        rare = found.rare.astype(np.intp)
        self._note_unknown(found.unknown.astype(np.intp), code)
        discontinuities = self._discontinuities_at(part, found.at, code, cpu, rare)
        self._clock.review.add_breaks([(row + first, ring) for row, ring in discontinuities])
        self._position(rows, part, found.at, code, cpu, found.stamp, rare)
        self._own_subjects(rows, code, cpu, found.subject, found.key, discontinuities)
        self._parts.state_rows.append(found.state_row.copy())
        self._parts.rare_rows.append(rare + first)
        self.count += n
        return found.length

    @staticmethod
    def _usable(is_event: NDArray[np.bool_], unmatched: NDArray[np.intp], headers: NDArray[np.uint32]) -> int:
        """Return where to end the chunk: where its last group begins, for that may go on in the next chunk."""
        n = len(headers)
        last = np.flatnonzero(is_event[-_LONGEST_TAIL:]) + max(0, n - _LONGEST_TAIL)
        if not len(last):
            return n
        cut = max(int(last[-1]), int(unmatched[-1]) if len(unmatched) else 0)
        before = last[: np.searchsorted(last, cut)]
        # A BUFFER takes the time of the event after it, so the two stay together; and so do zero slots in a row.
        if len(before) and int(headers[before[-1]]) & wire.CODE_MASK in (0, wire.CONTROL_BUFFER):
            ends = np.flatnonzero((headers[before] != 0) & (headers[before] & wire.CODE_MASK != wire.CONTROL_BUFFER))
            if len(ends) and ends[-1] + 1 < len(before):
                cut = int(before[ends[-1] + 1])
        return cut or n

    def _set_aside(
        self,
        start: int,
        at: NDArray[np.intp],
        unmatched: NDArray[np.intp],
        zeros: NDArray[np.intp],
        heads: NDArray[np.uint32],
        headers: NDArray[np.uint32],
    ) -> NDArray[np.intp]:
        """Note open events, runs of tails and zero slots; return how many adjacent slots every event has."""
        length = len(headers)
        counts = np.empty(len(at), np.intp)
        np.subtract(at[1:], at[:-1], out=counts[:-1])
        counts[-1:] = length - at[-1:]
        others, sizes, before = unmatched, unmatched, unmatched
        if len(zeros):
            others = np.sort(np.concatenate((unmatched, zeros)))
            self._note_empty(start + zeros)
        if len(others):
            after = np.searchsorted(at, others)
            ends = np.minimum(np.append(at, length)[after], np.append(others[1:], length))
            sizes, before = ends - others, after - 1
            np.subtract.at(counts, before[before >= 0], sizes[before >= 0])
            runs = headers[others] != 0
            others, sizes, before = others[runs], sizes[runs], before[runs]
        combined = np.flatnonzero(heads >= np.uint32(1 << wire.STRUCT_SHIFT))
        ends_well = headers[at[combined] + counts[combined] - 1] >> _KIND_SHIFT == wire.Struct.COMBINE_END
        opened = combined[~ends_well]
        if len(others) or len(opened):
            closes = headers[others + sizes - 1] >> _KIND_SHIFT == wire.Struct.COMBINE_END
            self._note_unmatched(start, (at[opened], counts[opened], opened), (others, sizes, before, closes), headers)
        return counts

    def _note_unmatched(
        self,
        start: int,
        opened: tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]],
        runs: tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]],
        headers: NDArray[np.uint32],
    ) -> None:
        """Keep open events and runs of tails for the repair, in file order."""
        slot = np.concatenate((opened[0], runs[0]))
        order = np.argsort(slot, kind="stable")
        slot = slot[order]
        stamp = self._part[slot, 1]
        self._parts.unmatched.append(
            combine.Unmatched(
                slot + start,
                np.concatenate((opened[1], runs[1]))[order],
                headers[slot],
                stamp,
                np.concatenate((np.zeros(len(opened[0]), np.bool_), runs[3]))[order],
                np.concatenate((opened[2] + self.count, np.full(len(runs[0]), -1)))[order],
                np.concatenate((opened[2], runs[2]))[order] + self.count,
            )
        )

    def _note_empty(self, slots: NDArray[np.intp]) -> None:
        cuts = np.flatnonzero(np.diff(slots) != 1) + 1
        for run in np.split(slots, cuts) if len(cuts) < 100 else [slots]:
            self._parts.empty.append((int(run[0]), len(run)))

    def _append(
        self,
        start: int,
        part: NDArray[np.uint32],
        at: NDArray[np.intp],
        counts: NDArray[np.intp],
        heads: NDArray[np.uint32],
        stamps: NDArray[np.uint32],
    ) -> None:
        """Write one chunk's events into the columns."""
        n, first = len(at), self.count
        if not n:
            return
        rows = slice(first, first + n)
        code, cpu = self.code[rows], self.cpu[rows]
        # Narrow views of the header words: converting whole words while masking would take four times as long.
        np.bitwise_and(heads.view(np.uint16)[_LOW_HALF::2], np.uint16(wire.CODE_MASK), out=code)
        np.bitwise_and(heads.view(np.uint8)[_TOP_BYTE::4], np.uint8(wire.CPU_MASK), out=cpu)
        slot = self.slot[rows]
        slot[:] = at
        slot += slot.dtype.type(start)
        if n != len(part) and int(counts.max()) > _MAX_NARROW_SLOTS and self.slots.dtype == np.uint16:
            self._widen("slots")
        self.slots[rows] = counts
        traits = self._trait_scratch[:n]
        np.take(self._traits, code, out=traits, mode="clip")  # never clips; spares the check of every index
        special = np.flatnonzero(traits != 0)  # of booleans: four times as fast as of bytes
        traits = traits[special]
        rare = special[traits & 4 != 0]
        self._note_unknown(special[traits & 8 != 0], code)
        discontinuities = self._discontinuities_at(part, at, code, cpu, rare)
        self._clock.review.add_breaks([(row + first, ring) for row, ring in discontinuities])
        self._position(rows, part, at, code, cpu, stamps, rare)
        is_subject = traits & 1 != 0
        subjects, is_state = special[is_subject], traits[is_subject] & 2 != 0
        self._own(rows, part, at, code, cpu, subjects, is_state, discontinuities)
        self._parts.rare_rows.append(rare + first)
        self.count += n

    def _note_unknown(self, at: NDArray[np.intp], code: NDArray[np.uint16]) -> None:
        if not len(at):
            return
        codes, first, counts = np.unique(code[at], return_index=True, return_counts=True)
        for number, position, count in zip(codes.tolist(), first.tolist(), counts.tolist(), strict=True):
            row, before = self._parts.unknown.get(number, (self.count + int(at[position]), 0))
            self._parts.unknown[number] = row, before + count

    def _position(
        self,
        rows: slice,
        part: NDArray[np.uint32],
        at: NDArray[np.integer],
        code: NDArray[np.uint16],
        cpu: NDArray[np.uint8],
        stamps: NDArray[np.uint32],
        rare: NDArray[np.intp],
    ) -> None:
        time_rows = rare[code[rare] == wire.CONTROL_TIME]
        buffers = rare[code[rare] == wire.CONTROL_BUFFER]
        chunk = ClockChunk.of(part[at[time_rows]], stamps, cpu, time_rows, buffers, rows.start)
        out, held = self.time[rows], 0
        slots = self.slot[rows]
        if int(slots[0]) < self._held:
            held = int(np.searchsorted(slots, slots.dtype.type(self._held)))
            out[:held] = held_times(stamps[:held], self._held_from)
            self._clock.ignored += (time_rows[time_rows < held] + rows.start).tolist()
        self._clock.place(chunk.without(held), out[held:])

    def _own(
        self,
        rows: slice,
        part: NDArray[np.uint32],
        at: NDArray[np.integer],
        code: NDArray[np.uint16],
        cpu: NDArray[np.uint8],
        subjects: NDArray[np.intp],
        is_state: NDArray[np.bool_],
        discontinuities: list[tuple[int, int]],
    ) -> None:
        self._own_subjects(rows, code, cpu, subjects, self._keys(part, at[subjects]), discontinuities)
        states = subjects[is_state]
        states += rows.start
        self._parts.state_rows.append(states.astype(np.uint32))

    def _own_subjects(
        self,
        rows: slice,
        code: NDArray[np.uint16],
        cpu: NDArray[np.uint8],
        subjects: NDArray[np.integer],
        keys: NDArray[np.uint64],
        discontinuities: list[tuple[int, int]],
    ) -> None:
        """Write the thread of every event of a chunk, given the (pid, tid) of those that name theirs."""
        threads = self._numbers.numbers(keys)
        if len(self._numbers) > _MAX_NARROW_THREADS and self.thread.dtype == np.uint16:
            self._widen("thread")
        runs = code[subjects] == wire.THREAD_RUNNING
        self._running.assign(cpu, subjects, threads, runs, discontinuities, self.thread[rows])

    def _discontinuities_at(
        self,
        part: NDArray[np.uint32],
        at: NDArray[np.integer],
        code: NDArray[np.uint16],
        cpu: NDArray[np.uint8],
        rare: NDArray[np.intp],
    ) -> list[tuple[int, int]]:
        marks = rare[np.isin(code[rare], (wire.CONTROL_BUFFER, wire.CONTROL_DROPPED))]
        return self._discontinuities.find(marks, cpu[marks], part[at[marks], 2], code[marks] == wire.CONTROL_DROPPED)

    @staticmethod
    def _keys(part: NDArray[np.uint32], at: NDArray[np.integer]) -> NDArray[np.uint64]:
        """Return (pid, tid) of thread events as one number: the first two payload words side by side in memory."""
        if part.flags.c_contiguous:
            # take() gathers from a copy of the column made in one sweep: a third of the time of indexing two axes.
            return np.take(part.view(np.uint64)[:, 1], at)
        return np.ascontiguousarray(part[at, 2:4]).view(np.uint64)[:, 0]

    def _finish(self) -> Decoded:
        n, parts = self.count, self._parts
        columns = {name: getattr(self, name)[:n] for name in COLUMNS}
        for name, column in self._growing.items():
            columns[name] = column.reading(columns[name], self._mark.count)
            setattr(self, name, np.empty(0, columns[name].dtype))  # written through again after `extend` only
        return Decoded(
            n,
            **columns,
            state_rows=np.concatenate([np.empty(0, np.uint32), *parts.state_rows]),
            rare_rows=np.concatenate([np.empty(0, np.int64), *parts.rare_rows]),
            keys=self._numbers.keys(),
            unmatched=combine.joined(parts.unmatched),
            empty=parts.empty,
            clock=self._clock,
            unknown=parts.unknown,
        )
