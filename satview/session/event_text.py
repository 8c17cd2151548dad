"""What is said of an event or an interval: rows of the list, details with links. Text only, no widget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from satview.analysis.why import WhyStep
from satview.base.time import NS_PER_S, format_duration, format_time, hex_cycles
from satview.events.spec import Argument
from satview.events.states import STATE_BY_VALUE
from satview.links.chain import Connections, Step, WaitsFor
from satview.links.table import Certainty, Link, LinkKind
from satview.session.event_forms import arguments_as, form_of
from satview.store.trace import Trace
from satview.timeline.lane_tree import LaneInfo, LaneKind, Timeline
from satview.timeline.spans import Span

COLUMNS: Final = ("Number", "Time", "Delta", "CPU", "Process", "Thread", "Class", "Event", "Arguments")
_OBJECTS: Final = {  # what threads wait for in a state
    "MUTEX": "mutex", "CONDVAR": "condition variable", "SEM": "semaphore", "BARRIER": "barrier", "RECEIVE": "channel",
    "JOIN": "thread", "RWLOCK_READ": "read/write lock", "RWLOCK_WRITE": "read/write lock",
}  # fmt: skip
NO_EVENT: Final = 2**32 - 1
FIRST_WORDS: Final = 128  # of a giant event, which may have a million: a page of them shows at once
MOST_WORDS: Final = 2048  # laying out a table of twice as many rows takes a second


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the details.

    Attributes:
        name: What it is.
        text: The value.
        note: What to know about it, shown small.
        event: Event row to go to when it is clicked, or None.
        is_code: Numbers and bytes, to be set in a fixed font.
        is_more: A click shows more of a giant event.
    """

    name: str
    text: str
    note: str = ""
    event: int | None = None
    is_code: bool = False
    is_more: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """Lines that belong together.

    Attributes:
        title: What they are about.
        lines: The lines.
        is_prose: Sentences, which take the whole width, rather than names with their values.
    """

    title: str
    lines: tuple[Line, ...]
    is_prose: bool = False


@dataclass(frozen=True, slots=True)
class Details:
    """Everything about a selection.

    Attributes:
        title: What it is, a few words.
        subtitle: Where it belongs.
        kind: Printed class of an event, or the state of an interval.
        sections: The lines.
    """

    title: str
    subtitle: str
    kind: str
    sections: tuple[Section, ...] = field(default=())

    def as_text(self) -> str:
        """Return it as plain text for the clipboard."""
        lines = [f"{self.title}  [{self.kind}]", self.subtitle]
        for section in self.sections:
            lines += ["", section.title]
            width = max((len(line.name) for line in section.lines), default=0)
            lines += [
                f"  {line.name:<{width}}  {line.text}{f'  ({line.note})' if line.note else ''}"
                for line in section.lines
            ]
        return "\n".join(lines)


def list_row(trace: Trace, event: int, previous: int | None) -> tuple[str, ...]:
    """Return the texts of one row of the event list, one per entry of `COLUMNS`.

    Args:
        trace: The trace.
        event: Row of the event table.
        previous: The event shown above it, for the delta; None for the first.
    """
    events = trace.events
    cycles = int(events.time_cycles[event])
    thread = int(events.thread[event])
    spec = trace.spec(event)
    delta = ""
    if previous is not None:
        delta = format_duration(trace.clock.duration_ns(cycles - int(events.time_cycles[previous])))
    arguments = trace.payloads.decode(event, 80).arguments  # a line is cut long before
    return (
        f"{event + 1:,}",
        format_time(trace.clock.ns(cycles)),
        delta,
        str(int(events.cpu[event])),
        trace.process_name(int(trace.threads.process[thread])) if thread else "",
        thread_number(trace, thread),
        spec.class_name,
        spec.label or spec.name,
        arguments_text(arguments),
    )


