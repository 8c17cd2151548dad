"""The common result of all readers of Linux traces: switches, wake-ups, tracepoints, tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import ColumnTable

Ints = NDArray[np.int64]


def none() -> Ints:
    """Return an empty column, int64 (0,)."""
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Moments(ColumnTable):
    """Columns that the tables below have in common, int64 (n,) each.

    Attributes:
        time_ns: Time.
        record: Number of the record in the file; at equal times the smaller number comes first.
        cpu: CPU.
    """

    time_ns: Ints = field(default_factory=none)
    record: Ints = field(default_factory=none)
    cpu: Ints = field(default_factory=none)


@dataclass(frozen=True, slots=True)
class CpuSwitches(_Moments):
    """Context switches, int64 (n,) each; thread 0 is the idle thread of the CPU.

    Attributes:
        before, before_prio: Thread that leaves the CPU, and its Linux priority; thread -1 = not known.
        state: Lane value of the state that the thread `before` enters.
        after, after_prio: Thread that gets the CPU; -1 = not known.
    """

    before: Ints = field(default_factory=none)
    before_prio: Ints = field(default_factory=none)
    state: Ints = field(default_factory=none)
    after: Ints = field(default_factory=none)
    after_prio: Ints = field(default_factory=none)


@dataclass(frozen=True, slots=True)
class WakeUps(_Moments):
    """Wake-ups, int64 (n,) each.

    Attributes:
        waker: Thread that ran on the CPU; 0 = idle, -1 = not known.
        thread: Thread that is woken.
        prio: Priority of the woken thread.
        target_cpu: The CPU on which the woken thread will run; -1 = not known.
    """

    waker: Ints = field(default_factory=none)
    thread: Ints = field(default_factory=none)
    prio: Ints = field(default_factory=none)
    target_cpu: Ints = field(default_factory=none)


@dataclass(frozen=True, slots=True)
class Points(_Moments):
    """Other tracepoints, int64 (n,) each.

    Attributes:
        thread: Thread that ran on the CPU; 0 = idle, -1 = not known.
        code: Code in the event table.
    """

    thread: Ints = field(default_factory=none)
    code: Ints = field(default_factory=none)


@dataclass(frozen=True, slots=True)
class States(_Moments):
    """States of threads that a file shows without a switch, as satview's own exports do; int64 (n,) each.

    Attributes:
        thread: The thread.
        state: Lane value.
        prio: Priority of the thread; 0 = not known.
    """

    thread: Ints = field(default_factory=none)
    state: Ints = field(default_factory=none)
    prio: Ints = field(default_factory=none)


@dataclass(frozen=True, slots=True)
class Tasks:
    """Names and processes of threads; a thread without a process gets a separate process without a name.

    `shown` has the numbers to display for threads that have other numbers in the file, as in satview's exports.
    """

    names: dict[int, str] = field(default_factory=dict)
    process: dict[int, int] = field(default_factory=dict)
    process_names: dict[int, str] = field(default_factory=dict)
    shown: dict[int, int] = field(default_factory=dict)


class ScheduleDetails(Protocol):
    """Names and arguments of records, beyond the numbers that are stored for all."""

    def text(self, record: int) -> tuple[str, tuple[tuple[str, int | str], ...]]:
        """Return the event name of a record and its arguments; an empty name if the file has none."""

    def raw(self, record: int) -> bytes:
        """Return the bytes of a record in the file."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule in a file.

    Attributes:
        title: Description of the file: `trace.dat, version 7`.
        head_rows: Further properties, (key, value).
        switches, wakeups, points, states, tasks: The content.
        details: Names and arguments of the records.
        cpus: Number of CPUs according to the file; 0 = not given.
        wakes_make_ready: Whether wake-ups make threads ready; False if `states` show when threads become ready.
        says: Sentence about the origin of names and states.
    """

    title: str
    head_rows: tuple[tuple[str, str], ...]
    switches: CpuSwitches
    wakeups: WakeUps
    points: Points
    tasks: Tasks
    details: ScheduleDetails
    states: States = field(default_factory=States)
    cpus: int = 0
    wakes_make_ready: bool = True
    says: str = "names, states and events are those of Linux"
