"""The state of the target at some moment, as the events that START would have dumped then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from satview.events import states
from satview.events.wire import (
    PROC_CREATE,
    PROC_CREATE_NAME,
    PROC_THREAD_NAME,
    THREAD_CREATE,
    THREAD_DESTROY,
    THREAD_RUNNING,
)
from satview.events.words import name_bytes
from satview.filters.derived_columns import state_rows
from satview.formats.kev.writer import SlotWriter
from satview.linkage.rows import rows_of_codes
from satview.store.losses import EVERY_CPU, losses
from satview.store.trace import Trace


@dataclass(frozen=True, slots=True)
class Opening:
    """A state dump.

    Attributes:
        time_cycles: int64 (n,), when each of its events is said to be: one cycle apart, just before the window.
        code: uint16 (n,).
        cpu: uint8 (n,).
        slot_count: int64 (n,).
        slots: uint32 (slots, 4), header, stamp and payload words of all events one after the other.
        threads: Rows of the thread table that it shows the state of.
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
    """Return each thread's last state event before a row, int64 (threads,); -1 = it had none yet."""
    events, owner = state_rows(trace)
    last = np.full(len(trace.threads), -1, np.int64)
    earlier = events < row
    # Rows ascend within a thread, so the last assignment of each thread is its latest event.
    last[owner[earlier]] = events[earlier]
    return last


def opening_state(trace: Trace, row: int, *, with_all_names: bool = False) -> Opening:
    """Return the state of all processes and threads just before an event, in the order of START's dump.

    Per process its creation and name; per thread its creation, the event of its state, and its name. A RUNNING event
    carries the CPU the thread runs on, all others CPU 0. Where a CPU was last given to a thread that has left RUNNING
    since, both events follow, for events of that CPU still belong to it. Of a thread that may have changed its state
    where events are missing, the state is left out.

    Args:
        trace: The trace.
        row: The first event that is not before the moment.
        with_all_names: Threads that show no state before it are named too.
    """
    last = state_before(trace, row)
    first = int(trace.events.time_cycles[row]) if row < len(trace.events) else trace.window.end
    alive = np.flatnonzero((last >= 0) & ~_gone(trace, row, last))
    known = alive[_still_true(trace, last[alive], first)]
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
    switches = switches[_still_true(trace, switches, first) & ~doubtful]
    if any(dump.owners.get(int(trace.events.cpu[at])) != int(trace.events.thread[at]) for at in switches.tolist()):
        running = last[known][trace.events.code[last[known]] == THREAD_RUNNING]
        rows = np.unique(np.concatenate((switches, last[trace.events.thread[switches]], running)))
        # In the order in which they happened, so that the last one of each CPU and of each thread counts again.
        for event in rows.tolist():
            dump.state(event)
    return dump.opening(first, known)


def _still_true(trace: Trace, rows: NDArray[np.int64], now_cycles: int) -> NDArray[np.bool_]:
    """Return which state events no missing events can have undone until some moment, bool (len(rows),).

    While a thread runs, only its own CPU can end that.
    """
    events = trace.events
    is_running = events.code[rows] == THREAD_RUNNING
    holds = np.ones(len(rows), np.bool_)
    lost = losses(trace)
    lost = lost[lost[:, 0] < now_cycles]
    for cpu in np.unique(lost[:, 2]).tolist():
        concerns = (cpu == EVERY_CPU) | ~is_running | (events.cpu[rows] == cpu)
        holds &= ~concerns | (events.time_cycles[rows] >= lost[lost[:, 2] == cpu, 1].max())
    return holds


def _last_switches(trace: Trace, row: int) -> NDArray[np.int64]:
    """Return, per CPU, the row of the RUNNING event that came last in the file before a row."""
    running = rows_of_codes(trace, THREAD_RUNNING).astype(np.int64)
    running = running[running < row]
    _, from_end = np.unique(trace.events.cpu[running][::-1], return_index=True)
    return running[::-1][from_end]


def _gone(trace: Trace, row: int, last: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Threads that ended before a row: destroyed after their last state, or dead."""
    gone = np.zeros(len(trace.threads), np.bool_)
    destroyed = rows_of_codes(trace, THREAD_DESTROY)
    destroyed = destroyed[destroyed < row]
    threads = trace.events.thread[destroyed]
    gone[threads[destroyed >= last[threads]]] = True
    known = last >= 0
    values = trace.catalogue.state_value_of_code[trace.events.code[last[known]]]
    gone[np.flatnonzero(known)[values == states.DEAD]] = True
    return gone


def _processes(trace: Trace, row: int, alive: NDArray[np.int64]) -> list[int]:
    """Processes that exist at a row, in table order: not created later, not ended before, or with a thread alive."""
    processes = trace.processes
    now = int(trace.events.time_cycles[row]) if row < len(trace.events) else trace.window.end
    ended = (processes.destroyed_cycles >= 0) & (processes.destroyed_cycles < now)
    exists = (processes.created_cycles < now) & ~ended
    exists[trace.threads.process[alive]] = True
    exists[0] = False
    return np.flatnonzero(exists).tolist()


class _Dump:
    """The events of a dump as they are made.

    Attributes:
        owners: Per CPU the thread that its last RUNNING event named.
    """

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
        """Add the creation of a process."""
        table = self._trace.processes
        ids = max(int(table.parent_pid[process]), 0), int(table.pid[process])
        name = name_bytes(table.names[process])
        if name:
            self._event(PROC_CREATE_NAME, 0, ids, name)
        else:
            self._event(PROC_CREATE, 0, ids)

    def thread(self, thread: int, state_row: int | None) -> None:
        """Add the creation, the state if it is known, and the name of a thread."""
        table = self._trace.threads
        ids = int(table.pid[thread]), int(table.tid[thread])
        self._event(THREAD_CREATE, 0, ids)
        if state_row is not None:
            self.state(state_row)
        self.name(thread)

    def name(self, thread: int) -> None:
        """Add the name of a thread, if it has one."""
        table = self._trace.threads
        name = name_bytes(table.names[thread])
        if name:
            self._event(PROC_THREAD_NAME, 0, (int(table.pid[thread]), int(table.tid[thread])), name)

    def state(self, row: int) -> None:
        """Add a state event of the trace again."""
        code = int(self._trace.events.code[row])
        cpu = int(self._trace.events.cpu[row]) if code == THREAD_RUNNING else 0
        if code == THREAD_RUNNING:
            self.owners[cpu] = int(self._trace.events.thread[row])
        self._event(code, cpu, self._trace.payloads.words(row).tolist())

    def opening(self, first_cycles: int, threads: NDArray[np.int64]) -> Opening:
        """Return the dump, timed to end just before a moment."""
        n = len(self._code)
        # Time cannot go below 0; then several share the moment, which a reader bears.
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
