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

from satview.formats.kev.turns import SLACK, TURN, place_segments

LATEST: Final = 1 << 62  # beyond this a TIME event is damage: no counter has run that long
MAX_CPUS: Final = 64
_UNSET: Final = -1 << 62  # no time, while small negative ones are: stamps from before a counter's zero
_TAIL: Final = 8192  # the latest time of a CPU is nearly always among the last events of a chunk


def _common_turn(references: list[int], low: int, high: int) -> int | None:
    """Return the turn that all stamps from `low` to `high` fall into for each of the references, None if none does."""
    base = max(references) // TURN * TURN
    if base + low < max(base + high, *references) - SLACK or base + high >= min(references) + TURN - SLACK:
        return None
    return base


@dataclass(slots=True)
class ClockRebuilder:
    """State of the clock between chunks.

    Attributes:
        references: Per CPU the reference; -2^62 = no slot of that CPU yet.
        last: Last time placed on any CPU; seeds CPUs that had no TIME yet.
        has_time: Whether any usable TIME event was met.
        first_time: Row of the first one.
        timed: CPUs that had a TIME event of their own.
        steps: (row in file order, cpu, cycles): TIME events that went back by a full turn or more.
        reseeded: (row, cpu, cycles): first TIME of a CPU that contradicts by a full turn or more where its events
            were placed.
        ignored: Rows of TIME events with an impossible upper half.
    """

    references: list[int] = field(default_factory=lambda: [_UNSET] * MAX_CPUS)
    last: int = _UNSET
    has_time: bool = False
    first_time: int = -1
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
        usable = time_rows[time_values >= 0]
        if len(usable) and not self.has_time:
            self.has_time, self.first_time = True, first_row + int(usable[0])
        if not self._place_all_in_one_turn(stamps, cpus, time_rows, time_values, same_as_next, first_row, out):
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
        first_row: int,
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
        self._move_references(base, stamps, cpus, time_rows, values, same_as_next, first_row)
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
        first_row: int,
    ) -> None:
        """Set every CPU's reference to the latest time placed on it since its last TIME."""
        takes_part = np.ones(len(stamps), np.bool_)
        takes_part[same_as_next] = False
        since = [0] * MAX_CPUS
        for row, cpu, value in zip(time_rows.tolist(), cpus[time_rows].tolist(), values, strict=True):
            reference = self.references[cpu]
            if reference != _UNSET and abs(value - reference) >= TURN:  # only a CPU's first event here can be that far
                self._note_steps(cpu, np.array([first_row + row]), np.array([value - reference]))
            # The reference is what the counter said, not the slightly later stamp of the slot itself.
            since[cpu], self.references[cpu] = row + 1, value
            self.timed.add(cpu)
        is_present = np.zeros(MAX_CPUS, np.bool_)
        is_present[cpus] = True
        for cpu in np.flatnonzero(is_present).tolist():
            latest = _latest_stamp(cpu, stamps, cpus, takes_part, since[cpu])
            if latest is None:
                continue
            if self.references[cpu] == _UNSET:  # the last time placed on any CPU before
                first = int(np.argmax((cpus == cpu) & takes_part))
                before = np.flatnonzero(takes_part[:first])
                self.references[cpu] = base + int(stamps[before[-1]]) if len(before) else self.last
            self.references[cpu] = max(self.references[cpu], base + latest)

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
        is_time = np.zeros(len(stamps), np.bool_)
        is_time[time_rows] = True
        order = np.argsort(cpus, kind="stable")
        order = order[takes_part[order]]
        edges = np.searchsorted(cpus[order], np.arange(MAX_CPUS + 1))
        starts = [(int(order[edges[c]]), c) for c in range(MAX_CPUS) if edges[c] < edges[c + 1]]
        # In the order of their first events, so that a CPU without a clock is seeded from one already placed.
        for _, cpu in sorted(starts):
            rows = order[edges[cpu] : edges[cpu + 1]]
            time_at = np.flatnonzero(is_time[rows])
            values = time_values[np.searchsorted(time_rows, rows[time_at])]
            if self.references[cpu] == _UNSET:
                begins_with_time = is_time[rows[0]] and values[0] >= 0  # so no event is placed by the seed
                seed = values[0] if begins_with_time else self._seed(rows[0], cpus, out, starts, same_as_next)
                self.references[cpu] = int(seed)
            self._place_cpu(cpu, stamps, rows, time_at, values, first_row, out)

    def _place_cpu(
        self,
        cpu: int,
        stamps: NDArray[np.uint32],
        rows: NDArray[np.intp],
        time_at: NDArray[np.intp],
        values: NDArray[np.int64],
        first_row: int,
        out: NDArray[np.int64],
    ) -> None:
        """Place the events of one CPU, and note what is odd about its TIME events."""
        usable = values >= 0
        if not usable.all():
            self.ignored += (rows[time_at[~usable]] + first_row).tolist()
            time_at, values = time_at[usable], values[usable]
        ends = place_segments(np.append(self.references[cpu], values), stamps, rows, time_at, out)
        self.references[cpu] = int(ends[-1])
        if len(values):
            self._note_steps(cpu, rows[time_at] + first_row, values - ends[:-1])

    def _note_steps(self, cpu: int, rows: NDArray[np.intp], changes: NDArray[np.int64]) -> None:
        """Note the TIME events of a CPU that moved its reference by a full turn or more where they should not."""
        is_first = cpu not in self.timed
        if is_first and int(rows[0]) != self.first_time and abs(int(changes[0])) >= TURN:
            self.reseeded.append((int(rows[0]), cpu, int(changes[0])))
        back = np.flatnonzero(changes[is_first:] <= -TURN) + is_first
        for row, change in zip(rows[back].tolist(), changes[back].tolist(), strict=True):
            self.steps.append((row, cpu, -change))
        self.timed.add(cpu)

    def _seed(
        self,
        row: np.intp,
        cpus: NDArray[np.uint8],
        out: NDArray[np.int64],
        starts: list[tuple[int, int]],
        same_as_next: NDArray[np.intp],
    ) -> int:
        """Return the last time placed before a row on a CPU that is already done, else that of the chunk before."""
        done = np.array([cpu for at, cpu in starts if at < row], np.uint8)
        before = np.setdiff1d(np.flatnonzero(np.isin(cpus[:row], done)), same_as_next, assume_unique=True)
        return int(out[before[-1]]) if len(before) else self.last


def _latest_stamp(
    cpu: int, stamps: NDArray[np.uint32], cpus: NDArray[np.uint8], takes_part: NDArray[np.bool_], start: int
) -> int | None:
    """Return the greatest stamp of a CPU from `start` on, None if it has none there."""
    tail = max(start, len(stamps) - _TAIL)
    latest = None
    for part in (slice(tail, len(stamps)), slice(start, tail)):
        if latest is not None and (part.start == part.stop or latest >= int(stamps[part].max())):
            break
        mine = cpus[part] == cpu
        mine &= takes_part[part]
        if mine.any():
            latest = max(latest or 0, int(np.multiply(stamps[part], mine).max()))
    return latest


def held_times(stamps: NDArray[np.uint32], value: int) -> NDArray[np.int64]:
    """Return times of events that precede the first TIME of the file, placed backwards from its payload value."""
    back = (value - stamps.astype(np.int64)) % TURN
    return value - np.where(back > TURN - SLACK, back - TURN, back)
