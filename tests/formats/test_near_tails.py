"""Events whose tails come soon after are the same, whether found at once or one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from satview.events import wire
from satview.formats.kev.growth.stream import EventStream
from satview.formats.kev.open_events import OpenEvents, Runs, pairs_of
from satview.store.problems import Problems
from tests.benchmarks.made_traces import make_slots
from tests.fuzz.traces import damaged

COLUMNS = ("header", "stamp", "time_cycles", "thread", "start", "words", "last_slot", "stray_tails")


def batches(blocks: list[np.ndarray]) -> tuple[list[list[list[int]]], list[object]]:
    problems = Problems()
    stream = EventStream(blocks, problems)
    return [[getattr(batch, name).tolist() for name in COLUMNS] for batch in stream], list(problems)


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
    runs = Runs(key, np.zeros(len(key), np.int64), count, count + 1, head, head, opens, closes, now)
    heads, tails = pairs_of(runs, np.array([5], np.uint64), np.zeros(1, np.int64))
    assert (heads.tolist(), tails.tolist()) == ([0], [2])
