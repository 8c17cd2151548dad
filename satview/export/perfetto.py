"""A trace for Perfetto: a file of protobuf that its viewer and its trace processor read.

CPUs are scheduled as by Linux (`sched_switch`, `sched_waking`), so that everything there knows who ran, for how long,
and who woke whom. What Linux has no word for are slices of tracks: states, kernel calls, messages and their service
with an arrow between them, interrupts, lost events; the load of the CPUs is a counter. As thread numbers of QNX are not
unique, a thread's number is `FIRST_TID` and its row. Source of the field numbers: protos/perfetto/trace of Perfetto.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.load import LoadBy, load_over_time
from satview.analysis.times.scope import scope_of
from satview.answers.frames import Texts
from satview.base.new_file import NewFile
from satview.events.linux import FIRST_TID
from satview.events.states import READY, STATE_BY_NAME
from satview.export import protobuf
from satview.export.protobuf import Block, message, nested, number, text
from satview.formats.registry import source_files
from satview.store.trace import Trace
from satview.tables.table import Table, table

_Ints = NDArray[np.int64]
_CHUNK: Final = 1 << 15  # messages made at once
_LOAD_BINS: Final = 4000
_SEQUENCE: Final = 1
_RUNNABLE, _SLEEPS = 0, 1  # prev_state
_BEGIN, _END, _COUNTER = 1, 2, 4  # TrackEvent.Type

# Kinds of tracks; the uuid is the kind in the upper half, and thread, CPU or message in the lower.
_PROCESS, _THREAD, _STATE, _MESSAGE, _SERVICE, _OWN_SERVICE, _INTERRUPT, _LOAD, _LOSS = range(1, 10)


def write_perfetto(trace: Trace, path: Path | str, report: Callable[[float], None] | None = None) -> int:
    """Write a trace for Perfetto; return how many packets.

    Args:
        trace: The trace.
        path: The new file, or `-`.
        report: Called with the share that is done, 0 to 1.

    Raises:
        UsageError: The file cannot be written.
    """
    count = 0
    with NewFile(path, reading=source_files(trace.path), streams=True) as file:
        for done, packets in _packets(trace):
            file.stream.write(nested(1, packets).to_bytes())
            count += len(packets)
            if report is not None:
                report(done)
    return count


def _packets(trace: Trace) -> Iterator[tuple[float, Block]]:
    """Yield the packets of a trace, some at a time, each with the share of the kinds of packets that is behind it."""
    makes: tuple[Callable[[Trace], Iterator[Block]], ...] = (
        _tracks,
        _scheduling,
        lambda trace: _slices(_states(trace)),
        lambda trace: _slices(_calls(trace)),
        lambda trace: _slices(_interrupts(trace)),
        lambda trace: (packets for slices in _messages(trace) for packets in _slices(slices)),
        lambda trace: _slices(_losses(trace)),
        _loads,
    )
    for step, make in enumerate(makes):
        for packets in make(trace):
            yield step / len(makes), packets


def _uuid(kind: int, row: _Ints | int) -> _Ints:
    return np.asarray(np.int64(kind) << 32 | row, np.int64)


def _in_chunks(count: int) -> Iterator[slice]:
    for start in range(0, count, _CHUNK):
        yield slice(start, min(start + _CHUNK, count))


# ---- who there is --------------------------------------------------------------------------------------------------


def _tracks(trace: Trace) -> Iterator[Block]:
    """Yield the descriptions of all tracks but those of single messages."""
    processes, threads = table(trace, "process"), table(trace, "thread")
    rows = np.arange(len(processes), dtype=np.int64)
    pid = _pids(trace)
    yield _descriptor(message(
        number(1, _uuid(_PROCESS, rows)),
        nested(3, message(number(1, pid), _text(6, processes, "label"))),
    ))  # fmt: skip
    rows, process = np.arange(len(threads), dtype=np.int64), trace.threads.process.astype(np.int64)
    yield _descriptor(message(
        number(1, _uuid(_THREAD, rows)),
        nested(4, message(number(1, pid[process]), number(2, rows + FIRST_TID), _text(5, threads, "label"))),
    ))  # fmt: skip
    for kind, name in ((_STATE, "State"), (_MESSAGE, "Sent"), (_SERVICE, "Serves")):
        yield _named(_uuid(kind, rows), name, _uuid(_THREAD, rows))
    cpus = np.arange(trace.cpu_count, dtype=np.int64)
    titles = [trace.cpu_title(cpu) for cpu in cpus.tolist()]
    yield _descriptor(message(number(1, _uuid(_INTERRUPT, cpus)), text(2, cpus, [f"{t} interrupts" for t in titles])))
    # A counter in percent of the CPU.
    counter = nested(8, text(6, np.zeros(len(cpus), np.int64), ["%"]))
    yield _descriptor(message(number(1, _uuid(_LOAD, cpus)), text(2, cpus, [f"{t} load" for t in titles]), counter))
    yield _descriptor(
        message(number(1, _uuid(_LOSS, np.zeros(1, np.int64))), text(2, np.zeros(1, int), ["Lost events"]))
    )


def _named(uuid: _Ints, name: str, parent: _Ints) -> Block:
    zeros = np.zeros(len(uuid), np.int64)
    return _descriptor(message(number(1, uuid), text(2, zeros, [name]), number(5, parent)))


def _descriptor(inner: Block) -> Block:
    return message(number(10, np.full(len(inner), _SEQUENCE)), nested(60, inner))


def _text(field: int, found: Table, name: str) -> Block:
    values = found.values(found.schema.column(name))
    assert isinstance(values, Texts)
    return text(field, values.code, values.texts)


def _pids(trace: Trace) -> _Ints:
    """Return the process numbers by row; that of row 0, which is nobody's, is none of QNX."""
    pid = trace.processes.pid.astype(np.int64)
    pid[0] = FIRST_TID - 1
    return pid


