"""Describes a trace and its objects as text, for terminals and, by the Model Context Protocol, for assistants."""

from __future__ import annotations

import re
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import wraps
from inspect import cleandoc
from pathlib import Path
from threading import RLock
from typing import Any, Final

import numpy as np

from satview.analysis.activities import Timing, read_timing
from satview.analysis.doctor import may_be_more
from satview.analysis.needs import CPUS, INTERRUPTS, STATES
from satview.analysis.statistics import Statistics
from satview.analysis.verdicts.evidence import Verdict
from satview.analysis.verdicts.find import find_verdicts, verdicts_of
from satview.analysis.verdicts.rule import read_thresholds, rules
from satview.analysis.why import chain_lines, why
from satview.answers.late import Late, late
from satview.answers.statistics import cpu_table, process_table, state_table, thread_table
from satview.answers.table import SUBJECT, Table
from satview.answers.transactions import LEGS, transaction_table
from satview.answers.verdicts import undecided_table
from satview.base.child import screenshot
from satview.base.errors import SatviewError, UsageError
from satview.base.named_files import name_fault, only_below, resource_path
from satview.base.plugins import required
from satview.base.safe_text import AT_LEAST_SIGN, counted, percent, visible_line, with_sign
from satview.base.time import format_duration, format_moment, parse_moment_inside
from satview.events.user_events import UserEvent
from satview.formats.registry import TRACE_PATTERNS, open_trace
from satview.linkage.chain import connections, link_of
from satview.linkage.transactions import transactions
from satview.session.event_text import (
    DetailLine,
    Details,
    Section,
    argument_names,
    event_details,
    event_name,
    why_details,
)
from satview.store.arguments import describe_events
from satview.store.axis import trace_of_process
from satview.store.time_ranges import lost_marks, outside_words, trusted_duration_ns
from satview.store.trace import Trace
from satview.tables.result import value_text
from satview.tables.schema import SCHEMAS, views
from satview.tables.sql import Limits, start_query
from satview.tables.table import table

# Handles are short names of the objects in a trace: thread `t-7`, event `e-28700`. They are the same in every run.


_HANDLE: Final = re.compile(r"([a-z])-?([0-9]{1,12})", re.ASCII)


class Subject(StrEnum):
    """Kind of object that a handle names; the value is the letter of the handle."""

    THREAD = "t"
    """Row of the table `thread`."""
    PROCESS = "p"
    """Row of the table `process`."""
    CPU = "c"
    """Number of the CPU, from 0."""
    EVENT = "e"
    """Number of the event, from 1, as in the window and other commands; the row in tables is one less."""
    VERDICT = "v"
    """Number of the verdict in the order of `satview check`, from 1."""
    MESSAGE = "m"
    """Row of the table `message`."""


@dataclass(frozen=True, slots=True)
class Handle:
    """A short name of an object in a trace, `t-7`: its kind, and its number, see `Subject`."""

    subject: Subject
    number: int

    def __str__(self) -> str:
        return f"{self.subject.value}-{self.number}"


def handle_of(text: str) -> Handle:
    """Return the handle that a text such as `t-7` spells, or raise UsageError."""
    parts = _HANDLE.fullmatch(text.strip().lower())
    if parts is None or parts[1] not in list(Subject):
        kinds = ", ".join(f"{subject.value}-N ({subject.name.lower()})" for subject in Subject)
        raise UsageError(f"{text.strip()[:40]!r} is not a handle; there are {kinds}")
    return Handle(Subject(parts[1]), int(parts[2]))


def thread_handle(row: int) -> str:
    """Return the handle of the thread in a row of the thread table, such as `t-34`, as text."""
    return str(Handle(Subject.THREAD, row))


def process_handle(row: int) -> str:
    """Return the handle of the process in a row of the process table, such as `p-12`, as text."""
    return str(Handle(Subject.PROCESS, row))


# Output of details, as text with handles for people and as plain values for JSON.


def as_text(details: Details) -> str:
    """Return details as text: a title, then sections of names and values. Lines end with handles such as `[e-12]`."""
    lines = [visible_line(details.title)]
    if details.subtitle:
        lines.append(visible_line(details.subtitle))
    for section in details.sections:
        lines += ["", section.title]
        width = max((len(line.name) for line in section.lines), default=0)
        lines += [f"  {visible_line(line.name):<{width}}  {_value(line)}".rstrip() for line in section.lines]
    return "\n".join(lines)


