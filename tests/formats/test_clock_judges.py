"""How clocks of CPUs are judged, one step at a time, on clocks made by hand: both sides of every bound.

Times are in rollovers (R) where nothing else is said; a quarter of one is the slack between two CPUs.
"""

from __future__ import annotations

import numpy as np
import pytest

from satview.formats.kev.consensus import (
    CROSSING,
    SEED,
    SLACK,
    TIME,
    ClockVerdicts,
    Consensus,
    Correction,
    Surroundings,
    WalkNotes,
    _add_verdicts,
    _Clock,
)
from satview.formats.kev.consensus import ROLLOVER as R

KINDS = {"t": TIME, "s": SEED, "x": CROSSING}
NONE = np.empty(0, np.int64)


def claims(rows, values, kinds="", jumps=None, gaps=None, cpu=0, source=-1) -> WalkNotes:
    """Return claims of one CPU; `jumps` are their rollovers, all TIME events where `kinds` is empty."""
    kind = np.array([KINDS[letter] for letter in kinds or "t" * len(rows)], np.int64)
    zero = np.zeros(len(rows), np.int64)
    return WalkNotes(
        np.array(rows, np.int64), zero + cpu, kind, np.array(values, np.int64), np.array(jumps or zero, np.int64),
        np.array(gaps or zero, np.int64), np.where(kind == SEED, source, -1), (kind == TIME).astype(np.int64),
    )  # fmt: skip


def clock(rows, values, *, ends=None, shared=True, **columns) -> _Clock:
    found = claims(rows, values, **columns)
    return _Clock.of(
        found, np.flatnonzero(found.cpu == columns.get("cpu", 0)), 0, Surroundings(has_shared_buffers=shared), ends
    )


def judge(*clocks: _Clock, start: int = -1, **known) -> Consensus:
    """Return a consensus that knows these clocks and has placed none of them."""
    of = Consensus(claims([], []), {}, Surroundings(**known), {})
    of.clocks = {each.cpu: each for each in clocks}
    of._start = start
    return of


# ---- a clock by itself ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bits", "shared", "own"),
    [(3, 1.5, 0.5), (3.5, 2, 0.5), (4, 2.5, 1), (6, 4.5, 3), (8, 6.5, 5), (9, 6.5, 6), (20, 6.5, 6.5), (2, 0.5, 0.5)],
)
def test_bits_by_the_pace_of_a_cpu(bits, shared, own):
    """The median of the cycles for each event, up to the next TIME event of any CPU; whole rollovers do not count."""
    pace, events = 2 ** (32 - bits), 2
    values = np.cumsum([0, *[int(pace * events) + jump * R for jump in (0, 8, 0, 3)]])
    for has_shared_buffers, expected in ((True, shared), (False, own)):
        found = clock(np.arange(5) * events, values, shared=has_shared_buffers)
        assert found.most_bits == pytest.approx(expected)
        assert clock([0, events], values[:2], shared=has_shared_buffers).most_bits == pytest.approx(expected)
        # A crossing is noted in the same row as the TIME event that shows it.
        found = clock([0, 2, 2, 4, 6], values[[0, 1, 1, 2, 3]], kinds="ttxtt", shared=has_shared_buffers)
        assert found.most_bits == pytest.approx(expected)
    both = WalkNotes(*(np.concatenate(pair) for pair in zip(
        claims([0, 9, 18, 27], [0, *(int(pace * events) * n for n in (1, 2, 3))]),
        claims([2, 11, 20, 29], [0] * 4, cpu=1), strict=True)))  # fmt: skip
    both = both.rows(np.argsort(both.row))
    assert _Clock.of(both, np.flatnonzero(both.cpu == 0), 0, Surroundings(), None).most_bits == pytest.approx(shared)
    assert clock([5], [9]).most_bits == 6.5


@pytest.mark.parametrize(("sources", "levels"), [([-1, -1], [8, 11]), ([0, -1], [0, 3]), ([-1, 0], [8]), ([1, 1], [0])])
def test_time_events_where_another_clock_stood_in(sources, levels):
    """By how much they are off that one says nothing of the CPU's own clock."""
    found = claims([1, 2], [0, 0], jumps=[8, 3])._replace(source=np.array(sources))
    assert _Clock.of(found, np.flatnonzero(found.cpu == 0), 0, Surroundings(), None).level.tolist() == levels


