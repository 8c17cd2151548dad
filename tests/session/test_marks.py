from __future__ import annotations

import json

import pytest

from satview.base.time import TimeWindow
from satview.session.marks import SUFFIX, Mark, Marks

LIMITS = TimeWindow(0, 1_000_000)


def test_marks_travel_beside_the_trace(qapp, tmp_path):
    trace = tmp_path / "boot.kev"
    marks = Marks(trace, LIMITS)
    marks.add(Mark(500, 900, "late wake-up"))
    marks.add(Mark(100, 100))
    again = Marks(trace, LIMITS)
    assert list(again) == [Mark(100, 100), Mark(500, 900, "late wake-up")]
    assert (tmp_path / ("boot.kev" + SUFFIX)).is_file()


def test_only_one_temporary_mark_and_never_stored(qapp, tmp_path):
    marks = Marks(tmp_path / "a.kev", LIMITS)
    marks.add(Mark(5, 5, is_temporary=True))
    marks.add(Mark(7, 7, is_temporary=True))
    assert list(marks) == [Mark(7, 7, is_temporary=True)]
    assert list(tmp_path.iterdir()) == []


def test_removing_the_last_one_removes_the_file(qapp, tmp_path):
    marks = Marks(tmp_path / "a.kev", LIMITS)
    marks.add(Mark(5, 5))
    marks.remove(Mark(5, 5))
    assert list(tmp_path.iterdir()) == []


def test_next_and_previous_go_round(qapp, tmp_path):
    marks = Marks(tmp_path / "a.kev", LIMITS)
    for time in (10, 20, 30):
        marks.add(Mark(time, time))
    assert marks.next_after(20).start_cycles == 30
    assert marks.next_after(30).start_cycles == 10
    assert marks.previous_before(10).start_cycles == 30


@pytest.mark.parametrize(
    "data",
    [
        "no json",
        "[]",
        '{"marks": 5}',
        '{"marks": [5, null, {}]}',
        json.dumps({"marks": [{"start_cycles": "x", "end_cycles": 2, "text": ""}]}),
        json.dumps({"marks": [{"start_cycles": 10**9, "end_cycles": 10**9, "text": "outside"}]}),
        json.dumps({"marks": [{"start_cycles": 9, "end_cycles": 2, "text": "backwards"}]}),
    ],
)
def test_strange_files_give_no_marks(qapp, tmp_path, data):
    (tmp_path / ("a.kev" + SUFFIX)).write_text(data)
    assert list(Marks(tmp_path / "a.kev", LIMITS)) == []


def test_folder_that_cannot_be_written_is_told(qapp, qtbot, tmp_path):
    marks = Marks(tmp_path / "gone" / "a.kev", LIMITS)
    with qtbot.waitSignal(marks.store_failed) as told:
        marks.add(Mark(5, 5))
    assert "marks are not kept" in told.args[0]
    assert len(marks) == 1
