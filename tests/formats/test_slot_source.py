"""Slots read from a file are those in memory, whichever are requested; what cannot be read is reported."""

from __future__ import annotations

import errno
import os
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.base.errors import SourceChangedError
from satview.core import loading
from satview.formats.kev import slot_source
from satview.formats.kev.slot_source import FileSlots, MemorySlots, SourceFile

SLOTS = np.random.default_rng(1).integers(0, 1 << 32, (5_000, 4), np.uint32)


@pytest.fixture(scope="module", params=["little", "big"])
def both(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("slots") / "slots"
    path.write_bytes(b"abc" + SLOTS.astype("<u4" if request.param == "little" else ">u4").tobytes())
    return FileSlots(SourceFile(path, path.stat().st_size), 3, len(SLOTS), request.param), MemorySlots(SLOTS)


@given(
    at=st.lists(st.integers(0, len(SLOTS) - 1), max_size=40), word=st.integers(0, 3), gap=st.sampled_from([1, 50, 9999])
)
def test_any_slots_in_any_order(both, at, word, gap):
    rows = np.array(at, np.int64)
    before, slot_source._GAP = slot_source._GAP, gap
    try:
        assert both[0].take(rows, word).tolist() == both[1].take(rows, word).tolist()
    finally:
        slot_source._GAP = before


def test_reads_into_scratch_memory(both):
    scratch = np.zeros((10, 4), np.uint32)
    assert np.array_equal(both[0].read(7, 12, scratch), SLOTS[7:12])
    assert np.array_equal(scratch[:5], SLOTS[7:12])


@pytest.mark.skipif(not hasattr(os, "preadv"), reason="no positioned reads into memory")
def test_a_vanished_disk_is_reported_in_a_sentence(both, monkeypatch):
    def fails(*_args):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "preadv", fails)
    monkeypatch.setattr(loading, "take_halves", lambda *_args: None)  # the core cannot read it either
    with pytest.raises(SourceChangedError, match="it cannot be read any more: Input/output error; open it again"):
        both[0].take(np.arange(10), 0)


def test_slots_are_read_alike_where_the_core_cannot(both, monkeypatch):
    """Runs that a gap or the border of a block ends, in any order, and none at all."""
    monkeypatch.setattr(loading, "take_halves", lambda *_args: None)
    for gap, shift in ((1, 20), (7, 4), (4096, 3), (4096, 20)):
        monkeypatch.setattr(slot_source, "_GAP", gap)
        monkeypatch.setattr(slot_source, "_BLOCK_SHIFT", shift)
        for rows in ([], [4999], [0, 0, 1, 2, 10, 17, 18, 25, 4000, 4007, 4015, 4999], [30, 2, 2, 9]):
            at = np.array(rows, np.int64)
            for half in (0, 1):
                assert both[0].take_halves(at, half).shape == (len(at), 2)
                assert both[0].take_halves(at, half).tolist() == SLOTS[at, 2 * half : 2 * half + 2].tolist()
            assert both[1].take_halves(at, 1).tolist() == SLOTS[at, 2:4].tolist()


@pytest.mark.parametrize(
    ("gap", "shift", "read"),
    [(50, 20, [(0, 41), (100, 151), (202, 203)]), (38, 20, [(0, 2), (40, 41), (100, 102), (150, 151), (202, 203)]),
     (999, 7, [(0, 128), (150, 203)]), (999, 20, [(0, 203)])],
)  # fmt: skip
def test_what_is_read_of_slots_that_are_apart(both, monkeypatch, gap, shift, read):
    """Together what is no further apart than a gap and in one block."""
    monkeypatch.setattr(loading, "take_halves", lambda *_args: None)
    monkeypatch.setattr(slot_source, "_GAP", gap)
    monkeypatch.setattr(slot_source, "_BLOCK_SHIFT", shift)
    made, real = [], FileSlots.read
    monkeypatch.setattr(
        FileSlots, "read", lambda own, first, end, *more: made.append((first, end)) or real(own, first, end, *more)
    )
    rows = np.array([0, 1, 40, 100, 101, 127, 150, 202] if shift == 7 else [0, 1, 40, 100, 101, 150, 202])
    both[0].take_halves(rows, 0)
    assert made == read


