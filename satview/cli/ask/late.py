"""`satview late FILE [ACTIVITY]`: print repeated activities, which instances were late, and what delayed them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from satview.analysis.activities import Timing, read_timing
from satview.analysis.schedulability import ASSUMPTIONS
from satview.answers.late import Late, Replayed, late, schedulability
from satview.answers.late_comparison import Measured
from satview.answers.table import Table
from satview.base.errors import UsageError
from satview.base.process import COST_DATA, FINE, say
from satview.base.safe_text import counted, visible_line
from satview.base.threads import Begun
from satview.cli.shared.files import InputFile, add_command, add_user_events, refuse_below
from satview.cli.shared.table_output import FORMATS, print_table
from satview.cli.shared.terminal import working, working_on
from satview.cli.shared.traces import open_trace, read_descriptions
from satview.store.trace import Trace

_TABLES = ("activities", "chains", "instances", "blame", "slow-against-fast", "more-in-slow", "slow-paths")
_MOST_FILES = 64
_EPILOG = """\
Activities are learned: what pulses, messages, interrupts or the end of a sleep begin at least 3 times. What comes
regularly has a period, which is its deadline unless a timing file says another. Without ACTIVITY the one that is
latest is explained, else the one that comes closest to its deadline. The parts of an instance add up to it.
A timing file is TOML: [NAME] with deadline = "8 ms", period, and for --schedulability cpus = [0, 1], on which its
thread may run. A NAME that is not learned needs start and end, expressions of the events that begin and end it.
chain = "camera > fusion > control" is a chain of activities, with the bounds reaction (from a stimulus to the first
response) and age (of the input of an output).
--against compares all instances with those of other traces, in which the work is fast; --with looks for the slowest
tenth in several traces, and compares it with the faster half of all. Names are matched. Both take data sets of many
traces too (satview export DIR -o OUT), of which they open one trace at a time. Each file counts once: FILE is left out
of both, and what --with names is left out of --against.
An instance that is unfinished at the end of the trace is counted up to there and shown as "at least".
Exit status: 0 success, 1 data was lost to problems in the trace, 2 not a trace, or wrong usage.
"""


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `late` to `subparsers`, argparse's group of commands."""
    description = "Show what is done again and again, its deadlines, and where the time of the worst instances went."
    parser = add_command(subparsers, "late", "what is late, and whose fault that is", description, _EPILOG)
    add = parser.add_argument
    add("file", metavar="FILE", type=InputFile, help="a .kev file or a traceprinter listing")
    add("activity", metavar="ACTIVITY", nargs="?", help="explain this one: its name, or a part of it")
    add("-c", "--timing", metavar="FILE.toml", type=Path, help="deadlines, periods, and activities of your own")
    add("--against", metavar="FILE", nargs="+", type=InputFile, help="compare with these traces, in which it is fast")
    add("--with", dest="others", metavar="FILE", nargs="+", type=InputFile,
        help="look for the slowest instances of it in these traces too")  # fmt: skip
    add("-n", type=int, default=1, metavar="N", help="split the N worst instances (default %(default)s)")
    add("--schedulability", action="store_true",
        help="how late each may be at most, by response-time analysis, beside what was measured and what the replay of "
        "`satview whatif` gives: only this table, and what it assumes")  # fmt: skip
    add("--no-replay", dest="replays", action="store_false",
        help="leave the replay out of --schedulability: it takes 20 s for a million events")  # fmt: skip
    add("--table", choices=_TABLES, help="only this table (with --format csv: default activities)")
    add("--format", choices=FORMATS, default="table", help="(default %(default)s)")
    add_user_events(parser.add_argument)


def run(args: argparse.Namespace) -> int:
    """Print the tables; return 0, or 1 if data was lost to problems in the trace.

    Raises:
        UsageError: The activity, a number or the timing file is not valid.
    """
    refuse_below(1, "-n", args.n)
    named = [[Path(path) for path in paths or ()] for paths in (args.others, args.against)]
    datasets = _datasets(named)
    files = [[path for path in paths if path not in folders] for paths, folders in zip(named, datasets, strict=True)]
    if (count := sum(map(len, files))) > _MOST_FILES:
        raise UsageError(f"{count} traces are too many to compare at once; {_MOST_FILES} at most, or a data set of "
                         "them (satview export DIR -o OUT)")  # fmt: skip
    if not args.replays and not args.schedulability:
        raise UsageError("--no-replay is about --schedulability, which nothing asks for")
    taken = {Path(os.path.realpath(args.file))}
    files = [_untaken(paths, taken) for paths in files]
    timing = read_timing(args.timing) if args.timing is not None else None
    trace = open_trace(args.file, args.user_events)
    if args.schedulability:
        _print_bounds(args, trace, timing)
        return COST_DATA if trace.problems.cost_data else FINE
    traces = [[open_trace(path, args.user_events) for path in paths] for paths in files]
    with working(working_on("looking for what is late in", trace.path)):
        answers = late(trace, timing)
        activities = Begun(answers.activities, "satview-activities")
        activity = answers.learned.named(args.activity) if args.activity is not None else answers.most_telling()
        is_asked = args.activity is not None
        worst = answers.worst(activity, args.n) if activity is not None else np.empty(0, np.int64)
        parts, says = answers.explained(worst)
        tables = {"chains": answers.chains()}
        if args.table == "instances" or args.format == "json":
            tables["instances"] = answers.instances(activity if is_asked else None)
        tables["blame"] = parts.unfolded()
        name = answers.learned.activities[activity].name if activity is not None else ""
        others, against = (_others(args, opened, timing, folders, name, taken) if name else [] for opened, folders in
                           zip(traces, datasets, strict=True))  # fmt: skip
        if name and args.against and not against:
            counts_as = f"FILE{' or by --with' if args.others else ''}"
            raise UsageError(
                f"nothing is left to compare {name} with: --against names only what counts already, as {counts_as}"
            )
        differences = answers.compared(activity, others, against)
        tables |= {"slow-against-fast": differences.times, "more-in-slow": differences.causes,
                   "slow-paths": differences.paths}  # fmt: skip
        shown = activities.result()
        tables["activities"] = shown.at(np.array([activity])) if is_asked else shown.sorted_by("misses")
    _print(args, trace, tables, says)
    return COST_DATA if any(opened.problems.cost_data for opened in (trace, *traces[0], *traces[1])) else FINE


