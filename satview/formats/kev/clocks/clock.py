"""Rebuilds the 64-bit clock of every event from its 32-bit stamp.

Source: kernel event trace format, section 5.3. Each CPU has a reference: the latest 64-bit time assigned on it. A stamp
is extended so that it is at most a quarter of a rollover period before the reference and less than three quarters after
it; a CONTROL TIME event sets the reference. The compiled core walks over the events.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import loading
from satview.events.wire import MAX_CPUS
from satview.formats.kev.clocks.clock_review import ClockReview
from satview.formats.kev.clocks.consensus import CROSSING, SEED, TIME, ClockVerdicts, WalkNotes
from satview.formats.kev.clocks.rollover import ROLLOVER, SLACK

LATEST: Final = 1 << 62  # a larger TIME value is damaged: no counter has run that long
_LAG: Final = 1 << 26  # upper limit of cycles between the clock in a TIME event and its stamp; in practice 0x32c


@dataclass(frozen=True, slots=True, eq=False)
class ClockChunk:
    """Input of the clock for a chunk of events.

    Attributes:
        stamps: uint32 (n,), low halves of the clock; damaged stamps of TIME events are repaired.
        cpus: uint8 (n,).
        time_rows: Positions of the TIME events, ascending.
        time_values: int64, clock values in the TIME events, from `time_values`; negative = unusable.
        same_as_next: Positions of BUFFER events that have the stamp of the next event: they take its time and do not
            move the clock.
        first_row: Number of the chunk's first event, for reports.
    """

    stamps: NDArray[np.uint32]
    cpus: NDArray[np.uint8]
    time_rows: NDArray[np.intp]
    time_values: NDArray[np.int64]
    same_as_next: NDArray[np.intp]
    first_row: int

    @classmethod
    def of(
        cls,
        slots: NDArray[np.uint32],
        stamps: NDArray[np.uint32],
        cpus: NDArray[np.uint8],
        time_rows: NDArray[np.intp],
        buffer_rows: NDArray[np.intp],
        first_row: int,
    ) -> ClockChunk:
        """Return the input for a chunk.

        Args:
            slots: uint32 (k, 4), the first slot of each TIME event.
            stamps: uint32 (n,), of all events.
            cpus: uint8 (n,), of all events.
            time_rows: Positions of the k TIME events, ascending.
            buffer_rows: Positions of the BUFFER events, ascending.
            first_row: Number of the first event.
        """
        values = time_values(slots[:, 2], slots[:, 3], slots[:, 1])
        is_unusable = values < 0
        if is_unusable.any():
            stamps = _with_stamps_mended(stamps, time_rows, slots[:, 3], is_unusable=is_unusable)
        with_next = buffer_rows[buffer_rows + 1 < len(stamps)]
        shared = with_next[stamps[with_next] == stamps[with_next + 1]]
        return cls(stamps, cpus, time_rows, values, shared, first_row)

    @property
    def takes_part(self) -> NDArray[np.bool_]:
        """Events that move the clock, bool (n,)."""
        mask = np.ones(len(self.stamps), np.bool_)
        mask[self.same_as_next] = False
        return mask

    def without(self, held: int) -> ClockChunk:
        """Return the chunk without its first `held` events."""
        if not held:
            return self
        is_time, is_shared = self.time_rows >= held, self.same_as_next >= held
        return ClockChunk(
            self.stamps[held:],
            self.cpus[held:],
            self.time_rows[is_time] - held,
            self.time_values[is_time],
            self.same_as_next[is_shared] - held,
            self.first_row + held,
        )


def _with_stamps_mended(
    stamps: NDArray[np.uint32],
    time_rows: NDArray[np.intp],
    lower: NDArray[np.uint32],
    *,
    is_unusable: NDArray[np.bool_],
) -> NDArray[np.uint32]:
    """Replace damaged stamps of unusable TIME events by the low half of their payload; return all stamps.

    The kernel writes a TIME event right before the event that needs it (section 5.2), so if stamp and low half
    contradict each other, the value nearer to the next event is correct. A damaged stamp would make the clock of its
    CPU pass rollovers that never happened.
    """
    sound = np.ones(len(stamps), np.bool_)
    sound[time_rows[is_unusable]] = False
    near = np.flatnonzero(sound)
    if not len(near):
        return stamps
    rows = time_rows[is_unusable]
    behind = stamps[near[np.minimum(np.searchsorted(near, rows), len(near) - 1)]]  # at the end, the stamp before
    payload = lower[is_unusable]
    is_wrong = _distance(payload, behind) < _distance(stamps[rows], behind)
    mended = stamps.copy()
    mended[rows[is_wrong]] = payload[is_wrong]
    return mended


def _distance(stamps: NDArray[np.uint32], others: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the distances between stamps in cycles, by the shorter way around the counter."""
    return np.abs((stamps - others).astype(np.int32).astype(np.int64))


