"""Opens a file that lists several traces on one time axis, and combines their events, links and waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.column_arrays import numbers_of
from satview.base.errors import SourceChangedError, TraceFormatError
from satview.base.named_files import OutsideError, check_named, listed
from satview.base.threads import Once
from satview.base.time import Clock, format_duration
from satview.events.catalogue import Catalogue, CombinedCatalogue
from satview.events.spec import Argument, Payload
from satview.events.user_events import UserEvent
from satview.events.wire import CLASS_SHIFT, WireClass
from satview.formats import registry
from satview.linkage.blockers import Blockers
from satview.linkage.latencies import Latencies
from satview.linkage.links import NO_EVENT, LinkKind, LinkTable
from satview.linkage.transactions import Services, Transactions, transactions
from satview.linkage.waits import MutexCalls, Mutexes, Waits
from satview.store.arguments import is_partition, is_pid
from satview.store.axis import (
    PARTITIONS,
    AxisPart,
    FileAxis,
    Joiner,
    concatenated,
    looks_like_axis,
    read_axis,
    scaled,
    share_of_file,
)
from satview.store.problems import Problems
from satview.store.tables import BufferTable, EventTable, Fragments, ProcessTable, StateIndex, ThreadTable
from satview.store.time_ranges import CPU_NUMBERS, EVERY_CPU, Doubts
from satview.store.trace import Header, Trace

# Combines links and waits of several files that share one time axis.
#
# Links are found in each file alone, as messages, mutexes and interrupts of one target have no effect on another.


_Column = NDArray[Any]
_ROWS: Final = frozenset({"row"})
_THREADS: Final = frozenset({"thread", "client", "server"})
_PIDS: Final = frozenset({"pid", "server_pid", "client_pid"})
_MOMENTS: Final = frozenset({"start", "end"})


def _column(part: AxisPart, name: str, own: _Column) -> _Column:
    """Return a column of one file's table, converted to the axis; its name shows whether it has rows, pids or times."""
    if name in _ROWS or name.endswith("_row"):
        return part.axis_rows(own)
    if name in _THREADS:
        return np.where(own >= 0, part.threads[own], own)
    if name in _PIDS:
        return part.axis_pids(own)
    if name in _MOMENTS:
        return part.cycles(own)
    if name.endswith("_cycles"):
        return np.where(own >= 0, scaled(own, part.trace.clock.cycles_per_s, part.rate), own)
    return own


def _columns(axis: FileAxis, per_file: Sequence[Any], names: Sequence[str]) -> dict[str, _Column]:
    return {
        name: concatenated([_column(part, name, getattr(own, name))
                            for part, own in zip(axis.parts, per_file, strict=True)])
        for name in names
    }  # fmt: skip


def _names(kind: type) -> list[str]:
    return [field.name for field in fields(kind)]


def _event_column(axis: FileAxis, per_file: list[NDArray[np.uint32]]) -> NDArray[np.uint32]:
    """Join columns with an event row or `NO_EVENT` for each event, converted to rows of the axis, uint32 (events,)."""
    out = np.full(len(axis.part_of), NO_EVENT, np.uint32)
    for part, own in zip(axis.parts, per_file, strict=True):
        out[part.rows] = part.axis_rows(own)
    return out


def _rows(axis: FileAxis, per_file: list[NDArray[np.uint32]]) -> NDArray[np.uint32]:
    return np.sort(concatenated([part.axis_rows(own) for part, own in zip(axis.parts, per_file, strict=True)]))


def _table(axis: FileAxis, per_file: list[LinkTable]) -> LinkTable:
    columns = _columns(axis, per_file, ("from_row", "to_row", "certainty"))
    return LinkTable.of(per_file[0].kind, (columns["from_row"], columns["to_row"], columns["certainty"]))


def _waits(axis: FileAxis, per_file: list[Waits]) -> Waits:
    return Waits(**_columns(axis, per_file, _names(Waits)))  # stays sorted by thread: later files have larger rows


def _blockers(axis: FileAxis, per_file: list[Blockers]) -> Blockers:
    columns = _columns(axis, per_file, ("thread", "pid", "certainty"))
    return Blockers(_waits(axis, [table.waits for table in per_file]), **columns)


