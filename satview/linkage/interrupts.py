"""Interrupts, their handlers, and how they are nested."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import links, statistics
from satview.core.ordering import stable_order
from satview.events import wire
from satview.events.states import STEP_OF_CODE
from satview.linkage.rows import by_cpu, depth_within, nested_pairs, rows_of_class, rows_where
from satview.linkage.whole import is_whole_on, part_of
from satview.store.losses import losses, losses_of
from satview.store.time_ranges import TimeRanges
from satview.store.trace import Trace

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
        is_stray: bool, whether the event is an exit whose entry came before the part began, during an interrupt.
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
    """Return entries and exits of the interrupts and handlers that the trace holds whole, in any order.

    The exit of an interrupt is the CPU's next exit at the same depth. Handlers are paired within their interrupt, so
    that a missing exit does not make the handlers of other interrupts pair wrongly.
    """
    if len(losses(trace)):
        return _on_every_cpu(trace, (_interrupts, _handlers))
    rows = rows_where(trace, _STEP_OF_CODE != 0)  # not cached: no other function needs them where nothing is lost
    return links.nested(trace.events.code, trace.events.cpu, _STEP_OF_CODE, rows)


def handlers(trace: Trace) -> tuple[_Rows, _Rows]:
    """Return rows of entries and exits of interrupt handlers only, each (n,), in any order."""
    return _on_every_cpu(trace, (_handlers,))


def dispatches(trace: Trace) -> tuple[_Rows, _Rows]:
    """Return rows of interrupt entries and of their first handlers' entries, each (n,).

    The first handler is the CPU's next event of class INT. Later handlers of the interrupt run one after the other, so
    that the time before them is not that of the dispatch.
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
    """Return 1 for entries, -1 for exits, 0 for all other events, int8."""
    table = np.zeros(wire.EVENT_MASK + 1, np.int8)
    table[list(entries)], table[leave] = 1, -1
    return np.asarray(table[kind])


def _entries_and_exits(trace: Trace, cpu: int, rows: _Rows, kind: _Kinds) -> tuple[_Rows, _Positions, NDArray[np.int8]]:
    """Return the columns `rows`, `part` and `step` of `Nesting` for the INT events of a CPU."""
    step = _steps(kind, _ENTRIES, _EXIT)
    borders = np.flatnonzero(step)
    return rows[borders], part_of(trace, cpu, rows[borders]), step[borders]


def _interrupts(trace: Trace, cpu: int, rows: _Rows, kind: _Kinds) -> tuple[_Rows, _Rows]:
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