# ---- one among others ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "value", "rollovers"),
    [
        (50, 104 * R, 0), (50, 105 * R - SLACK - 1, 0), (50, 105 * R - SLACK, -1), (50, 106 * R - SLACK, -2),
        (50, 104 * R - SLACK, 0), (50, 104 * R - SLACK - 1, 0), (50, 100 * R - SLACK, 0), (50, 100 * R - SLACK - 1, 5),
        (50, 90 * R, 14), (41, 104 * R, 0), (40, 104 * R, -4), (40, 100 * R, 0), (5, 100 * R, 0), (5, 99 * R, 1),
    ],
)  # fmt: skip
def test_how_far_a_cpu_is_off_another_one(row, value, rollovers):
    """Behind the event of the other that is in front of it in the file; what may have come late is where it belongs."""
    other = clock([10, 40], [100 * R, 104 * R], cpu=1)
    found = clock([row], [value])
    assert judge(found, other)._towards(found, [other]).tolist() == [rollovers]


def test_levels_on_which_runs_may_be():
    """Its own, that of the run behind, those that most TIME events have, the anchor of a seed, where others are."""
    found = clock(range(12), [n * R for n in range(12)], jumps=[0, 0, 0, 5, 0, 3, 0, 0, 0, -7, 0, 1])
    assert found.level.tolist() == [0, 5, 8, 1, 2]  # 3, 2, 4, 2 and 1 TIME events
    of = judge(found)
    assert of._candidates(found, []).T.tolist() == [
        [0, 5, 8, 1, 2], [5, 8, 1, 2, 2], [8] * 5, [0] * 5, [1] * 5, [5] * 5
    ]  # fmt: skip
    other = clock(range(12), [n * R for n in range(12)], cpu=1)
    assert of._candidates(found, [other]).T.tolist()[6:] == [
        (found.level + of._towards(found, [other])).tolist()
    ]  # fmt: skip
    crossed = clock(range(5), [0] * 5, kinds="ttxxt", jumps=[0, 0, 2, 1, 4])
    assert crossed.level.tolist() == [0, 0, 4]
    assert of._candidates(crossed, []).T.tolist() == [[0, 0, 4], [0, -3, 4], [0] * 3, [4] * 3]
    seeded = clock(range(3), [0] * 3, kinds="stt", jumps=[0, 2, 0], source=7, cpu=1)
    source = clock([0], [5 * R], cpu=7)
    source.place(source.level - 3)
    assert judge(seeded, source)._candidates(seeded, []).T.tolist() == [[0, 2], [2, 2], [2, 2], [0, 0], [-3, -3]]


