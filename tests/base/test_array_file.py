"""A file of arrays: what is written comes back, and nothing that is damaged or made up is believed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from satview.base.column_arrays import _HEAD, MAGIC, read_arrays, word_sum, write_arrays
from satview.base.errors import Cancelled
from satview.base.shared_file import DamagedFileError
from satview.core import loading
from tests.core.reference.replacing import numpy_passes

ARRAYS = {
    "times": np.array([1, -2, 1 << 62], np.int64),
    "codes": np.arange(7, dtype=np.uint16),
    "flags": np.array([True, False]),
    "table": np.arange(6, dtype=np.uint32).reshape(2, 3),
    "nothing": np.empty(0, np.uint8),
}


@pytest.fixture
def path(tmp_path):
    write_arrays(tmp_path / "a.cache", {"name": "x", "n": 1 << 70}, ARRAYS)
    return tmp_path / "a.cache"


def same(found):
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        assert found[name].tolist() == array.tolist()


def test_what_is_written_comes_back_read_only(path):
    values, arrays = read_arrays(path)
    assert values == {"name": "x", "n": 1 << 70}
    same(arrays)
    assert not any(array.flags.writeable for array in arrays.values())
    with pytest.raises(ValueError, match="read-only"):
        arrays["times"][0] = 5


def test_arrays_live_on_when_the_file_is_deleted(path):
    _, arrays = read_arrays(path)
    path.unlink()
    same(arrays)


@pytest.mark.thorough
def test_any_flipped_byte_is_noticed(path):
    data = path.read_bytes()
    noticed = 0
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
        try:
            same(read_arrays(path)[1])  # a byte between two arrays
        except DamagedFileError:
            noticed += 1
    assert noticed >= len(MAGIC) + _HEAD.size + 3 * 8 + 14 + 2 + 24


@pytest.mark.thorough
def test_a_file_cut_anywhere_is_noticed(path):
    data = path.read_bytes()
    end = data.rindex(np.uint32(5).tobytes()) + 4  # what follows is padding
    for length in range(end):
        path.write_bytes(data[:length])
        with pytest.raises(DamagedFileError):
            read_arrays(path)
    with pytest.raises(DamagedFileError, match="array table is not complete"):
        read_arrays(path)  # its last byte alone is missing


def crafted(path: Path, contents: object) -> None:
    text = json.dumps(contents).encode()
    path.write_bytes(MAGIC + _HEAD.pack(len(text), hashlib.sha256(text).digest()) + text + bytes(200))


@pytest.mark.parametrize(
    "entry",
    [
        ["a", "<i8", [1 << 40], 0, 0],
        ["a", "<i8", [1 << 31, 1 << 31, 1 << 31], 0, 0],
        ["a", "<i8", [-1], 0, 0],
        ["a", "<i8", [2.0], 0, 0],
        ["a", "<i8", [1], -64, 0],
        ["a", "<i8", [1], 1 << 70, 0],
        ["a", "|O", [1], 0, 0],
        ["a", "<i8", [1], 0, "0"],
        ["a", "<i8", 5, 0, 0],
        ["a"],
        7,
    ],
)
def test_made_up_contents_are_refused(tmp_path, entry):
    path = tmp_path / "a.cache"
    crafted(path, {"values": 1, "arrays": [entry]})
    with pytest.raises(DamagedFileError):
        read_arrays(path)


@pytest.mark.parametrize("contents", [[], 5, {"values": 1}, {"arrays": []}, {"values": 1, "arrays": 3}])
def test_contents_of_another_form_are_refused(tmp_path, contents):
    crafted(tmp_path / "a.cache", contents)
    with pytest.raises(DamagedFileError):
        read_arrays(tmp_path / "a.cache")


def test_a_file_about_something_else_is_not_looked_into(path):
    with pytest.raises(DamagedFileError, match="something else"):
        read_arrays(path, lambda values: values["n"] == 2)


def test_a_stopped_write_leaves_nothing(tmp_path):
    with pytest.raises(Cancelled):
        write_arrays(tmp_path / "a.cache", {}, ARRAYS, lambda: True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_sums_of_core_and_numpy_are_those_of_whole_numbers():
    rng = np.random.default_rng(4)
    for length in (*range(70), 1 << 20, (1 << 20) + 5):
        data = rng.integers(0, 256, length, np.uint8)
        padded = np.append(data, np.zeros(-length % 8, np.uint8)).view(np.uint64)
        if length < 70:
            assert word_sum(data) == sum(word * (2 * i + 1) for i, word in enumerate(padded.tolist())) % (1 << 64)
        with numpy_passes():
            alone = word_sum(data)
        assert word_sum(data) == alone


def test_the_sum_of_parts_is_the_sum_of_the_whole():
    words = np.arange(1, 40, dtype=np.uint64) << np.uint64(30)
    parts = loading.word_sum(words[:17], 0) + loading.word_sum(words[17:], 17)
    assert parts % (1 << 64) == loading.word_sum(words, 0)


def test_arrays_of_many_blocks_come_back(tmp_path):
    path, large = tmp_path / "a.cache", np.arange(2_500_001, dtype=np.int64)  # 20 MB: two blocks and a half
    write_arrays(path, 1, {"large": large, "after": np.array([7], np.int8).view(np.uint8)})
    _, arrays = read_arrays(path)
    assert np.array_equal(arrays["large"], large)
    assert arrays["after"].tolist() == [7]
    head = len(MAGIC) + _HEAD.size + _HEAD.unpack(path.read_bytes()[len(MAGIC) : len(MAGIC) + _HEAD.size])[0]
    assert path.stat().st_size == -(-head // 64) * 64 + -(-large.nbytes // 64) * 64 + 64


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        (3, "it has no list of arrays"),
        ([["a", "<i8", [2.0], 0, 0]], "array a has an impossible shape"),
        ([["a", "<i8", [-1], 0, 0]], "array a has an impossible shape"),
        ([["a", "<i8", [60], 0, 0]], "array a is not complete"),  # 480 bytes where 200 are
        ([["a", "|u1", [8], -8, 0]], "array a is not complete"),
        ([["a", "|u1", [8], 0, 5]], "array a is damaged"),
        ([["a", "|O", [8], 0, 5]], "its list of arrays cannot be understood"),
        ([7] * 100_000, "cannot be understood"),
        ([7] * 100_001, "it has no list of arrays"),  # such a list has an end
    ],
)
def test_what_is_wrong_is_said(tmp_path, arrays, says):
    path = tmp_path / "a.cache"
    crafted(path, {"values": 1, "arrays": arrays})
    with pytest.raises(DamagedFileError, match=says):
        read_arrays(path)


def test_a_write_is_stopped_between_arrays_and_within_one(tmp_path):
    large = {"large": np.zeros(20 << 20, np.uint8)}
    asked = []
    write_arrays(tmp_path / "a.cache", 1, large, lambda: bool(asked.append(1)))
    assert len(asked) == 1 + 3  # before its sum, and before each of three blocks of 8 MiB
    for stops_at in range(1, 5):
        asked.clear()
        with pytest.raises(Cancelled, match="writing was stopped"):
            write_arrays(tmp_path / "b.cache", 1, large, lambda at=stops_at: len(asked) + 1 == at or asked.append(1))
    assert [path.name for path in tmp_path.iterdir()] == ["a.cache"]


@pytest.mark.parametrize(("length", "says"), [(256 << 20, "its contents are damaged"),
                                              ((256 << 20) + 1, "its contents are too long")])  # fmt: skip
def test_contents_have_an_end(tmp_path, length, says):
    (tmp_path / "a.cache").write_bytes(MAGIC + _HEAD.pack(length, bytes(32)) + b"{}")
    with pytest.raises(DamagedFileError, match=says):
        read_arrays(tmp_path / "a.cache")


@pytest.mark.parametrize("size", [7, 8 * 900 + 7, 8 * 1000 + 7, 8 * 1100 + 7, 8 * 1001])
def test_a_sum_is_below_two_to_the_64th(size):
    data = np.full(size, 0xFF, np.uint8)
    padded = data.tobytes().ljust(-(-size // 8) * 8, b"\0")
    words = [int.from_bytes(padded[at : at + 8], "little") for at in range(0, len(padded), 8)]
    expected = sum(word * (2 * number + 1) for number, word in enumerate(words)) % (1 << 64)
    assert word_sum(data) == expected


def test_a_write_that_is_stopped_once_does_not_go_on(tmp_path):
    answers = iter([False, True])
    with pytest.raises(Cancelled):
        write_arrays(tmp_path / "a.cache", {}, ARRAYS, lambda: next(answers, False))
    assert list(tmp_path.iterdir()) == []
