"""Decides which TIME events are damaged, and corrects times that were derived from them.

A damaged TIME event moves all events of its CPU up to the next TIME by days. `ClockRebuilder` applies every TIME event
at once and passes all of them to `ClockReview`, which later returns corrections in whole rollovers on which CPUs,
stamps, buffers and header agree (`consensus`). All readers apply the same corrections, except a reader of a pipe, which
cannot wait for the end and decides after `LOOK_AHEAD_EVENTS`. A damaged stamp puts its own event far from its
neighbours (`misplaced`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import ordering
from satview.events import wire
from satview.formats.kev.clocks.consensus import (
    CROSSING,
    NEVER,
    TIME,
    ClockVerdicts,
    Consensus,
    Correction,
    Surroundings,
    WalkNotes,
)
from satview.formats.kev.clocks.rollover import ROLLOVER

LOOK_AHEAD_EVENTS: Final = 1 << 16  # a TIME comes with every kernel buffer, so after some hundred events
START_EVENTS: Final = 1 << 13  # events held back at the start by a reader that cannot wait: ten kernel buffers
_ESTABLISHED: Final = 8  # number of consistent TIME events of a CPU after which no reader waits for more
_NEAR_CYCLES: Final = 1 << 24  # 6 ms at 2.6 GHz, 0.9 s at 19.2 MHz: far more than clocks differ and events are late
_NEIGHBOUR_ROWS: Final = 64  # where to look for the events of the same CPU
_MISPLACED_MAX: Final = 20_000
_CHUNK: Final = 1 << 16
_NONE: Final = WalkNotes(*(np.empty(0, np.int64) for _ in WalkNotes._fields))


@dataclass(slots=True)
class ClockReview:
    """The TIME events of a trace, and decisions about them.

    Attributes:
        surroundings: Information on the clock besides the TIME events.
        start_row: Row of the first usable TIME of the file; -1 = none yet.
        settled: Final decisions of a reader that cannot wait.
    """

    surroundings: Surroundings = field(default_factory=Surroundings)
    start_row: int = -1
    settled: ClockVerdicts = field(default_factory=ClockVerdicts)
    _parts: list[WalkNotes] = field(default_factory=list)
    _first_odd_row: int | None = None
    _settled_row: int = 0
    _standing: dict[int, int] = field(default_factory=dict)

    def __deepcopy__(self, _: object) -> ClockReview:
        """Return an independent copy; recorded arrays are shared, as they are never changed."""
        breaks = {cpu: list(rows) for cpu, rows in self.surroundings.breaks.items()}
        surroundings = replace(self.surroundings, breaks=breaks)
        return ClockReview(surroundings, self.start_row, self.settled, list(self._parts), self._first_odd_row,
                           self._settled_row, dict(self._standing))  # fmt: skip

    def before(self, row: int) -> ClockReview:
        """Return a review of the events before a row."""
        breaks = {
            cpu: [break_row for break_row in rows if break_row < row] for cpu, rows in self.surroundings.breaks.items()
        }
        review = ClockReview(replace(self.surroundings, breaks=breaks), self.start_row, self.settled, [], None,
                             self._settled_row, dict(self._standing))  # fmt: skip
        claims = self._claims()
        review.add(claims.rows(np.flatnonzero(claims.row < row)))
        return review

    def add_breaks(self, breaks: list[tuple[int, int]]) -> None:
        """Record places where buffers are missing or out of order, as (row, CPU or -1 = all), ascending."""
        for row, cpu in breaks:
            self.surroundings.breaks.setdefault(cpu, []).append(row)

    def add(self, claims: WalkNotes) -> None:
        """Record the notes of the walk along a chunk."""
        self._parts.append(claims)
        if self._first_odd_row is None:
            is_odd = np.where(claims.kind == TIME, claims.rollovers != 0, claims.kind == CROSSING)
            if is_odd.any():
                self._first_odd_row = int(claims.row[np.argmax(is_odd)])

    def verdicts(self, ends: dict[int, tuple[int, int]], *, is_damaged: bool = False) -> ClockVerdicts:
        """Return all verdicts, as if no events followed; recorded notes stay.

        Args:
            ends: CPU to row and time of its last event, if known.
            is_damaged: Whether there are TIME events with an impossible value.
        """
        settled = self.settled
        if self._first_odd_row is None and not (is_damaged and self._parts):  # the usual case
            return settled
        new = Consensus(self._claims(), self._standing, self.surroundings, ends).verdicts()
        return ClockVerdicts(
            self.final_corrections() + new.corrections, settled.steps + new.steps, settled.reseeded + new.reseeded,
            settled.damaged + new.damaged, settled.doubtful + new.doubtful, settled.unproven + new.unproven,
        )  # fmt: skip

    def _claims(self) -> WalkNotes:
        if len(self._parts) > 1:
            self._parts = [WalkNotes(*map(np.concatenate, zip(*self._parts, strict=True)))]
        return self._parts[0] if self._parts else _NONE

    def after_lost(self, rows: list[int], cpus: list[int], corrections: list[Correction]) -> list[tuple[int, int, int]]:
        """Return doubts about events after TIME events with an impossible value: their times may lack rollovers.

        The next TIME event of the CPU shows the number of missing rollovers. Without a next TIME event, each impossible
        value may hide a rollover. The result has the form of `ClockVerdicts.doubtful`.

        Args:
            rows: Rows of the TIME events with an impossible value.
            cpus: CPUs of these events.
            corrections: Corrections of the times.
        """
        doubts, claims = [], self._claims()
        for cpu in sorted(set(cpus)):
            lost = np.array(sorted(row for row, other_cpu in zip(rows, cpus, strict=True) if other_cpu == cpu))
            later = np.flatnonzero((claims.cpu == cpu) & (claims.kind == TIME))
            behind = np.searchsorted(claims.row[later], lost)
            for number, count in zip(
                *(column.tolist() for column in np.unique(behind, return_counts=True)), strict=True
            ):
                row, passed = int(lost[behind == number][0]), count
                if number < len(later):
                    claim = later[number]
                    passed = int(claims.rollovers[claim])
                    passed += _added(corrections, cpu, int(claims.row[claim])) - _added(corrections, cpu, row)
                if passed:
                    doubts.append((row, cpu, abs(passed)))
        return doubts

    def final_corrections(self) -> list[Correction]:
        """Return the settled corrections; an open end becomes the row of the CPU's next note of the walk."""
        if not self.settled.corrections:
            return []
        claims = self._claims()
        is_new = claims.row >= self._settled_row
        cpus, first_claims = np.unique(claims.cpu[is_new], return_index=True)
        ends = dict(zip(cpus.tolist(), claims.row[is_new][first_claims].tolist(), strict=True))
        return [
            replace(correction, end_row=ends.get(correction.cpu, NEVER)) if correction.end_row == NEVER else correction
            for correction in self.settled.corrections
        ]

    def waits_from(self, row: int) -> int | None:
        """Return the first row whose time may still change after the events before `row` were read; None = no row."""
        if row <= START_EVENTS and self._parts:
            claims = self._claims()
            counts = np.bincount(claims.cpu, claims.kind == TIME)
            if counts.any() and (
                self._first_odd_row is not None or np.any(counts[np.unique(claims.cpu)] < _ESTABLISHED)
            ):
                return 0
        return self._first_odd_row

    def is_due(self, row: int) -> bool:
        """Return whether a reader that has read the events before `row` must not wait for more events."""
        waits_since = self._settled_row if self._first_odd_row is None else self._first_odd_row
        return row - waits_since > LOOK_AHEAD_EVENTS

    def settle(self, row: int, ends: dict[int, tuple[int, int]]) -> None:
        """Make all decisions final.

        Args:
            row: Number of events so far.
            ends: As for `verdicts`.
        """
        claims = self._claims()
        self.settled = self.verdicts(ends)
        shifts = {correction.cpu: correction.rollovers for correction in self.settled.corrections
                  if correction.end_row == NEVER}  # fmt: skip
        latest, latest_notes = {}, []
        for cpu in np.unique(claims.cpu).tolist():
            rows = np.flatnonzero((claims.cpu == cpu) & (claims.kind == TIME))
            if len(rows):
                latest[cpu] = shifts.get(cpu, 0)
                last = claims.rows(rows[-1:])
                latest_notes.append(last._replace(
                    value=last.value + latest[cpu] * ROLLOVER, rollovers=np.zeros(1, np.int64),
                    source=np.full(1, -1), weight=np.full(1, min(_ESTABLISHED, int(claims.weight[rows].sum()))),
                ))  # fmt: skip
        self._parts = [WalkNotes(*map(np.concatenate, zip(*latest_notes, strict=True)))] if latest_notes else []
        self._standing, self._first_odd_row, self._settled_row = latest, None, row


