"""Lays selected events out as slots again, in buffers with BUFFER and TIME events as a kernel would write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import numbers_of
from satview.base.errors import Cancelled
from satview.events.spec import Release
from satview.events.wire import (
    BUFFER_END_COOKIE,
    CONTROL_BUFFER,
    CONTROL_BUFFER_END,
    CONTROL_TIME,
    CPU_SHIFT,
    PROCESS_INJECTED,
    STRUCT_SHIFT,
    Struct,
)
from satview.export.subset_opening import Opening
from satview.formats.kev.payloads import SlotPayloads
from satview.formats.kev.writer import slots_as_bytes
from satview.store.losses import losses
from satview.store.trace import Trace

BUFFER_SLOTS: Final = 714  # high-water mark of a 6.4 kernel
_MAX_AHEAD: Final = 1 << 31  # cycles a CPU may be silent before it gets a TIME: well below a rollover
_MAX_BACK: Final = 1 << 28  # ... or step back, as late slots do
_BLOCK: Final = 1 << 16
_NEVER: Final = np.iinfo(np.int64).max


@dataclass(slots=True)
class _Records:
    """Everything that goes into the file in writing order: the opening dump first, then the selected rows."""

    time: NDArray[np.int64]
    cpu: NDArray[np.uint8]
    count: NDArray[np.int64]


def write_slots(
    file: BinaryIO,
    trace: Trace,
    rows: NDArray[np.uint32],
    opening: Opening,
    progress: Callable[[float], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> int:
    """Append the slots of an opening dump and of some rows to a file; return how many there are.

    Args:
        file: Open for writing, header and system page already in it.
        trace: Where the rows are from.
        rows: Event rows in the order in which they are to be written.
        opening: Dump that comes before them; may be empty.
        progress: Called with 0 to 1.
        cancelled: Called between blocks; True stops.

    Raises:
        Cancelled: `cancelled()` returned True.
    """
    events = trace.events
    records = _Records(
        np.concatenate((opening.time_cycles, events.time_cycles[rows])),
        np.concatenate((opening.cpu, events.cpu[rows])),
        np.concatenate((opening.slot_count, events.slot_count[rows].astype(np.int64))),
    )
    layout = _Layout(trace, records, rows, len(opening))
    for start in range(0, len(records.time), _BLOCK):
        if cancelled is not None and cancelled():
            raise Cancelled("writing was stopped")
        end = min(start + _BLOCK, len(records.time))
        slots = layout.block(start, end)
        _fill(slots, layout, start, end, rows, opening, trace)
        file.write(slots_as_bytes(slots, trace.byte_order))
        if progress is not None:
            progress(end / len(records.time))
    tail = layout.tail()
    file.write(slots_as_bytes(tail, trace.byte_order))
    return layout.total + len(tail)


class _Layout:
    """Where each record goes, and the BUFFER and TIME slots between them.

    Attributes:
        position: First slot of each record.
        before: Slots that are before each record and belong to it: the end of a buffer, BUFFER, TIME.
        total: Slots up to the last record; `tail` follows.
    """

    def __init__(self, trace: Trace, records: _Records, rows: NDArray[np.uint32], opening_count: int) -> None:
        self._records = records
        self._has_buffers = len(trace.buffers) > 0
        self.has_ends = self._has_buffers and trace.release is Release.QNX_8
        n = len(records.time)
        self._ring = np.concatenate((np.zeros(opening_count, np.uint8), _rings(trace, rows)))
        self._lost_behind: dict[int, int] = {}
        lost = np.zeros(n, np.int64)
        if self.has_ends:
            self._find_losses_of_cpus(trace, rows, opening_count, lost)
        else:
            self._find_losses(trace, rows, opening_count, lost)
        self._starts = self._buffer_starts(lost)
        self._is_start = np.zeros(n, np.bool_)
        self._is_start[self._starts] = self._has_buffers
        buffer = np.cumsum(self._is_start, dtype=np.int64)
        self._needs_time = self._times_needed(buffer) if trace.clock.is_absolute else np.zeros(n, np.bool_)
        ends = self._is_start & (np.arange(n) > 0) if self.has_ends else np.zeros(n, np.bool_)
        self.before = ends.astype(np.int64) + self._is_start + self._needs_time
        self.position = np.cumsum(self.before + records.count) - records.count
        self.total = int(self.position[-1] + records.count[-1]) if n else 0
        self._sequence = self._numbers(lost[self._starts])
        marks = self.position[self._starts] - self._needs_time[self._starts] - 1
        self._sizes = np.diff(marks, append=self.total + self.has_ends)
        if self.has_ends:
            # A CPU's first buffer that is not numbered 1 is that of a ring, which does not count its slots.
            _, oldest = np.unique(self._ring[self._starts], return_index=True)
            self._sizes[oldest[self._sequence[oldest] > 1]] = 0

    def _find_losses(self, trace: Trace, rows: NDArray[np.uint32], opening_count: int, lost: NDArray[np.int64]) -> None:
        """Write down before which records the capture lost buffers, and how many; such a gap stays visible."""
        gaps = np.flatnonzero(trace.buffers.lost_before)
        at = np.searchsorted(trace.events.slot[rows], trace.buffers.slot[gaps])
        opened = int(self._records.time[opening_count - 1]) if opening_count else _NEVER
        # A gap before everything that is written, or after it, is no gap of the new file.
        inside = ((at > 0) | (trace.buffers.time_cycles[gaps] > opened)) & (at < len(rows))
        np.add.at(lost, opening_count + at[inside], trace.buffers.lost_before[gaps[inside]].astype(np.int64))

    def _find_losses_of_cpus(
        self, trace: Trace, rows: NDArray[np.uint32], opening_count: int, lost: NDArray[np.int64]
    ) -> None:
        """The same for 8.0, where one CPU loses what others do not, and may do so up to the end of the new file."""
        if not len(rows):
            return
        time, buffers = self._records.time, trace.buffers
        reported = losses(trace)
        reported = reported[(reported[:, 0] < time[opening_count:].max()) & (reported[:, 1] > time[0])]
        for cpu in np.unique(reported[:, 2]).tolist():
            ends = reported[reported[:, 2] == cpu, 1]
            own = opening_count + np.flatnonzero(self._ring[opening_count:] == cpu)
            at, number = np.searchsorted(time[own], ends), np.ones(len(ends), np.int64)
            mine = np.flatnonzero(buffers.cpu == cpu)
            mine = mine[np.argsort(buffers.time_cycles[mine], kind="stable")]
            index = np.searchsorted(buffers.time_cycles[mine], ends)
            by_buffer = np.flatnonzero(np.append(buffers.time_cycles[mine], _NEVER)[index] == ends)
            following = mine[index[by_buffer]]
            # Nobody counted the buffers that are missing at first: one or more.
            number[by_buffer] = np.maximum(buffers.lost_before[following], 1)
            at[by_buffer] = np.searchsorted(trace.events.slot[rows[own - opening_count]], buffers.slot[following])
            inside = at < len(own)
            np.add.at(lost, own[at[inside]], number[inside])
            if not inside.all():
                self._lost_behind[cpu] = int(number[~inside].sum())

    def _numbers(self, lost: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sequence number of each buffer: they count on, per CPU in 8.0, and skip what was lost."""
        numbers = np.zeros(len(self._starts) if self._has_buffers else 0, np.int64)
        rings = self._ring[self._starts]
        for ring in np.unique(rings) if len(numbers) else ():
            numbers[rings == ring] = np.cumsum(1 + lost[rings == ring])
        return numbers

    def _buffer_starts(self, lost: NDArray[np.int64]) -> NDArray[np.int64]:
        """Cut the records into buffers of at most 714 slots; after a gap, or of another CPU, a new one."""
        n = len(lost)
        if not n:
            return np.empty(0, np.int64)
        if not self._has_buffers:
            return np.zeros(1, np.int64)
        cpus = len(np.unique(self._records.cpu))
        room = BUFFER_SLOTS - 1 - cpus - self.has_ends
        ends = np.cumsum(self._records.count)
        changes = np.diff(self._ring, prepend=self._ring[:1]) != 0
        forced = np.append(np.flatnonzero(changes | (lost > 0)), n)
        starts = [0]
        while True:
            at = starts[-1]
            used = int(ends[at - 1]) if at else 0
            following = max(int(np.searchsorted(ends, used + room, side="right")), at + 1)
            following = min(following, int(forced[np.searchsorted(forced, at, side="right")]) if at < n else n)
            if following >= n:
                return np.array(starts)
            starts.append(following)

    def _times_needed(self, buffer: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Records before which their CPU needs a TIME: its first of a buffer, and after long silences or steps back."""
        cpu, time = self._records.cpu.astype(np.int64), self._records.time
        needed = np.zeros(len(cpu), np.bool_)
        order = np.argsort(cpu, kind="stable")
        same = cpu[order[1:]] == cpu[order[:-1]]
        step = np.diff(time[order])
        is_close = (step < _MAX_AHEAD) & (step > -_MAX_BACK)
        needed[order[1:]] = ~(same & is_close & (buffer[order[1:]] == buffer[order[:-1]]))
        needed[order[:1]] = True
        return needed

    def block(self, start: int, end: int) -> NDArray[np.uint32]:
        """Return the slots of some records, uint32 (n, 4), BUFFER and TIME filled in, the records' own still zero."""
        first = int(self.position[start] - self.before[start])
        slots = np.zeros((int(self.position[end - 1] + self._records.count[end - 1]) - first, 4), np.uint32)
        part = slice(start, end)
        time, cpu = self._records.time[part], self._records.cpu[part].astype(np.uint32)
        at = self.position[part] - first
        timed = np.flatnonzero(self._needs_time[part])
        index = at[timed] - 1
        slots[index, 0] = CONTROL_TIME | cpu[timed] << CPU_SHIFT
        slots[index, 1] = slots[index, 3] = time[timed] & 0xFFFFFFFF
        slots[index, 2] = time[timed] >> 32
        self._mark_buffers(slots, start, end, first)
        return slots

    def _mark_buffers(self, slots: NDArray[np.uint32], start: int, end: int, first: int) -> None:
        if not self._has_buffers:
            return
        selected = slice(*np.searchsorted(self._starts, (start, end)).tolist())
        record = self._starts[selected]
        index = self.position[record] - self._needs_time[record] - 1 - first
        cpu = (self._ring if self.has_ends else self._records.cpu)[record].astype(np.uint32)
        stamp = (self._records.time[record] & 0xFFFFFFFF).astype(np.uint32)
        slots[index, 0] = CONTROL_BUFFER | cpu << CPU_SHIFT
        slots[index, 1] = stamp
        slots[index, 2] = self._sequence[selected] & 0xFFFFFFFF
        slots[index, 3] = self._sizes[selected]
        if self.has_ends:
            later = record > 0
            before = record[later] - 1
            slots[index[later] - 1] = self._ends(before)

    def _ends(self, records: NDArray[np.int64]) -> NDArray[np.uint32]:
        """BUFFER_END slots that follow some records."""
        slots = np.full((len(records), 4), BUFFER_END_COOKIE, np.uint32)
        slots[:, 0] = CONTROL_BUFFER_END | self._ring[records].astype(np.uint32) << CPU_SHIFT
        slots[:, 1] = self._records.time[records] & 0xFFFFFFFF
        return slots

    def tail(self) -> NDArray[np.uint32]:
        """Return the slots that close a file of 8.0, shape (n, 4): the end of its last buffer, and losses still open.

        Those are reported by a buffer of the CPU that comes too late: with a number that is too high, and empty.
        """
        last = len(self._records.time) - 1
        if not self.has_ends or last < 0:
            return np.empty((0, 4), np.uint32)
        time = int(self._records.time.max())
        parts = [self._ends(np.array([last]))]
        for cpu, number in self._lost_behind.items():
            own = np.flatnonzero(self._ring[self._starts] == cpu)
            sequence = (int(self._sequence[own[-1]]) if len(own) else 0) + 1 + number
            at, stamp = cpu << CPU_SHIFT, time & 0xFFFFFFFF
            parts.append(
                np.array(
                    [
                        [CONTROL_BUFFER | at, stamp, sequence & 0xFFFFFFFF, 3 if len(own) else 0],
                        [CONTROL_TIME | at, stamp, time >> 32, stamp],
                        [CONTROL_BUFFER_END | at, stamp, BUFFER_END_COOKIE, BUFFER_END_COOKIE],
                    ],
                    np.uint32,
                )
            )
        return np.concatenate(parts)


def _rings(trace: Trace, rows: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return the CPU in whose buffer each row was, uint8 (len(rows),): 0 up to 7.x, where all CPUs share theirs."""
    buffers = trace.buffers
    if trace.release is not Release.QNX_8 or not len(buffers):
        return np.zeros(len(rows), np.uint8)
    at = np.searchsorted(buffers.slot, trace.events.slot[rows], side="right") - 1
    return buffers.cpu[np.maximum(at, 0)]


def _fill(
    slots: NDArray[np.uint32],
    layout: _Layout,
    start: int,
    end: int,
    rows: NDArray[np.uint32],
    opening: Opening,
    trace: Trace,
) -> None:
    """Write the slots of the records `start` to `end` into a block."""
    first = int(layout.position[start] - layout.before[start])
    dump = len(opening)
    if start < dump:
        stop = min(end, dump)
        sizes = opening.slot_count[start:stop]
        source = int(opening.slot_count[:start].sum())
        slots[numbers_of(layout.position[start:stop] - first, sizes)] = opening.slots[
            source : source + int(sizes.sum())
        ]
    if end > dump:
        begin = max(start, dump)
        _fill_rows(slots, layout.position[begin:end] - first, rows[begin - dump : end - dump], trace)


def _fill_rows(slots: NDArray[np.uint32], at: NDArray[np.int64], rows: NDArray[np.uint32], trace: Trace) -> None:
    events, payloads = trace.events, trace.payloads
    count = events.slot_count[rows].astype(np.int64)
    header = events.code[rows].astype(np.uint32) | events.cpu[rows].astype(np.uint32) << CPU_SHIFT
    if trace.release is Release.QNX_8 and isinstance(payloads, SlotPayloads):
        header |= np.array([payloads.header(row) for row in rows.tolist()], np.uint32) & np.uint32(PROCESS_INJECTED)
    stamp = (events.time_cycles[rows] & 0xFFFFFFFF).astype(np.uint32)
    is_cut = np.isin(rows, trace.truncated)
    open_ = np.arange(len(rows))
    step = 0
    while len(open_):
        index = at[open_] + step
        is_last = step == count[open_] - 1
        kind = np.where(is_last & ~is_cut[open_], Struct.COMBINE_END, Struct.COMBINE_CONTINUE)
        if step == 0:
            # An event cut short has no last slot: it stays one that begins and does not end.
            kind = np.where(is_last & ~is_cut[open_], Struct.SIMPLE, Struct.COMBINE_BEGIN)
        slots[index, 0] = header[open_] | kind.astype(np.uint32) << STRUCT_SHIFT
        slots[index, 1] = stamp[open_]
        slots[index, 2], slots[index, 3] = payloads.pair(rows[open_], 2 * step)
        step += 1
        open_ = open_[count[open_] > step]
