"""Kernel calls and interrupts: how often, how long, how late, and how they ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.analysis.times.by_key import largest_by, percentile_by, sum_by
from satview.analysis.times.event_counts import IS_CALL
from satview.analysis.times.run_sums import RunSums
from satview.analysis.times.scope import Rows, Scope, codes_where
from satview.events import wire
from satview.events.wire import WireClass
from satview.filters.expressions.columns import RowColumns
from satview.linkage.table import LinkKind
from satview.store.time_ranges import Cycles

CALL_NUMBERS: Final = 128
_INTERRUPTED: Final = 2  # kind of a kernel call's event in bits 7 and 8 of its number
_ENTRY_KINDS: Final = (1, 5, 7)  # 32 and 64 bits; INT_DELIVER of 8.0, which has no exit
IS_INTERRUPT: Final = codes_where(lambda kind, event: (kind == WireClass.INT) & np.isin(event, _ENTRY_KINDS))
_P99: Final = 0.99


@dataclass(frozen=True, slots=True)
class Durations:
    """Times of the occurrences whose end is in the trace; every column int64 (n,), 0 where there is none.

    Attributes:
        count: Occurrences with a known time.
        total_cycles, least_cycles, most_cycles: Sum, shortest, longest.
        p99_cycles: 99 % took at most that long.
        longest: Row of the event that began the longest; -1 = none.
    """

    count: NDArray[np.int64]
    total_cycles: Cycles
    least_cycles: Cycles
    most_cycles: Cycles
    p99_cycles: Cycles
    longest: NDArray[np.int64]

    @classmethod
    def of(cls, keys: NDArray[np.int64], cycles: Cycles, rows: Rows, count: int) -> Durations:
        """Return the times of each key below `count`; times below 0 are not known and left out."""
        known = cycles >= 0
        keys, cycles, rows = keys[known], cycles[known], rows[known]
        most, position = largest_by(keys, cycles, count)
        least = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(least, keys, cycles)
        number = np.bincount(keys, minlength=count)
        longest = np.where(position >= 0, rows[position], -1) if len(rows) else np.full(count, -1)
        return cls(
            number,
            sum_by(keys, cycles, count),
            np.where(number > 0, least, 0),
            most,
            percentile_by(keys, cycles, count, _P99),
            longest,
        )

    def take(self, rows: NDArray[np.intp]) -> Durations:
        """Return some of the rows."""
        return Durations(*(getattr(self, name)[rows] for name in self.__slots__))

    @property
    def mean_cycles(self) -> Cycles:
        """Sum by count, rounded down; 0 where there is none."""
        return self.total_cycles // np.maximum(self.count, 1)


@dataclass(frozen=True, slots=True)
class CallTable:
    """One row per kernel call that was entered in the range, by its number.

    Attributes:
        code: int64, (n,), of its entry, 32-bit form; both widths count together.
        count: int64, entries that count.
        times: From entry to exit, whole, also where the exit is behind the range.
        running: Of that, while the caller had a CPU: a blocking call comes back when its thread runs again. Source:
            building block M4 of the reference.
        failed: int64, returned with an error.
        interrupted: int64, ended in their interrupted form.
        errors: Error numbers of each, with how often, the commonest first.
        first: int64, row of the first entry.
    """

    code: NDArray[np.int64]
    count: NDArray[np.int64]
    times: Durations
    running: Durations
    failed: NDArray[np.int64]
    interrupted: NDArray[np.int64]
    errors: tuple[tuple[tuple[int, int], ...], ...]
    first: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.code)


@dataclass(frozen=True, slots=True)
class InterruptTable:
    """One row per interrupt vector that was entered in the range.

    Attributes:
        vector: int64, (n,), as the entry gives it.
        count: int64, entries that count.
        times: From entry to exit, interrupts nested in it included.
        latency: From entry to the entry of its first handler.
        first: int64, row of the first entry.
        cpus: Numbers of the CPUs that took it, ascending.
    """

    vector: NDArray[np.int64]
    count: NDArray[np.int64]
    times: Durations
    latency: Durations
    first: NDArray[np.int64]
    cpus: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.vector)


@dataclass(frozen=True, slots=True)
class KernelCalls:
    """Kernel calls that were entered in a range, in time order; every column has shape (n,).

    Attributes:
        row: int64, the event of the entry.
        exit_row: int64, the event that ends it; -1 where that is not in the trace or not sure.
        number: int64, of the call, 0 to 127.
        cycles: int64, from entry to exit; -1 without exit.
        running_cycles: int64, of that, while the caller had a CPU; -1 where that is not known.
        is_interrupted: bool, it ended in its interrupted form.
        is_failed: bool, it returned with an error.
        error: int64, the error's number; 0 for calls that did not fail.
    """

    row: NDArray[np.int64]
    exit_row: NDArray[np.int64]
    number: NDArray[np.int64]
    cycles: Cycles
    running_cycles: Cycles
    is_interrupted: NDArray[np.bool_]
    is_failed: NDArray[np.bool_]
    error: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Interrupts:
    """Interrupts that were entered in a range, in time order; every column has shape (n,).

    Attributes:
        row: int64, the event of the entry; in 8.0 the delivery, which has no exit.
        exit_row: int64, the event of its exit; -1 where that is not in the trace or not sure.
        handler_row: int64, the entry of its first handler; -1 likewise.
        vector: int64, as the entry gives it.
        cycles: int64, from entry to exit; -1 without exit.
        latency_cycles: int64, from entry to the entry of its first handler; -1 without one.
    """

    row: NDArray[np.int64]
    exit_row: NDArray[np.int64]
    handler_row: NDArray[np.int64]
    vector: NDArray[np.int64]
    cycles: Cycles
    latency_cycles: Cycles


def kernel_calls(scope: Scope) -> KernelCalls:
    """Return the kernel calls of a range, one by one."""
    enters = np.asarray(scope.selected(IS_CALL), np.int64)
    code = scope.trace.events.code
    cycles, exits = scope.lengths(enters)
    known = np.flatnonzero(exits >= 0)
    known = known[np.argsort(exits[known])]
    was_interrupted, has_failed = np.zeros(len(enters), np.bool_), np.zeros(len(enters), np.bool_)
    was_interrupted[known] = code[exits[known]] >> 7 & 3 == _INTERRUPTED
    error = np.zeros(len(enters), np.int64)
    errors, failed = RowColumns(scope.trace, scope.basis.derived, exits[known]).errors()
    has_failed[known] = failed
    error[known] = np.where(failed, errors, 0)
    number = (code[enters] & (CALL_NUMBERS - 1)).astype(np.int64)
    return KernelCalls(
        enters, exits, number, cycles, _running(scope, enters, exits), was_interrupted, has_failed, error
    )


def call_times(scope: Scope) -> CallTable:
    """Return the kernel calls, added up."""
    calls = kernel_calls(scope)
    number = calls.number
    failed, errors = _errors(number[calls.is_failed], calls.error[calls.is_failed])
    seen = np.flatnonzero(np.bincount(number, minlength=CALL_NUMBERS))
    return CallTable(
        wire.code(WireClass.KER_CALL, 0) | seen,
        np.bincount(number, minlength=CALL_NUMBERS)[seen],
        Durations.of(number, calls.cycles, calls.row, CALL_NUMBERS).take(seen),
        Durations.of(number, calls.running_cycles, calls.row, CALL_NUMBERS).take(seen),
        failed[seen],
        np.bincount(number[calls.is_interrupted], minlength=CALL_NUMBERS)[seen],
        tuple(errors[i] for i in seen.tolist()),
        _first_of(number, calls.row, CALL_NUMBERS)[seen],
    )


def _running(scope: Scope, enters: Rows, exits: Rows) -> Cycles:
    """Return how long the caller of each kernel call had a CPU within it, int64 (n,); -1 where that is not known."""
    trace, runs = scope.trace, scope.basis.runs
    out = np.full(len(enters), -1, np.int64)
    thread = trace.events.thread[enters].astype(np.int64)
    known = np.flatnonzero((exits >= 0) & (thread > 0))
    mine = np.flatnonzero((runs.thread > 0) & (runs.end > runs.start))
    if not len(known) or not len(mine):
        return out
    first, last = (trace.events.time_cycles[rows[known]] for rows in (enters, exits))
    time = np.sort(np.concatenate((first, last, runs.start[mine])))
    sums = RunSums.of(runs, mine, runs.start, runs.end, time, len(trace.threads))
    out[known] = sums.between(thread[known], np.searchsorted(time, first), np.searchsorted(time, last))
    return out


def _errors(
    number: NDArray[np.int64], error: NDArray[np.int64]
) -> tuple[NDArray[np.int64], list[tuple[tuple[int, int], ...]]]:
    """Return how many calls of each number failed, and with which errors, of the calls that did."""
    found: list[list[tuple[int, int]]] = [[] for _ in range(CALL_NUMBERS)]
    pairs, counts = np.unique(number << 32 | error & 0xFFFFFFFF, return_counts=True)
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        found[pair >> 32].append(((pair & 0xFFFFFFFF ^ 1 << 31) - (1 << 31), count))  # signed, as the details show it
    ranked = [tuple(sorted(entries, key=lambda entry: -entry[1])) for entries in found]
    return np.bincount(number, minlength=CALL_NUMBERS), ranked


def interrupts(scope: Scope) -> Interrupts:
    """Return the interrupts of a range, one by one."""
    enters = np.asarray(scope.selected(IS_INTERRUPT), np.int64)
    vector = scope.trace.payloads.column(enters, 0).astype(np.int64)
    cycles, exits = scope.lengths(enters, LinkKind.INTERRUPT)
    latency, handlers = scope.lengths(enters, LinkKind.DISPATCH)
    return Interrupts(enters, exits, handlers, vector, cycles, latency)


def interrupt_times(scope: Scope) -> InterruptTable:
    """Return the interrupts, added up."""
    found = interrupts(scope)
    vectors, number = np.unique(found.vector, return_inverse=True)
    number = number.astype(np.int64)
    count = len(vectors)
    pairs = np.unique(number << 8 | scope.trace.events.cpu[found.row]) if count else np.empty(0, np.int64)
    cpus = tuple(tuple((pairs[pairs >> 8 == i] & 0xFF).tolist()) for i in range(count))
    return InterruptTable(
        vectors,
        np.bincount(number, minlength=count),
        Durations.of(number, found.cycles, found.row, count),
        Durations.of(number, found.latency_cycles, found.row, count),
        _first_of(number, found.row, count),
        cpus,
    )


def _first_of(keys: NDArray[np.int64], rows: Rows, count: int) -> NDArray[np.int64]:
    """Return the first of the ascending rows of each key, -1 for keys without one."""
    first = np.full(count, -1, np.int64)
    first[keys[::-1]] = rows[::-1]
    return first
