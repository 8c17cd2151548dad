"""Makes the texts about an event or an interval: rows of the event list, and details with links to click on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final

import numpy as np

from satview.analysis.times.basis import EXACT, Mark, Trust, sign
from satview.analysis.why import WhyStep, chain_lines
from satview.base.safe_text import visible_line, with_sign
from satview.base.time import NS_PER_S, format_duration, format_moment, format_time, hex_cycles
from satview.events import wire
from satview.events.layout import canonical
from satview.events.spec import Argument, arguments_text
from satview.events.states import STATE_BY_VALUE, UNKNOWN
from satview.filters.rules.fastwide import logged_form
from satview.formats.outside_names import symbols_of
from satview.linkage.blockers import blockers, owner_of
from satview.linkage.calls import Fate
from satview.linkage.chain import Connections, NamedHop, Step, WaitedFor, link_table
from satview.linkage.links import OPEN, Certainty, Link, LinkKind
from satview.linkage.messages import SEND
from satview.linkage.transactions import are_ready, client_of, creation_of, make_ready, server_of
from satview.linkage.waits import mutexes
from satview.store.time_ranges import losses
from satview.store.trace import Trace
from satview.timeline.lane_tree import LaneInfo, LaneKind, Timeline
from satview.timeline.spans import Span

# Arguments of events as the other mode, fast or wide, would have logged them, where the trace has the words.


_UNKNOWN = "not in the trace"


def arguments_as(trace: Trace, event: int, *, is_wide: bool, most: int | None = None) -> tuple[Argument, ...]:
    """Return an event's arguments as fast or wide mode logs them.

    An argument that was not logged has a text that says so.

    Args:
        trace: The trace.
        event: Row of the event table.
        is_wide: True for wide mode, False for fast mode.
        most: Limit for giant events, as for `PayloadSource.decode`.
    """
    payload, form = trace.payloads.decode(event, most), logged_form(trace, event, wide=is_wide)
    if form.form in ("same", "failed", "raw", payload.form):
        return payload.arguments
    known = {canonical(argument.name): argument for argument in payload.arguments}
    shown = []
    word = 0
    for item in form.fields:
        if argument := known.get(canonical(item.name)):
            shown.append(argument)
        elif item.name != "empty":
            shown.append(Argument(item.name, "", _UNKNOWN, word, item.words))
        word += item.words
    return tuple(shown)


# What numeric arguments refer to: processes, threads, servers, channels, clients, holders of mutexes.


MOST_ARGUMENTS: Final = 64  # arguments of an event that are named: no list of arguments is longer
_NEVER: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Meaning:
    """The thing that an argument of an event refers to, such as a thread, and the target of a click on the argument.

    Attributes:
        text: Description; may contain names from the trace unescaped.
        thread: Row of the thread to whose lane a click leads; 0 = none.
        process: Row of the process to whose lane a click leads; 0 = none.
        event: Row of the event to which a click leads; -1 = none.
        certainty: How certain the meaning is.
    """

    text: str
    thread: int = 0
    process: int = 0
    event: int = -1
    certainty: Certainty = Certainty.EXACT


@dataclass(frozen=True, slots=True)
class _Context:
    """An event and the values of its arguments by name, as passed to the functions that find their meanings."""

    trace: Trace
    event: int
    values: Mapping[str, int]

    @property
    def thread(self) -> int:
        """Row of the thread that logged the event; 0 = not known."""
        return int(self.trace.events.thread[self.event])

    @property
    def process(self) -> int:
        """Row of the process that logged the event; 0 = not known."""
        return int(self.trace.threads.process[self.thread])


def argument_names(trace: Trace, event: int) -> Mapping[str, Meaning]:
    """Return the meaning of an event's arguments (a thread, a process, ...), by name, as far as the trace shows it.

    The first call for a trace builds all its links.
    """
    make_ready(trace)
    _ = mutexes(trace), blockers(trace), link_table(trace, LinkKind.HOLD)
    arguments = trace.payloads.decode(event, MOST_ARGUMENTS).arguments[:MOST_ARGUMENTS]
    context = _Context(trace, event, _numbers(arguments))
    names = {}
    for name, value in context.values.items():
        rule = _RULES.get(name)
        meaning = rule(context, name, value) if rule is not None else None
        if meaning is not None:
            names[name] = meaning
    return MappingProxyType(names)


def _numbers(arguments: tuple[Argument, ...]) -> Mapping[str, int]:
    return {argument.name: argument.value for argument in arguments if isinstance(argument.value, int)}


def _address(context: _Context, _name: str, address: int) -> Meaning | None:
    """Return the function at an address in the process of the argument `pid`, or else in the event's own process."""
    symbols, pid = symbols_of(context.trace), context.values.get("pid", 0)
    process = context.trace.processes.row(pid) if pid > 0 else context.process
    text = symbols.text(process or context.process, address) if symbols is not None else ""
    return Meaning(text) if text else None


