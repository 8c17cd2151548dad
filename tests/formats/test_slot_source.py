"""Slots read from a file are those in memory, whichever are requested; what cannot be read is reported."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satview.base.errors import SourceChangedError
from satview.core import loading
from satview.formats.kev.slots import slot_source
from satview.formats.kev.slots.slot_source import FileSlots, MemorySlots, SourceFile

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


def test_blocks_are_joined(both, monkeypatch):
    monkeypatch.setattr(slot_source, "_BLOCK_SHIFT", 7)
    rows = np.arange(0, len(SLOTS), 3)
    assert np.array_equal(both[0].take(rows, 2), SLOTS[rows, 2])


def test_reads_into_scratch_memory(both):
    scratch = np.zeros((10, 4), np.uint32)
    assert np.array_equal(both[0].read(7, 12, scratch), SLOTS[7:12])
    assert np.array_equal(scratch[:5], SLOTS[7:12])


def test_there_are_no_slots_beyond_the_end(both):
    with pytest.raises(IndexError):
        both[0].read(4_999, 5_001)


@pytest.mark.skipif(not hasattr(os, "preadv"), reason="no positioned reads into memory")
def test_a_vanished_disk_is_reported_in_a_sentence(both, monkeypatch):
    def fails(*_args):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "preadv", fails)
    monkeypatch.setattr(loading, "take_halves", lambda *_args: None)  # the core cannot read it either
    with pytest.raises(SourceChangedError, match="it cannot be read any more: Input/output error; open it again"):
        both[0].take(np.arange(10), 0)


def test_without_positioned_reads_it_seeks(both, monkeypatch):
    """As on Windows."""
    monkeypatch.delattr(os, "preadv", raising=False)
    monkeypatch.delattr(os, "pread", raising=False)
    assert np.array_equal(both[0].read(100, 4_000), SLOTS[100:4_000])
