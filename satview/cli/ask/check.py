"""`satview check FILE`: print problems that a trace shows, as text, CSV, JSON or JUnit, with an exit code."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

from satview.analysis.verdicts.find import all_kinds, kind_of
from satview.analysis.verdicts.rule import read_thresholds, refuse_unsearched, thresholds_text
from satview.answers.verdicts import Verdicts, find
from satview.base.errors import UsageError
from satview.base.process import COST_DATA, FINE
from satview.base.safe_text import visible_line
from satview.cli.shared.files import InputFile, add_command, add_names, add_range
from satview.cli.shared.table_output import FORMATS, card, print_table
from satview.cli.shared.terminal import working, working_on
from satview.cli.shared.traces import open_named, range_of
from satview.store.time_ranges import outside_record, outside_words
from satview.store.trace import Trace

FOUND: Final = 3
UNDECIDED: Final = 4
SEVERITIES: Final = ("info", "warning", "error")  # ascending
_EPILOG: Final = """\
Exit status: 0 nothing found and every kind could be decided; 1 nothing found, but data was lost to problems in the
trace; 2 not a trace, or wrong usage; 3 verdicts at or above --severity; 4 nothing found, but this trace cannot decide
some kinds (not with --allow-undecided).
--show-rules prints all thresholds with explanations, as a file for --rules.
"""
# XML 1.0 cannot contain these characters, not even as numeric references.
_NOT_IN_XML: Final = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command `check` to `subparsers`, argparse's group of commands."""
    parser = add_command(subparsers, "check", "find problems: deadlocks, inversions, slow servers",
                         "Look for problems in a trace.", _EPILOG)  # fmt: skip
    add = parser.add_argument
    add("file", metavar="FILE", type=InputFile, nargs="?", help="a .kev file or a traceprinter listing")
    add("--show-rules", action="store_true", help="print satview's thresholds as a --rules file and exit")
    add("-r", "--rules", type=InputFile, metavar="FILE", help="TOML file with thresholds that replace satview's own")
    add("-c", "--timing", metavar="FILE.toml", type=Path, help="deadlines, periods and chains to check (docs/late.md)")
    add("--kind", action="append", type=_kind, choices=[str(kind) for kind in all_kinds()], metavar="KIND",
        help=f"look only for this kind; repeatable: {', '.join(all_kinds())}")  # fmt: skip
    add_range(add, "only what happens in this range")
    add("--severity", choices=SEVERITIES, default="warning",
        help="exit with 3 for verdicts at least this severe (default %(default)s)")  # fmt: skip
    add("--allow-undecided", action="store_true", help="do not exit with 4 if some kinds cannot be decided")
    add("--format", choices=(*FORMATS, "junit"), default="table", help="(default %(default)s)")
    add_names(parser.add_argument)


def _kind(text: str) -> str:
    """Return the kind of verdict that a text names; any other text unchanged, so that the parser refuses it."""
    try:
        return kind_of(text)
    except UsageError:
        return text


def run(args: argparse.Namespace) -> int:
    """Print the verdicts; return the exit code that docs/exit-codes.md describes.

    Raises:
        UsageError: No trace is named, the thresholds cannot be read, or the range does not fit.
    """
    if args.show_rules:
        print(thresholds_text(), end="")
        return FINE
    if args.file is None:
        raise UsageError("no trace is given: satview check FILE")
    thresholds = read_thresholds(Path(args.rules) if args.rules is not None else None, args.timing)
    refuse_unsearched(args.kind or (), thresholds)
    kinds = [kind for kind in all_kinds() if not args.kind or kind in args.kind]
    trace = open_named(args, says_outside=False)
    window = range_of(args.range, trace)
    with working(working_on("checking", trace.path)) as report:
        answer = find(trace, thresholds, kinds, progress=report, everything=window is not None).within(window)
    if args.format == "junit":
        print(_junit(trace, answer, [kind for kind in kinds if thresholds.is_enabled(kind)]))
    else:
        more: dict[str, Any] = {"undecided": answer.undecided.records()}
        if window is None and (beyond := outside_record(trace)):
            more["outside"] = beyond
        if answer.capture is not None:
            more["capture_again"] = {"command": answer.capture.command, "rules": answer.capture.rules}
        print_table(answer.table, args.format, "verdicts", [_head(trace, answer)], more)
        if args.format == "table" and answer.capture is not None:
            print("\nTo see what this trace cannot show, capture again in wide mode:")
            print(f"  {visible_line(answer.capture.command)}")
        if args.format == "table" and (words := outside_words(trace)):
            print(f"\n{visible_line(words)}; they are checked only with --range.")
    least = SEVERITIES.index(args.severity)
    if any(SEVERITIES.index(verdict.severity) >= least for verdict in answer.verdicts):
        return FOUND
    if len(answer.undecided) and not args.allow_undecided:
        return UNDECIDED
    return COST_DATA if trace.problems.cost_data else FINE


def _head(trace: Trace, answer: Verdicts) -> str:
    unknown = len(answer.undecided)
    cannot = f", {unknown} of the kinds cannot be decided" if unknown else ""
    return f"{trace.path.name}: {answer.severities or 'nothing found'}{cannot}"


def _junit(trace: Trace, answer: Verdicts, kinds: list[str]) -> str:
    """Return JUnit XML with a test case for each kind: failed if there are verdicts, skipped if undecided."""
    failed = {verdict.kind for verdict in answer.verdicts}
    undecided = {row["kind"]: row["reason"] for row in answer.undecided.records()}
    skipped = undecided.keys() - failed
    suite = ET.Element("testsuite", name=f"satview check {_xml_text(trace.path.name)}", tests=str(len(kinds)),
                       failures=str(len(failed)), errors="0", skipped=str(len(skipped)))  # fmt: skip
    for kind in kinds:
        case = ET.SubElement(suite, "testcase", classname="satview.check", name=kind)
        own = [row for row, verdict in enumerate(answer.verdicts) if verdict.kind == kind]
        if own:  # readers of JUnit show one failure of a case
            worst = answer.verdicts[own[0]]
            failure = ET.SubElement(case, "failure", type=str(worst.severity), message=_xml_text(worst.says))
            lines = [line for row in own for heading, figures, below in [card(answer.table, row)]
                     for line in (f"{heading}  {figures}", *(f"  {text}" for text in below))]  # fmt: skip
            lines += [f"Not all: {undecided[kind]}"] if kind in undecided else []
            failure.text = "\n".join(map(_xml_text, lines))
        elif kind in skipped:
            ET.SubElement(case, "skipped", message=_xml_text(undecided[kind]))
    suites = ET.Element("testsuites", tests=str(len(kinds)), failures=str(len(failed)))
    suites.append(suite)
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, encoding="unicode")


def _xml_text(text: str) -> str:
    return visible_line(text).translate(_NOT_IN_XML)