def as_record(details: Details) -> dict[str, Any]:
    """Return details as plain values for JSON."""
    return {
        "title": details.title,
        "subtitle": details.subtitle,
        "kind": details.kind,
        "sections": [
            {"title": section.title, "lines": [_record(line) for line in section.lines]} for section in details.sections
        ],
    }


def leads_to(line: DetailLine) -> list[str]:
    """Return the handles of the event, thread and process that a line refers to."""
    handles = [str(Handle(Subject.EVENT, line.event + 1))] if line.event is not None else []
    handles += [thread_handle(line.thread)] if line.thread else []
    return handles + ([process_handle(line.process)] if line.process else [])


def _value(line: DetailLine) -> str:
    note = f" ({line.note})" if line.note else ""
    means = f"  {line.means}" if line.means else ""
    handles = "".join(f" [{handle}]" for handle in leads_to(line))
    return visible_line(f"{line.text}{means}{note}{handles}")


def _record(line: DetailLine) -> dict[str, Any]:
    written = {"name": line.name, "text": line.text, "means": line.means, "note": line.note}
    return {key: value for key, value in written.items() if value} | {"handles": leads_to(line)}


_MAX_LINES: Final = 10
_MAX_EVIDENCE: Final = 24


def look(trace: Trace, handle: str = "") -> Details:
    """Return details of a trace or of an object in it, by its handle such as `t-7`; empty = the whole trace.

    Raises UsageError if the text is not a handle, or the trace has no object with that number.
    """
    if not handle.strip():
        return overview(trace)
    subject = handle_of(handle)
    return _LOOKS[subject.subject](trace, subject)


def overview(trace: Trace) -> Details:
    """Return a summary: verdicts, CPU load, busiest threads and processes, activities, and limits of the trace."""
    events = f"{counted(len(trace.events), 'event')} in {format_duration(trusted_duration_ns(trace))}"
    cpus = counted(trace.cpu_count, trace.cpu_noun)
    subtitle = f"{events}, {cpus}, release {trace.release}, {counted(len(trace.threads) - 1, 'thread')}"
    if not len(trace.events):
        return Details(trace.path.name, subtitle, "trace")
    statistics = Statistics(trace)
    threads = thread_table(statistics)
    processes = process_table(statistics, rows=np.arange(1, len(trace.processes)))
    sections = [
        Section("Verdicts: what is wrong", _verdict_lines(trace)),
        Section(f"{trace.cpu_noun}s", _cpu_lines(cpu_table(statistics))),
        Section("Busiest threads", _thread_lines(threads.rows(threads["cpu_cycles"] > 0))),
        Section("Processes", _process_lines(processes)),
        Section("Done again and again: most missed first", _activity_lines(late(trace))),
        Section("Outside", tuple(DetailLine("", words) for words in [outside_words(trace)] if words)),
        Section("Trust", _trust_lines(trace)),
    ]
    return Details(trace.path.name, subtitle, "trace", tuple(section for section in sections if section.lines))


def _verdict_lines(trace: Trace) -> tuple[DetailLine, ...]:
    verdicts = verdicts_of(trace)
    lines = [DetailLine(f"v-{number}", f"{verdict.severity}: {verdict.kind}: {verdict.says}")
             for number, verdict in enumerate(verdicts[:_MAX_LINES], 1)]  # fmt: skip
    if len(verdicts) > _MAX_LINES:
        more = len(verdicts) - _MAX_LINES
        lines.append(DetailLine("", f"and {more:,} more, {_numbered(Subject.VERDICT, _MAX_LINES + 1, len(verdicts))}"))
    if lines:
        return tuple(lines)
    unknown = len(undecided_table(trace))
    cannot = f", {unknown} of the kinds cannot be decided: see below" if unknown else ""
    return (DetailLine("", f"nothing found{cannot}"),)


def _with_rest(lines: list[DetailLine], count: int, shown: int = _MAX_LINES) -> tuple[DetailLine, ...]:
    """Return the lines of the `shown` first objects, and a line that says how many of `count` objects are left out."""
    return (*lines, DetailLine("", f"and {count - shown:,} more")) if count > shown else tuple(lines)


def _counted(shown: Table, row: int, column: str, noun: str) -> str:
    return with_sign(shown.known(row, column).sign, counted(shown.held(row, column), noun))


