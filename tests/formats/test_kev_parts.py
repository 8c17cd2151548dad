"""Parts of the decoder against what one would write event by event, with limits so low that tests pass them."""

from __future__ import annotations

import numpy as np
import pytest

from satview.formats.kev import open_events, repair
from satview.formats.kev.clocks.rollover import ROLLOVER
from satview.formats.kev.open_events import OpenEvent, OpenEvents
from satview.formats.kev.slots.combine import MAX_SLOTS
from satview.store.problems import Problems


@pytest.mark.parametrize("seed", range(5))
def test_rows_out_of_order_in_pieces(monkeypatch, seed):
    monkeypatch.setattr(repair, "_CHUNK", 4)
    time = np.random.default_rng(seed).integers(0, 30, 41) + np.arange(41) * 3
    expected = [
        row for row, now in enumerate(time.tolist())
        if any(before > now for before in time[:row]) or any(after < now for after in time[row + 1 :])
    ]  # fmt: skip
    assert repair.disordered_rows(time).tolist() == expected
    assert repair.disordered_rows(np.sort(time)).tolist() == []


def event(position: int, words: int = 2, time: int = 0) -> OpenEvent:
    return OpenEvent(0, 7, time, 0, position, [np.zeros(words, np.uint32)])


def test_events_without_end_are_given_up_the_oldest_first(monkeypatch):
    monkeypatch.setattr(open_events, "MAX_OPEN", 3)
    monkeypatch.setattr(open_events, "MAX_WORDS", 10)
    problems = Problems()
    found = OpenEvents(problems, 1000)
    for number in range(3):
        found.add(number, event(number))
    assert (len(found), found.keys().tolist()) == (3, [0, 1, 2])
    assert found.has_room(0, 4)
    assert not found.has_room(1, 0)
    assert not found.has_room(0, 5)
    found.add(3, event(3))
    assert found.keys().tolist() == [1, 2, 3]  # one event too many
    found.add(3, event(4, 6))
    assert found.keys().tolist() == [2, 3]  # one event and two words too many: 2, 2 and 6 are left
    assert len(found) == 3
    words = np.ones(3, np.uint32)
    assert found.append(3, words, 1, 0, closes=False) is None
    ended = found.append(3, words, 1, 0, closes=True)
    assert ended is not None
    assert (ended.position, ended.slots, sum(map(len, ended.words))) == (3, 3, 8)
    long = found.append(3, words, MAX_SLOTS, 0, closes=False)
    assert long is not None
    assert (long.position, len(found)) == (4, 1)
    found.add(5, event(6, time=100))
    found.add(5, event(5, time=101))
    assert found.append(5, words, 1, ROLLOVER + 99, closes=False) is None
    with pytest.raises(KeyError):
        found.append(5, words, 1, ROLLOVER + 101, closes=False)
    found.add(9, event(8))
    found.add(8, event(7))
    found.move_before(5 * ROLLOVER + 10)
    assert found.append(8, words, 1, 5 * ROLLOVER + 7, closes=True).time == 5 * ROLLOVER + 7
    found.add(8, event(7))
    found.finish()
    assert [(problem.detail, problem.offset) for problem in problems] == [
        ("the end of this event is missing", 1000 + 16 * position) for position in (0, 1, 6, 5, 2, 7, 8)
    ]
