"""`satview filter`: write the part of a trace that rules select, or make a capture command from rules."""

from __future__ import annotations

import argparse
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from satview.base.errors import UsageError
from satview.base.new_file import is_standard_output, write_file
from satview.base.process import COST_DATA, FINE, say
from satview.base.safe_text import counted, visible, visible_line
from satview.base.time import TimeWindow, format_time
from satview.cli.shared.files import (
    InputFile,
    OutputFile,
    RuleFile,
    add_command,
    add_names,
    add_output,
    add_range,
    take_output,
)
from satview.cli.shared.terminal import working, working_on
from satview.cli.shared.traces import open_named, window_of
from satview.export.c_program import c_program
from satview.export.kev import SubsetReport, write_subset
from satview.filters.derived_columns import TraceDerivedColumns, process_names
from satview.filters.diagnostics import Diagnostic, RuleError
from satview.filters.expressions.expression import Expression, possible
from satview.filters.rules.building import (
    BuiltRules,
    build,
    from_tracelogger_args,
    never_true_rules,
    tracelogger_command,
)
from satview.filters.rules.capturing import explain
from satview.filters.rules.fastwide import doubt_of_view
from satview.filters.rules.handlers import Handlers
from satview.filters.rules.text import Rule, check_rules, read_rule_text, rules_text
from satview.filters.rules.triggers import trigger_hits
from satview.filters.would_capture import WouldCapture, why_nothing, would_capture
from satview.store.arguments import taught
from satview.store.trace import Trace

_HITS_SHOWN, _FAULTS_SHOWN = 10, 5
_EPILOG = """\
RULES is a .satrules file with one rule per line, named as in TraceEvent(). Example:
  DELALLCLASSES
  ADDCLASS THREAD
  SETCLASSPID KERCALL devb-eide
  WHERE event == MSG_SENDV and duration > 2ms

Without -o, matching events are only counted. The new file keeps times, names and the initial thread states.
--exact writes only the selected events, even if the result lacks names and states.
Exit status: 0 success; 1 data was lost to problems in the trace, no event matched, or the C program has #error lines;
2 not a trace, or wrong usage, including a condition that no event can ever meet.
"""


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `filter` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "filter", "write part of a trace, or turn rules into a capture",
                         "Write the part of a trace that matches rules, or turn the rules into a capture.",
                         _EPILOG)  # fmt: skip
    add = parser.add_argument
    add("file", metavar="IN", type=InputFile, help="trace: a .kev file, a traceprinter listing or a thread trace")
    add("-r", "--rules", metavar="RULES", type=RuleFile, action="append", default=[],
        help="rule file; repeatable, applied in order")  # fmt: skip
    add("-e", "--expression", metavar="EXPR", action="append", default=[],
        help="condition; repeatable, all must hold; the same as a WHERE line of rules")  # fmt: skip
    add_output(add, "trace to write; - is standard output; not for thread traces", "OUT.kev")
    add("--from", dest="begin", metavar="TIME", help="drop events before TIME: 1.2s, 300ms, -5s from the end, ...")
    add("--to", dest="end", metavar="TIME", help="drop events at or after TIME")
    add_range(add, "--from and --to in one option")
    add("--exact", action="store_true",
        help="write only the selected events: no names, switches or initial states")  # fmt: skip
    add("--allow-code", action="store_true", help="run the Python files named by CALL rules; they can do anything")
    add("--explain", action="store_true", help="point out rules with a surprising effect")
    add("--would-capture", action="store_true", help="show what a capture of the same run would log under these rules")
    add("--would-keep", dest="would_capture", action="store_true", help=argparse.SUPPRESS)  # its name up to 0.1
    add("--tracelogger", action="store_true", help="print the closest tracelogger command")
    add("--c-program", metavar="OUT.c", type=OutputFile,
        help="write a C program that sets exactly these rules on a target")  # fmt: skip
    add("--from-args", action="store_true", help="print the rules that the trace's TRACELOGGER_ARGS stand for")
    add_names(parser.add_argument)


def run(args: argparse.Namespace) -> int:
    """Run `satview filter` with parsed arguments; return the exit code."""
    take_output(args, "", ".kev")
    with redirect_stdout(_console(args)):
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    trace = open_named(args)
    if args.from_args:
        _print_arguments(trace)
    _, built = built_rules(args.rules, args.allow_code, trace)
    of_capture = _with_conditions(built, args.expression, trace)
    if args.explain:
        for note in explain(of_capture.rules, trace.release):
            print(f"{f'line {note.line}' if note.line else '-e'}: {visible_line(note.message)}")
    is_whole = _capture(args, of_capture, trace)
    if not (args.from_args and not (args.rules or args.expression or args.output)) and (
        reason := _filter(args, built, trace)
    ):
        return report_nothing(reason)
    return COST_DATA if trace.problems.cost_data or not is_whole else FINE