def _cpu_lines(shown: Table) -> tuple[DetailLine, ...]:
    """Return a line about each CPU of the table of CPUs."""
    parts = {"busy_share": "busy", "interrupt_share": "interrupts", "unknown_share": "not known"}
    if INTERRUPTS.reason(shown.trace):
        del parts["interrupt_share"]
    return tuple(
        DetailLine(f"c-{cpu}", ", ".join(f"{shown.text(cpu, column)} {what}" for column, what in parts.items()))
        for cpu in range(len(shown))
    )


def _thread_lines(shown: Table) -> tuple[DetailLine, ...]:
    """Return lines about the first threads of a table of threads, sorted by their CPU time."""
    trace, shown = shown.trace, shown.sorted_by("cpu")
    lines = []
    for position in range(min(len(shown), _MAX_LINES)):
        none = with_sign(shown.known(position, "longest_ready").sign, format_duration(0))
        ready = shown.text(position, "longest_ready") or none
        waits = "" if CPUS.reason(trace) else f", longest READY {ready}"
        runs = _counted(shown, position, "runs", "run")
        text = f"{shown.text(position, 'cpu_share')} of a CPU, {runs}{waits}"
        row = shown.held(position, SUBJECT)
        lines.append(DetailLine(thread_handle(row) if row else "", trace.thread_name(row), text))
    return _with_rest(lines, len(shown))


def lateness(trace: Trace, activity: str = "", timing: Mapping[str, Timing] | None = None) -> Details:
    """Return the recurring activities, and an analysis of one: its worst instance, and how slow instances differ.

    Args:
        trace: The trace.
        activity: Name of the activity to analyse, or a unique part of it; empty = the one that is most late.
        timing: Contents of a timing file; None = no file.

    Raises:
        UsageError: There is no such activity, or an activity of the timing file does not exist.
    """
    answer = late(trace, timing)
    number = answer.learned.named(activity) if activity else answer.most_telling()
    chains = _rows(answer.chains(), "chain", "measure", "median", "max", "bound", "misses")
    learned = answer.activities()
    doubts = [f"{'not all' if len(learned) else 'cannot tell'}: {line}" for line in learned.missing]
    unsure = doubts if len(learned) else doubts or [learned.question.empty]
    sections = [Section("Done again and again: most missed first", _activity_lines(answer)), Section("Chains", chains),
                Section("Trust", tuple(DetailLine("", line) for line in unsure))]  # fmt: skip
    if number is not None:
        (parts, says), differences = answer.explained(answer.worst(number, 1)), answer.compared(number)
        sections += [
            Section("The worst instance",
                    tuple(DetailLine("", line) for line in says or parts.says_why_empty.splitlines())),
            Section("Where its time went", _rows(parts.unfolded(), "part", "whom", "what", "length", "share")),
            Section("What slow instances have that fast ones have not",
                    _rows(differences.times, "part", "whom", "what", "explains", "share", "sure")),
            Section("What happens more often in slow ones",
                    _rows(differences.causes, "cause", "what", "slow", "fast", "sure")),
            Section("Ways that slow ones take", _rows(differences.paths, "path", "explains", "share", "sure")),
        ]  # fmt: skip
    return Details(f"{trace.path.name}: late", "", "late", tuple(section for section in sections if section.lines))


def _rows(shown: Table, name: str, *columns: str) -> tuple[DetailLine, ...]:
    """Return the first rows of a table as lines: `name` is the column that names a row; empty values are left out."""
    lines = [DetailLine(shown.text(row, name), ", ".join(f"{column} {text}" for column in columns
                                                         if (text := shown.text(row, column))))
             for row in range(min(len(shown), _MAX_LINES))]  # fmt: skip
    return _with_rest(lines, len(shown))


def _activity_lines(answer: Late, thread: int | None = None) -> tuple[DetailLine, ...]:
    """Return lines about the activities of one thread or of all threads, and one line about the worst instance."""
    shown = answer.activities().sorted_by("misses")
    if thread is not None:
        shown = shown.rows(shown["thread"] == thread)
    lines = []
    for row in range(min(len(shown), _MAX_LINES)):
        count, median, longest = shown.held(row, "count"), shown.text(row, "median"), shown.text(row, "max")
        figures = f"{counted(count, 'time')}, median {median}, longest {longest}"
        deadline = shown.text(row, "deadline")
        bound = f", deadline {deadline}, misses {shown.text(row, 'misses')}" if deadline else ""
        event = shown.event(row)
        lines.append(DetailLine(shown.text(row, "activity"), figures + bound, event=event if event >= 0 else None,
                                thread=max(shown.held(row, "thread"), 0)))  # fmt: skip
    activity = answer.most_telling() if thread is None else int(shown.positions[0]) if len(shown) else None
    worst = [] if activity is None else answer.worst(activity, 1).tolist()
    return (*_with_rest(lines, len(shown)), *(DetailLine("Worst", answer.says(instance)) for instance in worst))


