"""Column tables: each field is a read-only array; the row number identifies an entry."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

UNKNOWN_THREAD: Final = 0  # row of the thread table for an unknown thread


def _freeze(table: object) -> None:
    for column in fields(table):  # type: ignore[arg-type]
        value = getattr(table, column.name)
        if isinstance(value, np.ndarray):
            value.setflags(write=False)


def never_decreases(times: NDArray[np.int64]) -> bool:
    """Return whether no time is less than the time before it.

    Args:
        times: int64 (n,).
    """
    # np.diff of the whole array would temporarily need 8 bytes per event; a million at a time need hardly any.
    for i in range(0, len(times), 1 << 20):
        part = times[i : i + (1 << 20) + 1]
        if np.any(part[1:] < part[:-1]):
            return False
    return True


@dataclass(frozen=True, slots=True)
class EventTable:
    """All events of one trace in time order, one row each.

    Every column has shape (n,) and is read-only. About 19 bytes per event.

    Attributes:
        time_cycles: int64, counter of the target extended to 64 bits; never decreases.
        code: uint16, internal class and event, 15 bits (`events.wire.code`).
        cpu: uint8, the CPU that logged the event, from 0.
        thread: uint16 or uint32, row in the thread table: the thread whose state the event is about; for other events
            the thread that was running on the CPU. 0 = unknown.
        slot: uint32 or uint64, index of the event's first slot in the file's event region.
        slot_count: uint16 (uint32 if an event takes more than 65,535), number of slots; 1 for simple events. Slots are
            adjacent unless listed in `Fragments`.
    """

    time_cycles: NDArray[np.int64]
    code: NDArray[np.uint16]
    cpu: NDArray[np.uint8]
    thread: NDArray[np.unsignedinteger]
    slot: NDArray[np.unsignedinteger]
    slot_count: NDArray[np.unsignedinteger]

    def __post_init__(self) -> None:
        n = len(self.time_cycles)
        for column in fields(self):
            if getattr(self, column.name).shape != (n,):
                raise ValueError(f"column {column.name} has not {n} rows")
        if not never_decreases(self.time_cycles):
            raise ValueError("time decreases")
        _freeze(self)

    def before(self, row: int) -> EventTable:
        """Return the events before a row, as views of the same columns."""
        if row >= len(self):
            return self
        return EventTable(*(getattr(self, column.name)[:row] for column in fields(EventTable)))

    def __len__(self) -> int:
        return len(self.time_cycles)


@dataclass(frozen=True, slots=True)
class Fragments:
    """Slots of the combine events whose slots are not adjacent, as a ragged table.

    Attributes:
        event: uint32, row in the event table, ascending.
        start: int64, shape (n + 1,): slots of entry i are `slot[start[i]:start[i + 1]]`.
        slot: uint32 or uint64, slot indices, ascending within one event.
    """

    event: NDArray[np.uint32]
    start: NDArray[np.int64]
    slot: NDArray[np.unsignedinteger]

    def __post_init__(self) -> None:
        _freeze(self)

    def before(self, row: int) -> Fragments:
        """Return the entries of events before a row."""
        count = int(np.searchsorted(self.event, row))
        return Fragments(self.event[:count], self.start[: count + 1], self.slot[: self.start[count]])

    def slots_at(self, entries: NDArray[np.integer], step: int) -> NDArray[np.unsignedinteger]:
        """Return slot number `step` of some entries, or the last slot of shorter entries; same shape."""
        return np.asarray(self.slot[np.minimum(self.start[entries] + step, self.start[entries + 1] - 1)])

    @classmethod
    def none(cls) -> Fragments:
        """Return an empty table."""
        return cls(np.empty(0, np.uint32), np.zeros(1, np.int64), np.empty(0, np.uint32))


@dataclass(frozen=True, slots=True)
class ThreadTable:
    """Threads, one row each; row 0 means "unknown".

    Attributes:
        pid: int32, shape (n,); -1 in row 0.
        tid: int32, from 1; -1 in row 0; 0 if only the process is known.
        process: int32, row in the process table.
        names: The last name of each thread; empty if it has none.
    """

    pid: NDArray[np.int32]
    tid: NDArray[np.int32]
    process: NDArray[np.int32]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        _freeze(self)

    def __len__(self) -> int:
        return len(self.pid)

    def row(self, pid: int, tid: int) -> int | None:
        """Return the row of a thread; None if the thread is not in the trace."""
        rows = np.flatnonzero((self.pid == pid) & (self.tid == tid))
        return int(rows[0]) if len(rows) else None


@dataclass(frozen=True, slots=True)
class ProcessTable:
    """Processes, one row each; row 0 means "unknown".

    Attributes:
        pid: int32, shape (n,); -1 in row 0.
        parent_pid: int32; -1 if unknown.
        names: The last path or name of each process in the whole trace; empty if it has none.
        created_cycles: int64, time of creation; -1 = before the trace began, or unknown.
        destroyed_cycles: int64, time of the end; -1 = not before the end of the trace, or unknown.
    """

    pid: NDArray[np.int32]
    parent_pid: NDArray[np.int32]
    names: tuple[str, ...]
    created_cycles: NDArray[np.int64]
    destroyed_cycles: NDArray[np.int64]

    def __post_init__(self) -> None:
        _freeze(self)

    def __len__(self) -> int:
        return len(self.pid)

    def row(self, pid: int) -> int | None:
        """Return the row of the newest process with the given pid; None if the pid is not in the trace."""
        rows = np.flatnonzero(self.pid == pid)
        return int(rows[-1]) if len(rows) else None

    def rows_of(self, pids: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the row of the newest process for each pid, int64 (n,); 0 for pids that are not in the trace.

        Args:
            pids: (n,), in any order.
        """
        order = np.argsort(self.pid, kind="stable")
        known = self.pid[order].astype(np.int64)
        position = np.maximum(np.searchsorted(known, pids, side="right") - 1, 0)
        return np.where(known[position] == pids, order[position], 0)


