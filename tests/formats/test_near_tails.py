"""Events whose tails come soon after are the same, whether found at once or one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from satview.events import wire
from satview.formats.kev import combine, stream
from satview.formats.kev.consensus import ROLLOVER
from satview.formats.kev.stream import EventStream, OpenEvents, TailRuns, pairs_of
from satview.store.problems import Problems
from tests.benchmarks.made_traces import make_slots
from tests.fuzz.traces import damaged

COLUMNS = ("header", "stamp", "time_cycles", "thread", "start", "words", "last_slot", "stray_tails")


def batches(blocks: list[np.ndarray]) -> tuple[list[list[list[int]]], list[object]]:
    problems = Problems()
    stream = EventStream(blocks, problems)
    return [[getattr(batch, name).tolist() for name in COLUMNS] for batch in stream], list(problems)


@pytest.mark.thorough
def test_both_ways_on_sound_and_damaged_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    for seed in range(40):
        rng = random.Random(seed)
        slots, _ = make_slots(rng.choice((50, 400, 2000)), seed, rng.choice((0, (1 << 32) - 50_000)))
        if seed % 2:
            slots = damaged(rng, slots)
        if seed % 3 == 0:  # events of one key, whose tails meet
            slots[:, 1] &= np.uint32(0xFFFFF000)
        cuts = sorted(rng.sample(range(len(slots)), 2))
        blocks = [np.ascontiguousarray(part) for part in np.split(slots, cuts)]
        found = batches(blocks)
        with monkeypatch.context() as one_by_one:
            one_by_one.setattr(OpenEvents, "has_room", lambda *_: False)
            assert batches(blocks) == found, seed
        calls.append(sum(len(batch[0]) for batch in found[0]))
    assert sum(calls) > 10_000


def test_what_is_alone_with_its_key() -> None:
    """A head and its end; one with two runs; tails that do not end; a key that is open; a head that is too old."""
    key = np.array([7, 8, 7, 8, 8, 9, 9, 5, 5, 6, 6], np.uint64)
    opens = np.array([1, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0], np.bool_)
    closes = np.array([0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1], np.bool_)
    count = np.arange(len(key))
    now = np.where(count == 10, 1 << 32, 100)
    head = np.full(len(key), wire.THREAD_RUNNING, np.uint32)
    runs = TailRuns(key, np.zeros(len(key), np.int64), count, count + 1, head, head, opens, closes, now)
    heads, tails = pairs_of(runs, np.array([5], np.uint64), np.zeros(1, np.int64))
    assert (heads.tolist(), tails.tolist()) == ([0], [2])


@pytest.mark.parametrize(
    ("head", "tail", "apart", "fits"),
    [
        (2, 2, 0, True), (2, 3, 0, False), (3, 2, 0, False), (1, 1, ROLLOVER - 1, True), (1, 1, ROLLOVER, False),
        (1, 1, 1 - ROLLOVER, True), (1, 1, -ROLLOVER, False),
    ],
)  # fmt: skip
def test_how_long_and_how_old_an_event_may_be(monkeypatch, head, tail, apart, fits) -> None:
    """Here four slots; a rollover after it began, its stamp may be that of another event."""
    assert stream.MAX_SLOTS == 1_048_576, "fewer are enough here"
    monkeypatch.setattr(stream, "MAX_SLOTS", 4)
    first, length = np.array([100, 300]), np.array([head, tail])
    is_head, word = np.array([True, False]), np.zeros(2, np.uint32)
    runs = TailRuns(np.array([5, 5], np.uint64), np.array([1, 9]), first, first + length, word, word, is_head, ~is_head,
                    np.array([0, 50 + apart]))  # fmt: skip
    heads, tails = pairs_of(runs, np.array([], np.uint64), np.array([10 * ROLLOVER, 50]))
    assert (heads.tolist(), tails.tolist()) == (([0], [1]) if fits else ([], []))


@pytest.mark.parametrize("ascends", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 4])
def test_where_a_clock_may_have_gone_around(monkeypatch, rows, ascends) -> None:
    """One event of ten is a rollover ahead; it counts for all pairs of rows that are more than two blocks apart."""
    monkeypatch.setattr(combine, "_BLOCK_ROWS", rows)
    times = np.arange(10)
    times[4:] += ROLLOVER * ascends
    times[4] = 4 + ROLLOVER
    before, owner = np.array([1, 3, 5, 9, 3, 4, 9, 9]), np.array([0, 0, 3, 5, 2, 4, 0, 8])
    found = combine._may_be_given_up(before, owner, times, ascends=ascends)
    if ascends:
        assert found.tolist() == [False, False, True, False, False, False, True, False]
        return
    low, high = owner // rows, before // rows
    seen = [range(first * rows, (last + 1) * rows) if last - first <= 1 else range(10)
            for first, last in zip(low, high, strict=True)]  # fmt: skip
    begun = times[owner].tolist()
    assert found.tolist() == [any(abs(int(times[row]) - start) >= ROLLOVER for row in block if row < 10)
                              for block, start in zip(seen, begun, strict=True)]  # fmt: skip
    assert combine._may_be_given_up(before[:0], owner[:0], times, ascends=ascends).tolist() == []