def _pid(context: _Context, name: str, pid: int) -> Meaning | None:
    """Return the process with the given pid; pid 0 in the entry of a kernel call stands for the caller's process."""
    code = int(context.trace.events.code[context.event])
    is_entry = wire.class_of(code) == wire.WireClass.KER_CALL and not code & wire.KER_FORM
    if pid == 0 and name == "pid" and is_entry:
        return _process(context.trace, context.process, "its own process: ") if context.process else None
    row = context.trace.processes.row(pid) if pid > 0 else None
    return _process(context.trace, row) if row else None


def _tid(context: _Context, name: str, tid: int) -> Meaning | None:
    """Return the thread with a tid in the process of the argument `pid`, or else in the event's own process."""
    pid = context.values.get(name.replace("tid", "pid"), int(context.trace.threads.pid[context.thread]))
    row = context.trace.threads.row(pid, tid) if pid > 0 and tid > 0 else None
    return _thread(context.trace, row) if row else None


def _coid(context: _Context, _name: str, coid: int) -> Meaning | None:
    if not context.process or coid & 0xFFFFFFFF == _NEVER:
        return None
    server = server_of(context.trace, context.process, coid, context.event)
    if server is None:
        return None
    row = context.trace.processes.row(server.pid) or 0
    name = context.trace.name_of_pid(server.pid)
    channel = f", channel {server.chid}" if server.chid >= 0 else ""
    return Meaning(f"to {name}{channel}", process=row, event=-1 if row else server.row, certainty=server.certainty)


def _chid(context: _Context, _name: str, chid: int) -> Meaning | None:
    """Return the owner of a channel: the process of the argument `pid` (ConnectAttach), or else the event's own."""
    pid = context.values.get("pid", 0)
    row = context.trace.processes.row(pid) if pid > 0 else context.process
    if not row:
        return None
    created = creation_of(context.trace, row, chid, context.event)
    return Meaning(f"channel of {context.trace.process_name(row)}", process=0 if created >= 0 else row, event=created)


def _rcvid(context: _Context, _name: str, rcvid: int) -> Meaning | None:
    """Return the client of a rcvid; its server is the process that a COMM event names, or else the event's own."""
    trace, is_comm = context.trace, wire.class_of(int(context.trace.events.code[context.event])) == wire.WireClass.COMM
    if rcvid & 0xFFFFFFFF in (0, _NEVER) or int(trace.events.code[context.event]) == SEND:  # its sender logged it
        return None
    server = trace.processes.row(context.values.get("pid", -1)) if is_comm else context.process
    sent = client_of(trace, server, rcvid, context.event) if server else -1
    if sent < 0 or not int(trace.events.thread[sent]):
        return None
    return Meaning(f"message of {trace.thread_name(int(trace.events.thread[sent]))}", event=sent)


def _owner(context: _Context, _name: str, word: int) -> Meaning | None:
    """Return the thread that holds a mutex, from the owner word of the mutex."""
    owner = owner_of(context.trace, word, int(context.trace.threads.pid[context.thread])) if context.process else None
    if owner is None:
        return None
    thread, certainty = owner
    waiting = ", others wait" if word & 0x80000000 else ""
    return Meaning(f"held by {context.trace.thread_name(thread)}{waiting}", thread=thread, certainty=certainty)