@dataclass(frozen=True, slots=True)
class StateIndex:
    """The state events of every thread, including its creation and destruction, in time order.

    Attributes:
        event: uint32, rows of the event table, grouped by thread.
        start: int64, shape (threads + 1,): rows of thread t are `event[start[t]:start[t + 1]]`.
    """

    event: NDArray[np.uint32]
    start: NDArray[np.int64]

    def __post_init__(self) -> None:
        _freeze(self)

    def of(self, thread: int) -> NDArray[np.uint32]:
        """Return the event rows of a thread's state changes, oldest first.

        Returns:
            uint32 (n,).
        """
        return self.event[self.start[thread] : self.start[thread + 1]]


@dataclass(frozen=True, slots=True)
class BufferTable:
    """Kernel buffers in file order, one row per BUFFER event.

    Attributes:
        slot: int64, slot index of the BUFFER event.
        cpu: uint8.
        sequence: uint32, sequence number in the file.
        slots: uint32, slot count of the buffer according to the event, including its own slot; 0 if not filled in.
        time_cycles: int64, time of the start.
        lost_before: uint32, number of lost buffers between this buffer and the one filled before it, which may be
            elsewhere in the file.
    """

    slot: NDArray[np.int64]
    cpu: NDArray[np.uint8]
    sequence: NDArray[np.uint32]
    slots: NDArray[np.uint32]
    time_cycles: NDArray[np.int64]
    lost_before: NDArray[np.uint32]

    @classmethod
    def none(cls) -> BufferTable:
        """Return a table without rows, for formats without kernel buffers."""
        none, few = np.empty(0, np.int64), np.empty(0, np.uint32)
        return cls(none, np.empty(0, np.uint8), few, few.copy(), none.copy(), few.copy())

    def __post_init__(self) -> None:
        _freeze(self)

    def __len__(self) -> int:
        return len(self.slot)
