"""Watches the kernel buffers of a stream: gaps, lengths, marks of lost events. The findings are those of `buffers`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.events.spec import Release
from satview.formats.kev.batch import Batch
from satview.formats.kev.buffers import EventRegion, missing_before, predecessors, report_buffers
from satview.store.problems import Problems
from satview.store.tables import BufferTable


class BufferWatch:
    """Keeps one row per BUFFER event, some 30 bytes for every 700 slots or so.

    Args:
        release: Decides whether sequences run per CPU.
        problems: Receives the findings.
        offset: Byte offset of the first slot in the file.
    """

    def __init__(self, release: Release, problems: Problems, offset: int) -> None:
        self._release = release
        self._problems = problems
        self._offset = offset
        self._rows: list[NDArray[np.int64]] = []

    def take(self, batch: Batch) -> None:
        """Note the CONTROL events of a batch."""
        code = batch.code
        rows = np.flatnonzero(code >> wire.CLASS_SHIFT == wire.WireClass.CONTROL)
        for row in rows[(code[rows] == wire.CONTROL_DROPPED) | (code[rows] == wire.CONTROL_BUFFER_END)].tolist():
            self._report_mark(batch, row)
        rows = rows[code[rows] == wire.CONTROL_BUFFER]
        if len(rows):
            first = batch.start[rows]
            self._rows.append(np.column_stack((
                batch.first_slot + batch.last_slot[rows], batch.cpu[rows], batch.words[first], batch.words[first + 1],
                batch.time_cycles[rows])).astype(np.int64))

    def finish(self, slot_count: int) -> None:
        """Report gaps and lengths, once all slots have been seen."""
        if not self._rows:
            return
        slot, cpu, sequence, slots, time = np.concatenate(self._rows).T
        cpus, numbers = cpu.astype(np.uint8), sequence.astype(np.uint32)
        table = BufferTable(slot, cpus, numbers, slots.astype(np.uint32), time,
                            missing_before(numbers, predecessors(cpus, time, self._release)))
        report_buffers(table, EventRegion(self._offset, slot_count), self._release, self._problems)

    def _report_mark(self, batch: Batch, row: int) -> None:
        words = batch.words[batch.start[row]:batch.start[row] + 2]
        place = self._offset + (batch.first_slot + int(batch.last_slot[row])) * wire.SLOT_BYTES
        text = f"words 0x{words[0]:08x} 0x{words[1]:08x}"
        if batch.code[row] == wire.CONTROL_DROPPED:
            self._problems.add("lost-events", f"the kernel reports dropped events, {text}", place)
        elif np.any(words != wire.BUFFER_END_COOKIE):
            self._problems.add("buffer-end", f"the end mark of a buffer reads {text}", place)
