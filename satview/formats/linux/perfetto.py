"""Reads traces of Perfetto: the schedule, the names of threads, and slices as events.

Traces may be from Linux and Android (bundles of ftrace events, compact or not, and process trees), or written by
`satview export`; slices of states in the latter become states again. Source of the field numbers: protos/perfetto/trace
of Perfetto.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import TraceFormatError
from satview.events import linux, rows
from satview.events.states import RUNNING, STATE_BY_NAME, UNKNOWN
from satview.formats.linux.perfetto_kernel import (
    Fields,
    PerfettoDetails,
    RecordSpans,
    SliceNames,
    TextColumn,
    fields_of,
    kernel_states,
    packed,
)
from satview.formats.linux.records import (
    STATE_FLAGS,
    CpuSwitches,
    Ints,
    Points,
    Schedule,
    States,
    Tasks,
    WakeUps,
    lane_value,
)
from satview.store.problems import Problems

# Perfetto's compact form of switches and wake-ups: columns of fields, with times as differences.


_TEXTS = 5


def _column(bundles: Fields, number: int) -> tuple[Ints, Ints]:
    """Return the numbers in the packed field `number` of all messages, and the message of each, int64 (n,) each."""
    values, owners = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for row in bundles.bytes_rows(number).tolist():  # one per bundle of many events
        part = packed(bundles.data, int(bundles.value[row]), int(bundles.length[row]))
        values.append(part)
        owners.append(np.full(len(part), bundles.message[row], np.int64))
    return np.concatenate(values), np.concatenate(owners)


def _aligned(bundles: Fields, owner: Ints, number: int, default: int) -> Ints:
    """Return the numbers in a packed field, aligned with another one, whose numbers are of the messages `owner`."""
    values, owners = _column(bundles, number)
    out = np.full(len(owner), default, np.int64)
    rank, count = _rank(owner), np.bincount(owners, minlength=bundles.messages)
    start = np.concatenate(([0], np.cumsum(count)))
    is_there = rank < count[owner]
    out[is_there] = values[(start[owner] + rank)[is_there]]
    return out


def _rank(owner: Ints) -> Ints:
    """Return the index of each element within its message, int64 (n,); `owner` is the message of each, ascending."""
    if not len(owner):
        return owner
    first_rows = np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
    return np.arange(len(owner)) - np.repeat(first_rows, np.diff(np.append(first_rows, len(owner))))


def _times(deltas: Ints, owner: Ints) -> Ints:
    """Return times, ns, as running sums of `deltas`, which restart where the message (`owner`) changes, int64."""
    total = np.cumsum(deltas)
    first_rows = np.flatnonzero(np.append(True, owner[1:] != owner[:-1])) if len(owner) else owner
    base = total[first_rows] - deltas[first_rows]
    return total - np.repeat(base, np.diff(np.append(first_rows, len(owner))))


def _add_compact_names(bundles: Fields, owner: Ints, thread: Ints, index: Ints, tasks: Tasks) -> None:
    rows = bundles.bytes_rows(_TEXTS)
    start = np.searchsorted(bundles.message[rows], np.arange(bundles.messages + 1))
    text_row = start[owner] + index
    is_there = (index >= 0) & (text_row < start[owner + 1]) & (thread > 0)
    pairs = np.unique(np.stack((thread[is_there], text_row[is_there]), axis=1), axis=0)
    for number, text in pairs.tolist():
        tasks.names.setdefault(number, bundles.text_at(int(rows[text])))


def compact_switches(bundles: Fields, cpu_of: NDArray[np.int64], first_record: int, tasks: Tasks) -> CpuSwitches:
    """Return the thread switches in bundles of ftrace events that use the compact form.

    A bundle contains only the thread that gets the CPU; the thread that leaves the CPU is known from the switch before.

    Args:
        bundles: The compact parts of bundles.
        cpu_of: int64 (messages,), CPU of each bundle.
        first_record: Number of the first record.
        tasks: Receives the names of threads.
    """
    deltas, owner = _column(bundles, 1)
    if not len(deltas):
        return CpuSwitches()
    time, after = _times(deltas, owner), _aligned(bundles, owner, 3, -1)
    states, which = np.unique(_aligned(bundles, owner, 2, 0), return_inverse=True)
    values = np.array([lane_value(state, STATE_FLAGS) for state in states.tolist()], np.int64)
    prio, cpu = _aligned(bundles, owner, 4, 0), cpu_of[owner]
    _add_compact_names(bundles, owner, after, _aligned(bundles, owner, 6, -1), tasks)
    order = np.lexsort((np.arange(len(time)), time, cpu))
    before, before_prio = np.full(len(time), -1, np.int64), np.zeros(len(time), np.int64)
    same = np.flatnonzero(cpu[order[1:]] == cpu[order[:-1]])
    before[order[same + 1]], before_prio[order[same + 1]] = after[order[same]], prio[order[same]]
    return CpuSwitches(time, first_record + np.arange(len(time), dtype=np.int64), cpu, before, before_prio,
                       values[which], after, prio)  # fmt: skip


def compact_wakeups(bundles: Fields, cpu_of: NDArray[np.int64], first_record: int, tasks: Tasks) -> WakeUps:
    """Return the wake-ups of compact bundles, which do not name the waker; arguments are as for `compact_switches`."""
    deltas, owner = _column(bundles, 7)
    if not len(deltas):
        return WakeUps()
    thread = _aligned(bundles, owner, 8, -1)
    _add_compact_names(bundles, owner, thread, _aligned(bundles, owner, 11, -1), tasks)
    return WakeUps(
        _times(deltas, owner), first_record + np.arange(len(deltas), dtype=np.int64), cpu_of[owner],
        np.full(len(deltas), -1, np.int64), thread, _aligned(bundles, owner, 10, 0), _aligned(bundles, owner, 9, -1),
    )  # fmt: skip


_PACKET: Final = 1  # of Trace
_FTRACE, _TREE, _TIME, _SEQUENCE, _TRACK_EVENT, _INTERNED, _COMPRESSED, _CLOCK, _DEFAULTS, _TRACK = (
    1, 2, 8, 10, 11, 12, 50, 58, 59, 60,
)  # fmt: skip
_DESCRIPTION: Final = 14  # of TrackDescriptor
_LINUX: Final = "names, states and events are those of Linux"
_COARSE: Final = "states are coarse: a wait shows as SLEEPING, whatever for, but that for a page as WAITPAGE"
_SWITCH, _WAKING, _WAKEUP, _WAKEUP_NEW = 4, 20, 17, 114  # of FtraceEvent
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4  # TrackEvent.Type
_ARGUMENT, _FLOW = 4, 47  # of TrackEvent
_OWN_CLOCK: Final = 64  # from this number on, a clock belongs to a sequence
_MOST_INNER: Final = 64 << 20
_MOST_BYTES: Final = 8 << 30  # limit for a whole trace, unpacked
_RATIO_MAX: Final = 1000  # limit for a packet; text of logs compresses well
_WHOSE: Final = re.compile(r"thread (\d{1,10}):(\d{1,10})")  # of a track of satview's exports
_LABEL: Final = re.compile(r".{1,500}? (\d{1,9})(?: \((.{1,500})\))?")  # `dumper 3 (writer)`
_MANY: Final = 100
_MOST_TAG: Final = 5  # bytes
_FIRST_WAKE: Final = 1 << 40  # number of the first record of compact wake-ups
_FIRST_STATE: Final = 1 << 45  # number of the first record of states of kernels other than Linux
_FIRST_SLICE: Final = 1 << 50  # number of the first record of slices
_LAST: Final = 1 << 60
_TOP_FIELDS: Final = frozenset(
    (1, 2, 3, 6, 8, 9, 10, 11, 12, 13, 33, 34, 35, 36, 41, 42, 43, 45, 50, 58, 59, 60, 79, 98, 117, 118, 120, 122)
)


def looks_like(first_bytes: bytes) -> bool:
    """Return whether a file begins like a trace of Perfetto: with packets (field 1) that contain known fields."""
    if not first_bytes or first_bytes[0] != _PACKET << 3 | 2:
        return False
    data = np.frombuffer(first_bytes, np.uint8)
    top = fields_of(data, np.zeros(1, np.int64), np.full(1, len(data), np.int64))
    packets = np.flatnonzero((top.number == _PACKET) & (top.length >= 0))
    if not len(packets):  # the first packet is longer than the bytes that were read
        tag = packed(data, _behind_length(first_bytes), _MOST_TAG)
        return len(tag) > 0 and int(tag[0]) >> 3 in _TOP_FIELDS
    if len(packets) != len(top.number):
        return False
    inner, _ = top.inner(_PACKET)
    return bool(len(inner.number)) and not inner.is_bad.any() and bool(_TOP_FIELDS & set(inner.number.tolist()))


def _behind_length(first_bytes: bytes) -> int:
    """Return the offset of the first packet's content, after tag and length."""
    end = 1
    while end < len(first_bytes) and first_bytes[end] & 0x80:
        end += 1
    return end + 1


