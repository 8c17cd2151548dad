"""Turns slots into columns: the bulk decoder behind every .kev-like source.

One pass over the file in chunks that stay in the processor's cache; per chunk group slots into events, place times,
number threads, find owners. What one pass cannot know (events whose slots stand far apart, blocks out of order) is
repaired after it. No step looks at events one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import Cancelled
from satview.events import wire
from satview.events.catalogue import Catalogue
from satview.events.states import NOT_A_STATE
from satview.formats.kev import combine
from satview.formats.kev.clock import LATEST, ClockRebuilder, held_times
from satview.formats.kev.owners import RunningThreads, ThreadNumbers

CHUNK_SLOTS: Final = 1 << 17  # measured best between 2^16 and 2^17: scratch stays in the second-level cache
_KIND_SHIFT: Final = np.uint32(wire.STRUCT_SHIFT)
_MAX_NARROW_THREADS: Final = 65_000


@dataclass(slots=True)
class Decoded:
    """What the pass leaves: columns in file order, and what stood out on the way.

    Attributes:
        count: Events.
        time, code, cpu, thread, slot, slots: Columns of `EventTable`, in file order of first slots.
        state_rows: uint32, rows of THREAD state, create and destroy events, ascending.
        rare_rows: int64, rows of CONTROL and PROCESS events, ascending.
        keys: uint64 (pid, tid) per thread row, as two words in payload order.
        loose: Open events and runs of tails for the repair.
        empty: (first slot, slots) of stretches of zero slots.
        clock: Its state at the end.
        unknown: Per code that no table of the release names: row of the first such event, and how many.
    """

    count: int
    time: NDArray[np.int64]
    code: NDArray[np.uint16]
    cpu: NDArray[np.uint8]
    thread: NDArray[np.unsignedinteger]
    slot: NDArray[np.unsignedinteger]
    slots: NDArray[np.uint16]
    state_rows: NDArray[np.uint32]
    rare_rows: NDArray[np.int64]
    keys: NDArray[np.uint64]
    loose: combine.Loose
    empty: list[tuple[int, int]]
    clock: ClockRebuilder
    unknown: dict[int, tuple[int, int]]


@dataclass(slots=True)
class _Parts:
    """Lists of small arrays that the chunks add to."""

    state_rows: list[NDArray[np.uint32]] = field(default_factory=list)
    rare_rows: list[NDArray[np.int64]] = field(default_factory=list)
    loose: list[combine.Loose] = field(default_factory=list)
    empty: list[tuple[int, int]] = field(default_factory=list)
    unknown: dict[int, tuple[int, int]] = field(default_factory=dict)


class Decoder:
    """Decodes the slots of one file.

    Args:
        slots: (n, 4) uint32; big-endian files come as a memory map of `>u4`, which is swapped chunk by chunk.
        catalogue: Of the file's release: which codes are thread states.
    """

    def __init__(self, slots: NDArray[np.uint32], catalogue: Catalogue) -> None:
        self._slots = slots
        n = len(slots)
        self._is_native = bool(slots.dtype.isnative)
        # np.empty takes address space only; pages are real once written, so the size by slots costs nothing.
        self.time = np.empty(n, np.int64)
        self.code = np.empty(n, np.uint16)
        self.cpu = np.empty(n, np.uint8)
        self.thread: NDArray[np.unsignedinteger] = np.empty(n, np.uint16)
        self.slot: NDArray[np.unsignedinteger] = np.empty(n, np.uint32 if n < 1 << 32 else np.uint64)
        self.slots = np.empty(n, np.uint16)
        self.count = 0
        self._clock = ClockRebuilder()
        self._numbers = ThreadNumbers()
        self._running = RunningThreads()
        self._parts = _Parts()
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
        self._traits = (self._is_thread | self._is_state << 1 | rare << 2 | ~known << 3).astype(np.uint8)

    def run(
        self, progress: Callable[[float], None] | None = None, cancelled: Callable[[], bool] | None = None
    ) -> Decoded:
        """Decode everything.

        Raises:
            Cancelled: `cancelled()` returned True.
        """
        n, start = len(self._slots), 0
        self._start_clock()
        while start < n:
            if cancelled is not None and cancelled():
                raise Cancelled("loading was cancelled")
            start += self._chunk(start, min(n, start + CHUNK_SLOTS))
            if progress is not None:
                progress(start / n)
        return self._finish()

    def _start_clock(self) -> None:
        """Find the first TIME of the file near its start: events before it are placed backwards from it."""
        head = np.asarray(self._slots[:CHUNK_SLOTS])
        times = np.flatnonzero(head[:, 0] & np.uint32(wire.CODE_MASK) == wire.CONTROL_TIME)
        self._held, self._held_from = 0, 0
        for at in times[:1].tolist():
            value = int(head[at, 2]) << 32 | int(head[at, 3])
            if value < LATEST:
                self._held, self._held_from = at, value
                self._clock.start_from(value)

    def _load(self, start: int, end: int) -> NDArray[np.uint32]:
        part = self._slots[start:end]
        return part if self._is_native else part.astype(np.uint32)

    def _chunk(self, start: int, end: int) -> int:
        """Decode slots from `start`, at most to `end`; return how many are done: up to where a later event begins."""
        part = self._load(start, end)
        headers = np.ascontiguousarray(part[:, 0])
        stamps = np.ascontiguousarray(part[:, 1])
        begins = combine.group_starts(headers, stamps)
        at = np.flatnonzero(begins)
        length = self._usable(at, headers, stamps, end == len(self._slots))
        at = at[at < length]
        counts = np.diff(at, append=length)
        if length != len(headers):
            headers, stamps = headers[:length], stamps[:length]
        if len(at) == length:
            # Nothing but simple events: no compression needed, unless the file holds zeros.
            heads, times = headers, stamps
        else:
            heads, times = headers[at], stamps[at]
        keep = self._set_aside(start, at, counts, heads, times, headers)
        if keep is not None:
            at, counts, heads, times = at[keep], counts[keep], heads[keep], times[keep]
        self._append(start, part, at, counts, heads, times)
        return length

    @staticmethod
    def _usable(at: NDArray[np.intp], headers: NDArray[np.uint32], stamps: NDArray[np.uint32], is_last: bool) -> int:
        """Return where to end the chunk: where its last group begins, for that may go on in the next chunk."""
        n = len(headers)
        if is_last or len(at) < 3:
            return n
        cut = int(at[-1])
        before = int(at[-2])
        # A BUFFER takes the time of the slot after it, so the two stay together.
        if headers[before] & wire.CODE_MASK == wire.CONTROL_BUFFER and stamps[before] == stamps[cut]:
            cut = before
        return cut or n

    def _set_aside(
        self,
        start: int,
        at: NDArray[np.intp],
        counts: NDArray[np.intp],
        heads: NDArray[np.uint32],
        stamps: NDArray[np.uint32],
        headers: NDArray[np.uint32],
    ) -> NDArray[np.bool_] | None:
        """Note open events, runs of tails and zero slots; return which groups are events, None if all are."""
        keep = None
        if int(heads.min()) == 0:
            keep = heads != 0
            self._note_empty(start + at[~keep])
        combined = np.flatnonzero(heads >> _KIND_SHIFT)
        if not len(combined):
            return keep
        ends = headers[at[combined] + counts[combined] - 1] >> _KIND_SHIFT == wire.Struct.COMBINE_END
        tails = heads[combined] >> _KIND_SHIFT >= wire.Struct.COMBINE_CONTINUE
        odd = tails | ~ends
        if not odd.any():
            return keep
        loose, tails, ends = combined[odd], tails[odd], ends[odd]
        if tails.any():
            keep = np.ones(len(at), np.bool_) if keep is None else keep
            keep[loose[tails]] = False
        rows = self.count + (loose if keep is None else (np.cumsum(keep) - 1)[loose])
        self._parts.loose.append(
            combine.Loose(
                at[loose] + start, counts[loose], heads[loose], stamps[loose], ends & tails, np.where(tails, -1, rows)
            )
        )
        return keep

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
        np.bitwise_and(heads, np.uint32(wire.CODE_MASK), out=code, casting="unsafe")
        np.right_shift(heads, np.uint32(wire.CPU_SHIFT), out=heads)
        np.bitwise_and(heads, np.uint32(wire.CPU_MASK), out=cpu, casting="unsafe")
        np.add(at, start, out=self.slot[rows], casting="unsafe")
        np.minimum(counts, combine.MAX_SLOTS, out=self.slots[rows], casting="unsafe")
        traits = self._traits[code]
        rare = np.flatnonzero(traits & 4)
        self._note_unknown(np.flatnonzero(traits & 8), code)
        self._place(rows, part, at, code, cpu, stamps, rare)
        self._own(rows, part, at, code, cpu, traits)
        self._parts.rare_rows.append(rare + first)
        self.count += n

    def _note_unknown(self, at: NDArray[np.intp], code: NDArray[np.uint16]) -> None:
        if not len(at):
            return
        codes, first, counts = np.unique(code[at], return_index=True, return_counts=True)
        for number, place, count in zip(codes.tolist(), first.tolist(), counts.tolist(), strict=True):
            row, before = self._parts.unknown.get(number, (self.count + int(at[place]), 0))
            self._parts.unknown[number] = row, before + count

    def _place(
        self,
        rows: slice,
        part: NDArray[np.uint32],
        at: NDArray[np.intp],
        code: NDArray[np.uint16],
        cpu: NDArray[np.uint8],
        stamps: NDArray[np.uint32],
        rare: NDArray[np.intp],
    ) -> None:
        time_rows = rare[code[rare] == wire.CONTROL_TIME]
        words = part[at[time_rows], 2:4].astype(np.int64)
        values = words[:, 0] << 32 | words[:, 1]
        values[words[:, 0] >= 1 << 30] = -1  # no counter has run that long: damage
        buffers = rare[code[rare] == wire.CONTROL_BUFFER]
        buffers = buffers[buffers + 1 < len(at)]
        shared = buffers[stamps[buffers] == stamps[buffers + 1]]
        out, held = self.time[rows], 0
        slots = self.slot[rows]
        if int(slots[0]) < self._held:
            held = int(np.searchsorted(slots, slots.dtype.type(self._held)))
            out[:held] = held_times(stamps[:held], self._held_from)
        self._clock.chunk(
            stamps[held:],
            cpu[held:],
            time_rows - held,
            values,
            shared[shared >= held] - held,
            held + rows.start,
            out[held:],
        )

    def _own(
        self,
        rows: slice,
        part: NDArray[np.uint32],
        at: NDArray[np.intp],
        code: NDArray[np.uint16],
        cpu: NDArray[np.uint8],
        traits: NDArray[np.uint8],
    ) -> None:
        subjects = np.flatnonzero(traits & 1)
        keys = self._keys(part, at[subjects])
        threads = self._numbers.numbers(keys)
        if len(self._numbers) > _MAX_NARROW_THREADS and self.thread.dtype == np.uint16:
            self.thread = self.thread.astype(np.uint32)
        running = code[subjects] == wire.THREAD_RUNNING
        owners = self._running.owners(cpu, subjects[running], threads[running])
        owners[subjects] = threads
        self.thread[rows] = owners
        states = subjects[traits[subjects] & 2 != 0]
        states += rows.start
        self._parts.state_rows.append(states.astype(np.uint32))

    @staticmethod
    def _keys(part: NDArray[np.uint32], at: NDArray[np.intp]) -> NDArray[np.uint64]:
        """Return (pid, tid) of thread events as one number: the first two payload words side by side in memory."""
        if part.flags.c_contiguous:
            return part.view(np.uint64)[at, 1]
        return np.ascontiguousarray(part[at, 2:4]).view(np.uint64)[:, 0]

    def _finish(self) -> Decoded:
        n, parts = self.count, self._parts
        return Decoded(
            n,
            self.time[:n],
            self.code[:n],
            self.cpu[:n],
            self.thread[:n],
            self.slot[:n],
            self.slots[:n],
            np.concatenate([np.empty(0, np.uint32), *parts.state_rows]),
            np.concatenate([np.empty(0, np.int64), *parts.rare_rows]),
            self._numbers.keys(),
            combine.joined(parts.loose),
            parts.empty,
            self._clock,
            parts.unknown,
        )
