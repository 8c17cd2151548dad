"""Rebuilds the 64-bit clock of every event from its 32-bit stamp, without the TIME events that are damaged."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from satview.core import links, loading
from satview.events import wire
from satview.events.wire import MAX_CPUS
from satview.formats.kev.consensus import (
    CROSSING,
    NEVER,
    ROLLOVER,
    SEED,
    SLACK,
    TIME,
    ClockVerdicts,
    Consensus,
    Correction,
    Surroundings,
    WalkNotes,
)

# Decides which TIME events are damaged, and corrects times that were derived from them.
#
# A damaged TIME event moves all events of its CPU up to the next TIME by days. `ClockRebuilder` applies every TIME
# event at once and passes all of them to `ClockReview`, which later returns corrections in whole rollovers on which
# CPUs, stamps, buffers and header agree (`consensus`). All readers apply the same corrections, except a reader of a
# pipe, which cannot wait for the end and decides after `LOOK_AHEAD_EVENTS`. A damaged stamp puts its own event far from
# its neighbours (`misplaced`).


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
    """Collects the notes on the TIME events of a trace, and decides which TIME events are damaged.

    Attributes:
        surroundings: Information on the clock besides the TIME events.
        start_row: Row of the first usable TIME of the file; -1 = none yet.
        settled: Decisions that `settle` made final before the end of the file.
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
        """Return a review (`ClockReview`) of only the events before a row."""
        breaks = {
            cpu: [break_row for break_row in rows if break_row < row] for cpu, rows in self.surroundings.breaks.items()
        }
        review = ClockReview(replace(self.surroundings, breaks=breaks), self.start_row, self.settled, [], None,
                             self._settled_row, dict(self._standing))  # fmt: skip
        claims = self._claims()
        review.add(claims.rows(np.flatnonzero(claims.row < row)))
        return review

    def add_breaks(self, breaks: list[tuple[int, int]]) -> None:
        """Record rows before which buffers are missing or out of order, as (row, CPU or -1 = all), ascending."""
        for row, cpu in breaks:
            self.surroundings.breaks.setdefault(cpu, []).append(row)

    def add(self, claims: WalkNotes) -> None:
        """Record `claims`: the notes that were made on TIME events and rollovers in a chunk of events."""
        self._parts.append(claims)
        if self._first_odd_row is None:
            is_odd = np.where(claims.kind == TIME, claims.rollovers != 0, claims.kind == CROSSING)
            if is_odd.any():
                self._first_odd_row = int(claims.row[np.argmax(is_odd)])

    def verdicts(self, ends: dict[int, tuple[int, int]], *, is_damaged: bool = False) -> ClockVerdicts:
        """Return the verdicts on all TIME events so far, as if no events followed; more can be added afterwards.

        `ends` has row and time (cycles) of the last event of each CPU, if known; `is_damaged` = there are TIME events
        with an impossible value.
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
        """Return doubts about events after the TIME events `rows` with an impossible value: times may lack rollovers.

        The next TIME event of the CPU shows the number of missing rollovers. Without a next TIME event, each impossible
        value may hide a rollover. The result has the form of `ClockVerdicts.doubtful`.
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
        """Return the settled corrections, each with an end: if it has none yet, the next note for its CPU."""
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
        """Return whether `settle` is due at `row`: decisions have been open for over `LOOK_AHEAD_EVENTS` events."""
        waits_since = self._settled_row if self._first_odd_row is None else self._first_odd_row
        return row - waits_since > LOOK_AHEAD_EVENTS

    def settle(self, row: int, ends: dict[int, tuple[int, int]]) -> None:
        """Make final which of the TIME events in the first `row` events are damaged, and how times are corrected."""
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
    """Return the rollovers that corrections add to the time of the event of `cpu` at `row`."""
    return sum(
        correction.rollovers
        for correction in corrections
        if correction.cpu == cpu and correction.first_row <= row < correction.end_row
    )


