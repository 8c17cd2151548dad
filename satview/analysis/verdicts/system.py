"""Verdicts on the system: interrupts that flood it, calls that come to nothing, leaks, lost data."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.needs import CALLS, INTERRUPTS
from satview.analysis.verdicts.evidence import Evidence, counts_within, episodes, groups
from satview.analysis.verdicts.rule import Limits, verdict_rule
from satview.analysis.verdicts.verdict import Severity, Verdict
from satview.events import wire
from satview.events.variants import FAILURES
from satview.linkage.actors import interrupt_rows
from satview.linkage.calls import partners
from satview.linkage.mutexes import entries_of
from satview.linkage.rows import rows_of_class
from satview.linkage.table import NO_EVENT
from satview.linkage.waits import number_of
from satview.linkage.whole import is_whole
from satview.store.arguments import variants_of
from satview.store.losses import EVERY_CPU, losses

_FORM: Final = wire.KER_EXIT_OFFSET | wire.KER_INT_OFFSET  # of the code of an event of a kernel call; 0 = entry
_CALLS: Final = 128  # numbers of kernel calls
_LEAST_CALLS: Final = 4  # kinds of kernel calls in a trace that is taken to have all kinds
_LEAKS: Final = (("channels", "CHANNEL_CREATE", "CHANNEL_DESTROY"), ("connections", "CONNECT_ATTACH", "CONNECT_DETACH"))
_Ints = NDArray[np.int64]


@verdict_rule(
    "interrupt-flood",
    meaning="One interrupt comes more often than a system can bear.",
    question="Does an interrupt come too often?",
    needs=(INTERRUPTS,),
    thresholds={
        "window_ms": (20, "the length of the window"),
        "least_count": (300, "interrupts of one number on one CPU within the window: 15,000 a second"),
    },
)
def floods(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return interrupts that come at a rate no system can bear."""
    trace = evidence.trace
    if trace.pairs is not None:
        return []
    rows = interrupt_rows(trace)
    window, least = limits.cycles("window_ms"), limits.number("least_count")
    if len(rows) < least:
        return []
    key = trace.events.cpu[rows].astype(np.int64) << 32 | trace.payloads.column(rows, 0)
    verdicts = []
    for source, mine in groups(key):
        times = evidence.times[rows[mine]]
        count = counts_within(times, window)
        bad = np.flatnonzero(count >= least)
        if not len(bad):
            continue
        worst = int(bad[np.argmax(count[bad])])
        positions = episodes(times[bad], window)
        which = int(np.searchsorted(positions.start, times[worst], side="right")) - 1
        span = int(positions.start[which]), min(int(positions.end[which]), trace.window.end)
        inside = rows[mine[(times >= span[0]) & (times < span[1])]]
        handled = partners(trace)[inside]
        has_exit = handled != NO_EVENT
        busy = int(evidence.lengths(inside[has_exit], handled[has_exit]).sum())
        cpu, number = trace.cpu_title(source >> 32), source & 0xFFFFFFFF
        share = f", which takes {100 * busy / (span[1] - span[0]):.0f} % of {cpu}" if busy else ""
        verdicts.append(evidence.verdict(
            Severity.ERROR, span, [], [f"interrupt 0x{number:x}", cpu], inside,
            (f"Interrupt 0x{number:x} comes {len(inside)} times on {cpu} within {evidence.length(span[1] - span[0])} "
             f"from {evidence.moment(span[0])}{share}.",
             "Mask the interrupt until its cause is dealt with, let the device collect events, or poll it."),
            occurrences=[(int(first), int(last), -1)
                         for first, last in zip(positions.start, positions.end, strict=True)],
        ))  # fmt: skip
    return verdicts


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
    """Return threads whose kernel calls of one kind are interrupted, or made again without an end, again and again."""
    trace = evidence.trace
    if trace.pairs is not None:
        return []
    calls = rows_of_class(trace, wire.WireClass.KER_CALL)
    thread = trace.events.thread[calls].astype(np.int64)
    order = np.argsort(thread << 32 | calls)
    calls, thread = calls[order], thread[order]
    form, number = trace.events.code[calls] & _FORM, number_of(trace, calls)
    entered, after = calls[:-1], calls[1:]
    follows = (thread[:-1] == thread[1:]) & (thread[1:] != 0) & (form[:-1] == 0) & (number[:-1] == number[1:])
    # Without exits in the trace calls only seem to have none.
    has_exits = np.zeros(_CALLS, np.bool_)
    has_exits[number[form == wire.KER_EXIT_OFFSET]] = True
    is_repeated = (form[1:] == 0) & has_exits[number[1:]]
    again = np.flatnonzero(follows & ((form[1:] == wire.KER_INT_OFFSET) | is_repeated))
    again = again[is_whole(trace, entered[again], after[again])]
    window, least = limits.cycles("window_ms"), limits.number("least_count")
    verdicts = []
    for source, mine in groups(thread[again] << 8 | number[again]):
        rows = entered[again[mine]]
        times = evidence.times[rows]
        count = counts_within(times, window)
        bad = np.flatnonzero(count >= least)
        if not len(bad):
            continue
        worst = int(bad[np.argmax(count[bad])])
        inside = rows[worst : worst + int(count[worst])]
        who, call = source >> 8, trace.catalogue.name(int(trace.events.code[rows[0]]))
        verdicts.append(evidence.verdict(
            Severity.WARNING, (int(times[worst]), int(evidence.times[inside[-1]]) + 1), [who], [call], inside,
            (f"{call} of {evidence.name(who)} is interrupted {int(count[worst])} times within "
             f"{evidence.length(window)} from {evidence.moment(int(times[worst]))}.",
             "Mask the signal during the call, handle it in a thread of its own, or make timeouts longer."),
        ))  # fmt: skip
    return verdicts


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
    """Return processes that create channels or connections one after the other and never give one back.

    A capture of some kernel calls may leave out those that give back; so it must have several kinds of calls.
    """
    trace = evidence.trace
    calls = rows_of_class(trace, wire.WireClass.KER_CALL)
    if len(np.unique(number_of(trace, calls))) < _LEAST_CALLS:
        return []
    least, spread = int(limits.number("least_count")), limits.cycles("spread_ms")
    verdicts = []
    for what, makes, gives in _LEAKS if trace.pairs is None else ():
        made, given = _succeeded(evidence, entries_of(trace, makes)), entries_of(trace, gives)
        rows = np.concatenate((made, given)).astype(np.int64)
        process = trace.threads.process[trace.events.thread[rows]].astype(np.int64)
        for who, mine in groups(process):
            order = mine[np.argsort(rows[mine])]
            run = _longest_run(evidence, rows[order], order < len(made))
            if not who or len(run) < least or int(np.ptp(evidence.times[run])) < spread:
                continue
            name = trace.process_name(who)
            span = int(evidence.times[run[0]]), int(evidence.times[run[-1]])
            verdicts.append(evidence.verdict(
                Severity.WARNING, span, np.unique(trace.events.thread[run]), [f"{what} of {name}"], run,
                (f"{name} creates {len(run)} {what} from {evidence.moment(span[0])} to {evidence.moment(span[1])} and "
                 "gives none of them back.",
                 f"Call {'ChannelDestroy' if makes == 'CHANNEL_CREATE' else 'ConnectDetach'}() when one is not needed "
                 "any more, or use one again."),
            ))  # fmt: skip
    return verdicts


