"""Rebuilds the 64-bit clock of every event from its 32-bit stamp.

Source: kernel event trace format, section 5.3. Per CPU there is a reference: the latest 64-bit time placed on it. A
stamp is placed between the rollovers that put it at most a quarter of a rollover period before the reference and less
than three quarters after it; a CONTROL TIME event sets the reference. `ClockRebuilder` gives the times of that rule
without a walk in Python (a walk is what its tests compare it with): the compiled core walks, the numpy code needs one
addition for a chunk in which no CPU passes a rollover and takes the others span by span.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import library, loading
from satview.formats.kev.clocks.clock_chunk import ClockChunk
from satview.formats.kev.clocks.clock_review import ClockReview
from satview.formats.kev.clocks.consensus import CROSSING, SEED, TIME, Claims, Verdicts
from satview.formats.kev.clocks.rollover import ROLLOVER, SLACK, unwrap_segments

MAX_CPUS: Final = 64
_UNSET: Final = -1 << 62  # no time, while small negative ones are: stamps from before a counter's zero
_END_EVENTS: Final = 4096  # where to look for the last event of each CPU
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
        ignored: Rows of TIME events with an impossible value.
        rows: Events so far.
        review: Judges TIME events, all of them together.
    """

    references: list[int] = field(default_factory=lambda: [_UNSET] * MAX_CPUS)
    last: int = _UNSET
    has_time: bool = False
    ignored: list[int] = field(default_factory=list)
    rows: int = 0
    review: ClockReview = field(default_factory=ClockReview)
    _ignored_cpus: list[int] = field(default_factory=list)
    _log: list[tuple[int, int, int, int]] = field(default_factory=list)  # of the numpy code, as clock.c describes it
    _recent: list[tuple[int, NDArray[np.uint8]]] = field(default_factory=list)  # first row and CPUs of the last chunks

    def __deepcopy__(self, memo: dict[int, object]) -> ClockRebuilder:
        """Return a clock that goes on alone; arrays are shared, for nobody changes them."""
        review = self.review.__deepcopy__(memo)
        return ClockRebuilder(list(self.references), self.last, self.has_time, list(self.ignored), self.rows, review,
                              list(self._ignored_cpus), [], list(self._recent))  # fmt: skip

    def start_from(self, time: int) -> None:
        """Set the clock of every CPU that has none yet, before the first chunk."""
        self.last = time

    def hold(self, chunk: ClockChunk, held: int, value: int, out: NDArray[np.int64]) -> ClockChunk:
        """Set the times of the events in front of the first usable TIME of the file, backwards from it.

        Args:
            chunk: The first events of the file.
            held: How many of them that are.
            value: The time of that TIME event.
            out: (n,), receives their times.

        Returns:
            The others.
        """
        if held:
            self._ignore(chunk.time_rows[chunk.time_rows < held], chunk)
            stamps, cpus = chunk.stamps[:held], chunk.cpus[:held]
            out[:held] = held_times(stamps, value)
            if np.any(chunk.time_rows < held):  # one there is damaged: a rollover may have been behind it
                out[:held] -= _rollovers_after(stamps, cpus, out[:held]) * ROLLOVER
            held_cpus, first = np.unique(cpus, return_index=True)
            is_other = ~np.isin(held_cpus, chunk.cpus[held : held + 1])  # those of its own CPU are where it is
            held_cpus, first = held_cpus[is_other], first[is_other]
            for cpu in held_cpus.tolist():
                self.references[cpu] = max(self.references[cpu], int(out[:held][cpus == cpu].max()))
            none, zeros = np.full(len(first), -1), np.zeros(len(first), np.int64)
            row, kind = first + chunk.first_row, np.full(len(first), SEED)
            self.review.add(Claims(row, held_cpus.astype(np.int64), kind, out[first], zeros, zeros, none, zeros))
        return chunk.without(held)

    def _ignore(self, rows: NDArray[np.intp], chunk: ClockChunk) -> None:
        """Note TIME events of a chunk with an impossible value."""
        self.ignored += (rows + chunk.first_row).tolist()
        self._ignored_cpus += chunk.cpus[rows].tolist()

    def verdicts(self) -> Verdicts:
        """Return corrections and reports for all events so far, as if none followed."""
        verdicts = self.review.verdicts(self._ends(), is_damaged=bool(self.ignored))
        lost = self.review.after_lost(self.ignored, self._ignored_cpus, verdicts.corrections)
        return replace(verdicts, doubtful=verdicts.doubtful + lost)

    def settle(self) -> None:
        """Decide what cannot wait for any longer, for a reader that hands on events before it has all."""
        if self.review.is_due(self.rows):
            self.review.settle(self.rows, self._ends())

    def _ends(self) -> dict[int, tuple[int, int]]:
        """Return row and time of the last event of each CPU that has one among the last events of all."""
        ends: dict[int, tuple[int, int]] = {}
        for start, chunk_cpus in self._recent:
            first_row = max(start, self.rows - _END_EVENTS)
            cpus = chunk_cpus[first_row - start :]
            for cpu in np.unique(cpus).tolist():
                row = first_row + len(cpus) - 1 - int(np.argmax(cpus[::-1] == cpu))
                ends[cpu] = row, self.references[cpu]
        return {cpu: end for cpu, end in ends.items() if end[1] != _UNSET}

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
            self.review.start_row = chunk.first_row + int(usable[0])
        before = int(self._recent[-1][1][-1]) if self._recent else -1
        tail = chunk.cpus[-_END_EVENTS:].copy()  # a view would keep the whole column
        self._recent.append((self.rows - len(tail), tail))
        while len(self._recent) > 1 and self._recent[1][0] <= self.rows - _END_EVENTS:
            del self._recent[0]
        if library.is_available():
            self._unwrap_by_core(chunk, out, before)
            return
        if not self._unwrap_all_between_rollovers(chunk, out):
            self._unwrap_by_cpu(chunk, out)
        same_as_next = chunk.same_as_next
        if len(same_as_next):  # several in a row all take the time of the event behind them
            ends = np.flatnonzero(np.append(np.diff(same_as_next) != 1, True))
            out[same_as_next] = np.repeat(out[same_as_next[ends] + 1], np.diff(ends, prepend=-1))
        self.last = int(out[-1])
        if self._log:
            self._hand_on(np.array(self._log, np.int64), chunk, out, before)
            self._log = []

    def _unwrap_by_core(self, chunk: ClockChunk, out: NDArray[np.int64], cpu_before: int) -> None:
        """Set the times of a chunk by the compiled walk, and hand what it notes to the review."""
        self._ignore(chunk.time_rows[chunk.time_values < 0], chunk)
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
            self._hand_on(log, chunk, out, cpu_before)

    def _hand_on(self, log: NDArray[np.int64], chunk: ClockChunk, out: NDArray[np.int64], cpu_before: int) -> None:
        """Hand the log of the walk to the review.

        Args:
            log: int64 (m, 4), as clock.c describes it.
            chunk: The events.
            out: (n,), their times.
            cpu_before: CPU of the event before them, -1 = none.
        """
        # A crossing shows late, and the numpy code goes from CPU to CPU.
        kind, row, amount, extra = log[np.lexsort((log[:, 0] == loading.LOG_CROSSING, log[:, 1]))].T
        is_time = kind == loading.LOG_TIME
        value = out[row]
        value[is_time] = chunk.time_values[np.searchsorted(chunk.time_rows, row[is_time])]
        # Nothing leads to the file's first TIME.
        before = np.where(row + chunk.first_row == self.review.start_row, value, amount)
        gap = (value - before) & (ROLLOVER - 1)
        gap -= np.where(gap >= ROLLOVER - SLACK, ROLLOVER, 0)
        rollovers = np.where(is_time, (value - before - gap) // ROLLOVER, amount)
        source = np.full(len(row), -1)
        for at in np.flatnonzero((kind == loading.LOG_SEED) | (is_time & (extra == 0))).tolist():
            if not is_time[at] or before[at] != value[at]:
                source[at] = _cpu_before(int(row[at]), chunk, cpu_before)
        kind = np.choose(kind, (SEED, TIME, CROSSING))
        gap[kind != TIME] = 0
        self.review.add(Claims(row + chunk.first_row, chunk.cpus[row].astype(np.int64), kind, value, rollovers, gap,
                               source, is_time.astype(np.int64)))  # fmt: skip

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
        stamps, cpus = chunk.stamps, chunk.cpus
        takes_part = chunk.takes_part
        since = [0] * MAX_CPUS
        self._note_passed_rollovers(base, chunk, takes_part)
        time_cpus = cpus[chunk.time_rows].tolist()
        for row, cpu, value in zip(chunk.time_rows.tolist(), time_cpus, chunk.time_values.tolist(), strict=True):
            reference = self.references[cpu]
            # Only the first event of a CPU in this chunk can be far from its reference, and then that is up to date.
            has_reference = reference != _UNSET
            if not has_reference:
                reference = _time_before(row, base, chunk, takes_part, self.last)
            self._log.append((loading.LOG_TIME, row, reference, has_reference))
            # The reference is what the counter said, not the slightly later stamp of the slot itself.
            since[cpu], self.references[cpu] = row + 1, value
        for cpu in range(int(cpus.max()) + 1):
            latest = _latest_stamp(cpu, stamps, cpus, takes_part, since[cpu])
            if latest is None:
                continue
            if self.references[cpu] == _UNSET:  # the last time placed on any CPU before
                first = int(np.argmax((cpus == cpu) & takes_part))
                self.references[cpu] = _time_before(first, base, chunk, takes_part, self.last)
                self._log.append((loading.LOG_SEED, first, 0, 0))
            self.references[cpu] = max(self.references[cpu], base + latest)

    def _note_passed_rollovers(self, base: int, chunk: ClockChunk, takes_part: NDArray[np.bool_]) -> None:
        """Note the CPUs that pass a rollover in a chunk without a TIME of theirs."""
        times = set(chunk.time_rows.tolist())
        for cpu, reference in enumerate(self.references):
            if _UNSET < reference < base:
                rows = np.flatnonzero((chunk.cpus == cpu) & takes_part)
                if len(rows) and int(rows[0]) not in times:
                    passed = base // ROLLOVER - reference // ROLLOVER
                    self._log.append((loading.LOG_CROSSING, int(rows[0]), passed, cpu))

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
                is_start = begins_with_time and self.review.start_row == chunk.first_row + int(rows[0])
                seed = value if is_start else self._seed(rows[0], chunk, out, starts)
                self.references[cpu] = int(seed)
                if not begins_with_time:
                    self._log.append((loading.LOG_SEED, int(rows[0]), 0, 0))
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
            self._ignore(rows[time_at[~usable]], chunk)
            time_at, values = time_at[usable], values[usable]
        starts = np.append(self.references[cpu], values)
        ends = unwrap_segments(starts, chunk.stamps, rows, time_at, out)
        self.references[cpu] = int(ends[-1])
        self._note_segments(starts, ends, rows, time_at, out, has_reference=has_reference)

    def _note_segments(
        self,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        rows: NDArray[np.intp],
        time_at: NDArray[np.intp],
        out: NDArray[np.int64],
        *,
        has_reference: bool,
    ) -> None:
        """Note the TIME events of a CPU, and rollovers without TIME."""
        edges = [0, *time_at.tolist(), len(rows)]
        for number, at in enumerate(time_at.tolist()):
            self._log.append((loading.LOG_TIME, int(rows[at]), int(ends[number]), has_reference or number > 0))
        # A TIME comes before the first event after a rollover, so its segment ends in the rollover in which it begins.
        for number in np.flatnonzero(ends // ROLLOVER > starts // ROLLOVER).tolist():
            mine = rows[edges[number] + (number > 0) : edges[number + 1]]
            beyond = np.flatnonzero(out[mine] // ROLLOVER > starts[number] // ROLLOVER)
            passed = int(ends[number] // ROLLOVER - starts[number] // ROLLOVER)
            self._log.append((loading.LOG_CROSSING, int(mine[beyond[0]]), passed, 0))

    def _seed(self, row: np.intp, chunk: ClockChunk, out: NDArray[np.int64], starts: list[tuple[int, int]]) -> int:
        """Return the last time placed before a row on a CPU that is already done, else that of the chunk before."""
        done = np.array([cpu for at, cpu in starts if at < row], np.uint8)
        earlier = np.flatnonzero(np.isin(chunk.cpus[:row], done))
        before = np.setdiff1d(earlier, chunk.same_as_next, assume_unique=True)
        return int(out[before[-1]]) if len(before) else self.last


def _cpu_before(row: int, chunk: ClockChunk, cpu_before: int) -> int:
    """Return the CPU of the last event before a row that moves the clock."""
    taking_part = np.flatnonzero(chunk.takes_part[:row])
    return int(chunk.cpus[taking_part[-1]]) if len(taking_part) else cpu_before


def _time_before(row: int, base: int, chunk: ClockChunk, takes_part: NDArray[np.bool_], last: int) -> int:
    """Return the time of the last event before a row that moves the clock, `last` for none in the chunk."""
    before = np.flatnonzero(takes_part[:row])
    return base + int(chunk.stamps[before[-1]]) if len(before) else last


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


def _rollovers_after(stamps: NDArray[np.uint32], cpus: NDArray[np.uint8], time: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many rollovers more than their times say a CPU passed behind each of its events, int64 (n,)."""
    order = np.argsort(cpus, kind="stable")
    sorted_stamps = stamps[order].astype(np.int64)
    steps = (sorted_stamps[1:] - sorted_stamps[:-1]) & (ROLLOVER - 1)
    steps -= np.where(steps >= ROLLOVER - SLACK, ROLLOVER, 0)
    missing = np.where(np.diff(cpus[order].astype(np.int64)) == 0, (steps - np.diff(time[order])) // ROLLOVER, 0)
    total = np.append(np.cumsum(missing[::-1])[::-1], 0)
    behind = np.empty(len(order), np.int64)
    behind[order] = total
    behind -= total[np.searchsorted(cpus[order], cpus, side="right") - 1]  # what its last event has is of other CPUs
    return behind


def held_times(stamps: NDArray[np.uint32], value: int) -> NDArray[np.int64]:
    """Return times of events that precede the first TIME of the file, placed backwards from its payload value.

    Returns:
        int64 (n,), cycles.
    """
    back = (value - stamps.astype(np.int64)) % ROLLOVER
    return value - np.where(back > ROLLOVER - SLACK, back - ROLLOVER, back)