@cache
def _codes() -> dict[int, int]:
    """Return event codes by field number in FtraceEvent."""
    points = linux.point_codes()
    return {int(number): points[name] for number, name in rows.columns("linux", "perfetto")}


def read_perfetto(path: Path, data: NDArray[np.uint8], problems: Problems) -> Schedule:
    """Return the scheduler events in a trace of Perfetto; TraceFormatError if its packets unpack to too much."""
    data, packets = _packets(path, data, problems)
    tasks, tracks = Tasks(), _Tracks()
    _read_trees(packets, tasks)
    kernel = kernel_states(packets, tasks, _FIRST_STATE, problems)
    tracks.read(packets, tasks, kernel.number_of)
    bundles, _ = packets.inner(_FTRACE)
    ftrace = _ftrace(data, bundles, tasks, problems)
    slices = _slices(packets, tracks, problems)
    is_own = len(slices.states.time_ns) > 0
    if is_own:
        _number_again(tasks)
    switches, states = (
        _with_states(ftrace.switches, slices, kernel.states) if is_own else (ftrace.switches, slices.states)
    )
    points, of_kernel, says = [ftrace.points, slices.points, kernel.points], kernel.states, _LINUX
    if is_own:
        points.append(_end(packets))
        # Slices name all states except RUNNING.
        of_kernel = of_kernel.taken(np.isin(of_kernel.state, (RUNNING, UNKNOWN)))
        says = "states have their names of QNX, events are slices"
    elif len(of_kernel.time_ns):
        says = _COARSE
    records = RecordSpans.concatenated([ftrace.records, kernel.records])
    return Schedule(
        "trace of Perfetto, written by satview" if is_own else "trace of Perfetto", (), switches,
        WakeUps.concatenated([ftrace.wakeups, slices.wakeups]), Points.concatenated(points), tasks,
        PerfettoDetails(packets.data, records, SliceNames(slices.points.record, slices.names)),
        States.concatenated([states, of_kernel]), wakes_make_ready=not is_own, says=says,
    )  # fmt: skip