def _mutex(context: _Context, _name: str, _address: int) -> Meaning | None:
    """Return the holder of a call's mutex: the thread waited for, or the last that got the mutex in the kernel."""
    trace, known, blocked_by = context.trace, mutexes(context.trace), blockers(context.trace)
    waiting = np.flatnonzero(
        (blocked_by.waits.call_row == context.event) & (known.of_wait >= 0) & (blocked_by.thread >= 0)
    )
    if len(waiting):
        position = int(waiting[0])
        return _holder(trace, int(blocked_by.thread[position]), Certainty(int(blocked_by.certainty[position])))
    calls = [part.mutex[part.row == context.event] for part in (known.gives, known.gets)]
    number = int(max((part[0] for part in calls if len(part)), default=-1))
    before = np.flatnonzero((known.gets.mutex == number) & (known.gets.row < context.event))
    if number < 0 or not len(before):
        return None
    get = known.gets.row[before[-1:]]
    held = link_table(trace, LinkKind.HOLD)
    hold = int(held.begun_by(get)[0])
    if hold < 0 or (held.to_row[hold] != OPEN and held.to_row[hold] < context.event):
        return None
    thread = int(known.gets.thread[before[-1]])
    return _holder(trace, thread, Certainty(int(held.certainty[hold])), int(get[0]))


def _holder(trace: Trace, thread: int, certainty: Certainty, event: int = -1) -> Meaning:
    return Meaning(f"held by {trace.thread_name(thread)}", thread=thread, event=event, certainty=certainty)


def _process(trace: Trace, row: int, before: str = "") -> Meaning:
    return Meaning(f"{before}{trace.process_name(row)}", process=row)


def _thread(trace: Trace, row: int) -> Meaning:
    return Meaning(trace.thread_name(row), thread=row)


def are_named(trace: Trace) -> bool:
    """Return whether the links that `argument_names` needs are built, so that `argument_names` returns at once."""
    needed = ("links.mutexes", "links.blockers", "links.hold")
    return are_ready(trace) and all(trace.is_cached(name) for name in needed)


_RULES: Final[dict[str, Callable[[_Context, str, int], Meaning | None]]] = {
    **dict.fromkeys(("pid", "ppid", "parent_pid", "info->pid", "suspect_pid"), _pid),
    **dict.fromkeys(("tid", "info->tid", "suspect_tid"), _tid),
    **dict.fromkeys(("rcvid", "src_rcvid", "dst_rcvid"), _rcvid),
    **dict.fromkeys(("owner", "sync->owner", "mutex->owner"), _owner),
    **dict.fromkeys(("sync_p", "mutex_p"), _mutex),
    **dict.fromkeys(("ip", "thisfn", "call_site", "interrupted_ip", "addr", "vaddr", "func_p", "handler_p",
                     "exitfunc_p", "start_routine", "event->sigev_notify_function_p"), _address),
    "coid": _coid, "chid": _chid,
}  # fmt: skip


# Details of a selection as lines of text, some of which lead to an event or a lane.


@dataclass(frozen=True, slots=True)
class DetailLine:
    """One line of the details.

    Attributes:
        name: Label.
        text: The value.
        note: Remark, shown small.
        event: Row of the event to which a click leads, or None.
        thread, process: Rows of the thread or process to whose lane a click leads; 0 = none.
        means: Meaning of the value; if not empty, this text is the link instead of the value.
        is_code: True for numbers and bytes, which are shown in a monospaced font.
        is_more: True if a click shows more words of a giant event.
    """

    name: str
    text: str
    note: str = ""
    event: int | None = None
    is_code: bool = False
    is_more: bool = False
    thread: int = 0
    process: int = 0
    means: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A titled group of lines.

    Attributes:
        title: Heading above the lines.
        lines: The lines.
        is_prose: True if the lines are sentences in full width, False if they are names with values.
    """

    title: str
    lines: tuple[DetailLine, ...]
    is_prose: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a table.

    Attributes:
        text: The value.
        event: Row of the event to which a click leads, or None.
        thread: Row of the thread table to whose lane a click leads; 0 = none.
        cycles: Time of the interval that a click selects in the lane of `thread`; None = only the lane is selected.
    """

    text: str
    event: int | None = None
    thread: int = 0
    cycles: int | None = None