def _process_lines(shown: Table) -> tuple[DetailLine, ...]:
    """Return lines about the first processes of a table of processes, sorted by their CPU time."""
    trace, shown = shown.trace, shown.sorted_by("cpu")
    lines = []
    for position in range(min(len(shown), _MAX_LINES)):
        row, share = shown.held(position, SUBJECT), _process_share(shown, position, "CPU time unknown")
        lines.append(DetailLine(process_handle(row), trace.process_name(row), share))
    return _with_rest(lines, len(shown))


def _process_share(shown: Table, position: int, unknown: str) -> str:
    """Return the CPU use of a process, in a row of the table of processes, as text: `30.0 % of a CPU` or `unknown`."""
    is_unknown = STATES.reason(trace_of_process(shown.trace, shown.held(position, SUBJECT)))
    return unknown if is_unknown else f"{shown.text(position, 'cpu_share')} of a CPU"


def _trust_lines(trace: Trace) -> tuple[DetailLine, ...]:
    lost, missing = lost_marks(trace), may_be_more(trace)
    lines = []
    if len(lost):
        total = trace.clock.duration_ns(int((lost[:, 1] - lost[:, 0]).sum()))
        begin = format_moment(int(lost[0, 0]), trace.clock)
        lines.append(
            DetailLine(
                "Lost", f"events are missing in {counted(len(lost), 'range')}, {format_duration(total)}, first {begin}"
            )
        )
    if missing:
        lines.append(DetailLine("Verdicts", f"there may be more than is listed: {missing}"))
    lines += [DetailLine("Cannot show" if row["shown"] == "none" else "May miss", f"{row['kind']}: {row['reason']}")
              for row in undecided_table(trace).records()]  # fmt: skip
    lines += [DetailLine("Problem", f"{slug}: {count:,}") for slug, count in trace.problems.counts().items()]
    return tuple(lines) or (DetailLine("", "no events are missing, and nothing is wrong with the file"),)


def _thread(trace: Trace, handle: Handle) -> Details:
    row = _within(handle, len(trace.threads), 1)
    statistics, threads = Statistics(trace), trace.threads
    pid, tid, process = int(threads.pid[row]), int(threads.tid[row]), int(threads.process[row])
    lines = [DetailLine("pid:tid", f"{pid}:{tid}"), DetailLine("Process", trace.process_name(process), process=process)]
    lines += [replace(line, name="CPU") for line in _thread_lines(thread_table(statistics, rows=np.array([row])))]
    named = [DetailLine(f"v-{number}", f"{verdict.kind}: {verdict.says}")
             for number, verdict in enumerate(verdicts_of(trace), 1) if row in verdict.threads]  # fmt: skip
    sections = [
        Section("Thread", tuple(lines)),
        Section("States: total, times, longest", _state_lines(statistics, row)),
        Section("Waits: for whom, longest first", _wait_lines(trace, row)),
        Section("Done again and again: most missed first", _activity_lines(late(trace), row)),
        Section("Verdicts", _with_rest(named[:_MAX_LINES], len(named))),
    ]
    return Details(f"{handle} {trace.thread_name(row)}", "", "thread", tuple(part for part in sections if part.lines))


def _state_lines(statistics: Statistics, row: int) -> tuple[DetailLine, ...]:
    shown, intervals = state_table(statistics, thread=row).sorted_by("total"), table(statistics.trace, "state")
    own = np.flatnonzero(intervals["thread"] == row)
    start_events = dict(zip(intervals["start_cycles"][own].tolist(), intervals["event"][own].tolist(), strict=True))
    lines = []
    for position in range(len(shown)):
        times = _counted(shown, position, "count", "time")
        text = f"{shown.text(position, 'total')}, {times}, longest {shown.text(position, 'longest')}"
        event = start_events.get(shown.moment(position, "longest"), -1)
        name = shown.text(position, "state").upper()  # as in SQL
        lines.append(DetailLine(name, text, event=event if event >= 0 else None))
    return tuple(lines)


