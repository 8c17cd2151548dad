"""`satview look FILE [--handle H]`: describe a trace or one object in it as text, with handles of related objects."""

from __future__ import annotations

import argparse
import json
from typing import Any

from satview.base.process import COST_DATA, FINE
from satview.cli.shared.files import InputFile, add_command, add_names
from satview.cli.shared.terminal import working, working_on
from satview.cli.shared.traces import open_named
from satview.look import as_record, as_text, look

_EPILOG = """\
Handles: t-N thread, p-N process, c-N CPU, e-N event, v-N verdict, m-N message. They are the same each time
a file is opened. `satview guide` explains how to investigate a trace with them.

  satview look boot.kev
  satview look boot.kev --handle v-1
  satview look boot.kev --handle t-9 --handle e-197

Exit status: 0 success, 1 data was lost to problems in the trace, 2 not a trace, or wrong usage.
"""


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `look` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "look", "the contents of the window as text, with handles",
                         "Describe a trace, or one object in it, as text.", _EPILOG)  # fmt: skip
    add = parser.add_argument
    add("file", metavar="FILE", type=InputFile, help="a .kev file, a traceprinter listing or a thread trace")
    add("--handle", action="append", default=[], metavar="H", help="object to describe, for example t-7; repeatable")
    add("--format", choices=("text", "json"), default="text", help="(default %(default)s)")
    add_names(parser.add_argument, symbols=True)


def run(args: argparse.Namespace) -> int:
    """Print the objects with the given handles as text; return 0, or 1 if problems of the trace cost data.

    Raises:
        UsageError: A handle is not valid, or the trace has no object with its number.
    """
    trace = open_named(args, says_outside=False)
    with working(working_on("looking at", trace.path)):
        looks = [look(trace, handle) for handle in args.handle or [""]]
    if args.format == "json":
        print(json.dumps([as_record(details) for details in looks], indent=1))
    else:
        print("\n\n".join(map(as_text, looks)))
    return COST_DATA if trace.problems.cost_data else FINE
