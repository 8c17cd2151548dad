"""Writes a trace for other viewers: as protobuf for Perfetto, and as JSON for Chrome.

The schedule (running, ready and waiting threads) is in packets as QNX's own probe writes them (`perfetto_tracks`), so
that the trace processor gives the same rows for both. Everything else is in tracks of slices, instants, arrows and
counters: states by their QNX names with the objects of waits, kernel calls, messages and their service, wake-ups,
pulses, interrupts, user events, log, losses, verdicts, marks. A thread's tracks are below its process and have the
thread's name: version 52 of the engine cuts a track's thread number to 32 bits; numbers in the schedule have 64 bits.
Source of the field numbers: protos/perfetto/trace of Perfetto.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from satview.analysis.times.basis import scope_of
from satview.analysis.times.cpu_times import LoadBy, load_over_time
from satview.answers.frames import Texts
from satview.base.errors import UsageError
from satview.base.new_file import NewFile
from satview.base.plugins import required
from satview.base.time import NS_PER_S, TimeWindow
from satview.events.states import STATE_BY_NAME
from satview.export.perfetto_tracks import (
    NOBODY_PID,
    Arguments,
    Bools,
    Ints,
    MessageBytes,
    TracePart,
    TrackSlices,
    counter_packets,
    in_chunks,
    message,
    nested,
    number,
    overlaps,
    schedule_packets,
    sequenced,
    slice_packets,
    text,
    text_of,
    texts,
    thread_numbers,
    uuid_of,
)
from satview.export.tables import text_bytes
from satview.formats.registry import source_files
from satview.store.trace import Trace
from satview.tables.sql import Limits, sql
from satview.tables.table import table
from satview.timeline.finders import UserLanes, finder_of
from satview.timeline.lane_classes import LANE_CLASSES, Owner
from satview.timeline.track import Track, tracks_of
from satview.timeline.track import text_of as event_text_of

# A trace as JSON in the Trace Event Format of Chrome, which many viewers read.


CALLS: Final = 1_000_000  # added to the row of a thread: the lane of its kernel calls
INTERRUPTS: Final = 1_000  # added to a CPU: the lane of its interrupts
_LIMITS: Final = Limits(time_s=3600.0, memory_bytes=8 << 30, answer_bytes=8 << 30)
_NAME: Final = "'M' as ph, {kind!r} as name, {pid} as pid, {tid} as tid, {{'name': {label}}} as args"
_SLICE: Final = (
    "'X' as ph, {cat!r} as cat, {name} as name, {pid} as pid, {tid} as tid, {start}_ns / 1000.0 as ts, "
    "{length}_ns / 1000.0 as dur"
)
_PARTS: Final = (
    _NAME.format(kind="process_name", pid="pid", tid=0, label="label") + " from process where process > 0",
    _NAME.format(kind="process_name", pid=0, tid=0, label="'CPUs'") + " from trace",
    _NAME.format(kind="thread_name", pid="pid", tid="thread", label="label") + " from thread where thread > 0",
    _NAME.format(kind="thread_name", pid="pid", tid=f"thread + {CALLS}", label="label || ': kernel calls'")
    + " from thread semi join call using (thread)",
    _NAME.format(kind="thread_name", pid=0, tid="cpu", label="label") + " from cpu",
    _NAME.format(kind="thread_name", pid=0, tid=f"cpu + {INTERRUPTS}", label="label || ' interrupts'") + " from cpu",
    _SLICE.format(cat="state", name="state", pid="pid", tid="thread", start="start", length="length")
    + " from state join thread using (thread) where state not in ('ABSENT', 'UNKNOWN', 'WAITING', 'IDLE')",
    _SLICE.format(cat="cpu", name="label", pid=0, tid="cpu", start="start", length="length")
    + " from run join thread using (thread) where not run.is_idle",
    _SLICE.format(
        cat="kernel call", name="call.name", pid="pid", tid=f"thread + {CALLS}", start="start", length="length"
    )
    + " from call join thread using (thread) where length_cycles is not null and thread > 0",
    _SLICE.format(
        cat="interrupt", name="printf('interrupt 0x%x', vector)", pid=0, tid=f"cpu + {INTERRUPTS}", start="start",
        length="length",
    )
    + " from interrupt where length_cycles is not null",
    "'s' as ph, 'message' as cat, 'message' as name, message as id, pid, client as tid, time_ns / 1000.0 as ts "
    "from message join thread on thread.thread = client where server is not null and queued_ns is not null",
    "'f' as ph, 'e' as bp, 'message' as cat, 'message' as name, message as id, pid, server as tid, "
    "time_ns(time_cycles + queued_cycles) / 1000.0 as ts from message join thread on thread.thread = server "
    "where client is not null and queued_ns is not null",
    "'X' as ph, 'loss' as cat, 'lost events' as name, 0 as pid, coalesce(cpu, 0) as tid, start_ns / 1000.0 as ts, "
    "length_ns / 1000.0 as dur from loss",
)  # fmt: skip


def write_chrome(trace: Trace, path: Path | str, report: Callable[[float], None] | None = None) -> int:
    """Write a trace as JSON for Chrome, to a file or `-`; return the number of events in the file.

    `report` gets the share that is done, 0 to 1. Raises UsageError if a package is missing, or the file cannot be
    written.
    """
    required("duckdb")
    count = 0
    with NewFile(path, reading=source_files(trace.path), streams=True) as file:
        file.stream.write(b'{"displayTimeUnit": "ns", "traceEvents": [\n')
        for number, part in enumerate(_PARTS):
            if report is not None:
                report(number / len(_PARTS))
            query = f"select to_json(line)::varchar || chr(44) || chr(10) as line from (select {part}) line"  # noqa: S608
            for batch in sql(trace, query, _LIMITS).arrow().to_batches():
                file.stream.write(text_bytes(batch.column(0)))
                count += batch.num_rows
        file.stream.write(b'{"ph": "M", "name": "process_sort_index", "pid": 0, "args": {"sort_index": -1}}\n]}\n')
    return count + 1


_LOAD_BINS: Final = 4000
_MOST_TEXTS: Final = 50_000  # maximum number of events named by their arguments, which takes 100 us each
_REALTIME, _BOOTTIME = 1, 6  # BuiltinClock
_NOT_KNOWN: Final = ("", "not known")
_AS_SLICES: Final = ("KER_CALL", "KER_EXIT", "INT_ENTR", "INT_EXIT", "INT_HANDLER_ENTR", "INT_HANDLER_EXIT", "THREAD",
                     "VTHREAD", "sched")  # fmt: skip
_COMM_AS_SLICES: Final = ("SND_", "REC_", "REPLY_", "MSG_ERROR")

# Kinds of tracks; a track's uuid has the kind in the upper 32 bits, and thread, CPU or row in the lower.
(_PROCESS, _THREAD, _STATE, _MESSAGE, _SERVICE, _WAKE, _PULSE, _INTERRUPT, _LOAD, _LOSS, _CPU_CALL, _CPU_MESSAGE,
 _CPU_PULSE, _CPU_WAKE, _OTHER, _VERDICT, _MARK, _OWN_CALL, _OWN_MESSAGE, _OWN_SERVICE,
 _LANE) = range(1, 22)  # fmt: skip
_OF_THREADS: Final = ((_STATE, "State"), (_MESSAGE, "Sent"), (_SERVICE, "Serves"), (_WAKE, "Wake-ups"),
                      (_PULSE, "Pulses"))  # fmt: skip
_OF_CPUS: Final = ((_INTERRUPT, "interrupts"), (_LOSS, "lost events"), (_CPU_CALL, "kernel calls"),
                   (_CPU_MESSAGE, "messages"), (_CPU_PULSE, "pulses"), (_CPU_WAKE, "wake-ups"),
                   (_OTHER, "other events"))  # fmt: skip
_FLOW: Final = 1 << 40  # multiplied by the kind: arrows of different kinds have different numbers


def write_perfetto(
    trace: Trace,
    path: Path | str,
    report: Callable[[float], None] | None = None,
    *,
    window: TimeWindow | None = None,
    events: Bools | None = None,
) -> int:
    """Write a trace, or a part of it, for Perfetto; return the number of packets.

    Args:
        trace: The trace.
        path: The new file, or `-`.
        report: Called with the share that is done, 0 to 1.
        window: Write only this range, and cut slices at its ends; None = all.
        events: bool (events,), write only slices that begin with one of these events; None = all.

    Raises:
        UsageError: The range is outside the trace, or the file cannot be written.
    """
    whole = trace.window
    if window is not None and (window.end <= whole.start or window.start >= whole.end):
        raise UsageError("the range is outside the trace")
    inside = whole if window is None else TimeWindow(max(window.start, whole.start), min(window.end, whole.end))
    count, part = 0, TracePart(trace, inside, events)
    with NewFile(path, reading=source_files(trace.path), streams=True) as file:
        for done, packets in _packets(part):
            file.stream.write(nested(1, packets).to_bytes())
            count += len(packets)
            if report is not None:
                report(done)
    return count


def _packets(part: TracePart) -> Iterator[tuple[float, MessageBytes]]:
    """Yield the packets of a trace in parts, each with the share of the work that is done by then."""
    makes: tuple[Callable[[TracePart], Iterator[MessageBytes]], ...] = (
        _clocks, _tracks, schedule_packets, _states, _calls, _interrupts, _messages, _wake_ups, _pulses, _losses,
        _lanes, _other_events, _verdicts, _marks, _loads,
    )  # fmt: skip
    for step, make in enumerate(makes):
        for packets in make(part):
            yield step / len(makes), packets


# ---- clock and tracks ----------------------------------------------------------------------------------------------


def _clocks(part: TracePart) -> Iterator[MessageBytes]:
    """Yield the wall clock time at the start of the trace, if it is known."""
    clock, start = part.trace.clock, part.trace.window.start
    if clock.wall_time(start) is None or clock.boot_time_s is None:
        return
    wall_ns = clock.boot_time_s * NS_PER_S + clock.boot_rest_ns + clock.duration_ns(clock.start_cycles)
    shown = [nested(1, message(number(1, np.array([which])), number(2, np.array([time_ns]))))
             for which, time_ns in ((_BOOTTIME, 0), (_REALTIME, wall_ns))]  # fmt: skip
    yield sequenced(nested(6, message(*shown, number(2, np.array([_BOOTTIME])))))


def _tracks(part: TracePart) -> Iterator[MessageBytes]:
    """Yield the descriptions of the tracks of processes, threads and CPUs."""
    trace, processes, threads = part.trace, table(part.trace, "process"), table(part.trace, "thread")
    pid = trace.processes.pid.astype(np.int64)
    pid[0] = NOBODY_PID
    rows = np.arange(len(processes), dtype=np.int64)
    process = nested(3, message(number(1, pid), text_of(6, processes, "label")))
    yield _descriptors(message(number(1, uuid_of(_PROCESS, rows)), process))
    rows = np.arange(len(threads), dtype=np.int64)
    whose = [f"thread {identity >> 32}:{identity & 0xFFFFFFFF}" for identity in thread_numbers(trace).tolist()]
    yield _descriptors(message(
        number(1, uuid_of(_THREAD, rows)), text_of(2, threads, "label"),
        number(5, uuid_of(_PROCESS, trace.threads.process.astype(np.int64))), text(14, rows, whose),
    ))  # fmt: skip
    for kind, name in _OF_THREADS:
        yield _named(uuid_of(kind, rows), name, uuid_of(_THREAD, rows))
    cpus = np.arange(trace.cpu_count, dtype=np.int64)
    titles = [trace.cpu_title(cpu) for cpu in cpus.tolist()]
    for kind, name in _OF_CPUS:
        of_cpu = text(2, cpus, [f"{title} {name}" for title in titles])
        yield _descriptors(message(number(1, uuid_of(kind, cpus)), of_cpu))
    counter = nested(8, text(6, np.zeros(len(cpus), np.int64), ["%"]))
    loads = text(2, cpus, [f"{title} load" for title in titles])
    yield _descriptors(message(number(1, uuid_of(_LOAD, cpus)), loads, counter))
    yield _named(uuid_of(_LOSS, np.array([trace.cpu_count])), "Lost events")


def _named(uuid: Ints, name: str, parent: Ints | None = None) -> MessageBytes:
    fields = [number(1, uuid), text(2, np.zeros(len(uuid), np.int64), [name])]
    if parent is not None:
        fields.append(number(5, parent).where(parent > 0))
    return _descriptors(message(*fields))


def _descriptors(inner: MessageBytes) -> MessageBytes:
    return sequenced(nested(60, inner))


def _uncrossed(slices: TrackSlices, kind: int, name: str, parent: Ints) -> tuple[TrackSlices, Iterator[MessageBytes]]:
    """Move each slice that crosses an earlier one of its track to a new track; return all, sorted, and new tracks.

    `parent` has for each slice the track below which its new track would be; 0 = none.
    """
    order = np.lexsort((slices.start_cycles, slices.track))
    slices, parent = slices.taken(order), parent[order]
    crosses = overlaps(slices.track, slices.start_cycles, slices.end_cycles)
    own = np.flatnonzero(crosses)
    slices.track[own] = uuid_of(kind, own)
    return slices, (_named(slices.track[own[rows]], name, parent[own[rows]]) for rows in in_chunks(len(own)))


def _none(count: int) -> Ints:
    return np.zeros(count, np.int64)


def _marked(is_known: Bools) -> Arguments:
    """Return the argument that marks slices whose end is not known, which are written as instants."""
    return Arguments("end", Texts((~is_known).astype(np.uint8), _NOT_KNOWN))


# ---- threads -------------------------------------------------------------------------------------------------------


def _states(part: TracePart) -> Iterator[MessageBytes]:
    """Yield the states of threads by their QNX names, with the objects of waits; a running thread has no slice."""
    states, waits = table(part.trace, "state"), table(part.trace, "wait")
    names = texts(states, "state")
    shown = np.flatnonzero(
        np.isin(names.code, [state.value for state in STATE_BY_NAME.values() if state.name != "RUNNING"])
    )
    event = states["event"][shown]
    slices = TrackSlices(uuid_of(_STATE, states["thread"][shown]), states["start_cycles"][shown],
                         states["end_cycles"][shown], event, Texts(names.code[shown], names.texts),
                         _none(len(shown)))  # fmt: skip
    order = np.argsort(waits["event"], kind="stable")
    position = np.minimum(np.searchsorted(waits["event"][order], event), max(len(order) - 1, 0))
    row = order[position] if len(order) else _none(len(shown)) - 1
    row = np.where((event >= 0) & (row >= 0) & (waits["event"][row] == event), row, -1) if len(order) else row
    yield from slice_packets(part, slices, "state", _waited_for(part, row))


def _waited_for(part: TracePart, row: Ints) -> tuple[Arguments, ...]:
    """Return the arguments that describe waits, given by rows of the table `wait`; -1 = no wait."""
    trace, waits = part.trace, table(part.trace, "wait")
    if not len(waits):
        return ()
    known = np.maximum(row, 0)
    blocker = np.where((row >= 0) & (waits["blocker"][known] > 0), waits["blocker"][known], 0)
    pid = np.where((row >= 0) & (blocker == 0), waits["blocker_pid"][known], -1)
    certainty = texts(waits, "certainty")
    empty = len(certainty.texts)
    return (
        Arguments("object", np.where(row >= 0, waits["object"][known], -1)),
        Arguments("waits for", Texts(blocker, ("", *_thread_names(trace)[1:]))),
        Arguments("waits for pid", np.where(pid > 0, pid, -1)),
        Arguments("certainty", Texts(np.where(row >= 0, certainty.code[known], empty), (*certainty.texts, ""))),
    )


def _thread_names(trace: Trace) -> tuple[str, ...]:
    return tuple(trace.thread_name(row) for row in range(len(trace.threads)))


def _calls(part: TracePart) -> Iterator[MessageBytes]:
    """Yield kernel calls, on the track of their thread, or on the track of their CPU if the thread is not known."""
    calls = table(part.trace, "call")
    start, end, thread = calls["start_cycles"], calls["end_cycles"], calls["thread"]
    code, which = np.unique(texts(calls, "name").code, return_inverse=True)
    names = Texts(which.astype(np.uint32), tuple(texts(calls, "name").texts[call_code] for call_code in code.tolist()))
    is_known = end >= 0
    cpu = calls["cpu"].astype(np.int64)
    slices = TrackSlices(np.where(thread > 0, uuid_of(_THREAD, thread), uuid_of(_CPU_CALL, cpu)), start,
                         np.where(is_known, end, start), calls["event"], names, _none(len(start)))  # fmt: skip
    arguments = (_marked(is_known), Arguments("errno", np.where(calls["errno"] > 0, calls["errno"], -1)))
    of_cpu = np.flatnonzero(thread <= 0)
    own, tracks = _uncrossed(slices.taken(of_cpu), _OWN_CALL, "kernel calls", _none(len(of_cpu)))
    yield from tracks
    yield from slice_packets(part, own, "kernel call")
    of_thread = np.flatnonzero(thread > 0)
    yield from slice_packets(
        part, slices.taken(of_thread), "kernel call", tuple(argument.taken(of_thread) for argument in arguments)
    )


def _interrupts(part: TracePart) -> Iterator[MessageBytes]:
    """Yield interrupts; interrupts of 8.0, which have no exit, are instants."""
    handled = table(part.trace, "interrupt")
    start, end = handled["start_cycles"], handled["end_cycles"]
    vector, which = np.unique(handled["vector"], return_inverse=True)
    names = Texts(which.astype(np.uint32), tuple(f"interrupt {interrupt:#x}" for interrupt in vector.tolist()))
    slices = TrackSlices(uuid_of(_INTERRUPT, handled["cpu"].astype(np.int64)), start, np.where(end >= 0, end, start),
                         handled["event"], names, _none(len(start)))  # fmt: skip
    yield from slice_packets(part, slices, "interrupt", (_marked(end >= 0),))


def _messages(part: TracePart) -> Iterator[MessageBytes]:
    """Yield messages on the tracks of clients and their service on the tracks of servers, with arrows between them.

    A message ends at the last of these events in the trace: its receipt, its reply, and the client's next run.
    """
    sent, time = table(part.trace, "message"), part.trace.events.time_cycles
    names, count = _thread_names(part.trace), len(sent)
    start, client, server, flow = (
        sent["time_cycles"],
        sent["client"],
        sent["server"],
        _MESSAGE * _FLOW + sent["message"],
    )
    last = start.copy()
    for column in ("receive_event", "reply_event", "done_event"):
        row = sent[column]
        last = np.where(row >= 0, np.maximum(last, time[row]), last) if len(time) else last
    received = sent["receive_event"] >= 0
    pids, of_pid = np.unique(sent["server_pid"], return_inverse=True)
    to = Texts(np.where(server > 0, server, len(names) + of_pid),
               (*(f"to {name}" for name in names), *(f"to pid {pid}" for pid in pids.tolist())))  # fmt: skip
    track = np.where(client > 0, uuid_of(_MESSAGE, client), uuid_of(_CPU_MESSAGE, sent["cpu"].astype(np.int64)))
    parent = np.where(client > 0, uuid_of(_THREAD, client), 0)
    slices = TrackSlices(track, start, last, sent["event"], to, np.where(received & (server > 0), flow, 0))
    order = np.lexsort((start, track))
    slices, tracks = _uncrossed(slices, _OWN_MESSAGE, "Sent", parent)
    yield from tracks
    arguments = (Arguments("outcome", texts(sent, "outcome")), Arguments("certainty", texts(sent, "certainty")),
                 Arguments("type", sent["message_type"]), Arguments("bytes", sent["size_bytes"]))  # fmt: skip
    yield from slice_packets(part, slices, "message", tuple(argument.taken(order) for argument in arguments))
    served = np.flatnonzero(received & (server > 0)) if count else _none(0)
    receive = time[sent["receive_event"][served]]
    is_over = sent["reply_event"][served] >= 0
    reply = np.where(is_over, time[sent["reply_event"][served]], receive)
    of = Texts(np.maximum(client[served], 0), tuple(f"for {name}" for name in names))
    slices = TrackSlices(
        uuid_of(_SERVICE, server[served]), receive, reply, sent["receive_event"][served], of, flow[served]
    )
    order = np.lexsort((receive, slices.track))
    slices, tracks = _uncrossed(slices, _OWN_SERVICE, "Serves", uuid_of(_THREAD, server[served]))
    yield from tracks
    yield from slice_packets(part, slices, "message", (_marked(is_over).taken(order),))


def _wake_ups(part: TracePart) -> Iterator[MessageBytes]:
    """Yield wake-ups as two instants with an arrow; the engine's own packets take only thread numbers of 32 bits."""
    woken, names = table(part.trace, "wake_up"), _thread_names(part.trace)
    flow, certainty = _WAKE * _FLOW + np.arange(len(woken)), texts(woken, "certainty")
    thread, waker, cpu = woken["thread"], np.maximum(woken["waker"], 0), woken["cpu"].astype(np.int64)
    wakes = Texts(thread, tuple(f"wakes {name}" for name in names))
    track = np.where(waker > 0, uuid_of(_WAKE, waker), uuid_of(_CPU_WAKE, cpu))
    when = woken["cause_cycles"]
    causes = TrackSlices(track, when, when, woken["cause_event"], wakes, flow)
    yield from slice_packets(part, causes, "wake-up", (Arguments("cpu", cpu),))
    by = Texts(waker, tuple(f"woken by {name}" for name in names))
    when = woken["time_cycles"]
    effects = TrackSlices(uuid_of(_WAKE, thread), when, when, woken["event"], by, flow)
    yield from slice_packets(part, effects, "wake-up", (Arguments("certainty", certainty),))