def _wait_lines(trace: Trace, row: int) -> tuple[DetailLine, ...]:
    waits = table(trace, "wait")
    own = np.flatnonzero(waits["thread"] == row)
    longest_first = own[np.argsort(-waits["length_cycles"][own], kind="stable")]
    lines = []
    for wait in longest_first[:_MAX_LINES].tolist():
        length = format_duration(trace.clock.duration_ns(int(waits["length_cycles"][wait])))
        if waits["end_event"][wait] < 0:  # it goes on after the trace, or into lost events
            length = with_sign(AT_LEAST_SIGN, length)
        blocker, start = int(waits["blocker"][wait]), int(waits["start_cycles"][wait])
        for_whom = f" for {trace.thread_name(blocker)}" if blocker > 0 else ""
        text = f"{length} from {format_moment(start, trace.clock)}{for_whom}"
        lines.append(DetailLine(str(waits["state"][wait]), text,
                                event=int(waits["event"][wait]), thread=max(blocker, 0)))  # fmt: skip
    return _with_rest(lines, len(own))


def _process(trace: Trace, handle: Handle) -> Details:
    row = _within(handle, len(trace.processes), 1)
    statistics = Statistics(trace)
    threads = thread_table(statistics, rows=np.flatnonzero(trace.threads.process == row))
    share = _process_share(process_table(statistics, rows=np.array([row])), 0, "unknown")
    name = DetailLine("Name", trace.processes.names[row], trace.process_name_source(row))
    lines = DetailLine("pid", str(int(trace.processes.pid[row]))), name, DetailLine("CPU", share)
    sections = (Section("Process", lines), Section("Threads", _thread_lines(threads)))
    return Details(f"{handle} {trace.process_name(row)}", "", "process", sections)


def _cpu(trace: Trace, handle: Handle) -> Details:
    cpu = _within(handle, trace.cpu_count, 0)
    runs = table(trace, "run")
    is_own = (runs["cpu"] == cpu) & ~runs["is_idle"]
    used = np.bincount(runs["thread"][is_own], weights=runs["cpu_cycles"][is_own], minlength=len(trace.threads))
    order = [row for row in np.argsort(-used, kind="stable").tolist() if used[row] > 0]
    cpus = cpu_table(Statistics(trace))
    sign, length = cpus.known(cpu, "busy_share").sign, trace.window.length
    lines = [DetailLine(thread_handle(row), trace.thread_name(row), with_sign(sign, percent(used[row] / length)))
             for row in order[:_MAX_LINES]]  # fmt: skip
    sections = (Section("CPU", (_cpu_lines(cpus)[cpu],)),
                Section("Threads that ran on it", _with_rest(lines, len(order))))  # fmt: skip
    return Details(f"{handle} {trace.cpu_title(cpu)}", "", "CPU", tuple(part for part in sections if part.lines))


def _event(trace: Trace, handle: Handle) -> Details:
    row = _within(handle, len(trace.events) + 1, 1) - 1
    shown = event_details(trace, row, link_of(trace, row), None, connected=connections(trace, row),
                         names=argument_names(trace, row))  # fmt: skip
    sections = [*shown.sections, Section("Why its thread is in its state then", _why_lines(trace, row))]
    return Details(
        f"{handle} {shown.title}", shown.subtitle, shown.kind, tuple(part for part in sections if part.lines)
    )


def _why_lines(trace: Trace, event: int) -> tuple[DetailLine, ...]:
    thread = int(trace.events.thread[event])
    if not thread:
        return ()
    try:
        steps = why(trace, thread, int(trace.events.time_cycles[event]))
    except UsageError as error:
        return (DetailLine("", str(error)),)
    rows = [step.cause_row if step.cause_row >= 0 else step.row for step in steps]
    return tuple(DetailLine("" if line.is_folded else f"{line.step + 1}.", line.says, thread=steps[line.step].thread,
                            event=rows[line.step] if rows[line.step] >= 0 else None)
                 for line in chain_lines(trace, steps))  # fmt: skip


def _verdict(trace: Trace, handle: Handle) -> Details:
    verdicts = verdicts_of(trace)
    return verdict_details(trace, verdicts[_within(handle, len(verdicts) + 1, 1) - 1], f"{handle} ")


