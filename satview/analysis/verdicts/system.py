"""Verdicts on servers and on the system: queued messages, floods of interrupts, restarted calls, leaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.needs import CALLS, INTERRUPTS, MESSAGES, NO_DAMAGE, NO_LOSS, PULSES, STATES
from satview.analysis.verdicts.evidence import (
    Evidence,
    Severity,
    Verdict,
    counts_within,
    episode_of,
    episodes,
    full_windows,
    groups,
    longest,
    named,
)
from satview.analysis.verdicts.rule import Limits, verdict_rule
from satview.base.safe_text import counted
from satview.core import links
from satview.events import wire
from satview.events.spec import Release
from satview.events.states import STATE_BY_VALUE
from satview.events.variants import FAILURES
from satview.linkage import messages
from satview.linkage.blockers import SEND, blockers
from satview.linkage.calls import ends_of_interrupts, exits_of, interrupt_numbers, interrupt_rows
from satview.linkage.links import NO_EVENT, Certainty, comm_words, is_whole, rows_of_codes, rows_where
from satview.linkage.messages import PULSE_RECEIPT, SENDS
from satview.linkage.transactions import BLOCKED, client_states, queued_and_service, served_messages
from satview.linkage.waits import entries_of
from satview.linkage.wake_ups import last_sends, wake_ups
from satview.store.arguments import variants_of
from satview.store.tables import UNKNOWN_THREAD
from satview.store.time_ranges import EVERY_CPU, TimeRanges, losses
from satview.store.trace import Trace

# Verdicts on the system: floods of interrupts, calls that are restarted repeatedly, leaks, lost data.


_IS_KERNEL_CALL: Final = np.arange(wire.CODE_COUNT) >> wire.CLASS_SHIFT == wire.WireClass.KER_CALL
_IS_ENTRY: Final = np.arange(wire.CODE_COUNT) & wire.KER_FORM == 0
_CALLS: Final = 128  # numbers of kernel calls
_CALLS_AT_ONCE: Final = 1 << 20  # events of kernel calls that are processed together
_EVENTS_AT_ONCE: Final = 1 << 22  # events that are searched for kernel calls together
_PAUSES: Final = 8  # usual pauses without a creation, after which a process has created all that it needs
_PULSE_ROWS: Final = 2  # events from a delivered interrupt to the pulse that it sends
_LEAST_CALLS: Final = 4  # kinds of kernel calls in a trace that is taken to have all kinds
_LEAKS: Final = (("channels", "CHANNEL_CREATE", "CHANNEL_DESTROY"), ("connections", "CONNECT_ATTACH", "CONNECT_DETACH"))
_Ints = NDArray[np.int64]


@verdict_rule(
    "interrupt-flood",
    meaning="One interrupt takes much of a CPU.",
    question="Does an interrupt take too much of a CPU?",
    needs=(INTERRUPTS,),
    thresholds={
        "window_ms": (20, "the length of the window"),
        "taken_percent": (25, "of the window on one CPU, by interrupts of one number with all their handlers"),
        "serious_percent": (50, "of the window: from that share on it is an error"),
        "least_count": (300, "interrupts within the window, where the trace does not show their ends: 15,000 a second"),
    },
    proof="Up to QNX 7.x entries and exits (class INT) show how long interrupts are handled; from 8.0 on threads "
    "handle them, which the class THREAD shows.",
)
def floods(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return verdicts on interrupts that take much of a CPU, or come too often where their durations are not known."""
    trace = evidence.trace
    if trace.pairs is not None:
        return []
    rows = interrupt_rows(trace)
    ends_of_all = ends_of_interrupts(trace, rows)
    window = limits.cycles("window_ms")
    woken_by = _causes_of_slices(evidence) if trace.release is Release.QNX_8 and evidence.has_states else None
    verdicts = []
    for (cpu, number), members in groups(trace.events.cpu[rows], interrupt_numbers(trace)):
        times = evidence.times[rows[members]]
        handled = _handled(evidence, rows[members], ends_of_all[members], woken_by)
        if handled is not None:
            least = window * limits.number("taken_percent") / 100
            begins, weight = full_windows(handled.start, handled.end, window, least)
        else:
            weight = counts_within(times, window)
            is_often = weight >= limits.number("least_count")
            begins, weight = times[is_often], weight[is_often]
        if not len(begins):
            continue
        worst, starts, ends = int(np.argmax(weight)), begins, begins + window
        if handled is not None:
            # Only windows at both ends of an interrupt longer than a window are listed: add its whole time.
            is_long = handled.end - handled.start > window
            starts, ends = np.append(starts, handled.start[is_long]), np.append(ends, handled.end[is_long])
        positions = TimeRanges.of(starts, ends)
        which = episode_of(positions, begins[worst])
        starts, came = positions.start, int(positions.start[which])
        if handled is not None:  # a window may begin before its first interrupt
            leading = np.searchsorted(handled.end, starts)
            starts, came = np.maximum(starts, handled.start[leading]), int(handled.came[leading[which]])
        span = int(starts[which]), min(int(positions.end[which]), trace.window.end)
        inside = rows[members[(times >= came) & (times < span[1])]]
        cpu_title = trace.cpu_title(cpu)
        occurrences = [(int(begin), int(end), -1) for begin, end in zip(starts, positions.end, strict=True)]
        again = f", and so {counted(len(occurrences) - 1, 'more time')}" if len(occurrences) > 1 else ""
        every = f", one every {evidence.length((span[1] - span[0]) // len(inside))}" if len(inside) > 1 else ""
        text = (f"Interrupt 0x{number:x} comes {counted(len(inside), 'time')} on {cpu_title} within "
                f"{evidence.length_from(*span)}{every}")  # fmt: skip
        threads: list[int] = []
        severity = Severity.WARNING
        if handled is not None:
            if weight[worst] * 100 >= window * limits.number("serious_percent"):
                severity = Severity.ERROR
            part = (np.minimum(handled.end, span[1]) - np.maximum(handled.start, span[0])).clip(0)
            most = evidence.most_of(handled.thread, part)
            threads = named(most)
            link = "it takes that time from" if handled.is_stolen else "it is handled by"
            text += (f", and takes {100 * part.sum() / (span[1] - span[0]):.0f} % of the CPU"
                     f"{f'; {link} {evidence.shares(most)}' if most else ''}{again}.")  # fmt: skip
        else:
            text += f"{again}; how long it is handled is not logged."
        verdicts.append(evidence.verdict(
            severity, span, threads, [f"interrupt 0x{number:x}", cpu_title], inside,
            (text, "Let the device collect events before it interrupts, do less in the handler, or mask the interrupt "
             "and poll while there is much to do."),
            Certainty.GUESS if handled is None else Certainty.EXACT if handled.is_stolen else Certainty.INFERRED,
            occurrences,
        ))  # fmt: skip
    return verdicts


