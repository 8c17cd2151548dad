"""Watches the kernel buffers of a stream: gaps, lengths, marks of lost events. The findings are those of `buffers`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.events.spec import Release
from satview.formats.kev.slots.batch import Batch
from satview.formats.kev.slots.buffers import (
    EventRegion,
    missing_before,
    predecessors,
    report_buffers,
    report_control_events,
)
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
        if not len(rows):
            return
        # CONTROL events have two words at least: a simple slot has room for two (section 3.1).
        first = batch.start[rows]
        words = np.column_stack((batch.words[first], batch.words[first + 1]))
        slot, time = batch.first_slot + batch.last_slot[rows], batch.time_cycles[rows]
        report_control_events(code[rows], words, slot, time, EventRegion(self._offset, 0), self._problems)
        found = np.column_stack((slot, batch.cpu[rows], words, time)).astype(np.int64)
        self._rows.append(found[code[rows] == wire.CONTROL_BUFFER])

    def finish(self, slot_count: int) -> None:
        """Report gaps and lengths, once all slots have been seen."""
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