@dataclass(frozen=True, slots=True)
class DetailTable:
    """A table under a title; the first column names the row.

    Attributes:
        title: Heading above the table.
        head: Column titles.
        rows: The cells of each row.
        more: Remark below the rows; may be empty.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    more: str = ""

    def as_lines(self) -> list[str]:
        """Return the table as lines of text with aligned columns."""
        texts = [self.head, *(tuple(cell.text for cell in row) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        lines = ["  ".join(f"{text:<{width}}" if not i else f"{text:>{width}}" for i, (text, width) in
                           enumerate(zip(row, widths, strict=True))) for row in texts]  # fmt: skip
        return [f"  {line}" for line in [*lines, self.more] if line]


@dataclass(frozen=True, slots=True)
class Details:
    """Everything that the panel of details shows about a selection.

    Attributes:
        title: Short name of the described event, interval, range or answer.
        subtitle: The thread, process or lane of the described thing.
        kind: Name of an event's class as tools print it, or name of an interval's state.
        sections: Titled groups of lines.
        tables: Tables below the sections.
    """

    title: str
    subtitle: str
    kind: str
    sections: tuple[Section, ...] = field(default=())
    tables: tuple[DetailTable, ...] = ()

    def as_text(self) -> str:
        """Return the details as plain text for the clipboard."""
        lines = [f"{self.title}  [{self.kind}]", self.subtitle]
        for section in self.sections:
            lines += ["", section.title]
            width = max((len(line.name) for line in section.lines), default=0)
            lines += [
                f"  {line.name:<{width}}  {line.text}{f'  {line.means}' if line.means else ''}"
                f"{f'  ({line.note})' if line.note else ''}"
                for line in section.lines
            ]
        for table in self.tables:
            lines += ["", table.title, *table.as_lines()]
        return "\n".join(lines)


# Lines about causes, effects and waits of an event, and about its arguments.


_OBJECTS: Final = {  # what threads wait for in a state
    "MUTEX": "mutex", "CONDVAR": "condition variable", "SEM": "semaphore", "BARRIER": "barrier", "RECEIVE": "channel",
    "JOIN": "thread", "RWLOCK_READ": "read/write lock", "RWLOCK_WRITE": "read/write lock",
}  # fmt: skip
_FATES: Final = {
    Fate.NEVER: "not before the trace ends",
    Fate.RESTARTED: "not by itself: the thread enters a call again",
    Fate.LOST: "not known where events are missing",
}


def connection_sections(trace: Trace, event: int, connected: Connections | None) -> tuple[Section, ...]:
    """Return a section on an event's causes and effects, and on the wait or call that the event begins; () if none.

    Args:
        trace: The trace.
        event: Row of the event table.
        connected: Causes and effects of the event; None = not yet known.
    """
    if connected is None:
        return ()
    lines = [_step_line(trace, event, step) for step in (*connected.causes, *connected.effects)]
    if connected.fate is not None:
        lines.append(DetailLine("Returns", _FATES[connected.fate]))
    if connected.waits_for is not None:
        lines += wait_lines(trace, connected.waits_for)
    return (Section("Cause and effect", tuple(lines)),) if lines else ()


def _step_line(trace: Trace, event: int, step: Step) -> DetailLine:
    thread = int(trace.events.thread[step.row])
    cycles = int(trace.events.time_cycles[step.row]) - int(trace.events.time_cycles[event])
    notes = [trace.thread_name(thread)] if thread else []
    notes.append(f"{format_duration(trace.clock.duration_ns(abs(cycles)))} {'earlier' if cycles < 0 else 'later'}")
    if step.certainty is not Certainty.EXACT:
        notes.append("inferred" if step.certainty is Certainty.INFERRED else "a guess")
    return DetailLine(str(step.relation), event_name(trace, step.row), ", ".join(notes), event=step.row)


def wait_lines(trace: Trace, wait: WaitedFor) -> list[DetailLine]:
    """Return lines about the thread and object that a thread waits for, and a line if the wait never ends."""
    kind = _OBJECTS.get(STATE_BY_VALUE[wait.value].name, "object")
    where = "" if wait.object is None else f"{kind} {wait.object:#x}"
    notes = [where] if where else []
    if wait.certainty is Certainty.INFERRED:
        notes.append("inferred")
    lines = []
    if wait.thread >= 0:
        lines.append(DetailLine("Waits for", trace.thread_name(wait.thread), ", ".join(notes), thread=wait.thread))
    elif wait.pid >= 0:
        row = trace.processes.row(wait.pid) or 0
        waited_for = f"any thread of {trace.name_of_pid(wait.pid)}"
        lines.append(DetailLine("Waits for", waited_for, ", ".join(notes), process=row))
    elif where:
        lines.append(DetailLine("Waits for", where))
    if wait.is_open:
        lines.append(DetailLine("", "The wait lasts to the end of the trace."))
    return lines


def argument_line(argument: Argument, meaning: Meaning | None) -> DetailLine:
    """Return the line of an argument, with its meaning if known."""
    if meaning is None:
        return DetailLine(argument.name, argument.text, argument.note, is_code=True)
    sure = "" if meaning.certainty is Certainty.EXACT else meaning.certainty.name.lower()
    return DetailLine(argument.name, argument.text, ", ".join(filter(None, (argument.note, sure))),
                      meaning.event if meaning.event >= 0 else None, is_code=True, thread=meaning.thread,
                      process=meaning.process, means=meaning.text)  # fmt: skip


def event_name(trace: Trace, event: int) -> str:
    """Return the text of a link to an event."""
    return f"event {event + 1:,}: {trace.spec(event).name}"


COLUMNS: Final = ("Number", "Time", "Delta", "CPU", "Process", "Thread", "Class", "Event", "Arguments")
NO_EVENT: Final = 2**32 - 1
FIRST_WORDS: Final = 128  # shown at first of a giant event, which may have a million words
MOST_WORDS: Final = 2048  # laying out a table of twice as many rows takes a second


def list_row(trace: Trace, event: int, previous: int | None) -> tuple[str, ...]:
    """Return the texts of one row of the event list, one for each column in `COLUMNS`.

    Args:
        trace: The trace.
        event: Row of the event table.
        previous: The event in the row above, for the time difference; None in the first row.
    """
    events = trace.events
    cycles = int(events.time_cycles[event])
    thread = int(events.thread[event])
    spec = trace.spec(event)
    delta = ""
    if previous is not None:
        delta = format_duration(trace.clock.duration_ns(cycles - int(events.time_cycles[previous])))
    arguments = trace.payloads.decode(event, 80).arguments  # a line is truncated long before
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
    """Return the tid and the thread's name; empty if the thread is unknown."""
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
    """Return the details of an event.

    Args:
        trace: The trace.
        event: Row of the event table.
        link: The call, interrupt, handler or state that the event begins or ends (`linkage.chain.link_of`); None if
            there is none or it is not yet known.
        is_wide: True to show the arguments as wide mode logs them, False as fast mode; None = as they were logged.
        most: Number of words of a giant event to show, and of bytes of its text.
        connected: Causes and effects of the event (`linkage.chain.connections`); None = not yet known.
        names: Meaning of the event's arguments (`argument_names`); None = not yet known.
    """
    spec = trace.spec(event)
    if is_wide is not None:
        is_wide = None if logged_form(trace, event, wide=is_wide).form not in ("fast", "wide") else is_wide
    thread = int(trace.events.thread[event])
    calls = ", ".join(f"{call}()" for call in spec.calls)
    described = trace.payloads.described.get(spec.code)
    event_lines = [DetailLine("Class", spec.class_name)]
    if spec.label and spec.label != spec.name:
        event_lines.append(DetailLine("Printed as", spec.label))
    if described is not None and described.name:
        event_lines.append(DetailLine("Described as", visible_line(described.name)))
    if calls:
        event_lines.append(DetailLine("Public call", calls))
    if spec.when:
        event_lines.append(DetailLine("When", spec.when))
    event_lines += [DetailLine("Number", f"{event + 1:,} of {len(trace.events):,}"), *_link_lines(trace, event, link)]
    return Details(
        title=spec.name,
        subtitle=trace.thread_name(thread) if thread else trace.cpu_title(int(trace.events.cpu[event])),
        kind=spec.class_name,
        sections=(
            Section("Event", tuple(event_lines)),
            *connection_sections(trace, event, connected),
            Section("Where", _location_lines(trace, event)),
            *_argument_sections(trace, event, is_wide, most, names or {}),
        ),
    )