def _datasets(named: Sequence[Sequence[Path]]) -> list[list[Path]]:
    """Return for each list of paths only those paths that are folders of data sets."""
    if not any(named):
        return [[] for _ in named]
    from satview.fleet.query import is_dataset  # an optional part, which brings SQL

    return [[path for path in paths if is_dataset(path)] for paths in named]


def _untaken(paths: Sequence[Path], taken: set[Path]) -> list[Path]:
    """Return the paths of files that are not yet in `taken`, a set of resolved paths, and add them to it."""
    untaken = []
    for path in paths:
        real_path = Path(os.path.realpath(path))
        if real_path not in taken:
            untaken.append(path)
        taken.add(real_path)
    return untaken


def _others(
    args: argparse.Namespace, traces: Sequence[Trace], timing: Mapping[str, Timing] | None, folders: Sequence[Path],
    activity: str, taken: set[Path],
) -> list[Late | Measured]:  # fmt: skip
    """Return what to compare an activity with: more traces, and those of data sets, whose paths `taken` gets."""
    others = list[Late | Measured]()
    for trace in traces:
        try:
            others.append(late(trace, timing))
        except UsageError as error:  # the timing names an activity that this one of the traces lacks
            raise UsageError(f"{trace.path.name}: {error}") from error
    if folders:
        from satview.fleet.query import recorded_instances

        described = read_descriptions(args.user_events).events if args.user_events else {}
        for folder in folders:
            recorded = recorded_instances(folder, activity, described, taken, say)
            _untaken([instances.path for instances in recorded], taken)
            others += recorded
    return others


def _print(args: argparse.Namespace, trace: Trace, tables: Mapping[str, Table], says: Sequence[str]) -> None:
    if args.table or args.format == "csv":
        name = args.table or "activities"
        print_table(tables[name], args.format, name.replace("-", "_"))
        return
    if args.format == "json":
        more = {name.replace("-", "_"): table.records() for name, table in tables.items() if name != "activities"}
        print_table(tables["activities"], "json", "activities", more=more)
        return
    sizes = (
        counted(len(tables["activities"]), "kind"),
        counted(int(tables["activities"]["count"].sum()), "instance"),
    )
    head = [f"{trace.path.name}: {sizes[0]} of work, {sizes[1]}"]
    print_table(tables["activities"], "table", "activities", head)
    if len(tables["chains"]):
        print_table(tables["chains"], "table", "chains")
    for words in says:
        print(f"\n{visible_line(words)}")
    for name in ("blame", "slow-against-fast", "more-in-slow", "slow-paths"):
        if len(tables["activities"]) and (name in ("blame", "slow-against-fast") or len(tables[name])):
            print_table(tables[name], "table", name)


def _print_bounds(args: argparse.Namespace, trace: Trace, timing: Mapping[str, Timing] | None) -> None:
    if args.table or args.against or args.others:
        raise UsageError(
            "--schedulability is a table of its own, of one trace: leave out --table, --against and --with"
        )
    replayed, fit = None, list[str]()
    if args.replays:
        with working(working_on("replaying", trace.path)):
            replayed, fit = _replayed(trace, timing)
    with working(working_on("analysing the responses of", trace.path)):
        bounds = schedulability(trace, timing, args.activity, replayed)
    print_table(bounds, args.format, "schedulability", fit, more={"assumptions": list(ASSUMPTIONS), "fit": fit})
    if args.format == "table":
        print("", *(f"Assumed: {line}" for line in ASSUMPTIONS), sep="\n")


def _replayed(trace: Trace, timing: Mapping[str, Timing] | None) -> tuple[Replayed, list[str]]:
    """Return the result of a replay without changes, and sentences on how far it differs from the recording."""
    from satview.whatif.prediction import basis_of  # brings the simulated kernel: 0.3 s, needed by this option only

    try:
        fit = basis_of(trace, timing).fit
    except UsageError as error:
        return Replayed({}, str(error)), []
    longest_ns = {pair.recorded.name: pair.replayed.longest_ns for pair in fit.activities.values() if pair.replayed}
    return Replayed(longest_ns), fit.sentences()
