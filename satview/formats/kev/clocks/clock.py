"""Rebuilds the 64-bit clock of every event from its 32-bit stamp.

Source: kernel event trace format, section 5.3. Per CPU there is a reference: the latest 64-bit time placed on it. A
stamp is placed between the rollovers that put it at most a quarter of a rollover period before the reference and less
than three quarters after it; a CONTROL TIME event sets the reference. `ClockRebuilder` gives the times of that rule
without a walk in Python (a walk is what its tests compare it with): the compiled core walks, the numpy code needs one
addition for a chunk in which no CPU passes a rollover and takes the others span by span.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.base.dataclass import dataclass
from satview.core import library, loading
from satview.formats.kev.clocks.clock_chunk import ClockChunk
from satview.formats.kev.clocks.clock_review import Claim, ClockReview, Verdicts
from satview.formats.kev.clocks.rollover import ROLLOVER, SLACK, unwrap, unwrap_segments

MAX_CPUS: Final = 64
_UNSET: Final = -1 << 62  # no time, while small negative ones are: stamps from before a counter's zero
_TAIL: Final = 8192  # the latest time of a CPU is nearly always among the last events of a chunk


def _common_rollover(references: list[int], low: int, high: int) -> int | None:
    """Return the rollover after which all stamps from `low` to `high` lie for each of the references, None for none."""
    base = max(references) // ROLLOVER * ROLLOVER
    if base + low < max(base + high, *references) - SLACK or base + high >= min(references) + ROLLOVER - SLACK:
        return None
    return base


@dataclass(slots=True)
class ClockRebuilder:
    """State of the clock between chunks.

    Every TIME event is believed at once; `review` decides later which of them were damaged.

    Attributes:
        references: Per CPU the reference; -2^62 = no slot of that CPU yet.
        last: Last time placed on any CPU; seeds CPUs that had no TIME yet.
        has_time: Whether any usable TIME event was met.
        timed: CPUs that had a TIME event of their own, to the row of the last one.
        ignored: Rows of TIME events with an impossible value.
        rows: Events so far.
        review: Judges TIME events that are not where stamps lead.
    """

    references: list[int] = field(default_factory=lambda: [_UNSET] * MAX_CPUS)
    last: int = _UNSET
    has_time: bool = False
    timed: dict[int, int] = field(default_factory=dict)
    ignored: list[int] = field(default_factory=list)
    rows: int = 0
    review: ClockReview = field(default_factory=ClockReview)

    def start_from(self, time: int) -> None:
        """Set the clock of every CPU that has none yet, before the first chunk."""
        self.last = time

    def verdicts(self) -> Verdicts:
        """Return corrections and reports for all events so far, as if none followed."""
        return self.review.at_end(self.references, _UNSET, self.rows)

    def unwrap(self, chunk: ClockChunk, out: NDArray[np.int64]) -> None:
        """Set the times of the events of a chunk.

        Args:
            chunk: Its n events; chunks come in the order of the file.
            out: (n,), receives the times in cycles.
        """
        self.rows = chunk.first_row + len(chunk.stamps)
        if not len(chunk.stamps):
            return
        # No TIME so far, and none before this chunk: rule 5 of section 5.3, times count from the first stamp.
        if self.last == _UNSET:
            self.last = int(chunk.stamps[0])
        usable = chunk.time_rows[chunk.time_values >= 0]
        if len(usable) and not self.has_time:
            self.has_time = True
            self.review.begin(int(chunk.cpus[usable[0]]), chunk.first_row + int(usable[0]))
        if library.is_available():
            self._unwrap_by_core(chunk, out)
            return
        if not self._unwrap_all_between_rollovers(chunk, out):
            self._unwrap_by_cpu(chunk, out)
        same_as_next = chunk.same_as_next
        if len(same_as_next):  # several in a row all take the time of the event behind them
            ends = np.flatnonzero(np.append(np.diff(same_as_next) != 1, True))
            out[same_as_next] = np.repeat(out[same_as_next[ends] + 1], np.diff(ends, prepend=-1))
        self.last = int(out[-1])

    def _unwrap_by_core(self, chunk: ClockChunk, out: NDArray[np.int64]) -> None:
        """Set the times of a chunk by the compiled walk, and hand what is odd to the review."""
        self.ignored += (chunk.time_rows[chunk.time_values < 0] + chunk.first_row).tolist()
        references = np.array(self.references, np.int64)
        self.last, log = loading.clock(
            chunk.stamps,
            chunk.cpus,
            chunk.time_rows,
            chunk.time_values,
            chunk.same_as_next,
            references,
            self.last,
            out,
        )
        self.references = references.tolist()
        if len(log):
            self._review_log(log, chunk)

    def _review_log(self, log: NDArray[np.int64], chunk: ClockChunk) -> None:
        """Note what the compiled walk met; of CPUs that have nothing odd only where their last TIME is.

        Args:
            log: int64 (m, 4), as `core.passes.clock` returns it.
            chunk: The events.
        """
        kind, row, amount, extra = log.T
        first_row = chunk.first_row
        cpu = chunk.cpus[row].astype(np.int64)
        is_time = kind == loading.LOG_TIME
        value = np.zeros(len(log), np.int64)
        value[is_time] = chunk.time_values[np.searchsorted(chunk.time_rows, row[is_time])]
        # A CPU without reference: the walk could only compare its first TIME with the clock of another CPU.
        for at in np.flatnonzero(is_time & (extra == 0)).tolist():
            if self.review.starts_at(int(row[at]) + first_row):  # the file's first TIME: nothing leads to it
                amount[at] = value[at]
        # How far the TIME is from where the stamps lead, split into whole rollovers and the rest that rule 2 explains.
        ahead = (value - amount) & (ROLLOVER - 1)
        rollovers = (value - amount - np.where(ahead >= ROLLOVER - SLACK, ahead - ROLLOVER, ahead)) // ROLLOVER
        is_odd = ~is_time | (rollovers != 0)
        watched = {*cpu[is_odd].tolist(), *(number for number in set(cpu.tolist()) if self.review.waits(number))}
        if not watched:  # as nearly always
            self.timed.update(zip(cpu.tolist(), (row + first_row).tolist(), strict=True))
            return
        for at in np.flatnonzero(np.isin(cpu, list(watched))).tolist():
            number, where = int(cpu[at]), int(row[at]) + first_row
            if kind[at] == loading.LOG_CROSSING:
                if number in self.timed:
                    self._note_crossing(number, where, int(amount[at]))
            elif kind[at] == loading.LOG_SEED:
                self.review.seed(number, where)
            else:
                cycles = int(value[at] - amount[at])
                self._note_time(number, where, int(rollovers[at]), cycles, has_reference=bool(extra[at]))
        rest = is_time & ~np.isin(cpu, list(watched))
        self.timed.update(zip(cpu[rest].tolist(), (row[rest] + first_row).tolist(), strict=True))

    def _unwrap_all_between_rollovers(self, chunk: ClockChunk, out: NDArray[np.int64]) -> bool:
        """Set the times of a chunk with one addition, if no CPU can pass a rollover in it; return whether it did."""
        # Damaged TIME events take the way that notes them.
        if np.any(chunk.time_values < 0):
            return False
        low, high = int(chunk.stamps.min()), int(chunk.stamps.max())
        if high - low > SLACK:  # whatever the references are, the rule may place these in different rollovers
            return False
        values = chunk.time_values.tolist()
        # Every CPU ever seen is cheap to find, and mostly enough. Only a CPU silent for long needs the closer look.
        references = [r for r in self.references if r != _UNSET]
        base = _common_rollover([*references, self.last, *values], low, high)
        if base is None:
            references = self._references_that_matter(chunk.cpus, chunk.time_rows)
            base = _common_rollover([*references, *values], low, high)
        if base is None or any(value // ROLLOVER * ROLLOVER != base for value in values):
            return False
        # All stamps are in one rollover, so the upper half is the same for all of them.
        out[:] = chunk.stamps
        out += base
        self._move_references(base, chunk)
        return True

    def _references_that_matter(self, cpus: NDArray[np.uint8], time_rows: NDArray[np.intp]) -> list[int]:
        """Return the references of the CPUs in this chunk, save those whose first event here sets it again."""
        present, first = np.unique(cpus, return_index=True)
        times = set(time_rows.tolist())
        return [
            self.references[c] if self.references[c] != _UNSET else self.last
            for c, row in zip(present.tolist(), first.tolist(), strict=True)
            if row not in times
        ]

    def _move_references(self, base: int, chunk: ClockChunk) -> None:
        """Set every CPU's reference to the latest time placed on it since its last TIME."""
        stamps, cpus, first_row = chunk.stamps, chunk.cpus, chunk.first_row
        takes_part = chunk.takes_part
        since = [0] * MAX_CPUS
        self._note_passed_rollovers(base, chunk, takes_part)
        time_cpus = cpus[chunk.time_rows].tolist()
        for row, cpu, value in zip(chunk.time_rows.tolist(), time_cpus, chunk.time_values.tolist(), strict=True):
            reference = self.references[cpu]
            # Only the first event of a CPU in this chunk can be far from its reference, and then that is up to date.
            has_reference = reference != _UNSET
            if not has_reference:
                reference = self.last if self.timed and not takes_part[:row].any() else value
            rollovers = (value - unwrap(reference, value)) // ROLLOVER
            self._note_time(cpu, first_row + row, rollovers, value - reference, has_reference=has_reference)
            # The reference is what the counter said, not the slightly later stamp of the slot itself.
            since[cpu], self.references[cpu] = row + 1, value
        for cpu in range(int(cpus.max()) + 1):
            latest = _latest_stamp(cpu, stamps, cpus, takes_part, since[cpu])
            if latest is None:
                continue
            if self.references[cpu] == _UNSET:  # the last time placed on any CPU before
                first = int(np.argmax((cpus == cpu) & takes_part))
                before = np.flatnonzero(takes_part[:first])
                self.references[cpu] = base + int(stamps[before[-1]]) if len(before) else self.last
                self.review.seed(cpu, first_row + first)
            self.references[cpu] = max(self.references[cpu], base + latest)

    def _note_passed_rollovers(self, base: int, chunk: ClockChunk, takes_part: NDArray[np.bool_]) -> None:
        """Note the CPUs with a TIME before that pass a rollover in a chunk without another one."""
        times = set(chunk.time_rows.tolist())
        for cpu in self.timed:
            if _UNSET < self.references[cpu] < base:
                rows = np.flatnonzero((chunk.cpus == cpu) & takes_part)
                if len(rows) and int(rows[0]) not in times:
                    passed = base // ROLLOVER - self.references[cpu] // ROLLOVER
                    self._note_crossing(cpu, chunk.first_row + int(rows[0]), passed)

    def _note_crossing(self, cpu: int, row: int, rollovers: int) -> None:
        """Show the review of events past a rollover, unless the TIME that belongs there may be lost."""
        if not self.review.is_excused(cpu, self.timed[cpu], row):
            self.review.crossing(cpu, row, rollovers)

    def _note_time(self, cpu: int, row: int, rollovers: int, cycles: int, *, has_reference: bool) -> None:
        """Hand a TIME event to the review if that is interested."""
        before = self.timed.get(cpu)
        self.timed[cpu] = row
        if self.review.starts_at(row):  # nothing before it knew the upper half
            rollovers = 0
        if rollovers or self.review.waits(cpu):
            is_excused = self.review.is_excused(cpu, -1 if before is None else before, row)
            self.review.time(cpu, Claim(row, rollovers, cycles, before is None, has_reference, is_excused))

    def _unwrap_by_cpu(self, chunk: ClockChunk, out: NDArray[np.int64]) -> None:
        cpus, time_rows, takes_part = chunk.cpus, chunk.time_rows, chunk.takes_part
        is_time = np.zeros(len(cpus), np.bool_)
        is_time[time_rows] = True
        # Rules 1 and 2 are about one CPU: its events together, in the order of the file.
        order = np.argsort(cpus, kind="stable")
        order = order[takes_part[order]]
        edges = np.searchsorted(cpus[order], np.arange(MAX_CPUS + 1))
        starts = [(int(order[edges[c]]), c) for c in range(MAX_CPUS) if edges[c] < edges[c + 1]]
        # In the order of their first events, so that a CPU without a clock is seeded from one already placed.
        for _, cpu in sorted(starts):
            rows = order[edges[cpu] : edges[cpu + 1]]
            has_reference = self.references[cpu] != _UNSET
            if not has_reference:
                value = chunk.time_values[np.searchsorted(time_rows, rows[0])] if is_time[rows[0]] else -1
                begins_with_time = value >= 0
                is_start = begins_with_time and self.review.starts_at(chunk.first_row + int(rows[0]))
                seed = value if is_start else self._seed(rows[0], chunk, out, starts)
                self.references[cpu] = int(seed)
                if not begins_with_time:
                    self.review.seed(cpu, chunk.first_row + int(rows[0]))
                    has_reference = True
            self._unwrap_cpu(cpu, chunk, rows, out, is_time[rows], has_reference=has_reference)

    def _unwrap_cpu(
        self,
        cpu: int,
        chunk: ClockChunk,
        rows: NDArray[np.intp],
        out: NDArray[np.int64],
        is_time: NDArray[np.bool_],
        *,
        has_reference: bool,
    ) -> None:
        """Set the times of one CPU, and note what is odd about its TIME events.

        Args:
            cpu: The CPU.
            chunk: The chunk.
            rows: (m,), positions of its events that move the clock, ascending.
            out: (n,), receives the times of the chunk.
            is_time: bool (m,), which of its events are TIME events.
            has_reference: Whether its reference is of an event before the chunk.
        """
        time_at = np.flatnonzero(is_time)
        values = chunk.time_values[np.searchsorted(chunk.time_rows, rows[time_at])]
        usable = values >= 0
        if not usable.all():
            self.ignored += (rows[time_at[~usable]] + chunk.first_row).tolist()
            time_at, values = time_at[usable], values[usable]
        starts = np.append(self.references[cpu], values)
        ends = unwrap_segments(starts, chunk.stamps, rows, time_at, out)
        self.references[cpu] = int(ends[-1])
        self._note_oddities(cpu, starts, ends, rows, time_at, chunk.first_row, out, has_reference=has_reference)

    def _note_oddities(
        self,
        cpu: int,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        rows: NDArray[np.intp],
        time_at: NDArray[np.intp],
        first_row: int,
        out: NDArray[np.int64],
        *,
        has_reference: bool,
    ) -> None:
        """Hand TIME events that are not where the stamps lead, and rollovers without TIME, to the review."""
        # A TIME comes before the first event after a rollover, so its segment ends in the rollover in which it begins.
        is_passed = ends // ROLLOVER > starts // ROLLOVER
        is_passed[0] &= cpu in self.timed
        values, before = starts[1:], ends[:-1]
        ahead = (values - before) & (ROLLOVER - 1)
        rollovers = (values - before - np.where(ahead >= ROLLOVER - SLACK, ahead - ROLLOVER, ahead)) // ROLLOVER
        if not (is_passed.any() or rollovers.any() or self.review.waits(cpu)):
            if len(values):
                self.timed[cpu] = int(rows[time_at[-1]]) + first_row
            return
        edges = [0, *time_at.tolist(), len(rows)]
        for number in range(len(starts)):
            if number:
                self._note_time(
                    cpu,
                    int(rows[edges[number]]) + first_row,
                    int(rollovers[number - 1]),
                    int(values[number - 1] - before[number - 1]),
                    has_reference=has_reference or number > 1,
                )
            if is_passed[number]:
                mine = rows[edges[number] + (number > 0) : edges[number + 1]]
                beyond = np.flatnonzero(out[mine] // ROLLOVER > starts[number] // ROLLOVER)
                passed = int(ends[number] // ROLLOVER - starts[number] // ROLLOVER)
                self._note_crossing(cpu, int(mine[beyond[0]]) + first_row, passed)

    def _seed(self, row: np.intp, chunk: ClockChunk, out: NDArray[np.int64], starts: list[tuple[int, int]]) -> int:
        """Return the last time placed before a row on a CPU that is already done, else that of the chunk before."""
        done = np.array([cpu for at, cpu in starts if at < row], np.uint8)
        earlier = np.flatnonzero(np.isin(chunk.cpus[:row], done))
        before = np.setdiff1d(earlier, chunk.same_as_next, assume_unique=True)
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
    """Return times of events that precede the first TIME of the file, placed backwards from its payload value.

    Returns:
        int64 (n,), cycles.
    """
    back = (value - stamps.astype(np.int64)) % ROLLOVER
    return value - np.where(back > ROLLOVER - SLACK, back - ROLLOVER, back)
