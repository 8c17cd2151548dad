"""The state of the target at some moment, as the events that START would have dumped then."""

from __future__ import annotations

from collections.abc import Callable
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
from satview.filters.presets import rows_of_codes
from satview.formats.kev.writer import SlotWriter
from satview.store.trace import Trace

_NAME_BYTES = 126  # as far as the kernel writes names
_Note = Callable[[int, int, int], None]


@dataclass(frozen=True, slots=True)
class Opening:
    """A state dump.

    Attributes:
        time_cycles: int64 (n,), when each of its events is said to be: one cycle apart, just before the window.
        code: uint16 (n,).
        cpu: uint8 (n,).
        slot_count: int64 (n,).
        slots: uint32 (slots, 4), header, stamp and payload words of all events one after the other.
        threads: Rows of the thread table that it tells the state of.
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
    events, starts = trace.states.event, trace.states.start
    owner = np.repeat(np.arange(len(trace.threads)), np.diff(starts))
    last = np.full(len(trace.threads), -1, np.int64)
    earlier = events < row
    # Rows ascend within a thread, so the last assignment of each thread is its latest event.
    last[owner[earlier]] = events[earlier]
    return last


def opening_state(trace: Trace, row: int) -> Opening:
    """Return the state of all processes and threads just before an event, in the order of START's dump.

    Per process its creation and name; per thread its creation, the event of its state, and its name. A RUNNING event
    carries the CPU the thread runs on, all others CPU 0.
    """
    last = state_before(trace, row)
    dead = _gone(trace, row, last)
    alive = np.flatnonzero((last >= 0) & ~dead)
    writer = SlotWriter(trace.byte_order)
    code: list[int] = []
    cpu: list[int] = []
    sizes: list[int] = []

    def note(event_code: int, on_cpu: int, before: int) -> None:
        code.append(event_code)
        cpu.append(on_cpu)
        sizes.append(len(writer) - before)

    for process in _processes(trace, row, alive):
        _process(trace, process, writer, note)
        for thread in alive[trace.threads.process[alive] == process].tolist():
            _thread(trace, thread, int(last[thread]), writer, note)
    n = len(code)
    first = int(trace.events.time_cycles[row]) if row < len(trace.events) else trace.window.end
    # Time cannot go below 0; then several share the moment, which a reader bears.
    times = np.maximum(np.arange(first - n, first, dtype=np.int64), 0)
    slots = writer.slots()
    slots[:, 1] = np.repeat(times, sizes).astype(np.uint64) & np.uint64(0xFFFFFFFF)
    return Opening(times, np.array(code, np.uint16), np.array(cpu, np.uint8), np.array(sizes, np.int64), slots, alive)


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


def _process(trace: Trace, process: int, writer: SlotWriter, note: _Note) -> None:
    before = len(writer)
    parent, pid = int(trace.processes.parent_pid[process]), int(trace.processes.pid[process])
    name = trace.processes.names[process].encode("utf-8", "replace")[:_NAME_BYTES]
    if name:
        writer.text_event(PROC_CREATE_NAME, 0, 0, (max(parent, 0), pid), name)
    else:
        writer.event(PROC_CREATE, 0, 0, (max(parent, 0), pid))
    note(PROC_CREATE_NAME if name else PROC_CREATE, 0, before)


def _thread(trace: Trace, thread: int, state_row: int, writer: SlotWriter, note: _Note) -> None:
    pid, tid = int(trace.threads.pid[thread]), int(trace.threads.tid[thread])
    before = len(writer)
    writer.event(THREAD_CREATE, 0, 0, (pid, tid))
    note(THREAD_CREATE, 0, before)
    state_code = int(trace.events.code[state_row])
    cpu = int(trace.events.cpu[state_row]) if state_code == THREAD_RUNNING else 0
    before = len(writer)
    writer.event(state_code, cpu, 0, trace.payloads.words(state_row).tolist())
    note(state_code, cpu, before)
    name = trace.threads.names[thread].encode("utf-8", "replace")[:_NAME_BYTES]
    if name:
        before = len(writer)
        writer.text_event(PROC_THREAD_NAME, 0, 0, (pid, tid), name)
        note(PROC_THREAD_NAME, 0, before)
