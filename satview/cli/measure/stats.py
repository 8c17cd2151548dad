"""`satview stats FILE`: print statistics on CPU use, waits, calls, messages and more; as tables, CSV or JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.needs import lost_words
from satview.analysis.statistics import Statistics
from satview.analysis.times.basis import EXACT, Basis
from satview.answers.statistics import TABLES, client_server_table, statistics_keys, statistics_table
from satview.answers.table import Kind, Table
from satview.base.errors import UsageError
from satview.base.process import COST_DATA, FINE
from satview.base.time import format_duration
from satview.cli.convert.filter import built_rules, report_nothing, selected_events
from satview.cli.shared.files import InputFile, RuleFile, add_command, add_names, add_range, refuse_below
from satview.cli.shared.table_output import print_for_people, print_json, print_table
from satview.cli.shared.terminal import working, working_on
from satview.cli.shared.traces import open_named, range_of
from satview.filters.derived_columns import TraceDerivedColumns
from satview.store.time_ranges import outside_record, outside_words

_PER_SERVER: Final = "client-server"
_ALL: Final = "all"
_EPILOG: Final = """\
Columns that count events, kernel calls, messages and interrupts follow --filter and --rules.
Times of threads and CPUs never do: hiding events does not change who ran.
Exit status: 0 success, 1 data was lost to problems in the trace, or no event matched, 2 not a trace, or wrong usage.
"""


class _Names:
    """The names of all tables; plug-ins are loaded only to look up a name that satview itself does not have."""

    def __contains__(self, name: object) -> bool:
        return name in TABLES or name in tuple(self)

    def __iter__(self) -> Iterator[str]:
        yield from (*statistics_keys(), _ALL)


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `stats` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "stats", "who used the CPUs, waited, called, sent",
                         "Print statistics.", _EPILOG)  # fmt: skip
    add = parser.add_argument
    add("file", metavar="FILE", type=InputFile, help="a .kev file, a traceprinter listing or a thread trace")
    add("--by", metavar="NAME", action="append", choices=_Names(),
        help="what the rows are: %(choices)s (default: thread); repeatable")  # fmt: skip
    add("--per-server", action="store_true",
        help="with --by client-server: one more column per server, what each client imposed on it")  # fmt: skip
    add_range(add, "part of the trace")
    add("-e", "--filter", dest="expression", metavar="EXPR", action="append", default=[],
        help="count events for which this condition holds; several must all hold")  # fmt: skip
    add("-r", "--rules", metavar="FILE", type=RuleFile, action="append", default=[],
        help="count events that pass a rule file")  # fmt: skip
    add("--allow-code", action="store_true", help="run the Python files that CALL rules name; they can do anything")
    add("--format", choices=("table", "csv", "json"), default="table", help="(default %(default)s)")
    add("--sort", default="", metavar="COLUMN", help="name of a column as in CSV, such as longest_ready_ns")
    add("--top", type=int, metavar="N", help="the first N rows only")
    add_names(parser.add_argument, symbols=True)


def run(args: argparse.Namespace) -> int:
    """Print the tables; return 0, or 1 if data was lost to problems in the trace or no event matched.

    Raises:
        UsageError: The range, a filter or a column is not valid.
    """
    refuse_below(1, "--top", args.top)
    if args.per_server and _PER_SERVER not in _requested(args.by):
        raise UsageError(f"--per-server adds columns to --by {_PER_SERVER}; give that too")
    trace = open_named(args, says_outside=False)
    window = range_of(args.range, trace)
    derived = TraceDerivedColumns(trace)
    passes, is_nothing = None, False
    if args.rules or args.expression:
        _, built = built_rules(args.rules, args.allow_code, trace)
        with working(working_on("filtering", trace.path)):
            passes, reason = selected_events(built, args.expression, trace, window, derived)
        is_nothing = bool(reason)
        if is_nothing:
            report_nothing(reason)
    statistics = Statistics(trace, window, passes, Basis(trace, derived))
    shown = _threads_of(statistics)
    names, tables = _requested(args.by), []
    with working(working_on("counting in", trace.path)) as report:
        for number, name in enumerate(names):
            report(number / len(names))
            is_wide = args.per_server and name == _PER_SERVER
            make = partial(client_server_table, per_server=True) if is_wide else partial(statistics_table, name)
            tables.append(_ordered(make(statistics, shown), args.sort).head(args.top))
    if args.format == "csv":
        if len(tables) > 1:
            raise UsageError("--format csv holds one table; choose one with --by, or --format json")
        print_table(tables[0], args.format, names[0])
    elif args.format == "json":
        _print_json(statistics, args, tables)
    else:
        _print_tables(statistics, args, tables)
    return COST_DATA if trace.problems.cost_data or is_nothing else FINE


def _requested(names: list[str] | None) -> list[str]:
    return list(statistics_keys()) if _ALL in (names or ()) else list(dict.fromkeys(names or ["thread"]))


def _threads_of(statistics: Statistics) -> NDArray[np.bool_] | None:
    """Return which threads have an event in the range that passes the filter, bool (threads,); None for all."""
    trace, passes = statistics.trace, statistics.passes
    if passes is None:
        return None
    rows = trace.rows_between(statistics.window)
    threads = np.zeros(len(trace.threads), np.bool_)
    threads[trace.events.thread[rows][passes[rows]]] = True
    return threads


def _ordered(table: Table, key: str) -> Table:
    """Return a table sorted by a column, given by its name in CSV; in the default order if `key` is empty."""
    question = table.question
    if not key:
        return table.sorted_by(question.sort_name) if question.sort_name else table
    columns = {column.key: column for column in question.columns if column.title}
    if key not in columns:
        fault = f"{question.title.lower()} have no column {key[:40]!r}; they have {', '.join(columns)}"
        raise UsageError(f"--sort: {fault}")
    return table.sorted_by(columns[key].name, descending=not columns[key].kind.is_words)


def _counted(statistics: Statistics, args: argparse.Namespace) -> str:
    """Return a text that says which events are counted."""
    rows = statistics.trace.rows_between(statistics.window)
    total = rows.stop - rows.start
    if statistics.passes is None:
        return "1 event" if total == 1 else f"all {total:,} events"
    rules = [f"rules of {Path(name).name}" for name in args.rules]
    count = int(np.count_nonzero(statistics.passes[rows]))
    return f"{count:,} of {total:,} events, those that pass: {' and '.join([*rules, *args.expression])}"


def _print_json(statistics: Statistics, args: argparse.Namespace, tables: list[Table]) -> None:
    clock = statistics.trace.clock
    reported = {
        "file": str(statistics.trace.path),
        "start_ns": clock.ns(statistics.window.start),
        "end_ns": clock.ns(statistics.window.end),
        "outside": outside_record(statistics.trace) if not args.range else None,
        "lost_ns": clock.duration_ns(statistics.lost_cycles),
        "counts": _counted(statistics, args),
        **{table.question.name: table.records() for table in tables},
        "trust": {table.question.name: _trust(table) for table in tables},
    }
    if unanswered := {table.question.name: ". ".join(table.missing) for table in tables if table.missing}:
        reported["cannot_tell"] = unanswered
    print_json(reported)


def _trust(table: Table) -> dict[str, dict[str, str]]:
    """Return the trust in each column of numbers (mark, and reason if not exact) as plain values, by column key."""
    columns = (column for column in table.question.columns if column.title and column.kind is not Kind.TEXT)
    return {column.key: (column.trust or EXACT).as_record() for column in columns}


def _print_tables(statistics: Statistics, args: argparse.Namespace, tables: list[Table]) -> None:
    length = format_duration(statistics.trace.clock.duration_ns(statistics.window.length))
    lost = lost_words(statistics.trace, statistics.lost_cycles)
    head = [f"{statistics.trace.path.name}: {length}, counting {_counted(statistics, args)}"]
    if not args.range and (beyond := outside_words(statistics.trace)):
        head.append(f"{beyond}: not counted; --range 0s.. counts all.")
    if lost:
        head.append(f"{lost.capitalize()}: counts are lower bounds, states of that time are unknown.")
    for number, table in enumerate(tables):
        print_for_people(table, head if number == 0 else ())
