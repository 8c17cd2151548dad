"""`satview export FILE -o OUT`: tables as Parquet, Arrow, CSV or JSON lines, or all of it for Perfetto and Chrome.

Of a folder of traces all become one data set of Parquet.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from satview.base.errors import UsageError
from satview.base.process_end import COST_DATA, FINE, say
from satview.base.targets import is_standard_output
from satview.cli.shared.files import InputFile, OutputFile
from satview.cli.shared.progress import open_trace, working, working_on
from satview.cli.shared.ranges import add_range, range_of
from satview.export.plugged import plugged_endings, write_plugged
from satview.formats.unixware import members

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from satview.base.time import TimeWindow
    from satview.store.trace import Trace

_ENDINGS: Final = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".csv": "csv", ".jsonl": "jsonl",
                   ".ndjson": "jsonl", ".kev": "kev", ".txt": "listing", ".pftrace": "perfetto",
                   ".perfetto-trace": "perfetto", ".json": "chrome"}  # fmt: skip
_WHOLE: Final = {"kev": "a .kev file holds events alone", "listing": "a listing holds events alone",
                 "list": "the list holds events alone", "perfetto": "a file for Perfetto holds the whole trace",
                 "chrome": "a file for Chrome holds the whole trace"}  # fmt: skip
_OF_EVENTS: Final = ("kev", "listing", "list")  # of which rows can be selected
_EPILOG: Final = """\
The ending of OUT says what is written: .parquet, .arrow, .csv, .jsonl for tables, .pftrace for Perfetto, .json for
Chrome and what reads its traces, .kev for a smaller trace, .txt for a listing as traceprinter prints it. --format list
is the list of events of the window as CSV, names and arguments included.
docs/tables.md says what the tables and their columns are.

  satview export boot.kev -o events.parquet
  satview export boot.kev -o boot --by-class                  # a folder of Parquet, one file per class of events
  satview export boot.kev -o states.csv --table state
  satview export boot.kev -o boot --table all                 # a folder of Parquet, one file per table
  satview export boot.kev -o calls.parquet -e 'class == KER_CALL' --range 1s..2s
  satview export nightly/ -o fleet --jobs 8    # all traces below a folder: one data set

A folder is gone through again at any time: only what is new or has changed is read. Details: docs/fleet.md.
Needs the package pyarrow, but for .pftrace, .json, .kev, .txt and --format list.
Exit status: 0 fine, 1 the trace has problems that cost data, 2 not a trace or bad use.
"""


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "export",
        help="tables of a trace as Parquet, Arrow, CSV or JSON lines; Perfetto, Chrome",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Write a trace for other programs.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("file", metavar="FILE", type=InputFile, help="a .kev file, a listing or a thread trace; or a folder of traces")
    add(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        type=OutputFile,
        help="the new file, or a new folder; - is standard output",
    )
    add("--table", action="append", default=[], metavar="NAME", help="which table (default: event); several, or all")
    add("--by-class", action="store_true", help="events in a folder, one file per class: class=THREAD/event.parquet")
    add(
        "--format",
        choices=("parquet", "arrow", "csv", "jsonl", "list"),
        help="instead of the ending; of folders (parquet)",
    )
    add_range(add, "only events of this part of the trace")
    add("-e", "--filter", dest="expression", metavar="EXPR", action="append", default=[],
        help="only events for which this condition holds; several must all hold")  # fmt: skip
    fleet = parser.add_argument_group("of a folder of traces")
    fleet.add_argument("--jobs", type=int, metavar="N", help="processes at once (default: one a processor)")
    fleet.add_argument("--pattern", action="append", default=[], metavar="GLOB",
                       help="names of files, such as '*.txt'; repeatable (default: .kev, compressed too)")  # fmt: skip
    fleet.add_argument("--dask", metavar="ADDRESS", help="scheduler of a Dask cluster that sees the same folders")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the file; return 0, or 1 if problems of the trace cost data.

    Raises:
        UsageError: The arguments do not fit, a package is missing, or the file cannot be written.
    """
    if is_folder_of_traces(args.file):
        from satview.cli.shared import fleet

        return fleet.export(args)
    if args.jobs is not None or args.pattern or args.dask:
        raise UsageError("--jobs, --pattern and --dask are for a folder of traces")
    trace = open_trace(args.file)
    from satview.tables.schema import SCHEMAS

    names = list(SCHEMAS) if "all" in args.table else list(dict.fromkeys(args.table)) or ["event"]
    kind = _kind(args, is_folder=args.by_class or len(names) > 1)
    rows = _rows(args, trace)
    if rows is not None and names != ["event"]:
        raise UsageError("--range and --filter choose events; the other tables are written whole")
    if args.by_class and names != ["event"]:
        raise UsageError("--by-class is for the table event")
    if kind == "kev":
        _write_kev(trace, args.output, rows, range_of(args.range, trace))
    elif kind in _OF_EVENTS:
        _write_listing(trace, args.output, kind, rows)
    elif kind.startswith("."):
        with working(working_on("writing", args.output)):
            count = write_plugged(trace, args.output, plugged_endings()[kind])
        (say if is_standard_output(args.output) else print)(f"{args.output}: {count:,} written by a plug-in")
    elif kind in _WHOLE:
        _write_whole(trace, args.output, kind)
    else:
        count = _write(args, trace, names, kind, rows)
        if not is_standard_output(args.output):
            print(f"{args.output}: {count:,} rows of {', '.join(names)}")
        else:
            say(f"{count:,} rows of {', '.join(names)}")
    return COST_DATA if trace.problems.cost_data else FINE


