"""The table of messages from send to reply, with filters for client, server and type, and with nested messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.doctor import deficits
from satview.analysis.needs import KERNEL, MESSAGES
from satview.analysis.thread_names import are_named, processes_named
from satview.analysis.times.basis import Basis, scope_of
from satview.analysis.times.message_times import sent_messages
from satview.answers.frames import Texts
from satview.answers.table import CERTAINTIES, Column, Kind, Known, Question, Table, known_by_certainty, known_where
from satview.base.time import TimeWindow
from satview.events.states import ABSENT, DEAD, NOT_A_STATE
from satview.linkage.links import is_whole
from satview.linkage.transactions import Transactions, transactions
from satview.linkage.waits import LANE_VALUES, first_that_fits, state_positions, state_values
from satview.store.axis import ends_of_files, last_rows
from satview.store.trace import Trace

_Ints = NDArray[np.int64]
_OFF_NODE, _FAILED = 0, -1  # values of the server's pid
_OVER, _OPEN, _UNDECIDED = range(3)  # whether a client still waits at the end of the trace
_IS_STATE: Final = np.ones(LANE_VALUES, np.bool_)
_IS_END: Final = np.isin(np.arange(LANE_VALUES), (ABSENT, DEAD, NOT_A_STATE))  # last states of threads that ended
_OUTCOMES: Final = ("", "sent", "received", "replied", "ended without reply", "done")
_REASONS: Final = {
    Known.AT_LEAST: "not over when the trace ends, or when its client does; counted up to there",
    Known.INFERRED: "it follows from the order of events; no event names both ends",
    Known.GUESS: "one of several receipts that the trace does not distinguish",
    Known.UNKNOWN: "events are missing in between, or the states of its client were not captured",
}

_BY_REPLY: Final = {Known.INFERRED: "the reply names it, which follows from the order of events"}


def _leg(name: str, title: str, meaning: str) -> Column:
    return Column(name, Kind.DURATION, meaning, title, is_nullable=True, reasons=_REASONS)


LEGS: Final = ("queued", "service", "reply", "round_trip")  # columns; the last is the sum of the others
QUESTION: Final = Question(
    "transactions",
    "Transactions",
    "Which messages took longest, and where was their time spent?",
    (
        Column("message", Kind.NUMBER, "its row, from 0"),
        Column("cpu", Kind.CPU, "the CPU that logged the send, from 0"),
        Column("client", Kind.THREAD, "the thread that sent the message, else its process as the reply names it",
               "Client", is_nullable=True, reasons=_BY_REPLY),
        Column("server", Kind.THREAD, "the thread that received it, else the process it was sent to", "Server",
               is_nullable=True),
        Column("client_pid", Kind.NUMBER, "process of the client, as the reply names it where its thread is not known; "
               "-1 = not known"),
        Column("server_pid", Kind.NUMBER, "process that it was sent to; 0 = on another node, -1 = the send failed"),
        Column("type", Kind.HEX, "first word of the message, where the call's event shows it", "Type", "message_type",
               is_nullable=True),
        Column("start", Kind.TIME, "when it was sent", "Sent", "time"),
        Column("receive_event", Kind.EVENT, "the event `REC_MESSAGE`", is_nullable=True),
        Column("reply_event", Kind.EVENT, "the event `REPLY_MESSAGE` or `MSG_ERROR`", is_nullable=True),
        Column("done_event", Kind.EVENT, "the event by which the client runs again", is_nullable=True),
        _leg("queued", "Queued", "from the send until the server receives it"),
        _leg("service", "Service", "from the receipt until the server replies"),
        _leg("reply", "Reply", "from the reply until the client runs again"),
        _leg("round_trip", "Round trip", "from the send until the client runs again"),
        Column("send_blocked", Kind.DURATION, "the client was in state SEND", is_nullable=True),
        Column("reply_blocked", Kind.DURATION, "the client was in state REPLY", is_nullable=True),
        Column("size_bytes", Kind.COUNT, "as reported to its receiver, where that was logged", is_nullable=True),
        Column("outcome", Kind.TEXT, "how far the trace shows it to have come", "Outcome", reasons={
            Known.AT_LEAST: _REASONS[Known.UNKNOWN] + ": it may have come further"}),
        Column("nested", Kind.COUNT, "messages that the server sent on its behalf", "Nested", reasons={
            Known.AT_LEAST: "events are missing meanwhile, it is not over at the end, or threads are unknown"}),
        Column("certainty", Kind.TEXT, "how sure receipt and reply are: `exact`: events name them; `inferred`: they "
               "follow from their order; `guess`: one of several", "Certainty"),
        Column("event", Kind.EVENT, "the event `SND_MESSAGE`", "Event"),
        Column("parent_event", Kind.EVENT, "the `SND_MESSAGE` on behalf of which it was sent", "Within", sql=""),
        Column("parent", Kind.NUMBER, "`message` that the client was serving when it sent this one", is_nullable=True),
    ),
    "round_trip",
    "No message fits.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """Conditions that select transactions; a transaction must meet all of them.

    Attributes:
        client: Part of the client's label, a pid or `PID:TID`; compared with its process if its thread is not known;
            empty = any.
        server: The same for the server: the thread that received the message, or else the process it was sent to.
        message_type: First word of the message; None = any. Only some kernel calls show it.
        window: Range in which messages are sent; None = at any time.
    """

    client: str = ""
    server: str = ""
    message_type: int | None = None
    window: TimeWindow | None = None


def transaction_table(trace: Trace, requested: TransactionFilter | None = None) -> Table:
    """Return the transactions that pass a filter, in time order; messages that a server sent meanwhile are nested.

    Args:
        trace: The events.
        requested: The filter; None = all.
    """
    links, events = transactions(trace), trace.events
    legs = trace.cached("answers.transaction_legs", _legs)

    def blocked() -> Mapping[str, _Ints]:
        return trace.cached("answers.transaction_blocked", _blocked)

    table = Table(
        QUESTION,
        trace,
        {
            "message": lambda: np.arange(len(links)),
            "cpu": lambda: events.cpu[links.send_row],
            "client": links.client,
            "server": links.server,
            "client_pid": links.client_pid,
            "server_pid": links.server_pid,
            "type": links.message_type,
            "start": lambda: events.time_cycles[links.send_row],
            "receive_event": links.receive_row,
            "reply_event": links.reply_row,
            "done_event": links.done_row,
            **{name: legs[name][0] for name in LEGS},
            "send_blocked": lambda: blocked()["send"],
            "reply_blocked": lambda: blocked()["reply"],
            "size_bytes": lambda: blocked()["size"],
            "outcome": lambda: _outcomes(links),
            "nested": lambda: np.bincount(links.parent[links.parent >= 0], minlength=len(links)),
            "certainty": Texts(links.certainty, CERTAINTIES),
            "event": links.send_row,
            "parent_event": lambda: _parent_events(links),
            "parent": links.parent,
        },
        known={name: legs[name][1] for name in LEGS}
        | {
            "client": _how_clients_are_known(links),
            "outcome": known_where((legs["round_trip"][1] == Known.UNKNOWN) & (links.done_row < 0), Known.AT_LEAST),
            "nested": known_where(
                np.isin(legs["service"][1], (Known.UNKNOWN, Known.AT_LEAST)) | _may_have_more_nested(links),
                Known.AT_LEAST,
            ),
        },
        texts={
            "client": lambda position: _client_name(trace, links, position),
            "server": lambda position: _server_name(trace, links, position),
        },
        parent=links.parent,
        cannot_tell=deficits(trace, KERNEL, MESSAGES, window=None if requested is None else requested.window),
    )
    return table if requested is None else table.rows(_matching(trace, links, requested))


def _may_have_more_nested(links: Transactions) -> NDArray[np.bool_]:
    """Return which messages an unknown thread served, or were served while unknown threads sent others, bool (n,)."""
    of_unknown = np.sort(links.send_row[links.client <= 0])
    begin, end = (np.searchsorted(of_unknown, row) for row in (links.receive_row, links.reply_row))
    return (links.receive_row >= 0) & ((links.server <= 0) | (end > begin))


def _matching(trace: Trace, links: Transactions, requested: TransactionFilter) -> NDArray[np.bool_]:
    passes = np.ones(len(links), np.bool_)
    if requested.client.strip():
        passes &= _are_of(trace, requested.client, links.client, links.client_pid)
    if requested.server.strip():
        passes &= _are_of(trace, requested.server, links.server, links.server_pid)
    if requested.message_type is not None:
        passes &= links.message_type == requested.message_type
    if requested.window is not None:
        part = trace.rows_between(requested.window)
        passes &= (links.send_row >= part.start) & (links.send_row < part.stop)
    return passes


def _are_of(trace: Trace, name: str, thread: _Ints, pid: _Ints) -> NDArray[np.bool_]:
    """Return whether each thread matches a name, bool (n,); for unknown threads, whether the process in `pid` does."""
    of_process = np.isin(pid, processes_named(trace, name)) & (pid > 0)
    return np.where(thread > 0, are_named(trace, name, thread), of_process)


def _blocked(trace: Trace) -> Mapping[str, _Ints]:
    """Return for each transaction the client's cycles in SEND and REPLY, and the bytes of the message, by column."""
    sent = sent_messages(scope_of(trace, None, None, Basis(trace), None))
    rows = np.searchsorted(sent.row, transactions(trace).send_row)
    return {"send": sent.send_blocked_cycles[rows], "reply": sent.reply_blocked_cycles[rows],
            "size": sent.size_bytes[rows]}  # fmt: skip


