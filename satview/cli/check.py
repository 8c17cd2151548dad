"""`satview check FILE`: what is wrong in a trace, with an exit code for scripts; as a table, JSON or JUnit."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

from satview.analysis.doctor.report import may_be_more
from satview.analysis.doctor.undecided import undecided
from satview.analysis.verdicts.find import all_kinds, find_verdicts
from satview.analysis.verdicts.thresholds import default_thresholds, read_thresholds, thresholds_text
from satview.analysis.verdicts.verdict import Severity, Verdict
from satview.base.errors import UsageError
from satview.base.process_end import COST_DATA, FINE
from satview.base.safe_text import visible_line
from satview.cli.shared.files import InputFile
from satview.cli.shared.progress import open_trace, working, working_on
from satview.cli.shared.ranges import add_range, range_of
from satview.store.doubts import outside_record, outside_words
from satview.store.trace import Trace

if TYPE_CHECKING:
    from rich.console import Console

    from satview.base.time import TimeWindow

FOUND: Final = 3
_EPILOG: Final = """\
Exit status: 0 nothing found, 3 verdicts, 1 none but the trace has problems that cost data, 2 not a trace or bad use.
--show-rules prints all thresholds with what they mean, as a file for --rules.
"""
# XML 1.0 has no way to write these, not even as a number.
_NOT_IN_XML: Final = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "check",
        help="what is wrong in a trace: deadlocks, priority inversion, starvation, slow servers, lost data",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Look for what is wrong in a trace.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("file", metavar="FILE", type=InputFile, nargs="?", help="a .kev file or a traceprinter listing")
    add("--show-rules", action="store_true", help="print the thresholds of satview as such a file, and no verdicts")
    add("-r", "--rules", type=InputFile, metavar="FILE", help="TOML file whose thresholds replace those of satview")
    add(
        "--kind",
        action="append",
        choices=[str(kind) for kind in all_kinds()],
        metavar="KIND",
        help=f"look for this only; repeatable: {', '.join(all_kinds())}",
    )
    add_range(add, "only what happens in this part of the trace")
    add("--format", choices=("table", "json", "junit"), default="table", help="(default %(default)s)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the verdicts; return 3 if there are any, else 0, or 1 if problems of the trace cost data.

    Raises:
        UsageError: No trace is named, the thresholds cannot be read, or the range does not fit.
    """
    if args.show_rules:
        print(thresholds_text(), end="")
        return FINE
    if args.file is None:
        raise UsageError("which trace? satview check FILE")
    thresholds = read_thresholds(Path(args.rules)) if args.rules is not None else default_thresholds()
    kinds = [kind for kind in all_kinds() if (not args.kind or str(kind) in args.kind)
             and thresholds.is_enabled(kind)]  # fmt: skip
    trace = open_trace(args.file, says_outside=False)
    window = range_of(args.range, trace)
    with working(working_on("checking", trace.path)) as report:
        everywhere = find_verdicts(trace, thresholds, kinds, progress=report, everything=window is not None)
        asks = args.format != "json"  # which has no place for it
        unknown = {kind: why for kind, why in undecided(trace).items() if kind in kinds} if asks else {}
    found = tuple(verdict for verdict in everywhere if _is_in(verdict, window))
    if args.format == "json":
        verdicts = [as_record(trace, verdict) for verdict in found]
        beyond = outside_record(trace) if window is None else None
        print(json.dumps({"verdicts": verdicts} | ({"outside": beyond} if beyond else {}), indent=2))
    elif args.format == "junit":
        print(_junit(trace, found, kinds, unknown))
    else:
        _print_table(trace, found, unknown)
    if found:
        return FOUND
    return COST_DATA if trace.problems.cost_data else FINE


def _is_in(verdict: Verdict, window: TimeWindow | None) -> bool:
    """Return whether any of the times at which it happens is in a range."""
    return window is None or any(
        time.start_cycles < window.end and window.start < max(time.end_cycles, time.start_cycles + 1)
        for time in verdict.occurrences
    )