def _end(packets: Fields) -> Points:
    """Return an event at the latest time of any packet, so that open slices end there."""
    last = np.array([packets.numbers(_TIME).max(initial=0)], np.int64)
    none = np.full(1, -1, np.int64)
    return Points(last, none + _LAST, none + 1, none, none + 1 + linux.point_codes()["trace_end"])


def _number_again(tasks: Tasks) -> None:
    """Restore numbers and names of threads from their labels, because satview's exports renumber threads."""
    for number, label in list(tasks.names.items()):
        if number > linux.FIRST_TID and (parts := _LABEL.fullmatch(label)):
            tasks.shown[number] = int(parts[1])
            tasks.names[number] = parts[2] or ""


# ---- packets -------------------------------------------------------------------------------------------------------


def _packets(path: Path, data: NDArray[np.uint8], problems: Problems) -> tuple[NDArray[np.uint8], Fields]:
    """Return the bytes of the trace with compressed packets unpacked, and the fields of all packets."""
    top = fields_of(data, np.zeros(1, np.int64), np.full(1, len(data), np.int64))
    if top.is_bad[0]:
        last = int((top.value + np.maximum(top.length, 0)).max(initial=0))
        problems.add("section-cut", f"{len(data) - last:,} bytes at the end are not a whole packet", last)
    packets, _ = top.inner(_PACKET)
    parts, size = [data], len(data)
    for row in packets.bytes_rows(_COMPRESSED).tolist():
        offset = int(packets.value[row])
        part = _inflated(path, data[offset : offset + int(packets.length[row])], offset, problems)
        parts.append(part)
        size += len(part)
        if size > _MOST_BYTES:
            raise TraceFormatError(path, offset, "its packets unpack to more than 8 GiB", "record a shorter trace")
    if len(parts) > 1:
        edges = np.cumsum([0, *(len(part) for part in parts)])
        data = np.concatenate(parts)
        begin, end = np.concatenate(([0], edges[1:-1])), np.concatenate(([edges[1]], edges[2:]))
        top = fields_of(data, begin.astype(np.int64), end.astype(np.int64))
        packets, _ = top.inner(_PACKET)
    damaged = int(np.count_nonzero(packets.is_bad))
    if damaged:
        problems.add("section-cut", "packets are damaged; what precedes the damage is read", None, damaged)
    return data, packets


