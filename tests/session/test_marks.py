from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from satview.base.errors import WriteError
from satview.base.time import TimeWindow
from satview.session import settings
from satview.session.highlight import Marks
from satview.store.mark_file import SUFFIX, Mark, MarkFiles, note_files, stored_marks
from tests.helpers.extent import usually

LIMITS = TimeWindow(0, 1_000_000)


def test_marks_travel_beside_the_trace(qapp, tmp_path):
    trace = tmp_path / "boot.kev"
    marks = Marks(trace, LIMITS)
    marks.add(Mark(500, 900, "late wake-up"))
    marks.add(Mark(100, 100))
    again = Marks(trace, LIMITS)
    assert list(again) == [Mark(100, 100), Mark(500, 900, "late wake-up")]
    assert [path.name.startswith("boot.kev.marks.") for path in tmp_path.iterdir()] == [True]


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
    for mark in (Mark(10, 10), Mark(20, 20, "bookmark"), Mark(20, 20, "note"), Mark(30, 30)):
        marks.add(mark)
    marks.select(None)
    assert (marks.next_to(1, 20).start_cycles, marks.next_to(-1, 20).start_cycles) == (30, 10)
    assert (marks.next_to(1, 30).start_cycles, marks.next_to(-1, 10).start_cycles) == (10, 30)
    for direction, texts in ((1, ["bookmark", "note", "", "", "bookmark"]), (-1, ["", "", "note", "bookmark", ""])):
        marks.select(None)
        seen = []
        for _ in texts:
            marks.select(marks.next_to(direction, 15))
            seen.append(marks.selected.text)
        assert seen == texts  # each in turn, also those at the same moment


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
    monkeypatch.setattr(settings, "_RETRY_MS", 200)
    marks = Marks(tmp_path / "gone" / "a.kev", LIMITS)
    marks.add(Mark(5, 5))
    marks.add(Mark(7, 7, "second"))
    assert marks.file.failure.startswith("a.kev.marks.json: there is no folder '")
    assert len(marks) == 2
    (tmp_path / "gone").mkdir()
    qtbot.waitUntil(lambda: not marks.file.failure, timeout=10_000)
    assert list(Marks(tmp_path / "gone" / "a.kev", LIMITS)) == [Mark(5, 5), Mark(7, 7, "second")]


def contents(folder):
    """Return what the files of notes hold, none of which is of older versions."""
    assert not (folder / ("a.kev" + SUFFIX)).exists()
    return [json.loads(path.read_text()) for path in sorted(folder.glob("a.kev.marks.*.json"))]


def rows(folder):
    """Return the notes of the only file."""
    (content,) = contents(folder)
    return [(row["start_cycles"], row["text"]) for row in content["marks"]]


def test_two_windows_keep_additions_edits_and_deletions_of_both(qapp, tmp_path):
    first = Marks(tmp_path / "a.kev", LIMITS)
    for cycles in (10, 20, 30):
        first.add(Mark(cycles, cycles, "old"))
    second = Marks(tmp_path / "a.kev", LIMITS)
    first.add(Mark(1, 1, "first's"))
    first.remove(Mark(10, 10, "old"))
    assert [(mark.start_cycles, mark.text) for mark in second] == [(1, "first's"), (20, "old"), (30, "old")]
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


OUTSIDE = {"start_cycles": 10**9, "end_cycles": 10**9, "text": "outside", "colour": "red"}


def test_what_does_not_fit_the_trace_stays_in_the_files(qapp, tmp_path):
    (tmp_path / ("a.kev" + SUFFIX)).write_text(json.dumps({"satview_marks": 1, "marks": [OUTSIDE, "of the future"]}))
    marks = Marks(tmp_path / "a.kev", LIMITS)
    marks.add(Mark(5, 5, "ours"))
    (content,) = contents(tmp_path)
    assert content["marks"][1:] == [OUTSIDE, "of the future"]
    marks.set_limits(TimeWindow(0, 10**10))
    assert [mark.text for mark in marks] == ["ours", "outside"]


def test_files_of_newer_versions_stay_as_they_are(qapp, tmp_path):
    newer = {"satview_marks": 3, "marks": [{"start_cycles": 4, "end_cycles": 4, "text": "newer"}], "more": [1]}
    file = tmp_path / "a.kev.marks.0123456789abcdef.json"
    file.write_text(json.dumps(newer))
    marks = Marks(tmp_path / "a.kev", LIMITS)
    marks.add(Mark(5, 5, "ours"))
    marks.remove(Mark(4, 4, "newer"))
    assert json.loads(file.read_text()) == newer
    assert list(Marks(tmp_path / "a.kev", LIMITS)) == [Mark(5, 5, "ours")]


