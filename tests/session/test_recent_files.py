from __future__ import annotations

import json

from satview.session.loading.files import RecentFiles


def test_newest_first_without_doubles_and_without_lost_files(qapp, tmp_path):
    files = [tmp_path / name for name in "abc"]
    for file in files:
        file.write_text("")
    recent = RecentFiles(tmp_path / "recent.json", 10)
    for file in (*files, files[0]):
        recent.add(file)
    files[1].unlink()
    again = RecentFiles(tmp_path / "recent.json", 10)
    assert again.files() == (files[0], files[2])


def test_limit(qapp, tmp_path):
    recent = RecentFiles(None, 2)
    for name in "abc":
        (tmp_path / name).write_text("")
        recent.add(tmp_path / name)
    assert [file.name for file in recent.files()] == ["c", "b"]


def test_damaged_list_is_an_empty_one(qapp, tmp_path):
    (tmp_path / "recent.json").write_text('{"no": "list"}')
    assert RecentFiles(tmp_path / "recent.json", 5).files() == ()


def test_name_that_no_system_takes_is_left_out(qapp, tmp_path):
    (tmp_path / "a.kev").write_text("")
    (tmp_path / "recent.json").write_text(json.dumps(["x" * 5000, str(tmp_path / "a.kev")]))
    assert RecentFiles(tmp_path / "recent.json", 5).files() == (tmp_path / "a.kev",)