def _mutexes(axis: FileAxis, per_file: list[Mutexes]) -> Mutexes:
    next_number, starts = 0, []
    for table in per_file:
        starts.append(next_number)
        next_number += 1 + max(
            int(column.max(initial=-1)) for column in (table.gets.mutex, table.gives.mutex, table.of_wait)
        )

    def numbered(column: _Column, number: int) -> _Column:
        return np.where(column >= 0, column + starts[number], column)

    def calls(calls_per_file: list[MutexCalls]) -> MutexCalls:
        columns = _columns(axis, calls_per_file, ("row", "thread"))
        mutex = concatenated([numbered(file_calls.mutex, number) for number, file_calls in enumerate(calls_per_file)])
        order = np.argsort(columns["row"], kind="stable")
        return MutexCalls(columns["row"][order], columns["thread"][order], mutex[order])

    of_wait = concatenated([numbered(table.of_wait, number) for number, table in enumerate(per_file)])
    return Mutexes(calls([table.gets for table in per_file]), calls([table.gives for table in per_file]), of_wait)


def _transactions(axis: FileAxis, per_file: list[Transactions]) -> Transactions:
    columns = _columns(axis, per_file, _names(Transactions))
    columns["parent"] = _numbered([table.parent for table in per_file], _positions(axis, per_file))
    order = np.argsort(columns["send_row"], kind="stable")
    return Transactions(**{name: column[order] for name, column in columns.items()})


def _services(axis: FileAxis, per_file: list[Services]) -> Services:
    sent = [transactions(part.trace) for part in axis.parts]
    columns = _columns(axis, per_file, _names(Services))
    columns["transaction"] = _numbered([table.transaction for table in per_file], _positions(axis, sent))
    return Services(**columns)  # by client


def _positions(axis: FileAxis, per_file: list[Transactions]) -> list[NDArray[np.int64]]:
    """Return for each file the positions of its transactions among all in the order of sending, int64 (n,) each."""
    sends = _columns(axis, per_file, ("send_row",))["send_row"]
    position = np.empty(len(sends), np.int64)
    position[np.argsort(sends, kind="stable")] = np.arange(len(sends))
    return np.split(position, np.cumsum([len(table) for table in per_file])[:-1])


def _numbered(own: list[_Column], positions: list[NDArray[np.int64]]) -> _Column:
    return concatenated([
        np.where(column >= 0, position[column], column) if len(position) else column
        for column, position in zip(own, positions, strict=True)
    ])  # fmt: skip


def _latencies(axis: FileAxis, per_file: list[Latencies]) -> Latencies:
    columns = _columns(axis, per_file, _names(Latencies))
    cause_or_pulse = np.where(columns["cause_row"] >= 0, columns["cause_row"], columns["pulse_row"])
    order = np.lexsort((columns["pulse_row"], columns["ready_row"], cause_or_pulse))
    return Latencies(**{name: column[order] for name, column in columns.items()})


LINK_JOINERS: Final[dict[str, Joiner]] = {
    **{f"links.{kind.name.lower()}": _table for kind in LinkKind},
    "links.partners": _event_column,
    "links.state_ends": _event_column,
    "links.beginnings": _rows,
    "links.waits": _waits,
    "links.blockers": _blockers,
    "links.mutexes": _mutexes,
    "links.transactions": _transactions,
    "links.services": _services,
    "links.latencies": _latencies,
}
"""By name in the cache of a trace (`Trace.cached`), the function that combines the values of its files."""


# Combines the traces of several files into one trace on one time axis.
#
# The axis counts at the rate of the file with the finest clock; if that is the first file, its stamps stay as they are
# unless another file would begin below 0.
# Times of coarser clocks are scaled and rounded down, by less than a cycle of the axis; at equal rates they are only
# shifted. CPUs, threads and processes of the files are numbered one file after the other.


# Joiners: functions that combine the cached results of the files into results for the axis.


_Ints = NDArray[np.int64]
_Slices = tuple[NDArray[np.uint32], _Ints, NDArray[np.bool_]]


def _losses(axis: FileAxis, losses: list[_Ints]) -> _Ints:
    """Return the losses (spans with missing events) of all files on the axis, sorted, int64 (n, 3): start, end, CPU."""
    rows = [_on_axis(part, own) for part, own in zip(axis.parts, losses, strict=True)]
    return np.unique(np.concatenate(rows), axis=0)


