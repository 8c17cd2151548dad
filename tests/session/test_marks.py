from __future__ import annotations

import json
import subprocess
import sys

import pytest

from satview.base.errors import WriteError
from satview.base.time import TimeWindow
from satview.session import stored_json
from satview.session.marks import Marks
from satview.store.mark_file import SUFFIX, Mark

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


def test_removing_the_last_one_leaves_an_empty_list_for_other_windows(qapp, tmp_path):
    marks, other = (Marks(tmp_path / "a.kev", LIMITS) for _ in range(2))
    marks.add(Mark(5, 5))
    other.add(Mark(6, 6))
    marks.remove(Mark(5, 5))
    assert rows(tmp_path) == [(6, "")]
    assert list(marks) == [Mark(6, 6)]
    marks.remove(Mark(6, 6))
    assert rows(tmp_path) == []


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


def test_folder_that_cannot_be_written_is_reported_until_it_can_be(qapp, qtbot, tmp_path, monkeypatch):
    monkeypatch.setattr(stored_json, "_RETRY_MS", 200)
    marks = Marks(tmp_path / "gone" / "a.kev", LIMITS)
    marks.add(Mark(5, 5))
    marks.add(Mark(7, 7, "second"))
    assert marks.file.failure == "a.kev.marks.json: No such file or directory"
    assert len(marks) == 2
    (tmp_path / "gone").mkdir()
    qtbot.waitUntil(lambda: not marks.file.failure, timeout=10_000)
    assert list(Marks(tmp_path / "gone" / "a.kev", LIMITS)) == [Mark(5, 5), Mark(7, 7, "second")]


def rows(folder):
    stored = json.loads((folder / ("a.kev" + SUFFIX)).read_text())["marks"]
    return [(row["start_cycles"], row["text"]) for row in stored]


def test_two_windows_keep_additions_edits_and_deletions_of_both(qapp, tmp_path):
    first = Marks(tmp_path / "a.kev", LIMITS)
    for time in (10, 20, 30):
        first.add(Mark(time, time, "old"))
    second = Marks(tmp_path / "a.kev", LIMITS)
    first.add(Mark(1, 1, "first's"))
    first.remove(Mark(10, 10, "old"))
    second.add(Mark(2, 2, "second's"))
    second.remove(Mark(20, 20, "old"))
    second.add(Mark(20, 20, "second's edit"))
    first.add(Mark(3, 3))
    expected = [(1, "first's"), (2, "second's"), (3, ""), (20, "second's edit"), (30, "old")]
    assert rows(tmp_path) == expected
    assert [(mark.start_cycles, mark.text) for mark in first] == expected


def test_both_texts_of_a_note_edited_twice_are_kept(qapp, tmp_path):
    first = Marks(tmp_path / "a.kev", LIMITS)
    first.add(Mark(10, 10, "old"))
    second = Marks(tmp_path / "a.kev", LIMITS)
    for marks, text in ((first, "one"), (second, "two")):
        marks.remove(Mark(10, 10, "old"))
        marks.add(Mark(10, 10, text))
    assert rows(tmp_path) == [(10, "one"), (10, "two")]


def test_what_does_not_fit_the_trace_stays_in_the_file(qapp, tmp_path):
    file = tmp_path / ("a.kev" + SUFFIX)
    outside = {"start_cycles": 10**9, "end_cycles": 10**9, "text": "outside", "colour": "red"}
    file.write_text(json.dumps({"satview_marks": 2, "marks": [outside, "of the future"], "more": [1]}))
    marks = Marks(tmp_path / "a.kev", LIMITS)
    marks.add(Mark(5, 5, "ours"))
    stored = json.loads(file.read_text())
    assert stored == {
        "satview_marks": 2,
        "more": [1],
        "marks": [{"start_cycles": 5, "end_cycles": 5, "text": "ours"}, outside, "of the future"],
    }
    marks.set_limits(TimeWindow(0, 10**10))
    assert [mark.text for mark in marks] == ["ours", "outside"]


