"""Writes a trace in the format that the file's ending names: tables, Perfetto, Chrome, listings, .kev, plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from satview.analysis.activities import Timing
from satview.base.errors import UsageError, WriteError
from satview.base.new_file import NewFile
from satview.base.plugins import Plugin, PluginKind, plugins
from satview.base.safe_text import counted
from satview.base.time import TimeWindow
from satview.export.kev import Bools, SubsetReport, write_subset
from satview.export.listing.printer import left_out_of_listing, write_event_list, write_listing
from satview.export.perfetto import write_chrome, write_perfetto
from satview.export.tables import write_by_class, write_folded, write_folder, write_speedscope, write_table
from satview.formats.registry import source_files
from satview.store.trace import Trace
from satview.tables.schema import SCHEMAS
from satview.tables.table import kinds, why_empty, why_not_all

ENDINGS: Final = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".csv": "csv", ".jsonl": "jsonl",
                  ".ndjson": "jsonl", ".kev": "kev", ".txt": "listing", ".pftrace": "perfetto",
                  ".perfetto-trace": "perfetto", ".json": "chrome", ".folded": "folded",
                  ".speedscope.json": "speedscope"}  # fmt: skip
FORMATS: Final = ("parquet", "arrow", "csv", "jsonl", "list")  # that can be named in place of an ending
_WHOLE: Final = {"kev": "a .kev file holds events alone", "listing": "a listing holds events alone",
                 "list": "the list holds events alone", "perfetto": "a file for Perfetto holds all tables",
                 "chrome": "a file for Chrome holds the whole trace",
                 "folded": "a file of stacks holds functions alone",
                 "speedscope": "a file of stacks holds functions alone"}  # fmt: skip
_OF_EVENTS: Final = ("kev", "listing", "list")  # formats of events, which can be selected
_MOST_NAMES: Final = 8  # maximum number of table names in a sentence
STACKS: Final = {"folded": write_folded, "speedscope": write_speedscope}
_IN_PARTS: Final = (*_OF_EVENTS, "perfetto", *STACKS)
_EVENT: Final = ("event",)
_WITH_EVENTS: Final = ("event", "argument")  # tables whose events can be selected, besides those of kinds of events
_WITHOUT_EVENTS: Final = {"perfetto": "a file of slices for Perfetto", "chrome": "a file of slices for Chrome"}
_NO_SLICES: Final = ("SYSTEM", "USREVENT", "SEC", "QVM", "CONTROL")  # classes without slices in a file for Chrome
Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Written:
    """Result of writing a file.

    Attributes:
        unit: `rows of event`, `packets`, `events`, ...
        subset: Contents of a written .kev file; None for other formats.
        left_out: What the file lacks, of the trace or of what happened, with the reason; one line each.
    """

    count: int
    unit: str
    subset: SubsetReport | None = None
    left_out: tuple[str, ...] = ()


def plugged_endings() -> dict[str, Plugin]:
    """Return the plug-ins that write files, by ending (`.svg`): a dot and the plug-in's name."""
    return {f".{plugin.name.lower()}": plugin for plugin in plugins(PluginKind.EXPORT)}


def is_file_name(path: Path | str) -> bool:
    """Return whether a name ends like one file of a known format, such as `.csv`, and not like a folder."""
    return Path(path).suffix.lower() in ENDINGS