def _legs(trace: Trace) -> dict[str, tuple[_Ints, NDArray[np.uint8]]]:
    """Return by leg (section of a transaction) the cycles of all transactions, -1 = none, and their `Known`.

    A leg that is not over when the trace or its client ends is counted up to that time, as a lower bound; it is unknown
    if events are missing until then. A leg that had not begun when the transaction ended is absent.
    """
    links = transactions(trace)
    fate, end_cycles = _fates(trace, links)
    of_link = known_by_certainty(links.certainty)

    def leg(cycles: _Ints, begin: _Ints, end: _Ints, is_past: NDArray[np.bool_]) -> tuple[_Ints, NDArray[np.uint8]]:
        out, known = cycles.copy(), np.where(cycles >= 0, of_link, Known.EXACT).astype(np.uint8)
        is_open = (cycles < 0) & (begin >= 0) & (end < 0) & ~is_past & (fate == _OPEN)
        out[is_open] = end_cycles[is_open] - trace.events.time_cycles[begin[is_open]]
        known[is_open] = Known.AT_LEAST
        known[(cycles < 0) & ~is_past & ((fate == _UNDECIDED) | ((begin >= 0) & (end >= 0)))] = Known.UNKNOWN
        return out, known

    is_over = links.over_row >= 0
    never = np.zeros(len(links), np.bool_)
    return {
        "queued": leg(links.queued_cycles, links.send_row, links.receive_row, is_over & (links.receive_row < 0)),
        "service": leg(links.service_cycles, links.receive_row, links.reply_row, is_over & (links.reply_row < 0)),
        "reply": leg(links.reply_cycles, links.reply_row, links.done_row, is_over & (links.reply_row < 0)),
        "round_trip": leg(links.round_trip_cycles, links.send_row, links.done_row, never),
    }