def _pulses(part: TracePart) -> Iterator[MessageBytes]:
    """Yield an instant for each send and each receipt of a pulse, with an arrow between them."""
    sent, time, trace = table(part.trace, "pulse"), part.trace.events.time_cycles, part.trace
    flow, thread = _PULSE * _FLOW + np.arange(len(sent)), sent["thread"]
    pids, which = np.unique(sent["server_pid"], return_inverse=True)
    label_of = {pid: trace.process_name(row) for row, pid in enumerate(trace.processes.pid.tolist())}
    names = Texts(
        which.astype(np.uint32), tuple(f"pulse to {label_of.get(pid, f'pid {pid}')}" for pid in pids.tolist())
    )
    receive, receiver = sent["receive_event"], sent["receiver"]
    is_received = (receive >= 0) & (receiver > 0)
    track = np.where(thread > 0, uuid_of(_PULSE, thread), uuid_of(_CPU_PULSE, sent["cpu"].astype(np.int64)))
    slices = TrackSlices(
        track, sent["time_cycles"], sent["time_cycles"], sent["event"], names, np.where(is_received, flow, 0)
    )
    yield from slice_packets(part, slices, "pulse", (Arguments("event", texts(sent, "name")),
                                                     Arguments("scoid", sent["scoid"])))  # fmt: skip
    arrived = np.flatnonzero(is_received)
    when = time[receive[arrived]]
    of = Texts(np.maximum(thread[arrived], 0), tuple(f"pulse of {name}" for name in _thread_names(trace)))
    yield from slice_packets(
        part, TrackSlices(uuid_of(_PULSE, receiver[arrived]), when, when, receive[arrived], of, flow[arrived]), "pulse"
    )