def built_rules(files: list[str], allow_code: bool, trace: Trace) -> tuple[tuple[Rule, ...], BuiltRules]:
    """Read rule files; return the rules, and the state that they build for a trace.

    Raises UsageError if a file cannot be read, or its rules have faults; the faults have been printed.
    """
    rules = _rules(files, trace)
    handlers = Handlers(lambda _: allow_code, trace.release, _folder(files), say)
    return rules, build(rules, trace.release, handlers, taught=taught(trace))


def _with_conditions(built: BuiltRules, expressions: list[str], trace: Trace) -> BuiltRules:
    """Return rules with the conditions of option -e, for views and, as `WHERE` lines at the end, for captures."""
    conditions = tuple(_expression(text, trace) for text in expressions)
    lines = tuple(Rule(None, condition=text) for text in expressions)
    return replace(built, rules=built.rules + lines, conditions=built.conditions + conditions)


def selected_events(
    built: BuiltRules,
    expressions: list[str],
    trace: Trace,
    window: TimeWindow | None = None,
    derived: TraceDerivedColumns | None = None,
) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], str]:
    """Return which events pass rules and conditions, bool (events,), and the reason if none do, else an empty text.

    Args:
        built: The rules.
        expressions: Texts of conditions.
        trace: The trace to filter.
        window: If no event in this part of the trace passes, the reason is returned; the mask has events outside it,
            too. None = the whole trace.
        derived: Durations and priorities of events; None = computed from the trace.

    Raises:
        UsageError: A condition has an error, or no event can ever meet it.
    """
    derived = derived or TraceDerivedColumns(trace)
    conditions = [_expression(text, trace) for text in expressions]
    selected = built.mask(trace, derived)
    for condition in conditions:
        selected &= condition.mask(trace, None, derived)
    rows = trace.rows_between(window) if window is not None else slice(0, len(trace.events))
    reason = "" if selected[rows].any() else why_nothing(built, conditions, trace, rows, derived)
    return selected, reason


def report_nothing(reason: str) -> int:
    """Report why no event passed; return the exit code of this case."""
    say(f"no event matched: {visible_line(reason)}")
    return COST_DATA


def _folder(files: list[str]) -> Path:
    return Path(files[0]).parent if files else Path()


def _rules(files: list[str], trace: Trace) -> tuple[Rule, ...]:
    """Read all rule files and print their faults, a line each; raise UsageError if there are faults."""
    rules: list[Rule] = []
    has_faults = False
    processes = process_names(trace)
    for name in files:
        of_file, faults = check_rules(read_rule_text(name), trace.release, processes)
        rules += of_file
        for fault in (*faults, *never_true_rules(of_file, trace.release)):
            print(visible(f"{Path(name).name}:{fault.line}:{fault.column}: {fault.message}"), file=sys.stderr)
            has_faults = True
    if has_faults:
        raise UsageError("the rules have errors; nothing was filtered")
    return tuple(rules)


def _capture(args: argparse.Namespace, built: BuiltRules, trace: Trace) -> bool:
    """Print or write the output that the options about captures request; return whether C can express all rules."""
    is_whole = True
    if not trace.release.is_qnx and (args.tracelogger or args.c_program):
        raise UsageError(
            f"{trace.path.name}: this is not a trace of QNX, so neither tracelogger nor a program for QNX filters it"
        )
    if args.tracelogger:
        command = tracelogger_command(built)
        print(visible_line(command.text))
        for reason in command.reasons:
            print(f"  not exact: {visible_line(reason)}")
    if args.c_program:
        is_whole = _write_program(args, built)
    if args.would_capture:
        window = window_of(trace, args.begin, args.end, args.range)
        with working(working_on("capturing again", trace.path)):
            try:
                answer = would_capture(built, trace, TraceDerivedColumns(trace), window)
            except RuleError as error:
                raise UsageError("; ".join(map(_placed, error.diagnostics[:_FAULTS_SHOWN]))) from None
        print_answer(answer)
    return is_whole


def _write_program(args: argparse.Namespace, built: BuiltRules) -> bool:
    """Write the C program and report its `#error` lines; return False if there are any."""
    program = c_program(built, ", ".join(Path(name).name for name in args.rules))
    write_file(args.c_program, program.source, streams=True)
    print(f"{args.c_program}: written{', with errors' if program.faults else ''}")
    for note in program.notes:
        print(f"  {visible_line(note)}")
    for fault in program.faults:
        print(f"satview: {visible_line(_placed(fault))}", file=sys.stderr)
    return not program.faults


def _placed(fault: Diagnostic) -> str:
    """Return a fault as text with its line and column in the rules, or with `-e` for a condition of that option."""
    return str(fault) if fault.line else f"-e, {fault}"