def test_mark_beyond_the_end_of_a_growing_trace_stays_in_view(qapp, tmp_path):
    marks = Marks(tmp_path / "a.kev", LIMITS)
    marks.add(Mark(2_000_000, 2_000_000, "later"))
    assert [mark.text for mark in marks] == ["later"]
    marks.add(Mark(5, 5))
    assert rows(tmp_path) == [(5, ""), (2_000_000, "later")]
    marks.remove(Mark(2_000_000, 2_000_000, "later"))
    assert [mark.text for mark in marks] == [""]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"marks": [', "line 1: Expecting value"),
        (b"\xff\xfe", "byte 0 is no text"),
        (b"[]", "it holds no list of marks"),
        (b'{"satview_marks": 1}', "it holds no list of marks"),
        (b"[" * 100_000, "it holds a number or a nesting"),
        (b" " * ((16 << 20) + 1), "it has more than 16,777,216 bytes"),
    ],
)
def test_damaged_file_is_set_aside_and_never_overwritten(qapp, tmp_path, data, reason):
    file = tmp_path / ("a.kev" + SUFFIX)
    aside = tmp_path / ("a.kev" + SUFFIX + ".damaged-1")
    aside.write_bytes(b"of another day")
    file.write_bytes(data)
    marks = Marks(tmp_path / "a.kev", LIMITS)
    assert reason in marks.file.notice
    assert file.read_bytes() == data
    marks.add(Mark(5, 5, "new"))
    assert aside.read_bytes() == b"of another day"
    assert aside.with_suffix(".damaged-2").read_bytes() == data
    assert reason in marks.file.notice
    assert "damaged-2" in marks.file.notice
    assert rows(tmp_path) == [(5, "new")]


def test_file_damaged_or_gone_while_the_window_is_open_gets_all_marks_again(qapp, tmp_path):
    marks = Marks(tmp_path / "a.kev", LIMITS)
    marks.add(Mark(5, 5, "first"))
    (tmp_path / ("a.kev" + SUFFIX)).write_text("{")
    marks.add(Mark(6, 6, "second"))
    assert rows(tmp_path) == [(5, "first"), (6, "second")]
    (tmp_path / ("a.kev" + SUFFIX)).unlink()
    marks.add(Mark(7, 7, "third"))
    assert rows(tmp_path) == [(5, "first"), (6, "second"), (7, "third")]


_ADDER = """
import sys
from pathlib import Path
from satview.base.time import TimeWindow
from satview.session.marks import Marks
from satview.store.mark_file import Mark
marks = Marks(Path(sys.argv[1]), TimeWindow(0, 1_000_000))
for number in range(40):
    marks.add(Mark(number, number, sys.argv[2]))
    if number % 4 == 3:
        marks.remove(Mark(number, number, sys.argv[2]))
assert marks.file.is_stored, marks.file.failure
"""


@pytest.mark.thorough
def test_two_processes_lose_nothing(tmp_path):
    jobs = [subprocess.Popen([sys.executable, "-c", _ADDER, tmp_path / "a.kev", name]) for name in ("one", "two")]
    assert [job.wait(120) for job in jobs] == [0, 0]
    remaining = [number for number in range(40) if number % 4 != 3]
    assert rows(tmp_path) == [(number, name) for number in remaining for name in ("one", "two")]
    assert [path.name for path in tmp_path.iterdir()] == ["a.kev" + SUFFIX]


_FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from satview.base.time import TimeWindow
from satview.session.marks import Marks
from satview.store.mark_file import Mark
marks = Marks(Path(sys.argv[1]), TimeWindow(0, 1_000_000))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, -1))
marks.add(Mark(2, 2, "x" * 1000))
print(marks.file.failure)
resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
marks.file.retry()
print(marks.file.failure, marks.file.is_stored)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX systems")
def test_full_disk_keeps_all_earlier_notes(qapp, tmp_path):
    Marks(tmp_path / "a.kev", LIMITS).add(Mark(1, 1, "earlier"))
    job = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, tmp_path / "a.kev"], capture_output=True, text=True, check=True, timeout=60
    )
    assert job.stdout == "a.kev.marks.json: File too large\n True\n"
    assert rows(tmp_path) == [(1, "earlier"), (2, "x" * 1000)]


def test_way_out_of_a_folder_that_cannot_be_written(qapp, tmp_path):
    marks = Marks(tmp_path / "gone" / "a.kev", LIMITS)
    marks.add(Mark(5, 5, "stored"))
    with pytest.raises(WriteError, match="No such file"):
        marks.save_copy(tmp_path / "gone too" / "b")
    assert not marks.file.is_stored
    marks.save_copy(tmp_path / ("a.kev" + SUFFIX))
    assert marks.file.is_stored
    assert rows(tmp_path) == [(5, "stored")]
