"""States of threads in traces of Perfetto from kernels that are not Linux, as QNX's own probe and satview write them.

A thread's number has its process in the upper 32 bits. Several machines may be in one trace. Source:
GenericKernelTaskStateEvent, GenericKernelProcessTree and `machine_id` of Perfetto; what is refused is what Perfetto's
engine refuses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import linux, wire
from satview.events.states import DEAD, READY, RUNNING, STATE_BY_NAME, UNKNOWN
from satview.formats.linux.schedule import Ints, Points, States, Tasks
from satview.formats.linux.wire_format import Fields
from satview.store.idle import KERNEL_PID
from satview.store.problems import Problems

NOBODY_PID: Final = linux.FIRST_TID - 1  # what runs where satview's exports do not know who does
_TIME, _MACHINE = 8, 98  # of TracePacket
_STATE, _FREQUENCY, _RENAME, _TREE = 117, 118, 120, 122
_CREATED, _RUNNING, _DEAD, _DESTROYED = 1, 3, 7, 8
_VALUES: Final = np.array([
    UNKNOWN, UNKNOWN, READY, RUNNING, STATE_BY_NAME["SLEEPING"].value, STATE_BY_NAME["WAITPAGE"].value,
    STATE_BY_NAME["STOPPED"].value, DEAD, UNKNOWN,
])  # fmt: skip
_MOST_TID: Final = 1 << 31
_MOST_CPUS: Final = 256
_REFUSED: Final = {
    "state": "states that are none",
    "created": "threads are created that are there already",
    "dead": "states of threads that have ended",
    "twice": "threads that run already start to run",
}


@dataclass(frozen=True, slots=True)
class KernelStates:
    """What was found.

    Attributes:
        states: Changes of states.
        points: Creations and ends of threads, changes of CPU frequencies.
        number_of: Number in `Tasks` by the number of a thread in the file; of the first machine.
    """

    states: States
    points: Points
    number_of: dict[int, int]


@dataclass(frozen=True, slots=True)
class _Packets:
    """Packets of one kind, (n,) each: the messages in them, their times, and rows in the list of machines."""

    fields: Fields
    time_ns: Ints
    machine: Ints


def kernel_states(packets: Fields, tasks: Tasks, first_record: int, problems: Problems) -> KernelStates:
    """Return the states of threads; names and processes are added to `tasks`.

    Args:
        packets: All packets.
        tasks: Receives names and processes of threads.
        first_record: Number of the first record.
        problems: Receives what is refused.
    """
    machines = np.unique(packets.numbers(_MACHINE))
    of_states, renames, trees, frequencies = (
        _of(packets, number, machines) for number in (_STATE, _RENAME, _TREE, _FREQUENCY)
    )
    found, frequency = of_states.fields, frequencies.fields
    cpus, cpu, of_cpu = _cpus(len(machines), (of_states.machine, found.numbers(1)),
                              (frequencies.machine, frequency.numbers(1)))  # fmt: skip
    processes, process_of = trees.fields.inner(1)
    threads, thread_of = trees.fields.inner(2)
    named = (
        (of_states.machine, found.numbers(3), found.texts(2)),
        (renames.machine, renames.fields.numbers(1), renames.fields.texts(2)),
        (trees.machine[thread_of], threads.numbers(1), threads.texts(3)),
    )
    names: dict[tuple[int, int], str] = {}
    for machine, tid, texts in named:
        for of_machine, number, name in zip(machine.tolist(), tid.tolist(), texts, strict=True):
            if name or (of_machine, number) not in names:
                names[of_machine, number] = name
    pid_of = dict(zip(zip(trees.machine[thread_of].tolist(), threads.numbers(1).tolist(), strict=True),
                      threads.numbers(2).tolist(), strict=True))  # fmt: skip
    numbers = _numbered(names, pid_of, tasks, [int(machine) for machine in machines])
    pids = zip(trees.machine[process_of].tolist(), processes.numbers(1).tolist(), processes.texts(3), strict=True)
    for machine, pid, text in pids:
        if text:
            name = text.rsplit("/", 1)[-1]
            tasks.process_names[_process(machine, pid)] = (
                name if machine == 0 else f"{name} (machine {machines[machine]})"
            )
    keys = zip(of_states.machine.tolist(), found.numbers(3).tolist(), strict=True)
    number = np.array([numbers[key] for key in keys], np.int64)
    for key in _idle(number, found, trees.machine[thread_of], threads, numbers, cpus):
        tasks.process[key] = 0
    record = first_record + np.arange(len(number), dtype=np.int64)
    states, points = _changes(of_states.time_ns, record, cpu, number, found, problems)
    zero = np.zeros(len(of_cpu), np.int64)
    points = Points.concatenated([points, Points(
        frequencies.time_ns, first_record + len(number) + np.arange(len(of_cpu)), of_cpu, zero - 1,
        zero + linux.point_codes()["cpu_frequency"],
    )])  # fmt: skip
    return KernelStates(states, points, {tid: number for (machine, tid), number in numbers.items() if machine == 0})


def _of(packets: Fields, number: int, machines: Ints) -> _Packets:
    fields, packet = packets.inner(number)
    return _Packets(fields, packets.numbers(_TIME)[packet],
                    np.searchsorted(machines, packets.numbers(_MACHINE)[packet]))  # fmt: skip


def _cpus(count: int, *columns: tuple[Ints, Ints]) -> tuple[int, Ints, Ints]:
    """Return how many CPUs the first machine has, and CPUs of two columns: those of a machine follow the one before."""
    (machine, cpu), (other, of_other) = ((machine, np.clip(cpu, 0, _MOST_CPUS - 1)) for machine, cpu in columns)
    size = np.zeros(count, np.int64)
    np.maximum.at(size, np.append(machine, other), np.append(cpu, of_other) + 1)
    first = np.append(0, np.cumsum(size))[:count]
    return int(size[0]) if count else 0, cpu + first[machine], of_other + first[other]


def _process(machine: int, pid: int) -> int:
    """Return the number of a process: its own on the first machine, one that QNX never gives on others."""
    return pid if machine == 0 else linux.FIRST_TID - machine * (1 << 24) + pid % (1 << 24)


def _numbered(names: dict[tuple[int, int], str], pid_of: dict[tuple[int, int], int], tasks: Tasks,
              machines: list[int]) -> dict[tuple[int, int], int]:  # fmt: skip
    """Return numbers below 2^31 for threads; their names, processes and QNX numbers are added to `tasks`."""
    numbers: dict[tuple[int, int], int] = {}
    del machines
    for (machine, tid), name in names.items():
        pid, low = pid_of.get((machine, tid), tid >> 32), tid & 0xFFFFFFFF
        number = tid if machine == 0 and 0 < tid < linux.FIRST_TID - 1 else linux.FIRST_TID + len(numbers) + 1
        if number >= _MOST_TID:
            number = -1  # more threads than there are numbers: nobody's
        numbers[machine, tid] = -2 if tid >> 32 == NOBODY_PID and low else number
        tasks.process[number] = _process(machine, pid) if pid > 0 else number
        tasks.shown[number] = low if low < _MOST_TID else 0
        tasks.names[number] = name
    return numbers


def _idle(number: Ints, found: Fields, machine: Ints, threads: Fields, numbers: dict[tuple[int, int], int],
          cpus: int) -> set[int]:  # fmt: skip
    """Return the idle threads: as the file says, else those of the kernel's process that only run with priority 0.

    Up to 7.x the idle thread of each CPU is one of the first threads of process 1 (format description, 8.4).
    """
    flagged = np.flatnonzero(threads.numbers(5))
    if len(flagged):
        tids = threads.numbers(1)
        return {numbers[int(machine[row]), int(tids[row])] for row in flagged.tolist()}
    busy = set(number[found.numbers(5) != 0].tolist())
    return {
        each
        for (_, tid), each in numbers.items()
        if tid >> 32 == KERNEL_PID and (tid & 0xFFFFFFFF) <= cpus and each not in busy
    }


def _changes(
    time_ns: Ints, record: Ints, cpu: Ints, number: Ints, found: Fields, problems: Problems
) -> tuple[States, Points]:
    """Return changes of states without what Perfetto refuses, and creations and ends."""
    state, prio = found.numbers(4), found.numbers(5)
    order = np.lexsort((record, time_ns, number))
    state, time_ns, record, cpu, number, prio = (
        column[order] for column in (state, time_ns, record, cpu, number, prio)
    )  # fmt: skip
    is_same = np.append(False, number[1:] == number[:-1])[: len(number)]
    before = np.where(is_same, np.append(0, state[:-1])[: len(state)], 0)
    taken_ns = _taken(time_ns, record, cpu, number, state == _RUNNING)
    last_taken = np.append(-1, taken_ns[:-1])[: len(number)]
    refused = {
        "state": (state <= 0) | (state > _DESTROYED),
        "created": (state == _CREATED) & is_same & ~np.isin(before, (_DEAD, _DESTROYED)),
        "dead": (before == _DEAD) & ~np.isin(state, (_CREATED, _DESTROYED)),
        "twice": (state == _RUNNING) & (before == _RUNNING) & (last_taken < 0),
    }
    is_refused = np.zeros(len(state), np.bool_)
    for name, rows in refused.items():
        if count := int(np.count_nonzero(rows & ~is_refused)):
            problems.add("unknown-events", f"{_REFUSED[name]}: refused, as Perfetto does", None, count)
        is_refused |= rows
    is_known = (state > _CREATED) & (state < _DESTROYED) & ~is_refused & (number > 0)
    # A thread whose CPU another one takes, and of which nothing is said at that moment, is in no known state.
    after_ns = np.append(np.where(is_same[1:], time_ns[1:], -1), -1)[: len(number)]
    is_lost = is_known & (taken_ns >= 0) & (after_ns != taken_ns)
    is_known &= ~(is_lost & (taken_ns == time_ns))
    at, lost = np.flatnonzero(is_known), np.flatnonzero(is_lost)
    states = States(
        np.append(time_ns[at], taken_ns[lost]), np.append(record[at], record[lost]), np.append(cpu[at], cpu[lost]),
        np.append(number[at], number[lost]), np.append(_VALUES[state[at]], np.full(len(lost), UNKNOWN)),
        np.append(prio[at], np.zeros(len(lost), np.int64)),
    )  # fmt: skip
    ends = np.flatnonzero(np.isin(state, (_CREATED, _DESTROYED)) & ~is_refused & (number > 0))
    code = np.where(state[ends] == _CREATED, wire.THREAD_CREATE, wire.THREAD_DESTROY).astype(np.int64)
    return states, Points(time_ns[ends], record[ends], cpu[ends], number[ends], code)


def _taken(time_ns: Ints, record: Ints, cpu: Ints, number: Ints, runs: NDArray[np.bool_]) -> Ints:
    """Return when another thread took the CPU of each start to run, before its own thread changed; -1 = none did."""
    out = np.full(len(time_ns), -1, np.int64)
    at = np.flatnonzero(runs)
    at = at[np.lexsort((record[at], time_ns[at], cpu[at]))]
    follows = (cpu[at][1:] == cpu[at][:-1]) & (number[at][1:] != number[at][:-1])
    mine, other = at[:-1][follows], at[1:][follows]
    own = np.append(number[1:] == number[:-1], False)[: len(number)]
    following = np.minimum(mine + 1, len(number) - 1)
    is_before = own[mine] & (time_ns[following] < time_ns[other])
    is_before |= own[mine] & (time_ns[following] == time_ns[other]) & (record[following] < record[other])
    out[mine[~is_before]] = time_ns[other[~is_before]]
    return out