def time_values(upper: NDArray[np.uint32], lower: NDArray[np.uint32], stamps: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the 64-bit clock values in TIME events, cycles, same shape; -1 for values that no kernel writes.

    Args:
        upper: First payload words.
        lower: Second payload words.
        stamps: Stamps of the TIME slots, read right after the clock.
    """
    values = upper.astype(np.int64) << 32 | lower
    # The counter in the payload is read before the slot's own stamp (section 5.2), so a real pair is a little apart;
    # the difference of unsigned words wraps as the counter does.
    values[(values >= LATEST) | (values < 0) | (_distance(stamps, lower) > _LAG)] = -1
    return values


_UNSET: Final = -1 << 62  # no time; small negative values are times before a counter's zero
_END_EVENTS: Final = 4096  # number of last events searched for the last one of each CPU


@dataclass(slots=True)
class ClockRebuilder:
    """Rebuilds the clock chunk by chunk, and holds its state between chunks.

    Every TIME event is applied at once; `review` decides later which of them were damaged.

    Attributes:
        references: Reference of each CPU; -2^62 = no slot of that CPU yet.
        last: Last time assigned on any CPU; start value for CPUs without a TIME event so far.
        has_time: Whether there was a usable TIME event so far.
        ignored: Rows of TIME events with an impossible value.
        rows: Number of events so far.
        review: Decides about all TIME events together.
    """

    references: list[int] = field(default_factory=lambda: [_UNSET] * MAX_CPUS)
    last: int = _UNSET
    has_time: bool = False
    ignored: list[int] = field(default_factory=list)
    rows: int = 0
    review: ClockReview = field(default_factory=ClockReview)
    _ignored_cpus: list[int] = field(default_factory=list)
    _recent: list[tuple[int, NDArray[np.uint8]]] = field(default_factory=list)  # first row and CPUs of the last chunks

    def __deepcopy__(self, memo: dict[int, object]) -> ClockRebuilder:
        """Return an independent copy; arrays are shared, as they are never changed."""
        review = self.review.__deepcopy__(memo)
        return ClockRebuilder(list(self.references), self.last, self.has_time, list(self.ignored), self.rows, review,
                              list(self._ignored_cpus), list(self._recent))  # fmt: skip

    def start_from(self, time: int) -> None:
        """Set the start value of all CPUs' clocks, before the first chunk."""
        self.last = time

    def hold(self, chunk: ClockChunk, held: int, value: int, out: NDArray[np.int64]) -> ClockChunk:
        """Set the times of the events before the first usable TIME of the file, counting backwards from its value.

        Args:
            chunk: The first events of the file.
            held: Number of events before this TIME event.
            value: Clock value in this TIME event.
            out: (n,), receives the times.

        Returns:
            The chunk without these events.
        """
        if held:
            self._ignore(chunk.time_rows[chunk.time_rows < held], chunk)
            stamps, cpus = chunk.stamps[:held], chunk.cpus[:held]
            out[:held] = held_times(stamps, value)
            if np.any(chunk.time_rows < held):  # a TIME there is damaged: a rollover may have followed it
                out[:held] -= _rollovers_after(stamps, cpus, out[:held]) * ROLLOVER
            held_cpus, first_rows = np.unique(cpus, return_index=True)
            is_other = ~np.isin(held_cpus, chunk.cpus[held : held + 1])  # its own CPU needs no reference from them
            held_cpus, first_rows = held_cpus[is_other], first_rows[is_other]
            for cpu in held_cpus.tolist():
                self.references[cpu] = max(self.references[cpu], int(out[:held][cpus == cpu].max()))
            none, zeros = np.full(len(first_rows), -1), np.zeros(len(first_rows), np.int64)
            row, kind = first_rows + chunk.first_row, np.full(len(first_rows), SEED)
            self.review.add(
                WalkNotes(row, held_cpus.astype(np.int64), kind, out[first_rows], zeros, zeros, none, zeros)
            )
        return chunk.without(held)

    def _ignore(self, rows: NDArray[np.intp], chunk: ClockChunk) -> None:
        """Record TIME events of a chunk with an impossible value."""
        self.ignored += (rows + chunk.first_row).tolist()
        self._ignored_cpus += chunk.cpus[rows].tolist()

    def verdicts(self) -> ClockVerdicts:
        """Return corrections and reports for all events so far, as if the file ended here."""
        verdicts = self.review.verdicts(self._ends(), is_damaged=bool(self.ignored))
        lost = self.review.after_lost(self.ignored, self._ignored_cpus, verdicts.corrections)
        return replace(verdicts, doubtful=verdicts.doubtful + lost)

    def verdicts_before(self, row: int, ends: dict[int, tuple[int, int]]) -> ClockVerdicts:
        """Return corrections and reports for the events before a row, as if the file ended there.

        Args:
            row: The first event that is left out.
            ends: CPU to row and time of its last event before `row`.
        """
        ignored = [
            (time_row, cpu) for time_row, cpu in zip(self.ignored, self._ignored_cpus, strict=True) if time_row < row
        ]
        review = self.review.before(row)
        verdicts = review.verdicts(ends, is_damaged=bool(ignored))
        rows, cpus = [time_row for time_row, _ in ignored], [cpu for _, cpu in ignored]
        return replace(verdicts, doubtful=verdicts.doubtful + review.after_lost(rows, cpus, verdicts.corrections))

    def settle(self) -> None:
        """Make decisions final that can no longer wait, for a reader that passes on events before the file ends."""
        if self.review.is_due(self.rows):
            self.review.settle(self.rows, self._ends())

    def _ends(self) -> dict[int, tuple[int, int]]:
        """Return row and time of the last event of each CPU, for CPUs with an event near the end."""
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
            chunk: The n events; chunks come in file order.
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
        self._ignore(chunk.time_rows[chunk.time_values < 0], chunk)
        references = np.array(self.references, np.int64)
        self.last, log = loading.clock(
            chunk.stamps, chunk.cpus, chunk.time_rows, chunk.time_values, chunk.same_as_next, references, self.last, out
        )
        self.references = references.tolist()
        if len(log):
            self._pass_to_review(log, chunk, out, before)

    def _pass_to_review(
        self, log: NDArray[np.int64], chunk: ClockChunk, out: NDArray[np.int64], cpu_before: int
    ) -> None:
        """Pass the log of the walk to the review.

        Args:
            log: int64 (m, 4), as clock.c describes it.
            chunk: The events.
            out: (n,), their times.
            cpu_before: CPU of the event before them, -1 = none.
        """
        # At the same row, a crossing comes after other entries.
        kind, row, amount, extra = log[np.lexsort((log[:, 0] == loading.LOG_CROSSING, log[:, 1]))].T
        is_time = kind == loading.LOG_TIME
        value = out[row]
        value[is_time] = chunk.time_values[np.searchsorted(chunk.time_rows, row[is_time])]
        # Before the file's first TIME there is no time to compare with.
        before = np.where(row + chunk.first_row == self.review.start_row, value, amount)
        gap = (value - before) & (ROLLOVER - 1)
        gap -= np.where(gap >= ROLLOVER - SLACK, ROLLOVER, 0)
        rollovers = np.where(is_time, (value - before - gap) // ROLLOVER, amount)
        source = np.full(len(row), -1)
        for entry in np.flatnonzero((kind == loading.LOG_SEED) | (is_time & (extra == 0))).tolist():
            if not is_time[entry] or before[entry] != value[entry]:
                source[entry] = _cpu_before(int(row[entry]), chunk, cpu_before)
        kind = np.choose(kind, (SEED, TIME, CROSSING))
        gap[kind != TIME] = 0
        self.review.add(WalkNotes(row + chunk.first_row, chunk.cpus[row].astype(np.int64), kind, value, rollovers, gap,
                                  source, is_time.astype(np.int64)))  # fmt: skip


def _cpu_before(row: int, chunk: ClockChunk, cpu_before: int) -> int:
    """Return the CPU of the last event before a row, ignoring events that do not move the clock."""
    taking_part = np.flatnonzero(chunk.takes_part[:row])
    return int(chunk.cpus[taking_part[-1]]) if len(taking_part) else cpu_before


def _rollovers_after(stamps: NDArray[np.uint32], cpus: NDArray[np.uint8], time: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each event the rollovers after it on its CPU that `time` does not contain, int64 (n,)."""
    order = np.argsort(cpus, kind="stable")
    sorted_stamps = stamps[order].astype(np.int64)
    steps = (sorted_stamps[1:] - sorted_stamps[:-1]) & (ROLLOVER - 1)
    steps -= np.where(steps >= ROLLOVER - SLACK, ROLLOVER, 0)
    missing = np.where(np.diff(cpus[order].astype(np.int64)) == 0, (steps - np.diff(time[order])) // ROLLOVER, 0)
    total = np.append(np.cumsum(missing[::-1])[::-1], 0)
    behind = np.empty(len(order), np.int64)
    behind[order] = total
    behind -= total[np.searchsorted(cpus[order], cpus, side="right") - 1]  # the sum over the CPUs sorted after it
    return behind


def held_times(stamps: NDArray[np.uint32], value: int) -> NDArray[np.int64]:
    """Return the times of events before the first TIME of the file, counting backwards from its value.

    Returns:
        int64 (n,), cycles.
    """
    back = (value - stamps.astype(np.int64)) % ROLLOVER
    return value - np.where(back > ROLLOVER - SLACK, back - ROLLOVER, back)
