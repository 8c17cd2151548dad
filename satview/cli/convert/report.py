"""`satview report FILE -o OUT.html`: write one HTML file with verdicts, pictures, load, latencies and losses."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from satview.analysis.verdicts.rule import read_thresholds
from satview.base.errors import UsageError
from satview.base.new_file import is_standard_output
from satview.base.process import COST_DATA, FINE, say
from satview.base.safe_text import counted
from satview.cli.shared.files import InputFile, add_command, add_names, add_output, refuse_below, take_output
from satview.cli.shared.terminal import working, working_on
from satview.cli.shared.traces import open_named
from satview.report import write_report

_EPILOG = """\
The file is self-contained: it includes its pictures and plots and has no scripts.
Exit status: 0 success, 1 data was lost to problems in the trace, 2 not a trace, or wrong usage. To get an exit status
that depends on the verdicts, use `satview check`.
"""


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `report` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "report", "one HTML file: verdicts with pictures, load, losses",
                         "Write a report about a trace as one HTML file.", _EPILOG)  # fmt: skip
    add = parser.add_argument
    add("file", metavar="FILE", type=InputFile, help="a .kev file or a traceprinter listing")
    add_output(add, "HTML file to write; - is standard output")
    add("-r", "--rules", type=InputFile, metavar="FILE",
        help="TOML file with thresholds that replace satview's own")  # fmt: skip
    add("-c", "--timing", metavar="FILE.toml", type=Path, help="deadlines, periods and chains (docs/late.md)")
    add(
        "--pictures", type=int, default=4, metavar="N", help="draw at most N verdicts; 0 for none (default %(default)s)"
    )
    add_names(parser.add_argument)


def run(args: argparse.Namespace) -> int:
    """Write the report; return 0, or 1 if data was lost to problems in the trace.

    Raises:
        UsageError: The arguments are not valid, or the thresholds cannot be read.
        WriteError: The file cannot be written.
    """
    take_output(args, "-o OUT is missing: the HTML file to write", ".html", ".htm")
    refuse_below(0, "--pictures", args.pictures)
    if args.file == "-" and args.pictures:
        raise UsageError("pictures cannot be drawn from standard input; give a FILE, or --pictures 0")
    trace = open_named(args, says_outside=False)
    thresholds = read_thresholds(None if args.rules is None else Path(args.rules), args.timing)
    with working(working_on("writing a report about", trace.path)) as report:
        count = write_report(trace, args.output, thresholds, args.pictures, report)
    (say if is_standard_output(args.output) else print)(f"{args.output}: {counted(count, 'verdict')}")
    return COST_DATA if trace.problems.cost_data else FINE
