"""`satview compare A B`: what is different in two traces: verdicts, load, states, calls, messages, latencies."""

from __future__ import annotations

import argparse
import json
import math
from typing import TYPE_CHECKING, Any, Final

from satview.base.errors import UsageError
from satview.base.process import COST_DATA, FINE, say
from satview.base.safe_text import visible_line
from satview.cli.shared.files import InputFile, add_user_events
from satview.cli.shared.progress import describe, open_trace, working, working_on
from satview.cli.shared.ranges import add_range, range_of

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from satview.answers.comparison import Change
    from satview.store.trace import Trace

FOUND: Final = 3
_KINDS: Final = ("process", "thread", "state", "call", "message", "latency", "interrupt", "cpu")
_EPILOG: Final = """\
Rows are matched by name: a thread by its process, number and name, a call by its name. Counts are per second, so that
traces of different lengths compare. A thread that only one of them has is new or gone.

  satview compare yesterday.kev today.kev
  satview compare yesterday.kev today.kev --by call --worse-than 20 --format json

Exit status: 0 success, 1 data was lost to problems in a trace, 2 not a trace, or wrong usage, 3 a time is worse by more
than --worse-than.
"""


PURPOSE = "measure"


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "compare",
        help="what is different in two traces",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Compare a trace with an earlier one.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("before", metavar="FILE", type=InputFile, help="the trace to compare with")
    add("after", metavar="FILE", type=InputFile, help="the trace that is compared")
    add("--by", action="append", choices=_KINDS, help="only this; repeatable")
    add("--top", type=int, default=10, metavar="N", help="rows of each figure, the largest difference first (10)")
    add_range(add, "only this part, by the times of each trace")
    add("--worse-than", type=float, metavar="PERCENT", help="exit with 3 if a length of time grew by more than that")
    add_user_events(add)
    add("--format", choices=("table", "json"), default="table", help="(default %(default)s)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the differences.

    Raises:
        UsageError: A number does not fit.
    """
    if args.top < 1:
        raise UsageError(f"--top {args.top} is no number of rows")
    if args.worse_than is not None and not args.worse_than >= 0:
        raise UsageError(f"--worse-than {args.worse_than} is no percentage")
    before, after = open_trace(args.before), open_trace(args.after)
    if args.user_events:
        describe(args.user_events, before, after)
    from satview.analysis.statistics import Statistics
    from satview.answers.comparison import compare_statistics, verdict_changes  # brings numpy; --help needs none

    first, second = (Statistics(trace, range_of(args.range, trace)) for trace in (before, after))
    with working(working_on("comparing with", before.path)) as report:
        found = compare_statistics(first, second, args.by or (), report=report)
    with working(working_on("checking", before.path)):
        verdicts = verdict_changes(before, after)
    limit = math.inf if args.worse_than is None else 1 + args.worse_than / 100
    worse = [change for change in found if change.is_longer and change.ratio > limit]
    if args.format == "json":
        print(json.dumps({"verdicts": {kind: list(counts) for kind, counts in verdicts.items()},
                          "figures": [_record(change, change in worse) for change in found]}, indent=1))  # fmt: skip
    else:
        _print_tables(before, after, found, verdicts, args.top)
        for change in worse:
            _print_worse(change)
    if worse:
        return FOUND
    return COST_DATA if before.problems.cost_data or after.problems.cost_data else FINE


def _record(change: Change, is_worse: bool) -> dict[str, Any]:
    def plain(value: float) -> float | None:
        return round(value, 6) if math.isfinite(value) else None

    return {
        "by": change.by,
        "name": change.name,
        "figure": change.column.key + ("_per_s" if change.is_per_s else ""),
        "before": plain(change.before),
        "after": plain(change.after),
        "ratio": plain(change.ratio),
        "worse": is_worse,
    }


def _print_tables(
    before: Trace, after: Trace, found: list[Change], verdicts: dict[str, tuple[int, int]], top: int
) -> None:
    from satview.answers.comparison import by_weight
    from satview.base.time_text import format_duration
    from satview.cli.shared.console import cell, make_console

    console = make_console(400)
    for title, trace in (("Before", before), ("After", after)):
        length = format_duration(trace.duration_ns)
        console.print(cell(f"{title + ':':<8} {trace.path.name}, {len(trace.events):,} events in {length}"))
    console.print("\n[bold]Verdicts[/bold]")
    for kind, (old, new) in verdicts.items():
        console.print(f"  {kind}: {old} before, {new} after")
    if not verdicts:
        console.print("  none in either")
    shown = [change for change in by_weight(found, once=True) if change.weight][:top]
    if shown:
        console.print("\n[bold]Changed most[/bold]")
        console.print(_table(shown, with_figure=True))
    for title, changes in _by_figure(found).items():
        shown = [change for change in changes if max(0, change.before) or max(0, change.after)][:top]
        if shown:
            console.print(f"\n[bold]{cell(title)}[/bold]")
            console.print(_table(shown))


def _table(changes: list[Change], *, with_figure: bool = False) -> RichTable:
    from rich.table import Table

    from satview.answers.comparison import change_text, value_text
    from satview.cli.shared.console import cell

    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("", *(["Figure"] if with_figure else []), "Before", "After", "Change"):
        table.add_column(head, no_wrap=True, justify="left" if head in ("", "Figure") else "right")
    for change in changes:
        figure = [f"{change.by}: {change.column.title}"] if with_figure else []
        values = (value_text(change, value) for value in (change.before, change.after))
        table.add_row(*map(cell, (change.name, *figure, *values, change_text(change))))
    return table


def _by_figure(found: list[Change]) -> dict[str, list[Change]]:
    out: dict[str, list[Change]] = {}
    for change in found:
        out.setdefault(f"{change.by}: {change.column.title}", []).append(change)
    return out


def _print_worse(change: Change) -> None:
    from satview.answers.comparison import change_text, value_text

    say(visible_line(f"worse: {change.column.title} of {change.name}: {value_text(change, change.before)} before, "
                     f"{value_text(change, change.after)} after ({change_text(change)})"))  # fmt: skip
