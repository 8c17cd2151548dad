"""Extends 32-bit stamps to 64 bits, and decides by consensus which of the TIME events that disagree are damaged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from satview.core.loading import cheapest_path

# Extends 32-bit stamps, the low half of a 64-bit counter, to the full counter.
#
# Source: kernel event trace format, section 5.3. A stamp is at most a quarter of a rollover period before the reference
# of its CPU and less than three quarters after it; the reference is the latest time found so far.


ROLLOVER: Final = 1 << 32  # cycles from one rollover of the 32-bit stamp to the next
SLACK: Final = 1 << 30
# At 2.6 GHz stamps roll over every 1.65 s.
_MOST_SPANS: Final = 8  # maximum rollovers of a CPU between two TIMEs; later events are garbage, handled one by one


def unwrap(reference: int, stamp: int) -> int:
    """Return the 64-bit time, cycles, of a 32-bit stamp, given a recent 64-bit time `reference` of the same CPU."""
    # Asymmetric on purpose: a late block goes back only a little, while a CPU may be silent for long (section 5.4).
    ahead = (stamp - reference) % ROLLOVER
    return reference + ahead if ahead < ROLLOVER - SLACK else reference - (ROLLOVER - ahead)


def unwrap_segments(
    starts: NDArray[np.int64],
    stamps: NDArray[np.uint32],
    rows: NDArray[np.intp],
    time_at: NDArray[np.intp],
    out: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Set the 64-bit times of a CPU's events; each TIME event begins a segment with a new reference (see `unwrap`).

    Args:
        starts: int64, (k + 1,), the initial reference and the reference from each TIME event.
        stamps: uint32, of all events.
        rows: Positions of the CPU's events, ascending.
        time_at: (k,), indices of the TIME events in `rows`, ascending.
        out: int64, receives the times at `rows`.

    Returns:
        int64, (k + 1,), the reference at the end of each segment.
    """
    sizes = np.diff(time_at, prepend=0, append=len(rows))
    start = np.repeat(starts, sizes)
    ahead = stamps[rows].astype(np.int64)
    ahead -= start
    ahead &= ROLLOVER - 1
    ahead[ahead >= ROLLOVER - SLACK] -= ROLLOVER
    start += ahead
    out[rows] = start
    # The stamp of a TIME event is read a little after the counter, so it does not move the reference.
    ahead[time_at] = 0
    # The running maximum within segments: each segment is lifted above those before it.
    # Distances within a segment are below 2^33, so lifted segments cannot reach each other.
    lift = np.repeat(np.arange(len(starts)) << 33, sizes)
    latest = np.maximum(ahead, 0)
    latest += lift
    np.maximum.accumulate(latest, out=latest)
    latest -= lift
    filled, last = sizes > 0, np.cumsum(sizes) - 1
    ends = starts.copy()
    ends[filled] += latest[last[filled]]
    # In a segment of more than half a rollover, stamps may be too far from the reference: it is processed in steps.
    behind = np.concatenate(([0], latest[:-1]))
    behind[time_at] = 0
    left = np.flatnonzero(ahead < behind - SLACK)
    for number in np.unique(np.searchsorted(last, left)).tolist():
        begin = last[number] - sizes[number] + 1 + (number > 0)  # without the TIME event
        segment_rows = rows[begin : last[number] + 1]
        ends[number] = _unwrap_spans(int(starts[number]), stamps, segment_rows, out)
    return ends


def _unwrap_spans(reference: int, stamps: NDArray[np.uint32], rows: NDArray[np.intp], out: NDArray[np.int64]) -> int:
    """Set the times of a CPU's events between two TIME events, rollover by rollover; return the new reference."""
    for _ in range(_MOST_SPANS):
        if not len(rows):
            return reference
        low_times = stamps[rows].astype(np.int64)
        times = low_times + (unwrap(reference, int(low_times[0])) - int(low_times[0]))
        running = np.maximum.accumulate(np.maximum(times, reference))
        # Each event is judged by the reference before it: the running maximum one position earlier.
        before = np.concatenate(([reference], running[:-1]))
        misplaced = (times < before - SLACK) | (times >= before + ROLLOVER - SLACK)
        fits = int(np.argmax(misplaced)) if misplaced.any() else len(rows)
        out[rows[:fits]] = times[:fits]
        reference = int(running[fits - 1])
        rows = rows[fits:]
    return _unwrap_rest(reference, stamps, rows, out)


def _unwrap_rest(reference: int, stamps: NDArray[np.uint32], rows: NDArray[np.intp], out: NDArray[np.int64]) -> int:
    times, limit = [], ROLLOVER - SLACK
    for stamp in stamps[rows].tolist():
        ahead = (
            stamp - reference
        ) % ROLLOVER  # as in `unwrap`, without the call: damaged files run this loop for each event
        if ahead < limit:
            reference += ahead
            times.append(reference)
        else:
            times.append(reference - ROLLOVER + ahead)
    out[rows] = times
    return reference