# ---- scheduling ----------------------------------------------------------------------------------------------------


def _scheduling(trace: Trace) -> Iterator[Block]:
    """Yield bundles of ftrace events, one event each: who gets a CPU, and who is woken."""
    runs = table(trace, "run")
    order = np.lexsort((runs["start_cycles"], runs["cpu"]))
    cpu = runs["cpu"][order].astype(np.int64)
    start, end = runs["start_ns"][order], runs["end_ns"][order]
    thread = np.where(runs["is_idle"][order], -1, runs["thread"][order])
    priority = np.maximum(runs["priority"][order], 0)
    state = _states_after(trace, runs["thread"][order], runs["end_cycles"][order])
    same = cpu[1:] == cpu[:-1]
    touches = np.append(False, same & (start[1:] == end[:-1]))[: len(cpu)]
    # Before a run the thread of the run before that touches it, else nobody; after a run without one behind it, nobody.
    before, prio_before, state_before = (np.append(fill, column[:-1])[: len(cpu)]
                                         for fill, column in ((-1, thread), (0, priority), (0, state)))  # fmt: skip
    last = np.flatnonzero(~np.append(touches[1:], False)[: len(cpu)])
    none = np.full(len(last), -1, np.int64)
    switch = _Switches(
        np.append(start, end[last]), np.append(cpu, cpu[last]),
        np.append(np.where(touches, before, -1), thread[last]), np.append(prio_before * touches, priority[last]),
        np.append(state_before * touches, state[last]), np.append(thread, none), np.append(priority, none * 0),
    )  # fmt: skip
    names = [trace.thread_name(row) for row in range(len(trace.threads))] + ["swapper"]
    order = np.argsort(switch.time_ns, kind="stable")
    # One thread of no CPU before and after is no switch.
    order = order[(switch.before[order] >= 0) | (switch.after[order] >= 0)]
    for part in _in_chunks(len(order)):
        at = order[part]
        before, after = switch.before[at], switch.after[at]
        event = nested(4, message(
            text(1, before, names), number(2, _tid(before)), number(3, switch.before_priority[at]),
            number(4, switch.before_state[at]), text(5, after, names), number(6, _tid(after)),
            number(7, switch.after_priority[at]),
        ))  # fmt: skip
        yield _bundle(switch.cpu[at], switch.time_ns[at], _tid(switch.before[at]), event)
    woken = table(trace, "wake_up")
    cause_ns, target, waker = woken["cause_ns"], woken["thread"], woken["waker"]
    for part in _in_chunks(len(woken)):
        here = target[part]
        event = nested(20, message(
            text(1, here, names), number(2, _tid(here)), number(4, np.ones(len(here), np.int64)),
            number(5, woken["cpu"][part].astype(np.int64)),
        ))  # fmt: skip
        who = np.where(waker[part] > 0, waker[part], -1)
        yield _bundle(woken["cpu"][part].astype(np.int64), cause_ns[part], _tid(who), event)


