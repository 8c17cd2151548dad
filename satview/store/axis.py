"""Several files on one time axis: the trace made of them, conversions between their clocks, and axis files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.base.errors import TraceFormatError, UsageError
from satview.base.named_files import allow, name_fault
from satview.base.new_file import write_file
from satview.base.shared_file import DamagedFileError, as_declared, parsed_json, read_shared
from satview.base.time import TimeWindow
from satview.store.trace import LOGGER, Trace

# A trace made of several files on one time axis, with conversions between each file and the axis.
#
# Events, threads, processes and CPUs of the files are rows of one trace, each with a unique number. Whatever depends on
# the events of one target (links, states, losses) is computed from the trace of its file and combined here, so that
# nothing is linked, or considered missing, across files.


Joiner = Callable[["FileAxis", list[Any]], Any]
PARTITIONS: Final = 256  # range of partition numbers of a file; the kernel supports a few dozen at most
_FIRST_SPECIAL: Final = 2**32 - 2  # values from here on are not rows: "ends with the trace", "no event"
_Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class AxisPart:
    """One file of a trace of several files, and its position on their common time axis.

    Attributes:
        name: Prefix of the names of the file's processes and CPUs.
        trace: The trace of the file alone.
        origin_cycles: A time in the file, in cycles of the file.
        at_cycles: The same time on the axis, in cycles of the axis.
        rate: Cycles of the axis per second; not less than the rate of the file.
        first_cpu: Number of the file's CPU 0 on the axis.
        first_partition: Number of the file's partition 0 on the axis.
        rows: uint32, (events of the file,), ascending: row on the axis of each event.
        threads, processes: int64, row on the axis by row of the file; row 0 stays row 0.
        codes: uint16, (32768,), code on the axis by code in the file.
        pids: int64, (processes,), pid on the axis by row of the file's process table.
        names: (processes,), names of the processes in the file; `trace` contains their names on the axis.
    """

    name: str
    trace: Trace
    origin_cycles: int
    at_cycles: int
    rate: int
    first_cpu: int
    first_partition: int
    rows: NDArray[np.uint32]
    threads: _Ints
    processes: _Ints
    codes: NDArray[np.uint16]
    pids: _Ints
    names: tuple[str, ...]

    def cycles(self, own: _Ints) -> _Ints:
        """Convert times of the file to the axis: exact at equal rates, else rounded down to a cycle; same shape."""
        return scaled(own - self.origin_cycles, self.trace.clock.cycles_per_s, self.rate) + self.at_cycles

    def own_cycles(self, cycles: int) -> int:
        """Return the earliest time of the file that is not before a time of the axis."""
        return self.origin_cycles - (-(cycles - self.at_cycles) * self.trace.clock.cycles_per_s // self.rate)

    def own_times(self, cycles: _Ints) -> _Ints:
        """Return `own_cycles` of every time of the axis; same shape."""
        return self.origin_cycles - scaled(self.at_cycles - cycles, self.rate, self.trace.clock.cycles_per_s)

    @property
    def window(self) -> TimeWindow:
        """The part of the axis that the file covers."""
        whole = self.trace.window
        begin, end = self.cycles(np.array([whole.start, whole.end - 1])).tolist()
        return TimeWindow(begin, end + 1)

    def axis_rows(self, own: NDArray[np.integer]) -> NDArray[np.integer]:
        """Convert event rows of the file to rows of the axis; special values remain; same shape and dtype.

        Args:
            own: Rows. Special values are the two largest 32-bit numbers if unsigned, negative numbers if signed.
        """
        out = own.copy()
        real = own < _FIRST_SPECIAL if own.dtype.kind == "u" else own >= 0
        out[real] = self.rows[own[real]]
        return out

    def axis_pids(self, own: _Ints) -> _Ints:
        """Convert pids of the file to those of the axis; unknown pids remain; same shape."""
        known = self.trace.processes.pid.astype(np.int64)
        order = np.argsort(known, kind="stable")
        position = np.minimum(np.searchsorted(known, own, sorter=order), len(known) - 1)
        rows = order[position]
        return np.where((known[rows] == own) & (rows > 0), self.pids[rows], own)

    def axis_partitions(self, own: _Ints) -> _Ints:
        """Convert the file's partition numbers to those of the axis, same shape; -1 for invalid numbers."""
        return np.where((own >= 0) & (own < PARTITIONS), own + self.first_partition, -1)


