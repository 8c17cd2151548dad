"""What the tables promise is enforced where data enters."""

from dataclasses import replace

import numpy as np
import pytest

from satview.formats.kev.reader import open_kev
from satview.store.arguments import codes_with, logged_codes_with
from satview.store.problems import KINDS, Problems
from satview.store.tables import StateIndex
from tests.helpers.columns import event_table
from tests.helpers.scene import scene


def test_columns_are_read_only():
    events = event_table([1, 2, 2])
    with pytest.raises(ValueError, match="read-only"):
        events.time_cycles[0] = 5


def test_time_may_not_decrease():
    with pytest.raises(ValueError, match="time decreases"):
        event_table([1, 3, 2])


def test_columns_have_one_length():
    events = event_table([1, 2])
    with pytest.raises(ValueError, match="column cpu"):
        replace(events, cpu=events.cpu[:1])


def test_states_of_a_thread():
    index = StateIndex(np.array([4, 7, 2], np.uint32), np.array([0, 0, 2, 3]))
    assert [index.of(t).tolist() for t in range(3)] == [[], [4, 7], [2]]


def test_many_problems_of_a_kind_make_a_short_list():
    problems = Problems(limit=3)
    for i in range(10):
        problems.add("orphan-slots", "lost", i, count=2)
    problems.add("partial-slot", "cut")
    assert problems.counts() == {"orphan-slots": 20, "partial-slot": 1}
    assert [p.offset for p in problems] == [0, 1, 2, None]
    assert problems.suppressed == {"orphan-slots": 7}
    assert problems.cost_data


def test_problems_beyond_the_limit_can_be_counted_at_once():
    problems = Problems(limit=1)
    problems.add("lost-buffers", "lost", 0, count=2)
    problems.add_rest("lost-buffers", 3, 7)
    problems.add_rest("buffer-order", 0, 0)
    assert problems.counts() == {"lost-buffers": 9}
    assert problems.suppressed == {"lost-buffers": 3}
    assert len(problems) == 1


def test_doubts_cost_no_data():
    problems = Problems()
    problems.add("clock-unknown", "no TIME")
    assert not problems.cost_data


def test_every_kind_says_what_it_means():
    for kind in KINDS.values():
        assert kind.title, kind.slug
        assert kind.meaning.endswith("."), kind.slug
        assert kind.slug == kind.slug.lower().replace(" ", "-")


def test_codes_of_a_trace_with_an_argument_are_those_of_its_release(tmp_path):
    trace = open_kev(scene(tmp_path))
    for name in ("rbytes", "coid", "rcvid", "msg[0]", "msg", "pid", "no_such_argument"):
        logged = logged_codes_with(trace, name)
        assert logged.tolist() == (codes_with(name, trace.release) & (trace.code_counts > 0)).tolist()
    assert logged_codes_with(trace, "coid").any()
