"""`satview trends DIR`: one figure for each trace of a data set over time, and which are far from the others."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from typing import TYPE_CHECKING, Any

from satview.base.errors import UsageError
from satview.base.process import FINE
from satview.base.safe_text import csv_text
from satview.cli.shared.files import InputFile

if TYPE_CHECKING:
    from satview.fleet.trends import Point, Trend

_EPILOG = """\
`satview export FOLDER -o DIR` creates the data set. `satview DIR` shows the same figures in a window, where a click
opens the trace. A value is an outlier if its modified z-score is above 3.5. Needs the packages duckdb and pyarrow.
"""


PURPOSE = "measure"


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "trends",
        help="one metric across many traces, over time",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Show how a metric changes from trace to trace.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("fleet", nargs="?", default="", metavar="DIR", type=InputFile, help="folder of the data set")
    add("-m", "--metric", default="ready-longest", metavar="NAME", help="metric to show (default %(default)s)")
    add("--sql", metavar="QUERY", help="your own metric: a query that returns the columns trace and value")
    add("--list", action="store_true", help="list the metrics and exit")
    add("--outliers", action="store_true", help="only traces whose value is an outlier")
    add("--format", choices=("table", "csv", "json"), default="table", help="(default %(default)s)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the trend.

    Raises:
        UsageError: There is no data set or metric, or the query is faulty.
    """
    if args.fleet and not args.list:
        from satview.tables.query_process import start_early

        start_early()
    from satview.fleet.trends import metrics, trend  # brings numpy, while the process starts; --help needs none

    if args.list:
        width = max(map(len, metrics()))
        print("\n".join(f"{metric.name:<{width}}  {metric.title}" for metric in metrics().values()))
        return FINE
    if not args.fleet:
        raise UsageError("the folder of a data set is missing")
    found = trend(args.fleet, args.sql or args.metric)
    shown = found.outliers if args.outliers else list(found.points)
    if args.format == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(_record(shown[0]) if shown else ("trace", "value"))
        writer.writerows([csv_text(each) if isinstance(each, str) else each for each in _record(point).values()]
                         for point in shown)  # fmt: skip
    elif args.format == "json":
        print(json.dumps({"metric": found.metric.name, "median": _plain(found.middle),
                          "traces": [_record(point) for point in shown]}, indent=2))  # fmt: skip
    else:
        _print_table(found, shown)
    return FINE


def _plain(value: float) -> float | None:
    return None if value != value else value  # noqa: PLR0124  -- nan


def _record(point: Point) -> dict[str, Any]:
    return {
        "trace": point.trace,
        "begin": point.begin.isoformat() if point.begin else None,
        "value": _plain(point.value),
        "outlier": point.is_outlier,
        "start_ns": point.start_ns if point.start_ns >= 0 else None,
        "event": point.event + 1 if point.event >= 0 else None,
        "path": str(point.path),
    }


def _print_table(found: Trend, shown: list[Point]) -> None:
    from rich.table import Table

    from satview.cli.shared.console import cell, make_console

    console = make_console(400)
    metric, far = found.metric, found.outliers
    console.print(cell(f"{metric.title}: median {metric.text(found.middle) or 'unknown'}, {len(found):,} traces, "
                       f"{len(far):,} far from the others"))  # fmt: skip
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("Trace", "Begin", "Value", ""):
        table.add_column(title, no_wrap=True, justify="right" if title == "Value" else "left")
    for point in shown:
        begin = f"{point.begin:%Y-%m-%d %H:%M:%S}" if point.begin else ""
        mark = cell(point.location.command) if point.is_outlier else ""
        table.add_row(cell(point.trace), begin, metric.text(point.value), mark)
    console.print(table)
