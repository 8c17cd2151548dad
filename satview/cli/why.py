"""`satview why FILE --thread T`: why it is in its state at a moment, or its critical path through an interval."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from satview.analysis.reasons.critical_path import (
    PIECE_WORDS,
    CriticalPath,
    PathWords,
    PieceKind,
    count_of_pieces,
    critical_path,
)
from satview.analysis.reasons.why import MOST_STEPS, why
from satview.analysis.reasons.why_step import WhyStep
from satview.base.errors import UsageError
from satview.base.process_end import COST_DATA, FINE
from satview.base.safe_text import visible_line
from satview.base.time_text import format_duration, format_moment, parse_moment_inside, parse_range
from satview.cli.shared.files import InputFile
from satview.cli.shared.progress import open_trace, working, working_on
from satview.cli.shared.ranges import RANGES
from satview.linkage.table import Certainty
from satview.store.trace import Trace

_EPILOG = """\
A thread that waits leads to who holds what it waits for, at the same moment, or to the threads of the server that may
receive its message; one that runs or is ready to who made it ready, when it did. The event by which a thread begins to
wait or becomes ready means all of that: its middle is looked at. The critical path is what had to happen one
after the other for the thread to get from A to B: it leaves a thread that waits for the one that ends the wait. Its
pieces add up to the interval.
Exit status: 0 fine, 1 the trace has problems that cost data, 2 not a trace or bad use.
"""


PURPOSE = "ask"


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "why",
        help="why a thread runs, is ready or waits at a moment",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Show why a thread is in its state, or what its time went into.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("file", metavar="FILE", type=InputFile, help="a .kev file or a traceprinter listing")
    add(
        "--thread",
        required=True,
        metavar="NAME|PID:TID",
        help="any name that satview shows, or that of a process with one thread",
    )
    when = parser.add_mutually_exclusive_group(required=True)
    when.add_argument("--at", metavar="TIME", help="such as 1.25s, 350us, 0x1f00c (cycles) or #1200 (an event)")
    when.add_argument("--range", metavar="A..B", help=f"the critical path from A to B: {RANGES}")
    add("--steps", type=int, metavar="N", help=f"with --at: at most so many (default {MOST_STEPS})")
    add("--top", type=int, metavar="N", help="with --range: only the N longest pieces, in order of time")
    add("--format", choices=("text", "json"), default="text", help="(default %(default)s)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the steps, or the pieces of the path; return 0, or 1 if problems of the trace cost data.

    Raises:
        UsageError: Thread, moment, interval or number do not fit.
    """
    if args.at is None and args.steps is not None:
        raise UsageError("--steps belongs to --at")
    if args.range is None and args.top is not None:
        raise UsageError("--top belongs to --range")
    if args.steps is not None and args.steps < 1:
        raise UsageError(f"--steps {args.steps} is no number of steps")
    if args.top is not None and args.top < 1:
        raise UsageError(f"--top {args.top} is no number of pieces")
    trace = open_trace(args.file)
    if args.range is not None:
        _print_path(trace, args)
    else:
        _print_steps(trace, args)
    return COST_DATA if trace.problems.cost_data else FINE


def _print_steps(trace: Trace, args: argparse.Namespace) -> None:
    at = parse_moment_inside(args.at, trace.time_axis)
    with working(working_on("following waits of", trace.path)):
        found = why(trace, args.thread, at, args.steps or MOST_STEPS)
    if args.format == "json":
        print(json.dumps({"steps": [as_record(trace, step) for step in found]}, indent=2))
    else:
        for number, step in enumerate(found, 1):
            print(f"{number}. {visible_line(step.says)}")


