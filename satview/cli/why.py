"""`satview why FILE --thread T --at TIME`: why a thread runs, is ready or waits then, step by step."""

from __future__ import annotations

import argparse
import json
from typing import Any

from satview.analysis.why import MOST_STEPS, WhyStep, why
from satview.base.errors import UsageError
from satview.base.process_end import COST_DATA, FINE
from satview.base.safe_text import visible_line
from satview.formats.registry import open_trace
from satview.session.time_text import parse_place
from satview.store.trace import Trace

_EPILOG = """\
A thread that waits leads to who holds what it waits for, at the same moment; one that runs or is ready to who made it
ready, when it did.
Exit status: 0 fine, 1 the trace has problems that cost data, 2 not a trace or bad use.
"""


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "why",
        help="why a thread runs, is ready or waits at a moment, and what that goes back to",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Tell why a thread is in its state.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="a .kev file or a traceprinter listing")
    add("--thread", required=True, metavar="NAME|PID:TID", help="label, name, or name of a process with one thread")
    add("--at", required=True, metavar="TIME", help="such as 1.25s, 350us, 0x1f00c (cycles) or #1200 (an event)")
    add("--steps", type=int, default=MOST_STEPS, metavar="N", help="at most so many (default %(default)s)")
    add("--format", choices=("text", "json"), default="text", help="(default %(default)s)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the steps; return 0, or 1 if problems of the trace cost data.

    Raises:
        UsageError: Thread, moment or number of steps do not fit.
    """
    if args.steps < 1:
        raise UsageError(f"--steps {args.steps} is no number of steps")
    trace = open_trace(args.file)
    place = parse_place(args.at, trace.clock, trace.window, len(trace.events))
    at = place.cycles if place.event is None else int(trace.events.time_cycles[place.event])
    assert at is not None
    found = why(trace, args.thread, at, args.steps)
    if args.format == "json":
        print(json.dumps({"steps": [as_record(trace, step) for step in found]}, indent=2))
    else:
        for number, step in enumerate(found, 1):
            print(f"{number}. {visible_line(step.says)}")
    return COST_DATA if trace.problems.cost_data else FINE


def as_record(trace: Trace, step: WhyStep) -> dict[str, Any]:
    """Return a step as plain values: times in nanoseconds from the start of the trace, events numbered from 1."""

    def thread(row: int) -> str | None:
        return trace.thread_name(row) if row > 0 else None

    def event(row: int) -> int | None:
        return row + 1 if row >= 0 else None

    ns = trace.clock.ns
    return {
        "thread": thread(step.thread),
        "at_ns": ns(step.at_cycles),
        "state": step.state,
        "since_ns": ns(step.since_cycles),
        "until_ns": ns(step.until_cycles),
        "priority": step.priority if step.priority >= 0 else None,
        "event": event(step.row),
        "waits_for": step.waits_for or None,
        "holder": thread(step.holder),
        "wait_event": event(step.wait_row),
        "ready_event": event(step.ready_row),
        "cause_event": event(step.cause_row),
        "waker": thread(step.waker),
        "ran_before": thread(step.before),
        "ran_instead": [
            {"thread": thread(row), "priority": priority if priority >= 0 else None,
             "ran_ns": trace.clock.duration_ns(cycles)}
            for row, priority, cycles in step.ran_instead
        ],
        "certainty": step.certainty.name.lower(),
        "says": step.says,
    }  # fmt: skip
