"""`satview snapshot FILE --at TIME`: print the state of every thread at one time, and the objects of waits."""

from __future__ import annotations

import argparse
from typing import Any

from satview.answers.snapshot import snapshot
from satview.base.process import COST_DATA, FINE
from satview.base.time import format_moment, parse_moment_inside
from satview.cli.shared.files import InputFile, add_command, add_names
from satview.cli.shared.table_output import FORMATS, print_table
from satview.cli.shared.terminal import working, working_on
from satview.cli.shared.traces import open_named

_EPILOG = """\
Threads that wait for the same object stand together, longest wait first. The thread that holds the object or serves
them is shown if the trace reveals it. Idle threads are listed only while they run on a CPU.
Exit status: 0 success, 1 data was lost to problems in the trace, 2 not a trace, or wrong usage.
"""


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `snapshot` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "snapshot", "the state of every thread at one moment",
                         "Print the states of all threads at one moment.", _EPILOG)  # fmt: skip
    add = parser.add_argument
    add("file", metavar="FILE", type=InputFile, help="a .kev file, a traceprinter listing or a thread trace")
    add("--at", required=True, metavar="TIME", help="for example 1.25s, 350us, 0x1f00c (cycles) or #1200 (an event)")
    add("--format", choices=FORMATS, default="table", help="(default %(default)s)")
    add_names(parser.add_argument)


def run(args: argparse.Namespace) -> int:
    """Print the threads; return 0, or 1 if data was lost to problems in the trace.

    Raises:
        UsageError: The time is not valid for the trace.
    """
    trace = open_named(args)
    moment_cycles = parse_moment_inside(args.at, trace.time_axis)
    with working(working_on("looking at", trace.path)):
        threads = snapshot(trace, moment_cycles)
    moment = format_moment(moment_cycles, trace.clock)
    head = [f"{trace.path.name} at {moment}: {len(threads):,} threads"]
    print_table(threads, args.format, "threads", head, {"at_ns": trace.clock.ns(moment_cycles)})
    return COST_DATA if trace.problems.cost_data else FINE
