"""What is said of an event or an interval: rows of the list, details with links. Text only, no widget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from satview.analysis.reasons.why_step import WhyStep, chain_lines
from satview.analysis.trust import EXACT, Mark, Trust, sign
from satview.base.safe_text import visible_line
from satview.base.time import NS_PER_S
from satview.base.time_text import format_duration, format_moment, format_time, hex_cycles
from satview.events.spec import arguments_text
from satview.events.states import STATE_BY_VALUE, UNKNOWN
from satview.linkage.chain import Connections, WaitsFor
from satview.linkage.table import Certainty, Link, LinkKind
from satview.session.events.argument_names import Meaning
from satview.session.events.connection_text import argument_line, connection_sections, event_name, wait_lines
from satview.session.events.details import Details, Line, Section
from satview.session.events.event_forms import arguments_as, form_of
from satview.store.losses import losses
from satview.store.trace import Trace
from satview.timeline.lane_tree import LaneInfo, LaneKind, Timeline
from satview.timeline.spans import Span

COLUMNS: Final = ("Number", "Time", "Delta", "CPU", "Process", "Thread", "Class", "Event", "Arguments")
NO_EVENT: Final = 2**32 - 1
FIRST_WORDS: Final = 128  # of a giant event, which may have a million: a page of them shows at once
MOST_WORDS: Final = 2048  # laying out a table of twice as many rows takes a second


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
        format_moment(cycles, trace.clock),
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


def event_details(
    trace: Trace,
    event: int,
    link: Link | None,
    is_wide: bool | None = None,
    most: int = FIRST_WORDS,
    connected: Connections | None = None,
    names: Mapping[str, Meaning] | None = None,
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
        names: What its arguments mean (`session.argument_names`); None = not yet known.
    """
    spec = trace.spec(event)
    if is_wide is not None:
        is_wide = None if form_of(trace, event, is_wide=is_wide).form not in ("fast", "wide") else is_wide
    thread = int(trace.events.thread[event])
    calls = ", ".join(f"{call}()" for call in spec.calls)
    described = trace.payloads.described.get(spec.code)
    what = [Line("Class", spec.class_name)]
    if spec.label and spec.label != spec.name:
        what.append(Line("Printed as", spec.label))
    if described is not None and described.name:
        what.append(Line("Described as", visible_line(described.name)))
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
            *connection_sections(trace, event, connected),
            Section("Where", _location_lines(trace, event)),
            *_argument_sections(trace, event, is_wide, most, names or {}),
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
    for shown in chain_lines(trace, steps):
        lines.append(Line("" if shown.is_folded else f"{shown.step + 1}.", shown.says))
        step = steps[shown.step]
        row = step.cause_row if step.cause_row >= 0 else step.row
        if row >= 0:
            lines.append(Line("", event_name(trace, row), event=row))
    first = steps[0]
    when = format_moment(first.at_cycles, trace.clock)
    return Details(f"Why {first.state}?", f"{trace.thread_name(first.thread)} at {when}", "answer",
                   (Section("From the effect to its causes", tuple(lines), is_prose=True),))  # fmt: skip


def span_details(timeline: Timeline, lane: int, span: Span, waits: WaitsFor | None = None) -> Details:
    """Return all that is known of an interval of a lane.

    Args:
        timeline: The lanes.
        lane: Index of one of them.
        span: One of its intervals.
        waits: For whom and what its thread waits in it; None = for nobody, or not yet known.
    """
    trace, info = timeline.trace, timeline.infos[lane]
    length_ns = trace.clock.duration_ns(span.end_cycles - span.start_cycles)
    state = STATE_BY_VALUE.get(span.value)
    if info.track is not None and not span.value and not info.is_counter:
        return _moment_details(timeline, lane, span)
    trust = _trust_in_length(timeline, lane, span)
    length = f"{sign(trust.mark)} {format_duration(length_ns)}".lstrip()
    note = ", ".join(filter(None, (f"{span.end_cycles - span.start_cycles:,} cycles", trust.reason)))
    lines = [Line("Meaning", state.meaning)] if state is not None else []
    lines += [
        Line("From", format_moment(span.start_cycles, trace.clock)),
        Line("To", format_moment(span.end_cycles, trace.clock)),
        Line("Length", length, note),
    ]
    if waits is not None and waits.value == span.value:
        lines += wait_lines(trace, waits)
    if span.thread > 0:
        lines.append(Line("Thread", trace.thread_name(span.thread)))
    if 0 <= span.event < len(trace.events):
        lines.append(Line("Begun by", event_name(trace, span.event), event=span.event))
    following = _event_at_end(timeline, lane, span)
    if following is not None:
        lines.append(Line("Ended by", event_name(trace, following), event=following))
    return Details(
        timeline.label(span),
        f"{lane_path(timeline, lane)}  {info.subtitle}".strip(),
        lane_kind(info),
        (Section("Interval", tuple(lines)),),
    )