@dataclass(frozen=True, slots=True)
class _Switches:
    """Changes of the thread that has a CPU, int64 (n,); threads are rows, -1 for none."""

    time_ns: _Ints
    cpu: _Ints
    before: _Ints
    before_priority: _Ints
    before_state: _Ints
    after: _Ints
    after_priority: _Ints


def _tid(thread: _Ints) -> _Ints:
    """Return the number of threads by row; 0, as Linux has it, for no thread."""
    return np.where(thread < 0, 0, thread + FIRST_TID)


def _bundle(cpu: _Ints, time_ns: _Ints, tid: _Ints, event: Block) -> Block:
    inner = message(number(1, time_ns), number(2, tid), event)
    return message(number(10, np.full(len(cpu), _SEQUENCE)), nested(1, message(number(1, cpu), nested(2, inner))))


def _states_after(trace: Trace, thread: _Ints, end_cycles: _Ints) -> _Ints:
    """Return whether threads can still run when their runs end, as Linux numbers it."""
    states = table(trace, "state")
    row = np.searchsorted(trace.events.time_cycles, states["start_cycles"])
    key = states["thread"] << 32 | row
    position = np.searchsorted(key, thread << 32 | np.searchsorted(trace.events.time_cycles, end_cycles))
    position = np.minimum(position, max(len(key) - 1, 0))
    values = states.values(states.schema.column("state"))
    assert isinstance(values, Texts)
    fits = (states["thread"][position] == thread) & (states["start_cycles"][position] == end_cycles)
    return np.where(fits & (values.code[position] == READY), _RUNNABLE, _SLEEPS).astype(np.int64)


# ---- slices --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Slices:
    """Slices of tracks, (n,) each.

    Attributes:
        track: int64, uuid.
        start_ns, end_ns: int64.
        which: Of `names`.
        names: What slices are called.
        category: Of all.
        flow: int64, what arrows between slices have in common; 0 = none. None = no slice has any.
        parent: int64, uuid of the track that a slice's own track is a child of; 0 = the track is known already.
    """

    track: _Ints
    start_ns: _Ints
    end_ns: _Ints
    which: NDArray[Any]
    names: tuple[str, ...]
    category: str
    flow: _Ints | None = None
    parent: _Ints | None = None


def _slices(slices: _Slices) -> Iterator[Block]:
    """Yield begins and ends in time order; of one moment ends come first, inner before outer."""
    keep = np.flatnonzero(slices.end_ns > slices.start_ns)
    count = len(keep)
    time = np.concatenate((slices.end_ns[keep], slices.start_ns[keep]))
    is_begin = np.arange(2 * count) >= count
    slot = np.concatenate((keep, keep))
    order = np.lexsort((np.where(is_begin, slot, -slot), is_begin, time))
    if slices.parent is not None:
        mine = keep[slices.parent[keep] > 0]
        for part in _in_chunks(len(mine)):
            yield _named(slices.track[mine[part]], "Serves", slices.parent[mine[part]])
    for part in _in_chunks(len(order)):
        at = order[part]
        row, begins = slot[at], is_begin[at]
        fields = [
            number(9, np.where(begins, _BEGIN, _END)),
            number(11, slices.track[row]),
            text(22, np.zeros(len(row), np.int64), [slices.category]).where(begins),
            text(23, slices.which[row], slices.names).where(begins),
        ]
        if slices.flow is not None:
            fields.append(protobuf.fixed64(47, slices.flow[row]).where(begins & (slices.flow[row] > 0)))
        yield _track_events(time[at], message(*fields))


def _track_events(time_ns: _Ints, event: Block) -> Block:
    return message(number(8, time_ns), number(10, np.full(len(time_ns), _SEQUENCE)), nested(11, event))


def _states(trace: Trace) -> _Slices:
    """Return the states of threads; running and ready, unknown and absent are no slices."""
    states = table(trace, "state")
    values = states.values(states.schema.column("state"))
    assert isinstance(values, Texts)
    waits = np.isin(values.code, [state.value for state in STATE_BY_NAME.values() if state.name != "RUNNING"])
    at = np.flatnonzero(waits)
    track = _uuid(_STATE, states["thread"][at])
    return _Slices(track, states["start_ns"][at], states["end_ns"][at], values.code[at], values.texts, "state")