def _longest_run(evidence: Evidence, rows: _Ints, is_made: NDArray[np.bool_]) -> _Ints:
    """Return the longest run of creations of one process without giving back or missing events in between."""
    breaks = np.append(True, ~(is_made[1:] & is_made[:-1] & is_whole(evidence.trace, rows[:-1], rows[1:])))
    runs = np.split(rows, np.flatnonzero(breaks)[1:])
    longest = max(runs, key=len)
    return longest if is_made[np.searchsorted(rows, longest[0])] else rows[:0]


def _succeeded(evidence: Evidence, entries: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the calls that came back without an error."""
    exits = partners(evidence.trace)[entries]
    known = np.flatnonzero(exits != NO_EVENT)
    return entries[known[~np.isin(variants_of(evidence.trace, exits[known]), FAILURES)]]


@verdict_rule(
    "data-loss",
    meaning="Events are missing from the trace.",
    question="Are events missing?",
    bounds=(),
)
def data_losses(evidence: Evidence, _limits: Limits) -> list[Verdict]:
    """Return one verdict if events are missing between others. That a ring begins late on some CPU is no loss."""
    trace = evidence.trace
    lost = losses(trace)
    lost = lost[lost[:, 0] >= trace.window.start]
    if not len(lost):
        return []
    worst = lost[np.argmax(lost[:, 1] - lost[:, 0])]
    cpus = sorted({int(cpu) for cpu in lost[:, 2] if cpu != EVERY_CPU})
    where = " of " + ", ".join(trace.cpu_title(cpu) for cpu in cpus) if cpus else ""
    buffers, dropped = int(trace.buffers.lost_before.sum()), int(trace.code_counts[wire.CONTROL_DROPPED])
    what = ", ".join(text for text, count in ((f"{buffers} buffers", buffers), (f"{dropped} drops", dropped)) if count)
    total = int((lost[:, 1] - lost[:, 0]).sum())
    rows = np.searchsorted(trace.events.time_cycles, lost[:, 1])
    return [evidence.verdict(
        Severity.ERROR, (int(worst[0]), int(worst[1])), [],
        [trace.cpu_title(cpu) for cpu in cpus], rows,
        (f"Events{where} are missing in {len(lost)} ranges{f' ({what})' if what else ''}, {evidence.length(total)} in "
         f"all; the longest from {evidence.moment(int(worst[0]))} for {evidence.length(int(worst[1] - worst[0]))}.",
         "Capture fewer classes, in fast mode, or with more and larger buffers."),
    )]  # fmt: skip
