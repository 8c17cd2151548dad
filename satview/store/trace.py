"""An open trace: the data before its events, and all data read from it, read-only, independent of the file format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import UsageError
from satview.base.safe_text import counted
from satview.base.threads import Once
from satview.base.time import Clock, MomentAxis, TimeWindow, format_duration
from satview.events.catalogue import Catalogue
from satview.events.spec import Argument, EventSpec, Payload, Release
from satview.events.user_events import UserEvent
from satview.events.wire import CODE_COUNT
from satview.store.problems import Problems
from satview.store.tables import BufferTable, EventTable, Fragments, ProcessTable, StateIndex, ThreadTable

# The data before the events of a trace: the text header and the system page, as plain values.


@dataclass(frozen=True, slots=True)
class CpuInfo:
    """One CPU of the target, from the system page."""

    number: int
    name: str = ""
    speed_mhz: int = 0
    flags: int = 0
    flag_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SystemInfo:
    """Contents of the system page, as plain values.

    Attributes:
        length: Bytes of the system page.
        processor: `X86`, `ARM`, `AArch64`, ...
        cpus: The CPUs in the page; may be fewer than the CPUs of the trace.
        boot_time_s: Seconds since 1970 UTC; None if not given.
        strings: Typed strings such as HOSTNAME, in order, (name, text).
        values: All other fields by name, for `info` and for listings.
        raw: The bytes of the page.
    """

    length: int
    processor: str
    cpus: tuple[CpuInfo, ...]
    boot_time_s: int | None
    strings: tuple[tuple[str, str], ...]
    values: dict[str, int]
    raw: bytes = b""


@dataclass(frozen=True, slots=True)
class Header:
    """The text header: keys without `TRACE_`, values as text, in file order.

    Attributes:
        pairs: (key, value), without BEGIN and END.
        length: Bytes of the header, including BEGIN and END.
    """

    pairs: tuple[tuple[str, str], ...]
    length: int = 0

    def get(self, key: str, default: str = "") -> str:
        """Return the last value of a key, or the default if the header does not have the key."""
        for name, value in reversed(self.pairs):
            if name == key:
                return value
        return default

    def date(self, key: str) -> datetime | None:
        """Parse the value of a key as a date in the form of `DATE`, in UTC; None if it is missing or invalid."""
        try:
            return datetime.strptime(self.get(key), "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
        except ValueError:
            return None

    def number(self, key: str) -> int | None:
        """Parse the value of a key as a decimal number; None if it is missing or invalid."""
        text = self.get(key).strip()
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else None


# An open trace: all data read from it, read-only, independent of the file format.


SSH_PID: Final = "CAPTURE_SSH_PID"  # header key: pid of the process that sent the trace during the capture
PREDICTED_FROM, PREDICTED_CHANGES = "PREDICTED_FROM", "PREDICTED_CHANGES"
"""Header keys of a predicted trace: the trace it was predicted from, and the changes."""
_TITLE_CHARACTERS: Final = 200  # maximum length of the changes, and of the original, in a title
OF_CAPTURE: Final = " (of this capture)"  # appended to the name of the process with `SSH_PID`
LOGGER: Final = "tracelogger"  # program that writes traces: its own activity is shown separately

# Access to the payloads of a trace; each format has its own source.


class PayloadSource(Protocol):
    """Source of the payloads of a trace; each format has its own.

    `pair` and `block` read column by column by default, for formats that have no faster way.
    """

    @property
    def described(self) -> dict[int, UserEvent]:
        """The user's descriptions of events, by event code; set by `arguments.describe_events`."""

    @property
    def check(self) -> Callable[[], None]:
        """A function that raises SourceChangedError if the file is no longer the one that was opened."""

    def close(self) -> None:
        """Close the file, if there is one: arguments cannot be read afterwards."""

    def tolerate_loss(self) -> None:
        """From now on, let `decode` report a changed file in place of arguments instead of raising."""

    def words(self, event: int) -> NDArray[np.uint32]:
        """Return all payload words of one event in host order, including padding.

        Returns:
            uint32 (words,).
        """

    def raw(self, event: int) -> bytes:
        """Return the payload bytes of one event as stored in the file."""

    def decode(self, event: int, most: int | None = None) -> Payload:
        """Return the named arguments of one event.

        Args:
            event: Row of the event table.
            most: Maximum number of words without a known argument, and of bytes of a text, to return; the last argument
                or the note of the text contains the number left out. None = no limit.
        """

    def column(self, events: NDArray[np.integer], word: int) -> NDArray[np.uint32]:
        """Return payload word number `word` of many events, shape (len(events),); 0 for shorter events."""

    def pair(self, events: NDArray[np.integer], word: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return the payload words `word` and `word` + 1 of many events, like `column`; faster if `word` is even.

        Returns:
            Two arrays, uint32 (len(events),) each.
        """
        return self.column(events, word), self.column(events, word + 1)

    def block(self, events: NDArray[np.integer], count: int) -> NDArray[np.uint32]:
        """Return the first `count` payload words of many events, shape (len(events), count); 0 for missing words."""
        return np.stack([self.column(events, word) for word in range(count)], axis=1)

    def reading_ahead(self, events: NDArray[np.uint32]) -> AbstractContextManager[None]:
        """Speed up repeated access to the payload words of some events within the context.

        Args:
            events: uint32 (n,), rows of the event table, ascending.
        """

    def headers(self) -> NDArray[np.uint32] | None:
        """Return the header word of the first slot of every event, uint32 (events,); None for formats without slots."""

    def word_counts(self, events: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of payload words of many events, including padding.

        Returns:
            int64 (len(events),).
        """


_CHUNK = 1 << 16


def walk(
    events: EventTable,
    codes: NDArray[np.bool_],
    threads: NDArray[np.bool_],
    cpu: int | None,
    bounds: tuple[int, int],
    rows: NDArray[np.integer] | None,
) -> Iterator[int]:
    """Yield the rows of the matching events, ascending; events are tested in blocks of 65,536.

    Args:
        events: The events of the trace.
        codes: bool (32768,), which codes match.
        threads: bool (threads,), which rows of the thread table match.
        cpu: Number of the CPU; None = any.
        bounds: The first row, and the row after the last.
        rows: Integers (n,), ascending: candidates; None = all rows.
    """
    for start in range(bounds[0], bounds[1], _CHUNK):
        part = slice(start, min(start + _CHUNK, bounds[1]))
        mask = codes[events.code[part]] & threads[events.thread[part]]
        if cpu is not None:
            mask &= events.cpu[part] == cpu
        fitting = np.flatnonzero(mask) + start
        if rows is not None:
            fitting = np.intersect1d(
                fitting, rows[np.searchsorted(rows, part.start) : np.searchsorted(rows, part.stop)]
            )
        yield from fitting.tolist()


def codes_of_names(catalogue: Catalogue, names: Sequence[str]) -> NDArray[np.bool_]:
    """Return which codes match any of the names, bool (32768,); all codes if there are no names.

    Args:
        catalogue: The names of the release.
        names: Printed classes (`KER_CALL`) and event names (`MSG_SENDV`, `KER_EXIT/MSG_SENDV`).

    Raises:
        UsageError: A name is neither a class nor an event of this release.
    """
    table = np.full(len(catalogue.class_index_of_code), not names)
    classes = {entry.name: i for i, entry in enumerate(catalogue.classes)}
    for name in names:
        if name in classes:
            table |= catalogue.class_index_of_code == classes[name]
        elif codes := catalogue.find(name):
            table[list(codes)] = True
        else:
            near = ", ".join((*catalogue.suggest(name), *classes)[:5])
            raise UsageError(f"{name!r} is neither a class nor an event of {catalogue.release}; there are {near}")
    return table


_Kept = TypeVar("_Kept")


@dataclass(frozen=True, slots=True)
class PidinNames:
    """Names from the output of `pidin` on the target (`formats.outside_names`).

    Attributes:
        path: The text file.
        by_pid: Names of processes.
        by_thread: Names of threads by pid and tid.
        notes: Unused parts of the text, a sentence each.
        process_rows, thread_rows: Rows of a trace whose names come from the text.
    """

    path: Path
    by_pid: Mapping[int, str]
    by_thread: Mapping[tuple[int, int], str]
    notes: tuple[str, ...] = ()
    process_rows: frozenset[int] = frozenset()
    thread_rows: frozenset[int] = frozenset()

    def __str__(self) -> str:
        processes, threads = len(self.process_rows), len(self.thread_rows)
        return (f"{processes:,} process name{'s' * (processes != 1)} and {threads:,} thread name"
                f"{'s' * (threads != 1)} from pidin ({self.path.name})")  # fmt: skip


Listed = tuple[NDArray[np.int64], NDArray[np.int32]]


class Axis(Protocol):
    """Interface to the files of a trace that consists of several files (`store.axis`)."""

    def combined(self, name: str, make: Callable[[Trace], Any]) -> Any | None:
        """Return a value for `Trace.cached`, combined from values of the files; None = compute it for the whole trace.

        Args:
            name: As for `Trace.cached`.
            make: As for `Trace.cached`; called with the trace of each file.
        """


def _count_codes(trace: Trace) -> NDArray[np.int64]:
    counts = np.zeros(CODE_COUNT, np.int64)
    for start in range(0, len(trace.events), 1 << 17):
        counts += np.bincount(trace.events.code[start : start + (1 << 17)], minlength=CODE_COUNT)
    return counts


@dataclass(frozen=True, slots=True, weakref_slot=True, repr=False)
class Trace:
    """One trace, read-only.

    Attributes:
        path: The file.
        format: Name in `satview.formats.registry`: `kev`, `qst`, `traceprinter`, `thread_trace`, ...
        header: The text header.
        system: Contents of the system page; None without a system page.
        release: Selects the event tables.
        byte_order: `little` or `big`, for the file's binary fields.
        clock: Converts cycles to nanoseconds.
        cpu_count: CPUs of the target, from header, system page and events; others occur only in damaged slots.
        slot_count: Slots in the event region, including damaged ones.
        events, threads, processes, states, buffers: The tables.
        fragments: Slots of combine events that are not adjacent.
        dump_end_cycles: End of the initial state dump; before the first event if there is none.
        truncated: uint32, ascending: rows of combine events whose end is missing.
        payloads: Access to arguments.
        problems: Problems of the file.
        pairs: uint32, (n,): row of the event that ends or begins the same call, 2**32 - 1 = none; None if the format
            does not pair calls, so that `linkage` pairs them.
        cpu_titles: Titles of the CPU lanes if the lanes are not CPUs, such as `LWP 3`; empty = `CPU 0`, ...
        lines: Number of lines of a listing by kind, adding up to all of its lines; empty for other formats.
        gaps: int64 (n, 4): ranges with missing events that no BUFFER event reports: last time before, first time after,
            CPU (-1 = all), and time of the BUFFER event that shows this loss at another place (-1 = none).
        listed: Rows of events whose arguments come from a line of a listing, ascending, and their layout variants.
        axis: The files of the trace if there are several; None for a trace of one target.
        pidin: Source of names that are missing in the trace; None = none.
    """

    path: Path
    format: str
    header: Header
    system: SystemInfo | None
    release: Release
    byte_order: str
    clock: Clock
    cpu_count: int
    slot_count: int
    events: EventTable
    threads: ThreadTable
    processes: ProcessTable
    states: StateIndex
    buffers: BufferTable
    payloads: PayloadSource
    problems: Problems
    catalogue: Catalogue
    dump_end_cycles: int = -1
    fragments: Fragments = field(default_factory=Fragments.none)
    truncated: NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, np.uint32))
    pairs: NDArray[np.uint32] | None = None
    cpu_titles: tuple[str, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)
    gaps: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 4), np.int64))
    listed: Listed | None = None
    axis: Axis | None = None
    pidin: PidinNames | None = None
    _cached: Once = field(default_factory=Once, repr=False, compare=False)

    def __repr__(self) -> str:
        return (f"<{type(self).__name__} {self.path.name}: {counted(len(self.events), 'event')} in "
                f"{format_duration(self.duration_ns)}, {counted(self.cpu_count, 'CPU')}, "
                f"{self.release}>")  # fmt: skip

    def iter_events(
        self,
        *names: str,
        pid: int | None = None,
        tid: int | None = None,
        cpu: int | None = None,
        start_ns: int | None = None,
        end_ns: int | None = None,
        rows: NDArray[np.integer] | None = None,
    ) -> Iterator[Event]:
        """Yield events one at a time, in time order: `trace.iter_events("KER_CALL", pid=7)`.

        For millions of events columns are far faster: `trace.events.time_cycles`, `trace.payloads.column(rows, 0)`.

        Args:
            names: Printed classes (`KER_CALL`) and event names (`MSG_SENDV`, `KER_EXIT/MSG_SENDV`), of which an event
                must match any; none = all events.
            pid: Process id of the event's thread; None = any, as for each of the following arguments.
            tid: Thread number of the event's thread.
            cpu: Number of the CPU.
            start_ns: Earliest time, in nanoseconds since the first event.
            end_ns: End of the range (not included), in nanoseconds since the first event.
            rows: Candidate event rows, ascending, such as those that pass a filter.

        Raises:
            UsageError: A name is neither a class nor an event of the trace's release.
        """
        times, threads = self.events.time_cycles, np.ones(len(self.threads), np.bool_)
        if pid is not None:
            threads &= self.threads.pid == pid
        if tid is not None:
            threads &= self.threads.tid == tid
        start_row = 0 if start_ns is None else int(np.searchsorted(times, self.clock.cycles(start_ns)))
        end_row = len(times) if end_ns is None else int(np.searchsorted(times, self.clock.cycles(end_ns)))
        fitting = walk(self.events, codes_of_names(self.catalogue, names), threads, cpu, (start_row, end_row), rows)
        return (Event(self, row) for row in fitting)

    @property
    def code_counts(self) -> NDArray[np.int64]:
        """Events per code, shape (32768,), int64; counted on first use."""
        return self.cached("code_counts", _count_codes)

    def cached(self, name: str, make: Callable[[Trace], _Kept]) -> _Kept:
        """Return `make(self)`, computed once for each name, even if several threads ask; do not modify the value.

        The value must not contain a reference to the trace, which would be a cycle.
        """
        value: _Kept = self._cached.get(name, lambda: self._computed(name, make))
        return value

    def _computed(self, name: str, make: Callable[[Trace], _Kept]) -> _Kept:
        computed = None if self.axis is None else self.axis.combined(name, make)
        computed = make(self) if computed is None else computed
        if isinstance(computed, np.ndarray):
            computed.setflags(write=False)
        return computed

    def forget(self, name: str) -> None:
        """Remove a value from the cache, for large columns that are probably not needed again."""
        self._cached.forget(name)

    def is_cached(self, name: str) -> bool:
        """Return whether the value under a name is already computed, so that `cached` takes no time."""
        return name in self._cached

    @property
    def has_slots(self) -> bool:
        """Whether the events are slots of one target; False for other systems and for several files."""
        return self.release.is_qnx and self.axis is None

    @property
    def can_be_read_again(self) -> bool:
        """Whether the slots can be read again from the file; False for standard input."""
        return self.has_slots and str(self.path) != "-"

    @property
    def window(self) -> TimeWindow:
        """The whole trace, from its first event to just after its last; 0 to 1 if there are no events."""
        times = self.events.time_cycles
        if not len(times):
            return TimeWindow(0, 1)
        return TimeWindow(int(times[0]), int(times[-1]) + 1)

    @property
    def duration_ns(self) -> int:
        """Nanoseconds from the first event to the last."""
        times = self.events.time_cycles
        return self.clock.duration_ns(int(times[-1]) - int(times[0])) if len(times) else 0

    def spec(self, event: int) -> EventSpec:
        """Return the catalogue row of one event of this trace."""
        return self.catalogue.spec(int(self.events.code[event]))

    @property
    def time_axis(self) -> MomentAxis:
        """Clock, limits and events for the conversion of typed times."""
        return MomentAxis(self.clock, self.window, self.events.time_cycles)

    def rows_between(self, window: TimeWindow) -> slice:
        """Return the rows of the events whose time is in a window, as a slice."""
        times = self.events.time_cycles
        return slice(int(np.searchsorted(times, window.start)), int(np.searchsorted(times, window.end)))

    def cpu_title(self, cpu: int) -> str:
        """Return the title of a CPU's lane: `CPU 0`, `LWP 3`."""
        return self.cpu_titles[cpu] if cpu < len(self.cpu_titles) else f"CPU {cpu}"

    @property
    def cpu_noun(self) -> str:
        """Name of the unit that runs threads: `CPU`, or `LWP` in the trace of a threads library."""
        return "CPU" if self.pairs is None else "LWP"

    def process_name(self, process: int, *, with_pid: bool = True) -> str:
        """Return a label for a process: its name without directories, with the pid if several processes have the name.

        Without a name the label is `pid N`, for row 0 it is `unknown`.

        The label of the process that sent the trace ends with `OF_CAPTURE`, as the capture causes its load.

        Args:
            process: Row of the process table.
            with_pid: False omits the pid, for output that shows the pid anyway.
        """
        pid = int(self.processes.pid[process])
        name = self.short_process_name(process)
        if name and self.is_sender[process]:
            return f"{name}{OF_CAPTURE}"
        if name:
            return f"{name}[{pid}]" if with_pid and name in self.cached("trace.shared_names", _shared_names) else name
        return f"pid {pid}" if process else "unknown"

    @property
    def is_sender(self) -> NDArray[np.bool_]:
        """Which processes sent the trace from the target while it was captured, bool (processes,).

        On an axis, each file may have such a process.
        """
        senders: NDArray[np.bool_] = self.cached("trace.senders", _senders)
        return senders

    def name_of_pid(self, pid: int) -> str:
        """Return the label of `process_name` for a pid; `pid N` if the process is not in the trace."""
        row = self.processes.row(pid)
        return self.process_name(row) if row is not None else f"pid {pid}"

    def process_name_source(self, process: int) -> str:
        """Return `name from pidin` for a process row whose name is not from the trace; else empty."""
        return "name from pidin" if self.pidin is not None and process in self.pidin.process_rows else ""

    def thread_name_source(self, thread: int) -> str:
        """Return `name from pidin` for a thread row whose own name is not from the trace; else empty."""
        return "name from pidin" if self.pidin is not None and thread in self.pidin.thread_rows else ""

    @property
    def title(self) -> str:
        """Title for display: the file name, or for a predicted trace its changes and the original trace."""
        source = self.header.get(PREDICTED_FROM)
        if not source:
            return self.path.name
        changes = self.header.get(PREDICTED_CHANGES) or "nothing"
        cut = changes if len(changes) <= _TITLE_CHARACTERS else f"{changes[:_TITLE_CHARACTERS]}\N{HORIZONTAL ELLIPSIS}"
        return f"predicted: {cut} (from {source[:_TITLE_CHARACTERS]})"

    @property
    def foreign_system(self) -> str:
        """`Linux` for a trace of Linux, of which only the schedule is read; else empty."""
        return "Linux" if self.release is Release.LINUX else ""

    def short_process_name(self, process: int) -> str:
        """Return the name of a process row without directories.

        Names of Linux tasks are not paths, and names on an axis are short already: both are returned unchanged.
        """
        name = self.processes.names[process]
        return name if self.release is Release.LINUX or self.axis is not None else _short_name(name)

    def thread_name(self, thread: int) -> str:
        """Return a label for a thread row: `devb-eide 2`, `procnto 1 (idle)`; `unknown` for row 0."""
        if thread == 0:
            return "unknown"
        label = f"{self.process_name(int(self.threads.process[thread]))} {int(self.threads.tid[thread])}"
        name = self.threads.names[thread]
        return f"{label} ({name})" if name else label

    def class_counts(self) -> dict[str, int]:
        """Return the number of events by printed class name, without empty classes."""
        counts: dict[str, int] = {}
        for code in np.flatnonzero(self.code_counts):
            name = self.catalogue.class_name(int(code))
            counts[name] = counts.get(name, 0) + int(self.code_counts[code])
        return counts

    def last_slots(self) -> NDArray[np.int64]:
        """Return the index of every event's last slot, at which listings print it, shape (n,), int64."""
        last = self.events.slot.astype(np.int64)
        last += self.events.slot_count
        last -= 1
        if len(self.fragments.event):
            last[self.fragments.event] = self.fragments.slot[self.fragments.start[1:] - 1]
        return last