def _calls(trace: Trace) -> _Slices:
    calls = table(trace, "call")
    values = calls.values(calls.schema.column("name"))
    assert isinstance(values, Texts)
    at = np.flatnonzero((calls["end_ns"] >= 0) & (calls["thread"] > 0))
    code, which = np.unique(values.code[at], return_inverse=True)
    names = tuple(values.texts[number] for number in code.tolist())
    track = _uuid(_THREAD, calls["thread"][at])
    return _Slices(track, calls["start_ns"][at], calls["end_ns"][at], which, names, "kernel call")


def _interrupts(trace: Trace) -> _Slices:
    found = table(trace, "interrupt")
    at = np.flatnonzero(found["end_ns"] >= 0)
    vector, which = np.unique(found["vector"][at], return_inverse=True)
    names = tuple(f"interrupt {number:#x}" for number in vector.tolist())
    track = _uuid(_INTERRUPT, found["cpu"][at].astype(np.int64))
    return _Slices(track, found["start_ns"][at], found["end_ns"][at], which, names, "interrupt")


def _messages(trace: Trace) -> tuple[_Slices, _Slices]:
    """Return messages on their clients' tracks, and their service on their servers', an arrow between them."""
    sent = table(trace, "message")
    time = trace.events.time_cycles
    names = tuple(trace.thread_name(row) for row in range(len(trace.threads)))
    flow = sent["message"] + 1
    start, client, server = sent["time_ns"], sent["client"], sent["server"]
    done = np.where(sent["round_trip_ns"] >= 0, start + sent["round_trip_ns"], -1)
    at = np.flatnonzero((done >= 0) & (client > 0))
    clients = _Slices(
        _uuid(_MESSAGE, client[at]), start[at], done[at], np.maximum(server[at], 0),
        tuple(f"to {name}" for name in names), "message", np.where(sent["receive_event"][at] >= 0, flow[at], 0),
    )  # fmt: skip
    at = np.flatnonzero((sent["service_cycles"] >= 0) & (server > 0))
    receive, reply = (trace.clock.ns_array(time[sent[name][at]]) for name in ("receive_event", "reply_event"))
    order = np.lexsort((receive, server[at]))
    at, receive, reply = at[order], receive[order], reply[order]
    is_own = _overlap(server[at], receive, reply)
    thread = server[at]
    track = np.where(is_own, _uuid(_OWN_SERVICE, at), _uuid(_SERVICE, thread))
    servers = _Slices(
        track, receive, reply, np.maximum(client[at], 0), tuple(f"for {name}" for name in names), "message", flow[at],
        np.where(is_own, _uuid(_THREAD, thread), 0),
    )  # fmt: skip
    return clients, servers


def _overlap(owner: _Ints, start: _Ints, end: _Ints) -> NDArray[np.bool_]:
    """Return which intervals begin before one of the same owner that began earlier has ended, bool (n,).

    Args:
        owner: int64 (n,), ascending.
        start: int64 (n,), ascending for each owner.
        end: int64 (n,).
    """
    if not len(owner):
        return np.zeros(0, np.bool_)
    span = int(end.max() - start.min()) + 2
    number = np.cumsum(np.append(False, owner[1:] != owner[:-1])) * span
    latest = np.maximum.accumulate(end - start.min() + number)
    return np.append(False, (start - start.min() + number)[1:] < latest[:-1])


def _losses(trace: Trace) -> _Slices:
    """Return where events are missing; what overlaps, as CPUs of 8.0 lose each for itself, is one."""
    lost = table(trace, "loss")
    start, end = lost["start_ns"], lost["end_ns"]
    zeros = np.zeros(len(lost), np.int64)
    keep = np.flatnonzero(~_overlap(zeros, start, end)) if len(lost) else zeros
    ends = np.maximum.reduceat(end, keep) if len(keep) else end
    return _Slices(_uuid(_LOSS, zeros[keep]), np.maximum(start[keep], 0), ends, zeros[keep], ("lost",), "loss")


def _loads(trace: Trace) -> Iterator[Block]:
    """Yield the load of each CPU in percent, in bins of equal length."""
    load = load_over_time(scope_of(trace, None, None, None, None), LoadBy.CPU, _LOAD_BINS)
    time = trace.clock.ns_array(load.edges[:-1])
    for band, cpu in enumerate(load.subjects.tolist()):
        percent = load.busy_cycles[band] * 100 // np.maximum(load.lengths, 1)
        track = np.full(len(time), _uuid(_LOAD, cpu))
        yield _track_events(
            time, message(number(9, np.full(len(time), _COUNTER)), number(11, track), number(30, percent))
        )
