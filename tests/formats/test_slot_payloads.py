"""Words of events as one would read them slot by slot: adjacent or apart, read ahead or not, narrow or wide counts."""

from __future__ import annotations

import threading
import time
from copy import copy

import numpy as np
import pytest

from satview.base.errors import SourceChangedError
from satview.events import wire
from satview.events.catalogue import catalogue
from satview.events.spec import Release
from satview.formats.kev import payloads as module
from satview.formats.kev.payloads import SlotPayloads
from satview.formats.kev.slot_source import MemorySlots
from satview.store.tables import EventTable, Fragments

# Slots of each event, in the order of the events; those of 1, 4 and 5 are not adjacent.
SLOTS_OF = ([0], [1, 3], [2], [4, 5, 6, 7], [8, 10, 13, 15], [9, 11, 12], [14], [16, 17])
COUNT = 18
CODE = wire.code(wire.WireClass.USER, 5)


def slots() -> np.ndarray:
    """Return slots: header 900 + n, stamp 800 + n, words 2 n + 1 and 2 n + 2 of slot n."""
    number = np.arange(COUNT, dtype=np.uint32)
    return np.stack((number + 900, number + 800, 2 * number + 1, 2 * number + 2), axis=1)


def words_of(event: int) -> list[int]:
    return [word for slot in SLOTS_OF[event] for word in (2 * slot + 1, 2 * slot + 2)]


@pytest.fixture(params=[np.uint16, np.uint32])
def payloads(request):
    """Payloads whose counts of slots are narrow, as nearly always, or wide."""
    count = len(SLOTS_OF)
    events = EventTable(
        np.arange(count, dtype=np.int64), np.full(count, CODE, np.uint16), np.zeros(count, np.uint8),
        np.zeros(count, np.uint16), np.array([rows[0] for rows in SLOTS_OF], np.uint32),
        np.array([len(rows) for rows in SLOTS_OF], request.param),
    )  # fmt: skip
    apart = [event for event, rows in enumerate(SLOTS_OF) if rows[-1] - rows[0] >= len(rows)]
    start = np.cumsum([0, *(len(SLOTS_OF[event]) for event in apart)]).astype(np.int64)
    slot = np.array([row for event in apart for row in SLOTS_OF[event]], np.uint32)
    fragments = Fragments(np.array(apart, np.uint32), start, slot)
    return SlotPayloads(MemorySlots(slots()), events, fragments, "little", catalogue(Release.QNX_7))


def test_one_event(payloads):
    for event, rows in enumerate(SLOTS_OF):
        assert payloads.slots_of(event).tolist() == rows
        assert payloads.words(event).tolist() == words_of(event)
        assert payloads.raw(event) == np.array(words_of(event), "<u4").tobytes()
        assert (payloads.header(event), payloads.stamp(event)) == (900 + rows[0], 800 + rows[0])
        assert payloads.decode(event).words == tuple(words_of(event))
    assert payloads.slots.tolist() == slots().tolist()


def columns_are_right(payloads, events) -> None:
    lists = [words_of(event) + [0] * 10 for event in events.tolist()]
    for word in range(10):
        assert payloads.column(events, word).tolist() == [words[word] for words in lists]
        assert [each.tolist() for each in payloads.pair(events, word)] == [
            [words[word + more] for words in lists] for more in (0, 1)
        ]


@pytest.mark.parametrize("events", [range(8), [7, 4, 4, 0, 5], [1], [], [6, 2]])
def test_many_events(payloads, events):
    events = np.array(events, np.int64)
    columns_are_right(payloads, events)
    for count in (1, 2, 3, 7, 9):
        expected = [(words_of(event) + [0] * 10)[:count] for event in events.tolist()]
        assert payloads.block(events, count).tolist() == expected
    assert payloads.word_counts(events).tolist() == [len(words_of(event)) for event in events.tolist()]