def why_details(trace: Trace, steps: Sequence[WhyStep], error: str = "") -> Details:
    """Return details that explain why a thread is in its state at a moment; each step links to the causing event."""
    if not steps:
        text = error or "Looking for the answer\N{HORIZONTAL ELLIPSIS}"
        return Details("Why?", "", "answer", (Section("Answer", (DetailLine("", text),), is_prose=True),))
    lines = []
    for shown in chain_lines(trace, steps):
        lines.append(DetailLine("" if shown.is_folded else f"{shown.step + 1}.", shown.says))
        step = steps[shown.step]
        row = step.cause_row if step.cause_row >= 0 else step.row
        if row >= 0:
            lines.append(DetailLine("", event_name(trace, row), event=row))
    start = steps[0]
    when = format_moment(start.at_cycles, trace.clock)
    return Details(f"Why {start.state}?", f"{trace.thread_name(start.thread)} at {when}", "answer",
                   (Section("From the effect to its causes", tuple(lines), is_prose=True),))  # fmt: skip


def trace_rows(trace: Trace) -> Iterator[tuple[str, str]]:
    """Yield name and value of each property of a trace."""
    yield "File", str(trace.path)
    yield "Format", f"{trace.format}, {trace.byte_order} endian"
    yield "Release", f"{trace.header.get('SYS_RELEASE') or 'not given'}; tables of {trace.release}"
    yield "Length", format_duration(trace.duration_ns)
    yield "Clock", f"{trace.clock.cycles_per_s:,} cycles per second"
    yield "CPUs", str(trace.cpu_count)
    yield "Processes", f"{len(trace.processes) - 1:,}"
    yield "Threads", f"{len(trace.threads) - 1:,}"
    yield "Events", f"{len(trace.events):,}"
    yield "Slots", f"{trace.slot_count:,}"
    if trace.system is not None and trace.system.processor:
        yield "Processor", trace.system.processor