def _print_path(trace: Trace, args: argparse.Namespace) -> None:
    window = parse_range(args.range, trace.time_axis)
    with working(working_on("following waits of", trace.path)):
        path = critical_path(trace, args.thread, window)
    length = path.end_cycles - path.start_cycles
    shown = np.sort(np.argsort(-length, kind="stable")[: args.top])
    if args.format == "json":
        print(json.dumps(path_record(trace, path, shown.tolist()), indent=2))
        return
    ns, words = trace.clock.duration_ns, PathWords(trace)
    whole = path.window.length
    print(
        f"{visible_line(trace.thread_name(path.thread))}: {format_duration(ns(whole))} in {count_of_pieces(len(path))}"
    )
    print()
    for i in shown.tolist():
        start = format_moment(int(path.start_cycles[i]), trace.clock)
        who = f"{'  ' * int(path.depth[i])}{trace.thread_name(int(path.on_thread[i]))}"
        sure = "" if path.certainty[i] == Certainty.EXACT else " (inferred)"
        said = visible_line(f"{who} {words.says(path, i)}{sure}")
        print(f"{start:>14}  {format_duration(ns(int(length[i]))):>10}  {said}")
    if len(shown) < len(path):
        rest = int(length.sum() - length[shown].sum())
        print(f"{'':>14}  {format_duration(ns(rest)):>10}  {count_of_pieces(len(path) - len(shown), 'shorter ')}")
    print()
    for (thread, kind), cycles in path.totals().items():
        share = 100 * cycles / whole
        print(
            f"{format_duration(ns(cycles)):>10}  {share:5.1f} %  "
            f"{visible_line(trace.thread_name(thread))}, {PIECE_WORDS[kind]}"
        )


def path_record(trace: Trace, path: CriticalPath, shown: list[int]) -> dict[str, Any]:
    """Return a path as plain values; times in nanoseconds from the start of the trace, events numbered from 1.

    Args:
        trace: The events.
        path: Its path.
        shown: Which pieces.
    """
    ns, words = trace.clock.ns, PathWords(trace)
    return {
        "thread": trace.thread_name(path.thread),
        "start_ns": ns(path.window.start),
        "end_ns": ns(path.window.end),
        "pieces": [
            {
                "start_ns": ns(int(path.start_cycles[i])),
                "end_ns": ns(int(path.end_cycles[i])),
                "start_cycles": int(path.start_cycles[i]),
                "end_cycles": int(path.end_cycles[i]),
                "thread": trace.thread_name(int(path.on_thread[i])),
                "depth": int(path.depth[i]),
                "kind": PIECE_WORDS[PieceKind(int(path.kind[i]))],
                "event": int(path.row[i]) + 1 if path.row[i] >= 0 else None,
                "cause_event": int(path.cause_row[i]) + 1 if path.cause_row[i] >= 0 else None,
                "certainty": Certainty(int(path.certainty[i])).name.lower(),
                "says": words.says(path, i),
            }
            for i in shown
        ],
        "totals": [
            {"thread": trace.thread_name(thread), "kind": PIECE_WORDS[kind],
             "length_ns": trace.clock.duration_ns(cycles), "length_cycles": cycles}
            for (thread, kind), cycles in path.totals().items()
        ],
    }  # fmt: skip


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
        "may_receive": [thread(row) for row in step.may_receive],
        "serves": thread(step.serves),
        "receive_event": event(step.receive_row),
        "wait_event": event(step.wait_row),
        "ready_event": event(step.ready_row),
        "cause_event": event(step.cause_row),
        "waker": thread(step.waker),
        "ran_before": thread(step.before),
        "on_cpus": [
            {"cpu": cpu, "thread": thread(row), "priority": priority if priority >= 0 else None, "since_ns": ns(since)}
            for cpu, row, priority, since in step.on_cpus
        ],
        "ran_instead": [
            {"thread": thread(row), "priority": priority if priority >= 0 else None,
             "ran_ns": trace.clock.duration_ns(cycles)}
            for row, priority, cycles in step.ran_instead
        ],
        "certainty": step.certainty.name.lower(),
        "says": step.says,
    }  # fmt: skip
