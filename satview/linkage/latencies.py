"""Latencies of pulses and interrupts, leg by leg: from the cause to the thread that answers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.events import wire
from satview.events.catalogue import call_numbers
from satview.events.states import STATE_BY_NAME
from satview.linkage import calls, messages
from satview.linkage.calls import partners
from satview.linkage.links import (
    NO_EVENT,
    Certainty,
    LinkKind,
    LinkTable,
    Pairs,
    ReadOnlyColumns,
    cached_links,
    comm_words,
    is_whole,
    last_of_codes,
    no_pairs,
    pairs_of,
    rows_of_codes,
)
from satview.linkage.waits import IS_RUN, first_that_fits, number_of, state_positions, waits
from satview.linkage.wake_ups import wake_ups
from satview.store.arguments import argument
from satview.store.tables import UNKNOWN_THREAD
from satview.store.trace import Trace, cached_with_trace

# Links from kernel calls, timers and interrupts to the pulses, signals, threads and processes that they cause.


_SIGNAL: Final = wire.code(wire.WireClass.COMM, 9)
DEATH_PULSE: Final = wire.code(wire.WireClass.COMM, 6)


@cached_links(LinkKind.DELIVERY)
def deliveries(trace: Trace) -> Pairs:
    """Return the links to pulses and signals from their causes: kernel calls, expiries of timers, and interrupts.

    A link is exact where a kernel call is open on the CPU, or the expiry is the CPU's last event apart from interrupts.
    An interrupt is inferred: the last one since the CPU's last kernel call event or thread switch, with the number that
    pulses of the connection usually follow. Before 6.6, when the kernel logs no expiries, pulses of timers are linked
    to the clock interrupt. Source: building block M6 of the reference.
    """
    rows = rows_of_codes(trace, *(code for code in messages.SENDS if code != DEATH_PULSE), _SIGNAL)
    if not len(rows) or trace.pairs is not None:
        return no_pairs()
    cause, certainty = calls.open_calls(trace, rows), np.full(len(rows), Certainty.EXACT, np.uint8)
    free = np.flatnonzero(cause == NO_EVENT)
    timer = last_of_codes(trace, (calls.TIMER_EVENT,), rows[free])
    known = np.flatnonzero(timer != NO_EVENT)
    known = known[calls.quiet_between(trace, timer[known], rows[free[known]])]
    cause[free[known]] = timer[known]
    free = np.flatnonzero((cause == NO_EVENT) & (trace.events.code[rows] != _SIGNAL))
    scoid, pid = comm_words(trace, rows[free])
    to = pid.astype(np.int64) << 32 | scoid
    # An interrupt sends its pulse before the CPU's next kernel call event or thread switch.
    since = calls.last_switch(trace, rows[free])
    interrupt, _ = calls.last_of_usual(trace, rows[free], to, np.where(since == NO_EVENT, np.uint32(0), since))
    cause[free], certainty[free] = interrupt, Certainty.INFERRED
    return _known(trace, cause, rows, certainty)


@cached_links(LinkKind.CREATION)
def creations(trace: Trace) -> Pairs:
    """Return the links from kernel calls to the threads and processes created in them, without the opening dump.

    A link is exact if a thread of the same process created the thread by THREAD_CREATE. Others are inferred from the
    call that was open on the CPU: the process manager creates processes on behalf of the client whose message it
    serves.
    """
    rows = rows_of_codes(trace, wire.THREAD_CREATE, wire.PROC_CREATE)
    rows = rows[trace.events.time_cycles[rows] > trace.dump_end_cycles]
    if not len(rows) or trace.pairs is not None:
        return no_pairs()
    call = calls.open_calls(trace, rows)
    number, events, process = number_of(trace, call), trace.events, trace.threads.process
    numbers = call_numbers(trace.release)
    call[number == numbers["TRACE_EVENT"]] = NO_EVENT  # the dump of another START
    number[call == NO_EVENT] = -1
    with_call = np.flatnonzero((events.code[rows] == wire.THREAD_CREATE) & (call != NO_EVENT))
    is_own = np.zeros(len(rows), np.bool_)
    by = events.thread[call[with_call]]
    is_own[with_call] = (process[by] == process[events.thread[rows[with_call]]]) & (by != UNKNOWN_THREAD)
    is_own &= number == numbers["THREAD_CREATE"]
    return _known(trace, call, rows, np.where(is_own, np.uint8(Certainty.EXACT), np.uint8(Certainty.INFERRED)))


def _known(
    trace: Trace, cause: NDArray[np.uint32], rows: NDArray[np.uint32], certainty: NDArray[np.uint8],
) -> Pairs:  # fmt: skip
    caused = np.flatnonzero(cause != NO_EVENT)
    caused = caused[is_whole(trace, cause[caused], rows[caused])]
    return pairs_of(cause[caused], rows[caused], certainty[caused])


_Ints = NDArray[np.int64]
_INTR: Final = STATE_BY_NAME["INTR"].value
_MOMENTS: Final = ("cause_row", "handler_row", "handler_exit_row", "pulse_row", "ready_row", "running_row",
                   "received_row")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Latencies(ReadOnlyColumns):
    """Latencies of pulses and of interrupts that end InterruptWait(), in time order; read-only columns of shape (n,).

    A row of an event is -1 where the trace lacks that event, or events before it are missing, or where there can be no
    such event: an interrupt of 8.0 has no handler, the end of InterruptWait() no pulse and no receipt, a pulse that
    finds no waiting thread makes none ready. Each leg begins at the last known event before it, so that legs always add
    up to the total. Source: "Interrupt timing" of the reference.

    Attributes:
        cause_row: int64, entry of the interrupt (8.0: its delivery), expiry of the timer, or entry of the kernel call
            that sends the pulse.
        handler_row: int64, entry of the interrupt handler that returned the event.
        handler_exit_row: int64, exit of that handler.
        pulse_row: int64, SND_PULSE*.
        ready_row: int64, the event by which the waiting thread becomes ready, or runs at once.
        running_row: int64, the first event after that by which the thread runs.
        received_row: int64, REC_PULSE.
        thread: int64, the thread that is made ready or receives; -1 = not known.
        number: int64, number of the interrupt as its entry (8.0: its delivery) shows it; -1 = no interrupt.
        handler_entry_cycles: int64, from the cause to the handler; like every leg -1 where its end is not known.
        handler_cycles: int64, in the handler.
        delivery_cycles: int64, until the pulse is sent.
        ready_cycles: int64, until the thread is ready.
        scheduling_cycles: int64, until the thread runs.
        receipt_cycles: int64, until the thread has received the pulse.
        total_cycles: int64, from the first known event to the last one; -1 where only one is known.
        certainty: uint8, `Certainty` of the least certain link in the row.
    """

    cause_row: _Ints
    handler_row: _Ints
    handler_exit_row: _Ints
    pulse_row: _Ints
    ready_row: _Ints
    running_row: _Ints
    received_row: _Ints
    thread: _Ints
    number: _Ints
    handler_entry_cycles: _Ints
    handler_cycles: _Ints
    delivery_cycles: _Ints
    ready_cycles: _Ints
    scheduling_cycles: _Ints
    receipt_cycles: _Ints
    total_cycles: _Ints
    certainty: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.cause_row)

    @property
    def first_row(self) -> _Ints:
        """Row of the first known event of each latency, int64 (n,): the cause, else the pulse."""
        return np.where(self.cause_row >= 0, self.cause_row, self.pulse_row)

    @property
    def last_row(self) -> _Ints:
        """Row of the last known event of each latency, int64 (n,)."""
        return np.asarray(np.max(np.stack([getattr(self, name) for name in _MOMENTS]), axis=0))


@cached_with_trace("links.latencies")
def latencies(trace: Trace) -> Latencies:
    """Return the latencies of all pulses and interrupts of a trace; computed at the first call and cached with it."""
    columns = _join(_of_pulses(trace), _of_waits(trace))
    columns["running_row"] = _running(trace, columns["ready_row"])
    columns["number"] = _numbers(trace, columns["cause_row"])
    _add_handlers(trace, columns)
    cause_or_pulse = np.where(columns["cause_row"] >= 0, columns["cause_row"], columns["pulse_row"])
    order = np.lexsort((columns["pulse_row"], columns["ready_row"], cause_or_pulse))
    columns = {name: column[order] for name, column in columns.items()}
    legs = _legs(trace, [columns[name] for name in _MOMENTS])
    certainty = columns.pop("certainty").astype(np.uint8)
    return Latencies(**columns, **legs, certainty=certainty)


def _join(*parts: dict[str, _Ints]) -> dict[str, _Ints]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _of_pulses(trace: Trace) -> dict[str, _Ints]:
    """Return columns of `Latencies` for pulses: cause, pulse, wake-up and receipt, int64 (n,) each, by name.

    Death pulses, which the end of a process causes, are left out.
    """
    rows = rows_of_codes(trace, *(code for code in messages.SENDS if code != DEATH_PULSE))
    if trace.pairs is not None:
        rows = rows[:0]
    sure = np.full(len(rows), Certainty.EXACT, np.int64)
    cause = _begin(deliveries(trace), rows, sure)
    table = wake_ups(trace)
    ready = _end(table, rows, sure)
    received = _end(messages.pulses(trace), rows, sure)
    thread = np.full(len(rows), -1, np.int64)
    for moment in (ready, received):
        known = moment >= 0
        thread[known] = trace.events.thread[moment[known]]
    return _columns(cause, rows.astype(np.int64), ready, received, np.where(thread > 0, thread, -1), sure)


def _of_waits(trace: Trace) -> dict[str, _Ints]:
    """Return columns of `Latencies` for each InterruptWait() whose end has a known cause, int64 (n,) each, by name."""
    all_waits = waits(trace)
    wait = np.flatnonzero(all_waits.value == _INTR)
    table = wake_ups(trace)
    link = table.ended_by(all_waits.end_row[wait])
    wait, link = wait[link >= 0], link[link >= 0]
    none = np.full(len(wait), -1, np.int64)
    return _columns(table.from_row[link].astype(np.int64), none, all_waits.end_row[wait].astype(np.int64), none.copy(),
                    all_waits.thread[wait].astype(np.int64), table.certainty[link].astype(np.int64))  # fmt: skip


def _columns(cause: _Ints, pulse: _Ints, ready: _Ints, received: _Ints, thread: _Ints, sure: _Ints) -> dict[str, _Ints]:
    return {"cause_row": cause, "pulse_row": pulse, "ready_row": ready, "received_row": received, "thread": thread,
            "certainty": sure}  # fmt: skip


def _begin(table: LinkTable, rows: NDArray[np.uint32], sure: _Ints) -> _Ints:
    """Return the first event of the link that ends with each event (-1 = none); `sure` is lowered to its certainty."""
    link = table.ended_by(rows)
    return _other(table.from_row, table, link, sure)


def _end(table: LinkTable, rows: NDArray[np.uint32], sure: _Ints) -> _Ints:
    """Return the last event of the link that begins with each given event; arguments and form as for `_begin`."""
    return _other(table.to_row, table, table.begun_by(rows), sure)


def _other(column: NDArray[np.uint32], table: LinkTable, link: NDArray[np.intp], sure: _Ints) -> _Ints:
    out, known = np.full(len(link), -1, np.int64), link >= 0
    out[known] = column[link[known]]
    sure[known] = np.minimum(sure[known], table.certainty[link[known]])
    return out


def _running(trace: Trace, ready: _Ints) -> _Ints:
    """Return for each wake-up the first event by which the thread runs after it, int64 (n,); -1 = none, or not sure."""
    out, known = np.full(len(ready), -1, np.int64), np.flatnonzero(ready >= 0)
    thread = trace.events.thread[ready[known]].astype(np.int64)
    runs = first_that_fits(trace, state_positions(trace, ready[known], thread), thread, IS_RUN)
    sure = np.flatnonzero(runs >= 0)
    sure = sure[is_whole(trace, ready[known[sure]], runs[sure])]
    out[known[sure]] = runs[sure]
    return out


def _numbers(trace: Trace, cause: _Ints) -> _Ints:
    """Return the interrupt number of each cause, int64 (n,), -1 for causes that are no interrupts."""
    out, of_interrupt = np.full(len(cause), -1, np.int64), np.flatnonzero(cause >= 0)
    of_interrupt = of_interrupt[trace.events.code[cause[of_interrupt]] >> wire.CLASS_SHIFT == wire.WireClass.INT]
    out[of_interrupt] = trace.payloads.column(cause[of_interrupt], 0)
    return out


def _add_handlers(trace: Trace, columns: dict[str, _Ints]) -> None:
    """Add the columns of the handler that caused each pulse or wake-up; lower the certainty to INFERRED there.

    Only handlers that return an event are candidates. Of several handlers of one interrupt, the one of the process that
    gets the pulse or wake-up is taken; if that process has several, none is named.
    """
    cause = columns["cause_row"]
    enter, leave = (np.full(len(cause), -1, np.int64) for _ in range(2))
    columns["handler_row"], columns["handler_exit_row"] = enter, leave
    entries, exits, pid, source = _handlers(trace)
    latency = np.flatnonzero(columns["number"] >= 0)
    if not len(entries) or not len(latency):
        return
    sources, number = np.unique(source, return_inverse=True)
    order = np.argsort(number << 32 | entries)
    key = (number << 32 | entries)[order]
    own_source = trace.events.cpu[cause[latency]].astype(np.int64) << 32 | columns["number"][latency]
    which = np.minimum(np.searchsorted(sources, own_source), len(sources) - 1)
    latency, which = latency[sources[which] == own_source], which[sources[which] == own_source]
    effect = np.where(columns["pulse_row"] >= 0, columns["pulse_row"], columns["ready_row"])[latency]
    over = partners(trace)[cause[latency]].astype(np.int64)
    over = np.minimum(np.where(over == NO_EVENT, effect, over), effect)
    start, stop = (np.searchsorted(key, which << 32 | moment) for moment in (cause[latency], over))
    selected = _only(start, stop, pid[order], _answered(trace, columns, latency))
    known = selected >= 0
    latency, selected = latency[known], order[selected[known]]
    enter[latency], leave[latency] = entries[selected], exits[selected]
    columns["certainty"][latency] = np.minimum(columns["certainty"][latency], Certainty.INFERRED)


def _handlers(trace: Trace) -> tuple[_Ints, _Ints, _Ints, _Ints]:
    """Return entry, exit, pid and source (CPU << 32 | number of the interrupt) of the handlers that return an event."""
    enters, exits = calls.handlers(trace)
    returned = np.zeros(len(exits), np.bool_)
    counts = trace.payloads.word_counts(exits)
    for word in range(1, int(counts.max(initial=0))):  # words after the number: the event; all zero means no event
        longer = np.flatnonzero(counts > word)
        returned[longer] |= trace.payloads.column(exits[longer], word) != 0
    keep = np.flatnonzero(returned | (counts < 2))
    enters, exits = enters[keep], exits[keep]
    pid, _ = argument(trace, enters, "pid")
    number, known = argument(trace, enters, "interrupt_number")
    enters, exits, pid, number = enters[known], exits[known], pid[known], number[known]
    source = trace.events.cpu[enters].astype(np.int64) << 32 | number & 0xFFFFFFFF
    return enters.astype(np.int64), exits.astype(np.int64), pid, source


def _answered(trace: Trace, columns: dict[str, _Ints], latency: NDArray[np.intp]) -> _Ints:
    """Return for each latency the pid to which the pulse is sent, else the pid of the thread made ready, int64 (n,)."""
    pulse, thread = columns["pulse_row"][latency], columns["thread"][latency]
    pid = trace.threads.pid[np.maximum(thread, 0)].astype(np.int64)
    is_pulse = pulse >= 0
    pid[is_pulse] = comm_words(trace, pulse[is_pulse])[1].view(np.int32)
    return pid


def _only(start: NDArray[np.intp], stop: NDArray[np.intp], pid: _Ints, requested: _Ints) -> NDArray[np.int64]:
    """Return the only position in each range, or the only one there with the requested pid, int64 (n,); -1 = none."""
    count = stop - start
    selected = np.where(count == 1, start, -1)
    fits = np.zeros(len(start), np.int64)
    several = np.flatnonzero(count > 1)
    for step in range(int(count.max(initial=0))):  # over the handlers of one interrupt: a handful
        several = several[start[several] + step < stop[several]]
        position = start[several] + step
        is_requested = pid[position] == requested[several]
        selected[several[is_requested]] = position[is_requested]
        fits[several] += is_requested
    return np.where((count == 1) | (fits == 1), selected, -1)


def _legs(trace: Trace, moments: list[_Ints]) -> dict[str, _Ints]:
    """Return each leg of latencies, from the latest known event before it, and the total, by name; -1 = none."""
    time = trace.events.time_cycles
    names = [column.name for column in fields(Latencies) if column.name.endswith("_cycles")]
    legs, total = {}, np.full(len(moments[0]), -1, np.int64)
    last = moments[0]
    for name, moment in zip(names, moments[1:], strict=False):
        legs[name] = np.full(len(moment), -1, np.int64)
        both = np.flatnonzero((last >= 0) & (moment >= last))
        legs[name][both] = time[moment[both]] - time[last[both]]
        total[both] = np.maximum(total[both], 0) + legs[name][both]
        last = np.where(moment >= 0, moment, last)
    legs["total_cycles"] = total
    return legs