@pytest.mark.parametrize("ahead", [range(8), [0, 1, 3, 5], [4], [4, 5, 6], []])
def test_words_that_are_read_ahead(payloads, ahead):
    """Those that were not are read as ever, and so are fourth slots."""
    ahead = np.array(ahead, np.uint32)
    with payloads.reading_ahead(ahead):
        read = payloads._ahead
        columns_are_right(payloads, ahead.astype(np.int64))
        columns_are_right(payloads, np.arange(8))
        columns_are_right(payloads, ahead[::-1].astype(np.int64))
        for step in range(4):
            found = read.halves(ahead, step)
            assert (found is None) == (step == 3)
            if found is not None:
                expected = [(words_of(event) + [0] * 8)[2 * step : 2 * step + 2] for event in ahead.tolist()]
                assert found.tolist() == expected
        if len(ahead) < 8:
            assert read.halves(np.arange(8), 0) is None
        with payloads.reading_ahead(np.arange(2, dtype=np.uint32)):
            assert payloads._ahead is read, "one at a time"
            columns_are_right(payloads, np.arange(8))
        assert payloads._ahead is read
    assert payloads._ahead is None
    with payloads.reading_ahead(ahead):
        assert payloads._ahead is not read


def test_only_who_ordered_words_waits_for_them(payloads, monkeypatch):
    go_on, real, elsewhere = threading.Event(), module._read, []
    monkeypatch.setattr(module, "_read", lambda *args: (go_on.wait(10), real(*args))[1])
    rows = np.arange(8, dtype=np.uint32)
    with payloads.reading_ahead(rows):
        other = threading.Thread(target=lambda: elsewhere.append(payloads._ahead.halves(rows, 0)))
        other.start()
        other.join()
        assert elsewhere == [None]
        go_on.set()
        assert payloads._ahead.halves(rows, 0).tolist() == [words_of(event)[:2] for event in range(8)]


def test_nothing_is_read_any_more_behind_reading_ahead(payloads):
    """The file may be closed next."""
    is_read = []

    class Slow(MemorySlots):
        def take_halves(self, positions, half):
            time.sleep(0.02)
            is_read.append(half)
            return super().take_halves(positions, half)

    payloads._slots = Slow(slots())
    with payloads.reading_ahead(np.arange(8, dtype=np.uint32)):
        pass
    assert is_read == [1, 1], "all at once, then those that are apart"


def test_more_words_than_memory_holds_are_not_read_ahead(payloads, monkeypatch):
    assert (module._MOST_SLOTS_EACH, 8 * module._MOST_SLOTS) == (3, 256 << 20)
    rows = np.arange(8, dtype=np.uint32)
    slot_count = int(np.minimum(payloads._events.slot_count[rows], module._MOST_SLOTS_EACH).sum())
    for most, is_read in ((slot_count, True), (slot_count - 1, False)):
        monkeypatch.setattr(module, "_MOST_SLOTS", most)
        with payloads.reading_ahead(rows):
            assert (payloads._ahead.halves(rows, 0) is not None) == is_read
            columns_are_right(payloads, np.arange(8))


class _Gone(MemorySlots):
    """Slots of a file that has changed."""

    def check(self) -> None:
        raise SourceChangedError("x", None, "it was written over", "open it again")

    def take_halves(self, at, half):
        raise SourceChangedError("x", None, "it was written over", "open it again")


def test_a_file_that_has_changed(payloads):
    gone = copy(payloads)
    gone._slots = _Gone(slots())
    rows = np.arange(2, dtype=np.uint32)
    for call in (gone.check, lambda: gone.slots, lambda: gone.header(0), lambda: gone.stamp(0),
                 lambda: gone.words(0), lambda: gone.block(rows, 2), lambda: gone.column(rows, 0),
                 lambda: gone.decode(0)):  # fmt: skip
        with pytest.raises(SourceChangedError, match="it was written over"):
            call()
    assert module._read(gone._slots, gone._events, gone._fragments, rows) is None
    gone.tolerate_loss()
    lost = gone.decode(0)
    assert (lost.form, lost.words, lost.raw) == ("lost", (), b"")
    assert list(lost.arguments) == [
        module.Argument("arguments", 0, "not readable any more", 0, 0, "it was written over")
    ]