def _on_axis(part: AxisPart, lost: _Ints) -> _Ints:
    """Return the losses of a file on the axis; one of all CPUs becomes one for each, as other files lost nothing."""
    cpus = part.trace.cpu_count
    everywhere = lost[:, 2] == EVERY_CPU
    number = np.concatenate((lost[~everywhere, 2], np.tile(np.arange(cpus), int(everywhere.sum()))))
    rows = np.concatenate((lost[~everywhere], np.repeat(lost[everywhere], cpus, axis=0)))
    return np.stack((part.cycles(rows[:, 0]), part.cycles(rows[:, 1]), number + part.first_cpu), axis=1)


def _doubts(axis: FileAxis, doubts: list[Doubts]) -> Doubts:
    cpus = np.zeros(CPU_NUMBERS, np.bool_)
    threads, processes = (np.zeros(int(max(getattr(part, name)[-1] for part in axis.parts)) + 1, np.bool_)
                          for name in ("threads", "processes"))  # fmt: skip
    beyond = sum(part.trace.cpu_count for part in axis.parts)
    for part, own in zip(axis.parts, doubts, strict=True):
        threads[part.threads[own.threads]] = True
        processes[part.processes[own.processes]] = True
        cpus[beyond] |= bool(own.cpus.any())
    return Doubts(cpus, threads, processes)


def _run_slices(axis: FileAxis, slices: list[_Slices]) -> _Slices:
    rows = concatenated([part.axis_rows(own[0]) for part, own in zip(axis.parts, slices, strict=True)])
    ends = concatenated([part.cycles(own[1]) for part, own in zip(axis.parts, slices, strict=True)])
    order = np.argsort(rows, kind="stable")
    columns = rows[order], ends[order], np.concatenate([is_cut for _, _, is_cut in slices])[order]
    for column in columns:
        column.setflags(write=False)
    return columns


