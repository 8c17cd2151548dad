"""Reads traces of Perfetto: thread states of kernels other than Linux, names of slices, and arguments of events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import ColumnTable
from satview.core import loading
from satview.events import linux, wire
from satview.events.states import DEAD, READY, RUNNING, STATE_BY_NAME, UNKNOWN
from satview.formats.linux.records import Ints, Points, States, Tasks
from satview.store.problems import Problems
from satview.store.time_ranges import KERNEL_PID

# Names and arguments of events in a trace of Perfetto, beyond the numbers that are stored for all events.
#
# The package `perfetto` contains the names of arguments of ftrace events. Without the package, arguments are shown by
# number, with the command that installs it.


# Protobuf messages as columns: one row for each field of many messages.


_MOST_TEXT: Final = 512  # maximum bytes of a name; the rest is cut
_MOST: Final = 10  # maximum bytes of a number of 64 bits


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column with few distinct texts: the index of each row's text, int64 (n,), and the texts."""

    code: Ints
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """Fields of protobuf messages, in the order of the bytes within each message.

    Attributes:
        data: uint8, the bytes.
        messages: Number of messages.
        message: int64 (n,), ascending: message of each field.
        number: int64 (n,), number of the field.
        value: int64 (n,), the number, or the offset of the bytes.
        length: int64 (n,), length of a field of bytes; -1 for a number.
        is_bad: bool (messages,), which messages end inside a field; the fields before it are valid.
    """

    data: NDArray[np.uint8]
    messages: int
    message: Ints
    number: Ints
    value: Ints
    length: Ints
    is_bad: NDArray[np.bool_]

    def numbers(self, number: int, default: int = 0) -> Ints:
        """Return the last value of the field `number` in each message, int64 (messages,), or the default."""
        out = np.full(self.messages, default, np.int64)
        rows = np.flatnonzero((self.number == number) & (self.length < 0))
        out[self.message[rows]] = self.value[rows]
        return out

    def inner(self, number: int) -> tuple[Fields, Ints]:
        """Return the fields of nested messages, given by a field number, and the outer message of each, int64 (n,)."""
        rows = np.flatnonzero((self.number == number) & (self.length >= 0))
        return fields_of(self.data, self.value[rows], self.value[rows] + self.length[rows]), self.message[rows]

    def texts(self, number: int) -> list[str]:
        """Return the first text in the field `number` of each message, empty if none; slow for many messages."""
        out = [""] * self.messages
        for row in self.bytes_rows(number)[::-1].tolist():
            out[int(self.message[row])] = self.text_at(row)
        return out

    def text_at(self, row: int) -> str:
        """Return the bytes of the field in a row as text."""
        begin = int(self.value[row])
        return self.data[begin : begin + int(self.length[row])].tobytes().decode("utf-8", "replace")

    def text_column(self, number: int) -> TextColumn:
        """Return the text in field `number` of each message, empty without the field; fast for few distinct texts."""
        text_rows = self.bytes_rows(number)
        code, texts = np.zeros(self.messages, np.int64), [""]
        length = np.minimum(self.length[text_rows], _MOST_TEXT)
        for size in np.unique(length[length > 0]).tolist():
            rows = text_rows[length == size]
            raw = self.data[self.value[rows][:, None] + np.arange(size)]
            raw = np.ascontiguousarray(raw).view(np.dtype((np.void, size)))[:, 0]
            different, which = np.unique(raw, return_inverse=True)
            code[self.message[rows]] = len(texts) + which
            texts += [raw_text.tobytes().decode("utf-8", "replace") for raw_text in different]
        return TextColumn(code, tuple(texts))

    def bytes_rows(self, number: int) -> Ints:
        """Return the rows of the fields that have the number `number` and contain bytes, int64 (n,)."""
        return np.flatnonzero((self.number == number) & (self.length >= 0))


def fields_of(data: NDArray[np.uint8], begin: Ints, end: Ints) -> Fields:
    """Return the decoded fields of protobuf messages.

    Args:
        data: uint8, the bytes.
        begin: int64 (n,), offset of each message.
        end: int64 (n,), end of each message.
    """
    begin, end = np.ascontiguousarray(begin, np.int64), np.ascontiguousarray(end, np.int64)
    return Fields(data, len(begin), *loading.protobuf_fields(data, begin, end))