def _inflated(path: Path, packed: NDArray[np.uint8], offset: int, problems: Problems) -> NDArray[np.uint8]:
    most = min(_MOST_INNER, _RATIO_MAX * len(packed) + 4096)
    unpacker = zlib.decompressobj()
    try:
        content = unpacker.decompress(packed.tobytes(), most)
    except zlib.error as error:
        problems.add("section-cut", f"a packed part is damaged ({error})", offset)
        return np.empty(0, np.uint8)
    if unpacker.unconsumed_tail:
        raise TraceFormatError(path, offset, "a packed part unpacks to more than a trace does",
                               "unpack it with `traceconv` if you trust it")  # fmt: skip
    return np.frombuffer(content, np.uint8)


# ---- names ---------------------------------------------------------------------------------------------------------


def _read_trees(packets: Fields, tasks: Tasks) -> None:
    """Add the processes and threads in process trees to `tasks`."""
    trees, _ = packets.inner(_TREE)
    processes, _ = trees.inner(1)
    for pid, name in zip(processes.numbers(1).tolist(), processes.texts(3), strict=True):
        program = name.split("\0", 1)[0].rsplit("/", 1)[-1]
        if pid > 0 and program:
            tasks.process[pid] = pid
            tasks.process_names[pid] = program
    threads, _ = trees.inner(2)
    for tid, process, name in zip(threads.numbers(1).tolist(), threads.numbers(3).tolist(), threads.texts(2),
                                  strict=True):  # fmt: skip
        if tid > 0 and process > 0:
            tasks.process[tid] = process
        if tid > 0 and name:
            tasks.names[tid] = name


@dataclass(slots=True)
class _Tracks:
    """The tracks of a Perfetto trace, which contain slices.

    Attributes:
        thread: By track, the number of the thread to which the track, or a track above it, belongs.
    """

    thread: dict[int, int] = field(default_factory=dict)

    def read(self, packets: Fields, tasks: Tasks, number_of: Mapping[int, int]) -> None:
        """Read the descriptions of tracks, and add the names of threads and processes in them to `tasks`."""
        tracks, _ = packets.inner(_TRACK)
        uuids, parents = tracks.numbers(1).tolist(), tracks.numbers(5).tolist()
        threads, of_track = tracks.inner(4)
        columns = (threads.numbers(1).tolist(), threads.numbers(2).tolist(), threads.texts(5), of_track.tolist())
        for pid, tid, name, track in zip(*columns, strict=True):
            self.thread[uuids[track]] = tid
            tasks.process[tid] = pid
            if name:
                tasks.names[tid] = name
        for row in tracks.bytes_rows(_DESCRIPTION).tolist():
            if whose := _WHOSE.fullmatch(tracks.text_at(row)):
                number = number_of.get(int(whose[1]) << 32 | int(whose[2]))
                if number is not None:
                    self.thread[uuids[int(tracks.message[row])]] = number
        processes, _ = tracks.inner(3)
        for pid, name in zip(processes.numbers(1).tolist(), processes.texts(6), strict=True):
            if name:
                tasks.process_names[pid] = name
        parent_of = dict(zip(uuids, parents, strict=True))
        for uuid in uuids:  # a track may be described before its parent
            above, path = uuid, []
            while above not in self.thread and above in parent_of:
                path.append(above)
                above = parent_of.pop(above)
            if above in self.thread:
                self.thread.update(dict.fromkeys(path, self.thread[above]))


