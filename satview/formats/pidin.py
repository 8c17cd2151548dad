"""Adds names of processes and threads from the output of QNX `pidin`, for a trace that began after they started.

    trace = with_names(trace, read_pidin(Path("board.txt")))

The title line gives the columns, as printed by `pidin`, `pidin -F "%a %b %n %h"` and `pidin threads`. Names in the
trace take precedence: the text is from another time, when another process may have had a pid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from satview.base.errors import UsageError
from satview.base.safe_text import counted, visible_line
from satview.base.shared_file import DamagedFileError, read_shared
from satview.base.threads import Once
from satview.store.problems import Problems
from satview.store.trace import PidinNames, Trace

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
    """Return a trace whose unnamed processes and threads get the names from pidin, instead of names from earlier text.

    Raises:
        UsageError: The trace is not that of one QNX target.
    """
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
            return f"line {number} is no line of titles, which has the columns pid and name"
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
