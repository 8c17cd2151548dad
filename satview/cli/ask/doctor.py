"""`satview doctor FILE`: print which analyses of a trace are exact, bounds or impossible, and what to capture then."""

from __future__ import annotations

import argparse
import sys
from typing import Any, Final

from satview.analysis.doctor import ANALYSES, notes
from satview.answers.doctor import capture_for, doctor, exact_in, grouped
from satview.answers.table import Table
from satview.base.errors import UsageError
from satview.base.process import COST_DATA, FINE
from satview.cli.shared.files import InputFile, add_command, add_names
from satview.cli.shared.table_output import FORMATS, print_table
from satview.cli.shared.terminal import working, working_on
from satview.cli.shared.traces import open_named

_ALL: Final = "all"
_EPILOG: Final = """\
The command lines are for tracelogger on the target. `--rules KEY` prints the same capture as rules, for `satview
tracelogger --rules FILE`, `satview filter --c-program` and New capture in the window. `--rules all` prints rules for
every analysis that is not exact.
Exit status: 0 success, 1 data was lost to problems in the trace, 2 not a trace, or wrong usage.
"""


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `doctor` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "doctor", "which analyses can be trusted, and what to capture",
                         "Show how far the results of each analysis can be trusted.", _EPILOG)  # fmt: skip
    add = parser.add_argument
    add("file", metavar="FILE", type=InputFile, help="a .kev file, a traceprinter listing or a thread trace")
    add("--format", choices=FORMATS, default="table", help="(default %(default)s)")
    add("--rules", metavar="KEY", choices=(_ALL, *ANALYSES), help="print rules for a capture that can answer KEY: "
        f"{_ALL}, {', '.join(ANALYSES)}")  # fmt: skip
    add_names(parser.add_argument)


def run(args: argparse.Namespace) -> int:
    """Print how far each analysis can be trusted; return 0, or 1 if data was lost to problems in the trace.

    Raises:
        UsageError: Rules are requested in another format; or no capture would show more than the trace does.
    """
    if args.rules and args.format != FORMATS[0]:
        raise UsageError("--rules prints rules, which have one format: leave out --format")
    trace = open_named(args)
    with working(working_on("examining", trace.path)):
        answers = doctor(trace)
    if args.rules:
        sys.stdout.write(_rules(answers, args.rules))
    else:
        trace_notes = notes(trace)
        head = [f"{trace.path.name}: {exact_in(answers)}", *(f"Note: {note}" for note in trace_notes)]
        shown = grouped(answers) if args.format == "table" else answers
        print_table(shown, args.format, "analyses", head, {"file": str(trace.path), "notes": list(trace_notes)})
    return COST_DATA if trace.problems.cost_data else FINE


def _rules(answers: Table, key: str) -> str:
    requested = answers if key == _ALL else answers.rows(answers["key"] == key)
    line = capture_for(requested)
    if line is None:
        what = "everything" if key == _ALL else ANALYSES[key].title.lower()
        raise UsageError(f"no capture would show more of {what}: satview doctor {answers.trace.path.name}")
    return line.rules