# ---- ftrace --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ftrace:
    switches: CpuSwitches
    wakeups: WakeUps
    points: Points
    records: RecordSpans


def _ftrace(data: NDArray[np.uint8], bundles: Fields, tasks: Tasks, problems: Problems) -> _Ftrace:
    """Return the switches, wake-ups and other events of all ftrace bundles, with records numbered in file order."""
    lost = np.flatnonzero(bundles.numbers(3))
    cpu_of = bundles.numbers(1)
    for row in lost[:_MANY].tolist():
        problems.add("lost-events", f"CPU {cpu_of[row]} has lost events before this bundle")
    events, bundle = bundles.inner(2)
    time, pid, cpu = events.numbers(1), events.numbers(2), cpu_of[bundle]
    # The number of the only field of bytes is the kind of the event.
    payload = np.flatnonzero(events.length >= 0)
    number, row = events.number[payload], events.message[payload]
    begin, end = events.value[payload], events.value[payload] + events.length[payload]

    def of(*numbers: int) -> Ints:
        return np.flatnonzero(np.isin(number, numbers))

    event_rows = of(_SWITCH)
    inner = fields_of(data, begin[event_rows], end[event_rows])
    states, which = np.unique(inner.numbers(4), return_inverse=True)
    values = np.array([lane_value(state, STATE_FLAGS) for state in states.tolist()] or [0], np.int64)
    _add_names(inner, 2, 1, tasks)
    _add_names(inner, 6, 5, tasks)
    switches = CpuSwitches(time[row[event_rows]], row[event_rows], cpu[row[event_rows]], inner.numbers(2),
                           inner.numbers(3), values[which], inner.numbers(6), inner.numbers(7))  # fmt: skip
    is_waking = bool(len(of(_WAKING)))
    compact, in_bundle = bundles.inner(4)
    first_compact = len(time)  # records of the compact form follow
    more = compact_switches(compact, cpu_of[in_bundle], first_compact, tasks)
    woken = compact_wakeups(compact, cpu_of[in_bundle], _FIRST_WAKE, tasks)
    wakes = (_WAKING, _WAKEUP_NEW) if is_waking or len(woken.time_ns) else (_WAKEUP, _WAKEUP_NEW)
    event_rows = of(*wakes)
    inner = fields_of(data, begin[event_rows], end[event_rows])
    _add_names(inner, 2, 1, tasks)
    wakeups = WakeUps(time[row[event_rows]], row[event_rows], cpu[row[event_rows]], pid[row[event_rows]],
                      inner.numbers(2), inner.numbers(3), inner.numbers(5, -1))  # fmt: skip
    other = np.flatnonzero(~np.isin(number, (_SWITCH, *wakes)))
    codes = np.full(int(number.max(initial=0)) + 1, linux.POINT, np.int64)
    for known, code in _codes().items():
        if known < len(codes):
            codes[known] = code
    points = Points(time[row[other]], row[other], cpu[row[other]], pid[row[other]], codes[number[other]])
    records = RecordSpans(row[other], number[other], begin[other], end[other])
    return _Ftrace(CpuSwitches.concatenated([switches, more]), WakeUps.concatenated([wakeups, woken]), points, records)