@dataclass(frozen=True, slots=True)
class _Handled:
    """Periods in which interrupts are handled; every column has shape (n,)."""

    came: _Ints  # when the interrupt came, cycles
    start: _Ints
    end: _Ints
    thread: _Ints  # the thread that is interrupted, or the thread that handles the interrupt
    is_stolen: bool  # whether `thread` is interrupted, not the one that handles it


def _handled(
    evidence: Evidence, rows: NDArray[np.uint32], ends: NDArray[np.uint32], woken_by: _Ints | None
) -> _Handled | None:
    """Return the periods in which interrupts of one number and CPU are handled; None if that is not shown.

    Up to 7.x that is from entry to exit. From 8.0 on, the thread that the interrupt or its pulse wakes handles it,
    while it runs and until something else wakes it; `woken_by` has the event that woke the thread of each slice.
    """
    trace = evidence.trace
    if (is_timed := ends != NO_EVENT).any():
        start, thread = evidence.times[rows[is_timed]], trace.events.thread[rows[is_timed]].astype(np.int64)
        return _Handled(start, start, evidence.times[ends[is_timed]], thread, True)
    if woken_by is None:
        return None
    before = np.searchsorted(rows, woken_by, side="right") - 1
    is_ours = (before >= 0) & (woken_by - rows[before].astype(np.int64) <= _PULSE_ROWS)  # -1 = no interrupt before
    is_ours &= trace.events.cpu[woken_by] == trace.events.cpu[rows[0]]
    ours = np.flatnonzero(is_ours)
    slices, ends_of_slices = evidence.slices
    runner = trace.events.thread[slices[ours]].astype(np.int64)
    came = evidence.times[rows[before[ours]]]
    return _Handled(came, evidence.times[slices[ours]], ends_of_slices[ours], runner, False) if len(ours) else None


