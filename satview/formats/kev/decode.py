"""Decodes slots into columns of events with their threads, for every format that consists of slots."""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Callable, Generator
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from satview.base import column_arrays
from satview.base.errors import Cancelled
from satview.base.threads import Begun
from satview.core import loading
from satview.events import wire
from satview.events.catalogue import Catalogue
from satview.events.spec import Release
from satview.events.states import NOT_A_STATE
from satview.events.wire import MAX_CPUS
from satview.formats.kev import combine
from satview.formats.kev.clock import ClockChunk, ClockRebuilder, ClockReview, time_values
from satview.formats.kev.consensus import Surroundings
from satview.formats.kev.slot_source import SlotSource, source_of

# Results of the decoder: columns of events, and slots and events that need a repair or a report.


@dataclass(slots=True)
class Decoded:
    """Columns of events in file order, and slots and events that need a repair or a report.

    Attributes:
        count: Number of events.
        time, code, cpu, thread, slot, slots: Columns of `EventTable`, in file order of first slots.
        state_rows: uint32, rows of THREAD state, create and destroy events, ascending.
        rare_rows: int64, rows of CONTROL and PROCESS events, ascending.
        rare_words: uint32 (rare, 2), the first two payload words of each of these events.
        keys: uint64 (pid, tid) per thread row, as two words in payload order.
        unmatched: Events without end, and runs of slots that do not follow their event, for the repair.
        empty: (first slot, slots) of spans of zero slots.
        clock: State of the clock at the end.
        unknown: For each code that no table of the release names, row of the first event and number of events.
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
    rare_words: NDArray[np.uint32]
    keys: NDArray[np.uint64]
    unmatched: combine.Unmatched
    empty: list[tuple[int, int]]
    clock: ClockRebuilder
    unknown: dict[int, tuple[int, int]]


@dataclass(slots=True)
class Parts:
    """Parts of `Decoded` while chunks are decoded: lists with an array for each chunk; `unknown` as in `Decoded`."""

    state_rows: list[NDArray[np.uint32]] = field(default_factory=list)
    rare_rows: list[NDArray[np.int64]] = field(default_factory=list)
    rare_words: list[NDArray[np.uint32]] = field(default_factory=list)
    unmatched: list[combine.Unmatched] = field(default_factory=list)
    empty: list[tuple[int, int]] = field(default_factory=list)
    unknown: dict[int, tuple[int, int]] = field(default_factory=dict)

    def copy(self) -> Parts:
        """Return a copy of the lists; the arrays are shared."""
        return Parts(
            list(self.state_rows), list(self.rare_rows), list(self.rare_words), list(self.unmatched), list(self.empty),
            dict(self.unknown),
        )  # fmt: skip

    def note_rare(self, first_row: int, rows: NDArray[np.intp], slots: NDArray[np.uint32]) -> None:
        """Record the CONTROL and PROCESS events of a chunk: positions in it, and first slots, uint32 (rows, 4)."""
        self.rare_rows.append(rows + first_row)
        self.rare_words.append(slots[:, 2:4].copy())  # a view would keep all of the slots

    def note_empty(self, slots: NDArray[np.intp]) -> None:
        """Record the slots that contain only zeros, given as ascending slot numbers."""
        cuts = np.flatnonzero(np.diff(slots) != 1) + 1
        # Many spans, as in a garbage file, are recorded as one.
        for run in np.split(slots, cuts) if len(cuts) < 100 else [slots]:
            self.empty.append((int(run[0]), len(run)))

    def note_unknown(self, positions: NDArray[np.intp], code: NDArray[np.uint16], first_row: int) -> None:
        """Count events whose code is in no table; `positions` are relative to `first_row`."""
        if not len(positions):
            return
        codes, indices, counts = np.unique(code[positions], return_index=True, return_counts=True)
        for number, index, count in zip(codes.tolist(), indices.tolist(), counts.tolist(), strict=True):
            row, before = self.unknown.get(number, (first_row + int(positions[index]), 0))
            self.unknown[number] = row, before + count

    def note_unmatched(
        self,
        start: int,
        first_row: int,
        part: NDArray[np.uint32],
        opened: tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]],
        runs: tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]],
    ) -> None:
        """Record, in file order, open events and runs of continuation slots not next to their event, for the repair.

        Args:
            start: First slot of the chunk in the file.
            first_row: Row of the first event of the chunk.
            part: uint32 (n, 4), slots of the chunk.
            opened: For events without end, intp (k,) each: first slot, adjacent slots, position among the events.
            runs: For runs of continuation slots, (m,) each: first slot, slots, position of the event before the run,
                and whether the run ends an event.
        """
        slot = np.concatenate((opened[0], runs[0]))
        order = np.argsort(slot, kind="stable")
        slot = slot[order]
        stamp = part[slot, 1]
        self.unmatched.append(
            combine.Unmatched(
                slot + start,
                np.concatenate((opened[1], runs[1]))[order],
                part[slot, 0],
                stamp,
                np.concatenate((np.zeros(len(opened[0]), np.bool_), runs[3]))[order],
                np.concatenate((opened[2] + first_row, np.full(len(runs[0]), -1)))[order],
                np.concatenate((opened[2], runs[2]))[order] + first_row,
            )
        )


# Numbers threads by (pid, tid), and finds gaps after which the thread running on a CPU is unknown.


_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads neighbouring ids
_MOST_PROBES: Final = 256
# The interrupt interface of 6.x and the vendor's printer pass 11 bits only (section 6.1).
_COMMON_BITS: Final = 0x7FF  # bits of a buffer's number that every source has


class ThreadNumbers:
    """Maps every (pid, tid) to a row number, from 1; 0 is the unknown thread.

    This is an open-addressed hash table in two arrays. A file may contain ids chosen to collide; if a search needs too
    many probes, the table is rebuilt with a random multiplier.
    """

    def __init__(self) -> None:
        self._bits = 12
        self._keys = np.zeros(1 << self._bits, np.uint64)
        self._rows = np.zeros(1 << self._bits, np.uint32)
        self._known = np.zeros(64, np.uint64)  # key per row, row 0 unused
        self._count = 1
        self._multiplier = _MULTIPLIER

    def __len__(self) -> int:
        return self._count

    def keys(self) -> NDArray[np.uint64]:
        """Return the key (pid, tid) of each row, uint64 (threads,); that of row 0 is meaningless."""
        return self._known[: self._count]

    def numbers(self, keys: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return the row of every key, uint32 (n,); new keys are added in the order in which they occur."""
        keys, rows, done = np.ascontiguousarray(keys), np.empty(len(keys), np.uint32), 0
        while True:
            done, self._count = loading.numbers(
                keys, done, self._keys, self._rows, self._bits, int(self._multiplier), self._known, self._count,
                min(len(self._known), len(self._keys) // 8), rows,
            )  # fmt: skip
            if done == len(keys):
                return rows
            if done < 0:
                done = -1 - done
                self._fill_otherwise(self._count)
            elif self._make_room(self._count + 1) and not self._fill(self._count):
                self._fill_otherwise(self._count)

    def _make_room(self, end: int) -> bool:
        """Make room for the rows before `end`; return whether the table must be rebuilt because it has grown."""
        if end > len(self._known):
            self._known = np.concatenate((self._known, np.zeros(max(end, len(self._known)), np.uint64)))
        # At most one position in eight is used, so that nearly all keys are found at the first probe.
        is_grown = end * 8 > len(self._keys)
        while end * 8 > 1 << self._bits:
            self._bits += 1
        return is_grown

    def _slots_of(self, keys: NDArray[np.uint64]) -> NDArray[np.intp]:
        return ((keys * self._multiplier) >> np.uint64(64 - self._bits)).astype(np.intp)

    def _fill(self, end: int) -> bool:
        """Rebuild the table for the rows before `end`; return whether all keys found a position."""
        self._keys = np.zeros(1 << self._bits, np.uint64)
        self._rows = np.zeros(1 << self._bits, np.uint32)
        return self._insert(self._known[1:end], 1)

    def _fill_otherwise(self, end: int) -> None:
        """Rebuild the table for the rows before `end` with random multipliers until all keys find a position."""
        self._multiplier = np.uint64(_random_odd())
        while not self._fill(end):
            self._multiplier = np.uint64(_random_odd())

    def _insert(self, keys: NDArray[np.uint64], first_row: int) -> bool:
        """Insert distinct keys with ascending rows; False = no position was found, and the table is unusable.

        First all keys that do not collide are inserted, then the others one position further, and so on.
        """
        rows = np.arange(first_row, first_row + len(keys), dtype=np.uint32)
        positions = self._slots_of(keys)
        for _ in range(_MOST_PROBES):
            free = np.flatnonzero(self._rows[positions] == 0)
            self._keys[positions[free]], self._rows[positions[free]] = keys[free], rows[free]
            # If several keys claimed one free position, the last write wins, and the others have to go on.
            left = self._rows[positions] != rows
            keys, rows, positions = keys[left], rows[left], (positions[left] + 1) & ((1 << self._bits) - 1)
            if not len(rows):
                return True
        return False


def _random_odd() -> int:
    return int.from_bytes(os.urandom(8), "little") | 1


class Discontinuities:
    """Finds gaps in the numbers of kernel buffers, after which the running thread is unknown.

    Args:
        per_cpu: Whether every CPU has its own buffers (8.0), so that a gap concerns only this CPU.
    """

    def __init__(self, per_cpu: bool) -> None:
        self._per_cpu = per_cpu
        self._last_numbers: dict[int, int] = {}

    def find(
        self, rows: NDArray[np.intp], cpus: NDArray[np.uint8], sequence: NDArray[np.uint32], dropped: NDArray[np.bool_]
    ) -> list[tuple[int, int]]:
        """Return position and CPU (-1 = all) of every discontinuity of buffer numbers in a chunk.

        Args:
            rows: (k,), positions of BUFFER and DROPPED events, ascending.
            cpus: (k,), CPUs of these events.
            sequence: (k,), first payload words: the number of a BUFFER.
            dropped: (k,), which of the events are DROPPED.
        """
        if not len(rows):
            return []
        ring = cpus.astype(np.int64) if self._per_cpu else np.full(len(rows), -1)
        is_break = dropped.copy()
        buffers = np.flatnonzero(~dropped)
        number = sequence[buffers].astype(np.int64)
        if self._per_cpu:  # numbers are consecutive per CPU
            order = np.argsort(ring[buffers], kind="stable")
            buffers, number = buffers[order], number[order]
        ring_of_buffer = ring[buffers]
        is_first = np.append(True, ring_of_buffer[1:] != ring_of_buffer[:-1])[: len(ring_of_buffer)]
        first_buffers = np.flatnonzero(is_first)
        before = np.append(0, number[:-1])[: len(ring_of_buffer)]
        # Before the first BUFFER no loss is assumed: the numbers of a ring or a longer capture start anywhere.
        starts = zip(ring_of_buffer[first_buffers].tolist(), number[first_buffers].tolist(), strict=True)
        before[first_buffers] = [self._last_numbers.get(ring, after - 1) for ring, after in starts]
        last = np.append(first_buffers[1:] - 1, len(ring_of_buffer) - 1)[: len(first_buffers)]
        self._last_numbers.update(zip(ring_of_buffer[last].tolist(), number[last].tolist(), strict=True))
        # The vendor's listings have only the lower bits of the number; in 8.0 the last buffer has number 1 again.
        is_next = (number - before) & _COMMON_BITS == 1
        if self._per_cpu:
            is_next |= number == 1
        is_break[buffers[~is_next]] = True
        return list(zip(rows[is_break].tolist(), ring[is_break].tolist(), strict=True))


# Decodes slots into columns of events, for every format that consists of slots.
#
# One pass over the file, in chunks that fit the processor's cache, groups slots into events, computes times, numbers
# threads and finds owners. Events whose slots are far apart, and blocks out of order, are repaired after this pass. No
# step handles events one by one in Python.


class GrowingColumn:
    """A column that a decoder writes and several traces read.

    Args:
        dtype: Type of the rows.

    Raises:
        OSError: There is not enough memory or disk space.
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self._dtype = np.dtype(dtype)
        # A file in memory if the system offers it (Linux), else a temporary file.
        self._is_memory = hasattr(os, "memfd_create")
        if self._is_memory:
            self._file = os.memfd_create("satview-column")
            weakref.finalize(self, os.close, self._file)
        else:
            stored = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed with this object
            self._file = stored.fileno()
            weakref.finalize(self, stored.close)
        self._size = 0

    def writable(self, rows: int) -> NDArray[np.generic]:
        """Return the column, extended to `rows` rows, for writing; rows written before are kept.

        Returns:
            (rows,), of the column's type.

        Raises:
            OSError: There is not enough memory or disk space.
        """
        self._grow(rows * self._dtype.itemsize)
        return self._mapped(rows, mmap.ACCESS_WRITE)

    def reading(self, written: NDArray[np.generic], settled: int) -> NDArray[np.generic]:
        """Return a private copy of the column for one trace: changes to it are not visible elsewhere.

        Args:
            written: All rows, as returned by `writable`.
            settled: Number of rows that will not be written again; further rows are copied at once.

        Returns:
            (rows,), of the column's type.

        Raises:
            OSError: There is not enough memory or disk space.
        """
        column = self._mapped(len(written), mmap.ACCESS_COPY)
        # The decoder writes the unsettled rows again at the next reload, which must not change this trace.
        column[settled:] = written[settled:]  # writing makes private copies of the pages
        return column

    def _mapped(self, rows: int, access: int) -> NDArray[np.generic]:
        if not rows:  # an empty file cannot be mapped
            return np.empty(0, self._dtype)
        # The array keeps the mapping alive, and the mapping the file.
        return np.frombuffer(mmap.mmap(self._file, rows * self._dtype.itemsize, access=access), self._dtype)

    def _grow(self, size: int) -> None:
        if size <= self._size:
            return
        if self._is_memory:
            os.ftruncate(self._file, size)  # pages are real once written
        else:
            # Writing, unlike extending, raises an error here if the disk is full, instead of killing the process later.
            os.lseek(self._file, self._size, os.SEEK_SET)
            blank = bytes(1 << 20)
            written = self._size
            while written < size:
                written += os.write(self._file, blank[: size - written])
        self._size = size


CHUNK_SLOTS: Final = 1 << 17  # measured best between 2^16 and 2^17: scratch stays in the second-level cache
# Above these limits a column of 16 bits is widened, before the chunk is written.
_MAX_NARROW_THREADS: Final = 65_000
_MAX_NARROW_SLOTS: Final = 65_535
COLUMNS: Final = ("time", "code", "cpu", "thread", "slot", "slots")


@dataclass(slots=True)
class _Mark:
    """State of the decoder at the start of a chunk.

    Attributes:
        start: First slot of the chunk.
        count: Number of events before the chunk.
        running: uint32 (64,), number of the thread that runs on each CPU.
        clock, numbers, discontinuities, parts: Copies of the parts of the decoder.
    """

    start: int
    count: int
    clock: ClockRebuilder
    numbers: ThreadNumbers
    running: NDArray[np.uint32]
    discontinuities: Discontinuities
    parts: Parts


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A chunk of slots.

    Attributes:
        start: Number of its first slot.
        slots: uint32 (n, 4), words of the slots.
        grouped: The events of the chunk, as groups of slots.
    """

    start: int
    slots: NDArray[np.uint32]
    grouped: loading.Grouped

    @property
    def events(self) -> int:
        return len(self.grouped.first_slot)

    @property
    def end(self) -> int:
        return self.start + self.grouped.length


class Decoder:
    """Decodes the slots of a file into columns of events.

    A growing file keeps its decoder: each `run` decodes only new slots and the last chunk again, because later slots
    cannot change earlier chunks. The result equals that of a new decoder.

    Args:
        slots: (n, 4) words, or a source to read them from.
        catalogue: Catalogue of the file's release.
        goes_on: Whether the file may grow; `extend` is then called before each further `run`.
    """

    def __init__(self, slots: NDArray[np.uint32] | SlotSource, catalogue: Catalogue, *, goes_on: bool = False) -> None:
        self._slots = source_of(slots)
        self._goes_on = goes_on
        n = len(slots)
        # As narrow as nearly all files need; thread and slot count are widened by `_widen` for those that need more.
        dtypes = (np.int64, np.uint16, np.uint8, np.uint16, np.uint32 if n < 1 << 32 else np.uint64, np.uint16)
        self._growing = {name: GrowingColumn(dtype) for name, dtype in zip(COLUMNS, dtypes, strict=True) if goes_on}
        self.time: NDArray[np.int64]
        self.code: NDArray[np.uint16]
        self.cpu: NDArray[np.uint8]
        self.thread: NDArray[np.unsignedinteger]
        self.slot: NDArray[np.unsignedinteger]
        self.slots: NDArray[np.unsignedinteger]
        for name, dtype in zip(COLUMNS, dtypes, strict=True):
            # Unwritten pages take no memory, so allocating a row per slot costs only address space.
            setattr(self, name, self._growing[name].writable(n) if goes_on else column_arrays.empty(n, dtype))
        self.count = 0
        self._clock = ClockRebuilder()
        self._numbers = ThreadNumbers()
        self._running = np.zeros(MAX_CPUS, np.uint32)  # the thread on each CPU
        self._discontinuities = Discontinuities(catalogue.release == Release.QNX_8)
        self._parts = Parts()
        self._mark = self._marked(0)
        thread_class = [i for i, c in enumerate(catalogue.classes) if c.name == "THREAD"]
        self._is_thread = np.isin(catalogue.class_index_of_code, thread_class)
        self._is_state = catalogue.state_value_of_code != NOT_A_STATE
        # Not states according to the table of section 7.2, but lanes begin and end with these events.
        self._is_state[[wire.THREAD_CREATE, wire.THREAD_DESTROY]] = True
        codes = np.arange(wire.CODE_COUNT)
        wire_class = codes >> wire.CLASS_SHIFT
        process = (wire_class == wire.WireClass.PR_TH) & ~self._is_thread
        known = np.zeros(wire.CODE_COUNT, np.bool_)
        known[list(catalogue.codes())] = True
        rare = process | (wire_class == wire.WireClass.CONTROL)
        runs = self._is_thread & (codes == wire.THREAD_RUNNING)
        # One look-up per event instead of five, which would read the codes five times.
        self._traits: NDArray[np.uint8] = np.zeros(wire.CODE_COUNT, np.uint8)
        for trait, has in (
            (loading.IS_SUBJECT, self._is_thread),
            (loading.IS_STATE, self._is_state),
            (loading.IS_RARE, rare),
            (loading.IS_UNKNOWN, ~known),
            (loading.IS_RUNNING, runs),
        ):
            self._traits[has] |= np.uint8(trait)
        # Used alternately: one chunk is processed while the next is read.
        self._scratch = [
            (loading.Grouper(self._traits, wire.CONTROL_BUFFER, CHUNK_SLOTS), np.empty((CHUNK_SLOTS, 4), np.uint32))
            for _ in range(2)
        ]

    def inform(self, surroundings: Surroundings) -> None:
        """Set the information on the clock from header and system page, before the first `run`."""
        if not self._mark.start:
            self._mark.clock = ClockRebuilder(review=ClockReview(surroundings))

    def extend(self, slots: NDArray[np.uint32] | SlotSource) -> None:
        """Replace the slots by a longer array that starts with the same slots, before the next `run`."""
        self._slots = source_of(slots)
        room = self._mark.count + len(self._slots) - self._mark.start  # decoded events plus undecoded slots
        for name, column in self._growing.items():
            setattr(self, name, column.writable(room))

    def _widen(self, name: str, count: int) -> None:
        """Convert the column `name` from 16 to 32 bits, and keep its first `count` values."""
        narrow = getattr(self, name)
        if self._growing:
            self._growing[name] = GrowingColumn(np.uint32)
            wide = self._growing[name].writable(len(narrow))
        else:
            wide = column_arrays.empty(len(narrow), np.uint32)
        wide[:count] = narrow[:count]
        setattr(self, name, wide)

    def run(
        self, progress: Callable[[float], None] | None = None, cancelled: Callable[[], bool] | None = None
    ) -> Decoded:
        """Decode all slots and return the columns; raises Cancelled if `cancelled()` returned True."""
        n, start = len(self._slots), self._mark.start
        self._return_to_mark()
        if not start:
            self._start_clock()
        with closing(self._chunks(start)) as chunks:
            for chunk in chunks:
                if cancelled is not None and cancelled():
                    raise Cancelled("loading was cancelled")
                # The last chunk may end within an event, or before the TIME that corrects its clock: when the file has
                # grown, it is decoded again, from a copy of the state before it.
                if self._goes_on and chunk.start + CHUNK_SLOTS >= n:
                    self._mark = self._marked(chunk.start)
                self._place(chunk)
                for name in COLUMNS:
                    column_arrays.let_go(getattr(self, name))
                if progress is not None:
                    progress(chunk.end / n)
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
        """Find the first usable TIME near the start of the file; times of events before it are counted backwards."""
        head = self._slots.read(0, min(len(self._slots), CHUNK_SLOTS))
        code, kind = head[:, 0] & np.uint32(wire.CODE_MASK), head[:, 0] >> wire.STRUCT_SHIFT
        # Middle and last slots repeat the header, so they look like TIME events too; their words are no clock.
        times = np.flatnonzero((code == wire.CONTROL_TIME) & (kind <= wire.Struct.COMBINE_BEGIN))
        self._held, self._held_from = 0, 0
        values = time_values(head[times, 2], head[times, 3], head[times, 1])
        for slot, value in zip(times[values >= 0][:1].tolist(), values[values >= 0][:1].tolist(), strict=True):
            self._held, self._held_from = slot, value
            self._clock.start_from(value)

    def _chunks(self, start: int) -> Generator[_Chunk]:
        """Yield chunks from slot `start` on, grouped into events; a thread groups the next chunk meanwhile."""
        n, row = len(self._slots), self.count
        ready: SimpleQueue[_Chunk | BaseException] = SimpleQueue()
        free: SimpleQueue[bool] = SimpleQueue()  # an item per free scratch buffer; False ends the thread

        def group_all() -> None:
            begin, first_row = start, row
            try:
                while begin < n and free.get():
                    chunk = self._group(begin, first_row)
                    begin, first_row = chunk.end, first_row + chunk.events
                    ready.put(chunk)
            except BaseException as error:  # noqa: BLE001 - raised again by the thread that takes the chunk
                ready.put(error)

        worker = Begun(group_all, "satview-slots") if n - start > CHUNK_SLOTS else None
        for _ in self._scratch:
            free.put(True)
        try:
            while start < n:
                chunk = self._group(start, self.count) if worker is None else ready.get()
                if isinstance(chunk, BaseException):
                    raise chunk
                start = chunk.end
                yield chunk
                free.put(True)
        finally:
            free.put(False)
            if worker is not None:
                worker.wait()  # it writes to the columns

    def _group(self, start: int, first_row: int) -> _Chunk:
        """Read slots from `start` on, and write their events to the columns from row `first_row` on."""
        self._scratch.reverse()
        grouper, scratch = self._scratch[0]
        end = min(len(self._slots), start + CHUNK_SLOTS)
        part = self._slots.read(start, end, scratch)
        columns = (self.code[first_row:], self.cpu[first_row:], self.slot[first_row:], self.slots[first_row:])
        grouped = grouper.group(part, start, first_row, *columns, is_last=end >= len(self._slots))
        if grouped.longest > _MAX_NARROW_SLOTS and self.slots.dtype == np.uint16:
            self._widen("slots", first_row)
            self.slots[first_row : first_row + len(grouped.first_slot)] = grouped.size
        return _Chunk(start, part, grouped)

    def _place(self, chunk: _Chunk) -> None:
        """Set times and threads of the events of a chunk."""
        start, part, grouped, first_row = chunk.start, chunk.slots, chunk.grouped, self.count
        if len(grouped.zero):
            self._parts.note_empty(start + grouped.zero.astype(np.intp))
        if len(grouped.opened) or len(grouped.run_at):
            opened, open_slots = grouped.opened.astype(np.intp), grouped.first_slot[grouped.opened].astype(np.intp)
            runs = (grouped.run_at.astype(np.intp), grouped.run_size.astype(np.intp),
                    grouped.run_before.astype(np.intp), grouped.run_closes)  # fmt: skip
            self._parts.note_unmatched(
                start, first_row, part, (open_slots, grouped.size[grouped.opened].astype(np.intp), opened), runs
            )
        if not chunk.events:
            return
        rows = slice(first_row, first_row + chunk.events)
        code, cpu = self.code[rows], self.cpu[rows]
        rare = grouped.rare.astype(np.intp)
        self._parts.note_unknown(grouped.unknown.astype(np.intp), code, first_row)
        discontinuities = self._discontinuities_at(part, grouped.first_slot, code, cpu, rare)
        self._clock.review.add_breaks([(row + first_row, ring) for row, ring in discontinuities])
        self._position(rows, part, grouped.first_slot, code, cpu, grouped.stamp, rare)
        threads = self._numbered(grouped.key)
        jumps = np.array(discontinuities, np.int64).reshape(-1, 2).T
        loading.owners(cpu, grouped.trait, threads, jumps, self._running, self.thread[rows])
        self._parts.state_rows.append(grouped.state_row.copy())
        self._parts.note_rare(first_row, rare, part[grouped.first_slot[rare]])
        self.count += chunk.events

    def _position(
        self,
        rows: slice,
        part: NDArray[np.uint32],
        first_slots: NDArray[np.integer],
        code: NDArray[np.uint16],
        cpu: NDArray[np.uint8],
        stamps: NDArray[np.uint32],
        rare: NDArray[np.intp],
    ) -> None:
        time_rows = rare[code[rare] == wire.CONTROL_TIME]
        buffers = rare[code[rare] == wire.CONTROL_BUFFER]
        chunk = ClockChunk.of(part[first_slots[time_rows]], stamps, cpu, time_rows, buffers, rows.start)
        out, held = self.time[rows], 0
        slots = self.slot[rows]
        # Rule 4 of section 5.3: times of events before the first TIME are counted backwards from it.
        if int(slots[0]) < self._held:
            held = int(np.searchsorted(slots, slots.dtype.type(self._held)))
        self._clock.unwrap(self._clock.hold(chunk, held, self._held_from, out), out[held:])

    def _numbered(self, keys: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return the thread numbers of (pid, tid) keys, for events that contain pid and tid."""
        threads = self._numbers.numbers(keys)
        if len(self._numbers) > _MAX_NARROW_THREADS and self.thread.dtype == np.uint16:
            self._widen("thread", self.count)
        return threads

    def _discontinuities_at(
        self,
        part: NDArray[np.uint32],
        first_slots: NDArray[np.integer],
        code: NDArray[np.uint16],
        cpu: NDArray[np.uint8],
        rare: NDArray[np.intp],
    ) -> list[tuple[int, int]]:
        # After lost events the running thread is unknown, as the lost events may include switches.
        codes = code[rare]
        is_dropped = codes == wire.CONTROL_DROPPED
        is_mark = is_dropped | (codes == wire.CONTROL_BUFFER)
        marks = rare[is_mark]
        return self._discontinuities.find(marks, cpu[marks], part[first_slots[marks], 2], is_dropped[is_mark])

    def _finish(self) -> Decoded:
        n, parts = self.count, self._parts
        columns = {name: getattr(self, name)[:n] for name in COLUMNS}
        for name, column in self._growing.items():
            columns[name] = column.reading(columns[name], self._mark.count)
            setattr(self, name, np.empty(0, columns[name].dtype))  # no writes until `extend` maps it again
        return Decoded(
            n,
            **columns,
            state_rows=np.concatenate([np.empty(0, np.uint32), *parts.state_rows]),
            rare_rows=np.concatenate([np.empty(0, np.int64), *parts.rare_rows]),
            rare_words=np.concatenate([np.empty((0, 2), np.uint32), *parts.rare_words]),
            keys=self._numbers.keys(),
            unmatched=combine.Unmatched.concatenated([combine.Unmatched.none(), *parts.unmatched]),
            empty=parts.empty,
            clock=self._clock,
            unknown=parts.unknown,
        )
