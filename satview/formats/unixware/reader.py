"""Opens sets of thread_trace files as one trace."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from pathlib import Path

from satview.base.errors import TraceFormatError, UsageError
from satview.base.process import timed
from satview.events.unixware import categories as known_categories
from satview.formats.unixware.assemble import Names, read_names, trace_from_columns
from satview.formats.unixware.columns import SetReader, files_of, is_member_name, names_files, parse_line, times_files
from satview.store.problems import Problems
from satview.store.trace import Trace

_LINES_LOOKED_AT = 5


def score(first_bytes: bytes, path: Path) -> int:
    """Return how likely a file is a thread trace, by its first lines and its name; 0 to 95."""
    lines = first_bytes.splitlines(keepends=True)[:_LINES_LOOKED_AT]
    whole = [line.rstrip() for line in lines if line.endswith(b"\n") and line.strip()]
    good = sum(isinstance(parse_line(line), tuple) for line in whole)
    named = is_member_name(path.name)
    if good:
        return 95 if named else 80
    return 65 if named and b"\0" not in first_bytes and first_bytes[:1].isdigit() else 0


def selected_categories(text: str | Iterable[str] | None) -> list[int] | None:
    """Return the numbers of categories given in the form of THR_TRACE_EVENTS, `mutex:cond:sema`; None = all.

    Raises:
        UsageError: A name is not a category; the message has the nearest name.
    """
    if text is None:
        return None
    words = text.split(":") if isinstance(text, str) else list(text)
    known, numbers = known_categories(), []
    for word in (word.strip() for word in words):
        if word in known:
            numbers.append(known[word])
        elif word:
            near = difflib.get_close_matches(word, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"{word!r} is no category of thread traces ({':'.join(known)}){hint}")
    return numbers


def open_thread_trace(
    path: Path | str | Iterable[Path | str],
    progress: Callable[[float], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    *,
    categories: str | Iterable[str] | None = None,
) -> Trace:
    """Open a set of thread_trace files as one trace.

    Args:
        path: A file (the other files of its process in the same directory belong to the set), a directory (all files in
            it), or several paths; several files are exactly the set.
        progress: Called with the share that is done, 0 to 1.
        cancelled: Called between blocks; True stops.
        categories: Categories to keep, as for THR_TRACE_EVENTS: `mutex:cond:sema`; None = all.

    Returns:
        The trace. Its clock counts nanoseconds since 1970, like the files. CPU lanes are LWPs. `Trace.pairs` connects
        the two records of a call.

    Raises:
        TraceFormatError: No file can be read, or none contains a record.
        UsageError: A category does not exist.
        Cancelled: `cancelled()` returned True.
    """
    paths = [Path(path)] if isinstance(path, (str, Path)) else [Path(part) for part in path]
    if not paths:
        raise UsageError("no thread trace was named")
    requested = selected_categories(categories)
    files = files_of(paths)
    times = times_files(files)
    total = max(1, sum(file.stat().st_size for file in (*files, *times) if file.is_file()))
    report_progress = None if progress is None else lambda done: progress(min(0.9, 0.9 * done / total))
    problems = Problems()
    reader = SetReader(requested, problems, report_progress, cancelled)
    with timed("read thread traces"):
        readable = [file for file in files if reader.read(file)]
        for file in times:
            reader.read(file, is_own=True)
    if not readable:
        raise TraceFormatError(paths[0], None, "cannot be read", "check the name and the permissions")
    if not any(len(part) for part in reader.columns.time_ns) and requested is None:
        raise TraceFormatError(
            paths[0],
            0,
            "no line of it is a record of thread_trace(4)",
            "open a file tr.xxxxxxx.yyy, or the directory that holds such files",
        )
    names = Names()
    for beside in names_files(readable):
        read_names(beside, names)
    with timed("assemble thread trace"):
        return trace_from_columns(paths[0], readable, reader.columns, names, problems)