def verdict_details(trace: Trace, verdict: Verdict, handle: str = "") -> Details:
    """Return the details of a verdict, whose title begins with `handle`; empty = the verdict has no handle."""
    location, clock = verdict.location(trace), trace.clock
    when = " to ".join(format_moment(cycles, clock) for cycles in (verdict.start_cycles, verdict.end_cycles))
    lines = [DetailLine("Severity", str(verdict.severity)), DetailLine("When", when), DetailLine("What", verdict.says),
             DetailLine("Advice", verdict.remedy), DetailLine("Certainty", verdict.certainty.name.lower()),
             *([DetailLine("Proof", verdict.proof)] if verdict.proof else []),
             DetailLine("Open", location.command)]  # fmt: skip
    lines += [DetailLine("Thread", trace.thread_name(thread), thread=thread) for thread in verdict.threads]
    lines += [DetailLine("Object", time) for time in verdict.objects]
    roles = verdict.roles or ("",) * len(verdict.evidence)
    evidence = [DetailLine(role or "event", _logged(trace, event), event=event)
                for role, event in zip(roles, verdict.evidence[:_MAX_EVIDENCE], strict=False)]  # fmt: skip
    locations = [
        DetailLine(str(number), format_moment(time.start_cycles, clock), event=time.row if time.row >= 0 else None)
        for number, time in enumerate(verdict.occurrences[:_MAX_LINES], 1)
    ]
    sections = (
        Section("Verdict", tuple(lines)),
        Section("Evidence", _with_rest(evidence, len(verdict.evidence), _MAX_EVIDENCE)),
        Section("Times", _with_rest(locations, len(verdict.occurrences))),
    )
    return Details(f"{handle}{verdict.kind}", "", "verdict", tuple(part for part in sections if part.lines))


def _message(trace: Trace, handle: Handle) -> Details:
    sent = transactions(trace)
    row = _within(handle, len(sent.send_row), 0)
    client, server = int(sent.client[row]), int(sent.server[row])
    lines = [DetailLine("Sent", event_name(trace, int(sent.send_row[row])), event=int(sent.send_row[row])),
             DetailLine("Client", trace.thread_name(max(client, 0)), thread=max(client, 0))]  # fmt: skip
    if server > 0:
        lines.append(DetailLine("Server", trace.thread_name(server), thread=server))
    for name, event in (("Received", sent.receive_row), ("Replied", sent.reply_row), ("Client runs", sent.done_row)):
        if event[row] >= 0:
            lines.append(DetailLine(name, _logged(trace, int(event[row])), event=int(event[row])))
    legs = transaction_table(trace)
    for name in LEGS:
        doubt = legs.doubt(row, name)
        text = legs.text(row, name) or "there is none"
        lines.append(DetailLine(name.replace("_", " "), f"{text} ({doubt})" if doubt else text))
    if sent.parent[row] >= 0:
        lines.append(DetailLine("Within", f"m-{int(sent.parent[row])}"))
    return Details(f"{handle} message", "", "message", (Section("Message", tuple(lines)),))


def _logged(trace: Trace, event: int) -> str:
    thread = int(trace.events.thread[event])
    by = f" of {trace.thread_name(thread)}" if thread else ""
    return f"{trace.spec(event).name}{by} at {format_moment(int(trace.events.time_cycles[event]), trace.clock)}"


def _numbered(subject: Subject, first: int, last: int) -> str:
    """Return the handles from `first` to `last` as text, such as `v-1 to v-3`, or `v-1` if both are equal."""
    return f"{subject.value}-{first}" + (f" to {subject.value}-{last}" if last > first else "")


def _within(handle: Handle, end: int, lowest: int) -> int:
    if not lowest <= handle.number < end:
        existing = _numbered(handle.subject, lowest, end - 1) if end > lowest else "none"
        there = f"there is only {existing}" if end == lowest + 1 else f"there are {existing}"
        raise UsageError(f"there is no {handle.subject.name.lower()} {handle}; {there}")
    return handle.number


_LOOKS: Final[dict[Subject, Callable[[Trace, Handle], Details]]] = {
    Subject.THREAD: _thread,
    Subject.PROCESS: _process,
    Subject.CPU: _cpu,
    Subject.EVENT: _event,
    Subject.VERDICT: _verdict,
    Subject.MESSAGE: _message,
}


# A read-only server of the Model Context Protocol over standard input and output.
#
# The server opens only traces below the folders that it was started with, does not use the network, and writes nothing
# except temporary files of pictures.


_MAX_OPEN: Final = 2
_MAX_ROWS: Final = 200
_LIMITS: Final = Limits(time_s=30.0, memory_bytes=1 << 30, answer_bytes=64 << 20)
_SIZE: Final = "1400x860"
_MAX_TRACES: Final = 500
_Tool = Callable[..., str | bytes]


