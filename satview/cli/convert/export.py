"""`satview export FILE -o OUT`: write tables as Parquet, Arrow, CSV or JSON lines, or a whole trace for a viewer.

A folder of traces becomes one data set of Parquet.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any, Final

from satview.analysis.activities import read_timing
from satview.base.errors import UsageError
from satview.base.new_file import is_standard_output
from satview.base.process import COST_DATA, FINE, say
from satview.base.safe_text import counted, visible_line
from satview.cli.convert.filter import built_rules, print_report, report_nothing, selected_events
from satview.cli.shared.files import InputFile, add_command, add_names, add_output, add_range, refuse_below, take_output
from satview.cli.shared.terminal import working, working_on
from satview.cli.shared.traces import open_named, range_of, read_descriptions
from satview.export.by_ending import FORMATS, STACKS, argument_tables, export, format_of, is_file_name
from satview.fleet.export import Exported, export_folder, export_on_cluster
from satview.fleet.query import DEFAULT_TABLES, SKIPPED
from satview.formats.registry import TRACE_PATTERNS
from satview.formats.unixware import columns
from satview.tables.schema import SCHEMAS

_MOST_FAULTS: Final = 20  # maximum number of printed faults of each kind
_EPILOG: Final = """\
The file extension of OUT selects the format: .parquet, .arrow, .csv or .jsonl for tables, .pftrace for Perfetto, .json
for Chrome and other readers of its traces, .kev for a smaller trace, .txt for a listing like traceprinter's,
.folded or .speedscope.json for flame graphs of functions.
--format list writes the window's event list as CSV, including names and arguments.
docs/tables.md describes the tables and their columns.

  satview export boot.kev -o events.parquet
  satview export boot.kev -o boot --by-class                  # a folder of Parquet, one file per class of events
  satview export boot.kev -o states.csv --table state
  satview export boot.kev -o chains.csv --table chain -c timing.toml
  satview export boot.kev -o arguments.parquet --arguments    # every argument of every event, one per row
  satview export boot.kev -o arguments --arguments            # a folder, one file per kind of event
  satview export boot.kev -o sends.csv --table call_msg_sendv
  satview export boot.kev -o boot --table all                 # a folder of Parquet, one file per table
  satview export boot.kev -o calls.parquet -e 'class == KER_CALL' --range 1s..2s
  satview export boot.kev -o boot.folded --symbols build/
  satview export nightly/ -o fleet --jobs 8    # all traces below a folder, as one data set

