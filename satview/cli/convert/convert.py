"""`satview convert IN OUT.kev`: convert a listing to a .kev file, or copy a .kev file slot by slot."""

from __future__ import annotations

import argparse
import sys

from satview.base.errors import SatviewError
from satview.base.new_file import is_standard_output
from satview.base.process import BAD_USE, COST_DATA, FINE, say
from satview.base.safe_text import counted
from satview.cli.shared.files import InputFile, add_names, add_output, take_output
from satview.cli.shared.terminal import working, working_on
from satview.cli.shared.traces import open_named
from satview.export.kev import without_names, write_verbatim


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of the command `convert` to `subparsers`, argparse's group of commands."""
    parser = subparsers.add_parser("convert", help="convert a listing to .kev, or copy a .kev by slots")
    parser.add_argument("file", metavar="FILE", type=InputFile, help="a traceprinter listing or a .kev file")
    add_output(parser.add_argument, "the .kev file to write; - is standard output")
    add_names(parser.add_argument)


def run(args: argparse.Namespace) -> int:
    """Convert a trace; return 0, 1 if data was lost to problems in the input, 2 if reading or writing fails."""
    try:
        take_output(args, "OUT is missing: the .kev file to write", ".kev")
        trace = open_named(args)
        with working(working_on("writing", args.output)):
            count = write_verbatim(trace, args.output)
    except SatviewError as error:
        say(str(error))
        return BAD_USE
    written = f"{args.output}: {counted(count, 'slot')}"
    print(written, file=sys.stderr if is_standard_output(args.output) else sys.stdout)
    if lost := without_names(trace):
        say(f"{trace.path.name}: {lost}")
    return COST_DATA if trace.problems.cost_data or lost else FINE
