"""Parts of the clock by hand: stamps and references, TIME events, misplaced events, and what each assumption costs."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from satview.events import wire
from satview.formats.kev import clock as clock_module
from satview.formats.kev import consensus
from satview.formats.kev.clock import (
    LATEST,
    ClockChunk,
    ClockRebuilder,
    ClockReview,
    _rollovers_after,
    correct,
    held_times,
    misplaced,
    time_values,
)
from satview.formats.kev.consensus import (
    CROSSING,
    ROLLOVER,
    SEED,
    SLACK,
    TIME,
    ClockVerdicts,
    Correction,
    Surroundings,
    WalkNotes,
    unwrap,
    unwrap_segments,
)
from tests.helpers.columns import ints

LAG = 1 << 26
NEAR = 1 << 24


# ---- stamps ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "ahead", "time"),
    [(0, 0, 0), (5, 0, 5), (5 * ROLLOVER + 7, 1, 1), (7, 3 * SLACK - 1, 3 * SLACK - 1), (7, 3 * SLACK, -SLACK),
     (7, -1, -1), (7, -SLACK, -SLACK), (7, -SLACK - 1, 3 * SLACK - 1), (9 * ROLLOVER - 1, 1, 1)],
)  # fmt: skip
def test_a_stamp_is_a_quarter_behind_or_three_quarters_ahead(reference, ahead, time):
    found = unwrap(reference, (reference + ahead) % ROLLOVER)
    assert found - reference == (time if reference not in (0, 5) else time - reference)


@pytest.mark.parametrize("seed", range(8))
def test_segments_against_one_event_at_a_time(seed):
    """Up to three TIME events among 60 events of every other row, with steps of up to three quarters of a rollover."""
    rng = np.random.default_rng(seed)
    steps = rng.choice([0, 1, 99, SLACK, 2 * SLACK, 3 * SLACK - 1, -SLACK, -5], 60)
    clock = 9 * ROLLOVER + np.cumsum(steps)
    stamps = np.zeros(120, np.uint32)
    rows = np.arange(60) * 2 + 1
    stamps[rows] = clock % ROLLOVER
    time_at = np.unique(rng.integers(0, 60, seed % 4))
    starts = np.append(9 * ROLLOVER, clock[time_at] - rng.integers(0, 5, len(time_at)))
    out, expected, ends, reference = np.zeros(120, np.int64), [], [], int(starts[0])
    for at in range(60):
        if at in time_at:
            ends.append(reference)
            reference = int(starts[len(ends)])
            expected.append(unwrap(reference, int(stamps[rows[at]])))
            continue
        expected.append(unwrap(reference, int(stamps[rows[at]])))
        reference = max(reference, expected[-1])
    assert unwrap_segments(starts, stamps, rows, time_at, out).tolist() == [*ends, reference]
    assert out[rows].tolist() == expected
    assert not out[rows - 1].any()


def test_a_segment_that_goes_step_by_step_leaves_its_time_event_out():
    """Of a TIME event at 3 rollovers the stamp is half a one late; the event at a tenth is none behind it."""
    stamps = np.array([ROLLOVER // 2, ROLLOVER // 10, ROLLOVER * 7 // 10, ROLLOVER // 20], np.uint32)
    out, time_at = np.zeros(4, np.int64), np.array([0])
    ends = unwrap_segments(ints(0, 3 * ROLLOVER), stamps, np.arange(4), time_at, out)
    assert ends.tolist() == [0, 4 * ROLLOVER + ROLLOVER // 20]
    assert (out - 3 * ROLLOVER).tolist() == [*stamps[:3].tolist(), ROLLOVER + ROLLOVER // 20]


def test_events_in_front_of_the_first_time():
    """A stamp is up to three quarters before it and a quarter behind it."""
    value = 7 * ROLLOVER + 100
    for back, time in ((0, 0), (1, -1), (3 * SLACK, -3 * SLACK), (3 * SLACK + 1, SLACK - 1), (-5, 5)):
        assert held_times(ints((value - back) % ROLLOVER, kind=np.uint32), value).tolist() == [value + time]
    # Of CPU 0 a rollover and a half passed between two events; CPU 1 went on as its times say.
    stamps = ints(10, 20, 2 * SLACK + 10, 30, kind=np.uint32)
    cpus, time = ints(0, 1, 0, 1, kind=np.uint8), ints(10, 20, 2 * SLACK + 10 - ROLLOVER, 30)
    assert _rollovers_after(stamps, cpus, time).tolist() == [1, 0, 0, 0]
    assert _rollovers_after(stamps, cpus, ints(10, 20, 2 * SLACK + 10, 30)).tolist() == [0] * 4
    assert _rollovers_after(stamps, 1 - cpus, time).tolist() == [1, 0, 0, 0], "of CPU 1, which comes first"


# ---- TIME events -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("upper", "lower", "stamp", "value"),
    [
        (0, 5, 5, 5), (7, 5, 5, 7 << 32 | 5), (7, 5, 5 + LAG, 7 << 32 | 5), (7, 5, 6 + LAG, -1),
        (7, LAG, 0, 7 << 32 | LAG), (7, LAG + 1, 0, -1), (7, ROLLOVER - 1, LAG - 1, 8 * ROLLOVER - 1),
        ((LATEST >> 32) - 1, ROLLOVER - 1, ROLLOVER - 1, LATEST - 1), (LATEST >> 32, 0, 0, -1), (1 << 31, 0, 0, -1),
        (0xFFFFFFFF, 5, 5, -1), (7, 5, 5 + (1 << 31), -1),
    ],
)  # fmt: skip
def test_clocks_that_a_kernel_writes(upper, lower, stamp, value):
    columns = (ints(number, kind=np.uint32) for number in (upper, lower, stamp))
    assert time_values(*columns).tolist() == [value]


def chunk(
    *events: tuple[int, tuple[int, int] | None], buffers: tuple[int, ...] = (), first_row: int = 100
) -> ClockChunk:
    """Return a chunk of stamps, with upper and lower half of those that are TIME events."""
    stamps = ints(*(stamp for stamp, _ in events), kind=np.uint32)
    rows = np.array([row for row, (_, halves) in enumerate(events) if halves], np.intp)
    slots = np.array([(0, events[row][0], *events[row][1]) for row in rows], np.uint32).reshape(-1, 4)
    return ClockChunk.of(
        slots, stamps, np.arange(len(events)).astype(np.uint8), rows, np.array(buffers, np.intp), first_row
    )


def test_a_chunk_of_events():
    """BUFFER events with the stamp of the next event take its time; the last one has none behind it."""
    found = chunk((5, None), (5, None), (6, None), (7, (3, 7)), (9, None), (9, None), buffers=(0, 1, 2, 4, 5))
    assert found.same_as_next.tolist() == [0, 4]
    assert found.takes_part.tolist() == [False, True, True, True, False, True]
    assert (found.time_rows.tolist(), found.time_values.tolist()) == ([3], [3 * ROLLOVER + 7])
    assert found.without(0) is found
    rest = found.without(3)
    assert (rest.stamps.tolist(), rest.cpus.tolist(), rest.first_row) == ([7, 9, 9], [3, 4, 5], 103)
    assert (rest.time_rows.tolist(), rest.time_values.tolist(), rest.same_as_next.tolist()) == (
        [0],
        [3 * ROLLOVER + 7],
        [1],
    )
    assert found.without(4).time_rows.tolist() == []


@pytest.mark.parametrize(
    ("events", "mended"),
    [
        # Of stamp and lower half of an impossible TIME event the one nearer to the next event counts.
        (((100, None), (5, (1 << 31, 210)), (220, None)), [100, 210, 220]),
        (((100, None), (210, (1 << 31, 5)), (220, None)), [100, 210, 220]),
        (((100, None), (230, (1 << 31, 210)), (220, None)), [100, 230, 220]),  # equally near: the stamp stays
        (((100, None), (5, (1 << 31, 110))), [100, 110]),  # at the end the event in front
        (((5, (1 << 31, 110)),), [5]),
        (((100, None), (5, (1 << 31, 210)), (6, (1 << 31, 215)), (220, None)), [100, 210, 215, 220]),
        (((100, None), (5, (3, 5)), (6, (1 << 31, 9)), (10, None)), [100, 5, 9, 10]),
        (((ROLLOVER - 16, (0, 0)), (5, None)), [ROLLOVER - 16, 5]),  # a counter may be at 0
    ],
)  # fmt: skip
def test_stamps_of_impossible_time_events(events, mended):
    assert chunk(*events).stamps.tolist() == mended


# ---- events whose stamp is damaged -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "cpus", "rows", "expected"),
    [
        ([0, NEAR + 1, 0, 1], [0] * 4, [1, 2], [(1, NEAR + 1)]), ([0, NEAR, 0, 1], [0] * 4, [1, 2], []),
        ([NEAR + 1, 0, NEAR + 1, NEAR + 2], [0] * 4, [1], [(1, -NEAR - 1)]),
        ([0, 4 * NEAR, 13_421_772, NEAR], [0] * 4, [1, 2], [(1, 4 * NEAR)]),  # apart by a quarter of how far it is
        ([0, 4 * NEAR, 13_421_773, NEAR], [0] * 4, [1, 2], []),
        ([0, 4 * NEAR, 9 * NEAR, 9 * NEAR], [0] * 4, [1, 2], []),  # between the two
        ([8 * NEAR, 0, 8 * NEAR, 0], [0] * 4, [0, 1, 2, 3], []),  # of neighbours nobody knows which is wrong
        ([0, 5, 9 * NEAR, 6, 1], [0, 1, 0, 1, 0], [2, 3], [(2, 9 * NEAR)]),
        ([0, 9 * NEAR, 5, 9 * NEAR + 1, 1], [0, 1, 0, 1, 0], [1, 2, 3], []),  # the clock of another CPU
        ([9 * NEAR, 0, 1], [0] * 3, [0, 1, 2], []), ([], [], [], []),
    ],
)  # fmt: skip
def test_events_far_from_those_around_them(times, cpus, rows, expected):
    found, off = misplaced(ints(*times), ints(*cpus, kind=np.uint8), ints(*rows))
    assert list(zip(found.tolist(), off.tolist(), strict=True)) == expected


def test_more_misplaced_events_than_damage_makes(monkeypatch):
    times = np.arange(60)
    times[10:50:10] += 9 * NEAR
    cpus, rows = np.zeros(60, np.uint8), np.arange(1, 59)
    for most, count in ((4, 4), (3, 0)):
        monkeypatch.setattr(clock_module, "_MISPLACED_MAX", most)
        assert misplaced(times, cpus, rows)[0].tolist() == [10, 20, 30, 40][:count]
    monkeypatch.setattr(clock_module, "_MISPLACED_MAX", 4)
    monkeypatch.setattr(clock_module, "_CHUNK", 7)
    assert misplaced(times, cpus, rows)[0].tolist() == [10, 20, 30, 40]


@pytest.mark.parametrize(("before", "behind", "is_misplaced"), [(64, 64, True), (65, 64, False), (64, 65, False)])
def test_where_the_events_of_the_same_cpu_are_looked_for(before, behind, is_misplaced):
    """Up to 64 rows away; farther off there is nothing to compare with."""
    times, cpus = np.arange(300), np.ones(300, np.uint8)
    times[150] += 9 * NEAR
    cpus[[150 - before, 150, 150 + behind]] = 0
    assert misplaced(times, cpus, np.arange(1, 299))[0].tolist() == [150] * is_misplaced


@pytest.mark.parametrize(("count", "is_mended"), [(20_000, True), (20_001, False)])
def test_how_many_misplaced_events_damage_makes(count, is_mended):
    times = np.arange(3 * count + 3)
    times[1:-2:3] += 9 * NEAR
    found, off = misplaced(times, np.zeros(len(times), np.uint8), np.arange(1, len(times) - 1))
    assert len(found) == (count if is_mended else 0)
    assert set(off.tolist()) <= {9 * NEAR + 1, 9 * NEAR}


def test_how_long_a_reader_can_wait():
    """65,536 events for what is odd, 8,192 for a clock that is not established."""
    review = ClockReview()
    assert (review.is_due(1 << 16), review.is_due((1 << 16) + 1)) == (False, True)
    review.add(claims((7, 0, TIME, 0)))
    assert (review.waits_from(1 << 13), review.waits_from((1 << 13) + 1)) == (0, None)


def test_the_last_event_of_each_cpu(monkeypatch):
    """Among the last events of all, chunk by chunk; a BUFFER event with the time of the next one moves no clock."""
    clock = ClockRebuilder()

    def ends_behind(first_row: int, *events: tuple[int, tuple[int, int] | None]) -> dict[int, tuple[int, int]]:
        part = chunk(*events, first_row=first_row, buffers=(2,))
        clock.unwrap(part, np.zeros(len(part.stamps), np.int64))
        return clock._ends()

    time = 3 * ROLLOVER
    first = ends_behind(0, (100, (3, 100)), (200, None), (300, None), (300, None))
    assert first == {0: (0, time + 100), 1: (1, time + 200), 3: (3, time + 300)}
    assert ends_behind(4, (400, None)) == {0: (4, time + 400), 1: (1, time + 200), 3: (3, time + 300)}
    monkeypatch.setattr("satview.formats.kev.clock._END_EVENTS", 3)
    assert ends_behind(5, (500, (3, 500))) == {0: (5, time + 500), 3: (3, time + 300)}
    assert ends_behind(6, (600, None), (700, None)) == {0: (6, time + 600), 1: (7, time + 700)}
    assert [row for row, _ in clock._recent] == [5, 6], "of what is before them nothing is kept"
    # CPUs 1 and 3 have no TIME event: the clock of the CPU in front of them stands in.
    noted = clock.review._claims()
    assert [getattr(noted, name).tolist() for name in ("row", "kind", "rollovers", "gap", "source", "weight")] == [
        [0, 1, 3, 5], [TIME, SEED, SEED, TIME], [0] * 4, [0, 0, 0, 100], [-1, 0, 1, -1], [1, 0, 0, 1]
    ]  # fmt: skip
    ends_behind(8, *((800 + row, None) for row in range(5)))
    assert [(row, cpus.tolist()) for row, cpus in clock._recent] == [(10, [2, 3, 4])]


@pytest.mark.parametrize(("behind", "cpus"), [(4095, {0, 1}), (4096, {0})])
def test_how_far_back_the_last_event_of_a_cpu_is_looked_for(behind, cpus):
    """Of CPU 1, in front of that many events of CPU 0: among the last 4,096."""
    clock, of_cpu = ClockRebuilder(), np.zeros(behind + 1, np.uint8)
    of_cpu[0] = 1
    no_slots, none = np.empty((0, 4), np.uint32), np.empty(0, np.intp)
    part = ClockChunk.of(no_slots, np.arange(behind + 1, dtype=np.uint32), of_cpu, none, none, 0)
    clock.unwrap(part, np.zeros(behind + 1, np.int64))
    assert clock._ends().keys() == cpus


def test_the_clock_of_a_cpu_without_time_is_that_of_the_event_before():
    """CPU 0 has a TIME event, then comes CPU 1; CPU 2 begins the next chunk."""
    clock = ClockRebuilder()
    clock.unwrap(chunk((100, (3, 100)), (200, None), first_row=0), np.zeros(2, np.int64))
    no_slots, none = np.empty((0, 4), np.uint32), np.empty(0, np.intp)
    stamps, cpus = ints(300, kind=np.uint32), ints(2, kind=np.uint8)
    clock.unwrap(ClockChunk.of(no_slots, stamps, cpus, none, none, 2), np.zeros(1, np.int64))
    noted = clock.review._claims()
    assert (noted.row.tolist(), noted.cpu.tolist(), noted.source.tolist()) == ([0, 1, 2], [0, 1, 2], [-1, 0, 1])


B, U = wire.CONTROL_BUFFER, wire.code(wire.WireClass.USER, 1)


@pytest.mark.parametrize(
    ("corrections", "first_row", "expected"),
    [
        ([Correction(0, 2, 4, 1)], 0, [0, 0, 1, 0, 0, 0]), ([Correction(0, 2, 5, 1)], 0, [0, 0, 1, 0, 1, 0]),
        ([Correction(1, 0, 9, -2)], 0, [0, -2, 0, -2, 0, -2]), ([Correction(0, 12, 15, 1)], 10, [0, 0, 1, 0, 1, 0]),
        ([Correction(0, 0, 11, 1)], 10, [1, 0, 0, 0, 0, 0]),
        ([Correction(0, 0, 10, 1), Correction(0, 16, 99, 1)], 10, [0] * 6),
        ([Correction(0, 0, 3, 1), Correction(0, 2, 9, 1)], 0, [1, 0, 2, 0, 1, 0]), ([], 0, [0] * 6),
    ],
)  # fmt: skip
def test_corrections_are_added_to_the_rows_of_their_cpu(corrections, first_row, expected):
    time = np.arange(6) * 10
    correct(corrections, time, np.arange(6).astype(np.uint8) % 2, np.full(6, U), first_row)
    assert ((time - np.arange(6) * 10) // ROLLOVER).tolist() == expected


@pytest.mark.parametrize(
    ("codes", "times", "cpus", "first", "expected"),
    [
        ([U, B, U, U], [5, 9, 9, 10], [0, 1, 0, 0], 2, [0, 1, 1, 1]),  # a BUFFER keeps the time of the event behind it
        ([U, B, B, U], [5, 9, 9, 9], [0, 1, 1, 0], 3, [0, 1, 1, 1]),
        ([U, B, U, U], [5, 8, 9, 10], [0, 1, 0, 0], 2, [0, 0, 1, 1]),
        ([U, B, U, U], [5, 9, 9, 10], [0, 0, 1, 0], 0, [1, 0, 0, 1]),  # that one is of another CPU
        ([U, B, U, U], [5, 8, 9, 10], [0, 0, 0, 0], 2, [0, 0, 1, 1]),  # a time of its own
        ([U, U, U, B], [5, 6, 7, 8], [0, 0, 0, 0], 1, [0, 1, 1, 1]),
        ([U, U, U, U], [5, 9, 9, 9], [0, 0, 0, 0], 2, [0, 0, 1, 1]),  # no BUFFER: it is in front of the correction
        ([U, B, U, U], [5, 8, 9, 10], [0, 1, 0, 0], 0, [1, 0, 1, 1]),
        ([U, U, B], [5, 6, 5], [0, 0, 0], 0, [1, 1, 1]),  # the last event is not in front of the first one
    ],
)  # fmt: skip
def test_buffer_events_with_the_time_of_the_next_event(codes, times, cpus, first, expected):
    time = ints(*times)
    correct([Correction(0, first, 99, 1)], time, ints(*cpus, kind=np.uint8), ints(*codes, kind=np.uint16))
    assert ((time - ints(*times)) // ROLLOVER).tolist() == expected


# ---- what a reader that cannot wait does -------------------------------------------------------------------------


def claims(*rows: tuple[int, int, int, int]) -> WalkNotes:
    """Return claims: row, CPU, kind, rollovers."""
    row, cpu, kind, rollovers = (ints(*column) for column in (zip(*rows, strict=True) if rows else [()] * 4))
    zero = np.zeros(len(row), np.int64)
    return WalkNotes(row, cpu, kind, zero + row * 1000, rollovers, zero, zero - 1, (kind == TIME).astype(np.int64))


def test_up_to_where_times_are_final(monkeypatch):
    monkeypatch.setattr(clock_module, "START_EVENTS", 100)
    monkeypatch.setattr(clock_module, "LOOK_AHEAD_EVENTS", 50)
    review = ClockReview()
    assert (review.waits_from(5), review.is_due(50), review.is_due(51)) == (None, False, True)
    review.add(claims(*((row, 0, TIME, 0) for row in range(7))))
    assert review.waits_from(100) == 0, "seven TIME events do not establish a clock"
    assert review.waits_from(101) is None
    review.add(claims((7, 0, TIME, 0)))
    assert review.waits_from(100) is None
    review.add(claims((8, 1, SEED, 3)))
    assert review.waits_from(100) == 0, "nor does CPU 1 have one"
    review.add(claims((20, 0, TIME, 0), (30, 0, CROSSING, 1), (40, 0, TIME, 5)))
    assert review.waits_from(101) == 30
    assert (review.is_due(80), review.is_due(81)) == (False, True)
    copied = review.__deepcopy__(None)
    copied.add_breaks([(5, 0), (6, -1), (7, 0)])
    assert (copied.surroundings.breaks, review.surroundings.breaks) == ({0: [5, 7], -1: [6]}, {})
    assert copied.waits_from(101) == 30


def test_doubts_behind_time_events_that_are_lost():
    """As many rollovers as the next TIME event of the CPU shows, less what is corrected; without one, one for each."""
    review = ClockReview()
    review.add(claims((10, 0, TIME, 0), (30, 0, TIME, 2), (40, 1, TIME, 0), (60, 0, CROSSING, 1), (70, 0, TIME, 0)))
    lost = review.after_lost([20, 25, 50, 80, 90, 35, 45], [0, 0, 0, 0, 0, 1, 1], [])
    assert lost == [(20, 0, 2), (80, 0, 2), (45, 1, 1)]
    corrections = [Correction(0, 28, 40, -2), Correction(0, 65, 99, 3)]
    assert review.after_lost([20, 50], [0, 0], corrections) == [(50, 0, 3)]
    for begin, end, lost in ((30, 31, []), (29, 30, [(20, 0, 2)]), (31, 32, [(20, 0, 2)])):
        assert review.after_lost([20], [0], [Correction(0, begin, end, -2)]) == lost
    assert ClockReview().after_lost([5], [2], []) == [(5, 2, 1)]


def test_what_is_decided_for_good(monkeypatch):
    """By a reader that cannot wait: corrections without an end end where their CPU goes on being judged.

    What goes on is the last TIME event of each CPU, moved as the CPU was, which stands for eight at most.
    """
    never, asked = 2**63 - 1, []
    first = ClockVerdicts(corrections=[Correction(0, 5, never, -8), Correction(1, 2, 4, 3)], steps=[(1, 1, 1)],
                          reseeded=[(2, 2, 2)], damaged=[(3, 3, 3)], doubtful=[(4, 4, 4)],
                          unproven=[(5, 5, 5)])  # fmt: skip

    def consensus_of(*args):
        asked.append(args)
        return SimpleNamespace(verdicts=lambda: first)

    monkeypatch.setattr(clock_module, "Consensus", consensus_of)
    monkeypatch.setattr(clock_module, "LOOK_AHEAD_EVENTS", 50)
    review, ends = ClockReview(), {0: (49, 7)}
    review.add(claims(*((row, 0, TIME, 8 * (row == 5)) for row in range(10)), (10, 1, TIME, 0), (11, 1, SEED, 0)))
    review.add(claims((12, 2, SEED, 0), (13, 1, TIME, 0), (14, 1, CROSSING, 1)))
    assert (review.waits_from(9999), review.verdicts(ends)) == (5, first)
    review.settle(50, ends)
    judged, standing, surroundings, last = asked[-1]
    assert (judged.row.tolist(), standing, surroundings, last) == ([*range(15)], {}, review.surroundings, ends)
    assert (review.settled, review.waits_from(9999)) == (first, None)
    assert (review.is_due(100), review.is_due(101)) == (False, True)
    kept = review._claims()
    assert [column.tolist() for column in kept] == [
        [9, 13], [0, 1], [TIME, TIME], [9000 - 8 * ROLLOVER, 13000], [0, 0], [0, 0], [-1, -1], [8, 2]
    ]  # fmt: skip
    assert review.final_corrections() == first.corrections
    assert review.verdicts(ends) is review.settled, "nothing odd came since"
    review.add(claims((60, 1, TIME, 0), (70, 0, TIME, 0), (80, 0, CROSSING, 1)))
    expected = [Correction(0, 5, 70, -8), Correction(1, 2, 4, 3)]
    assert review.final_corrections() == expected
    both = review.verdicts(ends)
    assert asked[-1][1] == {0: -8, 1: 0}
    assert both == ClockVerdicts(expected + first.corrections, *(getattr(first, name) * 2 for name in (
        "steps", "reseeded", "damaged", "doubtful", "unproven")))  # fmt: skip
    assert ClockReview().final_corrections() == []
    none = ClockReview()
    none.settle(5, {})
    assert (none._claims().row.tolist(), none.is_due(56)) == ([], True)


@pytest.mark.parametrize(
    ("is_damaged", "has_claims", "is_judged"), [(False, True, False), (True, True, True), (True, False, False)]
)
def test_damaged_time_events_have_the_others_judged(monkeypatch, is_damaged, has_claims, is_judged):
    asked = []
    monkeypatch.setattr(
        clock_module, "Consensus", lambda *args: asked.append(args) or SimpleNamespace(verdicts=ClockVerdicts)
    )
    review = ClockReview()
    if has_claims:
        review.add(claims((1, 0, TIME, 0)))
    assert review.verdicts({}, is_damaged=is_damaged) == ClockVerdicts()
    assert len(asked) == is_judged


# ---- what assumptions cost ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_the_cheapest_of_all_sequences(seed):
    rng = np.random.default_rng(seed)
    runs, k = 1 + seed % 4, 3
    candidates, cost = rng.integers(-9, 9, (runs, k)), rng.integers(0, 9, (runs, k)).astype(float)
    step = rng.integers(0, 9, (runs - 1, k, k)).astype(float)
    totals = {
        path: sum(cost[i, at] for i, at in enumerate(path))
        + sum(step[i, path[i], path[i + 1]] for i in range(runs - 1))
        for path in product(range(k), repeat=runs)
    }
    levels, doubt = consensus._cheapest(candidates, cost, step)
    least = min(totals.values())
    best = [path for path, total in totals.items() if total == least]
    assert levels.tolist() in [candidates[np.arange(runs), list(path)].tolist() for path in best]
    for run in range(runs):
        near = {path[run] for path, total in totals.items() if total <= least + consensus.DOUBT}
        assert doubt[run] == max(abs(int(candidates[run, at]) - int(levels[run])) for at in near)


def test_crossings_of_a_cpu_are_one():
    """Those that chunks cut, with nothing of the CPU between; a TIME event in the same row comes first."""
    found = consensus._with_crossings_joined(claims(
        (1, 0, TIME, 0), (2, 0, CROSSING, 1), (3, 1, CROSSING, 4), (4, 0, CROSSING, 2), (5, 0, TIME, 0),
        (6, 0, CROSSING, 3), (6, 1, TIME, 7), (7, 1, CROSSING, 5), (8, 1, CROSSING, 6),
    ))  # fmt: skip
    assert list(zip(*(column.tolist() for column in found[:5]), strict=True)) == [
        (1, 0, TIME, 1000, 0), (2, 0, CROSSING, 2000, 3), (3, 1, CROSSING, 3000, 4), (5, 0, TIME, 5000, 0),
        (6, 1, TIME, 6000, 7), (6, 0, CROSSING, 6000, 3), (7, 1, CROSSING, 7000, 11),
    ]  # fmt: skip
    plain = claims((1, 0, TIME, 0), (2, 1, SEED, 0))
    assert consensus._with_crossings_joined(plain) is plain


def clock(kinds: str, levels: list[int], *, gaps: list[int] | None = None, breaks: list[int] | None = None):
    """Return the runs of CPU 0: each letter a claim (t, s or x), its level; crossings pass one rollover each."""
    kind = ints(*({"t": TIME, "s": SEED, "x": CROSSING}[letter] for letter in kinds))
    rollovers = np.where(kind == CROSSING, 1, np.diff(levels, prepend=0))
    n = len(kinds)
    found = WalkNotes(np.arange(n) * 10, np.zeros(n, np.int64), kind, np.arange(n) * (ROLLOVER // 8), rollovers,
                      ints(*(gaps or [ROLLOVER // 8] * n)), np.full(n, -1),
                      (kind == TIME).astype(np.int64))  # fmt: skip
    return consensus._Clock.of(found, np.flatnonzero(found.cpu == 0), 0, Surroundings({0: breaks or []}), None)


def test_runs_of_time_events():
    """A run ends where the level changes, at a CPU's other claims, and never between crossings."""
    found = clock("sttxxtttt", [0, 0, 0, 0, 0, 0, 0, 7, 7], breaks=[65])
    assert found.run.tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert found.run_start.tolist() == [0, 1, 3, 5, 7]
    assert found.level.tolist() == [0, 0, 0, 0, 7]
    assert found.weight.tolist() == [0, 2, 0, 2, 2]
    assert found.passed.tolist() == [0, 0, 2, 0, 0]
    assert found.is_excused.tolist() == [False] * 4 + [True]
    assert found.placed.tolist() == found.level.tolist()
    assert clock("xt", [0, 0], breaks=[0]).is_excused.tolist() == [False, True], "no TIME event is in front of it"
    rows, times = found.times()[:2]
    assert rows.tolist() == [10, 20, 50, 60, 70, 80]
    assert times.tolist() == [row // 10 * (ROLLOVER // 8) for row in rows.tolist()]
    assert found.span() == (0, ROLLOVER)
    found.place(ints(0, 0, 0, 0, 5))
    assert found.times()[1].tolist()[-2:] == [7 * (ROLLOVER // 8) - 2 * ROLLOVER, ROLLOVER - 2 * ROLLOVER]
    assert [found.shift_at(row) for row in (0, 69, 70, 99)] == [0, 0, -2, -2]


@pytest.mark.parametrize(
    ("gap", "bits"),
    [(ROLLOVER // 8, 2), (-ROLLOVER // 128, 0.5), (ROLLOVER // 2, 0.5), (2 * ROLLOVER, 0.5), (ROLLOVER // 16, 2),
     (-(1 << 24), 2), (-(1 << 24) - 1, 0.5), (1, 2)],
)  # fmt: skip
def test_bits_that_show_that_there_was_no_pause(gap, bits):
    """As many as the pace of TIME events can show; half of them in front of the last one, which nothing follows."""
    found = clock("tttttttt", [0, 0, 0, 8, 8, 8, 8, 8], gaps=[0, 0, 0, gap, 0, 0, 0, 0])
    found.most_bits = 2.0
    assert found.ties()[1] == bits
    last = clock("tttt", [0, 0, 0, 8], gaps=[0, 0, 0, gap])
    last.most_bits = 2.0
    assert last.ties()[1] == (bits if gap < -(1 << 24) else bits / 2)
    third = clock("ttttt", [0, 0, 5, 5, 8], gaps=[0, 0, gap, 0, gap])
    third.most_bits = 2.0
    assert third.ties()[1:].tolist() == [bits, bits if gap < -(1 << 24) else bits / 2]


def costs(found, steps: list[int]) -> list[float]:
    """Return what each step into the last run costs."""
    table = np.zeros((len(found.level) - 1, 1, len(steps)), np.int64) + ints(*steps)
    return consensus._step_costs(found, table)[-1, 0].tolist()


@pytest.mark.parametrize(
    ("kinds", "levels", "breaks", "steps", "expected"),
    [
        ("ttttttt", [0, 0, 0, 0, 8, 8, 8], [], [0, 1, -1], [0, 2, 10]),
        ("ttttttt", [0, 0, 8, 8, 0, 0, 0], [], [0, 1, -1], [0, 2, 20]),  # a level that it had before
        ("ttttttt", [0, 0, 0, 0, 8, 8, 8], [35], [0, 1, 64, 65, -1], [0, 0.5, 0.5, 2, 3]),  # buffers are missing there
        ("stttttt", [0, 8, 8, 8, 8, 8, 8], [], [0, 1, -1], [0, 2, 2]),  # the clock of another CPU may go back
        ("tttttxx", [0, 0, 0, 0, 0, 0, 0], [], [0, -1, -2, -3, 1], [0, 0.9, 0.9, 1000, 1000]),
        ("tttttxx", [0, 0, 0, 0, 0, 0, 0], [45], [0, -1], [0, 3]),
    ],
)  # fmt: skip
def test_steps_between_levels(kinds, levels, breaks, steps, expected):
    found = clock(kinds, levels, breaks=breaks)
    found.most_bits = 2.0
    assert costs(found, steps) == expected


def test_a_step_behind_the_clock_of_another_cpu_costs_what_its_own_stamps_show():
    found = clock("sttt", [0, 8, 8, 8], gaps=[1, ROLLOVER // 2, 1, 1])
    assert costs(found, [0, 1, -1]) == [0, 0.5, 0.5]


def test_where_more_runs_than_any_trace_has_are_placed():
    """On the latest level that a dozen TIME events have; the others are in doubt by how far they are off."""
    levels = [0] * 12 + [5] * 3 + [7] * 12 + [9]
    found = clock("t" * len(levels), levels)
    consensus._place_garbage(found)
    assert (found.placed.tolist(), found.doubt.tolist()) == ([0, 0, 7, 7], [0, 5, 0, 2])
    few = clock("t" * 14, [0] * 3 + [5] * 11)
    consensus._place_garbage(few)
    assert few.placed.tolist() == [0, 0]


def test_whose_missing_buffers_excuse_a_pause():
    """Those of any CPU where all share a counter, else those of all CPUs (-1) and its own."""
    kinds = np.zeros(4, np.int64) + TIME
    found = WalkNotes(
        np.arange(4) * 10, kinds * 0, kinds, np.arange(4) * 100, ints(0, 5, 0, 5), kinds * 0, kinds - 1, kinds + 1
    )
    for breaks, has_common_clock, expected in (
        ({7: [5]}, True, [False, True, False]), ({7: [5]}, False, [False] * 3), ({0: [5]}, False, [False, True, False]),
        ({-1: [25]}, False, [False, False, True]), ({1: [5]}, False, [False] * 3), ({0: [10, 30]}, False, [False] * 3),
        ({0: [0, 9, 29]}, False, [False, True, True]),
    ):  # fmt: skip
        clock = consensus._Clock.of(
            found, np.flatnonzero(found.cpu == 0), 0, Surroundings(breaks, has_common_clock), None
        )
        assert clock.is_excused.tolist() == expected, breaks
    standing = consensus._Clock.of(found, np.flatnonzero(found.cpu == 0), 3, Surroundings(), (99, 500))
    assert standing.level.tolist() == [0, 2, 7]
    assert [column.tolist() for column in standing.times()[:2]] == [[0, 10, 20, 30, 99], [0, 100, 200, 300, 500]]


def agreeing(
    times: list[int],
    others: list[list[tuple[int, int]]],
    *,
    has_shared_buffers: bool = True,
    together: bool = False,
) -> list[float]:
    """Return how many others agree with one TIME event of CPU 0 in row 50 at each of some times.

    Args:
        times: At which it may be, cycles.
        others: Rows and times of the TIME events of each.
        together: The times are levels among which it is selected, not one time after the other.
    """
    one = np.zeros(1, np.int64)

    def of(cpu: int, rows: np.ndarray, values: np.ndarray) -> consensus._Clock:
        zero = np.zeros(len(rows), np.int64)
        found = WalkNotes(rows, zero + cpu, zero + TIME, values, zero, zero, zero - 1, zero + 1)
        return consensus._Clock.of(found, np.flatnonzero(found.cpu == cpu), 0, Surroundings(), None)

    known = Surroundings(has_shared_buffers=has_shared_buffers)
    judge = consensus.Consensus(claims(), {}, known, {})
    clocks = [of(1 + i, *(ints(*column) for column in zip(*rows, strict=True))) for i, rows in enumerate(others)]
    out: list[float] = []
    for levels in [times] if together else [[time] for time in times]:
        clock = of(0, one + 50, one + levels[0] % ROLLOVER)
        out += judge._agreeing(clock, ints(*levels)[None] // ROLLOVER, clocks)[0].tolist()
    return out


def test_which_cpus_agree_with_a_time():
    """Between the events around it in the file, by a quarter of a rollover; one that came late agrees half."""
    low, high = 20 * ROLLOVER, 24 * ROLLOVER
    other = [(10, 16 * ROLLOVER), (40, low), (60, high)]
    times = [
        low - SLACK,
        low - SLACK - 1,
        high + SLACK,
        high + SLACK + 1,
        16 * ROLLOVER - SLACK,
        16 * ROLLOVER - SLACK - 1,
    ]
    assert agreeing(times, [other]) == [1, 0.5, 1, 0, 0.5, 0]
    assert agreeing(times[:2], [other, other]) == [2, 1]
    # Of the levels on which it came late the latest one agrees half; those on which it did not are none of them.
    assert agreeing([low - SLACK, low - SLACK - 4 * ROLLOVER], [other], together=True) == [1, 0.5]
    assert agreeing([low, low - 2 * ROLLOVER, low - 4 * ROLLOVER], [other], together=True) == [1, 0.5, 0]
    assert agreeing([5, high], [[(60, high)]]) == [1, 1], "nothing is in front of it"
    assert agreeing([high + SLACK, high + SLACK + 1], [[(60, high)]]) == [1, 0]
    assert agreeing([low - SLACK, low - SLACK - 1], [[(40, low)]]) == [1, 0]
    assert agreeing([high - 1], [[(40, high + SLACK), (60, high)]]) == [0.5], "a quarter is not out of order"
    assert agreeing([high - 1], [[(40, high + SLACK + 1), (60, high)]]) == [1]
    assert agreeing([low, 5 * high], [[(40, low)]]) == [1, 1], "nothing follows"
    assert agreeing([low, 0, 99 * ROLLOVER], [[(40, high), (60, low)]]) == [1, 1, 1], "buffers out of order"
    both = [other, [(40, low)]]
    begin, end = 16 * ROLLOVER - ROLLOVER, high + ROLLOVER
    assert agreeing([begin, begin - 1, end, end + 1], both, has_shared_buffers=False) == [2, 0, 2, 0]


@pytest.mark.parametrize(
    ("uptime", "first", "levels", "expected"),
    [
        (None, 0, [0, 9], [0, 0]), (0, 0, [0, 1, 2], [0, 0, 1]), (0, ROLLOVER, [0, 1], [0, 1]),
        (32 * ROLLOVER, 34 * ROLLOVER, [0, 1, -4, -5], [0, 1, 0, 1]),  # by a sixteenth of the time since boot
        (0, 5 * ROLLOVER, [0, 1], [0, 0]),  # none is near: the header may be wrong
        (32 * ROLLOVER, 34 * ROLLOVER + ROLLOVER // 8, [0, -2], [1, 0]),  # an eighth more than that
    ],
)  # fmt: skip
def test_times_that_the_header_contradicts(uptime, first, levels, expected):
    one = np.zeros(1, np.int64)
    first_claim = WalkNotes(one, one, one + TIME, one + first, one, one, one - 1, one + 1)
    clock = consensus._Clock.of(first_claim, one, 0, Surroundings(), None)
    judge = consensus.Consensus(claims(), {}, Surroundings(uptime_cycles=uptime), {})
    assert judge._contradicts_header(clock, ints(*levels)).tolist() == expected
    clock.level += 3
    assert judge._contradicts_header(clock, ints(*levels) + 3).tolist() == expected, "by how much it is moved counts"


def test_what_is_taken_as_given_of_a_trace():
    assert Surroundings() == Surroundings({}, True, True, None, 0, False)