def _add_names(inner: Fields, number: int, name: int, tasks: Tasks) -> None:
    """Add to `tasks` the last name (a field) in the events of each thread (the field `number`) that has no name yet."""
    name_rows = inner.bytes_rows(name)
    threads = inner.numbers(number)[inner.message[name_rows]]
    numbers, last = np.unique(threads[::-1], return_index=True)
    for thread, row in zip(numbers.tolist(), name_rows[len(name_rows) - 1 - last].tolist(), strict=True):
        if thread > 0:
            tasks.names.setdefault(thread, inner.text_at(row))


# ---- slices --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Slices:
    """Results of converting slices of Perfetto tracks: named events, states of threads and their ends, and wake-ups."""

    points: Points
    names: TextColumn
    states: States
    ends: States
    wakeups: WakeUps


def _slices(packets: Fields, tracks: _Tracks, problems: Problems) -> _Slices:
    """Return the slices of tracks; slices of states in satview's own exports become states again."""
    events, packet = packets.inner(_TRACK_EVENT)
    time, kind, track = packets.numbers(_TIME)[packet], events.numbers(9), events.numbers(11)
    is_odd = packets.numbers(_CLOCK)[packet] >= _OWN_CLOCK
    is_odd |= np.isin(packets.numbers(_SEQUENCE)[packet], _sequences_with_clock(packets))
    if is_odd.any():
        problems.add("unknown-events", "slices with times of a clock of their own are left out", None,
                     int(np.count_nonzero(is_odd)))  # fmt: skip
    counters = int(np.count_nonzero((kind == _COUNTER) & ~is_odd))
    if counters:
        problems.add("unknown-events", "values of counters are left out", None, counters)
    names, categories = _names(packets, packet, events), events.text_column(22)
    uuids, which = np.unique(track, return_inverse=True)
    thread = np.array([tracks.thread.get(uuid, -1) for uuid in uuids.tolist()] or [0], np.int64)[which]
    values = np.array([STATE_BY_NAME[name].value if name in STATE_BY_NAME else -1 for name in names.texts], np.int64)
    value = values[names.code]
    is_state = np.array([text == "state" for text in categories.texts], np.bool_)[categories.code]
    is_state &= (thread > 0) & (value >= 0)
    zero = np.zeros(len(time), np.int64)
    record = _FIRST_SLICE + np.arange(len(time), dtype=np.int64)
    begins = np.flatnonzero(is_state & (kind == _BEGIN) & ~is_odd)
    states = States(time[begins], record[begins], zero[begins], thread[begins], value[begins], zero[begins])
    over = np.flatnonzero((kind == _END) & np.isin(track, track[begins]) & ~is_odd)
    ends = States(time[over], record[over] - _FIRST_SLICE, zero[over], thread[over], zero[over] + UNKNOWN,
                  zero[over])  # fmt: skip
    category = np.array(categories.texts)[categories.code]
    is_wake = (category == "wake-up") & ~is_odd
    wakeups = _wake_ups(events, np.flatnonzero(is_wake), time, thread)
    other = np.flatnonzero(np.isin(kind, (_BEGIN, _INSTANT)) & ~is_state & ~is_wake & ~is_odd)
    code = linux.point_codes()["user_slice"]
    points = Points(time[other], record[other], zero[other], thread[other], zero[other] + code)
    return _Slices(points, TextColumn(names.code[other], names.texts), states, ends, wakeups)


def _wake_ups(events: Fields, rows: Ints, time: Ints, thread: Ints) -> WakeUps:
    """Return the wake-ups in satview's exports, from the instants `rows` of track events.

    A wake-up is two instants of one flow: that of the waker, which has an argument `cpu`, and that of the woken thread.
    """
    flow = events.numbers(_FLOW)[rows]
    arguments, event = events.inner(_ARGUMENT)
    cpus = np.full(len(events.is_bad), -1, np.int64)
    is_cpu = np.array([name == "cpu" for name in arguments.texts(10)] or [False])[: len(event)]
    cpus[event[is_cpu]] = arguments.numbers(4)[is_cpu]
    is_cause = cpus[rows] >= 0
    causes, effects = rows[is_cause], rows[~is_cause]
    _, at_cause, at_effect = np.intersect1d(flow[is_cause], flow[~is_cause], return_indices=True)
    causes, effects = causes[at_cause], effects[at_effect]
    nothing = np.full(len(causes), -1, np.int64)
    # The record number of the cause orders it before its effect in the same nanosecond.
    return WakeUps(time[causes], causes, cpus[causes], thread[causes], thread[effects], nothing + 1, nothing)


