"""Small files that several programs change, and those that a person writes."""

from __future__ import annotations

import os

import pytest

from satview.base.errors import UsageError, WriteError
from satview.base.named_files import read_small
from satview.base.shared_file import Damaged, DamagedFileError, change_shared, parsed_json, read_shared


def test_a_file_is_made_changed_and_removed(tmp_path):
    path = tmp_path / "a"
    seen = []
    for new in (b"one", b"two", None, None):
        assert change_shared(path, lambda old, new=new: seen.append(old) or new, 100) is None
        assert (path.read_bytes() if path.exists() else None) == new
    assert seen == [None, b"one", b"two", None]
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_change_is_not_written(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"one")
    os.utime(path, ns=(0, 5_000_000_000))
    change_shared(path, lambda old: old, 100)
    assert path.stat().st_mtime_ns == 5_000_000_000


def test_the_limit_is_the_last_size_that_is_read(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(bytes(1000))
    assert read_shared(path, 1000) == bytes(1000)
    with pytest.raises(DamagedFileError, match="it has more than 999 bytes"):
        read_shared(path, 999)
    assert read_shared(tmp_path / "none", 999) is None
    with pytest.raises(DamagedFileError, match="it is a folder"):
        read_shared(tmp_path, 999)
    assert read_small(path, 1000, "too long") == bytes(1000)
    with pytest.raises(UsageError, match=r"^a: too long$"):
        read_small(path, 999, "too long")
    with pytest.raises(UsageError, match=r"^none: there is no such file; check the name$"):
        read_small(tmp_path / "none", 999, "too long")
    with pytest.raises(UsageError, match=r"^a.b: there is a NUL in it"):
        read_small(tmp_path / "a\0b", 999, "too long")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b'"\xff"', "byte 1 is not text"),
        (b"[1,\n2,,]", "line 2: Expecting value"),
        (b"[" * 100_000, "it holds a number or a nesting beyond all bounds"),
        (b"9" * 5000, "it holds a number or a nesting beyond all bounds"),
    ],
)
def test_what_is_no_json_says_where(data, says):
    with pytest.raises(DamagedFileError, match=says):
        parsed_json(data)
    assert parsed_json(b'{"a": [1, "\xc2\xb5"]}') == {"a": [1, "\N{MICRO SIGN}"]}


def test_damaged_files_stay_under_names_of_their_own(tmp_path):
    path = tmp_path / "a"

    def change(old: bytes | None) -> bytes:
        if old is not None and old.startswith(b"bad"):
            raise DamagedFileError("it is bad")
        return b"good" + (old or b"")

    for number in (1, 2, 3):
        path.write_bytes(b"bad %d" % number)
        assert change_shared(path, change, 100) == Damaged("a", tmp_path / f"a.damaged-{number}", "it is bad")
        assert path.read_bytes() == b"good"
    assert (tmp_path / "a.damaged-2").read_bytes() == b"bad 2"
    assert len(list(tmp_path.iterdir())) == 4
    path.write_bytes(bytes(101))
    damaged = change_shared(path, change, 100)
    assert damaged is not None
    assert damaged.reason == "it has more than 100 bytes"
    assert damaged.path.read_bytes() == bytes(101)


def test_an_exception_of_a_change_leaves_the_file(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError):
        change_shared(path, lambda old: b"%d" % (len(old or b"") // 0), 100)
    with pytest.raises(WriteError, match=r"a: there is no folder '.*gone'; make it first"):
        change_shared(tmp_path / "gone" / "a", lambda _old: b"x", 100)
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["a"]


def test_what_would_be_damaged_is_not_written(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(WriteError, match="a: it would have more than 100 bytes"):
        change_shared(path, lambda _old: bytes(101), 100)
    assert path.read_bytes() == b"old"
