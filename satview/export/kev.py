"""Writes a trace as a .kev file: all slots unchanged, or selected events with the events that these depend on.

Selected events alone would be read wrongly: without the switches between threads they would belong to the wrong
thread, a clock would miss a rollover in a long silence, and processes would have no names. The file therefore also
gets names and creations, the switch before each selected event, a state dump at the start of the window, and new TIME
and BUFFER events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import numbers_of
from satview.base.errors import Cancelled, UsageError
from satview.base.new_file import NewFile, find_target
from satview.base.time import TimeWindow
from satview.events import states, wire
from satview.events.spec import Release
from satview.events.variants import name_bytes
from satview.filters.derived_columns import chunks, state_rows
from satview.formats.kev.header import (
    FROM_LISTING,
    SlotWriter,
    holds_key,
    is_key,
    slots_as_bytes,
    write_kev,
    write_start,
)
from satview.formats.kev.payloads import SlotPayloads
from satview.formats.registry import source_files
from satview.linkage.links import rows_of_codes
from satview.store.time_ranges import EVERY_CPU, losses
from satview.store.trace import Trace

# The state of the target at one time, as the events that START would have logged at that time.


@dataclass(frozen=True, slots=True)
class Opening:
    """A state dump of n generated events.

    Attributes:
        time_cycles: int64 (n,), times given to the events: one cycle apart, just before the window.
        code: uint16 (n,).
        cpu: uint8 (n,).
        slot_count: int64 (n,).
        slots: uint32 (slots, 4), header, stamp and payload words of all events one after the other.
        threads: Rows of the thread table whose state the dump shows.
    """

    time_cycles: NDArray[np.int64]
    code: NDArray[np.uint16]
    cpu: NDArray[np.uint8]
    slot_count: NDArray[np.int64]
    slots: NDArray[np.uint32]
    threads: NDArray[np.int64]

    @classmethod
    def empty(cls) -> Opening:
        """Return a dump without events."""
        return cls(
            np.empty(0, np.int64),
            np.empty(0, np.uint16),
            np.empty(0, np.uint8),
            np.empty(0, np.int64),
            np.empty((0, 4), np.uint32),
            np.empty(0, np.int64),
        )

    def __len__(self) -> int:
        return len(self.code)


def state_before(trace: Trace, row: int) -> NDArray[np.int64]:
    """Return each thread's last state event before a row, int64 (threads,); -1 if there is none."""
    events, owner = state_rows(trace)
    last = np.full(len(trace.threads), -1, np.int64)
    earlier = events < row
    # Rows ascend within a thread, so the last assignment of each thread is its latest event.
    last[owner[earlier]] = events[earlier]
    return last


def opening_state(trace: Trace, row: int, *, with_all_names: bool = False) -> Opening:
    """Return the state of all processes and threads just before an event, in the order of START's dump.

    The dump contains creation and name of each process, and creation, state event and name of each thread
    (`with_all_names`: also of one without state event). A RUNNING event carries the CPU of the thread, all other events
    CPU 0. If the last thread that got a CPU has left RUNNING since, both state events are added at the end, because
    later events of that CPU still belong to the thread. The state of a thread is left out if it may have changed where
    events are missing.
    """
    last = state_before(trace, row)
    start_cycles = int(trace.events.time_cycles[row]) if row < len(trace.events) else trace.window.end
    alive = np.flatnonzero((last >= 0) & ~_gone(trace, row, last))
    known = alive[_still_true(trace, last[alive], start_cycles)]
    dump = _Dump(trace)
    for process in _processes(trace, row, alive):
        dump.process(process)
        for thread in alive[trace.threads.process[alive] == process].tolist():
            dump.thread(thread, int(last[thread]) if thread in known else None)
        if with_all_names:
            for thread in np.setdiff1d(np.flatnonzero(trace.threads.process == process), alive).tolist():
                dump.name(thread)
    switches = _last_switches(trace, row)
    doubtful = np.isin(trace.events.thread[switches], np.setdiff1d(alive, known))
    switches = switches[_still_true(trace, switches, start_cycles) & ~doubtful]
    if any(
        dump.owners.get(int(trace.events.cpu[switch])) != int(trace.events.thread[switch])
        for switch in switches.tolist()
    ):
        running = last[known][trace.events.code[last[known]] == wire.THREAD_RUNNING]
        rows = np.unique(np.concatenate((switches, last[trace.events.thread[switches]], running)))
        # In time order, so that the last event of each CPU and of each thread is valid.
        for event in rows.tolist():
            dump.state(event)
    return dump.opening(start_cycles, known)