def misplaced(
    time: NDArray[np.int64], cpu: NDArray[np.uint8], rows: NDArray[np.int64]
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return the events that damaged stamps put far from their neighbours on the same CPU, and how far.

    An event is misplaced if the times of the events before and after are close to each other, and the time of the event
    itself is far earlier or far later than both.

    Args:
        time: int64 (n,), cycles, in file order.
        cpu: (n,).
        rows: (k,), rows that a sort by time would move, ascending; no other row can be misplaced.

    Returns:
        Rows of the events, intp (m,), and cycles to subtract from their times, int64 (m,): the distance from the event
        before on the same CPU.
    """
    rows = rows[slice(*np.searchsorted(rows, (1, len(time) - 1)).tolist())]
    # In pieces that fit the cache, because `rows` are nearly all events if each CPU has its own buffers.
    far = [links.far_rows(time, rows[start : start + _CHUNK], _NEAR_CYCLES) for start in range(0, len(rows), _CHUNK)]
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
    """Return for each row the first of its candidates `others` (n, k) on the same CPU, or the row itself, intp (n,)."""
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

    A BUFFER event with the same time as the next event is corrected like the next event.

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


# Rebuilds the 64-bit clock of every event from its 32-bit stamp.
#
# Source: kernel event trace format, section 5.3. Each CPU has a reference: the latest 64-bit time assigned on it. A
# stamp is extended so that it is at most a quarter of a rollover period before the reference and less than three
# quarters after it; a CONTROL TIME event sets the reference. The compiled core walks over the events.


LATEST: Final = 1 << 62  # a larger TIME value is damaged: no counter has run that long
_LAG: Final = 1 << 26  # upper limit of cycles between the clock in a TIME event and its stamp; in practice 0x32c


@dataclass(frozen=True, slots=True, eq=False)
class ClockChunk:
    """Input of the clock for a chunk of events.

    Attributes:
        stamps: uint32 (n,), low halves of the clock; damaged stamps of TIME events are repaired.
        cpus: uint8 (n,).
        time_rows: Positions of the TIME events, ascending.
        time_values: int64 (k,), cycles, clock values in the TIME events, from the function `time_values`; negative =
            unusable.
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
        """Which events move the clock: all except those in `same_as_next`, bool (n,)."""
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
    """Return the stamps, with damaged stamps of unusable TIME events replaced by the `lower` half of their payload.

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
    """Return the distances between stamps in cycles, by the shorter way around the counter, int64 (n,)."""
    return np.abs((stamps - others).astype(np.int32).astype(np.int64))


def time_values(upper: NDArray[np.uint32], lower: NDArray[np.uint32], stamps: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the 64-bit clock values in TIME events, cycles; -1 for values that no kernel writes.

    `upper` and `lower` are their payload words, and `stamps` are read right after the clock; all have the same shape.
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
        references: Recent time of each CPU, from which its next stamp is extended; -2^62 = no slot of that CPU yet.
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
        """Set the start value, cycles, of the clocks of all CPUs; to be called before the first chunk."""
        self.last = time

    def hold(self, chunk: ClockChunk, held: int, value: int, out: NDArray[np.int64]) -> ClockChunk:
        """Set the times of the events before the first usable TIME of the file, counting backwards from its value.

        Args:
            chunk: The first events of the file.
            held: Number of events before this TIME event.
            value: Clock value in this TIME event, cycles.
            out: int64 (n,), receives the times, cycles.

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
        """Take note of TIME events whose values are impossible and therefore ignored: positions `rows` in a chunk."""
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
            ends: By CPU, row and time (cycles) of its last event before `row`.
        """
        ignored = [
            (time_row, cpu) for time_row, cpu in zip(self.ignored, self._ignored_cpus, strict=True) if time_row < row
        ]
        review = self.review.before(row)
        verdicts = review.verdicts(ends, is_damaged=bool(ignored))
        rows, cpus = [time_row for time_row, _ in ignored], [cpu for _, cpu in ignored]
        return replace(verdicts, doubtful=verdicts.doubtful + review.after_lost(rows, cpus, verdicts.corrections))

    def settle(self) -> None:
        """Make final the decisions on TIME events that can no longer wait, as a reader passes on their events."""
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
        """Set the times, int64 (n,), cycles, of the events of a chunk; chunks come in file order."""
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
        """Pass the `log` of TIME events and rollovers in a chunk, with columns as in clock.c, to `review` as notes."""
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
    """Return the CPU of the last event before `row` that moves the clock; `cpu_before` if the chunk has none."""
    taking_part = np.flatnonzero(chunk.takes_part[:row])
    return int(chunk.cpus[taking_part[-1]]) if len(taking_part) else cpu_before


def _rollovers_after(stamps: NDArray[np.uint32], cpus: NDArray[np.uint8], time: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each event the rollovers that later stamps of its CPU show and `time` does not contain, int64 (n,)."""
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
