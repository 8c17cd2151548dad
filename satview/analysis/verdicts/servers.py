"""Verdicts on servers: messages that queue for longer than they are served, and pulses that pile up."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.needs import MESSAGES, NO_DAMAGE, NO_LOSS, PULSES, STATES
from satview.analysis.verdicts.evidence import Evidence, episode_of, episodes, full_windows, groups, longest
from satview.analysis.verdicts.rule import Limits, verdict_rule
from satview.analysis.verdicts.verdict import Severity, Verdict
from satview.events.states import STATE_BY_VALUE
from satview.linkage import messages
from satview.linkage.blockers import SEND, blockers
from satview.linkage.pulses import RECEIPT, SENDS
from satview.linkage.rows import comm_words, rows_of_codes
from satview.linkage.transactions import BLOCKED, client_states, queued_and_service, served_messages
from satview.linkage.wake_ups import last_sends
from satview.store.losses import losses

_MOST_STATES: Final = 4  # states of a server in a sentence
_STILL_GROWS: Final = 0.75  # a queue with this share of its greatest length still grows


@verdict_rule(
    "server-saturation",
    meaning="Messages wait longer for their server than it works on them.",
    question="Do messages wait longer than they are served?",
    needs=(MESSAGES,),
    bounds=(STATES, NO_DAMAGE, NO_LOSS),
    thresholds={
        "window_ms": (100, "the length of the window"),
        "queued_percent": (100, "of the window; the times of all messages in the queue are added up"),
        "least_count": (8, "messages that queued at least as long as they were served"),
        "least_us": (200, "time in the queue of a message that counts"),
        "passed_ms": (100, "time in the queue of one message while later ones are received: it is reported alone"),
    },
    proof="A capture of the class COMM from before the first of these messages has the receipt of each.",
)
def saturations(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return servers whose messages queue at least as long as they are served, much of the time.

    Only messages with send, receipt and reply in the trace count. A message that waits for long while the server
    receives others, of higher priority, is reported even if it is never received.
    """
    return [*_queues(evidence, limits), *_passed_over(evidence, limits)]


def _passed_over(evidence: Evidence, limits: Limits) -> list[Verdict]:
    trace, blocked_by = evidence.trace, blockers(evidence.trace)
    waiting = blocked_by.waits
    candidates = np.flatnonzero((waiting.value == SEND) & (blocked_by.pid > 0))
    end = evidence.end_rows(waiting.end_row[candidates])
    is_long = evidence.lengths(waiting.row[candidates], end) >= limits.cycles("passed_ms")
    candidates, end = candidates[is_long], end[is_long]
    receipts = rows_of_codes(trace, messages.RECEIPT)
    receiver = trace.threads.pid[trace.events.thread[receipts]]
    own = messages.messages(trace).ends_of(
        last_sends(trace, waiting.thread[candidates].astype(np.int64), waiting.row[candidates])
    )
    is_received = (own > waiting.row[candidates]) & (own < end)  # the receipt that ends its own wait in SEND
    verdicts = []
    for (thread, pid), members in groups(waiting.thread[candidates], blocked_by.pid[candidates]):
        waits = candidates[members].tolist()
        rows = receipts[receiver == pid]
        begin, before = np.searchsorted(rows, waiting.row[waits]), np.searchsorted(rows, end[members])
        others = before - begin - is_received[members]
        bad = np.flatnonzero(others > 1).tolist()
        if not bad:
            continue
        occurrences = [evidence.span_of_wait(waiting, waits[i]) for i in bad]
        which = longest(occurrences)
        start, stop, row = occurrences[which]
        name, count = evidence.process_of(pid), others[bad[which]]
        servers = np.unique(trace.events.thread[rows[begin[bad[which]] : before[bad[which]]]])
        again = evidence.again(occurrences, start)
        verdicts.append(evidence.verdict(
            Severity.WARNING, (start, stop), [thread, *servers.tolist()], [f"server {name}"], [row],
            (f"{evidence.name(thread)} waits {evidence.length_from(start, stop)} for {name} "
             f"to receive its message, while {name} receives {count:,} others{again}.",
             "Messages are received by priority: give the server time for all of them, or the client a higher one."),
            occurrences=occurrences, roles={row: "queues"},
        ))  # fmt: skip
    return verdicts