def _senders(_axis: FileAxis, senders: list[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    return np.concatenate(([False], *(is_sender[1:] for is_sender in senders)))


JOINERS: Final[dict[str, Joiner]] = {
    **LINK_JOINERS,
    "trace.senders": _senders,
    "losses": _losses,
    "doubts": _doubts,
    "timeline.run_slices": _run_slices,
}
"""Joiners by the name of the cached result (`Trace.cached`), for `FileAxis.joiners`."""


# Arguments of events of several files, with the pids and partitions of the axis.


# The payload word that contains a pid, by class, for code that reads words of THREAD, PROCESS and COMM events. In
# arguments, pids are recognized by name.
_PID_WORD_OF_CLASS: Final[dict[int, int]] = {WireClass.PR_TH: 0, WireClass.COMM: 1}
Words = NDArray[np.uint32]


class AxisPayloads:
    """Implements `store.trace.PayloadSource` for a trace of several files.

    Args:
        axis: The files.
        codes: uint16, (events,), event codes of the axis.
    """

    def __init__(self, axis: FileAxis, codes: NDArray[np.uint16]) -> None:
        self._axis, self._codes = axis, codes

    @property
    def described(self) -> dict[int, UserEvent]:
        """The user's descriptions of events, by event code; equal for all files."""
        return self._axis.parts[0].trace.payloads.described

    @property
    def check(self) -> Callable[[], None]:
        """Function that raises SourceChangedError if a file is no longer the one that was opened."""
        return self._check

    def _check(self) -> None:
        for part in self._axis.parts:
            try:
                part.trace.payloads.check()
            except SourceChangedError as error:
                raise SourceChangedError(error.path, error.offset, f"{part.name}: {error.what}", error.remedy) from None

    def close(self) -> None:
        """Close all files; arguments cannot be read any more."""
        for part in self._axis.parts:
            part.trace.payloads.close()

    def tolerate_loss(self) -> None:
        """Let `decode` report that a file has changed in place of arguments from now on, instead of raising."""
        for part in self._axis.parts:
            part.trace.payloads.tolerate_loss()

    def words(self, event: int) -> Words:
        """Return all payload words of one event, uint32 (words,), with a pid converted to that of the axis."""
        part, own = self._file_and_row(event)
        words = part.trace.payloads.words(own).copy()
        word = _PID_WORD_OF_CLASS.get(int(self._codes[event]) >> CLASS_SHIFT)
        if word is not None and word < len(words):
            words[word] = _axis_pids(part, words[word : word + 1])[0]
        return words

    def raw(self, event: int) -> bytes:
        """Return the payload bytes of one event as they are in its file."""
        part, own = self._file_and_row(event)
        return part.trace.payloads.raw(own)

    def decode(self, event: int, most: int | None = None) -> Payload:
        """Return the arguments of one event as `PayloadSource.decode`; pids are those of the axis, with a note."""
        part, own = self._file_and_row(event)
        payload = part.trace.payloads.decode(own, most)
        return replace(payload, arguments=tuple(_with_axis_number(part, argument) for argument in payload.arguments))

    def column(self, events: NDArray[np.integer], word: int) -> Words:
        """Return payload word `word` of many events with pids of the axis, uint32 (len(events),); 0 = not there."""
        out = np.zeros(len(events), np.uint32)
        for part, rows, own in self._axis.split(events):
            out[rows] = self._with_pids(part, events[rows], word, part.trace.payloads.column(own, word))
        return out

    def pair(self, events: NDArray[np.integer], word: int) -> tuple[Words, Words]:
        """Return the payload words `word` and `word` + 1 of many events; 0 if an event is shorter.

        Pids are those of the axis.

        Returns:
            Two arrays, uint32 (len(events),) each.
        """
        firsts, seconds = np.zeros(len(events), np.uint32), np.zeros(len(events), np.uint32)
        for part, rows, own in self._axis.split(events):
            low, high = part.trace.payloads.pair(own, word)
            firsts[rows] = self._with_pids(part, events[rows], word, low)
            seconds[rows] = self._with_pids(part, events[rows], word + 1, high)
        return firsts, seconds

    def block(self, events: NDArray[np.integer], count: int) -> Words:
        """Return the first words of many events with pids of the axis, uint32 (len(events), count); 0 = not there."""
        out = np.zeros((len(events), count), np.uint32)
        for part, rows, own in self._axis.split(events):
            out[rows] = part.trace.payloads.block(own, count)
            for word in set(_PID_WORD_OF_CLASS.values()):
                if word < count:
                    out[rows, word] = self._with_pids(part, events[rows], word, out[rows, word])
        return out

    @contextmanager
    def reading_ahead(self, events: NDArray[np.uint32]) -> Iterator[None]:
        """Speed up repeated access to the payload words of some events within the context."""
        with ExitStack() as stack:
            for part, _, own in self._axis.split(events):
                stack.enter_context(part.trace.payloads.reading_ahead(own))
            yield

    def headers(self) -> None:
        """Return None in place of the header words of slots, because the slots are from several targets."""

    def word_counts(self, events: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of payload words of many events, padding included, int64 (len(events),)."""
        out = np.zeros(len(events), np.int64)
        for part, rows, own in self._axis.split(events):
            out[rows] = part.trace.payloads.word_counts(own)
        return out

    def _file_and_row(self, event: int) -> tuple[AxisPart, int]:
        return self._axis.parts[int(self._axis.part_of[event])], int(self._axis.own_row[event])

    def _with_pids(self, part: AxisPart, events: NDArray[np.integer], word: int, values: Words) -> Words:
        classes = [number for number, pid_word in _PID_WORD_OF_CLASS.items() if pid_word == word]
        if not classes:
            return values
        rows = np.flatnonzero(np.isin(self._codes[events] >> CLASS_SHIFT, classes))
        values = values.copy()
        values[rows] = _axis_pids(part, values[rows])
        return values


def _axis_pids(part: AxisPart, words: Words) -> Words:
    return part.axis_pids(words.view(np.int32).astype(np.int64)).astype(np.int32).view(np.uint32)


def _with_axis_number(part: AxisPart, argument: Argument) -> Argument:
    if not isinstance(argument.value, int) or not (is_pid(argument.name) or is_partition(argument.name)):
        return argument
    numbers = part.axis_pids if is_pid(argument.name) else part.axis_partitions
    number = int(numbers(np.array([argument.value], np.int64))[0])
    if number in (argument.value, -1):
        return argument
    note = f"{argument.text} in {part.name}" + (f"; {argument.note}" if argument.note else "")
    return replace(argument, value=number, text=str(number), note=note)


PS_PER_S: Final = 10**12
FORMAT: Final = "axis"
_MOST_CPUS: Final = 255  # a CPU number has eight bits; the last number is for CPUs that occur only in damaged slots
_MOST_EVENTS: Final = 2**32 - 16
_LARGEST: Final = 2**62
_MOST_PID: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Member:
    """A file to put on the axis.

    Attributes:
        name: Name of the file on the axis.
        trace: Trace of the file.
        offset_ps: Picoseconds from the first event of the first file to the first event of this file.
    """

    name: str
    trace: Trace
    offset_ps: int = 0


def trace_on_axis(path: Path, members: Sequence[Member]) -> Trace:
    """Return one trace with the events of several traces, of which the first has no offset.

    Raises TraceFormatError if the files together have too many CPUs, events or kinds of events, or an offset is too
    large.
    """
    _refuse(path, members)
    rate = max(member.trace.clock.cycles_per_s for member in members)
    parts, catalogue = _parts(path, members, rate)
    times = concatenated([part.cycles(part.trace.events.time_cycles) for part in parts])
    order = np.argsort(times, kind="stable")
    start = int(times[order[0]]) if len(order) else 0
    axis = _axis([_as_named(part, start) for part in parts], order)
    parts = list(axis.parts)
    events = _events(parts)
    problems = _problems(parts, rate)
    earliest = min(parts, key=lambda part: part.window.start)
    return Trace(
        path,
        FORMAT,
        _header(parts),
        None,
        catalogue.release,
        parts[0].trace.byte_order,
        _clock(members[0].trace, rate, start, (parts[0].at_cycles - _base(members, rate)) // rate),
        sum(part.trace.cpu_count for part in parts),
        sum(part.trace.slot_count for part in parts),
        events,
        _threads(parts),
        _processes(parts),
        _states(parts),
        _buffers(parts),
        AxisPayloads(axis, events.code),
        problems,
        catalogue,
        int(earliest.cycles(np.array([earliest.trace.dump_end_cycles]))[0]),
        _fragments(parts),
        np.sort(concatenated([part.rows[part.trace.truncated] for part in parts]).astype(np.uint32)),
        cpu_titles=tuple(title for part in parts for title in part.trace.cpu_titles),
        axis=axis,
    )


def _refuse(path: Path, members: Sequence[Member]) -> None:
    cpus = sum(member.trace.cpu_count for member in members)
    if cpus > _MOST_CPUS:
        raise TraceFormatError(
            path, None, f"the files have {cpus} CPUs together", f"at most {_MOST_CPUS} fit; name fewer"
        )
    if sum(len(member.trace.events) for member in members) > _MOST_EVENTS:
        raise TraceFormatError(path, None, "the files have too many events together", "name fewer, or cut them")


def _parts(path: Path, members: Sequence[Member], rate: int) -> tuple[list[AxisPart], Catalogue]:
    """Return the files as parts of the axis, whose event rows are still missing, and the catalogue of all files."""
    base, offsets = _base(members, rate), [0, *(member.offset_ps for member in members[1:])]
    starts = [base + (offset * rate + PS_PER_S // 2) // PS_PER_S for offset in offsets]
    # If a file would begin below 0, all are moved by whole seconds, because negative times mean unknown ones.
    moved = max(0, -(min(starts) // rate)) * rate
    catalogue, codes = _codes(path, members)
    pids = _pids([member.trace for member in members])
    parts: list[AxisPart] = []
    cpu, thread, process = 0, 0, 0
    for number, (member, start) in enumerate(zip(members, starts, strict=True)):
        trace = member.trace
        length = (trace.window.length // trace.clock.cycles_per_s + 1) * rate
        if not -_LARGEST < start < _LARGEST - length:
            raise TraceFormatError(path, None, f"the times of {member.name} are too far away", "check its offset")
        threads, processes = (np.arange(count, dtype=np.int64) for count in (len(trace.threads), len(trace.processes)))
        threads[1:] += thread
        processes[1:] += process
        parts.append(AxisPart(member.name, trace, trace.window.start, start + moved, rate, cpu, number * PARTITIONS,
                              np.empty(0, np.uint32), threads, processes, codes[number], pids[number],
                              trace.processes.names))  # fmt: skip
        cpu, thread, process = cpu + trace.cpu_count, thread + len(threads) - 1, process + len(processes) - 1
    return parts, catalogue


def _base(members: Sequence[Member], rate: int) -> int:
    """Return the start of the axis in cycles of `rate`: the start of the first file, or 0 if this start is too late."""
    trace = members[0].trace
    base = trace.window.start * rate // trace.clock.cycles_per_s
    return base if abs(base) < _LARGEST // 2 else 0


def _clock(trace: Trace, rate: int, start: int, moved_s: int = 0) -> Clock:
    """Return the clock of the axis, made of that of the first file, whose times were moved by `moved_s` seconds."""
    own = trace.clock
    boot_time_s = None if own.boot_time_s is None else own.boot_time_s - moved_s
    return replace(own, cycles_per_s=rate, start_cycles=start, boot_time_s=boot_time_s)


def _codes(path: Path, members: Sequence[Member]) -> tuple[Catalogue, list[NDArray[np.uint16]]]:
    """Return the catalogue of the axis, and tables from the event codes of each file to its own, uint16 (32768,).

    The axis uses the codes of the first QNX file, because calls and states are looked up by their QNX numbers.
    """
    books = [member.trace.catalogue for member in members]
    qnx_book = next((book for book in books if book.release.is_qnx), books[0])
    if all(book is qnx_book for book in books):
        same = np.arange(len(qnx_book.class_index_of_code), dtype=np.uint16)
        return qnx_book, [same] * len(books)
    combined = CombinedCatalogue(qnx_book)
    try:
        tables = [combined.take(book, np.flatnonzero(member.trace.code_counts))
                  for book, member in zip(books, members, strict=True)]  # fmt: skip
    except ValueError as error:
        raise TraceFormatError(path, None, "the files have too many kinds of events together", "name fewer") from error
    combined.freeze()
    return combined, tables


def _pids(traces: Sequence[Trace]) -> list[_Ints]:
    """Return the pids on the axis of each file's processes, int64; the number of the file gives leading digits.

    Pid 7 of the second file becomes 1000007 if no pid has more than six digits; pids of the first file are unchanged.
    """
    largest = max(int(trace.processes.pid.max(initial=0)) for trace in traces)
    step = 10 ** len(str(largest))
    if step * len(traces) > _MOST_PID:  # such large pids come from damaged slots and are meaningless
        step = _MOST_PID // len(traces)
    pids = []
    for number, trace in enumerate(traces):
        pid = trace.processes.pid.astype(np.int64)
        pids.append(np.where(pid >= 0, (pid if step > largest else np.minimum(pid, step - 1)) + number * step, pid))
    return pids


def _axis(parts: list[AxisPart], order: NDArray[np.intp]) -> FileAxis:
    """Return the axis; `order` has for each of its rows the index into the concatenated events of all files."""
    position = np.empty(len(order), np.uint32)
    position[order] = np.arange(len(order), dtype=np.uint32)
    part_of, own = np.empty(len(order), np.uint8), np.empty(len(order), np.uint32)
    complete, first_row = [], 0
    for number, part in enumerate(parts):
        last = first_row + len(part.trace.events)
        rows = position[first_row:last].copy()
        part_of[rows], own[rows] = number, np.arange(len(rows), dtype=np.uint32)
        rows.setflags(write=False)
        complete.append(replace(part, rows=rows))
        first_row = last
    for column in (part_of, own):
        column.setflags(write=False)
    return FileAxis(tuple(complete), part_of, own, JOINERS)


def _as_named(part: AxisPart, start: int) -> AxisPart:
    """Return a part whose names, CPU titles and time zero (`start`) are those of the axis, for texts about the part."""
    own, clock = part.trace.processes, part.trace.clock
    processes = ProcessTable(own.pid, own.parent_pid, ("", *(_process_name(part, row) for row in range(1, len(own)))),
                             own.created_cycles, own.destroyed_cycles)  # fmt: skip
    titles = tuple(f"{part.name} {part.trace.cpu_title(cpu)}" for cpu in range(part.trace.cpu_count))
    clock = replace(clock, start_cycles=part.own_cycles(start))
    return replace(part, trace=replace(part.trace, processes=processes, clock=clock, cpu_titles=titles, _cached=Once()))


def _events(parts: list[AxisPart]) -> EventTable:
    cpus = sum(part.trace.cpu_count for part in parts)
    threads = 1 + sum(len(part.threads) - 1 for part in parts)
    slots = sum(part.trace.slot_count for part in parts)
    count = sum(len(part.rows) for part in parts)
    cpu_of = np.arange(_MOST_CPUS + 1)
    time, code, cpu = np.empty(count, np.int64), np.empty(count, np.uint16), np.empty(count, np.uint8)
    thread: NDArray[np.unsignedinteger] = np.empty(count, np.uint16 if threads < 1 << 16 else np.uint32)
    slot: NDArray[np.unsignedinteger] = np.empty(count, np.uint32 if slots < 1 << 32 else np.uint64)
    slot_count = np.empty(count, np.result_type(*(part.trace.events.slot_count for part in parts)))
    for part, first_slot in zip(parts, _first_slots(parts), strict=True):
        own, rows = part.trace.events, part.rows
        time[rows] = part.cycles(own.time_cycles)
        code[rows] = part.codes.take(own.code)
        table = np.where(cpu_of < part.trace.cpu_count, cpu_of + part.first_cpu, cpus).astype(np.uint8)
        cpu[rows] = table.take(own.cpu)
        thread[rows] = part.threads.astype(thread.dtype).take(own.thread)
        slot[rows] = own.slot + slot.dtype.type(first_slot)
        slot_count[rows] = own.slot_count
    return EventTable(time, code, cpu, thread, slot, slot_count)


def _first_slots(parts: list[AxisPart]) -> list[int]:
    """Return the number that each file's first slot has when the slots of all files are numbered consecutively."""
    return [sum(before.trace.slot_count for before in parts[:number]) for number in range(len(parts))]


def _threads(parts: list[AxisPart]) -> ThreadTable:
    tables = [part.trace.threads for part in parts]
    return ThreadTable(
        np.concatenate(([-1], *(part.pids[part.trace.threads.process[1:]] for part in parts))).astype(np.int32),
        np.concatenate(([-1], *(table.tid[1:] for table in tables))).astype(np.int32),
        np.concatenate(([0], *(part.processes[part.trace.threads.process[1:]] for part in parts))).astype(np.int32),
        ("", *(name for table in tables for name in table.names[1:])),
    )


def _processes(parts: list[AxisPart]) -> ProcessTable:
    tables = [part.trace.processes for part in parts]

    def moments(name: str) -> _Ints:
        own = [getattr(table, name)[1:] for table in tables]
        on_axis = [np.where(cycles >= 0, part.cycles(cycles), -1) for part, cycles in zip(parts, own, strict=True)]
        return np.concatenate(([-1], *on_axis)).astype(np.int64)

    parents = [part.axis_pids(table.parent_pid[1:].astype(np.int64)) for part, table in zip(parts, tables, strict=True)]
    return ProcessTable(
        np.concatenate(([-1], *(part.pids[1:] for part in parts))).astype(np.int32),
        np.concatenate(([-1], *parents)).astype(np.int32),
        ("", *(name for table in tables for name in table.names[1:])),
        moments("created_cycles"),
        moments("destroyed_cycles"),
    )


def _process_name(part: AxisPart, row: int) -> str:
    """Return a process name with the file name before it: `guest:devb-ahci`, or `guest:pid 7` without a name."""
    name = part.trace.short_process_name(row)
    return f"{part.name}:{name or f'pid {int(part.trace.processes.pid[row])}'}"


def _states(parts: list[AxisPart]) -> StateIndex:
    of_nobody = np.sort(np.concatenate([part.rows[part.trace.states.of(0)] for part in parts]))
    rest = [part.rows[part.trace.states.event[part.trace.states.start[1] :]] for part in parts]
    counts = np.concatenate([np.diff(part.trace.states.start)[1:] for part in parts])
    start = np.concatenate(([0], np.cumsum(np.concatenate(([len(of_nobody)], counts))))).astype(np.int64)
    return StateIndex(np.concatenate((of_nobody, *rest)).astype(np.uint32), start)


def _buffers(parts: list[AxisPart]) -> BufferTable:
    tables = [part.trace.buffers for part in parts]
    slots = [table.slot + first_slot for table, first_slot in zip(tables, _first_slots(parts), strict=True)]
    return BufferTable(
        np.concatenate(slots),
        np.concatenate([np.minimum(table.cpu.astype(np.int64) + part.first_cpu, _MOST_CPUS)
                        for part, table in zip(parts, tables, strict=True)]).astype(np.uint8),
        concatenated([table.sequence for table in tables]),
        concatenated([table.slots for table in tables]),
        np.concatenate([part.cycles(part.trace.buffers.time_cycles) for part in parts]),
        concatenated([table.lost_before for table in tables]),
    )  # fmt: skip


def _fragments(parts: list[AxisPart]) -> Fragments:
    event = np.concatenate([part.rows[part.trace.fragments.event] for part in parts])
    if not len(event):
        return Fragments.none()
    order = np.argsort(event, kind="stable")
    starts, slots, before = [], [], 0
    for part, first_slot in zip(parts, _first_slots(parts), strict=True):
        fragments = part.trace.fragments
        starts.append(np.stack((fragments.start[:-1] + before, np.diff(fragments.start)), axis=1))
        slots.append(fragments.slot.astype(np.int64) + first_slot)
        before += len(fragments.slot)
    start, count = np.concatenate(starts)[order].T
    slot: NDArray[Any] = np.concatenate(slots)
    first_of = np.concatenate(([0], np.cumsum(count)))
    return Fragments(event[order].astype(np.uint32), first_of, slot[numbers_of(start, count)])


def _header(parts: list[AxisPart]) -> Header:
    pairs = [("FILE_COUNT", str(len(parts)))]
    for number, part in enumerate(parts, 1):
        pairs += [(f"FILE_{number}_NAME", part.name), (f"FILE_{number}", str(part.trace.path)),
                  (f"FILE_{number}_FORMAT", f"{part.trace.format}, release {part.trace.release}")]  # fmt: skip
    return Header(tuple(pairs))


def _problems(parts: list[AxisPart], rate: int) -> Problems:
    """Return the problems of all files and of the axis itself."""
    out = Problems()
    for part in parts:
        for problem in part.trace.problems:
            time = None if problem.time_cycles is None else int(part.cycles(np.array([problem.time_cycles]))[0])
            out.add(problem.kind.slug, problem.detail, problem.offset, problem.count, time, problem.line,
                    f"{part.name} {problem.file}".rstrip())  # fmt: skip
        if part.trace.clock.cycles_per_s != rate:
            own = part.trace.clock.cycles_per_s
            out.add("scaled-clock", f"its clock counts at {own:,} Hz, the axis at {rate:,} Hz", file=part.name)
    first_window = parts[0].window
    for part in parts[1:]:
        gap = max(part.window.start - first_window.end, first_window.start - part.window.end)
        if gap >= 0:
            out.add("no-overlap", f"{format_duration(gap * 10**9 // rate)} between it and {parts[0].name}",
                    time_cycles=part.window.start, file=part.name)  # fmt: skip
    return out


# Opens a file that lists several traces on one time axis.


_CERTAIN: Final = 100
_Progress = Callable[[float], None]


def score(first_bytes: bytes, path: Path) -> int:
    """Return how likely a file is an axis file, 0 to 100."""
    return _CERTAIN if looks_like_axis(first_bytes, path) else 0


def open_axis(path: Path, progress: _Progress | None = None, cancelled: Callable[[], bool] | None = None) -> Trace:
    """Open all files listed in an axis file as one trace."""
    entries = read_axis(path)
    _check(path, [entry.path for entry in entries])
    members = []
    for number, entry in enumerate(entries):
        trace = registry.open_trace(entry.path, share_of_file(progress, number, len(entries)), cancelled)
        members.append(Member(entry.name, trace, entry.offset_ps))
    return trace_on_axis(path, members)


def _check(path: Path, files: list[Path]) -> None:
    try:
        check_named(path, files)
    except OutsideError as error:
        remedy = (
            f"if you trust it, allow it by `satview together --allow {path.name}`; to be asked, open it in a window"
        )
        raise TraceFormatError(
            path, 0, f"it names {listed(error.files)} outside of its folder, which is not opened unasked", remedy
        ) from error