@dataclass(frozen=True, slots=True, eq=False)
class FileAxis:
    """The files of a trace, and the file of each event. Implements `store.trace.Axis`.

    Attributes:
        parts: The files.
        part_of: uint8, (events,), index of the file of each event.
        own_row: uint32, (events,), row of each event in its file.
        joiners: Functions that combine the cached values of the files, by name in the trace's cache.
    """

    parts: tuple[AxisPart, ...]
    part_of: NDArray[np.uint8]
    own_row: NDArray[np.uint32]
    joiners: Mapping[str, Joiner]

    def combined(self, name: str, make: Callable[[Trace], Any]) -> Any | None:
        """Return the combined cached values of the files under a name; None without a joiner (`store.trace.Axis`)."""
        joiner = self.joiners.get(name)
        return None if joiner is None else joiner(self, [part.trace.cached(name, make) for part in self.parts])

    def split(self, rows: NDArray[np.integer]) -> Iterator[tuple[AxisPart, NDArray[np.intp], NDArray[np.uint32]]]:
        """Split events by file: yield the file, indices in `rows` of its events, and their rows in the file, (k,).

        Args:
            rows: (n,), rows of the axis.
        """
        file_number = self.part_of[rows]
        for number, part in enumerate(self.parts):
            positions = np.flatnonzero(file_number == number)
            if len(positions):
                yield part, positions, self.own_row[rows[positions]]

    def part_of_thread(self, thread: int) -> tuple[AxisPart, int] | None:
        """Return the file of a thread and the thread's row in the file; None for row 0."""
        return next(
            ((part, int(np.searchsorted(part.threads[1:], thread)) + 1)
             for part in self.parts if len(part.threads) > 1 and part.threads[1] <= thread <= part.threads[-1]),
            None,
        )  # fmt: skip

    def part_of_process(self, process: int) -> AxisPart | None:
        """Return the file of a process; None for row 0."""
        of = ((part, part.processes[1:]) for part in self.parts)
        return next((part for part, rows in of if len(rows) and rows[0] <= process <= rows[-1]), None)

    def part_of_cpu(self, cpu: int) -> AxisPart | None:
        """Return the file of a CPU; None for a CPU that occurs only in damaged slots."""
        return next((p for p in self.parts if p.first_cpu <= cpu < p.first_cpu + p.trace.cpu_count), None)


@dataclass(frozen=True, slots=True, eq=False)
class CoveredRange:
    """Cycles of a range that the file of each thread, process or CPU covers: the whole range for a single file.

    Attributes:
        threads, processes, cpus: int64, (n,), by row of the thread and process tables, and by CPU.
    """

    threads: _Ints
    processes: _Ints
    cpus: _Ints


def covered(trace: Trace, window: TimeWindow) -> CoveredRange:
    """Return the cycles of a range that the file of each thread, process and CPU covers."""
    counts = (len(trace.threads), len(trace.processes), trace.cpu_count)
    cycles = CoveredRange(*(np.full(count, window.length, np.int64) for count in counts))
    files = files_of(trace)
    for part in () if files is None else files.parts:
        inside = max(0, min(part.window.end, window.end) - max(part.window.start, window.start))
        cycles.threads[part.threads[1:]] = inside
        cycles.processes[part.processes[1:]] = inside
        cycles.cpus[part.first_cpu : part.first_cpu + part.trace.cpu_count] = inside
    return cycles