def trace_details(trace: Trace) -> Details:
    """Return the properties of a trace, shown while nothing is selected."""
    lines = tuple(DetailLine(name, text) for name, text in trace_rows(trace) if name != "File")
    return Details(trace.title, _folder_text(trace.path), "trace", (Section("Trace", lines),))


def _folder_text(path: Path) -> str:
    """Return the folder of a file as text, relative to the current folder if the file is below this folder."""
    try:
        folder, current = path.absolute().parent, Path.cwd()
    except OSError:  # the current folder is gone
        return str(path.parent)
    is_below = current in folder.parents and current != Path(current.anchor)
    return str(folder.relative_to(current)) if is_below else str(folder)


def link_details(trace: Trace, link: NamedHop) -> Details:
    """Return details of a link: the events at both ends, as lines to click on, and the time between them."""
    times, ends = trace.events.time_cycles, (link.from_row, link.to_row)
    cycles = int(times[link.to_row]) - int(times[link.from_row])
    lines = []
    for title, row in zip(("From", "To"), ends, strict=True):
        lines += [
            DetailLine(title, event_name(trace, row), event=row),
            DetailLine("", _actor(trace, row)),
            DetailLine("", format_moment(int(times[row]), trace.clock)),
        ]
    lines.append(DetailLine("Takes", format_duration(trace.clock.duration_ns(cycles)), f"{cycles:,} cycles"))
    if link.certainty is not Certainty.EXACT:
        lines.append(DetailLine("Certainty", link.certainty.name.lower()))
    names = (_actor(trace, row) for row in ends)
    return Details(link.name, " \N{RIGHTWARDS ARROW} ".join(names), "link", (Section("Link", tuple(lines)),))


