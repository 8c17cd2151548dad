"""`satview latencies FILE`: print the latencies of pulses and interrupts, up to the thread that handles them."""

from __future__ import annotations

import argparse
from typing import Any, Final

from satview.analysis.thread_names import refuse_unknown
from satview.answers.latencies import LEGS, LatencyFilter, latency_figures, latency_table, refuse_unknown_interrupt
from satview.base.errors import UsageError
from satview.base.process import COST_DATA, FINE
from satview.cli.shared.files import InputFile, add_command, add_names, add_range, number, refuse_below
from satview.cli.shared.table_output import FORMATS, print_table
from satview.cli.shared.terminal import working, working_on
from satview.cli.shared.traces import open_named, range_of

_SORTS: Final = (*(name.replace("_", "-") for name in LEGS), "time")
_EPILOG: Final = """\
The legs of an interrupt: handler-entry (interrupt to handler), handler (entry to exit), delivery (to the pulse), ready
(thread ready), scheduling (thread runs), receipt (thread has the pulse). Not every interrupt or pulse has every leg: in
8.0 and later there are no handlers, InterruptWait() has no pulse, and no thread waits for a queued pulse. The legs add
up to the total.
An interrupt or pulse that is unfinished at the end of the trace is counted up to there and shown as "at least".
Times in CSV and JSON are in nanoseconds; event times count from the start of the trace.
Exit status: 0 success, 1 data was lost to problems in the trace, 2 not a trace, or wrong usage.
"""


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `latencies` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "latencies", "how long pulses and interrupts take to be handled",
                         "Show how long pulses and interrupts take, per source and thread, or individually.",
                         _EPILOG)  # fmt: skip
    add = parser.add_argument
    add("file", metavar="FILE", type=InputFile, help="a .kev file or a traceprinter listing")
    add("--interrupt", type=number, default=None, metavar="N", help="only this interrupt, for example 0x1b")
    add("--thread", default="", metavar="NAME",
        help="thread that handles it: part of its name or path, a pid, or PID:TID")  # fmt: skip
    add_range(add, "only those that begin in this range")
    add("--list", action="store_true", help="list them individually, longest first")
    add("--sort", choices=_SORTS, default=None,
        help="with --list: sort by this leg or by time (default total)")  # fmt: skip
    add("--top", type=int, metavar="N", help="with --list: only the first N")
    add("--format", choices=FORMATS, default="table", help="(default %(default)s)")
    add_names(parser.add_argument)


def run(args: argparse.Namespace) -> int:
    """Print the latencies; return 0, or 1 if data was lost to problems in the trace.

    Raises:
        UsageError: The range, a number or a combination of options is not valid, or the trace has no such thread or
            interrupt.
    """
    refuse_below(1, "--top", args.top)
    if not args.list and (args.top or args.sort):
        raise UsageError("--sort and --top need --list")
    trace = open_named(args)
    window = range_of(args.range, trace)
    if args.thread.strip():
        refuse_unknown(trace, args.thread)
    if args.interrupt is not None:
        refuse_unknown_interrupt(trace, args.interrupt)
    with working(working_on("following wake-ups of", trace.path)):
        latencies = latency_table(trace, LatencyFilter(args.interrupt, args.thread, window))
    head = [f"{trace.path.name}: {len(latencies):,} of {latencies.total:,} pulses and interrupts that wake threads"]
    if not args.list:
        latencies = latency_figures(trace, latencies)
    elif args.sort != "time":
        latencies = latencies.sorted_by((args.sort or "total").replace("-", "_"))
    print_table(latencies.head(args.top), args.format, "latencies", head)
    return COST_DATA if trace.problems.cost_data else FINE
