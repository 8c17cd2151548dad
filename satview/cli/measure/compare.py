"""`satview compare A B`: print differences of two traces: verdicts, load, states, calls, messages, latencies."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from satview.analysis.statistics import Statistics
from satview.answers.comparison import (
    VerdictCounts,
    by_weight,
    change_table,
    compare_statistics,
    verdict_counts,
)
from satview.base.errors import UsageError
from satview.base.process import COST_DATA, FINE, say
from satview.base.safe_text import counted, visible_line
from satview.base.time import format_duration
from satview.cli.shared.files import InputFile, add_command, add_range, add_user_events, refuse_below
from satview.cli.shared.table_output import FORMATS, print_for_people, print_table
from satview.cli.shared.terminal import bold, working, working_on
from satview.cli.shared.traces import describe, open_trace, range_of

if TYPE_CHECKING:
    from satview.answers.comparison import ChangedRow

FOUND: Final = 3
UNDECIDED: Final = 4
_VALUES: Final = ("before", "after", "ratio")
_KINDS: Final = ("process", "thread", "state", "call", "message", "latency", "interrupt", "cpu")
_EPILOG: Final = """\
Rows are matched by name: a thread by its process, number and name, a call by its name. Counts are per second, so that
traces of different lengths compare. A thread that only one of them has is new or gone.

  satview compare yesterday.kev today.kev
  satview compare yesterday.kev today.kev --by call --worse-than 20 --format json

Exit status: 0 success, 1 data was lost to problems in a trace, 2 not a trace, or wrong usage, 3 a time is worse by more
than --worse-than, 4 none is, but a trace lacks events or a class of what is compared (with --worse-than).
"""


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `compare` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "compare", "what is different in two traces",
                         "Compare a trace with an earlier one.", _EPILOG)  # fmt: skip
    add = parser.add_argument
    add("before", metavar="FILE", type=InputFile, help="the trace to compare with")
    add("after", metavar="FILE", type=InputFile, help="the trace that is compared")
    add("--by", action="append", choices=_KINDS, help="only this; repeatable")
    add("--top", type=int, default=10, metavar="N", help="rows of each figure, the largest difference first (10)")
    add_range(add, "only this part, by the times of each trace")
    add("--worse-than", type=float, metavar="PERCENT", help="exit with 3 if a length of time grew by more than that")
    add_user_events(add)
    add("--format", choices=FORMATS, default="table", help="(default %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Print the differences; return the exit code.

    It is 3 if a time is worse than allowed, 4 if the traces do not show whether one is, 1 if data was lost to
    problems, else 0.

    Raises:
        UsageError: A number is not valid.
    """
    refuse_below(1, "--top", args.top)
    if args.worse_than is not None and not args.worse_than >= 0:
        raise UsageError(f"--worse-than {args.worse_than} is not a percentage")
    before, after = open_trace(args.before), open_trace(args.after)
    if args.user_events:
        describe(args.user_events, before, after)
    old, new = (Statistics(trace, range_of(args.range, trace)) for trace in (before, after))
    with working(working_on("comparing with", before.path)) as report:
        changes, cannot_tell = compare_statistics(old, new, args.by or (), report=report)
    with working(working_on("checking", before.path)):
        verdicts = [verdict_counts(side.trace, side.window if args.range else None) for side in (old, new)]
    limit = math.inf if args.worse_than is None else 1 + args.worse_than / 100
    table = change_table(changes, limit)
    if undecided := sum(change.is_worse(limit) is None and change.ratio > limit for change in changes):
        cannot_tell.append(
            f"{counted(undecided, 'length')} of time that may have grown by more than {args.worse_than:g} %"
        )
    table.cannot_tell = "\n".join(cannot_tell)
    worse = np.flatnonzero(table["worse"]).tolist()
    if args.format == "table":
        _print_tables(old, new, changes, verdicts, args)
        for line in cannot_tell:
            print(visible_line(f"Cannot tell: {line}."))
        for row in worse:
            old_text, new_text, ratio_text = (table.text(row, name) for name in _VALUES)
            what = f"{changes[row].column.title} of {changes[row].name}"
            say(visible_line(f"worse: {what}: {old_text} before, {new_text} after ({ratio_text})"))
    else:
        more = {
            "verdicts": {kind: [side.count_of(kind) for side in verdicts] for kind in _kinds_found(verdicts)},
            "undecided_verdicts": [list(side.undecided) for side in verdicts],
        }
        print_table(table, args.format, "figures", more=more)
    if worse:
        return FOUND
    if cannot_tell and args.worse_than is not None:
        return UNDECIDED
    return COST_DATA if before.problems.cost_data or after.problems.cost_data else FINE


def _print_tables(
    old: Statistics,
    new: Statistics,
    every_change: list[ChangedRow],
    verdicts: list[VerdictCounts],
    args: argparse.Namespace,
) -> None:
    for side, statistics in (("Before: ", old), ("After:  ", new)):
        print(visible_line(f"{side} {_compared(statistics, is_part=bool(args.range))}"))
    print(f"\n{bold('Verdicts')}")
    for kind in (kinds := _kinds_found(verdicts)):
        print(visible_line("  {}: {} before, {} after".format(kind, *(_count_text(side, kind) for side in verdicts))))
    if not kinds:
        print("  none in either")
    for trace, counts in zip((old.trace, new.trace), verdicts, strict=True):
        if counts.undecided:
            print(visible_line(f"  cannot tell of {trace.path.name}: {', '.join(counts.undecided)}"))
    most = [change for change in by_weight(every_change, once=True) if change.weight][: args.top]
    if most:
        print_for_people(change_table(most), names=("name", "title", *_VALUES))
    by_figure: dict[str, list[ChangedRow]] = {}
    for change in every_change:
        by_figure.setdefault(f"{change.by}: {change.column.title}", []).append(change)
    for title, changes in by_figure.items():
        shown = [change for change in changes if max(0, change.before) or max(0, change.after)][: args.top]
        if shown:
            print_for_people(change_table(shown), names=("name", *_VALUES), title=title)


def _kinds_found(verdicts: list[VerdictCounts]) -> list[str]:
    """Return the kinds of which either trace has a verdict."""
    return list(dict.fromkeys(kind for side in reversed(verdicts) for kind in side.found))


def _count_text(side: VerdictCounts, kind: str) -> str:
    count = side.count_of(kind)
    at_least = "at least " if count and kind in side.undecided else ""
    return "unknown" if count is None else f"{at_least}{count}"


def _compared(statistics: Statistics, *, is_part: bool) -> str:
    """Return a text that says what of a trace is compared: the file, its events and their time."""
    trace = statistics.trace
    events, length = counted(len(trace.events), "event"), format_duration(trace.duration_ns)
    if is_part:
        rows = trace.rows_between(statistics.window)
        part = format_duration(trace.clock.duration_ns(statistics.window.length))
        events, length = f"{rows.stop - rows.start:,} of {events}", f"{part} of {length}"
    return f"{trace.path.name}, {events} in {length}"