# Decides by consensus which TIME events are damaged when they contradict each other.
#
# Normally the TIME events of a CPU and the stamps between them agree on the number of rollovers of the counter. The
# level of a TIME event is the difference in rollovers between its time and the time that stamps alone give. Successive
# TIME events on the same level are a run. The claims of a CPU are the notes (`WalkNotes`) of a walk along its stamps,
# such as the time that a TIME event says. A damaged run (the same bit is flipped in several TIME events) has another
# level than the runs around it, the other CPUs, or both.
#
# For every CPU the cheapest sequence of levels is computed (`_cheapest`). Costs of assumptions are in units of damaged
# TIME events: to reject a TIME event costs 1; a pause of whole rollovers costs the number of bits in which the stamps
# would have to agree by chance with no pause at all; a counter that goes back costs much. Then the levels of each CPU
# are computed again with the times of the others, beginning with the CPU that the fewest others support. If the second
# best sequence costs hardly more, the events are reported as doubtful.
#
# Source: kernel event trace format, sections 5.1 to 5.5; the costs are explained where they are defined.


TIME: Final = 0
CROSSING: Final = 1  # events pass a rollover without the TIME event that should be there
SEED: Final = 2  # a CPU without a TIME event gets its time from the clock of another CPU

# Costs, in damaged TIME events.
_MOST_DAMAGED: Final = 12.0  # upper limit for the weight of TIME events that agree
_PAUSE: Final = 0.5  # a pause of whole rollovers, after which stamps differ from those without a pause
_LONGEST_TIE: Final = 6.5  # such a pause if stamps do not differ: accepted, as unproven, for more than five TIME events
_BACK: Final = 10.0  # a counter that goes back
_RETURN: Final = 20.0  # a counter that goes back to a level that the CPU had before
_LATE_STAMP: Final = 1.5  # a counter that goes back by half a rollover or less: the stamp before it is damaged
_EXCUSED_BACK: Final = 3.0  # a counter that goes back where buffers are out of order, or files were joined
_OTHER_CPU: Final = 13.0  # another CPU whose clock contradicts
_ANCHOR: Final = 4.0  # a CPU without a TIME event was at another time than the CPU whose clock it got
_LOST_TIME: Final = 0.9  # a stamp is damaged, rather than a TIME event after a rollover missing
_IMPOSSIBLE: Final = 1000.0
_HEADER: Final = 1.0  # the trace begins at another time than the header says
DOUBT: Final = 5.0  # a sequence that costs at most this much more may be the true one

_BURST_BITS: Final = 3  # events come in bursts, so a silence of eight times the mean is normal
_LATE_CYCLES: Final = 1 << 24  # stamps of a CPU may go back by this much without an error (section 6.1)
_EXCUSED_ROLLOVERS: Final = 64  # the longest pause that lost buffers explain (106 s at 2.6 GHz, 4 h at 19.2 MHz)
_FEW_CLAIMS: Final = 5  # maximum number of TIME events on one side of a pause that do not prove it
_MOST_CONTRADICTIONS: Final = 1 << 10  # maximum for a CPU; with more it is garbage, and not worth a search
_MOST_RUNS: Final = 1 << 17  # maximum for a CPU, also if runs differ only by pauses: two days at 2.6 GHz
_ASKED: Final = 5  # number of claims of a run that are compared with other CPUs
_HEAVY_LEVELS: Final = 4  # number of levels with most TIME events, which are candidates for every run of the CPU
_HEADER_SHARE: Final = 16  # the counter starts within 1/16 of the uptime after boot
NEVER: Final = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class Correction:
    """Rollovers to add to the times of a CPU's events from `first_row` to before `end_row`, in file order."""

    cpu: int
    first_row: int
    end_row: int
    rollovers: int


@dataclass(frozen=True, slots=True)
class ClockVerdicts:
    """Result of the review of TIME events; lists except `corrections` contain (row in file, CPU, cycles or rollovers).

    Attributes:
        corrections: Rollovers to add to times.
        steps: TIME events that went back by a rollover or more, with the cycles.
        reseeded: First TIME events of CPUs that differ by a rollover or more from earlier times of the CPU, with the
            cycles.
        damaged: TIME events that were rejected, with the rollovers by which they are wrong.
        doubtful: First TIME events of runs that may be wrong, with the maximum number of rollovers.
        unproven: TIME events after a pause of whole rollovers that only few TIME events next to it confirm, with
            the rollovers.
    """

    corrections: list[Correction] = field(default_factory=list)
    steps: list[tuple[int, int, int]] = field(default_factory=list)
    reseeded: list[tuple[int, int, int]] = field(default_factory=list)
    damaged: list[tuple[int, int, int]] = field(default_factory=list)
    doubtful: list[tuple[int, int, int]] = field(default_factory=list)
    unproven: list[tuple[int, int, int]] = field(default_factory=list)


class WalkNotes(NamedTuple):
    """Notes on TIME events and rollovers, made while stamps were followed event by event, in file order.

    Every column is int64 (n,).

    Attributes:
        row: Row in file order.
        cpu: CPU of the clock.
        kind: `TIME`: a TIME event; `CROSSING`: a rollover without one; `SEED`: clock taken from another CPU.
        value: Clock value of a TIME event, else the time assigned to the event, cycles.
        rollovers: Rollovers from the time that the stamps give to `value`; for a crossing, rollovers passed.
        gap: Remaining distance from the CPU's reference, cycles, from -2^30 to 3 * 2^30.
        source: CPU whose clock was used because this CPU had no clock yet; -1 = not needed.
        weight: Number of TIME events that the note stands for; 0 for a crossing or seed.
    """

    row: NDArray[np.int64]
    cpu: NDArray[np.int64]
    kind: NDArray[np.int64]
    value: NDArray[np.int64]
    rollovers: NDArray[np.int64]
    gap: NDArray[np.int64]
    source: NDArray[np.int64]
    weight: NDArray[np.int64]

    def rows(self, selection: NDArray[np.generic]) -> WalkNotes:
        """Return the notes at some positions, or where a mask is set."""
        return WalkNotes(*(column[selection] for column in self))