def highlight_details(title: str, says: str) -> Details:
    """Return the details of a verdict that is drawn over the lanes: its title, and the sentence `says`."""
    return Details(
        title, "drawn over the lanes", "verdict", (Section("What happens", (DetailLine("", says),), is_prose=True),)
    )


def _actor(trace: Trace, row: int) -> str:
    """Return the name of the thread that logged an event; for interrupts and unknown threads, the title of the CPU."""
    thread = int(trace.events.thread[row])
    is_interrupt = wire.class_of(int(trace.events.code[row])) == wire.WireClass.INT
    return trace.thread_name(thread) if thread and not is_interrupt else trace.cpu_title(int(trace.events.cpu[row]))


def span_details(timeline: Timeline, lane: int, span: Span, waits: WaitedFor | None = None) -> Details:
    """Return the details of an interval of a lane.

    Args:
        timeline: The lanes.
        lane: Index of the lane.
        span: The interval, one of the lane's.
        waits: Thread and object that the interval's thread waits for; None = none, or not yet known.
    """
    trace, info = timeline.trace, timeline.infos[lane]
    length_ns = trace.clock.duration_ns(span.end_cycles - span.start_cycles)
    if info.track is not None and not span.value and not info.is_counter:
        return _moment_details(timeline, lane, span)
    trust = _trust_in_length(timeline, lane, span)
    length = with_sign(sign(trust.mark), format_duration(length_ns))
    note = ", ".join(filter(None, (f"{span.end_cycles - span.start_cycles:,} cycles", trust.reason)))
    lines = [DetailLine("Meaning", meaning)] if (meaning := info.meaning(span.value)) else []
    lines += [
        DetailLine("From", format_moment(span.start_cycles, trace.clock)),
        DetailLine("To", format_moment(span.end_cycles, trace.clock)),
        DetailLine("Length", length, note),
    ]
    if waits is not None and waits.value == span.value:
        lines += wait_lines(trace, waits)
    if span.thread > 0:
        lines.append(DetailLine("Thread", trace.thread_name(span.thread)))
    if 0 <= span.event < len(trace.events):
        lines.append(DetailLine("Begun by", event_name(trace, span.event), event=span.event))
    following = _event_at_end(timeline, lane, span)
    if following is not None:
        lines.append(DetailLine("Ended by", event_name(trace, following), event=following))
    return Details(
        timeline.label(span),
        f"{lane_path(timeline, lane)}  {info.subtitle}".strip(),
        lane_kind(info),
        (Section("Interval", tuple(lines)),),
    )


def _moment_details(timeline: Timeline, lane: int, span: Span) -> Details:
    """Return the details of a single event, which has no length, in an event lane."""
    trace, lines = timeline.trace, list[DetailLine]()
    if 0 <= span.event < len(trace.events):
        when = format_moment(int(trace.events.time_cycles[span.event]), trace.clock)
        lines = [DetailLine("At", when), DetailLine("Event", event_name(trace, span.event), event=span.event)]
    moment = (Section("Moment", tuple(lines)),)
    title = timeline.label(span) or "nothing yet"
    return Details(title, lane_path(timeline, lane), lane_kind(timeline.infos[lane]), moment)


def _trust_in_length(timeline: Timeline, lane: int, span: Span) -> Trust:
    """Return how certain an interval's length is: a lower bound if it ends where events are lost, else exact."""
    after, lost = timeline.lane(lane).at(span.end_cycles), losses(timeline.trace)
    is_cut = bool(np.any((lost[:, 0] <= span.end_cycles) & (span.end_cycles <= lost[:, 1])))
    if is_cut and after is not None and after.value == UNKNOWN != span.value:
        return Trust(Mark.LOWER_BOUND, "events are missing from its end on")
    return EXACT