def as_record(trace: Trace, verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as plain values: times in nanoseconds from the start of the trace, events numbered from 1."""
    return {
        "kind": str(verdict.kind),
        "severity": str(verdict.severity),
        "start_ns": trace.clock.ns(verdict.start_cycles),
        "end_ns": trace.clock.ns(verdict.end_cycles),
        "threads": [trace.thread_name(thread) for thread in verdict.threads],
        "objects": list(verdict.objects),
        "evidence": [row + 1 for row in verdict.evidence],
        "says": verdict.says,
        "remedy": verdict.remedy,
    }


def _junit(trace: Trace, found: tuple[Verdict, ...], kinds: list[str], unknown: dict[str, str]) -> str:
    """Return one test case for each kind, failed if there are verdicts of it, skipped if the trace cannot show."""
    failed = {verdict.kind for verdict in found}
    skipped: dict[str, str] = {kind: why for kind, why in unknown.items() if kind not in failed}
    suite = ET.Element("testsuite", name=f"satview check {_xml_text(trace.path.name)}", tests=str(len(kinds)),
                       failures=str(len(failed)), errors="0", skipped=str(len(skipped)))  # fmt: skip
    for kind in kinds:
        case = ET.SubElement(suite, "testcase", classname="satview.check", name=str(kind))
        mine = [verdict for verdict in found if verdict.kind == kind]
        if mine:  # readers of JUnit show one failure of a case
            text = "\n".join(f"{verdict.severity}: {_xml_text(verdict.says)} {_xml_text(verdict.remedy)}"
                             for verdict in mine)  # fmt: skip
            failure = ET.SubElement(case, "failure", type=str(mine[0].severity), message=_xml_text(mine[0].says))
            failure.text = text
        elif kind in skipped:
            ET.SubElement(case, "skipped", message=skipped[kind])
    suites = ET.Element("testsuites", tests=str(len(kinds)), failures=str(len(failed)))
    suites.append(suite)
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, encoding="unicode")


def _xml_text(text: str) -> str:
    return visible_line(text).translate(_NOT_IN_XML)


def _print_table(trace: Trace, found: tuple[Verdict, ...], unknown: dict[str, str]) -> None:
    # Brought in here: JSON, JUnit and error paths need no table.
    from satview.cli.shared.console import cell, make_console

    console = make_console(400)
    if not found:
        console.print(cell(f"{trace.path.name}: nothing found"))
    else:
        _print_verdicts(console, trace, found)
    for kinds, why in _by_reason(unknown):
        console.print()
        console.print(cell(f"Cannot decide on {', '.join(kinds)}: {why}."))
    if beyond := outside_words(trace):
        console.print()
        console.print(cell(f"{beyond}; they are looked at with --range only."))
    if missing := may_be_more(trace):
        console.print()
        console.print(cell(f"There may be more than is listed: {missing}."))


def _by_reason(unknown: dict[str, str]) -> list[tuple[list[str], str]]:
    out: dict[str, list[str]] = {}
    for kind, why in unknown.items():
        out.setdefault(why, []).append(str(kind))
    return [(kinds, why) for why, kinds in out.items()]


def _print_verdicts(console: Console, trace: Trace, found: tuple[Verdict, ...]) -> None:
    from satview.base.time_text import format_moment
    from satview.cli.shared.console import cell

    counts = {severity: sum(verdict.severity is severity for verdict in found) for severity in Severity}
    reported = ", ".join(f"{count} {severity}{'s' if count > 1 and severity is not Severity.INFO else ''}"
                     for severity, count in counts.items() if count)  # fmt: skip
    console.print(cell(f"{trace.path.name}: {reported}"))
    for verdict in found:
        span = " to ".join(format_moment(cycles, trace.clock) for cycles in (verdict.start_cycles, verdict.end_cycles))
        events = ", ".join(f"#{row + 1}" for row in verdict.evidence[:8])
        more = f" and {len(verdict.evidence) - 8} more" if len(verdict.evidence) > 8 else ""
        sure = "" if verdict.certainty.name == "EXACT" else f" ({verdict.certainty.name.lower()})"
        console.print(f"\n[bold]{verdict.severity}: {verdict.kind}[/bold]{sure}  {cell(span)}")
        console.print(f"  {cell(verdict.says)}")
        console.print(f"  {cell(verdict.remedy)}")
        if events:
            console.print(f"  Events {events}{more}")