def test_a_link_to_notes_elsewhere_stays_a_link(qapp, tmp_path):
    shared = tmp_path / "shared.json"
    shared.write_text(json.dumps({"satview_marks": 1, "marks": [OUTSIDE | {"start_cycles": 4, "end_cycles": 4}]}))
    (tmp_path / ("a.kev" + SUFFIX)).symlink_to(shared)
    marks = Marks(tmp_path / "a.kev", LIMITS)
    marks.add(Mark(5, 5, "ours"))
    assert (tmp_path / ("a.kev" + SUFFIX)).is_symlink()
    assert [mark.text for mark in Marks(tmp_path / "a.kev", LIMITS)] == ["outside", "ours"]


def test_a_note_can_be_written_again_after_it_was_removed(qapp, tmp_path):
    (tmp_path / ("a.kev" + SUFFIX)).write_text('{"marks": [{"start_cycles": 4, "end_cycles": 4, "text": "old"}]}')
    first, second = (Marks(tmp_path / "a.kev", LIMITS) for _ in range(2))
    for _ in range(2):
        first.remove(Mark(4, 4, "old"))
        assert rows(tmp_path) == []
        first.add(Mark(4, 4, "old"))
        assert rows(tmp_path) == [(4, "old")]
    second.add(Mark(5, 5))
    assert list(second) == [Mark(4, 4, "old"), Mark(5, 5)]


@pytest.mark.thorough
def test_many_notes_are_not_all_written_with_each_change(qapp, tmp_path):
    marks = Marks(tmp_path / "a.kev", LIMITS)
    for number in range(60):
        marks.add(Mark(number, number, "x" * 4000))
    sizes = sorted(path.stat().st_size for path in tmp_path.iterdir())
    assert 15 <= len(sizes) <= 30
    assert sizes[-1] <= (16 << 10) + 5000
    marks.remove(Mark(0, 0, "x" * 4000))
    assert sum(len(content["marks"]) for content in contents(tmp_path)) == 59, "the text is not on the disk any more"
    assert len(Marks(tmp_path / "a.kev", LIMITS)) == 59


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs permissions")
def test_file_that_cannot_be_read_is_reported_and_does_not_keep_others_from_storing(qapp, tmp_path):
    other = tmp_path / "a.kev.marks.0123456789abcdef.json"
    other.write_text('{"marks": []}')
    other.chmod(0)
    marks = Marks(tmp_path / "a.kev", LIMITS)
    assert marks.file.notice == f"{other.name} cannot be read: Permission denied"
    marks.add(Mark(5, 5, "ours"))
    assert marks.file.is_stored
    assert other.exists()
    assert len(list(tmp_path.iterdir())) == 2


def test_all_files_of_notes_are_listed(qapp, tmp_path):
    names = ["a.kev.marks.json", "a.kev.marks.0123456789abcdef.json"]
    for name in (*names, "a.kev.marks.012.json", "b.kev.marks.json", "a.kev.marks.json.damaged-1"):
        (tmp_path / name).write_text('{"marks": []}')
    assert sorted(path.name for path in note_files(tmp_path / "a.kev")) == sorted(names)
    assert note_files(Path("-")) == []


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
        (b"\xff\xfe", "byte 0 is not text"),
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
    (file,) = note_files(tmp_path / "a.kev")
    file.write_text("{")
    marks.add(Mark(6, 6, "second"))
    assert f"{file.name} was damaged and is now {file.name}.damaged-1" in marks.file.notice
    assert rows(tmp_path) == [(5, "first"), (6, "second")]
    note_files(tmp_path / "a.kev")[0].unlink()
    marks.add(Mark(7, 7, "third"))
    assert rows(tmp_path) == [(5, "first"), (6, "second"), (7, "third")]


_WRITER = """
import random, sys
from pathlib import Path
from satview.store.mark_file import Mark, MarkFiles, row_of
trace, name, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
rng, files, own = random.Random(seed), MarkFiles(trace), []
for number in range(100_000):
    before, texts = set(files.rows), []
    if own and rng.random() < 0.8:
        texts.append("-" + own[0][1])
        files.take([own.pop(0)[0]])
    if not texts or rng.random() < 0.5:
        texts.append(f"+{name}.{seed}.{number}{'.goes' if number % 4 == 3 else ''}")
        files.put(row_of(Mark(number, number, texts[-1][1:])))
    print("?", *texts, flush=True)
    own += [(key, row["text"]) for key, row in files.rows.items() if key not in before and "goes" in row["text"]]
    if files.write():
        raise SystemExit("a file is damaged")
    print("!", *texts, flush=True)
"""