def _causes_of_slices(evidence: Evidence) -> _Ints:
    """Return the event that last woke the thread of each of `Evidence.slices`, int64 (n,); -1 = none is known."""
    thread, woken = evidence.trace.events.thread, wake_ups(evidence.trace)
    by = thread[woken.to_row].astype(np.int64)
    order = np.lexsort((woken.to_row, by))
    rows, size = evidence.slices[0], len(evidence.times)
    runner = thread[rows].astype(np.int64)
    last = np.searchsorted(by[order] * size + woken.to_row[order], runner * size + rows, side="right") - 1
    known = np.flatnonzero(last >= 0)
    known = known[by[order[last[known]]] == runner[known]]
    out = np.full(len(rows), -1, np.int64)
    out[known] = woken.from_row[order[last[known]]]
    return out


@verdict_rule(
    "restarted-calls",
    meaning="Kernel calls of a thread are interrupted again and again.",
    question="Are kernel calls interrupted again and again?",
    needs=(CALLS,),
    thresholds={
        "window_ms": (200, "the length of the window"),
        "least_count": (10, "calls of one kind by one thread that a signal interrupted"),
    },
)
def restarted_calls(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return verdicts on threads whose kernel calls of one kind are repeatedly interrupted or lack an exit."""
    trace = evidence.trace
    if trace.pairs is not None:
        return []
    window, least = limits.cycles("window_ms"), limits.number("least_count")
    calls = _calls_often_without_exit(trace, least)
    following = _next_calls(trace, calls)
    calls, following = calls[following != NO_EVENT], following[following != NO_EVENT]
    is_same = (trace.events.code[calls] ^ trace.events.code[following]) & (_CALLS - 1) == 0
    calls, following = calls[is_same], following[is_same]
    number, form = trace.events.code[calls] & (_CALLS - 1), trace.events.code[following] & wire.KER_FORM
    # A call counts as one without an exit only if the trace has exits of such calls.
    logged = _logged_calls(trace)
    has_exits = np.zeros(_CALLS, np.bool_)
    has_exits[logged[logged & wire.KER_FORM == wire.KER_EXIT_OFFSET] & (_CALLS - 1)] = True
    is_again = (form == wire.KER_INT_OFFSET) | ((form == 0) & has_exits[number])
    is_again &= is_whole(trace, calls, following)
    calls, number = calls[is_again], number[is_again]
    verdicts = []
    for (who, _), members in groups(trace.events.thread[calls], number):
        rows = calls[members]
        times = evidence.times[rows]
        count = counts_within(times, window)
        bad = np.flatnonzero(count >= least)
        if not len(bad):
            continue
        worst = int(bad[np.argmax(count[bad])])
        inside = rows[worst : worst + int(count[worst])]
        call = trace.catalogue.name(int(trace.events.code[rows[0]]))
        verdicts.append(evidence.verdict(
            Severity.WARNING, (int(times[worst]), int(evidence.times[inside[-1]]) + 1), [who], [call], inside,
            (f"{call} of {evidence.name(who)} is interrupted {int(count[worst])} times within "
             f"{evidence.length(window)} from {evidence.moment(int(times[worst]), window)}.",
             "Mask the signal during the call, handle it in a thread of its own, or make timeouts longer."),
        ))  # fmt: skip
    return verdicts


def _logged_calls(trace: Trace) -> NDArray[np.intp]:
    """Return the codes of class KER_CALL that occur in the trace, intp, ascending."""
    logged = np.flatnonzero(trace.code_counts)
    return np.asarray(logged[logged >> wire.CLASS_SHIFT == wire.WireClass.KER_CALL])


def _calls_often_without_exit(trace: Trace, least: float) -> NDArray[np.uint32]:
    """Return the entries of calls without an exit, of threads with at least `least` of them: a few are usual."""
    events, entries = trace.events, rows_where(trace, _IS_KERNEL_CALL & _IS_ENTRY)
    ends = exits_of(trace, entries)
    has_exit = ends != NO_EVENT
    for start in range(0, len(ends), _CALLS_AT_ONCE):
        ended = np.flatnonzero(has_exit[start : start + _CALLS_AT_ONCE]) + start
        has_exit[ended] = events.code[ends[ended]] & wire.KER_FORM == wire.KER_EXIT_OFFSET
    calls = entries[~has_exit]
    thread = events.thread[calls]
    count = np.bincount(thread, minlength=len(trace.threads))
    count[UNKNOWN_THREAD] = 0
    return np.asarray(calls[(count >= least)[thread]])


def _next_calls(trace: Trace, calls: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the next kernel call event of the thread of each call, uint32 (n,); `NO_EVENT` for none."""
    out, events = np.full(len(calls), NO_EVENT, np.uint32), trace.events
    thread = events.thread[calls].astype(np.int64)
    for start in range(0, len(events) if len(calls) else 0, _EVENTS_AT_ONCE):  # in parts, to limit memory
        stop = start + _EVENTS_AT_ONCE
        some = links.rows_with(events.code[start:stop], _IS_KERNEL_CALL) + np.uint32(start)
        open_ones = np.flatnonzero(out[: np.searchsorted(calls, np.uint32(min(stop, len(events))))] == NO_EVENT)
        out[open_ones] = links.next_of_number(some, events.thread[some].astype(np.int64),
                                              calls[open_ones] + np.uint32(1), thread[open_ones],
                                              len(trace.threads))  # fmt: skip
    return out


@verdict_rule(
    "leak",
    meaning="A process creates channels or connections and never gives one back.",
    question="Does a process never give channels or connections back?",
    needs=(CALLS,),
    thresholds={
        "least_count": (24, "channels, or connections, created by one process in a row without giving one back"),
        "spread_ms": (100, "from the first to the last of them: a start-up is shorter"),
    },
)
def leaks(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return verdicts on processes that create channels or connections one after the other and never release one.

    A capture of some kernel calls may lack the releasing calls, so the trace must have several kinds of calls. A
    process that has stopped creating is left out, as it has as many as it needs.
    """
    trace = evidence.trace
    if len(np.unique(_logged_calls(trace) & (_CALLS - 1))) < _LEAST_CALLS:
        return []
    least, spread = int(limits.number("least_count")), limits.cycles("spread_ms")
    verdicts = []
    for what, makes, gives in _LEAKS if trace.pairs is None else ():
        created, given = _succeeded(evidence, entries_of(trace, makes)), entries_of(trace, gives)
        rows = np.concatenate((created, given)).astype(np.int64)
        process = trace.threads.process[trace.events.thread[rows]].astype(np.int64)
        for (who,), members in groups(process):
            order = members[np.argsort(rows[members])]
            run = _longest_run(evidence, rows[order], order < len(created))
            if not who or len(run) < least or int(np.ptp(evidence.times[run])) < spread:
                continue
            pause = trace.window.end - int(evidence.times[run[-1]])
            if pause > _PAUSES * int(np.median(np.diff(evidence.times[run]))):
                continue  # it has stopped creating them
            name = trace.process_name(who)
            span = int(evidence.times[run[0]]), int(evidence.times[run[-1]])
            length = span[1] - span[0]
            verdicts.append(evidence.verdict(
                Severity.WARNING, span, np.unique(trace.events.thread[run]), [f"{what} of {name}"], run,
                (f"{name} creates {len(run)} {what} from {evidence.moment(span[0], length)} to "
                 f"{evidence.moment(span[1], length)}, one every {evidence.length(length // (len(run) - 1))}, and "
                 "gives none of them back.",
                 f"Call {'ChannelDestroy' if makes == 'CHANNEL_CREATE' else 'ConnectDetach'}() when one is not needed "
                 "any more, or reuse one."),
            ))  # fmt: skip
    return verdicts


def _longest_run(evidence: Evidence, rows: _Ints, is_made: NDArray[np.bool_]) -> _Ints:
    """Return the longest sequence of creations with no release or missing events in between; else one release."""
    goes_on = is_made[1:] & is_made[:-1] & is_whole(evidence.trace, rows[:-1], rows[1:])
    return max(np.split(rows, np.flatnonzero(~goes_on) + 1), key=len)


def _succeeded(evidence: Evidence, entries: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return those of some kernel calls, given by their entries, that returned without an error, uint32 (k,)."""
    exits = exits_of(evidence.trace, entries)
    known = np.flatnonzero(exits != NO_EVENT)
    return entries[known[~np.isin(variants_of(evidence.trace, exits[known]), FAILURES)]]


@verdict_rule(
    "data-loss",
    meaning="Events are missing from the trace.",
    question="Are events missing?",
    bounds=(),
)
def data_losses(evidence: Evidence, _limits: Limits) -> list[Verdict]:
    """Return one verdict if events are missing between others.

    A late start on some CPU, as in a ring, or an early end is no loss.
    """
    trace = evidence.trace
    lost = losses(trace)
    lost = lost[(lost[:, 0] >= trace.window.start) & (lost[:, 1] < trace.window.end)]
    if not len(lost):
        return []
    worst = lost[np.argmax(lost[:, 1] - lost[:, 0])]
    cpus = sorted({int(cpu) for cpu in lost[:, 2] if cpu != EVERY_CPU})
    where = " of " + ", ".join(trace.cpu_title(cpu) for cpu in cpus) if cpus else ""
    buffers, dropped = int(trace.buffers.lost_before.sum()), int(trace.code_counts[wire.CONTROL_DROPPED])
    what = ", ".join(counted(count, noun) for count, noun in ((buffers, "buffer"), (dropped, "drop")) if count)
    total = int((lost[:, 1] - lost[:, 0]).sum())
    rows = np.searchsorted(trace.events.time_cycles, lost[:, 1])
    return [evidence.verdict(
        Severity.ERROR, (int(worst[0]), int(worst[1])), [],
        [trace.cpu_title(cpu) for cpu in cpus], rows,
        (f"Events{where} are missing in {counted(len(lost), 'range')}{f' ({what})' if what else ''}, "
         f"{evidence.length(total)} in all; the longest from "
         f"{evidence.moment(int(worst[0]), int(worst[1] - worst[0]))} for {evidence.length(int(worst[1] - worst[0]))}.",
         "Capture fewer classes, in fast mode, or with more and larger buffers."),
        occurrences=[(begin, end, -1) for begin, end in lost[:, :2].tolist()],
    )]  # fmt: skip


# Verdicts on servers: messages that queue for longer than they are served, and pulses that pile up.


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
    """Return verdicts on servers whose messages queue at least as long as they are served, much of the time.

    Only messages with send, receipt and reply in the trace count. A message that waits for long while the server
    receives several others is reported even if it is never received.
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
    """Return the advice not to sleep if `does`, a result of `_does`, begins with NANOSLEEP; else an empty text."""
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
    """Return verdicts on connections whose pulses wait in a queue that has grown since it was last empty.

    The number of waiting pulses is exact: pulses sent minus pulses received since the last loss. Queues that were
    longer before and are being worked off are left out.
    """
    trace = evidence.trace
    rows = rows_of_codes(trace, *SENDS, PULSE_RECEIPT)
    lost = losses(trace)
    rows = rows[evidence.times[rows] >= (int(lost[:, 1].max()) if len(lost) else trace.window.start)]
    number, pid = comm_words(trace, rows)
    is_sent = trace.events.code[rows] != PULSE_RECEIPT
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