def _sequences_with_clock(packets: Fields) -> Ints:
    defaults, packet = packets.inner(_DEFAULTS)
    sequence = packets.numbers(_SEQUENCE)[packet]
    return sequence[defaults.numbers(_CLOCK) >= _OWN_CLOCK]


def _names(packets: Fields, packet: Ints, events: Fields) -> TextColumn:
    """Return the names of track events, given as text or by a number defined in the sequence of their `packet`."""
    spelled = events.text_column(23)
    number, sequence = events.numbers(10), packets.numbers(_SEQUENCE)
    is_numbered = (spelled.code == 0) & (number > 0)
    if not is_numbered.any():
        return spelled
    interned, of_packet = packets.inner(_INTERNED)
    entries, of_data = interned.inner(2)
    keys = zip(sequence[of_packet[of_data]].tolist(), entries.numbers(1).tolist(), strict=True)
    known = dict(zip(keys, entries.texts(2), strict=True))
    used = np.stack((sequence[packet[is_numbered]], number[is_numbered]), axis=1)
    used, which = np.unique(used, axis=0, return_inverse=True)
    texts = tuple(known.get((pair[0], pair[1]), "") for pair in used.tolist())
    code = spelled.code.copy()
    code[is_numbered] = len(spelled.texts) + which.reshape(-1)
    return TextColumn(code, spelled.texts + texts)


def _with_states(switches: CpuSwitches, slices: _Slices, of_kernel: States) -> tuple[CpuSwitches, States]:
    """Return the switches with states from slices, and the states that belong to no switch.

    A slice that ends without a following state shows missing events: the thread's state is unknown after it.
    `of_kernel` are states of a kernel other than Linux; one of them, RUNNING, may follow a slice.
    """
    states, ends = slices.states, slices.ends
    state_row = _match(switches.before, switches.time_ns, states.thread, states.time_ns)
    state = np.where(state_row >= 0, states.state[np.maximum(state_row, 0)], UNKNOWN)
    keep = np.ones(len(states.time_ns), np.bool_)
    keep[state_row[state_row >= 0]] = False
    is_followed = _match(ends.thread, ends.time_ns, states.thread, states.time_ns) >= 0
    is_followed |= _match(ends.thread, ends.time_ns, switches.after, switches.time_ns) >= 0
    runs = of_kernel.taken(of_kernel.state == RUNNING)
    is_followed |= _match(ends.thread, ends.time_ns, runs.thread, runs.time_ns) >= 0
    left = States.concatenated([states.taken(keep), ends.taken(~is_followed)])
    return replace(switches, state=state), left


def _match(thread: Ints, time_ns: Ints, of_thread: Ints, at_ns: Ints) -> Ints:
    """Return for each pair of thread and time the index of an equal pair in the other columns, int64; -1 = none."""
    if not len(of_thread):
        return np.full(len(thread), -1, np.int64)
    known, rank = np.unique(of_thread, return_inverse=True)
    first_ns, span = int(at_ns.min()), int(np.ptp(at_ns)) + 1
    key = rank * span + (at_ns - first_ns)
    order = np.argsort(key, kind="stable")
    thread_rank = np.searchsorted(known, thread)
    is_there = (thread_rank < len(known)) & (time_ns >= first_ns) & (time_ns < first_ns + span)
    is_there &= known[np.minimum(thread_rank, len(known) - 1)] == thread
    sought = thread_rank * span + (time_ns - first_ns)
    position = np.minimum(np.searchsorted(key[order], sought), len(key) - 1)
    return np.where(is_there & (key[order][position] == sought), order[position], -1)