def _moment_details(timeline: Timeline, lane: int, span: Span) -> Details:
    """Return what is known of a moment of a lane of events, which lasts for nothing."""
    trace, lines = timeline.trace, list[Line]()
    if 0 <= span.event < len(trace.events):
        at = format_moment(int(trace.events.time_cycles[span.event]), trace.clock)
        lines = [Line("At", at), Line("Event", event_name(trace, span.event), event=span.event)]
    title = timeline.label(span) or "nothing yet"
    return Details(
        title, lane_path(timeline, lane), lane_kind(timeline.infos[lane]), (Section("Moment", tuple(lines)),)
    )


def _trust_in_length(timeline: Timeline, lane: int, span: Span) -> Trust:
    """Return how far the length of an interval can be trusted: it may go on where events are missing."""
    after, lost = timeline.lane(lane).at(span.end_cycles), losses(timeline.trace)
    is_cut = bool(np.any((lost[:, 0] <= span.end_cycles) & (span.end_cycles <= lost[:, 1])))
    if is_cut and after is not None and after.value == UNKNOWN != span.value:
        return Trust(Mark.LOWER_BOUND, "events are missing from its end on")
    return EXACT


def lane_path(timeline: Timeline, index: int) -> str:
    """Return the name of a lane after that of what it is under: `devb-eide > worker`."""
    info = timeline.infos[index]
    if info.parent < 0:
        return info.title
    above = lane_path(timeline, info.parent) if info.thread and info.track is not None else ""
    return f"{above or timeline.infos[info.parent].title} \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} {info.title}"


def lane_kind(info: LaneInfo) -> str:
    """Return what sort of lane it is."""
    names = {
        LaneKind.CPU: "CPU",
        LaneKind.INTERRUPTS: "interrupts",
        LaneKind.PROCESS: "process",
        LaneKind.THREAD: "thread",
        LaneKind.DAMAGED: "events of damaged slots",
        LaneKind.PLUGGED: "of a plug-in",
    }
    return info.track.lane_class.title if info.track is not None else names[info.kind]


def _event_at_end(timeline: Timeline, lane: int, span: Span) -> int | None:
    after = timeline.lane(lane).at(span.end_cycles)
    if after is None or after.start_cycles != span.end_cycles or not 0 <= after.event < len(timeline.trace.events):
        return None
    return after.event


def _location_lines(trace: Trace, event: int) -> tuple[Line, ...]:
    cycles = int(trace.events.time_cycles[event])
    thread = int(trace.events.thread[event])
    lines = [Line("Time", format_moment(cycles, trace.clock), "from start")]
    if trace.clock.is_absolute and trace.clock.boot_time_s is not None:  # else nobody says where the counter began
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
        name = trace.processes.names[process] or trace.process_name(process)
        lines.append(Line("Process", name, f"pid {pid}", process=process))
        if int(trace.threads.tid[thread]) > 0:
            tid = int(trace.threads.tid[thread])
            lines.append(Line("Thread", trace.thread_name(thread), f"tid {tid}", thread=thread))
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
            until = Line("Until", event_name(trace, link.to_row), event=link.to_row)
        return [until, Line("Length", length, f"{cycles:,} cycles")]
    is_begin = link.from_row == event
    other = link.to_row if is_begin else link.from_row
    note = "" if link.certainty is Certainty.EXACT else "next on this CPU; the calling thread is not known"
    return [
        Line("Ends with" if is_begin else "Began with", event_name(trace, other), note, event=other),
        Line("Duration", length, f"{cycles:,} cycles"),
    ]


def _argument_sections(
    trace: Trace, event: int, is_wide: bool | None, most: int, names: Mapping[str, Meaning]
) -> tuple[Section, ...]:
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
        lines = tuple(argument_line(argument, names.get(argument.name)) for argument in arguments)
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
    """Return the line that represents words that do not show; a click on it shows more, up to a bound."""
    if words <= 0:
        return ()
    text = f"\N{HORIZONTAL ELLIPSIS} {words:,} more words"
    if most < MOST_WORDS:
        return (Line("", text + ": show more", is_more=True),)
    return (Line("", text, "traceprinter prints them all"),)
