"""What is said of an event's causes, effects and waits, and of what its arguments mean."""

from __future__ import annotations

from typing import Final

from satview.base.time_text import format_duration
from satview.events.spec import Argument
from satview.events.states import STATE_BY_VALUE
from satview.linkage.calls import Fate
from satview.linkage.chain import Connections, Step, WaitsFor
from satview.linkage.table import Certainty
from satview.session.events.argument_names import Meaning
from satview.session.events.details import Line, Section
from satview.store.trace import Trace

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
    """Return what an event follows from, what follows from it, and whom its thread waits for; nothing where unknown.

    Args:
        trace: The trace.
        event: Row of the event table.
        connected: What it is connected with; None = not yet known.
    """
    if connected is None:
        return ()
    lines = [_step_line(trace, event, step) for step in (*connected.causes, *connected.effects)]
    if connected.fate is not None:
        lines.append(Line("Returns", _FATES[connected.fate]))
    if connected.waits_for is not None:
        lines += wait_lines(trace, connected.waits_for)
    return (Section("Cause and effect", tuple(lines)),) if lines else ()


def _step_line(trace: Trace, event: int, step: Step) -> Line:
    thread = int(trace.events.thread[step.row])
    cycles = int(trace.events.time_cycles[step.row]) - int(trace.events.time_cycles[event])
    notes = [trace.thread_name(thread)] if thread else []
    notes.append(f"{format_duration(trace.clock.duration_ns(abs(cycles)))} {'earlier' if cycles < 0 else 'later'}")
    if step.certainty is not Certainty.EXACT:
        notes.append("inferred" if step.certainty is Certainty.INFERRED else "a guess")
    return Line(str(step.relation), event_name(trace, step.row), ", ".join(notes), event=step.row)


def wait_lines(trace: Trace, found: WaitsFor) -> list[Line]:
    """Return whom and what a thread waits for, and that the wait never ends where it does not."""
    kind = _OBJECTS.get(STATE_BY_VALUE[found.value].name, "object")
    where = "" if found.object is None else f"{kind} {found.object:#x}"
    notes = [where] if where else []
    if found.certainty is Certainty.INFERRED:
        notes.append("inferred")
    lines = []
    if found.thread >= 0:
        lines.append(Line("Waits for", trace.thread_name(found.thread), ", ".join(notes), thread=found.thread))
    elif found.pid >= 0:
        row = trace.processes.row(found.pid) or 0
        name = trace.process_name(row) if row else f"pid {found.pid}"
        lines.append(Line("Waits for", f"any thread of {name}", ", ".join(notes), process=row))
    elif where:
        lines.append(Line("Waits for", where))
    if found.is_open:
        lines.append(Line("", "The wait lasts to the end of the trace."))
    return lines


def argument_line(argument: Argument, meaning: Meaning | None) -> Line:
    """Return the line of an argument, with what it means where that is known."""
    if meaning is None:
        return Line(argument.name, argument.text, argument.note, is_code=True)
    sure = "" if meaning.certainty is Certainty.EXACT else meaning.certainty.name.lower()
    return Line(argument.name, argument.text, ", ".join(filter(None, (argument.note, sure))),
                meaning.event if meaning.event >= 0 else None, is_code=True, thread=meaning.thread,
                process=meaning.process, means=meaning.text)  # fmt: skip


def event_name(trace: Trace, event: int) -> str:
    """Return what an event is called in a link to it."""
    return f"event {event + 1:,}: {trace.spec(event).name}"