def packed(data: NDArray[np.uint8], begin: int, length: int) -> Ints:
    """Return the numbers of a packed field, int64 (n,), without an incomplete number at the end.

    Args:
        data: uint8, bytes of the file.
        begin: Offset of the field's content.
        length: Its length in bytes.
    """
    part = data[begin : begin + length]
    ends = np.flatnonzero(part < 0x80)
    if not len(ends):
        return np.empty(0, np.int64)
    starts = np.concatenate(([0], ends[:-1] + 1))
    byte = np.arange(int(ends[-1]) + 1) - np.repeat(starts, ends - starts + 1)
    bits = (part[: int(ends[-1]) + 1] & np.uint8(0x7F)).astype(np.uint64) << (7 * np.minimum(byte, _MOST - 1)).astype(
        np.uint64
    )
    return np.bitwise_or.reduceat(bits, starts).astype(np.int64)


_INSTALL: Final = "pip install perfetto"
FREQUENCY: Final = -118  # stands for GenericKernelCpuFrequencyEvent, which is no field of FtraceEvent
_OF_KERNELS: Final = {FREQUENCY: ("cpu_frequency", {1: "cpu", 2: "freq_hz"})}


@dataclass(frozen=True, slots=True)
class RecordSpans(ColumnTable):
    """Locations of the arguments of events, int64 (n,) each: record, field number in FtraceEvent, first byte, end."""

    record: Ints
    number: Ints
    begin: Ints
    end: Ints


@dataclass(frozen=True, slots=True)
class SliceNames:
    """Names of slices, and numbers of their records, int64 (n,), ascending."""

    record: Ints
    names: TextColumn


@dataclass(frozen=True, slots=True)
class PerfettoDetails:
    """Returns names and arguments of records of a Perfetto trace; implements `records.ScheduleDetails`."""

    data: NDArray[np.uint8]
    records: RecordSpans
    slices: SliceNames

    def text(self, record: int) -> tuple[str, tuple[tuple[str, int | str], ...]]:
        """Return name and arguments of an event: the name of a slice, or the fields of an ftrace event."""
        row = _find(self.slices.record, record)
        if row >= 0:
            return "", (("name", self.slices.names.texts[int(self.slices.names.code[row])]),)
        row = _find(self.records.record, record)
        return ("", ()) if row < 0 else self._ftrace(row)

    def raw(self, record: int) -> bytes:
        """Return the bytes of an ftrace event's arguments."""
        row = _find(self.records.record, record)
        return self.data[int(self.records.begin[row]) : int(self.records.end[row])].tobytes() if row >= 0 else b""

    def _ftrace(self, span: int) -> tuple[str, tuple[tuple[str, int | str], ...]]:
        number = int(self.records.number[span])
        begin, end = (np.array([column[span]], np.int64) for column in (self.records.begin, self.records.end))
        fields = fields_of(self.data, begin, end)
        known = _OF_KERNELS.get(number) or _protocol().get(number)
        names = known[1] if known else {}
        values: list[tuple[str, int | str]] = []
        for row in range(len(fields.number)):
            field = int(fields.number[row])
            is_bytes = int(fields.length[row]) >= 0
            values.append(
                (names.get(field, f"field {field}"), fields.text_at(row) if is_bytes else int(fields.value[row]))
            )
        if known is None:
            values.append(("names", f"{_INSTALL} shows them"))
        return known[0] if known else f"ftrace event {number}", tuple(values)


def _find(records: Ints, record: int) -> int:
    row = int(np.searchsorted(records, record))
    return row if row < len(records) and int(records[row]) == record else -1


