"""Events of tens of thousands of slots: counted exactly by every reader, shown as a preview at once."""

from __future__ import annotations

import time

import numpy as np
import pytest

from satview.events import wire
from satview.events.spec import arguments_text
from satview.formats.kev.reader import open_kev
from satview.formats.kev.sampling import GrowingFile
from satview.formats.kev.stream import EventStream, blocks_of_array
from satview.session.event_text import FIRST_WORDS, MOST_WORDS, event_details, list_row
from satview.store.problems import Problems
from tests.helpers.extent import usually
from tests.helpers.kev import write_trace

USER = wire.code(wire.WireClass.USER, 17)


def slots_of(words: np.ndarray, stamp: int, code: int = USER) -> np.ndarray:
    """Return one combine event."""
    slots = np.zeros((len(words) // 2, 4), np.uint32)
    slots[:, 0] = code | int(wire.Struct.COMBINE_CONTINUE) << wire.STRUCT_SHIFT
    slots[0, 0] = code | int(wire.Struct.COMBINE_BEGIN) << wire.STRUCT_SHIFT
    slots[-1, 0] = code | int(wire.Struct.COMBINE_END) << wire.STRUCT_SHIFT
    slots[:, 1] = stamp
    slots[:, 2:4] = words.reshape(-1, 2)
    return slots


def giant(count, folder):
    """Return the words of an event of that many slots, and a trace that has it between small ones."""
    words = np.arange(2 * count, dtype=np.uint32) | np.uint32(0x80000000)
    small = np.array([[wire.code(6, 1), at, at, 0] for at in range(5)], np.uint32)
    slots = np.concatenate((small, slots_of(words, 10), small + np.array([0, 20, 0, 0], np.uint32)))
    return words, write_trace(folder / "giant.kev", slots)


@pytest.mark.parametrize("count", [20_000, 65_535, 65_536, 70_000, 300_000])
def test_every_reader_counts_its_slots_exactly(count, tmp_path):
    words, path = giant(count, tmp_path)
    trace, grown = open_kev(path), GrowingFile(path).read()
    for one in (trace, grown):
        assert one.events.slot_count.tolist() == [1] * 5 + [count] + [1] * 5
        assert one.payloads.word_counts(np.array([5])).tolist() == [2 * count]
        assert np.array_equal(one.payloads.words(5), words)
        assert one.payloads.column(np.array([5]), 2 * count - 1).tolist() == [int(words[-1])]
    problems = Problems()
    found = [
        (batch.words[batch.start[i] : batch.start[i + 1]])
        for batch in EventStream(blocks_of_array(trace.payloads.slots), problems)
        for i in range(len(batch.header))
        if int(batch.header[i]) & wire.CODE_MASK == USER
    ]
    assert [len(each) for each in found] == [2 * count]
    assert np.array_equal(found[0], words)
    assert not {"orphan-slots", "unfinished-events"} & problems.counts().keys()


@pytest.mark.parametrize(
    "count", usually([20_000], complete=[20_000, 65_535, 65_536, 70_000, 300_000], thorough=[20_000, 70_000])
)
def test_it_shows_as_a_preview_at_once(count, tmp_path):
    _, path = giant(count, tmp_path)
    trace = open_kev(path)
    list_row(trace, 0, None)
    start = time.perf_counter()
    details = event_details(trace, 5, None)
    row = list_row(trace, 5, None)
    assert time.perf_counter() - start < 2  # 20,000 slots took 4.6 s once
    arguments, raw = details.sections[-2:]
    assert len(arguments.lines) == FIRST_WORDS + 1
    assert arguments.lines[0].text == "0x80000000"
    assert arguments.lines[-1].text == f"{2 * count - FIRST_WORDS:,} more words"
    assert len(raw.lines) == FIRST_WORDS // 2 + 1
    assert raw.lines[-1].is_more
    assert len(row[-1]) <= 300
    most = event_details(trace, 5, None, most=MOST_WORDS).sections[-1].lines[-1]
    assert (most.is_more, most.note) == (False, "traceprinter prints them all")
    assert len(trace.payloads.decode(5).arguments) == 2 * count  # nothing is left out unless requested


@pytest.mark.thorough
def test_a_giant_text_is_cut_with_a_word(tmp_path):
    text = np.frombuffer(b"abcd" * 39_999 + b"\0\0\0\0", "<u4").astype(np.uint32)
    trace = open_kev(write_trace(tmp_path / "text.kev", slots_of(text, 10)))
    (argument,) = trace.payloads.decode(0, 100).arguments
    assert (argument.text, argument.note) == ("abcd" * 25, "the first 100 of 159,996 bytes")
    assert len(trace.payloads.decode(0).arguments[0].text) == 159_996
    assert arguments_text(trace.payloads.decode(0, 100).arguments, 20).endswith("\N{HORIZONTAL ELLIPSIS}")