@pytest.mark.parametrize(("start", "end"), [(0, 0), (5000, 5000), (0, 1), (4999, 5000)])
def test_ranges_at_both_ends(both, start, end):
    assert both[0].read(start, end).tolist() == SLOTS[start:end].tolist()
    for wrong in ((-1, 1), (2, 1), (5000, 5001)):
        with pytest.raises(IndexError, match=f"slots {wrong[0]} to {wrong[1]} of 5000"):
            both[0].read(*wrong)


@pytest.fixture(params=[True, False], ids=["positioned", "seeking"])
def file(request, tmp_path, monkeypatch):
    """A file of 5000 bytes that is read by positioned reads, or as on Windows; reads give 7 bytes at most."""
    if request.param:
        real, into = os.pread, os.preadv
        monkeypatch.setattr(os, "pread", lambda file, count, at: real(file, min(count, 7), at))
        monkeypatch.setattr(os, "preadv", lambda file, views, at: into(file, [views[0][:7]], at))
    else:
        real = os.read
        for name in ("pread", "preadv"):
            monkeypatch.delattr(os, name)
        monkeypatch.setattr(os, "read", lambda file, count: real(file, min(count, 7)))
    path = tmp_path / "file"
    path.write_bytes(bytes(range(250)) * 20)
    return SourceFile(path, 4000)


def test_bytes_of_a_file_that_come_a_few_at_a_time(file):
    content = bytes(range(250)) * 20
    assert (file.bytes_at(40, 3), file.bytes_at(0, 9), file.size_now) == (content[3:43], b"", 5000)
    words = np.zeros(10, np.uint32)
    file.read_into(words, 5)
    assert words.tobytes() == content[5:45]
    status = file._path.stat()
    assert file.identity == (status.st_dev, status.st_ino)
    for read in (lambda: file.bytes_at(20, 4990), lambda: file.read_into(words, 4980)):
        with pytest.raises(
            SourceChangedError, match="it had 4,000 bytes when it was opened, now 5,000; open it again"
        ) as at:
            read()
        assert at.value.offset == 5000


def test_a_file_that_has_changed_is_noticed(file):
    file.check()
    with file._path.open("r+b") as other:
        other.truncate(4000)
    file.check()
    os.utime(file._path, ns=(1, 1))
    file.check()  # another time, the same bytes at its start
    with file._path.open("r+b") as other:
        other.truncate(3999)
    with pytest.raises(SourceChangedError, match="it had 4,000 bytes when it was opened, now 3,999") as changed:
        file.check()
    assert changed.value.offset == 3999
    file._path.write_bytes(b"other" * 1000)
    os.utime(file._path, ns=(2, 2))
    for _ in range(2):
        with pytest.raises(SourceChangedError, match="it was written over after it had been opened") as changed:
            file.check()
        assert changed.value.offset == 0
    file.close()
    with pytest.raises(SourceChangedError, match="it was closed; open it again") as closed:
        file.check()
    assert closed.value.offset == 0


def test_a_disk_that_fails_in_the_middle(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(bytes(5000))
    opened = SourceFile(path, 5000)

    def fails(*_args):
        raise OSError(errno.EIO, "")

    for name in ("pread", "preadv"):
        monkeypatch.setattr(os, name, fails)
    for read in (lambda: opened.bytes_at(5, 30), lambda: opened.read_into(np.zeros(5, np.uint32), 30)):
        with pytest.raises(SourceChangedError, match="it cannot be read any more: ") as failed:
            read()
        assert failed.value.offset == 30
    monkeypatch.setattr(os, "preadv", lambda _file, views, at: 4 if at < 38 else fails())
    with pytest.raises(SourceChangedError) as failed:
        opened.read_into(np.zeros(5, np.uint32), 30)
    assert failed.value.offset == 38, "eight bytes were there"


@pytest.mark.parametrize(("byte", "is_noticed"), [(0, True), (4095, True), (4096, False)])
def test_a_file_is_another_one_by_its_first_bytes(tmp_path, byte, is_noticed):
    path = tmp_path / "a.kev"
    data = bytearray(5000)
    path.write_bytes(data)
    file = SourceFile(path, len(data))
    data[byte] = 1
    path.write_bytes(data)
    os.utime(path, ns=(1, 1))
    with pytest.raises(SourceChangedError, match="written over") if is_noticed else nullcontext():
        file.check()
