"""`satview query FILE "select ..."`: run SQL on the tables of a trace; print a table, CSV, JSON or Parquet."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from satview.analysis.activities import read_timing
from satview.base.errors import UsageError
from satview.base.new_file import NewFile, is_standard_output
from satview.base.process import COST_DATA, FINE, say
from satview.base.safe_text import visible_line
from satview.cli.shared.files import InputFile, OutputFile, add_command, add_names
from satview.cli.shared.table_output import print_rows
from satview.cli.shared.terminal import cell, dim, make_console, working, working_on
from satview.cli.shared.traces import open_named
from satview.export.tables import writer_for
from satview.fleet.query import is_dataset, query_dataset
from satview.tables.result import Result, json_value, value_text
from satview.tables.schema import SCHEMAS, views
from satview.tables.sql import Limits, sql

_FILE_FORMATS: Final = ("csv", "json", "parquet")  # each is the ending of such files, too
_MIB: Final = 1 << 20
_MOST_S: Final = 1_000_000
_MOST_MIB: Final = 1 << 24  # 16 TiB
_MOST_THREADS: Final = 4096
_EPILOG: Final = """\
Queries use DuckDB SQL. `satview query --list` prints the tables, views and macros; docs/tables.md describes their
columns. A query is read-only and cannot reach files or the network. It runs in a separate process, which is stopped
when it exceeds a limit. A result larger than --answer-limit is cut: the rows up to the limit are printed, JSON ends
with an entry {"cut": ...}, and a message goes to standard error.

  satview query boot.kev show tables                          # names, and what a row stands for
  satview query boot.kev describe ready_wait                  # its columns
  satview query boot.kev "select coid, count(*) from call_msg_sendv group by coid"     # arguments of a kernel call
  satview query boot.kev "select * from ready_wait limit 10"
  satview query boot.kev "select * from load_per(100000000)" --format csv
  satview query fleet "select trace, count(*) from verdict group by trace"     # a data set of many traces
  satview query boot.kev "from state where state = 'MUTEX' and length_ns > 1000000"

