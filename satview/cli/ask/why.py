"""`satview why FILE --thread T`: print why a thread is in its state at a time, or its critical path in an interval."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from satview.analysis.critical_path import count_of_pieces, critical_path
from satview.analysis.why import MOST_STEPS, WhyStep, chain_lines, why
from satview.answers.path import path_answer
from satview.answers.table import Known
from satview.base.errors import UsageError
from satview.base.process import COST_DATA, FINE
from satview.base.safe_text import visible_line
from satview.base.time import format_duration, parse_moment_inside, parse_range
from satview.cli.shared.files import RANGES, InputFile, add_command, add_names, refuse_below
from satview.cli.shared.table_output import print_table
from satview.cli.shared.terminal import working, working_on
from satview.cli.shared.traces import open_named
from satview.store.trace import Trace

_EPILOG = """\
With --at, each step explains one thread. If it waits, the next step is the thread that holds the object it waits for,
at the same moment, or the server threads that may receive its message. If it runs or is ready, the next step is the
thread that made it ready, at the time it did so. An event at which a thread starts to wait or becomes ready stands for
the whole interval, which is examined at its middle.
With --range, the critical path is the chain of work that the thread depended on to get from A to B. Where a thread
waits, the path continues in the thread that ends the wait. The pieces add up to the range.
Exit status: 0 success, 1 data was lost to problems in the trace, 2 not a trace, or wrong usage.
"""


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `why` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "why", "why a thread is running, ready or waiting",
                         "Show why a thread is in its state, or where its time went.", _EPILOG)  # fmt: skip
    add = parser.add_argument
    add("file", metavar="FILE", type=InputFile, help="a .kev file or a traceprinter listing")
    add("--thread", required=True, metavar="NAME|PID:TID",
        help="a thread name as satview shows it, or the name of a single-threaded process")  # fmt: skip
    when = parser.add_mutually_exclusive_group(required=True)
    when.add_argument("--at", metavar="TIME", help="for example 1.25s, 350us, 0x1f00c (cycles) or #1200 (an event)")
    when.add_argument("--range", metavar="A..B", help=f"the critical path from A to B: {RANGES}")
    add("--steps", type=int, metavar="N", help=f"with --at: follow at most N steps (default {MOST_STEPS})")
    add("--top", type=int, metavar="N", help="with --range: only the N longest pieces, in time order")
    add("--format", choices=("text", "json"), default="text", help="(default %(default)s)")
    add_names(parser.add_argument)


def run(args: argparse.Namespace) -> int:
    """Print why a thread was in its state at a time, or its critical path in a range.

    Returns:
        0, or 1 if data was lost to problems in the trace.

    Raises:
        UsageError: The thread, time, interval or a number is not valid.
    """
    if args.at is None and args.steps is not None:
        raise UsageError("--steps needs --at")
    if args.range is None and args.top is not None:
        raise UsageError("--top needs --range")
    refuse_below(1, "--steps", args.steps)
    refuse_below(1, "--top", args.top)
    trace = open_named(args)
    if args.range is not None:
        _print_path(trace, args)
    else:
        _print_steps(trace, args)
    return COST_DATA if trace.problems.cost_data else FINE


def _print_steps(trace: Trace, args: argparse.Namespace) -> None:
    moment = parse_moment_inside(args.at, trace.time_axis)
    with working(working_on("following waits of", trace.path)):
        steps = why(trace, args.thread, moment, args.steps or MOST_STEPS)
    if args.format == "json":
        print(json.dumps({"steps": [as_record(trace, step) for step in steps]}, indent=2))
    else:
        for line in chain_lines(trace, steps):
            print(visible_line(line.says if line.is_folded else f"{line.step + 1}. {line.says}"))


def _print_path(trace: Trace, args: argparse.Namespace) -> None:
    window = parse_range(args.range, trace.time_axis)
    with working(working_on("following waits of", trace.path)):
        answer = path_answer(trace, critical_path(trace, args.thread, window))
    path, clock = answer.path, trace.clock
    shown = answer.pieces if args.format == "json" else answer.folded
    if args.top is not None and args.top < len(path):
        length = path.end_cycles - path.start_cycles
        shown = answer.pieces.at(answer.pieces.positions[np.sort(np.argsort(-length, kind="stable")[: args.top])])
    whole = format_duration(clock.duration_ns(path.window.length))
    head = [f"{trace.thread_name(path.thread)}: {whole} in {count_of_pieces(len(path))}"]
    about = {"thread": trace.thread_name(path.thread), "start_ns": clock.ns(path.window.start),
             "end_ns": clock.ns(path.window.end), "totals": answer.totals.records()}  # fmt: skip
    print_table(shown, "json" if args.format == "json" else "table", "pieces", head, about)
    if args.format == "json":
        return
    if args.top is not None and len(shown) < len(path):
        rest = int(path.window.length - shown["length_cycles"].sum())
        print(f"\n{count_of_pieces(len(path) - len(shown), 'shorter ')}: {format_duration(clock.duration_ns(rest))}")
    print_table(answer.totals, "table", "totals")


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
        **({"known": {"until_ns": Known.AT_LEAST.word}} if step.is_cut else {}),
        "says": step.says,
    }  # fmt: skip