def _fates(trace: Trace, links: Transactions) -> tuple[NDArray[np.uint8], _Ints]:
    """Return whether each client waits until the trace or its thread ends (`_OVER`, `_OPEN`, ...), and that end."""
    events, states = trace.events, trace.states
    fate = np.full(len(links), _OVER, np.uint8)
    end_cycles = ends_of_files(trace, links.send_row)
    rows = np.flatnonzero(links.done_row < 0)
    if not len(rows):
        return fate, end_cycles
    fate[rows] = _UNDECIDED
    rows = rows[links.client[rows] > 0]
    rows = rows[states.start[links.client[rows] + 1] > states.start[links.client[rows]]]
    sends, client = links.send_row[rows], links.client[rows]
    changes = first_that_fits(trace, state_positions(trace, sends, client), client, _IS_STATE)
    last = states.start[client + 1].astype(np.int64) - 1
    last_row = states.event[last].astype(np.int64)
    is_dead = (last_row > sends) & _IS_END[state_values(trace)[last]]
    end_cycles[rows[is_dead]] = events.time_cycles[last_row[is_dead]]
    is_clear = is_whole(trace, sends, np.where(is_dead, last_row, last_rows(trace, sends)))
    is_free = (links.blocked_row[rows] < 0) & (changes >= 0)  # the next state is no wait: the send did not block
    fate[rows[is_clear]] = np.where(is_free[is_clear], _OVER, _OPEN)
    return fate, end_cycles


def _outcomes(links: Transactions) -> Texts:
    """Return for each transaction the last step that the trace shows, as text."""
    code = np.where(links.receive_row >= 0, 2, 1)
    code[links.reply_row >= 0] = 3
    is_done = links.done_row >= 0
    code[is_done] = np.where(links.reply_row[is_done] >= 0, 5, 4)
    return Texts(code.astype(np.uint8), _OUTCOMES)


def _parent_events(links: Transactions) -> _Ints:
    out = np.full(len(links), -1, np.int64)
    is_nested = links.parent >= 0
    out[is_nested] = links.send_row[links.parent[is_nested]]
    return out


def _client_name(trace: Trace, links: Transactions, position: int) -> str:
    """Return the name of a message's sender: the thread, or else the process that the reply names."""
    if links.client[position] > 0:
        return trace.thread_name(int(links.client[position]))
    pid = int(links.client_pid[position])
    return trace.name_of_pid(pid) if pid > 0 else "unknown"


def _how_clients_are_known(links: Transactions) -> NDArray[np.uint8]:
    """Return the `Known` of each client: inferred if only the reply, found by its rcvid, names its process."""
    return known_where((links.client < 0) & (links.client_pid > 0), Known.INFERRED)


def _server_name(trace: Trace, links: Transactions, position: int) -> str:
    """Return the name of a message's receiver: the thread, or else the process to which it was sent."""
    if links.server[position] > 0:
        return trace.thread_name(int(links.server[position]))
    pid = int(links.server_pid[position])
    if pid == _OFF_NODE:
        return "another node"
    if pid == _FAILED:
        return "nobody: the send failed"
    return trace.name_of_pid(pid)