Needs the packages duckdb and pyarrow.
Exit status: 0 success, 1 data was lost to problems in the trace, or the result was cut, 2 not a trace, or wrong usage.
"""


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `query` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "query", "run SQL queries on a trace",
                         "Run an SQL query on a trace.", _EPILOG)  # fmt: skip
    add = parser.add_argument
    add("file", nargs="?", default="", metavar="FILE", type=InputFile,
        help="a .kev file, a traceprinter listing or a thread trace; or a data set of traces")  # fmt: skip
    add("query", nargs="*", metavar="QUERY",
        help="one SELECT, show tables or describe NAME; - reads it from standard input")  # fmt: skip
    add("--list", action="store_true", help="list the tables, views and macros and exit")
    add("--format", choices=("table", *_FILE_FORMATS), help="(default: by the file extension of OUT, else table)")
    add("-o", "--output", default="-", metavar="OUT", type=OutputFile,
        help="file for CSV, JSON or Parquet (default: standard output)")  # fmt: skip
    add("--time-limit", type=float, default=60.0, metavar="S",
        help="seconds until the query is stopped (default %(default)s)")  # fmt: skip
    add("--memory-limit", type=int, default=2048, metavar="MIB", help="memory the query may use (default %(default)s)")
    add("--answer-limit", type=int, default=1024, metavar="MIB", help="largest result size (default %(default)s)")
    add("--threads", type=int, default=0, metavar="N", help="processors to use (default: all)")
    add("-c", "--timing", metavar="FILE.toml", type=InputFile,
        help="deadlines, activities and chains of your own, as for late, for the tables on them")  # fmt: skip
    add_names(parser.add_argument, symbols=True)


def run(args: argparse.Namespace) -> int:
    """Print the result of a query; return 0, or 1 if data was lost to problems in the trace or the result was cut.

    Raises:
        UsageError: The query has an error or exceeds a limit, or a package is missing.
    """
    if args.list:
        _print_list()
        return FINE
    if not 0 < args.time_limit <= _MOST_S or not 0 < args.memory_limit <= _MOST_MIB:
        raise UsageError(f"--time-limit must be above 0 and at most {_MOST_S:,}, --memory-limit at most {_MOST_MIB:,}")
    if not 0 < args.answer_limit <= _MOST_MIB or not 0 <= args.threads <= _MOST_THREADS:
        raise UsageError(
            f"--answer-limit must be above 0 and at most {_MOST_MIB:,}, --threads at most {_MOST_THREADS:,}"
        )
    if not args.file:
        raise UsageError("FILE is missing")
    text = _query_text(args.query)
    text = sys.stdin.read() if text == "-" and args.file != "-" else text
    if not text.strip():
        raise UsageError('a query is missing, for example "select * from ready_wait"; --list prints the tables')
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise UsageError("the query contains bytes that are not UTF-8")
    args.format = args.format or _format_of(args.output)
    if args.format == "table" and args.output != "-":
        raise UsageError("-o needs --format csv, json or parquet, or a file name with one of these extensions")
    if args.format == "parquet" and is_standard_output(args.output) and sys.stdout.isatty():
        raise UsageError("Parquet cannot be printed to a terminal; give a file with -o")
    limits = Limits(args.time_limit, args.memory_limit * _MIB, args.threads, args.answer_limit * _MIB)
    if is_dataset(args.file):
        _refuse_names(args)
        with working(working_on("querying", args.file)):
            result = query_dataset(args.file, text, limits, is_part_enough=True)
        _print(result, args)
        return COST_DATA if result.is_cut else FINE
    timing = read_timing(Path(args.timing)) if args.timing is not None else None
    trace = open_named(args)
    with working(working_on("querying", trace.path)):
        result = sql(trace, text, limits, is_part_enough=True, timing=timing)
    _print(result, args)
    return COST_DATA if trace.problems.cost_data or result.is_cut else FINE


def _refuse_names(args: argparse.Namespace) -> None:
    """Refuse options for a single trace, because the tables of a data set are already built."""
    if args.timing is not None:
        raise UsageError("the tables of a data set are already built; --timing is for one trace")
    if args.user_events:
        raise UsageError("the tables of a data set are already built; give --user-events to satview export")
    if args.pidin:
        raise UsageError("--pidin is for the trace of one target; in a data set names are those of the traces")
    if args.symbols:
        raise UsageError("--symbols is for one trace; in a data set functions keep their addresses")


def _query_text(words: list[str]) -> str:
    """Return the text of a query, which may be typed as several words without quotes: the words are joined."""
    if len(words) > 1 and any(any(map(str.isspace, word)) for word in words):
        raise UsageError(f"expected one QUERY but got {len(words)} arguments; use -o FILE to write the rows to a file")
    return " ".join(words)


def _format_of(output: str) -> str:
    """Return the format that a file's ending names; `table` if it names none."""
    ending = Path(output).suffix.lower().removeprefix(".")
    return ending if ending in _FILE_FORMATS else "table"


def _print(result: Result, args: argparse.Namespace) -> None:
    if args.format == "table":
        _print_table(result)
    else:
        with NewFile(args.output, streams=True) as file:
            _write(result, args.format, file)
    for line in result.reservations:
        say(f"{line[0].lower()}{line[1:]}")
    if result.is_cut:
        say(_cut_text(result))


def _cut_text(result: Result) -> str:
    return (f"the result was cut after {len(result):,} rows at the size limit; "
            "add a LIMIT, or raise --answer-limit")  # fmt: skip


def _write(result: Result, kind: str, file: NewFile) -> None:
    if kind == "json":
        file.stream.write((json.dumps(list(_json_rows(result)), indent=1, ensure_ascii=True) + "\n").encode())
        return
    writer_for(kind)(result.arrow(), file.stream)


def _json_rows(result: Result) -> Iterator[dict[str, Any]]:
    for row in result.rows():
        yield dict(zip(result.columns, map(json_value, row), strict=True))
    if result.is_cut:
        yield {"cut": _cut_text(result)}


def _print_table(result: Result) -> None:
    types = result.arrow().schema.types
    is_right = [str(kind).startswith(("int", "uint", "double", "float", "decimal")) for kind in types]
    rows = [[visible_line(value_text(value)) for value in row] for row in result.rows()]
    print_rows([visible_line(name) for name in result.columns], rows, is_right)
    print(dim(result.summary))


def _print_list() -> None:
    console = make_console(400)
    shown = Table(box=None, pad_edge=False, show_header=False)
    for schema in SCHEMAS.values():
        shown.add_row(schema.name, cell(schema.meaning))
    shown.add_row(
        "call_NAME, ...", "Events of one kind with their arguments as columns; show tables lists the ones in a trace."
    )
    for view in views().values():
        shown.add_row(view.usage, cell(view.meaning))
    console.print(shown)
