"""Folders that appear complete or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from satview.base.errors import WriteError
from satview.base.new_file import new_folder


def test_a_folder_has_its_name_when_all_is_in_it(tmp_path):
    with new_folder(tmp_path / "traces") as part:
        (part / "a").write_bytes(b"1")
        assert not (tmp_path / "traces").exists()
        assert part.parent == tmp_path
        assert part.name.startswith(".traces.")
        assert part.name.endswith(".satview-tmp")
    assert [path.name for path in tmp_path.iterdir()] == ["traces"]
    assert (tmp_path / "traces" / "a").read_bytes() == b"1"
    if os.name != "nt":
        assert stat.S_IMODE((tmp_path / "traces").stat().st_mode) == 0o755


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_is_there_is_not_touched(tmp_path, kind):
    path = tmp_path / "traces"
    if kind == "link":
        path.symlink_to("nowhere")
    else:
        path.mkdir() if kind == "folder" else path.write_bytes(b"old")
    with pytest.raises(WriteError, match="traces: it exists; give the name of a new folder"), new_folder(path):
        pytest.fail("it was begun")
    assert [each.name for each in tmp_path.iterdir()] == ["traces"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_exception_leaves_nothing(tmp_path, error):
    with pytest.raises(error), new_folder(tmp_path / "traces") as part:  # noqa: PT012
        (part / "a").write_bytes(b"1")
        raise error
    assert list(tmp_path.iterdir()) == []


def test_errors_of_the_system_name_the_folder(tmp_path):
    missing = tmp_path / "gone"
    with pytest.raises(WriteError, match=r"traces: there is no folder '.*gone'; make"), new_folder(missing / "traces"):
        pytest.fail("it was begun")
    with pytest.raises(WriteError, match="traces: Is a directory"), new_folder(tmp_path / "traces") as part:
        part.write_bytes(b"x")
    # Somebody else was quicker.
    with pytest.raises(WriteError, match="traces: Directory not empty"), new_folder(tmp_path / "traces"):  # noqa: PT012
        (tmp_path / "traces").mkdir()
        (tmp_path / "traces" / "other").write_bytes(b"2")
    assert [path.name for path in tmp_path.iterdir()] == ["traces"]
    assert [path.name for path in (tmp_path / "traces").iterdir()] == ["other"]


def test_names_as_long_as_a_name_can_be(tmp_path):
    with new_folder(tmp_path / ("n" * 255)) as part:
        assert part.is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["n" * 255]


@pytest.mark.skipif(os.name == "nt", reason="folders cannot be brought to the disk there")
def test_the_name_of_a_folder_is_brought_to_the_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: synced.append(os.path.samestat(os.fstat(descriptor), tmp_path.stat()))
    )
    with new_folder(tmp_path / "traces"):
        assert synced == []
    assert synced == [True]
