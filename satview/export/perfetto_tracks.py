"""The schedule of a trace for Perfetto, in packets for kernels other than Linux, as QNX's own probe writes them.

A thread's number has its pid in the upper 32 bits and its tid in the lower. Every change of a thread's state is one
packet with state, CPU, priority and name. The engine keeps a state until the thread's next packet and refuses the state
UNKNOWN, so an unknown state needs a workaround: a RUNNING packet of another thread on the same CPU leaves the thread
that ran there without a state. This other thread is called `unknown`; there is one for each CPU, without a process. A
thread that did not run first gets a CPU for no time. Source: GenericKernelTaskStateEvent and GenericKernelProcessTree
of Perfetto.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.answers.frames import Texts
from satview.answers.table import Table
from satview.base.column_arrays import ColumnTable
from satview.base.time import TimeWindow
from satview.events.linux import FIRST_TID
from satview.events.states import ABSENT, DEAD, IDLE, READY, RUNNING, STATES, UNKNOWN, VALUE_COUNT, WAITING, StateGroup
from satview.store.time_ranges import idle_threads
from satview.store.trace import Trace
from satview.tables.table import table

# Protobuf messages from columns, many messages at once.


_VARINT: Final = 0
_FIXED64: Final = 1
_LENGTH: Final = 2
_BITS: Final = 7
_MOST: Final = 10  # maximum bytes of a number of 64 bits

Numbers = NDArray[np.integer[Any]]
Known = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class MessageBytes:
    """n encoded messages of different lengths: uint8 (n, width), and which of the bytes are used, bool (n, width)."""

    data: NDArray[np.uint8]
    used: Known

    def __len__(self) -> int:
        return len(self.data)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Length of each message in bytes, int64 (n,)."""
        return np.asarray(np.count_nonzero(self.used, axis=1), np.int64)

    def to_bytes(self) -> bytes:
        """Return the concatenated messages."""
        return self.data[self.used].tobytes()

    def where(self, known: Known) -> MessageBytes:
        """Return the messages, replaced by empty ones where `known`, bool (n,), is False."""
        return MessageBytes(self.data, self.used & known[:, None])


def message(*fields: MessageBytes) -> MessageBytes:
    """Return protobuf messages made of fields, in the order of the arguments."""
    return MessageBytes(np.concatenate([field.data for field in fields], axis=1),
                        np.concatenate([field.used for field in fields], axis=1))  # fmt: skip


def number(field: int, values: Numbers) -> MessageBytes:
    """Return protobuf field number `field` with an integer for each message, (n,); negative integers take ten bytes."""
    return message(_tag(field, _VARINT, len(values)), _varints(values))


def fixed64(field: int, values: Numbers) -> MessageBytes:
    """Return protobuf field number `field` with an integer of eight bytes for each message."""
    data = np.ascontiguousarray(values.astype("<u8")).view(np.uint8).reshape(len(values), 8)
    return message(_tag(field, _FIXED64, len(values)), MessageBytes(data, np.ones(data.shape, np.bool_)))


def text(field: int, which: Numbers, texts: Sequence[str]) -> MessageBytes:
    """Return a protobuf field with one of a few `texts` for each message, by index, int (n,)."""
    raw = [value.encode("utf-8", "replace") for value in texts] or [b""]
    width = max(map(len, raw))
    table = np.frombuffer(b"".join(value.ljust(width, b"\0") for value in raw), np.uint8).reshape(len(raw), width)
    lengths = np.array([len(value) for value in raw])
    return nested(field, MessageBytes(table[which], np.arange(width) < lengths[which][:, None]))


def nested(field: int, inner: MessageBytes) -> MessageBytes:
    """Return protobuf field number `field` with a nested message, or other bytes, for each message."""
    return message(_tag(field, _LENGTH, len(inner)), _varints(inner.lengths), inner)


def _tag(field: int, wire: int, count: int) -> MessageBytes:
    tag = _varints(np.array([field << 3 | wire]))
    return MessageBytes(np.repeat(tag.data, count, axis=0), np.repeat(tag.used, count, axis=0))


