"""Verdicts on the system: floods of interrupts, calls that are restarted repeatedly, leaks, lost data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.needs import CALLS, INTERRUPTS
from satview.analysis.verdicts.evidence import Evidence, counts_within, episode_of, full_windows, groups, named
from satview.analysis.verdicts.rule import Limits, verdict_rule
from satview.analysis.verdicts.verdict import Severity, Verdict
from satview.base.safe_text import counted
from satview.core import links
from satview.events import wire
from satview.events.spec import Release
from satview.events.variants import FAILURES
from satview.linkage.actors import interrupt_numbers, interrupt_rows
from satview.linkage.calls import ends_of_interrupts, exits_of
from satview.linkage.mutexes import entries_of
from satview.linkage.rows import rows_where
from satview.linkage.table import NO_EVENT, Certainty
from satview.linkage.wake_ups import wake_ups
from satview.linkage.whole import is_whole
from satview.store.arguments import variants_of
from satview.store.losses import EVERY_CPU, losses
from satview.store.tables import UNKNOWN_THREAD
from satview.store.time_ranges import TimeRanges
from satview.store.trace import Trace

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
        "least_count": (300, "interrupts within the window, where the trace has no ends of them: 15,000 a second"),
    },
    proof="Up to QNX 7.x entries and exits (class INT) show how long interrupts are handled; from 8.0 on threads "
    "handle them, which the class THREAD shows.",
)
def floods(evidence: Evidence, limits: Limits) -> list[Verdict]:
    """Return interrupts that take much of a CPU, or come too often if the trace does not show how long they take."""
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
    """When interrupts are handled; every column has shape (n,).

    Attributes:
        came: int64, cycles; when the interrupt came.
        start, end: int64, cycles.
        thread: int64, the thread that is interrupted, or the thread that handles the interrupt.
        is_stolen: True if `thread` is interrupted; False if it handles the interrupt.
    """

    came: _Ints
    start: _Ints
    end: _Ints
    thread: _Ints
    is_stolen: bool


def _handled(
    evidence: Evidence, rows: NDArray[np.uint32], ends: NDArray[np.uint32], woken_by: _Ints | None
) -> _Handled | None:
    """Return when the interrupts of one number and CPU are handled; None if the trace does not show it.

    Up to 7.x that is from entry to exit. From 8.0 on, the thread that the interrupt or its pulse wakes handles it,
    while it runs and until something else wakes it.

    Args:
        evidence: The trace.
        rows: The interrupts.
        ends: uint32, the event that ends each of them, `NO_EVENT` for none.
        woken_by: The event that woke the thread of each slice (`_causes_of_slices`); None before 8.0.
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
    """Return threads whose kernel calls of one kind are repeatedly interrupted, or repeated without an exit."""
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
    """Return the codes of class KER_CALL that the trace has."""
    logged = np.flatnonzero(trace.code_counts)
    return np.asarray(logged[logged >> wire.CLASS_SHIFT == wire.WireClass.KER_CALL])


def _calls_often_without_exit(trace: Trace, least: float) -> NDArray[np.uint32]:
    """Return the entries of calls without an exit, of threads that have at least a given number of them.

    Args:
        trace: The events.
        least: The number; a few calls without exit are usual.

    Returns:
        uint32 (n,), ascending.
    """
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
    """Return the next kernel call event of the thread of each call, uint32 (n,); `NO_EVENT` for none.

    Args:
        trace: The events.
        calls: uint32 (n,), ascending.
    """
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
    """Return processes that create channels or connections one after the other and never release one.

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
    """Return the longest run of creations of one process without a release or missing events in between.

    A run of one event may be a release.
    """
    goes_on = is_made[1:] & is_made[:-1] & is_whole(evidence.trace, rows[:-1], rows[1:])
    return max(np.split(rows, np.flatnonzero(~goes_on) + 1), key=len)


def _succeeded(evidence: Evidence, entries: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the calls that returned without an error."""
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

    A late begin on some CPU, as in a ring, or an early end is no loss.
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
    )]  # fmt: skip