def is_folder_of_traces(name: str) -> bool:
    """Return whether a name is that of a folder, and not of a thread trace, which is one too."""
    path = Path(name)
    return path.is_dir() and not members.is_set(path)


def _kind(args: argparse.Namespace, *, is_folder: bool) -> str:
    ending = Path(args.output).suffix.lower()
    if args.format and args.format != "list":
        return str(args.format)
    if args.format:
        ending = ""
    if ending in _ENDINGS or args.format:
        kind = args.format or _ENDINGS[ending]
        is_part = is_folder or args.table not in ([], ["event"])
        if kind in _WHOLE and (is_part or (kind not in _OF_EVENTS and (args.range or args.expression))):
            raise UsageError(f"{_WHOLE[kind]}; the options choose a part of it")
        return kind
    if ending in (plugged := plugged_endings()):
        if is_folder or args.table or args.range or args.expression:
            raise UsageError(
                f"the plug-in {plugged[ending].name} writes the whole trace; the options choose a part of it"
            )
        return ending
    if is_folder and not ending:
        return "parquet"
    raise UsageError(
        f"{args.output}: the ending says what is written; there are {', '.join((*_ENDINGS, *plugged))}, and --format"
    )


def _rows(args: argparse.Namespace, trace: Trace) -> NDArray[np.bool_] | None:
    """Return the events that were selected, bool (events,); None for all."""
    if not args.range and not args.expression:
        return None
    import numpy as np

    from satview.cli.filter import built_rules, selected_events
    from satview.filters.derived_columns import TraceDerivedColumns

    _, built = built_rules([], False, trace)
    with working(working_on("filtering", trace.path)):
        selected = selected_events(built, args.expression, trace, TraceDerivedColumns(trace))
    window = range_of(args.range, trace)
    if window is not None:
        inside = np.zeros(len(selected), np.bool_)
        inside[trace.rows_between(window)] = True
        selected &= inside
    return selected


def _write(args: argparse.Namespace, trace: Trace, names: list[str], kind: str, rows: NDArray[np.bool_] | None) -> int:
    from satview.export.tables import write_by_class, write_folder, write_table

    with working(working_on("writing", args.output)) as report:
        if args.by_class:
            return write_by_class(trace, args.output, kind, rows, report)
        if len(names) > 1:
            return write_folder(trace, args.output, names, kind, report)
        return write_table(trace, args.output, names[0], kind, rows, report)


def _write_listing(trace: Trace, path: str, kind: str, rows: NDArray[np.bool_] | None) -> None:
    from satview.export.listing_part import write_event_list, write_listing

    with working(working_on("writing", path)) as report:
        count = (write_event_list if kind == "list" else write_listing)(trace, path, rows, report)
    say_or_print = say if is_standard_output(path) else print
    say_or_print(f"{path}: {count:,} events")


def _write_whole(trace: Trace, path: str, kind: str) -> None:
    from satview.export.chrome import write_chrome
    from satview.export.perfetto import write_perfetto

    with working(working_on("writing", path)) as report:
        count = (write_perfetto if kind == "perfetto" else write_chrome)(trace, path, report)
    say_or_print = say if is_standard_output(path) else print
    say_or_print(f"{path}: {count:,} {'packets' if kind == 'perfetto' else 'events of Chrome'}")


def _write_kev(trace: Trace, path: str, rows: NDArray[np.bool_] | None, window: TimeWindow | None) -> None:
    import numpy as np

    from satview.cli.filter import print_report
    from satview.export.subset import write_subset

    every = np.ones(len(trace.events), np.bool_)
    with working(working_on("writing", path)) as report:
        written = write_subset(trace, path, every if rows is None else rows, window, progress=report)
    print_report(written)