def _queues(evidence: Evidence, limits: Limits) -> list[Verdict]:
    trace = evidence.trace
    sent = served_messages(trace)
    window = limits.cycles("window_ms")
    least = int(window * limits.number("queued_percent") / 100)
    least_count = limits.number("least_count")
    queued, service = queued_and_service(trace, sent)
    queueing = np.flatnonzero((sent.server > 0) & (service >= 0) & (queued >= service)
                        & (queued >= limits.cycles("least_us")))  # fmt: skip
    begin, end = evidence.times[sent.send_row[queueing]], evidence.times[sent.receive_row[queueing]]
    verdicts = []
    for (pid,), members in groups(trace.threads.pid[sent.server[queueing]]):
        sent_at, received_at = begin[members], end[members]
        if len(members) < least_count:
            continue
        begins, waited = full_windows(sent_at, received_at, window, least)
        count = np.searchsorted(np.sort(sent_at), begins + window) - np.searchsorted(
            np.sort(received_at), begins, side="right"
        )
        bad = np.flatnonzero(count >= least_count)
        if not len(bad):
            continue
        worst = int(bad[np.argmax(waited[bad])])
        positions = episodes(begins[bad], window)
        which = episode_of(positions, begins[worst])
        start, stop = int(positions.start[which]), int(positions.end[which])
        inside = queueing[members[(sent_at < begins[worst] + window) & (received_at > begins[worst])]]
        sends = sent.send_row[inside].astype(np.uint32)
        servers, clients = np.unique(sent.server[inside]), np.unique(trace.events.thread[sends]).astype(np.int64)
        clients = clients[clients > 0]
        name = evidence.process_of(pid)
        queues, needed = (evidence.length(int(np.median(cycles[inside]))) for cycles in (queued, service))
        since, moment = max(start, int(sent_at[received_at > start].min())), evidence.moment(int(begins[worst]), window)
        by = f"its {len(servers)} threads are in" if len(servers) > 1 else f"{evidence.name(int(servers[0]))} is in"
        does = _does(evidence, servers, (int(begins[worst]), int(begins[worst]) + window))
        meanwhile = f"; meanwhile {by} {does}" if does else ""
        # A client waits from its change of state on, which follows the send and may be unknown (-1).
        waits = np.maximum(client_states(trace, sends, BLOCKED)[0], sends).tolist()
        receipts = sent.receive_row[inside].tolist()
        verdicts.append(evidence.verdict(
            Severity.WARNING, (since, stop), [*clients.tolist(), *servers.tolist()], [f"server {name}"],
            [*waits, *receipts],
            (f"Since {evidence.moment(since, window)} messages queue for {name} longer than they are served, most of "
             f"all in the {evidence.length(window)} from {moment}: {int(count[worst])} messages of {len(clients)} "
             f"clients, "
             f"of which one queues {queues} and is served in {needed} (medians){meanwhile}.",
             f"{_no_sleep(does)}Give the server more threads, or let it keep messages and reply later instead of "
             "waiting itself."),
            int(sent.certainty[inside].min()),
            [(max(int(start), since if i == which else 0), int(end), -1)
             for i, (start, end) in enumerate(zip(positions.start, positions.end, strict=True))],
            {**dict.fromkeys(waits, "queues"), **dict.fromkeys(receipts, "received")},
        ))  # fmt: skip
    return verdicts


def _no_sleep(does: str) -> str:
    """Return the advice for a server that sleeps most of the time while clients wait; else an empty text."""
    return "Do not sleep while a client waits for the reply. " if does.startswith("NANOSLEEP") else ""