def cached_with_trace(name: str) -> Callable[[Callable[[Trace], _Kept]], Callable[[Trace], _Kept]]:
    """Return a decorator: the function runs once for each trace, which keeps the value (see `Trace.cached`)."""

    def decorate(make: Callable[[Trace], _Kept]) -> Callable[[Trace], _Kept]:
        @wraps(make)
        def value_of(trace: Trace) -> _Kept:
            return trace.cached(name, make)

        return value_of

    return decorate


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a trace, a view of its row: names and arguments are looked up on access.

    Attributes:
        trace: The trace.
        row: Row in the event table: number of the event in time order, from 0.
    """

    trace: Trace
    row: int

    @property
    def time_cycles(self) -> int:
        """Time in cycles of the target's counter."""
        return int(self.trace.events.time_cycles[self.row])

    @property
    def time_ns(self) -> int:
        """Time in nanoseconds since the first event."""
        return self.trace.clock.ns(self.time_cycles)

    @property
    def cpu(self) -> int:
        """The CPU that logged the event, from 0."""
        return int(self.trace.events.cpu[self.row])

    @property
    def thread(self) -> int:
        """Row of the event's thread in the thread table; 0 = unknown."""
        return int(self.trace.events.thread[self.row])

    @property
    def pid(self) -> int:
        """Process id of the event's thread; -1 = unknown."""
        return int(self.trace.threads.pid[self.thread])

    @property
    def tid(self) -> int:
        """Thread number within the process, from 1; 0 = only the process is known, -1 = unknown."""
        return int(self.trace.threads.tid[self.thread])

    @property
    def thread_name(self) -> str:
        """Process and thread by name, such as `devb-ahci 2 (worker)`."""
        return self.trace.thread_name(self.thread)

    @property
    def spec(self) -> EventSpec:
        """The catalogue row of this kind of event."""
        return self.trace.spec(self.row)

    @property
    def class_name(self) -> str:
        """Printed class, such as `KER_CALL`."""
        return self.spec.class_name

    @property
    def name(self) -> str:
        """The event as QNX spells it, such as `MSG_SENDV` or `THRUNNING`."""
        return self.spec.name

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The arguments of the event with their notation."""
        return self.trace.payloads.decode(self.row).arguments

    @property
    def args(self) -> dict[str, int | str | bytes]:
        """The values of the event's arguments by name."""
        return {argument.name: argument.value for argument in self.arguments}

    @property
    def words(self) -> tuple[int, ...]:
        """All payload words, including padding."""
        return tuple(self.trace.payloads.words(self.row).tolist())


