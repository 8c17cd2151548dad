"""`satview snapshot FILE --at TIME`: what every thread does at a moment, by state and by what it waits for."""

from __future__ import annotations

import argparse
import json
from typing import Any

from satview.analysis.reasons.snapshot import Snapshot, SnapshotGroup, holder_text, snapshot, state_text
from satview.base.process import COST_DATA, FINE
from satview.base.time_text import format_duration, format_moment, parse_moment_inside
from satview.cli.shared.files import InputFile, add_user_events
from satview.cli.shared.progress import open_trace, working, working_on
from satview.store.trace import Trace

_EPILOG = """\
Threads that wait for the same object are grouped, longest wait first. The thread that holds the object or serves them
is shown if the trace reveals it. Idle threads are listed only while they run on a CPU.
Exit status: 0 success, 1 data was lost to problems in the trace, 2 not a trace, or wrong usage.
"""


PURPOSE = "look"


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "snapshot",
        help="the state of every thread at one moment",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Print the states of all threads at one moment.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("file", metavar="FILE", type=InputFile, help="a .kev file, a traceprinter listing or a thread trace")
    add("--at", required=True, metavar="TIME", help="for example 1.25s, 350us, 0x1f00c (cycles) or #1200 (an event)")
    add("--format", choices=("table", "json"), default="table", help="(default %(default)s)")
    add_user_events(parser.add_argument)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the groups; return 0, or 1 if problems of the trace cost data.

    Raises:
        UsageError: The moment does not fit.
    """
    trace = open_trace(args.file, args.user_events)
    at = parse_moment_inside(args.at, trace.time_axis)
    with working(working_on("looking at", trace.path)):
        found = snapshot(trace, at)
    if args.format == "json":
        print(json.dumps(as_record(trace, found), indent=2))
    else:
        _print_table(trace, found)
    return COST_DATA if trace.problems.cost_data else FINE


def as_record(trace: Trace, found: Snapshot) -> dict[str, Any]:
    """Return a snapshot as plain values: times in nanoseconds from the start of the trace, events numbered from 1."""
    return {
        "at_ns": trace.clock.ns(found.at_cycles),
        "threads": found.thread_count,
        "groups": [_group_record(trace, group) for group in found.groups],
    }


def _group_record(trace: Trace, group: SnapshotGroup) -> dict[str, Any]:
    threads = trace.threads
    return {
        "state": group.state,
        "count": len(group.threads),
        "cpu": group.cpu if group.cpu >= 0 else None,
        "waits_for": group.waits_for or None,
        "holder": trace.thread_name(group.holder) if group.holder > 0 else None,
        "certainty": group.certainty.name.lower() if group.certainty is not None else None,
        "threads": [
            {"thread": trace.thread_name(each.thread), "pid": int(threads.pid[each.thread]),
             "tid": int(threads.tid[each.thread]),
             "since_ns": trace.clock.ns(each.since_cycles) if each.row >= 0 else None,
             "event": each.row + 1 if each.row >= 0 else None}
            for each in group.threads
        ],
    }  # fmt: skip


def _print_table(trace: Trace, found: Snapshot) -> None:
    # Brought in here: JSON and error paths need no table.
    from rich.table import Table

    from satview.cli.shared.console import cell, make_console

    console = make_console(400)
    moment = format_moment(found.at_cycles, trace.clock)
    console.print(cell(f"{trace.path.name} at {moment}: {found.thread_count:,} threads"))
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("State", "Threads", "Waits for", "Held or served by", "Thread", "For"):
        shown.add_column(title, no_wrap=True, justify="right" if title in ("Threads", "For") else "left")
    for group in found.groups:
        head = (state_text(trace, group), f"{len(group.threads):,}", group.waits_for, holder_text(trace, group))
        for i, each in enumerate(group.threads):
            since = trace.clock.duration_ns(found.at_cycles - each.since_cycles) if each.row >= 0 else -1
            length = format_duration(since) if since >= 0 else ""
            shown.add_row(*map(cell, (*(head if not i else ("", "", "", "")), trace.thread_name(each.thread), length)))
    console.print(shown)