def thread_number(trace: Trace, thread: int) -> str:
    """Return the tid with the thread's name, empty where no thread is known."""
    if thread == 0 or int(trace.threads.tid[thread]) <= 0:
        return ""
    name = trace.threads.names[thread]
    return f"{int(trace.threads.tid[thread])} {name}".rstrip()


def arguments_text(arguments: tuple[Argument, ...], limit: int = 300) -> str:
    """Return `name=value` of every argument on one line, cut at about `limit` characters."""
    text = "  ".join(f"{argument.name}={argument.text}" for argument in arguments)
    return text if len(text) <= limit else text[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"


def event_details(
    trace: Trace,
    event: int,
    link: Link | None,
    is_wide: bool | None = None,
    most: int = FIRST_WORDS,
    connected: Connections | None = None,
) -> Details:
    """Return all that is known of an event.

    Args:
        trace: The trace.
        event: Row of the event table.
        link: The call, interrupt, handler or state that the event begins or ends (`links.trace_links.link_of`), None if
            there is none or it is not yet known.
        is_wide: Show the arguments as the wide or fast mode logs them; None = as they were logged.
        most: Words of a giant event that are spelled out, and bytes of its text.
        connected: What it is connected with (`links.chain.connections`); None = not yet known.
    """
    spec = trace.spec(event)
    if is_wide is not None:
        is_wide = None if form_of(trace, event, is_wide=is_wide).form not in ("fast", "wide") else is_wide
    thread = int(trace.events.thread[event])
    calls = ", ".join(f"{call}()" for call in spec.calls)
    what = [Line("Class", spec.class_name)]
    if spec.label and spec.label != spec.name:
        what.append(Line("Printed as", spec.label))
    if calls:
        what.append(Line("Public call", calls))
    if spec.when:
        what.append(Line("When", spec.when))
    what += [Line("Number", f"{event + 1:,} of {len(trace.events):,}"), *_link_lines(trace, event, link)]
    return Details(
        title=spec.name,
        subtitle=trace.thread_name(thread) if thread else trace.cpu_title(int(trace.events.cpu[event])),
        kind=spec.class_name,
        sections=(
            Section("Event", tuple(what)),
            *_connection_sections(trace, event, connected),
            Section("Where", _place_lines(trace, event)),
            *_argument_sections(trace, event, is_wide, most),
        ),
    )


def why_details(trace: Trace, steps: Sequence[WhyStep], error: str = "") -> Details:
    """Return why a thread is in its state at a moment; each step leads to the event that it goes back to.

    Args:
        trace: The trace.
        steps: The answer (`analysis.why.why`), at least one step unless there is an error.
        error: Why there is no answer.
    """
    if not steps:
        text = error or "Looking for the answer\N{HORIZONTAL ELLIPSIS}"
        return Details("Why?", "", "answer", (Section("Answer", (Line("", text),), is_prose=True),))
    lines = []
    for number, step in enumerate(steps, 1):
        lines.append(Line(f"{number}.", step.says))
        row = step.cause_row if step.cause_row >= 0 else step.row
        if row >= 0:
            lines.append(Line("", _event_name(trace, row), event=row))
    first = steps[0]
    when = format_time(trace.clock.ns(first.at_cycles))
    return Details(f"Why {first.state}?", f"{trace.thread_name(first.thread)} at {when}", "answer",
                   (Section("From the effect to its causes", tuple(lines), is_prose=True),))  # fmt: skip


def span_details(timeline: Timeline, lane: int, span: Span) -> Details:
    """Return all that is known of an interval of a lane."""
    trace, info = timeline.trace, timeline.infos[lane]
    length_ns = trace.clock.duration_ns(span.end_cycles - span.start_cycles)
    state = STATE_BY_VALUE.get(span.value)
    lines = [Line("Length", format_duration(length_ns), f"{span.end_cycles - span.start_cycles:,} cycles")]
    if state is not None:
        lines.append(Line("Meaning", state.meaning))
    lines += [
        Line("From", format_time(trace.clock.ns(span.start_cycles))),
        Line("To", format_time(trace.clock.ns(span.end_cycles))),
    ]
    if span.thread > 0:
        lines.append(Line("Thread", trace.thread_name(span.thread)))
    if 0 <= span.event < len(trace.events):
        lines.append(Line("Begun by", _event_name(trace, span.event), event=span.event))
    following = _event_at_end(timeline, lane, span)
    if following is not None:
        lines.append(Line("Ended by", _event_name(trace, following), event=following))
    return Details(
        timeline.label(span),
        f"{lane_path(timeline, lane)}  {info.subtitle}".strip(),
        lane_kind(info),
        (Section("Interval", tuple(lines)),),
    )


def lane_path(timeline: Timeline, index: int) -> str:
    """Return the name of a lane after that of what it lies under: `devb-eide > worker`."""
    info = timeline.infos[index]
    if info.parent < 0:
        return info.title
    return f"{timeline.infos[info.parent].title} \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} {info.title}"


def lane_kind(info: LaneInfo) -> str:
    """Return what sort of lane it is."""
    names = {
        LaneKind.CPU: "CPU",
        LaneKind.INTERRUPTS: "interrupts",
        LaneKind.PROCESS: "process",
        LaneKind.THREAD: "thread",
        LaneKind.DAMAGED: "events of damaged slots",
    }
    return names[info.kind]


def _event_at_end(timeline: Timeline, lane: int, span: Span) -> int | None:
    after = timeline.lane(lane).at(span.end_cycles)
    if after is None or after.start_cycles != span.end_cycles or not 0 <= after.event < len(timeline.trace.events):
        return None
    return after.event


def _place_lines(trace: Trace, event: int) -> tuple[Line, ...]:
    cycles = int(trace.events.time_cycles[event])
    thread = int(trace.events.thread[event])
    lines = [Line("Time", format_time(trace.clock.ns(cycles)), "from start")]
    if trace.clock.is_absolute:
        since_boot_ns = cycles * NS_PER_S // trace.clock.cycles_per_s
        lines.append(Line("Since boot", format_time(since_boot_ns)))
    lines.append(Line("Cycles", f"{cycles:,}", hex_cycles(cycles), is_code=True))
    wall = trace.clock.wall_time(cycles)
    if wall is not None:
        lines.append(Line("Date", f"{wall:%Y-%m-%d %H:%M:%S} UTC", "approximate"))
    kind, _, number = trace.cpu_title(int(trace.events.cpu[event])).rpartition(" ")
    lines.append(Line(kind, number))
    process = int(trace.threads.process[thread])
    if thread:
        pid = int(trace.processes.pid[process])
        lines.append(Line("Process", trace.processes.names[process] or trace.process_name(process), f"pid {pid}"))
        if int(trace.threads.tid[thread]) > 0:
            lines.append(Line("Thread", trace.thread_name(thread), f"tid {int(trace.threads.tid[thread])}"))
    return tuple(lines)


def _link_lines(trace: Trace, event: int, link: Link | None) -> list[Line]:
    if link is None:
        return []
    times, last = trace.events.time_cycles, len(trace.events) - 1
    cycles = int(times[min(link.to_row, last)]) - int(times[link.from_row])
    length = format_duration(trace.clock.duration_ns(cycles))
    if link.kind is LinkKind.STATE:
        until = Line("Until", "the end of the trace")
        if link.to_row <= last:
            until = Line("Until", _event_name(trace, link.to_row), event=link.to_row)
        return [until, Line("Length", length, f"{cycles:,} cycles")]
    is_begin = link.from_row == event
    other = link.to_row if is_begin else link.from_row
    note = "" if link.certainty is Certainty.EXACT else "next on this CPU; the calling thread is not known"
    return [
        Line("Ends with" if is_begin else "Began with", _event_name(trace, other), note, event=other),
        Line("Duration", length, f"{cycles:,} cycles"),
    ]


def _connection_sections(trace: Trace, event: int, connected: Connections | None) -> tuple[Section, ...]:
    if connected is None:
        return ()
    lines = [_step_line(trace, event, step) for step in (*connected.causes, *connected.effects)]
    if connected.waits_for is not None:
        lines += _wait_lines(trace, connected.waits_for)
    return (Section("Cause and effect", tuple(lines)),) if lines else ()


def _step_line(trace: Trace, event: int, step: Step) -> Line:
    thread = int(trace.events.thread[step.row])
    cycles = int(trace.events.time_cycles[step.row]) - int(trace.events.time_cycles[event])
    notes = [trace.thread_name(thread)] if thread else []
    notes.append(f"{format_duration(trace.clock.duration_ns(abs(cycles)))} {'earlier' if cycles < 0 else 'later'}")
    if step.certainty is not Certainty.EXACT:
        notes.append("inferred" if step.certainty is Certainty.INFERRED else "a guess")
    return Line(str(step.relation), _event_name(trace, step.row), ", ".join(notes), event=step.row)


def _wait_lines(trace: Trace, found: WaitsFor) -> list[Line]:
    """Return whom and what a thread waits for, and that the wait never ends where it does not."""
    kind = _OBJECTS.get(STATE_BY_VALUE[found.value].name, "object")
    where = "" if found.object is None else f"{kind} {found.object:#x}"
    notes = [where] if where else []
    if found.certainty is Certainty.INFERRED:
        notes.append("inferred from who gives it up next")
    lines = []
    if found.thread >= 0:
        lines.append(Line("Waits for", trace.thread_name(found.thread), ", ".join(notes)))
    elif found.pid >= 0:
        rows = np.flatnonzero(trace.processes.pid == found.pid)
        name = trace.process_name(int(rows[0])) if len(rows) else f"pid {found.pid}"
        lines.append(Line("Waits for", f"any thread of {name}", ", ".join(notes)))
    elif where:
        lines.append(Line("Waits for", where))
    if found.is_open:
        lines.append(Line("", "The wait lasts to the end of the trace."))
    return lines


def _event_name(trace: Trace, event: int) -> str:
    return f"event {event + 1:,}: {trace.spec(event).name}"


def _argument_sections(trace: Trace, event: int, is_wide: bool | None, most: int) -> tuple[Section, ...]:
    payload = trace.payloads.decode(event, most)
    form = {
        "fast": "Arguments, fast mode",
        "wide": "Arguments, wide mode",
        "raw": "Arguments, list not known",
        "failed": "Arguments, the call failed",
    }
    sections = []
    arguments = payload.arguments if is_wide is None else arguments_as(trace, event, is_wide=is_wide, most=most)
    if arguments:
        lines = tuple(Line(argument.name, argument.text, argument.note, is_code=True) for argument in arguments)
        title = form.get(payload.form, "Arguments")
        if is_wide is not None:
            title = f"Arguments, as {'wide' if is_wide else 'fast'} mode logs them (in the trace: {payload.form})"
        sections.append(Section(title, lines))
    if payload.words:
        rows = [payload.words[i : i + 2] for i in range(0, min(len(payload.words), most), 2)]
        words = tuple(
            Line(f"{i * 2}", "  ".join(f"{word:08x}" for word in row), is_code=True) for i, row in enumerate(rows)
        )
        sections.append(Section("Raw words", words + _left_out(len(payload.words) - 2 * len(rows), most)))
    return tuple(sections)


def _left_out(words: int, most: int) -> tuple[Line, ...]:
    """Return the line that stands for words that do not show; a click on it shows more, up to a bound."""
    if words <= 0:
        return ()
    text = f"\N{HORIZONTAL ELLIPSIS} {words:,} more words"
    if most < MOST_WORDS:
        return (Line("", text + ": show more", is_more=True),)
    return (Line("", text, "traceprinter prints them all"),)