def _short_name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _senders(trace: Trace) -> NDArray[np.bool_]:
    sender = trace.header.number(SSH_PID)
    return np.zeros(len(trace.processes), np.bool_) if sender is None else trace.processes.pid == sender


def _shared_names(trace: Trace) -> frozenset[str]:
    """Return the names that several processes share."""
    counts = Counter(map(trace.short_process_name, range(1, len(trace.processes.names))))
    return frozenset(name for name, count in counts.items() if count > 1)


# Payloads for formats whose events are not slots: a few numbers per event, held in memory.


@dataclass(frozen=True, slots=True)
class NumberPayloads(PayloadSource):
    """Implements `store.trace.PayloadSource` except `decode`; a number has two payload words, the low word first.

    Attributes:
        arguments: The numbers, (n,) each, in the narrowest signed type.
    """

    arguments: tuple[NDArray[np.signedinteger], ...]

    def values(self, event: int) -> tuple[int, ...]:
        """Return the numbers that are the arguments of one event."""
        return tuple(int(column[event]) for column in self.arguments)

    @property
    def described(self) -> dict[int, UserEvent]:
        """Empty: only QNX events can have descriptions."""
        return {}

    def check(self) -> None:
        """Do nothing: all records are in memory."""

    def close(self) -> None:
        """Do nothing: no file is open."""

    def tolerate_loss(self) -> None:
        """Do nothing: these payloads are in memory, so a file that changes cannot take them away."""

    def words(self, event: int) -> NDArray[np.uint32]:
        """Return the numbers as payload words.

        Returns:
            uint32 (words,).
        """
        return np.array(self.values(event), "<i8").view("<u4").astype(np.uint32)

    def raw(self, event: int) -> bytes:
        """Return the arguments as bytes, eight each, little-endian."""
        return np.array(self.values(event), "<i8").tobytes()

    def column(self, events: NDArray[np.integer], word: int) -> NDArray[np.uint32]:
        """Return payload word number `word` of many events: half of argument `word // 2`, 0 beyond the last argument.

        Returns:
            uint32 (len(events),).
        """
        if not 0 <= word < 2 * len(self.arguments):
            return np.zeros(len(events), np.uint32)
        values = self.arguments[word // 2][events].astype(np.int64)
        return np.asarray(values >> 32 * (word % 2) & 0xFFFFFFFF, np.uint32)

    def reading_ahead(self, events: NDArray[np.uint32]) -> AbstractContextManager[None]:  # noqa: ARG002
        """Do nothing: all arguments are in memory."""
        return nullcontext()

    def headers(self) -> None:
        """Return None: these events have no slots."""

    def word_counts(self, events: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the number of payload words of many events: the same for all.

        Returns:
            int64 (len(events),).
        """
        return np.full(len(events), 2 * len(self.arguments), np.int64)
