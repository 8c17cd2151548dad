"""Kernel calls with their exits, interrupts with their handlers, and what was open on the CPU at each event."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import links, statistics
from satview.core.links import stable_order
from satview.events import wire
from satview.events.catalogue import never_block
from satview.events.states import RUNNING, STEP_OF_CODE
from satview.linkage.links import (
    NO_EVENT,
    by_cpu,
    depth_within,
    is_whole,
    is_whole_on,
    last_in_table,
    last_of_codes,
    nested_pairs,
    part_of,
    positions,
    rows_of_class,
    rows_of_codes,
    rows_where,
)
from satview.store.arguments import distinct
from satview.store.axis import last_rows
from satview.store.tables import UNKNOWN_THREAD
from satview.store.time_ranges import TimeRanges, losses, losses_of
from satview.store.trace import Trace, cached_with_trace

# Interrupts, their handlers, and how they are nested.


_Rows = NDArray[np.uint32]
_Positions = NDArray[np.intp]
_Kinds = NDArray[np.integer]
_Maker = Callable[[Trace, int, _Rows, _Kinds], tuple[_Rows, _Rows]]  # makes pairs of the INT events of a CPU
_ENTRIES: Final = (1, 5)  # 32 and 64 bits
_EXIT: Final = 2
_HANDLER_ENTRIES: Final = (3, 6)
_HANDLER_EXIT: Final = 4
_DELIVERY: Final = 7  # 8.0; it has no exit
_STEP_OF_CODE: Final = STEP_OF_CODE.copy()  # with handlers, as `links.nested` takes it
_STEP_OF_CODE[[wire.code(wire.WireClass.INT, event) for event in _HANDLER_ENTRIES]] = 2
_STEP_OF_CODE[wire.code(wire.WireClass.INT, _HANDLER_EXIT)] = -2


@dataclass(frozen=True, slots=True)
class Nesting:
    """Entries and exits of the interrupts of one CPU, in time order; every column has shape (n,).

    Attributes:
        rows: uint32, rows of the event table.
        part: intp, number of losses of the CPU before the event; depth begins again at 0 after each loss.
        step: int8, 1 for an entry, -1 for an exit.
        depth: int64, number of open interrupts after the event; an exit without an entry leaves it at 0.
        time_cycles: int64, times of the events.
        is_stray: bool, whether the event is an exit without an entry: the part began while the interrupt was handled.
    """

    rows: _Rows
    part: _Positions
    step: NDArray[np.int8]
    depth: NDArray[np.int64]
    is_stray: NDArray[np.bool_]
    time_cycles: NDArray[np.int64]


def nesting(trace: Trace, cpu: int) -> Nesting:
    """Return the entries and exits of the interrupts of a CPU, with their nesting depths."""
    rows = rows_of_class(trace, wire.WireClass.INT)
    events, lost = trace.events, TimeRanges.of_rows(losses_of(losses(trace), cpu))
    columns = statistics.nesting(events.code, events.cpu, events.time_cycles, STEP_OF_CODE, rows, cpu, lost.end)
    return Nesting(*columns, events.time_cycles[columns[0]])


def interrupts(trace: Trace) -> tuple[_Rows, _Rows]:
    """Return entries and exits of the interrupts and handlers that the trace holds whole, (n,) each, in any order.

    The exit of an interrupt is the CPU's next exit at the same depth. Handlers are paired within their interrupt, so
    that a missing exit does not make the handlers of other interrupts pair wrongly.
    """
    if len(losses(trace)):
        return _on_every_cpu(trace, (_interrupt_links, _handlers))
    rows = rows_where(trace, _STEP_OF_CODE != 0)  # not cached: no other function needs them where nothing is lost
    return links.nested(trace.events.code, trace.events.cpu, _STEP_OF_CODE, rows)


def handlers(trace: Trace) -> tuple[_Rows, _Rows]:
    """Return rows of entries and exits of interrupt handlers only, each (n,), in any order."""
    return _on_every_cpu(trace, (_handlers,))


def dispatches(trace: Trace) -> tuple[_Rows, _Rows]:
    """Return rows of interrupt entries and of their first handlers' entries, each (n,).

    The first handler is the CPU's next event of class INT. Later handlers of the interrupt run one after the other, so
    the time before them is not a dispatch time.
    """
    return _on_every_cpu(trace, (_dispatches,))


def _on_every_cpu(trace: Trace, makers: Iterable[_Maker]) -> tuple[_Rows, _Rows]:
    enters, exits = [np.empty(0, np.uint32)], [np.empty(0, np.uint32)]
    for cpu, rows in by_cpu(trace, rows_of_class(trace, wire.WireClass.INT)):
        kind = _kinds(trace, rows)
        for maker in makers:
            enter, leave = maker(trace, cpu, rows, kind)
            sure = is_whole_on(trace, cpu, enter, leave)
            enters.append(enter[sure])
            exits.append(leave[sure])
    return np.concatenate(enters), np.concatenate(exits)


def _kinds(trace: Trace, rows: _Rows) -> _Kinds:
    return trace.events.code[rows] & wire.EVENT_MASK


def _steps(kind: NDArray[np.integer], entries: tuple[int, ...], leave: int) -> NDArray[np.int8]:
    """Return 1 for events that are entries, -1 for exits, 0 for all others, int8 (n,)."""
    table = np.zeros(wire.EVENT_MASK + 1, np.int8)
    table[list(entries)], table[leave] = 1, -1
    return np.asarray(table[kind])


def _entries_and_exits(trace: Trace, cpu: int, rows: _Rows, kind: _Kinds) -> tuple[_Rows, _Positions, NDArray[np.int8]]:
    """Return the columns `rows`, `part` and `step` of `Nesting` for the INT events of a CPU."""
    step = _steps(kind, _ENTRIES, _EXIT)
    borders = np.flatnonzero(step)
    return rows[borders], part_of(trace, cpu, rows[borders]), step[borders]


def _interrupt_links(trace: Trace, cpu: int, rows: _Rows, kind: _Kinds) -> tuple[_Rows, _Rows]:
    rows, part, step = _entries_and_exits(trace, cpu, rows, kind)
    enter, leave = nested_pairs(step, part)
    return rows[enter], rows[leave]


def _handlers(trace: Trace, cpu: int, rows: _Rows, kind: _Kinds) -> tuple[_Rows, _Rows]:
    of_interrupt, of_handler = _steps(kind, _ENTRIES, _EXIT), _steps(kind, _HANDLER_ENTRIES, _HANDLER_EXIT)
    if not of_handler.any():
        return rows[:0], rows[:0]
    part = part_of(trace, cpu, rows)
    depth = depth_within(of_interrupt, part)
    # At one depth, the handlers of an interrupt are between its entry and the next entry. An exit without an entry ends
    # an interrupt too: the handlers before it belong to that one.
    is_border = (of_interrupt > 0) | ((of_interrupt < 0) & (np.append(0, depth[:-1]) == 0))
    borders = np.flatnonzero(is_border | (of_handler != 0))
    deepest = int(depth.max(initial=0)) + 1
    level = part[borders] * deepest + depth[borders]
    borders = borders[stable_order(level)]
    level = part[borders] * deepest + depth[borders]
    interrupt = np.cumsum(is_border[borders] | np.append(True, level[1:] != level[:-1])[: len(borders)])
    steps, interrupt = borders[of_handler[borders] != 0], interrupt[of_handler[borders] != 0]
    enter, leave = nested_pairs(of_handler[steps], interrupt)
    return rows[steps[enter]], rows[steps[leave]]


def _dispatches(_trace: Trace, _cpu: int, rows: _Rows, kind: _Kinds) -> tuple[_Rows, _Rows]:
    is_entry = np.isin(kind, (*_ENTRIES, _DELIVERY))
    entry = np.flatnonzero(is_entry[:-1] & np.isin(kind[1:], _HANDLER_ENTRIES))
    return rows[entry], rows[entry + 1]


# Kernel calls and their exits, and the partner of every event that enters or exits a call, interrupt or handler.


_AT_ONCE: Final = 1 << 20  # calls: 8 bytes for each of them


def calls(trace: Trace) -> tuple[tuple[_Rows, _Rows], tuple[_Rows, _Rows]]:
    """Return entries and exits of the kernel calls that the trace holds whole: those of known threads, then the others.

    The exit is the thread's next kernel call event, if it is of the same call; of a restarted call, which is entered
    again before it exits, only the last entry has an exit. Where the thread is not known, as in a capture without
    THREAD events, the exit must be the CPU's next kernel call event, and the call must be one that never blocks: after
    a call that blocks, another thread may run and exit from a call of the same kind.

    Returns:
        Rows of entries and rows of exits, (n,) each, twice.
    """
    known, unknown = trace.cached("links.call_ends", _call_ends)
    if not len(losses(trace)):
        return known, unknown
    sure = is_whole(trace, *known)
    enter, leave = unknown
    is_sure = np.ones(len(enter), np.bool_)
    for cpu in np.unique(trace.events.cpu[enter]).tolist():
        of_cpu = trace.events.cpu[enter] == cpu
        is_sure[of_cpu] = is_whole_on(trace, cpu, enter[of_cpu], leave[of_cpu])
    return (known[0][sure], known[1][sure]), (enter[is_sure], leave[is_sure])


def _call_ends(trace: Trace) -> tuple[tuple[_Rows, _Rows], tuple[_Rows, _Rows]]:
    return scanned(trace).known, scanned(trace).unknown


@cached_with_trace("links.scanned_calls")
def scanned(trace: Trace) -> links.KernelCallTable:
    """Return the kernel calls that the compiled core finds in one pass; cached with the trace, 4 bytes per event."""
    events, codes = trace.events, np.arange(wire.CODE_COUNT)
    form = codes & wire.KER_FORM
    is_call = codes >> wire.CLASS_SHIFT == wire.WireClass.KER_CALL
    traits = np.where(is_call, links.IS_CALL, 0)
    traits[is_call & (form == 0)] |= links.IS_ENTRY
    traits[is_call & ((form == wire.KER_EXIT_OFFSET) | (form == wire.KER_INT_OFFSET))] |= links.IS_END
    traits[wire.THREAD_RUNNING] |= links.IS_SWITCH
    traits[trace.catalogue.state_value_of_code == RUNNING] |= links.IS_RUNNING
    ends = int(trace.code_counts[traits & links.IS_END != 0].sum())
    return links.calls(
        events.code,
        events.cpu,
        events.thread,
        len(trace.threads),
        traits.astype(np.uint8),
        never_block(trace.release),
        ends,
    )


def forget_calls_of_events(trace: Trace) -> None:
    """Free the column of `scanned` (4 bytes per event), which is no longer needed; the ends of calls stay cached."""
    calls(trace)
    trace.forget("links.scanned_calls")


@cached_with_trace("links.partners")
def partners(trace: Trace) -> NDArray[np.uint32]:
    """Return for every event its partner: the event that ends or begins the same kernel call, interrupt or handler.

    Computed at the first call and cached with the trace; 4 bytes per event.

    Returns:
        uint32 (events,), rows of the event table, `NO_EVENT` for none.
    """
    if trace.pairs is not None:  # the file format itself names the pairs
        return trace.pairs
    column = np.full(len(trace.events), NO_EVENT, np.uint32)
    for enters, exits in (*calls(trace), _interrupts(trace)):
        column[enters], column[exits] = exits, enters
    return column


def exits_of(trace: Trace, entries: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the event that ends each of the given kernel calls, without computing `partners` for all events.

    Args:
        trace: The events.
        entries: uint32 (n,), rows of entries, ascending.

    Returns:
        uint32 (n,), `NO_EVENT` for none.
    """
    return _ends_of(trace, entries, calls)


