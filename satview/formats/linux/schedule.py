"""What every reader here finds in its file, before it is a trace: switches, wake-ups, tracepoints, tasks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import ColumnTable

Ints = NDArray[np.int64]


def none() -> Ints:
    """Return a column of no rows, int64 (0,)."""
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class _Moments(ColumnTable):
    """What all of these have, int64 (n,) each.

    Attributes:
        time_ns: When.
        record: Number of the record in the file: of equal times the smaller one comes first.
        cpu: Where.
    """

    time_ns: Ints = field(default_factory=none)
    record: Ints = field(default_factory=none)
    cpu: Ints = field(default_factory=none)


@dataclass(frozen=True, slots=True)
class CpuSwitches(_Moments):
    """Switches of the thread that has a CPU, int64 (n,) each; number 0 is nobody: the idle thread of that CPU.

    Attributes:
        before, before_prio: Thread that leaves the CPU and its priority as Linux counts it; before -1 = not known.
        state: Lane value of the state into which that thread goes.
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
        waker: Thread that ran on the CPU; 0 = nobody, -1 = not known.
        thread: Who is woken.
        prio: Its priority.
        target_cpu: The CPU where it is to run; -1 = not known.
    """

    waker: Ints = field(default_factory=none)
    thread: Ints = field(default_factory=none)
    prio: Ints = field(default_factory=none)
    target_cpu: Ints = field(default_factory=none)


@dataclass(frozen=True, slots=True)
class Points(_Moments):
    """Tracepoints that are neither, int64 (n,) each.

    Attributes:
        thread: Who ran there; 0 = nobody, -1 = not known.
        code: Of the event table.
    """

    thread: Ints = field(default_factory=none)
    code: Ints = field(default_factory=none)


@dataclass(frozen=True, slots=True)
class States(_Moments):
    """States of threads that a file says without a switch, as satview's own exports do; int64 (n,) each.

    Attributes:
        thread: Whose.
        state: Lane value.
        prio: Its priority; 0 = not known.
    """

    thread: Ints = field(default_factory=none)
    state: Ints = field(default_factory=none)
    prio: Ints = field(default_factory=none)


@dataclass(frozen=True, slots=True)
class Tasks:
    """Names of threads, and which process they are of; what is missing is a process of its own without a name.

    `shown` has the numbers of threads that are not those of the file: satview's exports number them again.
    """

    names: dict[int, str] = field(default_factory=dict)
    process: dict[int, int] = field(default_factory=dict)
    process_names: dict[int, str] = field(default_factory=dict)
    shown: dict[int, int] = field(default_factory=dict)


class ScheduleDetails(Protocol):
    """What a file says of its records beyond the numbers that are stored of all."""

    def text(self, record: int) -> tuple[str, tuple[tuple[str, int | str], ...]]:
        """Return the name of the event of a record and its arguments; an empty name where the file has no more."""

    def raw(self, record: int) -> bytes:
        """Return the bytes of a record as they are in the file."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as a file has it.

    Attributes:
        title: What the file is, for people: `trace.dat, version 7`.
        head_rows: More of the kind, (key, value).
        switches, wakeups, points, states, tasks: Its content.
        details: Arguments of its records.
        cpus: CPUs as the file says; 0 = as its events show.
        wakes_make_ready: False where `states` say when threads are ready, and wake-ups only who woke them.
        says: What its names and states are, for people.
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