def _still_true(trace: Trace, rows: NDArray[np.int64], now_cycles: int) -> NDArray[np.bool_]:
    """Return for each state event whether the thread is certainly still in that state at `now_cycles`, bool (n,).

    Events lost since then may have changed the state; if the thread is running, only events lost on its own CPU may.
    """
    events = trace.events
    is_running = events.code[rows] == wire.THREAD_RUNNING
    holds = np.ones(len(rows), np.bool_)
    lost = losses(trace)
    lost = lost[lost[:, 0] < now_cycles]
    for cpu in np.unique(lost[:, 2]).tolist():
        concerns = (cpu == EVERY_CPU) | ~is_running | (events.cpu[rows] == cpu)
        holds &= ~concerns | (events.time_cycles[rows] >= lost[lost[:, 2] == cpu, 1].max())
    return holds


def _last_switches(trace: Trace, row: int) -> NDArray[np.int64]:
    """Return the last RUNNING event before `row` on each CPU that has one, int64 (k,)."""
    running = rows_of_codes(trace, wire.THREAD_RUNNING).astype(np.int64)
    running = running[running < row]
    _, from_end = np.unique(trace.events.cpu[running][::-1], return_index=True)
    return running[::-1][from_end]


def _gone(trace: Trace, row: int, last: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which threads ended before a row: destroyed after their `last` state, or dead; bool (threads,)."""
    has_ended = np.zeros(len(trace.threads), np.bool_)
    destroyed = rows_of_codes(trace, wire.THREAD_DESTROY)
    destroyed = destroyed[destroyed < row]
    threads = trace.events.thread[destroyed]
    has_ended[threads[destroyed >= last[threads]]] = True
    known = last >= 0
    values = trace.catalogue.state_value_of_code[trace.events.code[last[known]]]
    has_ended[np.flatnonzero(known)[values == states.DEAD]] = True
    return has_ended


def _processes(trace: Trace, row: int, alive: NDArray[np.int64]) -> list[int]:
    """Return the processes that exist at a row, in table order: created and not ended before, or with a live thread."""
    processes = trace.processes
    now = int(trace.events.time_cycles[row]) if row < len(trace.events) else trace.window.end
    ended = (processes.destroyed_cycles >= 0) & (processes.destroyed_cycles < now)
    exists = (processes.created_cycles < now) & ~ended
    exists[trace.threads.process[alive]] = True
    exists[0] = False
    return np.flatnonzero(exists).tolist()


class _Dump:
    """Builds the events that dump the state of all processes and threads; `owners` ran last, by CPU."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._writer = SlotWriter(trace.byte_order)
        self._code: list[int] = []
        self._cpu: list[int] = []
        self._sizes: list[int] = []
        self.owners: dict[int, int] = {}

    def _event(self, code: int, cpu: int, words: Sequence[int], text: bytes | None = None) -> None:
        before = len(self._writer)
        if text is None:
            self._writer.event(code, cpu, 0, words)
        else:
            self._writer.text_event(code, cpu, 0, words, text)
        self._code.append(code)
        self._cpu.append(cpu)
        self._sizes.append(len(self._writer) - before)

    def process(self, process: int) -> None:
        """Add the event for the creation of a process to the dump."""
        table = self._trace.processes
        ids = max(int(table.parent_pid[process]), 0), int(table.pid[process])
        name = name_bytes(table.names[process])
        if name:
            self._event(wire.PROC_CREATE_NAME, 0, ids, name)
        else:
            self._event(wire.PROC_CREATE, 0, ids)

    def thread(self, thread: int, state_row: int | None) -> None:
        """Add the creation and the name of a thread, and its state event unless `state_row` is None."""
        table = self._trace.threads
        ids = int(table.pid[thread]), int(table.tid[thread])
        self._event(wire.THREAD_CREATE, 0, ids)
        if state_row is not None:
            self.state(state_row)
        self.name(thread)

    def name(self, thread: int) -> None:
        """Add the name of a thread, if it has one."""
        table = self._trace.threads
        name = name_bytes(table.names[thread])
        if name:
            self._event(wire.PROC_THREAD_NAME, 0, (int(table.pid[thread]), int(table.tid[thread])), name)

    def state(self, row: int) -> None:
        """Add a copy of a state event of the trace."""
        code = int(self._trace.events.code[row])
        cpu = int(self._trace.events.cpu[row]) if code == wire.THREAD_RUNNING else 0
        if code == wire.THREAD_RUNNING:
            self.owners[cpu] = int(self._trace.events.thread[row])
        self._event(code, cpu, self._trace.payloads.words(row).tolist())

    def opening(self, first_cycles: int, threads: NDArray[np.int64]) -> Opening:
        """Return the dump of the states of some threads, which ends one cycle before `first_cycles`."""
        n = len(self._code)
        # Times below 0 become 0; readers accept several events at the same time.
        times = np.maximum(np.arange(first_cycles - n, first_cycles, dtype=np.int64), 0)
        slots = self._writer.slots()
        slots[:, 1] = np.repeat(times, self._sizes).astype(np.uint64) & np.uint64(0xFFFFFFFF)
        return Opening(
            times,
            np.array(self._code, np.uint16),
            np.array(self._cpu, np.uint8),
            np.array(self._sizes, np.int64),
            slots,
            threads,
        )


# Writes selected events as slots, in buffers with BUFFER and TIME events as a kernel would write them.


BUFFER_SLOTS: Final = 714  # high-water mark of a 6.4 kernel
_MAX_AHEAD: Final = 1 << 31  # cycles a CPU may be silent before it gets a TIME: well below a rollover
_MAX_BACK: Final = 1 << 28  # ... or step back, as late slots do
_BLOCK: Final = 1 << 16
_NEVER: Final = np.iinfo(np.int64).max


def _check(cancelled: Callable[[], bool] | None) -> None:
    if cancelled is not None and cancelled():
        raise Cancelled("writing was stopped")


def write_slots(
    file: BinaryIO,
    trace: Trace,
    rows: NDArray[np.uint32],
    opening: Opening,
    progress: Callable[[float], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> int:
    """Append the slots of an opening dump and of some events to a file; return the number of slots.

    Args:
        file: Open for writing; it already contains header and system page.
        trace: The trace of the events.
        rows: Rows of the events, in the order of writing.
        opening: Dump that is written before the events; may be empty.
        progress: Called with the share that is done, 0 to 1.
        cancelled: Called between blocks; True stops.

    Raises:
        Cancelled: `cancelled()` returned True.
    """
    layout = _RecordLayout(trace, rows, opening)
    for start in range(0, layout.count, _BLOCK):
        _check(cancelled)
        end = min(start + _BLOCK, layout.count)
        file.write(slots_as_bytes(layout.block(start, end), trace.byte_order))
        if progress is not None:
            progress(end / layout.count)
    tail = layout.tail()
    file.write(slots_as_bytes(tail, trace.byte_order))
    return layout.total + len(tail)


class _RecordLayout:
    """Slot positions of the records (events of the opening dump, then selected events) in the new file.

    Attributes:
        before: Number of slots inserted before each record: the end of a buffer, BUFFER, TIME.
        total: Number of slots up to the last record; the slots that `tail` returns follow.
    """

    def __init__(self, trace: Trace, rows: NDArray[np.uint32], opening: Opening) -> None:
        self._trace, self._rows, self._opening, events = trace, rows, opening, trace.events
        self._time = np.concatenate((opening.time_cycles, events.time_cycles[rows]))
        self._cpu = np.concatenate((opening.cpu, events.cpu[rows]))
        self._size = np.concatenate((opening.slot_count, events.slot_count[rows].astype(np.int64)))
        self._has_buffers = len(trace.buffers) > 0
        self.has_ends = self._has_buffers and trace.release is Release.QNX_8
        self.count = n = len(self._time)
        self._ring = np.concatenate((np.zeros(len(opening), np.uint8), _rings(trace, rows)))
        self._lost_behind: dict[int, int] = {}
        lost = np.zeros(n, np.int64)
        if self.has_ends:
            self._find_losses_of_cpus(lost)
        else:
            self._find_losses(lost)
        self._starts = self._buffer_starts(lost)
        self._is_start = np.zeros(n, np.bool_)
        self._is_start[self._starts] = self._has_buffers
        buffer = np.cumsum(self._is_start, dtype=np.int64)
        self._needs_time = self._times_needed(buffer) if trace.clock.is_absolute else np.zeros(n, np.bool_)
        ends = self._is_start & (np.arange(n) > 0) if self.has_ends else np.zeros(n, np.bool_)
        self.before = ends.astype(np.int64) + self._is_start + self._needs_time
        self.position = np.cumsum(self.before + self._size) - self._size
        self.total = int(self.position[-1] + self._size[-1]) if n else 0
        self._sequence = self._numbers(lost[self._starts])
        marks = self.position[self._starts] - self._needs_time[self._starts] - 1
        self._sizes = np.diff(marks, append=self.total + self.has_ends)
        if self.has_ends:
            # A CPU's first buffer that is not numbered 1 is that of a ring, which does not count its slots.
            _, oldest = np.unique(self._ring[self._starts], return_index=True)
            self._sizes[oldest[self._sequence[oldest] > 1]] = 0

    def _find_losses(self, lost: NDArray[np.int64]) -> None:
        """Add to `lost` the number of buffers lost before each record, so that the gaps stay visible."""
        trace, rows, opening_count = self._trace, self._rows, len(self._opening)
        gaps = np.flatnonzero(trace.buffers.lost_before)
        before = np.searchsorted(trace.events.slot[rows], trace.buffers.slot[gaps])
        opened = int(self._time[opening_count - 1]) if opening_count else _NEVER
        # A gap before all written events, or after them, is no gap in the new file.
        inside = ((before > 0) | (trace.buffers.time_cycles[gaps] > opened)) & (before < len(rows))
        np.add.at(lost, opening_count + before[inside], trace.buffers.lost_before[gaps[inside]].astype(np.int64))

    def _find_losses_of_cpus(self, lost: NDArray[np.int64]) -> None:
        """Do the same as `_find_losses` for 8.0, CPU by CPU; losses after a CPU's last record go to `_lost_behind`."""
        trace, rows, opening_count = self._trace, self._rows, len(self._opening)
        if not len(rows):
            return
        time, buffers = self._time, trace.buffers
        reported = losses(trace)
        reported = reported[(reported[:, 0] < time[opening_count:].max()) & (reported[:, 1] > time[0])]
        for cpu in np.unique(reported[:, 2]).tolist():
            ends = reported[reported[:, 2] == cpu, 1]
            own = opening_count + np.flatnonzero(self._ring[opening_count:] == cpu)
            position, number = np.searchsorted(time[own], ends), np.ones(len(ends), np.int64)
            of_cpu = np.flatnonzero(buffers.cpu == cpu)
            of_cpu = of_cpu[np.argsort(buffers.time_cycles[of_cpu], kind="stable")]
            index = np.searchsorted(buffers.time_cycles[of_cpu], ends)
            by_buffer = np.flatnonzero(np.append(buffers.time_cycles[of_cpu], _NEVER)[index] == ends)
            following = of_cpu[index[by_buffer]]
            # The number of buffers missing at the start is not known: at least one.
            number[by_buffer] = np.maximum(buffers.lost_before[following], 1)
            position[by_buffer] = np.searchsorted(trace.events.slot[rows[own - opening_count]], buffers.slot[following])
            inside = position < len(own)
            np.add.at(lost, own[position[inside]], number[inside])
            if not inside.all():
                self._lost_behind[cpu] = int(number[~inside].sum())

    def _numbers(self, lost: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sequence number of each buffer, int64 (buffers,); lost ones count too; 8.0 counts for each CPU."""
        numbers = np.zeros(len(self._starts) if self._has_buffers else 0, np.int64)
        rings = self._ring[self._starts]
        for ring in np.unique(rings) if len(numbers) else ():
            numbers[rings == ring] = np.cumsum(1 + lost[rings == ring])
        return numbers

    def _buffer_starts(self, lost: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return each buffer's first record, int64 (buffers,): one ends after 714 slots, at a gap or change of CPU."""
        n = len(lost)
        if not n:
            return np.empty(0, np.int64)
        if not self._has_buffers:
            return np.zeros(1, np.int64)
        cpus = int(np.count_nonzero(np.bincount(self._cpu)))
        room = BUFFER_SLOTS - 1 - cpus - self.has_ends
        ends = np.cumsum(self._size)
        changes = np.diff(self._ring, prepend=self._ring[:1]) != 0
        forced = np.append(np.flatnonzero(changes | (lost > 0)), n)
        starts = [0]
        while True:
            start = starts[-1]
            used = int(ends[start - 1]) if start else 0
            following = max(int(np.searchsorted(ends, used + room, side="right")), start + 1)
            following = min(following, int(forced[np.searchsorted(forced, start, side="right")]) if start < n else n)
            if following >= n:
                return np.array(starts)
            starts.append(following)

    def _times_needed(self, buffer: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which records need a TIME event: the first of a CPU or buffer, or after silence or a step back."""
        cpu, time = self._cpu.astype(np.uint8), self._time  # bytes are sorted ten times as fast as wider numbers
        needed = np.zeros(len(cpu), np.bool_)
        order = np.argsort(cpu, kind="stable")
        same = cpu[order[1:]] == cpu[order[:-1]]
        step = np.diff(time[order])
        is_close = (step < _MAX_AHEAD) & (step > -_MAX_BACK)
        needed[order[1:]] = ~(same & is_close & (buffer[order[1:]] == buffer[order[:-1]]))
        needed[order[:1]] = True
        return needed

    def block(self, start: int, end: int) -> NDArray[np.uint32]:
        """Return the slots of the records from `start` to `end`, and their BUFFER and TIME slots, uint32 (n, 4)."""
        first_slot = int(self.position[start] - self.before[start])
        slots = np.zeros((int(self.position[end - 1] + self._size[end - 1]) - first_slot, 4), np.uint32)
        part = slice(start, end)
        time, cpu = self._time[part], self._cpu[part].astype(np.uint32)
        position = self.position[part] - first_slot
        timed = np.flatnonzero(self._needs_time[part])
        index = position[timed] - 1
        slots[index, 0] = wire.CONTROL_TIME | cpu[timed] << wire.CPU_SHIFT
        slots[index, 1] = slots[index, 3] = time[timed] & 0xFFFFFFFF
        slots[index, 2] = time[timed] >> 32
        self._mark_buffers(slots, start, end, first_slot)
        dump = len(self._opening)
        if start < dump:
            sizes = self._opening.slot_count[start : min(end, dump)]
            source = int(self._opening.slot_count[:start].sum())
            own = self._opening.slots[source : source + int(sizes.sum())]
            slots[numbers_of(position[: len(sizes)], sizes)] = own
        if end > dump:
            begin = max(start, dump)
            _fill_rows(slots, position[begin - start :], self._rows[begin - dump : end - dump], self._trace)
        return slots

    def _mark_buffers(self, slots: NDArray[np.uint32], start: int, end: int, first_slot: int) -> None:
        if not self._has_buffers:
            return
        selected = slice(*np.searchsorted(self._starts, (start, end)).tolist())
        record = self._starts[selected]
        index = self.position[record] - self._needs_time[record] - 1 - first_slot
        cpu = (self._ring if self.has_ends else self._cpu)[record].astype(np.uint32)
        stamp = (self._time[record] & 0xFFFFFFFF).astype(np.uint32)
        slots[index, 0] = wire.CONTROL_BUFFER | cpu << wire.CPU_SHIFT
        slots[index, 1] = stamp
        slots[index, 2] = self._sequence[selected] & 0xFFFFFFFF
        slots[index, 3] = self._sizes[selected]
        if self.has_ends:
            later = record > 0
            before = record[later] - 1
            slots[index[later] - 1] = self._ends(before)

    def _ends(self, records: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Return the BUFFER_END slots that follow some records, uint32 (n, 4)."""
        slots = np.full((len(records), 4), wire.BUFFER_END_COOKIE, np.uint32)
        slots[:, 0] = wire.CONTROL_BUFFER_END | self._ring[records].astype(np.uint32) << wire.CPU_SHIFT
        slots[:, 1] = self._time[records] & 0xFFFFFFFF
        return slots

    def tail(self) -> NDArray[np.uint32]:
        """Return the slots that end a file of 8.0, uint32 (n, 4): the end of the last buffer, and the losses after it.

        Losses of a CPU are reported by an empty buffer whose sequence number is too high.
        """
        last = len(self._time) - 1
        if not self.has_ends or last < 0:
            return np.empty((0, 4), np.uint32)
        time = int(self._time.max())
        parts = [self._ends(np.array([last]))]
        for cpu, number in self._lost_behind.items():
            own = np.flatnonzero(self._ring[self._starts] == cpu)
            sequence = (int(self._sequence[own[-1]]) if len(own) else 0) + 1 + number
            cpu_bits, stamp = cpu << wire.CPU_SHIFT, time & 0xFFFFFFFF
            parts.append(
                np.array(
                    [
                        [wire.CONTROL_BUFFER | cpu_bits, stamp, sequence & 0xFFFFFFFF, 3 if len(own) else 0],
                        [wire.CONTROL_TIME | cpu_bits, stamp, time >> 32, stamp],
                        [wire.CONTROL_BUFFER_END | cpu_bits, stamp, wire.BUFFER_END_COOKIE, wire.BUFFER_END_COOKIE],
                    ],
                    np.uint32,
                )
            )
        return np.concatenate(parts)


def _rings(trace: Trace, rows: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return the CPU whose buffer contained each row, uint8 (len(rows),); 0 up to 7.x, where CPUs share buffers."""
    buffers = trace.buffers
    if trace.release is not Release.QNX_8 or not len(buffers):
        return np.zeros(len(rows), np.uint8)
    buffer = np.searchsorted(buffers.slot, trace.events.slot[rows], side="right") - 1
    return buffers.cpu[np.maximum(buffer, 0)]


def _fill_rows(slots: NDArray[np.uint32], positions: NDArray[np.int64], rows: NDArray[np.uint32], trace: Trace) -> None:
    events, payloads = trace.events, trace.payloads
    count = events.slot_count[rows].astype(np.int64)
    header = events.code[rows].astype(np.uint32) | events.cpu[rows].astype(np.uint32) << wire.CPU_SHIFT
    if trace.release is Release.QNX_8 and isinstance(payloads, SlotPayloads):
        header |= np.array([payloads.header(row) for row in rows.tolist()], np.uint32) & np.uint32(
            wire.PROCESS_INJECTED
        )
    stamp = (events.time_cycles[rows] & 0xFFFFFFFF).astype(np.uint32)
    is_cut = np.isin(rows, trace.truncated)
    open_ = np.arange(len(rows))
    step = 0
    while len(open_):
        index = positions[open_] + step
        is_last = step == count[open_] - 1
        kind = np.where(is_last & ~is_cut[open_], wire.Struct.COMBINE_END, wire.Struct.COMBINE_CONTINUE)
        if step == 0:
            # A truncated event has no last slot: it keeps a start without an end.
            kind = np.where(is_last & ~is_cut[open_], wire.Struct.SIMPLE, wire.Struct.COMBINE_BEGIN)
        slots[index, 0] = header[open_] | kind.astype(np.uint32) << wire.STRUCT_SHIFT
        slots[index, 1] = stamp[open_]
        slots[index, 2], slots[index, 3] = payloads.pair(rows[open_], 2 * step)
        step += 1
        open_ = open_[count[open_] > step]


MARK: Final = ("SATVIEW", "subset")  # header attribute of files written here; short, for the vendor's old library
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SubsetReport:
    """Result of writing a part of a trace.

    Attributes:
        selected: Number of requested events.
        context: Number of other events of the trace, written because the selected ones depend on them.
        opening: Number of generated events that show the state at the start of the window.
        total: Number of events of the whole trace.
        remade: Number of requested BUFFER and BUFFER_END events, which are not copied: the new file has its own.
        slots: Number of slots in the new file, including TIME and BUFFER events.
        nameless: Number of events from listing lines with an unknown layout; the new file has only their words.
    """

    path: Path
    selected: int
    context: int
    opening: int
    total: int
    remade: int
    slots: int
    nameless: int = 0

    @property
    def left_out(self) -> tuple[str, ...]:
        """Sentences (no full stop) about requested events that are not, or not completely, in the file."""
        remade = (
            f"{self.remade:,} BUFFER events are not copied: the new file has its own, numbered by its buffers, "
            "and TIME events where they need them"
        )
        return (*([remade] if self.remade else []), *([nameless_text(self.nameless)] if self.nameless else []))


def nameless_text(count: int) -> str:
    """Return a note for the user: a .kev file cannot hold the argument names of `count` events of a listing."""
    events = f"{count:,} events" if count != 1 else "1 event"
    return f"names of arguments are left out for {events} that fit no row: a .kev file cannot hold names"


def write_subset(
    trace: Trace,
    path: Path | str,
    selected: Bools,
    window: TimeWindow | None = None,
    *,
    with_context: bool = True,
    progress: Callable[[float], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> SubsetReport:
    """Write some events of a trace as a .kev file.

    Args:
        trace: A trace of QNX, from any format.
        path: The new file, or a pipe or device; an old file is replaced once the new one is complete.
        selected: bool (events,), which events; BUFFER events are generated, not copied.
        window: Only events in this range; None = all.
        with_context: False = write only the selected events and the TIME and BUFFER events.
        progress: Called with the share that is done, 0 to 1.
        cancelled: Called between chunks; True stops.

    Raises:
        UsageError: The trace is not of QNX, or is of several files; the file would replace the trace itself, or cannot
            be written.
        Cancelled: `cancelled()` returned True; nothing is left behind.
    """
    path = Path(path)
    if not trace.release.is_qnx:
        raise UsageError(f"{trace.path.name}: traces of other systems have events that no .kev file can hold")
    _refuse_axis(trace)
    find_target(path, source_files(trace.path), streams=True)  # fails before the long part
    rows = trace.rows_between(window) if window is not None else slice(0, len(trace.events))
    keep = _selected(trace, selected, rows)
    count = int(np.count_nonzero(keep))
    # Names after a ring capture are not events of the trace: the new file has them at its start.
    has_names_apart = "ring-names" in trace.problems.counts()
    opening = Opening.empty()
    if with_context and (rows.start > 0 or has_names_apart):
        opening = opening_state(trace, rows.start, with_all_names=has_names_apart)
    _check(cancelled)
    if with_context:
        _add_context(trace, keep, rows, opening)
    _check(cancelled)
    written = np.flatnonzero(keep).astype(np.uint32)
    # In the order of first slots, so that a switch between threads stays before the events that follow it.
    written = written[np.argsort(trace.events.slot[written], kind="stable")]
    with NewFile(path, reading=source_files(trace.path), streams=True) as file:
        write_start(file.stream, header_pairs(trace), _system_page(trace))
        slots = write_slots(file.stream, trace, written, opening, progress, cancelled)
    remade = int(np.count_nonzero(selected[rows])) - count
    nameless = 0 if trace.listed is None else int(np.isin(trace.listed[0], written).sum())
    return SubsetReport(path, count, len(written) - count, len(opening), len(trace.events), remade, slots, nameless)


def _selected(trace: Trace, selected: Bools, rows: slice) -> Bools:
    keep = np.zeros(len(trace.events), np.bool_)
    keep[rows] = selected[rows]
    code = trace.events.code
    for part in chunks(len(keep)):
        keep[part] &= (code[part] != wire.CONTROL_BUFFER) & (code[part] != wire.CONTROL_BUFFER_END)
    return keep


def _add_context(trace: Trace, keep: Bools, rows: slice, opening: Opening) -> None:
    """Also select the events that selected ones depend on: names, creations, first states, switches, reports of losses.

    Threads of `opening`, the state dump at the start of the window, need no first state.
    """
    code = trace.events.code
    names = np.zeros(1 << 15, np.bool_)
    codes = np.arange(1 << 15)
    names[(codes >> 10 == wire.WireClass.PR_TH) & (codes & 1023 >= 64)] = True
    names[[wire.THREAD_CREATE, wire.THREAD_DESTROY, wire.CONTROL_DROPPED]] = True
    switches = _switches_needed(trace, keep, rows)
    for part in chunks(rows.stop - rows.start):
        inside = slice(part.start + rows.start, part.stop + rows.start)
        keep[inside] |= names[code[inside]]
    keep[switches] = True
    first_states = _first_states(trace, rows)
    keep[first_states[~np.isin(trace.events.thread[first_states], opening.threads)]] = True


def _switches_needed(trace: Trace, keep: Bools, rows: slice) -> NDArray[np.uint32]:
    """Return the last RUNNING event of the window before each selected event on its CPU, by slots, uint32 (k,)."""
    events = trace.events
    running = rows_of_codes(trace, wire.THREAD_RUNNING)
    running = running[(running >= rows.start) & (running < rows.stop)]
    others = np.flatnonzero(keep).astype(np.uint32)
    is_thread = (events.code[others] >> 10 == wire.WireClass.PR_TH) & (events.code[others] & 1023 < 64)
    others = others[~is_thread]
    needed = []
    for cpu in np.flatnonzero(np.bincount(events.cpu[others])):
        switches = running[events.cpu[running] == cpu]
        switches = switches[np.argsort(events.slot[switches], kind="stable")]
        own = others[events.cpu[others] == cpu]
        before = np.searchsorted(events.slot[switches], events.slot[own]) - 1
        is_needed = np.zeros(len(switches), np.bool_)
        is_needed[before[before >= 0]] = True
        needed.append(switches[is_needed])
    return np.concatenate(needed) if needed else np.empty(0, np.uint32)


def _first_states(trace: Trace, rows: slice) -> NDArray[np.uint32]:
    """Return each thread's first state event in the window, uint32 (k,)."""
    states, threads = state_rows(trace)
    inside = (states >= rows.start) & (states < rows.stop)
    _, first_positions = np.unique(threads[inside], return_index=True)
    return np.asarray(states[inside][first_positions])


def header_pairs(trace: Trace) -> tuple[tuple[str, str], ...]:
    """Return the header of the new file: that of the trace, with the new length and byte order, and `MARK`."""
    order = f"{trace.byte_order.upper()}_ENDIAN"
    # Keys made up by a reader would look like real keys in the new file, so they are not written.
    pairs = [
        (key, value)
        for key, value in trace.header.pairs
        if is_key(key) and not holds_key(value) and key != MARK[0] and (not key.endswith("_ENDIAN") or key == order)
    ]
    length = str(len(_system_page(trace)))
    pairs = [(key, length if key == "SYSPAGE_LEN" else value) for key, value in pairs]
    keys = {key for key, _ in pairs}
    if order not in keys:
        pairs.insert(0, (order, "TRUE"))
    if "CYCLES_PER_SEC" not in keys:
        pairs.append(("CYCLES_PER_SEC", str(trace.clock.cycles_per_s)))
    if "SYSPAGE_LEN" not in keys:
        pairs.append(("SYSPAGE_LEN", length))
    return (*pairs, MARK)


def _system_page(trace: Trace) -> bytes:
    return trace.system.raw if trace.system is not None else b""


# Writes the slots of a trace unchanged: reading the new file gives the same slots. A listing becomes a .kev file.


def _refuse_axis(trace: Trace) -> None:
    if trace.axis is not None:
        raise UsageError(
            f"{trace.path.name}: one .kev file cannot hold events of several targets; write each file's own"
        )


def write_verbatim(trace: Trace, path: Path | str) -> int:
    """Write all slots of a trace, including damaged slots, in their order; return their number.

    Raises UsageError if the trace is of several files or has no slots (as from a .kev file or a listing), would replace
    itself, or the file cannot be written.
    """
    _refuse_axis(trace)
    if not isinstance(trace.payloads, SlotPayloads):
        raise UsageError(
            f"{trace.path.name}: a {trace.format} trace is not made of slots and cannot become a .kev file"
        )
    slots = trace.payloads.slots
    page = _system_page(trace)
    write_kev(path, _completed_pairs(trace, len(page)), page, slots, trace.byte_order, source_files(trace.path))
    return len(slots)


def without_names(trace: Trace) -> str:
    """Return a note for the user if a .kev file of this trace lacks argument names that its listing has; else empty."""
    return "" if trace.listed is None or not len(trace.listed[0]) else nameless_text(len(trace.listed[0]))


def _completed_pairs(trace: Trace, page_length: int) -> tuple[tuple[str, str], ...]:
    """Return the header of the trace, with keys added that a .kev file needs and a listing may lack."""
    order = f"{trace.byte_order.upper()}_ENDIAN"
    pairs = [
        (key, str(page_length) if key == "SYSPAGE_LEN" else value)
        for key, value in trace.header.pairs
        if not key.endswith("_ENDIAN") or key == order
    ]
    if trace.format == "traceprinter":
        pairs = [*(pair for pair in pairs if pair[0] != FROM_LISTING[0]), FROM_LISTING]
    keys = {key for key, _ in pairs}
    missing = {order: "TRUE", "CYCLES_PER_SEC": str(trace.clock.cycles_per_s), "SYSPAGE_LEN": str(page_length)}
    return (*pairs, *((key, value) for key, value in missing.items() if key not in keys))