@cache
def _protocol() -> dict[int, tuple[str, dict[int, str]]]:
    """Return name and fields of every ftrace event by its number; empty if the package `perfetto` is not installed."""
    try:  # large, and an extra
        protocol = import_module("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    except ImportError:
        return {}
    event: Any = protocol.FtraceEvent.DESCRIPTOR
    return {
        field.number: (field.name, {inner.number: inner.name for inner in field.message_type.fields})
        for field in event.fields
        if field.message_type is not None
    }


# Reads states of threads of kernels other than Linux in traces of Perfetto, which QNX's own probe and satview write.
#
# The upper 32 bits of a thread number are its pid. A trace may contain several machines. State changes that Perfetto's
# engine rejects are rejected here, too. Source: GenericKernelTaskStateEvent, GenericKernelProcessTree and `machine_id`
# of Perfetto.


NOBODY_PID: Final = linux.FIRST_TID - 1  # in satview's exports, process of the unknown running thread
_TIME, _MACHINE = 8, 98  # of TracePacket
_STATE, _FREQUENCY, _RENAME, _TREE = 117, 118, 120, 122
_CREATED, _RUNNING, _DEAD, _DESTROYED = 1, 3, 7, 8
_VALUES: Final = np.array([
    UNKNOWN, UNKNOWN, READY, RUNNING, STATE_BY_NAME["SLEEPING"].value, STATE_BY_NAME["WAITPAGE"].value,
    STATE_BY_NAME["STOPPED"].value, DEAD, UNKNOWN,
])  # fmt: skip
_MOST_TID: Final = 1 << 31
_MOST_CPUS: Final = 256


@dataclass(frozen=True, slots=True)
class KernelStates:
    """Contents of the packets for kernels other than Linux.

    Attributes:
        states: State changes.
        points: Creations and ends of threads, changes of CPU frequencies.
        records: Locations of the arguments of frequency changes.
        number_of: Number in `Tasks` of each thread of the first machine, by its number in the file.
    """

    states: States
    points: Points
    records: RecordSpans
    number_of: dict[int, int]


@dataclass(frozen=True, slots=True)
class _KindPackets:
    """Packets of one kind: their fields, times in ns, (n,), and machines (traced systems), (n,), as list indices."""

    fields: Fields
    time_ns: Ints
    machine: Ints


def kernel_states(packets: Fields, tasks: Tasks, first_record: int, problems: Problems) -> KernelStates:
    """Return the states of threads, and report those that are rejected; names and processes are added to `tasks`."""
    machines = np.unique(packets.numbers(_MACHINE))
    of_states, renames, trees, frequencies = (
        _packets_of(packets, number, machines) for number in (_STATE, _RENAME, _TREE, _FREQUENCY)
    )
    state_fields, frequency = of_states.fields, frequencies.fields
    cpus, cpu, of_cpu = _cpus(len(machines), (of_states.machine, state_fields.numbers(1)),
                              (frequencies.machine, frequency.numbers(1)))  # fmt: skip
    threads, tree_of = trees.fields.inner(2)
    named = (
        _Named(of_states.time_ns, of_states.machine, state_fields.numbers(3), state_fields.text_column(2)),
        _Named(renames.time_ns, renames.machine, renames.fields.numbers(1), renames.fields.text_column(2)),
        _Named(trees.time_ns[tree_of], trees.machine[tree_of], threads.numbers(1), threads.text_column(3)),
    )
    keys, which, names = _threads(named)
    in_tree = which[len(which) - len(tree_of) :]
    pid_of = dict(zip(in_tree.tolist(), threads.numbers(2).tolist(), strict=True))
    numbers = _numbered(keys, names, pid_of, tasks)
    processes, tree_of = trees.fields.inner(1)
    pids = zip(trees.machine[tree_of].tolist(), processes.numbers(1).tolist(), processes.texts(3), strict=True)
    for machine, pid, text in pids:
        if text:
            name = text.rsplit("/", 1)[-1]
            of_machine = f" (machine {machines[machine]})" if machine else ""
            tasks.process_names[_process(machine, pid)] = name + of_machine
    number = numbers[which[: len(state_fields.is_bad)]]
    for row in _idle(keys, number, numbers, state_fields.numbers(5), in_tree[threads.numbers(5) > 0], cpus):
        tasks.process[row] = 0
    record = first_record + np.arange(len(number), dtype=np.int64)
    rows = _KernelChanges(of_states.time_ns, record, cpu, number, state_fields.numbers(4), state_fields.numbers(5))
    states, points = _changes(rows, problems)
    zero = np.zeros(len(of_cpu), np.int64)
    record = first_record + len(number) + np.arange(len(of_cpu), dtype=np.int64)
    code = zero + linux.point_codes()["cpu_frequency"]
    points = Points.concatenated([points, Points(frequencies.time_ns, record, of_cpu, zero - 1, code)])
    packet_rows = packets.bytes_rows(_FREQUENCY)
    begin, end = packets.value[packet_rows], packets.value[packet_rows] + packets.length[packet_rows]
    records = RecordSpans(record, zero + FREQUENCY, begin, end)
    of_first = {tid: number for (machine, tid), number in zip(keys, numbers.tolist(), strict=True) if machine == 0}
    return KernelStates(states, points, records, of_first)


def _packets_of(packets: Fields, number: int, machines: Ints) -> _KindPackets:
    fields, packet = packets.inner(number)
    return _KindPackets(fields, packets.numbers(_TIME)[packet],
                        np.searchsorted(machines, packets.numbers(_MACHINE)[packet]))  # fmt: skip


def _cpus(count: int, *columns: tuple[Ints, Ints]) -> tuple[int, Ints, Ints]:
    """Return the number of CPUs of the first machine (traced system), and CPU numbers unique over all machines.

    `columns` are two pairs of arrays, machine and CPU; each pair gets its unique numbers, int64.
    """
    (machine, cpu), (other, of_other) = ((machine, np.clip(cpu, 0, _MOST_CPUS - 1)) for machine, cpu in columns)
    size = np.zeros(count, np.int64)
    np.maximum.at(size, np.append(machine, other), np.append(cpu, of_other) + 1)
    first_cpu = np.append(0, np.cumsum(size))[:count]
    return int(size[0]) if count else 0, cpu + first_cpu[machine], of_other + first_cpu[other]


def _process(machine: int, pid: int) -> int:
    """Return a unique pid: unchanged for the first machine (traced system), for others a number that QNX never uses."""
    return pid if machine == 0 else linux.FIRST_TID - machine * (1 << 24) + pid % (1 << 24)


@dataclass(frozen=True, slots=True)
class _Named:
    """Messages that name threads, (n,) each: time, machine (traced system), number of the thread in the file, name."""

    time_ns: Ints
    machine: Ints
    tid: Ints
    name: TextColumn


def _threads(named: Sequence[_Named]) -> tuple[list[tuple[int, int]], NDArray[np.intp], list[str]]:
    """Return all threads as (machine, number), the thread of each naming message, and the last name of each."""
    time, machine, tid = (
        np.concatenate([getattr(messages, name) for messages in named]) for name in ("time_ns", "machine", "tid")
    )
    pairs, which = np.unique(np.stack((machine, tid), axis=1), axis=0, return_inverse=True)
    which = which.reshape(-1)
    texts = [text for messages in named for text in messages.name.texts]
    first_code = np.cumsum([0, *(len(messages.name.texts) for messages in named)])
    code = np.concatenate(
        [messages.name.code + offset for messages, offset in zip(named, first_code.tolist(), strict=False)]
    )
    is_named = np.flatnonzero(np.array([bool(text) for text in texts])[code])
    is_named = is_named[np.lexsort((is_named, time[is_named]))]
    last = np.full(len(pairs), -1, np.int64)
    np.maximum.at(last, which[is_named], np.arange(len(is_named)))
    names = [texts[code[is_named[row]]] if row >= 0 else "" for row in last.tolist()]
    return [(row[0], row[1]) for row in pairs.tolist()], which, names


def _numbered(keys: Sequence[tuple[int, int]], names: Sequence[str], pid_of: Mapping[int, int], tasks: Tasks) -> Ints:
    """Return numbers below 2^31 for threads, int64, -2 = no thread; add names, processes and QNX numbers to `tasks`."""
    numbers = np.full(len(keys), -2, np.int64)
    for row, ((machine, tid), name) in enumerate(zip(keys, names, strict=True)):
        pid, low = pid_of.get(row, tid >> 32), tid & 0xFFFFFFFF
        is_small = machine == 0 and 0 < tid < NOBODY_PID
        number = tid if is_small else linux.FIRST_TID + row + 1
        if number >= _MOST_TID or (tid >> 32 == NOBODY_PID and low):
            continue
        numbers[row] = number
        tasks.process[number] = _process(machine, pid) if pid > 0 else number
        tasks.shown[number] = low if low < _MOST_TID else 0
        tasks.names[number] = name
    return numbers


def _idle(
    keys: Sequence[tuple[int, int]], number: Ints, numbers: Ints, prio: Ints, flagged: NDArray[np.intp], cpus: int
) -> list[int]:
    """Return the numbers of the idle threads: those flagged, else the first of process 1 that always have priority 0.

    Up to 7.x the idle threads are the first threads of process 1, one for each CPU (format description, 8.4). `number`
    is the thread of each state change, `prio` its priority there.
    """
    if not len(flagged):
        is_first = [tid >> 32 == KERNEL_PID and (tid & 0xFFFFFFFF) <= cpus for _, tid in keys]
        flagged = np.flatnonzero(np.array(is_first, np.bool_) & ~np.isin(numbers, number[prio != 0]))
    idle: list[int] = numbers[flagged].tolist()
    return idle


@dataclass(frozen=True, slots=True)
class _KernelChanges(ColumnTable):
    """State changes in the file, int64 (n,) each."""

    time_ns: Ints
    record: Ints
    cpu: Ints
    number: Ints
    state: Ints
    prio: Ints


def _changes(rows: _KernelChanges, problems: Problems) -> tuple[States, Points]:
    """Return the accepted state changes, and the creations and ends of threads."""
    rows = _accepted(rows.taken(np.lexsort((rows.record, rows.time_ns, rows.number))), problems)
    is_state = (rows.state > _CREATED) & (rows.state < _DESTROYED) & (rows.number > 0)
    # If another thread takes the CPU of a thread that has no state change at this time, the latter's state is unknown.
    taken_ns = _taken(rows)
    own_ns = np.append(np.where(rows.number[1:] == rows.number[:-1], rows.time_ns[1:], -1), -1)[: len(taken_ns)]
    is_lost = (taken_ns >= 0) & (own_ns != taken_ns) & (rows.number > 0)
    states, lost = rows.taken(is_state & ~(is_lost & (taken_ns == rows.time_ns))), rows.taken(is_lost)
    zero = np.zeros(len(lost.cpu), np.int64)
    ends = rows.taken(~is_state & (rows.number > 0))
    code = np.where(ends.state == _CREATED, wire.THREAD_CREATE, wire.THREAD_DESTROY).astype(np.int64)
    return States.concatenated([
        States(states.time_ns, states.record, states.cpu, states.number, _VALUES[states.state], states.prio),
        States(taken_ns[is_lost], lost.record, lost.cpu, lost.number, zero + UNKNOWN, zero),
    ]), Points(ends.time_ns, ends.record, ends.cpu, ends.number, code)  # fmt: skip


def _accepted(rows: _KernelChanges, problems: Problems) -> _KernelChanges:
    """Return the state changes that Perfetto's engine accepts, and report the others.

    Perfetto refuses unknown states, creations of threads that exist, ends of threads that have ended, and changes to
    RUNNING of threads that already run.
    """

    def without(refused: NDArray[np.bool_], says: str) -> _KernelChanges:
        if count := int(np.count_nonzero(refused)):
            problems.add("unknown-events", f"{says}: refused, as Perfetto does", None, count)
        return rows.taken(~refused)

    rows = without((rows.state <= 0) | (rows.state > _DESTROYED), "states that are none")
    is_there = _last(rows, rows.state != _DESTROYED, rows.state != _DEAD)
    is_again = (rows.state == _CREATED) & is_there
    is_there = is_there[~is_again]
    rows = without(is_again, "threads are created that are there already")
    was_destroyed = _last(rows, np.ones(len(rows.state), np.bool_), rows.state == _DESTROYED)
    rows = without((rows.state == _DEAD) & is_there & was_destroyed, "threads end that have ended")
    runs = _last(rows, np.ones(len(rows.state), np.bool_), (rows.state == _RUNNING) & (_taken(rows) < 0))
    return without((rows.state == _RUNNING) & runs, "threads that run already start to run")


def _last(rows: _KernelChanges, counts: NDArray[np.bool_], holds: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return whether the last earlier change of each thread that `counts` is one that `holds`; bool (n,), by thread."""
    count = len(rows.number)
    last = np.maximum.accumulate(np.where(counts, np.arange(count), -1))
    last = np.append(-1, last[:-1])[:count]
    same = (last >= 0) & (rows.number[last] == rows.number)
    return np.asarray(same & holds[last])


def _taken(rows: _KernelChanges) -> Ints:
    """Return for each change to RUNNING when another thread takes the CPU, int64 (n,); -1 if it changes before."""
    out, time_ns, number = np.full(len(rows.time_ns), -1, np.int64), rows.time_ns, rows.number
    starts = np.flatnonzero(rows.state == _RUNNING)
    starts = starts[np.lexsort((rows.record[starts], time_ns[starts], rows.cpu[starts]))]
    follows = (rows.cpu[starts][1:] == rows.cpu[starts][:-1]) & (number[starts][1:] != number[starts][:-1])
    start_row, other = starts[:-1][follows], starts[1:][follows]
    own = np.append(number[1:] == number[:-1], False)[: len(number)]
    following = np.minimum(start_row + 1, len(number) - 1)
    is_before = own[start_row] & (time_ns[following] < time_ns[other])
    is_before |= own[start_row] & (time_ns[following] == time_ns[other]) & (rows.record[following] < rows.record[other])
    out[start_row[~is_before]] = time_ns[other[~is_before]]
    return out