def format_of(path: Path | str, form: str = "", tables: Sequence[str] = (), *, by_class: bool = False,
              is_part: bool = False) -> str:  # fmt: skip
    """Return the name of the format for a new file; if a plug-in writes the file, the ending (`.svg`).

    One of `FORMATS` as `form` wins over the ending. `tables` (none = the events), `by_class` and `is_part` say what the
    file is to hold. Raises UsageError if the ending names no format, or a file in place of a folder, or the format
    cannot hold that.
    """
    ending = "" if form else Path(path).suffix.lower()
    names = tuple(tables) or _EVENT
    is_folder = by_class or len(names) > 1
    kind = form or ENDINGS.get("".join(Path(path).suffixes[-2:]).lower(), "") or ENDINGS.get(ending, "")
    if kind in _WHOLE and (is_folder or names != _EVENT or (is_part and kind not in _IN_PARTS)):
        raise UsageError(f"{_WHOLE[kind]}; the options choose a part of it")
    if is_folder and is_file_name(path):
        what = "the events by class" if by_class else "several tables"
        raise UsageError(
            f"{path}: {what} are files of a folder; name one without {Path(path).suffix}, and --format {kind}"
        )
    if kind:
        return kind
    if ending in (plugged := plugged_endings()):
        if is_folder or tables or is_part:
            raise UsageError(
                f"the plug-in {plugged[ending].name} writes the whole trace; the options choose a part of it"
            )
        return ending
    if is_folder and not ending:
        return "parquet"
    known = ", ".join((*ENDINGS, *plugged))
    folder = "; a folder takes --arguments, --by-class or --table all" if not ending else ""
    raise UsageError(f"{path or 'no name'}: the file extension selects the format; use {known}, or --format{folder}")


def export(
    trace: Trace,
    path: Path | str,
    form: str = "",
    tables: Sequence[str] = (),
    *,
    by_class: bool = False,
    events: Bools | None = None,
    window: TimeWindow | None = None,
    progress: Progress | None = None,
    timing: Mapping[str, Timing] | None = None,
) -> Written:
    """Write a trace, or a part of it, in the format that the file's ending names (docs/tables.md).

    Args:
        trace: The trace.
        path: The new file, or a new folder; `-` is standard output.
        form: As for `format_of`.
        tables: As for `format_of`; several tables become a folder with one file each.
        by_class: As for `format_of`.
        events: bool (events,), which events; None = all.
        window: Only events in this range; None = all.
        progress: Called with the share that is done, 0 to 1.
        timing: Contents of a timing file (`satview.analysis.activities.read_timing`), for the tables on activities.

    Raises:
        UsageError: As for `format_of`; the timing does not fit the trace, or no requested table uses it; a table does
            not exist, a package is missing, or the file cannot be written.
    """
    names = tuple(dict.fromkeys(tables)) or _EVENT
    kind = format_of(path, form, tables, by_class=by_class, is_part=events is not None or window is not None)
    if timing is not None and not any(name in SCHEMAS and SCHEMAS[name].timed for name in names):
        timed = ", ".join(name for name, schema in SCHEMAS.items() if schema.timed)
        raise UsageError(f"a timing file is for the tables on activities: {timed}; none of them is to be written")
    written = _export(trace, path, kind, names, by_class, events, window, progress, timing)
    return replace(written, left_out=(*_left_out(trace, kind, names, events, window), *written.left_out))