def lane_path(timeline: Timeline, index: int) -> str:
    """Return the titles of a lane's parents and its own title, outermost first: `devb-eide > worker`."""
    info = timeline.infos[index]
    if info.parent < 0:
        return info.title
    above = lane_path(timeline, info.parent) if info.thread and info.track is not None else ""
    return f"{above or timeline.infos[info.parent].title} \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} {info.title}"


def lane_kind(info: LaneInfo) -> str:
    """Return the kind of a lane as text."""
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


def _location_lines(trace: Trace, event: int) -> tuple[DetailLine, ...]:
    cycles = int(trace.events.time_cycles[event])
    thread = int(trace.events.thread[event])
    lines = [DetailLine("Time", format_moment(cycles, trace.clock), "from start")]
    if trace.clock.is_absolute and trace.clock.boot_time_s is not None:  # else the counter's start is unknown
        since_boot_ns = cycles * NS_PER_S // trace.clock.cycles_per_s
        lines.append(DetailLine("Since boot", format_time(since_boot_ns)))
    lines.append(DetailLine("Cycles", f"{cycles:,}", hex_cycles(cycles), is_code=True))
    wall = trace.clock.wall_time(cycles)
    if wall is not None:
        lines.append(DetailLine("Date", f"{wall:%Y-%m-%d %H:%M:%S} UTC", "approximate"))
    kind, _, number = trace.cpu_title(int(trace.events.cpu[event])).rpartition(" ")
    lines.append(DetailLine(kind, number))
    process = int(trace.threads.process[thread])
    if thread:
        pid = int(trace.processes.pid[process])
        name = trace.processes.names[process] or trace.process_name(process)
        note = _noted(f"pid {pid}", trace.process_name_source(process))
        lines.append(DetailLine("Process", name, note, process=process))
        if int(trace.threads.tid[thread]) > 0:
            tid = int(trace.threads.tid[thread])
            note = _noted(f"tid {tid}", trace.thread_name_source(thread))
            lines.append(DetailLine("Thread", trace.thread_name(thread), note, thread=thread))
    return tuple(lines)


def _noted(*notes: str) -> str:
    return ", ".join(note for note in notes if note)


def _link_lines(trace: Trace, event: int, link: Link | None) -> list[DetailLine]:
    if link is None:
        return []
    times, last = trace.events.time_cycles, len(trace.events) - 1
    cycles = int(times[min(link.to_row, last)]) - int(times[link.from_row])
    length = format_duration(trace.clock.duration_ns(cycles))
    if link.kind is LinkKind.STATE:
        until = DetailLine("Until", "the end of the trace")
        if link.to_row <= last:
            until = DetailLine("Until", event_name(trace, link.to_row), event=link.to_row)
        return [until, DetailLine("Length", length, f"{cycles:,} cycles")]
    is_begin = link.from_row == event
    other = link.to_row if is_begin else link.from_row
    note = "" if link.certainty is Certainty.EXACT else "next on this CPU; the calling thread is not known"
    return [
        DetailLine("Ends with" if is_begin else "Began with", event_name(trace, other), note, event=other),
        DetailLine("Duration", length, f"{cycles:,} cycles"),
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
            DetailLine(f"{i * 2}", "  ".join(f"{word:08x}" for word in row), is_code=True) for i, row in enumerate(rows)
        )
        sections.append(Section("Raw words", words + _left_out(len(payload.words) - 2 * len(rows), most)))
    return tuple(sections)


def _left_out(words: int, most: int) -> tuple[DetailLine, ...]:
    """Return a line with the number of payload words not shown; a click on the line shows more, up to `MOST_WORDS`."""
    if words <= 0:
        return ()
    text = f"\N{HORIZONTAL ELLIPSIS} {words:,} more words"
    if most < MOST_WORDS:
        return (DetailLine("", text + ": show more", is_more=True),)
    return (DetailLine("", text, "traceprinter prints them all"),)
