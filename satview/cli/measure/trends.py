"""`satview trends DIR`: print a metric of each trace of a data set over time, and the outliers."""

from __future__ import annotations

import argparse
from typing import Any

from satview.base.errors import UsageError
from satview.base.process import FINE
from satview.cli.shared.files import InputFile, add_command
from satview.cli.shared.table_output import FORMATS, print_table
from satview.fleet.query import metric_of, metrics, middle, trend

_EPILOG = """\
`satview export FOLDER -o DIR` creates the data set. `satview DIR` shows the same figures in a window, where a click
opens the trace. A value is an outlier if its modified z-score is above 3.5. Needs the packages duckdb and pyarrow.
"""


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `trends` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "trends", "one metric across many traces, over time",
                         "Show how a metric changes from trace to trace.", _EPILOG)  # fmt: skip
    add = parser.add_argument
    add("fleet", nargs="?", default="", metavar="DIR", type=InputFile, help="folder of the data set")
    add("-m", "--metric", default="ready-longest", metavar="NAME", help="metric to show (default %(default)s)")
    add("--sql", metavar="QUERY", help="your own metric: a query that returns the columns trace and value")
    add("--list", action="store_true", help="list the metrics and exit")
    add("--outliers", action="store_true", help="only traces whose value is an outlier")
    add("--format", choices=FORMATS, default="table", help="(default %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Print the value of a metric for each trace of a data set.

    Raises:
        UsageError: There is no such data set or metric, or the query has an error.
    """
    if args.list:
        width = max(map(len, metrics()))
        print("\n".join(f"{metric.name:<{width}}  {metric.title}" for metric in metrics().values()))
        return FINE
    if not args.fleet:
        raise UsageError("the folder of a data set is missing")
    metric = args.sql or args.metric
    traces = trend(args.fleet, metric)
    shown = traces.rows(traces["outlier"] != "") if args.outliers else traces
    more = {"metric": metric_of(metric).name, "median": middle(traces["value"])}
    print_table(shown, args.format, "traces", more=more)
    return FINE
