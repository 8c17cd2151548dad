"""Decides which TIME events to believe.

A damaged TIME event would move all events of its CPU up to the next TIME by days. Its neighbours on both sides show it:
TIME events and the stamps between them agree on how many times the counter rolled over, and the damaged one agrees
with neither. A damaged stamp makes events seem a rollover late in the same way, until the next TIME of the CPU.

`ClockRebuilder` believes every TIME event at once and hands what is odd to `ClockReview`, which answers later, when the
CPU's next TIME has come, with corrections in whole rollovers. All readers apply the same ones. Source: kernel event
trace format, sections 5.2 (a TIME comes with every rollover) and 5.3.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.dataclass import dataclass
from satview.core import library, ordering
from satview.events import wire
from satview.formats.kev.clocks.rollover import ROLLOVER

LOOK_AHEAD_EVENTS: Final = 1 << 16  # a TIME comes with every kernel buffer, so after some hundred events
START_EVENTS: Final = 1 << 12  # the first TIME of the file is judged by those that come within so many events
# After a loss, and where nothing follows, a TIME is believed up to so many rollovers from the rest: a ring may be cut
# in the middle of a long pause (106 s at 2.6 GHz, 4 h at 19.2 MHz).
_BELIEVED_ROLLOVERS: Final = 64
_START_ROLLOVERS: Final = 1 << 12  # a first TIME so far before the others is damage, not silence
_NEAR_CYCLES: Final = 1 << 24  # 6 ms at 2.6 GHz, 0.9 s at 19.2 MHz: far more than CPUs and late events differ by
_NEIGHBOUR_ROWS: Final = 64  # where to look for the events of the same CPU
_MISPLACED_MAX: Final = 20_000
_CHUNK: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Correction:
    """Events of one CPU whose times are wrong by whole rollovers; rows count events in file order."""

    cpu: int
    first_row: int
    end_row: int
    rollovers: int


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What the review found; all lists hold (row in file order, CPU, cycles or rollovers).

    Attributes:
        corrections: To be added to the times.
        steps: TIME events that went back by a rollover or more, and by how many cycles.
        reseeded: First TIME events of CPUs that contradict by a rollover or more where their events were placed.
        damaged: TIME events that their neighbours contradict, and by how many rollovers.
        unproven: TIME events that are rollovers late, with nothing after them that could confirm or contradict it.
    """

    corrections: list[Correction] = field(default_factory=list)
    steps: list[tuple[int, int, int]] = field(default_factory=list)
    reseeded: list[tuple[int, int, int]] = field(default_factory=list)
    damaged: list[tuple[int, int, int]] = field(default_factory=list)
    unproven: list[tuple[int, int, int]] = field(default_factory=list)

    def copy(self) -> Verdicts:
        """Return other lists of the same entries."""
        return Verdicts(
            list(self.corrections), list(self.steps), list(self.reseeded), list(self.damaged), list(self.unproven)
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """A TIME event that is not where the stamps since the one before lead.

    Attributes:
        row: Its row in file order.
        rollovers: Rollovers between its value and where the stamps lead; 0 = none, it confirms what came before.
        cycles: From the CPU's reference to its value.
        is_first: The CPU had no TIME before: the stamps lead on from another CPU's clock.
        has_reference: Events of the CPU were placed before it.
        is_excused: Buffers are missing or out of order since the CPU's TIME before.
    """

    row: int
    rollovers: int
    cycles: int
    is_first: bool
    has_reference: bool
    is_excused: bool


@dataclass(slots=True)
class ClockReview:
    """Odd TIME events that wait for the next one of their CPU, and what was decided.

    Attributes:
        verdicts: What is decided so far.
        breaks: CPU, or -1 for all, to the rows where buffers are missing or out of order, ascending.
    """

    verdicts: Verdicts = field(default_factory=Verdicts)
    breaks: dict[int, list[int]] = field(default_factory=dict)
    _claims: dict[int, Claim] = field(default_factory=dict)
    _crossings: dict[int, tuple[int, int]] = field(default_factory=dict)  # CPU to row and rollovers
    _start: tuple[int, int] | None = None  # CPU and row of the file's first TIME, until another one agrees with it
    _seeded: dict[int, int] = field(default_factory=dict)  # CPU without a TIME so far to its first row

    def begin(self, cpu: int, row: int) -> None:
        """Note the first usable TIME of the file."""
        self._start = (cpu, row)

    def starts_at(self, row: int) -> bool:
        """Return whether the first usable TIME of the file is the one of a row."""
        return self._start is not None and self._start[1] == row

    def seed(self, cpu: int, row: int) -> None:
        """Note a CPU whose events are placed by the clock of another one, from a row on."""
        if row <= START_EVENTS:
            self._seeded[cpu] = row

    def add_breaks(self, breaks: list[tuple[int, int]]) -> None:
        """Note (row, CPU or -1 for all) where buffers are missing or out of order, ascending."""
        for row, cpu in breaks:
            self.breaks.setdefault(cpu, []).append(row)

    def is_excused(self, cpu: int, after_row: int, row: int) -> bool:
        """Return whether buffers are missing or out of order between two TIME events of a CPU."""
        return any(
            bisect_left(rows, row) > bisect_left(rows, after_row)
            for rows in (self.breaks.get(-1, ()), self.breaks.get(cpu, ()))
        )

    def waits(self, cpu: int) -> bool:
        """Return whether the next TIME of a CPU is of interest even if it agrees with what came before."""
        is_start = self._start is not None and self._start[0] == cpu
        return is_start or cpu in self._claims or cpu in self._crossings or cpu in self._seeded

    def waits_from(self, row: int) -> int | None:
        """Return the first row whose time may still change at a row, None if none does."""
        rows = [claim.row for claim in self._claims.values() if row - claim.row <= LOOK_AHEAD_EVENTS]
        rows += [first for first, _ in self._crossings.values() if row - first <= LOOK_AHEAD_EVENTS]
        if row <= START_EVENTS:
            rows += self._seeded.values()
            rows += [0] * (self._start is not None)
        return min(rows, default=None)

    def crossing(self, cpu: int, row: int, rollovers: int) -> None:
        """Note that events of a CPU passed a rollover without the TIME that belongs there; `row` is the first."""
        first, before = self._crossings.get(cpu, (row, 0))
        self._crossings[cpu] = first, before + rollovers

    def time(self, cpu: int, new: Claim) -> None:
        """Judge the TIME before by the next one of its CPU."""
        old = self._claims.pop(cpu, None)
        if old is not None:
            if _is_contradicted(old, new):
                self.verdicts.corrections.append(Correction(cpu, old.row, new.row, -old.rollovers))
                self.verdicts.damaged.append((old.row, cpu, old.rollovers))
                new = replace(new, rollovers=new.rollovers + old.rollovers,
                              cycles=new.cycles + old.rollovers * ROLLOVER)  # fmt: skip
            else:
                self._believe(cpu, old, new.row)
        crossing = self._crossings.get(cpu)
        if crossing is not None and (not new.rollovers or self._undo_crossing(cpu, new, *crossing)):
            del self._crossings[cpu]
            new = replace(new, rollovers=0)
        if not new.rollovers or old is not None:
            self._seeded.pop(cpu, None)
        if new.rollovers:
            self._claims[cpu] = new
        elif self._start is not None and self._start[0] == cpu and new.row != self._start[1]:
            self._start = None

    def _undo_crossing(self, cpu: int, new: Claim, row: int, rollovers: int) -> bool:
        # The TIME is as many rollovers back as the stamps went ahead: the counter never passed them.
        is_undone = -rollovers <= new.rollovers < 0 and not new.is_excused and new.row - row <= LOOK_AHEAD_EVENTS
        if is_undone:
            self.verdicts.corrections.append(Correction(cpu, row, new.row, new.rollovers))
        return is_undone

    def _believe(self, cpu: int, claim: Claim, row: int) -> None:
        if cpu in self._crossings and self._crossings[cpu][0] < claim.row:
            del self._crossings[cpu]
        is_start = self._start is not None and self._start[0] == cpu
        first_row = 0 if is_start else self._seeded.get(cpu)
        is_far = claim.rollovers < 0 or claim.rollovers > _START_ROLLOVERS
        if first_row is None or not is_far or claim.is_excused or row > START_EVENTS:
            _report(self.verdicts, cpu, claim)
        else:
            # This TIME and the next agree with each other, not with the file's first, which placed what came before.
            self.verdicts.corrections.append(Correction(cpu, first_row, claim.row, claim.rollovers))
            if self._start is not None and is_start:
                self.verdicts.damaged.append((self._start[1], cpu, -claim.rollovers))
        if is_start:
            self._start = None

    def at_end(self, references: list[int], unset: int, rows: int) -> Verdicts:
        """Return all verdicts if nothing follows; what waits goes on waiting.

        Args:
            references: Per CPU the latest time placed on it.
            unset: Instead of a reference: no event of that CPU.
            rows: Events of the file.
        """
        verdicts = self.verdicts.copy()
        others = [
            time
            for cpu, time in enumerate(references)
            if time != unset and cpu not in self._claims and cpu not in self._crossings
        ]
        for cpu, (row, rollovers) in sorted(self._crossings.items()):
            if rows - row <= LOOK_AHEAD_EVENTS and others and not _is_near(references[cpu], rollovers, others):
                verdicts.corrections.append(Correction(cpu, row, np.iinfo(np.int64).max, -rollovers))
        for cpu, claim in sorted(self._claims.items()):
            is_old = rows - claim.row > LOOK_AHEAD_EVENTS
            fellows = [references[other] for other in self._claims if other != cpu]
            is_agreed = any(abs(references[cpu] - time) < ROLLOVER for time in fellows)
            # A board may have a counter for each CPU, so the first TIME of one may be away from the others.
            is_believed = abs(claim.rollovers) <= _BELIEVED_ROLLOVERS
            is_harmless = is_believed and (claim.is_excused or claim.is_first or not others)
            if is_old or is_agreed or is_harmless or _is_near(references[cpu], claim.rollovers, others):
                _report(verdicts, cpu, claim)
                if claim.rollovers > 0 and not others and not is_agreed:
                    verdicts.unproven.append((claim.row, cpu, claim.rollovers))
            else:
                verdicts.corrections.append(Correction(cpu, claim.row, np.iinfo(np.int64).max, -claim.rollovers))
                verdicts.damaged.append((claim.row, cpu, claim.rollovers))
        return verdicts


def _is_contradicted(old: Claim, new: Claim) -> bool:
    """Return whether the TIME before `old` and `new` agree better with each other than with `old`."""
    if new.row - old.row > LOOK_AHEAD_EVENTS or (old.is_excused and abs(old.rollovers) <= _BELIEVED_ROLLOVERS):
        return False
    # Without the old one's rollovers the new one would be nearer to where the stamps lead.
    return abs(new.rollovers + old.rollovers) < abs(new.rollovers)


def _is_near(time: int, rollovers: int, others: list[int]) -> bool:
    """Return whether a time is nearer to those of other CPUs than without its rollovers."""
    without = time - rollovers * ROLLOVER
    return bool(others) and min(abs(time - o) for o in others) < min(abs(without - o) for o in others)


def _report(verdicts: Verdicts, cpu: int, claim: Claim) -> None:
    if claim.is_first and claim.has_reference and abs(claim.cycles) >= ROLLOVER:
        verdicts.reseeded.append((claim.row, cpu, claim.cycles))
    elif not claim.is_first and claim.cycles <= -ROLLOVER:
        verdicts.steps.append((claim.row, cpu, -claim.cycles))


def misplaced(
    time: NDArray[np.int64], cpu: NDArray[np.uint8], rows: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return events whose damaged stamps put them far from their neighbours on their CPU, and by how much.

    The events before and after agree with each other, and both are far from it on the same side.

    Args:
        time: int64 (n,), cycles, in file order.
        cpu: (n,).
        rows: (k,), rows that a sort by time would move, ascending: no others can be misplaced.

    Returns:
        Rows (m,), and int64 (m,) cycles from the event before on the CPU; subtracted, they put them between the two.
    """
    rows = rows[slice(*np.searchsorted(rows, (1, len(time) - 1)).tolist())]
    # In pieces that stay in the cache: where CPUs log into buffers of their own, these are all events.
    far = [_far_rows(time, rows[at : at + _CHUNK]) for at in range(0, len(rows), _CHUNK)]
    if not 0 < sum(map(len, far)) <= _MISPLACED_MAX:  # clocks that differ from CPU to CPU, or rubbish
        return rows[:0], rows[:0]
    rows = np.concatenate(far)
    # Neighbours in the file may be of other CPUs, whose clocks may differ: compare with those of its own.
    steps = np.arange(1, _NEIGHBOUR_ROWS + 1)
    first, second = (_same_cpu(cpu, rows, np.clip(rows[:, None] + sign * steps, 0, len(time) - 1)) for sign in (-1, 1))
    before, after = time[rows] - time[first], time[rows] - time[second]
    distance = np.minimum(np.abs(before), np.abs(after))
    agree = np.abs(after - before) < distance // 4
    found = (distance > _NEAR_CYCLES) & agree & ((before > 0) == (after > 0))
    found &= ~(np.isin(first, rows[found]) | np.isin(second, rows[found]))  # of neighbours nobody knows which is wrong
    return rows[found], before[found]


def _far_rows(time: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return those of some rows that are far from the events before and after them, on the same side of both."""
    if library.is_available():
        return ordering.far_rows(time, rows, _NEAR_CYCLES)
    before, after = time[rows] - time[rows - 1], time[rows] - time[rows + 1]
    is_far: NDArray[np.bool_] = (np.minimum(np.abs(before), np.abs(after)) > _NEAR_CYCLES) & (
        (before > 0) == (after > 0)
    )
    return rows[is_far]


def _same_cpu(cpu: NDArray[np.uint8], rows: NDArray[np.intp], others: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return for each row the first of the others that has its CPU, the row itself for none."""
    is_same = cpu[others] == cpu[rows][:, None]
    first = others[np.arange(len(rows)), np.argmax(is_same, axis=1)]
    return np.where(is_same.any(axis=1), first, rows)


def correct(
    corrections: list[Correction],
    time: NDArray[np.int64],
    cpu: NDArray[np.uint8],
    code: NDArray[np.unsignedinteger],
    first_row: int = 0,
) -> None:
    """Add corrections to the times of events.

    A BUFFER event that has the time of the event after it keeps it.

    Args:
        corrections: Of the whole file.
        time: int64 (n,), cycles, changed in place.
        cpu: (n,).
        code: (n,), class and event number.
        first_row: Row of the first of these events in the file.
    """
    for correction in corrections:
        first, end = (min(max(row - first_row, 0), len(time)) for row in (correction.first_row, correction.end_row))
        if first >= end:
            continue
        while first > 0 and code[first - 1] == wire.CONTROL_BUFFER and time[first - 1] == time[first]:
            first -= 1
        is_mine = np.append(cpu[first:end] == correction.cpu, False)  # and the event after them
        shared = np.flatnonzero(code[first:end] == wire.CONTROL_BUFFER) + first
        shared = shared[shared + 1 < len(time)]
        for at in (shared[time[shared] == time[shared + 1]] - first)[::-1].tolist():
            is_mine[at] = is_mine[at + 1]
        rows = np.flatnonzero(is_mine) + first
        time[rows] += correction.rollovers * ROLLOVER
