"""`satview query FILE "select ..."`: SQL over the tables of a trace, as table, CSV, JSON or Parquet."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from satview.base.errors import UsageError
from satview.base.new_file import NewFile
from satview.base.process_end import COST_DATA, FINE
from satview.base.targets import is_standard_output
from satview.formats.registry import open_trace, source_files

if TYPE_CHECKING:
    from satview.tables.sql import Result

_MIB: Final = 1 << 20
_EPILOG: Final = """\
The SQL is that of DuckDB. `satview query --list` prints the tables, views and macros; docs/tables.md says what
their columns mean. A query reads: it reaches neither files nor the network, and changes nothing.

  satview query boot.kev "select * from ready_wait limit 10"
  satview query boot.kev "select * from load_per(100000000)" --format csv
  satview query fleet "select trace, count(*) from verdict group by trace"     # of a data set of many traces
  satview query boot.kev "from state where state = 'MUTEX' and length_ns > 1000000"

Needs the extra packages of `pip install 'satview[tables]'`.
Exit status: 0 fine, 1 the trace has problems that cost data, 2 not a trace or bad use.
"""


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "query",
        help="SQL over the tables of a trace",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Run a query in SQL.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add(
        "file",
        nargs="?",
        default="",
        metavar="FILE",
        help="a .kev file, a traceprinter listing or a thread trace; or a data set of many",
    )
    add("query", nargs="?", default="", metavar="QUERY", help="one SELECT; - reads it from standard input")
    add("--list", action="store_true", help="print the tables, views and macros instead of a query")
    add("--format", choices=("table", "csv", "json", "parquet"), default="table", help="(default %(default)s)")
    add(
        "-o",
        "--output",
        default="-",
        metavar="OUT",
        help="file for CSV, JSON or Parquet (default: standard output)",
    )
    add("--time-limit", type=float, default=60.0, metavar="S", help="seconds it may take (default %(default)s)")
    add("--memory-limit", type=int, default=2048, metavar="MIB", help="MiB it may take (default %(default)s)")
    add("--threads", type=int, default=0, metavar="N", help="processors it uses at once (default: all)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the rows; return 0, or 1 if problems of the trace cost data.

    Raises:
        UsageError: The query is faulty, went over a limit, or a package is missing.
    """
    if args.list:
        _print_list()
        return FINE
    if args.time_limit <= 0 or args.memory_limit <= 0 or args.threads < 0:
        raise UsageError("--time-limit and --memory-limit are above 0, --threads is no negative number")
    if not args.file:
        raise UsageError("a FILE is missing")
    text = sys.stdin.read() if args.query == "-" and args.file != "-" else args.query
    if not text.strip():
        raise UsageError('a query is missing, such as "select * from ready_wait"; --list prints what there is')
    if args.format == "table" and args.output != "-":
        raise UsageError("-o goes with --format csv, json or parquet")
    if args.format == "parquet" and is_standard_output(args.output) and sys.stdout.isatty():
        raise UsageError("Parquet is nothing for a terminal; give a file with -o")
    from satview.fleet.layout import is_dataset
    from satview.tables.sql import Limits, sql  # brings numpy; --help needs none

    limits = Limits(args.time_limit, args.memory_limit * _MIB, args.threads)
    if is_dataset(args.file):
        from satview.fleet.query import query_dataset

        _print(query_dataset(args.file, text, limits), args, [])
        return FINE
    trace = open_trace(args.file)
    _print(sql(trace, text, limits), args, source_files(trace.path))
    return COST_DATA if trace.problems.cost_data else FINE


def _print(found: Result, args: argparse.Namespace, reading: list[Path]) -> None:
    if args.format == "table":
        _print_table(found)
    else:
        with NewFile(args.output, reading=reading, streams=True) as file:
            _write(found, args.format, file)


def _write(found: Result, kind: str, file: NewFile) -> None:
    if kind == "json":
        rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows()]
        file.stream.write((json.dumps(rows, indent=1, default=str, ensure_ascii=True) + "\n").encode())
        return
    from satview.export.table_files import writer_for

    writer_for(kind)(found.arrow(), file.stream)


def _print_table(found: Result) -> None:
    from rich.table import Table

    from satview.cli.shared.console import cell, make_console

    console = make_console(400)
    shown = Table(box=None, pad_edge=False, header_style="bold")
    types = found.arrow().schema.types
    for name, kind in zip(found.columns, types, strict=True):
        is_number = str(kind).startswith(("int", "uint", "double", "float", "decimal"))
        shown.add_column(cell(name), no_wrap=True, justify="right" if is_number else "left")
    for row in found.rows():
        shown.add_row(*("" if value is None else cell(_text(value)) for value in row))
    console.print(shown)
    console.print(f"[dim]{len(found):,} rows[/dim]")


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _print_list() -> None:
    from rich.table import Table

    from satview.cli.shared.console import cell, make_console
    from satview.tables.schema import SCHEMAS
    from satview.tables.sql import views

    console = make_console(400)
    shown = Table(box=None, pad_edge=False, show_header=False)
    for schema in SCHEMAS.values():
        shown.add_row(schema.name, cell(schema.meaning))
    for view in views().values():
        shown.add_row(view.usage, cell(view.says))
    console.print(shown)
