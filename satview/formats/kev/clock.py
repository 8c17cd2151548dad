"""Rebuilds the 64-bit clock of every event from its 32-bit stamp.

Source: kernel event trace format, section 5.3. Per CPU there is a reference: the latest 64-bit time placed on it. A
stamp is placed in the turn that puts it at most a quarter turn before the reference and less than three quarters after
it; a CONTROL TIME event sets the reference. `ClockRebuilder` gives the times of that rule without a walk (the walk
itself is the yardstick of its tests): a chunk in which no CPU can leave its turn needs one addition, the others are
placed in stretches.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

TURN: Final = 1 << 32
SLACK: Final = 1 << 30
LATEST: Final = 1 << 62  # beyond this a TIME event is damage: no counter has run that long
MAX_CPUS: Final = 64
_UNSET: Final = -1
_TAIL: Final = 8192  # the latest time of a CPU is nearly always among the last events of a chunk
_MAX_STRETCHES: Final = 8  # turns of one CPU within a chunk; more only in rubbish, then one by one


def _common_turn(references: list[int], low: int, high: int) -> int | None:
    """Return the turn that all stamps from `low` to `high` fall into for each of the references, None if none does."""
    base = max(references) // TURN * TURN
    if base + low < max(base + high, *references) - SLACK or base + high >= min(references) + TURN - SLACK:
        return None
    return base


def place(reference: int, stamp: int) -> int:
    """Return the 64-bit time of a stamp, given its CPU's reference."""
    ahead = (stamp - reference) % TURN
    return reference + ahead if ahead < TURN - SLACK else reference - (TURN - ahead)