# ---- other events, verdicts, marks and load ------------------------------------------------------------------------


def _losses(part: TracePart) -> Iterator[MessageBytes]:
    """Yield losses, on the track of their CPU or on the track of all CPUs; `part.events` does not hide them."""
    lost = table(part.trace, "loss")
    cpu = np.where(lost["cpu"] >= 0, lost["cpu"], part.trace.cpu_count).astype(np.int64)
    start = np.maximum(lost["start_cycles"], part.trace.window.start)
    slices = TrackSlices(uuid_of(_LOSS, cpu), start, lost["end_cycles"], _none(len(lost)) - 1,
                         Texts(np.zeros(len(lost), np.uint32), ("lost",)), _none(len(lost)))  # fmt: skip
    yield from slice_packets(TracePart(part.trace, part.window), slices, "loss")


def _lanes(part: TracePart) -> Iterator[MessageBytes]:
    """Yield the tracks of event lanes: user events, log, functions, page faults, handlers, CPU frequencies."""
    above = {Owner.THREAD: _THREAD, Owner.PROCESS: _PROCESS}
    uuid, named = int(uuid_of(_LANE, 0)), 0
    for lane_class in LANE_CLASSES:
        if lane_class.name == "calls":
            continue
        for spans in finder_of(lane_class)(part.trace, lane_class, UserLanes()):
            for track in tracks_of(lane_class, spans):
                if track.is_whole:
                    continue
                uuid += 1
                kind = above.get(spans.owner_kind)
                title = (
                    spans.title
                    if spans.owner_kind is not Owner.CPU
                    else f"{part.trace.cpu_title(track.owner)} {spans.title}"
                )
                parent = np.array([0 if kind is None else int(uuid_of(kind, track.owner))])
                yield from _lane(part, track, np.array([uuid]), title, parent, named)
                named += len(track.content)