@pytest.fixture
def folder_in_memory(tmp_path):
    """Return a folder in memory, where there is one: no disk is waited for, so that writers meet more often."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        yield Path(folder)


class Writer:
    """A process that adds notes and removes some; says so before it does (?), and when they are stored (!)."""

    def __init__(self, trace, name, seed):
        command = [sys.executable, "-c", _WRITER, trace, name, str(seed)]
        self.job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines = []
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.job.stdout:
            with self.changed:
                self.lines.append(line)
                self.changed.notify()

    def wait(self, count):
        """Wait for some more lines."""
        with self.changed:
            count += len(self.lines)
            assert self.changed.wait_for(lambda: len(self.lines) >= count or self.job.poll() is not None, 120), "stuck"

    def end(self):
        code = self.job.poll()
        self.job.kill()
        self.reader.join(30)
        _, said = self.job.communicate()
        assert code is None, said
        return self.lines


def read_beside_writers(trace):
    """Return the texts of the notes; beside four writers that never rest, reading may be refused for a while."""
    while True:
        try:
            return {mark.text for mark in stored_marks(trace, LIMITS)}
        except BlockingIOError:
            continue


@pytest.mark.thorough
def test_no_note_is_lost_by_four_processes_without_locks_that_are_killed(folder_in_memory):
    """No lock is used at all: writers that do not know of each other are what file systems without locks give."""
    trace, rng, seeds = folder_in_memory / "a.kev", random.Random(27), itertools.count()
    least = usually(50, thorough=1_000, complete=10_000)
    writers = [Writer(trace, f"w{slot}", next(seeds)) for slot in range(4)]
    lines, stored = [], 0
    try:
        while stored < least:
            slot = rng.randrange(4)
            for _ in range(3):
                writers[slot].wait(rng.randrange(1, usually(40, complete=150, thorough=150)))
                said = _added([*lines, *(line for writer in writers for line in list(writer.lines))], "!")
                texts = read_beside_writers(trace)
                assert {text for text in said if not text.endswith("goes")} <= texts, "a reader misses a note"
            lines += writers[slot].end()
            writers[slot] = Writer(trace, f"w{slot}", next(seeds))
            stored = len(_added(lines, "!"))
    finally:
        for writer in writers:
            lines += writer.end()
    texts = [mark.text for mark in stored_marks(trace, LIMITS)]
    assert len(texts) == len(set(texts))
    assert _added(lines, "!") - _removed(lines, "?") <= set(texts), "a note that was stored is lost"
    assert not _removed(lines, "!") & set(texts), "a note that was removed is back"
    assert set(texts) <= _added(lines, "?")
    MarkFiles(trace).write()  # takes away what those left that were killed while they wrote
    assert [path.name for path in folder_in_memory.iterdir() if path not in note_files(trace)] == []


def _added(lines, sign):
    return {word[1:] for line in lines if line[0] == sign for word in line.split()[1:] if word[0] == "+"}


def _removed(lines, sign):
    return {word[1:] for line in lines if line[0] == sign for word in line.split()[1:] if word[0] == "-"}


_FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from satview.base.time import TimeWindow
from satview.session.highlight import Marks
from satview.store.mark_file import Mark
marks = Marks(Path(sys.argv[1]), TimeWindow(0, 1_000_000))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, (100, -1))
marks.add(Mark(2, 2, "x" * 1000))
print(marks.file.failure)
resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
marks.file.retry()
print(marks.file.failure, marks.file.is_stored)
"""


@pytest.mark.thorough
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
    with pytest.raises(WriteError, match="there is no folder"):
        marks.save_copy(tmp_path / "gone too" / "b")
    assert not marks.file.is_stored
    marks.save_copy(tmp_path / ("a.kev" + SUFFIX))
    assert marks.file.is_stored
    copy = json.loads((tmp_path / ("a.kev" + SUFFIX)).read_text())
    assert [(row["start_cycles"], row["text"]) for row in copy["marks"]] == [(5, "stored")]
    assert list(Marks(tmp_path / "a.kev", LIMITS)) == [Mark(5, 5, "stored")]