def _export(
    trace: Trace, path: Path | str, kind: str, names: tuple[str, ...], by_class: bool, events: Bools | None,
    window: TimeWindow | None, progress: Progress | None, timing: Mapping[str, Timing] | None,
) -> Written:  # fmt: skip
    """Write the file; `kind` names the format, `names` the tables, and the other arguments are as for `export`."""
    rows = _within(trace, events, window)
    if rows is not None and (other := [name for name in names if name not in _WITH_EVENTS and name in SCHEMAS]):
        raise UsageError(f"--range and --filter choose events; the table {other[0]} is written whole")
    if by_class and names != _EVENT:
        raise UsageError("--by-class is for the table event")
    if kind in STACKS:
        if events is not None:
            raise UsageError(
                "--filter selects events; a file of stacks holds functions, of which --range selects a part"
            )
        count, left_out = STACKS[kind](trace, path, window)
        return Written(count, "stacks", left_out=left_out)
    if kind == "kev":
        every = np.ones(len(trace.events), np.bool_)
        report = write_subset(trace, path, every if rows is None else rows, window, progress=progress)
        return Written(report.selected, "events", report)
    if kind in _OF_EVENTS:
        count = (write_event_list if kind == "list" else write_listing)(trace, path, rows, progress)
        missing = left_out_of_listing(trace, rows, count)
        return Written(count, "event" if count == 1 else "events", left_out=(missing,) if missing else ())
    if kind == "perfetto":
        return Written(write_perfetto(trace, path, progress, window=window, events=events), "packets")
    if kind == "chrome":
        return Written(write_chrome(trace, path, progress), "events of Chrome")
    if kind.startswith("."):
        return Written(_write_plugged(trace, path, plugged_endings()[kind]), "written by a plug-in")
    if by_class:
        counts = {"event": write_by_class(trace, path, kind, rows, progress)}
    elif len(names) > 1:
        counts = write_folder(trace, path, names, kind, rows, progress, timing)
    else:
        counts = {names[0]: write_table(trace, path, names[0], kind, rows, progress, timing)}
    empty = (name for name, count in counts.items() if not count and rows is None)  # else the selection may be empty
    lacks = [line for name in empty for line in why_empty(trace, name, timing)]
    lacks += why_not_all(trace, names)
    of_what = ", ".join(names) if len(names) <= _MOST_NAMES else f"{len(names)} tables"
    total = sum(counts.values())
    return Written(total, f"row{'s' * (total != 1)} of {of_what}", left_out=tuple(lacks))


def _left_out(
    trace: Trace, kind: str, names: tuple[str, ...], events: Bools | None, window: TimeWindow | None
) -> Iterator[str]:
    """Yield a sentence for each part of the trace that the written file lacks, with the reason."""
    if window is not None:
        inside = trace.rows_between(window)
        if outside := len(trace.events) - (inside.stop - inside.start):
            yield f"{counted(outside, 'event')} {'is' if outside == 1 else 'are'} outside of the range"
    if events is not None:
        part = trace.rows_between(window) if window is not None else slice(0, len(trace.events))
        if refused := int(np.count_nonzero(~events[part])):
            yield f"{counted(refused, 'event')} {'does' if refused == 1 else 'do'} not fit the filter"
    if kind in _WITHOUT_EVENTS:
        yield f"arguments of events are left out: {_WITHOUT_EVENTS[kind]} has nothing of that form"
        without = [f"{count:,} of {name}" for name, count in trace.class_counts().items() if name in _NO_SLICES]
        codes = np.flatnonzero(trace.code_counts).tolist()
        pulses = sum(int(trace.code_counts[code]) for code in codes if "PULSE" in trace.catalogue.name(code))
        if kind == "chrome" and (without or pulses):
            without += [f"{pulses:,} of pulses"] if pulses else []
            yield f"events that are not slices are left out: {', '.join(without)}"
    elif kind not in (*_OF_EVENTS, *STACKS) and not kind.startswith(".") and names == _EVENT:
        yield "arguments are left out: a table has the same columns for all events; --arguments writes them"


def argument_tables(trace: Trace, path: Path | str, form: str = "") -> tuple[str, ...]:
    """Return names of tables with event arguments: `argument` for a file, a table per kind of event for a folder."""
    if form or Path(path).suffix:
        return ("argument",)
    return tuple(name for name, codes in kinds(trace).items() if trace.code_counts[list(codes)].any())


def _within(trace: Trace, events: Bools | None, window: TimeWindow | None) -> Bools | None:
    """Return which events are both selected and in the range, bool (events,); None for all."""
    if window is None:
        return events
    inside = np.zeros(len(trace.events), np.bool_)
    inside[trace.rows_between(window)] = True
    return inside if events is None else inside & events


def _write_plugged(trace: Trace, path: Path | str, by: Plugin) -> int:
    """Write a trace by a plug-in; return its count of items. If it fails, an older file stays unchanged."""
    with NewFile(path, reading=source_files(trace.path), streams=True) as file:
        count = by.run(lambda write: int(write(trace, file.stream)), -1)
        if count < 0:
            raise WriteError(path, by.failure)
    return count
