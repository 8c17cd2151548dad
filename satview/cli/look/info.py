"""`satview info FILE`: print a description of a trace, as a page of text or one JSON object."""

from __future__ import annotations

import argparse
import json
from typing import Any, Final

from satview.analysis.doctor import summary, unanswered
from satview.base.errors import TraceFormatError
from satview.base.process import BAD_USE, COST_DATA, FINE, say
from satview.base.safe_text import counted, percent, visible_line
from satview.base.time import format_duration, format_time, hex_cycles
from satview.cli.shared.files import InputFile, add_names
from satview.cli.shared.terminal import bold
from satview.cli.shared.traces import open_named
from satview.store.mark_file import recorded_marks
from satview.store.problems import KINDS, Problem
from satview.store.time_ranges import outside_record, outside_words, trusted_duration_ns, trusted_window
from satview.store.trace import PREDICTED_CHANGES, PREDICTED_FROM, Trace
from satview.timeline.state_lanes import contradicted_runs

_MARKS_SHOWN: Final = 5
_OF_TARGET: Final = ("host", "began", "clock offset", "rules")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the parser of the command `info` to `subparsers`, argparse's group of commands."""
    parser = subparsers.add_parser("info", help="header, CPUs, counts, time range, buffers, problems")
    parser.add_argument(
        "file", metavar="FILE", type=InputFile, help="a .kev file, a traceprinter listing or a thread trace"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    add_names(parser.add_argument)


def run(args: argparse.Namespace) -> int:
    """Print the description of a trace; return 0, 1 if data was lost to problems in it, 2 if the file is no trace."""
    try:
        trace = open_named(args, says_outside=False)
    except TraceFormatError as error:
        say(str(error))
        return BAD_USE
    if args.json:
        print(json.dumps(info(trace), indent=2))
    else:
        print_page(trace)
    return COST_DATA if trace.problems.cost_data else FINE


def info(trace: Trace) -> dict[str, Any]:
    """Return the description of a trace as plain values for JSON.

    Start, end and duration are those of the trusted part; `outside` is the rest, or None. Times are nanoseconds
    since the first event; `release` names the event tables in use, `sys_release` is the header's text.
    """
    system, window, buffers = trace.system, trusted_window(trace), trace.buffers
    return {
        "file": str(trace.path),
        "format": trace.format,
        "release": trace.release.value,
        "sys_release": trace.header.get("SYS_RELEASE"),
        "byte_order": trace.byte_order,
        "header": dict(trace.header.pairs),
        "cpus": trace.cpu_count,
        "cpu_list": [{"number": c.number, "name": c.name, "speed_mhz": c.speed_mhz} for c in system.cpus]
        if system
        else [],
        "processor": system.processor if system else None,
        "boot_time_s": trace.clock.boot_time_s,
        "system_strings": [list(pair) for pair in system.strings] if system else [],
        "cycles_per_s": trace.clock.cycles_per_s,
        "first_cycles": window.start if len(trace.events) else None,
        "last_cycles": window.end - 1 if len(trace.events) else None,
        "slots": trace.slot_count,
        "events": len(trace.events),
        "lines": dict(trace.lines),
        "duration_ns": trusted_duration_ns(trace),
        "outside": outside_record(trace),
        "classes": trace.class_counts(),
        "processes": len(trace.processes) - 1,
        "threads": len(trace.threads) - 1,
        "buffers": {"count": len(buffers), "lost": int(buffers.lost_before.sum())},
        "pidin": trace.pidin
        and {
            "file": str(trace.pidin.path),
            "process_names": len(trace.pidin.process_rows),
            "thread_names": len(trace.pidin.thread_rows),
        },
        "marks": [
            {"text": text, "time_ns": trace.clock.ns(int(trace.events.time_cycles[row])), "event": row}
            for row, text in recorded_marks(trace)
        ],
        "problems": [
            {"slug": slug, "count": count, "title": KINDS[slug].title, "costs_data": KINDS[slug].costs_data}
            for slug, count in trace.problems.counts().items()
        ],
        "contradicted_runs": len(contradicted_runs(trace)[0]),
        "untold": [
            {"key": question.analysis.key, "mark": str(question.trust.mark), "reason": question.trust.reason}
            for question in unanswered(trace)
        ],
    }


def _predicted(trace: Trace) -> str:
    """Return the source and the changes of a predicted trace; empty for a recorded one."""
    source, changes = trace.header.get(PREDICTED_FROM), trace.header.get(PREDICTED_CHANGES)
    return f"from {source}, with {changes}" if source else ""


def print_page(trace: Trace) -> None:
    """Print the description of a trace (see `info`) as text."""
    reported = info(trace)
    system = trace.system
    lines = [
        ("File", reported["file"]),
        ("Format", f"{reported['format']}, {reported['byte_order']}-endian"),
        ("Release", f"{reported['sys_release'] or 'not given'} (tables of {reported['release']})"),
        (
            "Captured",
            " ".join(
                filter(None, (trace.header.get("DATE"), trace.header.get("NODENAME"), trace.header.get("MACHINE")))
            ),
        ),
        ("Captured with", trace.header.get("TRACELOGGER_ARGS")),
        ("Captured from", _target(trace)),
        ("Predicted", _predicted(trace)),
        (
            f"{trace.cpu_noun}s",
            f"{reported['cpus']}"
            + "".join(f"; {c.number}: {c.name or '?'} {c.speed_mhz} MHz" for c in (system.cpus if system else ())),
        ),
        ("Clock", f"{reported['cycles_per_s']:,} cycles per second"),
        ("Time", _time_range(trace)),
        ("Outside", outside_words(trace)),
        ("Slots, events", f"{counted(reported['slots'], 'slot')}, {counted(reported['events'], 'event')}"),
        ("Lines", ", ".join(f"{count:,} {kind}" for kind, count in trace.lines.items())),
        ("Processes, threads", f"{reported['processes']:,}, {reported['threads']:,}"),
        ("Names", trace.pidin),
        ("Marks", _marks(reported["marks"])),
        ("Buffers", f"{reported['buffers']['count']:,}, {reported['buffers']['lost']:,} lost"),
        ("Contradictions", _contradictions(reported["contradicted_runs"])),
        ("Cannot show", _cannot_answer(trace)),
    ]
    if system and system.strings:
        strings = ", ".join(f"{k}={v}" for k, v in system.strings)
        lines.append(("System page", strings))
    for name, value in lines:
        if value:
            print(f"{bold(f'{name:>18}')}  {visible_line(str(value))}")
    if reported["classes"]:
        print()
        print("\n".join(_class_lines(reported["classes"], reported["events"])))
    _print_problems(trace)


def _target(trace: Trace) -> str:
    """Return the target that `satview capture` recorded in the header; empty if there is none."""
    values = {name: trace.header.get(f"CAPTURE_{name.upper().replace(' ', '_')}") for name in _OF_TARGET}
    named = (f"{name} {values[name]}" for name in _OF_TARGET[1:] if values[name])
    return ", ".join(filter(None, (values["host"], *named)))


def _marks(marks: list[dict[str, Any]]) -> str:
    """Return the first marks that triggers recorded, in one line; empty if there are none."""
    shown = [f"{mark['text']} at {format_time(mark['time_ns'])} (#{mark['event']})" for mark in marks[:_MARKS_SHOWN]]
    return ", ".join([*shown, *[f"{len(marks) - _MARKS_SHOWN} more"] * (len(marks) > _MARKS_SHOWN)])


def _contradictions(runs: int) -> str:
    """Return a line on runs of threads that other events of the CPU contradict; empty if there are none."""
    if not runs:
        return ""
    times = "once" if runs == 1 else f"{runs:,} times"
    return f"{times} a CPU starts a thread while no event stops the one before it, whose state is then unknown"


def _class_lines(classes: dict[str, int], events: int) -> list[str]:
    """Return the events of each class as lines of a table."""
    rows = [
        (name, f"{count:,}", percent(count / events))
        for name, count in sorted(classes.items(), key=lambda item: -item[1])
    ]
    heads = ("Class", "Events", "Share")
    wide = [max(len(row[column]) for row in (heads, *rows)) for column in range(3)]
    lines = [f"{name:<{wide[0]}}  {count:>{wide[1]}}  {share:>{wide[2]}}" for name, count, share in (heads, *rows)]
    return [bold(lines[0]), *lines[1:]]


def _cannot_answer(trace: Trace) -> str:
    """Return a line on what the trace cannot show; empty if it shows all. For QNX it names a command that says more."""
    reported = summary(trace) if len(trace.events) else ""
    return f"{reported}; satview doctor says what to capture" if reported and trace.release.is_qnx else reported


def _time_range(trace: Trace) -> str:
    if not len(trace.events):
        return "no events"
    clock, window = trace.clock, trusted_window(trace)
    start = clock.wall_time(window.start)
    since = f"from {hex_cycles(window.start)} to {hex_cycles(window.end - 1)} cycles"
    about = f", about {start:%Y-%m-%d %H:%M:%S} UTC" if start else ""
    return f"{format_duration(trusted_duration_ns(trace))}, {since}{about}"


def _print_problems(trace: Trace) -> None:
    print()
    if not len(trace.problems):
        print("The file has no problems.")
        return
    print(bold("Problems"))
    counts = trace.problems.counts()
    for slug, count in counts.items():
        kind = KINDS[slug]
        cost = "" if kind.costs_data else " (no data lost)"
        print(f"  {visible_line(kind.title)}: {count:,}{cost}")
        for problem in [p for p in trace.problems if p.kind.slug == slug][:3]:
            print(f"    {visible_line(_position(problem))}{visible_line(problem.detail)}")


def _position(problem: Problem) -> str:
    """Return the position of a problem and a colon; empty if the problem has no position."""
    line = f"line {problem.line}" if problem.line else ""
    byte = f"byte 0x{problem.offset:x}" if problem.offset is not None else ""
    position = ", ".join(filter(None, (problem.file, line or byte)))
    return f"{position}: " if position else ""
