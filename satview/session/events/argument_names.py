"""What the numbers among an event's arguments mean: processes, threads, servers, channels, clients, holders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from satview.events import wire
from satview.events.spec import Argument
from satview.linkage.blockers import blockers, owner_of
from satview.linkage.messages import SEND
from satview.linkage.mutexes import mutexes
from satview.linkage.servers import are_ready, client_of, creation_of, make_ready, server_of
from satview.linkage.table import OPEN, Certainty, LinkKind
from satview.linkage.trace_links import link_table
from satview.store.trace import Trace

MOST_ARGUMENTS: Final = 64  # of an event that are named: no list of arguments is longer
_NEVER: Final = 0xFFFFFFFF
_NO_ENTRY: Final = wire.KER_EXIT_OFFSET | wire.KER_INT_OFFSET  # bits of the code of a kernel call's other events


@dataclass(frozen=True, slots=True)
class Meaning:
    """What an argument represents, and where a click on it goes.

    Attributes:
        text: In words. Names of the trace are in it as they are.
        thread: Row of the thread whose lane it leads to; 0 = none.
        process: Row of the process whose lane it leads to; 0 = none.
        event: Row of the event that it leads to; -1 = none.
        certainty: How certain it is.
    """

    text: str
    thread: int = 0
    process: int = 0
    event: int = -1
    certainty: Certainty = Certainty.EXACT


@dataclass(frozen=True, slots=True)
class _Of:
    """An event whose arguments are named."""

    trace: Trace
    event: int
    values: Mapping[str, int]

    @property
    def thread(self) -> int:
        """Row of the thread that logged it; 0 = not known."""
        return int(self.trace.events.thread[self.event])

    @property
    def process(self) -> int:
        """Row of the process that logged it; 0 = not known."""
        return int(self.trace.threads.process[self.thread])


def argument_names(trace: Trace, event: int) -> Mapping[str, Meaning]:
    """Return what the arguments of an event represent, by name, as far as the trace shows it.

    The first question makes all links of the trace.

    Args:
        trace: The events.
        event: Row of the event table.
    """
    make_ready(trace)
    _ = mutexes(trace), blockers(trace), link_table(trace, LinkKind.HOLD)
    arguments = trace.payloads.decode(event, MOST_ARGUMENTS).arguments[:MOST_ARGUMENTS]
    of = _Of(trace, event, _numbers(arguments))
    found = {}
    for name, value in of.values.items():
        rule = _RULES.get(name)
        meaning = rule(of, name, value) if rule is not None else None
        if meaning is not None:
            found[name] = meaning
    return MappingProxyType(found)


def _numbers(arguments: tuple[Argument, ...]) -> Mapping[str, int]:
    return {argument.name: argument.value for argument in arguments if isinstance(argument.value, int)}


def _pid(of: _Of, name: str, pid: int) -> Meaning | None:
    """Name a process; at the entry of a kernel call 0 is the caller's own."""
    code = int(of.trace.events.code[of.event])
    is_entry = wire.class_of(code) == wire.WireClass.KER_CALL and not code & _NO_ENTRY
    if pid == 0 and name == "pid" and is_entry:
        return _process(of.trace, of.process, "its own process: ") if of.process else None
    row = of.trace.processes.row(pid) if pid > 0 else None
    return _process(of.trace, row) if row else None


def _tid(of: _Of, name: str, tid: int) -> Meaning | None:
    """Name a thread: of the process that the event names beside it, else of the one that logged it."""
    pid = of.values.get(name.replace("tid", "pid"), int(of.trace.threads.pid[of.thread]))
    row = of.trace.threads.row(pid, tid) if pid > 0 and tid > 0 else None
    return _thread(of.trace, row) if row else None