Export a folder again at any time: only new and changed traces are read. Details: docs/fleet.md.
Needs the package pyarrow, except for .pftrace, .json, .kev, .txt and --format list.
Exit status: 0 success, 1 data was lost to problems in the trace, or no event matched, 2 not a trace, or wrong usage.
"""


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `export` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "export", "Parquet, Arrow, CSV, Perfetto, Chrome, .kev, listings",
                         "Write a trace for other programs.", _EPILOG)  # fmt: skip
    add = parser.add_argument
    add("file", metavar="FILE", type=InputFile, help="a .kev file, a listing or a thread trace; or a folder of traces")
    add_output(add, "file or folder to write; - is standard output")
    add("--table", action="append", default=[], metavar="NAME",
        help="table to write (default: event); repeatable; or all")  # fmt: skip
    add("--arguments", action="store_true",
        help="write all arguments: one per row to a file, one table per kind of event to a folder")  # fmt: skip
    add("--by-class", action="store_true",
        help="write a folder with one file per event class: class=THREAD/event.parquet")  # fmt: skip
    add("--format", choices=FORMATS,
        help="format, if not set by the file extension; for folders (default: parquet)")  # fmt: skip
    add_range(add, "only events in this range")
    add("-e", "--filter", dest="expression", metavar="EXPR", action="append", default=[],
        help="only events that meet this condition; repeatable, all must hold")  # fmt: skip
    add("-c", "--timing", metavar="FILE.toml", type=InputFile,
        help="deadlines, activities and chains of your own, as for late, for the tables on them")  # fmt: skip
    files = parser.add_argument_group("for a folder of traces")
    files.add_argument("--jobs", type=int, metavar="N", help="parallel processes (default: one per processor)")
    files.add_argument("--pattern", action="append", default=[], metavar="GLOB",
                       help="files to read, e.g. '*.txt'; repeatable (default: .qst, .kev, also packed)")  # fmt: skip
    files.add_argument("--dask", metavar="ADDRESS", help="scheduler of a Dask cluster that sees the same folders")
    add_names(parser.add_argument, symbols=True)


def run(args: argparse.Namespace) -> int:
    """Export a trace; return 0, or 1 if data was lost to problems in the trace or no event matched.

    Raises:
        UsageError: The arguments are not valid, a package is missing, or the file cannot be written.
    """
    take_output(args, "-o OUT is missing; its file extension selects the format, for example -o events.csv")
    is_fleet = args.jobs is not None or bool(args.pattern or args.dask)
    if _is_folder_of_traces(args, is_fleet=is_fleet):
        return _export_folder(args)
    if is_fleet:
        reason = f", and {args.file} holds one thread trace" if Path(args.file).is_dir() else ""
        raise UsageError(f"--jobs, --pattern and --dask are for a folder of traces{reason}")
    timing = read_timing(Path(args.timing)) if args.timing is not None else None
    trace = open_named(args)
    tables = list(SCHEMAS) if "all" in args.table else list(dict.fromkeys(args.table))
    if args.arguments:
        tables += [name for name in argument_tables(trace, args.output, args.format or "") if name not in tables]
    window, rows, reason = range_of(args.range, trace), None, ""
    is_part = bool(args.range or args.expression)
    kind = format_of(
        args.output, args.format or "", tables, by_class=args.by_class, is_part=is_part
    )  # before the long part
    if is_part:
        _, built = built_rules([], False, trace)
        with working(working_on("filtering", trace.path)):
            rows, reason = selected_events(built, args.expression, trace, window)
    with working(working_on("writing", args.output)) as report:
        events = rows if args.expression or kind not in STACKS else None  # stacks take a range, but no events
        written = export(trace, args.output, args.format or "", tables, by_class=args.by_class, events=events,
                         window=window, progress=report, timing=timing)  # fmt: skip
    to_output = is_standard_output(args.output)
    if written.subset is not None:
        print_report(written.subset)
    elif to_output:
        say(f"{written.count:,} {written.unit}")
    else:
        print(f"{args.output}: {written.count:,} {written.unit}")
    for line in written.left_out:
        (say if to_output else print)(f"  {line}")
    if reason:
        return report_nothing(reason)
    if kind in STACKS and not written.count and written.left_out:
        return COST_DATA
    return COST_DATA if trace.problems.cost_data else FINE


def _is_folder_of_traces(args: argparse.Namespace, *, is_fleet: bool) -> bool:
    """Return whether the file is a folder of traces; False if the files in it are parts of one thread trace.

    A folder with both is one of traces, unless the output is named like a file, which holds one trace.
    """
    folder = Path(args.file)
    if not folder.is_dir() or not columns.is_set(folder):
        return folder.is_dir()
    has_others = any(path for pattern in args.pattern or TRACE_PATTERNS for path in folder.rglob(pattern))
    return has_others and (is_fleet or not is_file_name(args.output))


def _export_folder(args: argparse.Namespace) -> int:
    """Export a folder of traces; return 0, or 1 if a trace was skipped or lost data to problems."""
    if args.range or args.expression or args.by_class or args.format not in (None, "parquet"):
        raise UsageError("a folder of traces can only be exported as whole tables, in Parquet")
    if is_file_name(args.output) and not Path(args.output).is_dir():
        raise UsageError(f"{args.output}: a data set is a folder; name one without {Path(args.output).suffix}")
    refuse_below(1, "--jobs", args.jobs)
    tables = list(SCHEMAS) if "all" in args.table else [*args.table]
    if args.arguments and "argument" not in tables:
        tables = [*(tables or DEFAULT_TABLES), "argument"]
    if args.pidin:
        raise UsageError("--pidin is for the trace of one target; leave it out for a folder of traces")
    if args.timing is not None:
        raise UsageError("--timing is for one trace; of a folder of traces activities are those that are learned")
    if args.symbols:
        raise UsageError("--symbols is for one trace; of a folder of traces functions keep their addresses")
    described = read_descriptions(args.user_events).events if args.user_events else {}
    if args.dask:
        with working(working_on("exporting", args.file)):
            exported = export_on_cluster(args.file, args.output, args.dask, tables, args.pattern, described)
    else:
        jobs = args.jobs or os.cpu_count() or 1
        with working(working_on("exporting", args.file)) as report:
            exported = export_folder(args.file, args.output, tables, jobs, args.pattern,
                                  lambda _done, number, count: report(number / count), described)  # fmt: skip
    if columns.is_set(Path(args.file)):
        say(f"{args.file}: the thread trace in it is left out; name one of its files to export it")
    return _report(exported, args.output)


def _report(exported: Exported, name: str) -> int:
    for trace in exported.skipped[:_MOST_FAULTS]:
        say(f"{visible_line(trace.name)} skipped: {visible_line(trace.fault)}")
    if len(exported.skipped) > _MOST_FAULTS:
        say(f"and {len(exported.skipped) - _MOST_FAULTS:,} more skipped; {SKIPPED} lists all of them")
    misfits = [f"{visible_line(trace.name)}: {misfit}" for trace in exported.done for misfit in trace.misfits]
    for line in misfits[:_MOST_FAULTS]:
        say(line)
    if len(misfits) > _MOST_FAULTS:
        say(f"and {len(misfits) - _MOST_FAULTS:,} more descriptions that do not fit")
    for trace_name in exported.gone[:_MOST_FAULTS]:
        say(f"{visible_line(trace_name)} is gone; its tables stay in the data set")
    if len(exported.gone) > _MOST_FAULTS:
        say(f"and {len(exported.gone) - _MOST_FAULTS:,} more that are gone")
    events = sum(trace.events for trace in exported.done)
    parts = [f"{counted(len(exported.done), 'trace')} written, {counted(events, 'event')}"]
    if exported.unchanged:
        parts.append(f"{exported.unchanged:,} unchanged")
    if exported.skipped:
        parts.append(f"{len(exported.skipped):,} skipped")
    if exported.gone:
        parts.append(f"{len(exported.gone):,} gone")
    print(f"{name}: {', '.join(parts)}")
    return COST_DATA if exported.skipped or any(trace.costs_data for trace in exported.done) else FINE