def _added(corrections: list[Correction], cpu: int, row: int) -> int:
    """Return the rollovers that corrections add to the time of an event."""
    return sum(
        correction.rollovers
        for correction in corrections
        if correction.cpu == cpu and correction.first_row <= row < correction.end_row
    )


def misplaced(
    time: NDArray[np.int64], cpu: NDArray[np.uint8], rows: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return events whose damaged stamps put them far from their neighbours on their CPU, and the distance.

    An event is misplaced if the events before and after it agree with each other, and both are far from it on the same
    side.

    Args:
        time: int64 (n,), cycles, in file order.
        cpu: (n,).
        rows: (k,), rows that a sort by time would move, ascending; no other row can be misplaced.

    Returns:
        Rows (m,), and cycles to subtract from their times, int64 (m,): the distance from the CPU's event before.
    """
    rows = rows[slice(*np.searchsorted(rows, (1, len(time) - 1)).tolist())]
    # In pieces that fit the cache, because `rows` are nearly all events if each CPU has its own buffers.
    far = [ordering.far_rows(time, rows[start : start + _CHUNK], _NEAR_CYCLES) for start in range(0, len(rows), _CHUNK)]
    if not 0 < sum(map(len, far)) <= _MISPLACED_MAX:  # more: the clocks of CPUs differ, or the file is garbage
        return rows[:0], rows[:0]
    rows = np.concatenate(far)
    # Neighbours in the file may be of other CPUs, whose clocks may differ: compare with neighbours on the same CPU.
    steps = np.arange(1, _NEIGHBOUR_ROWS + 1)
    previous, following = (
        _same_cpu(cpu, rows, np.clip(rows[:, None] + sign * steps, 0, len(time) - 1)) for sign in (-1, 1)
    )
    before, after = time[rows] - time[previous], time[rows] - time[following]
    distance = np.minimum(np.abs(before), np.abs(after))
    agree = np.abs(after - before) < distance // 4
    is_far = (distance > _NEAR_CYCLES) & agree & ((before > 0) == (after > 0))
    # If neighbours are both misplaced, it is unknown which of them is wrong.
    is_far &= ~(np.isin(previous, rows[is_far]) | np.isin(following, rows[is_far]))
    return rows[is_far], before[is_far]


def _same_cpu(cpu: NDArray[np.uint8], rows: NDArray[np.intp], others: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return for each row the first row in `others`, (n, k), on the same CPU, or the row itself if there is none."""
    is_same = cpu[others] == cpu[rows][:, None]
    nearest = others[np.arange(len(rows)), np.argmax(is_same, axis=1)]
    return np.where(is_same.any(axis=1), nearest, rows)


def correct(
    corrections: list[Correction],
    time: NDArray[np.int64],
    cpu: NDArray[np.uint8],
    code: NDArray[np.unsignedinteger],
    first_row: int = 0,
) -> None:
    """Apply corrections to the times of events.

    A BUFFER event with the time of the event after it keeps that time.

    Args:
        corrections: Corrections for the whole file.
        time: int64 (n,), cycles, changed in place.
        cpu: (n,).
        code: (n,), class and event number.
        first_row: Row of the first of these events in the file.
    """
    for correction in corrections:
        start, end = (min(max(row - first_row, 0), len(time)) for row in (correction.first_row, correction.end_row))
        if start >= end:
            continue
        while start > 0 and code[start - 1] == wire.CONTROL_BUFFER and time[start - 1] == time[start]:
            start -= 1
        is_moved = np.append(cpu[start:end] == correction.cpu, False)  # and the event after them
        shared = np.flatnonzero(code[start:end] == wire.CONTROL_BUFFER) + start
        shared = shared[shared + 1 < len(time)]
        for position in (shared[time[shared] == time[shared + 1]] - start)[::-1].tolist():
            is_moved[position] = is_moved[position + 1]
        rows = np.flatnonzero(is_moved) + start
        time[rows] += correction.rollovers * ROLLOVER