def _names_of(part: TracePart, track: Track, event: Ints) -> Texts:
    name_of = event_text_of(part.trace, track)
    return Texts.of([name_of(row) for row in event.tolist()])


def _event_names(trace: Trace, event: Ints) -> Texts:
    """Return the names of events, without their arguments."""
    code, which = np.unique(trace.events.code[event], return_inverse=True)
    return Texts(which.astype(np.uint32), tuple(trace.catalogue.name(event_code) for event_code in code.tolist()))


def _lane(part: TracePart, track: Track, uuid: Ints, title: str, parent: Ints, named: int) -> Iterator[MessageBytes]:
    spans, event = track.content, track.content.event.astype(np.int64)
    track_of = np.full(len(event), uuid[0])
    if spans.number is not None:
        name = text(2, _none(1), [title])
        yield _descriptors(message(number(1, uuid), name, number(5, parent).where(parent > 0),
                                   nested(8, number(4, np.ones(1, np.int64)))))  # fmt: skip
        shown = np.flatnonzero(part.shows(spans.start, spans.end, event))
        yield from counter_packets(part, track_of[shown], spans.start[shown], spans.number[shown])
        return
    yield _named(uuid, title, parent)
    shown = np.flatnonzero(part.shows(spans.start, spans.end, event))
    names = (
        _names_of(part, track, event[shown])
        if named + len(shown) <= _MOST_TEXTS
        else _event_names(part.trace, event[shown])
    )
    slices = TrackSlices(track_of[shown], spans.start[shown], spans.end[shown], event[shown], names, _none(len(shown)))
    yield from slice_packets(part, slices, track.lane_class.name)