def _does(evidence: Evidence, servers: NDArray[np.int64], span: tuple[int, int]) -> str:
    """Return a text on the states of threads in a span of time with their shares, the largest first."""
    states = evidence.states.taken(np.flatnonzero(np.isin(evidence.states.thread, servers)))
    start, end = evidence.times[states.row], evidence.times[states.end_row]
    part = np.maximum(np.minimum(end, span[1]) - np.maximum(start, span[0]), 0)
    cycles = np.bincount(states.value, part)
    whole = cycles.sum()
    order = [value for value in np.argsort(-cycles, kind="stable").tolist() if cycles[value] >= whole / 100 > 0]
    return ", ".join(
        f"{STATE_BY_VALUE[value].name} {100 * cycles[value] / whole:.0f} %" for value in order[:_MOST_STATES]
    )


@verdict_rule(
    "growing-queue",
    meaning="Pulses are sent faster than they are received, up to the end of the trace.",
    question="Do pulses pile up?",
    needs=(PULSES,),
    thresholds={
        "least_count": (16, "pulses of one connection that wait when the trace ends"),
        "least_ms": (100, "since the queue was last empty"),
    },
    proof="A longer capture shows whether anybody receives what waits.",
)
def growing_queues(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return connections whose pulses wait in a queue that has grown since it was last empty.

    The number of waiting pulses is exact: pulses sent minus pulses received since the last loss. Queues that were
    longer before and are being worked off are left out.
    """
    trace = evidence.trace
    rows = rows_of_codes(trace, *SENDS, RECEIPT)
    lost = losses(trace)
    rows = rows[evidence.times[rows] >= (int(lost[:, 1].max()) if len(lost) else trace.window.start)]
    number, pid = comm_words(trace, rows)
    is_sent = trace.events.code[rows] != RECEIPT
    verdicts = []
    for (to, _), members in groups(pid.astype(np.int32), number):
        depth = np.cumsum(np.where(is_sent[members], 1, -1))
        depth -= min(0, int(depth.min()))  # pulses that waited before the trace, or since before the loss
        waiting = int(depth[-1])
        empty = np.flatnonzero(depth == 0)
        since = int(empty[-1]) + 1 if len(empty) else 0
        if waiting < limits.number("least_count") or waiting < _STILL_GROWS * int(depth.max()):
            continue
        start, end = int(evidence.times[rows[members[since]]]), trace.window.end
        if end - start < limits.cycles("least_ms"):
            continue
        inside = members[since:]
        sent, received = rows[inside[is_sent[inside]]], rows[inside[~is_sent[inside]]]
        last = rows[members[~is_sent[members]]][-1:]
        receivers = np.unique(trace.events.thread[received if len(received) else last].astype(np.int64))
        senders = [int(row) for row in np.unique(trace.events.thread[sent]) if row and not evidence.is_idle[row]]
        oldest = sent[-waiting:]
        length = int(evidence.times[sent[-1]] - evidence.times[sent[0]])
        every = f"one every {evidence.length(length // (len(sent) - 1))}, " if len(sent) > 1 else ""
        does = f"only {len(received):,} are received" if len(received) else "none is received"
        if len(last) and not len(received):
            does += (f" ({evidence.name(int(receivers[0]))} received the last one before that, at "
                     f"{evidence.moment(int(evidence.times[last[0]]), end - start)})")  # fmt: skip
        verdicts.append(evidence.verdict(
            Severity.WARNING if len(received) else Severity.ERROR, (start, end), [*receivers.tolist(), *senders],
            [f"pulses to {evidence.process_of(to)}"], [*last.tolist(), *oldest.tolist()],
            (f"{len(sent):,} pulses are sent to {evidence.process_of(to)} from {evidence.moment(start, end - start)} "
             f"to the end of the trace, {evidence.length(end - start)}, {every}and {does}: {waiting:,} wait at the "
             f"end, the oldest for {evidence.length(end - int(evidence.times[oldest[0]]))}.",
             "Receive all pulses that wait before the work, and do it once for all of them; or send fewer."
             if len(received) else "Let a thread receive there again: none does while pulses are sent."),
            roles={**dict.fromkeys(oldest.tolist(), "waits"), **dict.fromkeys(last.tolist(), "last receipt")},
        ))  # fmt: skip
    return verdicts
