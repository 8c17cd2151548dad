"""Verdicts on servers: messages that queue for longer than they are worked on."""

from __future__ import annotations

import numpy as np

from satview.analysis.verdicts.evidence import Evidence, covered, episodes, groups
from satview.analysis.verdicts.verdict import Severity, Verdict, VerdictKind
from satview.linkage.transactions import transactions


def saturations(evidence: Evidence) -> list[Verdict]:
    """Return servers whose messages queue for as long as they are served, or longer, much of the time.

    Only messages count of which the trace has send, receipt and reply.
    """
    trace, kind = evidence.trace, VerdictKind.SERVER_SATURATION
    sent = transactions(trace)
    window = evidence.cycles(kind, "window_ms")
    least = int(window * evidence.number(kind, "queued_percent") / 100)
    least_count = evidence.number(kind, "least_count")
    queued, service = sent.queued_cycles, sent.service_cycles
    at = np.flatnonzero((sent.server > 0) & (service >= 0) & (queued >= service)
                        & (queued >= evidence.cycles(kind, "least_us")))  # fmt: skip
    begin, end = evidence.times[sent.send_row[at]], evidence.times[sent.receive_row[at]]
    verdicts = []
    for pid, mine in groups(trace.threads.pid[sent.server[at]]):
        first, last = begin[mine], end[mine]
        if len(mine) < least_count or int((last - first).sum()) < least:
            continue
        begins, waited = covered(first, last, window)
        count = np.searchsorted(np.sort(first), begins + window) - np.searchsorted(np.sort(last), begins, side="right")
        bad = np.flatnonzero((waited >= least) & (count >= least_count))
        if not len(bad):
            continue
        worst = int(bad[np.argmax(waited[bad])])
        places = episodes(begins[bad], window)
        which = int(np.searchsorted(places.start, begins[worst], side="right")) - 1
        span = max(int(places.start[which]), trace.window.start), min(int(places.end[which]), trace.window.end)
        inside = at[mine[(first < begins[worst] + window) & (last > begins[worst])]]
        servers, clients = np.unique(sent.server[inside]), np.unique(sent.client[inside])
        clients = clients[clients > 0]
        name = evidence.process_of(pid)
        needed = evidence.length(int(np.median(service[inside])))
        total, moment = evidence.length(int(waited[worst])), evidence.moment(int(begins[worst]))
        by = f"{len(servers)} threads" if len(servers) > 1 else evidence.name(int(servers[0]))
        verdicts.append(evidence.verdict(
            kind, Severity.WARNING, span, [*clients.tolist(), *servers.tolist()], [f"server {name}"],
            [*sent.send_row[inside].tolist(), *sent.receive_row[inside].tolist()],
            (f"{int(count[worst])} messages of {len(clients)} clients queue for {name} within "
             f"{evidence.length(window)} from {moment}, {total} in all and each longer "
             f"than the {needed} or so that {by} then needs for it.",
             "Give the server more threads, or let it keep messages and reply later instead of waiting itself."),
            int(sent.certainty[inside].min()),
        ))  # fmt: skip
    return verdicts
