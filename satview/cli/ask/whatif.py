"""`satview whatif FILE --set TARGET:KEY=VALUE`: predict the effect of changes, with the error of such predictions."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from satview.analysis.activities import read_timing
from satview.answers.whatif import SHOWN, candidates_table, comparison, sensitivity_table
from satview.base.errors import UsageError
from satview.base.process import COST_DATA, FINE
from satview.base.safe_text import percent, visible_line
from satview.cli.shared.files import InputFile, add_command, add_output, add_user_events, take_output
from satview.cli.shared.table_output import FORMATS, print_for_people, print_table
from satview.cli.shared.terminal import working, working_on
from satview.cli.shared.traces import open_trace
from satview.whatif.prediction import (
    MEDIAN_WARNS_ABOVE,
    P99_WARNS_ABOVE,
    ReplayBasis,
    basis_of,
    predict,
    search,
    sensitivity,
)
from satview.whatif.steps import KEYS, parse_changes, read_changes

_EPILOG = f"""\
The trace becomes a program for each thread, which runs again on the simulated kernel: first unchanged, then with the
changes. How far the unchanged replay is off is printed first, above {percent(MEDIAN_WARNS_ABOVE, 0)} in the median or
{percent(P99_WARNS_ABOVE, 0)} in 99 % as a warning, with the activity that is furthest off: predictions are no better.

What can be changed, by TARGET (a thread such as 'planner 1', a process, 'lock ADDRESS', 'interrupt NUMBER'):
  cpus      without a TARGET: the number of CPUs
""" + "".join(f"  {key:9} {meaning}\n" for key, meaning in KEYS.items()) + """
  satview whatif run.kev
  satview whatif run.kev --set 'planner 1:priority=22' --set cpus=2 -o predicted.kev
  satview whatif run.kev --set 'load burner:period=10ms,work=2ms,priority=30'

A file of changes is TOML: cpus = 2, and a table for each target: ["planner 1"] with priority = 22.
Exit status: 0 success, 1 data was lost to problems in the trace, 2 not a trace, or wrong usage.
"""  # fmt: skip


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `whatif` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "whatif", "what would have happened with another priority, CPU, lock",
                         "Replay a trace on the simulated kernel with something changed.", _EPILOG)  # fmt: skip
    add = parser.add_argument
    add("file", metavar="FILE", type=InputFile, help="a .kev file or a traceprinter listing")
    add("--set", metavar="TARGET:KEY=VALUE", action="append", default=[], dest="said", help="a change; repeatable")
    add("--changes", metavar="FILE.toml", type=InputFile, help="changes from a file, made before those of --set")
    add("--search", metavar="WHAT", help="the least that keeps all deadlines: cpus, TARGET:priority or "
        "TARGET:threads")  # fmt: skip
    add("--sensitivity", metavar="ACTIVITY", help="where saved work shortens this activity most")
    add("-c", "--timing", metavar="FILE.toml", type=InputFile, help="activities and deadlines of your own, as for late")
    add("--seed", type=int, default=1, help="seed for what kernel calls cost in the replay (default %(default)s)")
    add("--format", choices=FORMATS, default="table", help="(default %(default)s)")
    add_output(add, "write the predicted trace there")
    add_user_events(add)


def run(args: argparse.Namespace) -> int:
    """Print how well the replay fits, then the prediction; return 0, or 1 if data was lost to problems in the trace.

    Raises:
        UsageError: The trace cannot be replayed, or a change does not apply to the trace.
    """
    take_output(args, "", ".kev")
    changes = (read_changes(Path(args.changes)) if args.changes is not None else []) + parse_changes(args.said)
    timing = read_timing(Path(args.timing)) if args.timing is not None else None
    trace = open_trace(args.file, args.user_events)
    asked = [text for text in (args.search, args.sensitivity) if text is not None]
    if len(asked) > 1:
        raise UsageError("--search and --sensitivity are two questions: give one of them")
    if asked and (changes or args.output):
        raise UsageError("--search and --sensitivity make changes of their own: leave out --set, --changes and -o")
    with working(working_on("replaying", trace.path)):
        basis = basis_of(trace, timing, args.seed, changes)
    if asked:
        _print_search(basis, args)
        return COST_DATA if trace.problems.cost_data else FINE
    with working(working_on("predicting from", trace.path)):
        prediction = predict(basis, changes, Path(args.output) if args.output is not None else None)
    table = comparison(trace, prediction.compared, has_prediction=bool(prediction.changes))
    head = [*basis.fit.sentences(), *(f"Changed: {change}" for change in prediction.changes),
            *(f"On the simulated kernel: {finding}" for finding in prediction.findings)]  # fmt: skip
    shown = [f"Not shown by the trace: {note}" for note in basis.programs.not_shown]
    if args.format == "json":
        more = {"fit": _fit_record(basis), "changes": list(prediction.changes), "findings": list(prediction.findings),
                "not_shown": basis.programs.not_shown}  # fmt: skip
        print_table(table, "json", "activities", more=more)
    elif args.format == "csv":
        print_table(table, "csv", "activities")
    else:
        print_for_people(table, head, SHOWN if prediction.changes else ())
        print("", *map(visible_line, shown), sep="\n")
    return COST_DATA if trace.problems.cost_data else FINE


def _fit_record(basis: ReplayBasis) -> dict[str, float | list[str]]:
    """Return how well the replay fits the recording, for JSON; an error is nan if nothing can be compared."""
    return {
        "median_error": basis.fit.median_error,
        "p99_error": basis.fit.p99_error,
        "same_order": basis.fit.same_order,
        "poor": [fit.recorded.name for fit in basis.fit.poor],
        "says": basis.fit.sentences(),
    }


def _print_search(basis: ReplayBasis, args: argparse.Namespace) -> None:
    trace = basis.programs.trace
    with working(working_on("trying candidates on", trace.path)):
        if args.search is not None:
            candidates = search(basis, args.search)
            table, key = candidates_table(trace, candidates), "candidates"
            holds = [candidate.change for candidate in candidates if candidate.outcome == "holds"]
            says = f"The least that keeps all deadlines is {holds[0]}." if holds else "None keeps all deadlines."
        else:
            table, key, says = sensitivity_table(trace, sensitivity(basis, args.sensitivity)), "sensitivity", ""
    more = {"fit": _fit_record(basis), "says": says}
    print_table(table, args.format, key, [*basis.fit.sentences(), *filter(None, [says])], more=more)
