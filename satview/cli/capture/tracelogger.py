"""`satview tracelogger`: capture a trace on a simulated target with the options of QNX's tracelogger."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any, BinaryIO

from satview.base.errors import SatviewError, UsageError
from satview.base.new_file import find_target, is_standard_output
from satview.base.process import collected_signals
from satview.base.safe_text import counted, visible, visible_line
from satview.base.time import NS_PER_S
from satview.capture.flight_recorder import QstForm
from satview.capture.run import Capture, CaptureResult, make_tile, write_tiles
from satview.capture.run import run as run_capture
from satview.capture.workloads import registry
from satview.cli.shared.files import add_command
from satview.cli.shared.terminal import working, working_on
from satview.cli.shared.tracelogger_options import (
    add_logger_options,
    add_target_options,
    attributes,
    check_numbers,
    check_qst,
    check_release,
    check_stays,
    logger_options,
    notes,
    recorder_bounds,
    size_of,
    unused_with_events,
)
from satview.events.spec import Release
from satview.filters.diagnostics import RuleError
from satview.filters.rules.handlers import Handlers
from satview.filters.rules.text import read_rule_text
from satview.target.simulated import LoggerRun, checked_name, log_there, release_there

_MAX_FINDINGS = 100


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `tracelogger` to `subparsers`, argparse's group of commands."""
    parser = add_command(
        subparsers,
        "tracelogger",
        "capture a trace from a simulated target",
        "Capture a kernel event trace from a simulated target; --workload selects the program it runs.",
        "Modes: stop after a number of buffers (default), -c at a signal, -s after a time; -r keeps a ring\n"
        "until a signal; with -d1, a control program (--control) sets filters and starts the trace; with\n"
        "-d1 -E, the options here set the filters.",
    )
    add_logger_options(parser)
    add_target_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run `satview tracelogger` with parsed arguments; return the exit code."""
    if args.list_workloads:
        width = max(len(name) for name, _ in registry.names())
        for name, summary in registry.names():
            print(f"{name:<{width}}  {summary}")
        return 0
    try:
        return _capture(args)
    except RuleError as error:
        for fault in error.diagnostics:
            position = f"{Path(args.rules or 'rules').name}:{fault.line}:{fault.column}"
            print(f"{position}: {visible_line(fault.message)}", file=sys.stderr)
        print("satview tracelogger: nothing was captured because the rules have errors", file=sys.stderr)
        return 2
    except UsageError as error:
        print(visible(f"satview tracelogger: {error}"), file=sys.stderr)
        return 2
    except SatviewError as error:
        print(visible(f"satview tracelogger: {error}"), file=sys.stderr)
        return 1


def _capture(args: argparse.Namespace) -> int:
    if not args.file:
        raise UsageError("-f: the file name is missing")
    console = sys.stderr if is_standard_output(args.file) else sys.stdout

    def say(level: int, text: str) -> None:
        if level <= args.verbose:
            print(visible(f"tracelogger: {text}"), file=console if level else sys.stderr)

    check_numbers(args)
    if args.target:
        check_stays(args)
        args.release = release_there(checked_name(args.target)).value
    check_release(args)
    if args.events is not None:
        return _write_tiles(args, say)
    limit = size_of(args.size)
    for note in notes(args, limit):
        say(0, note)
    to_stdout = is_standard_output(args.file)
    if args.qst:
        check_qst(args)
    find_target(args.file, streams=True)  # fails before the long part
    path = Path("stdout" if to_stdout else args.file)
    stream = sys.stdout.buffer if to_stdout else None
    if args.target:
        return _report(_log_there(args, path, stream, say), say)
    switched_off: list[str] = []
    with (
        collected_signals() as caught,
        redirect_stdout(sys.stderr) if to_stdout else nullcontext(),
    ):  # programs may print
        capture = Capture(
            args.workload,
            args.seed,
            args.cpus or 0,
            Release(args.release),
            int((args.duration or 0) * NS_PER_S),
            logger_options(args),
            control=registry.load(args.control, Release(args.release)) if args.control else None,
            attributes=attributes(args),
            limit_bytes=limit,
            pace=args.pace,
            skew_ns=args.skew,
            keeps_truth=False,
            needs_privilege=not args.no_privilege,
            qst=QstForm(args.qst) if args.qst else None,
            bounds=recorder_bounds(args),
            **_rules(args, switched_off.append),
        )
        say(1, f"creating {path.name}" + (f", at most {limit} bytes" if limit else ""))
        with working(working_on("capturing", path)) as report:
            result = run_capture(capture, path, report, lambda: bool(caught), say=say, stream=stream)
    result.findings += switched_off
    return _report(result, say)


def _log_there(
    args: argparse.Namespace, path: Path, stream: BinaryIO | None, say: Callable[[int, str], None]
) -> CaptureResult:
    """Log on the simulated target that `--target` names; a signal stops the logger there."""
    rules = read_rule_text(args.rules) if args.rules else ""
    request = LoggerRun(logger_options(args), path.name, attributes(args), size_of(args.size), rules)
    with collected_signals() as caught:
        return log_there(args.target, request, path, stream, lambda: bool(caught), say)


def _rules(args: argparse.Namespace, report: Callable[[str], None]) -> dict[str, Any]:
    """Return the arguments of `Capture` from --rules; `report` is called for handlers that are switched off."""
    if args.rules is None:
        return {}
    folder = Path(args.rules).resolve().parent
    return {
        "rules_text": read_rule_text(args.rules),
        "load_function": Handlers(lambda _path: args.allow_code, Release(args.release), folder, report),
    }


def _write_tiles(args: argparse.Namespace, say: Callable[[int, str], None]) -> int:
    """Write a very long trace by repeating a simulated span (`--events`); return the exit code."""
    if is_standard_output(args.file):
        raise UsageError("--events needs a file")
    find_target(args.file, streams=True)
    if unused := unused_with_events(args):
        say(0, f"--events: {', '.join(unused)} without effect; --events repeats one span with all classes")
    say(1, "simulating one rollover of the time stamp")
    with collected_signals() as caught:
        with working(f"simulating {args.workload}"):
            tile = make_tile(
                args.workload, args.seed, args.cpus or 0, Release(args.release), args.wide, lambda: bool(caught)
            )
        with working(working_on("writing", args.file)) as report:
            written = write_tiles(args.file, args.events, tile, report, lambda: bool(caught), attributes(args))
    say(1, f"{counted(written, 'event')} written")
    return _say_findings(tile.findings, say)


def _report(result: CaptureResult, say: Callable[[int, str], None]) -> int:
    logger = result.logger
    say(1, f"{result.slots * 16} bytes of events logged in {result.buffers} buffers")
    if logger.dropped:
        say(0, f"{logger.dropped} kernel buffers were dropped because -b is too small")
    else:
        say(1, f"at most {logger.most_used} of the logger's own buffers in use")
    if result.lost_buffers or result.dropped_events:
        say(
            0,
            f"the logger was too slow: {result.lost_buffers} kernel buffers lost, "
            f"{result.dropped_events} events dropped",
        )
    say(1, "events disabled")
    return _say_findings(result.findings, say)


def _say_findings(findings: Sequence[str], say: Callable[[int, str], None]) -> int:
    """Print the problems of the capture; return the exit code."""
    for finding in findings[:_MAX_FINDINGS]:
        say(0, finding)
    if len(findings) > _MAX_FINDINGS:
        say(0, f"and {len(findings) - _MAX_FINDINGS} more")
    return 1 if findings else 0