@dataclass(slots=True)
class Surroundings:
    """Information on the clocks of a trace besides its TIME events.

    Attributes:
        breaks: Rows before which buffers are missing or out of order, ascending, by CPU; -1 = all CPUs.
        has_common_clock: Whether all CPUs share a clock.
        has_shared_buffers: Whether all CPUs log into the same buffers (up to 7.x).
        uptime_cycles: Time from boot to the start of the trace according to the header; None = not known.
        cycles_per_s: Rate of the clock.
        says_ring: Whether the logger's arguments in the header request a ring.
    """

    breaks: dict[int, list[int]] = field(default_factory=dict)
    has_common_clock: bool = True
    has_shared_buffers: bool = True
    uptime_cycles: int | None = None
    cycles_per_s: int = 0
    says_ring: bool = False


class _Times(NamedTuple):
    """Times of the TIME events of a CPU, and of its last event if known.

    Attributes:
        row: int64 (n,).
        time: int64 (n,), corrected, cycles.
        of_claims: Times of the TIME events only.
        earliest: Smallest time; `NEVER` if there is none.
        latest: Largest time; `-NEVER` if there is none.
    """

    row: NDArray[np.int64]
    time: NDArray[np.int64]
    of_claims: NDArray[np.int64]
    earliest: int
    latest: int


