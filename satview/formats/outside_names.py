"""Adds names that a trace lacks: of processes and threads from the output of `pidin`, of functions from programs.

    trace = with_names(trace, read_pidin(Path("board.txt")))
    symbols = add_symbols(trace, Path("build/"))
    symbols.text(process, 0x8049010)        # "plan+0x10 (plan.c:12)"

A text of pidin is from another time than the trace; programs are found by the names of the trace's processes.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from satview.base.errors import UsageError
from satview.base.safe_text import counted, visible_line
from satview.base.shared_file import DamagedFileError, read_shared
from satview.base.threads import Once
from satview.events.wire import KER_64BIT, WireClass, code
from satview.linkage.links import rows_of_codes
from satview.store.axis import files_of
from satview.store.problems import Problems
from satview.store.time_ranges import KERNEL_PID
from satview.store.trace import PidinNames, Trace

if TYPE_CHECKING:
    from satview.formats.elf import Binary


# Names addresses by functions, files and lines from the programs that ran on the target.
#
# The programs are ELF files with symbols, read by pyelftools; the name of a process identifies its program. If a
# program can be loaded anywhere in memory, MAPNAME and MMAP events give its load address; without them addresses stay
# numbers.


_MAGIC: Final = b"\x7fELF"
_MOST_FILES: Final = 20_000  # maximum number of programs in a folder
_MOST_OPEN: Final = 128
_MOST_MAPS: Final = 10_000  # maximum number of events with load addresses of programs
_FAMILIES: Final = (("x86", "386"), ("aarch64", "arm"), ("ppc",), ("mips",))  # how names of machines and ELF begin
_SUFFIXES: Final = (".sym", ".debug", ".unstripped", ".elf")
_MAPS: Final = tuple(code(WireClass.SYSTEM, number) | wide for number in (6, 8, 21) for wide in (0, KER_64BIT))


@dataclass(frozen=True, slots=True)
class Place:
    """The source location of an address.

    Attributes:
        function: Name of the function for the linker; empty = not known.
        offset: Bytes from the start of the function.
        file: Name of the source file; empty = not known.
        line: From 1; 0 = not known.
    """

    function: str = ""
    offset: int = 0
    file: str = ""
    line: int = 0

    @property
    def source(self) -> str:
        """File name without folders, and line; empty if not known."""
        return f"{PurePosixPath(self.file.replace(chr(92), '/')).name}:{self.line}" if self.file else ""

    def __str__(self) -> str:
        name = f"{self.function}+0x{self.offset:x}" if self.function and self.offset else self.function
        return f"{name} ({self.source})" if name and self.source else name or self.source


_NOWHERE: Final = Place()


@dataclass
class Symbols:
    """The programs in a folder, for one trace.

    Attributes:
        folder: The folder.
        trace_programs: Programs of each process, by its row, each with the bytes by which the program was relocated.
        notes: Problems, a sentence each.
    """

    folder: Path
    trace_programs: Mapping[int, list[tuple[Binary, int]]]
    notes: tuple[str, ...]
    _places: dict[tuple[int, int], Place] = field(default_factory=dict)

    @property
    def function_count(self) -> int:
        """Number of functions in all used programs."""
        programs = {binary.path: binary for used in self.trace_programs.values() for binary, _ in used}
        return sum(binary.function_count for binary in programs.values())

    def place(self, process: int, address: int) -> Place:
        """Return the source location of an address in a process, a row of the table; empty if it is not known."""
        key = process, address
        if key not in self._places:
            places = (binary.place(address - moved) for binary, moved in self.trace_programs.get(process, ()))
            self._places[key] = next((Place(*place) for place in places if place is not None), _NOWHERE)
        return self._places[key]

    def text(self, process: int, address: int) -> str:
        """Return the source location of an address in a process as text; empty if it is not known."""
        return str(self.place(process, address))


def add_symbols(trace: Trace, folder: Path) -> Symbols:
    """Name the addresses of a trace by the programs in a folder, instead of programs from an earlier call.

    Raises:
        UsageError: The folder does not exist, or contains no program of the trace.
    """
    symbols = _symbols(trace, folder)
    _added(trace).append(symbols)
    return symbols


def symbols_of(trace: Trace) -> Symbols | None:
    """Return the symbols from the last call of `add_symbols`; None = none."""
    return _added(trace)[-1] if _added(trace) else None


def _added(trace: Trace) -> list[Symbols]:
    return trace.cached("symbols.added", lambda _: [])


def check_folder(folder: Path) -> None:
    """Raise UsageError if a folder of programs does not exist."""
    if not folder.is_dir():
        raise UsageError(
            f"{folder}: there is no such folder; --symbols names the folder with the programs of the target"
        )


def _symbols(trace: Trace, folder: Path) -> Symbols:
    check_folder(folder)
    files, notes = _files(folder), list[str]()
    if sum(map(len, files.values())) >= _MOST_FILES:
        notes.append(f"{folder} has more than {_MOST_FILES:,} programs; the others are not looked at")
    binaries: dict[Path, Binary | None] = {}
    programs: dict[int, list[tuple[Binary, int]]] = {}
    axis = files_of(trace)
    if axis is None:
        programs = _programs(trace, trace.processes.names, files, binaries, notes)
    for part in axis.parts if axis is not None else ():
        own = _programs(part.trace, part.names, files, binaries, notes)
        programs |= {int(part.processes[process]): used for process, used in own.items() if process}  # 0 is of no file
    if not any(programs.values()):
        why = "; ".join(dict.fromkeys(notes)) or "none has the name of a process"
        raise UsageError(f"{folder}: no program of this trace is in it: {why[:300]}")
    return Symbols(folder, programs, tuple(dict.fromkeys(notes)))


def _programs(
    trace: Trace,
    names: Sequence[str],
    files: Mapping[str, list[Path]],
    binaries: dict[Path, Binary | None],
    notes: list[str],
) -> dict[int, list[tuple[Binary, int]]]:
    """Return the programs of each process of a file, by row of its process table, as in `Symbols.trace_programs`.

    `files` are the programs in the folder by name; programs that are read are added to `binaries`, problems to `notes`.
    """
    maps, machine = _maps(trace), trace.header.get("ARCHITECTURE") or trace.header.get("MACHINE") or ""
    programs: dict[int, list[tuple[Binary, int]]] = defaultdict(list)
    for process, name in enumerate(names):
        mapped = maps.get(int(trace.processes.pid[process]), {})
        for requested in dict.fromkeys((name, *mapped)):
            paths = _best(files, requested)
            for path in paths:
                if path not in binaries:
                    binaries[path] = _opened(path, machine, notes)
            binary = _with_functions([found for path in paths if (found := binaries[path])], requested, notes)
            moved = None if binary is None else _moved(binary, mapped.get(requested, []))
            if binary is not None and moved is not None:
                programs[process].append((binary, moved))
            elif binary is not None:
                notes.append(f"{PurePosixPath(requested).name} of {name}: it may lie anywhere in memory, and no event "
                             "MAPNAME or MMAP says where; its addresses stay numbers")  # fmt: skip
    kernel = next((row for row, pid in enumerate(trace.processes.pid.tolist()) if pid == KERNEL_PID), None)
    for process in range(len(trace.processes)):  # every process, as the kernel is mapped into each
        if kernel is not None and process != kernel:
            programs[process] += programs.get(kernel, [])
    return dict(programs)


def _opened(path: Path, machine: str, notes: list[str]) -> Binary | None:
    """Return a program; None, with a note, if it cannot be read or is for another processor than `machine`.

    Machines of unknown processors, such as names of boards, take any program.
    """
    try:
        state = path.stat()
        binary = _read_once(path, state.st_size, state.st_mtime_ns)
    except (UsageError, OSError) as error:
        notes.append(str(error))
        return None
    family = next((names for names in _FAMILIES if machine.lower().startswith(names)), None)
    if family is None or binary.machine.lower().startswith(family):
        return binary
    notes.append(f"{path}: it is for {binary.machine}, and the trace is from {visible_line(machine)}; its addresses "
                 "stay numbers")  # fmt: skip
    return None


@lru_cache(_MOST_OPEN)
def _read_once(path: Path, _size: int, _written_ns: int) -> Binary:
    """Return a program; cached, because a trace that grows needs the same programs repeatedly."""
    from satview.formats.elf import Binary  # imports pyelftools, for which every command would wait

    return Binary(path)


def _files(folder: Path) -> dict[str, list[Path]]:
    """Return the ELF files below a folder by file name; suffixes of symbol files are removed from the names."""
    files: dict[str, list[Path]] = defaultdict(list)
    count = 0
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent, name)
            try:
                if not path.is_file():  # opening a pipe would never end
                    continue
                with path.open("rb") as file:
                    is_program = file.read(4) == _MAGIC
            except OSError:
                continue
            if is_program:
                stem = next((name.removesuffix(suffix) for suffix in _SUFFIXES if name.endswith(suffix)), name)
                files[stem].append(path)
                count += 1
                if count >= _MOST_FILES:
                    return files
    return files


def _best(paths: Mapping[str, list[Path]], name: str) -> list[Path]:
    """Return the files that may be a program: of the files with its name, those whose folders match best."""
    parts = PurePosixPath(name).parts
    candidates = paths.get(parts[-1], []) if parts else []

    def alike(path: Path) -> int:
        pairs = zip(reversed(parts[:-1]), reversed(path.parts[:-1]), strict=False)
        return next((depth for depth, (part, other_part) in enumerate(pairs) if part != other_part), len(parts) - 1)

    return [path for path in candidates if alike(path) == max(map(alike, candidates))]


def _with_functions(candidates: list[Binary], name: str, notes: list[str]) -> Binary | None:
    """Return the candidate that names the most functions; None if none does, with a note if there are candidates.

    Several such files must be in one folder, such as `x` and `x.sym`; otherwise the result is None.
    """
    named = sorted((one for one in candidates if one.function_count), key=attrgetter("function_count"), reverse=True)
    if candidates and not named:
        notes.append(f"{candidates[0].path}: it names no functions, as it is stripped; its addresses stay numbers")
    if len({one.path.parent for one in named}) > 1:
        notes.append(f"{name}: {named[0].path} and {named[1].path} both have that name; neither is used")
        return None
    return named[0] if named else None


def _maps(trace: Trace) -> dict[int, dict[str, list[tuple[int, int]]]]:
    """Return load addresses by pid and program name: (address, offset in the file), offset -1 = not known."""
    maps: dict[int, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    if not trace.has_slots:
        return maps
    for row in rows_of_codes(trace, *_MAPS)[:_MOST_MAPS].tolist():
        values: dict[str, Any] = {argument.name: argument.value for argument in trace.payloads.decode(row).arguments}
        name = str(values.get("name", values.get("path", "")))
        address, pid = values.get("addr", values.get("vaddr")), values.get("pid")
        if name and isinstance(address, int) and isinstance(pid, int):
            offset = values.get("offset", -1)
            maps[pid][name].append((address, offset if isinstance(offset, int) else -1))
    return maps


def _moved(binary: Binary, maps: list[tuple[int, int]]) -> int | None:
    """Return the bytes by which a program was relocated, by the load addresses of its parts; None = not known."""
    if not binary.is_movable:
        return 0
    for address, offset in maps:
        if offset in binary.offsets:
            return address - binary.offsets[offset]
    unplaced = [address for address, offset in maps if offset < 0]
    return min(unplaced) - binary.first_address if unplaced else None


# Adds names of processes and threads from the output of QNX `pidin`, for a trace that began after they started.
#
# The title line gives the columns, as printed by `pidin`, `pidin -F "%a %b %n %h"` and `pidin threads`. Names in the
# trace take precedence: the text is from another time, when another process may have had a pid.


_FILE_BYTES_MAX: Final = 4 << 20
_TITLE: Final = re.compile(r"thread name|\S+")
_PID, _TID, _NAME, _THREAD_NAME = "pid", "tid", "name", "thread name"
_TEXTS: Final = (_NAME, _THREAD_NAME)
_NUMBER: Final = re.compile(r"[0-9]{1,10}")
_OTHER_NAME: Final = "other-name"
_KERNEL: Final = "procnto"  # may have suffixes such as -smp-instr in the text but not in the trace


@dataclass(frozen=True, slots=True)
class _TitledColumn:
    """A column: its title, start of the title, and start of the next title, -1 for the last column."""

    title: str
    start: int
    next_start: int


def read_pidin(path: Path) -> PidinNames:
    """Return the names in the output of pidin.

    Raises:
        UsageError: The file cannot be read, has no title line with pid and name, or has no names.
    """
    try:
        data = read_shared(path, _FILE_BYTES_MAX)
    except (DamagedFileError, OSError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if data is None:
        raise UsageError(f"{path}: there is no such file; --pidin names a file with what `pidin` printed")
    columns: list[_TitledColumn] = []
    by_pid: dict[int, str] = {}
    by_thread: dict[tuple[int, int], str] = {}
    notes: list[str] = []
    unplaced = 0
    for line in data.decode("utf-8", "replace").expandtabs().splitlines():
        if not columns:
            columns = _columns(line)
            continue
        cells = dict(_cells(line, columns))
        pid, tid = _number(cells.get(_PID, "")), _number(cells.get(_TID, ""))
        name, thread_name = cells.get(_NAME, ""), cells.get(_THREAD_NAME, "")
        if pid is None:
            continue
        if name and by_pid.setdefault(pid, name) != name:
            notes.append(f"{path.name}: pid {pid} is {by_pid[pid]} and {name} there; the first name counts")
        has_name = thread_name not in ("", "-") and _number(thread_name) is None  # without a name, pidin prints the tid
        unplaced += has_name and tid is None
        if has_name and tid is not None:
            by_thread.setdefault((pid, tid), thread_name)
    if not columns:
        raise UsageError(f"{path}: {_why_no_titles(data)}; save what `pidin` prints")
    if not by_pid:
        raise UsageError(f"{path}: no line below the titles has a pid and a name; save what `pidin` prints")
    if unplaced:
        notes.append(f"{path.name}: {counted(unplaced, 'name')} of threads without a tid; `pidin -F '%a %b %n %h'` "
                     "prints both")  # fmt: skip
    return PidinNames(path, by_pid, by_thread, tuple(dict.fromkeys(map(visible_line, notes))))


def with_names(trace: Trace, names: PidinNames) -> Trace:
    """Return a trace with names from pidin where it has none of its own; UsageError if it is not of one QNX target."""
    if not trace.has_slots:
        raise UsageError(f"{trace.path.name}: names from pidin are for the trace of one QNX target")
    noted = trace.problems.values()
    if trace.pidin is not None:  # drop the problems of an earlier text
        noted["rows"] = [row for row in noted["rows"] if row[0] != _OTHER_NAME]
        noted["counts"], noted["suppressed"] = (
            {slug: count for slug, count in noted[key].items() if slug != _OTHER_NAME}
            for key in ("counts", "suppressed")
        )
    problems = Problems.of_values(noted)
    processes, threads = list(trace.processes.names), list(trace.threads.names)
    for names_there, rows in (
        () if trace.pidin is None else ((processes, trace.pidin.process_rows), (threads, trace.pidin.thread_rows))
    ):
        for row in rows:
            names_there[row] = ""
    process_rows, thread_rows = set[int](), set[int]()
    for row, pid in enumerate(trace.processes.pid.tolist()):
        name = names.by_pid.get(pid, "")
        if name and not processes[row]:
            processes[row] = name
            process_rows.add(row)
        elif name and not _is_same(processes[row], name):
            problems.add(_OTHER_NAME, f"pid {pid} is {processes[row]} here and {name} in {names.path.name}")
    for row, thread in enumerate(zip(trace.threads.pid.tolist(), trace.threads.tid.tolist(), strict=True)):
        if (name := names.by_thread.get(thread, "")) and not threads[row]:
            threads[row] = name
            thread_rows.add(row)
    return replace(
        trace,
        processes=replace(trace.processes, names=tuple(processes)),
        threads=replace(trace.threads, names=tuple(threads)),
        problems=problems,
        pidin=replace(names, process_rows=frozenset(process_rows), thread_rows=frozenset(thread_rows)),
        _cached=Once(),
    )


def _is_same(name: str, other: str) -> bool:
    """Return whether two names may be of the same program: equal without folders, or both names of the kernel."""
    short, other_short = (text.rsplit("/", 1)[-1] for text in (name, other))
    return short == other_short or (short.startswith(_KERNEL) and other_short.startswith(_KERNEL))


def _columns(line: str) -> list[_TitledColumn]:
    """Return the columns of a title line; none if it does not have both pid and name."""
    titles = list(_TITLE.finditer(line))
    if not {_PID, _NAME} <= {title[0] for title in titles}:
        return []
    starts = [*(title.start() for title in titles[1:]), -1]
    return [_TitledColumn(title[0], title.start(), start) for title, start in zip(titles, starts, strict=True)]


def _why_no_titles(data: bytes) -> str:
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        titles = {title[0] for title in _TITLE.finditer(line)}
        for title, other in ((_PID, _NAME), (_NAME, _PID)):
            if title in titles:
                return f"line {number} has no column {other}"
        if line.strip():
            return f"line {number} is not a line of titles with the columns pid and name"
    return "it is empty"


def _cells(line: str, columns: list[_TitledColumn]) -> Iterator[tuple[str, str]]:
    """Yield title and text of the columns of a line.

    A name may contain spaces and ends where the next title begins; a name that overlaps the next title is one word.
    """
    position = 0
    for column in columns:
        position += len(line) - position - len(line[position:].lstrip())
        if column.title in _TEXTS and column.next_start < 0:
            yield column.title, line[position:].strip()
            return
        end = column.next_start
        is_aligned = column.title in _TEXTS and not line[end - 1 : end].strip()
        if is_aligned and position >= end:  # an empty cell
            yield column.title, ""
            continue
        if not is_aligned or position >= end:
            end = position + len(line[position:].split(maxsplit=1)[0]) if position < len(line) else position
        yield column.title, line[position:end].strip()
        position = end


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None