def covered_by_cpus(trace: Trace, edges: _Ints) -> _Ints:
    """Return the total cycles of all CPUs in consecutive ranges, int64 (n,).

    Args:
        trace: The trace.
        edges: int64 (n + 1,), cycles, ascending.
    """
    files = files_of(trace)
    if files is None:
        return np.diff(edges) * trace.cpu_count
    parts = [np.diff(np.clip(edges, part.window.start, part.window.end)) * part.trace.cpu_count for part in files.parts]
    return np.asarray(np.sum(parts, axis=0))


def file_window(trace: Trace, cpu: int, process: int) -> TimeWindow:
    """Return the time range that the file of a CPU or process covers; the whole trace for a single file.

    Args:
        trace: The trace.
        cpu: Number of the CPU; -1 = none.
        process: Row of the process table; 0 = none.
    """
    files = files_of(trace)
    if files is None:
        return trace.window
    part = files.part_of_cpu(cpu) if cpu >= 0 else files.part_of_process(process)
    return trace.window if part is None else part.window


def files_of_threads(trace: Trace, threads: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the position in `FileAxis.parts` of the file of each thread row, intp (n,); 0 for a single file."""
    files = files_of(trace)
    counts = [] if files is None else [len(part.threads) - 1 for part in files.parts]
    return np.searchsorted(np.cumsum(counts), threads)


def files_of_cpus(trace: Trace, cpus: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the position in `FileAxis.parts` of the file of each CPU, intp (n,); 0 for a single file."""
    files = files_of(trace)
    firsts = [0] if files is None else [part.first_cpu for part in files.parts]
    return np.searchsorted(firsts, cpus, side="right") - 1


def program_name(trace: Trace, process: int) -> str:
    """Return the name of a process without directories, and without the name of its file on an axis."""
    files, name = files_of(trace), trace.short_process_name(process)
    part = None if files is None else files.part_of_process(process)
    return name if part is None else name.removeprefix(f"{part.name}:")


def of_logger(trace: Trace) -> NDArray[np.bool_]:
    """Return which processes are the program that writes traces, by their name, bool (processes,)."""
    return np.array([program_name(trace, row) == LOGGER for row in range(len(trace.processes))], np.bool_)


def of_capture(trace: Trace) -> NDArray[np.bool_]:
    """Return which processes write or send the trace (on an axis: the trace of their file), bool (processes,)."""
    return of_logger(trace) | trace.is_sender


def last_rows(trace: Trace, rows: NDArray[np.integer]) -> NDArray[np.uint32]:
    """Return for each event the row of the last event of its file, uint32 (n,): the trace's last row for a single file.

    Args:
        trace: The trace.
        rows: (n,), rows of events.
    """
    files = files_of(trace)
    if files is None:
        return np.full(len(rows), max(len(trace.events) - 1, 0), np.uint32)
    last = [part.rows[-1] if len(part.rows) else 0 for part in files.parts]
    return np.asarray(np.array(last, np.uint32)[files.part_of[rows]])


def ends_of_files(trace: Trace, rows: NDArray[np.integer]) -> _Ints:
    """Return for each event the end of its file as in `Trace.window`, cycles, int64 (n,); `rows` as in `last_rows`."""
    return trace.events.time_cycles[last_rows(trace, rows)] + 1


def trace_of_process(trace: Trace, process: int) -> Trace:
    """Return the trace of the file of a process; the trace itself for a single file, and for row 0."""
    files = files_of(trace)
    part = None if files is None else files.part_of_process(process)
    return trace if part is None else part.trace


def files_of(trace: Trace) -> FileAxis | None:
    """Return the files of a trace of several files; None for a single file."""
    return trace.axis if isinstance(trace.axis, FileAxis) else None


def share_of_file(progress: Callable[[float], None] | None, number: int, count: int) -> Callable[[float], None] | None:
    """Return what one of `count` files reports its progress to, 0 to 1, as a part of that of all; None = to nobody."""
    return None if progress is None else lambda share: progress((number + share) / count)


def by_file(trace: Trace, rows: NDArray[np.uint32]) -> Iterator[tuple[str, NDArray[np.uint32]]]:
    """Split events by file: yield the prefix of the file's names and the rows of its events, uint32 (k,).

    A trace of a single file yields "" and all events.

    Args:
        trace: The trace.
        rows: uint32 (n,), rows of events.
    """
    files = files_of(trace)
    if files is None:
        yield "", rows
        return
    for part, positions, _ in files.split(rows):
        yield f"{part.name}:", rows[positions]


def are_beside(trace: Trace, threads: NDArray[np.integer], thread: int) -> NDArray[np.bool_]:
    """Return which threads share CPUs with a thread, because they are in the same file.

    Args:
        trace: The trace.
        threads: (n,), rows of the thread table.
        thread: Row of the thread.

    Returns:
        bool (n,).
    """
    files = files_of(trace)
    file_and_row = None if files is None else files.part_of_thread(thread)
    if file_and_row is None:
        return np.ones(len(threads), np.bool_)
    own = file_and_row[0].threads[1:]
    return np.asarray((threads >= own[0]) & (threads <= own[-1]))


def scaled(cycles: _Ints, rate: int, new_rate: int) -> _Ints:
    """Convert numbers of cycles to another rate, int64 of the same shape, rounded down; whole seconds stay exact.

    Args:
        cycles: int64.
        rate: Rate of `cycles`, per second.
        new_rate: Rate of the result, per second.
    """
    if rate == new_rate:
        return cycles
    whole = cycles // rate
    rest = cycles - whole * rate
    if rate * new_rate <= np.iinfo(np.int64).max:
        return np.asarray(whole * new_rate + rest * new_rate // rate)
    return whole * new_rate + np.array([int(remainder) * new_rate // rate for remainder in rest], np.int64)


def concatenated(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Concatenate columns of several files, (n,), in the dtype of the first column."""
    return np.concatenate([column.astype(columns[0].dtype, copy=False) for column in columns])


# Axis files, `.sataxis`: JSON with the file names of traces and their offsets on a common time axis.


SUFFIX: Final = ".sataxis"
MARK: Final = "satview_axis"
VERSION: Final = 1
MOST_FILES: Final = 16
_HEAD_BYTES: Final = 4096
_FILE_BYTES_MAX: Final = 1 << 20
_MOST_PS: Final = 10**12 * 86_400 * 366  # a year
_ENDING: Final = re.compile(r"(\.[A-Za-z][\w-]*?)?(\.(gz|zst))?\Z")  # `.kev` or `.kev.gz`; not the `.1` of `run.1`


@dataclass(frozen=True, slots=True)
class AxisEntry:
    """A file on the axis.

    Attributes:
        path: The file.
        name: Name of the file on the axis, such as `guest`.
        offset_ps: Picoseconds from the first event of the first file to the first event of this file.
    """

    path: Path
    name: str
    offset_ps: int = 0


@dataclass(frozen=True, slots=True)
class _Version:
    satview_axis: int = 0


@dataclass(frozen=True, slots=True)
class _Content:
    files: tuple[AxisEntry, ...] = ()


def read_axis(path: Path) -> list[AxisEntry]:
    """Return the files listed in an axis file; relative names are relative to its folder.

    Raises:
        TraceFormatError: The axis file is damaged, or lists files that cannot be combined; the text has the remedy.
        OSError: The axis file cannot be read.
    """
    remedy = "make it again with `satview together`"
    try:
        data = read_shared(path, _FILE_BYTES_MAX)
        content = parsed_json(data or b"")
        if as_declared(content, _Version).satview_axis != VERSION:
            raise TraceFormatError(path, 0, f"this is not an axis of version {VERSION}", "open it with a newer satview")
        entries = [replace(entry, path=path.parent / entry.path) for entry in as_declared(content, _Content).files]
        check_entries(entries)
    except (DamagedFileError, UsageError) as error:
        raise TraceFormatError(path, 0, str(error), remedy) from error
    return entries


def allow_axis(path: Path) -> list[AxisEntry]:
    """Permit an axis file to list files outside its folder from now on; return its entries.

    Raises:
        TraceFormatError, OSError: As for `read_axis`.
        WriteError: The permission cannot be stored.
    """
    entries = read_axis(path)
    allow(path, (entry.path for entry in entries))
    return entries


def write_axis(path: Path, entries: Sequence[AxisEntry]) -> None:
    """Write an axis file; paths below its folder are relative, so that the folder can be moved.

    The new file is permitted to list files outside its folder from now on, because this user has named them.

    Raises:
        UsageError: The files cannot be combined.
        WriteError: The axis file cannot be written.
    """
    check_entries(entries)
    files = [
        {"name": entry.name, "path": _written(entry.path, path), "offset_ps": entry.offset_ps} for entry in entries
    ]
    # In ASCII: the bytes of a file name may not be valid UTF-8.
    text = json.dumps({MARK: VERSION, "files": files}, indent=1) + "\n"
    write_file(path, text, reading=[entry.path for entry in entries])
    allow(path, (entry.path for entry in entries))


def check_entries(entries: Sequence[AxisEntry]) -> None:
    """Reject entries that make no valid axis.

    Raises:
        UsageError: There are too few or too many files, a file or a name occurs twice, a file is itself an axis, or a
            name, path or offset is not valid.
    """
    if not 2 <= len(entries) <= MOST_FILES:
        raise UsageError(f"an axis has 2 to {MOST_FILES} files, not {len(entries)}")
    if any(str(entry.path) == "-" for entry in entries):
        raise UsageError("standard input cannot be read again, as an axis has to be; write it to a file first")
    for entry in entries:
        if fault := name_fault(str(entry.path)):
            raise UsageError(f"{ascii(str(entry.path))[:80]}: {fault}")
    paths = [os.path.realpath(entry.path) for entry in entries]
    for entry, path in zip(entries, paths, strict=True):
        if paths.count(path) > 1:
            raise UsageError(f"{entry.path.name} is named twice; one file cannot be beside itself on an axis")
        if is_axis(entry.path):  # it could list this one again
            raise UsageError(f"{entry.path.name} is an axis itself; name the files that it names")
        if abs(entry.offset_ps) > _MOST_PS:
            raise UsageError(f"{entry.name[:40]} would begin more than a year away; check its offset")
        if not entry.name.strip() or len(entry.name) > 40 or any(sign in entry.name for sign in "/:*?\n"):
            raise UsageError(f"{entry.name[:40]!r} is not a name for a file on an axis; use letters and digits")
    for name in (entry.name for entry in entries):
        if sum(entry.name == name for entry in entries) > 1:
            raise UsageError(f"two files are called {name[:40]!r}; give each a name of its own")


def looks_like_axis(head: bytes, path: Path) -> bool:
    """Return whether a file is an axis file, by its first bytes."""
    return head.lstrip()[:1] == b"{" and (f'"{MARK}"'.encode() in head or path.suffix == SUFFIX)


def is_axis(path: Path) -> bool:
    """Return whether a file is an axis file, by its content."""
    if not path.is_file():  # opening a pipe would block
        return False
    try:
        with path.open("rb") as file:
            return looks_like_axis(file.read(_HEAD_BYTES), path)
    except OSError:  # opening it as a trace reports the error
        return False


def files_in(path: Path) -> list[Path]:
    """Return the files listed in an axis file; none if it cannot be read."""
    try:
        return [entry.path for entry in read_axis(path)]
    except (TraceFormatError, OSError):
        return []


def names_for(paths: Sequence[Path]) -> list[str]:
    """Return unique short names for files: file names without ending, with a number added to repeated ones."""
    names: list[str] = []
    for path in paths:
        stem = _ENDING.sub("", path.name) or path.name
        name = "".join("_" if sign in "/:*?\n" else sign for sign in stem)[:30].strip() or "trace"
        number, base = 2, name
        while name in names:
            name, number = f"{base}-{number}", number + 1
        names.append(name)
    return names


def _written(file: Path, axis: Path) -> str:
    file, folder = file.absolute(), axis.absolute().parent
    return file.relative_to(folder).as_posix() if file.is_relative_to(folder) else str(file)
