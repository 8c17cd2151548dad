"""`satview transactions FILE`: print messages from send to reply, slowest first, and messages nested in them."""

from __future__ import annotations

import argparse
from typing import Any, Final

from satview.analysis.thread_names import refuse_unknown
from satview.answers.transactions import LEGS, TransactionFilter, transaction_table
from satview.base.process import COST_DATA, FINE
from satview.cli.shared.files import InputFile, add_command, add_names, add_range, number, refuse_below
from satview.cli.shared.table_output import FORMATS, print_table
from satview.cli.shared.terminal import working, working_on
from satview.cli.shared.traces import open_named, range_of

_SORTS: Final = (*(name.replace("_", "-") for name in LEGS), "time")
_EPILOG: Final = """\
Queued, service and reply add up to the round trip. A message that is unfinished at the end of the trace is counted up
to there and shown as "at least". A time that spans lost events is unknown; a leg that did not happen is empty. Times in
CSV and JSON are in nanoseconds; event times count from the start of the trace.
Exit status: 0 success, 1 data was lost to problems in the trace, 2 not a trace, or wrong usage.
"""


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `transactions` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "transactions", "messages from send to reply, slowest first",
                         "List messages with their times: queued, in service, replied, client running again.",
                         _EPILOG)  # fmt: skip
    add = parser.add_argument
    add("file", metavar="FILE", type=InputFile, help="a .kev file or a traceprinter listing")
    add("--client", default="", metavar="NAME", help="part of the client's name or path, a pid, or PID:TID")
    add("--server", default="", metavar="NAME", help="the same for the server")
    add("--type", type=number, default=None, metavar="N", help="first word of the message, for example 0x100")
    add_range(add, "only those sent in this range")
    add("--sort", choices=_SORTS, default="round-trip",
        help="sort by this, largest first, or by time (default %(default)s)")  # fmt: skip
    add("--top", type=int, metavar="N", help="only the first N, not counting nested messages")
    add("--nested", action="store_true", help="below each message, show those its servers sent to handle it")
    add("--format", choices=FORMATS, default="table", help="(default %(default)s)")
    add_names(parser.add_argument)


def run(args: argparse.Namespace) -> int:
    """Print the transactions; return 0, or 1 if data was lost to problems in the trace.

    Raises:
        UsageError: The range or a number is not valid, or the trace has no thread or process of a name.
    """
    refuse_below(1, "--top", args.top)
    trace = open_named(args)
    window = range_of(args.range, trace)
    for name in filter(None, (args.client.strip(), args.server.strip())):
        refuse_unknown(trace, name)
    with working(working_on("following messages of", trace.path)):
        messages = transaction_table(trace, TransactionFilter(args.client, args.server, args.type, window))
    if args.sort != "time":
        messages = messages.sorted_by(args.sort.replace("-", "_"))
    head = [f"{trace.path.name}: {len(messages):,} of {messages.total:,} messages"]
    shown = messages.head(args.top)
    print_table(shown.unfolded() if args.nested else shown, args.format, "transactions", head)
    return COST_DATA if trace.problems.cost_data else FINE
