"""`satview doctor FILE`: what a trace shows exactly, what as a bound, what not at all, and what to capture for it."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any, Final

from satview.analysis.doctor import ANALYSES, Diagnosis, capture_for, doctor, grouped, notes, titles
from satview.analysis.times.basis import TITLES, Mark
from satview.base.errors import UsageError
from satview.base.process import COST_DATA, FINE
from satview.cli.shared.files import InputFile, add_user_events
from satview.cli.shared.progress import open_trace, working, working_on
from satview.store.trace import Trace

_ALL: Final = "all"
_EPILOG: Final = """\
The command lines are for tracelogger on the target. `--rules KEY` prints the same capture as rules, for `satview
tracelogger --rules FILE`, `satview filter --c-program` and New capture in the window. `--rules all` prints rules for
every analysis that is not exact.
Exit status: 0 success, 1 data was lost to problems in the trace, 2 not a trace, or wrong usage.
"""


PURPOSE = "ask"


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "doctor",
        help="which analyses can be trusted, and what to capture",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Show how far the results of each analysis can be trusted.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("file", metavar="FILE", type=InputFile, help="a .kev file, a traceprinter listing or a thread trace")
    add("--format", choices=("table", "json"), default="table", help="(default %(default)s)")
    add("--rules", metavar="KEY", choices=(_ALL, *ANALYSES), help="print rules for a capture that can answer KEY: "
        f"{_ALL}, {', '.join(ANALYSES)}")  # fmt: skip
    add_user_events(parser.add_argument)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print what the trace can show; return 0, or 1 if problems of the trace cost data.

    Raises:
        UsageError: Rules are requested for what the trace shows exactly, or what no capture shows.
    """
    trace = open_trace(args.file, args.user_events)
    with working(working_on("examining", trace.path)):
        found = doctor(trace)
    if args.rules:
        sys.stdout.write(_rules(trace, found, args.rules))
    elif args.format == "json":
        records = [as_record(one) for one in found]
        print(json.dumps({"file": str(trace.path), "analyses": records, "notes": list(notes(trace))}, indent=2))
    else:
        _print_table(trace, found)
    return COST_DATA if trace.problems.cost_data else FINE


def as_record(found: Diagnosis) -> dict[str, Any]:
    """Return what is known of one analysis as plain values; command and rules are None where none would help."""
    return {
        "key": found.analysis.key,
        "title": found.analysis.title,
        "question": found.analysis.question,
        "mark": str(found.trust.mark),
        "reason": found.trust.reason,
        "remedy": found.remedy,
        "command": found.capture.command if found.capture else None,
        "rules": found.capture.rules if found.capture else None,
    }


def _rules(trace: Trace, found: tuple[Diagnosis, ...], key: str) -> str:
    requested = [one for one in found if key in (_ALL, one.analysis.key)]
    line = capture_for(trace, requested)
    if line is None:
        what = "everything" if key == _ALL else ANALYSES[key].title.lower()
        raise UsageError(f"no capture would show more of {what}: satview doctor {trace.path.name}")
    return line.rules


def _print_table(trace: Trace, found: tuple[Diagnosis, ...]) -> None:
    # Brought in here: JSON and error paths need no table.
    from satview.cli.shared.console import cell, make_console

    console = make_console(400)
    exact = [one.analysis.title for one in found if one.trust.mark is Mark.EXACT]
    console.print(cell(f"{trace.path.name}: exact in {len(exact)} of {len(found)} analyses"))
    for group in grouped(found):
        console.print(f"\n[bold]{TITLES[group[0].trust.mark]}[/bold]  {cell(titles(group))}")
        if group[0].says:
            console.print(f"  {cell(group[0].says)}")
        if (line := capture_for(trace, group)) is not None:
            console.print(f"  {cell(line.command)}")
    for note in notes(trace):
        console.print(f"\n[bold]Note[/bold]  {cell(note)}")
