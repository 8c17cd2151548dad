"""Columns that are views are what the arrays were, in every operation."""

from __future__ import annotations

import numpy as np
import pytest

from satview.timeline.event_marks import EventClock, EventRows, EventTimes, with_views
from satview.timeline.spans import NO_EVENT, LaneSpans

TIME = np.array([10, 10, 20, 30, 30, 30, 45, 50], np.int64)
ROWS = np.array([1, 2, 5, 7], np.uint32)
STARTS = np.array([5, 10, 20, 30, 50], np.int64)


def lane(start: np.ndarray = STARTS) -> LaneSpans:
    event = np.concatenate((np.array([NO_EVENT], np.uint32), ROWS))
    return LaneSpans(start, np.arange(5, dtype=np.uint8), event, None, 60)


def test_a_lane_keeps_no_copy_of_times_and_rows() -> None:
    viewed = with_views(lane(), EventClock(TIME), ROWS)
    assert isinstance(viewed.start_cycles, EventTimes)
    assert isinstance(viewed.event, EventRows)
    assert viewed.event.rows is ROWS
    assert (viewed.start_cycles.tolist(), viewed.event.tolist()) == (STARTS.tolist(), [NO_EVENT, 1, 2, 5, 7])
    assert viewed.start_cycles.nbytes == viewed.event.nbytes == 0


def test_another_lane_keeps_its_own_rows() -> None:
    viewed = with_views(lane(), EventClock(TIME), ROWS[:0])
    assert isinstance(viewed.start_cycles, EventTimes)
    assert isinstance(viewed.event, np.ndarray)


def test_intervals_that_do_not_begin_with_events_stay_copies() -> None:
    own = lane(np.array([5, 10, 21, 30, 50], np.int64))
    assert with_views(own, EventClock(TIME), ROWS) is own
    lost = lane()
    lost.event[4] = NO_EVENT  # at the time of the last event
    assert with_views(lost, EventClock(TIME), ROWS) is lost
    one = LaneSpans(STARTS[:1], np.zeros(1, np.uint8), np.array([NO_EVENT], np.uint32), None, 60)
    assert with_views(one, EventClock(TIME), ROWS) is one


@pytest.mark.parametrize("column", ["start_cycles", "event"])
def test_every_index_gives_what_the_array_gives(column: str) -> None:
    mine, array = getattr(with_views(lane(), EventClock(TIME), ROWS), column), getattr(lane(), column)
    assert (len(mine), mine.shape, mine.size, mine.dtype, mine.ndim) == (5, (5,), 5, array.dtype, 1)
    for key in range(-5, 5):
        assert mine[key] == array[key]
    for start in (None, 0, 1, 2, 4, 5, 9, -2):
        for stop in (None, 0, 1, 3, 5, 9, -1):
            for step in (None, 1, 2, -1):
                assert mine[start:stop:step].tolist() == array[start:stop:step].tolist()
    for indices in ([0, 4, 0], [-5, -1], []):
        assert mine[np.array(indices, np.intp)].tolist() == array[np.array(indices, np.intp)].tolist()
    assert mine[array > array[1]].tolist() == array[array > array[1]].tolist()
    for key in (5, -6):
        with pytest.raises(IndexError):
            mine[key]


def test_arithmetic_and_searches_are_those_of_the_array() -> None:
    mine = with_views(lane(), EventClock(TIME), ROWS).start_cycles
    assert (mine - 5).tolist() == [0, 5, 15, 25, 45]
    assert (mine[1:] > mine[:-1]).all()
    assert np.append(mine, 60).tolist() == [*STARTS.tolist(), 60]
    assert (mine.max(), mine.copy().tolist(), mine.astype(float)[1]) == (50, STARTS.tolist(), 10.0)
    assert (mine >= 20).tolist() == [False, False, True, True, True]
    moments = np.arange(62)
    for side in ("left", "right"):
        expected = np.searchsorted(STARTS, moments, side)
        assert np.searchsorted(mine, moments, side).tolist() == expected.tolist()
        assert mine.searchsorted(moments.tolist(), side).tolist() == expected.tolist()
        for _ in range(2):  # the second time it is looked up
            assert [int(mine.searchsorted(moment, side)) for moment in moments.tolist()] == expected.tolist()