def _other_events(part: TracePart) -> Iterator[MessageBytes]:
    """Yield all events that no other track shows, as instants on a track of their CPU."""
    trace, events = part.trace, part.trace.events
    is_other = np.ones(len(trace.code_counts), np.bool_)
    for lane_class in LANE_CLASSES:
        if trace.pairs is None:
            is_other[list(lane_class.codes)] = False
    class_of = np.array([kind.name for kind in trace.catalogue.classes])
    for number_of in np.flatnonzero(trace.code_counts).tolist():
        name = trace.catalogue.name(number_of)
        kind = class_of[trace.catalogue.class_index_of_code[number_of]]
        if kind in _AS_SLICES or (kind == "COMM" and name.startswith(_COMM_AS_SLICES)):
            is_other[number_of] = False
    others = np.flatnonzero(is_other[events.code])
    names = _event_names(trace, others)
    time = events.time_cycles[others]
    slices = TrackSlices(
        uuid_of(_OTHER, events.cpu[others].astype(np.int64)), time, time, others, names, _none(len(others))
    )
    yield from slice_packets(part, slices, "event")


def _verdicts(part: TracePart) -> Iterator[MessageBytes]:
    """Yield the verdicts on the trace: name, sentence and remedy."""
    verdicts = table(part.trace, "verdict")
    rows = np.arange(len(verdicts), dtype=np.int64)
    start, end, event = (verdicts[name].astype(np.int64) for name in ("start_cycles", "end_cycles", "event"))
    slices = TrackSlices(uuid_of(_VERDICT, rows), start, end, event, texts(verdicts, "kind"), _none(len(rows)))
    yield _named(uuid_of(_VERDICT, rows), "Verdicts")
    arguments = tuple(Arguments(name, texts(verdicts, name)) for name in ("says", "remedy", "severity", "certainty"))
    yield from slice_packets(part, slices, "verdict", arguments)


def _marks(part: TracePart) -> Iterator[MessageBytes]:
    """Yield marks and notes; `part.events` does not hide them."""
    marks = table(part.trace, "mark")
    rows = np.arange(len(marks), dtype=np.int64)
    start, end = marks["start_cycles"], marks["end_cycles"]
    slices = TrackSlices(uuid_of(_MARK, rows), start, end, rows * 0 - 1, texts(marks, "text"), _none(len(rows)))
    yield _named(uuid_of(_MARK, rows), "Marks")
    yield from slice_packets(TracePart(part.trace, part.window), slices, "mark")


def _loads(part: TracePart) -> Iterator[MessageBytes]:
    """Yield the load of each CPU in percent, in bins of equal length; nothing if only some events are written."""
    if part.events is not None:
        return
    is_whole = part.window == part.trace.window
    load = load_over_time(
        scope_of(part.trace, None if is_whole else part.window, None, None, None), LoadBy.CPU, _LOAD_BINS
    )
    for band, cpu in enumerate(load.subjects.tolist()):
        percent = load.busy_cycles[band] * 100.0 / np.maximum(load.lengths, 1)
        yield from counter_packets(part, np.full(len(percent), uuid_of(_LOAD, cpu)), load.edges[:-1], percent)