def test_whom_to_believe_last():
    """By how many others agree, each run by its TIME events; by those that are where they belong; by the header."""
    rows = list(range(0, 60, 10))
    others = [clock([*(row + 1 for row in rows), 70], [*(row * R // 80 for row in rows), R], cpu=cpu, kinds="ttttttx")
              for cpu in (1, 2)]  # fmt: skip
    found = clock(rows, [row * R // 80 + 8 * R * (row == 50) for row in rows], jumps=[0] * 5 + [8])
    for known, uptime in (({}, 0), ({"uptime_cycles": 70}, -70)):
        assert judge(found, *others, **known)._trust(found) == (10 / 6, 6, uptime)
        assert judge(found, others[0], **known)._trust(found) == (False, 6, uptime)
    begins_late = clock([0, 10], [5 * R, 6 * R], jumps=[3, 1])
    assert judge(begins_late, uptime_cycles=4 * R)._trust(begins_late) == (False, 2, -R)
    found.place(np.array([-2, 0]))
    of = judge(found, *others, uptime_cycles=70)
    # The last one and the first one, which has no event of the others in front of it, agree with both.
    assert of._trust(found) == (pytest.approx(4 / 6), 0, -(2 * R + 70))
    many = clock(range(20), [n * 10 for n in range(20)])
    assert judge(many)._trust(many) == (False, 12, 0)


@pytest.mark.parametrize(
    ("length", "value", "placed"),
    [
        (0, R, -1), (0, R - SLACK, -1), (0, R - SLACK - 1, 0), (0, 1, 0), (0, 0, 0), (3 * SLACK, R - SLACK + 1, -1),
        (3 * SLACK, R - SLACK, 0), (3 * SLACK - 1, R - SLACK - 1, 0),
    ],
)  # fmt: skip
def test_a_cpu_that_would_begin_in_front_of_all_others(length, value, placed):
    """The others are at work for `length` from 100 R on; a quarter in front of that it may still begin."""
    others = [clock([1, 2], [100 * R, 100 * R + length], cpu=1), clock([3], [100 * R + length], cpu=2)]
    found = clock([4], [100 * R + value], kinds="s")
    judge(found, *others)._place_within(found, others)
    assert found.placed.tolist() == [placed]


# ---- doubts --------------------------------------------------------------------------------------------------------


def spanning(cpu: int, begin: int, end: int, count: int = 6) -> _Clock:
    """Return a clock of `count` TIME events from one time to another; behind them all but CPU 0 pass a rollover."""
    values, is_other = np.linspace(begin, end, count).astype(np.int64), int(cpu > 0)
    rows = range(cpu, cpu + 10 * (count + is_other), 10)
    return clock(rows, [*values, *[end] * is_other], kinds="t" * count + "x" * is_other, cpu=cpu)


@pytest.mark.parametrize(
    ("begin", "end", "doubt"),
    [
        (100, 110, 0), (100, 110.25, 0), (99.75, 110, 0), (100, 110.5, 0), (104, 111, 4), (104.75, 111, 5),
        (104.7, 111, 4), (99.5, 105, 5), (99.5, 105.25, 5), (99.5, 105.3, 4), (98, 120, 0), (111, 112, 11),
        (90, 91, 19), (99, 110, 0), (104, 110.25, 0), (104, 110, 0), (99.75, 105, 0), (100, 105, 0),
    ],
)  # fmt: skip
def test_a_cpu_that_worked_while_others_did_not(begin, end, doubt):
    """8.0: it may be as far off as the others were at work, from 100 R to 110 R."""
    other, found = spanning(1, 100 * R, 110 * R), spanning(0, int(begin * R), int(end * R), 5)
    judge(found, other)._doubt_outside(found)
    expected = max((begin - 100 + 0.25) // 1 if end > 110.25 else 0, (110 - end + 0.25) // 1 if begin < 99.75 else 0, 0)
    assert set(found.doubt.tolist()) == {doubt} == {int(expected)}


def test_which_others_say_when_there_was_work():
    """Those with more than five TIME events that are where they belong; else the middle of all."""

    def doubt(*others: _Clock, count: int = 5, **known) -> int:
        found = spanning(0, 120 * R, 121 * R, count)
        judge(found, *others, **known)._doubt_outside(found)
        return int(found.doubt[0])

    sure, few, wide = spanning(1, 100 * R, 110 * R), spanning(2, 105 * R, 125 * R, 5), spanning(3, 90 * R, 130 * R)
    assert (doubt(sure), doubt(few), doubt(sure, few), doubt(few, wide), doubt(sure, wide)) == (20, 0, 20, 0, 0)
    assert (doubt(sure, count=6), doubt(), doubt(sure, has_common_clock=False)) == (0, 0, 0)
    moved = spanning(1, 100 * R, 110 * R)
    moved.place(moved.level + 1)
    assert doubt(moved, few, spanning(3, 107 * R, 112 * R, 5)) == 15, "the middle of 101, 105 and 107"
    assert doubt(few, spanning(3, 107 * R, 112 * R, 5)) == 13, "107 to 112: while both were at work"
    three = [spanning(cpu, 100 * R, end * R, 5) for cpu, end in ((1, 105), (2, 122), (3, 123))]
    assert doubt(*three) == 0, "the middle end is 122"


# ---- pauses --------------------------------------------------------------------------------------------------------


def paused(cpu: int = 0, *, before: int = 6, behind: int = 6, step: int = 8, ends=None, **columns) -> _Clock:
    """Return a clock that has TIME events every hundredth of a rollover, and a pause of whole ones among them."""
    n = before + behind
    values = [100 * R + number * (R // 100) + (number >= before) * step * R for number in range(n)]
    jumps = [step * (number == before) for number in range(n)]
    return clock([number * 10 + cpu for number in range(n)], values, jumps=jumps, cpu=cpu, ends=ends, **columns)


def test_pauses_of_a_cpu():
    """The run behind each, up to when it lasts at least, and whether another CPU went on."""
    found = paused()
    end = 108 * R + 6 * (R // 100) - SLACK
    for other_at, is_alone in (
        (end - 1, True), (end, False), (end - 8 * R + 2 * SLACK, False), (end - 8 * R + 2 * SLACK + 1, True),
    ):  # fmt: skip
        assert judge(found, clock([5], [other_at], cpu=1))._pauses(found) == [(1, end, is_alone)]
    assert judge(found)._pauses(found) == [(1, end, False)]
    found.place(found.level + np.array([0, 2]))
    assert judge(found)._pauses(found) == [(1, end + 2 * R, False)]
    for levels in ([8, 8], [9, 8]):
        found.place(np.array(levels))
        assert judge(found)._pauses(found) == []
    steps = clock(range(1030), np.arange(1030) * 3 * R, jumps=[0, *[2] * 1029])
    assert [run for run, _, _ in judge(steps)._pauses(steps)] == list(range(1, 1030))
    crossed = clock(range(4), [0, 1, 2, 9 * R], kinds="ttxt", jumps=[0, 0, 1, 8])
    crossed.place(np.array([0, 1, 9]))
    assert judge(crossed)._pauses(crossed) == []


@pytest.mark.parametrize(
    ("begin", "end", "is_silent"),
    [(90, 120, True), (100.25, 120, True), (100.26, 120, False), (90, 107.87, True), (90, 107.85, False)],
)
def test_a_cpu_that_is_only_silent(begin, end, is_silent):
    """It began and ended while most others were at work, and pauses only while one of them goes on."""
    found, other = paused(), spanning(1, int(begin * R), int(end * R), 40)
    assert judge(found, other)._is_only_silent(found) == is_silent
    others = (other, spanning(2, 104 * R, 105 * R, 40), spanning(3, 90 * R, 120 * R, 40))
    assert judge(found, *others)._is_only_silent(found) == is_silent, "most of three"
    assert not judge(found)._is_only_silent(found)
    assert not judge(found, other, has_common_clock=False)._is_only_silent(found)


def test_what_shows_that_a_cpu_is_more_than_silent():
    other = spanning(1, 90 * R, 120 * R, 40)
    for found, is_silent in (
        (paused(), True), (spanning(0, 100 * R, 108 * R), False), (paused(step=-8), False),
    ):  # fmt: skip
        assert judge(found, other)._is_only_silent(found) == is_silent
    for shift in (1, [0, 1], [1, 0]):
        moved = paused()
        moved.place(moved.level + np.array(shift))
        assert not judge(moved, other)._is_only_silent(moved)
    crossed = clock(range(4), [n * R for n in (100, 100, 100, 108)], kinds="txtt", jumps=[0, 1, 0, 8])
    assert judge(crossed, other)._is_only_silent(crossed), "it passes a rollover, and pauses later"
    back = clock(range(3), [n * R for n in (100, 108, 105)], jumps=[0, 8, -4])
    assert not judge(back, other)._is_only_silent(back), "it goes back"
    found = paused()
    for early, is_silent in ((0, True), (1, False)):
        ends = spanning(1, 90 * R, found.span()[1] - SLACK - early, 40)
        assert judge(found, ends)._is_only_silent(found) == is_silent
    twice = clock(range(3), [n * R for n in (100, 108, 116)], jumps=[0, 8, 8])
    assert judge(twice, other)._is_only_silent(twice)
    ends = clock([1, 2, 3], [100 * R, 104 * R, 116 * R], cpu=1)
    assert not judge(twice, ends)._is_only_silent(twice), "nobody goes on in the second pause"
    gap = clock([1, 2], [90 * R, 120 * R], cpu=1)
    found = paused()
    assert not judge(found, gap)._is_only_silent(found), "nobody went on"


@pytest.mark.parametrize(
    ("before", "behind", "gap", "excused", "step", "is_unproven"),
    [
        (5, 9, R // 8, False, 8, True), (6, 9, R // 8, False, 8, False), (9, 5, R // 8, False, 8, True),
        (9, 6, R // 8, False, 8, False), (9, 9, 1, False, 8, True), (9, 9, 1, True, 65, False),
        (5, 9, 1, True, 64, False), (5, 9, 1, True, 65, True),
    ],
)  # fmt: skip
def test_pauses_that_few_time_events_prove(before, behind, gap, excused, step, is_unproven):
    """Five on one side, or stamps behind it as with no pause at all; missing buffers explain up to 64 rollovers."""
    gaps = [gap * (number == before) for number in range(before + behind)]
    found = paused(before=before, behind=behind, step=step, gaps=gaps, ends=(999, 200 * R))
    found.is_excused[1] = excused
    verdicts = ClockVerdicts()
    judge(found)._add_unproven(verdicts)
    assert verdicts.unproven == ([(before * 10, 0, step)] if is_unproven else [])


# ---- verdicts ------------------------------------------------------------------------------------------------------


def test_what_follows_from_where_runs_are_placed():
    """Corrections from the first row on, TIME events that are off, steps back, and clocks of CPUs that had none."""
    found = clock([5, 6, 7, 8, 9], [0] * 5, kinds="sttxt", jumps=[0, 3, 0, 1, -2], gaps=[0, 10, 20, 30, 40], cpu=2)
    assert found.level.tolist() == [0, 3, 3, 1]
    verdicts = ClockVerdicts()
    _add_verdicts(verdicts, found)
    assert verdicts == ClockVerdicts(steps=[(9, 2, 2 * R - 40)], reseeded=[(6, 2, 3 * R + 10)])
    found.place(np.array([1, 3, 2, 3]))
    verdicts = ClockVerdicts()
    _add_verdicts(verdicts, found)
    last = 2**63 - 1
    assert verdicts == ClockVerdicts(
        corrections=[Correction(2, 0, 6, 1), Correction(2, 8, 9, -1), Correction(2, 9, last, 2)],
        damaged=[(9, 2, -2)], reseeded=[(6, 2, 2 * R + 10)],
    )  # fmt: skip
    for gap, steps in ((0, [(2, 0, R)]), (-1, [(2, 0, R + 1)]), (1, [])):
        back, verdicts = clock([1, 2], [0, 0], jumps=[0, -1], gaps=[0, gap]), ClockVerdicts()
        _add_verdicts(verdicts, back)
        assert verdicts == ClockVerdicts(steps=steps)


@pytest.mark.parametrize(("runs", "is_searched"), [(2049, True), (2051, False)])
def test_how_many_contradictions_are_worth_a_search(monkeypatch, runs, is_searched):
    """Every second run goes back; of more than 1,024 such runs, stamps and many TIME events place each.

    It stays there though the CPU was placed by one that moved.
    """
    monkeypatch.setattr(Consensus, "_anchor", lambda *_: 5)
    levels = np.tile([0, 8], runs // 2 + 1)[:runs]
    levels[-1] = 3  # one TIME event only: it is put where the one before it is
    other = claims([2], [5], cpu=1)
    for kind in "ts":
        rows = claims(np.arange(runs) * 10 + 5, levels * R, kinds=kind + "t" * (runs - 1), source=1,
                      jumps=np.diff(levels, prepend=0).tolist(), gaps=[R // 8] * runs)  # fmt: skip
        both = WalkNotes(*(np.concatenate(pair) for pair in zip(other, rows, strict=True)))
        found = Consensus(both, {}, Surroundings(has_common_clock=False), {}).clocks[0]
        expected = [*levels[:-1].tolist(), levels[-2]], [0] * (runs - 1) + [abs(levels[-2] - 3)]
        assert ((found.placed.tolist(), found.doubt.tolist()) == expected) != is_searched


@pytest.mark.parametrize(("runs", "is_rubbish"), [(1 << 17, False), ((1 << 17) + 1, True)])
def test_how_many_pauses_a_clock_may_have(runs, is_rubbish):
    assert clock(range(runs), np.arange(runs) * R, jumps=[0, *[1] * (runs - 1)]).is_rubbish() == is_rubbish


def test_a_cpu_that_is_silent_now_and_then_in_a_long_capture_is_believed():
    """CPU 1 logs in every third rollover for 50 minutes at 2.6 GHz, while CPU 0 logs in each: nothing contradicts."""
    busy, quiet = np.arange(5400), np.arange(0, 5400, 3)
    rows = np.concatenate((busy * 100, quiet * 100 + 50))
    order = np.argsort(rows)
    cpus, jumps = np.repeat([0, 1], (5400, 1800)), np.concatenate((np.zeros(5400), np.where(quiet, 2, 0)))
    values = np.concatenate((busy * R, quiet * R + 9))
    both = claims(rows[order], values[order], jumps=jumps[order].astype(int).tolist())._replace(cpu=cpus[order])
    judged = Consensus(both, {}, Surroundings(), {})
    assert judged.verdicts() == ClockVerdicts()
    assert [int(each.placed[-1]) for each in judged.clocks.values()] == [0, 3598]


@pytest.mark.parametrize(
    ("jumps", "doubt"),
    [([5, 3], [0, 3]), ([5, -3], [0, 3]), ([5], [0]), ([5, 0], [0])],
)
def test_of_two_time_events_nobody_knows_which_is_damaged(jumps, doubt):
    """Both stay where they are; the second is in doubt by as much as it is off the first."""
    rows = list(range(1, len(jumps) + 1))
    of = Consensus(claims(rows, [0] * len(rows), jumps=jumps), {}, Surroundings(), {})
    found = of.clocks[0]
    assert (found.placed.tolist(), found.doubt.tolist()) == (found.level.tolist(), doubt)