def _coid(of: _Of, _name: str, coid: int) -> Meaning | None:
    if not of.process or coid & 0xFFFFFFFF == _NEVER:
        return None
    server = server_of(of.trace, of.process, coid, of.event)
    if server is None:
        return None
    row = of.trace.processes.row(server.pid) or 0
    name = of.trace.process_name(row) if row else f"pid {server.pid}"
    channel = f", channel {server.chid}" if server.chid >= 0 else ""
    return Meaning(f"to {name}{channel}", process=row, event=-1 if row else server.row, certainty=server.certainty)


def _chid(of: _Of, _name: str, chid: int) -> Meaning | None:
    """Name the owner of a channel: for ConnectAttach the process named beside it, else the one that logged it."""
    pid = of.values.get("pid", 0)
    row = of.trace.processes.row(pid) if pid > 0 else of.process
    if not row:
        return None
    created = creation_of(of.trace, row, chid, of.event)
    return Meaning(f"channel of {of.trace.process_name(row)}", process=0 if created >= 0 else row, event=created)


def _rcvid(of: _Of, _name: str, rcvid: int) -> Meaning | None:
    """Name the client of a message; the server that knows it by this number is in the event, or logged it."""
    trace, is_comm = of.trace, wire.class_of(int(of.trace.events.code[of.event])) == wire.WireClass.COMM
    if rcvid & 0xFFFFFFFF in (0, _NEVER) or int(trace.events.code[of.event]) == SEND:  # its sender logged it
        return None
    server = trace.processes.row(of.values.get("pid", -1)) if is_comm else of.process
    sent = client_of(trace, server, rcvid, of.event) if server else -1
    if sent < 0 or not int(trace.events.thread[sent]):
        return None
    return Meaning(f"message of {trace.thread_name(int(trace.events.thread[sent]))}", event=sent)


def _owner(of: _Of, _name: str, word: int) -> Meaning | None:
    """Name the thread that holds a mutex as its word shows."""
    found = owner_of(of.trace, word, int(of.trace.threads.pid[of.thread])) if of.process else None
    if found is None:
        return None
    thread, certainty = found
    waiting = ", others wait" if word & 0x80000000 else ""
    return Meaning(f"held by {of.trace.thread_name(thread)}{waiting}", thread=thread, certainty=certainty)


def _mutex(of: _Of, _name: str, _address: int) -> Meaning | None:
    """Name the thread that holds the mutex of a call: the one that is waited for, or that got it in the kernel."""
    trace, known, found = of.trace, mutexes(of.trace), blockers(of.trace)
    waiting = np.flatnonzero((found.waits.call_row == of.event) & (known.of_wait >= 0) & (found.thread >= 0))
    if len(waiting):
        position = int(waiting[0])
        return _holder(trace, int(found.thread[position]), Certainty(int(found.certainty[position])))
    calls = [part.mutex[part.row == of.event] for part in (known.gives, known.gets)]
    number = int(max((part[0] for part in calls if len(part)), default=-1))
    before = np.flatnonzero((known.gets.mutex == number) & (known.gets.row < of.event))
    if number < 0 or not len(before):
        return None
    get = known.gets.row[before[-1:]]
    held = link_table(trace, LinkKind.HOLD)
    hold = int(held.begun_by(get)[0])
    if hold < 0 or (held.to_row[hold] != OPEN and held.to_row[hold] < of.event):
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
    """Return whether `argument_names` answers at once: the first time it makes the links that it needs."""
    needed = ("links.mutexes", "links.blockers", "links.hold")
    return are_ready(trace) and all(trace.is_cached(name) for name in needed)


_RULES: Final[dict[str, Callable[[_Of, str, int], Meaning | None]]] = {
    **dict.fromkeys(("pid", "ppid", "parent_pid", "info->pid", "suspect_pid"), _pid),
    **dict.fromkeys(("tid", "info->tid", "suspect_tid"), _tid),
    **dict.fromkeys(("rcvid", "src_rcvid", "dst_rcvid"), _rcvid),
    **dict.fromkeys(("owner", "sync->owner", "mutex->owner"), _owner),
    **dict.fromkeys(("sync_p", "mutex_p"), _mutex),
    "coid": _coid, "chid": _chid,
}  # fmt: skip