def _varints(values: Numbers) -> MessageBytes:
    rest = values.astype(np.int64).view(np.uint64)
    width = max(1, -(-int(rest.max(initial=0)).bit_length() // _BITS))
    shifts = np.arange(min(width, _MOST), dtype=np.uint64) * np.uint64(_BITS)
    parts = rest[:, None] >> shifts
    used = parts > 0
    used[:, 0] = True
    more = np.zeros(parts.shape, np.uint8)
    more[:, :-1] = used[:, 1:] * np.uint8(0x80)
    return MessageBytes((parts & np.uint64(0x7F)).astype(np.uint8) | more, used)


# Packets for slices, instants and counters on tracks, and the part of a trace to write.


Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_CHUNK: Final = 1 << 15  # messages made at once
_SEQUENCE: Final = 1
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4  # TrackEvent.Type
_NAME, _NUMBER, _TEXT = 10, 4, 6  # of DebugAnnotation


@dataclass(frozen=True, slots=True)
class TracePart:
    """A part of a trace.

    Attributes:
        window: The range; intervals are cut at its ends.
        events: bool (events,), only intervals that begin with one of these events; None = all.
    """

    trace: Trace
    window: TimeWindow
    events: Bools | None = None

    def shows(self, start_cycles: Ints, end_cycles: Ints, event: Ints) -> Bools:
        """Return which intervals are in the part, bool (n,).

        Args:
            start_cycles: int64 (n,).
            end_cycles: int64 (n,); equal to the start for an instant.
            event: int64 (n,), row of the event at the start of each interval; -1 = no event.
        """
        inside = (start_cycles < self.window.end) & (np.maximum(end_cycles, start_cycles + 1) > self.window.start)
        return inside if self.events is None else inside & (event >= 0) & self.events[event]

    def ns(self, cycles: Ints) -> Ints:
        """Return times in nanoseconds since the start of the trace, clipped to the window, int64 (n,)."""
        return self.trace.clock.ns_array(np.clip(cycles, self.window.start, self.window.end))


@dataclass(frozen=True, slots=True)
class Arguments:
    """An argument of slices, with a value for each slice: integers, -1 = none, or texts, empty = none."""

    name: str
    values: Ints | Texts

    def taken(self, rows: NDArray[Any]) -> Arguments:
        """Return the argument for the slices at some rows."""
        values = self.values
        return replace(
            self, values=Texts(values.code[rows], values.texts) if isinstance(values, Texts) else values[rows]
        )

    def block(self) -> MessageBytes:
        """Return the encoded debug annotation with this argument for each track event."""
        values, zeros = self.values, np.zeros(len(self.values), np.int64)
        name = text(_NAME, zeros, [self.name])
        if isinstance(values, Texts):
            is_there = np.array([bool(value) for value in values.texts] or [False])[values.code]
            return nested(4, message(name, text(_TEXT, values.code, values.texts))).where(is_there)
        return nested(4, message(name, number(_NUMBER, values))).where(values != -1)


@dataclass(frozen=True, slots=True)
class TrackSlices(ColumnTable):
    """Slices and instants on tracks, arrays (n,); slices of the same track do not cross.

    Attributes:
        track: int64, uuid of the track.
        start_cycles, end_cycles: int64; equal for an instant.
        event: int64, row of the event at the start; -1 = no event.
        flow: int64, number that slices connected by an arrow have in common; 0 = no arrow.
    """

    track: Ints
    start_cycles: Ints
    end_cycles: Ints
    event: Ints
    name: Texts
    flow: Ints

    def taken(self, rows: NDArray[Any] | slice) -> TrackSlices:
        """Return the slices with the given indices."""
        name = Texts(self.name.code[rows], self.name.texts)
        return TrackSlices(self.track[rows], self.start_cycles[rows], self.end_cycles[rows], self.event[rows], name,
                           self.flow[rows])  # fmt: skip


def uuid_of(kind: int, row: Ints | int) -> Ints:
    """Return the uuid of a track, int64 (n,), made from the kind of track and a number.

    Args:
        kind: Kind of the track, such as that of threads or that of interrupts.
        row: (n,) or one: number of the thread, CPU or other object that the track is for.
    """
    return np.asarray(np.int64(kind) << 32 | row, np.int64)


def in_chunks(count: int) -> Iterator[slice]:
    """Yield consecutive ranges of at most `_CHUNK` rows."""
    for start in range(0, count, _CHUNK):
        yield slice(start, min(start + _CHUNK, count))


def sequenced(*fields: MessageBytes) -> MessageBytes:
    """Return packets made of fields, with the number of the packet sequence added."""
    return message(*fields, number(10, np.full(len(fields[0]), _SEQUENCE)))


def text_of(field: int, columns: Table, name: str, rows: NDArray[Any] | slice = slice(None)) -> MessageBytes:
    """Return a protobuf field with the text that a table's column `name` has for each message's row."""
    values = texts(columns, name)
    return text(field, values.code[rows], values.texts)


def texts(columns: Table, name: str) -> Texts:
    """Return a table's column of texts by its name."""
    values = columns.column_values(name)
    assert isinstance(values, Texts)
    return values


def slice_packets(
    part: TracePart, slices: TrackSlices, category: str, arguments: tuple[Arguments, ...] = ()
) -> Iterator[MessageBytes]:
    """Yield packets for starts, ends and instants in time order; at equal times ends come first, inner before outer."""
    slot = np.flatnonzero(part.shows(slices.start_cycles, slices.end_cycles, slices.event))
    start, end = part.ns(slices.start_cycles[slot]), part.ns(slices.end_cycles[slot])
    is_long, count = end > start, len(slot)
    time = np.concatenate((start, end[is_long]))
    kind = np.concatenate((np.where(is_long, _BEGIN, _INSTANT), np.full(int(is_long.sum()), _END)))
    row = np.concatenate((slot, slot[is_long]))
    length = np.concatenate((end - start, start[is_long] - end[is_long]))
    at_end = np.arange(len(row)) >= count
    # Of slices that begin at the same time the longest is outermost; the last to begin ends first.
    order = np.lexsort((np.where(at_end, -row, row), np.where(at_end, -length, -length), ~at_end, time))
    for rows in in_chunks(len(order)):
        in_time = order[rows]
        part_of, kinds = row[in_time], kind[in_time]
        begins = kinds != _END
        flow = slices.flow[part_of]
        fields = [
            number(9, kinds),
            number(11, slices.track[part_of]),
            text(22, np.zeros(len(in_time), np.int64), [category]).where(begins),
            text(23, slices.name.code[part_of], slices.name.texts).where(begins),
            *(argument.taken(part_of).block().where(begins) for argument in arguments),
            fixed64(47, flow).where(begins & (flow > 0)),
        ]
        yield track_events(time[in_time], message(*fields))


def counter_packets(part: TracePart, track: Ints, cycles: Ints, values: NDArray[np.float64]) -> Iterator[MessageBytes]:
    """Yield packets for values of counters; NaN and unchanged values are left out.

    Args:
        part: The part to write.
        track: int64 (n,), uuid of the counter's track; values of a track are adjacent.
        cycles: int64 (n,), time from which each value holds.
        values: float64 (n,).
    """
    same = np.append(False, (values[1:] == values[:-1]) & (track[1:] == track[:-1]))[: len(values)]
    changes = np.flatnonzero(~np.isnan(values) & ~same)
    time = part.ns(cycles[changes])
    for rows in in_chunks(len(changes)):
        bits = values[changes[rows]].astype("<f8").view(np.int64)
        yield track_events(
            time[rows],
            message(number(9, np.full(len(bits), _COUNTER)), number(11, track[changes[rows]]), fixed64(44, bits)),
        )


def track_events(time_ns: Ints, event: MessageBytes) -> MessageBytes:
    """Return packets of track events with their times."""
    return sequenced(number(8, time_ns), nested(11, event))


def overlaps(owner: Ints, start: Ints, end: Ints) -> Bools:
    """Return which intervals begin before an earlier interval of the same owner ends, bool (n,).

    Args:
        owner: int64 (n,), ascending.
        start: int64 (n,), ascending for each owner.
        end: int64 (n,).
    """
    if not len(owner):
        return np.zeros(0, np.bool_)
    span = int(end.max() - start.min()) + 2
    offset = np.cumsum(np.append(False, owner[1:] != owner[:-1])) * span - start.min()  # of each interval's owner
    latest = np.maximum.accumulate(end + offset)
    return np.append(False, (start + offset)[1:] < latest[:-1])


NOBODY_PID: Final = FIRST_TID - 1  # no process of QNX has a number that high
_CREATED, _RUNNABLE, _RUNNING, _SLEEPS, _SLEEPS_DEEPLY, _STOPPED, _DEAD, _DESTROYED = range(1, 9)  # TaskStateEnum
_NONE, _NOT_KNOWN, _GONE = -1, -2, -3  # in place of a state: not there yet, unknown, ended
_UNINTERRUPTIBLE: Final = ("WAITPAGE", "UNINTERRUPTIBLE")


@dataclass(frozen=True, slots=True)
class _Changes(ColumnTable):
    """Changes of states, by thread and in time order, int64 (n,) each.

    Attributes:
        thread: Row of the thread table.
        cycles: Time of the change.
        state: The new state: a number of `TaskStateEnum`, or `_NONE`, `_NOT_KNOWN` or `_GONE`.
        cpu: Where the thread runs from then on; -1 = it does not.
        priority: 0 = not known.
        event: Row of the event that causes the change; -1 = no event.
    """

    thread: Ints
    cycles: Ints
    state: Ints
    cpu: Ints
    priority: Ints
    event: Ints


@dataclass(frozen=True, slots=True)
class _Packets(ColumnTable):
    """Packets with a thread state each; int64 (n,).

    Attributes:
        thread: Row of the thread table; `-1 - CPU` is the thread `unknown` of a CPU.
        rank: Order of packets with equal times.
        state: Number of `TaskStateEnum`.
        priority: 0 = not known.
    """

    thread: Ints
    cycles: Ints
    rank: Ints
    state: Ints
    cpu: Ints
    priority: Ints


def thread_numbers(trace: Trace) -> Ints:
    """Return a unique number for every thread in the packets, int64 (threads,)."""
    pid, tid = trace.threads.pid.astype(np.int64), trace.threads.tid.astype(np.int64)
    pid[0], tid[0] = NOBODY_PID, 0
    numbers = pid << 32 | tid & 0xFFFFFFFF
    _, first_rows = np.unique(numbers, return_index=True)
    again = np.ones(len(numbers), np.bool_)
    again[first_rows] = False
    numbers[again] = pid[again] << 32 | FIRST_TID + np.flatnonzero(again)
    return numbers


def schedule_packets(part: TracePart) -> Iterator[MessageBytes]:
    """Yield packets for processes and threads, then for every state change of every thread."""
    changes = _changes(part)
    births = _births(changes)
    yield from _tree(part, changes.thread[changes.state == _NONE])
    packets = _Packets.concatenated([_packets(part.trace, changes), _created(changes.taken(births))])
    packets = packets.taken(np.lexsort((packets.rank, packets.cycles)))
    trace, time_ns = part.trace, part.trace.clock.ns_array(packets.cycles)
    names = [trace.thread_name(row) for row in range(len(trace.threads))]
    names += [_nobody(cpu) for cpu in range(trace.cpu_count, -1, -1)]
    numbers = np.append(thread_numbers(trace), _nobodies(trace)[::-1])
    for rows in in_chunks(len(packets.cycles)):
        thread = packets.thread[rows]
        event = message(
            number(1, packets.cpu[rows]), text(2, thread % len(names), names), number(3, numbers[thread]),
            number(4, packets.state[rows]), number(5, packets.priority[rows]).where(packets.priority[rows] > 0),
        )  # fmt: skip
        yield sequenced(number(8, time_ns[rows]), nested(117, event))
    yield from _threads(part, changes.thread[births], changes.cycles[births])


# ---- processes and threads -----------------------------------------------------------------------------------------


def _nobody(cpu: int) -> str:
    return f"unknown (CPU {cpu})"


def _nobodies(trace: Trace) -> Ints:
    """Return the Perfetto thread numbers of the threads called `unknown`, int64 (CPUs + 1,).

    One runs on a CPU that no known thread uses while the state of some thread is unknown; the last one is for times at
    which all CPUs are used.
    """
    return NOBODY_PID << 32 | np.arange(1, trace.cpu_count + 2, dtype=np.int64)


def _tree(part: TracePart, absent: Ints) -> Iterator[MessageBytes]:
    """Yield packets for all processes, and for the threads that exist at the start: all except `absent`."""
    trace, processes = part.trace, table(part.trace, "process")
    pid, parent = processes["pid"].astype(np.int64), processes["parent_pid"].astype(np.int64)
    pid[0] = NOBODY_PID
    names = [trace.process_name(row) for row in range(len(pid))]
    is_word = np.array([not name.count(" ") for name in names])  # the engine cuts at a blank
    yield _at_start(1, message(number(1, pid), number(2, parent).where(parent >= 0),
                               text(3, np.arange(len(pid)), names).where(is_word)), part)  # fmt: skip
    rows = np.arange(len(trace.threads), dtype=np.int64)
    yield from _threads(part, rows[~np.isin(rows, absent)], None)
    tids = _nobodies(trace)
    yield _at_start(2, message(number(1, tids), number(2, np.full(len(tids), NOBODY_PID)),
                               text(3, np.arange(len(tids)), [_nobody(cpu) for cpu in range(len(tids))]),
                               number(5, np.ones(len(tids), np.int64))), part)  # fmt: skip


def _at_start(field: int, inner: MessageBytes, part: TracePart) -> MessageBytes:
    time = np.full(len(inner), part.trace.clock.ns(part.window.start))
    return sequenced(number(8, time), nested(122, nested(field, inner)))


def _threads(part: TracePart, rows: Ints, cycles: Ints | None) -> Iterator[MessageBytes]:
    """Yield packets, all at once, that describe threads at `cycles`; None = at the start of the window."""
    trace, threads = part.trace, table(part.trace, "thread")
    time = trace.clock.ns_array(np.full(len(rows), part.window.start) if cycles is None else cycles)
    pid = np.where(rows > 0, trace.threads.pid[rows].astype(np.int64), NOBODY_PID)
    is_main, is_idle = trace.threads.tid[rows] == 1, idle_threads(trace)[rows]
    inner = message(
        number(1, thread_numbers(trace)[rows]), number(2, pid), text_of(3, threads, "label", rows),
        number(4, is_main.astype(np.int64)).where(is_main), number(5, is_idle.astype(np.int64)).where(is_idle),
    )  # fmt: skip
    yield sequenced(number(8, time), nested(122, nested(2, inner)))


# ---- changes of states ---------------------------------------------------------------------------------------------


@cache
def _state_of_value() -> NDArray[np.int64]:
    """Return a table from satview's state values to `TaskStateEnum`, int64 (64,)."""
    out = np.full(VALUE_COUNT, _SLEEPS, np.int64)
    for state in STATES:
        if state.group is StateGroup.STOPPED:
            out[state.value] = _STOPPED
        elif state.name in _UNINTERRUPTIBLE:
            out[state.value] = _SLEEPS_DEEPLY
    out[[READY, WAITING]] = _RUNNABLE  # an idle thread that does not run is READY for QNX
    out[[RUNNING, IDLE]] = _RUNNING
    out[[UNKNOWN, DEAD]] = _NOT_KNOWN, _DEAD
    return out


def _changes(part: TracePart) -> _Changes:
    """Return the state changes in a part: runs from the CPUs, all other states from the threads."""
    trace, runs, states = part.trace, table(part.trace, "run"), table(part.trace, "state")
    codes = texts(states, "state").code.astype(np.int64)
    state = _state_of_value()[codes]
    is_first = np.append(True, states["thread"][1:] != states["thread"][:-1])[: len(codes)]
    state[codes == ABSENT] = np.where(is_first | (states["event"] < 0), _NOT_KNOWN, _GONE)[codes == ABSENT]
    state[is_first & (codes == ABSENT)] = _NONE
    # A run continues across unknown states of its thread, because the CPU's events show it.
    keep = (state != _RUNNING) & (states["length_cycles"] > 0)
    shown = np.flatnonzero(keep)
    shown = shown[~_is_within_run(part, states["thread"][shown], states["start_cycles"][shown])]
    nothing = np.full(len(shown), -1, np.int64)
    of_states = _Changes(states["thread"][shown], states["start_cycles"][shown], state[shown], nothing, nothing * 0,
                         states["event"][shown])  # fmt: skip
    count = len(runs)
    of_runs = _Changes(runs["thread"], runs["start_cycles"], np.full(count, _RUNNING), runs["cpu"].astype(np.int64),
                       np.maximum(runs["priority"], 0), runs["event"])  # fmt: skip
    ends = _Changes(runs["thread"], runs["end_cycles"], np.full(count, _NOT_KNOWN), np.full(count, -1),
                    np.zeros(count, np.int64), np.full(count, -1))  # fmt: skip
    ends = ends.taken(ends.cycles < trace.window.end)
    every = _Changes.concatenated([of_runs, of_states, ends])
    is_known = np.where(every.state == _NOT_KNOWN, 1, 0)
    every = every.taken(np.lexsort((np.arange(len(is_known)), is_known, every.cycles, every.thread)))
    every = every.taken(_differs(every.thread, every.cycles))
    return _within(part, every)


def _is_within_run(part: TracePart, thread: Ints, cycles: Ints) -> NDArray[np.bool_]:
    """Return whether each thread is running at a time, according to the table `run`, bool (n,)."""
    runs, times = table(part.trace, "run"), part.trace.events.time_cycles
    if not len(runs):
        return np.zeros(len(thread), np.bool_)
    order = np.lexsort((runs["start_cycles"], runs["thread"]))
    of_thread, start, end = (runs[name][order] for name in ("thread", "start_cycles", "end_cycles"))
    position = np.searchsorted(of_thread << 32 | np.searchsorted(times, start),
                               thread << 32 | np.searchsorted(times, cycles), "right") - 1  # fmt: skip
    known = np.maximum(position, 0)
    is_within = (of_thread[known] == thread) & (start[known] <= cycles) & (cycles < end[known])
    return np.asarray(is_within & (position >= 0))


def _differs(*columns: Ints) -> NDArray[np.bool_]:
    """Return which rows differ from the row before in any column, bool (n,); the first row does."""
    out = np.zeros(len(columns[0]), np.bool_)
    out[:1] = True
    for column in columns:
        out[1:] |= column[1:] != column[:-1]
    return out


def _within(part: TracePart, changes: _Changes) -> _Changes:
    """Return the changes in a part: states at its start begin there, and states that a filter excludes are unknown."""
    if part.events is not None:
        shown = np.zeros(len(part.trace.threads), np.bool_)
        shown[changes.thread[(changes.event >= 0) & part.events[changes.event]]] = True
        dropped = np.where(changes.event >= 0, ~part.events[changes.event], ~shown[changes.thread])
        is_state = ~np.isin(changes.state, (_NONE, _GONE))
        state = np.where(dropped & is_state, _NOT_KNOWN, changes.state)
        changes = replace(changes, state=state, cpu=np.where(dropped, -1, changes.cpu)).taken(shown[changes.thread])
    window = part.window
    is_last = np.append(changes.thread[1:] != changes.thread[:-1], True)[: len(changes.thread)]
    is_last[:-1] |= changes.cycles[1:] > window.start
    changes = changes.taken((changes.cycles < window.end) & ((changes.cycles > window.start) | is_last))
    state = np.where((changes.cycles < window.start) & (changes.state == _GONE), _NONE, changes.state)
    changes = replace(changes, cycles=np.maximum(changes.cycles, window.start), state=state)
    is_again = ~_differs(changes.thread, changes.state) & np.isin(changes.state, (_NOT_KNOWN, _NONE, _GONE))
    return changes.taken(~is_again)


def _births(changes: _Changes) -> NDArray[np.intp]:
    """Return the rows of changes by which threads begin to exist: each follows a state of no existence, intp (k,)."""
    follows = np.zeros(len(changes.state), np.bool_)
    follows[1:] = np.isin(changes.state[:-1], (_NONE, _GONE)) & (changes.thread[1:] == changes.thread[:-1])
    return np.flatnonzero(follows)


def _created(births: _Changes) -> _Packets:
    """Return packets for the creation of threads, which come before the packets of their first states."""
    zero = np.zeros(len(births.thread), np.int64)
    return _Packets(births.thread, births.cycles, zero - 1, zero + _CREATED, zero, zero)


def _packets(trace: Trace, changes: _Changes) -> _Packets:
    """Return the packets for state changes, except those for the creation of threads."""
    thread, cycles, state, cpu = changes.thread, changes.cycles, changes.state, changes.cpu
    before, had = _of_row_before(thread, state, _NONE), _of_row_before(thread, cpu, -1)

    def of(selected: NDArray[np.intp], rank: int, value: int, on: Ints, who: Ints | None = None) -> _Packets:
        zero = np.zeros(len(selected), np.int64)
        return _Packets(thread[selected] if who is None else who, cycles[selected], zero + rank, zero + value, on, zero)

    waits = np.flatnonzero((state > 0) & (state != _RUNNING))
    leaves = _Packets(thread[waits], cycles[waits], np.zeros(len(waits), np.int64), state[waits],
                      np.maximum(had[waits], 0), np.zeros(len(waits), np.int64))  # fmt: skip
    runs = np.flatnonzero(state == _RUNNING)
    comes = _Packets(thread[runs], cycles[runs], np.full(len(runs), 4), state[runs], cpu[runs], changes.priority[runs])
    moves = runs[before[runs] == _RUNNING]
    destroyed = np.flatnonzero(state == _GONE)
    ends = destroyed[before[destroyed] != _DEAD]
    # If a thread's state becomes unknown, `unknown` gets its CPU, unless another thread gets it at the same time.
    lost = np.flatnonzero((state == _NOT_KNOWN) & (before > 0) & (before != _DEAD))
    ran, slept = lost[had[lost] >= 0], lost[had[lost] < 0]
    cpus = trace.cpu_count + 1
    ran = ran[~np.isin(cycles[ran] * cpus + had[ran], cycles[runs] * cpus + cpu[runs])]
    free = _free_cpus(trace, cycles[slept])
    # One packet of `unknown` is enough for all threads that leave a CPU at the same time.
    left, of_cpu = np.append(ran, slept), np.append(had[ran], free)
    _, once = np.unique(cycles[left] * cpus + of_cpu, return_index=True)
    return _Packets.concatenated([
        leaves, of(moves, 0, _RUNNABLE, had[moves]),
        of(ends, 0, _DEAD, np.maximum(had[ends], 0)), of(destroyed, 1, _DESTROYED, np.maximum(had[destroyed], 0)),
        of(slept, 2, _RUNNING, free), of(left[once], 3, _RUNNING, of_cpu[once], -1 - of_cpu[once]), comes,
    ])  # fmt: skip


def _of_row_before(thread: Ints, column: Ints, none: int) -> Ints:
    """Return for each row the value of the row before, int64 (n,); `none` for the first row of each thread."""
    out = np.full(len(column), none, np.int64)
    same = thread[1:] == thread[:-1]
    out[1:][same] = column[:-1][same]
    return out


def _free_cpus(trace: Trace, cycles: Ints) -> Ints:
    """Return for each time a CPU on which no thread is known to run, int64 (n,); `trace.cpu_count` = all are busy."""
    runs, free = table(trace, "run"), np.full(len(cycles), trace.cpu_count, np.int64)
    for cpu in range(trace.cpu_count - 1, -1, -1):
        of_cpu = np.flatnonzero(runs["cpu"] == cpu)
        last = np.searchsorted(runs["start_cycles"][of_cpu], cycles, "right") - 1
        is_busy = last >= 0
        is_busy[is_busy] = runs["end_cycles"][of_cpu][last[is_busy]] > cycles[is_busy]
        free[~is_busy] = cpu
    return free