@dataclass(slots=True)
class Answers:
    """The tools of the server; the docstring of a tool is its description in the protocol.

    Attributes:
        roots: Folders below which traces are opened.
        opened: Cache of the traces used last, by path, size and modification time.
        one_at_a_time: Lock that a tool holds while it uses a trace; `sql` releases it while the query runs.
        described: Descriptions of events by code, for all traces.
    """

    roots: Sequence[Path]
    opened: OrderedDict[tuple[Path, int, int], Trace] = field(default_factory=OrderedDict)
    one_at_a_time: RLock = field(default_factory=RLock)
    described: Mapping[int, UserEvent] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        """Return the path of a file below one of the folders; UsageError if there is none."""
        for root in self.roots if not name_fault(name) else ():
            path = (root / name).resolve()
            if self._is_open(path) and path.exists():
                return path
        raise UsageError(f"{name[:200]!a} is not a file below {', '.join(map(str, self.roots))}; `traces` lists them")

    def trace(self, name: str) -> Trace:
        """Return an opened trace; a cached trace is used if its file has not changed."""
        path = self.path(name)
        status = path.stat()
        key = (path, status.st_size, status.st_mtime_ns)
        if key not in self.opened:
            with only_below(self.roots):
                self.opened[key] = open_trace(path)
            describe_events(self.opened[key], self.described)
            while len(self.opened) > _MAX_OPEN:
                self.opened.popitem(last=False)
        self.opened.move_to_end(key)
        return self.opened[key]

    def _is_open(self, path: Path) -> bool:
        """Return whether a path is below one of the folders after following links."""
        return any(path.resolve().is_relative_to(root.resolve()) for root in self.roots)

    def traces(self) -> str:
        """List the traces below the folders that the server was started with."""
        names = sorted(str(path.relative_to(root)) for root in self.roots for pattern in TRACE_PATTERNS
                       for path in root.rglob(pattern) if path.is_file() and self._is_open(path))  # fmt: skip
        more = f"\nand {len(names) - _MAX_TRACES:,} more" if len(names) > _MAX_TRACES else ""
        return "\n".join(names[:_MAX_TRACES]) + more if names else "there are none"

    def look(self, trace: str, handle: str = "") -> str:
        """Describe a trace or an object in it. Start here: without a handle, summarize the trace and its problems.

        Args:
            trace: Name of the file, as `traces` lists it.
            handle: t-N thread, p-N process, c-N CPU, e-N event, v-N verdict, m-N message; empty for the whole trace.
        """
        return as_text(look(self.trace(trace), handle))

    def verdicts(self, trace: str, timing: str = "") -> str:
        """List the problems found in a trace: deadlocks, priority inversions, starvation, slow servers, lost data.

        Args:
            trace: Name of the file.
            timing: A timing file with deadlines, periods and chains to check too; empty for none.
        """
        opened = self.trace(trace)
        answers = [as_text(look(opened, f"v-{number}")) for number in range(1, len(verdicts_of(opened)) + 1)]
        if timing:
            limits = read_thresholds(None, self.path(timing))
            kinds = [kind for kind, rule in rules().items() if rule.timing and limits.is_enabled(kind)]
            answers += [as_text(verdict_details(opened, verdict)) for verdict in find_verdicts(opened, limits, kinds)]
            answers += [f"cannot tell: {row['kind']}: {row['reason']}"
                        for row in undecided_table(opened, kinds, limits.timing).records()]  # fmt: skip
        return "\n\n".join(answers) or "nothing found; look says what the trace cannot show"

    def why(self, trace: str, thread: str, at: str) -> str:
        """Explain why a thread runs, is ready or waits at a moment: the chain of causes, down to the root cause.

        Args:
            trace: Name of the file.
            thread: A handle t-N, a label, a name or PID:TID.
            at: The moment: a time such as 1.25s or 350us, or #4711 for the time of an event.
        """
        opened = self.trace(trace)
        cycles = parse_moment_inside(at, opened.time_axis)
        return as_text(why_details(opened, why(opened, _thread_argument(thread), cycles)))

    def late(self, trace: str, activity: str = "", timing: str = "") -> str:
        """List the recurring activities with their deadlines, and explain where the worst instance spent its time.

        Args:
            trace: Name of the file.
            activity: Name of the activity to explain, or a unique part of it; empty for the one that is most late.
            timing: A timing file with deadlines, periods, chains and activities; empty for none.
        """
        return as_text(lateness(self.trace(trace), activity, read_timing(self.path(timing)) if timing else None))

    def tables(self) -> str:
        """List the SQL tables with their columns, and the views and macros."""
        lines = [f"{schema.name}({', '.join(schema.names)}): {schema.meaning}" for schema in SCHEMAS.values()]
        more = "call_NAME, exit_NAME, user_NUMBER, ...: events of a kind with their arguments; `show tables` lists them"
        return "\n".join([*lines, more, "", *(f"{view.usage}: {view.meaning}" for view in views().values())])

    def sql(self, trace: str, query: str, timing: str = "") -> str:
        """Run a DuckDB query over the tables of a trace, and return the first 200 rows as CSV.

        Args:
            trace: Name of the file.
            query: One SELECT statement; `tables` lists the tables. It is read-only and limited to 30 s.
            timing: A timing file for the tables of activities; empty for none, which leaves the table `chain` empty.
        """
        with self.one_at_a_time:
            timings = read_timing(self.path(timing)) if timing else None
            running = start_query(self.trace(trace), query, _LIMITS, timing=timings)
        result = running.answer(is_part_enough=True)
        rows = result.rows(_MAX_ROWS)
        lines = [",".join(map(_cell, result.columns)), *(",".join(map(_cell, row)) for row in rows)]
        if len(result) > _MAX_ROWS or result.is_cut:
            lines.append(f"... {result.summary}; add a LIMIT or add them up")
        lines += result.reservations
        return "\n".join(lines)

    def picture(self, trace: str, range: str = "", event: int = 0) -> bytes:  # noqa: A002  -- the name that callers see
        """Take a picture of the window.

        Args:
            trace: Name of the file.
            range: The part of the trace to show, such as 1.2s..1.5s; empty for all of it.
            event: Number of the event to select; 0 for none.

        Raises:
            UsageError: The picture cannot be taken; the message has the reason.
        """
        options = [*([f"--range={range}"] if range else []), *([f"--select={event}"] if event else [])]
        with tempfile.TemporaryDirectory(prefix="satview-mcp-") as folder:
            path = Path(folder) / "picture.png"
            with only_below(self.roots):
                why_not = screenshot(self.path(trace), path, [*options, "--no-cache"], _SIZE)
            if why_not:
                raise UsageError(why_not)
            return path.read_bytes()