@dataclass(slots=True, eq=False)
class _Clock:
    """The notes (claims) of one CPU in runs: TIME events that are the same number of rollovers (level) from the stamps.

    Attributes:
        cpu: Number of the CPU.
        claims: Notes of the walk for this CPU.
        most_bits: Maximum number of bits with which the stamps after a gap can show that there was no pause.
        run: (claims,), the run of each claim.
        run_start: (runs,), the first claim of each run.
        level: (runs,), rollovers between the TIME events and the times that stamps give from the CPU's first event on.
        weight: (runs,), number of TIME events.
        passed: (runs,), rollovers passed without the TIME event that should be there.
        is_excused: bool (runs,), whether buffers are missing or out of order before the run.
        placed: (runs,), the level that was decided.
        doubt: (runs,), rollovers by which `placed` may be wrong.
        ends: Row and time of the CPU's last event, if known.
    """

    cpu: int
    claims: WalkNotes
    most_bits: float
    run: NDArray[np.intp]
    run_start: NDArray[np.intp]
    level: NDArray[np.int64]
    weight: NDArray[np.int64]
    passed: NDArray[np.int64]
    is_excused: NDArray[np.bool_]
    placed: NDArray[np.int64]
    doubt: NDArray[np.int64]
    ends: tuple[int, int] | None
    _times: _Times | None = None
    _sorted_times: NDArray[np.int64] | None = None
    _silences: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    @classmethod
    def of(cls, every: WalkNotes, own: NDArray[np.intp], standing: int, surroundings: Surroundings,
           ends: tuple[int, int] | None) -> _Clock:  # fmt: skip
        """Return the clock of a CPU: its claims, at the positions `own` of `every`, divided into runs.

        `standing` is the number of rollovers already added to the CPU's times after its first claim.
        """
        cpu = int(every.cpu[own[0]])
        claims, most_bits = every.rows(own), _LONGEST_TIE
        if len(own) > 1:
            # The events up to the next claim of any CPU are all its own only if each CPU has its own buffers; if not,
            # they are too many, but the other CPUs show whether it was silent.
            events = every.row[own[:-1] + 1] - every.row[own[:-1]]
            cycles = np.diff(claims.value) % ROLLOVER
            pace = max(1.0, float(np.median(cycles / np.maximum(events, 1))))
            bursts = _BURST_BITS / 2 if surroundings.has_shared_buffers else _BURST_BITS
            most_bits = min(max(np.log2(ROLLOVER / pace) - bursts, _PAUSE), _LONGEST_TIE)
        is_time = claims.kind == TIME
        jumps = np.where(is_time & (claims.source < 0), claims.rollovers, 0)
        jumps[1:2] -= standing
        level = np.cumsum(jumps)
        begins = np.ones(len(claims.row), np.bool_)
        begins[1:] = (level[1:] != level[:-1]) | ~is_time[1:] | ~is_time[:-1]
        # Successive crossings count as one.
        begins[1:] &= (claims.kind[1:] != CROSSING) | (claims.kind[:-1] != CROSSING)
        first_claims = np.flatnonzero(begins)
        run = np.cumsum(begins) - 1
        rows, times = claims.row[first_claims], np.maximum.accumulate(np.where(is_time, claims.row, -1))
        before = times[first_claims - 1]  # the TIME event before it; the first run has none
        is_excused = np.zeros(len(first_claims), np.bool_)
        # If one CPU lost buffers during a pause of all CPUs, the others may have been silent for as long.
        for places in (
            surroundings.breaks.values()
            if surroundings.has_common_clock
            else (surroundings.breaks.get(number, []) for number in (-1, cpu))
        ):
            breaks = np.array(places, np.int64)
            is_excused |= np.searchsorted(breaks, rows) > np.searchsorted(breaks, before)
        weight = np.bincount(run, claims.weight, len(first_claims)).astype(np.int64)
        passed = np.bincount(run, np.where(claims.kind == CROSSING, claims.rollovers, 0)).astype(np.int64)
        level = level[first_claims]
        return cls(
            cpu,
            claims,
            most_bits,
            run,
            first_claims,
            level,
            weight,
            passed,
            is_excused,
            level.copy(),
            np.zeros(len(first_claims), np.int64),
            ends,
        )

    def column(self, name: str) -> NDArray[np.int64]:
        """Return one column of `claims` for the first claim of each run of agreeing TIME events, int64 (runs,)."""
        values: NDArray[np.int64] = getattr(self.claims, name)[self.run_start]
        return values

    def ties(self) -> NDArray[np.float64]:
        """Return how strongly stamps show that no pause of rollovers precedes each run, in bits, float64 (runs,).

        Stamps of a CPU with few events show little, because the CPU is often silent for long.
        """
        gap = self.column("gap")
        bits = np.clip(np.log2(ROLLOVER / np.maximum(np.abs(gap), 1)) - 1, _PAUSE, self.most_bits)
        if self.weight[-1] == 1 and self.claims.kind[0] != SEED:
            bits[-1] /= 2  # no later event could show damage, and a pause before the last TIME is common
        return np.where(gap < -_LATE_CYCLES, _PAUSE, bits)  # without a pause, stamps would go back

    def is_rubbish(self) -> bool:
        """Return whether times contradict each other too often for a real clock; a jump forwards may be a pause."""
        is_crossing = self.column("kind") == CROSSING
        contradictions = int(np.count_nonzero(is_crossing[1:] | (np.diff(self.level) < 0)))
        return contradictions > _MOST_CONTRADICTIONS or len(self.level) > _MOST_RUNS

    def shift_at(self, row: int) -> int:
        """Return the rollovers that are added to the times of the CPU's events at a row."""
        run = max(0, int(np.searchsorted(self.column("row"), row, side="right")) - 1)
        return int(self.placed[run] - self.level[run])

    def place(self, levels: NDArray[np.int64]) -> None:
        """Set the decided level (number of rollovers) of each run, int64 (runs,)."""
        self.placed, self._times, self._sorted_times, self._silences = levels, None, None, None

    def times(self) -> _Times:
        """Return the corrected times of the TIME events and of the last event; cached until `place` is called."""
        if self._times is None:
            self._times = self._made_times()
        return self._times

    def sorted_times(self) -> NDArray[np.int64]:
        """Return the times in the result of `times`, ascending, int64 (n,); cached as well."""
        if self._sorted_times is None:
            self._sorted_times = np.sort(self.times().time, kind="stable")  # they nearly ascend
        return self._sorted_times

    def silences(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return start and end of silences of a rollover or more amid enough TIME events, int64 (n,); cached."""
        if self._silences is None:
            times = np.sort(self.times().of_claims, kind="stable")
            behind = np.flatnonzero(np.diff(times) >= ROLLOVER) + 1
            behind = behind[np.minimum(behind, len(times) - behind) > _FEW_CLAIMS]
            self._silences = times[behind - 1], times[behind]
        return self._silences

    def begin(self) -> int:
        """Return the corrected time of the CPU's first claim (note on a TIME event or rollover)."""
        return int(self.claims.value[0]) + int(self.placed[0] - self.level[0]) * ROLLOVER

    def span(self) -> tuple[int, int]:
        """Return the corrected times, cycles, of the CPU's first and last known events."""
        begin = self.begin()
        return begin, max(begin, self.times().latest)

    def _made_times(self) -> _Times:
        is_time = self.claims.kind == TIME
        shift = (self.placed - self.level)[self.run]
        row, time = self.claims.row[is_time], (self.claims.value + shift * ROLLOVER)[is_time]
        count = len(row)
        if self.ends is not None and count:
            row = np.append(row, self.ends[0])
            time = np.append(time, self.ends[1] + int(shift[-1]) * ROLLOVER)
        return _Times(row, time, time[:count], int(time.min(initial=NEVER)), int(time.max(initial=-NEVER)))


class Consensus:
    """The clocks of all CPUs of a trace; decides the level (number of rollovers) of each run of TIME events.

    Args:
        claims: Notes of the walk in file order.
        standing: By CPU, the rollovers already added to its times, which its first claim includes.
        surroundings: Information on the clocks besides the TIME events.
        ends: By CPU, row and time (cycles) of its last event.
    """

    def __init__(
        self, claims: WalkNotes, standing: dict[int, int], surroundings: Surroundings, ends: dict[int, tuple[int, int]]
    ) -> None:
        self._surroundings = surroundings
        claims = _with_crossings_joined(claims)
        start = claims.cpu[claims.kind == TIME][:1].tolist()
        by_cpu = np.argsort(claims.cpu.astype(np.uint16), kind="stable")
        of_cpus = np.split(by_cpu, np.cumsum(np.bincount(claims.cpu))[:-1])
        self.clocks = {
            cpu: _Clock.of(claims, own, standing.get(cpu, 0), surroundings, ends.get(cpu))
            for cpu, own in enumerate(of_cpus)
            if len(own)
        }
        self._start = start[0] if start else -1
        self._place()

    def _place(self) -> None:
        timed = []
        for clock in self.clocks.values():
            if clock.is_rubbish():
                _place_garbage(clock)  # not compared with other CPUs
            elif clock.weight.any():
                timed.append(clock)
        if len(timed) == 1 and timed[0].weight.sum() <= 2:  # with two TIME events it is unknown which is damaged
            timed[0].doubt = np.abs(timed[0].level - timed[0].level[0])
            return
        for clock in timed:
            self._choose(clock, [])
        is_common = self._surroundings.has_common_clock
        others = {clock.cpu: [other for other in timed if other is not clock and is_common] for clock in timed}
        if is_common:
            for _ in range(2):  # twice, as the first round changes the times that others are compared with
                for clock in sorted(timed, key=self._trust):
                    self._choose(clock, others[clock.cpu])
        self._place_seeded(others, timed)

    def _place_seeded(self, others: dict[int, list[_Clock]], timed: list[_Clock]) -> None:
        """Decide the levels of the CPUs that started with the clock of another CPU, in order of their starts."""
        seeded = [clock for clock in self.clocks.values() if clock.claims.kind[0] == SEED]
        for clock in sorted(seeded, key=lambda seeded_clock: int(seeded_clock.claims.row[0])):
            if clock.cpu in others:
                self._choose(clock, others[clock.cpu])
            elif not clock.weight.any():
                clock.place(clock.level + self._anchor(clock))
                if not self._surroundings.has_shared_buffers:
                    self._place_within(clock, timed)

    def _trust(self, clock: _Clock) -> tuple[float, int, int]:
        """Return a sort key that is larger the more a CPU can be trusted.

        The key is the mean number of other CPUs that agree (0 with fewer than two others), the number of undisputed
        TIME events up to a limit, and minus the distance of the first time from the uptime in the header, cycles (0
        without uptime).
        """
        others = [other for other in self.clocks.values() if other is not clock and other.weight.any()]
        agreeing = self._agreeing(clock, clock.placed[:, None], others)
        uptime = self._surroundings.uptime_cycles
        # With two CPUs, each contradicts the other, so only their own consistency counts.
        share = len(others) > 1 and float(np.average(agreeing[:, 0], weights=clock.weight))
        return (
            share,
            min(int(clock.weight[clock.placed == clock.level].sum()), int(_MOST_DAMAGED)),
            -abs(clock.begin() - uptime) if uptime is not None else 0,
        )

    def _anchor(self, clock: _Clock) -> int:
        """Return the rollovers added to the clock of the other CPU from which a CPU got its first time; 0 if none."""
        source = self.clocks.get(int(clock.claims.source[0])) or self.clocks.get(self._start)
        return 0 if source is None or source is clock else source.shift_at(int(clock.claims.row[0]))

    def _choose(self, clock: _Clock, others: list[_Clock]) -> None:
        """Decide the level (number of rollovers) of each run of TIME events of a CPU, given the times of other CPUs."""
        candidates = self._candidates(clock, others)
        cost = np.where(candidates == clock.level[:, None], 0.0, np.minimum(clock.weight, _MOST_DAMAGED)[:, None])
        if clock.claims.kind[0] == SEED:
            # If each CPU has its own buffers, the CPU before it in the file may be at any other time.
            anchor = _ANCHOR if self._surroundings.has_shared_buffers else _PAUSE / 2
            cost[0] = np.where(candidates[0] == clock.level[0] + self._anchor(clock), 0.0, anchor)
        if others:
            agreeing = self._agreeing(clock, candidates, others)
            cost += _OTHER_CPU * (agreeing.max(axis=1, keepdims=True) - agreeing)
        if len(others) == 1:
            # With two CPUs it is unknown which of them is wrong, and a board may have a counter for each CPU.
            is_foreign = ~np.isin(candidates, clock.level)
            is_foreign &= np.abs(candidates - clock.level[:, None]) <= _EXCUSED_ROLLOVERS
            cost = np.where(is_foreign, cost[:, :1] + DOUBT - 1, cost)
        if clock.cpu == self._start:
            cost[0] += self._contradicts_header(clock, candidates[0])
        steps = candidates[1:, None, :] - candidates[:-1, :, None]
        step_cost = _step_costs(clock, steps)
        if not self._surroundings.has_shared_buffers:
            is_shared = self._is_silence_of_others(clock, others)[:, None, None]
            step_cost[is_shared & (steps == np.diff(clock.level)[:, None, None])] = 0.0
        levels, doubt = _cheapest(candidates, cost, step_cost)
        clock.place(levels)
        clock.doubt = np.where(clock.weight > 0, doubt, 0)

    def _is_silence_of_others(self, clock: _Clock, others: list[_Clock]) -> NDArray[np.bool_]:
        """Return for each step between runs whether another CPU shows the same pause, bool (runs - 1,).

        A kernel without a tick logs nothing on any CPU while nothing happens.
        """
        start, end = clock.claims.value[clock.run_start[1:] - 1], clock.column("value")[1:]
        is_shared = np.zeros(len(start), np.bool_)
        for other in others:
            begins, ends = other.silences()
            if not len(begins):
                continue
            nearest = np.searchsorted(begins, start)
            for step in range(-3, 3):  # each is at least a rollover long, so no others can be as near
                near = np.clip(nearest + step, 0, len(begins) - 1)
                is_shared |= (np.abs(start - begins[near]) <= 2 * ROLLOVER) & (np.abs(end - ends[near]) <= 2 * ROLLOVER)
        return is_shared

    def _candidates(self, clock: _Clock, others: list[_Clock]) -> NDArray[np.int64]:
        """Return candidate levels of each run, int64 (runs, k): its own, those of other runs and other CPUs."""
        level = clock.level
        distinct, inverse = np.unique(level, return_inverse=True)
        heavy = distinct[np.argsort(-np.bincount(inverse, clock.weight), kind="stable")[:_HEAVY_LEVELS]]
        # If a crossing did not happen, the level after it is lower by the passed rollovers.
        is_crossing = clock.column("kind") == CROSSING
        columns = [level, np.where(is_crossing, level - clock.passed, np.append(level[1:], level[-1]))]
        columns += [np.full(len(level), heavy_level) for heavy_level in heavy.tolist()]
        if clock.claims.kind[0] == SEED:
            columns.append(np.full(len(level), level[0] + self._anchor(clock)))
        if others:
            columns.append(level + self._towards(clock, others))
        return np.stack(columns, axis=1)

    def _towards(self, clock: _Clock, others: list[_Clock]) -> NDArray[np.int64]:
        """Return the rollovers that move each run to the (median) time of the other CPUs, int64 (runs,)."""
        rows, values, shifts = clock.column("row"), clock.column("value"), []
        for other in others:
            theirs = other.times()
            near = theirs.time[np.maximum(np.searchsorted(theirs.row, rows) - 1, 0)]
            # If the other CPU was at this time before, the buffer came late.
            is_late = (values >= theirs.earliest - SLACK) & (values < near)
            shifts.append(np.where(is_late, 0, -((values - near + SLACK) // ROLLOVER)))
        middle: NDArray[np.int64] = np.sort(np.stack(shifts), axis=0)[len(shifts) // 2]
        return middle

    def _agreeing(self, clock: _Clock, candidates: NDArray[np.int64], others: list[_Clock]) -> NDArray[np.float64]:
        """Return how many other CPUs agree with each candidate level of each run, float64 (runs, k).

        If the CPUs share buffers, a CPU agrees if the run's time at that level fits between the CPU's own times before
        and after it in the file. A level at which the run's time is earlier, as if its buffer came late, counts half,
        but only the latest such level. If each CPU has buffers of its own, it is enough that the CPUs ran at that time.

        The result is the mean over several claims of a run, because no other CPU precedes a file's first claims.
        """
        last_claim = np.append(clock.run_start[1:], len(clock.run)) - 1
        claim_rows = (
            clock.run_start[:, None] + (last_claim - clock.run_start)[:, None] * np.arange(_ASKED) // (_ASKED - 1)
        ).ravel()
        runs = clock.run[claim_rows]
        time = clock.claims.value[claim_rows, None] + (candidates - clock.level[:, None])[runs] * ROLLOVER
        agree = np.zeros(time.shape)
        if self._surroundings.has_shared_buffers:
            for other in others:
                row, theirs, _, earliest, _ = other.times()
                following = np.searchsorted(row, clock.claims.row[claim_rows])[:, None]
                before = np.where(following > 0, theirs[np.maximum(following - 1, 0)], -NEVER // 2)
                after = np.where(following < len(row), theirs[np.minimum(following, len(row) - 1)], NEVER // 2)
                # If times go back, buffers are out of order, and the run may be on either side.
                fits = ((time >= before - SLACK) & (time <= after + SLACK)) | (before > after + SLACK)
                late = np.where((time < before - SLACK) & (time >= earliest - SLACK), time, -NEVER)
                agree += np.where(fits, 1.0, 0.5 * ((late == late.max(axis=1, keepdims=True)) & (late > -NEVER)))
        elif others:
            # If each CPU has its own buffers, file order means nothing, but all CPUs began and ended together.
            begin, end = _reach(others)
            agree += ((time >= begin - ROLLOVER) & (time <= end + ROLLOVER)) * len(others)
        mean: NDArray[np.float64] = agree.reshape(len(last_claim), _ASKED, -1).mean(axis=1)
        mean[clock.column("kind") == SEED] = 0  # it was seeded by one of them
        return mean

    def _contradicts_header(self, clock: _Clock, candidates: NDArray[np.int64]) -> NDArray[np.float64]:
        uptime = self._surroundings.uptime_cycles
        if uptime is None:
            return np.zeros(len(candidates))
        off = np.abs(int(clock.claims.value[0]) + (candidates - clock.level[0]) * ROLLOVER - uptime)
        near = max(uptime // _HEADER_SHARE, ROLLOVER)
        return np.where((off.min() <= near) & (off > near), _HEADER, 0.0)

    def verdicts(self) -> ClockVerdicts:
        """Return the corrections of times, and the damaged or doubtful TIME events, of all CPUs."""
        verdicts = ClockVerdicts()
        for clock in self.clocks.values():
            _add_verdicts(verdicts, clock)
            if not self._surroundings.has_shared_buffers:
                self._doubt_alone(clock)
                self._doubt_outside(clock)
            if not self._is_only_silent(clock):
                for run in np.flatnonzero(clock.doubt).tolist():
                    row = int(clock.column("row")[run])
                    verdicts.doubtful.append((row, clock.cpu, int(clock.doubt[run])))
        self._add_unproven(verdicts)
        unproven_steps: dict[int, int] = {}
        for _, cpu, step in verdicts.unproven:
            unproven_steps[cpu] = max(step, unproven_steps.get(cpu, 0))
        # Doubts about unproven pauses are reported there.
        verdicts.doubtful[:] = [entry for entry in verdicts.doubtful if entry[2] > unproven_steps.get(entry[1], 0)]
        return verdicts

    def _place_within(self, clock: _Clock, timed: list[_Clock]) -> None:
        """Move a CPU without TIME events into the time range of the CPUs `timed` if it begins after this range."""
        if timed:
            begin, end = _reach(timed)
            behind = clock.begin() - end
            rollovers = -(-behind // ROLLOVER)
            if behind > 0 and clock.begin() - rollovers * ROLLOVER >= begin - SLACK:
                clock.place(clock.placed - rollovers)

    def _doubt_alone(self, clock: _Clock) -> None:
        """Mark a CPU without any undamaged TIME event as doubtful: nothing else shows when its buffers were written."""
        if np.any((clock.weight > 0) & (clock.placed == clock.level)):
            return
        others = [other for other in self.clocks.values() if other is not clock and other.weight.any()]
        if others:
            begin, end = _reach(others)
            clock.doubt = np.maximum(clock.doubt, (end - begin) // ROLLOVER + 1)

    def _doubt_outside(self, clock: _Clock) -> None:
        """Mark a CPU with few TIME events as doubtful if it was active outside the active time of the others.

        All TIME events of such a CPU may be damaged, and the file order does not show when its events happened. The
        others are the CPUs with more TIME events or, if there are none, most of the remaining CPUs.
        """
        if clock.weight.sum() > _FEW_CLAIMS or not self._surroundings.has_common_clock:
            return
        others = [other for other in self.clocks.values() if other is not clock and other.weight.any()]
        sure = [other for other in others if other.weight[other.placed == other.level].sum() > _FEW_CLAIMS]
        spans = sorted(other.span() for other in sure or others)
        if not spans:
            return
        (begin, end), half = clock.span(), 0 if sure else len(spans) // 2
        work_begin, work_end = spans[half][0], sorted(span[1] for span in spans)[-1 - half]
        late, early = begin - work_begin + SLACK, work_end - end + SLACK
        rollovers = max(late if end > work_end + SLACK else 0, early if begin < work_begin - SLACK else 0) // ROLLOVER
        clock.doubt = np.where(clock.weight > 0, np.maximum(clock.doubt, rollovers), clock.doubt)

    def _pauses(self, clock: _Clock) -> list[tuple[int, int, bool]]:
        """Return runs after a pause of rollovers: number, earliest end of the pause, whether another CPU was active."""
        steps, is_time = np.diff(clock.placed), clock.weight > 0
        runs = np.flatnonzero((steps > 0) & is_time[1:] & is_time[:-1]) + 1
        shifts = (clock.placed - clock.level)[runs]
        ends = clock.column("value")[runs] + shifts * ROLLOVER - SLACK
        begins = ends - steps[runs - 1] * ROLLOVER + 2 * SLACK
        is_alone = np.zeros(len(runs), np.bool_)
        for other in self.clocks.values() if len(runs) else ():
            if other is not clock:
                times = other.sorted_times()
                is_alone |= np.searchsorted(times, begins, side="right") < np.searchsorted(times, ends)
        return list(zip(runs.tolist(), ends.tolist(), is_alone.tolist(), strict=True))

    def _is_only_silent(self, clock: _Clock) -> bool:
        """Return whether pauses of a CPU are certain: in each pause another CPU was active, or had the same pause.

        The CPU must not contradict itself, nor begin before most others or end after them, where damage may have moved
        its events.
        """
        others = [other for other in self.clocks.values() if other is not clock and other.weight.any()]
        if not others or not self._surroundings.has_common_clock:
            return False
        is_plain = bool(np.all(clock.placed == clock.level)) and bool(np.all(np.diff(clock.placed) >= 0))
        pauses = self._pauses(clock) if is_plain else []
        if not pauses:
            return False
        spans = [other.span() for other in (clock, *others)]
        (begin, end), begins, ends = spans[0], *zip(*spans[1:], strict=True)
        half = len(others) // 2
        is_within = begin >= sorted(begins)[half] - SLACK and end <= sorted(ends)[-1 - half] + SLACK
        is_shared = self._is_silence_of_others(clock, others)
        return is_within and all(is_alone or is_shared[run - 1] for run, _, is_alone in pauses)

    def _add_unproven(self, verdicts: ClockVerdicts) -> None:
        """Report pauses that only few TIME events before or after them prove."""
        all_pauses = {cpu: self._pauses(clock) for cpu, clock in self.clocks.items()}
        if not any(all_pauses.values()):
            return
        times = np.sort(np.concatenate([clock.times().of_claims for clock in self.clocks.values()]), kind="stable")
        for cpu, clock in self.clocks.items():
            bits = clock.ties()
            is_shared = self._is_silence_of_others(
                clock, [other for other in self.clocks.values() if other is not clock]
            )
            for run, end, is_alone in all_pauses[cpu]:
                early = int(np.searchsorted(times, end))
                ties = bits[run] >= _LONGEST_TIE and not clock.is_excused[run]
                step = int(clock.placed[run] - clock.placed[run - 1])
                if clock.is_excused[run] and step <= _EXCUSED_ROLLOVERS:
                    continue  # missing buffers explain the pause
                if is_shared[run - 1] and self._surroundings.has_common_clock:
                    continue
                # Events close to the TIME do not contradict: the pause was before them, and showed no rollover.
                few = _MOST_DAMAGED if ties else _FEW_CLAIMS
                if not is_alone and min(early, len(times) - early) <= few:
                    verdicts.unproven.append((int(clock.column("row")[run]), cpu, step))


def _reach(clocks: list[_Clock]) -> tuple[int, int]:
    """Return the earliest and the latest corrected time, cycles, of several CPUs that have TIME events."""
    times = [clock.times() for clock in clocks]
    return min(clock_times.earliest for clock_times in times), max(clock_times.latest for clock_times in times)


def _with_crossings_joined(claims: WalkNotes) -> WalkNotes:
    """Return the notes with successive `CROSSING` notes of a CPU merged, which borders of chunks have split."""
    if not np.any(claims.kind == CROSSING):
        return claims
    by_cpu = np.argsort(claims.cpu, kind="stable")
    kind, cpu = claims.kind[by_cpu], claims.cpu[by_cpu]
    begins = np.ones(len(kind), np.bool_)
    begins[1:] = (kind[1:] != CROSSING) | (kind[:-1] != CROSSING) | (cpu[1:] != cpu[:-1])
    first_rows = np.flatnonzero(begins)
    joined = claims.rows(by_cpu[first_rows])._replace(rollovers=np.add.reduceat(claims.rollovers[by_cpu], first_rows))
    return joined.rows(np.lexsort((joined.kind == CROSSING, joined.row)))


def _step_costs(clock: _Clock, steps: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the costs of `steps`, rollovers between candidate levels of successive runs, both (runs - 1, k, k)."""
    level = clock.level
    _, first_runs = np.unique(level, return_index=True)
    is_return = np.ones(len(level), np.bool_)
    is_return[first_runs] = False
    back = np.where(clock.is_excused, _EXCUSED_BACK, np.where(is_return, _RETURN, _BACK))[1:, None, None]
    is_late_stamp = (clock.column("gap") >= ROLLOVER // 2 - _LATE_CYCLES)[1:, None, None] & (steps == -1)
    back = np.where(is_late_stamp, np.minimum(back, _LATE_STAMP), back)
    is_excused = clock.is_excused[1:, None, None]
    ahead = np.where(is_excused & (steps <= _EXCUSED_ROLLOVERS), _PAUSE, clock.ties()[1:, None, None])
    cost = np.where(steps > 0, ahead, np.where(steps < 0, back, 0.0))
    if clock.claims.kind[0] == SEED and len(cost):  # the seed is another CPU's clock, not a counter that goes back
        cost[0] = np.where(steps[0] != 0, clock.ties()[1], 0.0)
    is_crossing = (clock.column("kind") == CROSSING)[1:, None, None]
    passed = clock.passed[1:, None, None]
    undone = np.where(is_excused, _EXCUSED_BACK, _LOST_TIME)
    crossing = np.where((steps > 0) | (steps < -passed), _IMPOSSIBLE, np.where(steps < 0, undone, 0.0))
    return np.where(is_crossing, crossing, cost)


def _cheapest(
    candidates: NDArray[np.int64], cost: NDArray[np.float64], step_cost: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the levels with the lowest cost, and the rollovers by which each may be wrong, int64 (runs,) each.

    `cost` is that of each candidate (runs, k), `step_cost` that of the step from each to each of the next run.
    """
    best, total = cheapest_path(cost, step_cost)
    levels = candidates[np.arange(len(best)), best]
    off = np.abs(candidates - levels[:, None])
    return levels, np.where(total - total.min() <= DOUBT, off, 0).max(axis=1)


def _place_garbage(clock: _Clock) -> None:
    """Decide the levels of a clock with too many contradictions: those that many TIME events show."""
    _, inverse = np.unique(clock.level, return_inverse=True)
    is_heavy = (np.bincount(inverse, clock.weight) >= _MOST_DAMAGED)[inverse]
    latest = np.maximum.accumulate(np.where(is_heavy, np.arange(len(is_heavy)), 0))
    clock.place(clock.level[latest])
    clock.doubt = np.abs(clock.placed - clock.level)


def _add_verdicts(verdicts: ClockVerdicts, clock: _Clock) -> None:
    """Add to `verdicts` the corrections and reports that follow from the numbers of rollovers decided for a CPU."""
    shift, cpu = clock.placed - clock.level, clock.cpu
    rows, kinds = clock.column("row"), clock.column("kind")
    starts = np.append(0, rows[1:])
    for run in np.flatnonzero(shift).tolist():
        end = int(rows[run + 1]) if run + 1 < len(rows) else NEVER
        verdicts.corrections.append(Correction(cpu, int(starts[run]), end, int(shift[run])))
    is_damaged = (clock.claims.kind == TIME) & (shift[clock.run] != 0)
    damaged_rows, amounts = clock.claims.row[is_damaged].tolist(), (-shift[clock.run][is_damaged]).tolist()
    verdicts.damaged.extend(zip(damaged_rows, [cpu] * len(damaged_rows), amounts, strict=True))
    cycles = np.diff(clock.placed) * ROLLOVER + clock.column("gap")[1:]
    for run in (np.flatnonzero((kinds[1:] == TIME) & (np.abs(cycles) >= ROLLOVER)) + 1).tolist():
        if kinds[run - 1] == SEED:
            verdicts.reseeded.append((int(rows[run]), cpu, int(cycles[run - 1])))
        elif cycles[run - 1] < 0:
            verdicts.steps.append((int(rows[run]), cpu, -int(cycles[run - 1])))