def ends_of_interrupts(trace: Trace, entries: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the event that ends each of the given interrupts; arguments and result as for `exits_of`."""
    return _ends_of(trace, entries, lambda trace: (_interrupts(trace),))


def _interrupts(trace: Trace) -> tuple[_Rows, _Rows]:
    return trace.cached("links.interrupt_ends", interrupts)


def _ends_of(
    trace: Trace, entries: NDArray[np.uint32], pairs_of: Callable[[Trace], Iterable[tuple[_Rows, _Rows]]]
) -> NDArray[np.uint32]:
    if trace.pairs is not None or trace.axis is not None or are_made(trace):
        return partners(trace)[entries]
    out = np.full(len(entries), NO_EVENT, np.uint32)
    for enter, leave in pairs_of(trace) if len(entries) else ():
        for start in range(0, len(enter), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            position = positions(entries, enter[some])
            is_requested = entries.take(position, mode="clip") == enter[some]
            out[position[is_requested]] = leave[some][is_requested]
    return out


@cached_with_trace("links.beginnings")
def beginnings(trace: Trace) -> NDArray[np.uint32]:
    """Return the events that begin a call, interrupt or handler with a known end, uint32, ascending; cached."""
    rows = np.flatnonzero(partners(trace) != NO_EVENT).astype(np.uint32)
    return rows[partners(trace)[rows] > rows]


def are_made(trace: Trace) -> bool:
    """Return whether `partners` is cached; computing it takes 30 ns per event."""
    return trace.is_cached("links.partners")


def partner(trace: Trace, event: int) -> int | None:
    """Return the partner of an event, as `partners` does; None if the event has no partner, or none that is known."""
    other = int(partners(trace)[event])
    return None if other == NO_EVENT else other


_CALL_NUMBER: Final = 0x7F  # in the codes of all events of a kernel call


class Fate(Enum):
    """Reasons why the exit of a kernel call is not in the trace."""

    NEVER = "never"
    """The call did not return before the trace ends."""
    RESTARTED = "restarted"
    """The thread's next kernel call event is another entry: this call was restarted, or its exit was not logged."""
    LOST = "lost"
    """Events are missing after the entry, or an exit from such a call follows whose thread is not known."""


def fate_of_call(trace: Trace, event: int) -> Fate | None:
    """Return the reason why a kernel call has no exit; None if it has an exit or no known thread, or is no call entry.

    Args:
        trace: The events.
        event: Row of the event table.
    """
    code, thread = int(trace.events.code[event]), trace.events.thread
    is_entry = wire.class_of(code) == wire.WireClass.KER_CALL and not code & wire.KER_FORM
    if trace.pairs is not None or not is_entry or thread[event] == UNKNOWN_THREAD or partner(trace, event) is not None:
        return None
    rows = rows_of_class(trace, wire.WireClass.KER_CALL)
    rows = rows[np.searchsorted(rows, event, side="right") :]
    after = rows[thread[rows] == thread[event]][:1]
    last = after if len(after) else last_rows(trace, np.array([event]))
    of_nobody = rows[(thread[rows] == UNKNOWN_THREAD) & (rows < last[0])]
    is_same = (trace.events.code[of_nobody] ^ code) & _CALL_NUMBER == 0
    if is_same.any() or not is_whole(trace, np.array([event]), last)[0]:
        return Fate.LOST
    return Fate.RESTARTED if len(after) else Fate.NEVER


# For each event, the kernel call that was open on its CPU and the last interrupt before it.


_SWITCHES: Final = np.arange(wire.CODE_COUNT) >> wire.CLASS_SHIFT == wire.WireClass.KER_CALL  # to another kernel call
_SWITCHES[wire.THREAD_RUNNING] = True
_SWITCHES[[wire.code(wire.WireClass.PR_TH, state) for state in (9, 18)]] = True  # WAITPAGE, WAITCTX: a fault, no call
_SWITCHES.setflags(write=False)
TIMER_EVENT: Final = wire.code(wire.WireClass.SYSTEM, 18)
INTERRUPTS: Final = tuple(wire.code(wire.WireClass.INT, event) for event in (1, 5, 7))  # entries; deliveries of 8.0


def open_calls(trace: Trace, rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the kernel call, of any thread, that has been entered but not exited on the CPU of each event.

    It is the CPU's last kernel call event, if that is an entry and no other thread has begun to run on the CPU since.

    Returns:
        uint32 (n,), rows of entries; `NO_EVENT` where no call is open.
    """
    return scanned(trace).entry[rows]


def last_switch(trace: Trace, rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the last kernel call event or thread switch on the CPU before each event, uint32 (n,), or `NO_EVENT`."""
    return last_in_table(trace, _SWITCHES, rows)


def interrupt_rows(trace: Trace) -> NDArray[np.uint32]:
    """Return the rows of interrupt entries and, from 8.0 on, of interrupt deliveries, uint32, ascending."""
    return rows_of_codes(trace, *INTERRUPTS)


def interrupt_numbers(trace: Trace) -> NDArray[np.uint32]:
    """Return the interrupt number of each of `interrupt_rows`, uint32 (n,); cached with the trace."""
    return trace.cached("links.interrupt_numbers", lambda trace: trace.payloads.column(interrupt_rows(trace), 0))


def numbers_of_interrupts(trace: Trace, rows: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the interrupt number of each event, uint32 (n,); all `rows` must be among `interrupt_rows`."""
    return interrupt_numbers(trace)[positions(interrupt_rows(trace), rows)]


def last_of_usual(
    trace: Trace, rows: NDArray[np.uint32], group: NDArray[np.int64], since: NDArray[np.uint32],
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:  # fmt: skip
    """Return the interrupt that most likely caused each event.

    Interrupts nest, and effects of an interrupt that comes while the kernel runs are delayed, so the last interrupt is
    not always the cause. Where several interrupts came after `since`, the result is the last one with the usual number
    of the group: the number that is most often the last before events of this group.

    Args:
        trace: The events.
        rows: uint32 (n,), events that are caused by interrupts.
        group: int64 (n,), number of the thread or connection of each event, which usually has one interrupt.
        since: uint32 (n,), rows before which the interrupt cannot have come.

    Returns:
        uint32 (n,), rows of entries, `NO_EVENT` for none; and bool (n,), whether only one interrupt came after `since`.
    """
    entries = interrupt_rows(trace)
    interrupt = last_of_codes(trace, INTERRUPTS, rows)
    interrupt[(interrupt != NO_EVENT) & (interrupt < since)] = NO_EVENT
    preceded = np.flatnonzero(interrupt != NO_EVENT)
    is_only = np.zeros(len(rows), np.bool_)
    before = last_of_codes(trace, INTERRUPTS, interrupt[preceded])
    is_only[preceded] = (before == NO_EVENT) | (before < since[preceded])
    if not len(preceded):
        return interrupt, is_only
    vector, count = trace.cached("links.vectors", _vectors)
    own = vector[positions(entries, interrupt[preceded])]
    usual = _most_frequent(group[preceded], own, count)
    other = np.flatnonzero(usual != own)
    cpu = trace.events.cpu
    key = cpu[entries] * np.int64(count) + vector
    order = stable_order(key)
    key = key[order] << 32 | entries[order]
    preceded, source = preceded[other], cpu[rows[preceded[other]]] * np.int64(count) + usual[other]
    position = positions(key, source << 32 | rows[preceded]) - 1
    last = key[np.maximum(position, 0)]
    interrupt[preceded] = np.where((position >= 0) & (last >> 32 == source), last & 0xFFFFFFFF, NO_EVENT)
    interrupt[(interrupt != NO_EVENT) & (interrupt < since)] = NO_EVENT
    return interrupt, is_only


def _vectors(trace: Trace) -> tuple[NDArray[np.intp], int]:
    """Return an index of the interrupt number of each of `interrupt_rows`, intp (n,), and how many numbers occur."""
    vectors, which = distinct(interrupt_numbers(trace).astype(np.int64))
    return which, len(vectors)


def _most_frequent(group: NDArray[np.int64], number: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Return for each element the most frequent number of its group, (n,); the smallest of equally frequent ones."""
    which = np.unique(group, return_inverse=True)[1]
    kinds, times = np.unique(which * count + number, return_counts=True)
    order = np.lexsort((-(kinds % count), times, kinds // count))
    kinds = kinds[order]
    is_last = np.append(kinds[1:] // count != kinds[:-1] // count, True)
    return np.asarray((kinds[is_last] % count)[which])


def quiet_between(trace: Trace, begin: NDArray[np.uint32], end: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return whether the CPU logs only INT and CONTROL events between the two events of each pair, bool (n,).

    Args:
        trace: The events.
        begin: uint32 (n,), rows.
        end: uint32 (n,), later rows of the same CPUs.
    """
    if not len(end):
        return np.ones(0, np.bool_)
    table = np.ones(wire.CODE_COUNT, np.bool_)
    table[np.arange(wire.CODE_COUNT) >> wire.CLASS_SHIFT == wire.WireClass.INT] = False
    table[np.arange(wire.CODE_COUNT) >> wire.CLASS_SHIFT == wire.WireClass.CONTROL] = False
    return np.asarray(last_in_table(trace, table, end) == begin)