@dataclass(slots=True)
class ClockRebuilder:
    """State of the clock between chunks.

    Attributes:
        references: Per CPU the reference; -1 = no slot of that CPU yet.
        last: Last time placed on any CPU; seeds CPUs that had no TIME yet.
        has_time: Whether any TIME event was met.
        timed: CPUs that had a TIME event of their own.
        steps: (row in file order, cpu, cycles): TIME events that went back by a full turn or more.
        reseeded: (row, cpu, cycles): first TIME of a CPU that contradicts its seed by a full turn or more.
        ignored: Rows of TIME events with an impossible upper half.
    """

    references: list[int] = field(default_factory=lambda: [_UNSET] * MAX_CPUS)
    last: int = _UNSET
    has_time: bool = False
    timed: set[int] = field(default_factory=set)
    steps: list[tuple[int, int, int]] = field(default_factory=list)
    reseeded: list[tuple[int, int, int]] = field(default_factory=list)
    ignored: list[int] = field(default_factory=list)

    def start_from(self, time: int) -> None:
        """Set the clock of every CPU that has none yet, before the first chunk."""
        self.last = time

    def chunk(
        self,
        stamps: NDArray[np.uint32],
        cpus: NDArray[np.uint8],
        time_rows: NDArray[np.intp],
        time_values: NDArray[np.int64],
        same_as_next: NDArray[np.intp],
        first_row: int,
        out: NDArray[np.int64],
    ) -> None:
        """Place one chunk of events.

        Args:
            stamps: (n,), low halves.
            cpus: (n,).
            time_rows: Positions of the TIME events, ascending.
            time_values: Their payload as 64-bit value (msb * 2^32 + lsb); negative = unusable.
            same_as_next: Positions of BUFFER events that share their stamp with the next event of the chunk: they take
                its time and leave the clock alone.
            first_row: Number of the chunk's first event, for reports.
            out: (n,), receives the times.
        """
        if not len(stamps):
            return
        if self.last == _UNSET:
            self.last = int(stamps[0])
        if not self._place_all_in_one_turn(stamps, cpus, time_rows, time_values, same_as_next, out):
            self._place_by_cpu(stamps, cpus, time_rows, time_values, same_as_next, first_row, out)
        if len(same_as_next):  # several in a row all take the time of the event behind them
            ends = np.flatnonzero(np.append(np.diff(same_as_next) != 1, True))
            out[same_as_next] = np.repeat(out[same_as_next[ends] + 1], np.diff(ends, prepend=-1))
        self.last = int(out[-1])

    def _place_all_in_one_turn(
        self,
        stamps: NDArray[np.uint32],
        cpus: NDArray[np.uint8],
        time_rows: NDArray[np.intp],
        time_values: NDArray[np.int64],
        same_as_next: NDArray[np.intp],
        out: NDArray[np.int64],
    ) -> bool:
        """Place a chunk with one addition, if by the rules no CPU can leave its turn in it; return whether it did."""
        if np.any(time_values < 0):
            return False
        low, high = int(stamps.min()), int(stamps.max())
        values = [int(v) for v in time_values]
        # Every CPU ever seen is easy to ask for, and mostly enough. Only a CPU silent for long needs the closer look.
        references = [r for r in self.references if r != _UNSET]
        base = _common_turn([*references, self.last, *values], low, high)
        if base is None:
            base = _common_turn([*self._references_that_matter(cpus, time_rows), *values], low, high)
        if base is None or any(value // TURN * TURN != base for value in values):
            return False
        out[:] = stamps
        out += base
        self._move_references(base, stamps, cpus, time_rows, values, same_as_next)
        return True

    def _references_that_matter(self, cpus: NDArray[np.uint8], time_rows: NDArray[np.intp]) -> list[int]:
        """Return the references of the CPUs in this chunk, save those whose first event here sets it anew."""
        present, first = np.unique(cpus, return_index=True)
        times = set(time_rows.tolist())
        return [
            self.references[c] if self.references[c] != _UNSET else self.last
            for c, row in zip(present.tolist(), first.tolist(), strict=True)
            if row not in times
        ]

    def _move_references(
        self,
        base: int,
        stamps: NDArray[np.uint32],
        cpus: NDArray[np.uint8],
        time_rows: NDArray[np.intp],
        values: list[int],
        same_as_next: NDArray[np.intp],
    ) -> None:
        """Set every CPU's reference to the latest time placed on it since its last TIME."""
        takes_part = np.ones(len(stamps), np.bool_)
        if len(same_as_next):
            stamps = stamps.copy()
            stamps[same_as_next], takes_part[same_as_next] = 0, False
        since = dict.fromkeys(range(MAX_CPUS), 0)
        floor = dict(enumerate(self.references))
        for row, value in zip(time_rows.tolist(), values, strict=True):
            # The reference is what the counter said, not the slightly later stamp of the slot itself.
            cpu = int(cpus[row])
            since[cpu], floor[cpu] = row + 1, value
            self.has_time = True
            self.timed.add(cpu)
        tail = max(0, len(stamps) - _TAIL)
        before_tail = int(stamps[:tail].max()) if tail else 0
        for cpu in np.flatnonzero(np.bincount(cpus[tail:], minlength=MAX_CPUS)).tolist():
            start = since[cpu]
            latest = int(np.multiply(stamps[max(tail, start) :], cpus[max(tail, start) :] == cpu).max(initial=0))
            if latest < before_tail and start < tail:
                latest = max(latest, int(np.multiply(stamps[start:tail], cpus[start:tail] == cpu).max(initial=0)))
            is_placed = latest > 0 or bool(np.any(takes_part[start:] & (cpus[start:] == cpu)))
            self.references[cpu] = max(floor.pop(cpu), base + latest) if is_placed else floor.pop(cpu)
        for cpu in range(int(cpus.max()) + 1 if floor else 0):
            if cpu in floor and tail:
                mine = cpus[since[cpu] : tail] == cpu
                mine &= takes_part[since[cpu] : tail]
                latest = int(np.multiply(stamps[since[cpu] : tail], mine).max(initial=0))
                self.references[cpu] = max(floor[cpu], base + latest) if mine.any() else floor[cpu]

    def _place_by_cpu(
        self,
        stamps: NDArray[np.uint32],
        cpus: NDArray[np.uint8],
        time_rows: NDArray[np.intp],
        time_values: NDArray[np.int64],
        same_as_next: NDArray[np.intp],
        first_row: int,
        out: NDArray[np.int64],
    ) -> None:
        takes_part = np.ones(len(stamps), np.bool_)
        takes_part[same_as_next] = False
        order = np.argsort(cpus, kind="stable")
        order = order[takes_part[order]]
        edges = np.searchsorted(cpus[order], np.arange(MAX_CPUS + 1))
        value_at = dict(zip(time_rows.tolist(), time_values.tolist(), strict=True))
        starts = [(int(order[edges[c]]), c) for c in range(MAX_CPUS) if edges[c] < edges[c + 1]]
        # In the order of their first events, so that a CPU without a clock is seeded from one already placed.
        for _, cpu in sorted(starts):
            rows = order[edges[cpu] : edges[cpu + 1]]
            if self.references[cpu] == _UNSET:
                self.references[cpu] = self._seed(int(rows[0]), cpus, out, starts, same_as_next)
            cuts = np.flatnonzero(np.isin(rows, time_rows, kind="table"))
            begin = 0
            for cut in [*cuts.tolist(), len(rows)]:
                self.references[cpu] = _place_stretches(self.references[cpu], stamps, rows[begin:cut], out)
                if cut < len(rows):
                    self._set_by_time(
                        int(rows[cut]), cpu, value_at[int(rows[cut])], int(stamps[rows[cut]]), first_row, out
                    )
                begin = cut + 1

    def _seed(
        self,
        row: int,
        cpus: NDArray[np.uint8],
        out: NDArray[np.int64],
        starts: list[tuple[int, int]],
        same_as_next: NDArray[np.intp],
    ) -> int:
        """Return the last time placed before a row on a CPU that is already done, else that of the chunk before."""
        done = np.array([cpu for at, cpu in starts if at < row], np.uint8)
        before = np.setdiff1d(np.flatnonzero(np.isin(cpus[:row], done)), same_as_next, assume_unique=True)
        return int(out[before[-1]]) if len(before) else self.last

    def _set_by_time(self, row: int, cpu: int, value: int, stamp: int, first_row: int, out: NDArray[np.int64]) -> None:
        if value < 0:
            self.ignored.append(first_row + row)
            out[row] = place(self.references[cpu], stamp)
            return
        # The stamp is read a little after the payload; SLACK tells a late stamp from an early one.
        late = (stamp - value) % TURN
        out[row] = value + late if late < TURN - SLACK else value - (TURN - late)
        reference = self.references[cpu]
        if cpu not in self.timed and abs(value - reference) >= TURN and self.has_time:
            self.reseeded.append((first_row + row, cpu, value - reference))
        elif cpu in self.timed and value <= reference - TURN:
            self.steps.append((first_row + row, cpu, reference - value))
        self.references[cpu] = value
        self.timed.add(cpu)
        self.has_time = True


def _place_stretches(reference: int, stamps: NDArray[np.uint32], rows: NDArray[np.intp], out: NDArray[np.int64]) -> int:
    """Place the events of one CPU between two TIMEs, one stretch per turn; return the new reference."""
    for _ in range(_MAX_STRETCHES):
        if not len(rows):
            return reference
        mine = stamps[rows].astype(np.int64)
        times = mine + (place(reference, int(mine[0])) - int(mine[0]))
        running = np.maximum.accumulate(np.maximum(times, reference))
        # Each event is judged by the reference before it: the running maximum one place earlier.
        before = np.concatenate(([reference], running[:-1]))
        misplaced = (times < before - SLACK) | (times >= before + TURN - SLACK)
        fits = int(np.argmax(misplaced)) if misplaced.any() else len(rows)
        out[rows[:fits]] = times[:fits]
        reference = int(running[fits - 1])
        rows = rows[fits:]
    return _place_rest(reference, stamps, rows, out)


def _place_rest(reference: int, stamps: NDArray[np.uint32], rows: NDArray[np.intp], out: NDArray[np.int64]) -> int:
    times, limit = [], TURN - SLACK
    for stamp in stamps[rows].tolist():
        ahead = (stamp - reference) % TURN       # `place`, written out: this loop is what rubbish costs
        if ahead < limit:
            reference += ahead
            times.append(reference)
        else:
            times.append(reference - TURN + ahead)
    out[rows] = times
    return reference


def held_times(stamps: NDArray[np.uint32], value: int) -> NDArray[np.int64]:
    """Return times of events that precede the first TIME of the file, placed backwards from its payload value."""
    back = (value - stamps.astype(np.int64)) % TURN
    return value - np.where(back > TURN - SLACK, back - TURN, back)