def _filter(args: argparse.Namespace, built: BuiltRules, trace: Trace) -> str:
    """Count or write the events that pass; return the reason if no event passes, else an empty text."""
    window = window_of(trace, args.begin, args.end, args.range)
    with working(working_on("filtering", trace.path)):
        selected, reason = selected_events(built, args.expression, trace, window)
    if built.triggers:
        _print_hits(built, trace, window)
    if args.output is None:
        rows = trace.rows_between(window) if window else slice(0, len(trace.events))
        count = int(np.count_nonzero(selected[rows]))
        print(f"{count:,} of {len(trace.events):,} events match")
        conditions = (*built.conditions, *(_expression(text, trace) for text in args.expression))
        if args.rules and (doubt := doubt_of_view(built.state, trace, conditions, TraceDerivedColumns(trace))):
            print(f"  {doubt}")
        return reason
    with working(working_on("writing", args.output)) as report:
        written = write_subset(trace, args.output, selected, window, with_context=not args.exact, progress=report)
    print_report(written)
    return reason


def _print_hits(built: BuiltRules, trace: Trace, window: TimeWindow | None) -> None:
    """Print the times at which triggers hit; the conditions of -e do not apply to triggers."""
    derived = TraceDerivedColumns(trace)
    rows, which = trigger_hits(built.triggers, trace, built.mask(trace, derived), derived)
    part = trace.rows_between(window) if window is not None else slice(0, len(trace.events))
    is_in = (rows >= part.start) & (rows < part.stop)
    for number, trigger in enumerate(built.triggers):
        hits = rows[is_in & (which == number)]
        times = trace.clock.ns_array(trace.events.time_cycles[hits[:_HITS_SHOWN]]).tolist()
        shown = [f"{format_time(ns)} (#{row})" for ns, row in zip(times, hits.tolist(), strict=False)]
        more = f" and {len(hits) - _HITS_SHOWN:,} more" if len(hits) > _HITS_SHOWN else ""
        print(visible_line(f"WHEN {trigger.condition.text} THEN {trigger.action.text()}"))
        print(f"  {counted(len(hits), 'hit')}{': ' * bool(shown)}{', '.join(shown)}{more}")


def _console(args: argparse.Namespace) -> TextIO:
    """Return the stream for messages: standard error if the events go to standard output."""
    return sys.stderr if is_standard_output(args.output) or is_standard_output(args.c_program) else sys.stdout


def _expression(text: str, trace: Trace) -> Expression:
    try:
        return possible(Expression(text, trace.release, taught=taught(trace)))
    except RuleError as error:
        fault = error.diagnostics[0]
        arrow = " " * fault.start + "^" * max(fault.end - fault.start, 1)
        shown = f"\n  {text}\n  {arrow}" if len(text) < 200 and "\n" not in text else ""
        raise UsageError(f"-e, column {fault.column}: {fault.message}{shown}") from None


def _print_arguments(trace: Trace) -> None:
    arguments = trace.header.get("TRACELOGGER_ARGS")
    if not arguments:
        raise UsageError("the header has no TRACELOGGER_ARGS (written from 6.4 on), so it does not show the filter")
    imported = from_tracelogger_args(arguments, trace.release)
    print(f"# {visible_line(arguments)}")
    for note in imported.notes:
        print(f"# {visible_line(note)}")
    print(rules_text(imported.rules, trace.release), end="")


def print_report(report: SubsetReport) -> None:
    """Print the number of events and slots in a written file, and the data of the trace that the file lacks."""
    print(f"{report.path}: {report.selected:,} of {report.total:,} events")
    for line in report.left_out:
        print(f"  {line}")
    if report.context:
        print(f"  {report.context:,} more to keep threads, names and states correct (--exact leaves them out)")
    if report.opening:
        print(f"  {report.opening:,} generated to show the states at the start of the range")
    print(f"  {counted(report.slots, 'slot')}")


def print_answer(answer: WouldCapture) -> None:
    """Print the events, slots and data rate that a capture would have logged, and what each view would lack then."""
    least = "" if answer.is_exact else "at least "
    more = f"; cannot tell of {answer.undecided:,} more" if answer.undecided else ""
    print(f"events  {least}{answer.events:,} of {answer.total_events:,}{more}")
    print(f"slots   {least}{answer.slots:,} of {answer.total_slots:,}")
    print(f"rate    {least}{answer.bytes_per_s:,.0f} of {answer.total_bytes_per_s:,.0f} bytes per second")
    for name, (events, total) in answer.by_class.items():
        print(f"  {name:<18}{events:>12,} of {total:,}")
    for loss in answer.losses:
        print(f"{loss.view}: {loss.text or 'nothing is lost'}")
    for text in answer.notes:
        print(text)