def make_server(roots: Sequence[Path], described: Mapping[int, UserEvent] | None = None) -> Any:
    """Create the server without running it.

    Args:
        roots: Folders below which traces are opened.
        described: Descriptions of events by code; None = none.

    Raises:
        UsageError: The package mcp is not installed.
    """
    server_module, types = required("mcp.server"), required("mcp.types")
    answers = Answers(roots, described=described or {})
    server = server_module.MCPServer(
        "satview", instructions=resource_path("look/guide.md").read_text(encoding="utf-8"), log_level="ERROR"
    )
    reads = types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    tools = (answers.traces, answers.look, answers.verdicts, answers.why, answers.late, answers.tables, answers.sql,
             answers.picture)  # fmt: skip
    for tool in tools:
        server.add_tool(
            _guarded(tool, answers), description=cleandoc(tool.__doc__ or ""), annotations=reads,
            structured_output=False,
        )  # fmt: skip
    return server


def _guarded(tool: _Tool, answers: Answers) -> Callable[..., Any]:
    """Wrap a tool: errors of satview become tool errors, and bytes become a PNG image."""
    mcpserver = required("mcp.server.mcpserver")
    tool_error = required("mcp.server.mcpserver.exceptions").ToolError

    @wraps(tool)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            with nullcontext() if tool == answers.sql else answers.one_at_a_time:
                answer = tool(*args, **kwargs)
        except (SatviewError, OSError) as error:
            raise tool_error(str(error)) from error
        return answer if isinstance(answer, str) else mcpserver.Image(data=answer, format="png")

    run.__annotations__ = {**run.__annotations__, "return": Any}
    return run


def _thread_argument(text: str) -> int | str:
    """Return the row of a thread given by its handle; any other text is returned unchanged."""
    try:
        handle = handle_of(text)
    except UsageError:
        return text
    return handle.number if handle.subject is Subject.THREAD else text


def _cell(value: Any) -> str:
    text = visible_line(value_text(value))
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if "," in text or '"' in text else text
